package figure

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"html"
	"image"
	"image/color"
	"image/png"
	"io"
	"math"
	"strconv"
	"strings"

	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// fontFamily lists typefaces with the same widths as the one used to measure texts.
const fontFamily = "'Liberation Sans', Arimo, Helvetica, Arial, sans-serif"

// SVG draws the figure for use inside an HTML page: one svg element with a
// viewBox and no size of its own, no background, and no reference to anything
// outside it.
func (f Figure) SVG(theme Theme) string {
	return svgElement(f, "", svgBody(f, theme, false))
}

// SVG is as for a [Figure].
func (p Panels) SVG(theme Theme) string { return svgElement(p, "", svgBody(p, theme, false)) }

func writeSVG(w io.Writer, p picture) error {
	width, height := p.size()
	attributes := fmt.Sprintf(` xmlns="http://www.w3.org/2000/svg" width="%gpt" height="%gpt"`, width, height)
	_, err := io.WriteString(w, svgElement(p, attributes, svgBody(p, Light, true)))
	return err
}

func svgElement(p picture, attributes, body string) string {
	width, height := p.size()
	if alt := p.alt(); alt != "" {
		attributes += fmt.Sprintf(` role="img" aria-label="%s"`, html.EscapeString(alt))
	}
	return fmt.Sprintf("<svg%s viewBox=\"0 0 %g %g\" font-family=\"%s\" fill=\"none\">\n%s</svg>\n",
		attributes, width, height, fontFamily, body)
}

func svgBody(p picture, theme Theme, background bool) string {
	width, height := p.size()
	canvas := &svgCanvas{width: vg.Length(width), height: vg.Length(height)}
	canvas.stack = []svgState{{matrix: identity, color: color.NRGBA{A: 255}}}
	p.draw(draw.New(canvas), theme, background)
	return canvas.out.String()
}

// svgCanvas is a vg.Canvas that writes SVG. gonum has one too, but without alignment of
// text: with a reader's font of other widths, its labels would move away from their
// marks, and exponents onto their base.
type svgCanvas struct {
	width, height vg.Length
	stack         []svgState
	out           bytes.Buffer
}

type svgState struct {
	matrix affine
	color  color.Color
	line   vg.Length
	dashes []vg.Length
}

// affine maps (x, y) to (ax + cy + e, bx + dy + f).
type affine struct{ a, b, c, d, e, f float64 }

var identity = affine{a: 1, d: 1}

// then is the map that applies n first and then m.
func (m affine) then(n affine) affine {
	return affine{
		a: m.a*n.a + m.c*n.b, b: m.b*n.a + m.d*n.b,
		c: m.a*n.c + m.c*n.d, d: m.b*n.c + m.d*n.d,
		e: m.a*n.e + m.c*n.f + m.e, f: m.b*n.e + m.d*n.f + m.f,
	}
}

func (c *svgCanvas) top() *svgState { return &c.stack[len(c.stack)-1] }

// at is a point in SVG's coordinates, whose y axis points down.
func (c *svgCanvas) at(p vg.Point) (x, y float64) {
	m, px, py := c.top().matrix, p.X.Points(), p.Y.Points()
	return m.a*px + m.c*py + m.e, c.height.Points() - (m.b*px + m.d*py + m.f)
}

// Size implements vg.CanvasSizer.
func (c *svgCanvas) Size() (w, h vg.Length) { return c.width, c.height }

// SetLineWidth implements vg.Canvas.
func (c *svgCanvas) SetLineWidth(w vg.Length) { c.top().line = w }

// SetLineDash implements vg.Canvas.
func (c *svgCanvas) SetLineDash(dashes []vg.Length, _ vg.Length) { c.top().dashes = dashes }

// SetColor implements vg.Canvas.
func (c *svgCanvas) SetColor(clr color.Color) {
	if clr == nil {
		clr = color.Black
	}
	c.top().color = clr
}

// Rotate implements vg.Canvas.
func (c *svgCanvas) Rotate(angle float64) {
	sin, cos := math.Sincos(angle)
	c.transform(affine{a: cos, b: sin, c: -sin, d: cos})
}

// Translate implements vg.Canvas.
func (c *svgCanvas) Translate(p vg.Point) {
	c.transform(affine{a: 1, d: 1, e: p.X.Points(), f: p.Y.Points()})
}

// Scale implements vg.Canvas.
func (c *svgCanvas) Scale(x, y float64) { c.transform(affine{a: x, d: y}) }

func (c *svgCanvas) transform(m affine) { c.top().matrix = c.top().matrix.then(m) }

// Push implements vg.Canvas.
func (c *svgCanvas) Push() { c.stack = append(c.stack, *c.top()) }

// Pop implements vg.Canvas.
func (c *svgCanvas) Pop() { c.stack = c.stack[:len(c.stack)-1] }

// Stroke implements vg.Canvas.
func (c *svgCanvas) Stroke(path vg.Path) {
	if c.top().line <= 0 {
		return
	}
	fmt.Fprintf(&c.out, `<path d="%s"%s stroke-width="%s"`,
		c.pathData(path), paint("stroke", c.top().color), decimal(c.top().line.Points()))
	if len(c.top().dashes) > 0 {
		var lengths []string
		for _, d := range c.top().dashes {
			lengths = append(lengths, decimal(d.Points()))
		}
		fmt.Fprintf(&c.out, ` stroke-dasharray="%s"`, strings.Join(lengths, " "))
	}
	c.out.WriteString(" stroke-linejoin=\"round\"/>\n")
}

