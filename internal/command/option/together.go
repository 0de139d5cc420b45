package option

import (
	"fmt"
	"math/cmplx"

	"github.com/spf13/pflag"

	"github.com/calamp/calamp"
	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/internal/command/console"
	"github.com/calamp/calamp/internal/dataset"
	"github.com/calamp/calamp/internal/report"
)

// Together is --gain-smooth and --gain-basis: gains that belong together (see [channel.Places]).
type Together struct {
	positions, basis string // files; or indexWord in place of positions
	pairs            string // file of --sensors, of rows that two sensors read
	sensors          int    // of the pairs
	complex          *channel.ComplexPairs

	places channel.Places
	found  *channel.Smooth // what a run ended with
}

// indexWord says that sensors are on a line, in their order.
const indexWord = "index"

// Register adds the flags.
func (g *Together) Register(flags *pflag.FlagSet) {
	flags.StringVar(&g.positions, "gain-smooth", "", About("gain-smooth"))
	flags.StringVar(&g.basis, "gain-basis", "", About("gain-basis"))
}

// On says whether gains belong together.
func (g *Together) On() bool { return g.positions != "" || g.basis != "" || g.pairs != "" }

// TakePairs takes over a file of --sensors, or the array sensors of the problem, that has two of them for each row: s of a row is a product. The problem is read without that array then.
func (g *Together) TakePairs(s *RowSensors, args []string, names *ArrayNames) {
	switch {
	case s.File != "" && dataset.HasPairs(s.File):
		g.pairs, s.File = s.File, ""
	case s.File == "" && len(args) == 1 && dataset.HasPairs(args[0]):
		g.pairs = args[0]
		names.leaveOut("sensors")
	}
}

// Files are the files that are read.
func (g *Together) Files() (files []string) {
	for _, file := range []string{g.positions, g.basis, g.pairs} {
		if file != "" && file != indexWord {
			files = append(files, file)
		}
	}
	return files
}

// flag is the one that is given.
func (g *Together) flag() string {
	switch {
	case g.pairs != "":
		return "sensors"
	case g.basis != "":
		return "gain-basis"
	}
	return "gain-smooth"
}

// Check refuses what two sensors a row exclude; what the flags do is in the schema.
func (g *Together) Check(flags *pflag.FlagSet, m *Model) error {
	if g.On() {
		m.belong = g
	}
	switch other := statedOf(flags, "s-range s-prior s-mean s-sd s-from offset saturation", nil); {
	case g.pairs == "":
		return nil
	case g.positions != "" || g.basis != "":
		return console.Usage("--sensors with two sensors a row and --gain-smooth or --gain-basis exclude each other, give one")
	case other != nil:
		return console.Usage("--sensors and --%s exclude each other: %s", other.Name, gainsTogether)
	}
	return nil
}

// Load reads the file, for so many sensors.
func (g *Together) Load(sensors int, data *dataset.Problem, compare, ranks bool) (err error) {
	switch {
	case !g.On():
		return nil
	case data.Known != nil:
		return console.Usage("--%s and the arrays s_prior_mean and s_prior_sd of the problem both say what is known of the sensors, give one", g.flag())
	case compare, ranks:
		return console.Usage("--%s goes neither along with --compare nor with --mpi", g.flag())
	case g.pairs != "" && data.Sensors != nil:
		return console.Usage("--sensors and the array sensors of the problem both say which sensor a row is read with, give one")
	case g.pairs != "":
		var pairs [][2]int
		if pairs, g.sensors, err = dataset.LoadPairs(g.pairs, sensors); err != nil {
			break
		}
		if data.Complex {
			g.complex, err = channel.ComplexPairsOf(pairs, g.sensors)
		} else {
			g.places, err = channel.PairsOf(pairs, g.sensors)
		}
	case g.positions == indexWord:
		line := make([]float64, sensors)
		for mu := range line {
			line[mu] = float64(mu)
		}
		g.places, err = channel.At(line, 1)
	case g.positions != "":
		g.places, err = placesIn(g.positions, sensors, channel.At)
	default:
		g.places, err = placesIn(g.basis, sensors, channel.Combined)
	}
	if err != nil {
		return console.Usage("--%s %w", g.flag(), err)
	}
	return nil
}

