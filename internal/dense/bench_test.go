package dense

import (
	"math/rand/v2"
	"testing"
)

// BenchmarkCovariance is what a covariance of readings takes, behind a table of 160 rows and 256 columns, on one core.
func BenchmarkCovariance(b *testing.B) {
	rng := rand.New(rand.NewPCG(1, 3))
	m, n := 160, 256
	w := random(rng, m, n)
	a, l, inverse, s := New(m, m), New(m, m), New(m, m), New(m, n)
	for i := range m {
		a.Data[i*m+i] = 1
	}
	AddProduct(a, 1, w, w.T(), Lower, 1)
	for _, part := range []struct {
		name string
		do   func()
	}{
		{"product", func() { AddProduct(l, 1, w, w.T(), Lower, 1) }},
		{"factor", func() { copy(l.Data, a.Data); Factor(l, 1) }},
		{"solve", func() { copy(s.Data, w.Data); SolveLower(l, s, 1) }},
		{"invert", func() { copy(l.Data, a.Data); InvertLower(l, 1) }},
		{"square", func() { Square(inverse, l, 1) }},
	} {
		b.Run(part.name, func(b *testing.B) {
			for b.Loop() {
				part.do()
			}
		})
	}
}
