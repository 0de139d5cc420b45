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
	return []output{integersOutput(sensorsName, []int{len(r.Sensors)}, r.Sensors), vectorOutput(gainRowName, r.OfRows(r.Gain))}
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

// HasSensors reports whether the .npz or .mat at path says which sensor each row of W is read with.
func HasSensors(path string) bool {
	arrays, err := Inspect(path)
	return err == nil && slices.ContainsFunc(arrays, func(i Info) bool { return i.Name == sensorsName })
}
