package evidence

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"gonum.org/v1/gonum/mat"
)

// spike makes a part of the readings normal numbers of three times their size.
func spike(r *rand.Rand, y *mat.Dense, part float64) (at [][2]int) {
	m, p := y.Dims()
	size := 3 * mat.Norm(y, 2) / math.Sqrt(float64(m*p))
	for mu := range m {
		for k := range p {
			if r.Float64() < part {
				y.Set(mu, k, size*r.NormFloat64())
				at = append(at, [2]int{mu, k})
			}
		}
	}
	return at
}

// leavingOut leaves out outliers, and sensors that read a level of their own, for as long as the evidence rises.
func leavingOut(t *testing.T, f *Fit) *Fit {
	for {
		var left *Fit
		if seen, others := f.OutliersSeen(true); others {
			left = f.LeavingOut(seen)
		} else if left = f.WithLevels(); left == nil {
			return f
		}
		if !learned(t, left, 300).Likelier(f) {
			return f
		}
		f = left
	}
}

// TestOutliersAreFound has images behind random masks, of which one reading of a hundred is wrong. Nearly all are found, no others are left out, and gains are off by no more than twice as much as those without any.
func TestOutliersAreFound(t *testing.T) {
	for seed := range uint64(2) {
		w, y, s, _ := image(seed, 150, 12, 12)
		without := offBy(learned(t, New(w, mat.DenseCopyOf(y), false), 300).S, s)
		wrong := spike(rand.New(rand.NewPCG(seed, 1)), y, 0.01)
		all := learned(t, New(w, y, false), 300)
		f := leavingOut(t, all)
		if f.Outliers == nil {
			t.Fatalf("seed %d: none of %d is found", seed, len(wrong))
		}
		found := 0
		for _, at := range wrong {
			if slices.Contains(f.Outliers.At, at) {
				found++
			}
		}
		t.Logf("seed %d: found %d of %d, and %d others; gains off by %.4f, %.4f with all, %.4f without any", seed, found, len(wrong), len(f.Outliers.At)-found, offBy(f.S, s), offBy(all.S, s), without)
		if found < len(wrong)-1 || len(f.Outliers.At) > found {
			t.Errorf("seed %d: found %d of %d, and %d others", seed, found, len(wrong), len(f.Outliers.At)-found)
		}
		if off := offBy(f.S, s); off > 2*without {
			t.Errorf("seed %d: gains are off by %.3g, by %.3g without outliers", seed, off, without)
		}
	}
}

// TestNoOutliers has readings in order.
func TestNoOutliers(t *testing.T) {
	for seed := range uint64(2) {
		w, y, _, _ := overlapping(seed, 60, 80, 8, 50)
		images, read, _, _ := image(seed, 100, 12, 4)
		for _, f := range []*Fit{New(w, y, false), New(images, read, false)} {
			if f = leavingOut(t, learned(t, f, 300)); f.Outliers != nil {
				t.Errorf("seed %d: %v are taken for outliers", seed, f.Outliers.At)
			}
		}
	}
}
