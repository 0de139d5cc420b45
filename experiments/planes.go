package experiments

import (
	"fmt"
	"math"

	"github.com/calamp/calamp/internal/figure"
	"github.com/calamp/calamp/internal/search"
	"github.com/calamp/calamp/internal/sweep"
	"github.com/calamp/calamp/solver"
)

// recovered is the 1 - correlation at which an instance counts as recovered, and
// the error, in the specs, at which state evolution does. A looser bar is met
// below the transition: gains from a narrow range are half known beforehand.
const recovered = 1e-9

func phaseX(t *table) (Picture, []string) {
	panels := planePanels()
	panels.Rows = phaseRows(t, "x_one_minus_ncc", "1 − correlation of x", "")
	var notes []string
	offline := t.where(algorithm(sweep.Offline))
	for _, p := range distinct(offline, byP) {
		notes = append(notes, transition(fmt.Sprintf("offline, P = %d", p), offline.where(signals(p)), t, p))
	}
	return panels, notes
}

// phaseS shows the correlation as the paper has it, and below with the means
// subtracted: that of the paper is nearly 1 for any estimate, since s is in a
// narrow range.
func phaseS(t *table) (Picture, []string) {
	panels := planePanels()
	panels.Rows = append(
		phaseRows(t, "s_one_minus_ncc", "1 − correlation of s", ", raw"),
		phaseRows(t, "s_one_minus_cncc", "1 − correlation of s", ", centred")...)
	failing := t.where(algorithm(sweep.Offline), func(e entry) bool { return e.get("x_one_minus_ncc") > 0.1 })
	raw, centred := failing.values("s_one_minus_ncc"), failing.values("s_one_minus_cncc")
	return panels, []string{fmt.Sprintf("where the signals are lost (1 − correlation above 0.1), s has a raw 1 − correlation of %.1e and a centred one of %.2f (medians)", search.Median(raw), search.Median(centred))}
}

// phaseRows has offline cal-AMP in the upper row and online in the lower.
func phaseRows(t *table, column, label, suffix string) [][]figure.Figure {
	offline, online := t.where(algorithm(sweep.Offline)), t.where(algorithm(sweep.Online))
	var upper, lower []figure.Figure
	for _, p := range distinct(offline, byP) {
		upper = append(upper, planeFigure(fmt.Sprintf("offline, P = %d%s", p, suffix), offline.where(signals(p)), column, label, lines(t, p)))
	}
	for _, k := range distinct(online, bySample) {
		lower = append(lower, planeFigure(fmt.Sprintf("online, k = %d%s", k, suffix), online.where(sample(k)), column, label, lines(t, k)))
	}
	return [][]figure.Figure{upper, lower}
}

func phasePublished(t *table) (Picture, []string) {
	panels := planePanels()
	var notes []string
	for _, a := range []sweep.Algorithm{sweep.Offline, sweep.Published} {
		of := t.where(algorithm(a))
		name := "default"
		if a == sweep.Published {
			name = "published"
		}
		var row []figure.Figure
		for _, p := range distinct(of, byP) {
			row = append(row, planeFigure(fmt.Sprintf("%s, P = %d", name, p), of.where(signals(p)), "x_one_minus_ncc", "1 − correlation of x", lines(t, p)))
			notes = append(notes, transition(fmt.Sprintf("%s, P = %d", name, p), of.where(signals(p)), t, p))
		}
		panels.Rows = append(panels.Rows, row)
	}
	return panels, notes
}

