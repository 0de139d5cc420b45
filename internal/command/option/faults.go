package option

import (
	"strconv"

	"github.com/spf13/pflag"
	"gonum.org/v1/gonum/mat"

	"github.com/calamp/calamp"
	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/internal/command/console"
	"github.com/calamp/calamp/internal/report"
)

// Faults holds the flags that say in which ways sensors may fail.
type Faults struct {
	rate       faultRate
	outliers   Outliers
	saturation float64 // 0: sensors do not clip
	Codes      Codes
}

// Outliers is the flag of that name.
type Outliers struct{ rate faultRate }

// Register adds the flag; of says what it is good for beside.
func (o *Outliers) Register(flags *pflag.FlagSet) {
	o.rate.register(flags, "outliers")
}

// Complete leaves the bare algorithm bare.
func (o *Outliers) Complete(flags *pflag.FlagSet, s *Solver) {
	if s.Exactly() && !Given(flags, "outliers") {
		o.rate = faultRate{off: true}
	}
}

// Stated is how --outliers was given: whether single readings may be wrong.
func (o *Outliers) Stated() calamp.Outliers {
	return calamp.Outliers{Look: !o.rate.off, Rate: o.rate.rate}
}

// String is the flag.
func (o *Outliers) String() string { return o.rate.String() }

// faultRate is --faulty, or --outliers: off, or the fraction of broken sensors, 0 when it is learned.
type faultRate struct {
	off  bool
	rate float64
}

func (f *faultRate) String() string {
	switch {
	case !f.off && f.rate == 0:
		return "auto"
	case f.off:
		return "off"
	}
	return strconv.FormatFloat(f.rate, 'g', -1, 64)
}

// register adds the flag.
func (f *faultRate) register(flags *pflag.FlagSet, name string) {
	flags.Var(NumberOr{
		Stringer: f, Kind: "auto|off|fraction", Or: "auto off", Within: Inside01, Expected: "auto, off, or a number in (0, 1)",
		Word: func(word string) { *f = faultRate{off: word == "off"} }, Number: func(v float64) { *f = faultRate{rate: v} },
	}, name, About(name))
}

// words is what is expected, for the report.
func (f *faultRate) words() string {
	switch {
	case f.off:
		return "none"
	case f.rate == 0:
		return "any, their fraction learned"
	}
	return console.Short(f.rate) + " of all, expected"
}

// Register adds the flags.
func (f *Faults) Register(flags *pflag.FlagSet) {
	f.rate.register(flags, "faulty")
	f.outliers.Register(flags)
	flags.Var(Number(&f.saturation, Positive), "saturation", About("saturation"))
	f.Codes.Register(flags)
}

// Complete leaves the bare algorithm bare, and looks for no faults of sensors whose bit has no size.
func (f *Faults) Complete(flags *pflag.FlagSet, s *Solver) error {
	if s.Exactly() && !Given(flags, "faulty") {
		f.rate = faultRate{off: true}
	}
	f.outliers.Complete(flags, s)
	if f.Codes.sign.on {
		f.rate, f.outliers.rate = faultRate{off: true}, faultRate{off: true}
	}
	switch {
	case s.Full() && f.saturation > 0:
		return console.Usage("--saturation needs --covariance diagonal")
	case s.Full() && f.Codes.On():
		return console.Usage("--quantised, --sign and --counts need --covariance diagonal")
	}
	return nil
}

// Converted makes codes of readings that are drawn, where sensors are converters.
func (f *Faults) Converted(y *mat.Dense, seed uint64) error {
	return f.Codes.Convert(y, f.saturation, seed)
}

// Channel is that of sensors that may fail in these ways.
func (f *Faults) Channel(c channel.Channel) channel.Channel {
	if g, ok := c.(channel.Gain); ok {
		if f.Codes.On() {
			c = f.Codes.Of(g, f.saturation)
		} else {
			g.Saturation = f.saturation
			c = g
		}
	}
	if f.rate.off {
		return c
	}
	return channel.Faulty{Working: c, Rate: f.rate.rate}
}

// ComplexChannel is the same for complex readings.
func (f *Faults) ComplexChannel(g channel.ComplexGain) channel.Channel {
	if f.rate.off {
		return g
	}
	return channel.Faulty{Working: g, Rate: f.rate.rate}
}

// Outliers says whether single readings may be wrong.
func (f *Faults) Outliers() calamp.Outliers { return f.outliers.Stated() }

// JSON is the flags, and what was found, for output.
func (f *Faults) JSON(res *calamp.Result) console.Object {
	var rate *float64
	if !f.rate.off {
		rate = console.Known(res.FaultRate)
	}
	broken := []console.Object{}
	for _, b := range res.BrokenSensors {
		var likeliest *float64 // s for its readings, out of the range
		if b.Fault == channel.OutOfRange {
			likeliest = console.Known(b.S)
		}
		broken = append(broken, console.Object{"sensor", b.Sensor, "probability", b.Probability, "fault", b.Fault, "s?", likeliest})
	}
	return console.Object{
		"faulty", f.rate.String(), "fault_rate?", rate, "broken_sensors", broken, "saturation?", f.saturation, "", f.Codes.JSON(),
		"outliers", f.outliers.String(), "outlying_readings", console.OrEmpty(res.OutlyingReadings()),
	}
}

// Fields is the flags in words, for the report.
func (f *Faults) Fields() []report.Field {
	faulty := f.rate.words()
	fields := []report.Field{{Name: "Broken sensors", Value: faulty}, {Name: "Outlying readings", Value: f.outliers.rate.words()}}
	if f.saturation > 0 {
		fields = append(fields, report.Field{Name: "Readings clip at", Value: console.Short(f.saturation)})
	}
	return append(fields, f.Codes.Fields()...)
}
