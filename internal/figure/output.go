package figure

import (
	"fmt"
	"io"
	"strings"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"
	"gonum.org/v1/plot/vg/vgpdf"
)

// picture is anything that can be written: a Figure, or Panels.
type picture interface {
	size() (width, height float64)
	alt() string
	draw(c draw.Canvas, theme Theme, background bool)
}

// write draws a picture in the light theme on white.
func write(w io.Writer, format string, p picture) error {
	switch strings.ToLower(strings.TrimPrefix(format, ".")) {
	case "svg":
		return writeSVG(w, p)
	case "png":
		return writePNG(w, p)
	case "pdf":
		return writePDF(w, p)
	default:
		return fmt.Errorf("figures are written as %s, not %q", strings.Join(Formats, ", "), format)
	}
}

func writePNG(w io.Writer, p picture) error {
	width, height := p.size()
	canvas := vgimg.NewWith(vgimg.UseWH(vg.Length(width), vg.Length(height)), vgimg.UseDPI(pngDPI))
	p.draw(draw.New(canvas), Light, true)
	_, err := vgimg.PngCanvas{Canvas: canvas}.WriteTo(w)
	return err
}

func writePDF(w io.Writer, p picture) error {
	width, height := p.size()
	canvas := vgpdf.New(vg.Length(width), vg.Length(height))
	p.draw(draw.New(pdfCanvas{canvas}), Light, true)
	_, err := canvas.WriteTo(w)
	return err
}
