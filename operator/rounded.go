package operator

import (
	"github.com/calamp/calamp/internal/kernel"
	"github.com/calamp/calamp/internal/parallel"
)

// roundedAtOnce entries are rounded by one thread at a time.
const roundedAtOnce = 1 << 18

// Rounded implements [Rounder]. The rounded matrix takes half the memory, and half the
// time to read. It is made once, for all runs.
func (d *Dense) Rounded(threads int) (single Stored, lost float64) {
	if d.f32 != nil {
		return d, 0
	}
	d.rounding.Do(func() { d.single, d.lost = d.rounded(threads) })
	rounded, lost := d.single, d.lost/(float64(d.m)*float64(d.n))
	if !(lost < d.meanSquare) { // an entry became infinite, or all became zero
		return nil, lost
	}
	return rounded, lost
}

// rounded is d with its entries rounded, and the sum of the squares of the errors.
func (d *Dense) rounded(threads int) (single *Dense, lost float64) {
	from := d.f64.Data // padding is rounded to itself
	to := kernel.NewMatrix[float32](d.f64.Shape)
	sums := make([]float64, (len(from)+roundedAtOnce-1)/roundedAtOnce)
	parallel.Run(len(sums), threads, func(i int) {
		first, end := i*roundedAtOnce, min((i+1)*roundedAtOnce, len(from))
		sums[i] = round(to.Data[first:end], from[first:end])
	})
	for _, sum := range sums {
		lost += sum
	}
	return &Dense{m: d.m, n: d.n, f32: to, summary: d.summary}, lost
}

// round sets to to from, a multiple of four entries, and returns the sum of the squares of the errors.
func round(to []float32, from []float64) (lost float64) {
	var sums [4]float64 // of neighbours, none of which waits for another
	for i := 0; i < len(from); i += len(sums) {
		w, v := (*[len(sums)]float32)(to[i:]), (*[len(sums)]float64)(from[i:])
		for j := range sums {
			w[j] = float32(v[j])
			off := float64(w[j]) - v[j]
			sums[j] += off * off
		}
	}
	for _, sum := range sums {
		lost += sum
	}
	return lost
}
