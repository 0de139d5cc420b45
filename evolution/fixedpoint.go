package evolution

import (
	"context"
	"math"
)

// Point is a fixed point of state evolution.
type Point struct {
	Step
	Converged   bool // to the tolerance, within the iterations allowed
	Evaluations int  // of the map V → V′
}

// FixedPoint returns where [Offline] ends: the largest fixed point, or with
// Options.Informed the smallest. A run that is cancelled, or that has used up its
// iterations, returns the last step.
//
// For a student with the true model the map V → V′ is increasing, so that iteration
// from above decreases monotonically to the largest fixed point. To get there in
// fewer steps, secant steps in log V replace plain ones. A secant step that goes too
// far finds V′ > V: then the fixed point lies between two known values, and root
// finding takes over.
func FixedPoint(ctx context.Context, m Model, opt *Options) (found *Point, err error) {
	defer ending(&err)
	if m.OffsetSD != 0 {
		return offsetFixedPoint(ctx, m, opt)
	}
	if m.Readings != nil {
		return readingFixedPoint(ctx, m, opt)
	}
	e, err := newEvolution(m, opt)
	if err != nil {
		return nil, err
	}
	e.work = opt.heeding(ctx)
	start := m.Variance()
	if opt != nil && opt.Informed {
		start, e.fromTruth = e.truth(), true
	}
	return e.fixedPoint(ctx, start, opt.iterations(defaultLimit))
}

// truth is an error V so small that it stands for the truth itself: 1e-18 of the
// readings' power, below what double precision separates from zero beside them.
func (e *evolution) truth() float64 { return asTruth(e.q0, e.NoiseVar) }

func asTruth(q0, noiseVar float64) float64 { return 1e-18 * (q0 + noiseVar) }

// excess returns log V′/V at x = log V, which is zero at a fixed point, and the
// step that it comes from.
func (e *evolution) excess(x float64) (float64, Step, float64) {
	s, slope := e.at(math.Exp(x))
	return math.Log(s.MSEX.Value) - x, s, slope
}

// fixedPoint iterates from V = start in the direction in which the map moves it.
func (e *evolution) fixedPoint(ctx context.Context, start float64, limit int) (*Point, error) {
	p := &Point{}
	x := math.Log(start)
	g, s, slope := e.excess(x)
	p.Evaluations = 1
	direction := math.Copysign(1, g)
	derivative := 0.0 // of g, from the last two points
	for p.Evaluations < limit {
		if err := ctx.Err(); err != nil {
			p.Step = s
			return p, err
		}
		step := e.secant(g, derivative)
		if math.IsNaN(step) { // beyond double precision: no further step is a number
			break
		}
		if math.Abs(step) <= 0.1*e.tol {
			p.Converged = true
			break
		}
		before, gBefore := x, g
		x += step
		g, s, slope = e.excess(x)
		p.Evaluations++
		derivative = (g - gBefore) / (x - before)
		if g*direction < 0 {
			x, s, slope, p.Converged = e.bracketed(ctx, x, before, g, gBefore, limit, p)
			derivative = e.derivative(x)
			break
		}
	}
	p.Step = e.settle(x, s, slope, derivative)
	return p, ctx.Err()
}

// secant proposes a step in log V: to where the excess g would be zero if it went on
// with the same derivative, but at most half a unit beyond the plain step, so as not
// to jump over two fixed points at once.
func (e *evolution) secant(g, derivative float64) (step float64) {
	const most = 0.5
	if derivative >= 0 || derivative <= -1 {
		return g
	}
	full := math.Abs(g / derivative)
	return math.Copysign(min(full, math.Abs(g)+most), g)
}

// bracketed finds the zero of the excess between two points by the Illinois
// variant of regula falsi.
func (e *evolution) bracketed(ctx context.Context, a, b, ga, gb float64, limit int, p *Point) (x float64, s Step, slope float64, converged bool) {
	for {
		x = (a*gb - b*ga) / (gb - ga)
		var g float64
		g, s, slope = e.excess(x)
		p.Evaluations++
		if math.Abs(b-a) <= 0.1*e.tol || math.Abs(g) <= 1e-15 || x == a || x == b {
			return x, s, slope, true
		}
		if p.Evaluations >= limit || ctx.Err() != nil {
			return x, s, slope, false
		}
		if g*gb < 0 {
			a, ga = b, gb
		} else {
			ga *= 0.5
		}
		b, gb = x, g
		// The iterates often approach from one side only, and |b - a| then stays
		// large. So a small next step ends the search as well.
		if next := (a*gb - b*ga) / (gb - ga); math.Abs(next-x) <= 0.02*e.tol {
			_, s, slope = e.excess(next)
			p.Evaluations++
			return next, s, slope, true
		}
	}
}

// derivative is the slope of the excess at a fixed point.
func (e *evolution) derivative(x float64) float64 {
	const h = 1e-4
	up, _, _ := e.excess(x + h)
	down, _, _ := e.excess(x - h)
	return (up - down) / (2 * h)
}

// settle turns the errors of one step at the fixed point into those of the fixed
// point itself, which are larger by the factor 1/(1 - ∂log V′/∂log V).
func (e *evolution) settle(x float64, s Step, slope, derivative float64) Step {
	amplify := 1.0
	if derivative < 0 && derivative > -1 {
		amplify = -1 / derivative
	}
	local := s.MSEX.Relative() + slope*s.MHat.Relative() + 0.1*e.tol
	relative := local * amplify
	s.MSEX.Err = relative * s.MSEX.Value
	s.MHat.Err += relative * s.MHat.Value
	s.MSES.Err += 1.5 * relative * s.MSES.Value
	return s
}
