package amp

import (
	"math"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/lapack/lapack64"

	"github.com/calamp/calamp/internal/parallel"
	"github.com/calamp/calamp/operator"
)

// lmmse is the linear half of an iteration of vector AMP. For each signal it combines what
// is believed of x, N(r, 1/γ), with what is believed of z = W̃x, N(p, 1/(τw)), where the
// rows of W̃ have norm 1 and a weight w in [0, 1] says how much of a reading counts. With
//
//	B = γ(γ + τK)⁻¹,   K = W̃W̃ᵀ = QTQᵀ,   e = p - W̃r,
//
// and all weights 1, it is x = r + (τ/γ) W̃ᵀBe, z = p - Be. Where weights are less, at the
// rows m, noise (1/w - 1)/τ is added there, and by Woodbury's identity B is replaced by
//
//	B - BS(q + SᵀBS)⁻¹SᵀB,   q = w/(1-w),
//
// S being the columns m of the identity: as if the readings at m had been others,
// e - St. At w = 0 they are what the remaining ones predict.
type lmmse struct {
	gram   *operator.Gram
	rotate operator.Linear // Q; nil for the identity
	m, n   int
	p      int

	gamma, tau []float64 // P
	weight     []float64 // M×P
	turned     []float64 // P×M, Qᵀe, then (γ+τT)⁻¹Qᵀe
	pivots     []float64 // P×M, of γ+τT
	shift      []float64 // M×P, -t
	h          []float64 // M×P, Be

	// Of each signal. counted = Σw; left = Σw - F and free = N - F, where
	// F = tr τK(γ+τK)⁻¹ is what z determines of x; logDet = log det of B, over the rows
	// with a weight.
	counted, left, free, logDet []float64

	threads int
	signal  func(k int)
}

const (
	// counts is the least weight of a reading that is not left out, and one of whole or more is
	// taken for 1.
	counts = 1e-9
	whole  = 0.9
)

func newLMMSE(g *operator.Gram, n, p, threads int) (*lmmse, error) {
	m := len(g.Norms)
	l := &lmmse{gram: g, m: m, n: n, p: p, threads: threads}
	for _, v := range []*[]float64{&l.gamma, &l.tau, &l.counted, &l.left, &l.free, &l.logDet} {
		*v = make([]float64, p)
	}
	for _, v := range []*[]float64{&l.weight, &l.turned, &l.pivots, &l.shift, &l.h} {
		*v = make([]float64, m*p)
	}
	l.signal = l.solveSignal
	var err error
	if g.Rotation != nil {
		l.rotate, err = operator.NewLinear(g.Rotation, p, threads)
	}
	return l, err
}

// solve turns e (M×P) into e - St, and sets h to B times that.
func (l *lmmse) solve(e []float64) error {
	if err := l.turn(e); err != nil {
		return err
	}
	clear(l.shift)
	parallel.Run(l.p, l.threads, l.signal)
	for j, s := range l.shift {
		e[j] += s
	}
	return l.turnBack()
}

func (l *lmmse) turn(e []float64) error {
	if l.rotate != nil {
		return l.rotate.Backward(l.turned, e)
	}
	for j, v := range e {
		l.turned[j%l.p*l.m+j/l.p] = v
	}
	return nil
}

func (l *lmmse) turnBack() error {
	if l.rotate != nil {
		return l.rotate.Forward(l.h, l.turned)
	}
	for j := range l.h {
		l.h[j] = l.turned[j%l.p*l.m+j/l.p]
	}
	return nil
}

// solveSignal solves for the signal k.
func (l *lmmse) solveSignal(k int) {
	gamma, tau := l.gamma[k], l.tau[k]
	b := l.turned[k*l.m : (k+1)*l.m]
	pivots := l.pivots[k*l.m : (k+1)*l.m]
	l.factor(pivots, gamma, tau)
	l.traces(k)
	if rows := l.lightRows(k); len(rows) > 0 {
		l.lighten(k, rows, pivots, b)
	}
	l.divide(b, pivots, tau)
	for i := range b {
		b[i] *= gamma
	}
}

// traces of B where all weights are 1. Of more rows than columns, the least eigenvalues
// belong to no column.
func (l *lmmse) traces(k int) {
	gamma, tau, none := l.gamma[k], l.tau[k], max(0, l.m-l.n)
	trace := 0.0
	l.logDet[k] = 0
	for _, v := range l.gram.Eigenvalues[none:] {
		b := gamma / (gamma + tau*v)
		trace += b
		l.logDet[k] += math.Log(b)
	}
	l.counted[k] = float64(l.m)
	l.left[k], l.free[k] = trace+float64(none), trace+float64(max(0, l.n-l.m))
}

