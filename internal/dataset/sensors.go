package dataset

import (
	"math"
	"slices"

	"github.com/calamp/calamp"
)

// sensorsName is the array of the sensor that each row of W is read with: M integers from 0. A result has it, too, and
// beside it gain_row, the gains as rows have them.
const sensorsName, gainRowName = "sensors", "gain_row"

// LoadSensors reads the sensor that each of m rows of W is read with from a .npy, or from the array sensors of a .npz or .mat.
func LoadSensors(path string, m int) ([]int, error) {
	a, err := LoadArray(path, sensorsName)
	if err != nil {
		return nil, err
	}
	return a.sensors(m)
}

// sensors are the ids of m rows that are in the array; nil where there is no array.
func (a *Array) sensors(m int) ([]int, error) {
	if a == nil {
		return nil, nil
	}
	if !a.isVector() || a.count() != m {
		return nil, a.fault("sensors is %s, expected %d integers, one a row of W: the sensor that it is read with, from 0", a.dims(), m)
	}
	ids := make([]int, m)
	for row, v := range a.Data {
		if v != math.Trunc(v) || math.Abs(v) > math.MaxInt32 {
			return nil, a.fault("sensors of row %d is %g, expected an integer from 0", row, v)
		}
		ids[row] = int(v)
	}
	if err := calamp.CheckSensors(ids, m); err != nil {
		return nil, a.fault("%w", err)
	}
	return ids, nil
}

// sensorsOutputs are those of a result whose sensors have several rows.
func sensorsOutputs(r *calamp.Result) []output {
	if r.Sensors == nil {
		return nil
	}
	ids := integersOutput(sensorsName, []int{len(r.Sensors)}, r.Sensors)
	s := r.ComplexS()
	if s == nil {
		gain := r.OfRows(r.Gain)
		for row, s := range r.RowS {
			gain[row] = 1 / s
		}
		return []output{ids, vectorOutput(gainRowName, gain)}
	}
	gain := make([]complex128, len(r.Sensors))
	for row, g := range r.Sensors {
		gain[row] = 1 / s[g]
	}
	return []output{ids, complexVectorOutput(gainRowName, gain)}
}

// sensorsOf are the ids in a result; nil where it has none.
func (l *resultLoader) sensorsOf(sensors int) []int {
	if l.err != nil || l.c.find(sensorsName) == nil {
		return nil
	}
	a := l.read(sensorsName)
	if l.err != nil {
		return nil
	}
	var ids []int
	if ids, l.err = a.sensors(a.count()); l.err == nil && calamp.SensorCount(ids, 0) != sensors {
		l.err = a.fault("sensors names %d sensors, and s has %d", calamp.SensorCount(ids, 0), sensors)
	}
	return ids
}

// rowsOf are s of rows that have gains of their own; nil where they have those of their sensors.
func (l *resultLoader) rowsOf(r *calamp.Result) []float64 {
	if l.err != nil || r.Sensors == nil || l.c.find(gainRowName) == nil {
		return nil
	}
	gain := l.read(gainRowName)
	if l.err != nil || gain.count() != len(r.Sensors) {
		return nil
	}
	own, s := false, r.OfRows(r.S)
	for row, v := range gain.Data {
		own = own || math.Abs(v*s[row]-1) > sameGain
		s[row] = 1 / v
	}
	if !own {
		return nil
	}
	return s
}

// sameGain is how far gains differ at most by rounding.
const sameGain = 1e-9

// HasSensors reports whether the .npz or .mat at path says which sensor each row of W is read with.
func HasSensors(path string) bool {
	arrays, err := Inspect(path)
	return err == nil && slices.ContainsFunc(arrays, func(i Info) bool { return i.Name == sensorsName })
}

// HasPairs reports whether the file holds two sensors for each row of W.
func HasPairs(path string) bool {
	arrays, err := Inspect(path)
	if err != nil {
		return false
	}
	return slices.ContainsFunc(arrays, func(i Info) bool {
		return len(i.Shape) == 2 && i.Shape[1] == 2 && (i.Name == sensorsName || len(arrays) == 1)
	})
}

// LoadPairs reads the two sensors that each of m rows of W is read with (M×2 integers from 0), and how many there are.
func LoadPairs(path string, m int) (pairs [][2]int, count int, err error) {
	a, err := LoadArray(path, sensorsName)
	if err != nil {
		return nil, 0, err
	}
	if len(a.Shape) != 2 || a.Shape[0] != m || a.Shape[1] != 2 {
		return nil, 0, a.fault("sensors is %s, expected %d×2 integers, two a row of W: the sensors that it is read with, from 0", a.dims(), m)
	}
	pairs = make([][2]int, m)
	for row := range pairs {
		for k := range pairs[row] {
			v := a.Data[2*row+k]
			if v != math.Trunc(v) || !(v >= 0 && v < math.MaxInt32) {
				return nil, 0, a.fault("sensors of row %d has %g, expected an integer from 0", row, v)
			}
			pairs[row][k] = int(v)
			count = max(count, int(v)+1)
		}
		if pairs[row][0] == pairs[row][1] {
			return nil, 0, a.fault("row %d is read with sensor %d twice, expected two of them", row, pairs[row][0])
		}
	}
	if count > m {
		return nil, 0, a.fault("%d rows are read with sensors of up to %d: so many gains are not determined", m, count-1)
	}
	return pairs, count, nil
}
