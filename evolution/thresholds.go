package evolution

import (
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

func (o *ThresholdOptions) network() []Layer {
	if o == nil {
		return nil
	}
	return o.Network
}

func (o *ThresholdOptions) entries() prior.Slabbed {
	if o == nil {
		return nil
	}
	return o.Entries
}

func (o *ThresholdOptions) readings() *Readings {
	if o == nil {
		return nil
	}
	return o.Readings
}

func (o *ThresholdOptions) offsetSD() float64 {
	if o == nil {
		return 0
	}
	return o.OffsetSD
}

func (o *ThresholdOptions) points() int {
	if o == nil {
		return 0
	}
	return o.Points
}

func (o *ThresholdOptions) heeding(ctx context.Context) *work {
	if o == nil {
		return newWork(ctx, 0)
	}
	return newWork(ctx, o.Work)
}

func (o *ThresholdOptions) table() *Table {
	if o == nil {
		return nil
	}
	return o.Table
}

func (o *ThresholdOptions) target() float64 {
	if o == nil || o.Target == 0 {
		return 1e-5
	}
	return o.Target
}

func (o *ThresholdOptions) tol() float64 {
	if o == nil || o.Tol == 0 {
		return 1e-4
	}
	return o.Tol
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
	e, err := newEvolution(Model{Signal: g, Gain: gain, NoiseVar: noiseVar, Alpha: 1, P: p, Network: opt.network(), Entries: opt.entries(), Readings: opt.readings()}, &Options{Table: opt.table()})
	if err != nil {
		return Number{}, err
	}
	if e.Network != nil && opt.offsetSD() != 0 {
		return Number{}, errNetworkOffline
	}
	if sd := opt.offsetSD(); sd != 0 {
		m := e.Model
		m.OffsetSD = sd
		if err := m.Validate(); err != nil {
			return Number{}, err
		}
		e.sensors = newOffsetSensors(m.offsets(), p, offsetPoints, 0)
	}
	e.work = opt.heeding(ctx)
	unit, variance := g.SignalVar, e.Variance()
	if e.Network != nil {
		unit = e.q0
	}
	target := opt.target() * unit
	if !(target > 0) || target >= variance {
		return Number{}, fmt.Errorf("the target error must be positive and below the prior's variance %g, found %g", variance, target)
	}
	tol := opt.tol()
	e.tol = min(1e-8, 0.01*tol)
	if e.Network != nil {
		e.tol = networkLeastIn // as near as averages over points are
	}
	lo, hi := math.Log(e.fieldOf(target, unit)), math.Log(unit)+8
	best, at := e.maximalAlpha(lo), lo
	const step = 0.25
	for x := lo + step; x < hi; x += step {
		if err := ctx.Err(); err != nil {
			return Number{}, err
		}
		if a := e.maximalAlpha(x); a > best {
			best, at = a, x
		}
	}
	found := e.peak(at, best, lo, step, tol)
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
func (e *evolution) maximalAlpha(x float64) float64 {
	sigma := math.Exp(x)
	v := e.average(sigma, e.tol).Variance.Value
	return 1 / (sigma * e.output(v).chiHat.Value)
}

// peak refines the maximum near x by golden sections. The error stated is the
// difference between the top and the ends of the last bracket.
func (e *evolution) peak(x, top, least, step, tol float64) Number {
	g := search.NewGolden(e.maximalAlpha, max(least, x-step), x+step)
	for {
		top = max(top, g.FC, g.FD)
		low := min(g.FC, g.FD)
		if top-low <= 0.1*tol || g.B-g.A < 1e-6 || !g.Narrow() {
			return Number{Value: top, Err: (top - low) + 1e-9*top}
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
