package main

import (
	"math"
	"math/rand/v2"
	"sync"

	"gonum.org/v1/gonum/mat"

	"github.com/calamp/calamp/internal/baseline"
)

// Scenes of side×side pixels, row by row, none negative.

// deadLeaves are discs that hide each other, their radii distributed as r⁻³ (A. B. Lee, D. Mumford and J. Huang, "Occlusion
// models for natural images", 2001), with shading inside, seen through optics that blur by so many pixels.
func deadLeaves(r *rand.Rand, side int, blur float64) []float64 {
	img := make([]float64, side*side)
	least, most := 0.12*float64(side), 0.8*float64(side)
	for i := range img {
		img[i] = -1
	}
	for left := len(img); left > len(img)/200; { // the front first
		u := r.Float64()
		radius := 1 / math.Sqrt(u/(most*most)+(1-u)/(least*least))
		cy, cx := (1.4*r.Float64()-0.2)*float64(side), (1.4*r.Float64()-0.2)*float64(side)
		level, angle, slope := 0.1+0.9*r.Float64(), 2*math.Pi*r.Float64(), 0.3*r.Float64()
		for y := range side {
			for x := range side {
				dy, dx := float64(y)-cy, float64(x)-cx
				if i := y*side + x; img[i] < 0 && dy*dy+dx*dx < radius*radius {
					img[i] = level * (1 + slope*(math.Sin(angle)*dy+math.Cos(angle)*dx)/radius)
					left--
				}
			}
		}
	}
	for i := range img {
		img[i] = max(0, img[i])
	}
	return blurred(img, side, blur)
}

// clouds are a random field with the spectrum of natural images, amplitudes that fall as f^-exponent, and the mean one.
func clouds(r *rand.Rand, side int, exponent float64) []float64 {
	c := make([]float64, side*side)
	for v := range side {
		for u := range side {
			if f := math.Hypot(float64(u), float64(v)); f > 0 {
				c[v*side+u] = r.NormFloat64() * math.Pow(f, -exponent)
			}
		}
	}
	img := dct2(side).apply(c)
	least, most := math.Inf(1), math.Inf(-1)
	for _, v := range img {
		least, most = min(least, v), max(most, v)
	}
	for i, v := range img {
		img[i] = 0.1 + 0.9*(v-least)/(most-least)
	}
	return img
}

// spots are bright points, beads or stars, on black.
func spots(r *rand.Rand, side int, count int) []float64 {
	img := make([]float64, side*side)
	for range count {
		img[r.IntN(len(img))] += 0.3 + r.ExpFloat64()
	}
	return img
}

// text is a few strokes of one level, as of letters: bars along the axes, on black.
func text(r *rand.Rand, side int) []float64 {
	img := make([]float64, side*side)
	cell := max(4, side/4)
	for top := 0; top+cell <= side; top += cell {
		for left := 0; left+cell <= side; left += cell {
			if r.IntN(3) == 0 {
				continue
			}
			for range 2 + r.IntN(2) {
				at, along := r.IntN(cell-1), r.IntN(2) == 0
				for t := range cell - 1 {
					if along {
						img[(top+at)*side+left+t] = 1
					} else {
						img[(top+t)*side+left+at] = 1
					}
				}
			}
		}
	}
	img[0] = 1 // never nothing
	return img
}

// blurred is the image behind a Gaussian point spread function of so many pixels, without what would come from outside.
func blurred(img []float64, side int, sd float64) []float64 {
	if sd == 0 {
		return img
	}
	kernel := gaussian(side, sd)
	out := make([]float64, len(img))
	for _, stride := range []int{1, side} {
		across := side + 1 - stride // from a line to the next: side or 1
		for line := range side {
			for i := range side {
				sum := 0.0
				total := 0.0
				for j := range side {
					w := kernel[max(i-j, j-i)]
					sum += w * img[line*across+j*stride]
					total += w
				}
				out[line*across+i*stride] = sum / total
			}
		}
		img = append([]float64(nil), out...)
	}
	return out
}

