package figure

import (
	"image/color"
	"math"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// Heat is a map of colours: each value colours the whole cell around its place, without
// interpolation.
type Heat struct {
	X, Y []float64   // centres of the cells, increasing
	Z    [][]float64 // Z[j][i] is the value at (X[i], Y[j]); NaN leaves the cell grey

	Label string // of the colour bar
	Log   bool   // colours follow the logarithm; values that are not positive have the first colour
	// Min and Max fix the values of the first and last colour when Min < Max;
	// values outside have these colours. By default they are those of the data.
	Min, Max float64
}

// viridis, by S. van der Walt and N. Smith (2015, CC0), at eleven equal steps: its
// lightness rises evenly, in print and to the colour-blind too.
var viridis = [...]color.NRGBA{
	rgb(0x440154), rgb(0x482475), rgb(0x414487), rgb(0x355f8d), rgb(0x2a788e), rgb(0x21918c),
	rgb(0x22a884), rgb(0x44bf70), rgb(0x7ad151), rgb(0xbddf26), rgb(0xfde725),
}

// viridisAt is the colour at t in [0, 1].
func viridisAt(t float64) color.NRGBA {
	t = min(max(t, 0), 1) * float64(len(viridis)-1)
	i := min(int(t), len(viridis)-2)
	mix := func(a, b uint8) uint8 { return uint8(float64(a) + (t-float64(i))*(float64(b)-float64(a)) + 0.5) }
	a, b := viridis[i], viridis[i+1]
	return color.NRGBA{R: mix(a.R, b.R), G: mix(a.G, b.G), B: mix(a.B, b.B), A: 0xff}
}

// scale is the range of colours.
func (h *Heat) scale() (lo, hi float64) {
	if h.Min < h.Max && (!h.Log || h.Min > 0) {
		return h.Min, h.Max
	}
	var e extent
	for _, row := range h.Z {
		for _, v := range row {
			if fits(v, h.Log) {
				e.add(v)
			}
		}
	}
	switch {
	case !e.any:
		return 0.1, 1
	case e.min < e.max:
		return e.min, e.max
	case h.Log:
		return e.min / 2, e.max * 2
	}
	return e.min - 0.5, e.max + 0.5
}

// place of a value between the first and the last colour.
func (h *Heat) place(v, lo, hi float64) float64 {
	if h.Log {
		return logScale{}.Normalize(lo, hi, v)
	}
	return (v - lo) / (hi - lo)
}

// edges are the ends of the cells: halfway between the centres, on a log axis in the
// logarithm.
func edges(centers []float64, log bool) []float64 {
	n := len(centers)
	if n == 0 {
		return nil
	}
	at, back := func(v float64) float64 { return v }, func(v float64) float64 { return v }
	if log {
		at, back = math.Log, math.Exp
	}
	out := make([]float64, n+1)
	for i := 1; i < n; i++ {
		out[i] = (at(centers[i-1]) + at(centers[i])) / 2
	}
	half := 0.5
	if n > 1 {
		half = out[1] - at(centers[0])
	}
	out[0] = at(centers[0]) - half
	if n > 1 {
		half = at(centers[n-1]) - out[n-1]
	}
	out[n] = at(centers[n-1]) + half
	for i := range out {
		out[i] = back(out[i])
	}
	return out
}

// heatMap draws a Heat.
type heatMap struct {
	*Heat
	logX, logY bool
	missing    color.Color
}

// Plot implements plot.Plotter. Cells that only touch would show seams, since viewers
// blend the edges of each cell with the background. So each cell is drawn a little
// larger to the right and to the top, and its neighbours there are drawn over it.
func (h *heatMap) Plot(c draw.Canvas, p *plot.Plot) {
	at := place{c, p}
	x, y := edges(h.X, h.logX), edges(h.Y, h.logY)
	lo, hi := h.scale()
	for j := 0; j+1 < len(y) && j < len(h.Z); j++ {
		row := h.Z[j]
		for i := 0; i < len(row) && i+1 < len(x); {
			fill := h.color(row[i], lo, hi)
			next := i + 1
			for next < len(row) && next+1 < len(x) && h.color(row[next], lo, hi) == fill {
				next++
			}
			h.cell(at, x[i], x[next], y[j], y[j+1], fill)
			i = next
		}
	}
}

func (h *heatMap) color(v, lo, hi float64) color.Color {
	if math.IsNaN(v) {
		return h.missing
	}
	return viridisAt(h.Heat.place(v, lo, hi))
}

// overlap is wider than a pixel of a screen.
const overlap = 0.8

func (h *heatMap) cell(at place, left, right, bottom, top float64, fill color.Color) {
	within := func(v, a, b vg.Length) vg.Length { return min(max(v, a), b) }
	r := vg.Rectangle{
		Min: vg.Point{X: within(at.x(left), at.c.Min.X, at.c.Max.X), Y: within(at.y(bottom), at.c.Min.Y, at.c.Max.Y)},
		Max: vg.Point{X: within(at.x(right)+overlap, at.c.Min.X, at.c.Max.X), Y: within(at.y(top)+overlap, at.c.Min.Y, at.c.Max.Y)},
	}
	if r.Max.X > r.Min.X && r.Max.Y > r.Min.Y {
		at.c.SetColor(fill)
		at.c.Fill(r.Path())
	}
}

// frame is the axis with a range that just holds the cells, unless it is fixed.
func (h *Heat) frame(a Axis, centers []float64) Axis {
	if e := edges(centers, a.Log); !(a.Min < a.Max) && len(e) > 0 {
		a.Min, a.Max = e[0], e[len(e)-1]
	}
	return a
}

const (
	barGap     = 10 // points between the axes and the colour bar
	barBreadth = 11
	barSteps   = 128
)

// barMarks are the marks of the colour bar.
func (h *Heat) barMarks(height vg.Length) []plot.Tick {
	lo, hi := h.scale()
	n := max(2, int(height/32))
	if h.Log {
		return logTicks(lo, hi, n)
	}
	return linearTicks(lo, hi, n, false)
}

// barSpace is the width that the colour bar takes, with its marks and label.
func (h *Heat) barSpace(height vg.Length) vg.Length {
	sty := textStyle(tickSize, color.Black)
	widest := vg.Length(0)
	for _, t := range h.barMarks(height) {
		widest = max(widest, widthOf(sty, t.Label))
	}
	space := barGap + barBreadth + tickMark + 3 + widest
	if h.Label != "" {
		space += textStyle(labelSize, color.Black).Height("x") + 2
	}
	return space
}

// drawBar draws the colour bar to the right of data; c.Max.X is its right end.
func (h *Heat) drawBar(c, data draw.Canvas, col *colors) {
	x := data.Max.X + barGap
	bottom, height := data.Min.Y, data.Size().Y
	for k := range barSteps {
		from := bottom + height*vg.Length(k)/barSteps
		c.SetColor(viridisAt((float64(k) + 0.5) / barSteps))
		c.Fill(vg.Rectangle{Min: vg.Point{X: x, Y: from}, Max: vg.Point{X: x + barBreadth, Y: bottom + height*vg.Length(min(k+2, barSteps))/barSteps}}.Path())
	}
	line := draw.LineStyle{Color: col.axis, Width: axisWidth}
	sty := textStyle(tickSize, col.text)
	lo, hi := h.scale()
	for _, t := range h.barMarks(height) {
		at := h.place(t.Value, lo, hi)
		if at < -1e-9 || at > 1+1e-9 {
			continue
		}
		y, length := bottom+height*vg.Length(at), vg.Length(tickMark)
		if t.IsMinor() {
			length /= 2
		}
		c.StrokeLine2(line, x+barBreadth, y, x+barBreadth+length, y)
		sty.YAlign = draw.YCenter
		c.FillText(sty, vg.Point{X: x + barBreadth + tickMark + 3, Y: y + sty.FontExtents().Descent}, t.Label)
	}
	label := textStyle(labelSize, col.text)
	label.XAlign, label.Rotation = draw.XCenter, math.Pi/2
	c.FillText(label, vg.Point{X: c.Max.X - label.FontExtents().Descent, Y: bottom + height/2}, h.Label)
}

// halo draws a pale edge around lines on a map, so that they stand out from
// every colour of it.
func halo(l *layer) *layer {
	under := *l
	under.color = color.NRGBA{R: 0xff, G: 0xff, B: 0xff, A: 0xe0}
	under.Size = float64(l.lineStyle().Width) + 2
	under.Dashed = false
	under.Lo, under.Hi = nil, nil
	return &under
}
