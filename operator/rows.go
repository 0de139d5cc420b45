package operator

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/calamp/calamp/internal/parallel"
	"github.com/calamp/calamp/internal/transform"
)

// Rows is a choice of rows of an orthonormal transform T of size N, with signs and a
// permutation of the columns, which make its rows look random:
//
//	W_µi = T[Rows_µ, Permutation_i] · Signs_i.
type Rows struct {
	N           int
	Rows        []int     // M, all different, 0 … N-1
	Signs       []float64 // N of 1 or -1; nil for all 1
	Permutation []int     // N, each of 0 … N-1 once; nil for the identity
}

// most is the largest size of a transform, and number of columns of a sparse matrix:
// indices are kept in 32 bits, and with more the arrays of one signal take gigabytes.
const most = 1 << 27

// TransformTakes is how many entries a transform of size n takes the memory of. Where it is a convolution these are three times
// its length, for products in both directions (measured: 400 bytes an entry at n = 65521, where n = 60000 takes 90).
func TransformTakes(n int) int {
	if n < 1 || n > most { // which is refused
		return n
	}
	if length := transform.Length(n); length > n {
		return 3 * length
	}
	return n
}

// check reports what describes no choice of rows: which array, where, and what was
// expected.
func (r *Rows) check() error {
	if r.N < 1 || r.N > most {
		return fmt.Errorf("n is %d, expected a size of 1 to %d", r.N, most)
	}
	if len(r.Rows) == 0 {
		return errors.New("rows is empty, expected the rows of the transform that there are sensors for")
	}
	if err := distinct("rows", r.Rows, r.N); err != nil {
		return err
	}
	if r.Signs != nil && len(r.Signs) != r.N {
		return fmt.Errorf("signs has %d values, expected n = %d", len(r.Signs), r.N)
	}
	for i, s := range r.Signs {
		if s != 1 && s != -1 {
			return fmt.Errorf("signs of entry %d is %g, expected 1 or -1", i, s)
		}
	}
	if r.Permutation == nil {
		return nil
	}
	if len(r.Permutation) != r.N {
		return fmt.Errorf("permutation has %d values, expected n = %d", len(r.Permutation), r.N)
	}
	return distinct("permutation", r.Permutation, r.N)
}

// distinct reports the first value that is not in 0 … n-1, or there twice.
func distinct(name string, values []int, n int) error {
	seen := make([]int32, n) // place + 1
	for at, v := range values {
		if v < 0 || v >= n {
			return fmt.Errorf("%s %d (counting from 0) is %d, expected 0 to %d, as n is %d", name, at, v, n-1, n)
		}
		if first := seen[v]; first > 0 {
			return fmt.Errorf("%s %d and %d (counting from 0) are both %d, expected different ones", name, first-1, at, v)
		}
		seen[v] = int32(at + 1)
	}
	return nil
}

// selection is [Rows] as transforms use them.
type selection struct {
	n     int
	rows  []int32 // M
	row   []int32 // N: the µ of a row of the transform, or -1
	place []int32 // N: where entry i goes; nil for i
	entry []int32 // N: the reverse; nil for i
	signs []int8  // N; nil for all 1
}

func (r *Rows) selection() (selection, error) {
	if err := r.check(); err != nil {
		return selection{}, err
	}
	s := selection{n: r.N, rows: make([]int32, len(r.Rows)), row: make([]int32, r.N)}
	for i := range s.row {
		s.row[i] = -1
	}
	for mu, row := range r.Rows {
		s.rows[mu], s.row[row] = int32(row), int32(mu)
	}
	if r.Permutation != nil {
		s.place, s.entry = make([]int32, r.N), make([]int32, r.N)
		for i, at := range r.Permutation {
			s.place[i], s.entry[at] = int32(at), int32(i)
		}
	}
	if r.Signs != nil {
		s.signs = make([]int8, r.N)
		for i, sign := range r.Signs {
			s.signs[i] = int8(sign)
		}
	}
	return s, nil
}

