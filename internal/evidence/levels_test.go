package evidence

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/calamp/calamp/internal/tests"
)

// stick makes sensors read a level of their own, with noise of a hundredth of the readings.
func stick(r *rand.Rand, y *mat.Dense, sensors ...int) {
	_, p := y.Dims()
	size := mat.Norm(y, 2) / math.Sqrt(float64(len(y.RawMatrix().Data)))
	for _, mu := range sensors {
		level := size * r.NormFloat64()
		for k := range p {
			y.Set(mu, k, level+0.01*size*r.NormFloat64())
		}
	}
}

// TestLevelsAreFound has smooth signals, of which free variances explain anything, and sensors that are stuck.
func TestLevelsAreFound(t *testing.T) {
	tests.Long(t)
	stuck := []int{7, 23, 24, 51}
	for seed := range uint64(6) {
		w, y, _, _ := overlapping(seed, 60, 80, 8, 50)
		stick(rand.New(rand.NewPCG(seed, 1)), y, stuck...)
		f := learned(t, New(w, y, false), 300)
		for left := f.WithLevels(); left != nil; left = f.WithLevels() {
			if learned(t, left, 300); !left.Likelier(f) {
				break
			}
			f = left
		}
		if f.Levels == nil {
			t.Errorf("seed %d: none are found", seed)
			continue
		}
		if found := slices.Sorted(slices.Values(f.Levels.Sensors)); !slices.Equal(found, stuck) {
			t.Errorf("seed %d: found %v, not %v", seed, found, stuck)
		}
	}
}

// TestLevelsOfSensorsInOrder are none, of smooth signals, and of images, whose first entry is much the same in all snapshots.
func TestLevelsOfSensorsInOrder(t *testing.T) {
	tests.Long(t)
	for seed := range uint64(6) {
		w, y, _, _ := overlapping(seed, 60, 80, 8, 50)
		images, read, _, _ := image(seed, 100, 12, 4)
		for _, f := range []*Fit{New(w, y, false), New(images, read, false)} {
			if left := learned(t, f, 300).WithLevels(); left != nil && learned(t, left, 300).Likelier(f) {
				t.Errorf("seed %d: %v are taken for sensors that read a level of their own", seed, left.Levels.Sensors)
			}
		}
	}
}

// TestLevelsAreTakenBack: sensors in order that were left out with stuck ones, whose readings had spoiled what was expected of them, are asked again without these.
func TestLevelsAreTakenBack(t *testing.T) {
	stuck, inOrder := []int{7, 23, 24, 51}, []int{6, 25}
	for seed := range uint64(4) {
		w, y, _, _ := overlapping(seed, 60, 40, 8, 50)
		stick(rand.New(rand.NewPCG(seed, 1)), y, stuck...)
		left, out := mat.DenseCopyOf(y), &Levels{}
		for _, mu := range slices.Concat(stuck, inOrder) {
			out.add(mu, y.RawRowView(mu))
			for k := range 8 {
				left.Set(mu, k, math.NaN())
			}
		}
		f := New(w, left, false)
		f.Levels = out
		next := learned(t, f, 300).WithLevels()
		if next == nil || !slices.Equal(next.Levels.Sensors, stuck) {
			t.Fatalf("seed %d: not without %v alone", seed, stuck)
		}
		for _, mu := range inOrder {
			if next.readings[mu] != 8 {
				t.Errorf("seed %d: sensor %d has %g readings", seed, mu, next.readings[mu])
			}
		}
		if learned(t, next, 300); next.WithLevels() != nil {
			t.Errorf("seed %d: others than those are taken for stuck", seed)
		}
	}
}
