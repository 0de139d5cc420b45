package activation

import (
	"math"

	"github.com/calamp/calamp/internal/vector"
)

// Factors of up to AtOnce entries, with all exponentials, logarithms and Mills' ratios at a time. An entry for which the formulas would lose digits has no number for its logarithm, and
// is for [Function.Entry].
type block struct {
	n                   int
	lambda, a, omega, v [AtOnce]float64
}

const (
	batchTail   = 12     // standard deviations beyond which a truncated normal's variance has lost five digits,
	batchWeight = 1e-18  // unless it has no more of the mass
	batchTrace  = 1e-260 // of a mass by which x varies at all
	batchTop    = 2e3    // exponents that are compared
	batchNarrow = 0.125  // standard deviations of an interval
)

var sqrt2Pi = math.Sqrt(2 * math.Pi)

// take is the fields of entries, with precisions; false for those that are known, or all but.
func (b *block) take(out []Moments, lambda, sigma, omega, v []float64, slack float64) {
	b.n = len(out)
	for i := range out {
		b.lambda[i], b.a[i] = precisionOf(lambda[i], sigma[i], slack)
		b.omega[i], b.v[i] = omega[i], v[i]
		out[i].LogMass = 0
		if !(v[i] > 1e-200 && b.a[i]*v[i] < 1e60) {
			b.a[i], b.v[i], out[i].LogMass = 0, 1, math.NaN()
		}
	}
}

// finish adds the logarithms of masses to what is there, and computes those entries by themselves that have none.
func (b *block) finish(f Function, out []Moments, mass *[AtOnce]float64, lambda, sigma, omega, v []float64, slack float64) {
	count := vector.Padded(b.n)
	for i := b.n; i < count; i++ {
		mass[i] = 1
	}
	vector.Log(mass[:count])
	for i := range out {
		m := &out[i]
		if m.LogMass += mass[i]; math.IsNaN(m.LogMass) {
			*m = f.Entry(lambda[i], sigma[i], omega[i], v[i], slack)
			continue
		}
		m.U = omega[i] + m.Off
		m.blur(b.lambda[i], sigma[i], b.a[i], slack)
	}
}

// steps is [Function.Entries] of the sign: two half-lines on which x is -1 and 1. Of the one in which ω is, q standard deviations inside, the mass is √2π - e^(-q²/2) R(q) with Mills' ratio
// R, of the other one R(q) e^(-q²/2), and the latter has more of the field by e^l.
func steps(out []Moments, lambda, sigma, omega, v []float64, slack float64) {
	var b block
	b.take(out, lambda, sigma, omega, v, slack)
	var sd, q, ratio, edge, odds, mass [AtOnce]float64
	for i := range out {
		sd[i] = math.Sqrt(b.v[i])
		q[i] = math.Abs(b.omega[i]) / sd[i]
		ratio[i] = q[i]
		edge[i] = -0.5 * q[i] * q[i]
		odds[i] = edge[i] - 2*b.a[i]*math.Copysign(b.lambda[i], b.lambda[i]*b.omega[i])
	}
	count := vector.Padded(b.n)
	vector.Mills(ratio[:count])
	var less [AtOnce]float64
	for i := range count {
		less[i] = -math.Abs(odds[i])
	}
	vector.Exp(edge[:count])
	vector.Exp(less[:count])
	for i := range out {
		m, r := &out[i], ratio[i]
		inside := sqrt2Pi - edge[i]*r
		hazard, beyond := edge[i]/inside, 1/r
		side := math.Copysign(1, b.omega[i])
		w, o, d, exponent := inside, r*less[i], side-b.lambda[i], 0.0
		if odds[i] > 0 {
			w, o, d, exponent = inside*less[i], r, side+b.lambda[i], -0.5*q[i]*q[i]
		}
		exponent -= 0.5 * d * (d * b.a[i])
		total := w + o
		mass[i] = total / sqrt2Pi
		w, o = w/total, o/total
		if m.LogMass += exponent; q[i] > batchTail && o > batchWeight || exponent < -batchTop {
			m.LogMass = math.NaN()
		}
		inOff, outU := side*sd[i]*hazard, -side*sd[i]*(beyond-q[i])
		outOff := outU - b.omega[i]
		apart := outOff - inOff
		m.Off = w*inOff + o*outOff
		m.UVar = b.v[i]*(w*max(0, 1-hazard*(q[i]+hazard))+o*max(0, 1-beyond*(beyond-q[i]))) + w*o*apart*apart
		m.X, m.XVar = side*(w-o), 4*w*o
	}
	b.finish(Sign, out, &mass, lambda, sigma, omega, v, slack)
}

