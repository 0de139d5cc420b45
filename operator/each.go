package operator

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"reflect"
	"slices"
)

// Each is a matrix W that differs from signal to signal: all are M×N, and the products of signal k are those with its own.
// Its sweeps take all signals, and read one matrix after the other. Signals that have a matrix in common share its products.
//
// A sweep has a linear column a signal, or two where they are complex (see [NewEach]), and as many quadratic ones or none.
// What measures a matrix ([StructureOf], [Spectrum], [MeansOf], [CoherenceOf]) measures all of them, and says what it finds of the worst one.
type Each struct {
	matrices []Operator // that differ, as they were given
	of       []int      // which of them each signal has
	parts    []Operator // what products are taken with: of complex matrices the real rows
	columns  int        // of a signal in a sweep: 2 of complex matrices
}

// NewEach is the W of which signal k has the matrix matrices[of[k]]; a nil of gives every signal its own, in order. All must be of
// one size, and all real or all complex: these make a [Complex]. Where all signals have the same matrix, that itself is returned.
func NewEach(matrices []Operator, of []int) (Operator, error) {
	if len(matrices) == 0 {
		return nil, errors.New("no matrix: expected one for every signal")
	}
	if of == nil {
		of = make([]int, len(matrices))
		for k := range of {
			of[k] = k
		}
	}
	e := &Each{of: make([]int, len(of)), columns: 1}
	place := make([]int, len(matrices)) // among those that differ
	for j, w := range matrices {
		if err := ofOneSize(w, matrices[0], j); err != nil {
			return nil, err
		}
		if place[j] = slices.IndexFunc(e.matrices, func(known Operator) bool { return same(known, w) }); place[j] < 0 {
			place[j] = len(e.matrices)
			e.matrices = append(e.matrices, w)
		}
	}
	for k, j := range of {
		if j < 0 || j >= len(matrices) {
			return nil, fmt.Errorf("signal %d has matrix %d, expected one of 0 to %d", k, j, len(matrices)-1)
		}
		e.of[k] = place[j]
	}
	e.leaveOutUnused()
	if len(e.matrices) == 1 {
		return e.matrices[0], nil
	}
	e.parts = e.matrices
	if !isComplex(e.matrices[0]) {
		return e, nil
	}
	e.columns, e.parts = 2, make([]Operator, len(e.matrices))
	for j, w := range e.matrices {
		e.parts[j] = w.(*Complex).rows
	}
	m, n := e.matrices[0].Dims()
	return &Complex{m: m, n: n, rows: e}, nil
}

// leaveOutUnused drops matrices that no signal has.
func (e *Each) leaveOutUnused() {
	var used []Operator
	place := slices.Repeat([]int{-1}, len(e.matrices))
	for k, j := range e.of {
		if place[j] < 0 {
			place[j] = len(used)
			used = append(used, e.matrices[j])
		}
		e.of[k] = place[j]
	}
	e.matrices = used
}

func isComplex(w Operator) bool {
	_, is := w.(*Complex)
	return is
}

func kindOf(w Operator) string {
	if isComplex(w) {
		return "complex"
	}
	return "real"
}

// same reports whether two matrices are known to be the same: one object, tables of the same entries, or operators made of the same.
func same(a, b Operator) bool {
	if reflect.TypeOf(a) != reflect.TypeOf(b) {
		return false
	}
	if reflect.TypeOf(a).Comparable() && a == b {
		return true
	}
	if a.MeanSquare() != b.MeanSquare() {
		return false
	}
	switch a := a.(type) {
	case *Complex:
		return same(a.rows, b.(*Complex).rows)
	case Matrix:
		return sameTable(a, b.(Matrix))
	case Structured:
		var one, other bytes.Buffer
		return a.Identify(&one) == nil && b.(Structured).Identify(&other) == nil && bytes.Equal(one.Bytes(), other.Bytes())
	}
	return false
}

// sameTable compares two tables up to the first row in which they differ.
func sameTable(a, b Matrix) bool {
	if a.Storage() != b.Storage() {
		return false
	}
	m, n := a.Dims()
	rowA, rowB := make([]float64, n), make([]float64, n)
	for mu := range m {
		if a.RowInto(rowA, mu) != nil || b.RowInto(rowB, mu) != nil || !slices.Equal(rowA, rowB) {
			return false
		}
	}
	return true
}

// Separate returns the matrices of which signals have different ones, and which of them each signal has; nil where one W is for all.
func Separate(w Operator) (matrices []Operator, of []int) {
	switch w := w.(type) {
	case *Each:
		return w.matrices, w.of
	case *Complex:
		if e, is := w.rows.(*Each); is {
			return e.matrices, e.of
		}
	case asReal:
		matrices, of = Separate(w.w)
		matrices = slices.Clone(matrices)
		for j, w := range matrices {
			matrices[j] = RealOf(w)
		}
		return matrices, of
	}
	return nil, nil
}

