package diagnosis

import (
	"fmt"
	"math"
)

// overlap is the factor by which variances of gains have grown in the joint density from which on gains and signals count as explaining the same
// readings. Behind random W it is 1.00 to 1.01, in tomography 1.5 to 2.8 (docs/log/validation.md).
const overlap = 1.25

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

// warnOverlap says that gains and signals explain the same readings. Joint error bars know it of entries that were found, and not of others.
func (r *Run) warnOverlap() *Warning {
	factor := r.Solver.SharedWidening()
	if !(factor > overlap) {
		return nil
	}
	return &Warning{Code: GainsInSignals, Message: fmt.Sprintf("errors of gains and of signals are correlated, as with rings in tomography: variances of s were multiplied by %.2g, on average; "+
		"these error bars leave out entries too small to be found; more readings of each sensor, other scenes or known gains (--reference) help", factor)}
}