// limits is [Function.Entries] of the hard tanh: a Gaussian that is cut to -1 … 1, and the mass of N(u; ω, V) below and above. t are how many standard deviations the middles are
// inside of an edge: of the lower half-line, the upper one, and of the interval at its nearer edge and its farther one. With J(t) = R(-t) for t < 0 and √2π - e^(-t²/2) R(t) elsewhere
// the masses of half-lines are J, relative to the density at the edge where the middle is outside, and at the middle elsewhere. An interval has J(near) - e₂ R(far), with
// the densities e₁ and e₂ at its edges, and h = e/mass the mean δ = h₁ - h₂ of its distance from the middle and the variance 1 - near h₁ - far h₂ - δ².
func limits(out []Moments, lambda, sigma, omega, v []float64, slack float64) {
	const lower, upper, near, far = 0, 1, 2, 3
	var b block
	b.take(out, lambda, sigma, omega, v, slack)
	var sd, narrow, root, toward, middle, mass [AtOnce]float64
	var t, ratio, edge [4][AtOnce]float64
	var exponent [3][AtOnce]float64
	var which [AtOnce]int
	some := 0
	for j := range out {
		l, a, o, v := b.lambda[j], b.a[j], b.omega[j], b.v[j]
		n := 1 / (1 + a*v)
		if room := 1 - math.Abs((o+a*v*l)*n); room > 0 && room*room > untouched*untouched*v*n && o > -1 && o < 1 { // the edges do not matter
			m := &out[j]
			m.Off, m.UVar = a*v*n*(l-o), v*n
			m.X, m.XVar = o+m.Off, m.UVar
			m.LogMass -= 0.5 * (l - o) * ((l - o) * (a * n))
			mass[j] = math.Sqrt(n)
			continue
		}
		i := some
		which[i] = j
		some++
		root[i] = math.Sqrt(n)
		sd[i] = math.Sqrt(v)
		narrow[i] = sd[i] * root[i]
		per, perNarrow := 1/sd[i], 1/narrow[i]
		t[lower][i], t[upper][i] = (-1-o)*per, (o-1)*per
		centre := (o + a*v*l) * n
		middle[i] = a * v * n * (l - o)
		toward[i] = -math.Copysign(1, centre) // the middle is nearer to the edge on its own side
		t[near][i], t[far][i] = (1-math.Abs(centre))*perNarrow, (1+math.Abs(centre))*perNarrow
		for j := range t {
			ratio[j][i], edge[j][i] = math.Abs(t[j][i]), -0.5*t[j][i]*t[j][i]
		}
		down, up := -0.5*a*(1+l)*(1+l), -0.5*a*(1-l)*(1-l)
		exponent[lower][i] = down + min(0, edge[lower][i]*math.Copysign(1, -t[lower][i]))
		exponent[upper][i] = up + min(0, edge[upper][i]*math.Copysign(1, -t[upper][i]))
		exponent[near][i] = -0.5 * a * n * (l - o) * (l - o)
		if t[near][i] < 0 {
			exponent[near][i] = up - 0.5*t[upper][i]*t[upper][i]
			if toward[i] > 0 {
				exponent[near][i] = down - 0.5*t[lower][i]*t[lower][i]
			}
			w := 2 * perNarrow
			edge[near][i], edge[far][i] = 0, -w*(0.5*w-t[near][i])
		}
		top := max(exponent[0][i], exponent[1][i], exponent[2][i])
		if out[j].LogMass += top; top < -batchTop {
			out[j].LogMass = math.NaN()
		}
		for j := range exponent {
			exponent[j][i] -= top
		}
	}
	count := vector.Padded(some)
	for j := range t {
		vector.Mills(ratio[j][:count])
		vector.Exp(edge[j][:count])
	}
	for j := range exponent {
		vector.Exp(exponent[j][:count])
	}
	for i, entry := range which[:some] {
		m, o, v := &out[entry], b.omega[entry], b.v[entry]
		var weight, off, u, variance [3]float64
		for j := range 2 {
			inside, r, e := t[j][i], ratio[j][i], edge[j][i]
			side := float64(2*j - 1)
			mean, hazard := 0.0, 1/r
			if inside >= 0 {
				weight[j] = sqrt2Pi - e*r
				hazard = e / weight[j]
				off[j] = side * sd[i] * hazard
				mean = inside + hazard
			} else {
				weight[j] = r
				mean = inside + hazard
				off[j] = side + side*sd[i]*mean - o
			}
			variance[j] = v * max(0, 1-hazard*mean)
			weight[j] *= exponent[j][i]
			u[j] = side
		}
		tn, tf := t[near][i], t[far][i]
		whole := ratio[near][i]
		if tn >= 0 {
			whole = sqrt2Pi - edge[near][i]*whole
		}
		whole -= edge[far][i] * ratio[far][i]
		h1, h2 := edge[near][i]/whole, edge[far][i]/whole
		delta := h1 - h2
		if tn >= 0 {
			off[2] = middle[i] + toward[i]*narrow[i]*delta
			u[2] = o + off[2]
		} else {
			u[2] = -toward[i] + toward[i]*narrow[i]*(tn+delta)
			off[2] = u[2] - o
		}
		variance[2] = narrow[i] * narrow[i] * max(0, 1-(tn*h1+tf*h2)-delta*delta)
		weight[2] = whole * root[i] * exponent[2][i]
		total := weight[0] + weight[1] + weight[2]
		mass[entry] = total / sqrt2Pi
		for j := range weight {
			weight[j] /= total
		}
		if t[lower][i] < -batchTail && weight[0] > batchWeight || t[upper][i] < -batchTail && weight[1] > batchWeight ||
			(tn < -batchTail || tn+tf < batchNarrow) && weight[2] > batchWeight || tn < -2*batchTail && weight[2] > batchTrace {
			m.LogMass = math.NaN()
		}
		m.Off = weight[0]*off[0] + weight[1]*off[1] + weight[2]*off[2]
		m.X = weight[0]*u[0] + weight[1]*u[1] + weight[2]*u[2]
		m.UVar = weight[0]*variance[0] + weight[1]*variance[1] + weight[2]*variance[2]
		m.XVar = weight[2] * variance[2]
		for j := range 3 {
			k := (j + 1) % 3
			both, du, dx := weight[j]*weight[k], off[j]-off[k], u[j]-u[k]
			m.UVar += both * du * du
			m.XVar += both * dx * dx
		}
	}
	b.finish(HardTanh, out, &mass, lambda, sigma, omega, v, slack)
}

