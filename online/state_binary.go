package online

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"maps"
	"math"
	"slices"

	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/internal/amp"
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
//
// Version 4 is version 3 with more between Flag and the checksum: what is known of a
// drift, scenes, the alert, and forks (see [State.appendWatch]).
//
// Version 5 is version 4 with what says of the common scale behind that (see
// [State.appendScale]).
//
// Version 6 is version 5 with the samples that are kept to be solved together behind that: 8 OffsetSD, float64; 4 their
// number, uint32; of each M float64.
//
// Version 7 is version 6 with outliers, doubts and sensors behind that: 8 outlying readings, float64; 8 of how many,
// float64; the doubt of a given range (see [rangeDoubt]): 16 Chance, Apart, float64; 4 number of sensors whose noise was learned
// one by one, uint32, M or 0; of each Sum, float64, then of each Weight, float64; 24 Samples, Mean and Square of the
// signals' brightness, float64.
//
// Version 8, of a stream of complex readings, is version 7 with the columns of a reading behind the
// number of parameters: uint32, 2. Samples that are kept, and the patterns of scenes, then have two numbers a sensor, a real and an
// imaginary part; and behind it all there is the sensor whose phase is anchored, uint64 (2⁶⁴-1: none).
//
// Version 9 is version 8 with the spreads of parameters of sensors behind it all: 4 their number, uint32; of each float64.
//
// Version 10 is version 9 with 8, uint64, behind the number of samples that are kept: how many numbers say which matrix each of them has. These
// follow its readings, float64 (see [operator.Choice]).
//
// Version 11 is version 10 with the rows of a sensor, uint32, behind the columns, which are those of all its rows.
//
// Version 12 is version 11 with a block of samples that are to be solved together behind it all (see [State.appendBlock]).
const (
	stateMagic = "calS"

	versionKnown   = 1 // nothing learned of the model
	versionLearned = 2 // a Gauss–Bernoulli prior
	versionGeneral = 3
	versionWatched = 4 // drifts or changes are looked for
	versionPlaced  = 5 // signals of known variance, a learned range of s, or an anchor
	versionWarm    = 6 // samples kept to be solved together, or learned offsets
	versionSingle  = 7 // outliers are looked for, a given range is one that the gains may merely lie in, or the noise of every sensor is learned
	versionComplex = 8 // complex readings

	versionMoved  = 9  // parameters of every sensor
	versionChosen = 10 // samples with matrices of their own are kept
	versionRows   = 11 // sensors of several rows
	versionBlock  = 12 // samples of a block are kept

	versionLatest = versionBlock

	stateHeader = 48
	gainWidth   = 3 // statistics in versions 1 and 2: those of a gain
	gaussValues = 3 // parameters in version 2

	noModel = math.MaxUint32
	noPhase = math.MaxUint64
)