// conditionPlane has the condition number where the others have the density. The threshold of state evolution is that of vector AMP for both: AMP has
// none that holds for such W.
func conditionPlane(t *table) (Picture, []string) {
	panels := figure.Panels{
		X: figure.Axis{Label: "log₁₀ of the condition number"}, Y: figure.Axis{Label: alphaLabel},
		Alt: "The plane of condition number and measurement rate, for AMP and vector AMP; dark is recovered",
	}
	cal := t.where(algorithm(sweep.Threshold)).curve(byCondition, value("alpha_cal"))
	limit := figure.Series{Name: "α_{cal}, vector AMP", X: cal.x, Y: cal.mean, Color: figure.Orange, Dashed: true}
	var row []figure.Figure
	var notes []string
	for _, a := range []struct {
		name string
		is   solver.Algorithm
	}{{"AMP", solver.AMP}, {"vector AMP", solver.VAMP}} {
		of := t.where(algorithm(sweep.Offline), func(e entry) bool { return e.Solver.Algorithm == a.is })
		x, y, z := of.planeOver(byCondition, value("x_one_minus_ncc"))
		row = append(row, figure.Figure{
			Title: a.name, Heat: &figure.Heat{X: x, Y: y, Z: z, Label: "1 − correlation of x", Log: true, Min: floor, Max: 1}, Series: []figure.Series{limit},
		})
		for i, at := range cal.x {
			above := of.where(func(e entry) bool { return byCondition(e) == at && e.Alpha >= wellAbove*cal.mean[i] })
			found := above.where(func(e entry) bool { return e.get("x_one_minus_ncc") <= recoveredBehind })
			notes = append(notes, fmt.Sprintf("%s, condition number %.4g: of %d instances at %g α_cal (%.3f) and above %d are recovered",
				a.name, math.Pow(10, at), len(above.entries), wellAbove, cal.mean[i], len(found.entries)))
		}
	}
	panels.Rows = [][]figure.Figure{row}
	return panels, notes
}

// recoveredBehind is [recovered] behind an ill-conditioned W, which makes noise up to the condition number's square as large.
const recoveredBehind = 1e-5

func byCondition(e entry) float64 { return math.Log10(max(1, e.Matrix.Value)) }

func sePhase(t *table) (Picture, []string) {
	panels := planePanels()
	var row []figure.Figure
	for _, p := range distinct(t, byP) {
		of := t.where(signals(p), algorithm(sweep.SE))
		row = append(row, planeFigure(fmt.Sprintf("P = %d", p), of, "se_x_mse", "MSE of x, N → ∞", lines(t, p)))
	}
	panels.Rows = [][]figure.Figure{row}
	return panels, nil
}

func planePanels() figure.Panels {
	return figure.Panels{
		X: figure.Axis{Label: densityLabel}, Y: figure.Axis{Label: alphaLabel},
		Alt: "The plane of density and measurement rate; dark is recovered",
	}
}

// floor of the colours: what is below is recovered, to the precision of numbers
// that noise allows.
const floor = 1e-12

func planeFigure(title string, t *table, column, label string, overlaid []figure.Series) figure.Figure {
	x, y, z := t.plane(value(column))
	return figure.Figure{
		Title:  title,
		Heat:   &figure.Heat{X: x, Y: y, Z: z, Label: label, Log: true, Min: floor, Max: 1},
		Series: overlaid,
	}
}

// lines are the thresholds at P signals. α_CS is there for any P; where none was
// computed, those of the largest P are the closest, since they hardly change.
func lines(t *table, p int) []figure.Series {
	of := t.where(algorithm(sweep.Threshold))
	known := distinct(of, byP)
	cs := of.curve(byDensity, value("alpha_cs"))
	out := []figure.Series{{Name: "α_{CS}", X: cs.x, Y: cs.mean, Color: figure.Sky}}
	minimal := figure.Series{Name: "α_{min}", Color: figure.Purple}
	for _, density := range cs.x {
		minimal.X = append(minimal.X, density)
		minimal.Y = append(minimal.Y, density*float64(p)/float64(p-1))
	}
	out = append(out, minimal)
	if len(known) > 0 && p <= known[len(known)-1] {
		cal := of.where(signals(p)).curve(byDensity, value("alpha_cal"))
		out = append(out, figure.Series{Name: "α_{cal}", X: cal.x, Y: cal.mean, Color: figure.Orange, Dashed: true})
	}
	return out
}

