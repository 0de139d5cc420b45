// Package report writes what a run found as one HTML file: it takes results, and
// does not depend on how they were computed. The page has a verdict in a sentence, the warnings,
// the signals as pictures or stems, how the run converged, the calibration with its
// error bars, the sensors to look at, and what the run did and left out.
//
// The file holds everything it shows, needs no script and asks for nothing from
// anywhere. It follows the reader's light or dark theme, and can be printed.
package report

import (
	"bufio"
	"cmp"
	_ "embed"
	"errors"
	"html/template"
	"io"
	"strings"

	"gonum.org/v1/gonum/mat"

	"github.com/calamp/calamp"
)

// Report holds the data of the page. Only Result is required: sections without data are
// left out.
type Report struct {
	Title   string  // "Blind calibration" by default
	Problem Problem // M, N and P are taken from Result where zero
	Model   []Field // density, signal mean and variance, range of s, noise variance, …

	Result    *calamp.Result
	ScaleFree bool         // the scale common to signals and gains is a convention
	Truth     calamp.Truth // drawn beside the result where it is known

	Metrics   []Field    // of the result, against the truth
	Baselines []Baseline // other answers to the same readings, shown beside the result

	// Signals (N×P) are drawn, and compared with the truth and the baselines, in place of Result.X, where that are coefficients of
	// them in a basis.
	Signals *mat.Dense

	// ImageShape is the number of rows and columns of signals that are pictures, stored
	// row by row. By default signals are pictures when N is a square, of at least 8×8. A
	// shape with one row, or whose product is not N, means that they are no pictures, and
	// draws stems.
	ImageShape [2]int

	// Fit, or nil, is the fit of the matrix that Result is of: the evidence along each of its parameters is drawn. FitNames are those of the parameters.
	Fit      *calamp.MatrixFit
	FitNames []string

	Version string // of the program
	Command string // that was run

	phases *phases // of complex gains; nil for real ones
}

// Problem is the size of a problem, and how W is stored.
type Problem struct {
	M, N, P int
	Missing int    // how many readings are missing
	Storage string // "float64, dense", say
}

// Field is a named value, already in words.
type Field struct{ Name, Value string }

// Baseline is another answer to the same readings: with the gains ignored, say,
// or known.
type Baseline struct {
	Name    string
	X       *mat.Dense // N×P
	Metrics []Field    // with the names of Report.Metrics
}

//go:embed page.html
var pageText string

// Style is the style sheet of reports, for pages that are to look like them.
//
//go:embed style.css
var Style string

var page = template.Must(template.New("page").Parse(pageText))

// view holds the page's sections in the order in which the template shows them.
type view struct {
	Style    template.CSS
	Title    string
	Verdict  verdict
	Warnings []warning
	Facts    []facts

	Signals  signals
	Scores   *table
	Progress plots
	Fit      plots
	Sensors  plots
	Residual plots

	Worst     []table
	PerSignal *table
	Tries     *table
	Plan      *table

	Version, Command, Counted string
}

type facts struct {
	Heading string
	Fields  []Field
}

// plots is a section of figures, with a remark where there is nothing to draw.
type plots struct {
	Figures []plot
	Note    string
}

// table is a table of text; the first column is the row's name.
type table struct {
	Heading string
	Note    string
	Columns []string
	Rows    [][]string
	Words   bool // and not numbers
	Bare    bool // the heading stands above it
}

// Write writes the report as an HTML file.
func Write(w io.Writer, r Report) error {
	if r.Result == nil {
		return errors.New("report: there is no result to report")
	}
	r.complete()
	worst := r.worstSensors()
	v := view{
		Style:     template.CSS(Style),
		Title:     r.Title,
		Verdict:   r.verdict(),
		Warnings:  r.warnings(),
		Facts:     r.facts(),
		Signals:   r.signals(),
		Scores:    r.scores(),
		Progress:  r.progress(),
		Fit:       r.evidence(),
		Sensors:   r.sensors(),
		Residual:  r.residuals(),
		Worst:     worst,
		PerSignal: r.perSignal(),
		Tries:     r.tries(),
		Plan:      r.plan(),
		Version:   r.Version,
		Command:   r.Command,
		Counted:   r.counted(),
	}
	buffered := bufio.NewWriter(w)
	if err := page.Execute(buffered, v); err != nil {
		return err
	}
	return buffered.Flush()
}

