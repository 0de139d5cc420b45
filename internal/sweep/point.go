package sweep

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math"

	"github.com/calamp/calamp"
	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/evolution"
	"github.com/calamp/calamp/online"
	"github.com/calamp/calamp/prior"
	"github.com/calamp/calamp/solver"
	"github.com/calamp/calamp/teacher"
)

// Point is one run of a grid: all that its result depends on, and nothing else.
// Parameters that mean nothing to an algorithm are zero.
type Point struct {
	Algorithm Algorithm  `json:"algorithm"`
	N         int        `json:"n,omitempty"`
	Density   float64    `json:"density,omitempty"`
	Alpha     float64    `json:"alpha,omitempty"`
	P         int        `json:"p,omitempty"`
	NoiseVar  float64    `json:"noise_var,omitempty"`
	SRange    [2]float64 `json:"s_range,omitzero"`
	Phase     Phase      `json:"phase,omitempty"` // of complex problems; empty for real ones
	Joint     Joint      `json:"joint,omitempty"` // of signals that share their entries; empty for independent ones
	Seed      uint64     `json:"seed,omitempty"`

	Rows int `json:"rows_per_sensor,omitempty"` // of W that are read with one gain; 0 for one

	Matrix teacher.Ensemble `json:"matrix,omitzero"` // how W is drawn; zero for independent entries

	Network string `json:"network,omitempty"` // that signals come out of; empty for independent entries

	// SharedMatrix says that W is that of all such points of one N, α, density and seed.
	SharedMatrix bool `json:"shared_matrix,omitempty"`

	Covariance string   `json:"covariance,omitempty"` // diagonal or full
	Solver     Solver   `json:"solver,omitzero"`
	Record     Record   `json:"record,omitzero"`
	Rehearse   Rehearse `json:"rehearsal,omitzero"`
	problem    [8]byte  // see stream
	matrix     [8]byte  // the same of W, where it is shared; else zero
	key        string   // see Key
}

// problemFields are the parameters that describe the problem, without those of
// the algorithm that solves it.
type problemFields struct {
	N        int
	Density  float64
	Alpha    float64
	P        int
	NoiseVar float64
	SRange   [2]float64
	Seed     uint64
	Phase    Phase            `json:",omitempty"`
	Matrix   teacher.Ensemble `json:",omitzero"`
	Joint    Joint            `json:",omitempty"`
	Network  string           `json:",omitempty"`
	Rows     int              `json:",omitempty"`
}

// identified fills in the key and the random stream.
func (p Point) identified() Point {
	p = p.canonical()
	sum := digest("point", p)
	p.key = hex.EncodeToString(sum[:16])
	sum = digest("problem", problemFields{p.N, p.Density, p.Alpha, p.P, p.NoiseVar, p.SRange, p.Seed, p.Phase, p.Matrix, p.Joint, p.Network, p.Rows})
	copy(p.problem[:], sum[:8])
	p.matrix = [8]byte{}
	if p.SharedMatrix {
		sum = digest("matrix", matrixFields{p.N, p.sensors(), p.Density, p.Seed, p.Complex(), p.Matrix})
		copy(p.matrix[:], sum[:8])
	}
	return p
}

func digest(kind string, v any) [sha256.Size]byte {
	text, err := json.Marshal(v)
	if err != nil { // a NaN, which Validate refuses
		panic(fmt.Sprintf("calamp: a %s that has no key: %v", kind, err))
	}
	return sha256.Sum256(fmt.Appendf(nil, "calamp sweep %d %s %s", Version, kind, text))
}

// Key identifies the point: a hash of its parameters, its seed and [Version],
// 32 hexadecimal digits.
func (p Point) Key() string {
	if p.key == "" {
		p = p.identified()
	}
	return p.key
}

// stream is the seed of the random numbers. It comes from the part of the key
// that describes the problem, not from what solves it: algorithms are compared
// on the same problems, and a result does not depend on when and where the
// point is run.
func (p Point) stream() uint64 {
	if p.key == "" {
		p = p.identified()
	}
	return binary.LittleEndian.Uint64(p.problem[:])
}

// canonical drops what has no influence, so that two descriptions of the same
// run have the same key.
func (p Point) canonical() Point {
	if !p.Algorithm.synthetic() {
		p.Covariance, p.SharedMatrix = "", false
		p.Solver = Solver{Settings: solver.Settings{MaxIter: p.Solver.MaxIter}}
		if p.Algorithm != Rehearsal {
			p.N, p.Seed = 0, 0
		}
		if !p.Record.Trajectory || p.Algorithm == Threshold || p.Algorithm == Rehearsal {
			p.Solver = Solver{}
		}
	}
	if p.Algorithm == Published {
		p.Solver = Solver{Settings: solver.Settings{MaxIter: p.Solver.MaxIter, Variance: p.Solver.Variance}}
	}
	if p.Algorithm != Online {
		p.Solver.Commit = online.Sane
	} else {
		p.Covariance = ""
	}
	if p.Algorithm == Threshold || p.Algorithm == Rehearsal {
		p.Record = Record{Target: p.Record.Target}
	} else {
		p.Record.Target = 0
	}
	if !p.Algorithm.synthetic() {
		p.Record.Prediction = false
	}
	if !p.Algorithm.online() {
		p.Record.Samples = nil
	}
	if p.Algorithm == Threshold {
		p.Alpha = 0
	}
	if p.Rows == 1 {
		p.Rows = 0
	}
	if p.Algorithm == Rehearsal {
		p.Record = Record{}
	} else {
		p.Rehearse = Rehearse{}
	}
	return p
}

