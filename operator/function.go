package operator

import (
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"

	"github.com/calamp/calamp/internal/cholesky"
)

// Function is a matrix that is given by its two products, of one vector each: it can be
// anything that is linear.
type Function struct {
	M, N int

	// Mul sets z (M) to W x (N), and MulTrans r (N) to Wᵀ g (M). They are called one
	// after the other, never concurrently, and must not keep their arguments.
	Mul      func(z, x []float64) error
	MulTrans func(r, g []float64) error

	// Mean is the mean of all squared entries; 0 has it estimated, to a percent or so.
	Mean float64

	// Kappa is κ where W Wᵀ = κ I, and 0 where it is not.
	Kappa float64

	// Name identifies the matrix. A stream's state file needs one, and is good for
	// all matrices of this name and size.
	Name string
}

// adjointError is how well the two products must agree, relative to the sizes of
// the vectors: what single precision leaves, with some room.
const adjointError = 1e-4

// NewFunction makes the operator of f. It compares the two products, ⟨Wx, g⟩ = ⟨x, Wᵀg⟩,
// for three random x and g each, and refuses a pair of which one is not the transpose
// of the other.
func NewFunction(f Function) (Operator, error) {
	if f.M < 1 || f.N < 1 || f.Mul == nil || f.MulTrans == nil {
		return nil, fmt.Errorf("a matrix of functions needs a size of at least 1×1 and both products, found %d×%d", f.M, f.N)
	}
	w := &functions{f}
	if err := w.testAdjoint(); err != nil {
		return nil, err
	}
	if w.Mean == 0 {
		var err error
		if w.Mean, err = probedMeanSquare(w); err != nil {
			return nil, err
		}
	}
	if !(w.Mean > 0) || math.IsInf(w.Mean, 1) {
		return nil, fmt.Errorf("the mean square of the entries is %g, expected a positive finite number", w.Mean)
	}
	return w, nil
}

func (w *functions) testAdjoint() error {
	rng := rand.New(rand.NewPCG(7, 0))
	x, g := make([]float64, w.N), make([]float64, w.M)
	z, r := make([]float64, w.M), make([]float64, w.N)
	for range 3 {
		for i := range x {
			x[i] = rng.NormFloat64()
		}
		for mu := range g {
			g[mu] = rng.NormFloat64()
		}
		if err := errors.Join(w.Function.Mul(z, x), w.Function.MulTrans(r, g)); err != nil {
			return err
		}
		there, back := cholesky.Dot(z, g), cholesky.Dot(x, r)
		size := math.Sqrt(sumSquares(z)*sumSquares(g)) + math.Sqrt(sumSquares(x)*sumSquares(r))
		if math.IsNaN(size) || math.IsInf(size, 0) {
			return errors.New("a product with normal random numbers is not finite")
		}
		// Of vectors with nothing to do with each other the products are size/√N.
		if !(math.Abs(there-back) <= adjointError*size/math.Sqrt(float64(max(w.M, w.N)))) {
			return fmt.Errorf("Mul and MulTrans do not belong to one matrix: ⟨Wx, g⟩ is %.6g and ⟨x, Wᵀg⟩ is %.6g for random x and g", there, back)
		}
	}
	return nil
}

type functions struct{ Function }

// Dims implements [Operator].
func (w *functions) Dims() (m, n int) { return w.M, w.N }

// MeanSquare implements [Operator].
func (w *functions) MeanSquare() float64 { return w.Mean }

// RowOrthogonal implements [RowOrthogonal].
func (w *functions) RowOrthogonal() (kappa float64, ok bool) { return w.Kappa, w.Kappa > 0 }

// String says what it is.
func (w *functions) String() string {
	if w.Name == "" {
		return fmt.Sprintf("%d×%d matrix given by functions", w.M, w.N)
	}
	return fmt.Sprintf("%d×%d matrix %s, given by functions", w.M, w.N, w.Name)
}

// Bytes implements [Structured].
func (w *functions) Bytes() int64 { return 0 }

// Identify implements [Structured].
func (w *functions) Identify(to io.Writer) error {
	if w.Name == "" {
		return errors.New("a matrix given by functions has no identity without a Name")
	}
	_, err := fmt.Fprintf(to, "functions m=%d n=%d %q\n", w.M, w.N, w.Name)
	return err
}

// NewSweep implements [Operator]; there is none with quadratic columns.
func (w *functions) NewSweep(p, q, threads int) (Sweep, error) {
	if q > 0 {
		return nil, NoSquares(w)
	}
	return newWholeSweep(&functionSweep{functions: w, p: p, one: make([]float64, w.M)}, w.M, p, 0, threads), nil
}

type functionSweep struct {
	*functions
	p   int
	one []float64 // M: of one signal
}

func (s *functionSweep) forward(z, _, x, _ []float64) error {
	for k := range s.p {
		if err := s.Function.Mul(s.one, x[k*s.N:(k+1)*s.N]); err != nil {
			return &ReadError{err}
		}
		for mu, v := range s.one {
			z[mu*s.p+k] = v
		}
	}
	return nil
}

func (s *functionSweep) backward(r, _, g, _ []float64) error {
	for k := range s.p {
		for mu := range s.one {
			s.one[mu] = g[mu*s.p+k]
		}
		if err := s.Function.MulTrans(r[k*s.N:(k+1)*s.N], s.one); err != nil {
			return &ReadError{err}
		}
	}
	return nil
}

// probes is how many random vectors a mean square is estimated from: of independent
// entries its relative error is √(2/(probes·M)).
const probes = 16

// probedMeanSquare estimates the mean square of the entries: for x of random signs
// the mean of ‖Wx‖² is their sum of squares (Hutchinson 1990). The side with fewer
// entries makes no difference; the seed is always the same.
func probedMeanSquare(w Operator) (float64, error) {
	m, n := w.Dims()
	rng := rand.New(rand.NewPCG(8, 0))
	x, z, total := make([]float64, n), make([]float64, m), 0.0
	for range probes {
		for i := range x {
			x[i] = 1 - 2*float64(rng.IntN(2))
		}
		if err := Mul(z, w, x); err != nil {
			return 0, err
		}
		total += sumSquares(z)
	}
	return total / probes / float64(m) / float64(n), nil
}
