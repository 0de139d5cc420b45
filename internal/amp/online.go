package amp

import (
	"math"

	"github.com/calamp/calamp/channel"
)

// Online, the scale step is taken jointly over all samples absorbed so far: a
// factor c that brings this sample's x̂ and ω where the evidence wants them
// belongs to the earlier samples' as well, since one scale is common to all.
// Their ω enter the posterior of s through B alone, and the scale's evidence
// through Q and S. So c multiplies x̂, ω and the inherited B, and c² the
// inherited Q and S. Rescaling the present sample alone would freeze the scale
// error of the first samples into B for ever. Not in the paper.

// ScaleSums returns what the signals of the last sweep add to Q+S and to κ.
// pastB is the B inherited by that sweep.
//
// At a fixed point Wᵀg = (λ-x̂)/Σ, hence Σ g ω = S - κ, that is
//
//	Q + S = Σ_µ ŝ_µ (B_µ - pastB_µ) + κ,
//
// and the right side is what is returned. The left side is that to a relative
// error of the order of the last change of x̂, and that is not enough: Q is ten
// digits larger than the slopes by which the evidence tells one scale from
// another, so a single sample that is a little short of its fixed point would
// tilt the evidence for ever.
func (e *Engine) ScaleSums(pastB []float64) (quadratic, volume float64) {
	for j, y := range e.Y {
		if !math.IsNaN(y) {
			volume += e.V[j] * e.G[j] * e.G[j]
		}
	}
	if e.border != nil {
		_, more := e.border.scaleSums()
		volume += more
	}
	quadratic = volume
	for mu, s := range e.S {
		quadratic += s * (e.B[mu] - pastB[mu])
	}
	return quadratic, volume
}

// ScaleSD is the standard deviation of the logarithm of the global scale, from
// the statistics of sensors absorbed so far (see [Engine.ScaleSums]).
func ScaleSD(gain channel.Gain, count, tau, b []float64, quadratic, volume float64) float64 {
	s := scaleEvidence{gain: gain, count: count, tau: tau, b: b, quadratic: quadratic, volume: volume}
	return s.spread()
}

// InheritField makes the signals start from the field (P×N each, precision and
// precision times mean) that earlier batches left. Call [Engine.Reset] next.
func (e *Engine) InheritField(precision, field []float64) {
	e.PastPrecision, e.PastField = precision, field
	e.totalLambda, e.totalSigma = make([]float64, len(e.X)), make([]float64, len(e.X))
}

// startFromPast sets x̂ and C to the posterior that earlier batches left.
func (e *Engine) startFromPast() {
	for i := range e.Lambda {
		e.Lambda[i], e.Sigma[i] = 0, math.Inf(1)
	}
	for k := range e.P {
		from, to := k*e.N, (k+1)*e.N
		e.posteriorWithPast(e.X[from:to], e.C[from:to], from)
	}
}

// posteriorWithPast is the posterior of one signal, whose entries start at
// from: the prior times the earlier batches' field times the present one
// (paper, "Streaming AMP for online reconstruction in the GLM"). Precisions
// add, and so do precisions times means.
func (e *Engine) posteriorWithPast(mean, variance []float64, from int) {
	lambda, sigma := e.totalLambda[from:from+len(mean)], e.totalSigma[from:from+len(mean)]
	for i := range mean {
		precision, field := e.PastPrecision[from+i], e.PastField[from+i]
		if s := e.Sigma[from+i]; !math.IsInf(s, 1) {
			precision += 1 / s
			field += e.Lambda[from+i] / s
		}
		lambda[i], sigma[i] = 0, math.Inf(1)
		if precision > 0 {
			sigma[i] = 1 / precision
			lambda[i] = field / precision
		}
	}
	e.Prior.Posterior(mean, variance, lambda, sigma)
}

// AddField adds the field of the last sweep to the past one: what the next
// batch of measurements inherits.
func (e *Engine) AddField(precision, field []float64) {
	for i, s := range e.Sigma {
		if !math.IsInf(s, 1) {
			precision[i] += 1 / s
			field[i] += e.Lambda[i] / s
		}
	}
}
