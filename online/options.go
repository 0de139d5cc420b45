package online

import (
	"errors"
	"fmt"
	"math"

	"github.com/calamp/calamp"
	"github.com/calamp/calamp/solver"
)

// Options selects the variant of the solver. The zero value, or nil, is the
// recommended one.
type Options struct {
	solver.Settings

	// Commit says which samples the posterior learns from. The default is Sane.
	Commit Commit

	// Sanity holds the thresholds of the Sane rule.
	Sanity Sanity

	// Memory, in samples, is how long the past is remembered: before each
	// sample all that was inherited is tempered, τ, B and n of every sensor and
	// the scalars multiplied equally by exp(-1/Memory), so that the likelihood of
	// a sample j samples old counts with the power exp(-j/Memory). Gains that
	// drift are followed at that pace. The default, 0, forgets nothing, as in
	// the paper, unless the gains are found to drift (see Still).
	//
	// With the Sane rule, Memory is the longest memory: when most sensors'
	// readings contradict the inherited posterior, it is shortened until they
	// no longer do, and lengthens again afterwards (a variable forgetting factor:
	// Fortescue, Kershenbaum and Ydstie, Automatica 17, 1981). A drift then
	// needs no tuning.
	Memory float64

	// Still says that samples are as the model has them: gains do not drift, and signals
	// do not depend on each other. Without it, with the Sane rule, samples that look
	// like earlier ones count for less, and with Memory 0 the stream is watched for
	// drifts, and follows one (see [Drift]). It is not in the fingerprint: a state can
	// go on either way.
	Still bool

	// Certain says that nothing happens but what the model has: a sample that contradicts what was learned is refused, and no other
	// explanation of it is looked for (see [Fork]). It is not in the fingerprint, as Still.
	Certain bool

	// Anchor fixes the common scale of signals and s by known calibrations: what samples
	// and the posterior report is brought there. It is no part of the model, and
	// changes nothing of what is learned. The zero value is no anchor, or, where a
	// state is restored, that of the state.
	Anchor calamp.Anchor

	// LearnNoise learns the noise variance along the stream, as a
	// [prior.Learner] learns, whatever this says. Learning
	// starts from the values given, or, where they are NaN, from the moments of
	// the first sample.
	LearnNoise bool

	// LearnSensorNoise learns the noise variance of every sensor in place of one for all. It implies LearnNoise.
	LearnSensorNoise bool

	// NoiseVar is the noise variance of every sensor (M), in place of the channel's. The
	// default, nil, is that of the channel for all.
	NoiseVar []float64

	// WarmUp is for what cannot be learned from single samples: so many are kept and then solved together, and the stream
	// goes on from there. With offsets ([channel.Offset]) at least [LeastWarmUp], and 0 only for the bare
	// recursion (Always). LearnOffsets learns the offsets' standard deviation from these samples. They
	// test the range of s, too. Where it is 0 and readings of the first sample have one sign, as those of positive signals
	// behind masks, it is [LeastWarmUp] with the Sane rule; 1 learns from them one by one. Samples that have their entries
	// in common are then solved as joint rows, and tell more of the gains than one by one.
	WarmUp       int
	LearnOffsets bool

	// Block is how many samples are solved together once they are there, as joint rows: signals that belong together then tell more of the gains than one by one. What they
	// taught one by one is replaced where the answer is trusted. With [AutoBlock] it is those that resemble each other; the default, and 1, is none. With a [prior.Persistent] the default is AutoBlock where it may be: of amplitudes that change little
	// samples teach the same errors one by one. It takes the Sane rule, and no Memory. It is not in the fingerprint, as Still.
	Block int

	// RangeGuessed says that the range of s was not given: then a stream that has to begin with a warm-up is refused,
	// since its samples cannot find that range.
	RangeGuessed bool

	// Outliers looks for single readings that nothing explains, with the Sane rule, and leaves them out: their sensors keep
	// all others. Without it a reading is set aside only where it is farther off than Sanity.Sensor, and a sensor
	// of which three are in short order is flagged. It is not in the fingerprint, as Still.
	Outliers calamp.Outliers

	// Sensors (M) is the sensor that each row of W is read with, as of [calamp.Problem]; nil where every row has its own. All that is of sensors is then of as many as there
	// are: what of a sample does not fit, too, is a sensor with all its rows.
	Sensors []int

	// Phases (M), or nil, are nominal phases of complex gains in radians, about which the channel's distribution of
	// phases is centred.
	Phases []float64

	// SensorDerivatives (J) are the derivatives of W by parameters θ that every sensor has of its own, as those of [calamp.Options], of real
	// gains. The posterior of s and θ of every sensor is carried from sample to sample. SensorSpread (J) are the standard
	// deviations of θ over the sensors; nil learns them.
	SensorDerivatives []calamp.Direction
	SensorSpread      []float64

	// Freeze reconstructs without learning: no sample is committed, and no
	// sensor's health changes.
	Freeze bool

	// Observe, when set, is called after every iteration of a sample with the
	// estimates as they are then: x has N values, s M. They are the calibrator's
	// own: read them, and keep none.
	Observe func(iteration int, x, s []float64)
}

// Commit says which samples the posterior learns from.
type Commit uint8

