package inspect

import (
	"fmt"
	"math"
	"runtime"
	"time"

	"github.com/calamp/calamp/internal/command/console"
	"github.com/calamp/calamp/internal/command/facts"
	"github.com/calamp/calamp/internal/dataset"
	"github.com/calamp/calamp/internal/diagnosis"
	"github.com/calamp/calamp/operator"
)

// matrixFacts is what is known of a matrix W: what it is, what it costs, and what AMP
// would make of it.
type matrixFacts struct {
	Kind       string   `json:"-"`
	M          int      `json:"m"`
	N          int      `json:"n"`
	Entries    *int     `json:"entries,omitempty"` // of a sparse one
	Bytes      int64    `json:"bytes"`             // of memory, or of its file
	OnDisk     bool     `json:"on_disk,omitempty"` // W stays in its file
	MeanSquare float64  `json:"mean_square"`
	Squares    bool     `json:"squares"` // exact variances are possible
	RowMean    float64  `json:"row_mean"`
	ColumnMean float64  `json:"column_mean"` // in units of those of independent entries of mean 0
	Orthogonal bool     `json:"orthogonal_rows"`
	Largest    *float64 `json:"largest_singular_value,omitempty"` // of W with rows of norm 1
	Smallest   *float64 `json:"smallest_singular_value,omitempty"`
	Expected   float64  `json:"expected_largest"`           // of independent entries: 1 + √(M/N)
	NoSpectrum string   `json:"spectrum_skipped,omitempty"` // why
	SweepMS    float64  `json:"sweep_ms"`                   // both products, for one signal
	Sweep4MS   float64  `json:"sweep4_ms"`                  // for four
	Verdict    string   `json:"amp"`
}

// patience is how long the spectrum may take without being asked for.
const patience = 20 * time.Second

// spectrumSweeps is how many sweeps the spectrum takes, about.
const spectrumSweeps = 62

// inspectMatrix measures the matrix that spec names.
func inspectMatrix(a *console.Console, spec string, asJSON bool, limit int64) error {
	budget := limit // of a table, which stays in its file beyond that
	if dataset.IsSpec(spec) {
		budget = math.MaxInt64
	}
	w, file, err := dataset.OpenMatrix(spec, budget)
	if err != nil {
		return err
	}
	if file != nil {
		defer file.Close()
	}
	f, err := measureMatrix(w, limit == math.MaxInt64)
	if err != nil {
		return fmt.Errorf("%s: %w", spec, err)
	}
	if asJSON {
		return a.PrintJSON(console.Object{"file", spec, "kind", "matrix", "", f})
	}
	var text console.Summary
	text.Line("file", "%s: matrix", spec)
	f.describe(&text)
	return a.Print(text.String())
}

func measureMatrix(w operator.Operator, all bool) (*matrixFacts, error) {
	threads := runtime.GOMAXPROCS(0)
	m, n := w.Dims()
	f := &matrixFacts{
		Kind: operator.Describe(w), M: m, N: n, Bytes: operator.Bytes(w), MeanSquare: w.MeanSquare(),
		Squares: operator.HasSquares(w), Expected: 1 + math.Sqrt(float64(m)/float64(n)),
	}
	if s, ok := w.(interface{ Entries() int }); ok {
		entries := s.Entries()
		f.Entries = &entries
	}
	if table, ok := w.(operator.Matrix); ok {
		f.Kind = facts.StorageName(table.Storage())
		if _, f.OnDisk = w.(operator.Streamed); f.OnDisk {
			f.Bytes = int64(m) * int64(n) * map[string]int64{"f32": 4, "f64": 8}[table.Storage()]
		}
	}
	one, err := sweepTime(w, 1, threads)
	if err != nil {
		return nil, err
	}
	four, err := sweepTime(w, 4, threads)
	if err != nil {
		return nil, err
	}
	f.SweepMS, f.Sweep4MS = milliseconds(one), milliseconds(four)
	_, orthogonal := operator.Orthogonal(w)
	if matrices, _ := operator.Separate(w); matrices != nil {
		one *= time.Duration(len(matrices)) // the spectrum is that of all of them
	}
	affordable := orthogonal || all || one*spectrumSweeps < patience
	if !affordable {
		f.NoSpectrum = fmt.Sprintf("it would take about %v; --all computes it", (one * spectrumSweeps).Round(time.Second))
	}
	measured, err := diagnosis.OfMatrix(operator.RealOf(w), affordable, threads)
	if err != nil {
		return nil, err
	}
	f.RowMean, f.ColumnMean, f.Orthogonal, f.Verdict = measured.RowMean, measured.ColumnMean, measured.Orthogonal, measured.Verdict()
	if affordable {
		f.Largest, f.Smallest = &measured.Largest, &measured.Smallest
	}
	return f, nil
}

// sweepTime is the time of both products for some signals: the shorter of two.
func sweepTime(w operator.Operator, signals, threads int) (time.Duration, error) {
	w = operator.RealOf(w)
	if matrices, _ := operator.Separate(w); matrices != nil {
		w = matrices[0]
	}
	_, n := w.Dims()
	sweep, err := w.NewSweep(signals, 0, threads)
	if err != nil {
		return 0, err
	}
	x, r := make([]float64, signals*n), make([]float64, signals*n)
	for i := range x {
		x[i] = 1
	}
	shortest := time.Duration(math.MaxInt64)
	for range 2 { // the first one also prepares the memory
		start := time.Now()
		if err := sweep.Run(r, nil, x, nil, func(_ int, z, _, g, _ []float64) { copy(g, z) }); err != nil {
			return 0, err
		}
		shortest = min(shortest, time.Since(start))
	}
	return shortest, nil
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

func (f *matrixFacts) describe(text *console.Summary) {
	text.Line("matrix", "%d×%d (α = %.4g): %s", f.M, f.N, float64(f.M)/float64(f.N), f.Kind)
	where := "in memory"
	if f.OnDisk {
		where = "in its file, which every product reads"
	}
	if f.Entries != nil {
		text.Line("entries", "%d, %.3g a row", *f.Entries, float64(*f.Entries)/float64(f.M))
	}
	text.Line("size", "%s %s; as a table of float64 %s", bytesText(f.Bytes), where, tableText(f.M, f.N))
	text.Line("time", "both products %.3g ms for one signal, %.3g ms for four", f.SweepMS, f.Sweep4MS)
	squares := "known: exact variances"
	if !f.Squares {
		squares = "not known: scalar variances only"
	}
	text.Line("squares", "mean %.4g; of entries %s", f.MeanSquare, squares)
	text.Line("means", "rows %.3g, columns %.3g times those of independent entries of mean zero", f.RowMean, f.ColumnMean)
	switch {
	case f.Orthogonal:
		text.Line("spectrum", "orthogonal rows: all singular values are the same")
	case f.Largest == nil:
		text.Line("spectrum", "not computed: %s", f.NoSpectrum)
	default:
		text.Line("spectrum", "of rows of norm 1: %.4g to %.4g, condition number at least %.3g; independent entries have at most %.4g",
			*f.Smallest, *f.Largest, *f.Largest / *f.Smallest, f.Expected)
	}
	text.Line("AMP", "%s", f.Verdict)
}

func tableText(m, n int) string {
	if bytes := 8 * float64(m) * float64(n); bytes < math.MaxInt64 {
		return bytesText(int64(bytes))
	}
	return "more than there is"
}
