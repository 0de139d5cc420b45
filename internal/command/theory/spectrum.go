package theory

import (
	"context"
	"math"
	"path/filepath"

	"github.com/spf13/pflag"

	"github.com/calamp/calamp/evolution"
	"github.com/calamp/calamp/internal/command/console"
	"github.com/calamp/calamp/internal/command/option"
	"github.com/calamp/calamp/internal/dataset"
	"github.com/calamp/calamp/operator"
)

func (s *theory) registerSpectrum(flags *pflag.FlagSet) {
	flags.StringVar(&s.spectrum, "spectrum", "iid", option.About("spectrum"))
	s.truth.RegisterRows(flags)
}

// readSpectrum understands --spectrum.
func (s *theory) readSpectrum() error {
	err := s.vector.UnmarshalText([]byte(s.spectrum))
	if ext := filepath.Ext(s.spectrum); ext == ".npy" || ext == ".npz" {
		s.vector, err = spectrumOf(s.spectrum)
	}
	if err != nil {
		return console.Usage("--spectrum: %w", err)
	}
	return nil
}

// spectrumOf reads singular values, or a matrix and finds those of its rows scaled to norm 1.
func spectrumOf(path string) (evolution.Spectrum, error) {
	if a, err := dataset.LoadArray(path, "W"); err == nil && len(a.Shape) == 1 {
		return evolution.SpectrumOf(a.Data)
	}
	w, file, err := dataset.OpenMatrix(path, math.MaxInt64)
	if err != nil {
		return evolution.Spectrum{}, err
	}
	if file != nil {
		defer file.Close()
	}
	w = operator.RealOf(w) // which has all singular values twice
	m, n := w.Dims()
	gram, err := operator.GramOf(context.Background(), w, 0)
	if err != nil {
		return evolution.Spectrum{}, err
	}
	var singular []float64
	for _, v := range gram.Eigenvalues[max(0, m-n):] {
		singular = append(singular, math.Sqrt(v))
	}
	return evolution.SpectrumOf(singular)
}
