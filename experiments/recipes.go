package experiments

import (
	"fmt"
	"math"

	"github.com/calamp/calamp/internal/figure"
	"github.com/calamp/calamp/internal/search"
	"github.com/calamp/calamp/internal/sweep"
)

const (
	densityLabel = "density ρ"
	alphaLabel   = "measurements α = M/N"
)

var palette = []figure.Color{figure.Blue, figure.Orange, figure.Green, figure.Purple, figure.Ochre, figure.Sky}

func color(i int) figure.Color { return palette[i%len(palette)] }

// standardErrors is how wide bands and bars are.
const standardErrors = 2

// measured is a curve as points with error bars, or as a line with a band.
func measured(name string, c curve, style figure.Style, i int) figure.Series {
	lo, hi := c.band(standardErrors)
	return figure.Series{Name: name, X: c.x, Y: c.mean, Lo: lo, Hi: hi, Style: style, Color: color(i)}
}

func diagonalAnsatz(t *table) (Picture, []string) {
	panels := figure.Panels{OwnAxes: true, Alt: "Full covariances against diagonal ones: errors, and elements of V"}
	var notes []string
	largest := largestSize(t)
	for _, p := range distinct(t, byP) {
		of := t.where(signals(p))
		left := figure.Figure{
			Title: fmt.Sprintf("P = %d, N = %d", p, largest),
			X:     figure.Axis{Label: alphaLabel}, Y: figure.Axis{Label: "MSE of x", Log: true},
		}
		full := of.where(covariance("full"), size(largest)).curve(byAlpha, value("x_mse"))
		diagonal := of.where(covariance(""), size(largest)).curve(byAlpha, value("x_mse"))
		left.Series = []figure.Series{measured("diagonal", diagonal, figure.Line, 0), measured("full", full, figure.Rings, 1)}
		notes = append(notes, fmt.Sprintf("P = %d: the mean errors of diagonal and full covariances differ by at most %.1f %%", p, 100*largestGap(full, diagonal)))

		scaling := of.where(covariance("full"), func(e entry) bool { return e.Alpha == 2 })
		x := func(e entry) float64 { return float64(e.N) }
		middle := figure.Figure{
			Title: fmt.Sprintf("P = %d, α = 2", p),
			X:     figure.Axis{Label: "N", Log: true}, Y: figure.Axis{Label: "elements of V", Log: true},
			Series: []figure.Series{
				measured("diagonal", scaling.curve(x, value("v_diagonal")), figure.Line, 0),
				measured("off-diagonal", scaling.curve(x, value("v_off_diagonal")), figure.Line, 1),
			},
		}
		ratio := scaling.curve(x, func(e entry) float64 { return e.get("v_off_diagonal") / e.get("v_diagonal") })
		right := figure.Figure{
			Title: fmt.Sprintf("P = %d, α = 2", p),
			X:     figure.Axis{Label: "N", Log: true}, Y: figure.Axis{Label: "|off-diagonal| / diagonal", Log: true},
			Series: []figure.Series{measured("", ratio, figure.Line, 2)},
		}
		if n := len(ratio.x); n > 1 {
			slope := math.Log(ratio.mean[n-1]/ratio.mean[0]) / math.Log(ratio.x[n-1]/ratio.x[0])
			notes = append(notes, fmt.Sprintf("P = %d: the ratio falls as N^%.2f", p, slope))
		}
		panels.Rows = append(panels.Rows, []figure.Figure{left, middle, right})
	}
	return panels, notes
}

// largestSize is that of the panel with errors: the only one with both kinds of
// covariances.
func largestSize(t *table) int {
	n := 0
	for _, v := range distinct(t.where(covariance("")), bySize) {
		n = v
	}
	return n
}

// largestGap is the largest relative difference of two curves over the same places.
func largestGap(a, b curve) float64 {
	gap := 0.0
	for i := range min(len(a.mean), len(b.mean)) {
		gap = max(gap, math.Abs(a.mean[i]-b.mean[i])/max(a.mean[i], b.mean[i]))
	}
	return gap
}

func dynamicsOffline(t *table) (Picture, []string) {
	var all []trajectory
	for _, p := range distinct(t, byP) {
		of := t.where(signals(p))
		all = append(all, trajectory{fmt.Sprintf("P = %d", p), of.where(algorithm(sweep.Published)), of.where(algorithm(sweep.SE))})
	}
	return dynamics(all, "Errors along the iterations, by the number of signals")
}

func dynamicsOnline(t *table) (Picture, []string) {
	var all []trajectory
	for _, k := range distinct(t, bySample) {
		of := t.where(sample(k))
		all = append(all, trajectory{fmt.Sprintf("k = %d", k), of.where(algorithm(sweep.Online)), of.where(algorithm(sweep.SEOnline))})
	}
	return dynamics(all, "Errors along the iterations of some samples of a stream")
}

// trajectory is what was measured along iterations, and what was predicted.
type trajectory struct {
	name    string
	amp, se *table
}

// dynamics shows errors as they are and with the common scale removed: the
// recursion without scale step hardly moves the scale, and at finite N its error
// is what remains in the end.
func dynamics(all []trajectory, alt string) (Picture, []string) {
	panels := figure.Panels{
		X: figure.Axis{Label: "iteration", Whole: true}, Y: figure.Axis{Label: "MSE of x", Log: true},
		Width: 560, Height: 300, Alt: alt,
	}
	var row []figure.Figure
	var notes []string
	for _, side := range []struct{ title, column string }{{"as it is", "x_mse"}, {"scale removed", "x_mse_scaled"}} {
		f := figure.Figure{Title: side.title}
		for i, tr := range all {
			amp := tr.amp.curve(byIteration, value(side.column))
			se := tr.se.curve(byIteration, value("se_x_mse"))
			f.Series = append(f.Series, theory("", se, i), measured(tr.name, amp, figure.Points, i))
			notes = append(notes, agreement(tr.name+", "+side.title, amp, se))
		}
		f.Series = append(f.Series, keyOnly("state evolution", f.Series))
		row = append(row, f)
	}
	panels.Rows = [][]figure.Figure{row}
	return panels, notes
}