// Validate reports parameters with which nothing can be run.
func (p Point) Validate() error {
	if p.Algorithm == Rehearsal {
		return nil
	}
	if p.Algorithm == Threshold {
		p.Alpha = 1
	}
	if p.P < 1 {
		return fmt.Errorf("p must be at least 1, found %d", p.P)
	}
	if err := errors.Join(p.validateMatrix(), p.validateNetwork()); err != nil {
		return err
	}
	if err := errors.Join(p.validateJoint(), p.validateRows()); err != nil {
		return err
	}
	if p.Complex() {
		if err := p.validateComplex(); err != nil || !p.Algorithm.synthetic() {
			return err
		}
		opt := p.options()
		return errors.Join(p.complexTeacher().Validate(), opt.Validate())
	}
	if err := p.model().Validate(); err != nil {
		return err
	}
	if !p.Algorithm.synthetic() {
		return nil
	}
	if err := p.teacher().Validate(); err != nil {
		return err
	}
	if p.Covariance == "full" && p.Density < 1 && p.P > prior.MaxVectorSignals {
		return fmt.Errorf("full covariances with a sparse prior are limited to p ≤ %d, found %d", prior.MaxVectorSignals, p.P)
	}
	opt := p.options()
	return opt.Validate()
}

// validateRows reports what sensors with several rows cannot be asked for.
func (p Point) validateRows() error {
	switch {
	case p.Rows < 0:
		return errors.New("rows_per_sensor: expected whole numbers of 1 or more")
	case p.Rows <= 1:
		return nil
	case p.Complex() || p.Joint.on() || p.Network != "":
		return errors.New("rows_per_sensor: sensors of several rows are for real signals without joint and network")
	case p.Algorithm != Offline && p.Algorithm != SE && p.Algorithm != Threshold:
		return fmt.Errorf("rows_per_sensor: expected offline, se or threshold, found %s", p.Algorithm)
	case p.Covariance != "":
		return errors.New("rows_per_sensor: full covariances are for sensors with a row each: leave covariance out")
	}
	return nil
}

func (p Point) signal() prior.GaussBernoulli {
	return prior.GaussBernoulli{Density: p.Density, SignalVar: 1}
}

// gain is the prior of s; a range of no width means that gains are known.
func (p Point) gain() channel.GainPrior {
	if p.SRange[0] == p.SRange[1] {
		return evolution.Known(p.SRange[0])
	}
	return channel.Uniform(p.SRange[0], p.SRange[1])
}

// sensors is M, the rows of W: a whole number of sensors.
func (p Point) sensors() int {
	each := float64(p.rows())
	return max(1, int(math.Round(p.Alpha*float64(p.N)/each))) * p.rows()
}

// rows is how many rows of W a sensor has.
func (p Point) rows() int { return max(1, p.Rows) }

// readings is how many a sensor has, of all signals.
func (p Point) readings() int { return p.P * p.rows() }

func (p Point) teacher() teacher.Teacher {
	t := teacher.Teacher{N: p.N, M: p.sensors(), P: p.P, Signal: p.signal(), Gain: p.gain(), NoiseVar: p.NoiseVar, Matrix: p.Matrix, Rows: p.Rows}
	if p.Network != "" {
		n, err := p.network()
		if err != nil {
			panic("calamp: " + err.Error()) // layers of the right sizes
		}
		t.Entries = n
	}
	return t
}

// model is the problem in the limit of large N.
func (p Point) model() evolution.Model {
	return evolution.Model{Signal: p.signal(), Gain: p.gain(), NoiseVar: p.NoiseVar, Alpha: p.ratio(), P: p.readings(), Network: p.layers()}
}

// ratio is the M/N that a finite problem really has.
func (p Point) ratio() float64 {
	if p.N > 0 && p.Algorithm.synthetic() {
		return float64(p.sensors()) / float64(p.N)
	}
	return p.Alpha
}

// options are those of the offline solver. Rows on record are of the paper's prior.
func (p Point) options() calamp.Options {
	o := calamp.Options{Settings: p.Solver.Settings}
	if p.Algorithm == Published {
		o = *calamp.Published(p.Solver.MaxIter)
		o.Variance = p.Solver.Variance
	}
	if p.Covariance == solver.Full.String() {
		o.Covariance = solver.Full
	}
	o.SPrior, o.ScaleAtPeak = solver.UniformS, true
	if p.Joint.on() {
		o.Joint = solver.JointOn
	}
	return o
}
