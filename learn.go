package calamp

import (
	"fmt"
	"math"

	"gonum.org/v1/gonum/mat"

	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/internal/moments"
	"github.com/calamp/calamp/operator"
	"github.com/calamp/calamp/prior"
)

// Learn says what is learned of the channel, starting from the problem's. Of
// the signals' prior, what a [prior.Learner] learns is.
type Learn struct {
	// Noise learns the noise variance of a [channel.Noisy], or in its place that of a [channel.Detector], where sensors have one; of variances
	// that are given one by one it learns the common factor.
	Noise bool

	// SensorNoise learns that of every sensor, each with a pull towards those of the
	// others. It takes some ten signals to be of use.
	SensorNoise bool

	// Range learns the distribution of s: the ends of the range of a uniform
	// [channel.Gain], or what another [channel.Learnable] learns. The
	// global scale is then that of the signals' prior; where that is learned as
	// well, nothing determines it, and the middle of the range is kept.
	Range bool

	// MatrixError learns by how much entries of W are wrong at random (see [Options.MatrixError]). Signals of one power, in rows of one
	// norm, do not separate it from noise: where that is learned, too, only the sum of both means something.
	MatrixError bool

	// Offset learns the standard deviation of the offsets of a [channel.Offset].
	Offset bool

	// Phases learns the concentration of the phases of complex gains about the nominal ones, from that of a [channel.ComplexPrior] on, which is
	// to be small and not 0. PhasesOrFree, with [Options.Retry], solves the problem again with phases of which nothing is known where those
	// that were learned are not near the nominal ones.
	Phases, PhasesOrFree bool
}

// Outliers says whether single readings may be wrong: spikes, dropped bits. Their sensors keep
// all others. It takes four signals.
type Outliers struct {
	Look bool
	Rate float64 // the expected fraction of all readings, in [0, 1); 0: learned
}

// Validate reports an impossible rate.
func (o Outliers) Validate() error {
	if !(o.Rate >= 0 && o.Rate < 1) {
		return fmt.Errorf("the fraction of outlying readings must be in [0, 1), found %g", o.Rate)
	}
	return nil
}

const leastGuess = 0.1 // of a variance, relative to the mean square

// Guess completes a rough model, for learning to start from: every parameter
// that is NaN (for the range of s: its Lo) is taken from the moments of the
// readings y (M×P). Where the signals' variance is not known either, the middle of
// the range of s is 1. The error is that of rows of W which could not be read.
func Guess(w operator.Operator, y *mat.Dense, signal prior.GaussBernoulli, gain channel.Gain) (prior.GaussBernoulli, channel.Gain, error) {
	m, n := w.Dims()
	_, signals := y.Dims()
	powers, err := moments.Of(w, flat(y), signals)
	if err != nil {
		return signal, gain, err
	}
	row := w.MeanSquare() * float64(n)
	if math.IsNaN(signal.Density) {
		signal.Density = moments.Density(m, n)
	}
	if math.IsNaN(signal.SignalMean) {
		signal.SignalMean = 0
	}
	square := signal.SignalVar + signal.SignalMean*signal.SignalMean // of a non-zero entry; NaN when not known
	if math.IsNaN(gain.Prior.Lo) {
		h, middle := powers.Spread(), 1.0
		if c := math.Sqrt(signal.Density * square / powers.Level); c > 0 && !math.IsInf(c, 1) {
			middle = c
		}
		gain.Prior = channel.Uniform(1-h, 1+h).Times(middle)
	}
	// z = sy has mean square ‖w‖² ρ(v+x̄²) + Δ.
	middle := channel.Middle(gain.Prior)
	power := powers.Power(row, middle)
	if math.IsNaN(gain.NoiseVar) {
		gain.NoiseVar = power / (1 + moments.SignalToNoise)
	}
	if math.IsNaN(signal.SignalVar) {
		square = moments.Signal(power, gain.NoiseVar) / (row * signal.Density)
		signal.SignalVar = max(square-signal.SignalMean*signal.SignalMean, leastGuess*square)
	}
	return signal, gain, nil
}

// GuessComplex is [Guess] for complex problems: each part is a real signal, with half the variances.
func GuessComplex(w operator.Operator, y *mat.Dense, signal prior.ComplexGaussBernoulli, gain channel.ComplexGain) (prior.ComplexGaussBernoulli, channel.ComplexGain, error) {
	part := prior.GaussBernoulli{Density: signal.Density, SignalVar: 0.5 * signal.SignalVar}
	part, amplitude, err := Guess(w, y, part, channel.Gain{Prior: gain.Prior.Amplitude(), NoiseVar: 0.5 * gain.NoiseVar})
	signal.Density, signal.SignalVar = part.Density, 2*part.SignalVar
	gain.Prior, gain.NoiseVar = gain.Prior.WithAmplitude(amplitude.Prior), 2*amplitude.NoiseVar
	return signal, gain, err
}

// GuessOffset is the standard deviation of the sensors' offsets that the means of their readings y (M×P) suggest,
// beyond what chance makes of means of so many. sensors is that which each row is read with; nil where each has its own.
func GuessOffset(y *mat.Dense, sensors []int) float64 {
	r, _ := newRowMap(sensors, y.RawMatrix().Rows) // Solve reports ids that are wrong
	_, signals := y.Dims()
	if r == nil {
		return moments.OffsetSD(flat(y), signals)
	}
	return moments.OffsetSD(r.arrange(flat(y), signals, math.NaN()), r.each*signals)
}

// WithoutOffsets are readings (M×P) without the mean of each sensor's, and as large as they would be without
// offsets: what [Guess] can learn from where sensors have any. sensors is as of [GuessOffset].
func WithoutOffsets(y *mat.Dense, sensors []int) *mat.Dense {
	r, _ := newRowMap(sensors, y.RawMatrix().Rows)
	m, signals := y.Dims()
	if r == nil {
		return mat.NewDense(m, signals, moments.Centred(flat(y), signals))
	}
	return r.restore(moments.Centred(r.arrange(flat(y), signals, math.NaN()), r.each*signals), signals)
}
