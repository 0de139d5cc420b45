// Pictures draws the figures of the guides beside it, from the arrays that their code saves:
//
//	go run ./docs/guides/pictures camera camera-pictures.npz
//	go run ./docs/guides/pictures array array-pictures.npz
//	go run ./docs/guides/pictures stream stream-pictures.npz
//	go run ./docs/guides/pictures imager imager-pictures.npz
//	go run ./docs/guides/pictures radar radar-pictures.npz
package main

import (
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"

	"gonum.org/v1/gonum/floats"

	"github.com/calamp/calamp/internal/dataset"
	"github.com/calamp/calamp/internal/figure"
)

const folder = "docs/guides"

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "pictures:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	guides := map[string]func(arrays) error{"camera": camera, "array": array, "stream": stream, "imager": imager, "radar": radar}
	if len(args) != 2 || guides[args[0]] == nil {
		return fmt.Errorf("expected camera, array, stream, imager or radar, and the .npz that the guide saves")
	}
	return guides[args[0]](arrays{file: args[1]})
}

// arrays are those of a file.
type arrays struct{ file string }

func (a arrays) read(names ...string) (map[string]*dataset.Array, error) {
	all := map[string]*dataset.Array{}
	for _, name := range names {
		v, err := dataset.LoadArray(a.file, name)
		if err != nil {
			return nil, err
		}
		all[name] = v
	}
	return all, nil
}

// camera draws scenes, and the gains.
func camera(file arrays) error {
	const shown = 4
	a, err := file.read("truth", "found", "ignored", "gain", "gain_found", "gain_lo", "gain_hi")
	if err != nil {
		return err
	}
	pixels, scenes := a["truth"].Shape[0], a["truth"].Shape[1]
	side := int(math.Sqrt(float64(pixels)))
	most := slices.Max(a["truth"].Data)
	p := figure.Panels{Alt: "scenes", Width: 560, Height: 420}
	for _, row := range []struct{ name, title string }{{"truth", "true"}, {"found", "recovered"}, {"ignored", "gains ignored"}} {
		var panels []figure.Figure
		for k := range shown {
			values := make([]float64, pixels)
			for i := range values {
				values[i] = a[row.name].Data[i*scenes+k]
			}
			panels = append(panels, figure.Figure{Title: row.title, Heat: picture(values, side, float64(side-1), most, "light")})
		}
		p.Rows = append(p.Rows, panels)
	}
	if err := save("camera-scenes.png", p.Write); err != nil {
		return err
	}
	truth, found := a["gain"].Data, a["gain_found"].Data
	f := figure.Figure{
		Alt: "Gains found against the true ones", X: figure.Axis{Label: "true gain"}, Y: figure.Axis{Label: "gain found"},
		Series: []figure.Series{
			{X: []float64{0.6, 1.6}, Y: []float64{0.6, 1.6}, Color: figure.Neutral, Dashed: true},
			{Name: "160 masks, 95 % intervals", X: truth, Y: found, Lo: a["gain_lo"].Data, Hi: a["gain_hi"].Data, Style: figure.Points, Color: figure.Blue, Size: 3},
		},
	}
	return save("camera-gains.svg", f.Write)
}

// array draws maps of one snapshot, and the gains.
func array(file arrays) error {
	a, err := file.read("side", "truth", "raw", "beam", "found", "gain", "gain_found")
	if err != nil {
		return err
	}
	const width = 1.2 // metres between the first and the last point
	side := int(a["side"].Data[0])
	metres := figure.Axis{Label: "metres"}
	p := figure.Panels{Alt: "maps", X: metres, Y: metres, Width: 660, Height: 230}
	var row []figure.Figure
	for _, m := range []struct{ name, title string }{{"truth", "sources"}, {"raw", "beamformer"}, {"beam", "corrected"}, {"found", "calamp"}} {
		values, most := slices.Clone(a[m.name].Data), slices.Max(a[m.name].Data)
		for i := range values {
			values[i] /= most
		}
		row = append(row, figure.Figure{Title: m.title, Heat: picture(values, side, width, 1, "relative to the largest")})
	}
	p.Rows = append(p.Rows, row)
	if err := save("array-maps.png", p.Write); err != nil {
		return err
	}
	count := a["gain"].Shape[1]
	plane := func(name string) (re, im []float64) { return a[name].Data[:count], a[name].Data[count:] }
	re, im := plane("gain")
	gotRe, gotIm := plane("gain_found")
	f := figure.Figure{
		Alt: "Gains in the complex plane", X: figure.Axis{Label: "real part", Min: -1.6, Max: 1.6}, Y: figure.Axis{Label: "imaginary part", Min: -1.6, Max: 1.6}, Width: 320, Height: 320,
		Series: []figure.Series{
			{Name: "true", X: re, Y: im, Style: figure.Rings, Color: figure.Neutral, Size: 8},
			{Name: "found", X: gotRe, Y: gotIm, Style: figure.Points, Color: figure.Blue, Size: 3},
		},
	}
	return save("array-gains.svg", f.Write)
}

