package activation

import (
	"math"

	"github.com/calamp/calamp/internal/quadrature"
)

// part is what a piece has of the posterior: the logarithm of its mass relative to that of the reference edge, mean and variance of u - ω, and means of u and x.
type part struct{ log, off, variance, u, x float64 }

// product is N(u; ω, V) N(αu + β; λ, 1/a) along a piece. It is a Gaussian of variance s, and its value at an edge e has the
// logarithm -½(e-ω)²/V - ½a(f(e)-λ)², by which pieces are compared: of two edges only the difference is taken, so that nothing cancels
// where both are a million standard deviations from what they are given.
type product struct {
	piece
	lambda, a, omega, v float64
	narrower, s, sd     float64
}

func newProduct(p piece, lambda, a, omega, v float64) product {
	narrower := 1 / (1 + p.slope*p.slope*a*v)
	s := v * narrower
	return product{p, lambda, a, omega, v, narrower, s, math.Sqrt(s)}
}

// beyond is how far the Gaussian's middle is from e, in its standard deviations.
func (d *product) beyond(e float64) float64 {
	return ((d.omega - e) + d.slope*(d.a*d.v)*(d.lambda-(d.slope*e+d.at))) * d.narrower / d.sd
}

// middle is how far it is from ω.
func (d *product) middle() float64 {
	return d.slope * (d.a * d.v) * (d.lambda - (d.slope*d.omega + d.at)) * d.narrower
}

// edge is the logarithm of the product at e, less that of the reference edge e0 of another piece.
func (d *product) edge(e float64, other *product, e0 float64) float64 {
	f, f0 := d.slope*e+d.at, other.slope*e0+other.at
	return -0.5*(e-e0)*((e-d.omega)+(e0-d.omega))/d.v - 0.5*d.a*(f-f0)*((f-d.lambda)+(f0-d.lambda))
}

// logEdge is that logarithm itself, with the norm of N(u; ω, V).
func (d *product) logEdge(e float64) float64 {
	u, x := e-d.omega, d.slope*e+d.at-d.lambda
	return -0.5*u*(u/d.v) - 0.5*x*(x*d.a) - 0.5*math.Log(2*math.Pi*d.v)
}

// anchor is the edge at which the piece is compared with others.
func (d *product) anchor() float64 {
	switch {
	case math.IsInf(d.lo, -1):
		return d.hi
	case math.IsInf(d.hi, 1) || d.beyond(0.5*(d.lo+d.hi)) < 0:
		return d.lo
	}
	return d.hi
}

// untouched is how many standard deviations from an end a Gaussian does not notice it.
const untouched = 9

// within integrates the product over the piece, relative to its value at the edge e. Means of u and x are distinguished from there on, where they may be a millionth of
// ω; where the Gaussian does not notice the edge, from ω on. t is how far its middle is inside.
func (d *product) within(e float64) (p part, t float64) {
	side := 1.0
	if e == d.hi {
		side = -1
	}
	t = side * d.beyond(e)
	var mean float64
	switch open := math.IsInf(d.hi-d.lo, 1); {
	case open && t > untouched:
		p.log, mean, p.variance = 0.5*t*t+halfLog2Pi, t, 1
		p.off = d.middle()
		p.u = d.omega + p.off
		p.x = d.slope*p.u + d.at
	case open:
		p.log, mean, p.variance = quadrature.HalfLine(t)
	default:
		p.log, mean, p.variance = interval(t, (d.hi-d.lo)/d.sd)
	}
	if p.off == 0 {
		p.off, p.u, p.x = (e-d.omega)+side*d.sd*mean, e+side*d.sd*mean, (d.slope*e+d.at)+side*d.slope*d.sd*mean
	}
	p.log += math.Log(d.sd)
	p.variance *= d.s
	return p, t
}

// logWhole is the logarithm of the integral over the half-line beyond an edge in which the middle is, t inside.
func (d *product) logWhole(t float64) float64 {
	off := d.slope*d.omega + d.at - d.lambda
	log := -0.5 * off * (off * (d.a * d.narrower))
	if d.narrower != 1 {
		log += 0.5 * math.Log(d.narrower)
	}
	if t <= untouched {
		log += math.Log1p(-0.5 * math.Erfc(t/math.Sqrt2))
	}
	return log
}

