package baseline_test

import (
	"context"
	"math"
	"math/cmplx"
	"math/rand/v2"
	"testing"

	"github.com/calamp/calamp/internal/baseline"
)

// blindProblem is Y = WX/s for p signals with as many entries, of which all but four are zero where n exceeds eight, and amplitudes and
// phases of s within so much of 1 and 0.
func blindProblem(m, n, p int, complexOnes bool, spread float64) (w, y, x baseline.Parts, s []complex128) {
	r := rand.New(rand.NewPCG(3, 4))
	entry := func() complex128 {
		if complexOnes {
			return complex(r.NormFloat64(), r.NormFloat64())
		}
		return complex(r.NormFloat64(), 0)
	}
	w = baseline.NewParts(m, n, complexOnes).Apply(func(int, int, complex128) complex128 { return entry() })
	x = baseline.NewParts(n, p, complexOnes)
	for k := range p {
		for _, i := range r.Perm(n)[:min(n, 4)] {
			x.Set(i, k, entry())
		}
	}
	s = make([]complex128, m)
	for mu := range s {
		phase := 0.0
		if complexOnes {
			phase = spread * (2*r.Float64() - 1)
		}
		s[mu] = cmplx.Rect(1+spread*(2*r.Float64()-1), phase)
	}
	y = w.Mul(x)
	y.Apply(func(mu, _ int, v complex128) complex128 { return v / s[mu] })
	return w, y, x, s
}

// apart is the distance of s from the truth after the best factor, relative.
func apart(found, truth []complex128) float64 {
	var across, own, all, off float64
	var inner complex128
	for mu, v := range found {
		inner += cmplx.Conj(v) * truth[mu]
		own += real(v)*real(v) + imag(v)*imag(v)
	}
	for mu, v := range found {
		across = cmplx.Abs(inner/complex(own, 0)*v - truth[mu])
		off += across * across
		all += cmplx.Abs(truth[mu]) * cmplx.Abs(truth[mu])
	}
	return math.Sqrt(off / all)
}

// TestSpectral: without noise, sparse signals and gains near 1 come out, real and complex, with a reading missing; with more sensors
// than entries the truncation is not needed, and neither is a start near the truth.
func TestSpectral(t *testing.T) {
	for _, c := range []struct {
		name            string
		m, n, p, rounds int
		complex, absent bool
		spread, most    float64
	}{
		{"sparse, real", 40, 60, 10, 3000, false, false, 0.05, 1e-6},
		{"sparse, complex", 40, 60, 10, 3000, true, false, 0.1, 1e-6},
		{"a reading missing", 40, 60, 10, 3000, true, true, 0.1, 1e-6},
		{"least squares", 30, 4, 8, 20000, true, false, 0.9, 1e-6},
	} {
		w, y, x, s := blindProblem(c.m, c.n, c.p, c.complex, c.spread)
		if c.absent {
			y.Set(2, 1, complex(math.NaN(), math.NaN()))
		}
		got, found, err := baseline.Spectral(context.Background(), w, y, 4, c.rounds, nil)
		if err != nil {
			t.Fatal(err)
		}
		if off := apart(found, s); !(off <= c.most) {
			t.Errorf("%s: s is off by %.2g, expected at most %g", c.name, off, c.most)
		}
		factor := x.At(0, 0)
		for i := range c.n {
			if v := got.At(i, 0); v != 0 {
				factor = x.At(i, 0) / v
			}
		}
		got.Apply(func(_, _ int, v complex128) complex128 { return factor * v })
		if off := farthest(got, x); !(off <= 1e-4) {
			t.Errorf("%s: signals are off by %.2g", c.name, off)
		}
	}
}

// TestSpectralOfNothing: no readings, and a context that has ended, end it.
func TestSpectralOfNothing(t *testing.T) {
	w, y, _, _ := blindProblem(10, 12, 3, true, 0.1)
	silent := y.Clone().Apply(func(int, int, complex128) complex128 { return 0 })
	x, s, err := baseline.Spectral(context.Background(), w, silent, 4, 10, nil)
	if err != nil || x.At(0, 0) != 0 || s[0] != 1 {
		t.Errorf("no readings: x %v, s %v, %v", x.At(0, 0), s[0], err)
	}
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	if _, _, err := baseline.Spectral(ended, w, y, 4, 10, nil); err == nil {
		t.Error("expected the error of the context")
	}
}