// factor sets the pivots of γ+τT = LDLᵀ. None is below γ but by rounding.
func (l *lmmse) factor(pivots []float64, gamma, tau float64) {
	t := l.gram
	for i, d := range t.Diagonal {
		pivot := gamma + tau*d
		if i > 0 {
			off := tau * t.Off[i-1]
			pivot -= off * (off / pivots[i-1])
		}
		pivots[i] = max(pivot, gamma)
	}
}

// divide replaces b by (γ+τT)⁻¹b.
func (l *lmmse) divide(b, pivots []float64, tau float64) {
	off := l.gram.Off
	for i := 1; i < len(b); i++ {
		b[i] -= tau * off[i-1] / pivots[i-1] * b[i-1]
	}
	for i := len(b) - 1; i >= 0; i-- {
		b[i] /= pivots[i]
		if i+1 < len(b) {
			b[i] -= tau * off[i] / pivots[i] * b[i+1]
		}
	}
}

// lightRows are those whose readings of signal k do not count as 1.
func (l *lmmse) lightRows(k int) (rows []int) {
	for mu := range l.m {
		if l.weight[mu*l.p+k] < whole {
			rows = append(rows, mu)
		}
	}
	return rows
}

// lighten gives some rows of signal k their weight: it finds t, subtracts it from the turned
// e in b, and corrects the traces. With C = (q + SᵀBS)⁻¹,
//
//	t = C SᵀBe,   Σw - F = tr B - tr C SᵀB²S + Σ (w - qC),   N - F the same with Σ (1 - qC).
func (l *lmmse) lighten(k int, rows []int, pivots, b []float64) {
	gamma, tau, count := l.gamma[k], l.tau[k], len(rows)
	s := blas64.General{Rows: count, Cols: l.m, Stride: l.m, Data: make([]float64, count*l.m)} // SᵀQ
	for a, mu := range rows {
		l.rotationRow(s.Data[a*l.m:(a+1)*l.m], mu)
	}
	solved := blas64.General{Rows: count, Cols: l.m, Stride: l.m, Data: append([]float64(nil), s.Data...)}
	for a := range rows {
		l.divide(solved.Data[a*l.m:(a+1)*l.m], pivots, tau)
	}
	square := func() blas64.General {
		return blas64.General{Rows: count, Cols: count, Stride: count, Data: make([]float64, count*count)}
	}
	core, second := square(), square()
	blas64.Gemm(blas.NoTrans, blas.Trans, gamma, s, solved, 0, core)
	blas64.Gemm(blas.NoTrans, blas.Trans, gamma*gamma, solved, solved, 0, second)
	t := make([]float64, count)
	blas64.Gemv(blas.NoTrans, gamma, solved, blas64.Vector{N: l.m, Inc: 1, Data: b}, 0, blas64.Vector{N: count, Inc: 1, Data: t})
	for a, mu := range rows {
		w := l.weight[mu*l.p+k]
		core.Data[a*count+a] += w / (1 - w)
	}
	factor, ok := lapack64.Potrf(blas64.Symmetric{N: count, Stride: count, Uplo: blas.Upper, Data: core.Data})
	if !ok {
		return // beyond double precision: the rows keep their weight
	}
	for a, mu := range rows {
		w := l.weight[mu*l.p+k]
		l.logDet[k] -= 2 * math.Log(core.Data[a*count+a])
		if w > counts {
			l.logDet[k] += math.Log(w / (1 - w))
		}
		l.counted[k] -= 1 - w
	}
	solution := blas64.General{Rows: count, Cols: 1, Stride: 1, Data: t}
	lapack64.Potrs(factor, solution)
	for a, mu := range rows {
		l.shift[mu*l.p+k] = -t[a]
	}
	blas64.Gemv(blas.Trans, -1, s, blas64.Vector{N: count, Inc: 1, Data: t}, 1, blas64.Vector{N: l.m, Inc: 1, Data: b})

	inverse, _ := lapack64.Potri(factor) // C, its upper half
	for a, mu := range rows {
		w := l.weight[mu*l.p+k]
		c := inverse.Data[a*count+a]
		trace := -c * second.Data[a*count+a]
		for o := a + 1; o < count; o++ {
			trace -= 2 * inverse.Data[a*count+o] * second.Data[a*count+o]
		}
		q := w / (1 - w)
		l.left[k] += trace + w - q*c
		l.free[k] += trace + 1 - q*c
	}
}

// rotationRow is row mu of Q.
func (l *lmmse) rotationRow(dst []float64, mu int) {
	if l.rotate == nil {
		dst[mu] = 1
		return
	}
	_ = l.gram.Rotation.RowInto(dst, mu) // in memory: it does not fail
}