// stream draws a spectrum with gains ignored, and as found, each at the scale that fits the truth best.
func stream(file arrays) error {
	a, err := file.read("truth", "ignored", "found")
	if err != nil {
		return err
	}
	truth := a["truth"].Data
	lines := slices.Clone(truth) // without the channels that have none, which are not drawn
	for i, x := range lines {
		if x == 0 {
			lines[i] = math.NaN()
		}
	}
	p := figure.Panels{Alt: "a spectrum", X: figure.Axis{Label: "channel"}, Y: figure.Axis{Label: "light"}, Width: 660, Height: 230}
	var row []figure.Figure
	for _, m := range []struct{ name, title string }{{"ignored", "gains ignored"}, {"found", "calamp"}} {
		found := slices.Clone(a[m.name].Data)
		floats.Scale(floats.Dot(found, truth)/floats.Dot(found, found), found)
		row = append(row, figure.Figure{Title: m.title, Series: []figure.Series{
			{Name: "true", Y: lines, Style: figure.Rings, Color: figure.Neutral, Size: 6},
			{Name: "found", Y: found, Style: figure.Stems, Color: figure.Blue, Size: 2.5},
		}})
	}
	p.Rows = append(p.Rows, row)
	return save("stream-spectrum.svg", p.Write)
}

// imager draws a scene of blocks with gains ignored, and as found. Pixels of a block go column by column, and blocks from the bottom up.
func imager(file arrays) error {
	a, err := file.read("place", "ignored", "found")
	if err != nil {
		return err
	}
	blocks := a["place"].Shape[1]
	across, up := ranks(a["place"].Data[:blocks]), ranks(a["place"].Data[blocks:])
	side := int(math.Sqrt(float64(a["found"].Shape[0])))
	width, height := side*(slices.Max(across)+1), side*(slices.Max(up)+1)
	bright := slices.Sorted(slices.Values(a["found"].Data))
	lo, hi := bright[len(bright)/200], bright[len(bright)-1-len(bright)/200]
	var tiles []tile
	for _, name := range []string{"ignored", "found"} {
		t := tile{width: width, grey: make([]float64, width*height)}
		for i := range side * side {
			for k := range blocks {
				x, y := side*across[k]+i/side, height-side*(up[k]+1)+i%side
				t.grey[y*width+x] = (a[name].Data[i*blocks+k] - lo) / (hi - lo)
			}
		}
		tiles = append(tiles, t)
	}
	return saveGrey("imager-parrot.png", tiles, 2)
}

// ranks of values among the different ones.
func ranks(values []float64) (list []int) {
	different := slices.Compact(slices.Sorted(slices.Values(values)))
	for _, v := range values {
		list = append(list, slices.Index(different, v))
	}
	return list
}

// radar draws images, range downwards, 40 dB from white to black.
func radar(file arrays) error {
	names := []string{"received", "found", "known"}
	a, err := file.read(names...)
	if err != nil {
		return err
	}
	most := slices.Max(a["known"].Data)
	var tiles []tile
	for _, name := range names {
		cells, bins := a[name].Shape[0], a[name].Shape[1]
		t := tile{width: cells, grey: make([]float64, cells*bins)}
		for i := range cells {
			for k := range bins {
				t.grey[k*cells+i] = 1 + math.Log10(a[name].Data[i*bins+k]/most)/2
			}
		}
		tiles = append(tiles, t)
	}
	return saveGrey("radar-images.png", tiles, 6)
}

// tile is a grey picture, row by row, 0 black and 1 white.
type tile struct {
	width int
	grey  []float64
}

// saveGrey puts tiles of one height side by side, each pixel enlarged.
func saveGrey(name string, tiles []tile, enlarge int) error {
	const gap = 12
	width, height := -gap, enlarge*len(tiles[0].grey)/tiles[0].width
	for _, t := range tiles {
		width += enlarge*t.width + gap
	}
	img := image.NewGray(image.Rect(0, 0, width, height))
	draw.Draw(img, img.Rect, image.White, image.Point{}, draw.Src)
	left := 0
	for _, t := range tiles {
		for y := range height {
			for x := range enlarge * t.width {
				v := t.grey[y/enlarge*t.width+x/enlarge]
				img.SetGray(left+x, y, color.Gray{Y: uint8(255 * min(max(v, 0), 1))})
			}
		}
		left += enlarge*t.width + gap
	}
	return save(name, func(w io.Writer, _ string) error { return png.Encode(w, img) })
}

// picture is side×side values, row by row from the top, as a map of that width with colours from 0 to most.
func picture(values []float64, side int, width, most float64, label string) *figure.Heat {
	h := &figure.Heat{Label: label, Min: 0, Max: most}
	for i := range side {
		at := width * float64(i) / float64(side-1)
		h.X, h.Y = append(h.X, at), append(h.Y, at)
		top := side - 1 - i // figures have their first row below
		h.Z = append(h.Z, values[top*side:(top+1)*side])
	}
	return h
}

func save(name string, write func(w io.Writer, format string) error) error {
	return dataset.WriteFile(filepath.Join(folder, name), func(w io.Writer) error { return write(w, filepath.Ext(name)) })
}
