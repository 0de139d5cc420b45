package report

import (
	"fmt"
	"math"

	"github.com/calamp/calamp/internal/figure"
)

// drawnWithin is how many standard deviations from the maximum the evidence is drawn.
const drawnWithin = 6

// evidence draws, for every parameter of a fitted matrix, the evidence of its runs, and the parabola that its error bar is of.
func (r *Report) evidence() (p plots) {
	if r.Fit == nil || len(r.Fit.Runs) == 0 {
		return p
	}
	most := math.Inf(-1)
	for _, run := range r.Fit.Runs {
		most = max(most, run.LogEvidence)
	}
	for j, theta := range r.Fit.Theta {
		name := fmt.Sprintf("theta %d", j)
		caption := "Each dot is a run."
		if j < len(r.FitNames) {
			caption = r.FitNames[j] + ". " + caption
		}
		all := figure.Series{Style: figure.Points, Color: figure.Blue}
		for _, run := range r.Fit.Runs {
			all.X, all.Y = append(all.X, run.Theta[j]), append(all.Y, run.LogEvidence)
		}
		p.Figures = append(p.Figures, draw("Evidence along "+name, caption+" Far from the maximum they may have ended early.",
			figure.Figure{X: figure.Axis{Label: name}, Y: figure.Axis{Label: "log evidence"}, Series: []figure.Series{all}}))
		if r.Fit.ThetaSD == nil {
			continue
		}
		sd := r.Fit.ThetaSD[j]
		near := figure.Series{Name: "runs", Style: figure.Points, Color: figure.Blue}
		for i, x := range all.X {
			if at := (x - theta) / sd; math.Abs(at) <= drawnWithin && all.Y[i] > most-0.5*drawnWithin*drawnWithin {
				near.X, near.Y = append(near.X, at), append(near.Y, all.Y[i]-most)
			}
		}
		curve := figure.Series{Name: "normal", Color: figure.Orange}
		for i := range 61 {
			at := 0.1*float64(i) - 3
			curve.X, curve.Y = append(curve.X, at), append(curve.Y, -0.5*at*at)
		}
		p.Figures = append(p.Figures, draw("Near its maximum", fmt.Sprintf("In standard deviations of %s from %.6g. Runs that differ in other parameters, too, lie below the curve.", name, theta),
			figure.Figure{X: figure.Axis{Label: fmt.Sprintf("(%s − %.6g) / %.2g", name, theta, sd)}, Y: figure.Axis{Label: "log evidence below its maximum"}, Series: []figure.Series{curve, near}}))
	}
	return p
}
