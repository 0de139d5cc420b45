// Package inspect is calamp inspect: what a file holds, of problems, results,
// arrays and states. It solves nothing.
package inspect

import (
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"gonum.org/v1/gonum/mat"

	"github.com/calamp/calamp"
	"github.com/calamp/calamp/internal/command/console"
	"github.com/calamp/calamp/internal/command/facts"
	"github.com/calamp/calamp/internal/command/option"
	"github.com/calamp/calamp/internal/command/state"
	"github.com/calamp/calamp/internal/dataset"
	"github.com/calamp/calamp/operator"
	"github.com/calamp/calamp/prior"
)

// inspection is what is known of a file; JSON shows it as it is.
type inspection struct {
	File    string         `json:"file"`
	Kind    string         `json:"kind"` // problem, result, network, or arrays
	Arrays  []dataset.Info `json:"arrays"`
	Problem *problemFacts  `json:"problem,omitempty"`
	Result  *resultFacts   `json:"result,omitempty"`

	Network    *networkFacts       `json:"network,omitempty"`
	Provenance *dataset.Provenance `json:"provenance,omitempty"`

	Unread string `json:"not_read,omitempty"` // why the values were left out
}

type problemFacts struct {
	facts.Size
	SilentSensors int      `json:"silent_sensors"` // without any reading
	EmptySignals  int      `json:"empty_signals"`  // the same for signals
	Storage       string   `json:"w_storage"`
	MeanSquare    float64  `json:"w_mean_square"`
	RowMean       float64  `json:"w_row_mean"`    // root mean square of the row means,
	ColumnMean    float64  `json:"w_column_mean"` // in units of that of independent entries of mean 0
	Truth         []string `json:"truth"`
}

type resultFacts struct {
	M         int        `json:"m"`
	Sensors   int        `json:"sensors,omitempty"` // where they have several rows of M
	N         int        `json:"n"`
	P         int        `json:"p"`
	Converged int        `json:"converged_signals"`
	GainSD    *float64   `json:"gain_sd,omitempty"` // median, relative
	ScaleSD   float64    `json:"scale_sd"`
	SRange    [2]float64 `json:"s_range"`           // of the estimates
	XPower    *float64   `json:"x_power,omitempty"` // mean square
	Broken    *int       `json:"broken_sensors,omitempty"`
}

