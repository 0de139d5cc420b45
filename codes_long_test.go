package calamp_test

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat/distuv"

	"github.com/calamp/calamp"
	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/evolution"
	"github.com/calamp/calamp/internal/tables"
	"github.com/calamp/calamp/prior"
	"github.com/calamp/calamp/teacher"
)

// converting is the teacher whose readings are codes.
type converting struct {
	evolution.Truth
	codes channel.Codes
}

// Reading implements [evolution.Truth].
func (c converting) Reading(z, s float64, rng *rand.Rand) float64 {
	return c.codes.CodeOf(c.Truth.Reading(z, s, rng))
}

// predicted are the errors of x and s that state evolution predicts for codes.
func predicted(t *testing.T, te teacher.Teacher, c channel.Codes) (x, s float64) {
	t.Helper()
	steps, err := evolution.MonteCarlo(context.Background(), evolution.Sampled{
		Truth: converting{evolution.Belief{Signal: te.Signal, Gain: te.Gain, NoiseVar: te.NoiseVar}.Truth(), c},
		Prior: te.Signal, Channel: c, Alpha: float64(te.M) / float64(te.N), P: te.P, Matched: true,
	}, &evolution.MonteCarloOptions{Samples: 3000, Iterations: 30, Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	last := steps[len(steps)-1]
	return last.MSEX.Value, last.MSES.Value
}

// What codes and signs cost, with the model known: errors as codes, as readings with noise that is learned, and by state evolution, and which
// part of x and s is in intervals of 95 %.
func TestLongCodes(t *testing.T) {
	longOnly(t)
	fine := teacher.Teacher{N: 300, M: 240, P: 8, Signal: prior.GaussBernoulli{Density: 0.2, SignalVar: 1}, Gain: channel.Uniform(0.8, 1.2), NoiseVar: 1e-6}
	wide := fine
	wide.Gain = channel.Uniform(0.5, 1.5)
	signs := teacher.Teacher{N: 100, M: 400, P: 10, Signal: prior.GaussBernoulli{Density: 0.1, SignalVar: 4}, Gain: channel.Uniform(0.7, 1.3), NoiseVar: 1e-3}
	of := func(te teacher.Teacher, step, saturation, threshold float64) channel.Codes {
		return channel.Codes{Prior: te.Gain, NoiseVar: te.NoiseVar, Step: step, Saturation: saturation, Threshold: threshold}
	}
	table := tables.New(t, "", "readings", "converged", "error of x", "SE", "error of s", "SE", "x inside 95 %", "s inside 95 %", "as noise: error of x", "x inside", "s inside")
	for _, c := range []struct {
		name  string
		te    teacher.Teacher
		codes channel.Codes
	}{
		{"3 bits", fine, of(fine, 0.5, 1.5, 0)},
		{"4 bits", fine, of(fine, 0.25, 1.75, 0)},
		{"6 bits", fine, of(fine, 1./16, 31./16, 0)},
		{"8 bits", fine, of(fine, 1./64, 127./64, 0)},
		{"4 bits, s in [0.5, 1.5]", wide, of(wide, 0.25, 1.75, 0)},
		{"6 bits, s in [0.5, 1.5]", wide, of(wide, 1./16, 31./16, 0)},
		{"sign about 0.3", signs, of(signs, 0, 0, 0.3)},
		{"sign about 0.6", signs, of(signs, 0, 0, 0.6)},
	} {
		seX, seS := predicted(t, c.te, c.codes)
		var x, s, inX, inS, noisy, noisyX, noisyS, count, noisyCount float64
		for seed := range uint64(5) {
			in, err := c.te.Draw(seed + 1)
			if err != nil {
				t.Fatal(err)
			}
			y := converted(in.Y, c.codes)
			res, err := calamp.Solve(context.Background(), &calamp.Problem{W: in.W, Y: y, Prior: c.te.Signal, Channel: c.codes}, nil)
			if err != nil {
				t.Fatal(err)
			}
			if res.Status == calamp.Converged {
				m := calamp.Score(res.X, res.S, in.Truth)
				insideX, insideS := inside(res, in.Truth)
				x, s, inX, inS, count = x+m.XMSE, s+m.SMSE, inX+insideX, inS+insideS, count+1
			}
			if c.codes.OneBit() {
				continue
			}
			res, err = calamp.Solve(context.Background(), &calamp.Problem{W: in.W, Y: y, Prior: c.te.Signal, Channel: channel.Gain{Prior: c.te.Gain, NoiseVar: c.te.NoiseVar}}, &calamp.Options{Learn: calamp.Learn{Noise: true}})
			if err != nil {
				t.Fatal(err)
			}
			if res.Status == calamp.Converged {
				insideX, insideS := inside(res, in.Truth)
				noisy, noisyX, noisyS, noisyCount = noisy+calamp.Score(res.X, res.S, in.Truth).XMSE, noisyX+insideX, noisyS+insideS, noisyCount+1
			}
		}
		rel := func(v float64) string { return fmt.Sprintf("%.3g", v) }
		if math.IsNaN(noisy / noisyCount) {
			rel = func(float64) string { return "–" }
		}
		table.Row("| %s | %.0f of 5 | %.3g | %.3g | %.3g | %.3g | %.1f %% | %.1f %% | %s | %s | %s |", c.name, count, x/count, seX, s/count, seS, 100*inX/count, 100*inS/count, rel(noisy/noisyCount), rel(100*noisyX/noisyCount), rel(100*noisyS/noisyCount))
	}
}

// dithered are thresholds of every reading from 0.1 to 0.9.
func dithered(te teacher.Teacher) []float64 {
	rng, thresholds := rand.New(rand.NewPCG(1, 38)), make([]float64, te.M*te.P)
	for j := range thresholds {
		thresholds[j] = 0.1 + 0.8*rng.Float64()
	}
	return thresholds
}

// The same with more entries, where state evolution is nearer: errors of x and s relative to its own, and coverage.
func TestLongCodesOfLargerProblems(t *testing.T) {
	longOnly(t)
	fine := teacher.Teacher{N: 1000, M: 800, P: 8, Signal: prior.GaussBernoulli{Density: 0.2, SignalVar: 1}, Gain: channel.Uniform(0.8, 1.2), NoiseVar: 1e-6}
	wide := fine
	wide.Gain = channel.Uniform(0.5, 1.5)
	signs := teacher.Teacher{N: 1000, M: 4000, P: 10, Signal: prior.GaussBernoulli{Density: 0.1, SignalVar: 4}, Gain: channel.Uniform(0.7, 1.3), NoiseVar: 1e-3}
	seeds := seedCount(3)
	table := tables.New(t, "", "readings", "N", "error of x", "of SE", "error of s", "of SE", "x inside 95 %", "s inside 95 %")
	for _, c := range []struct {
		name  string
		te    teacher.Teacher
		codes channel.Codes
	}{
		{"4 bits", fine, channel.Codes{Prior: fine.Gain, NoiseVar: fine.NoiseVar, Step: 0.25, Saturation: 1.75}},
		{"6 bits, s in [0.5, 1.5]", wide, channel.Codes{Prior: wide.Gain, NoiseVar: wide.NoiseVar, Step: 1. / 16, Saturation: 31. / 16}},
		{"8 bits", fine, channel.Codes{Prior: fine.Gain, NoiseVar: fine.NoiseVar, Step: 1. / 64, Saturation: 127. / 64}},
		{"sign about 0.3", signs, channel.Codes{Prior: signs.Gain, NoiseVar: signs.NoiseVar, Threshold: 0.3}},
		{"sign about 0.6", signs, channel.Codes{Prior: signs.Gain, NoiseVar: signs.NoiseVar, Threshold: 0.6}},
		{"sign about 0.1 to 0.9, of each reading", signs, channel.Codes{Prior: signs.Gain, NoiseVar: signs.NoiseVar, Thresholds: dithered(signs)}},
	} {
		se, err := evolution.FixedPoint(context.Background(), evolution.Model{
			Signal: c.te.Signal, Gain: c.te.Gain, NoiseVar: c.te.NoiseVar, Alpha: float64(c.te.M) / float64(c.te.N), P: c.te.P, Readings: &evolution.Readings{Sensors: c.codes},
		}, nil)
		if err != nil {
			t.Fatal(err)
		}
		var x, xx, s, inX, inS float64
		part := 1 / float64(seeds)
		for seed := range uint64(seeds) {
			in, err := c.te.Draw(seed + 1)
			if err != nil {
				t.Fatal(err)
			}
			res, err := calamp.Solve(context.Background(), &calamp.Problem{W: in.W, Y: converted(in.Y, c.codes), Prior: c.te.Signal, Channel: c.codes}, nil)
			if err != nil {
				t.Fatal(err)
			}
			if res.Status != calamp.Converged {
				t.Errorf("%s, seed %d: %v", c.name, seed+1, res.Status)
			}
			m := calamp.Score(res.X, res.S, in.Truth)
			insideX, insideS := inside(res, in.Truth)
			x, xx, s, inX, inS = x+m.XMSE*part, xx+m.XMSE*m.XMSE*part, s+m.SMSE*part, inX+100*insideX*part, inS+100*insideS*part
		}
		off := math.Sqrt((xx-x*x)/float64(max(seeds-1, 1))) / se.MSEX.Value
		table.Row("| %s | %d | %.3g | %.3f ± %.3f | %.3g | %.2f | %.1f %% | %.1f %% |", c.name, c.te.N, x, x/se.MSEX.Value, off, s, s/se.MSES.Value, inX, inS)
	}
}

// counted are the numbers of photons of readings that are expected, times a unit.
func counted(y *mat.Dense, unit float64, seed uint64) *mat.Dense {
	counts, rng := mat.DenseCopyOf(y), rand.New(rand.NewPCG(seed, 3))
	counts.Apply(func(_, _ int, v float64) float64 {
		return unit * distuv.Poisson{Lambda: max(v/unit, math.SmallestNonzeroFloat64), Src: rng}.Rand()
	}, y)
	return counts
}

// What is found from counts, with the model of signals and gains known: errors and coverage with the likelihood of Poisson, and with noise of one
// variance that is learned, before the division by s and at the reading. Where hardly anything is found a run says so, and its error bars hold as well.
func TestLongCounts(t *testing.T) {
	longOnly(t)
	te := teacher.Teacher{
		N: 200, M: 200, P: 8, Signal: prior.GaussBernoulli{Density: 0.15, SignalVar: 1}, Entries: prior.NonNegative{Density: 0.15, SignalVar: 1},
		Gain: channel.Uniform(0.8, 1.2), Matrix: teacher.Ensemble{Kind: "binary"},
	}
	table := tables.New(t, "", "counts a reading", "likelihood", "converged", "nothing recovered", "error of x", "error of s", "error²/variance of x", "x inside 95 %", "s inside 95 %")
	for _, count := range []float64{3, 10, 30, 100, 1000} {
		for _, kind := range []string{"Poisson", "noise at the signal", "noise at the reading"} {
			var x, s, stated, inX, inS, runs, nothing float64
			seeds := seedCount(8)
			for seed := range uint64(seeds) {
				in, err := te.Draw(seed + 1)
				if err != nil {
					t.Fatal(err)
				}
				unit := mat.Sum(in.Y) / float64(te.M*te.P) / count
				p, opt := &calamp.Problem{W: in.W, Y: counted(in.Y, unit, seed), Prior: te.Entries, Channel: channel.Counts{Prior: te.Gain, Unit: unit}}, &calamp.Options{}
				if kind != "Poisson" {
					gain := channel.Gain{Prior: te.Gain, NoiseVar: unit * unit * count}
					if kind == "noise at the reading" {
						gain = channel.Gain{Prior: te.Gain, Own: channel.Detector{Read: unit * unit * count}}
					}
					p.Channel, opt.Learn.Noise = gain, true
				}
				res, err := calamp.Solve(context.Background(), p, opt)
				if err != nil {
					t.Fatal(err)
				}
				switch res.Status {
				case calamp.Converged:
					runs++
				case calamp.NothingRecovered:
					nothing++
				default:
					continue
				}
				m := calamp.Score(res.X, res.S, in.Truth)
				_, insideS := inside(res, in.Truth)
				for i := range te.N {
					for k := range te.P {
						inX += bit(math.Abs(res.X.At(i, k)-in.Truth.X.At(i, k)) < 1.96*math.Sqrt(res.XVar.At(i, k))) / float64(te.N*te.P)
					}
				}
				x, s, stated, inS = x+m.XMSE, s+m.SMSE, stated+mat.Sum(res.XVar)/float64(te.N*te.P), inS+insideS
			}
			all := runs + nothing
			table.Row("| %g | %s | %.0f of %d | %.0f | %.3g | %.3g | %.2f | %.1f %% | %.1f %% |", count, kind, runs, seeds, nothing, x/all, s/all, x/stated, 100*inX/all, 100*inS/all)
		}
	}
}
