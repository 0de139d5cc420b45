package calamp

import (
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/mat"

	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/internal/amp"
	"github.com/calamp/calamp/operator"
)

// moved is W, whose rows move with parameters of the sensors where there are any.
func (o *Options) moved(w operator.Operator) (operator.Operator, error) {
	if len(o.SensorDerivatives) == 0 {
		return w, nil
	}
	return MovedMatrix(w, o.SensorDerivatives)
}

// MovedMatrix is W (M×N), whose rows move along derivatives (J, each M×N) with parameters that each sensor has of its own, at θ = 0: tables or sparse
// matrices, of real numbers. It is a table. The error names the derivative that is none of this W.
func MovedMatrix(w operator.Operator, derivatives []Direction) (operator.Operator, error) {
	m, n := w.Dims()
	tables := make([][]float64, 0, 1+len(derivatives))
	for _, d := range append([]Direction{{Name: "W", D: w}}, derivatives...) {
		if err := d.check(m, n); err != nil {
			return nil, err
		}
		if operator.IsComplex(d.D) {
			return nil, fmt.Errorf("%s is complex: parameters of sensors are for real matrices", d.Name)
		}
		values, err := table(d.Name, d.D, false)
		if err != nil {
			return nil, err
		}
		tables = append(tables, values)
	}
	moved, err := operator.NewMoved(m, n, tables[0], tables[1:]...)
	if err != nil {
		return nil, fmt.Errorf("parameters of sensors: %w", err)
	}
	return moved, nil
}

// asGain is a channel of displaced sensors without the posterior of their parameters.
func asGain(c channel.Channel) channel.Channel {
	d, is := channel.InOrder(c).(channel.Displaced)
	if !is {
		return c
	}
	if f, ok := c.(channel.Contaminated); ok {
		return f.WithInOrder(d.Gain)
	}
	return d.Gain
}

// takeTheta copies what the run found of the parameters of sensors.
func (r *Result) takeTheta(s *amp.Solver) {
	part, ok := amp.PartOf[*amp.Displacements](s)
	if !ok {
		return
	}
	known := part.Known
	m, js := s.State.M, len(known.Spread)
	r.Theta, r.ThetaSD, r.SensorSpread = mat.NewDense(m, js, slices.Clone(known.Mean)), mat.NewDense(m, js, nil), slices.Clone(known.Spread)
	for mu := range m {
		for j := range js {
			r.ThetaSD.Set(mu, j, math.Sqrt(known.Cov[(mu*js+j)*js+j]))
		}
	}
}
