package calamp

import (
	"fmt"
	"math"
	"slices"

	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/internal/quadrature"
)

// BrokenSensor is a sensor whose readings had no part in the result.
type BrokenSensor struct {
	Sensor      int           // row of W, from 0
	Probability float64       // of being broken, above 1/2
	Fault       channel.Fault // what is wrong with it, as far as its readings tell
	S           float64       // where Fault is OutOfRange: the calibration they want; otherwise 0
}

const (
	// brokenAbove is the probability above which a sensor is listed as broken.
	brokenAbove = 0.5

	// consistent is the largest mean χ² of a broken sensor's readings at a
	// calibration of its own, for which that calibration is believed.
	consistent = 36

	// manyBroken is the part of the sensors that may be broken before the model
	// is to blame: the same limit as online, where it is the sample.
	manyBroken = 0.2
)

// learnFaults re-estimates what is not given of the broken sensors, from the
// probability of each sensor to be one; nil before the first iteration.
func (r *run) learnFaults(broken []float64) {
	given, _ := r.problem.Channel.(channel.Faulty)
	if f, ok := r.engine.Channel.(channel.Faulty); ok { // not while noise is added, see amp.Joint
		f.Rate, f.Var = given.Rate, given.Var
		r.engine.Channel = f.Learned(broken, r.engine.Y, r.p)
	}
}

func (r *run) isBroken(mu int) bool { return r.engine.Broken[mu] > brokenAbove }

// brokenSensors lists them in order.
func (r *run) brokenSensors() []BrokenSensor {
	var list []BrokenSensor
	for mu := range r.m {
		if r.isBroken(mu) {
			b := BrokenSensor{Sensor: mu, Probability: r.engine.Broken[mu]}
			b.Fault, b.S = r.diagnose(mu)
			list = append(list, b)
		}
	}
	return list
}

// diagnose tells how the readings of a broken sensor differ from what the
// others predict; s is the calibration that would explain them.
func (r *run) diagnose(mu int) (fault channel.Fault, s float64) {
	y := r.engine.Y[mu*r.p : (mu+1)*r.p]
	present := slices.DeleteFunc(slices.Clone(y), math.IsNaN)
	if len(present) > 1 && slices.Min(present) == slices.Max(present) {
		return channel.Stuck, 0
	}
	if !r.blind {
		return channel.Inconsistent, 0
	}
	s = quadrature.GainMode(0, r.engine.Tau[mu], r.engine.B[mu])
	chi := 0.0
	for k, v := range y {
		if j := mu*r.p + k; !math.IsNaN(v) {
			d := s*v - r.engine.Omega[j]
			chi += d * (d / (r.engine.V[j] + r.gain.NoiseVar))
		}
	}
	if s > 0 && (s < r.gain.Prior.Lo || s > r.gain.Prior.Hi) && chi <= consistent*float64(len(present)) {
		return channel.OutOfRange, s
	}
	return channel.Inconsistent, 0
}

// calibration is what is known of s in the end. The engine's statistics are those
// of a working sensor's readings within the limits: of a broken one nothing is
// known, and one with clipped readings has the Gaussian of its mean and variance.
func (r *run) calibration() *channel.Posteriors {
	e := r.engine
	c := &channel.Posteriors{Prior: r.gain.Prior, Count: slices.Clone(e.Count), Tau: slices.Clone(e.Tau), B: slices.Clone(e.B)}
	for mu := range r.m {
		if r.isBroken(mu) {
			c.Count[mu], c.Tau[mu], c.B[mu] = 0, 0, 0
		} else if r.gain.ClipsAny(e.Y[mu*r.p:(mu+1)*r.p]) && e.SVar[mu] > 0 {
			c.Count[mu], c.Tau[mu], c.B[mu] = 0, 1/e.SVar[mu], e.S[mu]/e.SVar[mu]
		}
	}
	return c
}

func (r *run) warnBroken(res *Result) *Warning {
	if len(res.BrokenSensors) == 0 {
		return nil
	}
	w := Warning{Code: SensorBroken}
	outside := 0
	for _, b := range res.BrokenSensors {
		w.Sensors = append(w.Sensors, b.Sensor)
		if b.Fault == channel.OutOfRange {
			outside++
		}
	}
	verb := "are broken, and were"
	if len(w.Sensors) == 1 {
		verb = "is broken, and was"
	}
	w.Message = fmt.Sprintf("%d of %d sensors %s left out: %v", len(w.Sensors), r.m, verb, someBroken(res.BrokenSensors))
	if float64(len(w.Sensors)) <= manyBroken*float64(r.m) {
		return &w
	}
	w.Code = ManyBroken
	w.Message += "; with so many it is the model that is in doubt: the noise variance"
	if 2*outside > len(w.Sensors) {
		w.Message += ", and most of all the range of s, which may be too narrow"
	} else if r.blind {
		w.Message += ", the range of s, the prior of the signals, or W"
	} else {
		w.Message += ", the known calibration, the prior of the signals, or W"
	}
	return &w
}

// someBroken names the first few.
func someBroken(list []BrokenSensor) string {
	const shown = 3
	text := ""
	for i, b := range list[:min(shown, len(list))] {
		if i > 0 {
			text += ", "
		}
		text += b.String()
	}
	if more := len(list) - shown; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// String is such as "sensor 3 (out of range: its readings want s = 2.01)".
func (b BrokenSensor) String() string {
	if b.Fault == channel.OutOfRange {
		return fmt.Sprintf("sensor %d (%v: its readings want s = %.4g)", b.Sensor, b.Fault, b.S)
	}
	return fmt.Sprintf("sensor %d (%v)", b.Sensor, b.Fault)
}
