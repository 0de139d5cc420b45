package amp

import "math"

const (
	// commonChance is how many standard deviations what all sensors read too much in a signal must be from 0 to be reported: one
	// healthy signal in 1.7 million has as much. Where the signal was not found that has a cause, and commonCause is
	// enough, which one in 370 of those that were not found for another cause has.
	commonChance = 5
	commonCause  = 3

	// LeastForCommon is the number of sensors for residuals that have a mean.
	LeastForCommon = 20
)

// Disturbance is CommonConstant where that is more than chance, 0 elsewhere. It is given whether signal k was not found
// where most are.
func (s *State) Disturbance(y []float64, k int, lost bool) (c, t float64) {
	limit := float64(commonChance)
	if lost {
		limit = commonCause
	}
	if c, t = s.CommonConstant(y, k); !(math.Abs(t) > limit) {
		return 0, 0
	}
	return c, t
}

// CommonConstant is what all sensors seem to read too much in signal k, y = z/s + c, and by how many of its standard
// deviations that differs from 0. With g = (sy - ω)/D the slope of the evidence along c is Σ s g. The standard deviation is that
// which the residuals have, not what they should have: it is their signs that tell, and those of a W whose rows have no direction in
// common are those of coins. Where they have one, signals take up the constant, and it tells less. The readings y
// (M×P) are given with those that were left out of s.
func (s *State) CommonConstant(y []float64, k int) (c, t float64) {
	var slope, square, information float64
	for j := k; j < len(y); j += s.P {
		mu := s.SensorOf(j)
		if math.IsNaN(y[j]) || s.OutOfOrder(mu) {
			continue
		}
		g, fall := s.G[j], -s.DG[j]
		if math.IsNaN(s.Y[j]) {
			fall = 1 / s.Doubt(j)
			g = (s.S[mu]*(y[j]-s.O[mu]) - s.Omega[j]) * fall
		}
		slope += s.S[mu] * g
		square += s.S[mu] * s.S[mu] * g * g
		information += s.S[mu] * s.S[mu] * fall
	}
	if !(square > 0) || !(information > 0) || math.IsInf(square, 1) {
		return 0, 0
	}
	return slope / information, slope / math.Sqrt(square)
}

// Brightness is the logarithm of the power of signal k as estimated, and the standard deviation that it has by chance where the
// entries are independent and of one distribution.
func (s *State) Brightness(k int) (logarithm, sd float64) {
	var second, fourth float64
	for _, x := range s.X[k*s.N : (k+1)*s.N] {
		second += x * x
		fourth += x * x * x * x
	}
	if square := second * second; !(square > 0) || math.IsInf(square, 1) {
		return math.Inf(-1), math.Inf(1)
	}
	return math.Log(second), math.Sqrt(max(0, fourth/(second*second)-1/float64(s.N)))
}
