package experiments

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/calamp/calamp/internal/figure"
	"github.com/calamp/calamp/internal/sweep"
)

// foundDeep is the error, 1 − correlation, at which signals out of a network count as recovered: some thirty times what noise of 10⁻⁶ leaves.
const foundDeep = 1e-4

// depth has latents for each entry in the place of the density: one layer beside two, unknown gains above known ones, with the thresholds of both in all
// panels. Between the two lines is the price of unknown gains.
func depth(t *table) (Picture, []string) {
	panels := figure.Panels{
		X: figure.Axis{Label: "latents for each entry, N₂/N"}, Y: figure.Axis{Label: alphaLabel},
		Alt: "Recovery of signals out of networks, by latents and sensors for each entry; one and two layers, gains unknown and known",
	}
	var notes []string
	for _, gains := range []struct {
		name string
		has  func(entry) bool
	}{{"blind", func(e entry) bool { return !knownGains(e) }}, {"gains known", knownGains}} {
		var row []figure.Figure
		for layers, name := range []string{1: "one layer", 2: "two layers"} {
			if layers == 0 {
				continue
			}
			of := t.where(func(e entry) bool { return 1+strings.Count(e.Network, ",") == layers })
			runs := of.where(algorithm(sweep.Offline), gains.has)
			x, y, z := runs.planeOver(byLatents, value("x_one_minus_ncc"))
			row = append(row, figure.Figure{
				Title: name + ", " + gains.name, Heat: &figure.Heat{X: x, Y: y, Z: z, Label: "1 − correlation of x", Log: true, Min: deepFloor, Max: 1}, Series: deepLines(of),
			})
			notes = append(notes, fmt.Sprintf("%s, %s: %d of %d instances are recovered", name, gains.name, runs.foundDeep(), len(runs.entries)))
			cal := of.where(algorithm(sweep.Threshold), gains.has).curve(byLatents, value("alpha_cal"))
			for i, at := range cal.x {
				above := runs.where(func(e entry) bool { return byLatents(e) == at && e.Alpha >= wellAbove*cal.mean[i] })
				below := runs.where(func(e entry) bool { return byLatents(e) == at && e.Alpha <= cal.mean[i]/wellAbove })
				notes = append(notes, fmt.Sprintf("%s, %s, N₂/N = %g: α_cal %.3f; recovered are %d of %d instances at %g times that and above, %d of %d at 1/%g and below",
					name, gains.name, at, cal.mean[i], above.foundDeep(), len(above.entries), wellAbove, below.foundDeep(), len(below.entries), wellAbove))
			}
		}
		panels.Rows = append(panels.Rows, row)
	}
	return panels, notes
}

// deepFloor is the end of the colours: what noise of 10⁻⁶ leaves.
const deepFloor = 1e-6

func (t *table) foundDeep() int {
	return len(t.where(func(e entry) bool { return e.get("x_one_minus_ncc") <= foundDeep }).entries)
}

// deepLines are the thresholds of state evolution with unknown and known gains, and the counting bound of unknown ones.
func deepLines(of *table) (list []figure.Series) {
	of = of.where(algorithm(sweep.Threshold))
	unknown := of.where(func(e entry) bool { return !knownGains(e) })
	for _, l := range []struct {
		name   string
		of     *table
		column string
		color  figure.Color
		dashed bool
	}{{"α_{cal}, gains unknown", unknown, "alpha_cal", figure.Orange, false}, {"α_{cal}, gains known", of.where(knownGains), "alpha_cal", figure.Orange, true}, {"counting, gains unknown", unknown, "alpha_min", figure.Neutral, true}} {
		c := l.of.curve(byLatents, value(l.column))
		list = append(list, figure.Series{Name: l.name, X: c.x, Y: c.mean, Color: l.color, Dashed: l.dashed})
	}
	return list
}

// knownGains are those whose range matters less than the noise.
func knownGains(e entry) bool { return e.SRange[1] < 1.001*e.SRange[0] }

// byLatents is N₂/N: the product of all layers' inputs for each output.
func byLatents(e entry) float64 {
	width := 1.0
	for word := range strings.SplitSeq(e.Network, ",") {
		ratio, _, _ := strings.Cut(word, ":")
		v, _ := strconv.ParseFloat(ratio, 64) // as read before
		width *= v
	}
	return width
}
