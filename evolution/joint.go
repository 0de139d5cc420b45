package evolution

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"

	"gonum.org/v1/gonum/mathext"

	"github.com/calamp/calamp/internal/quadrature"
)

// JointModel is a problem whose signals belong together: an entry is zero in all of them or in none, and where it is not its P values are
// N(0, R), each of the variance v of Signal, any two of which have the correlation Correlation. Groups, offsets and networks have no place in it.
//
// In a basis in which R is diagonal all overlaps are, since neither prior nor channel changes with the sign of one of these coordinates. Coordinates with one eigenvalue
// have the same numbers: there are one with 1+(P-1)c, which is the mean of the signals, and P-1 with 1-c; with c = 0 one kind is all of them.
type JointModel struct {
	Model
	Correlation float64 // c of two signals, in [0, 1)
}

// Validate reports a parameter that describes no model.
func (m JointModel) Validate() error {
	if err := m.Model.Validate(); err != nil {
		return err
	}
	switch {
	case m.P < 2:
		return fmt.Errorf("joint signals: expected P of 2 or more that could have something in common, found %d", m.P)
	case m.Groups != nil || m.OffsetSD != 0 || m.Network != nil || m.Entries != nil:
		return errors.New("joint signals have entries of one prior, and sensors without offsets")
	case m.Signal.SignalMean != 0:
		return fmt.Errorf("joint signals have the mean 0 where they are not zero, found %g", m.Signal.SignalMean)
	case !(m.Correlation >= 0 && m.Correlation < 1):
		return fmt.Errorf("the correlation of joint signals must be in [0, 1): with 1 their covariance is singular, and one snapshot says as much as all; found %g", m.Correlation)
	}
	return nil
}

// kind is a number of coordinates that have one variance where they are not zero.
type kind struct{ count, variance float64 }

func (m JointModel) kinds() []kind {
	p, v := float64(m.P), m.Signal.SignalVar
	if m.Correlation == 0 {
		return []kind{{p, v}}
	}
	return []kind{{1, v * (1 + (p-1)*m.Correlation)}, {p - 1, v * (1 - m.Correlation)}}
}

const (
	jointPoints  = 8192
	jointLots    = 8
	jointNumbers = 4    // of a [jointPoint]
	jointTol     = 1e-7 // of averages over an entry, where those over sensors are over points
	mostChi      = 12   // standard deviations of χ, of 1/√2 each at most, from √n: 1e-60 lie beyond
	followSteps  = 100  // of [jointEvolution.follow]
	followTol    = 1e-5 // a tenth of the default tolerance on α
	mostAhead    = 100  // that two kinds may differ by in log Σ
)

// jointPoint is a sensor: χ of each kind, its true calibration and u, what ω has along the readings beside its mean, in standard deviations.
type jointPoint struct {
	chi   [2]float64
	s0, u float64
}

// jointEvolution is the map from the errors of each kind to those after an iteration.
type jointEvolution struct {
	JointModel
	kinds []kind
	tol   float64
	work  *work
	lots  [][]jointPoint // nil for one kind, or for known gains
	ahead float64        // log Σ of the first kind less that of the last, at the latest fixed point of two
}

func newJointEvolution(m JointModel, tol float64, points int, w *work) (*jointEvolution, error) {
	if err := m.Validate(); err != nil {
		return nil, err
	}
	e := &jointEvolution{JointModel: m, kinds: m.kinds(), tol: tol, work: w}
	if len(e.kinds) == 1 {
		return e, nil
	}
	e.tol = max(tol, jointTol)
	if m.Gain.Lo == m.Gain.Hi {
		return e, nil
	}
	if points == 0 {
		points = jointPoints
	}
	rng, none := rand.New(rand.NewPCG(0, 36)), make([]float64, m.Gain.Width())
	for range jointLots {
		shift := randomShift(rng, jointNumbers)
		lot := make([]jointPoint, max(1, points/jointLots))
		for i := range lot {
			x := evenly(i, shift)
			lot[i] = jointPoint{s0: m.Gain.Quantile(none, x[2]), u: quantile(x[3])}
			for k, d := range e.kinds {
				lot[i].chi[k] = math.Sqrt(2 * mathext.GammaIncRegInv(0.5*d.count, x[k]))
			}
		}
		e.lots = append(e.lots, lot)
	}
	return e, nil
}

