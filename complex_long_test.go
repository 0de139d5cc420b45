package calamp_test

import (
	"context"
	"math"
	"testing"

	"github.com/calamp/calamp"
	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/evolution"
	"github.com/calamp/calamp/internal/tables"
	"github.com/calamp/calamp/prior"
	"github.com/calamp/calamp/teacher"
)

// complexGains are what is known of complex gains, in the tables.
var complexGains = []struct {
	name string
	gain channel.ComplexPrior
}{
	{"amplitude; phase known", channel.ComplexPrior{Lo: 0.5, Hi: 1.5, Concentration: math.Inf(1)}},
	{"phase only, free", channel.ComplexPrior{Lo: 1, Hi: 1}},
	{"phase only, κ = 5", channel.ComplexPrior{Lo: 1, Hi: 1, Concentration: 5}},
	{"amplitude; phase free", channel.ComplexPrior{Lo: 0.5, Hi: 1.5}},
	{"amplitude; κ = 20", channel.ComplexPrior{Lo: 0.5, Hi: 1.5, Concentration: 20}},
}

// complexRun is one run of the default command: sensors may be broken.
type complexRun struct {
	converged     bool
	broken        int
	iterations    float64
	x, stated, s  float64    // after the best factor; x̂'s variance as stated
	inside        [2]float64 // relative intervals: amplitudes, phases
	scaleZ, turnZ float64    // errors of the common scale and phase, in their standard deviations
	warnings      int
}

func solveComplexRun(t *testing.T, te teacher.Complex, seed uint64) (r complexRun) {
	in, err := te.Draw(seed)
	if err != nil {
		t.Error(err)
		return r
	}
	p := te.Problem(in)
	p.Channel = channel.Faulty{Working: p.Channel}
	opt := &calamp.Options{}
	opt.Threads = 1
	res, err := calamp.Solve(context.Background(), p, opt)
	if err != nil {
		t.Error(err)
		return r
	}
	m := calamp.ScoreComplex(res.X, res.ComplexS(), in.Truth)
	r = complexRun{
		converged: res.Status == calamp.Converged, broken: len(res.BrokenSensors), iterations: float64(res.Iterations), warnings: len(res.Warnings),
		x: m.XMSEScaled, stated: meanTotal(res), s: m.SMSEScaled, inside: intervalsHold(res, in.Truth, m),
	}
	r.scaleZ = math.Log(m.Scale) / res.ScaleSD
	if res.PhaseSD > 0 {
		r.turnZ = m.PhaseShift / res.PhaseSD
	}
	return r
}

type complexRuns []complexRun

func (all complexRuns) mean(of func(r complexRun) float64) (mean, err float64) {
	var total, square float64
	for _, r := range all {
		v := of(r)
		total += v
		square += v * v
	}
	n := float64(len(all))
	mean = total / n
	return mean, math.Sqrt(max(0, square/n-mean*mean) / max(1, n-1))
}

// AMP on complex problems against state evolution, what it states of its errors, and how often intervals of 95 % hold.
func TestLongComplexEvolution(t *testing.T) {
	longOnly(t)
	count := seedCount(10)
	table := tables.New(t, "", "gains", "N", "x: SE", "AMP", "stated", "s: SE", "AMP", "iterations", "not converged", "called broken", "coverage |s|", "coverage φ", "rms z scale", "rms z phase")
	for _, c := range complexGains {
		for _, n := range []int{400} {
			te := teacher.Complex{N: n, M: n * 6 / 10, P: 4, Signal: prior.ComplexGaussBernoulli{Density: 0.2, SignalVar: 1}, Gain: c.gain, NoiseVar: 1e-6}
			tr, err := evolution.ComplexOffline(context.Background(), evolution.ComplexModel{Signal: te.Signal, Gain: te.Gain, NoiseVar: te.NoiseVar, Alpha: 0.6, P: te.P}, &evolution.ComplexOptions{Iterations: 80})
			if err != nil {
				t.Fatal(err)
			}
			se := tr.Steps[len(tr.Steps)-1]
			runs := make(complexRuns, count)
			inParallel(count, func(i int) { runs[i] = solveComplexRun(t, te, uint64(i)) })
			x, xErr := runs.mean(func(r complexRun) float64 { return r.x })
			stated, _ := runs.mean(func(r complexRun) float64 { return r.stated })
			s, _ := runs.mean(func(r complexRun) float64 { return r.s })
			iterations, _ := runs.mean(func(r complexRun) float64 { return r.iterations })
			lost, _ := runs.mean(func(r complexRun) float64 { return map[bool]float64{false: 1}[r.converged] })
			broken, _ := runs.mean(func(r complexRun) float64 { return float64(r.broken) })
			amplitude, _ := runs.mean(func(r complexRun) float64 { return r.inside[0] })
			phase, _ := runs.mean(func(r complexRun) float64 { return r.inside[1] })
			scale, _ := runs.mean(func(r complexRun) float64 { return r.scaleZ * r.scaleZ })
			turn, _ := runs.mean(func(r complexRun) float64 { return r.turnZ * r.turnZ })
			table.Row("| %s | %d | %.3g | %.3g ± %.2g | %.3g | %.3g | %.3g | %.0f | %.0f of %d | %.0f | %.3f | %.3f | %.2f | %.2f |", c.name, n,
				se.MSEX.Value, x, xErr, stated, se.MSES.Value, s, iterations, lost*float64(count), count, broken*float64(count), amplitude, phase, math.Sqrt(scale), math.Sqrt(turn))
			if math.Abs(x-se.MSEX.Value) > 3*xErr+0.1*x || math.Abs(stated/se.MSEX.Value-1) > 0.1 {
				t.Errorf("%s: AMP %.3g ± %.2g, stated %.3g, state evolution %.3g", c.name, x, xErr, stated, se.MSEX.Value)
			}
		}
	}
}

// Recovery without noise, at 1.4 times the threshold of state evolution.
func TestLongComplexRecovery(t *testing.T) {
	longOnly(t)
	count := seedCount(10)
	table := tables.New(t, "", "gains", "P", "α_min", "α_SE", "α", "recovered", "iterations")
	for _, c := range complexGains[:4] {
		for _, p := range []int{3, 5, 10} {
			te := teacher.Complex{N: 1000, P: p, Signal: prior.ComplexGaussBernoulli{Density: 0.3, SignalVar: 1}, Gain: c.gain}
			a, err := evolution.ComplexAlphaCal(context.Background(), te.Signal, te.Gain, 0, p, nil)
			if err != nil {
				t.Fatal(err)
			}
			alpha := 1.4 * a.Value
			te.M = int(math.Round(alpha * float64(te.N)))
			runs := make(complexRuns, count)
			inParallel(count, func(i int) { runs[i] = solveComplexRun(t, te, uint64(i)) })
			recovered, _ := runs.mean(func(r complexRun) float64 { return map[bool]float64{true: 1}[r.x < 1e-8] })
			iterations, _ := runs.mean(func(r complexRun) float64 { return r.iterations })
			least := te.Signal.Density * float64(2*p) / float64(2*p-te.Gain.Unknowns())
			table.Row("| %s | %d | %.3f | %.3f | %.3f | %.0f of %d | %.0f |", c.name, p, least, a.Value, alpha, recovered*float64(count), count, iterations)
			if recovered < 0.97 {
				t.Errorf("%s, P = %d: %.0f of %d recovered", c.name, p, recovered*float64(count), count)
			}
		}
	}
}
