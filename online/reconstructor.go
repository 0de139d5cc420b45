package online

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math"
	"slices"

	"gonum.org/v1/gonum/mat"

	"github.com/calamp/calamp"
	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/internal/amp"
	"github.com/calamp/calamp/operator"
	"github.com/calamp/calamp/prior"
)

// Reconstructor is mini-AMP (paper, "Streaming AMP for online reconstruction in
// the GLM"): signals that stay, while rows of W arrive in batches. What a batch
// says of entry i of a signal is a Gaussian field N(x; λ_i, Σ_i); the posterior
// after the batches is the prior times the product of their fields,
//
//	p(x_i) exp(-A_i x²/2 + B_i x),   A_i = Σ 1/Σ_i,   B_i = Σ λ_i/Σ_i  (over batches),
//
// and serves as the prior of the next batch. Each batch is solved by AMP with
// whatever channel it came through. Many small batches lose a little against all
// rows at once: the field of a batch is not revised when later ones come.
//
// It serves one caller at a time.
type Reconstructor struct {
	opt   Options
	prior prior.Prior
	n     int
	state FieldState
}

// NewReconstructor prepares for signals of n entries with the prior p; how many
// signals there are, the first batch says. Of opt, which may be nil, MaxIter,
// Tol, Damping, NoScaleStep, Variance, Threads, Commit and Freeze are used. The
// Sane rule here is that estimates did not diverge, and converged or came as near
// as Sanity.Unfinished.
func NewReconstructor(n int, p prior.Prior, opt *Options) (*Reconstructor, error) {
	if p == nil {
		panic("calamp: NewReconstructor needs the signals' prior")
	}
	if n <= 0 {
		return nil, fmt.Errorf("a signal must have at least one entry, found N = %d", n)
	}
	full := opt.withDefaults()
	if err := full.Validate(); err != nil {
		return nil, err
	}
	if err := prior.ValidateFor(p, n); err != nil {
		return nil, fmt.Errorf("the signal prior: %w", err)
	}
	return &Reconstructor{opt: full, prior: p, n: n, state: FieldState{N: n}}, nil
}

// Reconstruction is what is known of the signals after a batch.
type Reconstruction struct {
	X, XVar *mat.Dense // N×P, posterior means and variances

	// S and SVar (M) are those of the batch's sensors, where the channel
	// calibrates.
	S, SVar []float64

	Status     calamp.Status
	Iterations int
	Committed  bool
	Reject     Reject // why it was not
}

// Absorb reconstructs the signals from a batch of M rows of W and what came
// before. y is M×P, NaN where a reading is missing. It returns an error, and
// changes nothing, for inputs that do not fit; when ctx is cancelled, the
// reconstruction so far with ctx.Err().
func (r *Reconstructor) Absorb(ctx context.Context, w operator.Operator, ch channel.Channel, y *mat.Dense) (*Reconstruction, error) {
	if w == nil || ch == nil || y == nil {
		panic("calamp: Absorb needs W, the channel and readings")
	}
	if err := r.check(w, ch, y); err != nil {
		return nil, err
	}
	s, err := r.prepare(w, ch, y)
	if err != nil {
		return nil, err
	}
	outcome, err := s.Run(ctx, r.opt.MaxIter)
	e := s.State
	res := r.result(e)
	res.Status, res.Iterations = statusOf(outcome), s.Iterations
	res.Reject = r.judge(outcome, e)
	if res.Reject == Accepted {
		r.commit(e)
		res.Committed = true
	}
	return res, err
}

func (r *Reconstructor) check(w operator.Operator, ch channel.Channel, y *mat.Dense) error {
	m, n := w.Dims()
	rows, signals := y.Dims()
	if n != r.n {
		return fmt.Errorf("W is %d×%d, but the signals have %d entries", m, n, r.n)
	}
	if rows != m {
		return fmt.Errorf("Y is %d×%d, but W is %d×%d: Y must have one row a sensor", rows, signals, m, n)
	}
	if r.state.P != 0 && signals != r.state.P {
		return fmt.Errorf("Y is of %d signals, earlier batches were of %d", signals, r.state.P)
	}
	for mu := range m {
		for k, v := range y.RawRowView(mu) {
			if math.IsInf(v, 0) {
				return fmt.Errorf("Y: sensor %d, signal %d is %g, expected a finite reading, or NaN for a missing one", mu, k, v)
			}
		}
	}
	return validModel(&r.opt, amp.Model{Prior: r.prior, Channel: ch}, w)
}

// prepare makes the solver of a batch. After the first batch the scale is held by the
// fields inherited.
func (r *Reconstructor) prepare(w operator.Operator, ch channel.Channel, y *mat.Dense) (*amp.Solver, error) {
	m, signals := y.Dims()
	p := amp.Problem{W: w, Model: amp.Model{Prior: r.prior, Channel: ch}, P: signals, Y: make([]float64, 0, m*signals)}
	for mu := range m {
		p.Y = append(p.Y, y.RawRowView(mu)...)
	}
	p.Batch = true
	if r.state.Batches > 0 {
		p.InheritedPrecision, p.InheritedField = r.state.Precision, r.state.Field
	}
	s, _, _, err := amp.NewSolver(p, r.opt.Settings)
	if err != nil {
		return nil, fmt.Errorf("the channel: %w", err)
	}
	return s, nil
}