// jointState are the numbers of each kind.
type jointState struct {
	v, mHat []Number
	mseS    Number
}

// start is the state before the first iteration; informed, that of the informed initialisation, at the true signals.
func (e *jointEvolution) start(informed bool) jointState {
	s := jointState{v: make([]Number, len(e.kinds))}
	if informed {
		return s
	}
	for k, d := range e.kinds {
		s.v[k].Value = e.Signal.Density * d.variance
	}
	return s
}

// step is one iteration.
func (e *jointEvolution) step(s jointState) jointState {
	next := e.output(values(s.v))
	precision := make([]float64, len(e.kinds))
	for k, m := range next.mHat {
		precision[k] = e.Alpha * m.Value
	}
	next.v = e.entry(precision)
	for k, m := range next.mHat {
		next.v[k].Err += m.Relative() * next.v[k].Value
	}
	return next
}

func values(list []Number) []float64 {
	out := make([]float64, len(list))
	for k, n := range list {
		out[k] = n.Value
	}
	return out
}

// mean is that over the signals.
func (e *jointEvolution) mean(list []Number) (mean Number) {
	for k, d := range e.kinds {
		mean.Value += d.count / float64(e.P) * list[k].Value
		mean.Err += d.count / float64(e.P) * list[k].Err
	}
	return mean
}

func (e *jointEvolution) words(s jointState) Step {
	return Step{MSEX: e.mean(s.v), MHat: e.mean(s.mHat), MSES: s.mseS}
}

// output is the sensors' part, from the errors V_k of each kind. With D = V+Δ, T = q₀+Δ and c = (q₀-V)/T, a sensor's information on its gain is what
//
//	τ = Σ τ_k,  τ_k = T_k χ_k²/(s₀²D_k),   B = s₀L + √L u,  L = Σ c_k τ_k
//
// say, and m̂_k = -E∂g = (1 - E Cˢτ_k/n_k)/D_k. The differences from 1 are computed without cancellation from 1-Cˢτ.
func (e *jointEvolution) output(v []float64) (s jointState) {
	s.mHat = make([]Number, len(e.kinds))
	switch {
	case e.Gain.Lo == e.Gain.Hi:
		for k := range e.kinds {
			s.mHat[k].Value = 1 / max(leastDelta, v[k]+e.NoiseVar)
		}
	case len(e.kinds) == 1:
		t0 := e.Signal.Density*e.kinds[0].variance + e.NoiseVar
		a := bayesAverages(e.P, e.Gain, max(leastDelta, min(1, (v[0]+e.NoiseVar)/t0)), e.tol, e.work)
		s.mHat[0], s.mseS = Number{a.chiHat.Value / t0, a.chiHat.Err / t0}, a.mseS
	default:
		e.sampled(v, &s)
	}
	return s
}

// sampled is output by averages over points.
func (e *jointEvolution) sampled(v []float64, s *jointState) {
	var ratio, known, d [2]float64 // T/D, c and D
	for k, at := range e.kinds {
		q0 := e.Signal.Density * at.variance
		d[k] = max(leastDelta, v[k]+e.NoiseVar)
		ratio[k], known[k] = (q0+e.NoiseVar)/d[k], max(0, q0-v[k])/(q0+e.NoiseVar)
	}
	sums := make([][3]float64, len(e.lots))
	gain, p := trimmed(e.Gain), float64(e.P)
	parallel(len(e.lots), func(j int) {
		for i := range e.lots[j] {
			e.work.spend(posteriorValues)
			at := &e.lots[j][i]
			var tau [2]float64
			for k, chi := range at.chi {
				tau[k] = ratio[k] * (chi / at.s0) * (chi / at.s0)
			}
			both, l := tau[0]+tau[1], known[0]*tau[0]+known[1]*tau[1]
			post := posterior(gain, p, both, (at.s0*l+math.Sqrt(l)*at.u)/both, quadrature.Fast)
			shrink := post.shrink(p, both)
			for k := range 2 {
				sums[j][k] += (tau[1-k] + shrink*tau[k]) / both // 1 - Cˢτ_k
			}
			sums[j][2] += post.Var
		}
	})
	var all [3]moments
	for j, lot := range e.lots {
		for k := range all {
			all[k].add(sums[j][k] / float64(len(lot)))
		}
	}
	for k, at := range e.kinds {
		left := all[k].number()
		s.mHat[k] = Number{(at.count - 1 + left.Value) / (at.count * d[k]), left.Err / (at.count * d[k])}
	}
	s.mseS = all[2].number()
}