// Fill implements vg.Canvas.
func (c *svgCanvas) Fill(path vg.Path) {
	fmt.Fprintf(&c.out, "<path d=\"%s\"%s/>\n", c.pathData(path), paint("fill", c.top().color))
}

// paint writes a colour as an attribute, and its opacity where it has one.
func paint(attribute string, clr color.Color) string {
	n := color.NRGBAModel.Convert(clr).(color.NRGBA)
	s := fmt.Sprintf(` %s="#%02x%02x%02x"`, attribute, n.R, n.G, n.B)
	if n.A < 0xff {
		s += fmt.Sprintf(` %s-opacity="%s"`, attribute, decimal(float64(n.A)/0xff))
	}
	return s
}

// decimal keeps two decimals: a hundredth of a point cannot be seen.
func decimal(v float64) string {
	s := strconv.FormatFloat(v, 'f', 2, 64)
	s = strings.TrimRight(strings.TrimRight(s, "0"), ".")
	if s == "-0" {
		return "0"
	}
	return s
}

func (c *svgCanvas) pathData(path vg.Path) string {
	var d strings.Builder
	pair := func(p vg.Point) {
		x, y := c.at(p)
		d.WriteString(decimal(x) + " " + decimal(y))
	}
	for i, comp := range path {
		switch comp.Type {
		case vg.MoveComp:
			d.WriteByte('M')
			pair(comp.Pos)
		case vg.LineComp:
			d.WriteByte('L')
			pair(comp.Pos)
		case vg.ArcComp:
			c.arc(&d, comp, i > 0)
		case vg.CurveComp:
			d.WriteByte("?QC"[len(comp.Control)])
			for _, p := range comp.Control {
				pair(p)
				d.WriteByte(' ')
			}
			pair(comp.Pos)
		case vg.CloseComp:
			d.WriteByte('Z')
		}
	}
	return d.String()
}

// arc writes an arc as two halves, since SVG cannot draw a full circle as one.
// Scaling is taken to be the same in x and y.
func (c *svgCanvas) arc(d *strings.Builder, arc vg.PathComp, connected bool) {
	point := func(angle float64) string {
		sin, cos := math.Sincos(angle)
		x, y := c.at(vg.Point{X: arc.Pos.X + arc.Radius*vg.Length(cos), Y: arc.Pos.Y + arc.Radius*vg.Length(sin)})
		return decimal(x) + " " + decimal(y)
	}
	start := point(arc.Start)
	if !connected {
		d.WriteString("M" + start)
	} else if !strings.HasSuffix(d.String(), start) {
		d.WriteString("L" + start)
	}
	sweep := "0" // counter-clockwise, seen with y up
	if arc.Angle < 0 {
		sweep = "1"
	}
	m := c.top().matrix
	radius := decimal(arc.Radius.Points() * math.Hypot(m.a, m.b))
	for _, part := range []float64{0.5, 1} {
		d.WriteString("A" + radius + " " + radius + " 0 0 " + sweep + " " + point(arc.Start+part*arc.Angle))
	}
}

// FillString implements vg.Canvas.
func (c *svgCanvas) FillString(face font.Face, pt vg.Point, txt string) {
	c.text(txt, pt, text.Style{Font: face.Font, Color: c.top().color})
}

// text writes a line with its exponents and indices. The viewer aligns it.
func (c *svgCanvas) text(line string, pt vg.Point, sty text.Style) {
	x, y := c.at(pt)
	fmt.Fprintf(&c.out, `<text x="%s" y="%s" font-size="%s"%s`,
		decimal(x), decimal(y), decimal(sty.Font.Size.Points()), paint("fill", sty.Color))
	if sty.XAlign == draw.XCenter {
		c.out.WriteString(` text-anchor="middle"`)
	} else if sty.XAlign == draw.XRight {
		c.out.WriteString(` text-anchor="end"`)
	}
	if sty.Font.Weight > 0 {
		c.out.WriteString(` font-weight="bold"`)
	}
	if m := c.top().matrix; m.b != 0 {
		fmt.Fprintf(&c.out, ` transform="rotate(%s %s %s)"`, decimal(-math.Atan2(m.b, m.a)*180/math.Pi), decimal(x), decimal(y))
	}
	c.out.WriteString(">" + spans(line, sty.Font.Size.Points()) + "</text>\n")
}

// spans writes a line with its raised and lowered parts as tspans.
func spans(line string, size float64) string {
	var out strings.Builder
	shift := 0.0
	for _, r := range runs(line) {
		escaped := html.EscapeString(r.text)
		if r.shift == shift && r.size == 1 {
			out.WriteString(escaped)
			continue
		}
		fmt.Fprintf(&out, `<tspan dy="%s" font-size="%s">%s</tspan>`,
			decimal((shift-r.shift)*size), decimal(r.size*size), escaped)
		shift = r.shift
	}
	return out.String()
}

// DrawImage implements vg.Canvas. Pixels stay sharp however large they are shown.
func (c *svgCanvas) DrawImage(rect vg.Rectangle, img image.Image) {
	var buf bytes.Buffer
	if err := png.Encode(&buf, img); err != nil {
		return // an image without pixels
	}
	x, y := c.at(vg.Point{X: rect.Min.X, Y: rect.Max.Y})
	fmt.Fprintf(&c.out, `<image x="%s" y="%s" width="%s" height="%s" preserveAspectRatio="none" style="image-rendering:pixelated" href="data:image/png;base64,%s"/>`+"\n",
		decimal(x), decimal(y), decimal(rect.Size().X.Points()), decimal(rect.Size().Y.Points()),
		base64.StdEncoding.EncodeToString(buf.Bytes()))
}
