package sweep

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"

	"github.com/calamp/calamp/evolution"
	"github.com/calamp/calamp/recovery"
	"github.com/calamp/calamp/teacher"
)

// Joint is the correlation of any two of a point's signals where these share their entries, from 0 and below 1, in the shortest digits; it is empty where signals are independent.
type Joint string

// independentSignals is how a spec names those, in a list.
const independentSignals = "off"

// Joints is one or a list of [Joint]; in TOML numbers, and "off".
type Joints []Joint

// UnmarshalTOML implements toml.Unmarshaler.
func (j *Joints) UnmarshalTOML(v any) error {
	for _, entry := range listOf(v) {
		if entry == independentSignals {
			*j = append(*j, "")
			continue
		}
		c, err := toFloat(entry)
		if err != nil || !(c >= 0 && c < 1) {
			return fmt.Errorf("joint: expected the correlation of signals, from 0 and below 1, or %q, found %v", independentSignals, entry)
		}
		*j = append(*j, Joint(strconv.FormatFloat(math.Abs(c), 'g', -1, 64)))
	}
	return nil
}

// on reports whether signals share their entries.
func (j Joint) on() bool { return j != "" }

// correlation is the number.
func (j Joint) correlation() float64 {
	c, _ := strconv.ParseFloat(string(j), 64)
	return c
}

// validateJoint reports what joint signals cannot be asked for.
func (p Point) validateJoint() error {
	switch {
	case !p.Joint.on():
		return nil
	case p.Network != "":
		return errors.New("joint: signals that share their entries do not come out of a network; leave joint or network out")
	case p.Complex():
		return errors.New("joint: signals of a sweep that share their entries are real")
	case p.Algorithm != Offline && p.Algorithm != SE && p.Algorithm != Threshold:
		return fmt.Errorf("joint: expected offline, se or threshold, found %s", p.Algorithm)
	case p.Covariance != "":
		return errors.New("joint: signals that share their entries have covariances of their own: leave covariance out")
	case !p.independent() && (!p.Algorithm.synthetic() || p.Record.Prediction):
		return errors.New("joint: state evolution of signals that share their entries is for independent entries of W")
	}
	return p.jointModel().Validate()
}

// jointModel is the problem in the limit of large N.
func (p Point) jointModel() evolution.JointModel {
	m := evolution.JointModel{Model: p.model(), Correlation: p.Joint.correlation()}
	if p.Algorithm == Threshold {
		m.Alpha = 1 // it has none
	}
	return m
}

// withJoint has signals that share their entries in place of independent ones.
func (p Point) withJoint(t teacher.Teacher, seed uint64) teacher.Teacher {
	if p.Joint.on() {
		t.X = teacher.JointSignals(p.N, p.P, p.Density, p.signal().SignalVar, p.Joint.correlation(), seed)
	}
	return t
}

// jointThresholds are the lines of the phase diagram of joint signals at one density.
func jointThresholds(ctx context.Context, p Point) (*outcome, error) {
	m, v := p.jointModel(), Values{}
	v.set("alpha_min", recovery.AlphaMin(p.Density, p.P))
	known, err := evolution.JointAlphaCS(ctx, m)
	if err != nil {
		return nil, err
	}
	v.set("alpha_cs", known.Value)
	cal, err := evolution.JointAlphaCal(ctx, m, &evolution.ThresholdOptions{Target: p.Record.Target})
	if err != nil {
		return nil, err
	}
	return lines(v, cal), nil
}
