package sweep

import (
	"errors"
	"fmt"

	"github.com/calamp/calamp/evolution"
	"github.com/calamp/calamp/teacher"
)

// Kinds are how W is drawn: "iid", "condition:100", or a list of such. Independent entries are the zero value, so that keys are those of points
// without a kind.
type Kinds []teacher.Ensemble

// UnmarshalTOML implements [toml.Unmarshaler].
func (k *Kinds) UnmarshalTOML(v any) error {
	for _, entry := range listOf(v) {
		word, ok := entry.(string)
		if !ok {
			return fmt.Errorf("expected a kind of matrix, one of %s, found %v", teacher.Ensembles(), entry)
		}
		var e teacher.Ensemble
		if err := e.UnmarshalText([]byte(word)); err != nil {
			return err
		}
		if e.String() == new(teacher.Ensemble).String() {
			e = teacher.Ensemble{}
		}
		*k = append(*k, e)
	}
	return nil
}

// independent reports whether the entries of W are.
func (p Point) independent() bool { return p.Matrix == teacher.Ensemble{} }

// spectrum is that of W as state evolution has it, which is vector AMP's.
func (p Point) spectrum() (s evolution.Spectrum, err error) {
	if err := s.UnmarshalText([]byte(p.Matrix.String())); err != nil {
		return s, fmt.Errorf("matrix %v: state evolution is for independent entries or a condition number: %w", p.Matrix, err)
	}
	return s, nil
}

// validateMatrix refuses kinds that nothing is known of.
func (p Point) validateMatrix() error {
	switch {
	case p.independent():
		return nil
	case p.Complex() && !p.Algorithm.synthetic(), p.Algorithm.online() && (!p.Algorithm.synthetic() || p.Record.Prediction):
		return errors.New("matrix: state evolution of streams and of complex problems is for independent entries in a sweep (calamp se has --spectrum)")
	case !p.Algorithm.synthetic() || p.Record.Prediction:
		_, err := p.spectrum()
		return err
	}
	return nil
}
