package evidence

import (
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"github.com/calamp/calamp/internal/tests"
)

// behindBlur is [tests.BehindBlur] of 120 pixels.
func behindBlur(seed uint64, p int, gain func(r *rand.Rand, u float64) float64) (w, y *mat.Dense, s []float64) {
	w, _, y, s = tests.BehindBlur(rand.New(rand.NewPCG(seed, 3)), 120, p, gain)
	return w, y, s
}

// TestSmoothGains: with white gains a scene takes a smooth factor, and error bars know nothing of that. Where gains are white nothing changes. The evidence is hardly larger with either prior here, and where the white
// one is taken its error bars contain what both differ by.
func TestSmoothGains(t *testing.T) {
	white := func(r *rand.Rand, _ float64) float64 { return 1 + 0.1*r.NormFloat64() }
	for seed := range uint64(4) {
		for name, gain := range map[string]func(*rand.Rand, float64) float64{"vignetting": tests.Vignetting, "white": white} {
			w, y, s := behindBlur(seed, 10, gain)
			fit, plain := New(w, y, false), New(w, y, false)
			plain.Smooth = nil
			off, ratio := offAndRatio(t, learned(t, fit, 300), s)
			before, without := offAndRatio(t, learned(t, plain, 300), s)
			t.Logf("%s: gains off by %.3g, squared errors %.3g of those stated, part %.3g; white %.3g, %.3g", name, off, ratio, fit.Smooth.Part, before, without)
			most := 1.5 * before
			if name == "vignetting" {
				most = 0.5 * before
			}
			if off > most || ratio > 4 {
				t.Errorf("%s: gains off by %.3g, squared errors %.3g of those stated; white gains %.3g", name, off, ratio, before)
			}
			apart, _, err := fit.Whiten(t.Context())
			if err != nil || apart == nil || fit.Smooth != nil {
				t.Fatalf("%s: the smooth part stays, %v", name, err)
			}
			off, ratio = offAndRatio(t, fit, s)
			variances, err := fit.Variances()
			if err != nil {
				t.Fatal(err)
			}
			if ratio /= 1 + floats.Sum(apart)/floats.Sum(variances); ratio > 4 {
				t.Errorf("%s: white gains off by %.3g, squared errors %.3g of those stated", name, off, ratio)
			}
		}
	}
}

// TestSurelySmoothGains: of forty scenes the smooth part stays.
func TestSurelySmoothGains(t *testing.T) {
	w, y, s := behindBlur(1, 40, tests.Vignetting)
	fit := learned(t, New(w, y, false), 300)
	if apart, _, err := fit.Whiten(t.Context()); err != nil || apart != nil || fit.Smooth == nil {
		t.Fatalf("the smooth part is taken away, %v", err)
	}
	if off, ratio := offAndRatio(t, fit, s); off > 0.03 || ratio > 2 {
		t.Errorf("gains off by %.3g, squared errors %.3g of those stated", off, ratio)
	}
}

// offAndRatio is the relative error of gains at their common scale, and their mean squared error beside the variances that are stated.
func offAndRatio(t *testing.T, f *Fit, s []float64) (off, ratio float64) {
	variances, err := f.Variances()
	if err != nil {
		t.Fatal(err)
	}
	unit, square := floats.Sum(s)/floats.Sum(f.S), 0.0
	for mu, v := range f.S {
		square += (unit*v - s[mu]) * (unit*v - s[mu])
	}
	return math.Sqrt(square / floats.Dot(s, s)), square / (unit * unit * floats.Sum(variances))
}

// TestPriorOfSmoothGains compares the inverse and the determinant with those of the covariance itself, and the slope and precision of the evidence with differences of its values.
func TestPriorOfSmoothGains(t *testing.T) {
	const m = 40
	prior := newSmooth(m).with(0.9)
	k := mat.NewSymDense(m, nil)
	for i := range m {
		for j := range i + 1 {
			for l, power := range prior.powers {
				k.SetSym(i, j, k.At(i, j)+prior.Part*power*prior.waves.At(i, l)*prior.waves.At(j, l))
			}
		}
		k.SetSym(i, i, k.At(i, i)+1-prior.Part)
	}
	if trace := mat.Trace(k); math.Abs(trace-m) > 1e-9 {
		t.Errorf("mean variance %.12g, expected 1", trace/m)
	}
	var product mat.Dense
	product.Mul(k, mat.NewDense(m, m, prior.inverse.Data))
	for i := range m {
		product.Set(i, i, product.At(i, i)-1)
	}
	if off := mat.Max(absolute(&product)); off > 1e-10 {
		t.Errorf("the inverse is off by %.2g", off)
	}
	if log, _ := mat.LogDet(k); math.Abs(log-prior.logDet) > 1e-9 {
		t.Errorf("log det %.12g, expected %.12g", prior.logDet, log)
	}
	w, y, _ := behindBlur(1, 10, func(*rand.Rand, float64) float64 { return 1 })
	f := New(w, y, false)
	f.Smooth, f.Spread, f.exact = newSmooth(len(f.S)), 0.2, true
	if err := f.Solve(); err != nil {
		t.Fatal(err)
	}
	slope := make([]float64, len(f.S))
	f.setGradient(slope)
	if steep := floats.Norm(slope, math.Inf(1)); steep > 1e-3 {
		t.Errorf("slope %.2g at the maximum", steep)
	}
	f.precisionInto(f.curved)
	const h = 1e-4
	at := func(by float64) float64 { f.S[7] += by; defer func() { f.S[7] -= by }(); return f.gainValue(f.S) }
	want := -(at(h) - 2*at(0) + at(-h)) / (h * h)
	if got := f.curved.At(7, 7); math.Abs(got-want) > 1e-3*want {
		t.Errorf("precision %.8g, from differences %.8g", got, want)
	}
}
