package operator

import (
	"math"
	"math/rand/v2"
	"slices"
)

// Structure says how far a matrix is from one of independent entries, in the respects that
// matter to message passing. Rows are scaled to norm 1 first: W̃.
type Structure struct {
	// Spread is the mean square of the eigenvalues of W̃W̃ᵀ (their mean is 1), relative to
	// 1 + (M-1)/N, that of independent entries (Marchenko and Pastur): less for
	// rows that are nearly orthogonal, more where W is ill-conditioned or correlated.
	Spread float64

	// Filled is the participation ratio of the rows, (Σw²)²/(N Σw⁴): a third for Gaussian
	// entries, 1 for signs, next to nothing for a sparse W.
	Filled float64

	// Uneven is the variance of the squared norms of the columns of W̃, relative to
	// what it would be if its right singular vectors were random.
	Uneven float64

	// RepeatedRows and RepeatedColumns count those that are multiples of another one.
	RepeatedRows, RepeatedColumns int
}

const (
	// probesFor rows is enough probes for Spread to be right to 3 %: its relative error is
	// 2.8/√(rows times probes).
	probesFor   = 8000
	leastProbes = 8
	mostProbes  = 64

	// sampledRows are enough for a participation ratio.
	sampledRows = 64
	mostSampled = 1 << 24 // numbers that they may take

	// projections are what repeated rows and columns are found by.
	projections = 3

	// sameProjection is the relative difference below which two random projections are those of
	// the same vector.
	sameProjection = 1e-12
)

// StructureOf measures w, in the time of some tens of products with it. It returns an error
// when W cannot be read, or its rows differ by more than double precision can hold. It depends
// on nothing but the entries, and is measured once where these are in memory, as those of a [Dense] are.
func StructureOf(w Operator, threads int) (Structure, error) {
	if matrices, _ := Separate(w); matrices != nil {
		return worst(matrices, func(w Operator) (Structure, error) { return StructureOf(w, threads) }, Structure.further)
	}
	r, ok := w.(remembering)
	if !ok {
		return structureOf(w, threads)
	}
	m := r.remembered()
	m.measuring.Do(func() { m.structure, m.unmeasured = structureOf(w, threads) })
	return m.structure, m.unmeasured
}

func structureOf(w Operator, threads int) (s Structure, err error) {
	m, n := w.Dims()
	inverse, err := inverseNorms(w, threads)
	if err != nil {
		return s, err
	}
	p := min(max(probesFor/m, leastProbes), mostProbes)
	halves, err := NewLinear(w, p, threads)
	if err != nil {
		return s, err
	}
	rng := rand.New(rand.NewPCG(16, 0))
	signs, x, z := make([]float64, m*p), make([]float64, p*n), make([]float64, m*p)
	for j := range signs {
		v := float64(1 - 2*rng.IntN(2))
		if j%p < projections { // what a few signs add up to repeats by chance
			v = rng.NormFloat64()
		}
		signs[j] = v * inverse[j/p]
	}
	if err := halves.Backward(x, signs); err != nil { // W̃ᵀv
		return s, err
	}
	if err := halves.Forward(z, x); err != nil { // WW̃ᵀv
		return s, err
	}
	square, rows := 0.0, 0
	for mu, scale := range inverse {
		for _, v := range z[mu*p : (mu+1)*p] {
			square += scale * v * (scale * v)
		}
		if scale > 0 {
			rows++
		}
	}
	count := float64(max(1, rows))
	second := square / (count * float64(p)) // Σ K²/M
	s.Spread = second / (1 + (count-1)/float64(n))
	if math.IsNaN(s.Spread - s.Spread) {
		return s, errNoSpectrum
	}
	if s.Filled, err = filled(w, threads); err != nil {
		return s, err
	}
	s.RepeatedColumns = repeated(x, n, p)
	s.RepeatedRows = repeated(bySignal(z, p), m, p)
	s.Uneven = uneven(x, n, p, second/count)
	return s, nil
}

// further reports whether a matrix is further from one of independent entries than another.
func (s Structure) further(than Structure) bool {
	return math.Abs(math.Log(s.Spread)) > math.Abs(math.Log(than.Spread))
}

// uneven estimates the squared norms of columns from their projections x on p random signs,
// and compares their variance with that of a random rotation, 2/M times the mean square
// eigenvalue, plus the estimate's own.
func uneven(x []float64, n, p int, expected float64) float64 {
	norms, mean := make([]float64, n), 0.0
	for k := range p {
		for i, v := range x[k*n : (k+1)*n] {
			norms[i] += v * v / float64(p)
		}
	}
	for _, v := range norms {
		mean += v / float64(n)
	}
	total := 0.0
	for _, v := range norms {
		total += (v/mean - 1) * (v/mean - 1) / float64(n)
	}
	return total / (2*expected + 2/float64(p))
}

func bySignal(z []float64, p int) []float64 {
	m := len(z) / p
	out := make([]float64, len(z))
	for j, v := range z {
		out[j%p*m+j/p] = v
	}
	return out
}

// repeated counts how many of n vectors are multiples of another, as seen in the ratios of
// three of their projections (p×n).
func repeated(x []float64, n, p int) int {
	type ratio struct{ first, second float64 }
	var all []ratio
	for i := range n {
		if x[i] != 0 {
			all = append(all, ratio{x[n+i] / x[i], x[2*n+i] / x[i]})
		}
	}
	slices.SortFunc(all, func(a, b ratio) int {
		if a.first < b.first {
			return -1
		}
		return 1
	})
	same := func(a, b float64) bool { return math.Abs(a-b) <= sameProjection*(math.Abs(a)+1) }
	count := 0
	for i := 1; i < len(all); i++ {
		if same(all[i].first, all[i-1].first) && same(all[i].second, all[i-1].second) {
			count++
		}
	}
	return count
}

// filled is the median participation ratio of some rows.
func filled(w Operator, threads int) (float64, error) {
	m, n := w.Dims()
	count := min(m, sampledRows, max(leastProbes, mostSampled/(m+n)))
	rows := make([]float64, count*n)
	halves, err := NewLinear(w, count, threads)
	if err != nil {
		return 0, err
	}
	if err := rowsOf(w, halves, rows, func(j int) int { return j * m / count }); err != nil {
		return 0, err
	}
	ratios := make([]float64, count)
	for j := range count {
		largest, square, fourth := 0.0, 0.0, 0.0
		row := rows[j*n : (j+1)*n]
		for _, v := range row {
			largest = max(largest, math.Abs(v))
		}
		for _, v := range row {
			v /= max(largest, math.SmallestNonzeroFloat64)
			square += v * v
			fourth += v * v * (v * v)
		}
		ratios[j] = square * square / max(fourth, math.SmallestNonzeroFloat64) / float64(n)
	}
	slices.Sort(ratios)
	return ratios[count/2], nil
}
