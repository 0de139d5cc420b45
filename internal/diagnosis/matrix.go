package diagnosis

import (
	"fmt"
	"math"

	"github.com/calamp/calamp/operator"
)

// Matrix is what can be said of a W before anything is solved with it.
type Matrix struct {
	RowMean, ColumnMean float64 // root mean squares, in units of those of independent entries of mean 0

	// Of W with its rows scaled to norm 1: estimates between the true extremes, of which the
	// largest is compared with independent entries' 1+√(M/N). Zero where not computed.
	Largest, Smallest float64
	Orthogonal        bool // the rows, by construction

	means string // what exceeds, in words
	w     operator.Operator
}

// OfMatrix measures w; the spectrum only where it is asked for, which takes some sixty
// sweeps.
func OfMatrix(w operator.Operator, spectrum bool, threads int) (Matrix, error) {
	m := Matrix{w: w}
	_, m.Orthogonal = operator.Orthogonal(w)
	means, err := operator.MeansOf(w, threads)
	if err != nil {
		return m, err
	}
	rows, columns, rowsExceed, columnsExceed := operator.MeanExcess(w, means)
	m.RowMean, m.ColumnMean = math.Sqrt(rows), math.Sqrt(columns)
	m.means = meanExcess(rows, columns, rowsExceed, columnsExceed)
	if !spectrum {
		return m, nil
	}
	seen := w
	if table, ok := w.(operator.Matrix); ok && m.means != "" {
		centred, err := operator.RemoveMeans(table, 0)
		if err != nil {
			return m, err
		}
		if centred != nil {
			seen = centred.Operator
		}
	}
	m.Largest, m.Smallest, err = operator.Spectrum(seen, threads)
	return m, err
}

// fewEntries is how many entries of a row a sum needs to be taken for Gaussian.
const fewEntries = 20

// Verdict says what the iteration would make of W, in a sentence.
func (m *Matrix) Verdict() string {
	rows, columns := m.w.Dims()
	_, table := m.w.(operator.Matrix)
	expected := 1 + math.Sqrt(float64(rows)/float64(columns))
	switch {
	case m.Orthogonal:
		return "the rows are orthogonal: AMP converges, with posterior variances up to 1.6 times too large"
	case m.means != "" && !table:
		return fmt.Sprintf("%s those of independent entries of mean zero, and cannot be removed as those of a table are: AMP is likely to diverge", m.means)
	case m.Largest > spread*expected:
		return fmt.Sprintf("ill-conditioned, or its rows or columns are correlated: the largest singular value is %.2g times that of independent entries; AMP may be slow or diverge", m.Largest/expected)
	case m.perRow() < fewEntries:
		return fmt.Sprintf("%.3g entries a row: AMP takes sums over them for Gaussian, and error bars may be too small", m.perRow())
	case m.Largest == 0:
		return "unknown without the spectrum"
	case m.means != "":
		return "once its means are removed, which is done, like independent entries: what AMP is derived for"
	}
	return "like independent entries: what AMP is derived for"
}

// perRow is how many entries of a row are not zero, where that is known.
func (m *Matrix) perRow() float64 {
	rows, columns := m.w.Dims()
	if s, ok := m.w.(interface{ Entries() int }); ok {
		return float64(s.Entries()) / float64(rows)
	}
	return float64(columns)
}

const (
	// collinearFrom is the cosine between a column of W and the nearest other one from which on entries were seen in each other's
	// place (0 of 8 runs with 0.33, 3 of 12 with 0.37, half of them with 0.55 to 0.7, where signals and gains were all that distinguished them), and
	// aboveChance how many times that of random directions it must be: 0.8 to 1 for W of any spectrum or random transforms.
	collinearFrom = 0.35
	aboveChance   = 1.4
)

// CollinearColumns is the warning of neighbouring columns of w that are nearly collinear. A signal with an entry in its neighbour's place leaves residuals as small as
// the right one, where gains can make up for the difference, and the posterior counts one of them alone.
func CollinearColumns(w operator.Operator, threads int) *Warning {
	c, err := operator.CoherenceOf(operator.RealOf(w), threads)
	if err != nil || !(c.Nearest > collinearFrom && c.Nearest > aboveChance*c.Chance) {
		return nil
	}
	return &Warning{Code: ColumnsAlike, Message: fmt.Sprintf("neighbouring columns of W are correlated (cosine %.2g; random columns have %.2g): an entry may be found in its neighbour's place, with gains that compensate, "+
		"and error bars leave that out; more signals or sensors separate the two, or a grid no finer than W resolves", c.Nearest, c.Chance)}
}

func (r *Run) warnColumns() *Warning {
	if between, _ := r.betweenColumns(); between > 0 || !r.Converged || r.Solver.Iterations == 0 || !r.blind() {
		return nil
	}
	return CollinearColumns(r.state.W, r.state.Threads)
}
