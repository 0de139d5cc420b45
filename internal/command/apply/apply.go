// Package apply is calamp apply: readings corrected by a calibration that is known.
package apply

import (
	"math"
	"math/cmplx"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/calamp/calamp/internal/command/console"
	"github.com/calamp/calamp/internal/command/facts"
	"github.com/calamp/calamp/internal/command/option"
	"github.com/calamp/calamp/internal/dataset"
)

// Command is calamp apply.
func Command(a *console.Console) *cobra.Command {
	var out string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "apply R.npz Y.npy",
		Short: "Correct readings by a calibration that was found",
		Long: `Correct readings by the calibration in a result of calamp solve or calamp online:
z = s y, which is what sensors with gain one would have read, with their noise.
Where the result has offsets, z = s (y - offset).

Y (M×P or M) has one row a row of W, in their order: .npy, .npz or
.mat with Y, or CSV. -o is of the same shape; its name says which of .npy, .npz,
.mat (with Z) and .csv it is. Readings of broken sensors become NaN, and missing
ones stay so.`,
		Example: `  calamp apply R.npz Y.npy -o Z.npy
  calamp apply R.npz today.csv -o calibrated.csv`,
		Args: console.Arguments(2, 2, "a result and readings"),
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			return map[int][]string{0: {"npz", "mat"}, 1: {"npy", "npz", "mat", "csv"}}[len(args)], cobra.ShellCompDirectiveFilterFileExt
		},
		RunE: func(_ *cobra.Command, args []string) error { return apply(a, args[0], args[1], out, asJSON) },
	}
	option.Output(cmd.Flags(), &out, "write the corrected readings to this file")
	option.JSON(cmd.Flags(), &asJSON, "the summary")
	return cmd
}

func apply(a *console.Console, resultPath, readingsPath, out string, asJSON bool) error {
	if out == "" {
		return console.Usage("no file to write the corrected readings to").WithHint("add -o Z.npy")
	}
	if !dataset.Writable(out) {
		return console.Usage("-o %s: expected a name that ends in %s", out, strings.Join(dataset.ArrayFiles, ", "))
	}
	if err := (console.Outputs{console.File("-o", out)}).Check(asJSON, resultPath, readingsPath); err != nil {
		return err
	}
	result, err := dataset.LoadResult(resultPath)
	if err != nil {
		return err
	}
	gains := result.ComplexS()
	if gains != nil && strings.EqualFold(filepath.Ext(out), ".csv") {
		return console.Usage("-o %s: complex numbers are not written as CSV", out).WithHint("a .npy, .npz or .mat can have them")
	}
	offset, err := dataset.LoadOptional(resultPath, "offset")
	if err != nil {
		return err
	}
	y, err := dataset.LoadReadings(readingsPath, gains != nil)
	if err != nil {
		return err
	}
	gainRows := result.SOfRows()
	m := len(gainRows)
	if y.Shape[0] != m {
		hint, unit := "", "sensors"
		if result.Sensors != nil {
			unit = "rows of W"
		}
		if len(y.Shape) == 2 && y.Shape[1] == m {
			hint = ": Y looks transposed"
		}
		return console.Usage("%s has %s and %s is of %d %s%s", readingsPath, console.Plural(y.Shape[0], "row"), resultPath, m, unit, hint)
	}
	if offset != nil && len(offset.Data) != len(result.S) {
		return console.Usage("%s: offset has %d values, expected %d", resultPath, len(offset.Data), len(result.S))
	}
	parts := result.ColumnsPerSignal()
	width := len(y.Data) / m
	p, broken, missing := width/parts, []int{}, 0 // sensors whose readings are NaN now, and readings of the others
	for row, s := range gainRows {
		sensor, readings := result.SensorOf(row), y.Data[row*width:(row+1)*width]
		if facts.IsBroken(result, sensor) {
			if !slices.Contains(broken, sensor) {
				broken = append(broken, sensor)
			}
			s = math.NaN()
		}
		for k := 0; k < width; k += parts {
			if slices.ContainsFunc(readings[k:k+parts], math.IsNaN) && !math.IsNaN(s) {
				missing++
			}
		}
		if gains != nil {
			turned(readings, gains[sensor], math.IsNaN(s))
			continue
		}
		o := 0.0
		if offset != nil {
			o = offset.Data[sensor]
		}
		for k, reading := range readings {
			readings[k] = s * (reading - o)
		}
	}
	if err := dataset.SaveArray(out, "Z", y); err != nil {
		return err
	}
	if asJSON {
		return a.PrintJSON(console.Object{"m", m, "p", p, "broken", broken, "missing_readings", missing, "offsets", offset != nil, "written", out})
	}
	var text console.Summary
	text.Line("readings", "%s of %s", console.Plural(p, "signal"), console.Plural(len(result.S), "sensor"))
	if len(broken) > 0 {
		text.Line("broken", "%s: their readings are NaN", console.Plural(len(broken), "sensor"))
	}
	text.Line("written", "%s", out)
	return a.Print(text.String())
}

// turned multiplies complex readings, in pairs, by s; those of a broken sensor are NaN.
func turned(readings []float64, s complex128, broken bool) {
	for k := 0; k < len(readings); k += 2 {
		z := s * complex(readings[k], readings[k+1])
		if broken {
			z = cmplx.NaN()
		}
		readings[k], readings[k+1] = real(z), imag(z)
	}
}
