package evidence

import (
	"math"

	"gonum.org/v1/gonum/mat"
)

// Alone are sensors that see one entry, which no other sensor sees: the first row of a Hadamard matrix and the mean of a scene. Their readings s y = w x + noise say nothing of the gain, and a prior of the entry would set it: a law of variances
// from which a mean is far took such gains to a hundredth. The fit has neither their readings nor these entries. The gain is what the distribution of the others makes it, and the entry s y/w.
type Alone struct {
	by      map[int]sight // of an entry
	entries map[int]int   // of a sensor
	read    *mat.Dense    // M×P, all readings
}

// sight is how a sensor sees an entry.
type sight struct {
	sensor int
	weight float64
}

// mostAlone is the part of the sensors above which W is diagonal, in the main, and the problem another one.
const mostAlone = 0.5

// setAlone takes out of W and the readings what a sensor alone sees; both stay as they are where there is no such sensor.
func setAlone(w, y *mat.Dense) (*Alone, *mat.Dense, *mat.Dense) {
	m, n := w.Dims()
	inRow, inColumn := make([]int, m), make([]int, n)
	eachWeight(w, func(mu, i int, _ float64) {
		inRow[mu]++
		inColumn[i]++
	})
	alone := &Alone{by: map[int]sight{}, entries: map[int]int{}, read: y}
	eachWeight(w, func(mu, i int, v float64) {
		if inRow[mu] == 1 && inColumn[i] == 1 {
			alone.by[i], alone.entries[mu] = sight{mu, v}, i
		}
	})
	if count := len(alone.by); count == 0 || float64(count) > mostAlone*float64(m) {
		return nil, w, y
	}
	w, y = mat.DenseCopyOf(w), mat.DenseCopyOf(y)
	for i, at := range alone.by {
		w.Set(at.sensor, i, 0)
		for k := range y.RawRowView(at.sensor) {
			y.Set(at.sensor, k, math.NaN())
		}
	}
	return alone, w, y
}

// eachWeight visits what is more than rounding of W.
func eachWeight(w *mat.Dense, visit func(mu, i int, v float64)) {
	most := math.Max(mat.Max(w), -mat.Min(w))
	for mu := range w.RawMatrix().Rows {
		for i, v := range w.RawRowView(mu) {
			if math.Abs(v) > math.Sqrt(unseen)*most {
				visit(mu, i, v)
			}
		}
	}
}

// aloneEntry is the posterior mean and variance of an entry that a sensor alone sees; false for others.
func (f *Fit) aloneEntry(i, k int) (x, c float64, is bool) {
	if f.Alone == nil {
		return 0, 0, false
	}
	at, is := f.Alone.by[i]
	if !is || math.IsNaN(f.Alone.read.At(at.sensor, k)) {
		return 0, 0, false
	}
	perGain, noise := f.Alone.read.At(at.sensor, k)/at.weight, f.Noise
	if f.Offsets != nil {
		noise += f.Offsets.SD * f.Offsets.SD
	}
	return f.S[at.sensor] * perGain, perGain*perGain*f.Spread*f.Spread + noise/(at.weight*at.weight), true
}

// PredictedAlone is what a sensor that alone sees an entry reads of it, s y, and its variance without noise; false for others.
func (f *Fit) PredictedAlone(mu, k int) (z, variance float64, is bool) {
	if f.Alone == nil {
		return 0, 0, false
	}
	i, is := f.Alone.entries[mu]
	if !is {
		return 0, 0, false
	}
	x, c, is := f.aloneEntry(i, k)
	weight := f.Alone.by[i].weight
	return weight * x, weight*weight*c - f.Noise, is
}
