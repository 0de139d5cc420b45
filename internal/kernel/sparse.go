package kernel

import "github.com/calamp/calamp/internal/simd"

// Lanes is how many signals the loops over a sparse row take at a time. Entry i of them
// is a line: x[i*Lanes:] for linear products, and x[i*2*Lanes:] where their squares are
// needed as well, with the linear lanes first. So an entry's line is read at once.
const Lanes = 4

// SparseDot sets z to the product of a row, the entries w in the given columns, with the
// lines of x.
func SparseDot[T Entry](w []T, columns []int32, x []float64, z *[Lanes]float64) {
	if active != simd.Go && len(w) > 0 {
		sparseDot(w, columns[:len(w)], x, z)
		return
	}
	plainSparseDot(w, columns, x, z)
}

// SparseDotBoth sets the first lanes of z to the product with the row, and the others
// to that with its squares.
func SparseDotBoth[T Entry](w []T, columns []int32, x []float64, z *[2 * Lanes]float64) {
	if active != simd.Go && len(w) > 0 {
		sparseDotBoth(w, columns[:len(w)], x, z)
		return
	}
	plainSparseDotBoth(w, columns, x, z)
}

// SparseAxpy adds the row times g to the lines of r.
func SparseAxpy[T Entry](w []T, columns []int32, r []float64, g *[Lanes]float64) {
	if active != simd.Go && len(w) > 0 {
		sparseAxpy(w, columns[:len(w)], r, g)
		return
	}
	plainSparseAxpy(w, columns, r, g)
}

// SparseAxpyBoth adds the row times the first lanes of g, and its squares times the
// others.
func SparseAxpyBoth[T Entry](w []T, columns []int32, r []float64, g *[2 * Lanes]float64) {
	if active != simd.Go && len(w) > 0 {
		sparseAxpyBoth(w, columns[:len(w)], r, g)
		return
	}
	plainSparseAxpyBoth(w, columns, r, g)
}

func plainSparseDot[T Entry](w []T, columns []int32, x []float64, z *[Lanes]float64) {
	*z = [Lanes]float64{}
	for j, column := range columns[:len(w)] {
		e, line := float64(w[j]), (*[Lanes]float64)(x[int(column)*Lanes:])
		for k, v := range line {
			z[k] += float64(e * v)
		}
	}
}

func plainSparseDotBoth[T Entry](w []T, columns []int32, x []float64, z *[2 * Lanes]float64) {
	*z = [2 * Lanes]float64{}
	for j, column := range columns[:len(w)] {
		e, line := float64(w[j]), (*[2 * Lanes]float64)(x[int(column)*2*Lanes:])
		for k := range Lanes {
			z[k] += float64(e * line[k])
			z[Lanes+k] += float64(e * e * line[Lanes+k])
		}
	}
}

func plainSparseAxpy[T Entry](w []T, columns []int32, r []float64, g *[Lanes]float64) {
	for j, column := range columns[:len(w)] {
		e, line := float64(w[j]), (*[Lanes]float64)(r[int(column)*Lanes:])
		for k, v := range g {
			line[k] += float64(e * v)
		}
	}
}

func plainSparseAxpyBoth[T Entry](w []T, columns []int32, r []float64, g *[2 * Lanes]float64) {
	for j, column := range columns[:len(w)] {
		e, line := float64(w[j]), (*[2 * Lanes]float64)(r[int(column)*2*Lanes:])
		for k := range Lanes {
			line[k] += float64(e * g[k])
			line[Lanes+k] += float64(e * e * g[Lanes+k])
		}
	}
}
