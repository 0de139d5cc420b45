package option

import (
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/pflag"
	"gonum.org/v1/gonum/mat"

	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/internal/command/console"
	"github.com/calamp/calamp/internal/dataset"
	"github.com/calamp/calamp/internal/moments"
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

// The values of --noise-at.
const (
	atSignal  = "signal"
	atReading = "reading"
)

// photons is --noise: photon:GAIN,READ, with auto for either.
type photons struct {
	on         bool
	gain, read float64 // what a photon adds to a reading, and the standard deviation of what is read without any
	autoGain   bool
	autoRead   bool
}

const photonPrefix = "photon:"

func (p *photons) String() string {
	if p == nil || !p.on {
		return ""
	}
	word := func(v float64, auto bool) string {
		if auto {
			return AutoWord
		}
		return strconv.FormatFloat(v, 'g', -1, 64)
	}
	return photonPrefix + word(p.gain, p.autoGain) + "," + word(p.read, p.autoRead)
}

// Type is what help says of the value.
func (p *photons) Type() string { return "photon:GAIN,READ" }

// Set reads what String writes.
func (p *photons) Set(text string) error {
	const expected = "expected photon:GAIN,READ, as photon:0.5,2 or photon:auto,auto: what a photon adds to a reading, above 0, and the standard deviation of the read noise, 0 or more"
	gain, read, ok := strings.Cut(strings.TrimPrefix(text, photonPrefix), ",")
	if !ok || !strings.HasPrefix(text, photonPrefix) {
		return errors.New(expected)
	}
	next := photons{on: true, autoGain: gain == AutoWord, autoRead: read == AutoWord}
	for _, one := range []struct {
		text   string
		auto   bool
		to     *float64
		within Range
	}{{gain, next.autoGain, &next.gain, Positive}, {read, next.autoRead, &next.read, NotNegative}} {
		v, err := one.within.parse(one.text, "")
		if err != nil && !one.auto {
			return errors.New(expected)
		}
		*one.to = v
	}
	*p = next
	return nil
}

// learns reports whether one of the two is learned.
func (p *photons) learns() bool { return p.autoGain || p.autoRead }

// RegisterNoiseAt adds --noise-at and --noise, for commands that solve or draw problems whole.
func (m *Model) RegisterNoiseAt(flags *pflag.FlagSet) {
	m.NoiseAt = atSignal
	flags.Var(Choice(&m.NoiseAt, atSignal, atReading), "noise-at", About("noise-at"))
	flags.Var(&m.photons, "noise", About("noise"))
}

// AtReading reports whether noise is added to readings, behind the division by s.
func (m *Model) AtReading() bool { return m.NoiseAt == atReading || m.photons.on }

// TakePhotons makes the noise that of --noise, where that is given; can says whether it may be learned.
func (m *Model) TakePhotons(flags *pflag.FlagSet, can bool) error {
	if !m.photons.on {
		return nil
	}
	switch {
	case Given(flags, "noise-var"):
		return console.Usage("--noise and --noise-var both say how much noise there is: give one")
	case Given(flags, "noise-at") && m.NoiseAt == atSignal:
		return console.Usage("--noise photon is noise at the reading: leave out --noise-at signal")
	case m.photons.learns() && !can:
		return console.Usage("--noise %s: nothing is learned here: give both numbers, such as calamp solve finds", &m.photons)
	}
	m.NoiseAt, m.NoiseVar = atReading, m.photons.read*m.photons.read
	m.forget("noise-var")
	if m.photons.learns() {
		m.Learned = append(m.Learned, "noise-var")
	}
	return nil
}

// CheckNoiseAt refuses what noise at the reading does not go along with beside what the schema says.
func (m *Model) CheckNoiseAt(complex bool) error {
	flag := "--noise-at reading"
	if m.photons.on {
		flag = "--noise photon"
	}
	const refused = "%s does not go along with %s yet: leave one of the two out"
	switch {
	case !m.AtReading():
		return nil
	case complex:
		return console.Usage(refused, flag, "complex numbers")
	case m.Noise.PerSensor || m.Noise.File != "":
		return console.Usage(refused, flag, "noise of every sensor or reading (--noise-var)")
	case !m.Learns("noise-var") && m.NoiseVar == 0 && !m.photons.on:
		return console.Usage("--noise-at reading: without noise (--noise-var 0) there is none to be added")
	}
	return nil
}

// CheckPhotons refuses readings that photons do not make: those that are negative by more than the read noise.
func (m *Model) CheckPhotons(y *mat.Dense) error {
	const beyond = 6 // standard deviations: one in 10⁹ readings
	if !m.photons.on {
		return nil
	}
	total, rows, columns := 0.0, y.RawMatrix().Rows, y.RawMatrix().Cols
	for mu := range rows {
		for k := range columns {
			v := y.At(mu, k)
			if math.IsNaN(v) {
				continue
			}
			total += v
			if !m.photons.autoRead && v < -beyond*m.photons.read {
				return console.Usage("--noise %s: sensor %d, signal %d reads %.4g: photons make no reading negative, and the read noise is %g", &m.photons, mu, k, v, m.photons.read).
					WithHint("take off the dark level of the readings first, or --noise photon:GAIN,auto learns the read noise")
			}
		}
	}
	if total <= 0 {
		return console.Usage("--noise %s: the readings have no positive mean, and photons make none negative", &m.photons)
	}
	return nil
}

// own is the noise at the reading.
func (m *Model) own() channel.Detector {
	d := channel.Detector{Read: m.NoiseVar}
	if m.photons.on {
		d.Photon, d.PhotonGiven, d.ReadGiven = m.photons.gain, !m.photons.autoGain, !m.photons.autoRead
	}
	return d
}

// guessOwn starts the noise at the reading from a guess of that before the division by s, of which half are photons where both are learned.
func (m *Model) guessOwn(guess, stated, typical float64) {
	m.NoiseVar = atReadingOf(guess, m.GainPrior())
	if !m.photons.on {
		return
	}
	level := m.NoiseVar
	switch p := &m.photons; {
	case p.autoGain && p.autoRead:
		p.gain, m.NoiseVar = 0.5*level/typical, 0.5*level
	case p.autoGain:
		p.gain, m.NoiseVar = level/typical, stated
	}
}

// typicalReading is the mean of the readings ([moments.Light]), and no zero.
func typicalReading(y *mat.Dense) float64 {
	return max(moments.Light(mat.DenseCopyOf(y).RawMatrix().Data), math.SmallestNonzeroFloat64)
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
