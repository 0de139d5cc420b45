package calamp_test

import (
	"context"
	"math"
	"testing"

	"github.com/calamp/calamp"
	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/internal/tables"
	"github.com/calamp/calamp/prior"
	"github.com/calamp/calamp/solver"
	"github.com/calamp/calamp/teacher"
)

// learner is how a problem is set up for learning.
type learner func(p *calamp.Problem) calamp.Learn

// studyLearning solves instances with the teacher's model and with a learned one.
func studyLearning(t *testing.T, te teacher.Teacher, count int, setUp learner) (given, found []outcome) {
	t.Helper()
	for seed := range count {
		in, err := te.Draw(uint64(seed))
		if err != nil {
			t.Fatal(err)
		}
		solve := func(p *calamp.Problem, learn calamp.Learn) outcome {
			res, err := calamp.Solve(context.Background(), p, &calamp.Options{Settings: solver.Settings{Threads: 1}, Learn: learn})
			if err != nil {
				t.Fatal(err)
			}
			return outcome{res, calamp.Score(res.X, res.S, in.Truth), in.Truth}
		}
		p := te.Problem(in)
		given = append(given, solve(p, calamp.Learn{}))
		learn := setUp(p)
		found = append(found, solve(p, learn))
	}
	return given, found
}

// nothingKnown is what calamp solve does without a flag of the model.
func nothingKnown(p *calamp.Problem) calamp.Learn {
	nan := math.NaN()
	g, c, err := calamp.Guess(p.W, p.Y, prior.GaussBernoulli{Density: nan, SignalMean: nan, SignalVar: nan}, channel.Gain{Prior: channel.GainPrior{Lo: nan}, NoiseVar: nan})
	if err != nil {
		panic(err) // a matrix in memory can be read
	}
	p.Prior, p.Channel = g.Learning(allParameters), c
	return calamp.Learn{Noise: true, Range: true}
}

// worst is the largest value of a list.
func worst(list []outcome, value func(outcome) float64) float64 {
	most := 0.0
	for _, o := range list {
		most = max(most, value(o))
	}
	return most
}

func learnedModel(o outcome) (prior.GaussBernoulli, channel.Gain) {
	return o.Prior.(prior.GaussBernoulli).GaussBernoulliPrior(), o.Channel.(channel.Gain)
}

// largestRatio is that of the scaled errors, instance by instance.
func largestRatio(given, found []outcome) float64 {
	most := 0.0
	for i, o := range found {
		most = max(most, o.XMSEScaled/given[i].XMSEScaled)
	}
	return most
}

func converged(o outcome) bool { return o.Status == calamp.Converged }

// Density, variance and noise start wrong by factors.
func TestLongLearnsFromWrongStarts(t *testing.T) {
	longOnly(t)
	table := tables.New(t, "", "density", "variance", "noise", "density off", "variance off", "noise off", "times", "converged", "iterations")
	te := teacher.Teacher{N: 1000, M: 600, P: 10, Signal: prior.GaussBernoulli{Density: 0.2, SignalVar: 1}, Gain: channel.Uniform(0.95, 1.05), NoiseVar: 1e-6}
	for _, f := range [][3]float64{{4, 1, 1}, {0.1, 1, 1}, {1, 10, 1}, {1, 0.1, 1}, {1, 1, 10}, {1, 1, 0.1}, {4, 10, 10}, {0.1, 0.1, 0.1}, {0.25, 10, 0.25}, {4, 0.1, 4}} {
		given, found := studyLearning(t, te, seedCount(20), func(p *calamp.Problem) calamp.Learn {
			g := te.Signal
			g.Density *= f[0]
			g.SignalVar *= f[1]
			p.Prior = g.Learning(prior.Density | prior.SignalVar)
			p.Channel = channel.Gain{Prior: te.Gain, NoiseVar: f[2] * te.NoiseVar}
			return calamp.Learn{Noise: true}
		})
		off := func(value func(prior.GaussBernoulli, channel.Gain) float64) float64 {
			return worst(found, func(o outcome) float64 { return math.Abs(value(learnedModel(o)) - 1) })
		}
		density := off(func(g prior.GaussBernoulli, _ channel.Gain) float64 { return g.Density / te.Signal.Density })
		variance := off(func(g prior.GaussBernoulli, _ channel.Gain) float64 { return g.SignalVar })
		noise := off(func(_ prior.GaussBernoulli, c channel.Gain) float64 { return c.NoiseVar / te.NoiseVar })
		ratio, done := largestRatio(given, found), countOf(found, converged)
		table.Row("| ×%g | ×%g | ×%g | %.1f %% | %.1f %% | %.1f %% | %.3f | %d/%d | %.0f (%.0f) |", f[0], f[1], f[2], 100*density, 100*variance, 100*noise, ratio, done, len(found), medianOf(found, iterations), medianOf(given, iterations))
		if max(density, variance, noise) > 0.2 || ratio > 1.5 {
			t.Errorf("from %v: off by %.3g, %.3g and %.3g, errors %.3g times as large", f, density, variance, noise, ratio)
		}
	}
}