// ForSignals returns an error unless w can be the matrix of so many signals.
func ForSignals(w Operator, signals int) error {
	if _, of := Separate(w); of != nil && len(of) != signals {
		return fmt.Errorf("W has matrices for %d signals, and there are %d", len(of), signals)
	}
	return nil
}

// MeanSquares is the mean square of the entries of the matrix of every signal.
func MeanSquares(w Operator, signals int) []float64 {
	squares := slices.Repeat([]float64{w.MeanSquare()}, signals)
	if matrices, of := Separate(w); of != nil {
		for k := range squares {
			squares[k] = matrices[of[k*len(of)/signals]].MeanSquare()
		}
	}
	return squares
}

// withEach is the W of the same signals with other matrices made of theirs.
func withEach(matrices []Operator, of []int, change func(Operator) (Operator, error)) (Operator, error) {
	changed := make([]Operator, len(matrices))
	for j, w := range matrices {
		var err error
		if changed[j], err = change(w); err != nil {
			return nil, err
		}
	}
	return NewEach(changed, of)
}

// worst is what is found of the matrix of which it is the worst.
func worst[T any](matrices []Operator, measure func(Operator) (T, error), worse func(a, b T) bool) (found T, err error) {
	for j, w := range matrices {
		now, err := measure(w)
		if err != nil {
			return found, err
		}
		if j == 0 || worse(now, found) {
			found = now
		}
	}
	return found, nil
}

// Dims implements [Operator].
func (e *Each) Dims() (m, n int) { return e.parts[0].Dims() }

// MeanSquare implements [Operator]: over the matrices of all signals.
func (e *Each) MeanSquare() float64 {
	total := 0.0
	for _, j := range e.of {
		total += e.parts[j].MeanSquare()
	}
	return total / float64(len(e.of))
}

// HasSquares implements [Squares].
func (e *Each) HasSquares() bool {
	return !slices.ContainsFunc(e.parts, func(w Operator) bool { return !HasSquares(w) })
}

// SquaresEqual reports whether the squared entries of every matrix are known to be equal.
func (e *Each) SquaresEqual() bool {
	return !slices.ContainsFunc(e.parts, func(w Operator) bool { return !SquaresEqual(w) })
}

// RowOrthogonal implements [RowOrthogonal]: where all matrices have orthogonal rows of the same norm.
func (e *Each) RowOrthogonal() (kappa float64, ok bool) {
	for j, w := range e.matrices {
		own, ok := Orthogonal(w)
		if !ok || j > 0 && own != kappa {
			return 0, false
		}
		kappa = own
	}
	return kappa, true
}

// String says what it is.
func (e *Each) String() string {
	if len(e.matrices) == len(e.of) {
		return fmt.Sprintf("matrix of its own for each of %d signals, the first a %s", len(e.of), Describe(e.matrices[0]))
	}
	return fmt.Sprintf("choice of one of %d matrices for each of %d signals, the first a %s", len(e.matrices), len(e.of), Describe(e.matrices[0]))
}

// Bytes implements [Structured].
func (e *Each) Bytes() (total int64) {
	for _, w := range e.matrices {
		total += Bytes(w)
	}
	return total
}

// Identify implements [Structured].
func (e *Each) Identify(to io.Writer) error {
	if _, err := fmt.Fprintf(to, "each signal's %v\n", e.of); err != nil {
		return err
	}
	return identifyAll(to, "matrices", e.matrices...)
}

// meanRowSquares are the squared norms of the rows, on average over the signals.
func meanRowSquares(matrices []Operator, of []int, threads int) ([]float64, error) {
	m, _ := matrices[0].Dims()
	mean, squares := make([]float64, m), make([][]float64, len(matrices))
	for j, w := range matrices {
		var err error
		if squares[j], err = RowSquares(w, threads); err != nil {
			return nil, err
		}
	}
	for _, j := range of {
		for mu, v := range squares[j] {
			mean[mu] += v / float64(len(of))
		}
	}
	return mean, nil
}