// placesIn reads a file with a row for each of so many sensors, and what they are.
func placesIn(path string, sensors int, are func(rows []float64, d int) (channel.Places, error)) (p channel.Places, err error) {
	a, err := dataset.LoadArray(path, "")
	if err != nil {
		return p, err
	}
	if len(a.Shape) == 0 || len(a.Shape) > 2 || a.Shape[0] != sensors {
		return p, fmt.Errorf("%s: found the shape %v, expected %d rows, one a sensor", path, a.Shape, sensors)
	}
	if p, err = are(a.Data, len(a.Data)/sensors); err != nil {
		err = fmt.Errorf("%s: %w", path, err)
	}
	return p, err
}

// Channel is c with gains that belong together, where they do.
func (g *Together) Channel(c channel.Gain) channel.Gain {
	if g.On() {
		c.Prior = g.places.Together(c.Prior)
	}
	return c
}

// TakeResult takes what a run has learned.
func (g *Together) TakeResult(res *calamp.Result) {
	if s, ok := channel.SmoothOf(channel.CalibrationOf(res.Channel)); ok {
		g.found = &s
	}
}

// JSON is what was found: the standard deviation of the smooth part of log s, the length of its kernel in the unit of the positions, and the
// standard deviation of what every log s has of its own.
func (g *Together) JSON() console.Object {
	if g.found == nil {
		return nil
	}
	return console.Object{"s_smooth", console.Object{"amplitude", g.found.Amplitude, "length?", g.found.Length}, "s_scatter?", g.found.Scatter}
}

// words are what was found; empty where nothing was.
func (g *Together) words() string {
	switch {
	case g == nil || g.found == nil:
		return ""
	case g.found.Length == 0:
		return fmt.Sprintf("log s of given columns, ± %s, and scatter ± %s", console.Short(g.found.Amplitude), console.Short(g.found.Scatter))
	}
	return fmt.Sprintf("log s smooth over a length of %s, ± %s, and scatter ± %s", console.Short(g.found.Length), console.Short(g.found.Amplitude), console.Short(g.found.Scatter))
}

// Line says how gains belong together.
func (g *Together) Line(text *console.Summary) {
	if words := g.words(); words != "" {
		text.Line("together", "%s", words)
	}
}

// Fields are the same for the report.
func (g *Together) Fields() []report.Field {
	if words := g.words(); words != "" {
		return []report.Field{{Name: "Gains together", Value: words}}
	}
	return nil
}

// ComplexChannel is c with sensors that are read two at a time, where they are.
func (g *Together) ComplexChannel(c channel.ComplexGain) channel.ComplexGain {
	c.Prior.Pairs = g.complex
	return c
}

// Extra is s of each sensor where two read a row, and its standard deviation. Of a complex one that is of |s|, and phases are those beside the first sensor's.
func (g *Together) Extra(res *calamp.Result) []dataset.Extra {
	if g.pairs == "" || res.Calibration == nil {
		return nil
	}
	switch p := res.Calibration.Prior.(type) {
	case channel.GainPrior:
		if g.found == nil {
			return nil
		}
		s, sd := p.OfPairs(res.Calibration.Stats, g.sensors)
		return []dataset.Extra{{Name: "s_sensor", Vector: s}, {Name: "s_sensor_sd", Vector: sd}}
	case channel.ComplexPrior:
		var size, sd, phase []float64
		for i, v := range p.Pairs.S {
			size, phase = append(size, cmplx.Abs(v)), append(phase, cmplx.Phase(v))
			sd = append(sd, cmplx.Abs(v)*p.Pairs.LogSD[i])
		}
		return []dataset.Extra{{Name: "s_sensor", Vector: size}, {Name: "s_sensor_sd", Vector: sd}, {Name: "s_sensor_phase", Vector: phase}, {Name: "s_sensor_phase_sd", Vector: p.Pairs.PhaseSD}}
	}
	return nil
}
