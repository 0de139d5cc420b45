package sweep

import (
	"image/png"
	"io"
	"path/filepath"
	"strings"

	"github.com/calamp/calamp/experiments/imager"
	"github.com/calamp/calamp/internal/command/console"
	"github.com/calamp/calamp/internal/command/option"
)

// imagerName is the figure that is no sweep: it has readings of its own.
const imagerName = "imager"

// drawImager runs the experiment on real readings, and draws it.
func (f *drawFigure) drawImager() error {
	if len(f.out) == 0 {
		f.out = []string{imagerName + ".svg"}
	}
	scene := strings.TrimSuffix(f.out[0], filepath.Ext(f.out[0])) + "-scene.png"
	if err := f.checkOutputs(); err != nil {
		return err
	}
	ctx, stop := console.Interruptible()
	defer stop()
	bar := f.Progress()
	result, err := imager.Run(ctx, f.quick, bar.Show)
	bar.Done()
	if ctx.Err() != nil {
		return console.Interruption(ctx, nil, "nothing to draw yet")
	}
	if err != nil {
		return err
	}
	for _, note := range result.Notes() {
		if err := f.Print(note + "\n"); err != nil {
			return err
		}
	}
	for _, path := range f.out {
		if err := f.Write(path, func(w io.Writer) error { return result.Picture().Write(w, option.PlotFormat(path)) }); err != nil {
			return err
		}
		f.Note("written %s", path)
	}
	if err := f.Write(scene, func(w io.Writer) error { return png.Encode(w, result.Scene) }); err != nil {
		return err
	}
	f.Note("written %s", scene)
	return nil
}
