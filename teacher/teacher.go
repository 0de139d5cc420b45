// Package teacher makes synthetic problems with their truth: it draws
// matrices, signals, gains and noise, and does not depend on how a problem is solved.
package teacher

import (
	"fmt"
	"hash/fnv"
	"math"
	"math/rand/v2"

	"gonum.org/v1/gonum/mat"

	"github.com/calamp/calamp"
	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/operator"
	"github.com/calamp/calamp/prior"
)

// Teacher describes an ensemble of problems: W with independent N(0, 1/N)
// entries unless another ensemble is named, signals from a Gauss–Bernoulli
// prior, calibration from Gain.
type Teacher struct {
	N, M, P  int
	Signal   prior.GaussBernoulli
	Gain     channel.GainPrior
	NoiseVar float64

	// Noise is the noise variance of every sensor (M), or of every reading (M×P, sensor by
	// sensor), in place of NoiseVar; nil where all have that.
	Noise []float64

	// Own is noise that sensors add themselves, behind their gains, beside NoiseVar.
	Own channel.Detector

	// Offset is the standard deviation of the sensors' offsets, y = z/s + o; without any
	// the truth has none.
	Offset float64

	// Rows is how many rows of W each sensor reads with its gain, one after the other; 0 for one. M counts rows, and S of the truth has M/Rows.
	Rows int

	// Entries, when set, is the distribution of the signals' entries, in place of
	// Signal.
	Entries prior.Sampler

	// Matrix is the ensemble of W; the default is independent N(0, 1/N) entries.
	Matrix Ensemble

	// X (N×P), when set, is used in place of random signals.
	X *mat.Dense
}

// Instance is one problem of the ensemble with its truth.
type Instance struct {
	W     *operator.Dense // M×N
	Y     *mat.Dense      // M×P
	Truth calamp.Truth
}

// Problem is the instance as a problem with the true model.
func (t Teacher) Problem(in *Instance) *calamp.Problem {
	return &calamp.Problem{
		W: in.W, Y: in.Y, Sensors: t.Sensors(), Prior: t.prior(),
		Channel: channel.Gain{Prior: t.Gain, NoiseVar: t.NoiseVar, Own: t.Own}, NoiseVar: t.Noise,
	}
}

// Pose draws the problem of a seed, with its truth.
func (t Teacher) Pose(seed uint64) (*calamp.Problem, calamp.Truth, error) {
	in, err := t.Draw(seed)
	if err != nil {
		return nil, calamp.Truth{}, err
	}
	return t.Problem(in), in.Truth, nil
}

// each is how many rows a sensor has.
func (t Teacher) each() int { return max(1, t.Rows) }

// Sensors is the sensor that each row of W is read with (M); nil where every row has one of its own.
func (t Teacher) Sensors() []int {
	if t.each() == 1 {
		return nil
	}
	ids := make([]int, t.M)
	for row := range ids {
		ids[row] = row / t.Rows
	}
	return ids
}

// OffsetChannel is the true channel of sensors with offsets.
func (t Teacher) OffsetChannel() channel.Offset {
	return channel.Offset{Prior: channel.OffsetPrior{Gain: t.Gain, SD: t.Offset}, NoiseVar: t.NoiseVar}
}

// prior is the distribution of the signals' entries.
func (t Teacher) prior() prior.Sampler {
	if t.Entries != nil {
		return t.Entries
	}
	return t.Signal
}

// Validate reports what describes no ensemble.
func (t Teacher) Validate() error {
	if t.N <= 0 || t.M <= 0 || t.P <= 0 {
		return fmt.Errorf("N, M and P must be positive, found N = %d, M = %d, P = %d", t.N, t.M, t.P)
	}
	if err := t.Matrix.Validate(); err != nil {
		return err
	}
	if t.Rows < 0 || t.M%t.each() != 0 {
		return fmt.Errorf("%d rows of W are not a whole number of sensors with %d rows each", t.M, t.Rows)
	}
	if count := len(t.Noise); count > 0 && count != t.M && count != t.M*t.P {
		return fmt.Errorf("%d noise variances for %d sensors and %d signals: expected one a sensor, or one a reading", count, t.M, t.P)
	}
	if t.X != nil {
		if n, p := t.X.Dims(); n != t.N || p != t.P {
			return fmt.Errorf("signals are %d×%d, expected N×P = %d×%d", n, p, t.N, t.P)
		}
	} else if p, ok := t.prior().(interface{ Validate() error }); ok {
		if err := p.Validate(); err != nil {
			return err
		}
	}
	if !(t.Offset >= 0) || math.IsInf(t.Offset, 1) {
		return fmt.Errorf("the standard deviation of offsets must be finite and not negative, found %g", t.Offset)
	}
	return channel.Gain{Prior: t.Gain, NoiseVar: t.NoiseVar, Own: t.Own}.Validate()
}