// power says what a product is with: entries, or their squares, which have no signs.
type power bool

const (
	linear  power = false
	squares power = true
)

// at is the entry of x that goes to a place, and its sign.
func (s *selection) at(place int, kind power) (entry int, sign float64) {
	entry, sign = place, 1
	if s.entry != nil {
		entry = int(s.entry[place])
	}
	if s.signs != nil && kind == linear {
		sign = float64(s.signs[entry])
	}
	return entry, sign
}

// take sets out[0], out[step], … to the entries of x that go to places place, place+stride, …, with their signs.
func (s *selection) take(out []float64, step int, x []float64, place, stride int, kind power) {
	if s.plain(kind) {
		for at := 0; at < len(out); at += step {
			out[at] = x[place]
			place += stride
		}
		return
	}
	for at := 0; at < len(out); at += step {
		entry, sign := s.at(place, kind)
		out[at] = sign * x[entry]
		place += stride
	}
}

// give is the reverse, for count values.
func (s *selection) give(x, in []float64, step, count, place, stride int, kind power) {
	if s.plain(kind) {
		for at := 0; at < count*step; at += step {
			x[place] = in[at]
			place += stride
		}
		return
	}
	for at := 0; at < count*step; at += step {
		entry, sign := s.at(place, kind)
		x[entry] = sign * in[at]
		place += stride
	}
}

// plain says that every entry goes to its own place, with no sign.
func (s *selection) plain(kind power) bool {
	return s.entry == nil && (s.signs == nil || kind == squares)
}

// Dims implements [Operator].
func (s *selection) Dims() (m, n int) { return len(s.rows), s.n }

// MeanSquare implements [Operator].
func (s *selection) MeanSquare() float64 { return 1 / float64(s.n) }

// HasSquares implements [Squares].
func (s *selection) HasSquares() bool { return true }

// RowOrthogonal implements [RowOrthogonal]: rows of an orthonormal transform, all
// different.
func (s *selection) RowOrthogonal() (kappa float64, ok bool) { return 1, true }

// Bytes implements [Structured].
func (s *selection) Bytes() int64 {
	return 4*int64(len(s.rows)+len(s.row)+len(s.place)+len(s.entry)) + int64(len(s.signs))
}

// transformed is how many multiplications a transform takes; see [Work].
func (s *selection) transformed() float64 { return float64(s.n) * math.Log2(max(2, float64(s.n))) }

func (s *selection) identify(to io.Writer, name string) error {
	if _, err := fmt.Fprintf(to, "%s n=%d rows=%d permutation=%d signs=%d\n", name, s.n, len(s.rows), len(s.place), len(s.signs)); err != nil {
		return err
	}
	for _, v := range []any{s.rows, s.place, s.signs} {
		if err := binary.Write(to, binary.LittleEndian, v); err != nil {
			return err
		}
	}
	return nil
}

// inPieces calls do for pieces of 0 … n-1, large enough to be worth a goroutine.
func inPieces(n, threads int, do func(from, to int)) {
	const least = 1 << 12
	each := max(least, (n+4*threads-1)/(4*threads))
	parallel.Run((n+each-1)/each, threads, func(i int) { do(i*each, min((i+1)*each, n)) })
}

// sumOf is the sum of n values that are step apart.
func sumOf(v []float64, n, step int) float64 {
	total := 0.0
	for i := range n {
		total += v[i*step]
	}
	return total
}

// Rows is what the operator was made of.
func (s *selection) Rows() Rows {
	r := Rows{N: s.n, Rows: make([]int, len(s.rows))}
	for mu, row := range s.rows {
		r.Rows[mu] = int(row)
	}
	for _, at := range s.place {
		r.Permutation = append(r.Permutation, int(at))
	}
	for _, sign := range s.signs {
		r.Signs = append(r.Signs, float64(sign))
	}
	return r
}
