package option

import (
	"math"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/pflag"
	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat/distuv"

	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/internal/command/console"
	"github.com/calamp/calamp/internal/dataset"
	"github.com/calamp/calamp/internal/report"
)

// Codes is --quantised, --sign and --counts: readings are codes of a converter (see [channel.Codes]), or counts ([channel.Counts]).
type Codes struct {
	step float64 // 0: not quantised
	sign threshold
	unit float64 // 0: no counts
}

// threshold is --sign: off, or what a signal was above or below.
type threshold struct {
	on   bool
	at   float64
	file string    // with those of every sensor or reading; empty where all have one
	each []float64 // of every reading, once they were read
}

func (t *threshold) String() string {
	switch {
	case t == nil || !t.on:
		return "off"
	case t.file != "":
		return t.file
	}
	return strconv.FormatFloat(t.at, 'g', -1, 64)
}

// Type is what help says of the value.
func (t *threshold) Type() string { return "off|number|FILE" }

// Words are the values that are words.
func (t *threshold) Words() []string { return []string{"off"} }

// Set reads what String writes.
func (t *threshold) Set(text string) error {
	if text == "off" {
		*t = threshold{}
		return nil
	}
	if slices.Contains([]string{".npy", ".npz", ".mat"}, strings.ToLower(filepath.Ext(text))) {
		*t = threshold{on: true, file: text}
		return nil
	}
	at, err := Finite.parse(text, "off, a finite number, or a file (.npy, .npz, .mat) with one of every sensor or reading")
	if err == nil {
		*t = threshold{on: true, at: at}
	}
	return err
}

// Register adds the flags.
func (c *Codes) Register(flags *pflag.FlagSet) {
	flags.Var(Number(&c.step, Positive), "quantised", About("quantised"))
	flags.Var(&c.sign, "sign", About("sign"))
	flags.Var(Number(&c.unit, Positive), "counts", About("counts"))
}

// On reports whether readings are codes.
func (c *Codes) On() bool { return c.step > 0 || c.sign.on || c.unit > 0 }

// CheckSize refuses signs of which gains are not learned: they tell neither the common scale nor how gains are spread, and those about zero
// nothing of any gain.
func (c *Codes) CheckSize(m *Model) error {
	switch {
	case c.sign.on && c.sign.at == 0 && c.sign.file == "":
		return console.Usage("--sign 0: signs about zero say nothing of gains, whatever these are: there is nothing to be calibrated")
	case c.sign.on && m.Learns("s-range"):
		return console.Usage("--sign %s: signs determine neither the common scale of signals and gains nor the spread of gains", &c.sign).
			WithHint("give --s-range, or --s-mean and --s-sd, or --s-from")
	}
	return nil
}

// Load reads the file of --sign, if there is one, for m sensors and p signals; for theory, which has none, m is 0, and all numbers of the file are taken.
func (c *Codes) Load(m, p int) (err error) {
	if c.sign.file == "" {
		return nil
	}
	if c.sign.each, err = dataset.LoadThresholds(c.sign.file, m, p); err != nil {
		return console.Usage("--sign %w", err)
	}
	return nil
}

// File is the file of --sign; empty without.
func (c *Codes) File() string { return c.sign.file }

// TakeNoise makes a model of counts one without other noise, of which there is none.
func (c *Codes) TakeNoise(flags *pflag.FlagSet, m *Model) error {
	if c.unit == 0 {
		return nil
	}
	if Given(flags, "noise-var") && (m.NoiseVar != 0 || m.Noise.File != "" || m.Noise.PerSensor) {
		return console.Usage("--counts and --noise-var exclude each other: the noise of counts is their own")
	}
	m.NoiseVar = 0
	m.forget("noise-var")
	return nil
}

// Of are the sensors of g as converters, whose last code is of size saturation where it is above 0, or as counters.
func (c *Codes) Of(g channel.Gain, saturation float64) channel.Channel {
	if c.unit > 0 {
		return channel.Counts{Prior: g.Prior, Unit: c.unit}
	}
	return c.converter(g, saturation)
}

func (c *Codes) converter(g channel.Gain, saturation float64) channel.Codes {
	return channel.Codes{Prior: g.Prior, NoiseVar: g.NoiseVar, Step: c.step, Threshold: c.sign.at, Thresholds: c.sign.each, Saturation: saturation}
}

// Convert makes codes of readings, for problems that are drawn: of counts those of expected readings, which must not be negative.
func (c *Codes) Convert(y *mat.Dense, saturation float64, seed uint64) error {
	switch {
	case c.unit > 0:
		if least := mat.Min(y); least < 0 {
			return console.Usage("--counts %g: a reading of %.3g is expected, which is a negative number of photons", c.unit, least).
				WithHint("signals and matrix must not be negative (--prior nonnegative, --matrix-kind binary), and --noise-var 0")
		}
		rng := rand.New(rand.NewPCG(seed, 3))
		y.Apply(func(_, _ int, v float64) float64 {
			return c.unit * distuv.Poisson{Lambda: max(v/c.unit, math.SmallestNonzeroFloat64), Src: rng}.Rand()
		}, y)
	case c.On():
		codes := c.converter(channel.Gain{}, saturation)
		_, p := y.Dims()
		y.Apply(func(mu, k int, v float64) float64 { return codes.CodeAt(mu*p+k, v) }, y)
	}
	return nil
}

// JSON is the flags, for output: of --sign the threshold, or the file with all of them.
func (c *Codes) JSON() console.Object {
	var sign any
	switch {
	case c.sign.file != "":
		sign = c.sign.file
	case c.sign.on:
		sign = &c.sign.at // 0 as well
	}
	return console.Object{"quantised?", c.step, "sign?", sign, "counts?", c.unit}
}

// Fields is the flags in words, for the report.
func (c *Codes) Fields() []report.Field {
	switch {
	case c.step > 0:
		return []report.Field{{Name: "Readings are codes of width", Value: console.Short(c.step)}}
	case c.sign.on:
		return []report.Field{{Name: "Readings are signs about", Value: c.sign.String()}}
	case c.unit > 0:
		return []report.Field{{Name: "Readings are counts of", Value: console.Short(c.unit)}}
	}
	return nil
}
