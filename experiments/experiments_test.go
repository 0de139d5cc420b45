package experiments

import (
	"bytes"
	"math"
	"strings"
	"testing"

	"github.com/calamp/calamp/internal/sweep"
)

// made is a plausible row without the work.
func made(p sweep.Point) *sweep.Row {
	moment := func(sampleOf, iteration int) sweep.Measure {
		v := sweep.Values{}
		for i, name := range sweep.Columns {
			v[name] = math.Exp(-float64(i)/8 - 2*p.Alpha + p.Density - float64(iteration)/5 + 0.1*float64(p.Seed%3))
		}
		v["alpha_cal"] = 1.2 * p.Density
		return sweep.Measure{Sample: sampleOf, Iteration: iteration, Values: v}
	}
	row := &sweep.Row{Key: p.Key(), Point: p, Status: "converged"}
	samples := p.Record.Samples
	if len(samples) == 0 {
		samples = []int{0}
	}
	for _, k := range samples {
		if !p.Record.Trajectory {
			row.Measures = append(row.Measures, moment(k, 0))
			continue
		}
		for t := range 10 {
			row.Measures = append(row.Measures, moment(k, t+1))
		}
	}
	return row
}

func TestEveryFigureCanBeDrawn(t *testing.T) {
	for i := range All {
		e := &All[i]
		full, err := e.Spec()
		if err != nil {
			t.Fatal(err)
		}
		quick, err := full.Sketch()
		if err != nil {
			t.Fatal(err)
		}
		points := quick.Points()
		if n := len(points); n == 0 || n > 300 {
			t.Errorf("%s: %d points for a sketch", e.Name, n)
		}
		rows := make(sweep.Rows)
		for k, p := range points {
			if k%17 == 3 {
				rows.Add(&sweep.Row{Key: p.Key(), Point: p, Status: "failed", Class: "panic"})
				continue
			}
			rows.Add(made(p))
		}
		for name, what := range map[string]sweep.Rows{"full": rows, "empty": {}} {
			picture, notes := e.Draw(points, what)
			var svg bytes.Buffer
			if err := picture.Write(&svg, "svg"); err != nil {
				t.Fatal(err)
			}
			if strings.Contains(svg.String(), "NaN") || name == "full" && svg.Len() < 3000 {
				t.Errorf("%s, %s: %d bytes", e.Name, name, svg.Len())
			}
			if name == "full" && len(notes) == 0 && e.Name != "se-phase" && e.Name != "hard-phase" {
				t.Errorf("%s says nothing", e.Name)
			}
		}
	}
}

func TestFind(t *testing.T) {
	if _, err := Find("phase-z"); err == nil || !strings.Contains(err.Error(), "phase-x") {
		t.Error(err)
	}
}

func TestAgreement(t *testing.T) {
	amp := curve{x: []float64{1, 2, 3}, mean: []float64{10, 5, 1}, err: []float64{1, 0.5, 0.1}}
	se := curve{x: []float64{1, 2, 3}, mean: []float64{12, 7, 1}}
	want := "P: within 3 standard errors of state evolution at 1 of 2 places before the plateau; at most 4.0, at 2"
	if got := agreement("P", amp, se); got != want {
		t.Error(got)
	}
}

func TestCrossing(t *testing.T) {
	if got := crossing(curve{x: []float64{1, 2, 3, 4}, mean: []float64{0, 1, 0, 1}}); got != 3.5 {
		t.Error(got)
	}
	if got := crossing(curve{x: []float64{1, 2}, mean: []float64{0, 0}}); !math.IsNaN(got) {
		t.Error(got)
	}
}

func TestPaperSize(t *testing.T) {
	if testing.Short() {
		t.Skip("hashes many points")
	}
	e, err := Find("phase-x")
	if err != nil {
		t.Fatal(err)
	}
	s, err := e.Spec()
	if err != nil {
		t.Fatal(err)
	}
	if n := len(s.Points()); n != 40*40*10*(4+1)+40*4 {
		t.Errorf("%d points", n)
	}
}