// NewSweep implements [Operator].
func (e *Each) NewSweep(p, q, threads int) (Sweep, error) {
	signals := len(e.of)
	if p != e.columns*signals && p != 0 || q%signals != 0 || q > e.columns*signals {
		return nil, fmt.Errorf("W is a %v: its products are with all of them at once, %d columns, found %d linear and %d quadratic ones", e, e.columns*signals, p, q)
	}
	if q > 0 && !e.HasSquares() {
		return nil, NoSquares(e)
	}
	m, n := e.Dims()
	s := &eachSweep{m: m, n: n, p: p, q: q}
	most := 0
	for j, w := range e.parts {
		part := eachPart{}
		for k, i := range e.of {
			if i == j {
				part.signals = append(part.signals, k)
			}
		}
		count := len(part.signals)
		most = max(most, count)
		sweep, err := w.NewSweep(count*p/signals, count*q/signals, threads)
		if err != nil {
			return nil, err
		}
		part.products = bothHalvesOf(sweep, n, count*p/signals, count*q/signals)
		s.parts = append(s.parts, part)
	}
	s.linear.make(p/signals, most, m, n)
	s.quadratic.make(q/signals, most, m, n)
	return newWholeSweep(s, m, p, q, threads), nil
}

// eachSweep takes the products with one matrix after the other.
type eachSweep struct {
	m, n, p, q        int
	parts             []eachPart
	linear, quadratic eachColumns
}

// eachPart is a matrix, and the signals that have it.
type eachPart struct {
	products
	signals []int
}

// eachColumns are the columns of the signals that have one matrix, side by side.
type eachColumns struct {
	each             int       // columns of a signal
	entries, sensors []float64 // signal by signal, and sensor by sensor
}

func (c *eachColumns) make(each, signals, m, n int) {
	*c = eachColumns{each: each, entries: make([]float64, each*signals*n), sensors: make([]float64, each*signals*m)}
}

// of is the room for so many signals.
func (c *eachColumns) of(signals, m, n int) (entries, sensors []float64) {
	return c.entries[:c.each*signals*n], c.sensors[:c.each*signals*m]
}

func (s *eachSweep) forward(z, v, x, c []float64) error {
	for _, part := range s.parts {
		ownX, ownZ := s.linear.of(len(part.signals), s.m, s.n)
		ownC, ownV := s.quadratic.of(len(part.signals), s.m, s.n)
		part.entries(ownX, x, s.linear.each, s.n, false)
		part.entries(ownC, c, s.quadratic.each, s.n, false)
		if err := part.forward(ownZ, ownV, ownX, ownC); err != nil {
			return err
		}
		part.sensors(ownZ, z, s.linear.each, s.p, s.m, true)
		part.sensors(ownV, v, s.quadratic.each, s.q, s.m, true)
	}
	return nil
}

func (s *eachSweep) backward(r, h, g, d []float64) error {
	for _, part := range s.parts {
		ownR, ownG := s.linear.of(len(part.signals), s.m, s.n)
		ownH, ownD := s.quadratic.of(len(part.signals), s.m, s.n)
		part.sensors(ownG, g, s.linear.each, s.p, s.m, false)
		part.sensors(ownD, d, s.quadratic.each, s.q, s.m, false)
		if err := part.backward(ownR, ownH, ownG, ownD); err != nil {
			return err
		}
		part.entries(ownR, r, s.linear.each, s.n, true)
		part.entries(ownH, h, s.quadratic.each, s.n, true)
	}
	return nil
}

// entries copies the signals' side of a part's columns from all columns, or back to them.
func (p *eachPart) entries(own, all []float64, each, n int, back bool) {
	for i, k := range p.signals {
		a, b := own[i*each*n:(i+1)*each*n], all[k*each*n:(k+1)*each*n]
		if back {
			a, b = b, a
		}
		copy(a, b)
	}
}

// sensors does the same of the sensors' side, of which a row has so many columns in all.
func (p *eachPart) sensors(own, all []float64, each, columns, m int, back bool) {
	count := len(p.signals) * each
	for mu := range m {
		for i, k := range p.signals {
			a, b := own[mu*count+i*each:mu*count+(i+1)*each], all[mu*columns+k*each:mu*columns+(k+1)*each]
			if back {
				a, b = b, a
			}
			copy(a, b)
		}
	}
}

// larger reports whether means are larger than others, beside those of independent entries.
func (m Means) larger(than Means) bool {
	size := func(m Means) float64 {
		return meanSquare(m.Rows)*float64(len(m.Columns)) + meanSquare(m.Columns)*float64(len(m.Rows))
	}
	return size(m) > size(than)
}

// spectrumOf is the largest and the smallest singular value of all matrices.
func spectrumOf(matrices []Operator, threads int) (largest, smallest float64, err error) {
	smallest = math.Inf(1)
	for _, w := range matrices {
		most, least, err := Spectrum(w, threads)
		if err != nil {
			return 0, 0, err
		}
		largest, smallest = max(largest, most), min(smallest, least)
	}
	return largest, smallest, nil
}
