package diagnosis

import (
	"fmt"
	"math"
	"slices"
)

const (
	// unevenChance is by how many standard errors the quartiles of the sizes of so many sensors'
	// residuals (1.17/√M, relative) must be farther apart than those of one noise. Runs with one noise have
	// 0.7 to 1.16 times the distance. See docs/log/validation.md.
	unevenChance = 5

	// leastForSize is the number of readings that tell the size of a sensor's residuals, and
	// leastSizes the number of such sensors for how they differ.
	leastForSize = 5
	leastSizes   = 20

	// quartiles is the distance between those of a standard normal number.
	quartiles = 1.3489795
)

// sizes compares the sizes of the sensors' residuals with each other: how many times as far apart they
// are as those of one noise, and the number of sensors. The logarithm of χ²/ν has the variance ψ′(ν/2); its
// quartiles do not care for a few sensors with readings that are wrong altogether. Signals that are not recovered do not count beside others
// that are: their residuals are no noise.
func (r *Run) sizes() (ratio float64, sensors int) {
	s := r.state
	var lost []int
	if w := r.warnUnexplained(); w != nil && len(w.Signals) < s.P {
		lost = w.Signals
	}
	var scores []float64
	for mu := range s.M {
		n, mean, _ := r.residualsOf(mu, 0, lost)
		chi := 0.0
		for j := mu * s.Each; j < (mu+1)*s.Each; j++ {
			if y := s.Y[j]; !math.IsNaN(y) && !slices.Contains(lost, j%s.P) {
				d := s.Residual(mu, j%s.Each) - mean
				chi += d * d / s.Doubt(j)
			}
		}
		if e, constant := r.Solver.Whitened(mu); e != nil {
			n, _, chi = along(e, constant)
		}
		if n -= float64(r.Solver.SensorParameters()); n < leastForSize || r.isBroken(mu) || !(chi > 0) {
			continue
		}
		half := 0.5 * (n - 2) // the calibration took one, and the mean, which is an offset's; parameters of the sensor, one each
		scores = append(scores, (math.Log(chi)-math.Log(2*half)+0.5/half+1/(12*half*half))/math.Sqrt(1/half+0.5/(half*half)+1/(6*half*half*half)))
	}
	if len(scores) < leastSizes {
		return 0, len(scores)
	}
	slices.Sort(scores)
	return (scores[3*len(scores)/4] - scores[len(scores)/4]) / quartiles, len(scores)
}

// warnUnequal tells of noise that differs from sensor to sensor, where it was taken to be the same.
func (r *Run) warnUnequal() *Warning {
	if r.Solver.Iterations == 0 || r.state.Unequal() || r.complex() || !r.additive() {
		return nil
	}
	ratio, sensors := r.sizes()
	if sensors < leastSizes || !(ratio > 1+unevenChance*1.17/math.Sqrt(float64(sensors))) {
		return nil
	}
	return &Warning{Code: NoiseUnequal, Message: fmt.Sprintf("the residuals of the sensors differ in size %.2g times as much as equal noise allows: some sensors are noisier than others, and all error bars assume the mean noise; give the noise of each, or learn it (--noise-var per-sensor)", ratio)}
}
