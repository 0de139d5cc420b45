package report

import (
	"fmt"
	"html/template"
	"math"

	"github.com/calamp/calamp"
	"github.com/calamp/calamp/internal/figure"
)

// plot is a figure, drawn once for the light and once for the dark theme.
type plot struct {
	Heading     string
	Caption     string
	Light, Dark template.HTML
}

// draw relies on package figure to escape the texts of its SVG.
func draw(heading, caption string, f figure.Figure) plot {
	if f.Alt == "" {
		f.Alt = heading
	}
	return plot{heading, caption, template.HTML(f.SVG(figure.Light)), template.HTML(f.SVG(figure.Dark))}
}

// progress shows the trace of the run.
func (r *Report) progress() plots {
	trace := r.Result.Trace
	if len(trace) == 0 {
		return plots{}
	}
	each := func(value func(calamp.Iteration) float64) []float64 {
		out := make([]float64, len(trace))
		for i, it := range trace {
			out[i] = value(it)
		}
		return out
	}
	index := each(func(it calamp.Iteration) float64 { return float64(it.Index) })
	line := func(name string, color figure.Color, value func(calamp.Iteration) float64) figure.Series {
		return figure.Series{Name: name, X: index, Y: each(value), Color: color}
	}
	x := figure.Axis{Label: "iteration", Whole: true}
	var p plots
	p.Figures = append(p.Figures,
		draw("Relative change", "The largest of all signals at each iteration.", figure.Figure{
			X: x, Y: figure.Axis{Label: "‖Δx‖ / ‖x‖", Log: true},
			Series: []figure.Series{line("", figure.Blue, func(it calamp.Iteration) float64 { return it.Change })},
		}),
		draw("Mean posterior variance", "The squared errors that the run states.", figure.Figure{
			X: x, Y: figure.Axis{Label: "variance", Log: true},
			Series: []figure.Series{
				line("signals x", figure.Blue, func(it calamp.Iteration) float64 { return it.MeanXVar }),
				line("calibration s", figure.Orange, func(it calamp.Iteration) float64 { return it.MeanSVar }),
			},
		}))
	step := line("", figure.Green, func(it calamp.Iteration) float64 { return math.Abs(it.Scale - 1) })
	damping := line("", figure.Purple, func(it calamp.Iteration) float64 { return it.Damping })
	if low, high := span(step.Y); high > 0 {
		p.Figures = append(p.Figures, draw("Scale step", "How far each iteration moved the scale common to all signals and gains.",
			figure.Figure{X: x, Y: figure.Axis{Label: "| factor − 1 |", Log: true}, Series: []figure.Series{step}}))
	} else if low == 0 {
		p.Note = "No scale steps were taken."
	}
	if low, high := span(damping.Y); high > low {
		p.Figures = append(p.Figures, draw("Damping", "The fraction δ of the old estimate kept at each iteration.",
			figure.Figure{X: x, Y: figure.Axis{Label: "δ", Min: 0, Max: math.Max(0.1, 1.1*high)}, Series: []figure.Series{damping}}))
	} else {
		p.Note += fmt.Sprintf(" The damping was %s throughout.", number(high))
	}
	return p
}

// span is the smallest and largest number among values, or NaN.
func span(values []float64) (low, high float64) {
	low, high = math.NaN(), math.NaN()
	for _, v := range values {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			continue
		}
		if !(v >= low) {
			low = v
		}
		if !(v <= high) {
			high = v
		}
	}
	return low, high
}

// normalCurve is N(0, 1) on the scale of a histogram of n values.
func normalCurve(n int, binWidth float64) figure.Series {
	const limit, steps = 5.0, 100
	s := figure.Series{Name: "N(0, 1)", Color: figure.Orange}
	for i := range steps + 1 {
		x := limit * (2*float64(i)/steps - 1)
		s.X = append(s.X, x)
		s.Y = append(s.Y, float64(n)*binWidth*math.Exp(-x*x/2)/math.Sqrt(2*math.Pi))
	}
	return s
}

const bins = 41 // an odd number, so that zero is in the middle of a bin

// standardised is a histogram of values that should be N(0, 1), with that curve.
func standardised(heading, caption, label, unit string, values []float64) plot {
	limit := 5.0
	far := math.Max(quantile(values, 0.995), -quantile(values, 0.005))
	if far > limit && !math.IsInf(far, 0) {
		limit = 1.2 * far
	}
	h, n, outside := figure.Histogram(values, -limit, limit, bins)
	h.Name, h.Color, h.Opacity = unit, figure.Blue, 0.75
	curve := normalCurve(n, 2*limit/bins)
	y := figure.Axis{Label: unit, Whole: true}
	_, most := span(h.Y)
	if _, peak := span(curve.Y); peak > 2*most && most > 0 {
		y.Max = 1.5 * most // a higher curve is cut off, so that the bars stay visible
		caption += " The curve is cut off at the top."
	}
	if outside > 0 {
		caption += fmt.Sprintf(" The outermost bars hold %s beyond ±%s.", some(outside, "value"), digits(limit, 2))
	}
	return draw(heading, caption, figure.Figure{
		X: figure.Axis{Label: label, Min: -limit, Max: limit}, Y: y, Series: []figure.Series{h, curve},
	})
}

// positive is a histogram of values from zero on, with the outliers in the last bar.
func positive(heading, caption, label string, values []float64, mark float64) plot {
	low, high := span(values)
	if far := 1.5 * quantile(values, 0.99); high > far {
		high = far
	}
	if mark > 0 {
		low, high = 0, math.Max(high, 2*mark)
	}
	if !(high > low) { // all equal
		low, high = 0.9*low, 1.1*high
	}
	if !(high > low) { // all zero
		high = low + 1
	}
	h, _, outside := figure.Histogram(values, low, high, min(bins, max(8, len(values)/6)))
	h.Color, h.Opacity = figure.Blue, 0.75
	if outside > 0 {
		caption += fmt.Sprintf(" The last bar holds %s above %s.", some(outside, "sensor"), digits(high, 2))
	}
	pad := 0.02 * (high - low)
	f := figure.Figure{
		X:      figure.Axis{Label: label, Min: low - pad, Max: high + pad},
		Y:      figure.Axis{Label: "sensors", Whole: true},
		Series: []figure.Series{h},
	}
	if mark > 0 {
		_, top := span(h.Y)
		f.Series = append(f.Series, figure.Series{Name: "expected", X: []float64{mark, mark}, Y: []float64{0, top}, Color: figure.Orange, Dashed: true, Size: 2})
		f.Series[0].Name = "sensors"
	}
	return draw(heading, caption, f)
}
