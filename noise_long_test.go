package calamp_test

import (
	"math"
	"testing"

	"github.com/calamp/calamp"
	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/internal/tables"
	"github.com/calamp/calamp/prior"
	"github.com/calamp/calamp/teacher"
)

// unequalTeacher is the ensemble of docs/log/validation.md for noise that differs between sensors.
func unequalTeacher(p int) teacher.Teacher {
	return teacher.Teacher{
		N: 400, M: 240, P: p, NoiseVar: 1e-4,
		Signal: prior.GaussBernoulli{Density: 0.2, SignalVar: 1}, Gain: channel.Uniform(0.8, 1.2),
	}
}

// noiseKnowledge is how the noise of sensors enters a run.
type noiseKnowledge struct {
	name string
	set  func(p *calamp.Problem, o *calamp.Options)
}

var noiseKnowledges = []noiseKnowledge{
	{"given", func(*calamp.Problem, *calamp.Options) {}},
	{"one for all, learned", func(p *calamp.Problem, o *calamp.Options) { p.NoiseVar, o.Learn.Noise = nil, true }},
	{"learned for every sensor", func(p *calamp.Problem, o *calamp.Options) { p.NoiseVar, o.Learn.SensorNoise = nil, true }},
}

// Noise log-uniform over two decades: with P = 10 signals the errors must stay within 1.8 times
// those with the noise given, with 50 within 1.2 times, and no sensor may be called broken.
func TestLongNoise(t *testing.T) {
	longOnly(t)
	table := tables.New(t, "", "decades", "signals", "noise", "error of x, relative to given", "worst seed", "error of x / x_var", "s inside 95 %", "log error of Δ", "called broken", "converged", "iterations (mean)")
	count := seedCount(10)
	for _, decades := range []float64{2, 0} {
		for _, p := range []int{10, 50} {
			most := map[int]float64{10: 1.8, 50: 1.2}[p]
			reference := make([]float64, count)
			for i, k := range noiseKnowledges {
				var ratio, worst, variance, inside, log, broken, converged, iterations float64
				for seed := range count {
					te := unequalTeacher(p)
					te.Noise = te.SpreadNoise(decades, uint64(seed))
					in, err := te.Draw(uint64(seed))
					if err != nil {
						t.Fatal(err)
					}
					problem, opt := te.Problem(in), &calamp.Options{}
					problem.Channel = channel.Faulty{Working: problem.Channel}
					k.set(problem, opt)
					opt.Threads = 1
					res := solve(t, problem, opt)
					score := calamp.Score(res.X, res.S, in.Truth)
					if i == 0 {
						reference[seed] = score.XMSEScaled
					}
					r := score.XMSEScaled / reference[seed]
					ratio, worst = ratio+r/float64(count), max(worst, r)
					variance += score.XMSEScaled / meanOf(res.XVar.RawMatrix().Data) / float64(count)
					inside += shareInside(res, in.Truth.S) / float64(count)
					if res.NoiseVar != nil {
						log += logError(res.NoiseVar, te.Noise) / float64(count)
					}
					broken += float64(len(res.BrokenSensors))
					if res.Status == calamp.Converged {
						converged++
					}
					iterations += float64(res.Iterations) / float64(count)
				}
				table.Row("| %g | %d | %s | %.2f | %.2f | %.2f | %.1f %% | %.2f | %.0f | %.0f/%d | %.0f |", decades, p, k.name, ratio, worst, variance, 100*inside, log, broken, converged, count, iterations)
				if k.name != "one for all, learned" && (ratio > most || broken > 0) {
					t.Errorf("%s, %d signals: %.2f times the error with noise given, %.0f sensors called broken", k.name, p, ratio, broken)
				}
			}
		}
	}
}

func meanOf(v []float64) float64 {
	total := 0.0
	for _, x := range v {
		total += x
	}
	return total / float64(len(v))
}

// shareInside is the part of the s that lie in their intervals of 95 %.
func shareInside(res *calamp.Result, truth []float64) float64 {
	lo, hi, _, _ := res.SIntervals(0.95)
	n := 0.0
	for mu, s := range truth {
		if lo[mu] <= s && s <= hi[mu] {
			n++
		}
	}
	return n / float64(len(truth))
}

// logError is the root mean square of the logarithms of ratios.
func logError(a, b []float64) float64 {
	total := 0.0
	for j := range a {
		d := math.Log(a[j] / b[j])
		total += d * d
	}
	return math.Sqrt(total / float64(len(a)))
}
