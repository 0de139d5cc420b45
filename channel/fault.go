package channel

// Fault says what is wrong with a sensor.
type Fault uint8

const (
	Healthy      Fault = iota
	Zero               // reads exactly zero where the others expect a signal
	OutOfRange         // wants a calibration outside the range of s
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
