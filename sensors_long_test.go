package calamp_test

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/calamp/calamp"
	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/evolution"
	"github.com/calamp/calamp/internal/tables"
	"github.com/calamp/calamp/prior"
	"github.com/calamp/calamp/solver"
)

// sharedRun is what came out of one run, or of several on average.
type sharedRun struct {
	converged, x, s, inX, inS float64 // mean squared errors at the best scale, parts within their 95 % intervals
	broken, found, wrong      float64 // broken sensors, those found, and sound ones that were called so
}

// runShared solves problems of so many seeds, with the model given, or learned.
func runShared(t *testing.T, c sharing, seeds int, algorithm solver.Algorithm, learned bool) (mean sharedRun) {
	t.Helper()
	all := make([]sharedRun, seeds)
	inParallel(seeds, func(i int) {
		seed := uint64(i + 1)
		p, truth, broken := c.draw(t, seed)
		opt := &calamp.Options{Settings: solver.Settings{Algorithm: algorithm, Threads: 1}}
		if learned {
			nan := math.NaN()
			signal, gain, err := calamp.Guess(p.W, p.Y, prior.GaussBernoulli{Density: nan, SignalMean: nan, SignalVar: nan}, channel.Gain{Prior: channel.GainPrior{Lo: nan}, NoiseVar: nan})
			if err != nil {
				t.Error(err)
				return
			}
			p.Prior = signal.Learning(prior.Density | prior.SignalMean | prior.SignalVar)
			p.Channel = channel.Faulty{Working: gain}
			opt.Learn, opt.Outliers, opt.Retry = calamp.Learn{Noise: true, Range: true}, calamp.Outliers{Look: true}, true
		}
		res, err := calamp.Solve(context.Background(), p, opt)
		if err != nil {
			t.Error(err)
			return
		}
		all[i] = scoreShared(res, truth, broken, seed)
	})
	for _, r := range all {
		part := 1 / float64(seeds)
		mean.converged += r.converged
		mean.x, mean.s, mean.inX, mean.inS = mean.x+part*r.x, mean.s+part*r.s, mean.inX+part*r.inX, mean.inS+part*r.inS
		mean.broken, mean.found, mean.wrong = mean.broken+r.broken, mean.found+r.found, mean.wrong+r.wrong
	}
	return mean
}

// scoreShared counts sensors in order alone.
func scoreShared(res *calamp.Result, truth calamp.Truth, broken []int, seed uint64) (r sharedRun) {
	score := res.Score(calamp.Truth{X: truth.X})
	r.x, r.broken = score.XMSEScaled, float64(len(broken))
	if res.Status == calamp.Converged {
		r.converged = 1
	}
	for _, b := range res.BrokenSensors {
		if slices.Contains(broken, b.Sensor) {
			r.found++
		} else {
			r.wrong++
		}
	}
	x, s := res.Ranks(truth, rand.New(rand.NewPCG(seed, 0)))
	inside := func(u float64) float64 {
		if math.Abs(u-0.5) <= 0.475 {
			return 1
		}
		return 0
	}
	for _, u := range x {
		r.inX += inside(u) / float64(len(x))
	}
	sensors := float64(len(s) - len(broken))
	for g, u := range s {
		if !slices.Contains(broken, g) {
			d := score.Scale*res.S[g] - truth.S[g]
			r.s, r.inS = r.s+d*d/sensors, r.inS+inside(u)/sensors
		}
	}
	return r
}

// TestLongSharedSensors: N = 1000, α = 0.6, gains in [0.8, 1.2], noise 1e-6, so many signals and rows a sensor: all of them are one
// point of state evolution, which asks for the number of readings of a sensor.
func TestLongSharedSensors(t *testing.T) {
	longOnly(t)
	of := 20
	if *seeds > 0 {
		of = *seeds
	}
	signal, gain := prior.GaussBernoulli{Density: 0.2, SignalVar: 1}, channel.Uniform(0.8, 1.2)
	theory, err := evolution.FixedPoint(context.Background(), evolution.Model{Signal: signal, Gain: gain, NoiseVar: 1e-6, Alpha: 0.6, P: 10}, nil)
	if err != nil {
		t.Fatal(err)
	}
	table := tables.New(t, "", "P", "rows", "algorithm", "model", "converged", "x", "of theory", "s", "of theory", "x inside", "s inside", "broken", "found", "wrongly")
	for _, c := range []struct {
		p, rows         int
		algorithm       solver.Algorithm
		broken, outlier float64
		learned         bool
	}{
		{10, 1, solver.AMP, 0, 0, false},
		{5, 2, solver.AMP, 0, 0, false},
		{2, 5, solver.AMP, 0, 0, false},
		{1, 10, solver.AMP, 0, 0, false},
		{5, 2, solver.VAMP, 0, 0, false},
		{2, 5, solver.VAMP, 0, 0, false},
		{1, 10, solver.VAMP, 0, 0, false},
		{10, 1, solver.AMP, 0.05, 0.01, true},
		{5, 2, solver.AMP, 0.05, 0.01, true},
		{2, 5, solver.AMP, 0.05, 0.01, true},
		{1, 10, solver.AMP, 0.05, 0.01, true},
	} {
		r := runShared(t, sharing{n: 1000, p: c.p, rows: c.rows, alpha: 0.6, noise: 1e-6, broken: c.broken, outlier: c.outlier}, of, c.algorithm, c.learned)
		model := map[bool]string{false: "given", true: "learned; 5 % broken, 1 % outliers"}[c.learned]
		ofX, ofS := r.x/theory.MSEX.Value, r.s/theory.MSES.Value
		table.Row("| %d | %d | %v | %s | %.0f of %d | %.2e | %.2f | %.2e | %.2f | %.1f %% | %.1f %% | %.0f | %.0f | %.0f |", c.p, c.rows, c.algorithm, model,
			r.converged, of, r.x, ofX, r.s, ofS, 100*r.inX, 100*r.inS, r.broken, r.found, r.wrong)
		least, most := 0.93, 0.97
		if c.learned {
			least, most = 0.92, 1
		}
		if r.converged < float64(of) || r.inX < least || r.inS < least || !c.learned && (r.inX > most || r.inS > most || math.Abs(math.Log(ofX)) > 0.15 || math.Abs(math.Log(ofS)) > 0.15) {
			t.Errorf("P = %d, %d rows, %v, %s: %+v", c.p, c.rows, c.algorithm, model, r)
		}
	}
}