// gaussian are the values of a bell of that standard deviation at 0, 1, …, with the sum one on both sides.
func gaussian(n int, sd float64) []float64 {
	k := make([]float64, n)
	total := 0.0
	for i := range k {
		k[i] = math.Exp(-0.5 * float64(i*i) / (sd * sd))
		total += k[i]
		if i > 0 {
			total += k[i]
		}
	}
	for i := range k {
		k[i] /= total
	}
	return k
}

// scenes are p columns of one kind, or a mixture of clouds and leaves.
func scenes(p int, one func() []float64) *mat.Dense {
	first := one()
	x := mat.NewDense(len(first), p, nil)
	x.SetCol(0, first)
	for k := 1; k < p; k++ {
		x.SetCol(k, one())
	}
	return x
}

// natural draws natural-like images: smooth ones, and ones with edges.
func natural(r *rand.Rand, side, p int) *mat.Dense {
	return scenes(p, func() []float64 {
		if r.IntN(2) == 0 {
			return clouds(r, side, 2.2+0.8*r.Float64())
		}
		return deadLeaves(r, side, float64(side)/16*(1+r.Float64()))
	})
}

// A basis has orthonormal columns b (N×N); signals are b times coefficients, of which the first is the mean.
type basis struct{ b *mat.Dense }

func (b basis) apply(c []float64) []float64 {
	var v mat.VecDense
	v.MulVec(b.b, mat.NewVecDense(len(c), c))
	return v.RawVector().Data
}

// dct is the basis of n cosines.
func dct(n int) basis {
	b := mat.NewDense(n, n, nil)
	for i := range n {
		for u := range n {
			v := math.Sqrt(2/float64(n)) * math.Cos(math.Pi*(float64(i)+0.5)*float64(u)/float64(n))
			if u == 0 {
				v = math.Sqrt(1 / float64(n))
			}
			b.Set(i, u, v)
		}
	}
	return basis{b}
}

// dct2 is that of images of side×side, made once for each side.
func dct2(side int) basis {
	known, ok := cosines.Load(side)
	if !ok {
		known, _ = cosines.LoadOrStore(side, product(dct(side), dct(side)))
	}
	return known.(basis)
}

var cosines sync.Map // basis by side

// haar is the basis of Haar wavelets of n, a power of two.
func haar(n int) basis {
	b := mat.NewDense(n, n, nil)
	for i := range n {
		b.Set(i, 0, math.Sqrt(1/float64(n)))
	}
	column := 1
	for width := n; width > 1; width /= 2 {
		for start := 0; start < n; start += width {
			for i := range width {
				v := math.Sqrt(1 / float64(width))
				if i >= width/2 {
					v = -v
				}
				b.Set(start+i, column, v)
			}
			column++
		}
	}
	return basis{b}
}

// haar2 is the tensor product of Haar wavelets for images of side×side.
func haar2(side int) basis { return product(haar(side), haar(side)) }

func product(a, b basis) basis {
	var k mat.Dense
	k.Kronecker(a.b, b.b)
	return basis{&k}
}

// behind is the instrument whose matrix is masks for signals that are pixels (N×P), solved for in a basis.
func behind(masks, pixels *mat.Dense, b basis) setup {
	var w, x mat.Dense
	w.Mul(masks, b.b)
	x.Mul(b.b.T(), pixels)
	_, n := w.Dims()
	return setup{w: baseline.Parts{Re: &w}, x: baseline.Parts{Re: &x}, mean: unit(n, 0)}
}

// direct is the same for signals that are solved for as they are.
func direct(w, x *mat.Dense) setup {
	n, _ := x.Dims()
	flat := make([]float64, n)
	for i := range flat {
		flat[i] = 1 / math.Sqrt(float64(n))
	}
	return setup{w: baseline.Parts{Re: w}, x: baseline.Parts{Re: x}, mean: flat, positive: mat.Min(x) >= 0}
}

func unit(n, i int) []float64 {
	u := make([]float64, n)
	u[i] = 1
	return u
}