// entry is the prior's part: the errors of each kind of coordinate that is seen through a field of precision a. A row that is there has n of each kind with
// fields λ ~ N(0, r+1/a), and C = πS + π(1-π)µµᵀ. Since E π f = ρ E[f | there],
//
//	V_k = ρ S_k + ρ E[(1-π) |µ_k|²]/n_k,   S = r/(1+ra),   |µ|² = r S a χ²,   log odds = log ρ/(1-ρ) + ½ Σ_k r a χ² - n log(1+ra).
func (e *jointEvolution) entry(precision []float64) []Number {
	rho, out := e.Signal.Density, make([]Number, len(e.kinds))
	h := hidden{kinds: e.kinds, beta: make([]float64, len(e.kinds)), odds: math.Log(rho) - math.Log1p(-rho), work: e.work}
	for k, d := range e.kinds {
		h.beta[k] = d.variance * precision[k]
		h.odds -= 0.5 * d.count * math.Log1p(h.beta[k])
	}
	missed := make([]Number, len(e.kinds))
	if rho < 1 {
		missed = h.average(e.tol)
	}
	for k, d := range e.kinds {
		within := rho * d.variance / (1 + h.beta[k])
		factor := within * h.beta[k] / d.count
		out[k] = Number{within + factor*missed[k].Value, factor * missed[k].Err}
	}
	return out
}

// hidden averages χ_k² over rows that are there, times the probability that they are not by their fields.
type hidden struct {
	kinds []kind
	beta  []float64 // ra
	norm  []float64 // logarithms of the norms of χ's densities
	odds  float64   // logarithm of the odds at χ = 0
	work  *work
}

// average is to an absolute accuracy of tol in units of what [jointEvolution.entry] adds it to.
func (h *hidden) average(tol float64) []Number {
	outer := quadrature.NewIntegrator(tol)
	for k, d := range h.kinds {
		outer.Floor[k] = d.count / h.beta[k]
		h.norm = append(h.norm, (1-0.5*d.count)*math.Ln2-lgamma(0.5*d.count))
	}
	var r quadrature.Result
	if last := len(h.kinds) - 1; last == 0 {
		r = h.over(outer, 0, h.odds, 0)
	} else {
		inner := outer
		inner.Tol *= 0.1
		r = outer.Integrate(func(x float64) (value, err quadrature.Vec) {
			in := h.over(inner, 1, h.odds+0.5*h.beta[0]*x*x, x)
			density := h.density(0, x)
			for k := range h.kinds {
				value[k], err[k] = density*in.Value[k], density*in.Err[k]
			}
			return value, err
		}, h.cuts(0, h.odds+0.5*h.beta[1]*h.kinds[1].count))
	}
	out := make([]Number, len(h.kinds))
	for k := range out {
		out[k] = Number{r.Value[k], r.Err[k]}
	}
	return out
}

// over integrates over χ of the last kind, with these odds at 0, where that of the first is x.
func (h *hidden) over(q quadrature.Integrator, last int, odds, x float64) quadrature.Result {
	return q.Integrate(func(y float64) (value, err quadrature.Vec) {
		h.work.spend(1)
		w := h.density(last, y) / (1 + math.Exp(odds+0.5*h.beta[last]*y*y))
		value[0], value[last] = w*x*x, w*y*y
		return value, err
	}, h.cuts(last, odds))
}

