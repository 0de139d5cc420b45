package operator

import (
	"fmt"
	"io"
	"math"

	"github.com/calamp/calamp/internal/parallel"
	"github.com/calamp/calamp/internal/transform"
)

// Hadamard is rows of the orthonormal Walsh–Hadamard transform in Sylvester's order,
//
//	T_ri = (-1)^popcount(r&i) / √N,   N a power of two,
//
// as scipy.linalg.hadamard(N)/√N has them. A product takes N log₂N additions a signal.
type Hadamard struct{ selection }

// NewHadamard makes the operator of the rows r. The error names the array and the place
// that is wrong.
func NewHadamard(r Rows) (*Hadamard, error) {
	if r.N > 0 && r.N&(r.N-1) != 0 {
		return nil, fmt.Errorf("n is %d, expected a power of two", r.N)
	}
	s, err := r.selection()
	return &Hadamard{s}, err
}

// String says what it is.
func (h *Hadamard) String() string {
	return fmt.Sprintf("choice of %d rows of the Walsh–Hadamard transform of size %d", len(h.rows), h.n)
}

// SquaresEqual says that the squared entries are all 1/N; see the function of this name.
func (h *Hadamard) SquaresEqual() bool { return true }

// Identify implements [Structured].
func (h *Hadamard) Identify(to io.Writer) error { return h.identify(to, "hadamard") }

// NewSweep implements [Operator]; it never fails.
func (h *Hadamard) NewSweep(p, q, threads int) (Sweep, error) {
	m, _ := h.Dims()
	s := &hadamardSweep{Hadamard: h, p: p, q: q, threads: max(1, threads), scale: 1 / math.Sqrt(float64(h.n))}
	return newWholeSweep(s, m, p, q, threads), nil
}

type hadamardSweep struct {
	*Hadamard
	p, q, threads int
	scale         float64
	work          []float64 // N×p, entry by entry
}

func (s *hadamardSweep) forward(z, v, x, c []float64) error {
	if s.p > 0 {
		work, along := s.space(), transform.Along{}
		if s.place == nil {
			along.Load = func(values []float64, first int) { s.enter(values, x, first, first+len(values)/s.p) }
		} else {
			inPieces(s.n, s.threads, func(from, to int) { s.enterAt(work, x, from, to) })
		}
		along.Done = func(values []float64, first int) { s.choose(z, values, first) }
		transform.Hadamard(work, s.n, s.p, s.threads, along)
	}
	for k := range s.q { // all squares are 1/N
		total := sumOf(c[k*s.n:], s.n, 1) / float64(s.n)
		for mu := range s.rows {
			v[mu*s.q+k] = total
		}
	}
	return nil
}

func (s *hadamardSweep) backward(r, h, g, d []float64) error {
	if s.p > 0 {
		work := s.space()
		inPieces(s.n, s.threads, func(from, to int) { clear(work[from*s.p : to*s.p]) })
		inPieces(len(s.rows), s.threads, func(from, to int) { s.scatter(work, g, from, to) })
		along := transform.Along{}
		if s.place == nil {
			along.Done = func(values []float64, first int) { s.leave(r, values, first, first+len(values)/s.p) }
		}
		transform.Hadamard(work, s.n, s.p, s.threads, along)
		if s.place != nil {
			inPieces(s.n, s.threads, func(from, to int) { s.leaveFrom(r, work, from, to) })
		}
	}
	parallel.Run(s.q, s.threads, func(k int) {
		total := sumOf(d[k:], len(s.rows), s.q) / float64(s.n)
		out := h[k*s.n : (k+1)*s.n]
		for i := range out {
			out[i] = total
		}
	})
	return nil
}

// choose hands values of rows from first on to the sensors that have them: rows in their order, while they are in cache, so that what lies
// anywhere in memory are the readings, of which there are fewer.
func (s *hadamardSweep) choose(z, values []float64, first int) {
	for i, mu := range s.row[first : first+len(values)/s.p] {
		switch {
		case mu < 0:
		case s.p == 4:
			out, in := (*[4]float64)(z[4*int(mu):]), (*[4]float64)(values[4*i:])
			out[0], out[1], out[2], out[3] = in[0]*s.scale, in[1]*s.scale, in[2]*s.scale, in[3]*s.scale
		default:
			out := z[int(mu)*s.p:][:s.p]
			for k, value := range values[i*s.p:][:len(out)] {
				out[k] = value * s.scale
			}
		}
	}
}

// scatter puts the readings of sensors to their rows, all different.
func (s *hadamardSweep) scatter(work, g []float64, from, to int) {
	if s.p == 4 {
		for mu, row := range s.rows[from:to] {
			out, in := (*[4]float64)(work[4*int(row):]), (*[4]float64)(g[4*(from+mu):])
			out[0], out[1], out[2], out[3] = in[0], in[1], in[2], in[3]
		}
		return
	}
	for mu := from; mu < to; mu++ {
		out := work[int(s.rows[mu])*s.p:][:s.p]
		for k, value := range g[mu*s.p:][:len(out)] {
			out[k] = value
		}
	}
}

func (s *hadamardSweep) space() []float64 {
	if s.work == nil {
		s.work = make([]float64, s.n*s.p)
	}
	return s.work
}

// enter puts the entries from … to of all signals side by side, with their signs.
func (s *hadamardSweep) enter(values, x []float64, from, to int) {
	if s.p == 4 && s.signs == nil {
		a, b, c, d := x[from:to], x[s.n+from:][:to-from], x[2*s.n+from:][:to-from], x[3*s.n+from:][:to-from]
		for j, v := range a {
			out := (*[4]float64)(values[4*j:])
			out[0], out[1], out[2], out[3] = v, b[j], c[j], d[j]
		}
		return
	}
	for i := from; i < to; i++ {
		sign := s.sign(i)
		for k, out := 0, values[(i-from)*s.p:][:s.p]; k < len(out); k++ {
			out[k] = sign * x[k*s.n+i]
		}
	}
}

// enterAt puts them to their places.
func (s *hadamardSweep) enterAt(work, x []float64, from, to int) {
	for i := from; i < to; i++ {
		s.enter(work[int(s.place[i])*s.p:], x, i, i+1)
	}
}

// leave is the reverse of enter, times the scale, and leaveFrom that of enterAt.
func (s *hadamardSweep) leave(r, values []float64, from, to int) {
	if s.p == 4 && s.signs == nil {
		a, b, c, d := r[from:to], r[s.n+from:][:to-from], r[2*s.n+from:][:to-from], r[3*s.n+from:][:to-from]
		for j := range a {
			in := (*[4]float64)(values[4*j:])
			a[j], b[j], c[j], d[j] = in[0]*s.scale, in[1]*s.scale, in[2]*s.scale, in[3]*s.scale
		}
		return
	}
	for i := from; i < to; i++ {
		sign := s.sign(i) * s.scale
		for k, value := range values[(i-from)*s.p:][:s.p] {
			r[k*s.n+i] = sign * value
		}
	}
}

func (s *hadamardSweep) leaveFrom(r, work []float64, from, to int) {
	for i := from; i < to; i++ {
		s.leave(r, work[int(s.place[i])*s.p:], i, i+1)
	}
}

func (s *hadamardSweep) sign(i int) float64 {
	if s.signs == nil {
		return 1
	}
	return float64(s.signs[i])
}
