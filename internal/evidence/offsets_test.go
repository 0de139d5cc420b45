package evidence

import (
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/mat"
)

// stacked are the covariance of the corrected readings of all snapshots together with offsets of variance v, and the rows of W and the snapshots of its rows.
func stacked(f *Fit, v float64) (a *mat.SymDense, rows, snapshots []int) {
	m, p := f.y.Dims()
	for k := range p {
		for row := range m {
			if !math.IsNaN(f.y.At(row, k)) {
				rows, snapshots = append(rows, row), append(snapshots, k)
			}
		}
	}
	a = mat.NewSymDense(len(rows), nil)
	for i := range rows {
		for j := range i + 1 {
			sum := 0.0
			if snapshots[i] == snapshots[j] {
				for n, gamma := range f.familyOf(snapshots[i]).Gamma {
					sum += f.w.At(rows[i], n) * gamma * f.w.At(rows[j], n)
				}
			}
			if f.sensorOf(rows[i]) == f.sensorOf(rows[j]) {
				sum += v
			}
			if i == j {
				sum += f.Noise
			}
			a.SetSym(i, j, sum)
		}
	}
	return a, rows, snapshots
}

// TestOffsetsIntegratedOut compares evidence, signals, offsets and what readings say of one another with those of the covariance of all readings together, of sensors of one row each and of three.
func TestOffsetsIntegratedOut(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	const m, n, p = 12, 9, 4
	w, y := mat.NewDense(m, n, nil), mat.NewDense(m, p, nil)
	for _, a := range []*mat.Dense{w, y} {
		a.Apply(func(_, _ int, _ float64) float64 { return rng.NormFloat64() }, a)
	}
	y.Set(2, 1, math.NaN())
	for _, f := range []*Fit{New(w, y, false), New(w, y, true), NewShared(w, y, 3)} {
		f.WithOffsets(0.4)
		f.begun, f.Spread, f.exact = true, 0.3, true
		for _, a := range f.Families {
			for i := range a.Gamma {
				a.Gamma[i] = 0.5 + rng.Float64()
			}
		}
		f.Noise = 0.2
		if err := f.Solve(); err != nil {
			t.Fatal(err)
		}
		f.SetFields()
		a, rows, snapshots := stacked(f, 0.16)
		var c mat.Cholesky
		if !c.Factorize(a) {
			t.Fatal("not positive definite")
		}
		r, g := mat.NewVecDense(len(rows), nil), mat.NewVecDense(len(rows), nil)
		for i, row := range rows {
			r.SetVec(i, f.S[f.sensorOf(row)]*y.At(row, snapshots[i]))
		}
		if err := c.SolveVecTo(g, r); err != nil {
			t.Fatal(err)
		}
		want := -0.5*mat.Dot(r, g) - 0.5*c.LogDet() + f.priorOfGains(f.S)
		for mu, count := range f.readings {
			want += count * math.Log(f.S[mu])
		}
		near := func(what string, got, want float64) {
			t.Helper()
			if !(math.Abs(got-want) <= 1e-10*(1+math.Abs(want))) {
				t.Errorf("%d sensors: %s is %.15g, expected %.15g", len(f.S), what, got, want)
			}
		}
		near("the evidence", f.Evidence, want)
		var inverse mat.SymDense
		if err := c.InverseTo(&inverse); err != nil {
			t.Fatal(err)
		}
		b := make([]float64, len(f.S))
		for i, row := range rows {
			near("G", f.G.At(row, snapshots[i]), g.AtVec(i))
			near("the diagonal of the inverse", f.Inverse.At(row, snapshots[i]), inverse.At(i, i))
			b[f.sensorOf(row)] += 0.16 * g.AtVec(i)
		}
		for mu := range b {
			near("b", f.Offsets.B[mu], b[mu])
		}
		for k := range p {
			for i, gamma := range f.familyOf(k).Gamma {
				with := mat.NewVecDense(len(rows), nil)
				for j, row := range rows {
					if snapshots[j] == k {
						with.SetVec(j, gamma*w.At(row, i))
					}
				}
				near("x", f.X.At(i, k), mat.Dot(with, g))
				near("the variance of x", f.C.At(i, k), gamma-mat.Inner(with, &inverse, with))
				own := 1/f.C.At(i, k) - 1/gamma
				near("Σ", f.Sigma.At(i, k), 1/own)
				near("λ", f.Lambda.At(i, k), f.X.At(i, k)/f.C.At(i, k)/own)
			}
		}
		// s is at its maximum, and its precision is that of the evidence
		for mu := range f.S {
			at := func(step float64) float64 {
				q := *f
				q.S = append([]float64(nil), f.S...)
				q.S[mu] += step
				return q.gainValue(q.S)
			}
			const h = 1e-5
			if slope := (at(h) - at(-h)) / (2 * h); math.Abs(slope) > 1e-6 {
				t.Errorf("%d sensors: the slope along s of sensor %d is %g", len(f.S), mu, slope)
			}
		}
	}
}

