package online

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math"
	"slices"

	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/internal/amp"
	"github.com/calamp/calamp/prior"
)

// State is all that a Calibrator remembers: what it takes to go on after an
// interruption with the same bits.
type State struct {
	// Statistics of the M sensors over the samples absorbed (see
	// [channel.Gain]): precision, precision times mean, number of readings. Of
	// a flagged sensor: since it was flagged.
	Tau, B, Count []float64

	Health []float64 // M, cumulative sums (see [Sanity])
	Flag   []Flag    // M

	// The scale's evidence over the samples absorbed, without flagged sensors:
	// Σ ω²/D + Σ x̂(λ-x̂)/Σ and Σ V g².
	Quadratic, Volume float64

	Retention float64 // factor that tempers the past at the next sample, in (0, 1]
	Samples   uint64  // committed so far

	Model *Model // as learned so far; nil when it is given, and before the first sample
}

func newState(m int, retention float64) State {
	return State{
		Tau: make([]float64, m), B: make([]float64, m), Count: make([]float64, m),
		Health: make([]float64, m), Flag: make([]Flag, m), Retention: retention,
	}
}

// Snapshot returns a copy of the state.
func (c *Calibrator) Snapshot() *State {
	s := c.state
	s.Tau, s.B, s.Count = slices.Clone(s.Tau), slices.Clone(s.B), slices.Clone(s.Count)
	s.Health, s.Flag = slices.Clone(s.Health), slices.Clone(s.Flag)
	if s.Model != nil {
		model := *s.Model
		s.Model = &model
	}
	return &s
}

// Restore continues from a state: the samples that follow give the same bits as
// if there had been no interruption. A state that is not one of M sensors, or
// holds what no stream leaves behind, is an error and changes nothing.
//
// Without forgetting (Memory 0) the state's Retention is not used.
func (c *Calibrator) Restore(s *State) error {
	if err := s.Validate(); err != nil {
		return err
	}
	if len(s.Tau) != c.m {
		return fmt.Errorf("the state is of %d sensors, but W is %d×%d", len(s.Tau), c.m, c.n)
	}
	copy(c.state.Tau, s.Tau)
	copy(c.state.B, s.B)
	copy(c.state.Count, s.Count)
	copy(c.state.Health, s.Health)
	copy(c.state.Flag, s.Flag)
	c.state.Quadratic, c.state.Volume, c.state.Samples = s.Quadratic, s.Volume, s.Samples
	c.state.Model = nil
	if s.Model != nil && c.learner != nil {
		model := *s.Model
		c.state.Model = &model
		c.setModel(model)
	}
	c.state.Retention = min(s.Retention, c.opt.nominalRetention())
	if c.opt.Memory == 0 || c.opt.Commit == Always {
		c.state.Retention = c.opt.nominalRetention()
	}
	return nil
}

// Validate reports what no stream leaves behind.
func (s *State) Validate() error {
	m := len(s.Tau)
	if len(s.B) != m || len(s.Count) != m || len(s.Health) != m || len(s.Flag) != m {
		return fmt.Errorf("state: %d, %d, %d, %d and %d values of Tau, B, Count, Health and Flag, expected one a sensor", m, len(s.B), len(s.Count), len(s.Health), len(s.Flag))
	}
	for mu := range m {
		if !(s.Tau[mu] >= 0) || !(s.Count[mu] >= 0) || !allFinite([]float64{s.Tau[mu], s.B[mu], s.Count[mu], s.Health[mu]}) || s.Flag[mu] > Inconsistent {
			return fmt.Errorf("state: sensor %d has τ = %g, B = %g, count %g, health %g, flag %d", mu, s.Tau[mu], s.B[mu], s.Count[mu], s.Health[mu], s.Flag[mu])
		}
	}
	if !allFinite([]float64{s.Quadratic, s.Volume}) || !(s.Retention > 0 && s.Retention <= 1) {
		return fmt.Errorf("state: scale sums %g and %g, retention %g", s.Quadratic, s.Volume, s.Retention)
	}
	if s.Model != nil {
		if err := s.Model.Validate(); err != nil {
			return fmt.Errorf("state: learned model: %w", err)
		}
	}
	return nil
}

