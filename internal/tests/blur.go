package tests

import (
	"math"
	"math/rand/v2"

	"gonum.org/v1/gonum/mat"
)

// BehindBlur is a problem of p scenes of m pixels behind a blur, in cosines that fall as one over their frequency: W (M×M), the scenes, their readings with noise of .01, and s. The gain is that of a place from -1 to 1.
func BehindBlur(r *rand.Rand, m, p int, gain func(r *rand.Rand, u float64) float64) (w, x, y *mat.Dense, s []float64) {
	blur, cosines := mat.NewDense(m, m, nil), mat.NewDense(m, m, nil)
	w, x, y = new(mat.Dense), mat.NewDense(m, p, nil), new(mat.Dense)
	blur.Apply(func(i, j int, _ float64) float64 { return math.Exp(-0.5 * float64((i-j)*(i-j)) / 4) }, blur)
	cosines.Apply(func(i, j int, _ float64) float64 {
		return math.Cos(math.Pi * float64(j) * (float64(i) + 0.5) / float64(m))
	}, cosines)
	x.Apply(func(i, _ int, _ float64) float64 { return r.NormFloat64() / float64(1+i) }, x)
	w.Mul(blur, cosines)
	y.Mul(w, x)
	s = make([]float64, m)
	for mu := range s {
		s[mu] = 1 / gain(r, 2*float64(mu)/float64(m-1)-1)
		for k := range p {
			y.Set(mu, k, (y.At(mu, k)+0.01*r.NormFloat64())/s[mu])
		}
	}
	return w, x, y, s
}

// Vignetting falls by a third from the middle to the ends, and scatters by 2 %.
func Vignetting(r *rand.Rand, u float64) float64 { return (1 - u*u/3) * (1 + 0.02*r.NormFloat64()) }
