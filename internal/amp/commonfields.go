package amp

import (
	"math"

	"github.com/calamp/calamp/prior"
)

const (
	// leastAlong is the least information on what signals have in common, relative to that on what they differ in.
	leastAlong = 1e-6

	// leastProportion of the size of all signals together has one that is in common proportions with the others.
	leastProportion = 1e-3
)

// commonFields is what readings say of an entry in all signals together, where these have common proportions t, a unit vector.
// Gains can make up for what all signals have in common, so that minus the second derivatives of log Z_out, on
// average over the sensors, are
//
//	J = J⊥ (I - t tᵀ) + Jₜ t tᵀ
//
// of which AMP, signal by signal, knows the diagonal. With the gradients r = (λ-x̂)/Σ of AMP's fields that is
//
//	λ_k = x_k + c t_k + N(0, S_k),  c ~ N(0, b),   S_k = Σ_k J_kk/J⊥,  b = S (J⊥/Jₜ - 1),  λ = x̂ + S r + b t (t·r),
//
// as exchangeable covariances have it (see [exchangeable]). AMP itself is at c = b t·r. Joint rows are for signals that share their rows. Of 2 and 3 positive signals with rows of their own, behind masks, 95 % intervals of s
// cover 65 and 76 % by the default way without this, and 90 and 96 % with it.
type commonFields struct {
	*State
	common        []float64
	ratios        []float64 // P, J_kk/J⊥
	excess        float64   // J⊥/Jₜ - 1
	lambda, sigma []float64 // P, of the entry that is looked at
	b, now        float64
}

// newCommonFields is not ok where a signal is nothing beside the others, or all of its readings were left out.
func newCommonFields(s *State, common []float64) (f *commonFields, ok bool) {
	f = &commonFields{State: s, common: common, ratios: make([]float64, s.P), lambda: make([]float64, s.P), sigma: make([]float64, s.P)}
	for _, t := range common {
		if math.Abs(t) < leastProportion {
			return nil, false
		}
	}
	trace, along := 0.0, 0.0
	for mu, variance := range s.SVar {
		if s.OutOfOrder(mu) {
			continue
		}
		pull, squares := 0.0, 0.0
		for k, t := range common {
			at := mu*s.P + k
			if math.IsNaN(s.Y[at]) {
				continue
			}
			own := t * s.Reading(at) / s.Doubt(at)
			pull += own
			squares += own * own
			f.ratios[k] -= s.DG[at]
			trace -= s.DG[at]
			along -= t * (t * s.DG[at])
		}
		along -= variance * (pull*pull - squares)
	}
	apart := (trace - along) / float64(s.P-1)
	if !(apart > 0) {
		return nil, false
	}
	for k := range f.ratios {
		if !(f.ratios[k] > 0) {
			return nil, false // none of its readings is in use
		}
		f.ratios[k] /= apart
	}
	f.excess = apart/max(along, leastAlong*apart) - 1
	return f, true
}

// see sets the fields of entry i; false where no reading knows of it, or no signal has it.
func (f *commonFields) see(i int) bool {
	pull, size, has := 0.0, 0.0, false
	for k, t := range f.common {
		at := k*f.N + i
		sigma := f.Sigma[at]
		if math.IsInf(sigma, 1) {
			return false
		}
		r := (f.Lambda[at] - f.X[at]) / sigma
		pull += t * r
		f.sigma[k] = sigma * f.ratios[k]
		f.lambda[k] = f.X[at] + f.sigma[k]*r
		size += f.sigma[k] / float64(f.P)
		has = has || f.C[at] > 0.5*sigma
	}
	f.b = size * f.excess
	f.now = f.b * pull
	for k, t := range f.common {
		f.lambda[k] += t * f.now
	}
	return has && f.b > 0
}

// bestShift tries all shifts of an entry that make it zero in one of the signals.
func (f *commonFields) bestShift(entry prior.Prior) (best float64) {
	logAt := func(c float64) float64 {
		log := -0.5 * c * c / f.b
		for k, l := range f.lambda {
			log += entry.LogNorm(l-c*f.common[k], f.sigma[k])
		}
		return log
	}
	now, most := logAt(f.now), float64(shiftGain)
	for k, l := range f.lambda {
		c := l / f.common[k]
		if !(c*c < farShift*farShift*f.b) {
			continue
		}
		if gain := logAt(c) - now; gain > most {
			best, most = f.now-c, gain
		}
	}
	return best
}
