package option

import (
	"github.com/spf13/pflag"

	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/internal/command/console"
)

// The values of --noise-at.
const (
	atSignal  = "signal"
	atReading = "reading"
)

// RegisterNoiseAt adds --noise-at, for commands that solve or draw problems whole.
func (m *Model) RegisterNoiseAt(flags *pflag.FlagSet) {
	m.NoiseAt = atSignal
	flags.Var(Choice(&m.NoiseAt, atSignal, atReading), "noise-at", About("noise-at"))
}

// AtReading reports whether noise is added to readings, behind the division by s.
func (m *Model) AtReading() bool { return m.NoiseAt == atReading }

// CheckNoiseAt refuses what noise at the reading does not go along with; o and f are nil where a command has none of either.
func (m *Model) CheckNoiseAt(complex bool, o *Offset, f *Faults) error {
	const refused = "--noise-at reading does not go along with %s yet: leave one of the two out"
	switch {
	case !m.AtReading():
		return nil
	case complex:
		return console.Usage(refused, "complex numbers")
	case o != nil && o.on:
		return console.Usage(refused, "--offset")
	case f != nil && f.saturation > 0:
		return console.Usage(refused, "--saturation")
	case f != nil && f.Codes.On():
		return f.Codes.Check("--noise-at reading")
	case m.Noise.PerSensor || m.Noise.File != "":
		return console.Usage(refused, "noise of every sensor or reading (--noise-var)")
	case !m.Learns("noise-var") && m.NoiseVar == 0:
		return console.Usage("--noise-at reading: without noise (--noise-var 0) there is none to be added")
	}
	return nil
}

// atReadingOf is what a guess of noise before the division by s, of sensors of that prior, is at the reading.
func atReadingOf(noise float64, gains channel.GainPrior) float64 {
	middle := channel.Middle(gains)
	return noise / (middle * middle)
}

// BeforeDivision is the channel with noise before the division by s alone, for what takes noise at the reading sensor by sensor.
func (m *Model) BeforeDivision() channel.Gain {
	c := m.Channel()
	c.Own = channel.Detector{}
	return c
}
