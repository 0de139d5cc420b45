package evolution

import (
	"cmp"
	"context"
	"fmt"
	"math"

	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/internal/field"
	"github.com/calamp/calamp/internal/search"
	"github.com/calamp/calamp/prior"
)

// ThresholdOptions say what a threshold is and how accurately it is computed.
type ThresholdOptions struct {
	// Target is the mean square error, in units of the variance v of non-zero entries,
	// at or below which reconstruction counts as a success. The default is 1e-5.
	Target float64
	// Tol is the error allowed on α. Default 1e-4.
	Tol float64
	// Table and Work are as in [Options].
	Table *Table
	Work  int64
	// Points is how many readings the output side of complex problems is averaged over; 0 is their default.
	Points int
	// OffsetSD is that of [Model]. The threshold is then that of the diagonal ansatz, which solvers use.
	OffsetSD float64
	// Network is that of [Model]. The target is then in units of E x², and the error of a threshold that of averages over points, too.
	Network []Layer
	// Entries are those of [Model].
	Entries prior.Slabbed
	// Readings are those of [Model].
	Readings *Readings
}

// orDefault is the options with what is used where nothing was set.
func (o *ThresholdOptions) orDefault() ThresholdOptions {
	var set ThresholdOptions
	if o != nil {
		set = *o
	}
	set.Target, set.Tol = cmp.Or(set.Target, 1e-5), cmp.Or(set.Tol, 1e-4)
	return set
}

// AlphaCal is the algorithmic threshold of offline cal-AMP: the smallest α at
// which state evolution from no information reaches the target. It is +Inf when
// no α does.
//
// The map V → V′ increases in V and decreases in α, so the iteration stops above the
// target exactly if there is a fixed point above it. The α for which V = mmse(Σ) is a
// fixed point is 1/(Σ m̂(V)); the threshold is the largest of these over all V between
// the target and the prior's variance. No iteration is run. With known gains and
// without noise the threshold is recovery.AlphaCS.
func AlphaCal(ctx context.Context, g prior.GaussBernoulli, gain channel.GainPrior, noiseVar float64, p int, opt *ThresholdOptions) (alpha Number, err error) {
	defer ending(&err)
	o := opt.orDefault()
	e, err := newEvolution(Model{Signal: g, Gain: gain, NoiseVar: noiseVar, Alpha: 1, P: p, Network: o.Network, Entries: o.Entries, Readings: o.Readings}, &Options{Table: o.Table})
	if err != nil {
		return Number{}, err
	}
	if e.Network != nil && o.OffsetSD != 0 {
		return Number{}, errNetworkOffline
	}
	if o.OffsetSD != 0 {
		m := e.Model
		m.OffsetSD = o.OffsetSD
		if err := m.Validate(); err != nil {
			return Number{}, err
		}
		e.sensors = newOffsetSensors(m.offsets(), p, offsetPoints, 0)
	}
	e.work = newWork(ctx, o.Work)
	unit, variance := g.SignalVar, e.Variance()
	if e.Network != nil {
		unit = e.q0
	}
	target := o.Target * unit
	if !(target > 0) || target >= variance {
		return Number{}, fmt.Errorf("the target error must be positive and below the prior's variance %g, found %g", variance, target)
	}
	e.tol = min(1e-8, 0.01*o.Tol)
	if e.Network != nil {
		e.tol = networkLeastIn // as near as averages over points are
	}
	lo := math.Log(e.fieldOf(target, unit))
	at, best, err := highest(ctx, e.maximalAlpha, lo, math.Log(unit)+fieldsAbove)
	if err != nil {
		return Number{}, err
	}
	found := peak(e.maximalAlpha, at, best, lo, o.Tol)
	if e.sensors != nil || e.readings != nil {
		f := field.Matched(g, math.Exp(at))
		found.Err += e.output(f.Integrate(e.tol).Variance.Value).chiHat.Relative() * found.Value
	}
	if e.Network != nil {
		v := e.average(math.Exp(at), e.tol).Variance
		found.Err += Number(v).Relative() * found.Value
	}
	return found, nil
}

// maximalAlpha is the α at which V = mmse(Σ) is a fixed point, Σ = e^x.
func (e *evolution) maximalAlpha(x float64) Number {
	sigma := math.Exp(x)
	v := e.average(sigma, e.tol).Variance.Value
	return Number{Value: 1 / (sigma * e.output(v).chiHat.Value)}
}

const (
	fieldStep   = 0.25 // in log Σ, of the scan for a threshold
	fieldsAbove = 8    // log Σ/v at which it ends: fields that say nothing
)

// highest scans α as a function of log Σ from lo to hi, and returns where it is largest.
func highest(ctx context.Context, alpha func(x float64) Number, lo, hi float64) (at float64, best Number, err error) {
	at, best = lo, alpha(lo)
	for x := lo + fieldStep; x < hi; x += fieldStep {
		if err := ctx.Err(); err != nil {
			return 0, Number{}, err
		}
		if a := alpha(x); a.Value > best.Value {
			at, best = x, a
		}
	}
	return at, best, nil
}

// golden is what looks for the maximum of α near x, from least on.
func golden(alpha func(x float64) Number, x, least float64) *search.Golden {
	return search.NewGolden(func(x float64) float64 { return alpha(x).Value }, max(least, x-fieldStep), x+fieldStep)
}

// peak refines the maximum near x by golden sections. The error stated is the
// difference between the top and the ends of the last bracket, beside that of the top.
func peak(alpha func(x float64) Number, x float64, top Number, least, tol float64) Number {
	g := golden(alpha, x, least)
	for {
		top.Value = max(top.Value, g.FC, g.FD)
		low := min(g.FC, g.FD)
		if top.Value-low <= 0.1*tol || g.B-g.A < 1e-6 || !g.Narrow() {
			top.Err += (top.Value - low) + 1e-9*top.Value
			return top
		}
	}
}

// halvings are more than it takes to bisect an interval to double precision.
const halvings = 100

// fieldOf inverts mmse(Σ) = v: the Σ whose posterior variance is v, of entries of size unit. mmse(Σ) ≤ Σ, and it is increasing. Of a network it may jump: then
// Σ is where it does.
func (e *evolution) fieldOf(v, unit float64) float64 {
	lo, hi, near := math.Log(v)-1, math.Log(unit)+40, 1e-12
	if e.Network != nil {
		hi, near = math.Log(unit)+8, networkConverged
	}
	for range halvings {
		mid := 0.5 * (lo + hi)
		if !(hi-lo > near*math.Abs(hi) && hi-lo > 0.1*near) {
			break
		}
		if e.average(math.Exp(mid), min(1e-10, e.tol)).Variance.Value < v {
			lo = mid
		} else {
			hi = mid
		}
	}
	return math.Exp(0.5 * (lo + hi))
}
