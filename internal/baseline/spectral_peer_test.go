package baseline

import (
	"context"
	"math"
	"math/cmplx"
	"slices"
)

// spectralSettled is the change of s, in its mean size, below which it has settled.
const spectralSettled = 1e-12

// Spectral is the spectral method of Y. Li, K. Lee and Y. Bresler, "Blind gain and phase calibration via sparse spectral methods" (IEEE
// Trans. Inf. Theory 65, 2019): signals X and calibration s are the null vector of the linear map
//
//	A(s, X) = sY - WX,
//
// that is the leading one of βI - AᴴA, which power iterations find; after each, all but the largest entries of every signal are set to zero.
// It is given how many those are; with as many as W has columns it is the smallest singular vector, blind least squares. It begins at start, or
// at 1 where that is nil, with the signals that matching pursuit finds there. It ends when s has settled, or after so many rounds. W is M×N, Y M×P with NaN where a reading is missing; s has the root mean
// square 1. The error is that of ctx, with what there is so far.
func Spectral(ctx context.Context, w, y Parts, entries, rounds int, start []complex128) (x Parts, s []complex128, err error) {
	m, n := w.Dims()
	_, p := y.Dims()
	readings, _ := y.present()
	loudest, total := 0.0, 0.0
	for mu := range m {
		power := 0.0
		for k := range p {
			power += square(readings.At(mu, k))
		}
		loudest, total = max(loudest, power), total+power
	}
	x, s = NewParts(n, p, w.Im != nil || y.Im != nil), slices.Repeat([]complex128{1}, m)
	if start != nil {
		copy(s, start)
	}
	normalize(s)
	if total == 0 || ctx.Err() != nil {
		return x, s, ctx.Err()
	}
	// Readings are divided by their mean size, and W by its norm, so that signals and s have steps of one size; β is then at least ‖A‖².
	unit, norm := math.Sqrt(total/float64(m)), math.Sqrt(largestSquare(w))
	beta := norm*norm + norm*norm*loudest/(unit*unit)
	readings.Apply(func(_, _ int, v complex128) complex128 { return v * complex(norm/unit, 0) })
	if x, err = pursue(ctx, w, readings.Clone().Apply(func(mu, _ int, v complex128) complex128 { return s[mu] * v }), 0, entries); err != nil {
		return x, s, err
	}
	for range rounds {
		if err = ctx.Err(); err != nil {
			break
		}
		residual := w.Mul(x)
		residual.Apply(func(mu, k int, z complex128) complex128 {
			if v := readings.At(mu, k); v != 0 {
				return s[mu]*v - z
			}
			return 0
		})
		up := w.MulH(residual)
		x.Apply(func(i, k int, v complex128) complex128 { return v + up.At(i, k)/complex(beta, 0) })
		keepLargest(x, entries)
		moved, was := 0.0, slices.Clone(s)
		for mu := range s {
			for k := range p {
				s[mu] -= cmplx.Conj(readings.At(mu, k)) * residual.At(mu, k) / complex(beta, 0)
			}
		}
		size := normalize(s)
		x.Apply(func(_, _ int, v complex128) complex128 { return v / complex(size, 0) })
		for mu := range s {
			moved = max(moved, cmplx.Abs(s[mu]-was[mu]))
		}
		if moved <= spectralSettled {
			break
		}
	}
	return x.Apply(func(_, _ int, v complex128) complex128 { return v * complex(unit/norm, 0) }), s, err
}

// keepLargest sets all but so many entries of each column to zero; of those that are equally large the first stay.
func keepLargest(x Parts, entries int) {
	n, p := x.Dims()
	if entries >= n {
		return
	}
	sizes := make([]float64, n)
	for k := range p {
		for i := range sizes {
			sizes[i] = square(x.At(i, k))
		}
		sorted := slices.Sorted(slices.Values(sizes))
		least, above := sorted[n-entries], 0
		for _, size := range sizes {
			if size > least {
				above++
			}
		}
		for i, size := range sizes {
			switch {
			case size > least:
			case size == least && above < entries:
				above++
			default:
				x.Set(i, k, 0)
			}
		}
	}
}

// normalize divides s by its root mean square, and returns that.
func normalize(s []complex128) float64 {
	size := 0.0
	for _, v := range s {
		size += square(v)
	}
	size = math.Sqrt(size / float64(len(s)))
	for mu := range s {
		s[mu] /= complex(size, 0)
	}
	return size
}
