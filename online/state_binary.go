package online

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math"
)

// The binary form of a State, little endian, version 1:
//
//	0   4   "calS"
//	4   4   version, uint32
//	8   8   M, uint64
//	16  8   Samples, uint64
//	24  24  Quadratic, Volume, Retention, float64
//	48  32M Tau, B, Count (the statistics), Health, float64
//	    M   Flag, uint8
//	    4   CRC-32C of everything before
//
// Version 2, of a state with a learned model of three parameters, has at 48 these
// (density, signal mean, signal variance), noise variance and NoiseInformation, float64,
// and then goes on in the same way.
//
// Version 3 is for other numbers of statistics or parameters. It has at 48 the number of
// statistics of a sensor, uint32, the number of parameters, uint32 (2³²-1: there is no
// learned model), and then these, noise variance and NoiseInformation where there is a model,
// and goes on in the same way, statistic by statistic.
const (
	stateMagic = "calS"

	versionKnown   = 1 // nothing learned of the model
	versionLearned = 2 // a Gauss–Bernoulli prior
	versionGeneral = 3

	stateHeader = 48
	gainWidth   = 3 // statistics in versions 1 and 2: those of a gain
	gaussValues = 3 // parameters in version 2

	noModel = math.MaxUint32
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func (s *State) version() uint32 {
	switch m := s.Model; {
	case s.Width() != gainWidth:
	case m == nil:
		return versionKnown
	case len(m.Values) == gaussValues:
		return versionLearned
	}
	return versionGeneral
}

// AppendBinary implements encoding.BinaryAppender.
func (s *State) AppendBinary(b []byte) ([]byte, error) {
	start := len(b)
	le := binary.LittleEndian
	b = append(b, stateMagic...)
	b = le.AppendUint32(b, s.version())
	b = le.AppendUint64(b, uint64(s.Sensors()))
	b = le.AppendUint64(b, s.Samples)
	b = appendFloats(b, []float64{s.Quadratic, s.Volume, s.Retention})
	if s.version() == versionGeneral {
		values := uint32(noModel)
		if s.Model != nil {
			values = uint32(len(s.Model.Values))
		}
		b = le.AppendUint32(b, uint32(s.Width()))
		b = le.AppendUint32(b, values)
	}
	if m := s.Model; m != nil {
		b = appendFloats(b, m.Values)
		b = appendFloats(b, []float64{m.NoiseVar, m.NoiseInformation})
	}
	width := s.Width()
	for j := range width {
		for at := j; at < len(s.Stats); at += width {
			b = le.AppendUint64(b, math.Float64bits(s.Stats[at]))
		}
	}
	b = appendFloats(b, s.Health)
	for _, f := range s.Flag {
		b = append(b, byte(f))
	}
	return le.AppendUint32(b, crc32.Checksum(b[start:], castagnoli)), nil
}

// MarshalBinary implements encoding.BinaryMarshaler: little endian, versioned,
// with a checksum.
func (s *State) MarshalBinary() ([]byte, error) {
	return s.AppendBinary(make([]byte, 0, 2*stateHeader+8*len(s.Stats)+9*s.Sensors()))
}

// UnmarshalBinary implements encoding.BinaryUnmarshaler. It refuses what is
// truncated, altered, or of a version it does not know.
func (s *State) UnmarshalBinary(b []byte) error {
	le := binary.LittleEndian
	if len(b) < stateHeader+4 || string(b[:4]) != stateMagic {
		return errors.New("state: this is no calibration state")
	}
	version := le.Uint32(b[4:])
	if version < versionKnown || version > versionGeneral {
		return fmt.Errorf("state: format version %d, this program reads versions up to %d", version, versionGeneral)
	}
	width, values, rest := uint64(gainWidth), uint64(gaussValues), b[stateHeader:len(b)-4]
	switch version {
	case versionKnown:
		values = noModel
	case versionGeneral:
		if len(rest) < 8 {
			return errors.New("state: the file is truncated")
		}
		width, values, rest = uint64(le.Uint32(rest)), uint64(le.Uint32(rest[4:])), rest[8:]
	}
	model := uint64(0)
	if values != noModel {
		model = 8 * (values + 2)
	}
	m, size := le.Uint64(b[8:]), uint64(len(rest))
	if m > size || width > size || model > size || size != model+(8*width+9)*m {
		return fmt.Errorf("state: %d bytes cannot hold %d sensors: the file is truncated or damaged", len(b), m)
	}
	body := b[:len(b)-4]
	if crc32.Checksum(body, castagnoli) != le.Uint32(b[len(body):]) {
		return errors.New("state: the checksum does not match: the file is damaged")
	}
	read := newState(int(m), int(width), 1)
	read.Samples = le.Uint64(b[16:])
	read.Quadratic, read.Volume, read.Retention = floatAt(b[24:]), floatAt(b[32:]), floatAt(b[40:])
	next := func() float64 {
		v := floatAt(rest)
		rest = rest[8:]
		return v
	}
	if values != noModel {
		read.Model = &Model{Values: make([]float64, values)}
		for i := range read.Model.Values {
			read.Model.Values[i] = next()
		}
		read.Model.NoiseVar, read.Model.NoiseInformation = next(), next()
	}
	for j := range int(width) {
		for at := j; at < len(read.Stats); at += int(width) {
			read.Stats[at] = next()
		}
	}
	for mu := range read.Health {
		read.Health[mu] = next()
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

func floatAt(b []byte) float64 { return math.Float64frombits(binary.LittleEndian.Uint64(b)) }

func appendFloats(b []byte, v []float64) []byte {
	for _, x := range v {
		b = binary.LittleEndian.AppendUint64(b, math.Float64bits(x))
	}
	return b
}
