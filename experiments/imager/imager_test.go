package imager

import (
	"context"
	"math"
	"strings"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/calamp/calamp"
	"github.com/calamp/calamp/internal/tables"
	"github.com/calamp/calamp/operator"
)

// The data are what README.md says they are, and cosines keep the rows of W orthonormal.
func TestData(t *testing.T) {
	d, err := load()
	if err != nil {
		t.Fatal(err)
	}
	m, n := d.w.Dims()
	rows, p := d.y.Dims()
	if m != 109 || n != side*side || rows != m || p != 4*blocks || len(d.x) != blocks || len(d.y0) != blocks || len(d.groups) != n {
		t.Fatalf("W is %d×%d, Y %d×%d, %d and %d places, %d groups", m, n, rows, p, len(d.x), len(d.y0), len(d.groups))
	}
	w := mat.NewDense(m, n, nil)
	for mu := range m {
		if err := d.w.(operator.Matrix).RowInto(w.RawRowView(mu), mu); err != nil {
			t.Fatal(err)
		}
	}
	var gram mat.Dense
	gram.Mul(w, w.T())
	for mu := range m {
		gram.Set(mu, mu, gram.At(mu, mu)-1)
	}
	if off := mat.Norm(&gram, math.Inf(1)); off > 1e-10 {
		t.Errorf("WWᵀ is %g from the identity", off)
	}
	e := &experiment{data: d}
	flat := mat.NewDense(n, 2, nil)
	flat.Set(0, 0, 1)
	pixels, err := e.pixels(flat)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := pixels.At(0, n-1), 1.0/side; math.Abs(got-want) > 1e-12 || pixels.At(1, 5) != 0 {
		t.Errorf("the first cosine is %g everywhere, expected %g", got, want)
	}
	if got := lit(pixels); len(got) != 1 || got[0] != 0 {
		t.Errorf("lit: %v", got)
	}
}

func TestNotes(t *testing.T) {
	o := &Outcome{
		Gain: [2][]float64{{0.9, 1, 1.1}, {0.91, 1, 1.2}}, SD: [2][]float64{{0.01, 0.01, 0.01}, {0.01, 0.01, 0.01}},
		Injections: []Injection{{Blocks: 60, Truth: []float64{0.8, 1, 1.2}, Found: []float64{1.6, 2, 2.4}, Divided: []float64{0.8, 1.1, 1.2}, Status: calamp.Converged}},
	}
	correlation, within := o.Agreement()
	if math.Abs(within-2./3) > 1e-12 || !(correlation > 0.9) {
		t.Errorf("correlation %g, within %g", correlation, within)
	}
	text := strings.Join(o.Notes(), "\n")
	for _, want := range []string{"67 % of the projections", "60 blocks (converged", "correlation 1.000", "no independent truth"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in\n%s", want, text)
		}
	}
}

// TestLongImager is the whole experiment, against what it must show.
func TestLongImager(t *testing.T) {
	if !*tables.Long {
		t.Skip("without -long")
	}
	o, err := Run(context.Background(), false, func(what string, _ float64) { t.Log(what) })
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range o.Notes() {
		t.Log(line)
	}
	table := tables.New(t, "", "blocks", "status", "iterations", "correlation", "divided by the gains found without injection")
	least := []float64{0.82, 0.92, 0.94}
	for i := range o.Injections {
		in := &o.Injections[i]
		table.Row("| %d | %v | %d | %.3f | %.3f |", in.Blocks, in.Status, in.Iterations, in.Correlation(), in.OwnRemoved())
		if in.Status != calamp.Converged || in.Correlation() < least[i] || i > 0 && in.OwnRemoved() < 0.98 {
			t.Errorf("%d blocks: %v, correlation %.3f, divided %.3f", in.Blocks, in.Status, in.Correlation(), in.OwnRemoved())
		}
	}
	if correlation, within := o.Agreement(); correlation < 0.7 || within < 0.9 {
		t.Errorf("correlation of two pairs of scenes %.3f, within 2 standard deviations %.2f", correlation, within)
	}
}
