package amp

import (
	"context"
	"math"

	"gonum.org/v1/gonum/floats"

	"github.com/calamp/calamp/internal/dense"
	"github.com/calamp/calamp/internal/parallel"
	"github.com/calamp/calamp/operator"
)

// lmmse is the linear half of an iteration of vector AMP: what it is given, and what it finds. For
// each signal it combines the message on x, N(r, 1/γ), with that on z = W̃x,
// N(q, 1/(τw)), where the rows of W̃ have norm 1 and a weight w in [0, 1] says how much of a
// reading counts. Means and traces come from a decomposition ([decomposed]) or from
// products with W alone ([gradients]).
type lmmse struct {
	w       operator.Operator
	m, n, p int
	threads int

	norms    []float64       // M, of the rows of W
	products operator.Linear // with W, not W̃

	r, q       []float64 // P×N; M×P of W̃
	gamma, tau []float64 // P
	weight     []float64 // M×P

	change []float64 // P×N, the mean of x less r, in whose place it may be
	z      []float64 // M×P, the mean of W̃x
	h      []float64 // M×P, how far z is from its message; 0 where w is
	work   []float64 // M×P, what is needed for one solution alone
	missed []float64 // P, a bound on what a mean found step by step lacks in length
	moved  []float64 // P, what signals moved in the latest iteration, in standard deviations; 1 in the first

	// Of each signal, with e = q - W̃r, K = W̃W̃ᵀ and B = γ(γ+τK)⁻¹ over the rows with a weight:
	// quadratics = eᵀBe; counted = Σw; left = Σw - F and free = N - F, where
	// F = tr τK(γ+τK)⁻¹ is what z determines of x; logDet = log det of B.
	quadratics, counted, left, free, logDet []float64
}

// linearHalf finds it.
type linearHalf interface {
	common() *lmmse
	prepare(ctx context.Context) error // what is done once
	begin()                            // forgets what earlier solutions were
	solve() error
	singular() []float64  // the min(M, N) singular values of W̃
	uncertainty() float64 // of precisions, relative, where traces are estimates
}

func newLMMSE(w operator.Operator, p, threads int) *lmmse {
	l := &lmmse{w: w, p: p, threads: threads}
	l.m, l.n = w.Dims()
	for _, v := range []*[]float64{&l.gamma, &l.tau, &l.missed, &l.moved, &l.quadratics, &l.counted, &l.left, &l.free, &l.logDet} {
		*v = make([]float64, p)
	}
	l.makeReadings()
	l.r = make([]float64, l.n*p)
	l.change = l.r
	return l
}

// makeReadings makes what is of M×P.
func (l *lmmse) makeReadings() {
	for _, v := range []*[]float64{&l.q, &l.weight, &l.z, &l.h, &l.work} {
		*v = make([]float64, l.m*l.p)
	}
}

func (l *lmmse) common() *lmmse { return l }

// forward sets z to W̃x.
func (l *lmmse) forward(z, x []float64) error {
	if err := l.products.Forward(z, x); err != nil {
		return err
	}
	for j := range z {
		if norm := l.norms[j/l.p]; norm > 0 {
			z[j] /= norm
		}
	}
	return nil
}

// decomposed is the linear half with K = QTQᵀ. With all weights 1 it is
//
//	x = r + (τ/γ) W̃ᵀBe,   z = q - Be.
//
// Where weights are less, at the rows m, noise (1/w - 1)/τ is added there, and by Woodbury's
// identity B is replaced by
//
//	B - BS(v + SᵀBS)⁻¹SᵀB,   v = w/(1-w),
//
// S being the columns m of the identity: as if the readings at m had been others,
// e - St. At w = 0 they are what the remaining ones predict.
type decomposed struct {
	*lmmse
	gram   *operator.Gram
	rotate operator.Linear // Q

	e      []float64 // M×P, then h in the units of W
	turned []float64 // P×M, Qᵀe, then (γ+τT)⁻¹Qᵀe
	pivots []float64 // P×M, of γ+τT
	shift  []float64 // M×P, -t
	absent leftOut

	signal func(k int)
}

const (
	// counts is the least weight of a reading that is not left out, and one of whole or more is
	// taken for 1.
	counts = 1e-9
	whole  = 0.9
)

func newDecomposed(l *lmmse) *decomposed {
	d := &decomposed{lmmse: l, e: l.work}
	for _, v := range []*[]float64{&d.turned, &d.pivots, &d.shift} {
		*v = make([]float64, l.m*l.p)
	}
	d.signal = d.solveSignal
	return d
}

// prepare implements [linearHalf]: W is decomposed.
func (l *decomposed) prepare(ctx context.Context) (err error) {
	if l.absent.ctx = ctx; l.gram != nil {
		return nil
	}
	if l.gram, err = operator.GramOf(ctx, l.w, l.threads); err != nil {
		return err
	}
	l.norms = l.gram.Norms
	if l.products, err = operator.NewLinear(l.w, l.p, l.threads); err != nil {
		return err
	}
	return l.rotates()
}

