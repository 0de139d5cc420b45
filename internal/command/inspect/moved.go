package inspect

import (
	"fmt"
	"math"
	"math/cmplx"
	"slices"
	"strings"

	"github.com/calamp/calamp"
	"github.com/calamp/calamp/internal/command/console"
	"github.com/calamp/calamp/internal/command/facts"
	"github.com/calamp/calamp/internal/dataset"
	"github.com/calamp/calamp/internal/search"
)

// comparison is what has changed from one result to another.
type comparison struct {
	Files   [2]string    `json:"files"`
	Sensors int          `json:"m"`
	SameW   *bool        `json:"same_w,omitempty"` // absent where the files do not say
	SameY   *bool        `json:"same_y,omitempty"`
	Scale   scaleChange  `json:"scale"`
	Moved   []movedGauge `json:"moved"` // by more than movedBeyond, the furthest first
	Broke   []int        `json:"broke"` // sensors that are broken in the second result only
	Mended  []int        `json:"mended"`
	RMS     float64      `json:"rms_sd"` // of all sensors' moves in units of their standard deviations: 1 where nothing has changed
}

type scaleChange struct {
	Ratio float64  `json:"ratio"`           // of the second's s to the first's, common to all sensors
	SD    *float64 `json:"sd"`              // by how many standard deviations it differs from 1
	Phase *float64 `json:"phase,omitempty"` // by how much the common phase differs, of complex gains
}

type movedGauge struct {
	Sensor int        `json:"sensor"`
	S      [2]float64 `json:"s"`
	Change float64    `json:"change"`         // relative, beside the common scale
	Turn   *float64   `json:"turn,omitempty"` // of a complex s, by which its phase has changed beside the common one
	SD     float64    `json:"sd"`             // in standard deviations of the difference, of both parts together
}

// movedBeyond is the number of standard deviations from which on a sensor counts as moved:
// one in 16 000 sensors that have not is beyond it.
const movedBeyond = 4

// compareResults says which sensors have moved.
func compareResults(a *console.Console, paths [2]string, asJSON bool) error {
	var results [2]*calamp.Result
	var from [2]*dataset.Provenance
	for k, path := range paths {
		var err error
		if results[k], err = dataset.LoadResult(path); err != nil {
			return err
		}
		if from[k], err = dataset.LoadProvenance(path); err != nil {
			return err
		}
	}
	if m, n := len(results[0].S), len(results[1].S); m != n {
		return console.Usage("%s is of %d sensors and %s of %d", paths[0], m, paths[1], n)
	}
	if (results[0].Phase == nil) != (results[1].Phase == nil) {
		return console.Usage("one of %s and %s has complex gains, the other real ones", paths[0], paths[1])
	}
	c := compareS(results[0], results[1])
	c.Files = paths
	if from[0] != nil && from[1] != nil {
		sameW := from[0].W == from[1].W
		c.SameW = &sameW
		if from[0].Y != "" && from[1].Y != "" {
			sameY := from[0].Y == from[1].Y
			c.SameY = &sameY
		}
	}
	if asJSON {
		return a.PrintJSON(c)
	}
	return a.Print(c.text())
}

