package figure

import (
	"image/color"
	"math"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// point is one value of a series that can be drawn. lo and hi are NaN where
// there is no error bar.
type point struct{ x, y, lo, hi float64 }

// layer is a series made ready for drawing.
type layer struct {
	Series
	points     []point
	logX, logY bool
	color      color.NRGBA
}

const (
	huge       = 1e300 // larger values could overflow the arithmetic of an axis
	maxLine    = 1000  // points of a line; more could not be distinguished on a screen
	bandShade  = 0.22
	errorShade = 0.55
)

func (f Figure) layers(col *colors) []*layer {
	layers := make([]*layer, len(f.Series))
	chosen := 0
	for i, s := range f.Series {
		l := &layer{Series: s, logX: f.X.Log, logY: f.Y.Log}
		l.color = faded(col.of(s.Color, chosen), s.Opacity)
		if s.Color == Auto {
			chosen++
		}
		l.points = s.drawable(f.X.Log, f.Y.Log)
		if s.Style == Line && len(l.points) > maxLine {
			l.points = thinned(l.points, maxLine/2)
		}
		layers[i] = l
	}
	return layers
}

// drawable drops what cannot be drawn on the given axes.
func (s Series) drawable(logX, logY bool) []point {
	n := len(s.Y)
	if s.X != nil {
		n = min(n, len(s.X))
	}
	points := make([]point, 0, n)
	for i := range n {
		p := point{x: float64(i), y: s.Y[i], lo: math.NaN(), hi: math.NaN()}
		if s.X != nil {
			p.x = s.X[i]
		}
		if !fits(p.x, logX) || !fits(p.y, logY) {
			continue
		}
		// A bar may go below a log axis: it then starts at its lower end.
		if i < len(s.Lo) && i < len(s.Hi) && fits(s.Lo[i], false) && fits(s.Hi[i], logY) {
			p.lo, p.hi = s.Lo[i], s.Hi[i]
		}
		points = append(points, p)
	}
	return points
}

func fits(v float64, log bool) bool {
	return math.Abs(v) <= huge && (!log || v >= 1/huge) // false for NaN
}

// thinned keeps the lowest and the highest point of each of n groups of neighbours, so
// that no peak of a long line disappears.
func thinned(points []point, n int) []point {
	out := make([]point, 0, 2*n)
	for g := range n {
		group := points[g*len(points)/n : (g+1)*len(points)/n]
		low, high := 0, 0
		for i, p := range group {
			if p.y < group[low].y {
				low = i
			}
			if p.y > group[high].y {
				high = i
			}
		}
		out = append(out, group[min(low, high)])
		if low != high {
			out = append(out, group[max(low, high)])
		}
	}
	return out
}

// extend widens the ranges of the axes to hold the layer.
func (l *layer) extend(x, y *extent) {
	half := 0.0
	if l.Style == Bars {
		half = l.barWidth() / 2
	}
	for _, p := range l.points {
		if lo := p.x - half; !l.logX || lo > 0 {
			x.add(lo)
		}
		x.add(p.x + half)
		y.add(p.y)
		if !math.IsNaN(p.lo) {
			y.add(p.hi)
			if !l.logY || p.lo > 0 {
				y.add(p.lo)
			}
		}
	}
}

// barWidth is the smallest step between neighbours, 1 for a single bar.
func (l *layer) barWidth() float64 {
	width := math.Inf(1)
	for i := 1; i < len(l.points); i++ {
		if step := math.Abs(l.points[i].x - l.points[i-1].x); step > 0 {
			width = math.Min(width, step)
		}
	}
	if math.IsInf(width, 1) {
		return 1
	}
	return width
}

// Plot implements plot.Plotter.
func (l *layer) Plot(c draw.Canvas, p *plot.Plot) {
	if len(l.points) == 0 {
		return
	}
	at := place{c, p}
	switch l.Style {
	case Line:
		l.band(at)
		l.line(at)
	case Bars:
		l.bars(at)
		l.errorBars(at)
	case Stems:
		l.stems(at)
		l.errorBars(at)
		l.dots(at)
	default:
		l.errorBars(at)
		l.dots(at)
	}
}

// place maps data to the canvas.
type place struct {
	c draw.Canvas
	p *plot.Plot
}

func (at place) x(v float64) vg.Length { return at.c.X(at.p.X.Norm(v)) }
func (at place) y(v float64) vg.Length { return at.c.Y(at.p.Y.Norm(v)) }

func (at place) point(x, y float64) vg.Point { return vg.Point{X: at.x(x), Y: at.y(y)} }

// inside is y on the canvas, moved to the nearest end of the axis when outside.
func (at place) inside(y float64) vg.Length {
	return min(max(at.y(y), at.c.Min.Y), at.c.Max.Y)
}

// base is where bars and stems stand: at zero, or at the end of an axis without zero.
func (at place) base() vg.Length { return at.inside(0) }

func (l *layer) lineStyle() draw.LineStyle {
	style := draw.LineStyle{Color: l.color, Width: 1.5}
	if l.Size > 0 {
		style.Width = vg.Length(l.Size)
	}
	if l.Dashed {
		style.Dashes = []vg.Length{4, 3}
	}
	return style
}

func (l *layer) line(at place) {
	path := make([]vg.Point, len(l.points))
	for i, p := range l.points {
		path[i] = at.point(p.x, p.y)
	}
	if len(path) == 1 { // a line with one point would be invisible
		l.dots(at)
		return
	}
	at.c.StrokeLines(l.lineStyle(), at.c.ClipLinesXY(path)...)
}

func (l *layer) band(at place) {
	var edge, back []vg.Point
	for _, p := range l.points {
		if math.IsNaN(p.lo) {
			continue
		}
		edge = append(edge, vg.Point{X: at.x(p.x), Y: at.inside(p.hi)})
		back = append(back, vg.Point{X: at.x(p.x), Y: at.inside(p.lo)})
	}
	for i := len(back) - 1; i >= 0; i-- {
		edge = append(edge, back[i])
	}
	if len(edge) > 2 {
		at.c.FillPolygon(faded(l.color, bandShade), at.c.ClipPolygonXY(edge))
	}
}

// errorBars draws all bars of a layer in one stroke, which keeps SVG small.
func (l *layer) errorBars(at place) {
	var path vg.Path
	for _, p := range l.points {
		x := at.x(p.x)
		if math.IsNaN(p.lo) || !at.c.ContainsX(x) {
			continue
		}
		path.Move(vg.Point{X: x, Y: at.inside(p.lo)})
		path.Line(vg.Point{X: x, Y: at.inside(p.hi)})
	}
	if len(path) > 0 {
		at.c.SetLineStyle(draw.LineStyle{Color: faded(l.color, errorShade), Width: 1})
		at.c.Stroke(path)
	}
}

func (l *layer) stems(at place) {
	var path vg.Path
	base := at.base()
	for _, p := range l.points {
		x := at.x(p.x)
		if !at.c.ContainsX(x) {
			continue
		}
		path.Move(vg.Point{X: x, Y: base})
		path.Line(vg.Point{X: x, Y: at.inside(p.y)})
	}
	style := draw.LineStyle{Color: l.color, Width: 1}
	if l.Size > 0 {
		style.Width = vg.Length(l.Size)
	}
	at.c.SetLineStyle(style)
	at.c.Stroke(path)
}

func (l *layer) dots(at place) {
	var path vg.Path
	radius := l.radius()
	for _, p := range l.points {
		if pt := at.point(p.x, p.y); at.c.Contains(pt) {
			path = append(path, circle(pt, radius)...)
		}
	}
	l.paint(at.c, path)
}

// paint fills dots and outlines rings.
func (l *layer) paint(c draw.Canvas, path vg.Path) {
	if len(path) == 0 {
		return
	}
	if l.Style == Rings {
		c.SetLineStyle(draw.LineStyle{Color: l.color, Width: 1})
		c.Stroke(path)
		return
	}
	c.SetColor(l.color)
	c.Fill(path)
}

// radius is that of a dot, smaller where there are many.
func (l *layer) radius() vg.Length {
	n := len(l.points)
	switch {
	case l.Style == Stems:
		return vg.Length(math.Min(1.8, math.Max(0.9, 150/float64(n))))
	case l.Size > 0:
		return vg.Length(l.Size / 2)
	case n > 600:
		return 1.1
	case n > 150:
		return 1.6
	default:
		return 2.2
	}
}

func circle(center vg.Point, radius vg.Length) vg.Path {
	var path vg.Path
	path.Move(vg.Point{X: center.X + radius, Y: center.Y})
	path.Arc(center, radius, 0, 2*math.Pi)
	path.Close()
	return path
}

func (l *layer) bars(at place) {
	var path vg.Path
	half, base := l.barWidth()/2, at.base()
	for _, p := range l.points {
		lo, hi := max(at.x(p.x-half), at.c.Min.X), min(at.x(p.x+half), at.c.Max.X)
		if hi > lo {
			path = append(path, bar(lo, hi, base, at.inside(p.y))...)
		}
	}
	at.c.SetColor(l.color)
	at.c.Fill(path)
}

// bar is the outline of a bar. It leaves a narrow gap to its neighbours if it is wide
// enough for that.
func bar(lo, hi, base, top vg.Length) vg.Path {
	if hi-lo > 3 {
		lo, hi = lo+0.3, hi-0.3
	}
	return vg.Rectangle{Min: vg.Point{X: lo, Y: base}, Max: vg.Point{X: hi, Y: top}}.Path()
}

// sample draws the layer's symbol in the legend, from pt to the right.
func (l *layer) sample(c draw.Canvas, pt vg.Point) {
	middle := vg.Point{X: pt.X + sampleWidth/2, Y: pt.Y}
	switch l.Style {
	case Line:
		if l.Lo != nil {
			c.SetColor(faded(l.color, bandShade))
			c.Fill(bar(pt.X, pt.X+sampleWidth, pt.Y-4, pt.Y+4))
		}
		c.StrokeLine2(l.lineStyle(), pt.X, pt.Y, pt.X+sampleWidth, pt.Y)
	case Bars:
		c.SetColor(l.color)
		c.Fill(bar(pt.X+3, pt.X+sampleWidth-3, pt.Y-4, pt.Y+4))
	case Stems:
		c.StrokeLine2(draw.LineStyle{Color: l.color, Width: 1}, middle.X, pt.Y-4.5, middle.X, pt.Y+2.5)
		l.paint(c, circle(vg.Point{X: middle.X, Y: pt.Y + 2.5}, 1.8))
	default:
		if l.Lo != nil {
			style := draw.LineStyle{Color: faded(l.color, errorShade), Width: 1}
			c.StrokeLine2(style, middle.X, pt.Y-4.5, middle.X, pt.Y+4.5)
		}
		l.paint(c, circle(middle, max(l.radius(), 1.8)))
	}
}
