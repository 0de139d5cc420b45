package channel

import "fmt"

// Fault says what is wrong with a sensor.
type Fault uint8

const (
	Healthy      Fault = iota
	Zero               // reads exactly zero where the others expect a signal
	OutOfRange         // its likelihood has its maximum outside the range of s
	Inconsistent       // its readings contradict each other, or have nothing to do with the signals
	Stuck              // reads the same whatever the signal
)

// String describes the fault in a few words.
func (f Fault) String() string {
	switch f {
	case Healthy:
		return "healthy"
	case Zero:
		return "reads zero"
	case OutOfRange:
		return "out of range"
	case Stuck:
		return "stuck"
	default:
		return "inconsistent"
	}
}

// MarshalText implements encoding.TextMarshaler.
func (f Fault) MarshalText() ([]byte, error) { return []byte(f.String()), nil }

// BrokenSensor is a sensor whose readings had no part in a result.
type BrokenSensor struct {
	Sensor      int     // row of W, from 0
	Probability float64 // of being broken, above 1/2
	Fault       Fault   // what is wrong with it, as far as its readings tell
	S           float64 // where Fault is OutOfRange: the maximum of its likelihood; otherwise 0
}

// String is such as "sensor 3 (out of range: its readings are most likely for s = 2.01)".
func (b BrokenSensor) String() string {
	if b.Fault == OutOfRange {
		return fmt.Sprintf("sensor %d (%v: its readings are most likely for s = %.4g)", b.Sensor, b.Fault, b.S)
	}
	return fmt.Sprintf("sensor %d (%v)", b.Sensor, b.Fault)
}