func (r *Reconstructor) judge(outcome amp.Outcome, e *amp.State) Reject {
	switch {
	case outcome == amp.Cancelled:
		return Interrupted
	case outcome == amp.Diverged:
		return Diverged
	case r.opt.Commit == Sane && outcome != amp.Converged && r.opt.Tol >= 0 && r.unfinished(e):
		return NotConverged
	case r.opt.Freeze:
		return Frozen
	}
	return Accepted
}

func (r *Reconstructor) unfinished(e *amp.State) bool {
	for k, moved := range e.Moved {
		if moved > r.opt.Sanity.Unfinished*math.Sqrt(e.SumC[k]) {
			return true
		}
	}
	return false
}

func (r *Reconstructor) commit(e *amp.State) {
	s := &r.state
	if s.Batches == 0 {
		s.P = e.P
		s.Precision, s.Field = make([]float64, e.P*r.n), make([]float64, e.P*r.n)
	}
	e.AddField(s.Precision, s.Field)
	s.Batches++
}

func (r *Reconstructor) result(e *amp.State) *Reconstruction {
	res := &Reconstruction{
		X: mat.NewDense(r.n, e.P, nil), XVar: mat.NewDense(r.n, e.P, nil),
		S: e.S, SVar: e.SVar,
	}
	for k := range e.P {
		res.X.SetCol(k, e.X[k*r.n:(k+1)*r.n])
		res.XVar.SetCol(k, e.C[k*r.n:(k+1)*r.n])
	}
	return res
}

// FieldState is all that a Reconstructor remembers.
type FieldState struct {
	N, P      int
	Precision []float64 // P×N, signal by signal: A
	Field     []float64 // P×N: B
	Batches   uint64    // committed so far
}

// Snapshot returns a copy of the state.
func (r *Reconstructor) Snapshot() *FieldState {
	s := r.state
	s.Precision, s.Field = slices.Clone(s.Precision), slices.Clone(s.Field)
	return &s
}

// Restore continues from a state: the batches that follow give the same bits as
// if there had been no interruption.
func (r *Reconstructor) Restore(s *FieldState) error {
	if err := s.Validate(); err != nil {
		return err
	}
	if s.N != r.n {
		return fmt.Errorf("the state is of signals of %d entries, expected %d", s.N, r.n)
	}
	r.state = *s
	r.state.Precision, r.state.Field = slices.Clone(s.Precision), slices.Clone(s.Field)
	return nil
}

// Validate reports what no stream leaves behind.
func (s *FieldState) Validate() error {
	if s.N <= 0 || s.P < 0 || len(s.Precision) != s.N*s.P || len(s.Field) != s.N*s.P || (s.P == 0) != (s.Batches == 0) {
		return fmt.Errorf("state: %d and %d values for %d signals of %d entries after %d batches", len(s.Precision), len(s.Field), s.P, s.N, s.Batches)
	}
	for i, a := range s.Precision {
		if !(a >= 0) || math.IsInf(a, 1) || math.IsNaN(s.Field[i]-s.Field[i]) {
			return fmt.Errorf("state: entry %d of signal %d has precision %g and field %g", i%s.N, i/s.N, a, s.Field[i])
		}
	}
	return nil
}

// The binary form of a FieldState, little endian, version 1: "calF", version
// uint32, N, P and Batches uint64, Precision and Field as float64, CRC-32C.
const (
	fieldMagic   = "calF"
	fieldVersion = 1
	fieldHeader  = 32
)

// MarshalBinary implements encoding.BinaryMarshaler.
func (s *FieldState) MarshalBinary() ([]byte, error) {
	le := binary.LittleEndian
	b := make([]byte, 0, fieldHeader+16*len(s.Field)+4)
	b = append(b, fieldMagic...)
	b = le.AppendUint32(b, fieldVersion)
	for _, v := range []uint64{uint64(s.N), uint64(s.P), s.Batches} {
		b = le.AppendUint64(b, v)
	}
	b = appendFloats(b, s.Precision)
	b = appendFloats(b, s.Field)
	return le.AppendUint32(b, crc32.Checksum(b, castagnoli)), nil
}

// UnmarshalBinary implements encoding.BinaryUnmarshaler. It refuses what is
// truncated, altered, or of a version it does not know.
func (s *FieldState) UnmarshalBinary(b []byte) error {
	le := binary.LittleEndian
	if len(b) < fieldHeader+4 || string(b[:4]) != fieldMagic {
		return errors.New("state: this is no reconstruction state")
	}
	if v := le.Uint32(b[4:]); v != fieldVersion {
		return fmt.Errorf("state: format version %d, this program reads version %d", v, fieldVersion)
	}
	n, p := le.Uint64(b[8:]), le.Uint64(b[16:])
	size := uint64(len(b))
	if n > math.MaxInt32 || p > math.MaxInt32 || n*p > size || fieldHeader+16*n*p+4 != size {
		return fmt.Errorf("state: %d bytes cannot hold %d signals of %d entries: the file is truncated or damaged", len(b), p, n)
	}
	body := b[:len(b)-4]
	if crc32.Checksum(body, castagnoli) != le.Uint32(b[len(body):]) {
		return errors.New("state: the checksum does not match: the file is damaged")
	}
	read := FieldState{N: int(n), P: int(p), Batches: le.Uint64(b[24:]), Precision: make([]float64, n*p), Field: make([]float64, n*p)}
	rest := b[fieldHeader:]
	for _, v := range [][]float64{read.Precision, read.Field} {
		for i := range v {
			v[i] = math.Float64frombits(le.Uint64(rest))
			rest = rest[8:]
		}
	}
	if err := read.Validate(); err != nil {
		return err
	}
	*s = read
	return nil
}