// cuts are ends of panels over χ of a kind: of its own density, and about where a row with these odds at 0 goes over from zero to being there.
func (h *hidden) cuts(of int, odds float64) []float64 {
	n, beta := h.kinds[of].count, h.beta[of]
	lo, hi := max(0, math.Sqrt(n)-mostChi), math.Sqrt(n)+mostChi
	var marks []float64
	for _, t := range [...]float64{-4, -2, 0, 2, 4} {
		marks = append(marks, math.Sqrt(n)+t)
	}
	turn := math.Sqrt(max(1, -2*odds) / beta)
	width := 1 / (beta * turn)
	for _, t := range [...]float64{-8, -3, 0, 3, 8, 20} {
		marks = append(marks, turn+t*width)
	}
	return quadrature.Panels(lo, hi, 0.3*min(1, width), marks)
}

// density is that of χ of a kind.
func (h *hidden) density(of int, x float64) float64 {
	log := h.norm[of] - 0.5*x*x
	if n := h.kinds[of].count; n > 1 {
		log += (n - 1) * math.Log(x)
	}
	return math.Exp(log)
}

// JointOffline is [Offline] for signals that belong together, for a solver that is given the model, R included. MSEX and MHat are means over the signals.
// With a correlation the sensors' part is an average over points, with standard errors; how these grow along a trajectory is not in them.
func JointOffline(ctx context.Context, m JointModel, opt *Options) (out *Trajectory, err error) {
	defer ending(&err)
	e, err := optedJoint(ctx, m, opt)
	if err != nil {
		return nil, err
	}
	out = &Trajectory{}
	s := e.start(false)
	for range opt.iterations(defaultSteps) {
		if err := ctx.Err(); err != nil {
			return out, err
		}
		s = e.step(s)
		out.Steps = append(out.Steps, e.words(s))
		opt.progress(len(out.Steps))
	}
	return out, nil
}

func optedJoint(ctx context.Context, m JointModel, opt *Options) (*jointEvolution, error) {
	if err := opt.validate(); err != nil {
		return nil, err
	}
	if opt != nil && (opt.Table != nil || opt.Informed) {
		return nil, errors.New("joint signals: there is no table for them, and no start from the truth")
	}
	return newJointEvolution(m, opt.tol(), 0, opt.heeding(ctx))
}

// JointFixedPoint is where [JointOffline] ends. It iterates until what is left of the way, by the rate of the last two iterations, is below the tolerance.
func JointFixedPoint(ctx context.Context, m JointModel, opt *Options) (p *Point, err error) {
	defer ending(&err)
	e, err := optedJoint(ctx, m, opt)
	if err != nil {
		return nil, err
	}
	return e.fixedPoint(ctx, e.start(false), opt.tol(), opt.iterations(defaultLimit))
}

func (e *jointEvolution) fixedPoint(ctx context.Context, s jointState, tol float64, limit int) (*Point, error) {
	p, previous := &Point{}, 0.0
	for last := max(e.mean(s.v).Value, math.SmallestNonzeroFloat64); p.Evaluations < limit && !p.Converged; p.Evaluations++ {
		if err := ctx.Err(); err != nil {
			return p, err
		}
		s = e.step(s)
		p.Step = e.words(s)
		change := math.Abs(math.Log(p.MSEX.Value / last))
		rate := min(change/previous, 1) // Inf, and so 1, at first
		p.Converged = change == 0 || change*rate <= tol*(1-rate)
		last, previous = p.MSEX.Value, change
	}
	return p, nil
}

