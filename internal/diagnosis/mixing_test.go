package diagnosis

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/calamp/calamp/operator"
)

func normal(r *rand.Rand, m, n int) *mat.Dense {
	a := mat.NewDense(m, n, nil)
	a.Apply(func(int, int, float64) float64 { return r.NormFloat64() }, a)
	return a
}

func table(t *testing.T, a *mat.Dense) operator.Operator {
	t.Helper()
	m, n := a.Dims()
	w, err := operator.NewDense(m, n, a.RawMatrix().Data)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// A matrix in which nothing reaches two sensors is named; one such entry is enough.
func TestUnmixed(t *testing.T) {
	w := mat.NewDense(5, 5, nil)
	for i := range 5 {
		w.Set(i, (i+2)%5, float64(i+1))
	}
	sparse, err := operator.NewSparse(operator.CSR{M: 2, N: 3, Start: []int64{0, 1, 2}, Columns: []int32{0, 2}, Values: []float64{1, 2}})
	if err != nil {
		t.Fatal(err)
	}
	if Unmixed(table(t, mat.DenseCopyOf(w))) == "" || Unmixed(sparse) == "" {
		t.Error("a permutation is taken for a matrix that mixes")
	}
	twice := mat.NewDense(10, 5, nil)
	twice.Stack(w, w)
	if text := Unmixed(table(t, twice)); !strings.Contains(text, "each sensor reads one entry") {
		t.Errorf("two permutations below each other: %q", text)
	}
	w.Set(0, 0, 1)
	if parts := partsOf(table(t, mat.DenseCopyOf(w))); len(parts) != 4 {
		t.Errorf("parts %v, expected 4", parts)
	}
	if text := Unmixed(table(t, w)); text != "" {
		t.Error(text)
	}
}

// W and Y of a compressive problem in each other's place are reported, and nothing else is: few entries and many signals are
// an ordinary problem, also with as much noise as signal, wrong readings and gains over a decade.
func TestSwapped(t *testing.T) {
	found, seeds := 0, uint64(10)
	for seed := range seeds {
		r := rand.New(rand.NewPCG(seed, 1))
		m, n := 120, 40
		w := normal(r, m, n)
		readings := func(w, x *mat.Dense, noise float64) *mat.Dense {
			var y mat.Dense
			y.Mul(w, x)
			y.Apply(func(mu, _ int, v float64) float64 {
				return (v + noise*math.Sqrt(float64(n))*r.NormFloat64()) * math.Pow(10, math.Sin(float64(mu))/2)
			}, &y)
			return &y
		}
		wide := normal(r, m, 256) // more entries than sensors: every Y would do
		if Swapped(table(t, readings(wide, normal(r, 256, 8), 0.03)), wide) != "" {
			found++
		}
		masks := mat.DenseCopyOf(wide)
		masks.Apply(func(_, _ int, v float64) float64 { return max(0, math.Copysign(1, v)) }, masks)
		if Swapped(table(t, readings(masks, normal(r, 256, 8), 0.03)), masks) == "" {
			t.Errorf("seed %d: masks and readings in each other's place were not given", seed)
		}
		for _, signals := range []int{60, 120, 400} { // half of the power is noise
			many := readings(w, normal(r, n, signals), 1)
			for mu := range 10 {
				many.Set(mu, 0, 100)
			}
			if text := Swapped(table(t, w), many); text != "" {
				t.Errorf("seed %d, %d signals: %s", seed, signals, text)
			}
		}
	}
	if found < 9 { // of ten; eight signals are few
		t.Errorf("W and Y of a compressive problem in each other's place were given in %d of %d", found, seeds)
	}
}

// Sensors without a usable reading are distinguished by why: not all of them read zero.
func TestSilentSensorsAreDistinguished(t *testing.T) {
	for _, c := range []struct {
		silent, zero []int
		want         string
	}{
		{[]int{3}, nil, "sensor 3 has no usable reading; its s is the prior mean"},
		{[]int{3, 5}, []int{3, 5}, "2 sensors (first: sensor 3) have only readings of exactly zero, which are taken as missing; their s is the prior mean"},
		{[]int{3, 5}, []int{5}, "2 sensors (first: sensor 3) have no usable reading, 1 of them since they read exactly zero throughout, which is taken as missing; their s is the prior mean"},
	} {
		if w := (&Run{Silent: c.silent, Zero: c.zero}).warnSilent(); w.Message != c.want {
			t.Errorf("%q, expected %q", w.Message, c.want)
		}
	}
}
