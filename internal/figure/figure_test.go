package figure

import (
	"bytes"
	"encoding/xml"
	"errors"
	"flag"
	"image/png"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gonum.org/v1/plot"
)

var keep = flag.String("keep", "", "a folder to keep the test's figures in, for looking at them")

// samples are figures of every style, and of data that cause trouble in practice.
func samples() map[string]Figure {
	n := 80
	it, fall, rise, lo, hi := make([]float64, n), make([]float64, n), make([]float64, n), make([]float64, n), make([]float64, n)
	for i := range n {
		it[i] = float64(i + 1)
		fall[i] = math.Exp(-float64(i)/4) * (1 + 0.4*math.Sin(float64(i)))
		rise[i] = 1 - math.Exp(-float64(i)/20)
		lo[i], hi[i] = rise[i]-0.08, rise[i]+0.08
	}
	nan, inf := math.NaN(), math.Inf(1)
	return map[string]Figure{
		"log": {
			Title: "Convergence: relative change and mean variance", X: Axis{Label: "iteration", Whole: true},
			Y: Axis{Label: "mean posterior variance", Log: true},
			Series: []Series{
				{Name: "signals x", X: it, Y: fall},
				{Name: "calibration s", X: it, Y: rise, Dashed: true},
				{Name: "σ² of the residual, 10^{-8} of s_{0}", X: it, Y: hi},
			},
		},
		"band": {
			X: Axis{Label: "samples k"}, Y: Axis{Label: "1 − correlation"},
			Series: []Series{{Name: "AMP, ± 2 sd", X: it, Y: rise, Lo: lo, Hi: hi}, {Name: "state evolution", X: it, Y: fall, Dashed: true, Color: Neutral}},
		},
		"points": {
			X: Axis{Label: "true s"}, Y: Axis{Label: "ŝ"},
			Series: []Series{{Name: "ŝ ± 2 sd", X: fall, Y: rise, Lo: lo, Hi: hi, Style: Points}, {Name: "rings", X: rise, Y: fall, Style: Rings}},
		},
		"stems": {
			X: Axis{Label: "entry", Whole: true}, Y: Axis{Label: "value"},
			Series: []Series{{Name: "blind", Y: []float64{0, 3, -2, 0, 0, 1.5}, Style: Stems}, {Name: "true", Y: []float64{0, 2.9, -2.1, 0, 0.1, 1.5}, Style: Rings, Color: Neutral}},
		},
		"bars":     {X: Axis{Label: "residual"}, Y: Axis{Label: "readings", Whole: true}, Series: []Series{{Name: "count", X: []float64{1, 2, 3}, Y: []float64{12000, 25040, 300}, Style: Bars}}},
		"log bars": {Y: Axis{Log: true}, Series: []Series{{Y: []float64{1e-3, 1, 1000}, Style: Bars}}},
		"both log": {X: Axis{Log: true}, Y: Axis{Log: true}, Series: []Series{{X: []float64{0, 1e-12, 1, 1e9}, Y: []float64{1, 1e-200, -1, 1e200}}}},
		"narrow":   {Y: Axis{Label: "damping", Log: true}, Series: []Series{{Y: []float64{0.31, 0.32, 0.35}}}},
		"same":     {Y: Axis{Log: true}, Series: []Series{{Y: []float64{3, 3, 3}}}},
		"constant": {Series: []Series{{Y: []float64{1, 1, 1}}}},
		"zero":     {Series: []Series{{Y: []float64{0}, Style: Stems}}},
		"tiny":     {Series: []Series{{Y: []float64{1 + 1e-14, 1, 1 - 1e-14}}}},
		"subnormal": {
			Series: []Series{{Y: []float64{5e-324, 1e-310}}},
		},
		"empty":    {X: Axis{Log: true}, Y: Axis{Log: true}},
		"no data":  {Series: []Series{{Name: "nothing"}, {Name: "bars", Style: Bars}, {Name: "stems", Style: Stems}, {Name: "rings", Style: Rings}}},
		"bad data": {Y: Axis{Log: true}, Series: []Series{{Y: []float64{nan, inf, -inf, 0, -1}}, {Y: []float64{nan, 1, 2}, Lo: []float64{nan, 0, -1}, Hi: []float64{1, inf, 3}}, {Style: Bars, Y: []float64{nan}}}},
		"extreme":  {Series: []Series{{Y: []float64{1.7e308, -1.7e308, 1e299, -1e299}}, {X: []float64{1, 2}, Y: []float64{1}}}},
		"cut off":  {X: Axis{Min: 10, Max: 20}, Y: Axis{Min: 0, Max: 0.5}, Series: []Series{{X: it, Y: rise, Lo: lo, Hi: hi}, {X: it, Y: fall, Style: Points}, {X: it, Y: rise, Style: Bars, Opacity: 0.3}, {X: it, Y: fall, Style: Stems}}},
	}
}