// JointAlphaCal is [AlphaCal] for signals that belong together. With two kinds of coordinates the fixed points are a curve, which is followed along the field of the
// kind that most have: at each the other's is the one at which their ratio is that of m̂.
func JointAlphaCal(ctx context.Context, m JointModel, opt *ThresholdOptions) (alpha Number, err error) {
	defer ending(&err)
	m.Alpha = 1
	o := opt.orDefault()
	e, err := newJointEvolution(m, min(1e-8, 0.01*o.Tol), o.Points, newWork(ctx, o.Work))
	if err != nil {
		return Number{}, err
	}
	v := m.Signal.SignalVar
	target := o.Target * v
	if !(target > 0) || target >= m.Signal.Density*v {
		return Number{}, fmt.Errorf("the target error must be positive and below the prior's variance %g, found %g", m.Signal.Density*v, target)
	}
	lo, err := e.fieldAt(target)
	if err != nil {
		return Number{}, err
	}
	alphaAt := func(x float64) Number { return e.follow(x).alpha }
	at, best, err := highest(ctx, alphaAt, lo, math.Log(v)+fieldsAbove)
	if err != nil {
		return Number{}, err
	}
	return peak(alphaAt, at, best, lo, o.Tol), nil
}

// JointAlphaCS is the same for known gains, without noise: it goes to the density ρ as signals become many, which mmse/Σ is where errors are small.
func JointAlphaCS(ctx context.Context, m JointModel) (Number, error) {
	m.Gain, m.NoiseVar = Known(1), 0
	alpha, err := JointAlphaCal(ctx, m, nil)
	alpha.Value = max(alpha.Value, m.Signal.Density)
	return alpha, err
}

// jointFixed is a fixed point: the α for which it is one, and its errors.
type jointFixed struct {
	alpha Number
	v     []float64
}

// follow finds the fixed point at which the field of the last kind has the variance Σ = e^x. That of the first one is between two places from which it moves to each
// other, and found there by the Illinois variant of regula falsi: where signals are many and strongly correlated it moves by a hundredth of the way.
func (e *jointEvolution) follow(x float64) jointFixed {
	if len(e.kinds) == 1 {
		found, _ := e.fixed(x, x)
		return found
	}
	a := x + e.ahead
	found, to := e.fixed(a, x)
	ga, b, gb := to-a, a, to-a
	for step := ga; ga*gb > 0 && math.Abs(b-a) < mostAhead; step *= 2 {
		a, ga, b = b, gb, b+step
		found, to = e.fixed(b, x)
		gb = to - b
	}
	for range followSteps {
		if math.Abs(b-a) <= followTol || math.Abs(gb) <= 0.01*followTol {
			e.ahead = b - x
			return found
		}
		at := (a*gb - b*ga) / (gb - ga)
		found, to = e.fixed(at, x)
		g := to - at
		if g*gb < 0 {
			a, ga = b, gb
		} else {
			ga *= 0.5
		}
		b, gb = at, g
	}
	return jointFixed{alpha: Number{math.NaN(), math.NaN()}}
}

// fixed is what fields of the variances e^first and e^last lead to, and where it moves the first one.
func (e *jointEvolution) fixed(first, last float64) (found jointFixed, to float64) {
	precision := []float64{math.Exp(-first), math.Exp(-last)}[2-len(e.kinds):]
	found.v = values(e.entry(precision))
	out := e.output(found.v)
	mHat := out.mHat[len(out.mHat)-1]
	found.alpha.Value = math.Exp(-last) / mHat.Value
	found.alpha.Err = found.alpha.Value * mHat.Relative()
	return found, last + math.Log(mHat.Value/out.mHat[0].Value)
}

// fieldAt is log Σ of the fixed point whose error is v. An entry's error is about ρΣ where it is small, and so the search takes few steps.
func (e *jointEvolution) fieldAt(v float64) (float64, error) {
	x := math.Log(v / e.Signal.Density)
	for range halvings {
		found := e.follow(x)
		if found.v == nil {
			break
		}
		total := 0.0
		for k, d := range e.kinds {
			total += d.count / float64(e.P) * found.v[k]
		}
		off := math.Log(v / total)
		if x += off; math.Abs(off) <= 10*followTol {
			return x, nil
		}
	}
	return 0, fmt.Errorf("state evolution: no fixed point with the error %g was found", v)
}
