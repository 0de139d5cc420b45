package option

import (
	"errors"
	"io/fs"
	"os"

	"github.com/spf13/pflag"

	"github.com/calamp/calamp/internal/command/console"
	"github.com/calamp/calamp/internal/dataset"
	"github.com/calamp/calamp/operator"
)

// SpectrumCache is --spectrum-cache: a file that keeps the decomposition of W for later runs.
type SpectrumCache struct {
	Path   string
	failed error
}

// Register adds the flag.
func (s *SpectrumCache) Register(flags *pflag.FlagSet) {
	flags.StringVar(&s.Path, "spectrum-cache", "", "keep the decomposition of W that vector AMP makes in this .npz, or, where it is there already,\ntake it from there")
}

// Use takes the decomposition of w from the file, or has it written there once it is made.
func (s *SpectrumCache) Use(w operator.Operator, ranks *Ranks) error {
	switch {
	case s.Path == "":
		return nil
	case s.Path == "-":
		return console.Usage("--spectrum-cache: expected the name of a file, found -")
	case ranks.On():
		return console.Usage("--spectrum-cache is for one process: leave out --mpi")
	}
	var g *operator.Gram
	if _, err := os.Stat(s.Path); err == nil {
		if g, err = dataset.LoadSpectrum(s.Path, w); err != nil {
			return console.Usage("--spectrum-cache %w", err)
		}
	} else if !errors.Is(err, fs.ErrNotExist) {
		return console.Usage("--spectrum-cache %s: %w", s.Path, console.Cause(err))
	}
	if !operator.Remember(w, g, func(g *operator.Gram) { s.failed = dataset.SaveSpectrum(s.Path, w, g) }) {
		return console.Usage("--spectrum-cache: there is nothing to keep, a W such as this is not decomposed")
	}
	return nil
}

// Err is the error with which the file could not be written.
func (s *SpectrumCache) Err() error { return s.failed }
