package figure

import (
	"io"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// Panels are small multiples: figures of one size side by side. They share axes,
// legend and colours, so that they can be compared, and only the outer ones have
// marks with numbers.
type Panels struct {
	Title string
	Alt   string // as in Figure

	// X and Y are the axes of all panels; those of the figures are not used.
	X, Y Axis

	// OwnAxes gives each panel the axes, the legend and the colours of its figure
	// instead, for figures that show different things.
	OwnAxes bool

	Rows [][]Figure // rows can have different lengths; a panel's title is above it

	Width, Height float64 // in points, by default 140 each way for every panel, and what is around them
}

// Write is as for a [Figure].
func (p Panels) Write(w io.Writer, format string) error { return write(w, format, p) }

func (p Panels) columns() int {
	n := 1
	for _, row := range p.Rows {
		n = max(n, len(row))
	}
	return n
}

func (p Panels) size() (width, height float64) {
	width, height = p.Width, p.Height
	each := [2]float64{140, 140}
	if p.OwnAxes {
		each = [2]float64{270, 200}
	}
	if !(width > 0) {
		width = 90 + each[0]*float64(p.columns())
	}
	if !(height > 0) {
		height = 70 + each[1]*float64(len(p.Rows))
	}
	return width, height
}

func (p Panels) alt() string {
	if p.Alt != "" {
		return p.Alt
	}
	return p.Title
}

func (p Panels) draw(c draw.Canvas, theme Theme, background bool) {
	col := theme.colors()
	if background {
		c.SetColor(col.back)
		c.Fill(c.Rectangle.Path())
	}
	if len(p.Rows) == 0 {
		return
	}
	c = draw.Crop(c, 3, -6, 3, -4)
	if p.OwnAxes {
		p.drawOwn(c, theme, col)
		return
	}
	s := p.shared()
	left := p.leftMargin(s, col)
	c.Max.Y = drawTitle(c, p.Title, c.Min.X+left, col).Max.Y
	c.Max.Y = drawLegend(c, p.legend(col), c.Min.X+left, col).Max.Y
	inner := c
	inner.Min.X += left
	inner.Min.Y += bottomMargin
	if s.heat != nil {
		inner.Max.X -= s.heat.barSpace(c.Size().Y)
	}
	p.drawCells(inner, s, col)
	if s.heat != nil {
		s.heat.drawBar(c, draw.Canvas{Canvas: c.Canvas, Rectangle: vg.Rectangle{
			Min: inner.Min, Max: vg.Point{X: inner.Max.X, Y: inner.Max.Y - panelTitle},
		}}, col)
	}
	Figure{X: p.X, Y: p.Y}.drawLabels(c, inner, col)
}

// drawOwn draws whole figures side by side.
func (p Panels) drawOwn(c draw.Canvas, theme Theme, col *colors) {
	c.Max.Y = drawTitle(c, p.Title, c.Min.X, col).Max.Y
	p.eachCell(c, 8, func(cell draw.Canvas, row, column int) {
		p.Rows[row][column].draw(cell, theme, false)
	})
}

// eachCell divides the canvas into cells, and calls do for each.
func (p Panels) eachCell(c draw.Canvas, gap vg.Length, do func(cell draw.Canvas, row, column int)) {
	width := (c.Size().X + gap) / vg.Length(p.columns())
	height := (c.Size().Y + gap) / vg.Length(len(p.Rows))
	for r, row := range p.Rows {
		for k := range row {
			corner := vg.Point{X: c.Min.X + width*vg.Length(k), Y: c.Max.Y - height*vg.Length(r+1) + gap}
			do(draw.Canvas{Canvas: c.Canvas, Rectangle: vg.Rectangle{
				Min: corner, Max: vg.Point{X: corner.X + width - gap, Y: corner.Y + height - gap},
			}}, r, k)
		}
	}
}

// common holds what the panels share.
type common struct {
	x, y Axis
	heat *Heat // of the colour bar
}

// shared finds the ranges that hold all panels' data.
func (p Panels) shared() common {
	s := common{x: p.X, y: p.Y}
	var x, y, z extent
	zero := false
	for _, row := range p.Rows {
		for _, f := range row {
			f.X, f.Y = p.X, p.Y
			for _, l := range f.layers(&light) {
				l.extend(&x, &y)
				zero = zero || l.Style == Bars || l.Style == Stems
			}
			if f.Heat == nil {
				continue
			}
			if s.heat == nil {
				h := *f.Heat
				s.heat = &h
				s.x, s.y = h.frame(p.X, h.X), h.frame(p.Y, h.Y)
			}
			lo, hi := f.Heat.scale()
			z.add(lo)
			z.add(hi)
		}
	}
	if s.heat != nil {
		s.heat.Min, s.heat.Max = z.min, z.max
	}
	s.x.Min, s.x.Max = s.x.span(x, false)
	s.y.Min, s.y.Max = s.y.span(y, zero)
	return s
}

// legend is one layer for each name that occurs in the panels.
func (p Panels) legend(col *colors) []*layer {
	var out []*layer
	seen := make(map[string]bool)
	for _, row := range p.Rows {
		for _, f := range row {
			f.X, f.Y = p.X, p.Y
			for _, l := range f.layers(col) {
				if !seen[l.Name] {
					seen[l.Name] = true
					out = append(out, l)
				}
			}
		}
	}
	return out
}

const (
	panelGap     = 9
	panelTitle   = 15
	bottomMargin = 34 // marks and the label of the x axis
)

// panelPlot is an empty plot with the shared axes.
func (p Panels) panelPlot(s common, width, height vg.Length, col *colors) *plot.Plot {
	pl := plot.New()
	pl.BackgroundColor = nil
	s.x.apply(&pl.X, extent{}, false, max(2, int(width/30)), col)
	s.y.apply(&pl.Y, extent{}, false, max(2, int(height/28)), col)
	return pl
}

// leftMargin holds the marks and the label of the y axis.
func (p Panels) leftMargin(s common, col *colors) vg.Length {
	_, height := p.size()
	pl := p.panelPlot(s, 100, vg.Length(height)/vg.Length(len(p.Rows))-40, col)
	sty, widest := textStyle(tickSize, col.text), vg.Length(0)
	for _, t := range pl.Y.Tick.Marker.Ticks(pl.Y.Min, pl.Y.Max) {
		widest = max(widest, widthOf(sty, t.Label))
	}
	return widest + tickMark + 6 + textStyle(labelSize, col.text).Height("x")
}

func (p Panels) drawCells(c draw.Canvas, s common, col *colors) {
	p.eachCell(c, panelGap, func(cell draw.Canvas, row, column int) {
		f := p.Rows[row][column]
		f.X, f.Y = s.x, s.y
		if f.Heat != nil {
			h := *f.Heat
			h.Min, h.Max = s.heat.Min, s.heat.Max
			f.Heat = &h
		}
		p.drawPanelTitle(cell, f.Title, col)
		cell.Max.Y -= panelTitle
		pl := p.panelPlot(s, cell.Size().X, cell.Size().Y, col)
		layers := f.layers(col)
		if f.Heat == nil {
			grid{col.grid}.Plot(cell, pl)
		}
		for _, plotter := range f.plotters(layers, col) {
			plotter.Plot(cell, pl)
		}
		below := row+1 < len(p.Rows) && column < len(p.Rows[row+1])
		drawFrame(cell, pl, frameMarks{below: !below, beside: column == 0, last: column+1 == len(p.Rows[row])}, col)
	})
}

func (p Panels) drawPanelTitle(cell draw.Canvas, title string, col *colors) {
	sty := textStyle(tickSize, col.text)
	sty.XAlign = draw.XCenter
	cell.FillText(sty, vg.Point{X: cell.Center().X, Y: cell.Max.Y - panelTitle + 4}, title)
}

// frameMarks says where a panel has numbers: below and beside it, and whether
// they may run out to its right.
type frameMarks struct{ below, beside, last bool }

// drawFrame draws the axes around data, with numbers where asked.
func drawFrame(c draw.Canvas, p *plot.Plot, marks frameMarks, col *colors) {
	line := draw.LineStyle{Color: col.axis, Width: axisWidth}
	c.SetLineStyle(line)
	c.Stroke(c.Rectangle.Path())
	sty := textStyle(tickSize, col.text)
	for _, t := range p.X.Tick.Marker.Ticks(p.X.Min, p.X.Max) {
		x := c.X(p.X.Norm(t.Value))
		if !c.ContainsX(x) {
			continue
		}
		c.StrokeLine2(line, x, c.Min.Y, x, c.Min.Y-markLength(t))
		if half := sty.Width(t.Label) / 2; marks.below && (marks.last || x+half <= c.Max.X+2) {
			sty.XAlign, sty.YAlign = draw.XCenter, draw.YTop
			c.FillText(sty, vg.Point{X: x, Y: c.Min.Y - tickMark - 1}, t.Label)
		}
	}
	for _, t := range p.Y.Tick.Marker.Ticks(p.Y.Min, p.Y.Max) {
		y := c.Y(p.Y.Norm(t.Value))
		if !c.ContainsY(y) {
			continue
		}
		c.StrokeLine2(line, c.Min.X, y, c.Min.X-markLength(t), y)
		if marks.beside {
			sty.XAlign, sty.YAlign = draw.XRight, draw.YCenter
			c.FillText(sty, vg.Point{X: c.Min.X - tickMark - 3, Y: y + sty.FontExtents().Descent}, t.Label)
		}
	}
}

func markLength(t plot.Tick) vg.Length {
	if t.IsMinor() {
		return tickMark / 2
	}
	return tickMark
}
