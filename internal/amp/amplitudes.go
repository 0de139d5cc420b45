package amp

import (
	"fmt"
	"math"

	"github.com/calamp/calamp/prior"
)

// amplitudes learns how large each signal is, for signals of unequal power, such as blocks of
// an image with more and with less contrast: signal k is c_k times one of the prior. What says
// so is the evidence of its fields,
//
//	∂/∂log c Σᵢ log Z_in(λᵢ, Σᵢ) = Σᵢ (x̂ᵢ(λᵢ-x̂ᵢ) - Cᵢ)/Σᵢ,
//
// with the information 2 Σᵢ Cᵢ/Σᵢ, twice the number of entries that readings determine: fields
// alone would say less, but follow c. The logarithms are normal, and their spread is learned
// (empirical Bayes): signals of one size stay so.
type amplitudes struct {
	Idle
	spread float64 // variance of log c
}

const (
	// The spread that amplitudes start from, a factor of three, and the least that is
	// distinguished from none.
	startSpread = 1.0
	leastSpread = 1e-6

	// amplitudeReach bounds one step of log c: the fields follow it only later.
	amplitudeReach = 0.3
	amplitudePace  = 0.3
)

// Begin implements [Part].
func (a *amplitudes) Begin(s *Solver) {
	a.spread = startSpread
	s.State.Amplitude = make([]float64, s.State.P)
	for k := range s.State.Amplitude {
		s.State.Amplitude[k] = 1
	}
}

// After implements [Part].
func (a *amplitudes) After(s *Solver, line *Line) Verdict {
	if line.Index < firstRefit || line.Index%refitEvery != 0 {
		return GoOn
	}
	e, change := s.State, 0.0
	logs, squares, middle := make([]float64, e.P), 0.0, 0.0
	for _, c := range e.Amplitude {
		middle += math.Log(c) / float64(e.P)
	}
	for k := range logs {
		now := math.Log(e.Amplitude[k]) - middle
		slope, information := e.amplitudeSlope(k)
		precision := information + 1/a.spread
		step := amplitudePace * (slope - now/a.spread) / precision
		logs[k] = now + min(max(step, -amplitudeReach), amplitudeReach)
		squares += logs[k]*logs[k] + 1/precision
		change = max(change, math.Abs(step)*math.Sqrt(precision))
	}
	a.spread = max(squares/float64(e.P), leastSpread)
	e.setAmplitudes(logs)
	if change > modelTolerance && !e.Standing {
		return Disturbed
	}
	return GoOn
}

// amplitudeSlope is the derivative of the evidence along log c of signal k, and its
// information on it. Estimates are those of the fields: damping, and steps along the scale, leave
// x̂ and C elsewhere.
func (s *State) amplitudeSlope(k int) (slope, information float64) {
	lambda, sigma := s.Lambda[k*s.N:(k+1)*s.N], s.Sigma[k*s.N:(k+1)*s.N]
	mean, variance := make([]float64, s.N), make([]float64, s.N)
	s.PriorOf(k).Posterior(mean, variance, lambda, sigma)
	for i, x := range mean {
		if math.IsInf(sigma[i], 1) {
			continue
		}
		known := variance[i] / sigma[i]
		slope += x*((lambda[i]-x)/sigma[i]) - known
		information += 2 * known
	}
	return slope, information
}

// setAmplitudes sets c, with a mean square of 1: the rest is the prior's own.
func (s *State) setAmplitudes(logs []float64) {
	square := 0.0
	for _, l := range logs {
		square += math.Exp(2*l) / float64(s.P)
	}
	for k, l := range logs {
		s.Amplitude[k] = math.Exp(l) / math.Sqrt(square)
	}
}

// PriorOf is the prior of signal k.
func (s *modelState) PriorOf(k int) prior.Prior {
	if s.Amplitude == nil || s.Amplitude[k] == 1 {
		return s.model.Prior
	}
	return s.model.Prior.(prior.Scalable).Scaled(s.Amplitude[k]) // as the plan has made sure
}

// sumLogNorm is that of the fields of signal k under its prior.
func (s *State) sumLogNorm(k int) float64 {
	return prior.SumLogNorm(s.PriorOf(k), s.Lambda[k*s.N:(k+1)*s.N], s.Sigma[k*s.N:(k+1)*s.N])
}

// sumLogNorms is that of all signals.
func (s *State) sumLogNorms() float64 {
	if s.Amplitude == nil {
		return prior.SumLogNorm(s.model.Prior, s.Lambda, s.Sigma)
	}
	total := 0.0
	for k := range s.P {
		total += s.sumLogNorm(k)
	}
	return total
}

// equalFields are the fields as they would be of signals that are all as large as the prior
// has them; of complex signals all real parts, and then all imaginary parts.
func (s *State) equalFields() (lambda, sigma []float64) {
	if s.columns == 2 {
		return byParts(s.Lambda, s.N), byParts(s.Sigma, s.N)
	}
	if s.Amplitude == nil {
		return s.Lambda, s.Sigma
	}
	lambda, sigma = make([]float64, len(s.Lambda)), make([]float64, len(s.Sigma))
	for i, l := range s.Lambda {
		c := s.Amplitude[i/s.N]
		lambda[i], sigma[i] = l/c, s.Sigma[i]/(c*c)
	}
	return lambda, sigma
}

// byParts are entries of complex signals, columns of length n, with all real parts before all imaginary ones.
func byParts(v []float64, n int) []float64 {
	out := make([]float64, len(v))
	for k := 0; k < len(v)/n; k += 2 {
		copy(out[k/2*n:], v[k*n:(k+1)*n])
		copy(out[len(v)/2+k/2*n:], v[(k+1)*n:(k+2)*n])
	}
	return out
}

// amplitudes are for priors by group: there signals differ in how much structure they have.
func (b *planner) amplitudes() (on bool, why string, err error) {
	_, varied := b.Model.Prior.(prior.Varied)
	_, scalable := b.Model.Prior.(prior.Scalable)
	return unless("how large each signal is, is learned", []reason{
		{!varied, "not needed: the entries have the same variance"},
		{!b.learner(), "not needed: the prior is known"},
		{b.stream(), oneByOne},
		{b.P < 2, "not needed: there is one signal"},
		{!scalable, fmt.Sprintf("not possible: a %T cannot be scaled", b.Model.Prior)},
		{b.Tol < 0, noConvergence},
	})
}

func (b *planner) makeAmplitudes(*Solver) (Part, error) { return &amplitudes{}, nil }
