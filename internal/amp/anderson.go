package amp

import (
	"math"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/lapack/lapack64"
)

// anderson looks for the point that a map leaves where it is, u = G(u), with the help of its
// latest steps (D. G. Anderson, "Iterative procedures for nonlinear integral equations",
// 1965): with f = G(u) - u,
//
//	u ← u + βf - Σ θ (Δu + βΔf),   θ = argmin ‖f - Σ θ Δf‖.
//
// A few directions in which the map hardly contracts, or turns away from its fixed point,
// are then taken as those of a linear map, and the fixed point is where that has its own. The
// damping β alone can make neither right. u consists of parts of several lengths, which
// the caller weighs.
type anderson struct {
	parts [][]float64 // u, views; the map's result is given in the same shape

	// Δu and Δf, in a ring: in the place of the oldest are the u and f of the latest step itself,
	// until the next one is known.
	u, f  [][][]float64
	count int     // steps since it began
	best  float64 // least ‖f‖ since then
	rest  int     // plain steps to be taken
}

const (
	// remembered is how many steps are remembered, fewer where they would take more than
	// mostRemembered numbers.
	remembered      = 10
	leastRemembered = 3
	mostRemembered  = 1 << 25

	// andersonWorse is a growth of ‖f‖ over the least so far after which what is remembered is
	// dropped, and restFor how many plain steps follow.
	andersonWorse = 3
	restFor       = 10

	// ridge keeps the equations solvable, relative to their size.
	ridge = 1e-12

	// movedAtOnce is how many numbers are moved together: a few, which stay in cache.
	movedAtOnce = 512

	// farthest is the largest θ that is used: larger ones are scaled down to it. Where a
	// map only creeps along some direction, it is that many steps at once.
	farthest = 100
)

func newAnderson(parts ...[]float64) *anderson {
	a := &anderson{parts: parts}
	like := func() [][]float64 {
		out := make([][]float64, len(parts))
		for i, p := range parts {
			out[i] = make([]float64, len(p))
		}
		return out
	}
	size := 0
	for _, p := range parts {
		size += len(p)
	}
	for range min(max(mostRemembered/(2*size), leastRemembered), remembered) {
		a.u, a.f = append(a.u, like()), append(a.f, like())
	}
	return a
}

// forget drops what was remembered.
func (a *anderson) forget() { a.count, a.best = 0, math.Inf(1) }

// step moves u, given G(u), with dot a weighted product of two such vectors.
func (a *anderson) step(g [][]float64, beta float64, dot func(x, y [][]float64) float64) {
	for i, p := range a.parts {
		for j, v := range g[i] {
			g[i][j] = v - p[j] // f
		}
	}
	norm := dot(g, g)
	if a.count > 0 && !(norm <= andersonWorse*andersonWorse*a.best) {
		a.forget()
		a.rest = restFor
	}
	a.best = min(a.best, norm)
	if a.count > 0 {
		at := (a.count - 1) % len(a.u)
		for i, p := range a.parts {
			for j := range p {
				a.u[at][i][j] = p[j] - a.u[at][i][j]
				a.f[at][i][j] = g[i][j] - a.f[at][i][j]
			}
		}
	}
	a.count++
	var thetas []float64
	if a.rest > 0 {
		a.rest--
	} else {
		thetas = a.mix(g, dot)
	}
	for i, p := range a.parts {
		for from := 0; from < len(p); from += movedAtOnce {
			a.move(i, from, min(from+movedAtOnce, len(p)), g[i], beta, thetas)
		}
	}
}

// move moves some of part i of u, given f, and keeps both in the place of the oldest difference.
func (a *anderson) move(i, from, to int, f []float64, beta float64, thetas []float64) {
	var was [movedAtOnce]float64
	p := a.parts[i][from:to]
	f = f[from:to]
	copy(was[:], p)
	for j, v := range f {
		p[j] += beta * v
	}
	for at, theta := range thetas {
		du, df := a.u[at][i][from:to], a.f[at][i][from:to]
		for j := range p {
			p[j] -= theta * (du[j] + beta*df[j])
		}
	}
	latest := (a.count - 1) % len(a.u)
	copy(a.u[latest][i][from:to], was[:])
	copy(a.f[latest][i][from:to], f)
}

// mix is θ; none where it cannot be had.
func (a *anderson) mix(f [][]float64, dot func(x, y [][]float64) float64) []float64 {
	n := min(a.count-1, len(a.u))
	if n < 2 {
		return nil
	}
	gram := blas64.Symmetric{N: n, Stride: n, Uplo: blas.Upper, Data: make([]float64, n*n)}
	right := blas64.General{Rows: n, Cols: 1, Stride: 1, Data: make([]float64, n)}
	trace := 0.0
	for i := range n {
		for j := i; j < n; j++ {
			gram.Data[i*n+j] = dot(a.f[i], a.f[j])
		}
		trace += gram.Data[i*n+i]
		right.Data[i] = dot(a.f[i], f)
	}
	for i := range n {
		gram.Data[i*n+i] += ridge * trace
	}
	factor, ok := lapack64.Potrf(gram)
	if !ok {
		return nil
	}
	lapack64.Potrs(factor, right)
	largest := 0.0
	for _, theta := range right.Data {
		largest = max(largest, math.Abs(theta))
	}
	if math.IsNaN(largest) || math.IsInf(largest, 0) {
		return nil
	}
	if largest > farthest {
		blas64.Scal(farthest/largest, blas64.Vector{N: n, Inc: 1, Data: right.Data})
	}
	return right.Data
}