func TestEveryFormat(t *testing.T) {
	signature := map[string]string{"svg": "<svg", "png": "\x89PNG", "pdf": "%PDF"}
	for name, f := range samples() {
		for _, format := range Formats {
			if testing.Short() && name != "log" && name != "bad data" && format != "svg" {
				continue // pictures and embedded fonts take long under -race
			}
			var buf bytes.Buffer
			if err := f.Write(&buf, "."+format); err != nil {
				t.Fatalf("%s as %s: %v", name, format, err)
			}
			if !strings.HasPrefix(buf.String(), signature[format]) {
				t.Errorf("%s as %s starts with %q", name, format, buf.String()[:20])
			}
			if *keep != "" {
				path := filepath.Join(*keep, strings.ReplaceAll(name, " ", "-")+"."+format)
				if err := os.WriteFile(path, buf.Bytes(), 0o644); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
}

func TestSVG(t *testing.T) {
	for name, f := range samples() {
		for _, theme := range []Theme{Light, Dark} {
			svg := f.SVG(theme)
			if err := wellFormed(svg); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			for _, bad := range []string{"NaN", "Inf", "http", "Liberation Sans;", "?"} {
				if strings.Contains(svg, bad) {
					t.Errorf("%s: %q in the SVG", name, bad)
				}
			}
			if !strings.Contains(svg, `viewBox="0 0 360 250"`) {
				t.Errorf("%s: no viewBox", name)
			}
		}
	}
	f := samples()["log"]
	if f.SVG(Light) == f.SVG(Dark) {
		t.Error("both themes are the same")
	}
	if svg := f.SVG(Light); svg != f.SVG(Light) || !strings.Contains(svg, ">iteration</text>") {
		t.Error("the SVG is not reproducible, or its text is not text")
	}
}

func wellFormed(svg string) error {
	d := xml.NewDecoder(strings.NewReader(svg))
	for {
		_, err := d.Token()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func TestTextIsEscaped(t *testing.T) {
	f := Figure{Alt: `"><script>`, X: Axis{Label: "<b>&"}, Series: []Series{{Name: "</svg>", Y: []float64{1, 2}}}}
	svg := f.SVG(Light)
	if err := wellFormed(svg); err != nil {
		t.Error(err)
	}
	if strings.Contains(svg, "<script") || strings.Contains(svg, "<b>") {
		t.Error("text was not escaped")
	}
}

func TestUnknownFormat(t *testing.T) {
	if err := (Figure{}).Write(io.Discard, "gif"); err == nil || !strings.Contains(err.Error(), `"gif"`) {
		t.Errorf("found %v", err)
	}
}

func TestPNGSize(t *testing.T) {
	var buf bytes.Buffer
	if err := samples()["band"].Write(&buf, "png"); err != nil {
		t.Fatal(err)
	}
	img, err := png.Decode(&buf)
	if err != nil {
		t.Fatal(err)
	}
	if b := img.Bounds(); b.Dx() != 1080 || b.Dy() != 750 {
		t.Errorf("a figure of 360×250 points became %v", b)
	}
}

func TestTicks(t *testing.T) {
	for _, c := range []struct {
		lo, hi float64
		log    bool
		want   string
	}{
		{0, 1, false, "0 0.2 0.4 0.6 0.8 1.0"},
		{-4, 4, false, "−4 −2 0 2 4"},
		{0, 26000, false, "0 5000 10 000 15 000 20 000 25 000"},
		{0, 3e6, false, "0 0.5·10^{6} 1.0·10^{6} 1.5·10^{6} 2.0·10^{6} 2.5·10^{6} 3.0·10^{6}"},
		{0, 2.2e-5, false, "0 0.5·10^{-5} 1.0·10^{-5} 1.5·10^{-5} 2.0·10^{-5}"},
		{1e-9, 1, true, "10^{-8} 10^{-6} 10^{-4} 10^{-2} 10^{0}"},
		{0.05, 200, true, "0.1 1 10 100"},
		{0.15, 3, true, "0.2 0.5 1 2"},
		{0.31, 0.36, true, "0.31 0.32 0.33 0.34 0.35 0.36"},
	} {
		ticks := linearTicks(c.lo, c.hi, 5, false)
		if c.log {
			ticks = logTicks(c.lo, c.hi, 5)
		}
		if got := labels(ticks); got != c.want {
			t.Errorf("[%g, %g] is marked %s, want %s", c.lo, c.hi, got, c.want)
		}
	}
	if got := labels(linearTicks(0.9, 2.1, 5, true)); got != "1 2" {
		t.Errorf("whole marks are %s", got)
	}
}

func labels(ticks []plot.Tick) string {
	var out []string
	for _, tick := range ticks {
		if tick.Label != "" {
			out = append(out, strings.NewReplacer("\u2009", " ", "{−", "{-").Replace(tick.Label))
		}
	}
	return strings.Join(out, " ")
}

func TestRuns(t *testing.T) {
	got := runs("a^{2}b_{i} ^{ x^y")
	want := []run{{"a", 0, 1}, {"2", raise, scriptSize}, {"b", 0, 1}, {"i", lower, scriptSize}, {" ^{ x^y", 0, 1}}
	if len(got) != len(want) {
		t.Fatalf("found %v", got)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("run %d is %v, want %v", i, got[i], want[i])
		}
	}
}

func TestThinnedKeepsPeaks(t *testing.T) {
	points := make([]point, 100000)
	for i := range points {
		points[i] = point{x: float64(i), y: 1}
	}
	points[77777].y = 50
	points[33333].y = -50
	kept := thinned(points, 500)
	var y extent
	for i, p := range kept {
		y.add(p.y)
		if i > 0 && p.x <= kept[i-1].x {
			t.Fatal("the order was lost")
		}
	}
	if len(kept) > 1000 || y.min != -50 || y.max != 50 {
		t.Errorf("%d points from %g to %g", len(kept), y.min, y.max)
	}
}

func TestHistogram(t *testing.T) {
	s, counted, outside := Histogram([]float64{-9, 0.1, 0.2, 0.6, math.NaN(), 1, 99}, 0, 1, 2)
	if counted != 6 || outside != 2 || s.Y[0] != 3 || s.Y[1] != 3 || s.X[0] != 0.25 {
		t.Errorf("counted %d, outside %d, %v at %v", counted, outside, s.Y, s.X)
	}
	if s, _, _ := Histogram([]float64{2, 2, math.Inf(1)}, 2, 2, 3); s.Y[1] != 2 || s.Y[2] != 1 {
		t.Errorf("equal values are counted as %v", s.Y)
	}
}

func TestGreyPNG(t *testing.T) {
	img, err := png.Decode(bytes.NewReader(GreyPNG([]float64{0, 1, 2, math.NaN(), -5, 9}, 2, 3, 0, 2)))
	if err != nil {
		t.Fatal(err)
	}
	want := []uint32{0, 128, 255, 0, 0, 255}
	for i, w := range want {
		if r, _, _, _ := img.At(i%3, i/3).RGBA(); r>>8 != w {
			t.Errorf("pixel %d is %d, want %d", i, r>>8, w)
		}
	}
	img, err = png.Decode(bytes.NewReader(GreyPNG(make([]float64, 400*300), 400, 300, 0, 0)))
	if err != nil || img.Bounds().Dx() != 150 || img.Bounds().Dy() != 200 {
		t.Errorf("a large picture became %v (%v)", img.Bounds(), err)
	}
}

// The contrasts asked for by WCAG 2.1: 3:1 for graphics, 4.5:1 for text.
func TestContrast(t *testing.T) {
	for _, c := range []*colors{&light, &dark} {
		if r := contrast(c.text.R, c.text.G, c.text.B, c); r < 4.5 {
			t.Errorf("text has a contrast of %.1f", r)
		}
		for i, p := range c.palette {
			if r := contrast(p.R, p.G, p.B, c); r < 3 {
				t.Errorf("colour %d has a contrast of %.1f", i, r)
			}
		}
	}
}

func contrast(r, g, b uint8, c *colors) float64 {
	one, other := luminance(r, g, b)+0.05, luminance(c.back.R, c.back.G, c.back.B)+0.05
	return math.Max(one, other) / math.Min(one, other)
}

func luminance(r, g, b uint8) float64 {
	linear := func(v uint8) float64 {
		s := float64(v) / 255
		if s <= 0.04045 {
			return s / 12.92
		}
		return math.Pow((s+0.055)/1.055, 2.4)
	}
	return 0.2126*linear(r) + 0.7152*linear(g) + 0.0722*linear(b)
}
