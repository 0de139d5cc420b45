package evidence

import (
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/mat"
)

// at is the logarithm of the likelihood of readings at s, less what was known of s before.
func (g ofGain) at(s float64, before ofGain) float64 {
	return g.n*math.Log(s) - 0.5*((g.a-before.a)*s*s-2*(g.b-before.b)*s+g.c-before.c) + g.log - before.log
}

// TestForeseen compares what other sensors predict of the readings of one with the conditional density of all readings together, of sensors of one row each and of three; and with a fit that has not read it.
func TestForeseen(t *testing.T) {
	const m, n, p, left = 12, 9, 3, 2
	for _, each := range []int{1, 3} {
		rng := rand.New(rand.NewPCG(3, 4))
		w, y := mat.NewDense(m, n, nil), mat.NewDense(m, p, nil)
		for _, a := range []*mat.Dense{w, y} {
			a.Apply(func(_, _ int, _ float64) float64 { return rng.NormFloat64() }, a)
		}
		y.Set(7, 1, math.NaN())
		begun := func(y *mat.Dense) *Fit {
			f := NewShared(w, y, each)
			f.Alone, f.Smooth = nil, nil
			f.begun, f.Spread, f.Noise = true, 0.3, 0.2
			for i := range f.shared() {
				f.shared()[i] = 0.5 + float64(i)/n
			}
			return f
		}
		f, ones := begun(y), []float64{1, 1, 1}
		if err := f.Solve(); err != nil {
			t.Fatal(err)
		}
		a, rows, snapshots := stacked(f, 0)
		var own, others []int
		r := make([]float64, len(rows))
		for i, row := range rows {
			if r[i] = f.S[f.sensorOf(row)] * f.y.At(row, snapshots[i]); f.sensorOf(row) == left {
				own = append(own, i)
			} else {
				others = append(others, i)
			}
		}
		want := logNormal(a, append(append([]int{}, own...), others...), r) - logNormal(a, others, r) + float64(len(own))*math.Log(f.S[left])
		likelihoods, _ := f.foreseen(ones)
		if got := likelihoods[left].at(f.S[left], f.beforeRead()); math.Abs(got-want) > 1e-9 {
			t.Errorf("%d rows each: the likelihood is %.12g, expected %.12g", each, got, want)
		}
		without := mat.DenseCopyOf(y)
		read := append([]float64(nil), f.rowsOf(without, left)...)
		for j := range read {
			f.rowsOf(without, left)[j] = math.NaN()
		}
		g := begun(without)
		g.held = true
		copy(g.S, f.S)
		if err := g.Solve(); err != nil {
			t.Fatal(err)
		}
		unread := g.unread(left, read, make([]float64, len(g.S)), ones).at(f.S[left], g.beforeRead())
		if math.Abs(unread-want) > 1e-9 {
			t.Errorf("%d rows each: the likelihood of what is not read is %.12g, expected %.12g", each, unread, want)
		}
	}
}

// logNormal is the logarithm of the density of some numbers of covariance a.
func logNormal(a *mat.SymDense, which []int, r []float64) float64 {
	own, v := mat.NewSymDense(len(which), nil), mat.NewVecDense(len(which), nil)
	for i, k := range which {
		v.SetVec(i, r[k])
		for j := range i + 1 {
			own.SetSym(i, j, a.At(k, which[j]))
		}
	}
	var c mat.Cholesky
	c.Factorize(own)
	var solved mat.VecDense
	if err := c.SolveVecTo(&solved, v); err != nil {
		panic(err)
	}
	return -0.5*(mat.Dot(v, &solved)+c.LogDet()) - 0.5*float64(len(which))*math.Log(2*math.Pi)
}