// transition compares where half of the instances are recovered with α_cal, and
// counts those that are well above it and are not recovered.
func transition(name string, t, all *table, p int) string {
	cal := all.where(algorithm(sweep.Threshold), signals(p)).curve(byDensity, value("alpha_cal"))
	at := make(map[float64]float64)
	for i, density := range cal.x {
		at[density] = cal.mean[i]
	}
	success := func(e entry) float64 {
		if e.get("x_one_minus_ncc") <= recovered { // false for NaN: a failure
			return 1
		}
		return 0
	}
	gap, where, above, lost := 0.0, math.NaN(), 0, 0
	for _, density := range distinct(t, byDensity) {
		limit, there := at[density]
		if !there {
			continue
		}
		of := t.where(func(e entry) bool { return e.Density == density })
		if half := crossing(of.curve(byAlpha, success)); math.Abs(half-limit) > math.Abs(gap) {
			gap, where = half-limit, density
		}
		for _, e := range of.entries {
			if e.Alpha >= wellAbove*limit {
				above++
				lost += 1 - int(success(e))
			}
		}
	}
	return fmt.Sprintf("%s: the 50 %% line is at most %+.3f from α_cal, at ρ = %.4g; of %d instances at %g α_cal and above %d are not recovered",
		name, gap, where, above, wellAbove, lost)
}

// wellAbove the threshold, as a multiple of it, instances of finite size should
// all be recovered.
const wellAbove = 1.3

// crossing is where a rising curve passes one half for good; NaN where it does not.
func crossing(c curve) float64 {
	for i := len(c.x) - 1; i > 0; i-- {
		if a, b := c.mean[i-1], c.mean[i]; a < 0.5 && b >= 0.5 {
			return c.x[i-1] + (c.x[i]-c.x[i-1])*(0.5-a)/(b-a)
		}
	}
	return math.NaN()
}

// jointThresholds shows how many sensors independent signals take, and how many those that share their entries, against their number.
func jointThresholds(t *table) (Picture, []string) {
	x := func(e entry) float64 { return float64(e.P) }
	f := figure.Figure{
		X: figure.Axis{Label: "number of signals P", Log: true}, Y: figure.Axis{Label: alphaLabel},
		Width: 520, Height: 320, Alt: "Thresholds against the number of signals, for independent and for joint signals",
	}
	var notes []string
	for i, joint := range distinct(t, func(e entry) sweep.Joint { return e.Joint }) {
		c := t.where(func(e entry) bool { return e.Joint == joint }).curve(x, value("alpha_cal"))
		name := "independent"
		if joint != "" {
			name = "joint, correlation " + string(joint)
		}
		f.Series = append(f.Series, figure.Series{Name: name, X: c.x, Y: c.mean, Color: color(i), Style: figure.Line})
		if n := len(c.x); n > 0 {
			notes = append(notes, fmt.Sprintf("%s: α_cal %.3f at P = %g, %.3f at P = %g", name, c.mean[0], c.x[0], c.mean[n-1], c.x[n-1]))
		}
	}
	least := t.curve(x, value("alpha_min"))
	f.Series = append(f.Series, figure.Series{Name: "counting bound", X: least.x, Y: least.mean, Color: figure.Neutral, Dashed: true})
	return f, notes
}

func hardPhase(t *table) (Picture, []string) {
	panels := figure.Panels{
		X: figure.Axis{Label: densityLabel}, Y: figure.Axis{Label: alphaLabel},
		Alt: "Thresholds against the density, for several numbers of signals",
	}
	var row []figure.Figure
	for _, p := range distinct(t, byP) {
		of := t.where(signals(p))
		f := figure.Figure{Title: fmt.Sprintf("P = %d", p)}
		for i, l := range []struct{ name, column string }{
			{"α_{min}", "alpha_min"}, {"information-theoretic jump, Δ = 10^{-12}", "alpha_it"}, {"α_{cal}", "alpha_cal"}, {"α_{CS}", "alpha_cs"},
		} {
			c := of.curve(byDensity, value(l.column))
			s := figure.Series{Name: l.name, X: c.x, Y: c.mean, Color: color(i), Dashed: i == 3}
			if l.column == "alpha_it" {
				s.Style = figure.Rings
			}
			f.Series = append(f.Series, s)
		}
		row = append(row, f)
	}
	panels.Rows = [][]figure.Figure{row}
	return panels, nil
}
