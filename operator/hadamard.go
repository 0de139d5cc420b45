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
		work := s.space()
		inPieces(s.n, s.threads, func(from, to int) { s.enter(work, x, from, to) })
		transform.Hadamard(work, s.n, s.p, s.threads)
		inPieces(len(s.rows), s.threads, func(from, to int) {
			for mu := from; mu < to; mu++ {
				out := z[mu*s.p : (mu+1)*s.p]
				for k, value := range work[int(s.rows[mu])*s.p:][:len(out)] {
					out[k] = value * s.scale
				}
			}
		})
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
		inPieces(s.n, s.threads, func(from, to int) {
			for i := from; i < to; i++ {
				out := work[i*s.p : (i+1)*s.p]
				if mu := int(s.row[i]); mu >= 0 {
					copy(out, g[mu*s.p:])
				} else {
					clear(out)
				}
			}
		})
		transform.Hadamard(work, s.n, s.p, s.threads)
		inPieces(s.n, s.threads, func(from, to int) { s.leave(r, work, from, to) })
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

func (s *hadamardSweep) space() []float64 {
	if s.work == nil {
		s.work = make([]float64, s.n*s.p)
	}
	return s.work
}

// enter puts the entries from … to of all signals to their places, with their signs.
func (s *hadamardSweep) enter(work, x []float64, from, to int) {
	for i := from; i < to; i++ {
		at, sign := i, 1.0
		if s.place != nil {
			at = int(s.place[i])
		}
		if s.signs != nil {
			sign = float64(s.signs[i])
		}
		for k, out := 0, work[at*s.p:(at+1)*s.p]; k < len(out); k++ {
			out[k] = sign * x[k*s.n+i]
		}
	}
}

// leave is the reverse.
func (s *hadamardSweep) leave(r, work []float64, from, to int) {
	for i := from; i < to; i++ {
		at, sign := i, s.scale
		if s.place != nil {
			at = int(s.place[i])
		}
		if s.signs != nil {
			sign *= float64(s.signs[i])
		}
		for k, value := range work[at*s.p : (at+1)*s.p] {
			r[k*s.n+i] = sign * value
		}
	}
}