// mostRows bounds the rows of a sensor in a state that is read.
const mostRows = 1 << 20

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func (s *State) version() uint32 {
	switch m := s.Model; {
	case s.Block != nil:
		return versionBlock
	case s.Rows > 0:
		return versionRows
	case s.keptMatrix() > 0:
		return versionChosen
	case s.Spread != nil:
		return versionMoved
	case s.Complex:
		return versionComplex
	case s.Outliers != outlierCount{} || s.Doubt != rangeDoubt{} || s.Model.each() != nil || s.Brightness != brightness{}:
		return versionSingle
	case len(s.Warm) > 0 || s.OffsetSD > 0:
		return versionWarm
	case s.Signals != amp.SignalSums{} || s.Range != nil || s.Anchor.Set() || s.Alert.Noise || s.doubtsGiven():
		return versionPlaced
	case s.Drift != nil || len(s.Scenes) > 0 || len(s.Forks) > 0 || s.Alert != alert{}:
		return versionWatched
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
	if s.version() >= versionGeneral {
		values := uint32(noModel)
		if s.Model != nil {
			values = uint32(len(s.Model.Values))
		}
		b = le.AppendUint32(b, uint32(s.Width()))
		b = le.AppendUint32(b, values)
	}
	if s.version() >= versionComplex {
		b = le.AppendUint32(b, uint32(s.columns()))
	}
	if s.version() >= versionRows {
		b = le.AppendUint32(b, uint32(max(1, s.Rows)))
	}
	if m := s.Model; m != nil {
		b = appendFloats(b, m.Values)
		b = appendFloats(b, []float64{m.NoiseVar, m.NoiseInformation})
	}
	b = appendStats(b, s.Stats, s.Width())
	b = appendFloats(b, s.Health)
	for _, f := range s.Flag {
		b = append(b, byte(f))
	}
	if s.version() >= versionWatched {
		var err error
		if b, err = s.appendWatch(b); err != nil {
			return nil, err
		}
	}
	if s.version() >= versionPlaced {
		b = s.appendScale(b)
	}
	if s.version() >= versionWarm {
		b = appendFloats(b, []float64{s.OffsetSD})
		b = le.AppendUint32(b, uint32(len(s.Warm)))
		if s.version() >= versionChosen {
			b = le.AppendUint64(b, uint64(s.keptMatrix()))
		}
		for _, y := range s.Warm {
			b = appendFloats(b, y)
		}
	}
	if s.version() >= versionSingle {
		b = appendFloats(b, []float64{s.Outliers.Outlying, s.Outliers.Readings, s.Doubt.Chance, s.Doubt.Apart})
		n := s.Model.each()
		if n == nil {
			n = &sensorNoise{}
		}
		b = le.AppendUint32(b, uint32(len(n.Sum)))
		b = appendFloats(appendFloats(b, n.Sum), n.Weight)
		b = appendFloats(b, []float64{s.Brightness.Samples, s.Brightness.Mean, s.Brightness.Square})
	}
	if s.version() >= versionComplex {
		sensor := uint64(noPhase)
		if mu, ok := s.Anchor.PhaseSensor(); ok {
			sensor = uint64(mu)
		}
		b = le.AppendUint64(b, sensor)
	}
	if s.version() >= versionMoved {
		b = le.AppendUint32(b, uint32(len(s.Spread)))
		b = appendFloats(b, s.Spread)
	}
	if s.version() >= versionBlock {
		b = s.appendBlock(b)
	}
	return le.AppendUint32(b, crc32.Checksum(b[start:], castagnoli)), nil
}

// MarshalBinary implements encoding.BinaryMarshaler: little endian, versioned,
// with a checksum.
func (s *State) MarshalBinary() ([]byte, error) {
	return s.AppendBinary(nil)
}

// appendWatch appends what version 4 has more:
//
//	4   members of the drift, uint32; 0: drifts are not looked for
//	    of a drift: Since, uint64; Quadratic, Volume; Parts and Sums, one a member; Stats,
//	    member by member and there as above; Scores, member by member: float64
//	4   number of scenes, uint32; of each: Samples, float64; Last, uint64; Pattern, M float64
//	4   Alert: samples left, uint16; model, gains, uint8
//	4   number of forks, uint32; of each: model, gains, uint8; Accepted, uint64; Evidence,
//	    float64; Changed, M times uint8; bytes of its state, uint64, and the state
func (s *State) appendWatch(b []byte) ([]byte, error) {
	le := binary.LittleEndian
	if d := s.Drift; d == nil {
		b = le.AppendUint32(b, 0)
	} else {
		b = le.AppendUint32(b, uint32(len(d.Stats)))
		b = le.AppendUint64(b, d.Since)
		b = appendFloats(b, []float64{d.Quadratic, d.Volume})
		b = appendFloats(appendFloats(b, d.Parts), d.Sums)
		for _, stats := range d.Stats {
			b = appendStats(b, stats, s.Width())
		}
		for _, scores := range d.Scores {
			b = appendFloats(b, scores)
		}
	}
	b = appendScenes(b, s.Scenes)
	b = le.AppendUint16(b, uint16(s.Alert.Left))
	b = appendHypothesis(b, s.Alert.Hypothesis)
	b = le.AppendUint32(b, uint32(len(s.Forks)))
	for _, f := range s.Forks {
		b = appendHypothesis(b, f.Hypothesis)
		b = le.AppendUint64(b, uint64(f.Accepted))
		b = appendFloats(b, []float64{f.Evidence})
		for _, changed := range f.Changed {
			b = append(b, bit(changed))
		}
		at := len(b)
		b = le.AppendUint64(b, 0) // the state's length, below
		var err error
		if b, err = f.State.AppendBinary(b); err != nil {
			return nil, err
		}
		le.PutUint64(b[at:], uint64(len(b)-at-8))
	}
	return b, nil
}

// doubtsGiven reports whether a fork says that the range or the noise that was given does not hold.
func (s *State) doubtsGiven() bool {
	return slices.ContainsFunc(s.Forks, func(f fork) bool { return f.Range || f.Noise })
}

// appendScale appends what version 5 has more:
//
//	16  Active, Pull of the signals' sums, float64
//	4   1 where the distribution of s was learned, with 2 more where the range is too narrow
//	    4 more where the distribution is log-normal, and 8 more where one sensor in a thousand has an outlying gain, else 0, uint32; then Lo, Hi, Center, Precision, LogRatio, float64
//	12  the anchored mean of s, float64, 0 for none; number of anchored sensors, uint32;
//	    of each: row, uint64; s, float64
//
// In version 5 the first byte of a hypothesis has 1 for another model, 2 for another
// range, 4 for noise other than was given.
func (s *State) appendScale(b []byte) []byte {
	le := binary.LittleEndian
	b = appendFloats(b, []float64{s.Signals.Active, s.Signals.Pull})
	if r := s.Range; r == nil {
		b = le.AppendUint32(b, 0)
	} else {
		b = le.AppendUint32(b, 1+2*uint32(bit(r.TooNarrow))+4*uint32(bit(r.Prior.Log))+8*uint32(bit(r.Prior.Tail > 0)))
		b = appendFloats(b, []float64{r.Prior.Lo, r.Prior.Hi, r.Prior.Center, r.Prior.Precision, r.LogRatio})
	}
	b = appendFloats(b, []float64{s.Anchor.Mean})
	b = le.AppendUint32(b, uint32(len(s.Anchor.Sensors)))
	for _, mu := range slices.Sorted(maps.Keys(s.Anchor.Sensors)) {
		b = le.AppendUint64(b, uint64(mu))
		b = appendFloats(b, []float64{s.Anchor.Sensors[mu]})
	}
	return b
}

// appendStats appends statistics, statistic by statistic.
func appendStats(b []byte, stats []float64, width int) []byte {
	for j := range width {
		for at := j; at < len(stats); at += width {
			b = binary.LittleEndian.AppendUint64(b, math.Float64bits(stats[at]))
		}
	}
	return b
}

func appendScenes(b []byte, scenes []scene) []byte {
	b = binary.LittleEndian.AppendUint32(b, uint32(len(scenes)))
	for _, scene := range scenes {
		b = appendFloats(b, []float64{scene.Samples})
		b = binary.LittleEndian.AppendUint64(b, scene.Last)
		b = appendFloats(b, scene.Pattern)
	}
	return b
}

// appendBlock appends what version 12 has more: 4 number of samples, uint32; of each M float64, or two M, and what says which matrix it has; then what was known
// before them: statistics, there as above; 40 Quadratic, Volume, Active, Pull, Scale, float64; scenes, as above; 8 Novel, float64; 8 Learned, uint64.
func (s *State) appendBlock(b []byte) []byte {
	k := s.Block
	b = binary.LittleEndian.AppendUint32(b, uint32(len(k.Samples)))
	for _, y := range k.Samples {
		b = appendFloats(b, y)
	}
	b = appendStats(b, k.Stats, s.Width())
	b = appendFloats(b, []float64{k.Quadratic, k.Volume, k.Signals.Active, k.Signals.Pull, k.Scale})
	b = appendFloats(appendScenes(b, k.Scenes), []float64{k.Novel})
	return binary.LittleEndian.AppendUint64(b, k.Learned)
}

// block reads what appendBlock appends.
func (r *reader) block(s *State, m, width int) {
	k, each := &Block{}, m*s.columns()+r.matrix
	for range r.count(uint64(r.uint32()), 8*max(each, 1)) {
		k.Samples = append(k.Samples, r.floats(each))
	}
	k.Stats = r.stats(m, width)
	k.Quadratic, k.Volume = r.float(), r.float()
	k.Signals = amp.SignalSums{Active: r.float(), Pull: r.float()}
	k.Scale = r.float()
	k.Scenes = r.scenes(m * s.columns())
	k.Novel, k.Learned = r.float(), r.uint64()
	s.Block = k
}

func (r *reader) scenes(columns int) (scenes []scene) {
	for range r.count(uint64(r.uint32()), 8*(2+columns)) {
		scenes = append(scenes, scene{Samples: r.float(), Last: r.uint64(), Pattern: r.floats(columns)})
	}
	return scenes
}

func appendHypothesis(b []byte, h Hypothesis) []byte {
	return append(b, bit(h.Model)+2*bit(h.Range)+4*bit(h.Noise), bit(h.Gains))
}

func bit(v bool) byte {
	if v {
		return 1
	}
	return 0
}

// UnmarshalBinary implements encoding.BinaryUnmarshaler. It refuses what is
// truncated, altered, or of a version it does not know.
func (s *State) UnmarshalBinary(b []byte) error { return s.unmarshal(b, false) }

// unmarshal reads a state, or one of a fork, which has no forks itself.
func (s *State) unmarshal(b []byte, ofFork bool) error {
	le := binary.LittleEndian
	if len(b) < stateHeader+4 || string(b[:4]) != stateMagic {
		return errors.New("state: this is no calibration state")
	}
	version := le.Uint32(b[4:])
	if version < versionKnown || version > versionLatest {
		return fmt.Errorf("state: format version %d, this program reads versions up to %d", version, versionLatest)
	}
	body := b[:len(b)-4]
	intact := crc32.Checksum(body, castagnoli) == le.Uint32(b[len(body):])
	r := &reader{rest: body[8:], ofFork: ofFork}
	m := r.count(r.uint64(), 1)
	read := State{Samples: r.uint64()}
	read.Quadratic, read.Volume, read.Retention = r.float(), r.float(), r.float()
	width, values := gainWidth, uint32(gaussValues)
	switch {
	case version == versionKnown:
		values = noModel
	case version >= versionGeneral:
		width, values = r.count(uint64(r.uint32()), 1), r.uint32()
	}
	if version >= versionComplex {
		columns, rows := int(r.uint32()), 1
		if version >= versionRows {
			rows = int(r.uint32())
			read.Rows = rows
		}
		if read.Complex = columns == complexColumns*rows; rows < 1 || rows > mostRows || !read.Complex && columns != rows {
			return fmt.Errorf("state: readings of %d columns, of %d rows", columns, rows)
		}
		if rows == 1 {
			read.Rows = 0
		}
	}
	if values != noModel {
		read.Model = &Model{Values: r.floats(r.count(uint64(values), 8))}
		read.Model.NoiseVar, read.Model.NoiseInformation = r.float(), r.float()
	}
	read.Stats = r.stats(m, width)
	read.Health = r.floats(m)
	read.Flag = make([]Flag, 0, m) // at most as many as there are bytes
	for range m {
		read.Flag = append(read.Flag, Flag(r.byte()))
	}
	if version >= versionWatched {
		r.watch(&read, m, width)
	}
	if version >= versionPlaced {
		r.scale(&read, m)
	}
	if version >= versionWarm {
		read.OffsetSD = r.float()
		kept, each := uint64(r.uint32()), m*read.columns()
		if version >= versionChosen {
			r.matrix = r.count(r.uint64(), 8)
			each += r.matrix
		}
		for range r.count(kept, 8*max(each, 1)) {
			read.Warm = append(read.Warm, r.floats(each))
		}
	}
	if version >= versionSingle {
		read.Outliers = outlierCount{Outlying: r.float(), Readings: r.float()}
		read.Doubt = rangeDoubt{Chance: r.float(), Apart: r.float()}
		if sensors := r.count(uint64(r.uint32()), 16); sensors > 0 && read.Model != nil {
			read.Model.Sensors = &sensorNoise{Sum: r.floats(sensors), Weight: r.floats(sensors)}
		}
		read.Brightness = brightness{Samples: r.float(), Mean: r.float(), Square: r.float()}
	}
	if version >= versionComplex {
		if mu := r.uint64(); mu != noPhase {
			sensor := int(min(mu, math.MaxInt32))
			read.Anchor.Phase = &sensor
		}
	}
	if version >= versionMoved {
		if parameters := r.count(uint64(r.uint32()), 8); parameters > 0 {
			read.Spread = r.floats(parameters)
		}
	}
	if version >= versionBlock {
		r.block(&read, m, width)
	}
	switch {
	case r.err != nil && intact:
		return r.err
	case r.short || len(r.rest) > 0:
		return fmt.Errorf("state: %d bytes cannot hold %d sensors: the file is truncated or damaged", len(b), le.Uint64(b[8:]))
	case !intact:
		return errors.New("state: the checksum does not match: the file is damaged")
	case m == 0:
		return errors.New("state: it is of no sensors")
	}
	if err := read.Validate(); err != nil {
		return err
	}
	*s = read
	return nil
}

// reader takes numbers off the front of a state. Where there are too few bytes it
// says so in short, and returns zeros.
type reader struct {
	rest   []byte
	ofFork bool
	matrix int // numbers that say which matrix a kept sample has
	short  bool
	err    error // of a state within
}

// take returns the next n bytes.
func (r *reader) take(n int) []byte {
	if r.short || len(r.rest) < n {
		r.short = true
		return make([]byte, min(n, 8))
	}
	next := r.rest[:n]
	r.rest = r.rest[n:]
	return next
}

func (r *reader) byte() byte     { return r.take(1)[0] }
func (r *reader) uint16() uint16 { return binary.LittleEndian.Uint16(r.take(2)) }
func (r *reader) uint32() uint32 { return binary.LittleEndian.Uint32(r.take(4)) }
func (r *reader) uint64() uint64 { return binary.LittleEndian.Uint64(r.take(8)) }
func (r *reader) float() float64 { return floatAt(r.take(8)) }

// count is a number of things of at least so many bytes each, or 0 where that many
// do not fit in what is left.
func (r *reader) count(n uint64, bytes int) int {
	if n > uint64(len(r.rest)/bytes) {
		r.short = true
		return 0
	}
	return int(n)
}

func (r *reader) floats(n int) []float64 {
	out := make([]float64, r.count(uint64(n), 8))
	for i := range out {
		out[i] = r.float()
	}
	return out
}

// stats reads what appendStats appends.
func (r *reader) stats(m, width int) []float64 {
	if width > 0 && m > len(r.rest)/8/width {
		r.short = true
		return nil
	}
	out := make([]float64, m*width)
	for j := range width {
		for at := j; at < len(out); at += width {
			out[at] = r.float()
		}
	}
	return out
}

func (r *reader) hypothesis() Hypothesis {
	first := r.byte()
	return Hypothesis{Model: first&1 != 0, Range: first&2 != 0, Noise: first&4 != 0, Gains: r.byte() != 0}
}

// scale reads what appendScale appends.
func (r *reader) scale(s *State, m int) {
	s.Signals = amp.SignalSums{Active: r.float(), Pull: r.float()}
	if kind := r.uint32(); kind != 0 {
		prior := channel.GainPrior{Lo: r.float(), Hi: r.float(), Center: r.float(), Precision: r.float(), Log: kind&4 != 0, Tail: channel.LikeNoOther * float64(bit(kind&8 != 0))}
		s.Range = &LearnedRange{Prior: prior, LogRatio: r.float(), TooNarrow: kind&2 != 0}
	}
	s.Anchor.Mean = r.float()
	if sensors := min(r.count(uint64(r.uint32()), 16), m+1); sensors > 0 { // more than M are refused
		s.Anchor.Sensors = make(map[int]float64, sensors)
		for range sensors {
			mu := r.uint64()
			s.Anchor.Sensors[int(min(mu, math.MaxInt32))] = r.float()
		}
	}
}

// watch reads what appendWatch appends.
func (r *reader) watch(s *State, m, width int) {
	if r.short {
		return
	}
	if members := r.count(uint64(r.uint32()), 8*(2+m*(width+1))); members > 0 {
		d := &Drift{Since: r.uint64(), Quadratic: r.float(), Volume: r.float()}
		d.Parts, d.Sums = r.floats(members), r.floats(members)
		for range members {
			d.Stats = append(d.Stats, r.stats(m, width))
		}
		for range members {
			d.Scores = append(d.Scores, r.floats(m))
		}
		s.Drift = d
	}
	s.Scenes = r.scenes(m * s.columns())
	s.Alert = alert{Left: int(r.uint16())}
	s.Alert.Hypothesis = r.hypothesis()
	forks := r.count(uint64(r.uint32()), stateHeader+m)
	if forks > 0 && r.ofFork {
		r.err = errors.New("state: a fork with forks")
		return
	}
	for range forks {
		f := fork{Hypothesis: r.hypothesis(), Accepted: int(r.uint64()), Evidence: r.float(), State: new(State)}
		f.Changed = make([]bool, 0, m)
		for _, v := range r.take(m) {
			f.Changed = append(f.Changed, v != 0)
		}
		body := r.take(r.count(r.uint64(), 1))
		if r.short {
			return
		}
		if err := f.State.unmarshal(body, true); err != nil && r.err == nil {
			r.err = err
		}
		s.Forks = append(s.Forks, f)
	}
}

func floatAt(b []byte) float64 { return math.Float64frombits(binary.LittleEndian.Uint64(b)) }

func appendFloats(b []byte, v []float64) []byte {
	for _, x := range v {
		b = binary.LittleEndian.AppendUint64(b, math.Float64bits(x))
	}
	return b
}
