package evolution

import (
	"context"
	"math"
	"testing"
	"time"

	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/internal/tables"
	"github.com/calamp/calamp/internal/tests"
	"github.com/calamp/calamp/prior"
)

// Values of an independent Monte Carlo, good to 5 %.
func TestOnlineReference(t *testing.T) {
	tests.Long(t)
	x := []float64{1.85e-5, 2.7e-6, 4.3e-7, 8.4e-8, 2.6e-8, 1.39e-8, 9.98e-9, 8.35e-9, 7.45e-9, 6.95e-9}
	s := []float64{2.6e-4, 5.3e-5, 8.8e-6, 1.6e-6, 4.1e-7, 1.5e-7, 7.3e-8, 4.5e-8, 3.1e-8, 2.4e-8}
	start := time.Now()
	opt, n := &OnlineOptions{Members: 64, Replicates: 3}, 3
	switch {
	case *long:
		opt, n = nil, len(x)
	case testing.Short():
		n = 2
	}
	got, err := Online(context.Background(), paperModel(0.2, 0.6, 1e-8, n), opt)
	if err != nil {
		t.Fatal(err)
	}
	for k, g := range got {
		last := g.Last()
		ex, es := last.MSEX.Value/x[k]-1, last.MSES.Value/s[k]-1
		if math.Abs(ex) > 0.05 || math.Abs(es) > 0.05 || !g.Converged {
			t.Errorf("sample %d: converged %v, off by %.3f, %.3f", k+1, g.Converged, ex, es)
		}
		t.Logf("sample %d: mse_x %v (%+.3f), mse_s %v (%+.3f), %d iterations, %v", k+1, last.MSEX, ex, last.MSES, es, len(g.Steps), time.Since(start))
	}
}

// The first sample is offline with P = 1, and with the gains known the stream is
// compressed sensing again and again.
func TestOnlineLimits(t *testing.T) {
	tests.Long(t)
	m := paperModel(0.2, 0.6, 1e-6, 1)
	on, err := Online(context.Background(), m, &OnlineOptions{Tol: 1e-9})
	if err != nil {
		t.Fatal(err)
	}
	off, err := FixedPoint(context.Background(), m, nil)
	if err != nil {
		t.Fatal(err)
	}
	if e := math.Abs(on[0].Last().MSEX.Value/off.MSEX.Value - 1); e > 1e-7 {
		t.Errorf("sample 1: %v, offline %v", on[0].Last().MSEX, off.MSEX)
	}
	m.P = 30
	m.Gain = Known(1)
	on, err = Online(context.Background(), m, nil)
	if err != nil {
		t.Fatal(err)
	}
	if a, b := on[0].Last().MSEX.Value, on[29].Last().MSEX.Value; a != b {
		t.Errorf("known gains: %g, then %g", a, b)
	}
}

// The tabulated averages agree with another quadrature: when both samples of a
// stream have the same information, those of sample 2 are the offline averages for
// P = 2.
func TestOnlineAveragesAgainstOffline(t *testing.T) {
	const delta = 1e-3
	m := paperModel(0.2, 0.6, 0, 1)
	e, err := newEvolution(m, nil)
	if err != nil {
		t.Fatal(err)
	}
	o := &online{evolution: e, OnlineOptions: (&OnlineOptions{Members: 4096}).withDefaults(), stream: []*population{newPopulation(4096, 1, 0)}}
	info := (1 - delta) / delta
	o.stream[0].absorb(info)
	o.NoiseVar = delta * o.q0 // keeps the table small
	law := o.law(2)
	shrink, mseS := law.average(o.stream[0], info, nil)
	want, _ := matchedAverages(2, m.Gain, delta, 1e-10, nil)
	t.Logf("interpolation misses by %.1e; δχ̂ %.8f, offline %.8f; mse_s %.8g, offline %.8g", law.miss, shrink, delta*want.chiHat.Value, mseS, want.mseS.Value)
	if math.Abs(shrink/(delta*want.chiHat.Value)-1) > 2e-4 || math.Abs(mseS/want.mseS.Value-1) > 1e-3 {
		t.Errorf("1-Cˢτ: %.8g, offline %.8g; Cˢ: %.8g, offline %.8g", shrink, delta*want.chiHat.Value, mseS, want.mseS.Value)
	}
}

