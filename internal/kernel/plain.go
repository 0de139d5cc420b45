package kernel

// The kernels in plain Go. Blocks are taken as pointers to arrays, which avoids bounds
// checks. The explicit conversion of products keeps the compiler from fusing them with
// additions: the bits are the same on every architecture.

// plainGroup is the largest number of signals at a time. With more, the compiler runs
// out of registers.
const plainGroup = 1

func plain[T Entry]() *Set[T] {
	return &Set[T]{
		Group:      plainGroup,
		ForwardOne: forwardOne[T], ForwardOneLinear: forwardOneLinear[T],
		BackwardOne: backwardOne[T], BackwardOneLinear: backwardOneLinear[T],
		Dot: []Dot[T]{nil, dot[T]}, DotSquares: []Dot[T]{nil, dotSquares[T]},
		Axpy: []Axpy[T]{nil, axpy[T]}, AxpySquares: []Axpy[T]{nil, axpySquares[T]},
	}
}

func forwardOne[T Entry](w []T, blocks int, x, c, z, v []float64) {
	forwardOneLinear(w, blocks, x, z)
	clear(v[:Rows])
	dotSquares(w, 1, 0, blocks, c, Columns, v, 0)
}

func forwardOneLinear[T Entry](w []T, blocks int, x, z []float64) {
	clear(z[:Rows])
	dot(w, 1, 0, blocks, x, Columns, z, 0)
}

func backwardOne[T Entry](w []T, blocks int, r, h, g, d []float64) {
	backwardOneLinear(w, blocks, r, g)
	axpySquares(w, 1, 0, blocks, d, 1, h, Columns)
}

func backwardOneLinear[T Entry](w []T, blocks int, r, g []float64) {
	axpy(w, 1, 0, blocks, g, 1, r, Columns)
}

func dot[T Entry](w []T, panels, panelStep, blocks int, x []float64, xStep int, z []float64, zStep int) {
	for a := range panels {
		var z0, z1, z2, z3 float64
		for b := range blocks {
			e := (*[blockSize]T)(w[a*panelStep+b*blockSize:])
			xs := (*[Columns]float64)(x[b*xStep:])
			for i, x := range xs {
				z0 += float64(float64(e[i]) * x)
				z1 += float64(float64(e[i+Columns]) * x)
				z2 += float64(float64(e[i+2*Columns]) * x)
				z3 += float64(float64(e[i+3*Columns]) * x)
			}
		}
		addRows(z[a*zStep:], z0, z1, z2, z3)
	}
}

func dotSquares[T Entry](w []T, panels, panelStep, blocks int, x []float64, xStep int, z []float64, zStep int) {
	for a := range panels {
		var z0, z1, z2, z3 float64
		for b := range blocks {
			e := (*[blockSize]T)(w[a*panelStep+b*blockSize:])
			xs := (*[Columns]float64)(x[b*xStep:])
			for i, x := range xs {
				e0, e1, e2, e3 := float64(e[i]), float64(e[i+Columns]), float64(e[i+2*Columns]), float64(e[i+3*Columns])
				z0 += float64(e0 * e0 * x)
				z1 += float64(e1 * e1 * x)
				z2 += float64(e2 * e2 * x)
				z3 += float64(e3 * e3 * x)
			}
		}
		addRows(z[a*zStep:], z0, z1, z2, z3)
	}
}

func addRows(z []float64, z0, z1, z2, z3 float64) {
	to := (*[Rows]float64)(z)
	to[0] += z0
	to[1] += z1
	to[2] += z2
	to[3] += z3
}

func axpy[T Entry](w []T, panels, panelStep, blocks int, g []float64, gStep int, r []float64, rStep int) {
	for b := range blocks {
		rs := (*[Columns]float64)(r[b*rStep:])
		for a := range panels {
			e := (*[blockSize]T)(w[a*panelStep+b*blockSize:])
			first := Rows * a * gStep
			g0, g1, g2, g3 := g[first], g[first+gStep], g[first+2*gStep], g[first+3*gStep]
			for i := range rs {
				rs[i] += float64(float64(e[i])*g0) + float64(float64(e[i+Columns])*g1) +
					(float64(float64(e[i+2*Columns])*g2) + float64(float64(e[i+3*Columns])*g3))
			}
		}
	}
}

func axpySquares[T Entry](w []T, panels, panelStep, blocks int, g []float64, gStep int, r []float64, rStep int) {
	for b := range blocks {
		rs := (*[Columns]float64)(r[b*rStep:])
		for a := range panels {
			e := (*[blockSize]T)(w[a*panelStep+b*blockSize:])
			first := Rows * a * gStep
			g0, g1, g2, g3 := g[first], g[first+gStep], g[first+2*gStep], g[first+3*gStep]
			for i := range rs {
				e0, e1, e2, e3 := float64(e[i]), float64(e[i+Columns]), float64(e[i+2*Columns]), float64(e[i+3*Columns])
				rs[i] += float64(e0*e0*g0) + float64(e1*e1*g1) + (float64(e2*e2*g2) + float64(e3*e3*g3))
			}
		}
	}
}