// Draw makes the instance of a seed. W, X, s and the noise each come from a random
// stream of their own, so that changing P or Δ, say, leaves W and s as they were.
func (t Teacher) Draw(seed uint64) (*Instance, error) {
	if err := t.Validate(); err != nil {
		return nil, err
	}
	w, dense, err := t.drawMatrix(seed)
	if err != nil {
		return nil, err
	}
	x := t.X
	if x == nil {
		x = t.signals(stream(seed, "X"))
	}
	truth := calamp.Truth{X: x, S: t.calibration(stream(seed, "s")), O: t.offsets(stream(seed, "o")), NoiseVar: t.Noise}

	var y mat.Dense
	y.Mul(mat.NewDense(t.M, t.N, w), x)
	if err := t.disturb(&y, &truth, seed); err != nil {
		return nil, err
	}
	return &Instance{W: dense, Y: &y, Truth: truth}, nil
}

// DrawMatrix draws W alone, as [Teacher.Draw] does: with [Teacher.Readings] the W of an
// instance serves others, too.
func (t Teacher) DrawMatrix(seed uint64) (*operator.Dense, error) {
	_, dense, err := t.drawMatrix(seed)
	return dense, err
}

func (t Teacher) drawMatrix(seed uint64) (w []float64, dense *operator.Dense, err error) {
	if w, err = t.Matrix.draw(stream(seed, "W"), t.M, t.N); err != nil {
		return nil, nil, err
	}
	dense, err = operator.NewDense(t.M, t.N, w)
	return w, dense, err
}

func (t Teacher) signals(rng *rand.Rand) *mat.Dense {
	x := mat.NewDense(t.N, t.P, nil)
	draw := t.prior()
	network, deep := draw.(prior.Network)
	for k := range t.P {
		if deep {
			_, signal, err := network.Draw(rng)
			if err != nil { // its latents are given, and those of given parameters can be drawn
				panic(err)
			}
			x.SetCol(k, signal)
			continue
		}
		for i := range t.N {
			x.Set(i, k, prior.At(draw, i).(prior.Sampler).Sample(rng)) // which those of a varied one are
		}
	}
	return x
}

func (t Teacher) calibration(rng *rand.Rand) []float64 {
	s := make([]float64, t.M/t.each())
	for mu := range s {
		s[mu] = t.Gain.Sample(rng)
	}
	return s
}

// Known is what a factory's calibration with so large a relative error says of sensors whose truth is s.
func Known(s []float64, relative float64, seed uint64) *channel.Knowledge {
	rng := stream(seed, "s known")
	k := &channel.Knowledge{Mean: make([]float64, len(s)), SD: make([]float64, len(s))}
	for mu, truth := range s {
		k.Mean[mu] = truth * max(1e-3, 1+relative*rng.NormFloat64())
		k.SD[mu] = relative * k.Mean[mu]
	}
	return k
}

// offsets are nil where there are none.
func (t Teacher) offsets(rng *rand.Rand) []float64 {
	if t.Offset == 0 {
		return nil
	}
	o := make([]float64, t.M/t.each())
	for mu := range o {
		o[mu] = t.Offset * rng.NormFloat64()
	}
	return o
}

// stream is the random stream for one part of a seed's instance: W, X, s or noise.
func stream(seed uint64, name string) *rand.Rand {
	h := fnv.New64a()
	h.Write([]byte(name))
	return rand.New(rand.NewPCG(seed, h.Sum64()))
}
