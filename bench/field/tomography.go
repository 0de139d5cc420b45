package main

import (
	"math"
	"math/rand/v2"

	"gonum.org/v1/gonum/mat"

	"github.com/calamp/calamp/internal/baseline"
)

// Tomography: sensors are rays, or lines of the Fourier plane.

var tomographs = []kind{
	{name: "tomography-parallel", what: "8 to 14 angles of parallel rays, bright inclusions", make: func(r *rand.Rand, p int) setup {
		side := 16
		return direct(parallel(side, 8+r.IntN(7)), scenes(p, func() []float64 { return spots(r, side, 6+r.IntN(10)) }))
	}},
	{name: "tomography-fan", what: "7 to 12 positions of a source, a fan of rays each, bright inclusions", make: func(r *rand.Rand, p int) setup {
		side := 16
		return direct(fan(r, side, 7+r.IntN(6), 24), scenes(p, func() []float64 { return spots(r, side, 6+r.IntN(10)) }))
	}},
	{name: "tomography-blocks", what: "12 to 16 angles of parallel rays, objects with edges in Haar wavelets", make: func(r *rand.Rand, p int) setup {
		side := 16
		return behind(parallel(side, 12+r.IntN(5)), scenes(p, func() []float64 { return blocks(r, side) }), haar2(side))
	}},
	{name: "fourier-masks", complex: true, what: "MRI-like: random lines of the Fourier plane, denser in the middle, natural scenes in cosines", make: func(r *rand.Rand, p int) setup {
		side := 16
		w := fourier(r, side, fraction(r, side*side, 0.65, 0.9))
		c := dct2(side)
		w.Re.Mul(mat.DenseCopyOf(w.Re), c.b)
		w.Im.Mul(mat.DenseCopyOf(w.Im), c.b)
		pixels := natural(r, side, p)
		x := baseline.NewParts(side*side, p, true)
		x.Re.Mul(c.b.T(), pixels)
		return setup{w: w, x: x, mean: unit(side*side, 0)}
	}},
	{name: "fourier-points", complex: true, what: "interferometer: random points of the Fourier plane, stars", make: func(r *rand.Rand, p int) setup {
		side := 16
		w := fourier(r, side, fraction(r, side*side, 0.4, 0.7))
		x := baseline.NewParts(side*side, p, true)
		x.Re = scenes(p, func() []float64 { return spots(r, side, 8+r.IntN(8)) })
		shift := func(i, j int) int { return (i/side+j/side)%side*side + (i%side+j%side)%side }
		return setup{w: w, x: x, moves: side * side, moved: shift}
	}},
}

// parallel are rays of one pixel's width through side×side pixels, from so many angles; only those that meet the scene.
func parallel(side, angles int) *mat.Dense {
	var rows []float64
	m := 0
	for a := range angles {
		theta := math.Pi * float64(a) / float64(angles)
		for t := range side {
			row := make([]float64, side*side)
			ray(row, side, math.Cos(theta), math.Sin(theta), float64(t)-0.5*float64(side-1))
			rows, m = append(rows, row...), m+1
		}
	}
	return mat.NewDense(m, side*side, rows)
}

// fan are rays from sources on a circle around the scene.
func fan(r *rand.Rand, side, sources, rays int) *mat.Dense {
	w := mat.NewDense(sources*rays, side*side, nil)
	first := r.Float64()
	for a := range sources {
		angle := 2 * math.Pi * (float64(a) + first) / float64(sources)
		distance := 1.5 * float64(side)
		for t := range rays {
			tilt := angle + 0.7*((float64(t)+0.5)/float64(rays)-0.5)
			// the ray goes through the source, along (cos tilt, sin tilt); its normal is (-sin tilt, cos tilt)
			nx, ny := -math.Sin(tilt), math.Cos(tilt)
			at := nx*distance*math.Cos(angle) + ny*distance*math.Sin(angle)
			ray(w.RawRowView(a*rays+t), side, nx, ny, at)
		}
	}
	return w
}

// ray sets the weights of pixels on the strip |nx·x + ny·y - at| < 1, x and y from the middle, with weights that fall linearly.
func ray(row []float64, side int, nx, ny, at float64) {
	middle := 0.5 * float64(side-1)
	for y := range side {
		for x := range side {
			d := math.Abs(nx*(float64(x)-middle) + ny*(float64(y)-middle) - at)
			row[y*side+x] = max(0, 1-d)
		}
	}
}

// fourier are m points of the Fourier plane of side×side pixels, denser in the middle.
func fourier(r *rand.Rand, side, m int) baseline.Parts {
	type point struct {
		u, v int
		key  float64
	}
	var all []point
	for u := -side / 2; u < side/2; u++ {
		for v := -side / 2; v < side/2; v++ {
			f := math.Hypot(float64(u), float64(v))
			all = append(all, point{u, v, r.ExpFloat64() * (f + f*f/float64(side))}) // the middle always
		}
	}
	// the m smallest keys
	for i := range m {
		least := i
		for j := i; j < len(all); j++ {
			if all[j].key < all[least].key {
				least = j
			}
		}
		all[i], all[least] = all[least], all[i]
	}
	w := baseline.NewParts(m, side*side, true)
	return w.Apply(func(mu, i int, _ complex128) complex128 {
		phase := -2 * math.Pi * float64(all[mu].u*(i%side)+all[mu].v*(i/side)) / float64(side)
		return complex(math.Cos(phase), math.Sin(phase))
	})
}