// rotates prepares products with Q.
func (l *decomposed) rotates() (err error) {
	l.rotate, err = operator.NewLinear(l.gram.Rotation, l.p, l.threads)
	return err
}

func (l *decomposed) begin() { l.absent.forget() }

func (l *decomposed) uncertainty() float64 { return 0 }

// singular implements [linearHalf].
func (l *decomposed) singular() (values []float64) {
	for _, e := range l.gram.Eigenvalues[max(0, l.m-l.n):] {
		values = append(values, math.Sqrt(e))
	}
	return values
}

// solve implements [linearHalf].
func (l *decomposed) solve() error {
	if others, err := l.absent.others(l); err != nil {
		return err
	} else if others != nil {
		return others.solve()
	}
	if err := l.forward(l.z, l.r); err != nil {
		return err
	}
	for j, q := range l.q {
		l.e[j] = q - l.z[j]
	}
	if err := l.apply(); err != nil {
		return err
	}
	clear(l.quadratics)
	for j, h := range l.h {
		l.quadratics[j%l.p] += (l.e[j] - l.shift[j]) * h
		l.z[j] = l.z[j] + l.e[j] - h
		l.e[j] = 0
		if norm := l.norms[j/l.p]; norm > 0 {
			l.e[j] = h / norm
		}
	}
	return l.goBack(l.e)
}

// goBack sets the change of x: (τ/γ) W̃ᵀh, of h in the units of W.
func (l *lmmse) goBack(h []float64) error {
	if err := l.products.Backward(l.change, h); err != nil {
		return err
	}
	for i := range l.change {
		l.change[i] *= l.tau[i/l.n] / l.gamma[i/l.n]
	}
	return nil
}

// apply turns e (M×P) into e - St, and sets h to B times that.
func (l *decomposed) apply() error {
	if err := l.rotate.Backward(l.turned, l.e); err != nil {
		return err
	}
	clear(l.shift)
	parallel.Run(l.p, l.threads, l.signal)
	for j, s := range l.shift {
		l.e[j] += s
	}
	return l.rotate.Forward(l.h, l.turned)
}

// solveSignal solves for the signal k.
func (l *decomposed) solveSignal(k int) {
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
func (l *decomposed) traces(k int) {
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
func (l *decomposed) factor(pivots []float64, gamma, tau float64) {
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
func (l *decomposed) divide(b, pivots []float64, tau float64) {
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
func (l *decomposed) lightRows(k int) (rows []int) {
	for mu := range l.m {
		if l.weight[mu*l.p+k] < whole {
			rows = append(rows, mu)
		}
	}
	return rows
}

// lighten gives some rows of signal k their weight: it finds t, subtracts it from the turned
// e in b, and corrects the traces. With C = (v + SᵀBS)⁻¹,
//
//	t = C SᵀBe,   Σw - F = tr B - tr C SᵀB²S + Σ (w - vC),   N - F the same with Σ (1 - vC).
func (l *decomposed) lighten(k int, rows []int, pivots, b []float64) {
	gamma, tau, count := l.gamma[k], l.tau[k], len(rows)
	s, solved := dense.New(count, l.m), dense.New(count, l.m) // SᵀQ, and that times (γ+τT)⁻¹
	t, v, counting := make([]float64, count), make([]float64, count), false
	for a, mu := range rows {
		l.rotationRow(s.Row(a), mu)
		copy(solved.Row(a), s.Row(a))
		l.divide(solved.Row(a), pivots, tau)
		t[a] = gamma * floats.Dot(solved.Row(a), b)
		w := l.weight[mu*l.p+k]
		v[a], counting = w/(1-w), counting || w > counts
	}
	core := dense.New(count, count)
	dense.AddProduct(core, gamma, s, solved.T(), dense.Lower, 1)
	for a := range rows {
		core.Row(a)[a] += v[a]
	}
	if !dense.Factor(core, 1) {
		return // beyond double precision: the rows keep their weight
	}
	for a, mu := range rows {
		w := l.weight[mu*l.p+k]
		if w > counts {
			l.logDet[k] += math.Log(v[a])
		}
		l.counted[k] -= 1 - w
		l.left[k] += w
		l.free[k]++
	}
	l.logDet[k] -= dense.LogDet(core)
	dense.Solve(core, t)
	for a, mu := range rows {
		l.shift[mu*l.p+k] = -t[a]
		floats.AddScaled(b, -t[a], s.Row(a))
	}
	dense.SolveLower(core, solved, 1) // tr C SᵀB²S = γ² |L⁻¹SᵀQ(γ+τT)⁻¹|², with C⁻¹ = LLᵀ
	trace := gamma * gamma * floats.Dot(solved.Data, solved.Data)
	if counting {
		dense.InvertLower(core, 1)
		for a := range rows {
			for o, c := range core.Row(a)[:a+1] {
				trace += v[o] * c * c
			}
		}
	}
	l.left[k] -= trace
	l.free[k] -= trace
}

// rotationRow is row mu of Q.
func (l *decomposed) rotationRow(dst []float64, mu int) {
	_ = l.gram.Rotation.RowInto(dst, mu) // in memory: it does not fail
}
