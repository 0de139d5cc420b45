package operator_test

import (
	"errors"
	"fmt"
	"math"
	"math/bits"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/calamp/calamp/operator"
)

// hadamard has the given rows of the Walsh–Hadamard transform of size n = 2^k, divided
// by √n. It is never stored as a matrix. It shows what an operator needs at least; it
// does not know its squared entries.
type hadamard struct {
	rows []int
	size int
}

func (h hadamard) String() string {
	return fmt.Sprintf("Walsh–Hadamard transform of size %d", h.size)
}
func (h hadamard) Dims() (m, n int)    { return len(h.rows), h.size }
func (h hadamard) MeanSquare() float64 { return 1 / float64(h.size) }
func (h hadamard) entry(mu, i int) float64 { // for the tests
	sign := 1 - 2*(bits.OnesCount(uint(h.rows[mu]&i))%2)
	return float64(sign) / math.Sqrt(float64(h.size))
}

func (h hadamard) NewSweep(p, q, _ int) (operator.Sweep, error) {
	if q > 0 {
		return nil, operator.NoSquares(h)
	}
	m, n := h.Dims()
	return &hadamardSweep{hadamard: h, p: p, work: make([]float64, n), z: make([]float64, m*p), g: make([]float64, m*p)}, nil
}

type hadamardSweep struct {
	hadamard
	p          int
	work, z, g []float64
}

func (s *hadamardSweep) Run(r, _, x, _ []float64, rows operator.RowFunc) error {
	for k := range s.p {
		copy(s.work, x[k*s.size:(k+1)*s.size])
		transform(s.work)
		for mu, row := range s.rows {
			s.z[mu*s.p+k] = s.work[row]
		}
	}
	rows(0, s.z, nil, s.g, nil)
	for k := range s.p {
		signal := r[k*s.size : (k+1)*s.size]
		clear(signal)
		for mu, row := range s.rows {
			signal[row] = s.g[mu*s.p+k]
		}
		transform(signal)
	}
	return nil
}

// transform is the orthonormal Walsh–Hadamard transform, in place.
func transform(v []float64) {
	for half := 1; half < len(v); half *= 2 {
		for from := 0; from < len(v); from += 2 * half {
			for i := from; i < from+half; i++ {
				a, b := v[i], v[i+half]
				v[i], v[i+half] = (a+b)/math.Sqrt2, (a-b)/math.Sqrt2
			}
		}
	}
}

// A transform can be added as one type: products and spectrum work with its sweeps, and
// what needs squared entries is refused with an error that names it.
func TestATransformIsAnOperator(t *testing.T) {
	h := hadamard{rows: []int{1, 3, 4, 6, 7, 9, 10, 15}, size: 16}
	m, n := h.Dims()
	entries := make([]float64, 0, m*n)
	for mu := range m {
		for i := range n {
			entries = append(entries, h.entry(mu, i))
		}
	}
	dense, err := operator.NewDense(m, n, entries)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range []int{1, 3} {
		x, g := normals(p*n), normals(m*p)
		sameProducts(t, h, dense, x, g)
		for k := range p { // the definition
			want := 0.0
			for i := range n {
				want += h.entry(2, i) * x[k*n+i]
			}
			z := make([]float64, m*p)
			if err := operator.Mul(z, h, x); err != nil {
				t.Fatal(err)
			}
			if math.Abs(z[2*p+k]-want) > 1e-13 {
				t.Errorf("row 2 of signal %d: %g, want %g", k, z[2*p+k], want)
			}
		}
	}
	largest, smallest, err := operator.Spectrum(h, 1)
	if err != nil || math.Abs(largest-1) > 1e-12 || math.Abs(smallest-1) > 1e-12 {
		t.Errorf("singular values %g to %g, want 1: %v", smallest, largest, err)
	}
	if operator.HasSquares(h) || !operator.HasSquares(dense) {
		t.Error("squared entries are known where they are not, or the reverse")
	}
	if _, err := h.NewSweep(1, 1, 1); !errors.Is(err, operator.ErrNoSquares) || !strings.Contains(err.Error(), "transform of size 16") {
		t.Errorf("a sweep with squared entries: %v", err)
	}
}

func normals(count int) []float64 {
	rng := rand.New(rand.NewPCG(uint64(count), 0))
	v := make([]float64, count)
	for i := range v {
		v[i] = rng.NormFloat64()
	}
	return v
}

func sameProducts(t *testing.T, a, b operator.Operator, x, g []float64) {
	t.Helper()
	za, zb, ra, rb := make([]float64, len(g)), make([]float64, len(g)), make([]float64, len(x)), make([]float64, len(x))
	for _, err := range []error{
		operator.Mul(za, a, x), operator.Mul(zb, b, x), operator.MulTrans(ra, a, g), operator.MulTrans(rb, b, g),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for i := range za {
		if math.Abs(za[i]-zb[i]) > 1e-13 {
			t.Errorf("Wx[%d] is %g, want %g", i, za[i], zb[i])
		}
	}
	for i := range ra {
		if math.Abs(ra[i]-rb[i]) > 1e-13 {
			t.Errorf("Wᵀg[%d] is %g, want %g", i, ra[i], rb[i])
		}
	}
}
