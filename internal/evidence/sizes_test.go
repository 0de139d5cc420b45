package evidence

import (
	"context"
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"github.com/calamp/calamp/internal/tests"
)

// overlapping is a problem whose columns of W, and entries, fall by a decade in every so many columns: a spectrometer of overlapping bands in cosines.
func overlapping(seed uint64, m, n, p int, decade float64) (w, y *mat.Dense, s []float64, x *mat.Dense) {
	r := rand.New(rand.NewPCG(seed, 0))
	w, x = mat.NewDense(m, n, nil), mat.NewDense(n, p, nil)
	fall := func(i int) float64 { return math.Pow(10, -float64(i)/decade) }
	w.Apply(func(_, i int, _ float64) float64 { return fall(i) * r.NormFloat64() }, w)
	x.Apply(func(i, _ int, _ float64) float64 { return fall(i) * r.NormFloat64() }, x)
	y, s = readThrough(r, w, x, 1e-3)
	return w, y, s, x
}

// TestSizesFollowColumns compares free variances with those of the line: signals that decay have half of the errors, and the evidence says so.
func TestSizesFollowColumns(t *testing.T) {
	tests.Long(t)
	for seed := range uint64(4) {
		w, y, s, x := overlapping(seed, 60, 80, 8, 50)
		free := learned(t, New(w, y, false), 300)
		sized := free.Sized(false)
		if sized == nil {
			t.Fatal("columns are unequal, and sizes were not tried")
		}
		learned(t, sized, mostSized)
		if !sized.Likelier(free) {
			t.Error("free variances are likelier")
		}
		if slope := sized.Sizes.Law[1]; math.Abs(slope-1) > 0.25 { // of log Γ in log |w|²: both fall together
			t.Errorf("slope %.3g, not 1", slope)
		}
		off := func(f *Fit) float64 {
			f.Rescale(floats.Sum(s) / floats.Sum(f.S))
			total, scale := 0.0, 0.0
			for mu := range s {
				total += math.Pow(math.Log(f.S[mu]/s[mu]), 2)
			}
			var d mat.Dense
			d.Sub(f.X, x)
			scale = mat.Norm(x, 2)
			t.Logf("seed %d: gains off by %.3g, signals by %.3g", seed, math.Sqrt(total/float64(len(s))), mat.Norm(&d, 2)/scale)
			return mat.Norm(&d, 2) / scale
		}
		if own, frees := off(sized), off(free); !(own < frees) {
			t.Errorf("signals are off by %.3g, with free variances by %.3g", own, frees)
		}
	}
}

// TestSizesCover counts how many entries are within 1.96 stated standard deviations, with variances and gains integrated out.
func TestSizesCover(t *testing.T) {
	tests.Long(t)
	inside, count := 0.0, 0.0
	for seed := range uint64(8) {
		w, y, s, x := overlapping(100+seed, 60, 80, 8, 50)
		free := learned(t, New(w, y, false), 300)
		f := learned(t, free.Sized(false), mostSized)
		f.Rescale(floats.Sum(s) / floats.Sum(f.S))
		f.SetFields()
		variances, err := f.Variances()
		if err != nil {
			t.Fatal(err)
		}
		f.Integrate(variances)
		for i := range 80 {
			for k := range 8 {
				if math.Abs(f.X.At(i, k)-x.At(i, k)) < 1.96*math.Sqrt(f.C.At(i, k)) {
					inside++
				}
				count++
			}
		}
	}
	if share := inside / count; share < 0.92 || share > 0.98 {
		t.Errorf("%.3g of the entries are inside of 95 %% intervals", share)
	} else {
		t.Logf("%.3g inside", share)
	}
}

// TestSizesOfEqualColumns are not tried.
func TestSizesOfEqualColumns(t *testing.T) {
	w, y, _, _ := overlapping(1, 60, 80, 8, 1e3)
	f := learned(t, New(w, y, false), 300)
	if f.Sized(false) != nil || f.Sized(true) != nil {
		t.Error("columns are equal")
	}
}