// The binary form of a State, little endian, version 1:
//
//	0   4   "calS"
//	4   4   version, uint32
//	8   8   M, uint64
//	16  8   Samples, uint64
//	24  24  Quadratic, Volume, Retention, float64
//	48  32M Tau, B, Count, Health, float64
//	    M   Flag, uint8
//	    4   CRC-32C of everything before
//
// Version 2, of a state with a learned model, has at 48 density, signal mean,
// signal variance, noise variance and NoiseInformation, float64, and then goes on
// in the same way.
const (
	stateMagic        = "calS"
	stateVersion      = 1
	stateVersionModel = 2
	stateHeader       = 48
	stateModel        = 40
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// AppendBinary implements encoding.BinaryAppender.
func (s *State) AppendBinary(b []byte) ([]byte, error) {
	start := len(b)
	le := binary.LittleEndian
	b = append(b, stateMagic...)
	version := uint32(stateVersion)
	if s.Model != nil {
		version = stateVersionModel
	}
	b = le.AppendUint32(b, version)
	b = le.AppendUint64(b, uint64(len(s.Tau)))
	b = le.AppendUint64(b, s.Samples)
	b = appendFloats(b, []float64{s.Quadratic, s.Volume, s.Retention})
	if m := s.Model; m != nil {
		b = appendFloats(b, []float64{m.Signal.Density, m.Signal.SignalMean, m.Signal.SignalVar, m.NoiseVar, m.NoiseInformation})
	}
	for _, v := range [][]float64{s.Tau, s.B, s.Count, s.Health} {
		b = appendFloats(b, v)
	}
	for _, f := range s.Flag {
		b = append(b, byte(f))
	}
	return le.AppendUint32(b, crc32.Checksum(b[start:], castagnoli)), nil
}

// MarshalBinary implements encoding.BinaryMarshaler: little endian, versioned,
// with a checksum.
func (s *State) MarshalBinary() ([]byte, error) {
	return s.AppendBinary(make([]byte, 0, stateHeader+stateModel+33*len(s.Tau)+4))
}

// UnmarshalBinary implements encoding.BinaryUnmarshaler. It refuses what is
// truncated, altered, or of a version it does not know.
func (s *State) UnmarshalBinary(b []byte) error {
	le := binary.LittleEndian
	if len(b) < stateHeader+4 || string(b[:4]) != stateMagic {
		return errors.New("state: this is no calibration state")
	}
	version, header := le.Uint32(b[4:]), uint64(stateHeader)
	switch version {
	case stateVersion:
	case stateVersionModel:
		header += stateModel
	default:
		return fmt.Errorf("state: format version %d, this program reads versions up to %d", version, stateVersionModel)
	}
	m := le.Uint64(b[8:])
	if m > uint64(len(b)) || uint64(len(b)) != header+33*m+4 {
		return fmt.Errorf("state: %d bytes cannot hold %d sensors: the file is truncated or damaged", len(b), m)
	}
	body := b[:len(b)-4]
	if crc32.Checksum(body, castagnoli) != le.Uint32(b[len(body):]) {
		return errors.New("state: the checksum does not match: the file is damaged")
	}
	read := newState(int(m), 1)
	read.Samples = le.Uint64(b[16:])
	rest := b[24:]
	next := func() float64 {
		v := math.Float64frombits(le.Uint64(rest))
		rest = rest[8:]
		return v
	}
	read.Quadratic, read.Volume, read.Retention = next(), next(), next()
	if version == stateVersionModel {
		read.Model = &Model{Signal: prior.GaussBernoulli{Density: next(), SignalMean: next(), SignalVar: next()}, NoiseVar: next(), NoiseInformation: next()}
	}
	for _, v := range [][]float64{read.Tau, read.B, read.Count, read.Health} {
		for i := range v {
			v[i] = next()
		}
	}
	for mu := range read.Flag {
		read.Flag[mu] = Flag(rest[mu])
	}
	if err := read.Validate(); err != nil {
		return err
	}
	*s = read
	return nil
}

func appendFloats(b []byte, v []float64) []byte {
	for _, x := range v {
		b = binary.LittleEndian.AppendUint64(b, math.Float64bits(x))
	}
	return b
}

// Posterior is what has been learned of the sensors.
type Posterior struct {
	S       []float64 // M, posterior means of the calibration variables (y = z/s)
	SVar    []float64 // M, posterior variances, at a fixed global scale
	Gain    []float64 // M, the multiplicative gains 1/S
	Count   []float64 // M, readings absorbed; a weight when there is forgetting
	ScaleSD float64   // relative standard deviation of the global scale, common to all of S
	Samples uint64    // committed

	// Model is that of signals and noise as learned; nil when it was given, and
	// before the first sample.
	Model *Model

	// Calibration is what S and SVar come from, and gives intervals.
	Calibration *channel.Posteriors

	// Sensors that are not used at present. Their S is what they have been
	// recalibrated to since they were flagged.
	Flagged []FlaggedSensor
}

// FlaggedSensor is a sensor taken out of use, and why.
type FlaggedSensor struct {
	Sensor int // row of W, from 0
	Reason Flag
}

// Posterior returns the present posterior of the sensors, in new slices.
func (c *Calibrator) Posterior() *Posterior {
	s := &c.state
	p := &Posterior{
		S: make([]float64, c.m), SVar: make([]float64, c.m), Gain: make([]float64, c.m),
		Count: slices.Clone(s.Count), ScaleSD: c.scaleSD(), Samples: s.Samples,
	}
	if s.Model != nil {
		model := *s.Model
		p.Model = &model
	}
	p.Calibration = &channel.Posteriors{Prior: c.gain.Prior, Count: p.Count, Tau: slices.Clone(s.Tau), B: slices.Clone(s.B)}
	for mu := range c.m {
		p.S[mu], p.SVar[mu] = c.gain.Prior.Posterior(s.Count[mu], s.Tau[mu], s.B[mu])
		p.Gain[mu] = 1 / p.S[mu]
		if s.Flag[mu] != Healthy {
			p.Flagged = append(p.Flagged, FlaggedSensor{mu, s.Flag[mu]})
		}
	}
	return p
}

// scaleSD is the standard deviation of the global scale given the samples
// absorbed and the sensors in use.
func (c *Calibrator) scaleSD() float64 {
	s := &c.state
	tau, b, count := slices.Clone(s.Tau), slices.Clone(s.B), slices.Clone(s.Count)
	for mu, f := range s.Flag {
		if f != Healthy {
			tau[mu], b[mu], count[mu] = 0, 0, 0
		}
	}
	return amp.ScaleSD(c.gain, count, tau, b, s.Quadratic, s.Volume)
}
