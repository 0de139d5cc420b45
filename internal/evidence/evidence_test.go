package evidence

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/sbinet/npyio/npz"
	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"github.com/calamp/calamp/internal/dense"
)

// golden is testdata/evidence_trace.npz: variances of each entry of each signal, plain EM, a flat prior of s.
type golden struct {
	f *npz.Reader
	t *testing.T
}

func (g golden) matrix(name string) *mat.Dense {
	g.t.Helper()
	var m mat.Dense
	if err := g.f.Read(name+".npy", &m); err != nil {
		g.t.Fatal(name, err)
	}
	return &m
}

func (g golden) vector(name string) []float64 {
	g.t.Helper()
	var v []float64
	if err := g.f.Read(name+".npy", &v); err != nil {
		g.t.Fatal(name, err)
	}
	return v
}

// TestGolden compares with values computed independently, after 1, 5, 20 and 60 iterations. Hyperparameters of the trace move
// by plain EM, Γ ← x² + C and Δ ← (‖s y - W x‖² + Δ Σ (1 - C/Γ))/(M P), and nothing holds the common scale. The same
// recursion in extended precision differs from the trace by 2e-12 of s and 2e-10 of x_var after five iterations, and by
// 2.4e-7 and 1e-5 after sixty: Γ - Γ² d loses digits, and nothing contracts an error of the scale.
func TestGolden(t *testing.T) {
	f, err := npz.Open("testdata/evidence_trace.npz")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	g := golden{f, t}
	w, y, start, evidence := g.matrix("W"), g.matrix("Y"), g.vector("start"), g.vector("evidence")
	m, p := y.Dims()
	fit := New(w, y, true)
	fit.Noise, fit.exact = start[1], true
	for mu := range fit.S {
		fit.S[mu] = 1
	}
	for _, family := range fit.Families {
		for i := range family.Gamma {
			family.Gamma[i] = start[0]
		}
	}
	for iteration := 1; iteration <= len(evidence); iteration++ {
		if err := fit.Solve(); err != nil {
			t.Fatal(err)
		}
		if d := math.Abs(fit.Evidence - evidence[iteration-1]); d > 5e-8*math.Abs(evidence[iteration-1]) {
			t.Errorf("iteration %d: evidence %.12g, expected %.12g", iteration, fit.Evidence, evidence[iteration-1])
		}
		if slices.Contains([]int{1, 5, 20, 60}, iteration) {
			g.compare(fit, iteration)
		}
		errors, kept := 0.0, 0.0
		var product mat.Dense
		product.Mul(w, fit.X)
		for mu := range m {
			for k := range p {
				d := fit.S[mu]*y.At(mu, k) - product.At(mu, k)
				errors += d * d
			}
		}
		for k, family := range fit.Families {
			for i, gamma := range family.Gamma {
				x, c := fit.X.At(i, k), fit.C.At(i, k)
				kept += 1 - c/gamma
				family.Gamma[i] = x*x + c
			}
		}
		fit.Noise = (errors + fit.Noise*kept) / float64(m*p)
	}
}

func (g golden) compare(f *Fit, iteration int) {
	g.t.Helper()
	check := func(name string, got, want mat.Matrix, within float64) {
		g.t.Helper()
		var d mat.Dense
		d.Sub(got, want)
		if off := mat.Max(absolute(&d)) / mat.Max(absolute(mat.DenseCopyOf(want))); !(off <= within) {
			g.t.Errorf("iteration %d: %s is off by %.2g of its largest value", iteration, name, off)
		}
	}
	at := func(name string) string { return fmt.Sprintf("%s_%d", name, iteration) }
	s := g.vector(at("s"))
	within := []float64{1e-10, 1e-9, 1e-10}
	if iteration > 5 {
		within = []float64{1e-6, 1e-4, 2e-6} // what the trace itself is off by, and twice that
	}
	check("s", mat.NewVecDense(len(f.S), f.S), mat.NewVecDense(len(s), s), within[0])
	check("x", f.X, g.matrix(at("x")), within[0])
	check("x_var", f.C, g.matrix(at("x_var")), within[1])
	precision := dense.New(len(s), len(s))
	f.precisionInto(precision)
	check("precision", mat.NewDense(len(s), len(s), precision.Data), g.matrix(at("precision")), within[2])
}

func absolute(m *mat.Dense) *mat.Dense {
	m.Apply(func(_, _ int, v float64) float64 { return math.Abs(v) }, m)
	return m
}

