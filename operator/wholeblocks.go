package operator

import (
	"github.com/calamp/calamp/internal/kernel"
	"github.com/calamp/calamp/internal/parallel"
)

// WholeBlocks is w with sweeps whose blocks of rows begin at a multiple of each: so a block has whole sensors where a sensor
// has that many rows, one after the other. With 1 it is w itself. Both halves of a sweep read the table.
func WholeBlocks(w Operator, each int) Operator {
	if each == 1 {
		return w
	}
	return &wholeBlocks{w, each}
}

type wholeBlocks struct {
	Operator
	each int
}

// NewSweep implements [Operator].
func (t *wholeBlocks) NewSweep(p, q, threads int) (Sweep, error) {
	m, n := t.Dims()
	sweep, err := t.Operator.NewSweep(p, q, threads)
	if err != nil {
		return nil, err
	}
	whole := newWholeSweep(bothHalvesOf(sweep, n, p, q), m, p, q, threads)
	return &wholeBlockSweep{wholeSweep: whole, rows: max(1, rowsAtOnce/t.each) * t.each}, nil
}

// HasSquares implements [Squares].
func (t *wholeBlocks) HasSquares() bool { return HasSquares(t.Operator) }

// wholeBlockSweep is a [wholeSweep] of which a block has so many rows.
type wholeBlockSweep struct {
	*wholeSweep
	rows int
}

// Run implements [Sweep].
func (s *wholeBlockSweep) Run(r, h, x, c []float64, rows RowFunc) error {
	if s.z == nil {
		s.z, s.g = make([]float64, s.m*s.p), make([]float64, s.m*s.p)
		s.v, s.d = make([]float64, s.m*s.q), make([]float64, s.m*s.q)
	}
	if err := s.forward(s.z, s.v, x, c); err != nil {
		return err
	}
	parallel.Run((s.m+s.rows-1)/s.rows, s.threads, func(i int) {
		first, end := i*s.rows, min((i+1)*s.rows, s.m)
		rows(first, s.z[first*s.p:end*s.p], s.v[first*s.q:end*s.q], s.g[first*s.p:end*s.p], s.d[first*s.q:end*s.q])
	})
	return s.backward(r, h, s.g, s.d)
}

// bothHalvesOf is [halvesOf], for tables in memory without doing a half twice.
func bothHalvesOf(s Sweep, n, p, q int) products {
	switch s := s.(type) {
	case products:
		return s
	case *denseSweep[float64, float64]:
		return denseHalves[float64, float64]{s}
	case *denseSweep[float32, float64]:
		return denseHalves[float32, float64]{s}
	case *distributedSweep:
		return newDistributedHalves(s)
	case *distributedLinear:
		return newDistributedHalves(s.distributedSweep)
	case *centredSweep:
		return &centredHalves{s, bothHalvesOf(s.whole, n, p, q)}
	}
	return halvesOf(s, n, p, q)
}

// centredHalves are those of a sweep over a W without its means.
type centredHalves struct {
	*centredSweep
	whole products
}

func (s *centredHalves) forward(z, v, x, c []float64) error {
	s.gather(s.x, x)
	s.gather(s.c, c)
	return s.whole.forward(z, v, s.x, s.c)
}

func (s *centredHalves) backward(r, h, g, d []float64) error {
	if err := s.whole.backward(s.r, s.h, g, d); err != nil {
		return err
	}
	s.spread(r, s.r)
	s.spread(h, s.h)
	return nil
}

// denseHalves are those of a sweep over a table in memory.
type denseHalves[T kernel.Entry, V kernel.Value] struct{ sweep *denseSweep[T, V] }

func (d denseHalves[T, V]) forward(z, v, x, c []float64) error {
	s := d.sweep
	s.prepare()
	pack(s.x, x, s.p, s.w.N)
	pack(s.c, c, s.q, s.w.N)
	d.each(func(part *densePart[T, V], first, panels int, w []T) {
		count, row := s.forwardBlock(part, first, panels, w), first*kernel.Rows
		copy(z[row*s.p:], part.z[:count*s.p])
		copy(v[row*s.q:], part.v[:count*s.q])
	})
	return nil
}

func (d denseHalves[T, V]) backward(r, h, g, dg []float64) error {
	s := d.sweep
	d.each(func(part *densePart[T, V], first, panels int, w []T) {
		count, row := s.rowsOf(first, panels), first*kernel.Rows
		copy(part.g[:count*s.p], g[row*s.p:])
		copy(part.d[:count*s.q], dg[row*s.q:])
		s.backwardBlock(part, first, panels, w, count)
	})
	s.r, s.h = r, h
	parallel.Run(sumRanges(s.w.Blocks), s.threads, s.sumRange)
	s.r, s.h = nil, nil
	return nil
}

// each visits all blocks of rows, with sums begun anew.
func (d denseHalves[T, V]) each(visit func(part *densePart[T, V], first, panels int, w []T)) {
	s := d.sweep
	parallel.Run(len(s.parts), s.threads, func(i int) {
		part := s.parts[i]
		part.clear(s.drains())
		s.source.chunk(part.first, part.end, s.block, func(first, panels int, w []T) { visit(part, first, panels, w) })
	})
}