// keyOnly is a line without length: it stands in the legend for lines in
// several colours.
func keyOnly(name string, all []figure.Series) figure.Series {
	for _, s := range all {
		if len(s.X) > 0 {
			return figure.Series{Name: name, Color: figure.Neutral, X: []float64{s.X[0], s.X[0]}, Y: []float64{s.Y[0], s.Y[0]}}
		}
	}
	return figure.Series{}
}

func theory(name string, c curve, i int) figure.Series {
	return figure.Series{Name: name, X: c.x, Y: c.mean, Color: color(i)}
}

// agreement says how far AMP's means are from theory, in standard errors, where
// both have an error above what theory's plateau is.
func agreement(name string, amp, se curve) string {
	at := make(map[float64]float64)
	plateau := math.Inf(1)
	for i, x := range se.x {
		at[x] = se.mean[i]
		plateau = min(plateau, se.mean[i])
	}
	worst, where, within, n := 0.0, 0.0, 0, 0
	for i, x := range amp.x {
		want, there := at[x]
		if !there || !(amp.err[i] > 0) || want < 1.5*plateau {
			continue
		}
		z := math.Abs(amp.mean[i]-want) / amp.err[i]
		n++
		if z <= 3 {
			within++
		}
		if z > worst {
			worst, where = z, x
		}
	}
	return fmt.Sprintf("%s: within 3 standard errors of state evolution at %d of %d places before the plateau; at most %.1f, at %g", name, within, n, worst, where)
}

func fixedPointsOffline(t *table) (Picture, []string) {
	x := func(e entry) float64 { return float64(e.P) }
	return fixedPoints(t.where(algorithm(sweep.Offline)), t.where(algorithm(sweep.SE)), x, "number of signals P")
}

func fixedPointsOnline(t *table) (Picture, []string) {
	x := func(e entry) float64 { return float64(e.Sample) }
	return fixedPoints(t.where(algorithm(sweep.Online)), t.where(algorithm(sweep.SEOnline)), x, "sample k")
}

func fixedPoints(amp, se *table, x func(entry) float64, label string) (Picture, []string) {
	f := figure.Figure{
		X: figure.Axis{Label: label, Whole: true}, Y: figure.Axis{Label: "mean squared error", Log: true},
		Width: 420, Height: 300, Alt: "Errors at the fixed points, AMP and state evolution",
	}
	var notes []string
	for i, of := range []struct{ name, measured, predicted string }{
		{"x", "x_mse", "se_x_mse"}, {"s", "s_mse", "se_s_mse"},
	} {
		predicted := se.curve(x, value(of.predicted))
		scaled := amp.curve(x, value(of.measured+"_scaled"))
		f.Series = append(f.Series,
			theory(of.name+", state evolution", predicted, i),
			measured(of.name+", AMP", amp.curve(x, value(of.measured)), figure.Points, i),
			measured(of.name+", AMP, scale removed", scaled, figure.Rings, i))
		notes = append(notes, fmt.Sprintf("MSE of %s, scale removed, over what state evolution says: median %.2f", of.name, medianRatio(scaled, predicted)))
	}
	return f, notes
}

func medianRatio(a, b curve) float64 {
	at := make(map[float64]float64)
	for i, x := range b.x {
		at[x] = b.mean[i]
	}
	var ratios []float64
	for i, x := range a.x {
		if v, there := at[x]; there {
			ratios = append(ratios, a.mean[i]/v)
		}
	}
	return search.Median(ratios)
}

// complexPhases shows errors after the best complex factor, since the phase common to all is a convention where phases are free.
func complexPhases(t *table) (Picture, []string) {
	panels := figure.Panels{
		X: figure.Axis{Label: alphaLabel}, Y: figure.Axis{Label: "mean squared error", Log: true},
		Width: 400, Height: 300, Alt: "Errors of complex signals and gains against the number of sensors, by what is known of phases",
	}
	var row []figure.Figure
	var notes []string
	for _, of := range []struct{ title, measured, predicted string }{
		{"x", "x_mse_scaled", "se_x_mse"}, {"s", "s_mse_scaled", "se_s_mse"},
	} {
		f := figure.Figure{Title: of.title}
		for i, phase := range distinct(t, byPhase) {
			runs := t.where(func(e entry) bool { return e.Phase == phase })
			se := runs.where(algorithm(sweep.SE)).curve(byAlpha, value(of.predicted))
			amp := runs.where(algorithm(sweep.Offline)).curve(byAlpha, value(of.measured))
			f.Series = append(f.Series, theory("", se, i), measured(phaseName(phase), amp, figure.Points, i))
			notes = append(notes, agreement(of.title+", "+phaseName(phase), amp, se))
		}
		f.Series = append(f.Series, keyOnly("state evolution", f.Series))
		row = append(row, f)
	}
	panels.Rows = [][]figure.Figure{row}
	return panels, notes
}

func byPhase(e entry) sweep.Phase { return e.Phase }

func phaseName(p sweep.Phase) string {
	if p == "known" || p == "free" {
		return "phases " + string(p)
	}
	return "κ = " + string(p)
}
