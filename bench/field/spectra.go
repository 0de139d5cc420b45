package main

import (
	"math"
	"math/rand/v2"

	"gonum.org/v1/gonum/mat"
)

// Spectrometers and chemistry: sensors are detectors or wavelengths.

var spectrometers = []kind{
	{name: "spectrometer-lines", what: "compressive spectrometer, detectors behind smooth filters, emission lines", make: func(r *rand.Rand, p int) setup {
		n := 100 + 50*r.IntN(3)
		return direct(filters(r, fraction(r, n, 0.6, 0.9), n, 0.008), scenes(p, func() []float64 { return lines(r, n) }))
	}},
	{name: "spectrometer-smooth", what: "compressive spectrometer, detectors behind smooth filters, smooth positive spectra in cosines", make: func(r *rand.Rand, p int) setup {
		n := 128
		pixels := scenes(p, func() []float64 { return bands(r, n) })
		return behind(filters(r, fraction(r, n, 0.4, 0.8), n, 0.03), pixels, dct(n))
	}},
	{name: "spectrometer-bands", what: "twice as many smooth detectors as bands, smooth positive spectra solved for as they are", make: func(r *rand.Rand, p int) setup {
		n := 60 + 20*r.IntN(3)
		return direct(filters(r, 2*n, n, 0.02), scenes(p, func() []float64 { return bands(r, n) }))
	}},
	{name: "mixtures", what: "chemical mixtures, absorption of 150 to 300 wavelengths, few of 60 to 120 known substances each", make: func(r *rand.Rand, p int) setup {
		m, n := 150+50*r.IntN(4), 60+20*r.IntN(4)
		w := mat.NewDense(m, n, nil)
		for i := range n {
			for range 4 + r.IntN(6) {
				centre, sd, height := r.Float64(), 0.01+0.03*r.Float64(), r.Float64()
				for mu := range m {
					w.Set(mu, i, w.At(mu, i)+height*bell(float64(mu)/float64(m), centre, sd))
				}
			}
		}
		return direct(w, sparsePositive(r, n, p, 0.08))
	}},
}

// filters are m smooth transmissions, 0 to 1, at n wavelengths, with features of that width.
func filters(r *rand.Rand, m, n int, width float64) *mat.Dense {
	w := mat.NewDense(m, n, nil)
	kernel := gaussian(n, width*float64(n))
	for mu := range m {
		rough := make([]float64, n)
		for i := range rough {
			rough[i] = r.NormFloat64()
		}
		for i := range n {
			sum, square := 0.0, 0.0
			for j, v := range rough {
				k := kernel[max(i-j, j-i)]
				sum += k * v
				square += k * k
			}
			w.Set(mu, i, 1/(1+math.Exp(-2*sum/math.Sqrt(square))))
		}
	}
	return w
}

// lines is a spectrum of few emission lines.
func lines(r *rand.Rand, n int) []float64 {
	v := make([]float64, n)
	for range 3 + r.IntN(n/20) {
		v[r.IntN(n)] += 0.2 + r.ExpFloat64()
	}
	return v
}

// bands is a sum of a few broad bands on a background.
func bands(r *rand.Rand, n int) []float64 {
	v := make([]float64, n)
	for i := range v {
		v[i] = 0.05
	}
	for range 2 + r.IntN(4) {
		centre, sd, height := r.Float64(), 0.03+0.12*r.Float64(), 0.2+r.Float64()
		for i := range v {
			v[i] += height * bell(float64(i)/float64(n), centre, sd)
		}
	}
	return v
}

// sparsePositive are p columns of n entries, of which a fraction is exponentially distributed, and the others zero.
func sparsePositive(r *rand.Rand, n, p int, density float64) *mat.Dense {
	return scenes(p, func() []float64 {
		v := make([]float64, n)
		for i := range v {
			if r.Float64() < density {
				v[i] = 0.2 + r.ExpFloat64()
			}
		}
		v[r.IntN(n)] += 1 // never nothing
		return v
	})
}
