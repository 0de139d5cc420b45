package figure

import (
	"bytes"
	"flag"
	"image"
	"image/png"
	"math"
	"os"
	"path/filepath"
	"testing"
)

var update = flag.Bool("update", false, "write the golden images anew; look at them before committing")

// plane is a map with a steep step in it, and a missing cell.
func plane(sharpness float64) *Heat {
	h := &Heat{Label: "1 − correlation", Log: true}
	for i := range 20 {
		h.X = append(h.X, 0.05*(float64(i)+0.5))
		h.Y = append(h.Y, 0.06*(float64(i)+0.5))
	}
	for j := range 20 {
		row := make([]float64, 20)
		for i := range row {
			row[i] = math.Pow(10, -9/(1+math.Exp(sharpness*(1.3*h.X[i]+0.05-h.Y[j]))))
		}
		h.Z = append(h.Z, row)
	}
	h.Z[15][4] = math.NaN()
	return h
}

func overlaid() []Series {
	return []Series{
		{Name: "α_{min}", X: []float64{0, 0.9}, Y: []float64{0, 1.2}, Color: Orange},
		{Name: "α_{CS}", X: []float64{0, 0.5, 1}, Y: []float64{0, 0.7, 1}, Color: Blue, Dashed: true},
	}
}

// goldens are the pictures that TestGolden compares with files in testdata.
func goldens() map[string]picture {
	x, y := Axis{Label: "density ρ"}, Axis{Label: "measurements α = M/N"}
	many := Panels{Title: "Recovery of the signals", X: x, Y: y}
	for r, row := range []string{"offline", "online"} {
		var figures []Figure
		for k, name := range []string{"P = 2", "P = 3", "P = 5", "P = 20"} {
			if r == 0 && k == 3 {
				continue
			}
			figures = append(figures, Figure{Title: row + ", " + name, Heat: plane(5 + 10*float64(k)), Series: overlaid()})
		}
		many.Rows = append(many.Rows, figures)
	}
	n := make([]float64, 40)
	fall, lo, hi := make([]float64, 40), make([]float64, 40), make([]float64, 40)
	for i := range n {
		n[i], fall[i] = float64(i+1), math.Exp(-float64(i)/4)+1e-4
		lo[i], hi[i] = fall[i]/1.5, fall[i]*1.5
	}
	line := Figure{Title: "N = 1000", X: Axis{Label: "iteration", Whole: true}, Y: Axis{Label: "mean squared error", Log: true}, Series: []Series{{Name: "AMP", X: n, Y: fall, Lo: lo, Hi: hi}}}
	lines := Panels{X: line.X, Y: line.Y, Rows: [][]Figure{{line, line}}}
	return map[string]picture{
		"heat":   Figure{Title: "A map", X: x, Y: y, Heat: plane(20), Series: overlaid()},
		"panels": many,
		"lines":  lines,
		"own":    Panels{Title: "Different things", OwnAxes: true, Rows: [][]Figure{{line, {X: x, Y: y, Heat: plane(20)}}}},
	}
}

// TestGolden compares pictures with files that somebody has looked at. Single pixels
// may differ a little, as they do between processors.
func TestGolden(t *testing.T) {
	if testing.Short() {
		t.Skip("drawing takes long under -race")
	}
	for name, p := range goldens() {
		path := filepath.Join("testdata", name+".png")
		var buf bytes.Buffer
		if err := write(&buf, "png", p); err != nil {
			t.Fatal(err)
		}
		if *update {
			if err := os.WriteFile(path, buf.Bytes(), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if d := difference(t, buf.Bytes(), want); d > 0.002 {
			t.Errorf("%s differs by %.4f of full contrast on average", name, d)
		}
	}
}

// difference is the mean over all pixels of the largest difference of a colour channel,
// from 0 to 1.
func difference(t *testing.T, a, b []byte) float64 {
	t.Helper()
	one, other := decoded(t, a), decoded(t, b)
	if one.Bounds() != other.Bounds() {
		t.Fatalf("%v and %v pixels", one.Bounds(), other.Bounds())
	}
	total := 0.0
	r := one.Bounds()
	for y := r.Min.Y; y < r.Max.Y; y++ {
		for x := r.Min.X; x < r.Max.X; x++ {
			r1, g1, b1, _ := one.At(x, y).RGBA()
			r2, g2, b2, _ := other.At(x, y).RGBA()
			worst := 0.0
			for _, pair := range [][2]uint32{{r1, r2}, {g1, g2}, {b1, b2}} {
				worst = max(worst, math.Abs(float64(pair[0])-float64(pair[1])))
			}
			total += worst / 0xffff
		}
	}
	return total / float64(r.Dx()*r.Dy())
}

func decoded(t *testing.T, data []byte) image.Image {
	t.Helper()
	img, err := png.Decode(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	return img
}

func TestPanelsInEveryFormat(t *testing.T) {
	for name, p := range goldens() {
		for _, format := range Formats {
			if testing.Short() && format != "svg" {
				continue
			}
			var buf bytes.Buffer
			if err := write(&buf, format, p); err != nil || buf.Len() < 1000 {
				t.Errorf("%s as %s: %d bytes, %v", name, format, buf.Len(), err)
			}
			if *keep != "" {
				if err := os.WriteFile(filepath.Join(*keep, name+"."+format), buf.Bytes(), 0o644); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
}

// Every cell of a heat map has a single colour up to its edges, without seams.
func TestHeatHasNoSeams(t *testing.T) {
	h := &Heat{X: []float64{1, 2, 3, 4, 5, 6, 7}, Y: []float64{1, 2, 3}, Min: 0, Max: 1}
	for range h.Y {
		h.Z = append(h.Z, []float64{0.5, 0.500001, 0.5, 0.5000011, 0.5, 0.5000012, 0.5})
	}
	var buf bytes.Buffer
	if err := (Figure{Heat: h}).Write(&buf, "png"); err != nil {
		t.Fatal(err)
	}
	img := decoded(t, buf.Bytes())
	y := img.Bounds().Dy() / 2
	r0, g0, b0, _ := img.At(img.Bounds().Dx()/2, y).RGBA()
	same := 0
	for x := range img.Bounds().Dx() {
		if r, g, b, _ := img.At(x, y).RGBA(); r == r0 && g == g0 && b == b0 {
			same++
		}
	}
	if same < img.Bounds().Dx()*6/10 {
		t.Errorf("%d of %d pixels across the map have its colour", same, img.Bounds().Dx())
	}
}

func TestEmptyHeat(t *testing.T) {
	nan := math.NaN()
	for _, h := range []*Heat{
		{},
		{X: []float64{1}, Y: []float64{2}, Z: [][]float64{{3}}},
		{X: []float64{1, 2}, Y: []float64{2}, Z: [][]float64{{nan, nan}}, Log: true},
		{X: []float64{1, 2}, Y: []float64{1, 2, 3}, Z: [][]float64{{0, -1}, {2}}, Log: true},
	} {
		for _, p := range []picture{Figure{Heat: h}, Panels{Rows: [][]Figure{{{Heat: h}}}}, Panels{}} {
			var buf bytes.Buffer
			if err := write(&buf, "svg", p); err != nil || bytes.Contains(buf.Bytes(), []byte("NaN")) {
				t.Errorf("%+v: %v, %s", h, err, buf.Bytes())
			}
		}
	}
}
