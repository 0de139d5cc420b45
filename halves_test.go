package calamp_test

import (
	"math"
	"math/cmplx"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/calamp/calamp"
	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/operator"
	"github.com/calamp/calamp/prior"
	"github.com/calamp/calamp/teacher"
)

// Gains that change in the middle of the snapshots are named, and gains that do not are not.
func TestHalvesSeeDrift(t *testing.T) {
	te := teacher.Teacher{N: 100, M: 100, P: 10, Signal: prior.GaussBernoulli{Density: 0.15, SignalVar: 1}, Gain: channel.GainPrior{Lo: 0.7, Hi: 1.3}, NoiseVar: 1e-3}
	for _, drift := range []float64{0, 0.1} {
		in, err := te.Draw(1)
		if err != nil {
			t.Fatal(err)
		}
		p := te.Problem(in)
		rng := rand.New(rand.NewPCG(2, 41))
		for mu := range te.M {
			change := 1 + drift*rng.NormFloat64()
			for k := te.P / 2; k < te.P; k++ {
				p.Y.Set(mu, k, change*p.Y.At(mu, k))
			}
		}
		res := solve(t, p, &calamp.Options{Retry: true, Learn: calamp.Learn{Noise: true}})
		if got := warned(res, calamp.HalvesDisagree); got != (drift > 0) {
			t.Errorf("gains that change by %g: %v, warned %v", drift, res.Status, got)
		}
	}
}

// lineOfAntennas is a line of m antennas with free phases, and three sources in each of so many snapshots, off the grid of directions by up to half of its step as given.
func lineOfAntennas(seed uint64, m, snapshots int, off float64) *calamp.Problem {
	rng := rand.New(rand.NewPCG(seed, 41))
	n := m - 1
	steer := func(mu int, at float64) complex128 {
		return cmplx.Rect(1/math.Sqrt(float64(n)), 2*math.Pi*(float64(mu)-float64(m-1)/2)*at/float64(m))
	}
	values, s := make([]complex128, 0, m*n), make([]complex128, m)
	for mu := range m {
		s[mu] = cmplx.Rect(1, 2*math.Pi*rng.Float64())
		for i := range n {
			values = append(values, steer(mu, float64(i-n/2)))
		}
	}
	w, err := operator.NewComplex(m, n, values)
	if err != nil {
		panic(err)
	}
	y := mat.NewCDense(m, snapshots, nil)
	for k := range snapshots {
		for _, i := range rng.Perm(n)[:3] {
			at := float64(i-n/2) + off*(rng.Float64()-0.5)
			x := complex(rng.NormFloat64(), rng.NormFloat64())
			for mu := range m {
				y.Set(mu, k, y.At(mu, k)+x*steer(mu, at)/s[mu])
			}
		}
		for mu := range m {
			y.Set(mu, k, y.At(mu, k)+complex(1e-3*rng.NormFloat64(), 1e-3*rng.NormFloat64()))
		}
	}
	start := prior.ComplexGaussBernoulli{Density: 0.1, SignalVar: 2}
	return &calamp.Problem{
		W: w, Y: calamp.Pairs(y), Prior: start.Learning(prior.Density | prior.SignalVar),
		Channel: channel.ComplexGain{Prior: channel.ComplexPrior{Lo: 0.8, Hi: 1.25}, NoiseVar: 1e-4},
	}
}

// Sources between the directions of W are in the noise that is learned, and each half of the snapshots makes other gains of them.
func TestHalvesSeeWhatIsLeftOut(t *testing.T) {
	if testing.Short() {
		t.Skip("one core, and minutes with the race detector")
	}
	for _, off := range []float64{0, 1} {
		res := solve(t, lineOfAntennas(2, 20, 12, off), &calamp.Options{Retry: true, Learn: calamp.Learn{Noise: true}})
		if got := warned(res, calamp.HalvesDisagree); got != (off > 0) {
			t.Errorf("off the grid by %g of its step: %v, warned %v", off, res.Status, got)
		}
	}
}