// With a student who has the true model, the sampled stream agrees with [Online]
// within standard errors.
func TestOnlineMismatchedMatched(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	m := Model{Signal: prior.GaussBernoulli{Density: 0.2, SignalVar: 1}, Gain: channel.Uniform(0.7, 1.3), NoiseVar: 1e-3, Alpha: 0.6, P: 3}
	want, err := Online(context.Background(), m, &OnlineOptions{Iterations: 12, Tol: 1e-12, Members: 128, Replicates: 4})
	if err != nil {
		t.Fatal(err)
	}
	got, err := OnlineMismatched(context.Background(), Matched(m), &MonteCarloOptions{Samples: 16000, Iterations: 12})
	if err != nil {
		t.Fatal(err)
	}
	for k := range want {
		w, g := want[k].Last(), got[k][len(got[k])-1]
		for _, c := range [][2]Number{{w.MSEX, g.MSEX}, {w.MSES, g.MSES}, {w.MHat, g.MHat}, {w.MHat, g.QHat}, {w.MHat, g.ChiHat}} {
			// The error has 7 degrees of freedom: Student's t exceeds 4 once in 200 times.
			if d := math.Abs(c[0].Value - c[1].Value); d > 4.5*c[1].Err+3*c[0].Err {
				t.Errorf("sample %d: %v, sampled %v", k+1, c[0], c[1])
			}
		}
		t.Logf("sample %d: mse_x %v, sampled %v; mse_s %v, sampled %v", k+1, w.MSEX, g.MSEX, w.MSES, g.MSES)
	}
}

// The interpolation's own estimate of its error, over narrow and wide gains.
func TestOnlineInterpolation(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	for _, g := range []channel.GainPrior{channel.Uniform(0.95, 1.05), channel.Uniform(0.3, 1.7)} {
		for _, k := range []int{2, 20} {
			m := Model{Signal: prior.GaussBernoulli{Density: 0.2, SignalVar: 1}, Gain: g, NoiseVar: 1e-3, Alpha: 0.6, P: 1}
			e, err := newEvolution(m, nil)
			if err != nil {
				t.Fatal(err)
			}
			o := &online{evolution: e, OnlineOptions: (&OnlineOptions{}).withDefaults(), stream: []*population{newPopulation(256, 1, 0)}}
			for range k - 1 {
				o.stream[0].absorb(5)
			}
			if law := o.law(k); law.miss > 1e-3 {
				t.Errorf("gains [%g, %g], sample %d: interpolation misses by %.1e", g.Lo, g.Hi, k, law.miss)
			}
		}
	}
}

// A stream can be set to make so many iterations and no fewer; progress counts
// them. With this much noise the table of averages has few nodes.
func TestOnlineExactly(t *testing.T) {
	m := Model{Signal: prior.GaussBernoulli{Density: 0.3, SignalVar: 1}, Gain: channel.Uniform(0.9, 1.1), NoiseVar: 1, Alpha: 0.8, P: 3}
	calls, last := 0, 0
	got, err := Online(context.Background(), m, &OnlineOptions{
		Members: 16, Replicates: 2, Iterations: 20, Exactly: true,
		Progress: func(sample, iteration int) { calls, last = calls+1, iteration },
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(got) != 3 || calls != 60 || last != 20 {
		t.Errorf("%d samples, %d calls, the last at iteration %d", len(got), calls, last)
	}
	for k, s := range got {
		if len(s.Steps) != 20 || !s.Converged {
			t.Errorf("sample %d: %d iterations, converged %v", k+1, len(s.Steps), s.Converged)
		}
	}
}

// More than a hundred samples: the error of x keeps falling towards that with known
// gains, and that of s like 1/(k-8), since the first samples teach little.
func TestLongOnlineManySamples(t *testing.T) {
	longOnly(t)
	table := tables.New(t, "", "sample", "MSE x", "standard error", "above known gains", "MSE s", "standard error")
	m := paperModel(0.2, 0.6, 1e-8, 120)
	got, err := Online(context.Background(), m, nil)
	if err != nil {
		t.Fatal(err)
	}
	known, err := FixedPoint(context.Background(), Calibrated(m.Signal, m.NoiseVar, m.Alpha), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range []int{10, 20, 30, 60, 120} {
		last := got[k-1].Last()
		table.Row("| %d | %.7g | %.0e | %.2g %% | %.5g | %.1e |", k, last.MSEX.Value, last.MSEX.Err,
			100*(last.MSEX.Value/known.MSEX.Value-1), last.MSES.Value, last.MSES.Err)
	}
	for k := 1; k < len(got); k++ {
		a, b := got[k-1].Last(), got[k].Last()
		if !got[k].Converged || b.MSEX.Value > a.MSEX.Value+3*(a.MSEX.Err+b.MSEX.Err) || b.MSES.Value > a.MSES.Value {
			t.Errorf("sample %d: %v, %v after %v, %v", k+1, b.MSEX, b.MSES, a.MSEX, a.MSES)
		}
	}
	end, half := got[119].Last(), got[59].Last()
	if r := half.MSES.Value / end.MSES.Value; r < 2 || r > 2.3 {
		t.Errorf("from 60 to 120 samples the error on s falls by %.3f", r)
	}
	if r := end.MSEX.Value / known.MSEX.Value; r < 1 || r > 1.05 {
		t.Errorf("after 120 samples the error on x is %.4f of that with known gains", r)
	}
}
