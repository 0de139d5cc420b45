package kernel

import (
	"math"
	"unsafe"
)

// The kernels in plain Go. Blocks are taken as pointers to arrays, which avoids bounds
// checks. The explicit conversion of products keeps the compiler from fusing them with
// additions: the bits are the same on every architecture.

// plain is for one signal at a time. With more, the compiler runs out of registers.
func plain[T Entry, V Value](w Layout) *Set[T, V] {
	p := loops[T, V]{w}
	return &Set[T, V]{
		ForwardOne: p.forwardOne, ForwardOneLinear: p.forwardOneLinear,
		BackwardOne: p.backwardOne, BackwardOneLinear: p.backwardOneLinear,
		Dot: []Dot[T, V]{nil, p.dot}, DotSquares: []Dot[T, V]{nil, p.dotSquares},
		Axpy: []Axpy[T, V]{nil, p.axpy}, AxpySquares: []Axpy[T, V]{nil, p.axpySquares},
	}
}

// loops are those over a W of one layout.
type loops[T Entry, V Value] struct{ Layout }

// block is its four rows, the first of which begins at w[at].
func (p loops[T, V]) block(w []T, at, panelStep int) (e0, e1, e2, e3 *[Columns]T) {
	step := p.rowStep(panelStep)
	return (*[Columns]T)(w[at:]), (*[Columns]T)(w[at+step:]), (*[Columns]T)(w[at+2*step:]), (*[Columns]T)(w[at+3*step:])
}

func (p loops[T, V]) forwardOne(w []T, panelStep, blocks int, x, c []V, z, v []float64) {
	p.forwardOneLinear(w, panelStep, blocks, x, z)
	clear(v[:Rows])
	p.dotSquares(w, 1, panelStep, blocks, c, Columns, v, 0)
}

func (p loops[T, V]) forwardOneLinear(w []T, panelStep, blocks int, x []V, z []float64) {
	clear(z[:Rows])
	p.dot(w, 1, panelStep, blocks, x, Columns, z, 0)
}

func (p loops[T, V]) backwardOne(w []T, panelStep, _, blocks int, r, h, g, d []V) {
	p.backwardOneLinear(w, panelStep, 0, blocks, r, g)
	p.axpySquares(w, 1, panelStep, blocks, d, 1, h, Columns)
}

func (p loops[T, V]) backwardOneLinear(w []T, panelStep, _, blocks int, r, g []V) {
	p.axpy(w, 1, panelStep, blocks, g, 1, r, Columns)
}

func (p loops[T, V]) dot(w []T, panels, panelStep, blocks int, x []V, xStep int, z []float64, zStep int) {
	for a := range panels {
		var z0, z1, z2, z3 V
		for b := range blocks {
			e0, e1, e2, e3 := p.block(w, a*panelStep+b*p.blockStep(), panelStep)
			xs := (*[Columns]V)(x[b*xStep:])
			for i, x := range xs {
				z0 += V(V(e0[i]) * x)
				z1 += V(V(e1[i]) * x)
				z2 += V(V(e2[i]) * x)
				z3 += V(V(e3[i]) * x)
			}
			if single[V]() { // a short run
				addRows(z[a*zStep:], z0, z1, z2, z3)
				z0, z1, z2, z3 = 0, 0, 0, 0
			}
		}
		addRows(z[a*zStep:], z0, z1, z2, z3)
	}
}

func (p loops[T, V]) dotSquares(w []T, panels, panelStep, blocks int, x []V, xStep int, z []float64, zStep int) {
	for a := range panels {
		var z0, z1, z2, z3 V
		for b := range blocks {
			e0, e1, e2, e3 := p.block(w, a*panelStep+b*p.blockStep(), panelStep)
			xs := (*[Columns]V)(x[b*xStep:])
			for i, x := range xs {
				w0, w1, w2, w3 := V(e0[i]), V(e1[i]), V(e2[i]), V(e3[i])
				z0 += V(w0 * w0 * x)
				z1 += V(w1 * w1 * x)
				z2 += V(w2 * w2 * x)
				z3 += V(w3 * w3 * x)
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

func (p loops[T, V]) axpy(w []T, panels, panelStep, blocks int, g []V, gStep int, r []V, rStep int) {
	for b := range blocks {
		rs := (*[Columns]V)(r[b*rStep:])
		for a := range panels {
			e0, e1, e2, e3 := p.block(w, a*panelStep+b*p.blockStep(), panelStep)
			first := Rows * a * gStep
			g0, g1, g2, g3 := g[first], g[first+gStep], g[first+2*gStep], g[first+3*gStep]
			for i := range rs {
				rs[i] += V(V(e0[i])*g0) + V(V(e1[i])*g1) + (V(V(e2[i])*g2) + V(V(e3[i])*g3))
			}
		}
	}
}

func (p loops[T, V]) axpySquares(w []T, panels, panelStep, blocks int, g []V, gStep int, r []V, rStep int) {
	for b := range blocks {
		rs := (*[Columns]V)(r[b*rStep:])
		for a := range panels {
			e0, e1, e2, e3 := p.block(w, a*panelStep+b*p.blockStep(), panelStep)
			first := Rows * a * gStep
			g0, g1, g2, g3 := g[first], g[first+gStep], g[first+2*gStep], g[first+3*gStep]
			for i := range rs {
				w0, w1, w2, w3 := V(e0[i]), V(e1[i]), V(e2[i]), V(e3[i])
				rs[i] += V(w0*w0*g0) + V(w1*w1*g1) + (V(w2*w2*g2) + V(w3*w3*g3))
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

func plainLargest(w []float32, blocks int, top *[Rows]float32) {
	for b := range blocks {
		for row := range top {
			for _, v := range w[b*blockSize+row*Columns:][:Columns] {
				top[row] = max(top[row], v, -v)
			}
		}
	}
}

func plainToBytes(w []float32, blocks int, inverse *[Rows]float32, to []int8) {
	for at, v := range w[:blocks*blockSize] {
		q := math.RoundToEven(float64(v * inverse[at/Columns%Rows]))
		to[at] = int8(min(max(q, -mostByte), mostByte))
	}
}