// TestEvidenceNeverFalls is for both kinds of priors, with readings that are missing, behind a W that is all positive.
func TestEvidenceNeverFalls(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 1))
	m, n, p := 24, 30, 5
	w, x := mat.NewDense(m, n, nil), mat.NewDense(n, p, nil)
	w.Apply(func(_, _ int, _ float64) float64 { return float64(rng.IntN(2)) }, w)
	for i := range 5 {
		for k := range p {
			x.Set(i*3, k, 1+rng.Float64())
		}
	}
	var y mat.Dense
	y.Mul(w, x)
	for mu := range m {
		s := 0.7 + 0.6*rng.Float64()
		for k := range p {
			y.Set(mu, k, (y.At(mu, k)+0.01*rng.NormFloat64())/s)
		}
	}
	y.Set(3, 2, math.NaN())
	y.Set(7, 2, math.NaN())
	y.Set(9, 4, math.NaN())
	fit := New(w, &y, false)
	climb := func(name string, f *Fit, steps int) {
		t.Helper()
		for step := 1; step <= steps; step++ {
			// The spread of gains takes an EM step of its own, for their posterior and not their maximum.
			risen, err := f.Step(step)
			if err != nil {
				t.Fatal(name, err)
			}
			if !(risen >= -1e-8*math.Abs(f.Evidence)) {
				t.Errorf("%s: step %d: evidence falls by %g to %.12g", name, step, -risen, f.Evidence)
			}
		}
	}
	climb("a variance of each entry", fit, 80)
	climb("a mixture", fit.Mix(true), 80)
	climb("a mixture that all snapshots share", fit.Mix(false), 80)
	if ratio, err := fit.Halves(t.Context()); err != nil || !(ratio > 0) {
		t.Errorf("halves: %g, %v", ratio, err)
	}
	variances, err := fit.Variances()
	if err != nil {
		t.Fatal(err)
	}
	fit.Integrate(variances)
	for j, v := range fit.C.RawMatrix().Data {
		if !(v >= 0) || math.IsNaN(fit.X.RawMatrix().Data[j]) {
			t.Fatalf("entry %d: mean %g, variance %g", j, fit.X.RawMatrix().Data[j], v)
		}
	}
}

func TestTruncatedGamma(t *testing.T) {
	for _, a := range []float64{0.5, 1, 2, 6, 50} {
		for _, b := range []float64{0, 1e-8, 1e-3, 0.7, 5, 40, 1e4, 1e8} {
			mean, variance := truncatedGamma(a, b)
			// by sums over the logarithm of u
			var sum, first, second float64
			for l := -60.0; l <= 0; l += 1e-3 {
				u := math.Exp(l)
				p := math.Exp(a*l - b*u)
				sum, first, second = sum+p, first+p*u, second+p*u*u
			}
			wantMean, wantVariance := first/sum, second/sum-first/sum*first/sum
			if math.Abs(mean-wantMean) > 2e-3*wantMean || math.Abs(variance-wantVariance) > 0.01*wantVariance+1e-12 {
				t.Errorf("a = %g, b = %g: %g ± %g, want %g ± %g", a, b, mean, variance, wantMean, wantVariance)
			}
		}
	}
}

// TestCommonMode is for positive scenes behind masks of 0 and 1, in a basis whose first function is constant, and in pixels.
func TestCommonMode(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 2))
	m, n, p := 40, 60, 6
	for _, pixels := range []bool{false, true} {
		w, x := mat.NewDense(m, n, nil), mat.NewDense(n, p, nil)
		for mu := range m {
			for i := range n {
				w.Set(mu, i, float64(rng.IntN(2)))
			}
			if !pixels {
				total := mat.Sum(w.RowView(mu))
				for i := 1; i < n; i++ {
					w.Set(mu, i, rng.NormFloat64())
				}
				w.Set(mu, 0, total)
			}
		}
		for k := range p {
			if pixels {
				for i := range n {
					x.Set(i, k, 1)
				}
			} else {
				x.Set(0, k, 1)
			}
			for range 4 {
				x.Set(1+rng.IntN(n-1), k, 0.5+rng.Float64())
			}
		}
		var y mat.Dense
		y.Mul(w, x)
		s := make([]float64, m)
		for mu := range m {
			s[mu] = 0.7 + 0.6*rng.Float64()
			for k := range p {
				y.Set(mu, k, (y.At(mu, k)+1e-3*rng.NormFloat64())/s[mu])
			}
		}
		fit := New(w, &y, false).Common()
		if fit == nil || fit.summed != pixels || !pixels && fit.common != 0 {
			t.Fatalf("pixels %v: the common mode is not found", pixels)
		}
		if _, err := fit.Learn(t.Context(), 200); err != nil {
			t.Fatal(err)
		}
		scale, off := floats.Sum(fit.S)/floats.Sum(s), 0.0
		for mu := range m {
			off = max(off, math.Abs(fit.S[mu]/(scale*s[mu])-1))
		}
		if off > 0.02 {
			t.Errorf("pixels %v: gains are off by up to %.2g", pixels, off)
		}
		fit.SetFields()
		for i := range fit.Entries() {
			for k := range p {
				if _, c, _, _ := fit.Entry(i, k); !(c >= 0) {
					t.Fatalf("entry %d: variance %g", i, c)
				}
			}
		}
	}
}
