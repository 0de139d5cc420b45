package operator

import (
	"fmt"
	"io"
)

// kronecker is A ⊗ B, of an A with M_a×N_a entries and a B with M_b×N_b,
//
//	W_(a M_b + b),(i N_b + j) = A_ai B_bj,
//
// as numpy.kron(A, B): on images X of N_a×N_b pixels, row by row, it is A X Bᵀ. A and B
// can be any operators.
//
// The layouts of a sweep make it two products without a transposition: the P signals of N
// entries are P·N_a signals of B, whose sensors' side is M_b·P signals of A, whose
// sensors' side is that of W.
type kronecker struct {
	a, b Operator
	memory
}

// NewKronecker makes the operator A ⊗ B.
func NewKronecker(a, b Operator) Operator { return &kronecker{a: a, b: b} }

// Dims implements [Operator].
func (w *kronecker) Dims() (m, n int) {
	ma, na := w.a.Dims()
	mb, nb := w.b.Dims()
	return ma * mb, na * nb
}

// MeanSquare implements [Operator].
func (w *kronecker) MeanSquare() float64 { return w.a.MeanSquare() * w.b.MeanSquare() }

// HasSquares implements [Squares]: those of A ⊗ B are A² ⊗ B².
func (w *kronecker) HasSquares() bool { return HasSquares(w.a) && HasSquares(w.b) }

// SquaresEqual says that the squared entries are all the same; see the function of this name.
func (w *kronecker) SquaresEqual() bool { return SquaresEqual(w.a) && SquaresEqual(w.b) }

// RowOrthogonal implements [RowOrthogonal].
func (w *kronecker) RowOrthogonal() (kappa float64, ok bool) { return bothOrthogonal(w.a, w.b) }

// String says what it is.
func (w *kronecker) String() string {
	return fmt.Sprintf("Kronecker product of a %s and a %s", Describe(w.a), Describe(w.b))
}

// Bytes implements [Structured].
func (w *kronecker) Bytes() int64 { return Bytes(w.a) + Bytes(w.b) }

// Identify implements [Structured].
func (w *kronecker) Identify(to io.Writer) error {
	return identifyAll(to, "kronecker", w.a, w.b)
}

// NewSweep implements [Operator].
func (w *kronecker) NewSweep(p, q, threads int) (Sweep, error) {
	if q > 0 && !w.HasSquares() {
		return nil, NoSquares(w)
	}
	ma, na := w.a.Dims()
	mb, _ := w.b.Dims()
	s := &kroneckerSweep{
		between: make([]float64, mb*p*na), squares: make([]float64, mb*q*na),
	}
	var err error
	if s.a, err = newHalves(w.a, mb*p, mb*q, threads); err != nil {
		return nil, err
	}
	if s.b, err = newHalves(w.b, p*na, q*na, threads); err != nil {
		return nil, err
	}
	return newWholeSweep(s, ma*mb, p, q, threads), nil
}

type kroneckerSweep struct {
	a, b             products
	between, squares []float64 // M_b×P×N_a
}

func (s *kroneckerSweep) forward(z, v, x, c []float64) error {
	if err := s.b.forward(s.between, s.squares, x, c); err != nil {
		return err
	}
	return s.a.forward(z, v, s.between, s.squares)
}

func (s *kroneckerSweep) backward(r, h, g, d []float64) error {
	if err := s.a.backward(s.between, s.squares, g, d); err != nil {
		return err
	}
	return s.b.backward(r, h, s.between, s.squares)
}
