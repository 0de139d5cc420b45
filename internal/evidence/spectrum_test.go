package evidence

import (
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/mat"
)

// lines are those of a scene whose spectrum falls as a power of the frequency in two dimensions, read by a row of overlapping pixels.
func lines(seed uint64, m, n, p int) (w, y *mat.Dense, s []float64, x *mat.Dense) {
	r := rand.New(rand.NewPCG(seed, 52))
	spectrum, across := mat.NewDense(n, p, nil), mat.NewDense(p, p, nil)
	spectrum.Apply(func(i, k int, _ float64) float64 {
		return r.NormFloat64() * math.Pow(1+math.Hypot(float64(i), float64(k)*float64(n)/float64(p)), -2.5)
	}, spectrum)
	across.Apply(func(k, l int, _ float64) float64 { return cosine(l, k, p) }, across)
	x, w = mat.NewDense(n, p, nil), mat.NewDense(m, n, nil)
	x.Mul(spectrum, across)
	w.Apply(func(mu, i int, _ float64) float64 {
		sum := 0.0
		for place := range n {
			if d := float64(mu)*float64(n)/float64(m) - float64(place); math.Abs(d) < 2 {
				sum += (2 - math.Abs(d)) * cosine(place, i, n)
			}
		}
		return sum
	}, w)
	y, s = readThrough(r, w, x, 1e-3)
	return w, y, s, x
}

// TestScanned: lines of a scene are found better with the spectrum of both directions than with one covariance for all entries, with which gains of two of five scenes are off by ten and twenty times what is stated. The evidence says so, but
// not of lines in another order.
func TestScanned(t *testing.T) {
	if testing.Short() {
		t.Skip("linear algebra, slow with the race detector")
	}
	const m, n, p = 72, 60, 16
	off, before := 0.0, 0.0
	for seed := range uint64(5) {
		w, y, s, x := lines(seed, m, n, p)
		placed := learned(t, learned(t, New(w, y, false), 150).Sized(true), 100)
		correlated, scanned := learned(t, placed.Correlate(), 100), learned(t, placed.Scanned(false), 100)
		if !scanned.Likelier(correlated) {
			t.Errorf("scene %d: lines of a scan are not likelier than correlated ones", seed)
		}
		was, _, _ := judge(t, correlated, s, x)
		gains, signals, deviation := judge(t, scanned, s, x)
		off, before = off+gains*gains, before+was*was
		t.Logf("scene %d: gains off by %.4f (with one covariance %.4f), signals %.4f, squares %.2f of those stated", seed, gains, was, signals, deviation)
		if deviation > 2 {
			t.Errorf("scene %d: squares of gains' errors are %.2f of those stated", seed, deviation)
		}
		r := rand.New(rand.NewPCG(seed, 53))
		order, mixed := r.Perm(p), mat.NewDense(m, p, nil)
		for k, from := range order {
			for mu := range m {
				mixed.Set(mu, k, y.At(mu, from))
			}
		}
		placed = learned(t, learned(t, New(w, mixed, false), 150).Sized(true), 100)
		if learned(t, placed.Scanned(false), 100).Likelier(learned(t, placed.Correlate(), 100)) {
			t.Errorf("scene %d: lines in another order are likelier as those of a scan", seed)
		}
	}
	if off > 0.5*before {
		t.Errorf("squares of gains' errors are %.3g, with one covariance %.3g", off, before)
	}
}

// TestSpectrumOfOneLaw: with a law that is the same for all frequencies across snapshots, turned snapshots have the evidence of those that are not, since U is orthogonal.
func TestSpectrumOfOneLaw(t *testing.T) {
	w, y, _, _ := lines(5, 40, 30, 6)
	placed := learned(t, learned(t, New(w, y, false), 150).Sized(true), 100)
	placed.followLaw()
	placed.exact = true
	scanned := placed.Scanned(false)
	scanned.exact, scanned.Smooth = true, placed.Smooth
	for _, f := range []*Fit{placed, scanned} {
		if err := f.Solve(); err != nil {
			t.Fatal(err)
		}
	}
	placed.setDetermined(placed.Sizes.determined)
	one, other := placed.Evidence+placed.sizesCost(placed.Sizes.determined), scanned.Evidence
	if math.Abs(one-other) > 1e-8*math.Abs(one) {
		t.Errorf("evidence %.12g, turned %.12g", one, other)
	}
}
