package calamp_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/calamp/calamp"
	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/internal/gainkind"
	"github.com/calamp/calamp/internal/tables"
	"github.com/calamp/calamp/prior"
	"github.com/calamp/calamp/teacher"
)

// One reading of a hundred is wrong: errors within 1.3 times those with these readings missing, 99 %
// found, at most 0.1 % of the others called outliers, at most one sensor of 400 lost.
func TestLongOutliers(t *testing.T) {
	longOnly(t)
	table := tables.New(t, "", "readings that are wrong", "Δ", "P", "model", "found", "others", "sensors lost", "error of x, relative", "worst seed", "error of x / x_var", "s inside 95 %", "converged")
	count := seedCount(10)
	for i, kind := range gainkind.WrongReadings {
		for _, delta := range []float64{1e-4, 1e-6} {
			for _, p := range []int{4, 10} {
				for _, learned := range []bool{false, true} {
					var o outlierTally
					for seed := range count {
						o.solve(t, teacher.Teacher{N: 500, M: 400, P: p, Signal: prior.GaussBernoulli{Density: 0.2, SignalVar: 1}, Gain: channel.Uniform(0.8, 1.2), NoiseVar: delta}, kind.Spoil, learned, uint64(seed))
					}
					model, n := "given", float64(count)
					if learned {
						model = "learned"
					}
					table.Row("| %s | %g | %d | %s | %d/%d | %d | %d | %.3f | %.3f | %.2f | %.1f %% | %d/%d |", kind.Name, delta, p, model, o.found, o.wrong, o.others, o.lost, o.ratio/n, o.worst, o.variance/n, 100*o.inside/n, o.converged, count)
					if o.ratio/n > 1.3 || i < 2 && 100*o.found < 99*o.wrong || 1000*o.others > 400*p*count || o.lost > count {
						t.Errorf("%s, Δ = %g, P = %d, %s: %+v", kind.Name, delta, p, model, o)
					}
				}
			}
		}
	}
}

// outlierTally are sums over runs.
type outlierTally struct {
	found, wrong, others, lost, converged int
	ratio, worst, variance, inside        float64
}

func (o *outlierTally) solve(t *testing.T, te teacher.Teacher, spoil func(y, noise, reading float64, rng *rand.Rand) float64, learned bool, seed uint64) {
	in, err := te.Draw(seed)
	if err != nil {
		t.Fatal(err)
	}
	missing, wrong := mat.DenseCopyOf(in.Y), map[[2]int]bool{}
	rng := rand.New(rand.NewPCG(seed, 9))
	reading := mat.Norm(in.Y, 2) / math.Sqrt(float64(te.M*te.P))
	in.Y.Apply(func(mu, k int, y float64) float64 {
		if rng.Float64() > 0.01 {
			return y
		}
		wrong[[2]int{mu, k}] = true
		missing.Set(mu, k, math.NaN())
		return spoil(y, math.Sqrt(te.NoiseVar), reading, rng)
	}, in.Y)
	problem, opt := te.Problem(in), &calamp.Options{}
	if learned {
		nan := math.NaN()
		signal, gain, err := calamp.Guess(in.W, in.Y, prior.GaussBernoulli{Density: nan, SignalMean: nan, SignalVar: nan}, channel.Gain{Prior: channel.GainPrior{Lo: nan}, NoiseVar: nan})
		if err != nil {
			t.Fatal(err)
		}
		problem.Prior = signal.Learning(prior.Density | prior.SignalMean | prior.SignalVar)
		problem.Channel, opt.Learn = gain, calamp.Learn{Noise: true, Range: true}
	}
	problem.Channel = channel.Faulty{Working: problem.Channel}
	without := *problem
	without.Y = missing
	reference := solve(t, &without, opt)
	opt.Outliers.Look = true
	res := solve(t, problem, opt)
	for _, b := range res.BrokenSensors { // where all readings are left out
		for k := range te.P {
			if wrong[[2]int{b.Sensor, k}] && res.Outlier.At(b.Sensor, k) <= 0.5 {
				o.found++
			}
		}
	}
	for _, at := range res.OutlyingReadings() {
		if wrong[at] {
			o.found++
		} else {
			o.others++
		}
	}
	o.wrong += len(wrong)
	o.lost += len(res.BrokenSensors)
	if res.Status == calamp.Converged {
		o.converged++
	}
	score := calamp.Score(res.X, res.S, in.Truth)
	ratio := score.XMSEScaled / calamp.Score(reference.X, reference.S, in.Truth).XMSEScaled
	o.ratio, o.worst = o.ratio+ratio, max(o.worst, ratio)
	o.variance += score.XMSEScaled / meanOf(res.XVar.RawMatrix().Data)
	o.inside += shareInside(res, in.Truth.S)
}
