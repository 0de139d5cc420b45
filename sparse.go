package calamp

import (
	"context"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/mat"

	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/internal/amp"
	"github.com/calamp/calamp/internal/diagnosis"
	"github.com/calamp/calamp/operator"
	"github.com/calamp/calamp/prior"
)

const (
	// recoveredTo is the part of the signals' power that is not known, by their own error bars, above which they count as not recovered where the result counts as one. Of 36 field problems
	// those that were solved had up to 1.4 %.
	recoveredTo = 0.05

	// mostOfColumns is how many multiplications the covariance of the readings may take, M²N, and as many each basis: a second on a core.
	mostOfColumns = 1e9

	// clearlyFewer is how many times fewer entries another basis must have to be named.
	clearlyFewer = 2

	// mostDense is the learned density above which signals are not sparse. Behind the matrix of another state of a fibre it was 0.98 to 0.999 (x was wrong by 6 to 23 %, by 25 times its error bars), behind its own one 0.156.
	mostDense = 0.9
)

// sparsenessTested says of signals that were not recovered whether they are sparse in the basis that was given, and in which they are.
func sparsenessTested(ctx context.Context, a *try) {
	if density := a.res.learnedDensity(); a.answers() && density > mostDense {
		a.res.Warnings = append(a.res.Warnings, Warning{Code: NotSparse, Message: fmt.Sprintf(
			"the signals are not sparse in this basis: nearly all entries are there, a density of %.3g, so that they are as right as W is; "+
				"with a W whose columns are another basis of the same space other signals explain the readings as well, with the same gains, and error bars leave that out; where signals are known to be sparse W is wrong", density)})
		return
	}
	w, ok := a.problem.W.(operator.Matrix)
	m, n := a.problem.W.Dims()
	_, p := a.problem.Y.Dims()
	if !ok || p < 2 || m < 2 || float64(m)*float64(m)*float64(n) > mostOfColumns || !a.mayBeDense() || ctx.Err() != nil {
		return
	}
	threads := amp.Threads(a.opt.Threads, m*n)
	readings, err := diagnosis.Gaussian(w, a.problem.Y, threads)
	if err != nil {
		return // nothing is said
	}
	own, err := readings.Concentration(nil, threads)
	if err != nil {
		return
	}
	most := float64(m) / float64(n) * float64(p-1) / float64(p)
	name, best := "", own
	if own.Least() > most {
		for _, size := range cosineSizes(n) {
			basis, err := cosines(size)
			if err != nil {
				continue
			}
			if c, err := readings.Concentration(basis, threads); err == nil && c.Inverse-2*c.SD > clearlyFewer*max(1, own.Inverse) && c.Inverse > best.Inverse {
				name, best = size.String(), c
			}
		}
	}
	if w := diagnosis.WarnNotSparse(own, most, name, best); w != nil {
		a.res.Warnings = slices.Insert(a.res.Warnings, 0, Warning{WarningCode(w.Code), w.Message, w.Sensors, w.Signals})
	}
}

// learnedDensity is the part of the entries that are not zero; 0 where it was not learned.
func (r *Result) learnedDensity() float64 {
	if _, learned, ok := learning(r.Prior, 0); !ok || learned&prior.Density == 0 || r.Support != nil {
		return 0
	}
	return r.Prior.(prior.Sparse).NonZero()
}

// mayBeDense reports whether signals of independent entries were not recovered, for a reason that might be their number.
func (a *try) mayBeDense() bool {
	if a.res.Support != nil || a.problem.rows != nil || a.problem.NoiseVar != nil || !channel.Additive(a.problem.Channel) {
		return false
	}
	if _, varied := a.problem.Prior.(prior.Varied); varied {
		return false
	}
	if a.res.warns(OnlyNoise) || a.res.warns(NotMixed) {
		return false
	}
	return a.res.Status != Converged || a.res.Untrusted() != nil || a.res.unknownPart() > recoveredTo
}

// unknownPart is the part of the signals' power that is not known, by their own error bars.
func (r *Result) unknownPart() float64 {
	var squares mat.Dense
	squares.MulElem(r.X, r.X)
	power, variance := meanEntry(&squares), meanEntry(r.XVar)
	return variance / (power + variance)
}

// size is that of images, or of vectors where it has one row.
type size struct{ height, width int }

func (s size) String() string {
	if s.height == 1 {
		return fmt.Sprintf("dct:%d", s.width)
	}
	return fmt.Sprintf("dct2:%dx%d", s.height, s.width)
}

// cosineSizes are those of signals of n entries: vectors, and square images.
func cosineSizes(n int) []size {
	sizes := []size{{1, n}}
	if side := int(math.Round(math.Sqrt(float64(n)))); side*side == n && side > 1 {
		sizes = append(sizes, size{side, side})
	}
	return sizes
}

// cosines is the basis of cosines of that size.
func cosines(s size) (operator.Operator, error) {
	across, err := operator.Cosines(s.width)
	if err != nil || s.height == 1 {
		return across, err
	}
	down, err := operator.Cosines(s.height)
	return operator.NewKronecker(down, across), err
}
