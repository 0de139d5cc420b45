package calamp

import (
	"fmt"
	"math"

	"github.com/calamp/calamp/prior"
	"github.com/calamp/calamp/recovery"
)

const (
	// narrowed is the posterior variance of s, relative to the prior's, above
	// which nothing was learned.
	narrowed = 0.9

	// unexplained is how many times the error that the noise alone causes is
	// no longer explained by it, and recovered the part of the signals' own
	// power below which they count as recovered anyway.
	unexplained = 30
	recovered   = 1e-3

	// edgeExcess is how many standard deviations outside its range a sensor's
	// posterior must want to be; by chance that happens to one in 10⁴.
	edgeExcess = 4
)

// warnings lists what the user should know before trusting the result.
func (r *run) warnings(res *Result) []Warning {
	var all []Warning
	add := func(w *Warning) {
		if w != nil {
			all = append(all, *w)
		}
	}
	add(r.warnSignals(res))
	add(r.warnMeasurements())
	add(r.warnSingle())
	add(r.warnSilent())
	add(r.warnBroken(res))
	add(r.warnUnmeasured())
	add(r.warnMatrixMean())
	add(r.warnOverconfident(res))
	add(r.warnAlike(res))
	add(r.warnNothingLearned(res))
	add(r.warnUnexplained())
	add(r.warnEdges())
	add(r.warnRounded())
	add(r.warnScale())
	add(r.warnOnlyNoise())
	return all
}

// warnAlike is about runs that [amp.Joint] helped.
func (r *run) warnAlike(res *Result) *Warning {
	if r.solver.Joint == nil || res.Status != Converged {
		return nil
	}
	return &Warning{Code: SignalsAlike, Message: fmt.Sprintf("all sensors read the signals in nearly the same proportions (%.3g of the readings' power): gains can take the place of what the signals have in common; they were moved together, and the error bars hold only as far as the model does", r.solver.Joint.Alike)}
}

func (r *run) warnSignals(res *Result) *Warning {
	if r.opt.Tol < 0 || res.Status == Cancelled {
		return nil
	}
	w := Warning{Code: SignalNotConverged}
	for k, done := range res.Converged {
		if !done {
			w.Signals = append(w.Signals, k)
		}
	}
	if len(w.Signals) == 0 {
		return nil
	}
	if res.Status == Diverged {
		w.Message = fmt.Sprintf("%d of %d signals did not converge: the estimates blew up", len(w.Signals), r.p)
		return &w
	}
	k := w.Signals[0]
	w.Message = fmt.Sprintf("%d of %d signals did not converge, the first is signal %d with a relative change of %.2g in the last iteration", len(w.Signals), r.p, k, res.Change[k])
	return &w
}

func (r *run) warnMeasurements() *Warning {
	g, ok := r.signal()
	if !ok {
		return nil
	}
	alpha := float64(r.usable()) / float64(r.n)
	least := recovery.AlphaCS(g)
	text := fmt.Sprintf("α_CS = %.4g, needed at density %g even with known gains", least, g.Density)
	if r.blind && r.p > 1 {
		counting := recovery.AlphaMin(g.Density, r.p)
		text = fmt.Sprintf("α_min = %.4g, the counting bound for %d signals, and %s", counting, r.p, text)
		least = max(least, counting)
	}
	if alpha >= least {
		return nil
	}
	return &Warning{
		Code:    TooFewMeasurements,
		Message: fmt.Sprintf("α = M/N = %.4g is below what exact recovery needs: %s", alpha, text),
	}
}

// usable is the number of sensors that say something of the signals.
func (r *run) usable() int {
	usable := r.m - len(r.silent)
	for mu := range r.m {
		if r.isBroken(mu) {
			usable--
		}
	}
	return usable
}

// density is the probability of an entry not to be zero, where it is known.
func (r *run) density() (rho float64, ok bool) {
	switch p := r.engine.Prior.(type) {
	case prior.GaussBernoulli:
		return p.Density, true
	case prior.LearnedGaussBernoulli:
		return p.Density, true
	case prior.NonNegative:
		return p.Density, true
	case prior.Laplace:
		return p.Density, true
	case prior.Mixture:
		return p.Density(), true
	case prior.LearnedMixture:
		return p.Density(), true
	}
	return 0, false
}

func (r *run) warnSingle() *Warning {
	if !r.blind || r.p > 1 {
		return nil
	}
	return &Warning{Code: SingleSignal, Message: "with one signal the gains are known hardly better than beforehand; give more signals from the same sensors"}
}

