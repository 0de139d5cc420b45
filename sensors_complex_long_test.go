package calamp_test

import (
	"context"
	"math"
	"slices"
	"testing"

	"github.com/calamp/calamp"
	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/internal/tables"
	"github.com/calamp/calamp/prior"
	"github.com/calamp/calamp/solver"
	"github.com/calamp/calamp/teacher"
)

// TestLongSharedComplex: N = 500, α = 0.6, amplitudes in [0.8, 1.2], noise 1e-6, nothing given but sensors, of which some are broken: complex gains of so many rows beside
// those of one row with as many readings.
func TestLongSharedComplex(t *testing.T) {
	longOnly(t)
	count := seedCount(10)
	table := tables.New(t, "", "P", "rows", "phases", "algorithm", "broken", "converged", "x", "s", "amplitudes inside", "phases inside", "found", "wrongly")
	for _, phases := range []struct {
		name  string
		kappa float64
	}{{"± 0.3 rad", 11}, {"free", 0}} {
		for _, broken := range []float64{0, 0.05} {
			for _, shape := range [][2]int{{10, 1}, {5, 2}, {2, 5}} {
				for _, algorithm := range []solver.Algorithm{solver.AMP, solver.VAMP} {
					if algorithm == solver.VAMP && (shape[1] == 1 || broken > 0) {
						continue
					}
					runs := make([]sharedRun, count)
					inParallel(count, func(i int) {
						runs[i] = runSharedComplex(t, shape, phases.kappa, broken, algorithm, uint64(i+1))
					})
					var r sharedRun
					for _, v := range runs {
						part := 1 / float64(count)
						r.converged += v.converged
						r.x, r.s, r.inX, r.inS = r.x+part*v.x, r.s+part*v.s, r.inX+part*v.inX, r.inS+part*v.inS
						r.broken, r.found, r.wrong = r.broken+v.broken, r.found+v.found, r.wrong+v.wrong
					}
					table.Row("| %d | %d | %s | %v | %.0f | %.0f of %d | %.2e | %.2e | %.1f %% | %.1f %% | %.0f | %.0f |", shape[0], shape[1], phases.name, algorithm, r.broken,
						r.converged, count, r.x, r.s, 100*r.inX, 100*r.inS, r.found, r.wrong)
					if r.converged < float64(count) || min(r.inX, r.inS) < 0.92 || max(r.inX, r.inS) > 0.97 || r.found < r.broken {
						t.Errorf("%v, %s, %v: %+v", shape, phases.name, algorithm, r)
					}
				}
			}
		}
	}
}

// runSharedComplex is one run; inX is of amplitudes here, and inS of phases.
func runSharedComplex(t *testing.T, shape [2]int, kappa, broken float64, algorithm solver.Algorithm, seed uint64) (r sharedRun) {
	te := teacher.Complex{
		N: 500, M: 300, P: shape[0], Signal: prior.ComplexGaussBernoulli{Density: 0.2, SignalVar: 1},
		Gain: channel.ComplexPrior{Lo: 0.8, Hi: 1.2, Concentration: kappa}, NoiseVar: 1e-6,
	}
	p, truth := drawComplexSharing(t, te, shape[1], broken, seed)
	nan := math.NaN()
	start, guess, err := calamp.GuessComplex(p.W, p.Y, prior.ComplexGaussBernoulli{Density: nan, SignalVar: nan}, channel.ComplexGain{Prior: channel.ComplexPrior{Lo: nan, Concentration: 1}, NoiseVar: nan})
	if err != nil {
		t.Error(err)
		return r
	}
	p.Prior, p.Channel = start.Learning(prior.Density|prior.SignalVar), channel.Faulty{Working: guess}
	opt := &calamp.Options{Settings: solver.Settings{Algorithm: algorithm, Threads: 1}, Retry: true, Learn: calamp.Learn{Noise: true, Range: true, Phases: true, PhasesOrFree: true}}
	res, err := calamp.Solve(context.Background(), p, opt)
	if err != nil {
		t.Error(err)
		return r
	}
	known := calamp.Truth{X: truth.X}
	for g, s := range truth.S { // a broken sensor has no gain
		isBroken := math.IsNaN(s)
		found := slices.ContainsFunc(res.BrokenSensors, func(b channel.BrokenSensor) bool { return b.Sensor == g })
		switch {
		case isBroken && found:
			r.broken, r.found = r.broken+1, r.found+1
		case isBroken:
			r.broken++
		case found:
			r.wrong++
		}
	}
	m := calamp.ScoreComplex(res.X, res.ComplexS(), known)
	if r.x = m.XMSEScaled; res.Status == calamp.Converged {
		r.converged = 1
	}
	r.s, r.inX, r.inS = scoreSharedComplex(res, truth, m)
	return r
}

// scoreSharedComplex is the mean square error of s of sensors in order, and the parts of their amplitudes and phases within 95 % intervals, at the common factor of the signals.
func scoreSharedComplex(res *calamp.Result, truth calamp.Truth, m calamp.Metrics) (square, amplitudes, phases float64) {
	count := 0.0
	lo, hi := res.SInterval(0.95)
	_, _, from, to := res.PhaseIntervals(0.95)
	for g, s := range truth.S {
		if math.IsNaN(s) {
			continue
		}
		count++
		off := math.Remainder(truth.Phase[g]-m.PhaseShift-0.5*(from[g]+to[g]), 2*math.Pi)
		if math.Abs(off) <= 0.5*(to[g]-from[g]) {
			phases++
		}
		if r := s / m.Scale; r >= lo[g] && r <= hi[g] {
			amplitudes++
		}
		d := m.Scale*res.S[g] - s
		square += d*d + s*s*off*off
	}
	return square / count, amplitudes / count, phases / count
}
