package operator

import (
	"errors"
	"fmt"
	"io"
	"math"
)

// Choice is a W that changes from sample to sample of a stream: one of several matrices of the same size, or one that the sample brings.
// What is asked of it is asked of the present one, and sweeps that were made before go with it. Complex ones are a [Complex] around a choice of their real rows.
//
// Of a sample the matrix is numbers: one number, which of the matrices it is, or where samples bring theirs all entries, row by row,
// complex ones with a real and an imaginary part each.
type Choice struct {
	matrices []Operator // nil where samples bring theirs
	complex  bool
	present  Operator
	number   int // of the present one: among the matrices, or among those that were brought

	order []int // of the real rows of those that are brought (see [Arrange]); nil where they are as they come
}

// arrange is the choice of matrices with their rows in order.
func (c *Choice) arrange(order []int) (Operator, error) {
	out := &Choice{complex: c.complex, number: c.number, order: order}
	for _, w := range c.matrices {
		arranged, err := Arrange(w, order)
		if err != nil {
			return nil, err
		}
		out.matrices = append(out.matrices, arranged)
	}
	if c.matrices != nil {
		out.present = out.matrices[0]
		return out, nil
	}
	var err error
	out.present, err = Arrange(c.present, order)
	return out, err
}

// given is the size of matrices as they come.
func (c *Choice) given() (m, n int) {
	m, n = c.Dims()
	for _, row := range c.order {
		if row < 0 {
			m--
		}
	}
	return m, n
}

// NewChoice is the W of samples each of which has one of these matrices, all of one size, and all real or all complex.
func NewChoice(matrices []Operator) (Operator, error) {
	if len(matrices) == 0 {
		return nil, errors.New("no matrix: expected one or more to choose from")
	}
	c := &Choice{complex: isComplex(matrices[0])}
	for j, w := range matrices {
		if err := ofOneSize(w, matrices[0], j); err != nil {
			return nil, err
		}
		c.matrices = append(c.matrices, realRows(w))
	}
	c.present = c.matrices[0]
	return c.whole(c), nil
}

// NewBrought is the W of samples each of which brings its own, as large as that matrix, which stands for them until the first comes, and real or complex as it is.
func NewBrought(typical Operator) Operator {
	c := &Choice{complex: isComplex(typical), present: realRows(typical)}
	return c.whole(c)
}

// ofOneSize refuses a matrix of another size or kind than the first one, or one that is several.
func ofOneSize(w, first Operator, j int) error {
	rows, entries := first.Dims()
	if m, n := w.Dims(); m != rows || n != entries {
		return fmt.Errorf("matrix %d (counting from 0) is %d×%d, expected %d×%d, as the first one", j, m, n, rows, entries)
	}
	if inner, _ := Separate(w); inner != nil {
		return fmt.Errorf("matrix %d (counting from 0) is a %v: expected the matrix of one signal", j, Describe(w))
	}
	if isComplex(w) != isComplex(first) {
		return fmt.Errorf("matrix %d (counting from 0) is %s, and the first one %s: expected all real or all complex", j, kindOf(w), kindOf(first))
	}
	return nil
}

// realRows is a complex matrix by its real rows.
func realRows(w Operator) Operator {
	if c, is := w.(*Complex); is {
		return c.rows
	}
	return w
}

// whole is the matrix that has these real rows.
func (c *Choice) whole(rows Operator) Operator {
	if !c.complex {
		return rows
	}
	m, n := rows.Dims()
	return &Complex{m: m / 2, n: n, rows: rows}
}

// ChoiceOf is the choice that w is; nil where W is the same for all samples.
func ChoiceOf(w Operator) *Choice {
	c, _ := realRows(w).(*Choice)
	return c
}

// Count is how many matrices there are to choose from; 0 where samples bring theirs.
func (c *Choice) Count() int { return len(c.matrices) }

// Numbers is how many numbers say what the matrix of a sample is.
func (c *Choice) Numbers() int {
	if c.matrices != nil {
		return 1
	}
	m, n := c.given()
	return m * n
}

// Use makes the matrix of a sample the present one.
func (c *Choice) Use(matrix []float64) error {
	rows, err := c.rows(matrix)
	switch {
	case err != nil:
		return err
	case c.matrices != nil:
		c.number = int(matrix[0])
	default:
		c.number++
	}
	c.present = rows
	return nil
}

// Of is the matrix of a sample.
func (c *Choice) Of(matrix []float64) (Operator, error) {
	rows, err := c.rows(matrix)
	if err != nil {
		return nil, err
	}
	return c.whole(rows), nil
}

