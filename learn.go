package calamp

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/mathext"

	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/internal/amp"
	"github.com/calamp/calamp/operator"
	"github.com/calamp/calamp/prior"
)

// Learn says what is learned of the channel, starting from the problem's. Of
// the signals' prior, what a [prior.Learner] wants to learn is.
type Learn struct {
	// Noise learns the noise variance of a [channel.Noisy].
	Noise bool

	// Range learns the ends of the uniform range of s of a [channel.Gain]. The
	// global scale is then that of the signals' prior; where that is learned as
	// well, nothing determines it, and the middle of the range is kept.
	Range bool
}

// learning prepares the solver for what is to be learned.
func (r *run) learning() error {
	p, learner := r.problem.Prior.(prior.Learner)
	o := r.opt.Learn
	if !learner && !o.Noise && !o.Range {
		return nil
	}
	if r.opt.Covariance == Full {
		return errors.New("full covariances: learning the model needs diagonal ones")
	}
	if _, ok := channel.Unwrap(r.problem.Channel).(channel.Noisy); o.Noise && !ok {
		return fmt.Errorf("the noise variance of a %T cannot be learned: it is no channel.Noisy", r.problem.Channel)
	}
	if o.Range && !r.blind {
		return fmt.Errorf("a %T has no range of s to be learned", r.problem.Channel)
	}
	if o.Range && r.gain.Prior.Precision != 0 {
		return errors.New("the range of s is learned for a uniform calibration prior, and this one is a truncated normal")
	}
	if err := r.start(); err != nil {
		return err
	}
	r.solver.Gain = r.gain
	r.engine.ScaleLearned = learner && scaleFree(p)
	r.solver.Learn = &amp.Learning{Noise: o.Noise, Range: o.Range, ScaleFree: r.engine.ScaleLearned}
	r.solver.ScaleFree = o.Range
	r.solver.ScaleSteps = r.solver.ScaleSteps && !o.Range
	return nil
}

// scaleFree says whether a prior takes its scale from the signals.
func scaleFree(p prior.Prior) bool {
	if g, ok := p.(prior.LearnedGaussBernoulli); ok {
		return g.Learn&prior.SignalVar != 0
	}
	_, ok := p.(prior.Learner)
	return ok
}

// signal is the signals' prior as it is now, where it is Gauss–Bernoulli.
func (r *run) signal() (g prior.GaussBernoulli, ok bool) {
	switch p := r.engine.Prior.(type) {
	case prior.GaussBernoulli:
		return p, true
	case prior.LearnedGaussBernoulli:
		return p.GaussBernoulli, true
	}
	return g, false
}

const (
	// guessedRatio is the ratio of the signals' power to the noise's where
	// nothing is known (Vila and Schniter, section III-E: 20 dB).
	guessedRatio = 100

	// guessedDensity is the density, relative to the measurement rate: about
	// half of what can be recovered at best.
	guessedDensity = 0.25

	leastGuess = 0.1 // of a variance, relative to the mean square

	leastPower = 1e-300 // of z

	leastSpread, mostSpread = 0.05, 0.8 // of s, half-width relative to the middle
)

// start brings what is to be learned to where learning can start: a noise no smaller than
// a hundredth of the readings' power, and a Gauss–Bernoulli prior that expects
// that power to within a factor of two. AMP that is too sure of a wrong model
// blows up before anything is learned.
func (r *run) start() error {
	sensors, err := sensorPowers(r.problem.W, r.problem.Y)
	if err != nil {
		return err
	}
	middle := 1.0
	if r.blind {
		middle, _ = r.gain.Prior.Moments()
	}
	row := r.problem.W.MeanSquare() * float64(r.n)
	power := max(sensors.level*row*middle*middle, leastPower)
	if c, ok := channel.Unwrap(r.engine.Channel).(channel.Noisy); ok && r.opt.Learn.Noise {
		r.engine.SetWorking(c.WithNoise(max(0, power/(1+guessedRatio)-c.Noise())))
		r.gain, _ = channel.Unwrap(r.engine.Channel).(channel.Gain)
	}
	if g, ok := r.engine.Prior.(prior.LearnedGaussBernoulli); ok {
		square := max(power-noiseOf(r.engine.Channel), power/(1+guessedRatio)) / row
		r.engine.Prior = balanced(g, square)
		r.engine.Reset()
	}
	return nil
}

// balanced is g with entries of the given mean square, where it is off by more than a factor of two.
func balanced(g prior.LearnedGaussBernoulli, square float64) prior.LearnedGaussBernoulli {
	mean := g.GaussBernoulli.SignalMean
	ratio := square / (g.Variance() + g.Mean()*g.Mean())
	switch {
	case ratio > 0.5 && ratio < 2 || !(ratio > 0) || math.IsInf(ratio, 1):
	case g.Learn&prior.SignalVar != 0:
		g.GaussBernoulli.SignalVar = max(square/g.Density-mean*mean, leastGuess*square/g.Density)
	case g.Learn&prior.Density != 0:
		g.GaussBernoulli.Density = min(ratio*g.Density, max(0.5, g.Density))
	}
	return g
}