// image is a problem of random masks on images of side×side whose coefficients fall as a power of their frequency, in any case the first.
func image(seed uint64, m, side, p int) (w, y *mat.Dense, s []float64, x *mat.Dense) {
	r := rand.New(rand.NewPCG(seed, 0))
	w, x = mat.NewDense(m, side*side, nil), mat.NewDense(side*side, p, nil)
	w.Apply(func(_, _ int, _ float64) float64 { return r.NormFloat64() }, w)
	x.Apply(func(i, _ int, _ float64) float64 {
		return math.Pow(1+math.Hypot(float64(i%side), float64(i/side)), -2) * r.NormFloat64()
	}, x)
	y, s = readThrough(r, w, x, 1e-3)
	return w, y, s, x
}

// TestSizesFollowPlaces compares free variances with those of a power law of frequency, which is found with its grid: gains are known better, and as well as is stated.
func TestSizesFollowPlaces(t *testing.T) {
	tests.Long(t)
	const seeds, side, m = 6, 12, 100
	squares := 0.0
	for seed := range uint64(seeds) {
		w, y, s, _ := image(seed, m, side, 4)
		free := learned(t, New(w, y, false), 300)
		f := free.Sized(true)
		if f == nil {
			t.Fatal("coefficients fall, and no law was found")
		}
		learned(t, f, mostSized)
		if !f.Likelier(free) {
			t.Error("free variances are likelier")
		}
		if law := f.Sizes.Law; len(law) != 3 || math.Abs(law[2]+4) > 1 {
			t.Errorf("the law is %.3g, not one of three coefficients with the power -4", law)
		}
		off := func(f *Fit) (square float64) {
			f.Rescale(floats.Sum(s) / floats.Sum(f.S))
			for mu := range s {
				square += (f.S[mu] - s[mu]) * (f.S[mu] - s[mu])
			}
			return square
		}
		if own, frees := off(f), off(free); !(own < frees) {
			t.Errorf("gains are off by %.3g, with free variances by %.3g", math.Sqrt(own/m), math.Sqrt(frees/m))
		}
		variances, err := f.Variances()
		if err != nil {
			t.Fatal(err)
		}
		squares += off(f) / floats.Sum(variances) / seeds
	}
	if squares < 0.7 || squares > 1.4 {
		t.Errorf("gains are off by %.3g of what is stated (squares)", squares)
	} else {
		t.Logf("gains are off by %.3g of what is stated (squares)", squares)
	}
}

// TestOverfull is a sparse prior with as many entries and gains as there are readings, and no noise: it is no answer.
func TestOverfull(t *testing.T) {
	w, y, _, _ := overlapping(1, 60, 80, 8, 1e3)
	f := learned(t, New(w, y, false), 50)
	f.Sparse, f.Noise = &Sparse{Weight: []float64{0.2, 0.8}}, 0
	if !f.overfull() {
		t.Error("64 entries of 80, for 60 readings, without noise")
	}
	f.Sparse.Weight = []float64{0.32, 0.68}
	if !f.overfull() {
		t.Error("54 entries of 80, and gains, for 60 readings of 8 snapshots")
	}
	f.Sparse.Weight = []float64{0.5, 0.5}
	if f.overfull() {
		t.Error("40 entries are fewer than 60 readings")
	}
}

// TestSizesOfFewSnapshots: with three snapshots hardly more readings are there than unknowns, and gains and variances, which are integrated out, take most of what is left for noise. It is found nevertheless, and the fit ends.
func TestSizesOfFewSnapshots(t *testing.T) {
	log, count := 0.0, 0.0
	for seed := range uint64(8) {
		w, y, s, x := overlapping(seed, 60, 80, 3, 20)
		var z mat.Dense
		z.Mul(w, x)
		noise := 1e-6 * math.Pow(mat.Norm(&z, 2), 2) / (60 * 3)
		f := learned(t, New(w, y, false), 300).Sized(false)
		steps, err := f.Learn(context.Background(), mostSized)
		if err != nil {
			t.Fatal(err)
		}
		f.Rescale(floats.Sum(s) / floats.Sum(f.S))
		if t.Logf("seed %d: %d steps, noise %.3g of the true one", seed, steps, f.Noise/noise); steps == mostSized {
			t.Errorf("seed %d: the fit has not ended", seed)
		}
		log, count = log+math.Log(f.Noise/noise), count+1
	}
	if ratio := math.Exp(log / count); ratio < 0.7 || ratio > 1.4 {
		t.Errorf("noise is %.3g of the true one on average", ratio)
	}
}
