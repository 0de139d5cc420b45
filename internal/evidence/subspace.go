package evidence

import (
	"cmp"
	"math"
	"math/cmplx"
	"slices"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/cblas128"
	"gonum.org/v1/gonum/mat"
)

const (
	// leastGap is the ratio of two neighbouring eigenvalues of the covariance of the readings from which on those above it are of signals with few entries in common, and the others noise. Of independent
	// signals neighbours differ by less than 2.
	leastGap = 5

	// mostSubspaces is how many multiplications the products of all pairs of subspaces may take, some seconds on a core.
	mostSubspaces = 2e9
)

// SubspaceStarts are gains s to begin at where K entries that are there in all snapshots make most of the readings, the most promising first: readings y = (W x)/s are then all in one subspace U of K dimensions,
// of which each such entry i has w_i/s. So w_i∘w_j/s is both in the range of w_j∘U and in that of w_i∘U. Two entries that are there have subspaces that meet in one direction, from which s follows; there are no
// local maxima, and nothing has to be known of the phases. K is where the eigenvalues of the readings' covariance fall most; nil is returned where there is no such place up to M/2, from where on subspaces of
// all pairs meet, or where readings are missing or sensors have several rows.
func (f *Complex) SubspaceStarts(most int) (starts [][]complex128) {
	if f.readers != nil || !f.complete() {
		return nil
	}
	u := f.signalSubspace()
	if len(u) == 0 || float64(f.n)*float64(f.n)*float64(f.m*len(u)*len(u)) > mostSubspaces {
		return nil
	}
	ranges := make([]cblas128.General, f.n)
	for i := range ranges {
		ranges[i] = f.rangeOf(i, u)
	}
	type pair struct {
		i, j  int
		score float64
	}
	var pairs []pair
	k := len(u)
	between := newComplexMatrix(k, k)
	for i := range f.n {
		for j := range i {
			cblas128.Gemm(blas.ConjTrans, blas.NoTrans, 1, ranges[j], ranges[i], 0, between)
			if sines, _ := singular(between, false); sines[0] > 0 {
				next := 1.0
				if k > 1 {
					next = sines[1]
				}
				pairs = append(pairs, pair{i, j, next / sines[0]})
			}
		}
	}
	slices.SortStableFunc(pairs, func(a, b pair) int { return cmp.Compare(b.score, a.score) })
	for _, p := range pairs[:min(most, len(pairs))] {
		cblas128.Gemm(blas.ConjTrans, blas.NoTrans, 1, ranges[p.j], ranges[p.i], 0, between)
		_, right := singular(between, true)
		s := make([]complex128, f.m)
		for mu := range s {
			for l, c := range right {
				s[mu] += ranges[p.i].Data[mu*k+l] * c
			}
			s[mu] = f.w.at(mu, p.i) * f.w.at(mu, p.j) / s[mu]
		}
		if spreadOf(s) <= mostSpread { // such as gains have
			starts = append(starts, s)
		}
	}
	return starts
}

// spreadOf is the standard deviation of |s| relative to its mean.
func spreadOf(s []complex128) float64 {
	sum, squares := 0.0, 0.0
	for _, v := range s {
		sum, squares = sum+cmplx.Abs(v), squares+square(v)
	}
	return math.Sqrt(max(0, squares*float64(len(s))/(sum*sum)-1))
}

func newComplexMatrix(rows, columns int) cblas128.General {
	return cblas128.General{Rows: rows, Cols: columns, Stride: columns, Data: make([]complex128, rows*columns)}
}

// embedding is a Hermitian matrix as a real one of twice the size, which has each eigenvalue twice.
func embedding(a cblas128.General) *mat.SymDense {
	n := a.Rows
	out := mat.NewSymDense(2*n, nil)
	for i := range n {
		for j := range n {
			v := a.Data[i*n+j]
			if i <= j {
				out.SetSym(i, j, real(v))
				out.SetSym(n+i, n+j, real(v))
			}
			out.SetSym(i, n+j, -imag(v))
		}
	}
	return out
}

