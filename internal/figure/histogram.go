package figure

import "math"

// Histogram counts the values in bins of equal width between lo and hi, as a
// series of bars. Values outside are counted in the first and last bin, so that
// outliers stay visible; NaN is not counted. It returns how many values were counted,
// and how many of them lay outside.
func Histogram(values []float64, lo, hi float64, bins int) (s Series, counted, outside int) {
	bins = max(bins, 1)
	if !(hi > lo) {
		lo, hi = lo-0.5, lo+0.5
	}
	width := (hi - lo) / float64(bins)
	s = Series{Style: Bars, X: make([]float64, bins), Y: make([]float64, bins)}
	for i := range s.X {
		s.X[i] = lo + (float64(i)+0.5)*width
	}
	for _, v := range values {
		if math.IsNaN(v) {
			continue
		}
		if v < lo || v > hi {
			outside++
		}
		counted++
		bin := math.Floor((v - lo) / width)
		s.Y[int(math.Max(0, math.Min(bin, float64(bins-1))))]++
	}
	return s, counted, outside
}
