package evidence

import (
	"math"
	"math/cmplx"
	"testing"
)

// decaying are real signals behind a complex W whose entries fall as one over their place.
func decaying(seed uint64, m, n, p int) (w, y [][]complex128, x [][]float64, s []complex128) {
	w, _, x, s = realProblem(seed, m, n, p, 1, 0, 0.1)
	_, y, _, _ = realProblem(seed+100, m, 1, p, 0, 1e-4, 0) // noise
	for mu := range y {
		for k := range y[mu] {
			y[mu][k] *= complex(cmplx.Abs(s[mu]), 0) / s[mu]
		}
	}
	for i := range x {
		for k := range x[i] {
			x[i][k] /= 1 + float64(i)
			for mu := range y {
				y[mu][k] += w[mu][i] * complex(x[i][k], 0) / s[mu]
			}
		}
	}
	return w, y, x, s
}

// ended takes steps until there is no further one.
func ended(t *testing.T, fit *Complex) *Complex {
	t.Helper()
	for done := false; !done; {
		var err error
		if done, err = fit.Step(); err != nil {
			t.Fatal(err)
		}
	}
	return fit
}

// squaredError is that of the signals, at the common scale of the gains, and the one that is stated.
func squaredError(f *Complex, x [][]float64, s []complex128) (is, stated float64) {
	by := 0.0
	for mu, v := range f.S {
		by += cmplx.Abs(s[mu]) / cmplx.Abs(v) / float64(len(s))
	}
	for k, snapshot := range f.Snapshots {
		for i, v := range snapshot.X {
			unit := by * f.Units.Of(i)
			d := unit*real(v) - x[i][k]
			is, stated = is+d*d, stated+0.5*unit*unit*snapshot.C[i]
		}
	}
	return is, stated
}

// TestScaled: where entries follow a law that is found, the evidence is larger, signals are nearer, and their errors are those stated. Entries of one size have none.
func TestScaled(t *testing.T) {
	const m, n, p = 50, 100, 6
	fit := func(w, y [][]complex128) *Complex {
		f := NewComplex(m, n, p, func(mu, i int) complex128 { return w[mu][i] }, func(mu, k int) complex128 { return y[mu][k] }, 0)
		f.Real, f.LearnKappa = true, true
		return ended(t, f)
	}
	var flat, scaled, stated float64
	for seed := range uint64(4) {
		w, y, x, s := decaying(seed, m, n, p)
		before := fit(w, y)
		after := before.Scaled()
		if after == nil {
			t.Fatal("no law")
		}
		ended(t, after)
		if gain := after.LogEvidence() - before.LogEvidence(); !(gain > 50) {
			t.Errorf("seed %d: the evidence is larger by %.1f only", seed, gain)
		}
		error, _ := squaredError(before, x, s)
		flat += error
		error, expected := squaredError(after, x, s)
		scaled, stated = scaled+error, stated+expected
	}
	if !(scaled < 0.75*flat) || math.Abs(math.Log(scaled/stated)) > math.Log(1.5) {
		t.Errorf("squared errors %.4g with one size for all, %.4g with the law, stated %.4g", flat, scaled, stated)
	}
	w, y, _, _ := realProblem(7, m, n, p, 0.2, 1e-4, 0.1)
	if one := fit(w, y); one.Scaled() != nil {
		if gain := ended(t, one.Scaled()).LogEvidence() - one.LogEvidence(); gain > 0 {
			t.Errorf("entries of one size: a law is likelier by %.1f", gain)
		}
	}
}
