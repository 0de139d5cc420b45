package evidence

import (
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat"
)

// TestShifts begins a fit of sparse scenes behind masks of 0 and 1, in a basis of ±1, at gains that are off as if an entry of all scenes was: sites settle there, a shift finds the gains, and
// the evidence tells that they are right.
func TestShifts(t *testing.T) {
	if testing.Short() {
		t.Skip("numbers, which take many times as long with the race detector")
	}
	const m, n, p, noise, off, moved = 64, 64, 12, 1e-3, 0.02, 5
	r := rand.New(rand.NewPCG(3, 1))
	masks, w, x, y := mat.NewDense(m, n, nil), mat.NewDense(m, n, nil), mat.NewDense(n, p, nil), mat.NewDense(m, p, nil)
	masks.Apply(func(_, _ int, _ float64) float64 { return float64(r.IntN(2)) }, masks)
	w.Apply(func(mu, i int, _ float64) (sum float64) { // of masks and Walsh functions
		for pixel := range n {
			sum += masks.At(mu, pixel) * walsh(i, pixel) / math.Sqrt(n)
		}
		return sum
	}, w)
	x.Apply(func(i, _ int, _ float64) float64 {
		switch {
		case i == 0:
			return 8 + r.Float64()
		case r.Float64() < 0.15:
			return r.NormFloat64()
		}
		return 0
	}, x)
	y.Mul(w, x)
	gains := make([]float64, m)
	for mu := range m {
		gains[mu] = 0.8 + 0.4*r.Float64()
		for k := range p {
			y.Set(mu, k, (y.At(mu, k)+noise*r.NormFloat64())/gains[mu])
		}
	}
	common := learned(t, New(w, y, false), 200).Common()
	if common == nil || !common.HasColumnInCommon() {
		t.Fatal("no column in common")
	}
	common = learned(t, common, 200)
	right := learned(t, common.Sparsely(false, gains, mostSites), mostSites)
	fit := common.SparselyAs(right, right, mostSites)
	for k := range p {
		fit.Sparse.location.Set(moved, k, fit.Sparse.location.At(moved, k)+off*right.X.At(0, k))
	}
	for mu := range fit.S {
		fit.S[mu] *= 1 + off*w.At(mu, moved)/w.At(mu, 0)
	}
	fit = learned(t, fit, mostSites)
	shifted := fit.Shifted(common, mostSites)
	if shifted == nil {
		t.Fatalf("nothing was shifted, gains are off by %.2g", offBy(fit.S, gains))
	}
	shifted = learned(t, shifted, mostSites)
	if was, is := offBy(fit.S, gains), offBy(shifted.S, gains); is > was/4 || !shifted.Likelier(fit) {
		t.Errorf("gains off by %.2g, and %.2g after a shift", was, is)
	}
	if again := shifted.Shifted(common, mostSites); again != nil {
		t.Error("gains that are right were shifted")
	}
}

// walsh is ±1.
func walsh(i, pixel int) float64 {
	sign := 1.0
	for both := i & pixel; both > 0; both &= both - 1 {
		sign = -sign
	}
	return sign
}

// offBy is the relative standard deviation of s over the truth.
func offBy(s, truth []float64) float64 {
	ratios := make([]float64, len(s))
	for mu := range s {
		ratios[mu] = s[mu] / truth[mu]
	}
	mean, sd := stat.PopMeanStdDev(ratios, nil)
	return sd / mean
}
