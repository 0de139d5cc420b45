package figure

import (
	"io"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"
	"gonum.org/v1/plot/vg/vgpdf"
)

func (f Figure) writePNG(w io.Writer) error {
	width, height := f.size()
	canvas := vgimg.NewWith(vgimg.UseWH(vg.Length(width), vg.Length(height)), vgimg.UseDPI(pngDPI))
	f.draw(draw.New(canvas), Light, true)
	_, err := vgimg.PngCanvas{Canvas: canvas}.WriteTo(w)
	return err
}

func (f Figure) writePDF(w io.Writer) error {
	width, height := f.size()
	canvas := vgpdf.New(vg.Length(width), vg.Length(height))
	f.draw(draw.New(pdfCanvas{canvas}), Light, true)
	_, err := canvas.WriteTo(w)
	return err
}
