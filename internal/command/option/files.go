package option

import (
	"errors"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/calamp/calamp/internal/command/console"
	"github.com/calamp/calamp/internal/dataset"
)

// ArrayNames is --name: the names that arrays have in P.npz.
type ArrayNames dataset.Names

// Register adds the flag.
func (n *ArrayNames) Register(flags *pflag.FlagSet) {
	flags.Var(n, "name", "arrays of P.npz that have other names there, as in W=A,Y=B")
}

// String is empty, as is the default.
func (n *ArrayNames) String() string { return "" }

// Type is what help shows.
func (n *ArrayNames) Type() string { return "W=A,Y=B" }

// renamed are the arrays of a problem that can have other names.
var renamed = []string{"W", "Y", "X0", "s0", "o0", "s_phase", "s_prior_mean", "s_prior_sd"}

// leaveOut makes an array of the problem one that is not read: no array has the name that it gets.
func (n *ArrayNames) leaveOut(array string) {
	if *n == nil {
		*n = ArrayNames{}
	}
	(*n)[array] = ""
}

// Set takes one of the flag's values.
func (n *ArrayNames) Set(text string) error {
	if *n == nil {
		*n = ArrayNames{}
	}
	for pair := range strings.SplitSeq(text, ",") {
		ours, own, ok := strings.Cut(pair, "=")
		if !ok || own == "" || !slices.Contains(renamed, ours) {
			return errors.New("expected W=A,Y=B: one of " + strings.Join(renamed, ", ") + ", and its name in the file")
		}
		(*n)[ours] = own
	}
	return nil
}

// foreign are the ends of names of files that people expect something else in.
var foreign = []string{".h5", ".hdf5", ".txt", ".csv", ".tsv", ".json", ".npy", ".pkl", ".pickle", ".parquet", ".xlsx", ".fits", ".zarr", ".html", ".tif", ".png"}

// CheckArchive refuses a name for arrays that says they are something else than what is written.
func CheckArchive(flag, path string) error {
	if slices.Contains(foreign, strings.ToLower(filepath.Ext(path))) {
		return console.Usage("%s %s: arrays are written as .npz, which numpy reads, or as .mat: expected a name that ends so", flag, path).
			WithHint("%s %s", flag, strings.TrimSuffix(path, filepath.Ext(path))+".npz")
	}
	return nil
}
