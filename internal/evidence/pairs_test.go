package evidence

import (
	"fmt"
	"math"
	"math/cmplx"
	"math/rand/v2"
	"testing"
	"time"
)

func TestSpikePairs(t *testing.T) {
	const sensors, n, active, p, noise = 8, 200, 20, 30, 1e-6
	var of [][2]int
	for j := range sensors {
		for i := range j {
			of = append(of, [2]int{i, j})
		}
	}
	m := len(of)
	for seed := range uint64(4) {
		rng := rand.New(rand.NewPCG(seed, 38))
		normal := func() complex128 { return complex(rng.NormFloat64(), rng.NormFloat64()) / complex(math.Sqrt2, 0) }
		w, x, y := make([]complex128, m*n), make([]complex128, n*p), make([]complex128, m*p)
		for i := range w {
			w[i] = normal() / complex(math.Sqrt(n), 0)
		}
		for _, i := range rng.Perm(n)[:active] {
			for k := range p {
				x[i*p+k] = normal()
			}
		}
		g := make([]complex128, sensors)
		for i := range g {
			g[i] = cmplx.Rect(math.Exp(0.2*rng.NormFloat64()), rng.NormFloat64())
		}
		s := make([]complex128, m)
		for mu, pair := range of {
			s[mu] = g[pair[0]] * cmplx.Conj(g[pair[1]])
			for k := range p {
				z := complex(math.Sqrt(noise), 0) * normal()
				for i := range n {
					z += w[mu*n+i] * x[i*p+k]
				}
				y[mu*p+k] = z / s[mu]
			}
		}
		for _, given := range []float64{0, noise} {
			for draw := range uint64(4) {
				f := NewComplex(m, n, p, func(mu, i int) complex128 { return w[mu*n+i] }, func(mu, k int) complex128 { return y[mu*p+k] }, draw)
				f.Joint, f.GivenNoise = true, given
				f.Pairs(of, sensors, draw)
				begun := time.Now()
				for done := false; !done; {
					var err error
					if done, err = f.Step(); err != nil {
						t.Fatal(err)
					}
				}
				var c complex128
				norm := 0.0
				for mu := range s {
					c += cmplx.Conj(f.S[mu]) * s[mu]
					norm += square(f.S[mu])
				}
				c /= complex(norm, 0)
				off, size := 0.0, 0.0
				for k, q := range f.Snapshots {
					for i, v := range q.X {
						off += square(v*c - x[i*p+k])
						size += square(x[i*p+k])
					}
				}
				fmt.Println(seed, given, draw, "steps", f.steps, "x", math.Sqrt(off/size), "noise", f.Noise*square(c), "Z", f.LogEvidence(), f.settled, "c", c, time.Since(begun).Round(time.Millisecond))
			}
		}
	}
}
