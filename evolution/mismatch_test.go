package evolution

import (
	"context"
	"math"
	"testing"
	"time"

	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/prior"
)

// For a student with the true model the mismatched formulas give the Bayes-optimal
// results, and q = m and q̂ = m̂ = χ̂, although these are three different integrals.
func TestMismatchedMatched(t *testing.T) {
	for _, m := range []Model{
		paperModel(0.2, 0.6, 1e-8, 2),
		{Signal: prior.GaussBernoulli{Density: 0.4, SignalVar: 2, SignalMean: 0.5}, Gain: channel.Uniform(0.6, 1.5), NoiseVar: 1e-3, Alpha: 0.9, P: 1},
		{Signal: prior.GaussBernoulli{Density: 0.3, SignalVar: 1}, Gain: channel.TruncatedNormal(1, 0.1, 0.7, 1.4), NoiseVar: 1e-2, Alpha: 0.9, P: 4},
		Calibrated(prior.GaussBernoulli{Density: 0.3, SignalVar: 1}, 1e-4, 0.8),
	} {
		start := time.Now()
		n := 3
		switch {
		case *long:
			n = 12
		case testing.Short():
			n = 1
		}
		want, err := Offline(context.Background(), m, &Options{Iterations: n, Tol: 1e-11})
		if err != nil {
			t.Fatal(err)
		}
		got, err := OfflineMismatched(context.Background(), Matched(m), &Options{Iterations: n, Tol: 1e-9})
		if err != nil {
			t.Fatal(err)
		}
		worst := 0.0
		for i, o := range got {
			w := want.Steps[i]
			for k, pair := range [][2]float64{
				{o.MSEX.Value, w.MSEX.Value},
				{o.V.Value, w.MSEX.Value},
				{o.MSES.Value, w.MSES.Value},
				{o.QHat.Value, w.MHat.Value},
				{o.MHat.Value, w.MHat.Value},
				{o.ChiHat.Value, w.MHat.Value},
				{o.Q.Value, o.M.Value},
			} {
				if pair[1] == 0 && math.Abs(pair[0]) < 1e-28 { // known gains have no error
					continue
				}
				e := math.Abs(pair[0]/pair[1] - 1)
				worst = max(worst, e)
				if e > 1e-9 {
					t.Errorf("P=%d iteration %d, pair %d: %.12g against %.12g: %.1e", m.P, i+1, k, pair[0], pair[1], e)
				}
			}
		}
		t.Logf("P=%d: worst relative difference %.1e; %v an iteration", m.P, worst, time.Since(start)/time.Duration(n))
	}
}

// MSEXScaled agrees with its definition, and for a student with the true model the
// best common factor is one.
func TestMSEXScaled(t *testing.T) {
	m := Matched(paperModel(0.2, 0.6, 1e-4, 1))
	q0 := m.Teacher.Truth().SecondMoment()
	last := func() Overlaps {
		steps, err := OfflineMismatched(context.Background(), m, &Options{Iterations: 3, Tol: 1e-7})
		if err != nil {
			t.Fatal(err)
		}
		return steps[len(steps)-1]
	}
	if o := last(); math.Abs(o.MSEXScaled(q0).Value/o.MSEX.Value-1) > 1e-6 {
		t.Errorf("matched: %v, after the best factor %v", o.MSEX, o.MSEXScaled(q0))
	}
	m.Student.Signal.SignalVar = 4
	o := last()
	// From the definition, which cancels where errors are small.
	want := q0 - o.M.Value*o.M.Value/o.Q.Value
	if got := o.MSEXScaled(q0); math.Abs(got.Value/want-1) > 1e-9 || got.Value > o.MSEX.Value {
		t.Errorf("after the best factor %v, expected %g; before %v", got, want, o.MSEX)
	}
}
