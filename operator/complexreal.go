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

// RowOrthogonal implements [RowOrthogonal].
func (a asReal) RowOrthogonal() (kappa float64, ok bool) { return a.w.RowOrthogonal() }

// NewSweep implements [Operator].
func (a asReal) NewSweep(p, q, threads int) (Sweep, error) {
	sweep, err := a.w.rows.NewSweep(2*p, 2*q, threads)
	if err != nil {
		return nil, err
	}
	s := realSweep{sweep: sweep, p: p, q: q}
	if linear := linearOf(sweep); linear != nil && q == 0 {
		columns := 4 * p * a.w.m // two for each of twice the rows
		return &realHalves{realSweep: s, rows: linear, z: make([]float64, columns), g: make([]float64, columns)}, nil
	}
	return &s, nil
}

// realHalves is a realSweep over rows of which the products can be had one by one.
type realHalves struct {
	realSweep
	rows Linear
	z, g []float64 // 2M×2p
}

// Forward implements [Linear].
func (s *realHalves) Forward(z, x []float64) error {
	if err := s.rows.Forward(s.z, x); err != nil {
		return err
	}
	combinePairs(z, s.z, s.p)
	return nil
}

// Backward implements [Linear].
func (s *realHalves) Backward(r, g []float64) error {
	dividePairs(s.g, g, s.p)
	return s.rows.Backward(r, s.g)
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
		combinePairs(zs, z, s.p)
		for row := 0; row < count; row += 2 {
			pairwise(s.q, row, func(at, below int) {
				vs[at], vs[below] = v[2*at]+v[2*below+1], v[2*at+1]+v[2*below]
			})
		}
		rows(first, zs, vs, gs, ds)
		dividePairs(g, gs, s.p)
		for row := 0; row < count; row += 2 {
			pairwise(s.q, row, func(at, below int) {
				d[2*at], d[2*at+1], d[2*below], d[2*below+1] = ds[at], ds[below], ds[below], ds[at]
			})
		}
	})
}

// combinePairs makes the products of pairs of rows, of the two parts of p columns each, those of complex rows.
func combinePairs(z, parts []float64, p int) {
	for row := 0; row*p < len(z); row += 2 {
		pairwise(p, row, func(at, below int) {
			z[at], z[below] = parts[2*at]-parts[2*below+1], parts[2*at+1]+parts[2*below]
		})
	}
}

// dividePairs is its adjoint.
func dividePairs(parts, g []float64, p int) {
	for row := 0; row*p < len(g); row += 2 {
		pairwise(p, row, func(at, below int) {
			parts[2*at], parts[2*at+1], parts[2*below], parts[2*below+1] = g[at], g[below], g[below], -g[at]
		})
	}
}

// pairwise calls f with the places of every column in two rows of p columns, one below the other. In rows
// with twice the columns both parts of it are at twice these places, and next to them.
func pairwise(p, row int, f func(at, below int)) {
	for k := range p {
		f(row*p+k, (row+1)*p+k)
	}
}