// complete fills in what was not given and follows from the result.
func (r *Report) complete() {
	if r.Title == "" {
		r.Title = "Blind calibration"
	}
	if r.Result.Phase != nil {
		r.takeAmplitudes()
	}
	rows, cols := dims(r.Result.X)
	if r.Problem.N == 0 {
		r.Problem.N = rows
	}
	if r.Problem.P == 0 {
		r.Problem.P = cols
	}
	if r.Problem.M == 0 {
		r.Problem.M = len(r.Result.OfRows(r.Result.S))
	}
}

func dims(m *mat.Dense) (rows, cols int) {
	if m == nil || m.IsEmpty() {
		return 0, 0
	}
	return m.Dims()
}

// sameShape reports whether a matrix can be drawn beside the result.
func sameShape(m, as *mat.Dense) bool {
	rows, cols := dims(m)
	wantRows, wantCols := dims(as)
	return rows > 0 && rows == wantRows && cols == wantCols
}

// facts are the problem and the model as lists.
func (r *Report) facts() []facts {
	p := r.Problem
	problem := []Field{
		{r.rowsName(), count(p.M)},
		{"Entries of a signal N", count(p.N)},
		{"Signals P", count(p.P)},
	}
	if p.N > 0 {
		problem = append(problem, Field{"Measurements α = M/N", number(float64(p.M) / float64(p.N))})
	}
	readings := count(p.M * p.P)
	if p.Missing > 0 {
		readings += ", of which " + count(p.Missing) + " missing"
	}
	problem = append(problem, Field{"Readings", readings})
	if p.Storage != "" {
		problem = append(problem, Field{"Matrix W", p.Storage})
	}
	all := []facts{{"Problem", problem}}
	if len(r.Model) > 0 {
		all = append(all, facts{"Model", r.Model})
	}
	return all
}

// plan is what the run did, and why not the rest.
func (r *Report) plan() *table {
	if r.Result.Plan == nil {
		return nil
	}
	t := &table{Heading: "What the run did, and what it left out", Columns: []string{"part", "", "why"}, Words: true, Bare: true}
	for _, c := range r.Result.Plan.Parts {
		if c.Part == try {
			continue
		}
		state, why := "on", c.Why
		if !c.On {
			state = "off"
		}
		t.Rows = append(t.Rows, []string{c.Part, state, cmp.Or(why, dash)})
	}
	return t
}

// try is the part of a plan that is one of several runs.
const try = "try"

// tries is what was tried, where it was more than one run; the mark says which answer was taken.
func (r *Report) tries() *table {
	if r.Result.Plan == nil {
		return nil
	}
	t := &table{Heading: "What was tried", Note: "The likeliest answer of those that can be one is taken.", Columns: []string{"run", "", "how it ended"}, Words: true, Bare: true}
	for _, c := range r.Result.Plan.Parts {
		if c.Part != try {
			continue
		}
		taken := ""
		if c.On {
			taken = "taken"
		}
		name, end, found := strings.Cut(c.Why, ": ")
		for found && strings.Contains(end, ": ") { // names may have one, too: begun at the answer of: …
			further, rest, _ := strings.Cut(end, ": ")
			name, end = name+": "+further, rest
		}
		t.Rows = append(t.Rows, []string{name, taken, sentence(end)})
	}
	if len(t.Rows) == 0 {
		return nil
	}
	return t
}

// scores compares the result and the baselines, one metric a row.
func (r *Report) scores() *table {
	methods := []Baseline{{Name: blindName, Metrics: r.Metrics}}
	methods = append(methods, r.Baselines...)
	t := &table{Heading: "Against the truth", Columns: []string{"metric"}}
	values := map[string]map[string]string{} // metric, method
	for _, m := range methods {
		if len(m.Metrics) == 0 {
			continue
		}
		t.Columns = append(t.Columns, m.Name)
		for _, f := range m.Metrics {
			if values[f.Name] == nil {
				values[f.Name] = map[string]string{}
				t.Rows = append(t.Rows, []string{f.Name})
			}
			values[f.Name][m.Name] = f.Value
		}
	}
	if len(t.Rows) == 0 {
		return nil
	}
	for i, row := range t.Rows {
		for _, method := range t.Columns[1:] {
			value, ok := values[row[0]][method]
			if !ok {
				value = dash
			}
			t.Rows[i] = append(t.Rows[i], value)
		}
	}
	return t
}