// nodes are those of a rule, of an even number: x, and the logarithms of weights with those of e^(x²/2).
type nodes struct{ x, logs []float64 }

// peakRules are Gauss and Hermite's for peaks of these widths and less: a logistic function adds to a Gaussian a cubic of half its width, and the errors in the moments are
// below 1e-11 of their standard deviations, by 60000 random factors.
var peakRules = []struct {
	width float64
	nodes
}{{1e-3, hermiteRule(7)}, {5e-3, hermiteRule(9)}, {1e-2, hermiteRule(11)}, {2e-2, hermiteRule(13)}, {3e-2, hermiteRule(16)}, {5e-2, hermiteRule(20)}}

func hermiteRule(n int) (r nodes) {
	x, w := hermite(n)
	for j, x := range x {
		r.x, r.logs = append(r.x, x), append(r.logs, math.Log(w[j])+0.5*x*x)
	}
	if n%2 == 1 { // one of no weight
		r.x, r.logs = append(r.x, 0), append(r.logs, -1e3)
	}
	return r
}

const (
	// A peak that is wider has trapezoidal rules: one of evenStep, and that between its nodes, which agree to its error.
	evenStep  = 0.8
	evenSpan  = 14
	evenHalf  = 1e-7
	widest    = 1
	peakReach = 9
	beyondAll = 35 // exponents
)

