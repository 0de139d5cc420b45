package online

import (
	"crypto/sha256"
	"encoding"
	"encoding/hex"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/calamp/calamp"
	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/operator"
	"github.com/calamp/calamp/prior"
	"github.com/calamp/calamp/solver"
)

// Identity is what a state is good for: one matrix, one model, and the options
// that change what is learned.
type Identity struct {
	Fingerprint Fingerprint // SHA-256 of Model and W, see docs/format/state.md
	Model       string      // in lines of text, with the size of W
}

// Fingerprint is a SHA-256.
type Fingerprint [sha256.Size]byte

// String is in hexadecimal digits.
func (f Fingerprint) String() string { return hex.EncodeToString(f[:]) }

// Identify takes the fingerprint of the matrix w, whatever precision it is
// stored in, the prior, the channel and those options that change the recursion:
// Threads and Freeze do not, and neither do MaxIter, Tol and Damping, unless
// Tol is negative, where the iterations are counted, nor Precision, unless W is
// rounded for good.
//
// A prior must be a [prior.Named] or an encoding.TextMarshaler, and so must a
// channel ([channel.Named]). A W must show its entries ([operator.Matrix]) or say what it is
// made of ([operator.Structured]). Other errors are those of rows of W that could not be read.
func Identify(w operator.Operator, p prior.Prior, g channel.Calibrating, opt *Options) (Identity, error) {
	signal, err := describePrior(p)
	if err != nil {
		return Identity{}, err
	}
	sensor, err := describeChannel(g)
	if err != nil {
		return Identity{}, err
	}
	m, n := w.Dims()
	o := opt.withDefaults()
	lines := []string{
		fmt.Sprintf("matrix sensors=%d entries=%d%s", m, n, describeMatrix(w)),
		"signal " + signal,
		"calibration " + describeCalibration(g, &o),
		describeNoise(channel.NoiseOf(g), &o),
		describe(fmt.Sprintf("recursion commit=%v scale-step=%t variance=%s", o.Commit, !o.NoScaleStep, squares(o.Variance)), "memory", o.Memory),
	}
	if order, each, _ := calamp.RowsOfSensors(o.Sensors, m); order != nil {
		places := make([]float64, len(order))
		for i, row := range order {
			places[i] = float64(row)
		}
		lines = append(lines, fmt.Sprintf("sensors of %d rows=%x", each, sha256.Sum256(appendFloats(nil, places))))
	}
	if sensor != "" {
		lines = append(lines, "channel "+sensor)
	}
	if o.Commit == Sane {
		s := o.Sanity
		lines = append(lines, describe("sanity", "chi-square", s.ChiSquare, "sensor", s.Sensor, "health", s.Health, "faulty", s.Faulty, "unfinished", s.Unfinished))
	}
	if o.Tol < 0 {
		lines = append(lines, fmt.Sprintf("iterations exactly=%d damping=%v", o.MaxIter, o.Damping))
	}
	if o.Precision == solver.SinglePrecision {
		lines = append(lines, "precision f32")
	}
	for j, d := range o.SensorDerivatives {
		sum, err := fingerprint("derivative\n", d.D)
		if err != nil {
			return Identity{}, err
		}
		line := fmt.Sprintf("parameter of sensors %d derivative=%v", j, sum)
		if o.SensorSpread != nil {
			line += fmt.Sprintf(" spread=%g", o.SensorSpread[j])
		}
		lines = append(lines, line)
	}
	id := Identity{Model: strings.Join(lines, "\n") + "\n"}
	id.Fingerprint, err = fingerprint(id.Model, w)
	return id, err
}

// describeMatrix identifies a matrix that is no table; empty for a table.
func describeMatrix(w operator.Operator) string {
	if s, ok := w.(operator.Structured); ok {
		return fmt.Sprintf(" structure=%q", s)
	}
	return ""
}

// describeCalibration identifies what is known of the sensors.
func describeCalibration(g channel.Calibrating, o *Options) string {
	known := g.Calibration()
	if offsets, ok := known.(channel.Offsetting); ok && o.LearnOffsets {
		known = offsets.WithOffsetSD(math.NaN()) // learned
	}
	name := known.Name()
	if o.Phases != nil {
		name += fmt.Sprintf(" nominal phases=%x", sha256.Sum256(appendFloats(nil, o.Phases)))
	}
	return name
}

func describeNoise(variance float64, o *Options) string {
	switch {
	case o.LearnSensorNoise:
		return "noise variances=learned"
	case o.LearnNoise:
		return "noise variance=learned"
	case o.NoiseVar != nil:
		return fmt.Sprintf("noise variances=%x", sha256.Sum256(appendFloats(nil, o.NoiseVar)))
	}
	return describe("noise", "variance", variance)
}

// describePrior identifies a prior.
func describePrior(p prior.Prior) (string, error) {
	if named, ok := p.(prior.Named); ok {
		return named.Name(), nil
	}
	return textOf("prior", p)
}

// describeChannel identifies a channel; empty for a gain, as there were no others once.
func describeChannel(c channel.Calibrating) (string, error) {
	named, ok := c.(channel.Named)
	switch {
	case !ok:
		return textOf("channel", c)
	case named.Name() == (channel.Gain{}).Name():
		return "", nil
	}
	return named.Name(), nil
}

// textOf is what a type of a user's own says of itself.
func textOf(what string, v any) (string, error) {
	text, ok := v.(encoding.TextMarshaler)
	if !ok {
		return "", fmt.Errorf("a %s of type %T has no fingerprint: it needs a method MarshalText that identifies it", what, v)
	}
	b, err := text.MarshalText()
	return strconv.Quote(string(b)), err
}

// describe is a line of names and numbers, in the shortest form that gives the
// same bits when read.
func describe(line string, pairs ...any) string {
	for i := 0; i < len(pairs); i += 2 {
		line += fmt.Sprintf(" %s=%s", pairs[i], strconv.FormatFloat(pairs[i+1].(float64), 'g', -1, 64))
	}
	return line
}

const fingerprintMagic = "calamp state fingerprint 1\n"

// fingerprint is the SHA-256 of the model's lines and of the entries of W, row by
// row, as float64, little endian; or of what it is made of.
func fingerprint(model string, w operator.Operator) (f Fingerprint, err error) {
	h := sha256.New()
	h.Write([]byte(fingerprintMagic + model))
	if err := operator.Identify(h, w); err != nil {
		return f, err
	}
	h.Sum(f[:0])
	return f, nil
}

// difference is the first line in which two models differ, and both of them when
// it is only W.
func difference(there, here string) string {
	a, b := strings.Split(there, "\n"), strings.Split(here, "\n")
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return fmt.Sprintf("the state has %q, this run has %q", a[i], b[i])
		}
	}
	return "the model is the same, but the entries of W are not"
}

// squares is which variances a stream converges with: those on demand are the exact ones.
func squares(v solver.Variance) solver.Variance {
	if v == solver.OnDemand {
		return solver.Exact
	}
	return v
}
