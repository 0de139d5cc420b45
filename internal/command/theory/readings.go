package theory

import (
	"math"

	"github.com/spf13/pflag"

	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/evolution"
	"github.com/calamp/calamp/internal/command/console"
)

// registerReadings adds what sensors make of z/s: codes, signs, counts, or noise of their own.
func (t *theory) registerReadings(flags *pflag.FlagSet) {
	t.truth.RegisterNoiseAt(flags)
	t.codes.Register(flags)
	flags.Float64Var(&t.zMean, "z-mean", 0, "mean of z, which photons need: what signals have in common behind masks of zeros and ones.\nUnits are those of z, where entries of W have the variance 1/N about their mean")
}

// takeReadings completes these flags, and refuses what they exclude.
func (t *theory) takeReadings(flags *pflag.FlagSet) error {
	if err := t.truth.TakePhotons(flags, false); err != nil {
		return err
	}
	t.truth.NoisePhoton = t.truth.Channel().Own.Photon
	if err := t.codes.TakeNoise(flags, &t.truth); err != nil {
		return err
	}
	other := ""
	if t.truth.AtReading() {
		other = "noise at the reading"
	}
	if err := t.codes.Check(other); err != nil {
		return err
	}
	switch {
	case math.IsNaN(t.zMean) || math.IsInf(t.zMean, 0):
		return console.Usage("--z-mean: expected a finite number")
	case !t.reads() && t.zMean != 0:
		return console.Usage("--z-mean is for codes, signs, counts and noise at the reading: without them it changes nothing")
	case !t.reads():
		return nil
	case t.codes.File() != "":
		return console.Usage("--sign %s: signs are predicted about one threshold: give a number", t.codes.File())
	}
	return t.codes.CheckSize(&t.truth)
}

// reads reports whether sensors make something else of (z + ε)/s than a reading.
func (t *theory) reads() bool { return t.codes.On() || t.truth.AtReading() }

// sensors is what they make; nil where that is the reading.
func (t *theory) sensors() *evolution.Readings {
	if !t.reads() {
		return nil
	}
	gain := t.truth.Channel()
	r := &evolution.Readings{Sensors: gain, Mean: t.zMean}
	if t.codes.On() {
		gain.Own = channel.Detector{}
		r.Sensors = t.codes.Of(gain, 0).(channel.Calibrating)
	}
	return r
}

// readingsJSON is what sensors make of z/s, in JSON.
func (t *theory) readingsJSON() console.Object {
	return append(t.codes.JSON(), "z_mean?", t.zMean)
}

// before is the noise before the division by s.
func (t *theory) before() float64 {
	if t.truth.AtReading() {
		return 0
	}
	return t.truth.NoiseVar
}