var evenRules = [2]nodes{evenRule(0), evenRule(0.5 * evenStep)}

func evenRule(shift float64) (r nodes) {
	for x := -evenSpan + shift; x <= evenSpan; x += evenStep {
		r.x, r.logs = append(r.x, x), append(r.logs, math.Log(0.5*evenStep))
	}
	if len(r.x)%2 == 1 {
		r.x, r.logs = append(r.x, 0), append(r.logs, -1e3)
	}
	return r
}

// peak is where a density's logarithm has its maximum, nearly, as [vector.LogisticNodes] takes it.
type peak struct{ m, f, rest, width float64 }

// onePeak reports whether a density has no more than e^-beyondAll of its mass further than a reach away from its peak, which is between ω and where the field alone has its
// maximum. Towards ω the field's exponent grows, and on the other side that of N(u; ω, V) does, until that maximum.
func (b *block) onePeak(i int, p peak, reach float64) bool {
	l, a, v := b.lambda[i], b.a[i], b.v[i]
	reach *= p.width
	change := p.f * p.rest * max(reach/(1+reach), reach*(1-0.5*reach)) // σ moves by more: by 1 - e^-reach times its slope, since |σ”| < σ'
	off, from := math.Abs(p.f-l), math.Abs(p.m-b.omega[i])
	prior, field := 0.5*from*from/v, 0.5*a*off*off
	if from > reach && 0.5*a*change*(2*off+change) < beyondAll+prior {
		return false
	}
	if l > 0 && l < 1 && change >= off {
		return true
	}
	least := 0.5 * a * max(0, -l, l-1) * max(0, -l, l-1)
	return 0.5*reach*(2*from+reach)/v > beyondAll+field-least
}

