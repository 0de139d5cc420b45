// Package replica computes what any method could reach: it has the free energy of
// blind calibration, which it makes of averages of package evolution, and no algorithm.
// From the replica-symmetric free energy follow its stationary points, the information
// in the readings and the information-theoretic threshold.
package replica

import (
	"cmp"
	"context"
	"fmt"
	"math"

	"github.com/calamp/calamp/evolution"
	"github.com/calamp/calamp/internal/search"
)

// Potential is the Bayes-optimal replica potential with diagonal overlaps
// (paper, "Replica free energy"), for each of the N rows of X, in nats:
//
//	φ(m) = -(P/2) m Â + P I_x(Â) + α I_z(m),   Â = α m̂(m),
//
// where m̂ is that of state evolution (the paper writes m̂ for our Â). In place of m we
// use the error V = q₀-m, and in place of I_x the mutual information I of an entry and
// its field,
//
//	P I_x(Â) - (P/2) m Â = (P/2) V Â - P I(Â),
//
// which does not cancel when Â is 1e15.
type Potential struct {
	model evolution.Model
	opt   evolution.Options
	q0    float64
}

// New returns the potential of a model with noise. tol is the relative accuracy
// of its averages; 0 is 1e-10.
func New(m evolution.Model, tol float64) (*Potential, error) {
	if err := m.Validate(); err != nil {
		return nil, err
	}
	if m.NoiseVar == 0 {
		return nil, fmt.Errorf("without noise the free energy is infinite where the signals are recovered: the noise variance must be positive")
	}
	if tol == 0 {
		tol = 1e-10
	}
	return &Potential{
		model: m, opt: evolution.Options{Tol: tol},
		q0: m.SecondMoment(),
	}, nil
}

// Value is the potential and its pieces at one overlap.
type Value struct {
	MSE     float64          // V
	Overlap float64          // m = q₀ - V
	AHat    evolution.Number // Â = α m̂
	IX      evolution.Number // I_x(Â): E log ∫ p(x) exp(-Âx²/2 + (Âx₀+√Âξ)x) dx
	IZ      evolution.Number // I_z(m): E log Z_out of a sensor
	Phi     evolution.Number // φ
	Next    evolution.Number // V′: state evolution's next error; V′ = V where φ is stationary
}

// At computes the potential at error V in (0, Var x].
func (p *Potential) At(ctx context.Context, v float64) (Value, error) {
	sensor, err := p.model.Sensor(ctx, v, &p.opt)
	if err != nil {
		return Value{}, err
	}
	m := p.model
	a := evolution.Number{Value: m.Alpha * sensor.MHat.Value, Err: m.Alpha * sensor.MHat.Err}
	entry := m.Entry(1/a.Value, &p.opt)
	signals := float64(m.P)
	// φ is stationary in Â, so an error of Â does not change it to first order.
	phi := evolution.Number{
		Value: signals*(0.5*v*a.Value-entry.Information.Value) + m.Alpha*sensor.Evidence.Value,
		Err:   signals*(0.5*math.Abs(v-entry.MMSE.Value)*a.Err+entry.Information.Err) + m.Alpha*sensor.Evidence.Err,
	}
	return Value{
		MSE: v, Overlap: p.q0 - v, AHat: a, IZ: sensor.Evidence, Phi: phi, Next: entry.MMSE,
		IX: evolution.Number{
			Value: 0.5*p.q0*a.Value - entry.Information.Value,
			Err:   0.5*(p.q0-v)*a.Err + entry.Information.Err,
		},
	}, nil
}

// IX is I_x(Â) of an entry, at any Â > 0.
func (p *Potential) IX(a float64) evolution.Number {
	entry := p.model.Entry(1/a, &p.opt)
	return evolution.Number{Value: 0.5*p.q0*a - entry.Information.Value, Err: entry.Information.Err}
}

// Overlap is 2 dI_x/dÂ, the overlap of an entry with its estimate at precision Â.
func (p *Potential) Overlap(a float64) float64 {
	return p.q0 - p.model.Entry(1/a, &p.opt).MMSE.Value
}

// Stationary is a stationary point of φ, a fixed point of state evolution.
type Stationary struct {
	Value
	Stable bool // state evolution that starts near the point ends there
}

