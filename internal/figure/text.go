package figure

import (
	"image/color"
	"math"
	"strings"
	"unicode/utf8"

	stdfont "golang.org/x/image/font"
	"golang.org/x/image/font/sfnt"
	"golang.org/x/image/math/fixed"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/font/liberation"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// Liberation Sans has the same widths as Arial and Helvetica. An SVG names fonts instead
// of embedding them, so its texts mostly have the widths measured here.
var (
	sans    = font.Font{Typeface: "Liberation", Variant: "Sans"}
	handler = markup{text.Plain{Fonts: font.NewCache(liberation.Collection())}}
)

// markup lays out text with ^{…} raised and _{…} lowered.
type markup struct{ text.Plain }

const (
	scriptSize = 0.72 // of the text's size
	raise      = 0.36
	lower      = -0.18
)

// run is a piece of a line set in one size.
type run struct {
	text  string
	shift float64 // of the baseline, as a fraction of the text's size
	size  float64 // as a fraction of the text's size
}

// runs divides a line into its runs. Braces that are not closed stay as they are.
func runs(line string) []run {
	var out []run
	for line != "" {
		i := nextScript(line)
		if i < 0 {
			return append(out, run{line, 0, 1})
		}
		if i > 0 {
			out = append(out, run{line[:i], 0, 1})
		}
		end := i + strings.IndexByte(line[i:], '}')
		shift := raise
		if line[i] == '_' {
			shift = lower
		}
		out = append(out, run{line[i+2 : end], shift, scriptSize})
		line = line[end+1:]
	}
	return out
}

func nextScript(line string) int {
	for i := 0; i+1 < len(line); i++ {
		if (line[i] == '^' || line[i] == '_') && line[i+1] == '{' && strings.IndexByte(line[i:], '}') > 0 {
			return i
		}
	}
	return -1
}

// Box implements text.Handler.
func (m markup) Box(line string, fnt font.Font) (width, height, depth vg.Length) {
	_, height, depth = m.Plain.Box("", fnt)
	for _, r := range runs(line) {
		w, _, _ := m.Plain.Box(r.text, font.From(fnt, fnt.Size*vg.Length(r.size)))
		width += w
	}
	return width, height, depth
}

// Draw implements text.Handler, with the geometry of text.Plain for one line.
func (m markup) Draw(c vg.Canvas, line string, sty text.Style, pt vg.Point) {
	if line == "" {
		return
	}
	c = unwrapped(c)
	c.SetColor(sty.Color)
	if sty.Rotation != 0 {
		c.Push()
		defer c.Pop()
		c.Rotate(sty.Rotation)
	}
	sin, cos := math.Sincos(sty.Rotation)
	x := pt.Y*vg.Length(sin) + pt.X*vg.Length(cos)
	y := pt.Y*vg.Length(cos) - pt.X*vg.Length(sin)
	y += sty.Height(line)*vg.Length(sty.YAlign) - sty.FontExtents().Ascent + sty.Font.Size
	if svg, ok := c.(*svgCanvas); ok {
		svg.text(line, vg.Point{X: x, Y: y}, sty)
		return
	}
	x += vg.Length(sty.XAlign) * sty.Width(line)
	for _, r := range runs(line) {
		face := m.Fonts.Lookup(sty.Font, sty.Font.Size*vg.Length(r.size))
		c.FillString(face, vg.Point{X: x, Y: y + sty.Font.Size*vg.Length(r.shift)}, r.text)
		x += face.Width(r.text)
	}
}

// unwrapped is the canvas itself, without the draw.Canvas values that crop it.
func unwrapped(c vg.Canvas) vg.Canvas {
	for {
		switch cropped := c.(type) {
		case *draw.Canvas:
			c = cropped.Canvas
		case draw.Canvas:
			c = cropped.Canvas
		default:
			return c
		}
	}
}

// pdfCanvas corrects three faults of gonum's PDF canvas: its text is limited to the
// code page 1252, which has no Greek and no minus sign; it fails on bold text; and it
// darkens translucent colours.
type pdfCanvas struct {
	vg.CanvasSizer
}

// FillString draws text that is bold or not ASCII as outlines, which are vectors, too.
func (c pdfCanvas) FillString(face font.Face, pt vg.Point, txt string) {
	if len(txt) == utf8.RuneCountInString(txt) && face.Font.Weight == stdfont.WeightNormal {
		c.CanvasSizer.FillString(face, pt, txt)
		return
	}
	c.Fill(outline(face, pt, txt))
}

// SetColor passes on a colour whose channels are not multiplied by its alpha.
func (c pdfCanvas) SetColor(clr color.Color) {
	if clr == nil {
		clr = color.Black
	}
	c.CanvasSizer.SetColor(straight(color.NRGBAModel.Convert(clr).(color.NRGBA)))
}

type straight color.NRGBA

func (s straight) RGBA() (r, g, b, a uint32) {
	return uint32(s.R) * 0x101, uint32(s.G) * 0x101, uint32(s.B) * 0x101, uint32(s.A) * 0x101
}

// outline is the path of a line of text that starts at pt.
func outline(face font.Face, pt vg.Point, txt string) vg.Path {
	var (
		buf   sfnt.Buffer
		path  vg.Path
		em    = fixed.Int26_6(face.Face.UnitsPerEm())
		scale = face.Font.Size / vg.Length(em)
	)
	for _, r := range txt {
		glyph, err := face.Face.GlyphIndex(&buf, r)
		if err != nil {
			continue
		}
		segments, err := face.Face.LoadGlyph(&buf, glyph, em, nil)
		if err == nil {
			path = append(path, glyphPath(segments, pt, scale)...)
		}
		pt.X += face.Width(string(r))
	}
	return path
}

// glyphPath turns a glyph, whose y axis points down, into a path.
func glyphPath(segments sfnt.Segments, origin vg.Point, scale vg.Length) vg.Path {
	at := func(p fixed.Point26_6) vg.Point {
		return vg.Point{X: origin.X + vg.Length(p.X)*scale, Y: origin.Y - vg.Length(p.Y)*scale}
	}
	var path vg.Path
	for i, s := range segments {
		switch s.Op {
		case sfnt.SegmentOpMoveTo:
			if i > 0 {
				path.Close()
			}
			path.Move(at(s.Args[0]))
		case sfnt.SegmentOpLineTo:
			path.Line(at(s.Args[0]))
		case sfnt.SegmentOpQuadTo:
			path.QuadTo(at(s.Args[0]), at(s.Args[1]))
		case sfnt.SegmentOpCubeTo:
			path.CubeTo(at(s.Args[0]), at(s.Args[1]), at(s.Args[2]))
		}
	}
	if len(segments) > 0 {
		path.Close()
	}
	return path
}
