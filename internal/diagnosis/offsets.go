package diagnosis

import (
	"fmt"
	"math"
)

const (
	// medianSquare is the median of the square of a standard normal number.
	medianSquare = 0.454936423119573

	// offsetRatio is how many times their expected size the typical squared row means of the
	// residuals must be for offsets, beyond what offsetChance standard errors of a median of as
	// many sensors allow (2.33/√M, relative). See docs/validation.md for what runs have.
	offsetRatio  = 2
	offsetChance = 6

	// leastForOffset is the number of readings that tell a sensor's mean from their spread, and
	// leastOffsets the number of such sensors for a typical one.
	leastForOffset = 3
	leastOffsets   = 20
)

// rowMeans compares the means of the sensors' residuals ŝy-ω with their spread: the median over
// the sensors of the squared t statistic, relative to what independent residuals have, and
// the number of sensors. An offset that nobody modelled is in all residuals of its
// sensor with the same sign, however much of it was taken for noise.
func (r *Run) rowMeans() (ratio float64, sensors int) {
	s := r.state
	var squares []float64
	for mu := range s.M {
		n, mean, spread := r.residualsOf(mu)
		if n < leastForOffset || r.isBroken(mu) || !(spread > 0) {
			continue
		}
		t := mean * mean * n * (n - 1) / spread
		// The median of t² with ν degrees of freedom is about 1+0.77/ν times that of a normal.
		squares = append(squares, t/(medianSquare*(1+0.77/(n-1))))
	}
	if len(squares) == 0 {
		return 0, 0
	}
	return median(squares), len(squares)
}

// residualsOf are the number, the mean and the sum of squared deviations of a sensor's residuals.
func (r *Run) residualsOf(mu int) (n, mean, spread float64) {
	s := r.state
	var all []float64
	for k := mu * s.P; k < (mu+1)*s.P; k++ {
		if y := s.Y[k]; !math.IsNaN(y) {
			all = append(all, s.S[mu]*y-s.Omega[k])
			mean += all[len(all)-1]
		}
	}
	n = float64(len(all))
	mean /= max(1, n)
	for _, v := range all {
		spread += (v - mean) * (v - mean)
	}
	return n, mean, spread
}

// warnOffsets tells of offsets that nobody modelled.
func (r *Run) warnOffsets() *Warning {
	if r.Solver.Iterations == 0 {
		return nil
	}
	ratio, sensors := r.rowMeans()
	if sensors < leastOffsets || !(ratio > offsetRatio+offsetChance*2.33/math.Sqrt(float64(sensors))) {
		return nil
	}
	return &Warning{Code: Offsets, Message: fmt.Sprintf("%d sensors read too much or too little by the same amount in all signals: the means of their residuals are %.2g times what chance makes them; they have offsets, y = z/s + o, and errors and error bars are those of a model without; take them off the readings", sensors, math.Sqrt(ratio))}
}