// No flag of the model at all.
func TestLongLearnsEverything(t *testing.T) {
	longOnly(t)
	table := tables.New(t, "", "range of s", "P", "Δ", "error, true model", "learned", "times", "width off", "converged (true model)", "iterations")
	for _, gain := range []channel.GainPrior{channel.Uniform(0.95, 1.05), channel.Uniform(0.5, 1.5)} {
		for _, p := range []int{2, 3, 10} {
			for _, noise := range []float64{1e-2, 1e-4, 1e-6, 1e-8, 0} {
				te := teacher.Teacher{N: 1000, M: 600, P: p, Signal: prior.GaussBernoulli{Density: 0.2, SignalVar: 1}, Gain: gain, NoiseVar: noise}
				if noise == 0 && p < 10 {
					continue
				}
				given, found := studyLearning(t, te, seedCount(10), nothingKnown)
				done, doneGiven := countOf(found, converged), countOf(given, converged)
				width := worst(found, func(o outcome) float64 {
					_, c := learnedModel(o)
					_, variance := c.Prior.Moments() // where the spread is hidden, that of a normal distribution
					return math.Abs(math.Sqrt(12*variance)/(gain.Hi-gain.Lo) - 1)
				})
				ratio := largestRatio(given, found)
				table.Row("| [%g, %g] | %d | %.0e | %.3g | %.3g | %.3f | %.1f %% | %d/%d (%d) | %.0f (%.0f) |", gain.Lo, gain.Hi, p, noise, medianOf(given, scaled), medianOf(found, scaled), ratio, 100*width, done, len(found), doneGiven, medianOf(found, iterations), medianOf(given, iterations))
				if p == 10 && noise >= 1e-8 && ratio > 2 {
					t.Errorf("[%g, %g], P = %d, Δ = %g: errors up to %.3g times as large", gain.Lo, gain.Hi, p, noise, ratio)
				}
			}
		}
	}
}

// The range of s given 2 % too wide, too narrow or beside the truth: only the scale may
// follow.
func TestLongRangeBesideTheTruth(t *testing.T) {
	longOnly(t)
	table := tables.New(t, "", "range of s", "Δ", "given", "learning", "error of x changes by", "correlation of s by", "mean of s by", "converged")
	for _, gain := range []channel.GainPrior{channel.Uniform(0.95, 1.05), channel.Uniform(0.5, 1.5)} {
		for _, noise := range []float64{1e-4, 1e-6, 1e-8} {
			te := teacher.Teacher{N: 1000, M: 600, P: 10, Signal: prior.GaussBernoulli{Density: 0.2, SignalVar: 1}, Gain: gain, NoiseVar: noise}
			half := 0.5 * (gain.Hi - gain.Lo)
			for _, beside := range []struct {
				name  string
				given channel.GainPrior
			}{
				{"down 2 %", gain.Times(0.98)},
				{"up 2 %", gain.Times(1.02)},
				{"wider 2 %", channel.Uniform(gain.Lo-0.02*half, gain.Hi+0.02*half)},
				{"±0.02", channel.Uniform(gain.Lo-0.02, gain.Hi+0.02)},
			} {
				name, given := beside.name, beside.given
				for _, learning := range []bool{false, true} {
					right, beside := studyLearning(t, te, seedCount(3), func(p *calamp.Problem) calamp.Learn {
						p.Channel = channel.Gain{Prior: given, NoiseVar: noise}
						if learning {
							p.Prior = te.Signal.Learning(allParameters)
						}
						return calamp.Learn{Noise: learning}
					})
					var x, s float64
					for i, o := range beside {
						x = max(x, math.Abs(o.XMSEScaled/right[i].XMSEScaled-1))
						s = max(s, math.Abs((right[i].SOneMinusCNCC-o.SOneMinusCNCC)/(1-right[i].SOneMinusCNCC)))
					}
					moved := medianOf(beside, func(o outcome) float64 { return mean(o.S) })/medianOf(right, func(o outcome) float64 { return mean(o.S) }) - 1
					table.Row("| [%g, %g] | %.0e | %s | %v | %.2f %% | %.2f %% | %+.2f %% | %d/%d |", gain.Lo, gain.Hi, noise, name, learning, 100*x, 100*s, 100*moved, countOf(beside, converged), len(beside))
					if x > 0.05 || s > 0.05 {
						t.Errorf("[%g, %g], Δ = %g, %s, learning %v: error of x changes by %.3g, correlation of s by %.3g", gain.Lo, gain.Hi, noise, name, learning, x, s)
					}
				}
			}
		}
	}
}

// The scale's error bar when the signals' scale is learned.
func TestLongLearnedScale(t *testing.T) {
	longOnly(t)
	table := tables.New(t, "", "range of s", "Δ", "scale z²", "scale_sd")
	for _, gain := range []channel.GainPrior{channel.Uniform(0.95, 1.05), channel.Uniform(0.5, 1.5)} {
		for _, noise := range []float64{1e-2, 1e-3, 1e-4, 1e-6, 1e-8} {
			te := teacher.Teacher{N: 500, M: 400, P: 10, Signal: prior.GaussBernoulli{Density: 0.2, SignalVar: 1}, Gain: gain, NoiseVar: noise}
			_, found := studyLearning(t, te, seedCount(10), func(p *calamp.Problem) calamp.Learn {
				p.Prior = te.Signal.Learning(allParameters)
				return calamp.Learn{Noise: true}
			})
			z2 := 0.0
			for _, o := range found {
				z := math.Log(o.Scale) / o.ScaleSD
				z2 += z * z / float64(len(found))
			}
			table.Row("| [%g, %g] | %.0e | %.2f | %.2g |", gain.Lo, gain.Hi, noise, z2, medianOf(found, func(o outcome) float64 { return o.ScaleSD }))
		}
	}
}