const (
	// Sane learns from samples that converged and that the model explains, and
	// from the sensors of them that behave; see [Sanity].
	Sane Commit = iota

	// Always learns from every sample that gave finite estimates, and flags no
	// sensor. With fixed damping 0, NoScaleStep, a negative Tol and MaxIter t it
	// is the recursion of the paper, t iterations a sample.
	Always
)

// String is the name used by the command's --commit.
func (c Commit) String() string {
	if c == Always {
		return "always"
	}
	return "sane"
}

// MarshalText implements encoding.TextMarshaler.
func (c Commit) MarshalText() ([]byte, error) { return []byte(c.String()), nil }

// UnmarshalText reads what String writes.
func (c *Commit) UnmarshalText(text []byte) error {
	switch string(text) {
	case "sane":
		*c = Sane
	case "always":
		*c = Always
	default:
		return fmt.Errorf("commit is sane or always, found %q", text)
	}
	return nil
}

// Sanity holds the thresholds of the rule by which a sample is committed. Zero
// fields are the defaults.
//
// The rule looks at each reading's standardised residual given all the others,
// that is, given what the sensor's past says of s and what the other sensors of
// this sample say of z:
//
//	χ_µ = (ŝ_past y - ω) / √(V + Δ + Cˢ_past y²).
//
// Under the model χ has mean square 1, from the first sample on, when ŝ_past and
// Cˢ_past are the prior's and s is wide.
//
// A sample is committed when all of this holds:
//
//   - it has a non-zero reading of a sensor in good health;
//   - its iteration converged, or came as near as Unfinished (not looked at when
//     Tol is negative), and did not diverge;
//   - the mean χ² of the readings used is at most ChiSquare, widened by the
//     spread of a mean over few sensors.
//
// Single readings that do not fit are masked first, so that one sensor does not
// decide: as soon as, in the course of the iteration, |χ| exceeds Sensor (in
// units of the sample's own median |χ| if that is larger than it should be), the
// reading is treated as missing, until |χ| is half that; unless that concerns
// more than the fraction Faulty of the sensors: then it is the sample that is
// bad. Readings of exactly zero are always treated as missing: of a continuous
// quantity they have probability zero.
//
// A sensor's health is the cumulative sum (E. S. Page, "Continuous inspection
// schemes", 1954) of the log-likelihood ratio of residuals twice as large as
// they should be, ⅜χ² - log 2, at least 0. A sensor is flagged when that
// exceeds Health: by chance that takes more than e^Health readings (G. Lorden,
// 1971). It is flagged as well when its readings place s outside the range
// of s by more than Sensor of its standard deviations, the scale's included. The readings of
// a flagged sensor are not used. It is recalibrated on the side, from nothing,
// against what the others say of z; after eight consistent readings in a row
// that narrow s down inside the range, it is admitted again.
type Sanity struct {
	ChiSquare  float64 // largest mean χ² of a sample; default 2
	Sensor     float64 // largest |χ| of a reading; default 6
	Health     float64 // CUSUM at which a sensor is flagged; default 25
	Faulty     float64 // largest fraction of readings masked; default 0.2
	Unfinished float64 // largest last change of x̂ of an unconverged sample, in its posterior standard deviations; default 0.01
}

const defaultMaxIter = 500

// follows reports whether drifts are looked for.
func (o *Options) follows() bool { return o.Commit == Sane && o.Memory == 0 && !o.Still }

// Validate reports every field with an impossible value.
func (o *Options) Validate() error {
	errs := []error{o.Settings.Validate(), o.Anchor.Validate(), o.Outliers.Validate()}
	if o.Commit > Always {
		errs = append(errs, fmt.Errorf("unknown commit rule %d", o.Commit))
	}
	if !(o.Memory >= 0) || math.IsInf(o.Memory, 1) {
		errs = append(errs, fmt.Errorf("the memory is a number of samples, 0 for all of them, found %g", o.Memory))
	}
	s := o.Sanity
	for _, f := range []struct {
		name  string
		value float64
		most  float64
	}{
		{"the largest mean χ² of a sample", s.ChiSquare, math.MaxFloat64},
		{"the largest |χ| of a reading", s.Sensor, math.MaxFloat64},
		{"the health limit", s.Health, math.MaxFloat64},
		{"the fraction of faulty sensors", s.Faulty, 1},
		{"the change of an unfinished sample", s.Unfinished, math.MaxFloat64},
	} {
		if !(f.value >= 0 && f.value <= f.most) {
			errs = append(errs, fmt.Errorf("%s must be positive (at most %g), found %g", f.name, f.most, f.value))
		}
	}
	return errors.Join(errs...)
}

// withDefaults fills in the documented defaults.
func (o *Options) withDefaults() Options {
	var full Options
	if o != nil {
		full = *o
	}
	if full.MaxIter == 0 {
		full.MaxIter = defaultMaxIter
	}
	full.LearnNoise = full.LearnNoise || full.LearnSensorNoise
	set := func(v *float64, value float64) {
		if *v == 0 {
			*v = value
		}
	}
	set(&full.Sanity.ChiSquare, 2)
	set(&full.Sanity.Sensor, 6)
	set(&full.Sanity.Health, 25)
	set(&full.Sanity.Faulty, 0.2)
	set(&full.Sanity.Unfinished, 0.01)
	return full
}