// StationaryPoints returns all stationary points, from the smallest error to the
// largest. It scans log V′/V over a grid in log V, looks closer where the values come
// near zero between grid points, and refines each zero to 1e-12 in log V.
func (p *Potential) StationaryPoints(ctx context.Context) ([]Stationary, error) {
	const step = 0.2
	// No error is smaller than that of an oracle that is given s and the support, and none
	// larger than that before any reading. The lower bound has some room to spare.
	lo, hi := math.Log(1e-4*p.model.NoiseVar*p.q0/(p.q0+p.model.NoiseVar)), math.Log(p.model.Variance())
	lo = min(lo, math.Log(1e-3*p.model.NoiseVar/p.model.Alpha*p.model.Density()))
	n := int(math.Ceil((hi - lo) / step))
	x, g := make([]float64, n+1), make([]float64, n+1)
	for i := range x {
		x[i] = lo + (hi-lo)*float64(i)/float64(n)
		var err error
		if g[i], err = p.excess(ctx, x[i]); err != nil {
			return nil, err
		}
	}
	var roots []float64
	var failed error
	excess := func(x float64) float64 {
		g, err := p.excess(ctx, x)
		failed = cmp.Or(failed, err)
		return g
	}
	for i := 1; i <= n; i++ {
		if g[i-1] == 0 || g[i-1]*g[i] < 0 {
			roots = append(roots, root(excess, x[i-1], x[i], g[i-1], g[i]))
		}
		if i < n && g[i-1]*g[i] > 0 && g[i]*g[i+1] > 0 && math.Abs(g[i]) < math.Abs(g[i-1]) && math.Abs(g[i]) <= math.Abs(g[i+1]) {
			// There may be two zeros between these grid points.
			if y, gy := closest(excess, x[i-1], x[i+1], g[i]); gy*g[i] < 0 {
				roots = append(roots, root(excess, x[i-1], y, g[i-1], gy), root(excess, y, x[i+1], gy, g[i+1]))
			}
		}
	}
	var out []Stationary
	for _, r := range roots {
		v, err := p.At(ctx, math.Exp(r))
		if err != nil {
			return nil, err
		}
		const h = 1e-4
		out = append(out, Stationary{v, excess(r+h) < excess(r-h)})
	}
	if failed != nil {
		return nil, failed
	}
	return out, nil
}

// excess is log V′/V at x = log V.
func (p *Potential) excess(ctx context.Context, x float64) (float64, error) {
	sensor, err := p.model.Sensor(ctx, math.Exp(x), &p.opt)
	if err != nil {
		return 0, err
	}
	next := p.model.Entry(1/(p.model.Alpha*sensor.MHat.Value), &p.opt).MMSE.Value
	return math.Log(next) - x, nil
}

// root refines a bracketed zero of the excess: regula falsi, Illinois variant.
func root(excess func(x float64) float64, a, b, ga, gb float64) float64 {
	for range 100 {
		x := (a*gb - b*ga) / (gb - ga)
		g := excess(x)
		if g == 0 || math.Abs(b-a) < 1e-12 {
			return x
		}
		if g*gb < 0 {
			a, ga = b, gb
		} else {
			ga *= 0.5
		}
		step := math.Abs(x - b)
		b, gb = x, g
		if step < 1e-12 {
			return x
		}
	}
	return b
}

// closest looks between a and b for the place where the excess, which has the given
// sign at the ends, is nearest to zero, and stops as soon as it finds the other sign.
func closest(excess func(x float64) float64, a, b, sign float64) (x, g float64) {
	sign = math.Copysign(1, sign)
	s := search.NewGolden(func(x float64) float64 {
		return -sign * excess(x)
	}, a, b)
	for range 30 {
		if s.FC > 0 {
			return s.C, -sign * s.FC
		}
		if s.FD > 0 {
			return s.D, -sign * s.FD
		}
		s.Narrow()
	}
	return s.C, -sign * s.FC
}

// Energy is the free energy and what follows from it, for each of the N rows of
// X (P entries), in nats.
type Energy struct {
	F evolution.Number // f = -max φ over the stationary points

	// Dominant is the point of largest φ: its error is the least that any method
	// can reach. Algorithmic is the stable point of largest error, where cal-AMP
	// ends. The two differ in the hard phase.
	Dominant, Algorithmic Stationary

	// Information of the readings on the signals, I(X; Y | W)/N, and on signals
	// and gains together, I(X, s; Y | W)/N.
	Signals, Both evolution.Number
}

// FreeEnergy finds all stationary points, and what the largest φ among them says.
func (p *Potential) FreeEnergy(ctx context.Context) (*Energy, error) {
	points, err := p.StationaryPoints(ctx)
	if err != nil {
		return nil, err
	}
	if len(points) == 0 {
		return nil, fmt.Errorf("the potential has no stationary point")
	}
	e := &Energy{Dominant: points[0]}
	for _, s := range points {
		if s.Phi.Value > e.Dominant.Phi.Value {
			e.Dominant = s
		}
		if s.Stable {
			e.Algorithmic = s
		}
	}
	phi := e.Dominant.Phi
	e.F = evolution.Number{Value: -phi.Value, Err: phi.Err}

	// The information on the signals is H(Y) - H(Y|z), and -H(y|z) of a sensor is
	// I_z at V = 0, where z is known.
	given, err := p.model.Sensor(ctx, 0, &p.opt)
	if err != nil {
		return nil, err
	}
	alpha := p.model.Alpha
	e.Signals = evolution.Number{
		Value: e.F.Value + alpha*given.Evidence.Value,
		Err:   e.F.Err + alpha*given.Evidence.Err,
	}
	// Given z and s, y is Gaussian of variance Δ/s².
	noise := float64(p.model.P) * (0.5*math.Log(2*math.Pi*math.E*p.model.NoiseVar) - evolution.MeanLog(p.model.Gain))
	e.Both = evolution.Number{Value: e.F.Value - alpha*noise, Err: e.F.Err}
	return e, nil
}
