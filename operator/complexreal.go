package operator

// RealOf is w itself, or of a [Complex] W the real matrix (2M×2N) that is the same map: of real and
// imaginary parts one after the other to pairs of both,
//
//	Re z = Re W · Re x - Im W · Im x,   Im z = Im W · Re x + Re W · Im x.
//
// It has the singular values of W, each twice, and no columns that belong together: what measures
// a matrix measures this one.
func RealOf(w Operator) Operator {
	if c, ok := w.(*Complex); ok {
		return asReal{c}
	}
	return w
}

type asReal struct{ w *Complex }

func (a asReal) remembered() *memory { return &a.w.real }

// Dims implements [Operator].
func (a asReal) Dims() (m, n int) { return 2 * a.w.m, 2 * a.w.n }

// MeanSquare implements [Operator].
func (a asReal) MeanSquare() float64 { return a.w.rows.MeanSquare() }

// HasSquares implements [Squares].
func (a asReal) HasSquares() bool { return true }

// NewSweep implements [Operator].
func (a asReal) NewSweep(p, q, threads int) (Sweep, error) {
	sweep, err := a.w.rows.NewSweep(2*p, 2*q, threads)
	if err != nil {
		return nil, err
	}
	return &realSweep{sweep: sweep, p: p, q: q}, nil
}

// realSweep is a sweep over the rows of a Complex, of which each gives one part of both parts of z.
type realSweep struct {
	sweep Sweep
	p, q  int
}

// Run implements [Sweep].
func (s *realSweep) Run(r, h, x, c []float64, rows RowFunc) error {
	return s.sweep.Run(r, h, x, c, func(first int, z, v, g, d []float64) {
		count := len(z) / (2 * s.p)
		room := func(p int) ([]float64, []float64) { return make([]float64, count*p), make([]float64, count*p) }
		zs, gs := room(s.p)
		vs, ds := room(s.q)
		for row := 0; row < count; row += 2 {
			pairwise(s.p, row, func(at, below int) {
				zs[at], zs[below] = z[2*at]-z[2*below+1], z[2*at+1]+z[2*below]
			})
			pairwise(s.q, row, func(at, below int) {
				vs[at], vs[below] = v[2*at]+v[2*below+1], v[2*at+1]+v[2*below]
			})
		}
		rows(first, zs, vs, gs, ds)
		for row := 0; row < count; row += 2 {
			pairwise(s.p, row, func(at, below int) {
				g[2*at], g[2*at+1], g[2*below], g[2*below+1] = gs[at], gs[below], gs[below], -gs[at]
			})
			pairwise(s.q, row, func(at, below int) {
				d[2*at], d[2*at+1], d[2*below], d[2*below+1] = ds[at], ds[below], ds[below], ds[at]
			})
		}
	})
}

// pairwise calls f with the places of every column in two rows of p columns, one below the other. In rows
// with twice the columns both parts of it are at twice these places, and next to them.
func pairwise(p, row int, f func(at, below int)) {
	for k := range p {
		f(row*p+k, (row+1)*p+k)
	}
}