// sigmoids is [Function.Entries] of the logistic function: quadrature about the peak, which is found by Newton's steps from where it would be if σ were straight about where
// the field has its own maximum.
func sigmoids(out []Moments, lambda, sigma, omega, v []float64, slack float64) {
	const newton = 3
	var b block
	b.take(out, lambda, sigma, omega, v, slack)
	var m, e, per, mass [AtOnce]float64
	count := vector.Padded(b.n)
	for i := range count {
		within := min(max(b.lambda[i], 0.01), 0.99)
		e[i] = within / (1 - within)
	}
	vector.Log(e[:count])
	for i := range out {
		within := min(max(b.lambda[i], 0.01), 0.99)
		slope := within * (1 - within)
		per[i] = 1 / b.v[i]
		field := b.a[i] * slope * slope
		m[i] = (b.omega[i]*per[i] + field*e[i]) / (per[i] + field)
	}
	var peaks [AtOnce]peak
	for step := range newton + 1 {
		for i := range count {
			e[i] = -math.Abs(m[i])
		}
		vector.Exp(e[:count])
		for i := range out {
			larger := 1 / (1 + e[i])
			f, rest := e[i]*larger, larger
			if m[i] > 0 {
				f, rest = rest, f
			}
			slope := f * rest
			off := f - b.lambda[i]
			bend := off * slope * (rest - f)
			first := (b.omega[i]-m[i])*per[i] - b.a[i]*off*slope
			if step < newton {
				m[i] += first / (per[i] + b.a[i]*(slope*slope+max(bend, -0.5*slope*slope)))
				continue
			}
			width := 1 / math.Sqrt(per[i]+b.a[i]*(slope*slope+bend))
			if !(width < widest && math.Abs(first)*width < 0.05) {
				out[i].LogMass, width = math.NaN(), 1e-3
			}
			peaks[i] = peak{m[i], f, rest, width}
		}
	}
	var d [vector.LogisticFields * vector.Lanes]float64
	for from := 0; from < b.n; from += vector.Lanes {
		widest := 0.0
		for lane := range vector.Lanes {
			i := from + lane
			if i >= b.n {
				i = from
			}
			p := peaks[i]
			for f, value := range [vector.LogisticMass]float64{p.width, p.f, p.rest, (p.m - b.omega[i]) * per[i], 0.5 * per[i], b.a[i] * (p.f - b.lambda[i]), 0.5 * b.a[i]} {
				d[f*vector.Lanes+lane] = value
			}
			widest = max(widest, p.width)
		}
		reach, agree := float64(peakReach), [vector.Lanes]bool{true, true, true, true}
		at := 0
		for at < len(peakRules) && widest > peakRules[at].width {
			at++
		}
		if at < len(peakRules) {
			vector.LogisticNodes(peakRules[at].x, peakRules[at].logs, d[:])
		} else {
			reach = evenSpan
			agree = even(&d)
		}
		for lane := range min(vector.Lanes, b.n-from) {
			i := from + lane
			field := func(f int) float64 { return d[f*vector.Lanes+lane] }
			p, one := &peaks[i], &out[i]
			per1 := 1 / field(vector.LogisticMass)
			first, firstX := field(vector.LogisticFirst)*per1, field(vector.LogisticFirstX)*per1
			from := p.m - b.omega[i]
			off := p.f - b.lambda[i]
			one.Off = from + p.width*first
			one.UVar = p.width * p.width * (field(vector.LogisticSecond)*per1 - first*first)
			one.X = p.f + firstX
			one.XVar = field(vector.LogisticSecondX)*per1 - firstX*firstX
			one.LogMass += -0.5*from*from*per[i] - 0.5*off*(off*b.a[i])
			mass[i] = field(vector.LogisticMass) * p.width * math.Sqrt(per[i]) / sqrt2Pi
			if !agree[lane] || !b.onePeak(i, *p, reach) {
				one.LogMass = math.NaN()
			}
		}
	}
	b.finish(Sigmoid, out, &mass, lambda, sigma, omega, v, slack)
}

// even integrates by trapezoidal rules, and reports which entries they are good for: halving the step, by which they agree to evenHalf, squares the error.
func even(d *[vector.LogisticFields * vector.Lanes]float64) (good [vector.Lanes]bool) {
	other := *d
	vector.LogisticNodes(evenRules[0].x, evenRules[0].logs, d[:])
	vector.LogisticNodes(evenRules[1].x, evenRules[1].logs, other[:])
	for lane := range good {
		good[lane] = true
		for f := vector.LogisticMass; f < vector.LogisticFields; f++ {
			one, two := &d[f*vector.Lanes+lane], other[f*vector.Lanes+lane]
			if f == vector.LogisticMass || f == vector.LogisticSecond || f == vector.LogisticSecondX {
				good[lane] = good[lane] && math.Abs(*one-two) <= evenHalf*(*one+two)
			}
			*one += two
		}
		for _, end := range [...]float64{-evenSpan, evenSpan} {
			step := end * d[vector.LogisticWidth*vector.Lanes+lane]
			f, rest := d[vector.LogisticF*vector.Lanes+lane], d[vector.LogisticRest*vector.Lanes+lane]
			e := math.Expm1(step)
			change := f * rest * e / (rest + f*(1+e))
			log := -step*(d[vector.LogisticC1*vector.Lanes+lane]+step*d[vector.LogisticH1*vector.Lanes+lane]) - change*(d[vector.LogisticC2*vector.Lanes+lane]+change*d[vector.LogisticH2*vector.Lanes+lane])
			good[lane] = good[lane] && log < -beyondAll
		}
	}
	return good
}