// Guess completes a rough model, for learning to start from: every parameter
// that is NaN (for the range of s: its Lo) is taken from the moments of the
// readings y (M×P). Where the signals' variance is not known either, the middle of
// the range of s is 1. The error is that of rows of W which could not be read.
func Guess(w operator.Operator, y *mat.Dense, signal prior.GaussBernoulli, gain channel.Gain) (prior.GaussBernoulli, channel.Gain, error) {
	m, n := w.Dims()
	sensors, err := sensorPowers(w, y)
	if err != nil {
		return signal, gain, err
	}
	row := w.MeanSquare() * float64(n)
	if math.IsNaN(signal.Density) {
		signal.Density = min(max(guessedDensity*float64(m)/float64(n), 1/float64(n)), 0.5)
	}
	if math.IsNaN(signal.SignalMean) {
		signal.SignalMean = 0
	}
	square := signal.SignalVar + signal.SignalMean*signal.SignalMean // of a non-zero entry; NaN when not known
	if math.IsNaN(gain.Prior.Lo) {
		h, middle := sensors.spread(), 1.0
		if c := math.Sqrt(signal.Density * square / sensors.level); c > 0 && !math.IsInf(c, 1) {
			middle = c
		}
		gain.Prior = channel.Uniform(1-h, 1+h).Scaled(middle)
	}
	// z = sy has mean square ‖w‖² ρ(v+x̄²) + Δ.
	middle := 0.5 * (gain.Prior.Lo + gain.Prior.Hi)
	power := max(sensors.level*row*middle*middle, leastPower)
	if math.IsNaN(gain.NoiseVar) {
		gain.NoiseVar = power / (1 + guessedRatio)
	}
	if math.IsNaN(signal.SignalVar) {
		square = max(power-gain.NoiseVar, power/(1+guessedRatio)) / (row * signal.Density)
		signal.SignalVar = max(square-signal.SignalMean*signal.SignalMean, leastGuess*square)
	}
	return signal, gain, nil
}

// powers are the sensors' mean square readings relative to their rows of W.
type powers struct {
	logs   []float64 // their logarithms
	chance float64   // variance of these if all gains were equal
	level  float64   // typical value, whatever a few sensors do
}

// sensorPowers takes readings of a sensor for Gaussian, as sums over many
// entries are: the logarithm of the mean square of n of them has mean
// ψ(n/2) - log(n/2) and variance ψ'(n/2) beside that of their variance.
func sensorPowers(w operator.Operator, y *mat.Dense) (powers, error) {
	p := powers{level: 1}
	m, n := w.Dims()
	matrix, seen := w.(operator.Matrix)
	row := make([]float64, n)
	for mu := range m {
		norm := w.MeanSquare() * float64(n)
		if seen {
			if err := matrix.RowInto(row, mu); err != nil {
				return p, err
			}
			norm = meanSquare(row) * float64(n)
		}
		sum, count := 0.0, 0.0
		for _, v := range y.RawRowView(mu) {
			if !math.IsNaN(v) {
				sum += v * v
				count++
			}
		}
		if sum > 0 && norm > 0 && !math.IsInf(sum, 1) {
			p.logs = append(p.logs, math.Log(sum/count/norm)-mathext.Digamma(count/2)+math.Log(count/2))
			p.chance += mathext.Zeta(2, count/2)
		}
	}
	if len(p.logs) > 0 {
		p.chance /= float64(len(p.logs))
		sorted := slices.Sorted(slices.Values(p.logs))
		p.level = math.Exp(sorted[len(sorted)/2])
	}
	return p, nil
}

// spread is the half-width of the range of s, relative to its middle: from the
// variance of log s², which is what the sensors' powers vary by beyond chance, two
// standard errors up. The variance is that of a normal distribution with the same
// median deviation, whatever a few sensors do.
func (p *powers) spread() float64 {
	m := float64(len(p.logs))
	if m < 2 {
		return leastSpread
	}
	deviations := make([]float64, len(p.logs))
	for i, u := range p.logs {
		deviations[i] = math.Abs(u - math.Log(p.level))
	}
	slices.Sort(deviations)
	sd := deviations[len(deviations)/2] / medianOfNormal
	excess := sd*sd*(1+2*math.Sqrt(3/m)) - p.chance
	return min(max(math.Sqrt(3*max(excess, 0)/4), leastSpread), mostSpread)
}

// medianOfNormal is the median of |N(0, 1)|.
const medianOfNormal = 0.6744897501960817

func meanSquare(v []float64) float64 {
	total := 0.0
	for _, x := range v {
		total += x * x
	}
	return total / float64(len(v))
}