func (r *run) warnSilent() *Warning {
	if len(r.silent) == 0 {
		return nil
	}
	message := fmt.Sprintf("%s no usable reading; calibration there is the prior's", sensors(r.silent))
	if len(r.zero) > 0 {
		message = fmt.Sprintf("%s only readings of exactly zero, taken as missing; calibration there is the prior's", sensors(r.silent))
	}
	return &Warning{Code: SilentSensor, Message: message, Sensors: r.silent}
}

// sensors is "sensor 3 has", or "4 sensors (first: 3) have".
func sensors(list []int) string {
	if len(list) == 1 {
		return fmt.Sprintf("sensor %d has", list[0])
	}
	return fmt.Sprintf("%d sensors (first: sensor %d) have", len(list), list[0])
}

func (r *run) warnUnmeasured() *Warning {
	var first, count int
	for i := r.n - 1; i >= 0; i-- {
		if math.IsInf(r.engine.Sigma[i], 1) {
			first = i
			count++
		}
	}
	if count == 0 || len(r.trace) == 0 {
		return nil
	}
	return &Warning{
		Code:    UnmeasuredEntry,
		Message: fmt.Sprintf("%d of the %d columns of W are zero at every sensor that reads (first: column %d); the signals there are the prior's mean", count, r.n, first),
	}
}

func (r *run) warnNothingLearned(res *Result) *Warning {
	if !r.blind || len(r.trace) == 0 {
		return nil
	}
	_, before := r.gain.Prior.Moments()
	after := mean(res.SVar)
	if after < narrowed*before {
		return nil
	}
	if r.opt.Learn.Range {
		return &Warning{
			Code:    RangeNotLearned,
			Message: fmt.Sprintf("the readings do not tell the spread of s: [%.4g, %.4g] is what they agree with, and no sensor is known better", r.gain.Prior.Lo, r.gain.Prior.Hi),
		}
	}
	return &Warning{
		Code:    NothingLearned,
		Message: fmt.Sprintf("the posterior of s is no narrower than its prior: standard deviation %.3g, before the readings %.3g", math.Sqrt(after), math.Sqrt(before)),
	}
}

// warnUnexplained compares the posterior variances with what noise alone would
// cause if gains and supports were known: C = ρΔ/(w̄(M - ρN)), from Σ = (V+Δ)/(w̄M),
// V = w̄NC and C = ρΣ.
func (r *run) warnUnexplained() *Warning {
	density, ok := r.density()
	if !ok || len(r.trace) == 0 {
		return nil
	}
	active, own := float64(r.usable()), r.engine.Prior.Variance()
	spare := max(active-density*float64(r.n), 0.01*active)
	explained := density * noiseOf(r.engine.Channel) / (r.problem.W.MeanSquare() * spare)
	limit := max(unexplained*explained, recovered*own)
	w := Warning{Code: UnexplainedVariance}
	worst := 0.0
	for k := range r.p {
		if c := r.engine.SumC[k] / float64(r.n); c > limit {
			w.Signals = append(w.Signals, k)
			worst = max(worst, c)
		}
	}
	if len(w.Signals) == 0 {
		return nil
	}
	w.Message = fmt.Sprintf("%d of %d signals are not recovered: mean posterior variance up to %.2g, where the noise explains %.2g and the signals' own variance is %.2g", len(w.Signals), r.p, worst, explained, own)
	return &w
}

func (r *run) warnEdges() *Warning {
	if !r.blind {
		return nil
	}
	if r.opt.Learn.Range {
		return r.warnOutlying()
	}
	w := Warning{Code: SensorAtEdge}
	worst, at := 0.0, 0
	for mu := range r.m {
		x := math.Abs(r.gain.Prior.Excess(r.engine.Count[mu], r.engine.Tau[mu], r.engine.B[mu]))
		if x > edgeExcess && !r.isBroken(mu) {
			w.Sensors = append(w.Sensors, mu)
			if x > worst {
				worst, at = x, mu
			}
		}
	}
	if len(w.Sensors) == 0 {
		return nil
	}
	w.Message = fmt.Sprintf("%d of %d sensors want a calibration outside [%g, %g]; sensor %d most, by %.3g of its standard deviations: a faulty sensor, or a range too narrow", len(w.Sensors), r.m, r.gain.Prior.Lo, r.gain.Prior.Hi, at, worst)
	return &w
}

// warnRounded tells that rounding is no longer small beside the noise.
func (r *run) warnRounded() *Warning {
	noise := noiseOf(r.problem.Channel)
	if !(r.rounding > 0.01*noise) {
		return nil
	}
	return &Warning{Code: RoundedMatrix, Message: fmt.Sprintf(
		"W was rounded to single precision, as asked: that is noise of variance %.2g, which was added to the %.2g given; f64 or auto reach further",
		r.rounding, noise)}
}
