package joint

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// stored is a P×P matrix as the span has it.
func (s *Span) stored(a []float64, p int) []float64 {
	if s == nil {
		return a
	}
	flat := make([]float64, s.Len(p))
	own, _ := s.parts(flat)
	for k := range s.of {
		for l := range s.of {
			for i := range p {
				for j := range p {
					own[k*s.of+l] += s.vectors[k*p+i] * a[i*p+j] * s.vectors[l*p+j]
				}
			}
		}
	}
	flat[len(own)] = (trace(a, p) - trace(own, s.of)) / float64(p-s.of)
	return flat
}

// Rows of more signals than sensors are those that they are without the span.
func TestSpan(t *testing.T) {
	const n, p, m = 70, 24, 5
	rng := rand.New(rand.NewPCG(7, 8))
	y := make([]float64, m*p)
	for j := range y {
		y[j] = rng.NormFloat64()
	}
	span := NewSpan(y, p, 1)
	if span == nil || NewSpan(y, 2*m, 1) != nil {
		t.Fatal("no span, or one that is not worth it")
	}
	covariance, precision := make([]float64, p*p), make([]float64, p*p)
	for k := range p {
		for l := range p {
			covariance[k*p+l] = 0.3 * y[k] * y[l]
			precision[k*p+l] = -0.01 * y[p+k] * y[p+l]
		}
		covariance[k*p+k] += 0.2
		precision[k*p+k]++
	}
	centre, onward, size := make([]float64, p*n), make([]float64, p*n), make([]float64, n)
	for i := range n {
		size[i] = 3 + rng.Float64()
		for mu := range m {
			a, b := rng.NormFloat64(), rng.NormFloat64()
			for k := range p {
				centre[k*n+i] += a * y[mu*p+k]
				onward[k*n+i] += b * y[mu*p+k]
			}
		}
	}
	var all [3]*Rows // without a span, with one, and with one that was left
	for way := range all {
		r := NewRows(n, p, 1, Isotropic(p, 0.3, 0.1, 1))
		var s *Span
		if way > 0 {
			s = span
		}
		r.Within(s)
		copy(r.Prior.Cov, s.stored(covariance, p))
		if way == 2 {
			r.Leave()
			s = nil
		}
		shape, _, ok := s.NewShape(s.stored(precision, p), p, 1, 0)
		if !ok {
			t.Fatal("no shape")
		}
		back, inverse := make([]float64, p*p), make([]float64, p*p)
		shape.Matrix(back)
		shape.Inverse(inverse)
		r.Update(Field{Shape: shape, Size: size, Centre: centre, Onward: onward})
		if way == 1 && r.basis.span == nil {
			t.Error("the span was not used")
		}
		r.first = append(append(r.first, back...), inverse...)
		r.Sum, r.second = s.Full(r.Sum, p), s.Full(r.second, p)
		all[way] = r
	}
	for _, c := range []struct {
		name string
		of   func(r *Rows) []float64
	}{
		{"x", func(r *Rows) []float64 { return r.X }},
		{"C", func(r *Rows) []float64 { return r.C }},
		{"support", func(r *Rows) []float64 { return r.Support }},
		{"evidence", func(r *Rows) []float64 { return r.LogMass }},
		{"sum", func(r *Rows) []float64 { return r.Sum }},
		{"first, matrix and inverse", func(r *Rows) []float64 { return r.first }},
		{"second", func(r *Rows) []float64 { return r.second }},
		{"square", func(r *Rows) []float64 { return r.Square }},
		{"variance", func(r *Rows) (all []float64) {
			for k, v := range r.basis.variance {
				all = append(all, slices.Repeat([]float64{v}, int(r.basis.times[k]))...)
			}
			return all
		}},
		{"effective rows", func(r *Rows) []float64 { return []float64{r.effective(), r.away} }},
	} {
		a, b, left := c.of(all[0]), c.of(all[1]), c.of(all[2])
		worst := 0.0
		for j, v := range a {
			worst = max(worst, math.Abs(v-b[j])/(1+math.Abs(v)), math.Abs(v-left[j])/(1+math.Abs(v)))
		}
		if worst > 1e-9 {
			t.Errorf("%s is off by %.2g", c.name, worst)
		}
	}
}
