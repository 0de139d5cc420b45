package main

import (
	"math"
	"math/cmplx"
	"math/rand/v2"

	"github.com/calamp/calamp/internal/baseline"
)

// Arrays of antennas and microphones, and radar: sensors are elements or samples, gains are complex.

var arrays = []kind{
	{name: "antenna-uniform", complex: true, what: "uniform line of antennas, grid of directions, 2 to 5 sources", make: func(r *rand.Rand, p int) setup {
		m := 32 + 16*r.IntN(3)
		position := make([]float64, m)
		for mu := range position {
			position[mu] = 0.5 * float64(mu)
		}
		return line(r, position, 96+32*r.IntN(2), p, 2+r.IntN(4))
	}},
	{name: "antenna-coherent", complex: true, what: "uniform line of antennas, grid of directions four times as fine as the beam, 2 to 4 sources", make: func(r *rand.Rand, p int) setup {
		m := 32 + 16*r.IntN(2)
		position := make([]float64, m)
		for mu := range position {
			position[mu] = 0.5 * float64(mu)
		}
		return line(r, position, 4*m, p, 2+r.IntN(3))
	}},
	{name: "antenna-random", complex: true, what: "antennas at random places of a line, grid of directions, 2 to 6 sources", make: func(r *rand.Rand, p int) setup {
		m := 40 + 20*r.IntN(3)
		position := make([]float64, m)
		for mu := range position {
			position[mu] = 0.6 * float64(m) * r.Float64()
		}
		return line(r, position, 120+40*r.IntN(2), p, 2+r.IntN(5))
	}},
	{name: "microphones", complex: true, what: "40 to 80 microphones at random places of a plate, 121 to 225 places of sources in front of it, 3 to 5 at a time", make: func(r *rand.Rand, p int) setup {
		m, side := 40+20*r.IntN(3), 11+4*r.IntN(2)
		w := baseline.NewParts(m, side*side, true)
		const wavelength, distance = 0.1, 1.0 // metres: 3.4 kHz
		at := make([][2]float64, m)
		for mu := range at {
			at[mu] = [2]float64{r.Float64() - 0.5, r.Float64() - 0.5}
		}
		w.Apply(func(mu, i int, _ complex128) complex128 {
			x, y := 1.2*(float64(i%side)/float64(side-1)-0.5), 1.2*(float64(i/side)/float64(side-1)-0.5)
			d := math.Sqrt(distance*distance + (x-at[mu][0])*(x-at[mu][0]) + (y-at[mu][1])*(y-at[mu][1]))
			return cmplx.Rect(1/d, 2*math.Pi*d/wavelength)
		})
		return setup{w: w, x: sources(r, side*side, max(p, 3), 3+r.IntN(3))}
	}},
	{name: "radar", complex: true, what: "radar: echoes of a random waveform, delays by Doppler shifts, few targets", make: func(r *rand.Rand, p int) setup {
		delays, shifts := 24, 8
		m := 96 + 32*r.IntN(3)
		wave := make([]complex128, m)
		for i := range wave {
			wave[i] = cmplx.Rect(1, 2*math.Pi*r.Float64())
		}
		w := baseline.NewParts(m, delays*shifts, true)
		w.Apply(func(mu, i int, _ complex128) complex128 {
			delay, shift := i%delays, i/delays-shifts/2
			return wave[(mu-delay+m)%m] * cmplx.Rect(1, 2*math.Pi*float64(shift*mu)/float64(m))
		})
		shift := func(i, j int) int { return (i/delays+j)%shifts*delays + i%delays } // the clock's frequency
		return setup{w: w, x: sources(r, delays*shifts, p, 4+r.IntN(6)), moves: shifts, moved: shift}
	}},
}

// line is an array of elements at those positions, in wavelengths, with n directions, evenly spaced in their sine.
func line(r *rand.Rand, position []float64, n, p, active int) setup {
	m := len(position)
	w := baseline.NewParts(m, n, true)
	w.Apply(func(mu, i int, _ complex128) complex128 {
		sine := 2*(float64(i)+0.5)/float64(n) - 1
		return cmplx.Rect(1, 2*math.Pi*position[mu]*sine)
	})
	return setup{w: w, x: sources(r, n, p, active), moves: n, moved: func(i, j int) int { return (i + j) % n }}
}

// sources are so many of n places at a time, others in every snapshot, with complex normal amplitudes.
func sources(r *rand.Rand, n, p, active int) baseline.Parts {
	x := baseline.NewParts(n, p, true)
	for k := range p {
		for range active {
			x.Set(r.IntN(n), k, normal(r, true)+cmplx.Rect(0.5, 2*math.Pi*r.Float64()))
		}
	}
	return x
}
