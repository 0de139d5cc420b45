package option

import (
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/internal/command/console"
	"github.com/calamp/calamp/internal/dataset"
)

// Noise is what --noise-var says beyond a number: noise that differs between sensors, or
// readings.
type Noise struct {
	PerSensor bool // learned for every sensor

	File   string    // with the noise variances; empty where there is none
	Each   []float64 // what is in it: of every sensor (M), or of every reading (M×P)
	Lo, Hi float64   // what they range over; 0 where all readings have the same
}

// noiseSource is the value of --noise-var where it may be a file.
type noiseSource struct {
	pflag.Value // the number
	noise       *Noise
}

// perSensorWord is --noise-var where every sensor's is to be learned.
const perSensorWord = "per-sensor"

func (v noiseSource) String() string {
	switch {
	case v.noise.PerSensor:
		return perSensorWord
	case v.noise.File != "":
		return v.noise.File
	}
	return v.Value.String()
}

func (v noiseSource) Type() string { return v.Value.Type() + "|FILE|" + perSensorWord }

func (v noiseSource) Set(text string) error {
	*v.noise = Noise{PerSensor: text == perSensorWord}
	if v.noise.PerSensor {
		return nil
	}
	if _, err := strconv.ParseFloat(text, 64); err == nil {
		return v.Value.Set(text)
	}
	if !slices.Contains([]string{".npy", ".npz", ".mat"}, strings.ToLower(filepath.Ext(text))) {
		return fmt.Errorf("expected a finite number, not below 0, auto, or a file (.npy, .npz, .mat) with one of every sensor or reading")
	}
	v.noise.File = text
	return nil
}

// takeNoiseFile makes --noise-var take a file, too: it is to be called after the model's flags
// have been registered, and before auto is added to them.
func (m *Model) takeNoiseFile(flags *pflag.FlagSet) {
	f := flags.Lookup("noise-var")
	f.Value = noiseSource{f.Value, &m.Noise}
	f.Usage += "; or a .npy with those of\nevery sensor (M) or reading (M×P), or a result that has them"
}

// RegisterWithNoise adds the model flags, of which --noise-var takes a file, too.
func (m *Model) RegisterWithNoise(flags *pflag.FlagSet) {
	m.Register(flags)
	m.takeNoiseFile(flags)
}

// LoadNoise reads the file of --noise-var, if there is one, for m sensors and p signals.
func (m *Model) LoadNoise(sensors, p int) (err error) {
	if m.Noise.File == "" {
		return nil
	}
	if m.Noise.Each, err = dataset.LoadNoise(m.Noise.File, sensors, p); err != nil {
		return console.Usage("--noise-var %w", err)
	}
	for i, v := range m.Noise.Each {
		m.Noise.Each[i] = m.InRows(v)
	}
	m.Noise.Lo, m.Noise.Hi = slices.Min(m.Noise.Each), slices.Max(m.Noise.Each)
	m.NoiseVar = channel.MeanNoise(m.Noise.Each)
	return nil
}

// noiseWords are the noise variances.
func (m *Model) noiseWords() string {
	switch {
	case m.AtReading():
		return m.NoiseAtReading() + " at the reading"
	case m.Noise.Lo == m.Noise.Hi:
		return console.Short(m.NoiseVar)
	}
	return fmt.Sprintf("%s to %s", console.Short(m.Noise.Lo), console.Short(m.Noise.Hi))
}

// NoiseAtReading is the variance of noise at the reading.
func (m *Model) NoiseAtReading() string {
	if m.photons.on {
		return fmt.Sprintf("%s and %s times what is expected", console.Short(m.NoiseVar), console.Short(m.own().Photon))
	}
	return console.Short(m.NoiseVar)
}

// IsZero says whether all readings have the same noise.
func (n Noise) IsZero() bool { return !n.PerSensor && n.File == "" && n.Lo == n.Hi }

// MarshalJSON leaves out the values.
func (n Noise) MarshalJSON() ([]byte, error) {
	return console.Object{"per_sensor?", n.PerSensor, "file?", n.File, "range", [2]float64{n.Lo, n.Hi}}.MarshalJSON()
}
