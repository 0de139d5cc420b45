package report

import (
	"cmp"
	"encoding/base64"
	"fmt"
	"html/template"
	"math"
	"slices"
	"strconv"

	"gonum.org/v1/gonum/mat"

	"github.com/calamp/calamp/internal/figure"
)

const (
	blindName = "blind"
	trueName  = "true"

	maxPictures = 10  // signals shown as pictures
	maxStems    = 6   // signals shown as stems
	maxEntries  = 500 // stems of one signal
	fewEntries  = 50  // of a signal whose zeros are drawn too
	leastSquare = 8   // pixels a side; with fewer, N is taken to be a square by coincidence
	maxRows     = 30  // of the table of signals
)

// signals are shown as pictures or as stems.
type signals struct {
	Note  string
	Heads []string // names of the columns of pictures
	Rows  []pictures
	Large bool // pictures of many pixels, which are shown larger
	Stems plots
}

// pictures show one signal as different sources have it, on the same grey scale.
type pictures struct {
	Label string
	Cells []picture
}

type picture struct {
	Source template.URL
	Alt    string
}

// Columns is the number of columns: one for the label, and one for each source.
func (s signals) Columns() int { return len(s.Heads) + 1 }

// Lines is the number of lines: one for the heading, and one for each signal.
func (s signals) Lines() int { return len(s.Rows) + 1 }

// source is one set of signals: the truth, the result or a baseline.
type source struct {
	name string
	x    *mat.Dense
}

// x is the signals that are drawn.
func (r *Report) x() *mat.Dense {
	if r.Signals != nil {
		return r.Signals
	}
	return r.Result.X
}

func (r *Report) sources() []source {
	var all []source
	if sameShape(r.Truth.X, r.x()) {
		all = append(all, source{trueName, r.Truth.X})
	}
	all = append(all, source{blindName, r.x()})
	for _, b := range r.Baselines {
		if sameShape(b.X, r.x()) {
			all = append(all, source{b.Name, b.X})
		}
	}
	return all
}

func (r *Report) signals() signals {
	n, p := dims(r.x())
	if n == 0 || p == 0 {
		return signals{}
	}
	if rows, cols := r.imageShape(n); rows > 1 && cols > 1 {
		return r.pictures(rows, cols, p)
	}
	return r.stems(p)
}

// imageShape is 0×0 when the signals are not pictures.
func (r *Report) imageShape(n int) (rows, cols int) {
	if shape := r.ImageShape; shape != [2]int{} {
		if shape[0]*shape[1] != n {
			return 0, 0
		}
		return shape[0], shape[1]
	}
	return ImageShape(n)
}

// ImageShape is the shape of signals with n entries where they are taken for pictures,
// 0×0 elsewhere.
func ImageShape(n int) (rows, cols int) {
	side := int(math.Round(math.Sqrt(float64(n))))
	if side < leastSquare || side*side != n {
		return 0, 0
	}
	return side, side
}

func (r *Report) pictures(rows, cols, p int) signals {
	all := r.sources()
	shown := min(p, maxPictures)
	s := signals{Note: fmt.Sprintf("%s as %d×%d pictures", firstOf(shown, p), rows, cols), Large: max(rows, cols) > 112}
	for _, src := range all {
		s.Heads = append(s.Heads, src.name)
	}
	signed := false
	for k := range shown {
		low, high := greyRange(mat.Col(nil, k, all[0].x))
		signed = signed || low < 0
		line := pictures{Label: strconv.Itoa(k)}
		for _, src := range all {
			png := figure.GreyPNG(mat.Col(nil, k, src.x), rows, cols, low, high)
			line.Cells = append(line.Cells, picture{
				Source: template.URL("data:image/png;base64," + base64.StdEncoding.EncodeToString(png)),
				Alt:    fmt.Sprintf("signal %d, %s", k, src.name),
			})
		}
		s.Rows = append(s.Rows, line)
	}
	s.Note += r.ofModuli() + ", each on one grey scale for all its versions"
	if signed {
		s.Note += "; mid-grey is zero"
	}
	s.Note += "."
	return s
}

// ofModuli says what is drawn of complex signals.
func (r *Report) ofModuli() string {
	if r.phases == nil {
		return ""
	}
	return ", their moduli"
}

func firstOf(shown, all int) string {
	switch {
	case all == 1:
		return "The signal"
	case shown < all:
		return fmt.Sprintf("The first %d of %s signals", shown, count(all))
	default:
		return fmt.Sprintf("The %d signals", all)
	}
}

