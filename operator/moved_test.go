package operator

import (
	"math"
	"math/rand/v2"
	"testing"
)

// TestMovedGoesBackAsItWent: xᵀ(Σ D_jᵀ u_j) is Σ u_jᵀ(D_j x).
func TestMovedGoesBackAsItWent(t *testing.T) {
	const m, n, p = 5, 7, 3
	rng := rand.New(rand.NewPCG(40, 5))
	of := func(count int) []float64 {
		v := make([]float64, count)
		for i := range v {
			v[i] = rng.NormFloat64()
		}
		return v
	}
	w, err := NewMoved(m, n, of(m*n), of(m*n), of(m*n))
	if err != nil {
		t.Fatal(err)
	}
	x, u, back := of(n*p), of(m*2*p), make([]float64, n*p)
	z, cross := make([]float64, len(u)), make([]float64, len(u))
	w.Along(z, cross, x, x, p, 1)
	w.AddBack(back, u, p, 1)
	var there, here float64
	for i, v := range u {
		there += v * z[i]
	}
	for i, v := range x {
		here += v * back[i]
	}
	if math.Abs(there-here) > 1e-12*math.Abs(there) {
		t.Errorf("%g there, %g back", there, here)
	}
}
