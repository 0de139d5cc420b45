package dataset

import (
	"fmt"
	"math"
	"slices"
)

// noiseNames are the arrays that hold noise variances: in a result, and the truth in a problem.
var noiseNames = []string{"noise_var", "noise_var0"}

// placeOf is which value of a vector or matrix is meant.
func placeOf(j int, shape []int) string {
	if len(shape) == 2 {
		return fmt.Sprintf("sensor %d, signal %d", j/shape[1], j%shape[1])
	}
	return fmt.Sprintf("sensor %d", j)
}

// LoadNoise reads the noise variances of m sensors from a .npy, or from the array noise_var
// (or noise_var0) of a .npz or .mat such as a former result: one a sensor, or M×P, one a
// reading of p signals, which are returned sensor by sensor. A single number is that of all sensors.
func LoadNoise(path string, m, p int) ([]float64, error) {
	c, err := open(path)
	if err != nil {
		return nil, err
	}
	defer c.close()
	name := noiseNames[0]
	if i := slices.IndexFunc(noiseNames, func(name string) bool { return c.find(name) != nil }); i >= 0 && c.format != npyFormat {
		name = noiseNames[i]
	}
	a, err := c.read(name, false)
	if err != nil {
		return nil, err
	}
	for j, v := range a.Data {
		if !(v >= 0) || math.IsInf(v, 1) {
			return nil, a.fault("the noise variance of %s is %g, expected a finite number, not below 0", placeOf(j, a.Shape), v)
		}
	}
	return a.ofReadings("noise variances", m, p)
}

// ofReadings are numbers of all sensors (M), or readings (M×P, sensor by sensor); a single one is that of all sensors.
func (a *Array) ofReadings(what string, m, p int) ([]float64, error) {
	switch shape := a.Shape; {
	case a.count() == 1:
		return slices.Repeat(a.Data, m), nil
	case a.isVector() && a.count() == m, len(shape) == 2 && shape[0] == m && shape[1] == p:
		return a.Data, nil
	case len(shape) == 2 && shape[0] == p && shape[1] == m:
		return nil, a.fault("%s are %s: this looks transposed, expected M×P = %d×%d", what, a.dims(), m, p)
	}
	return nil, a.fault("%s are %s, expected %d, one a sensor, or %d×%d, one a reading", what, a.dims(), m, m, p)
}

// LoadThresholds reads what m sensors compare with from a .npy, or from the array threshold of a .npz or .mat: one a sensor, or M×P, one a reading of p signals. One of every reading is returned,
// sensor by sensor.
func LoadThresholds(path string, m, p int) ([]float64, error) {
	a, err := LoadArray(path, "threshold")
	if err != nil {
		return nil, err
	}
	for j, v := range a.Data {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return nil, a.fault("the threshold of %s is %g, expected a finite number", placeOf(j, a.Shape), v)
		}
	}
	if m == 0 {
		return a.Data, nil
	}
	given, err := a.ofReadings("thresholds", m, p)
	if err != nil || len(given) == m*p {
		return given, err
	}
	each := make([]float64, 0, m*p)
	for _, v := range given {
		each = append(each, slices.Repeat([]float64{v}, p)...)
	}
	return each, nil
}
