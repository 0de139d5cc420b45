package main

import (
	"math"
	"math/rand/v2"

	"gonum.org/v1/gonum/mat"

	"github.com/calamp/calamp/internal/baseline"
)

// Detectors of many pixels behind optics: sensors are pixels.

var optics = []kind{
	{name: "blur-line", what: "line detector with unequal pixels behind a Gaussian blur, spikes", make: func(r *rand.Rand, p int) setup {
		n := 120 + 40*r.IntN(3)
		kernel := gaussian(n, 0.7+0.7*r.Float64())
		w := mat.NewDense(n, n, nil)
		w.Apply(func(mu, i int, _ float64) float64 { return kernel[max(mu-i, i-mu)] }, w)
		return direct(w, sparsePositive(r, n, p, 0.05))
	}},
	{name: "blur-image", what: "camera with unequal pixels behind a Gaussian blur, stars", make: func(r *rand.Rand, p int) setup {
		side := 16 + 2*r.IntN(3)
		line := gaussian(side, 0.6+0.5*r.Float64())
		one := mat.NewDense(side, side, nil)
		one.Apply(func(mu, i int, _ float64) float64 { return line[max(mu-i, i-mu)] }, one)
		return direct(product(basis{one}, basis{one}).b, scenes(p, func() []float64 { return spots(r, side, side*side/25) }))
	}},
	{name: "blur-ring", what: "camera behind optics out of focus (discs), natural scenes in cosines", make: func(r *rand.Rand, p int) setup {
		side, radius := 16, 1.5+1.5*r.Float64()
		w := mat.NewDense(side*side, side*side, nil)
		w.Apply(func(mu, i int, _ float64) float64 {
			if math.Hypot(float64(mu/side-i/side), float64(mu%side-i%side)) <= radius {
				return 1
			}
			return 0
		}, w)
		return behind(w, natural(r, side, p), dct2(side))
	}},
	{name: "coded-aperture", what: "gamma camera behind a cyclic mask of 0 and 1, point sources", make: func(r *rand.Rand, p int) setup {
		side := []int{11, 13, 17}[r.IntN(3)]
		mask := uniformlyRedundant(side)
		w := mat.NewDense(side*side, side*side, nil)
		w.Apply(func(mu, i int, _ float64) float64 {
			return mask[(mu/side+i/side)%side*side+(mu%side+i%side)%side]
		}, w)
		return direct(w, scenes(p, func() []float64 { return spots(r, side, 3+r.IntN(6)) }))
	}},
	{name: "push-broom", what: "line scanner, staggered pixels that overlap, lines of a natural scene in cosines", make: func(r *rand.Rand, p int) setup {
		n := 96
		m := n + r.IntN(n/2)
		kernel := func(x float64) float64 { return math.Max(0, 1-math.Abs(x)/1.5) }
		w := mat.NewDense(m, n, nil)
		w.Apply(func(mu, i int, _ float64) float64 { return kernel(float64(mu)*float64(n)/float64(m) - float64(i)) }, w)
		ground := clouds(r, n, 1.8) // the platform moves over it, a line a snapshot
		line := 0
		pixels := scenes(p, func() []float64 {
			line++
			return ground[(line-1)*n : line*n]
		})
		return behind(w, pixels, dct(n))
	}},
	{name: "light-field", what: "light field of 32 places and 8 angles behind a coded mask, objects at few depths, in cosines", make: func(r *rand.Rand, p int) setup {
		places, angles := 32, 8
		n := places * angles
		m := fraction(r, n, 0.5, 0.75)
		w := mat.NewDense(m, n, nil)
		for mu := range m { // a pixel sees its neighbourhood, through the mask, from all angles
			centre := float64(places) * (float64(mu) + 0.5) / float64(m)
			for i := range n {
				w.Set(mu, i, r.Float64()*bell(float64(i%places), centre, 2))
			}
		}
		pixels := scenes(p, func() []float64 {
			img := make([]float64, n)
			for range 2 + r.IntN(3) {
				centre, width, shift, level := r.Float64()*float64(places), 2+4*r.Float64(), 2*r.Float64()-1, 0.3+r.Float64()
				for i := range img {
					img[i] += level * bell(float64(i%places)-shift*float64(i/places-angles/2), centre, width)
				}
			}
			return img
		})
		return behind(w, pixels, product(dct(angles), dct(places)))
	}},
	{name: "random-convolution", what: "convolution with random signs, some of the pixels kept, spikes", make: func(r *rand.Rand, p int) setup {
		n := 128 << r.IntN(2)
		return setup{w: baseline.Parts{Re: convolution(r, fraction(r, n, 0.4, 0.7), n)}, x: sparse(r, n, p, 0.08, false)}
	}},
	{name: "random-convolution-complex", complex: true, what: "convolution with a random complex waveform, some of the samples kept, spikes", make: func(r *rand.Rand, p int) setup {
		n := 128 << r.IntN(2)
		w := baseline.NewParts(fraction(r, n, 0.5, 0.8), n, true)
		wave := make([]complex128, n)
		for i := range wave {
			wave[i] = normal(r, true)
		}
		rows := r.Perm(n)
		w.Apply(func(mu, i int, _ complex128) complex128 { return wave[(rows[mu]-i+n)%n] })
		return setup{w: w, x: sparse(r, n, p, 0.08, true)}
	}},
}

// convolution are m rows of a circulant matrix of random signs.
func convolution(r *rand.Rand, m, n int) *mat.Dense {
	wave := masks(r, 1, n, plusOrMinus).RawRowView(0)
	rows := r.Perm(n)
	w := mat.NewDense(m, n, nil)
	w.Apply(func(mu, i int, _ float64) float64 { return wave[(rows[mu]-i+n)%n] }, w)
	return w
}

// sparse are n×p entries, a fraction of them normally distributed and the others zero.
func sparse(r *rand.Rand, n, p int, density float64, complexOnes bool) baseline.Parts {
	return baseline.NewParts(n, p, complexOnes).Apply(func(i, k int, _ complex128) complex128 {
		if v := normal(r, complexOnes); r.Float64() < density || i == (k*37)%n { // never nothing
			return v
		}
		return 0
	})
}

// uniformlyRedundant is the modified uniformly redundant array of side×side, a prime (S. R. Gottesman and E. E. Fenimore, 1989).
func uniformlyRedundant(side int) []float64 {
	residue := make([]bool, side)
	for i := 1; i < side; i++ {
		residue[i*i%side] = true
	}
	mask := make([]float64, side*side)
	for i := 1; i < side; i++ {
		for j := range side {
			if j == 0 || residue[i] == residue[j] {
				mask[i*side+j] = 1
			}
		}
	}
	return mask
}