// compareS compares log s: of y = z/s only ratios of s mean something, since the common
// scale comes from the priors. That of two results is the median of the ratios, which
// sensors that have moved do not move. Errors of the two count as independent.
func compareS(a, b *calamp.Result) *comparison {
	c := &comparison{Sensors: len(a.S), Moved: []movedGauge{}, Broke: []int{}, Mended: []int{}}
	var working []int
	var ratios []float64
	for sensor := range a.S {
		was, is := facts.IsBroken(a, sensor), facts.IsBroken(b, sensor)
		switch {
		case !was && is:
			c.Broke = append(c.Broke, sensor)
		case was && !is:
			c.Mended = append(c.Mended, sensor)
		case !was && a.S[sensor] > 0 && b.S[sensor] > 0:
			working = append(working, sensor)
			ratios = append(ratios, math.Log(b.S[sensor]/a.S[sensor]))
		}
	}
	common, turns := 0.0, turnsOf(a, b, working)
	if len(ratios) > 0 {
		common = search.Median(ratios)
	}
	c.Scale.Ratio = math.Exp(common)
	commonTurn := 0.0
	if turns != nil {
		commonTurn = phaseOfMost(turns)
		c.Scale.Phase = &commonTurn
	}
	c.Scale.SD = console.Known(math.Abs(common) / math.Hypot(a.ScaleSD, b.ScaleSD))
	total := 0.0
	for k, sensor := range working {
		change, turn := ratios[k]-common, 0.0
		if turns != nil {
			turn = math.Remainder(turns[k]-commonTurn, 2*math.Pi)
		}
		sd := math.Hypot(change, turn) / math.Sqrt(a.SVar[sensor]/(a.S[sensor]*a.S[sensor])+b.SVar[sensor]/(b.S[sensor]*b.S[sensor]))
		if math.IsNaN(sd) { // neither moved nor uncertain
			sd = 0
		}
		sd = min(sd, math.MaxFloat32)
		total += sd * sd
		if sd > movedBeyond {
			moved := movedGauge{Sensor: sensor, S: [2]float64{a.S[sensor], b.S[sensor]}, Change: math.Expm1(change), SD: sd}
			if turns != nil {
				moved.Turn = &turn
			}
			c.Moved = append(c.Moved, moved)
		}
	}
	if len(working) > 0 {
		c.RMS = math.Sqrt(total / float64(len(working)))
	}
	slices.SortStableFunc(c.Moved, func(x, y movedGauge) int {
		switch {
		case x.SD > y.SD:
			return -1
		case x.SD < y.SD:
			return 1
		}
		return 0
	})
	return c
}

// turnsOf is how far the phases of these sensors have turned; nil of real gains.
func turnsOf(a, b *calamp.Result, sensors []int) []float64 {
	if a.Phase == nil {
		return nil
	}
	turns := make([]float64, len(sensors))
	for k, sensor := range sensors {
		turns[k] = b.Phase[sensor] - a.Phase[sensor]
	}
	return turns
}

// phaseOfMost is the median of angles, about the direction of their sum.
func phaseOfMost(angles []float64) float64 {
	if len(angles) == 0 {
		return 0
	}
	var sum complex128
	for _, v := range angles {
		sum += cmplx.Rect(1, v)
	}
	about := cmplx.Phase(sum)
	rest := make([]float64, len(angles))
	for k, v := range angles {
		rest[k] = math.Remainder(v-about, 2*math.Pi)
	}
	return math.Remainder(about+search.Median(rest), 2*math.Pi)
}

// mostListed is how many sensors are shown to people; --json has all.
const mostListed = 20

func (c *comparison) text() string {
	var text console.Summary
	text.Line("results", "%s and %s, of %s", c.Files[0], c.Files[1], console.Plural(c.Sensors, "sensor"))
	if c.SameW != nil {
		words := "of the same W"
		if !*c.SameW {
			words = "of different W: their sensors may be others"
		}
		if c.SameY != nil && *c.SameY {
			words += " and the same Y: their errors are not independent"
		}
		text.Line("", "%s", words)
	}
	sd := ""
	if c.Scale.SD != nil {
		sd = fmt.Sprintf(", %s standard deviations from 1", console.Brief(*c.Scale.SD))
	}
	text.Line("scale", "common factor of s %.6g%s", c.Scale.Ratio, sd)
	if c.Scale.Phase != nil {
		text.Line("phase", "common to all s, turned by %.4g rad", *c.Scale.Phase)
	}
	text.Line("s", "beside it, %s moved by more than %d standard deviations; all: %s (root mean square, 1 where nothing has changed)",
		console.Plural(len(c.Moved), "sensor"), movedBeyond, console.Brief(c.RMS))
	for _, list := range []struct {
		name    string
		sensors []int
	}{{"broke", c.Broke}, {"mended", c.Mended}} {
		if len(list.sensors) > 0 {
			text.Line(list.name, "%s", strings.Trim(fmt.Sprint(list.sensors), "[]"))
		}
	}
	if len(c.Moved) > 0 {
		fmt.Fprintf(&text, "\n%8s %12s %12s %10s %8s\n", "sensor", "s before", "s after", "change", "sd")
	}
	for k, m := range c.Moved {
		if k == mostListed {
			fmt.Fprintf(&text, "and %d more; --json has all\n", len(c.Moved)-mostListed)
			break
		}
		fmt.Fprintf(&text, "%8d %12.6g %12.6g %+9.3g%% %8.3g", m.Sensor, m.S[0], m.S[1], 100*m.Change, m.SD)
		if m.Turn != nil {
			fmt.Fprintf(&text, " %+10.3g rad", *m.Turn)
		}
		fmt.Fprintln(&text)
	}
	return text.String()
}
