package kernel

import "unsafe"

// The kernels in plain Go. Blocks are taken as pointers to arrays, which avoids bounds
// checks. The explicit conversion of products keeps the compiler from fusing them with
// additions: the bits are the same on every architecture.

// plain is for one signal at a time. With more, the compiler runs out of registers.
func plain[T Entry, V Value]() *Set[T, V] {
	return &Set[T, V]{
		ForwardOne: forwardOne[T, V], ForwardOneLinear: forwardOneLinear[T, V],
		BackwardOne: backwardOne[T, V], BackwardOneLinear: backwardOneLinear[T, V],
		Dot: []Dot[T, V]{nil, dot[T, V]}, DotSquares: []Dot[T, V]{nil, dotSquares[T, V]},
		Axpy: []Axpy[T, V]{nil, axpy[T, V]}, AxpySquares: []Axpy[T, V]{nil, axpySquares[T, V]},
	}
}

func forwardOne[T Entry, V Value](w []T, blocks int, x, c []V, z, v []float64) {
	forwardOneLinear(w, blocks, x, z)
	clear(v[:Rows])
	dotSquares(w, 1, 0, blocks, c, Columns, v, 0)
}

func forwardOneLinear[T Entry, V Value](w []T, blocks int, x []V, z []float64) {
	clear(z[:Rows])
	dot(w, 1, 0, blocks, x, Columns, z, 0)
}

func backwardOne[T Entry, V Value](w []T, blocks int, r, h, g, d []V) {
	backwardOneLinear(w, blocks, r, g)
	axpySquares(w, 1, 0, blocks, d, 1, h, Columns)
}

func backwardOneLinear[T Entry, V Value](w []T, blocks int, r, g []V) {
	axpy(w, 1, 0, blocks, g, 1, r, Columns)
}

func dot[T Entry, V Value](w []T, panels, panelStep, blocks int, x []V, xStep int, z []float64, zStep int) {
	for a := range panels {
		var z0, z1, z2, z3 V
		for b := range blocks {
			e := (*[blockSize]T)(w[a*panelStep+b*blockSize:])
			xs := (*[Columns]V)(x[b*xStep:])
			for i, x := range xs {
				z0 += V(V(e[i]) * x)
				z1 += V(V(e[i+Columns]) * x)
				z2 += V(V(e[i+2*Columns]) * x)
				z3 += V(V(e[i+3*Columns]) * x)
			}
			if single[V]() { // a short run
				addRows(z[a*zStep:], z0, z1, z2, z3)
				z0, z1, z2, z3 = 0, 0, 0, 0
			}
		}
		addRows(z[a*zStep:], z0, z1, z2, z3)
	}
}

func dotSquares[T Entry, V Value](w []T, panels, panelStep, blocks int, x []V, xStep int, z []float64, zStep int) {
	for a := range panels {
		var z0, z1, z2, z3 V
		for b := range blocks {
			e := (*[blockSize]T)(w[a*panelStep+b*blockSize:])
			xs := (*[Columns]V)(x[b*xStep:])
			for i, x := range xs {
				e0, e1, e2, e3 := V(e[i]), V(e[i+Columns]), V(e[i+2*Columns]), V(e[i+3*Columns])
				z0 += V(e0 * e0 * x)
				z1 += V(e1 * e1 * x)
				z2 += V(e2 * e2 * x)
				z3 += V(e3 * e3 * x)
			}
			if single[V]() { // a short run
				addRows(z[a*zStep:], z0, z1, z2, z3)
				z0, z1, z2, z3 = 0, 0, 0, 0
			}
		}
		addRows(z[a*zStep:], z0, z1, z2, z3)
	}
}

func single[V Value]() bool {
	var v V
	return unsafe.Sizeof(v) == 4
}

func addRows[V Value](z []float64, z0, z1, z2, z3 V) {
	to := (*[Rows]float64)(z)
	to[0] += float64(z0)
	to[1] += float64(z1)
	to[2] += float64(z2)
	to[3] += float64(z3)
}

func axpy[T Entry, V Value](w []T, panels, panelStep, blocks int, g []V, gStep int, r []V, rStep int) {
	for b := range blocks {
		rs := (*[Columns]V)(r[b*rStep:])
		for a := range panels {
			e := (*[blockSize]T)(w[a*panelStep+b*blockSize:])
			first := Rows * a * gStep
			g0, g1, g2, g3 := g[first], g[first+gStep], g[first+2*gStep], g[first+3*gStep]
			for i := range rs {
				rs[i] += V(V(e[i])*g0) + V(V(e[i+Columns])*g1) +
					(V(V(e[i+2*Columns])*g2) + V(V(e[i+3*Columns])*g3))
			}
		}
	}
}

func axpySquares[T Entry, V Value](w []T, panels, panelStep, blocks int, g []V, gStep int, r []V, rStep int) {
	for b := range blocks {
		rs := (*[Columns]V)(r[b*rStep:])
		for a := range panels {
			e := (*[blockSize]T)(w[a*panelStep+b*blockSize:])
			first := Rows * a * gStep
			g0, g1, g2, g3 := g[first], g[first+gStep], g[first+2*gStep], g[first+3*gStep]
			for i := range rs {
				e0, e1, e2, e3 := V(e[i]), V(e[i+Columns]), V(e[i+2*Columns]), V(e[i+3*Columns])
				rs[i] += V(e0*e0*g0) + V(e1*e1*g1) + (V(e2*e2*g2) + V(e3*e3*g3))
			}
		}
	}
}

func drain(total []float64, sums []float32) {
	for i, v := range sums {
		total[i] += float64(v)
	}
	clear(sums)
}
