// Package figure draws plots for reports and papers: it takes numbers and labels, and
// does not depend on where they come from. From a short description it draws lines with bands,
// points with error bars, stems, bars and heat maps, on linear or log axes, alone or as
// small multiples, as SVG, PNG or PDF.
//
//	fig := figure.Figure{
//		X:      figure.Axis{Label: "iteration"},
//		Y:      figure.Axis{Label: "relative change", Log: true},
//		Series: []figure.Series{{Name: "signals", X: it, Y: change}},
//	}
//	err := fig.Write(file, "pdf")
//
// Values that cannot be drawn are left out: NaN, infinities, and on a log axis all that
// is not positive. A figure without any value is a pair of empty axes.
//
// Text may hold exponents and indices, as in "10^{-8}" and "s_{0}".
package figure

import (
	"io"
)

// Figure describes one plot. The canvas is small and its text large, so that it can be
// read on a phone or in a column of a paper without being scaled down.
type Figure struct {
	Title string // above the plot; none by default
	Alt   string // describes the picture for those who cannot see it; Title by default

	X, Y   Axis
	Heat   *Heat    // beneath the series, with a colour bar; or nil
	Series []Series // drawn in order, later ones on top

	Width, Height float64 // in points, 1/72 inch; 360 and 250 by default
}

// Axis describes one axis.
type Axis struct {
	Label string
	Log   bool
	Whole bool // only integers are marked: counts, indices, iterations

	// Min and Max fix the range when Min < Max; data outside are cut off. By default
	// the range is that of the data.
	Min, Max float64
}

// Series is one data set of a figure. Slices of unequal lengths are used up to
// the shortest.
type Series struct {
	Name string // in the legend; without a name it is not listed

	X      []float64 // 0, 1, 2, … when nil
	Y      []float64
	Lo, Hi []float64 // a band around a line, error bars on the rest; or nil

	Style   Style
	Color   Color
	Dashed  bool    // lines only
	Opacity float64 // in (0, 1]; 0 is opaque
	Size    float64 // line width or diameter of a point, in points; 0 is the default
}

// Style is how a series is drawn.
type Style uint8

const (
	Line   Style = iota // with a band when Lo and Hi are given
	Points              // dots
	Rings               // hollow dots, which leave what is under them visible
	Stems               // a line from zero to each value, with a dot at its end
	Bars                // from zero to each value, as wide as the smallest step in X
)

const (
	defaultWidth  = 360 // points
	defaultHeight = 250
	pngDPI        = 216 // three pixels a point
)

// Formats lists what Write can write.
var Formats = []string{"svg", "png", "pdf"}

// Write draws the figure in the light theme on white. The format is one of
// [Formats]; a leading dot is ignored, so that a file's extension serves.
func (f Figure) Write(w io.Writer, format string) error { return write(w, format, f) }

func (f Figure) size() (width, height float64) {
	width, height = f.Width, f.Height
	if !(width > 0) {
		width = defaultWidth
	}
	if !(height > 0) {
		height = defaultHeight
	}
	return width, height
}

func (f Figure) alt() string {
	if f.Alt != "" {
		return f.Alt
	}
	return f.Title
}
