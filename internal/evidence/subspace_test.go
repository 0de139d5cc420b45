package evidence

import (
	"math"
	"math/cmplx"
	"math/rand/v2"
	"testing"
)

// Entries that all snapshots have leave readings in a subspace from which gains with any phases follow, without a start; independent signals leave none.
func TestSubspaceStarts(t *testing.T) {
	const m, n, p, noise = 16, 60, 40, 1e-5
	for _, shared := range []bool{true, false} {
		rng := rand.New(rand.NewPCG(3, 8))
		normal := func(v float64) complex128 {
			return complex(math.Sqrt(v/2)*rng.NormFloat64(), math.Sqrt(v/2)*rng.NormFloat64())
		}
		w, y, s := make([]complex128, m*n), make([]complex128, m*p), make([]complex128, m)
		for j := range w {
			w[j] = cmplx.Rect(1/math.Sqrt(n), 2*math.Pi*rng.Float64())
		}
		for mu := range s {
			s[mu] = cmplx.Rect(0.7+0.6*rng.Float64(), 2*math.Pi*rng.Float64())
		}
		there := rng.Perm(n)[:4]
		for k := range p {
			if !shared {
				there = rng.Perm(n)[:4]
			}
			for _, i := range there {
				x := normal(1)
				for mu := range m {
					y[mu*p+k] += w[mu*n+i] * x
				}
			}
			for mu := range m {
				y[mu*p+k] = (y[mu*p+k] + normal(noise)) / s[mu]
			}
		}
		f := NewComplex(m, n, p, func(mu, i int) complex128 { return w[mu*n+i] }, func(mu, k int) complex128 { return y[mu*p+k] }, 0)
		starts := f.SubspaceStarts(6)
		if !shared {
			if starts != nil {
				t.Errorf("independent signals have %d starts", len(starts))
			}
			continue
		}
		if len(starts) != 6 {
			t.Fatalf("%d starts, expected 6", len(starts))
		}
		for j, start := range starts { // of all pairs of four entries
			f.BeginAt(start)
			var common complex128
			own, found := 0.0, 0.0
			for mu, v := range f.S {
				common += cmplx.Conj(v) * s[mu]
				own, found = own+square(s[mu]), found+square(v)
			}
			if along := cmplx.Abs(common) / math.Sqrt(own*found); along < 0.999 {
				t.Errorf("start %d has a correlation of %.3f with the gains", j, along)
			}
		}
	}
}