var halfLog2Pi = 0.5 * math.Log(2*math.Pi)

// piecewise is the factor of a function of straight pieces: truncated normals.
func piecewise(pieces []piece, lambda, a, omega, v float64) Moments {
	var products [3]product
	var parts [3]part
	var inside, edges, own [3]float64
	top, highest := 0, 0.0
	for i, p := range pieces {
		d := &products[i]
		*d = newProduct(p, lambda, a, omega, v)
		edges[i] = d.anchor()
		parts[i], inside[i] = d.within(edges[i])
		own[i] = parts[i].log
		if log := own[i] + d.edge(edges[i], &products[0], products[0].hi); i == 0 || log > highest {
			top, highest = i, log
		}
	}
	for i := range pieces { // relative to the edge of the piece that has most, to which others are near that matter
		parts[i].log += products[i].edge(edges[i], &products[top], edges[top])
	}
	total := 0.0
	highest = parts[top].log
	for i := range pieces {
		switch less := parts[i].log - highest; {
		case less == 0:
			parts[i].log = 1
		case less < -700: // of no weight
			parts[i].log = 0
		default:
			parts[i].log = math.Exp(less)
		}
		total += parts[i].log
	}
	var m Moments
	for i := range pieces {
		p := &parts[i]
		weight, slope := p.log/total, pieces[i].slope
		m.Off += weight * p.off
		m.U += weight * p.u
		m.X += weight * p.x
		m.UVar += weight * p.variance
		m.XVar += weight * slope * slope * p.variance
		for j := range i {
			q := &parts[j]
			both := weight * (q.log / total)
			m.UVar += both * (p.off - q.off) * (p.off - q.off)
			m.XVar += both * (p.x - q.x) * (p.x - q.x)
		}
	}
	d, t := &products[top], inside[top]
	switch wide := (d.hi - d.lo) / d.sd; {
	case t > 0 && (math.IsInf(wide, 1) || t > untouched && wide-t > untouched):
		m.LogMass = d.logWhole(t)
	case t > 0:
		m.LogMass = d.logWhole(2*untouched) + own[top] - math.Log(d.sd) - 0.5*t*t - halfLog2Pi
	default:
		m.LogMass = d.logEdge(edges[top]) + own[top]
	}
	if total > 1 {
		m.LogMass += math.Log(total)
	}
	return m
}

// interval integrates exp(-x²/2 + tx) over 0 ≤ x ≤ w, as [quadrature.HalfLine] does over the half-line; t ≤ w/2, so that most of it is near 0. Where
// the end w matters, the density changes by a few powers of e within the interval, or the interval is wide.
func interval(t, w float64) (log, mean, variance float64) {
	if drop := w * (0.5*w - t); drop > 40 { // the density at w is e^-40 of that at 0, and what is beyond is less
		return quadrature.HalfLine(t)
	} else if t > untouched && w-t > untouched {
		return 0.5*t*t + 0.5*math.Log(2*math.Pi), t, 1
	}
	// Panels no wider than a standard deviation, or than the length over which the density falls by a factor of e.
	var mass, first, second float64
	reach := min(w, max(t, 0)+untouched)
	from := max(0, t-untouched)
	count := int(math.Ceil((reach - from) * max(1, -t)))
	count = min(max(count, 1), mostPanels)
	half := 0.5 * (reach - from) / float64(count)
	peak := 0.0
	if t > 0 {
		peak = 0.5 * t * t
	}
	for i := range count {
		mid := from + half*float64(2*i+1)
		for j, node := range legendreNodes {
			x := mid + half*node
			weight := half * legendreWeights[j] * math.Exp(x*(t-0.5*x)-peak)
			mass += weight
			first += weight * x
		}
	}
	mean = first / mass
	for i := range count {
		mid := from + half*float64(2*i+1)
		for j, node := range legendreNodes {
			x := mid + half*node
			weight := half * legendreWeights[j] * math.Exp(x*(t-0.5*x)-peak)
			second += weight * (x - mean) * (x - mean)
		}
	}
	return math.Log(mass) + peak, mean, second / mass
}