// Command is calamp inspect.
func Command(a *console.Console) *cobra.Command {
	var asJSON, all bool
	var matrix string
	cmd := &cobra.Command{
		Use:   "inspect FILE [FILE]",
		Short: "Show what a problem, a result, a state, a matrix or any .npz, .npy, .mat or .csv holds",
		Long: `Show what a file holds: a problem, a result, a state, or any .npz, .npy, .mat or .csv.

Of two results it says which sensors have moved, by how many standard deviations
of the difference, beside the scale that is common to all, which readings do not
determine; and which sensors broke.

Of a matrix, given by --matrix as for calamp solve or named so (hadamard:R.npz,
sparse:W.npz), it shows the size, the memory, the measured time of
both products, means, spectrum, and what AMP would make of it.`,
		Example: `  calamp inspect P.npz
  calamp inspect monday.npz friday.npz
  calamp inspect hadamard:R.npz
  calamp inspect --matrix W.npy
  calamp inspect S.calamp --json`,
		Args: func(_ *cobra.Command, args []string) error {
			switch {
			case matrix != "" && len(args) > 0:
				return errors.New("inspect takes a file or --matrix, not both")
			case matrix == "" && len(args) != 1 && len(args) != 2:
				return fmt.Errorf("inspect takes one file, or two results, found %d", len(args))
			}
			return nil
		},
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return []string{"npz", "npy", "mat", "csv", "calamp"}, cobra.ShellCompDirectiveFilterFileExt
		},
		RunE: func(_ *cobra.Command, args []string) error {
			limit := int64(mostRead)
			if all {
				limit = math.MaxInt64
			}
			if len(args) == 2 {
				return compareResults(a, [2]string(args), asJSON)
			}
			if matrix == "" && len(args) == 1 && dataset.IsSpec(args[0]) {
				matrix = args[0]
			}
			if matrix != "" {
				return inspectMatrix(a, matrix, asJSON, limit)
			}
			return inspect(a, args[0], asJSON, limit)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	cmd.Flags().BoolVar(&all, "all", false, "read the values of a file larger than 1 GiB, too, and compute a spectrum that takes\nlong")
	cmd.Flags().StringVar(&matrix, "matrix", "", "a matrix W, in place of a file: what it costs, and what AMP would make of it")
	return cmd
}

// mostRead bounds the arrays whose values are read without being asked for: what
// takes a second or two, and fits into any machine's memory.
const mostRead = 1 << 30

// inspect reads the values of no more than limit bytes.
func inspect(a *console.Console, path string, asJSON bool, limit int64) error {
	if stat, err := os.Stat(path); err == nil && !stat.Mode().IsRegular() && !stat.IsDir() {
		return console.Usage("%s: this is no regular file", path) // reading a pipe would wait for a writer
	}
	if state.Is(path) {
		return state.Show(a, path, asJSON)
	}
	arrays, err := dataset.Inspect(path)
	if err != nil {
		return err
	}
	in := inspection{File: path, Kind: kindOf(arrays), Arrays: console.OrEmpty(arrays)}
	// The arrays are shown even when they do not fit together.
	var broken error
	total := bytesOf(arrays)
	switch {
	case in.Kind == "arrays":
	case total > limit:
		in.Unread = fmt.Sprintf("the arrays take %s; --all reads them", bytesText(total))
	case in.Kind == "problem":
		in.Problem, broken = inspectProblem(path)
	case in.Kind == networkKind:
		in.Network, broken = inspectNetwork(path)
	case in.Kind == "result":
		in.Result, broken = inspectResult(path)
		if broken == nil {
			in.Provenance, broken = dataset.LoadProvenance(path)
		}
	}
	if asJSON {
		err = a.PrintJSON(in)
	} else {
		err = a.Print(in.text())
	}
	if err != nil {
		return err
	}
	return broken
}

// bytesOf is what the arrays take in memory, as their headers have it; a sum that is
// too large is the largest number.
func bytesOf(arrays []dataset.Info) (total int64) {
	for _, a := range arrays {
		if total > math.MaxInt64-a.Bytes {
			return math.MaxInt64
		}
		total += a.Bytes
	}
	return total
}

// kindOf tells a file by the names in it.
func kindOf(arrays []dataset.Info) string {
	has := func(names ...string) bool {
		for _, name := range names {
			if !slices.ContainsFunc(arrays, func(i dataset.Info) bool { return i.Name == name }) {
				return false
			}
		}
		return true
	}
	switch {
	case has("W", "Y"):
		return "problem"
	case has("x", "x_var", "s", "s_var"):
		return "result"
	case has("W1"):
		return networkKind
	}
	return "arrays"
}

func inspectProblem(path string) (*problemFacts, error) {
	p, err := dataset.Load(path)
	if err != nil {
		return nil, err
	}
	f := &problemFacts{Size: facts.SizeOf(p), Storage: facts.StorageOf(p.W), MeanSquare: p.W.MeanSquare(), Truth: []string{}}
	w := operator.RealOf(p.W)
	if matrices, _ := operator.Separate(w); matrices != nil {
		w = matrices[0]
	}
	means, err := operator.MeansOf(w, 1)
	if err != nil {
		return nil, err
	}
	square := w.MeanSquare()
	f.RowMean = excess(means.Rows, len(means.Columns), square)
	f.ColumnMean = excess(means.Columns, len(means.Rows), square)
	f.SilentSensors = emptyRows(p.Y)
	f.EmptySignals = emptyRows(p.Y.T())
	if p.Truth.X != nil {
		f.Truth = append(f.Truth, "X0")
	}
	if p.Truth.S != nil {
		f.Truth = append(f.Truth, "s0")
	}
	if p.Truth.O != nil {
		f.Truth = append(f.Truth, "o0")
	}
	return f, nil
}

// excess is the root mean square of means of n entries each, relative to what
// independent entries of mean zero would give.
func excess(means []float64, n int, meanSquare float64) float64 {
	total := 0.0
	for _, v := range means {
		total += v * v
	}
	return math.Sqrt(total / float64(len(means)) * float64(n) / meanSquare)
}

// emptyRows counts the rows that are all NaN.
func emptyRows(y mat.Matrix) int {
	rows, columns := y.Dims()
	empty := 0
	for i := range rows {
		k := 0
		for k < columns && math.IsNaN(y.At(i, k)) {
			k++
		}
		if k == columns {
			empty++
		}
	}
	return empty
}

func inspectResult(path string) (*resultFacts, error) {
	r, err := dataset.LoadResult(path)
	if err != nil {
		return nil, err
	}
	n, p := r.X.Dims()
	facts := &resultFacts{
		M: len(r.OfRows(r.S)), N: n, P: p / r.ColumnsPerSignal(), Converged: facts.Converged(r),
		GainSD: console.Known(facts.TypicalGainSD(r)), ScaleSD: r.ScaleSD,
		SRange: [2]float64{slices.Min(r.S), slices.Max(r.S)},
		XPower: console.Known(power(r)),
	}
	if r.Sensors != nil {
		facts.Sensors = len(r.S)
	}
	if r.Broken != nil {
		facts.Broken = new(int)
		for _, probability := range r.Broken {
			if probability > 0.5 {
				*facts.Broken++
			}
		}
	}
	return facts, nil
}

// sensors says how many there are.
func (r *resultFacts) sensors() string {
	if r.Sensors > 0 {
		return fmt.Sprintf("%s with %s", console.Plural(r.Sensors, "sensor"), console.Plural(r.M, "row"))
	}
	return console.Plural(r.M, "sensor")
}

func power(r *calamp.Result) float64 {
	n, p := r.X.Dims()
	norm := mat.Norm(r.X, 2)
	return norm * norm / float64(n*p/r.ColumnsPerSignal())
}

func (in *inspection) text() string {
	var text console.Summary
	text.Line("file", "%s: %s", in.File, in.Kind)
	for _, a := range in.Arrays {
		text.Line("", "%-10s %-5s %-3s %-12s %s", a.Name, a.Dtype, a.Order, shapeText(a.Shape), bytesText(a.Bytes))
	}
	if in.Unread != "" {
		text.Line("values", "not read: %s", in.Unread)
	}
	if p := in.Problem; p != nil {
		p.describe(&text)
	}
	in.Network.describe(&text)
	if p := in.Provenance; p != nil {
		text.Line("made by", "calamp %s: %s", p.Version, p.Command)
		text.Line("", "W %.12s, Y %.12s (SHA-256)", p.W, p.Y)
	}
	if r := in.Result; r != nil {
		text.Line("result", "%s with %s, %s", console.Plural(r.P, "signal"), console.Plural(r.N, "entry"), r.sensors())
		text.Line("converged", "%d of %s", r.Converged, console.Plural(r.P, "signal"))
		text.Line("s", "from %.4g to %.4g; typical uncertainty of s and of the gain 1/s ±%s", r.SRange[0], r.SRange[1], console.Percent(console.OrNaN(r.GainSD)))
		text.Line("scale", "common to signals and gains, uncertainty ±%s", console.Percent(r.ScaleSD))
		text.Line("x", "mean square %.4g", console.OrNaN(r.XPower))
		if r.Broken != nil {
			text.Line("broken", "%s", console.Plural(*r.Broken, "sensor"))
		}
	}
	return text.String()
}

func (p *problemFacts) describe(text *console.Summary) {
	text.Line("problem", "%v", p.Size)
	if p.SilentSensors > 0 || p.EmptySignals > 0 {
		text.Line("", "%s and %s without any reading", console.Plural(p.SilentSensors, "sensor"), console.Plural(p.EmptySignals, "signal"))
	}
	text.Line("W", "%s, mean square %.4g", facts.StorageName(p.Storage), p.MeanSquare)
	text.Line("", "row means %.3g, column means %.3g times those of independent entries of mean zero", p.RowMean, p.ColumnMean)
	if len(p.Truth) == 0 {
		text.Line("truth", "none")
	} else {
		text.Line("truth", "%s", strings.Join(p.Truth, ", "))
	}
}

func shapeText(shape []int) string {
	if len(shape) == 0 {
		return "one number"
	}
	words := make([]string, len(shape))
	for k, d := range shape {
		words[k] = strconv.Itoa(d)
	}
	return strings.Join(words, "×")
}

func bytesText(n int64) string {
	const units = "KMGTPE"
	if n < 1024 {
		return fmt.Sprintf("%d B", n)
	}
	v, k := float64(n)/1024, 0
	for v >= 1024 && k < len(units)-1 {
		v /= 1024
		k++
	}
	return fmt.Sprintf("%.3g %ciB", v, units[k])
}

const networkKind = "network"

// networkFacts is what a network gives, of latents of mean 0 and variance 1.
type networkFacts struct {
	Latents int     `json:"latents"`
	Entries int     `json:"entries"`
	Layers  string  `json:"layers"`  // 20 → relu 400 → sigmoid 784
	Mean    float64 `json:"x_mean"`  // of the signals' entries
	Power   float64 `json:"x_power"` // their mean square
	Scales  bool    `json:"scales"`  // signals scale with the latents
}

func inspectNetwork(path string) (*networkFacts, error) {
	layers, slack, err := dataset.LoadNetwork(path)
	if err != nil {
		return nil, err
	}
	n, err := prior.NewNetwork(layers, prior.Gaussian(0, 1), slack)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return &networkFacts{n.LatentEntries(), n.Entries(), option.ShapeWords(layers), n.Mean(), n.Square(), n.Scales()}, nil
}

func (f *networkFacts) describe(text *console.Summary) {
	if f == nil {
		return
	}
	text.Line("network", "%s: signals of %s from %s", f.Layers, console.Plural(f.Entries, "entry"), console.Plural(f.Latents, "latent"))
	text.Line("x", "mean %.3g and mean square %.3g, of latents N(0, 1)", f.Mean, f.Power)
	if f.Scales {
		text.Line("scale", "that of the latents: the common scale of signals and gains depends on what is given of these")
	} else {
		text.Line("scale", "the network has one, with its biases and activations, and holds the common scale of signals and gains")
	}
}
