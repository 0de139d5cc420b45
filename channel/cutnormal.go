package channel

import (
	"math"

	"github.com/calamp/calamp/internal/quadrature"
)

// cutNormal is the density p(s) e^{-τs²/2+Bs} on the range of p, to which τ and B are found that give it a mean m and a variance v. With
// u = (s-m)/√v, c = τv and a = √v (B - τm) they minimise
//
//	log ∫ p(s) e^{au - cu²/2} ds + c/2,
//
// which is convex: its gradient is (E u, (1 - E u²)/2), its second derivative the covariance of u and -u²/2.
type cutNormal struct {
	u, logWeight []float64 // at the nodes, with the logarithm of p
}

const (
	// uncutBeyond is how many standard deviations within its range a normal has to be for the cut to change its moments by less than 1e-13.
	uncutBeyond = 8

	// cutReach is how far from its mean a log-concave density is followed, in standard deviations: 2e-9 of an exponential one is beyond.
	cutReach = 20

	cutPanels = 4 // of twenty nodes each: one every half of a standard deviation
)

// newCutNormal puts nodes where a density of this mean and variance can be. A p without a normal factor is flat.
func newCutNormal(p *GainPrior, mean, sd float64) *cutNormal {
	lo, hi := max(p.Lo, mean-cutReach*sd), min(p.Hi, mean+cutReach*sd)
	x, w := quadrature.Legendre20()
	d, half := &cutNormal{}, 0.5*(hi-lo)/cutPanels
	for panel := range cutPanels {
		middle := lo + (2*float64(panel)+1)*half
		for i := range x {
			s := middle + half*x[i]
			d.u = append(d.u, (s-mean)/sd)
			d.logWeight = append(d.logWeight, math.Log(w[i])+p.LogDensity(s))
		}
	}
	return d
}

// momentsOfU are log ∫ and the means of u to u⁴.
func (d *cutNormal) momentsOfU(a, c float64) (log float64, m [5]float64) {
	peak := math.Inf(-1)
	for i, u := range d.u {
		peak = max(peak, d.logWeight[i]+a*u-0.5*c*u*u)
	}
	for i, u := range d.u {
		power := math.Exp(d.logWeight[i] + a*u - 0.5*c*u*u - peak)
		for k := range m {
			m[k] += power
			power *= u
		}
	}
	for k := 1; k < len(m); k++ {
		m[k] /= m[0]
	}
	return peak + math.Log(m[0]), m
}

// fit minimises over a and c by Newton's method, with steps that are halved where the value does not fall.
func (d *cutNormal) fit() (a, c float64) {
	const (
		steps    = 60
		enough   = 1e-11 // of E u and E u²
		shortest = 1e-9  // of a step
	)
	c = 1
	log, m := d.momentsOfU(a, c)
	for range steps {
		slopeA, slopeC := m[1], 0.5*(1-m[2])
		if math.Abs(slopeA)+math.Abs(slopeC) < enough {
			break
		}
		aa, ac, cc := m[2]-m[1]*m[1], -0.5*(m[3]-m[1]*m[2]), 0.25*(m[4]-m[2]*m[2])
		det := aa*cc - ac*ac
		stepA, stepC := (slopeC*ac-slopeA*cc)/det, (slopeA*ac-slopeC*aa)/det
		for size := 1.0; ; size /= 2 {
			if !(size > shortest) {
				return a, c
			}
			next, moments := d.momentsOfU(a+size*stepA, c+size*stepC)
			if next+0.5*size*stepC < log+1e-13 {
				a, c, log, m = a+size*stepA, c+size*stepC, next, moments
				break
			}
		}
	}
	return a, c
}

// widest finds the a with which the variance is 1 where c is 0, on the side of the mean; 0 where the prior itself is no wider.
func (d *cutNormal) widest() float64 {
	variance := func(a float64) float64 {
		_, m := d.momentsOfU(a, 0)
		return m[2] - m[1]*m[1]
	}
	if variance(0) <= 1 {
		return 0
	}
	_, m := d.momentsOfU(0, 0)
	near, far := 0.0, -math.Copysign(1, m[1]) // towards the mean that is wanted, which is u = 0
	for variance(far) > 1 {
		near, far = far, 2*far
	}
	for range 60 {
		if middle := 0.5 * (near + far); variance(middle) > 1 {
			near = middle
		} else {
			far = middle
		}
	}
	return far
}

// setCutNormal writes τ and B with which the posterior has this mean and variance after the cut to the range. Where only a density that rises towards both
// ends would have so large a variance the mean moves inwards: an error bar does not shrink at the end of a range.
func (p *GainPrior) setCutNormal(s *[gainWidth]float64, mean, variance float64) {
	sd := math.Sqrt(variance)
	d := newCutNormal(p, mean, sd)
	a, c := d.fit()
	if c < 0 {
		a, c = d.widest(), 0
	}
	s[precision] = c / variance
	s[field] = a/sd + s[precision]*mean
}

// cuts reports whether it needs [GainPrior.setCutNormal]: a log-normal prior, and what a range cuts; not where the mean is outside, which no density in the
// range has.
func (p *GainPrior) cuts(mean, variance float64) bool {
	room := min(mean-p.Lo, p.Hi-mean)
	return room > 0 && (p.Log || room*room < uncutBeyond*uncutBeyond*variance)
}
