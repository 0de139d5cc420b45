package option

import (
	"math"
	"slices"
	"strconv"

	"github.com/spf13/pflag"
	"gonum.org/v1/gonum/mat"

	"github.com/calamp/calamp"
	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/internal/command/console"
	"github.com/calamp/calamp/internal/report"
)

// Offset is --offset: off, or the standard deviation of the sensors' offsets, which is 0 while it is to be learned.
type Offset struct {
	on bool
	sd float64

	found float64 // what a run ended with
}

func (o *Offset) String() string {
	switch {
	case !o.on:
		return "off"
	case o.sd == 0:
		return AutoWord
	}
	return strconv.FormatFloat(o.sd, 'g', -1, 64)
}

// Register adds the flag.
func (o *Offset) Register(flags *pflag.FlagSet) {
	flags.Var(NumberOr{
		Stringer: o, Kind: "off|auto|number", Or: "off auto", Within: Positive, Expected: "off, auto, or a finite number above 0",
		Word: func(word string) { *o = Offset{on: word == AutoWord} }, Number: func(v float64) { *o = Offset{on: true, sd: v} },
	}, "offset", About("offset"))
}

// On reports whether there are offsets.
func (o *Offset) On() bool { return o.on }

// Learned reports whether their standard deviation is to be learned.
func (o *Offset) Learned() bool { return o.on && o.sd == 0 }

// Readings are y as far as they say how large signals are: without the sensors' means where these may be offsets.
func (o *Offset) Readings(y *mat.Dense, sensors []int) *mat.Dense {
	if !o.on {
		return y
	}
	return calamp.WithoutOffsets(y, sensors)
}

// Channel is that of sensors with a gain, and with an offset where there are any; y tells how large these are
// where that is to be learned, nil where there are none yet.
func (o *Offset) Channel(g channel.Gain, y *mat.Dense, sensors []int) channel.Channel {
	if !o.on {
		return g
	}
	sd := o.sd
	switch {
	case sd == 0 && y == nil:
		sd = math.NaN() // the first samples tell
	case sd == 0:
		sd = calamp.GuessOffset(y, sensors)
	}
	return channel.Offset{Prior: channel.OffsetPrior{Gain: g.Prior, SD: sd}, NoiseVar: g.NoiseVar}
}

// TakeResult takes what a run has learned.
func (o *Offset) TakeResult(res *calamp.Result) {
	if known, ok := channel.CalibrationOf(res.Channel).(channel.Offsetting); ok {
		o.found = known.OffsetSD()
	}
}

// Take takes a standard deviation that was learned.
func (o *Offset) Take(sd float64) { o.found = sd }

// JSON is the flag, and what was found, for output.
func (o *Offset) JSON() console.Object {
	var sd *float64
	if o.on || o.found > 0 {
		sd = console.Known(o.found)
	}
	return console.Object{"offset", o.String(), "offset_sd?", sd}
}

// Fields is the same in words, for the report.
func (o *Offset) Fields() []report.Field {
	if !o.on && o.found == 0 {
		return nil
	}
	note := ""
	if o.Learned() || !o.on {
		note = " (learned)"
	}
	return []report.Field{{Name: "Standard deviation of offsets", Value: console.Short(o.found) + note}}
}

// Line says how large the offsets are, and how well they are known; nothing where there are none.
func (o *Offset) Line(s *console.Summary, res *calamp.Result) {
	if res.Offset == nil {
		return
	}
	typical := slices.Sorted(slices.Values(res.OffsetVar))
	s.Line("offsets", "standard deviation %.3g, each known to ±%.2g", o.found, math.Sqrt(typical[len(typical)/2]))
}
