package diagnosis

import (
	"math"
	"math/cmplx"
	"math/rand/v2"
	"testing"
)

// Two halves with the errors that they state are one apart, whatever their common factor and their shift of directions; with three times these errors they disagree.
func TestCompareHalves(t *testing.T) {
	const sensors, sd = 80, 0.01
	rng := rand.New(rand.NewPCG(1, 41))
	ramp := make([]float64, sensors)
	for mu := range ramp {
		ramp[mu] = 0.07 * (float64(mu) - 30)
	}
	for _, times := range []float64{1, 3} {
		var halves [2]Half
		truth := make([]complex128, sensors)
		for mu := range truth {
			truth[mu] = cmplx.Rect(0.5+rng.Float64(), 2*math.Pi*rng.Float64())
		}
		for h := range halves {
			halves[h] = Half{make([]complex128, sensors), make([]float64, sensors)}
			for mu, s := range truth {
				halves[h].Var[mu] = sd * sd
				halves[h].S[mu] = s + complex(times*sd*math.Sqrt(0.5), 0)*complex(rng.NormFloat64(), rng.NormFloat64())
				if h == 1 {
					halves[h].S[mu] *= 1.3 * cmplx.Rect(1, 2+0.2*ramp[mu])
					halves[h].Var[mu] *= 1.3 * 1.3
				}
			}
		}
		halves[0].Var[5], halves[1].S[5] = math.Inf(1), 100 // one of which nothing is known
		a := Compare(halves[0], halves[1], ramp)
		if want := times * times; math.Abs(a.Ratio-want) > 5*want/math.Sqrt(sensors) || a.Sensors != sensors-1 {
			t.Errorf("errors %g times as stated: %.3g apart of %g sensors", times, a.Ratio, a.Sensors)
		}
		if a.Disagree() != (times > 1) {
			t.Errorf("errors %g times as stated: %v", times, a.Disagree())
		}
		if without := Compare(halves[0], halves[1], nil); without.Ratio < 10 {
			t.Errorf("a shift of directions that is not taken off: %.3g apart", without.Ratio)
		}
	}
}