// rows are the real rows of the matrix of a sample.
func (c *Choice) rows(matrix []float64) (Operator, error) {
	m, n := c.given()
	switch {
	case len(matrix) == 0 && c.matrices != nil:
		return nil, fmt.Errorf("no matrix, expected which one of 0 to %d it is", len(c.matrices)-1)
	case len(matrix) == 0:
		return nil, errors.New("no matrix: expected one with every sample")
	case c.matrices != nil && len(matrix) > 1:
		return nil, fmt.Errorf("a matrix of its own, expected which one of 0 to %d it is", len(c.matrices)-1)
	case c.matrices != nil:
		j := matrix[0]
		if !(j >= 0 && j < float64(len(c.matrices)) && j == math.Trunc(j)) {
			return nil, fmt.Errorf("matrix %g, expected one of 0 to %d", j, len(c.matrices)-1)
		}
		return c.matrices[int(j)], nil
	case len(matrix) != m*n:
		return nil, fmt.Errorf("a matrix of %d numbers, expected the %d entries of one of %v", len(matrix), c.numbers(), c)
	}
	entries := matrix
	if c.complex {
		entries = make([]float64, len(matrix))
		for mu := range m / 2 {
			for i := range n {
				at := 2 * (mu*n + i)
				entries[2*mu*n+i], entries[(2*mu+1)*n+i] = matrix[at], matrix[at+1]
			}
		}
	}
	w, err := NewDense(m, n, entries)
	if err != nil || c.order == nil {
		return w, err
	}
	return Arrange(w, c.order)
}

// numbers is how many entries a matrix has.
func (c *Choice) numbers() int {
	if c.complex {
		return c.Numbers() / 2
	}
	return c.Numbers()
}

// Dims implements [Operator].
func (c *Choice) Dims() (m, n int) { return c.present.Dims() }

// MeanSquare implements [Operator]: of the present one.
func (c *Choice) MeanSquare() float64 { return c.present.MeanSquare() }

// HasSquares implements [Squares].
func (c *Choice) HasSquares() bool {
	for _, w := range c.matrices {
		if !HasSquares(w) {
			return false
		}
	}
	return true // of tables
}

// String says what it is.
func (c *Choice) String() string {
	if c.matrices == nil {
		m, n := c.whole(c).Dims()
		return fmt.Sprintf("matrix of %d×%d that every sample brings", m, n)
	}
	return fmt.Sprintf("choice of one of %d matrices for every sample, the first a %s", len(c.matrices), Describe(c.whole(c.matrices[0])))
}

// Bytes implements [Structured].
func (c *Choice) Bytes() (total int64) {
	if c.matrices == nil {
		return Bytes(c.present)
	}
	for _, w := range c.matrices {
		total += Bytes(w)
	}
	return total
}

// Identify implements [Structured].
func (c *Choice) Identify(to io.Writer) error {
	if c.matrices == nil {
		m, n := c.Dims()
		_, err := fmt.Fprintf(to, "a matrix of %d×%d with every sample, complex=%t\n", m, n, c.complex)
		return err
	}
	return identifyAll(to, fmt.Sprintf("choice complex=%t", c.complex), c.matrices...)
}

// NewSweep implements [Operator].
func (c *Choice) NewSweep(p, q, threads int) (Sweep, error) {
	if q > 0 && !c.HasSquares() {
		return nil, NoSquares(c)
	}
	s := &choiceSweep{of: c, p: p, q: q, threads: threads, known: map[int]Sweep{}}
	_, err := s.present()
	return s, err
}

// choiceSweep is a sweep over the present matrix.
type choiceSweep struct {
	of            *Choice
	p, q, threads int
	known         map[int]Sweep // by the matrix's number
}

// present makes the sweep of the present matrix, those of matrices to choose from once.
func (s *choiceSweep) present() (Sweep, error) {
	if sweep, is := s.known[s.of.number]; is {
		return sweep, nil
	}
	sweep, err := s.of.present.NewSweep(s.p, s.q, s.threads)
	if err != nil {
		return nil, err
	}
	if s.of.matrices == nil {
		clear(s.known) // what was brought before does not come again
	}
	s.known[s.of.number] = sweep
	return sweep, nil
}

// Run implements [Sweep].
func (s *choiceSweep) Run(r, h, x, c []float64, rows RowFunc) error {
	sweep, err := s.present()
	if err != nil {
		return err
	}
	return sweep.Run(r, h, x, c, rows)
}