// TestVarianceOfOffsets tests that steps of v never lower the evidence, and where they end.
func TestVarianceOfOffsets(t *testing.T) {
	f, truth := offsetProblem(1, 60, 40, 12, 0.3)
	f.WithOffsets(0)
	f.begun, f.Spread = true, 0.2
	last := math.Inf(-1)
	for step := range 60 {
		if err := f.Solve(); err != nil {
			t.Fatal(err)
		}
		if f.Evidence < last-1e-7*math.Abs(last) {
			t.Fatalf("step %d: the evidence fell from %.12g to %.12g", step, last, f.Evidence)
		}
		last = f.Evidence
		f.Offsets.improve(1e-9)
	}
	if sd := f.Offsets.SD; sd < 0.2 || sd > 0.42 {
		t.Errorf("the standard deviation of offsets was learned as %g, it is 0.3", sd)
	}
	if err := f.SetOffsets(); err != nil {
		t.Fatal(err)
	}
	outside := 0
	for mu, b := range f.Offsets.B {
		if math.Abs(b-truth[mu]) > 1.96*math.Sqrt(f.Offsets.Var[mu]) {
			outside++
		}
	}
	if outside > 9 {
		t.Errorf("%d of 60 offsets are outside of their 95 %% intervals", outside)
	}
}

// TestOffsetsHaveUnits: readings in other units give offsets in these, down to the least one that is learned.
func TestOffsetsHaveUnits(t *testing.T) {
	learned := func(unit, sd float64) float64 {
		f, _ := offsetProblem(2, 40, 30, 8, sd)
		f.y.Scale(unit, f.y)
		g := newFit(f.w, f.y, f.each, false)
		g.WithOffsets(0)
		g.begun, g.Spread = true, 0.2
		for step := range 12 {
			if _, err := g.Step(step + 1); err != nil {
				t.Fatal(err)
			}
		}
		return g.Offsets.SD / unit
	}
	for _, sd := range []float64{0, 0.3} {
		if own, other := learned(1, sd), learned(1e9, sd); math.Abs(own-other) > 1e-6*own {
			t.Errorf("offsets of %g: learned as %g, in units of 1e-9 as %g", sd, own, other)
		}
	}
}

// offsetProblem is one of Gaussian signals, noise of variance 0.01, gains with a spread of 20 % and offsets b of a standard deviation.
func offsetProblem(seed uint64, m, n, p int, sd float64) (f *Fit, b []float64) {
	rng := rand.New(rand.NewPCG(seed, 2))
	w, y := mat.NewDense(m, n, nil), mat.NewDense(m, p, nil)
	w.Apply(func(_, _ int, _ float64) float64 { return rng.NormFloat64() / math.Sqrt(float64(n)) }, w)
	x := mat.NewDense(n, p, nil)
	x.Apply(func(_, _ int, _ float64) float64 { return rng.NormFloat64() }, x)
	y.Mul(w, x)
	for mu := range m {
		s := 0.8 + 0.4*rng.Float64()
		b = append(b, sd*rng.NormFloat64())
		for k := range p {
			y.Set(mu, k, (y.At(mu, k)+b[mu]+0.1*rng.NormFloat64())/s)
		}
	}
	return New(w, y, false), b
}