// signalSubspace is an orthonormal basis of the subspace of the readings, as K vectors of M.
func (f *Complex) signalSubspace() (basis [][]complex128) {
	vectors, values, ok := f.covarianceOfReadings()
	if !ok {
		return nil
	}
	largest, k := float64(leastGap), 0
	for j := 1; 2*j <= f.m && 2*j <= len(f.y); j++ {
		if ratio := values[j-1] / max(values[j], 1e-14*values[0]); ratio > largest {
			largest, k = ratio, j
		}
	}
	return vectors[:k]
}

// covarianceOfReadings has M eigenvectors and eigenvalues of YYᴴ, the largest first.
func (f *Complex) covarianceOfReadings() (basis [][]complex128, values []float64, ok bool) {
	covariance := newComplexMatrix(f.m, f.m)
	for _, y := range f.y {
		cblas128.Gerc(1, cblas128.Vector{N: f.m, Inc: 1, Data: y}, cblas128.Vector{N: f.m, Inc: 1, Data: y}, covariance)
	}
	var eigen mat.EigenSym
	if !eigen.Factorize(embedding(covariance), true) {
		return nil, nil, false
	}
	twice := eigen.Values(nil) // ascending
	for k := range f.m {
		values = append(values, max(0, twice[2*(f.m-1-k)]))
	}
	var vectors mat.Dense
	eigen.VectorsTo(&vectors)
	for column := 2*f.m - 1; column >= 0 && len(basis) < f.m; column-- { // of the two of an eigenvalue one is i times the other, or a mixture
		v := make([]complex128, f.m)
		for mu := range v {
			v[mu] = complex(vectors.At(mu, column), vectors.At(f.m+mu, column))
		}
		if orthonormalise(v, basis) {
			basis = append(basis, v)
		}
	}
	return basis, values, len(basis) == f.m
}

// orthonormalise takes from v what it has of orthonormal vectors, and reports whether half of it is left.
func orthonormalise(v []complex128, basis [][]complex128) bool {
	a := cblas128.Vector{N: len(v), Inc: 1, Data: v}
	before := cblas128.Nrm2(a)
	for range 2 {
		for _, b := range basis {
			of := cblas128.Vector{N: len(v), Inc: 1, Data: b}
			cblas128.Axpy(-cblas128.Dotc(of, a), of, a)
		}
	}
	after := cblas128.Nrm2(a)
	if !(after > 1e-3*before) {
		return false
	}
	cblas128.Dscal(1/after, a)
	return true
}

// rangeOf is an orthonormal basis (M×K) of the range of w_i∘U.
func (f *Complex) rangeOf(i int, u [][]complex128) cblas128.General {
	out, basis := newComplexMatrix(f.m, len(u)), [][]complex128(nil)
	for k, column := range u {
		v := make([]complex128, f.m)
		for mu, c := range column {
			v[mu] = f.w.at(mu, i) * c
		}
		if orthonormalise(v, basis) {
			basis = append(basis, v)
			for mu, c := range v {
				out.Data[mu*len(u)+k] = c
			}
		}
	}
	return out
}

// singular are the squared sines of the angles between two subspaces with the products b of their bases, the smallest first, and where it is asked for the direction of the second at the first angle.
func singular(b cblas128.General, direction bool) (sines []float64, right []complex128) {
	k := b.Rows
	square := newComplexMatrix(k, k)
	cblas128.Gemm(blas.ConjTrans, blas.NoTrans, 1, b, b, 0, square)
	var eigen mat.EigenSym
	if !eigen.Factorize(embedding(square), direction) {
		return make([]float64, k), nil
	}
	values := eigen.Values(nil)
	for j := range k {
		sines = append(sines, max(1-values[2*(k-1-j)], 1e-14))
	}
	if direction {
		var vectors mat.Dense
		eigen.VectorsTo(&vectors)
		for j := range k {
			right = append(right, complex(vectors.At(j, 2*k-1), vectors.At(k+j, 2*k-1)))
		}
	}
	return sines, right
}
