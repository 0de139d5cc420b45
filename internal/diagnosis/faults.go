package diagnosis

import (
	"fmt"
	"slices"

	"github.com/calamp/calamp/channel"
)

const (
	// manyBroken is the part of the sensors that may be broken before the model
	// is to blame: the same limit as online, where it is the sample.
	manyBroken = 0.2
)

func (r *Run) isBroken(mu int) bool { return r.state.OutOfOrder(mu) }

// outOfOrder is isBroken of each sensor.
func (r *Run) outOfOrder() []bool {
	broken := make([]bool, r.state.M)
	for mu := range broken {
		broken[mu] = r.isBroken(mu)
	}
	return broken
}

// BrokenSensors lists them in order.
func (r *Run) BrokenSensors() []channel.BrokenSensor { return r.broken() }

func (r *Run) findBroken() []channel.BrokenSensor {
	var list []channel.BrokenSensor
	for mu := range r.state.M {
		if r.isBroken(mu) {
			b := channel.BrokenSensor{Sensor: mu, Probability: r.state.Broken[mu]}
			b.Fault, b.S = r.diagnose(mu)
			list = append(list, b)
		}
	}
	return list
}

// diagnose says how the readings of a broken sensor differ from what the
// others predict; s is the calibration that would explain them.
func (r *Run) diagnose(mu int) (fault channel.Fault, s float64) {
	st := r.state
	y := st.Y[mu*st.Each : (mu+1)*st.Each]
	if stuck(y) {
		return channel.Stuck, 0
	}
	if !r.blind() {
		return channel.Inconsistent, 0
	}
	s = r.calibration().Fit(r.stats(mu))
	if lo, hi := r.bounds(); (s < lo || s > hi) && st.Consistent(mu) {
		return channel.OutOfRange, s
	}
	return channel.Inconsistent, 0
}

// Calibration is what is known of s in the end; nil where the channel does not
// calibrate. The state's statistics are those of a working sensor's readings within the
// limits: of a broken one nothing is known, and one with clipped readings has the
// Gaussian of its mean and variance.
func (r *Run) Calibration() *channel.Posteriors {
	if !r.blind() {
		return nil
	}
	s := r.state
	c := &channel.Posteriors{Prior: r.calibration(), Stats: slices.Clone(s.Stats)}
	limit := channel.LimitOf(r.model().Channel)
	for mu := range s.M {
		if r.isBroken(mu) {
			clear(c.Of(mu))
		} else if channel.AnyClipped(s.Y[mu*s.Each:(mu+1)*s.Each], limit) && s.SVar[mu] > 0 {
			c.Prior.SetNormal(c.Of(mu), s.S[mu], s.SVar[mu])
		}
	}
	return c
}

// manyBroken reports whether so many sensors are called broken that it is the model that is in doubt.
func (r *Run) manyBroken() bool {
	return float64(len(r.BrokenSensors())) > manyBroken*float64(r.state.M)
}

// LeftOut is the warning of broken sensors among m.
func LeftOut(list []channel.BrokenSensor, m int) Warning {
	w := Warning{Code: SensorBroken}
	for _, b := range list {
		w.Sensors = append(w.Sensors, b.Sensor)
	}
	verb := "are broken, and were"
	if len(list) == 1 {
		verb = "is broken, and was"
	}
	w.Message = fmt.Sprintf("%d of %d sensors %s left out: %v", len(list), m, verb, someBroken(list))
	return w
}

func (r *Run) warnBroken() *Warning {
	list := r.BrokenSensors()
	if len(list) == 0 {
		return nil
	}
	w := LeftOut(list, r.state.M)
	if !r.manyBroken() {
		return &w
	}
	outside := 0
	for _, b := range list {
		if b.Fault == channel.OutOfRange {
			outside++
		}
	}
	w.Code = ManyBroken
	w.Message += "; with so many the model is in doubt: the noise variance"
	if 2*outside > len(list) {
		w.Message += ", and most of all the range of s, which may be too narrow"
	} else if r.blind() {
		w.Message += ", the range of s, the prior of the signals, or W"
	} else {
		w.Message += ", the known calibration, the prior of the signals, or W"
	}
	return &w
}

// someBroken names the first few.
func someBroken(list []channel.BrokenSensor) string {
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
