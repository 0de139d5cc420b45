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
	switch s := sweep.(type) {
	case Linear:
		return s, nil
	case Halves:
		return linearHalves{s}, nil
	}
	_, n := w.Dims()
	return &wholes{sweep: sweep, p: p, unused: make([]float64, p*n)}, nil
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
func (s *denseSweep[T]) Forward(z, x []float64) error {
	s.pack(s.x, x, s.p)
	s.halfZ, s.halfG = z, nil
	parallel.Run(len(s.parts), s.threads, s.runHalf)
	return nil
}

// Backward implements [Linear].
func (s *denseSweep[T]) Backward(r, g []float64) error {
	s.r, s.h, s.halfZ, s.halfG = r, nil, nil, g
	parallel.Run(len(s.parts), s.threads, s.runHalf)
	parallel.Run(s.sumRanges(), s.threads, s.sumHalf)
	s.r = nil
	return nil
}

// half does one product over one chunk of rows.
func (s *denseSweep[T]) half(part *densePart[T]) {
	clear(part.r)
	s.source.chunk(part.first, part.end, s.block, func(first int, w []T) {
		panels := len(w) / s.w.PanelSize()
		padded := panels * kernel.Rows
		count := min(padded, s.w.M-first*kernel.Rows)
		from, to := first*kernel.Rows*s.p, (first*kernel.Rows+count)*s.p
		if s.halfG == nil {
			s.forwardHalf(part, w, panels)
			copy(s.halfZ[from:to], part.z)
			return
		}
		clear(part.g[count*s.p : padded*s.p])
		copy(part.g, s.halfG[from:to])
		s.backwardHalf(part, w, panels)
	})
}

func (s *denseSweep[T]) forwardHalf(part *densePart[T], w []T, panels int) {
	if s.p == 1 {
		for a := range panels {
			s.k.ForwardOneLinear(w[a*s.w.PanelSize():], s.w.Blocks, s.x, part.z[a*kernel.Rows:])
		}
		return
	}
	clear(part.zt)
	for b := 0; b < s.w.Blocks; b += tile {
		s.dot(s.k.Dot, w, panels, b, min(tile, s.w.Blocks-b), s.x, s.p, part.zt)
	}
	byRow(part.z, part.zt, panels, s.p)
}

func (s *denseSweep[T]) backwardHalf(part *densePart[T], w []T, panels int) {
	if s.p == 1 {
		for a := range panels {
			s.k.BackwardOneLinear(w[a*s.w.PanelSize():], s.w.Blocks, part.r, part.g[a*kernel.Rows:])
		}
		return
	}
	for b := 0; b < s.w.Blocks; b += tile {
		s.axpy(s.k.Axpy, w, panels, b, min(tile, s.w.Blocks-b), part.g, s.p, part.r)
	}
}
