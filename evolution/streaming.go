package evolution

import (
	"context"
	"fmt"
)

// Streaming follows the streaming reconstructor, mini-AMP (paper, "Streaming AMP
// for online reconstruction in the GLM"): the signals stay the same, and batches of
// new sensors arrive, each sensor with a gain of its own. m.Alpha is the measurement
// rate M/N of one batch. A batch starts from the posterior of x that the earlier
// batches left and runs to its fixed point. Then its field is kept; fields add up,
//
//	A_k = A_{k-1} + α m̂_k,   V = mmse(1/A_k).
//
// One point is returned for each batch; errors include those of the batches
// before. A cancelled run returns the batches done and ctx.Err().
func Streaming(ctx context.Context, m Model, batches int, opt *Options) (out []Point, err error) {
	defer ending(&err)
	e, err := newEvolution(m, opt)
	if err != nil {
		return nil, err
	}
	if batches < 1 {
		return nil, fmt.Errorf("the number of batches must be positive, found %d", batches)
	}
	e.work = opt.heeding(ctx)
	inherited := 0.0 // relative error of the field
	start := m.Variance()
	for range batches {
		p, err := e.fixedPoint(ctx, start, opt.iterations(defaultLimit))
		if err != nil {
			return out, err
		}
		before := e.field
		e.field += m.Alpha * p.MHat.Value
		// The field's error is that of its terms, and the relative error of V at most as
		// large.
		inherited = (inherited*before + m.Alpha*p.MHat.Err) / e.field
		p.MSEX.Err += inherited * p.MSEX.Value
		out = append(out, *p)
		start = p.MSEX.Value
	}
	return out, nil
}
