package main

import (
	"math"
	"math/rand/v2"

	"gonum.org/v1/gonum/mat"

	"github.com/calamp/calamp/internal/baseline"
)

// Networks of sensors, pools, and the random matrix that theory is about.

var networks = []kind{
	{name: "plumes", what: "60 to 140 gas sensors in a field, plumes of 64 to 144 possible leaks downwind, few of them", make: func(r *rand.Rand, p int) setup {
		m, side := 60+40*r.IntN(3), 8+2*r.IntN(3)
		w := mat.NewDense(m, side*side, nil)
		for mu := range m {
			sx, sy := r.Float64(), r.Float64()
			for i := range side * side {
				lx, ly := (float64(i%side)+0.5)/float64(side), (float64(i/side)+0.5)/float64(side)
				along := sx - lx + 0.1 // some spreads against the wind
				if along <= 0 {
					continue
				}
				spread := 0.03 + 0.15*along
				w.Set(mu, i, bell(sy, ly, spread)/spread*math.Exp(-2*along))
			}
		}
		return direct(w, sparsePositive(r, side*side, p, 0.04))
	}},
	{name: "waves", what: "sound levels of 60 to 120 meters in a hall, 64 or 100 possible sources, 1/r² and walls", make: func(r *rand.Rand, p int) setup {
		m, side := 60+30*r.IntN(3), 8+2*r.IntN(2)
		w := mat.NewDense(m, side*side, nil)
		for mu := range m {
			sx, sy := r.Float64(), r.Float64()
			for i := range side * side {
				lx, ly := (float64(i%side)+0.5)/float64(side), (float64(i/side)+0.5)/float64(side)
				w.Set(mu, i, 0.02+0.01/(0.003+(sx-lx)*(sx-lx)+(sy-ly)*(sy-ly)))
			}
		}
		return direct(w, sparsePositive(r, side*side, p, 0.04))
	}},
	{name: "pools", what: "pooled tests, each sample in six pools, few positive ones", make: func(r *rand.Rand, p int) setup {
		n := 150 + 50*r.IntN(3)
		m := fraction(r, n, 0.4, 0.8)
		w := mat.NewDense(m, n, nil)
		for i := range n {
			for _, mu := range r.Perm(m)[:6] {
				w.Set(mu, i, 1)
			}
		}
		return direct(w, sparsePositive(r, n, p, 0.08))
	}},
	{name: "random", what: "independent normal entries, sparse normal signals: what theory is about", make: func(r *rand.Rand, p int) setup {
		n := 200 + 100*r.IntN(3)
		w := masks(r, fraction(r, n, 0.4, 0.8), n, standard)
		return setup{w: baseline.Parts{Re: w}, x: sparse(r, n, p, 0.1, false)}
	}},
	{name: "random-complex", complex: true, what: "independent complex normal entries, sparse complex signals", make: func(r *rand.Rand, p int) setup {
		n := 150 + 50*r.IntN(3)
		w := baseline.NewParts(fraction(r, n, 0.5, 0.8), n, true)
		w.Apply(func(int, int, complex128) complex128 { return normal(r, true) })
		return setup{w: w, x: sparse(r, n, p, 0.1, true)}
	}},
}

// kinds are all of them, a family after the other.
func kinds() (all []*kind) {
	for _, family := range [][]kind{cameras, spectrometers, optics, tomographs, arrays, networks} {
		for i := range family {
			all = append(all, &family[i])
		}
	}
	return all
}
