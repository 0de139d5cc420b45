package operator

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"
)

// TestEachIsItsMatrices: the products of every signal are those with its own matrix, real and complex, with and without squares.
func TestEachIsItsMatrices(t *testing.T) {
	const m, n = 37, 53
	of := []int{0, 2, 1, 0, 2}
	var tables, complexes []Operator
	for j := range 3 {
		rng := rand.New(rand.NewPCG(uint64(j), 1))
		values, numbers := make([]float64, m*n), make([]complex128, m*n)
		for i := range values {
			values[i] = rng.NormFloat64()
			numbers[i] = complex(rng.NormFloat64(), rng.NormFloat64())
		}
		table, err := NewDense(m, n, values)
		if err != nil {
			t.Fatal(err)
		}
		number, err := NewComplex(m, n, numbers)
		if err != nil {
			t.Fatal(err)
		}
		tables, complexes = append(tables, table), append(complexes, number)
	}
	for _, c := range []struct {
		name     string
		matrices []Operator
		columns  int
	}{{"real", tables, 1}, {"complex", complexes, 2}} {
		w, err := NewEach(c.matrices, of)
		if err != nil {
			t.Fatal(err)
		}
		rng, p := rand.New(rand.NewPCG(9, 9)), c.columns*len(of)
		x, g := make([]float64, p*n), make([]float64, m*p)
		for i := range x {
			x[i] = math.Abs(rng.NormFloat64())
		}
		for j := range g {
			g[j] = rng.NormFloat64()
		}
		whole := productsOf(t, w, p, x, g)
		for k, j := range of {
			width := c.columns
			own := make([]float64, m*width)
			for mu := range m {
				copy(own[mu*width:], g[mu*p+k*width:mu*p+(k+1)*width])
			}
			one := productsOf(t, c.matrices[j], width, x[k*width*n:(k+1)*width*n], own)
			for a := range width {
				for mu := range m {
					nearby(t, c.name+" z", whole.z[mu*p+k*width+a], one.z[mu*width+a])
					nearby(t, c.name+" v", whole.v[mu*p+k*width+a], one.v[mu*width+a])
				}
				for i := range n {
					nearby(t, c.name+" r", whole.r[(k*width+a)*n+i], one.r[a*n+i])
					nearby(t, c.name+" h", whole.h[(k*width+a)*n+i], one.h[a*n+i])
				}
			}
		}
		if _, err := w.NewSweep(c.columns*3, 0, 1); err == nil || !strings.Contains(err.Error(), "all of them at once") {
			t.Errorf("%s: a sweep over 3 of %d signals: %v", c.name, len(of), err)
		}
	}
}

type fourProducts struct{ z, v, r, h []float64 }

func productsOf(t *testing.T, w Operator, p int, x, g []float64) (f fourProducts) {
	t.Helper()
	m, n := w.Dims()
	sweep, err := w.NewSweep(p, p, 2)
	if err != nil {
		t.Fatal(err)
	}
	f = fourProducts{make([]float64, m*p), make([]float64, m*p), make([]float64, p*n), make([]float64, p*n)}
	err = sweep.Run(f.r, f.h, x, x, func(first int, z, v, gs, d []float64) {
		copy(f.z[first*p:], z)
		copy(f.v[first*p:], v)
		copy(gs, g[first*p:])
		copy(d, g[first*p:])
	})
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func nearby(t *testing.T, what string, got, want float64) {
	t.Helper()
	if math.Abs(got-want) > 1e-12*(1+math.Abs(want)) {
		t.Fatalf("%s is %v, expected %v", what, got, want)
	}
}

// TestEachRefuses: matrices that do not belong together, and matrices that are all the same.
func TestEachRefuses(t *testing.T) {
	table := func(m, n int, v float64) Operator {
		values := make([]float64, m*n)
		for i := range values {
			values[i] = v + float64(i%7)
		}
		d, err := NewDense(m, n, values)
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	number, err := NewComplex(2, 3, make([]complex128, 6))
	if err == nil {
		t.Fatal(number)
	}
	number, err = NewComplex(2, 3, []complex128{1, 2, 3, 4, 5, 6})
	if err != nil {
		t.Fatal(err)
	}
	a := table(2, 3, 1)
	for _, c := range []struct {
		matrices []Operator
		of       []int
		want     string
	}{
		{nil, nil, "no matrix"},
		{[]Operator{a, table(3, 3, 1)}, nil, "matrix 1 (counting from 0) is 3×3, expected 2×3"},
		{[]Operator{a, number}, nil, "complex, and the first one real"},
		{[]Operator{a}, []int{0, 1}, "signal 1 has matrix 1, expected one of 0 to 0"},
	} {
		if _, err := NewEach(c.matrices, c.of); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("got %v, expected %q", err, c.want)
		}
	}
	if w, err := NewEach([]Operator{a, table(2, 3, 1), a}, nil); err != nil || w != a {
		t.Errorf("three times the same matrix is %v (%v), expected that matrix", w, err)
	}
}
