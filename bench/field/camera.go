package main

import (
	"math"
	"math/bits"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/mat"

	"github.com/calamp/calamp/internal/sandals"
)

// Single-pixel cameras: each row of W is a pattern on a micromirror array, and "sensors" are the patterns, whose brightness
// differs, or the pixels of a detector behind a coded plate.

var cameras = []kind{
	{name: "camera-binary", what: "single-pixel camera, masks of 0 and 1, natural scenes in cosines", make: func(r *rand.Rand, p int) setup {
		side := 16
		return behind(masks(r, fraction(r, side*side, 0.55, 0.85), side*side, zeroOrOne), natural(r, side, p), dct2(side))
	}},
	{name: "camera-signs", what: "single-pixel camera, differential masks of ±1, natural scenes in cosines", make: func(r *rand.Rand, p int) setup {
		side := 16
		return behind(masks(r, fraction(r, side*side, 0.5, 0.8), side*side, plusOrMinus), natural(r, side, p), dct2(side))
	}},
	{name: "camera-hadamard", what: "single-pixel camera, rows of the Hadamard matrix, natural scenes in cosines", make: func(r *rand.Rand, p int) setup {
		side := 16
		return behind(hadamard(r, fraction(r, side*side, 0.5, 0.9), side), natural(r, side, p), dct2(side))
	}},
	{name: "camera-haar", what: "single-pixel camera, masks of 0 and 1, scenes with edges in Haar wavelets", make: func(r *rand.Rand, p int) setup {
		side := 16
		pixels := scenes(p, func() []float64 { return blocks(r, side) })
		return behind(masks(r, fraction(r, side*side, 0.55, 0.85), side*side, zeroOrOne), pixels, haar2(side))
	}},
	{name: "camera-raster", what: "single-pixel camera, windows that overlap go over the scene, natural scenes in cosines", make: func(r *rand.Rand, p int) setup {
		side := 16
		return behind(raster(r, side, 3+r.IntN(3)), natural(r, side, p), dct2(side))
	}},
	{name: "camera-spots", what: "single-pixel microscope, masks of 0 and 1, bright spots on black", make: func(r *rand.Rand, p int) setup {
		side := 16 + 4*r.IntN(2)
		n := side * side
		return direct(masks(r, fraction(r, n, 0.3, 0.6), n, zeroOrOne), scenes(p, func() []float64 { return spots(r, side, n/20) }))
	}},
	{name: "camera-text", what: "single-pixel camera, Hadamard masks of 0 and 1, strokes of text", make: func(r *rand.Rand, p int) setup {
		side := 16
		h := hadamard(r, fraction(r, side*side, 0.6, 0.9), side)
		h.Apply(func(_, _ int, v float64) float64 { return 0.5 * (1 + v) }, h)
		return direct(h, scenes(p, func() []float64 { return text(r, side) }))
	}},
	{name: "camera-sandals", what: "single-pixel camera, masks of ±1, photographs of sandals, 28×28", make: func(r *rand.Rand, p int) setup {
		all, err := sandals.Load(sandals.Count)
		if err != nil {
			panic(err) // they are part of the program
		}
		pixels := mat.NewDense(sandals.Size, p, nil)
		for k := range p {
			pixels.SetCol(k, mat.Col(nil, r.IntN(sandals.Count), all))
		}
		return direct(masks(r, fraction(r, sandals.Size, 0.5, 0.75), sandals.Size, plusOrMinus), pixels)
	}},
	{name: "camera-line", what: "line of 128 pixels behind masks of 0 and 1, scenes in steps (gradients)", make: func(r *rand.Rand, p int) setup {
		n := 128
		steps := scenes(p, func() []float64 {
			c := make([]float64, n)
			for i := range c {
				if r.Float64() < 0.06 {
					c[i] = 0.5 * r.NormFloat64()
				}
			}
			c[0] = 0.5 + r.Float64()
			return c
		})
		sums := mat.NewDense(n, n, nil)
		for i := range n {
			for j := range i + 1 {
				sums.Set(i, j, 1)
			}
		}
		var w mat.Dense
		w.Mul(masks(r, fraction(r, n, 0.7, 1), n, zeroOrOne), sums)
		s := direct(&w, steps)
		s.mean = unit(n, 0)
		return s
	}},
}

// fraction is a number of sensors for n entries, between those fractions.
func fraction(r *rand.Rand, n int, least, most float64) int {
	return int(float64(n) * (least + (most-least)*r.Float64()))
}

func zeroOrOne(r *rand.Rand) float64   { return float64(r.IntN(2)) }
func plusOrMinus(r *rand.Rand) float64 { return float64(2*r.IntN(2) - 1) }
func standard(r *rand.Rand) float64    { return r.NormFloat64() }

// masks are m×n independent entries.
func masks(r *rand.Rand, m, n int, entry func(r *rand.Rand) float64) *mat.Dense {
	w := mat.NewDense(m, n, nil)
	w.Apply(func(int, int, float64) float64 { return entry(r) }, w)
	return w
}

// hadamard are m rows of the Walsh–Hadamard matrix for side×side pixels, side a power of two, as cameras take them: half of them those of
// least sequency, the others anywhere.
func hadamard(r *rand.Rand, m, side int) *mat.Dense {
	n := side * side
	rows := r.Perm(n)
	sequency := func(row int) int {
		changes := func(u int) (count int) {
			for i := 1; i < side; i++ {
				count += (bits.OnesCount(uint(u&i)) + bits.OnesCount(uint(u&(i-1)))) % 2
			}
			return count
		}
		v, u := changes(row/side), changes(row%side)
		return u*u + v*v
	}
	slices.SortStableFunc(rows, func(a, b int) int { return sequency(a) - sequency(b) })
	rest := rows[m/2:]
	r.Shuffle(len(rest), func(i, j int) { rest[i], rest[j] = rest[j], rest[i] })
	w := mat.NewDense(m, n, nil)
	for mu := range m {
		for i := range n {
			w.Set(mu, i, 1-2*float64(bits.OnesCount(uint(rows[mu]&i))%2))
		}
	}
	return w
}

// raster are windows of width×width pixels, one every second pixel, with weights that fall to their edges.
func raster(r *rand.Rand, side, width int) *mat.Dense {
	var rows []float64
	m := 0
	for top := 1 - width; top < side; top++ {
		for left := 1 - width; left < side; left++ {
			if (top+left)%2 != 0 || r.IntN(8) == 0 {
				continue
			}
			row := make([]float64, side*side)
			for y := max(0, top); y < min(side, top+width); y++ {
				for x := max(0, left); x < min(side, left+width); x++ {
					row[y*side+x] = 1
				}
			}
			rows = append(rows, row...)
			m++
		}
	}
	return mat.NewDense(m, side*side, rows)
}

// blocks is a scene of rectangles on a grid of eighths, each of one level.
func blocks(r *rand.Rand, side int) []float64 {
	img := make([]float64, side*side)
	for i := range img {
		img[i] = 0.3
	}
	for range 2 + r.IntN(3) {
		step := side / 8
		top, left := step*r.IntN(7), step*r.IntN(7)
		height, width := step*(1+r.IntN(4)), step*(1+r.IntN(4))
		level := 0.1 + 0.9*r.Float64()
		for y := top; y < min(side, top+height); y++ {
			for x := left; x < min(side, left+width); x++ {
				img[y*side+x] = level
			}
		}
	}
	return img
}

// bell is exp(-½((x-centre)/sd)²).
func bell(x, centre, sd float64) float64 {
	return math.Exp(-0.5 * (x - centre) * (x - centre) / (sd * sd))
}
