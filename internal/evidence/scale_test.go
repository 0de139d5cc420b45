package evidence

import (
	"context"
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/mat"
)

// scattered is a problem behind a random W with entries that are there with a probability, and have standard deviations of their own.
func scattered(seed uint64, m, n, p int, there float64, sd func(i int) float64) (w, y *mat.Dense) {
	r := rand.New(rand.NewPCG(seed, 43))
	w, y = mat.NewDense(m, n, nil), mat.NewDense(m, p, nil)
	w.Apply(func(_, _ int, _ float64) float64 { return r.NormFloat64() / math.Sqrt(float64(n)) }, w)
	x := mat.NewDense(n, p, nil)
	x.Apply(func(i, _ int, _ float64) float64 {
		if r.Float64() > there {
			return 0
		}
		return sd(i) * r.NormFloat64()
	}, x)
	y.Mul(w, x)
	y.Apply(func(mu, _ int, v float64) float64 {
		return (v + 1e-3*r.NormFloat64()) / (1 + 0.2*math.Sin(float64(mu*mu)))
	}, y)
	return w, y
}

// TestScaleHasItsCost: where all entries have one variance a scale of each, learned from two snapshots, is less likely than none; where they fall by two decades it is likelier.
func TestScaleHasItsCost(t *testing.T) {
	if testing.Short() {
		t.Skip("numbers, which take many times as long with the race detector")
	}
	const m, n = 60, 80
	for _, c := range []struct {
		name           string
		p              int
		there, decades float64
		scaled         bool
	}{{"one variance, two snapshots", 2, 0.1, 0, false}, {"one variance, twelve", 12, 0.1, 0, false}, {"two decades, twelve", 12, 1, 2, true}} {
		w, y := scattered(2, m, n, c.p, c.there, func(i int) float64 { return math.Pow(10, -c.decades*float64(i)/n) })
		fit := learned(t, New(w, y, false), 150)
		flat := learned(t, fit.Sparsely(false, fit.S, mostSites), mostSites)
		scaled := learned(t, fit.Sparsely(true, fit.S, mostSites), mostSites)
		if scaled.Likelier(flat) != c.scaled {
			own, _ := scaled.LogEvidence()
			other, _ := flat.LogEvidence()
			t.Errorf("%s: log-evidence %.5g with a scale of each entry, and %.5g without", c.name, own, other)
		}
	}
}

// TestScaleIsNoMotion: signals and gains that only become larger have not moved.
func TestScaleIsNoMotion(t *testing.T) {
	w, y := scattered(3, 20, 24, 3, 0.1, func(int) float64 { return 1 })
	fit := learned(t, New(w, y, false), 50)
	was := mat.DenseCopyOf(fit.X)
	fit.Rescale(1.3)
	if moved := fit.movedFrom(was); moved > 1e-6*mat.Norm(was, 2) {
		t.Errorf("signals moved by %.3g of %.3g", moved, mat.Norm(was, 2))
	}
	was.Set(0, 0, was.At(0, 0)+mat.Norm(was, 2))
	if moved := fit.movedFrom(was); moved < 0.3*mat.Norm(was, 2) {
		t.Errorf("signals that moved by all they are moved by %.3g of %.3g", moved, mat.Norm(was, 2))
	}
}

// TestReadingsDrawnAnew: with too few snapshots for halves, gains of readings drawn from a sparse answer are off by about as much as it states, and by the same each time.
func TestReadingsDrawnAnew(t *testing.T) {
	if testing.Short() {
		t.Skip("numbers, which take many times as long with the race detector")
	}
	w, y := scattered(4, 60, 64, 3, 0.1, func(int) float64 { return 1 })
	fit := learned(t, New(w, y, false), 150)
	if ratio, err := fit.Halves(context.Background()); err != nil || !math.IsNaN(ratio) {
		t.Errorf("halves of three Gaussian snapshots: %g, %v", ratio, err)
	}
	fit = learned(t, fit.Sparsely(false, fit.S, mostSites), mostSites)
	ratio, err := fit.Halves(context.Background())
	if err != nil || ratio < 0.2 || ratio > 3 {
		t.Errorf("a mean square of %.3g of that stated, %v", ratio, err)
	}
	again, err := fit.Halves(context.Background())
	if err != nil || again != ratio {
		t.Errorf("a second time %g, not %g, %v", again, ratio, err)
	}
}
