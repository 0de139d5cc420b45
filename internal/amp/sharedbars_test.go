package amp

import (
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/operator"
	"github.com/calamp/calamp/prior"
	"github.com/calamp/calamp/solver"
)

// The joint error bars are those of the inverse of the whole matrix of second derivatives, in gains and signals together, where all entries are followed.
func TestSharedBarsAreTheInverseOfTheWholeHessian(t *testing.T) {
	const sensors, each, n, p, noise = 4, 6, 7, 2, 1e-2
	rng := rand.New(rand.NewPCG(1, 41))
	m := sensors * each
	w := make([]float64, m*n)
	for i := range w {
		w[i] = 1 + 0.5*rng.NormFloat64()
	}
	y := make([]float64, m*p)
	for j := range y {
		y[j] = 3 + rng.NormFloat64()
	}
	y[5] = math.NaN()
	for _, opaqueW := range []bool{false, true} {
		d, err := operator.NewDense(m, n, w)
		if err != nil {
			t.Fatal(err)
		}
		var op operator.Operator = d
		if opaqueW {
			op = opaque{d}
		}
		s, plan, _, err := NewSolver(Problem{
			W: op, P: p, Y: append([]float64(nil), y...), Shared: Shared{Rows: each, Given: op},
			Model: Model{Prior: prior.GaussBernoulli{Density: 0.5, SignalVar: 1}, Channel: channel.Gain{Prior: channel.Uniform(0.5, 1.5), NoiseVar: noise}},
		}, solver.Settings{Algorithm: solver.AMP, Variance: solver.Scalar})
		if err != nil {
			t.Fatal(err)
		}
		if !plan.Has("joint error bars") {
			t.Fatal("joint error bars are not in the plan")
		}
		e := s.State
		for j := range e.X {
			e.X[j], e.C[j] = rng.NormFloat64(), 0.01*rng.Float64()
		}
		for mu := range e.S {
			e.S[mu] = 0.8 + 0.1*float64(mu)
		}
		s.Iterations = 100
		want := wholeHessian(e, w, noise)
		j := newJointBars(s)
		for k := range p {
			if !j.add(k) {
				t.Fatal("a signal could not be added")
			}
		}
		if !j.invert() {
			t.Fatal("not positive definite")
		}
		for mu := range sensors {
			if got := j.gains.At(mu, mu); math.Abs(got/want[mu]-1) > 1e-9 {
				t.Errorf("opaque %v: gain %d has the variance %.9g, want %.9g", opaqueW, mu, got, want[mu])
			}
		}
		before := append([]float64(nil), e.C...)
		j.widenSignals()
		for i, c := range e.C {
			if c < before[i] || c < want[sensors+i]*(1-1e-9) || c > max(before[i], want[sensors+i])*(1+1e-9) {
				t.Errorf("opaque %v: entry %d had the variance %.9g, has %.9g, want %.9g", opaqueW, i, before[i], c, want[sensors+i])
			}
		}
	}
}

// wholeHessian are the variances of gains, and of entries signal by signal, with the part of the common scale of gains taken out.
func wholeHessian(e *State, w []float64, noise float64) []float64 {
	size := e.M + e.P*e.N
	h := mat.NewDense(size, size, nil)
	add := func(i, j int, v float64) { h.Set(i, j, h.At(i, j)+v) }
	for mu := range e.M {
		add(mu, mu, 12) // that of a uniform density of width 1
	}
	for i := range e.X {
		add(e.M+i, e.M+i, 1/(e.X[i]*e.X[i]+e.C[i]))
	}
	for r, y := range e.Y {
		if math.IsNaN(y) {
			continue
		}
		mu, row, k := e.SensorOf(r), r/e.P, r%e.P
		add(mu, mu, 1/(e.S[mu]*e.S[mu]))
		at := map[int]float64{mu: y}
		for i := range e.N {
			at[e.M+k*e.N+i] = -w[row*e.N+i]
		}
		for i, a := range at {
			for j, b := range at {
				add(i, j, a*b/noise)
			}
		}
	}
	var c mat.Dense
	if err := c.Inverse(h); err != nil {
		panic(err)
	}
	// errors of s less s times the weighted mean of relative ones; those of signals follow s as x = x(s) + moves·(s error)
	p := mat.NewDense(size, size, nil)
	total := 0.0
	for mu, s := range e.S {
		total += s * s / c.At(mu, mu)
	}
	for mu := range e.M {
		for nu, s := range e.S {
			p.Set(mu, nu, -e.S[mu]*(s*s/c.At(nu, nu)/total)/s)
		}
		p.Set(mu, mu, p.At(mu, mu)+1)
	}
	hxx := mat.DenseCopyOf(h.Slice(e.M, size, e.M, size))
	hxs := mat.DenseCopyOf(h.Slice(e.M, size, 0, e.M))
	var alone, moves, css, own mat.Dense
	if err := alone.Inverse(hxx); err != nil {
		panic(err)
	}
	moves.Mul(&alone, hxs)
	ps := p.Slice(0, e.M, 0, e.M)
	css.Product(ps, c.Slice(0, e.M, 0, e.M), ps.T())
	own.Product(&moves, &css, moves.T())
	v := make([]float64, size)
	for mu := range e.M {
		v[mu] = css.At(mu, mu)
	}
	for i := range e.X {
		v[e.M+i] = alone.At(i, i) + own.At(i, i)
	}
	return v
}