// greyRange is the range of values from black to white. It starts at zero for pictures
// without noteworthy negative values, and is symmetric about zero for others.
func greyRange(values []float64) (low, high float64) {
	low, high = span(values)
	if !(math.Max(high, -low) > 0) {
		return 0, 1
	}
	if high > 0 && low > -0.15*high {
		return 0, high
	}
	high = math.Max(high, -low)
	return -high, high
}

// stems draws the signals entry by entry, with the truth as rings.
func (r *Report) stems(p int) signals {
	shown := min(p, maxStems)
	s := signals{Note: firstOf(shown, p)}
	rows, _ := dims(r.x())
	thinned := rows > maxEntries
	for k := range shown {
		f := figure.Figure{X: figure.Axis{Label: "entry", Whole: true, Min: -0.5, Max: float64(rows) - 0.5}, Y: figure.Axis{Label: "value"}, Height: 200}
		blind := stemSeries(mat.Col(nil, k, r.x()))
		blind.Color = figure.Blue
		if sameShape(r.Truth.X, r.x()) {
			blind.Name = blindName
			truth := stemSeries(mat.Col(nil, k, r.Truth.X))
			truth.Name, truth.Color, truth.Style, truth.Size = trueName, figure.Orange, figure.Rings, 3.6
			f.Series = append(f.Series, truth)
		}
		f.Series = append(f.Series, blind)
		s.Stems.Figures = append(s.Stems.Figures, draw("Signal "+strconv.Itoa(k), "", f))
	}
	s.Note += r.ofModuli() + ", entry by entry"
	if thinned {
		s.Note += fmt.Sprintf("; of %s entries the largest in each of %d stretches is drawn", count(rows), maxEntries)
	}
	s.Note += "."
	return s
}

// stemSeries keeps only the largest entry of each stretch of a long signal, and leaves
// out entries that could not be distinguished from zero in the picture when there are many.
func stemSeries(values []float64) figure.Series {
	s := figure.Series{Style: figure.Stems}
	low, high := span(values)
	least := 0.005 * math.Max(high, -low)
	if len(values) <= fewEntries {
		least = 0
	}
	groups := min(len(values), maxEntries)
	for g := range groups {
		from, to := g*len(values)/groups, (g+1)*len(values)/groups
		largest := from
		for i := from; i < to; i++ {
			if math.Abs(values[i]) > math.Abs(values[largest]) {
				largest = i
			}
		}
		if math.Abs(values[largest]) < least {
			continue
		}
		s.X = append(s.X, float64(largest))
		s.Y = append(s.Y, values[largest])
	}
	return s
}

// perSignal lists the signals, those that did not converge first; nil when all did.
func (r *Report) perSignal() *table {
	open := 0
	for _, done := range r.Result.Converged {
		if !done {
			open++
		}
	}
	if open == 0 {
		return nil
	}
	order := shown(len(r.Result.Converged), len(r.Result.Converged))
	slices.SortStableFunc(order, func(a, b int) int {
		if ca, cb := r.Result.Converged[a], r.Result.Converged[b]; ca != cb {
			if cb {
				return -1
			}
			return 1
		}
		return cmp.Compare(r.change(b), r.change(a))
	})
	t := &table{
		Heading: "Signals",
		Note:    fmt.Sprintf("%s of %s did not converge.", count(open), some(len(order), "signal")),
		Columns: []string{"signal", "converged", "last change", "mean sd"},
	}
	if len(order) > maxRows {
		t.Note += fmt.Sprintf(" The %d furthest from it are listed.", maxRows)
		order = order[:maxRows]
	}
	changes, sds := columnOf(order, r.change, 2), columnOf(order, r.signalSD, 2)
	for j, k := range order {
		state := "no"
		if r.Result.Converged[k] {
			state = "yes"
		}
		t.Rows = append(t.Rows, []string{strconv.Itoa(k), state, changes[j], sds[j]})
	}
	return t
}

func (r *Report) change(signal int) float64 {
	if signal < len(r.Result.Change) {
		return r.Result.Change[signal]
	}
	return math.NaN()
}

// signalSD is the root of a signal's mean posterior variance.
func (r *Report) signalSD(signal int) float64 {
	rows, cols := dims(r.Result.XVar)
	if signal >= cols {
		return math.NaN()
	}
	return math.Sqrt(mat.Sum(r.Result.XVar.ColView(signal)) / float64(rows))
}

// flat is all entries of a matrix, row by row.
func flat(m *mat.Dense) []float64 {
	rows, cols := dims(m)
	out := make([]float64, 0, rows*cols)
	for i := range rows {
		out = append(out, m.RawRowView(i)...)
	}
	return out
}
