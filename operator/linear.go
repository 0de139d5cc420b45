package operator

import (
	"github.com/calamp/calamp/internal/kernel"
	"github.com/calamp/calamp/internal/parallel"
)

// Linear is the linear part of a sweep with its two products one at a time, for
// iterations that need all of z before they know any of g. Signals' and sensors' sides are
// stored as those of a [Sweep]. A sweep without quadratic columns that can do half of its
// work implements it, or [Halves]; for others [NewLinear] does all of it twice.
type Linear interface {
	Forward(z, x []float64) error  // z = W x
	Backward(r, g []float64) error // r = Wᵀ g
}

// NewLinear prepares products of w with p signals, with the errors of [Operator].NewSweep.
func NewLinear(w Operator, p, threads int) (Linear, error) {
	sweep, err := w.NewSweep(p, 0, threads)
	if err != nil {
		return nil, err
	}
	if linear := linearOf(sweep); linear != nil {
		return linear, nil
	}
	_, n := w.Dims()
	return &wholes{sweep: sweep, p: p, unused: make([]float64, p*n)}, nil
}

// linearOf is the products of a sweep without quadratic columns one at a time; nil where it always does both.
func linearOf(sweep Sweep) Linear {
	switch s := sweep.(type) {
	case Linear:
		return s
	case Halves:
		return linearHalves{s}
	}
	return nil
}

// linearHalves are [Halves] without quadratic columns.
type linearHalves struct{ halves Halves }

func (l linearHalves) Forward(z, x []float64) error  { return l.halves.Forward(z, nil, x, nil) }
func (l linearHalves) Backward(r, g []float64) error { return l.halves.Backward(r, nil, g, nil) }

// wholes are halves of a sweep that always does both.
type wholes struct {
	sweep  Sweep
	p      int
	unused []float64
}

func (w *wholes) Forward(z, x []float64) error {
	return w.sweep.Run(w.unused, nil, x, nil, func(first int, block, _, g, _ []float64) {
		copy(z[first*w.p:], block)
		clear(g)
	})
}

func (w *wholes) Backward(r, g []float64) error {
	clear(w.unused)
	return w.sweep.Run(r, nil, w.unused, nil, func(first int, _, _, block, _ []float64) {
		copy(block, g[first*w.p:])
	})
}

// Forward implements [Linear].
func (s *denseSweep[T, V]) Forward(z, x []float64) error {
	s.prepare()
	pack(s.x, x, s.p, s.w.N)
	s.halfZ, s.halfG = z, nil
	parallel.Run(len(s.parts), s.threads, s.runHalf)
	return nil
}

// Backward implements [Linear].
func (s *denseSweep[T, V]) Backward(r, g []float64) error {
	s.prepare()
	s.r, s.h, s.halfZ, s.halfG = r, nil, nil, g
	parallel.Run(len(s.parts), s.threads, s.runHalf)
	parallel.Run(sumRanges(s.w.Blocks), s.threads, s.sumRange)
	s.r = nil
	return nil
}

// half does one product over one chunk of rows, for a sweep without quadratic columns.
func (s *denseSweep[T, V]) half(part *densePart[T, V]) {
	part.clear(s.drains())
	s.source.chunk(part.first, part.end, s.block, func(first, panels int, w []T) {
		from := first * kernel.Rows * s.p
		if s.halfG == nil {
			count := s.forwardBlock(part, first, panels, w)
			copy(s.halfZ[from:], part.z[:count*s.p])
			return
		}
		count := s.rowsOf(first, panels)
		copy(part.g[:count*s.p], s.halfG[from:])
		s.backwardBlock(part, first, panels, w, count)
	})
}
