package replica

import (
	"context"
	"errors"
	"math"

	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/evolution"
	"github.com/calamp/calamp/internal/search"
	"github.com/calamp/calamp/prior"
)

// ErrNoTransition says that the smallest error falls continuously as α grows, so
// there is no threshold.
var ErrNoTransition = errors.New("no first-order transition: the smallest error reachable is a continuous function of α")

// Transition is a first-order transition along α.
type Transition struct {
	// Informed is the α below which there is no fixed point of small error.
	// Information, the information-theoretic threshold, is the α where the free
	// energies of the two states are equal. Algorithmic is the α above which cal-AMP
	// finds the state of small error. Between Information and Algorithmic the problem
	// is hard: solvable, but not by cal-AMP.
	Informed, Information, Algorithmic evolution.Number

	Low, High float64 // the two errors at Information
}

// InformationThreshold finds the first-order transition of largest jump at given
// noise Δ > 0, to an accuracy tol on α (0 is 1e-6). Without noise the
// information-theoretic line is the counting bound recovery.AlphaMin.
//
// The fixed points form a curve, α(V) = Â(V)/m̂(V) with mmse(1/Â(V)) = V. Its local
// extrema are the spinodals, the α at which one of the two states ends to exist.
// Between them the difference of the two potentials grows with α at the rate of the
// difference of the I_z, so that a bracketed secant finds its zero in a few steps.
func InformationThreshold(ctx context.Context, g prior.GaussBernoulli, gain channel.GainPrior, noiseVar float64, p int, tol float64) (*Transition, error) {
	if tol == 0 {
		tol = 1e-6
	}
	t := &transition{model: evolution.Model{Signal: g, Gain: gain, NoiseVar: noiseVar, Alpha: 1, P: p}, opt: evolution.Options{Tol: min(1e-8, 0.01*tol)}}
	if _, err := New(t.model, 0); err != nil {
		return nil, err
	}
	out, err := t.spinodals(ctx, tol)
	if err != nil {
		return nil, err
	}
	return out, t.cross(ctx, out, tol)
}

type transition struct {
	model evolution.Model
	opt   evolution.Options
}

// alpha is the α at which V = mmse(Σ) is a fixed point, Σ = e^x.
func (t *transition) alpha(ctx context.Context, x float64) (float64, error) {
	v := evolution.Entry(t.model.Signal, math.Exp(x), &t.opt).MMSE.Value
	s, err := t.model.Sensor(ctx, v, &t.opt)
	if err != nil {
		return 0, err
	}
	return math.Exp(-x) / s.MHat.Value, nil
}

// spinodals scans α(Σ) for its largest drop: a minimum followed, at larger Σ, by
// a maximum.
func (t *transition) spinodals(ctx context.Context, tol float64) (*Transition, error) {
	const step = 0.2
	g := t.model.Signal
	lo, hi := math.Log(1e-2*t.model.NoiseVar), math.Log(g.SignalVar)+6
	n := int(math.Ceil((hi - lo) / step))
	if n < 1 { // noise hides the signals
		return nil, ErrNoTransition
	}
	a := make([]float64, n+1)
	x := func(i int) float64 { return lo + step*float64(i) }
	for i := range a {
		var err error
		if a[i], err = t.alpha(ctx, x(i)); err != nil {
			return nil, err
		}
	}
	// Find the largest rise from a minimum to a later maximum. (The curve comes down
	// from +Inf at small Σ, and goes to 0 at large Σ.)
	least, from, to, rise := 0, -1, -1, 0.0
	for i := range a {
		if a[i] < a[least] {
			least = i
		}
		if r := a[i] - a[least]; r > rise {
			from, to, rise = least, i, r
		}
	}
	if rise <= 10*tol || from == 0 || to == n {
		return nil, ErrNoTransition
	}
	bottom, err := t.extremum(ctx, x(from-1), x(from+1), -1, tol)
	if err != nil {
		return nil, err
	}
	top, err := t.extremum(ctx, x(to-1), x(to+1), 1, tol)
	return &Transition{Informed: bottom, Algorithmic: top}, err
}

// extremum refines the extremum of sign·α between two points by golden sections.
func (t *transition) extremum(ctx context.Context, a, b, sign, tol float64) (evolution.Number, error) {
	var failed error
	g := search.NewGolden(func(x float64) float64 {
		v, err := t.alpha(ctx, x)
		failed = errors.Join(failed, err)
		return sign * v
	}, a, b)
	for failed == nil && g.B-g.A > 1e-6 && math.Abs(g.FC-g.FD) > 0.05*tol && g.Narrow() {
	}
	top := max(g.FC, g.FD)
	return evolution.Number{Value: sign * top, Err: math.Abs(g.FC-g.FD) + 0.1*tol}, failed
}

// cross finds where the potentials of the two states are equal.
func (t *transition) cross(ctx context.Context, out *Transition, tol float64) error {
	lo, hi := out.Informed.Value, out.Algorithmic.Value
	// Keep a little away from the spinodals, where one of the states is about to end.
	width := hi - lo
	bracket := search.Bracket{Lo: lo + 1e-3*width, Hi: hi - 1e-3*width}
	alpha := 0.5 * (bracket.Lo + bracket.Hi)
	for range 60 {
		d, slope, err := t.difference(ctx, alpha, out)
		if err != nil {
			return err
		}
		next := bracket.Next(alpha, d, slope)
		if step := math.Abs(next - alpha); step < 0.1*tol || bracket.Hi-bracket.Lo < 0.1*tol {
			out.Information = evolution.Number{Value: next, Err: step + 0.1*tol}
			return nil
		}
		alpha = next
	}
	return errors.New("the crossing of the free energies was not found")
}

// difference is φ of the state of small error minus that of the other, with its
// derivative with respect to α. Since φ is stationary, only its explicit dependence on
// α counts in that.
func (t *transition) difference(ctx context.Context, alpha float64, out *Transition) (d, slope float64, err error) {
	m := t.model
	m.Alpha = alpha
	p, err := New(m, t.opt.Tol)
	if err != nil {
		return 0, 0, err
	}
	var v [2]Value
	for i, informed := range []bool{true, false} {
		opt := t.opt
		opt.Informed = informed
		pt, err := evolution.FixedPoint(ctx, m, &opt)
		if err != nil {
			return 0, 0, err
		}
		if v[i], err = p.At(ctx, pt.MSEX.Value); err != nil {
			return 0, 0, err
		}
	}
	out.Low, out.High = v[0].MSE, v[1].MSE
	return v[0].Phi.Value - v[1].Phi.Value, v[0].IZ.Value - v[1].IZ.Value, nil
}
