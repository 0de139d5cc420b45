package diagnosis

import (
	"fmt"
	"math"
)

// shared reports whether a sensor has several rows of W.
func (r *Run) shared() bool { return r.state.Each > r.state.P }

// usableRows is the number of rows that have a reading of a sensor in order.
func (r *Run) usableRows() (count int) {
	s, many := r.state, r.manyBroken()
	for row := range s.Rows() {
		first := row * s.P
		if !many && r.isBroken(s.SensorOf(first)) {
			continue
		}
		for _, y := range s.Y[first : first+s.P] {
			if !math.IsNaN(y) {
				count++
				break
			}
		}
	}
	return count
}

// readingsOfSensor says how many signals, and rows, tell the gain of a sensor.
func (r *Run) readingsOfSensor() string {
	if r.shared() {
		return fmt.Sprintf("%d readings a sensor (signals times rows)", r.state.Each)
	}
	return fmt.Sprintf("%d signals", r.signals())
}
