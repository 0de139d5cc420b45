package facts

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	"gonum.org/v1/gonum/mat"

	"github.com/calamp/calamp/internal/command/console"
	"github.com/calamp/calamp/internal/dataset"
	"github.com/calamp/calamp/operator"
)

// Provenance is where a result comes from: a command with those of its flags that the
// result depends on, its matrix and readings (nil for those of a stream), and its model, which JSON shows.
func Provenance(command string, stated []string, w operator.Operator, y *mat.Dense, model any) (*dataset.Provenance, error) {
	p := &dataset.Provenance{Version: BuildVersion().Source(), Command: console.Line(append([]string{command}, stated...))}
	var err error
	if p.Model, err = json.Marshal(model); err != nil {
		return nil, err
	}
	if p.W, err = dataset.HashMatrix(w); err != nil {
		return nil, err
	}
	if y != nil {
		p.Y = dataset.HashReadings(y)
	}
	return p, nil
}

// Stated are the flags that were given, as they were typed or as a model file has them, in the order of their names. The arguments are those of a command line that was understood.
func Stated(flags *pflag.FlagSet, args []string, wanted func(name string) bool) []string {
	var stated [][]string
	add := func(f *pflag.Flag, text string) error {
		words := []string{"--" + f.Name, text}
		if text == f.NoOptDefVal { // of a flag that stands alone
			words = words[:1]
		}
		if wanted(f.Name) {
			stated = append(stated, words)
		}
		return nil
	}
	_ = flags.ParseAll(args, add) // they were parsed before, without an error
	flags.VisitAll(func(f *pflag.Flag) {
		for _, text := range f.Annotations[console.FromModel] {
			_ = add(f, text)
		}
	})
	slices.SortStableFunc(stated, func(a, b []string) int { return strings.Compare(a[0], b[0]) })
	return slices.Concat(stated...)
}
