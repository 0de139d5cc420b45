package operator

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/mat"

	"github.com/calamp/calamp/internal/cholesky"
)

// spectrumSteps is the number of Lanczos steps. It is meant to be enough for the
// largest singular value to be right to a percent, and to distinguish the smallest
// from one that is ten times as large.
const spectrumSteps = 60

// mostBasis bounds the memory for the vectors of these steps, in values (256 MiB), as long
// as there are leastSteps, which give the largest singular value to a few percent.
const (
	mostBasis  = 1 << 25
	leastSteps = 10
)

// Spectrum estimates the largest and the smallest non-zero singular value of w
// with its rows scaled to norm 1, which for independent entries are 1 ± √(M/N).
// It is Lanczos' method on WᵀW (Golub and Van Loan, "Matrix Computations",
// 10.1; every vector is orthogonalised against all earlier ones). Both estimates lie
// between the true values, so the condition number is at least largest/smallest. For an
// operator that does not know its squared entries, all rows are taken to have the mean
// norm. Of rows that are known to be orthogonal ([RowOrthogonal]) all singular values are 1,
// and nothing is computed.
//
// It returns an error when W cannot be read, or when the sizes of its rows differ by
// more than double precision can hold.
func Spectrum(w Operator, threads int) (largest, smallest float64, err error) {
	m, n := w.Dims()
	if _, ok := Orthogonal(w); ok {
		return 1, 1, nil
	}
	if matrices, _ := Separate(w); matrices != nil {
		return spectrumOf(matrices, threads)
	}
	inverse, err := inverseNorms(w, threads)
	if err != nil {
		return 0, 0, err
	}
	sweep, err := w.NewSweep(1, 0, threads)
	if err != nil {
		return 0, 0, err
	}
	v := make([]float64, n)
	// The start is in the range of Wᵀ: a part that W maps to zero would give the
	// singular value zero.
	rng := rand.New(rand.NewPCG(1, 0))
	start := make([]float64, m)
	for mu := range start {
		start[mu] = inverse[mu] * rng.NormFloat64()
	}
	err = sweep.Run(v, nil, make([]float64, n), nil, func(first int, z, _, g, _ []float64) {
		copy(g, start[first:first+len(z)])
	})
	if err != nil {
		return 0, 0, err
	}
	normal := func(first int, z, _, g, _ []float64) {
		for row := range z {
			g[row] = inverse[first+row] * inverse[first+row] * z[row]
		}
	}
	norm := math.Sqrt(sumSquares(v))
	var basis [][]float64
	var diagonal, off []float64
	for range min(max(leastSteps, min(spectrumSteps, mostBasis/n)), m, n) {
		if norm == 0 || len(off) > 0 && norm <= 1e-12*diagonal[0] {
			off = off[:len(off)-1] // the vectors so far span all that there is
			break
		}
		unit := make([]float64, n)
		for i, x := range v {
			unit[i] = x / norm
		}
		basis = append(basis, unit)
		if err := sweep.Run(v, nil, unit, nil, normal); err != nil {
			return 0, 0, err
		}
		diagonal = append(diagonal, cholesky.Dot(unit, v))
		for range 2 { // after doing it once, rounding errors would grow
			for _, b := range basis {
				along := cholesky.Dot(b, v)
				for i, x := range b {
					v[i] -= along * x
				}
			}
		}
		norm = math.Sqrt(sumSquares(v))
		off = append(off, norm)
	}
	count := len(diagonal)
	if count == 0 {
		return 0, 0, nil
	}
	t := mat.NewSymDense(count, nil)
	for i, d := range diagonal {
		t.SetSym(i, i, d)
		if i+1 < count {
			t.SetSym(i, i+1, off[i])
		}
	}
	var eigen mat.EigenSym
	if !eigen.Factorize(t, false) { // which happens with numbers that are not finite
		return 0, 0, errNoSpectrum
	}
	values := eigen.Values(nil)
	return math.Sqrt(max(0, values[count-1])), math.Sqrt(max(0, values[0])), nil
}

var errNoSpectrum = errors.New("the singular values of W are beyond double precision: its rows differ too much in size")

// inverseNorms are one over the norms of the rows, 0 for a row of zeros.
func inverseNorms(w Operator, threads int) ([]float64, error) {
	inverse, err := RowSquares(w, threads)
	for mu, square := range inverse {
		if square > 0 {
			inverse[mu] = 1 / math.Sqrt(square)
		} else {
			inverse[mu] = 0
		}
	}
	return inverse, err
}

// RowSquares are the squared norms of the rows: by a sweep, where the operator has its
// squared entries, and by one for all who ask where these are in memory. Otherwise all are the mean.
func RowSquares(w Operator, threads int) ([]float64, error) {
	m, n := w.Dims()
	norms := make([]float64, m)
	if kappa, ok := Orthogonal(w); ok {
		for mu := range norms {
			norms[mu] = kappa
		}
		return norms, nil
	}
	if matrices, of := Separate(w); matrices != nil {
		return meanRowSquares(matrices, of, threads)
	}
	if c, ok := w.(*Complex); ok {
		return c.rowSquares(threads)
	}
	if !HasSquares(w) {
		for mu := range norms {
			norms[mu] = w.MeanSquare() * float64(n)
		}
		return norms, nil
	}
	r, ok := w.(remembering)
	if !ok {
		return rowSquares(w, threads)
	}
	kept := r.remembered()
	kept.squaring.Do(func() { kept.squares, kept.unsquared = rowSquares(w, threads) })
	return slices.Clone(kept.squares), kept.unsquared
}

// rowSquares is [RowSquares] by a sweep.
func rowSquares(w Operator, threads int) ([]float64, error) {
	m, n := w.Dims()
	norms := make([]float64, m)
	sweep, err := w.NewSweep(1, 1, threads)
	if err != nil {
		return nil, err
	}
	ones, r, h := ones(n), make([]float64, n), make([]float64, n)
	err = sweep.Run(r, h, ones, ones, func(first int, _, v, g, d []float64) {
		copy(norms[first:], v)
		clear(g)
		clear(d)
	})
	return norms, err
}

// MeansOf are the row and column means of any operator: a table's own, and those of
// another by a sweep.
func MeansOf(w Operator, threads int) (Means, error) {
	if table, ok := w.(Matrix); ok {
		return table.Means(), nil
	}
	m, n := w.Dims()
	if matrices, _ := Separate(w); matrices != nil {
		return worst(matrices, func(w Operator) (Means, error) { return MeansOf(w, threads) }, Means.larger)
	}
	means := Means{Rows: make([]float64, m), Columns: make([]float64, n)}
	sweep, err := w.NewSweep(1, 0, threads)
	if err != nil {
		return means, err
	}
	err = sweep.Run(means.Columns, nil, ones(n), nil, func(first int, z, _, g, _ []float64) {
		for row, sum := range z {
			means.Rows[first+row], g[row] = sum/float64(n), 1/float64(m)
		}
	})
	return means, err
}

func ones(n int) []float64 {
	v := make([]float64, n)
	for i := range v {
		v[i] = 1
	}
	return v
}
