package figure

import (
	"image/color"
	"math"
	"strings"

	stdfont "golang.org/x/image/font"
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

const (
	titleSize = 13 // points
	labelSize = 12
	tickSize  = 11

	axisWidth = 0.6
	tickMark  = 3.5

	sampleWidth = 17 // of the piece of line in the legend
	sampleGap   = 5
	entryGap    = 9
)

// draw lays the figure out from the top: title, legend, axes with the data. The
// legend has a strip of its own, so that it never hides data.
func (f Figure) draw(c draw.Canvas, theme Theme, background bool) {
	col := theme.colors()
	if background {
		c.SetColor(col.back)
		c.Fill(c.Rectangle.Path())
	}
	layers := f.layers(col)
	if f.Heat != nil {
		f.X, f.Y = f.Heat.frame(f.X, f.Heat.X), f.Heat.frame(f.Y, f.Heat.Y)
	}
	p := f.axes(layers, col)
	if f.Heat == nil {
		p.Add(grid{col.grid})
	}
	p.Add(f.plotters(layers, col)...)
	c = draw.Crop(c, 3, -6, 3, -4)
	whole := c
	if f.Heat != nil {
		c.Max.X -= f.Heat.barSpace(c.Size().Y)
	}
	inner := cropLabels(c, p, f.X.Label, f.Y.Label)
	left := p.DataCanvas(inner).Min.X
	inner.Max.Y = drawTitle(c, f.Title, left, col).Max.Y
	inner = drawLegend(inner, layers, left, col)
	p.Draw(inner)
	f.drawLabels(c, p.DataCanvas(inner), col)
	if f.Heat != nil {
		f.Heat.drawBar(whole, p.DataCanvas(inner), col)
	}
}

// plotters are the parts inside the axes, in the order in which they are drawn.
func (f Figure) plotters(layers []*layer, col *colors) []plot.Plotter {
	var out []plot.Plotter
	if f.Heat != nil {
		out = append(out, &heatMap{f.Heat, f.X.Log, f.Y.Log, col.grid})
	}
	for _, l := range layers {
		if f.Heat != nil && l.Style == Line {
			out = append(out, halo(l))
		}
		out = append(out, l)
	}
	return out
}

// cropLabels makes room for the axes' labels, which are not drawn by gonum: it misplaces
// them on log axes, and then shrinks the axis to make them fit.
func cropLabels(c draw.Canvas, p *plot.Plot, x, y string) draw.Canvas {
	inner, height := c, textStyle(labelSize, color.Black).Height("x")
	for _, t := range p.Y.Tick.Marker.Ticks(p.Y.Min, p.Y.Max) {
		spare := widthOf(p.Y.Tick.Label, t.Label) - p.Y.Tick.Label.Width(t.Label)
		inner.Min.X = max(inner.Min.X, c.Min.X+spare)
	}
	if y != "" {
		inner.Min.X += height
	}
	if x != "" {
		inner.Min.Y += height + 1
	}
	return inner
}

// drawLabels writes the labels at the edges of c, in the middle of the axes of data.
func (f Figure) drawLabels(c, data draw.Canvas, col *colors) {
	sty := textStyle(labelSize, col.text)
	sty.XAlign = draw.XCenter
	descent := sty.FontExtents().Descent
	c.FillText(sty, vg.Point{X: data.Center().X, Y: c.Min.Y + descent}, f.X.Label)
	sty.Rotation = math.Pi / 2
	c.FillText(sty, vg.Point{X: c.Min.X + sty.Height("x") - descent, Y: data.Center().Y}, f.Y.Label)
}

// axes makes an empty plot with its ranges, marks and styles.
func (f Figure) axes(layers []*layer, col *colors) *plot.Plot {
	p := plot.New()
	p.BackgroundColor = nil
	p.TextHandler = handler
	var x, y extent
	zero := false
	for _, l := range layers {
		l.extend(&x, &y)
		zero = zero || l.Style == Bars || l.Style == Stems
	}
	width, height := f.size()
	f.X.apply(&p.X, x, false, int(width/58), col)
	f.Y.apply(&p.Y, y, zero, int(height/42), col)
	return p
}

// apply gives gonum's axis a range, about n marks, and our style.
func (a Axis) apply(to *plot.Axis, data extent, zero bool, n int, col *colors) {
	to.Min, to.Max = a.span(data, zero)
	if a.Log {
		to.Scale = logScale{}
		to.Tick.Marker = plot.ConstantTicks(logTicks(to.Min, to.Max, n))
	} else {
		to.Tick.Marker = plot.ConstantTicks(linearTicks(to.Min, to.Max, n, a.Whole))
	}
	line := draw.LineStyle{Color: col.axis, Width: axisWidth}
	to.LineStyle = line
	to.Padding = 0
	to.Label.TextStyle = textStyle(tickSize, col.text) // gonum uses its size for the gap beside the axis
	to.Tick.Label.Font = font.From(sans, tickSize)
	to.Tick.Label.Color = col.text
	to.Tick.Label.Handler = handler
	to.Tick.LineStyle = line
	to.Tick.Length = tickMark
}

func textStyle(size vg.Length, c color.Color) text.Style {
	return text.Style{Color: c, Font: font.From(sans, size), Handler: handler}
}

// extent is the range of some numbers.
type extent struct {
	min, max float64
	any      bool
}

func (e *extent) add(v float64) {
	if !e.any {
		e.min, e.max, e.any = v, v, true
		return
	}
	e.min, e.max = math.Min(e.min, v), math.Max(e.max, v)
}

const margin = 0.04 // between the data and the ends of an axis, as a fraction of it

// span is the range of an axis: the fixed one, or that of the data with a margin.
// There is no margin on the side where bars or stems stand on zero.
func (a Axis) span(data extent, zero bool) (lo, hi float64) {
	if a.Min < a.Max && (!a.Log || a.Min > 0) {
		return a.Min, a.Max
	}
	if a.Log {
		return logSpan(data)
	}
	if !data.any {
		return 0, 1
	}
	if zero {
		data.add(0)
	}
	lo, hi = data.min, data.max
	if half := tooNarrow(lo, hi); half > 0 {
		return lo - half, hi + half
	}
	pad := margin * (hi - lo)
	if !zero || lo < 0 {
		lo -= pad
	}
	if !zero || hi > 0 {
		hi += pad
	}
	return lo, hi
}

// tooNarrow is by how much to widen a range on both sides if it is so narrow that its
// marks would need too many digits; otherwise 0.
func tooNarrow(lo, hi float64) float64 {
	largest := math.Max(math.Abs(lo), math.Abs(hi))
	switch {
	case largest < 1/huge:
		return 1
	case hi-lo <= 1e-6*largest:
		return 0.1 * largest
	default:
		return 0
	}
}

func logSpan(data extent) (lo, hi float64) {
	if !data.any {
		return 0.1, 1
	}
	pad := math.Pow(data.max/data.min, margin)
	if math.IsInf(pad, 0) || pad < 1.02 {
		pad = 1.5
	}
	return math.Max(data.min/pad, 1e-300), math.Min(data.max*pad, 1e300)
}

// grid draws a faint line across the data at every labelled mark of the y axis.
type grid struct{ color color.Color }

// Plot implements plot.Plotter.
func (g grid) Plot(c draw.Canvas, p *plot.Plot) {
	style := draw.LineStyle{Color: g.color, Width: 0.6}
	for _, t := range p.Y.Tick.Marker.Ticks(p.Y.Min, p.Y.Max) {
		y := c.Y(p.Y.Norm(t.Value))
		if !t.IsMinor() && c.ContainsY(y) && y > c.Min.Y+1 {
			c.StrokeLine2(style, c.Min.X, y, c.Max.X, y)
		}
	}
}

// drawTitle writes the title, and returns the rest of the canvas.
func drawTitle(c draw.Canvas, title string, left vg.Length, col *colors) draw.Canvas {
	if title == "" {
		return c
	}
	sty := textStyle(titleSize, col.text)
	sty.Font.Weight = stdfont.WeightBold
	sty.YAlign = draw.YTop
	left = max(c.Min.X, min(left, c.Max.X-widthOf(sty, title)))
	for _, line := range wrapped(title, sty, c.Max.X-left) {
		c.FillText(sty, vg.Point{X: left, Y: c.Max.Y + sty.FontExtents().Descent}, line)
		c.Max.Y -= sty.Height(line) + 1
	}
	c.Max.Y -= 3
	return c
}

// widthOf is the width of a line, with some room for readers whose font is wider than
// the one measured with.
func widthOf(sty text.Style, line string) vg.Length { return 1.18 * sty.Width(line) }

// wrapped breaks text at spaces into lines not wider than width.
func wrapped(txt string, sty text.Style, width vg.Length) []string {
	var lines []string
	line := ""
	for _, word := range strings.Fields(txt) {
		switch {
		case line == "":
			line = word
		case widthOf(sty, line+" "+word) > width:
			lines = append(lines, line)
			line = word
		default:
			line += " " + word
		}
	}
	return append(lines, line)
}

// drawLegend writes the names in rows, each after a sample of its series, and returns
// the rest of the canvas.
func drawLegend(c draw.Canvas, layers []*layer, left vg.Length, col *colors) draw.Canvas {
	sty := textStyle(tickSize, col.text)
	sty.YAlign = draw.YCenter
	row := sty.Height("x") + 2
	x, y, used := left, c.Max.Y-row/2, false
	for _, l := range layers {
		if l.Name == "" || len(l.points) == 0 {
			continue
		}
		width := sampleWidth + sampleGap + widthOf(sty, l.Name)
		if x > left && x+width > c.Max.X {
			x, y = left, y-row
		}
		l.sample(c, vg.Point{X: x, Y: y})
		c.FillText(sty, vg.Point{X: x + sampleWidth + sampleGap, Y: y + sty.FontExtents().Descent}, l.Name)
		x += width + entryGap
		used = true
	}
	if used {
		c.Max.Y = y - row/2 - 4
	}
	return c
}
