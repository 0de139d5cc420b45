package joint

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/calamp/calamp/internal/tests"
	"github.com/calamp/calamp/prior"
)

// fields are those of rows of p values that are there in all or in none, drawn from a slab and seen with precisions of one shape.
func fields(rng *rand.Rand, n, p int, density, precision float64, draw func() float64) (f Field, x []float64) {
	b, a := make([]float64, p*p), make([]float64, p*p)
	for j := range b {
		b[j] = rng.NormFloat64()
	}
	for k := range p {
		a[k*p+k] = 1
		for l := range p {
			for j := range p {
				a[k*p+l] += b[k*p+j] * b[l*p+j] / float64(p)
			}
		}
	}
	shape, _, _ := NewShape(a, p, 1, 0)
	f = Field{Shape: shape, Size: make([]float64, n), Centre: make([]float64, n*p), Onward: make([]float64, n*p)}
	x = make([]float64, n*p)
	for i := range n {
		f.Size[i] = precision * float64(p) * math.Exp(rng.NormFloat64())
		there := rng.Float64() < density
		for k := range p {
			if there {
				x[k*n+i] = draw()
			}
			f.Centre[k*n+i] = x[k*n+i]
		}
		for l, v := range shape.Values {
			off := rng.NormFloat64() / math.Sqrt(f.Size[i]*v)
			for k := range p {
				f.Centre[k*n+i] += shape.Vectors[k*p+l] * off
			}
		}
	}
	return f, x
}

// Gaussian slabs are rows without correlations.
func TestSlabsAreExactWhereTheyAreGaussian(t *testing.T) {
	const n, p = 100, 5
	rng := rand.New(rand.NewPCG(3, 1))
	f, _ := fields(rng, n, p, 0.3, 30, func() float64 { return 0.4 + rng.NormFloat64() })
	for j := range f.Onward {
		f.Onward[j] = rng.NormFloat64()
	}
	r := NewRows(n, p, 2, Isotropic(p, 0.3, 0.4, 1))
	r.Update(f)
	want := *r
	want.X, want.C, want.Sum, want.Support = slices.Clone(r.X), slices.Clone(r.C), slices.Clone(r.Sum), slices.Clone(r.Support)
	want.LogMass, want.Pull, want.Square, want.Trace = slices.Clone(r.LogMass), slices.Clone(r.Pull), slices.Clone(r.Square), slices.Clone(r.Trace)
	gain := r.SeparateGain(prior.GaussBernoulli{Density: 1, SignalMean: 0.4, SignalVar: 1}, 0.4, 1)
	if math.Abs(gain) > 1e-8 {
		t.Errorf("a gain of %g, expected 0", gain)
	}
	r.SeparateGain(prior.GaussBernoulli{Density: 1, SignalMean: 0.4, SignalVar: 1}, 0.4, 1)
	for name, v := range map[string][2][]float64{
		"X": {r.X, want.X}, "C": {r.C, want.C}, "sum": {r.Sum, want.Sum}, "support": {r.Support, want.Support}, "evidence": {r.LogMass, want.LogMass},
		"pull": {r.Pull, want.Pull}, "square": {r.Square, want.Square}, "trace": {r.Trace, want.Trace},
	} {
		for j, w := range v[1] {
			if got := v[0][j]; !(math.Abs(got-w) <= 1e-9*(1+math.Abs(w))) {
				t.Fatalf("%s %d: %.12g, expected %.12g", name, j, got, w)
			}
		}
	}
}

// Positive, Laplace and mixed values are likelier than Gaussian ones by their fields, and have the errors that are stated; of mixtures, whose posterior may have two peaks, expectation propagation states 6 to 8 % less.
func TestSlabsOfOtherKinds(t *testing.T) {
	tests.Long(t)
	const n, p = 10000, 4
	for _, c := range []struct {
		name string
		of   prior.Prior
	}{
		{"positive", prior.NonNegative{Density: 1, SignalVar: 1}},
		{"Laplace", prior.Laplace{Density: 1, SignalVar: 1}},
		{"mixed", prior.Mixture{Components: []prior.Component{{Weight: 0.5, Var: 1}, {Weight: 0.5, Var: 0.01}}}},
	} {
		for _, precision := range []float64{1, 20} {
			rng := rand.New(rand.NewPCG(5, 2))
			f, x := fields(rng, n, p, 0.3, precision, func() float64 { return c.of.(prior.Sampler).Sample(rng) })
			r := NewRows(n, p, 2, Isotropic(p, 0.3, c.of.Mean(), c.of.Variance()))
			r.Update(f)
			gaussian, errors, stated := errorsOf(r.X, x), 0.0, 0.0
			if gain := r.SeparateGain(c.of, c.of.Mean(), c.of.Variance()); !(gain > 0) {
				t.Errorf("%s: a gain of %g", c.name, gain)
			}
			for range 3 {
				r.Update(f)
			}
			errors = errorsOf(r.X, x)
			for _, v := range r.C {
				stated += v
			}
			t.Logf("%s, precision %g: squared errors %.4g, stated %.4g, by Gaussian rows %.4g", c.name, precision, errors, stated, gaussian)
			if ratio := errors / stated; ratio < 0.95 || ratio > 1.08 || errors > gaussian {
				t.Errorf("%s, precision %g: squared errors are %.3f of those stated, and %.3f of those by Gaussian rows", c.name, precision, ratio, errors/gaussian)
			}
		}
	}
}

func errorsOf(a, b []float64) (total float64) {
	for i, v := range a {
		total += (v - b[i]) * (v - b[i])
	}
	return total
}
