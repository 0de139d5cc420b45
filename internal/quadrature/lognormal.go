package quadrature

import (
	"math"

	"github.com/calamp/calamp/internal/search"
)

// LogNormalPosterior holds what [GainPosterior] does for a calibration variable whose prior is
// log-normal on a range,
//
//	q(s) ∝ s^(n-1) exp(-λ log²(s/m)/2 - τs²/2 + Bs)   on [lo, hi],
//
// with m the prior's median and 1/λ its variance of log s.
type LogNormalPosterior struct {
	GainPosterior

	Mode    float64 // where q is largest
	CovLog  float64 // Cov(s, log s)
	PriorOf float64 // E[(s-ŝ)(log(s/m)/s - log(ŝ/m)/ŝ)], without λ
}

// logNormalDensity is the log-density relative to its value at the mode s*, as a function
// of the relative offset x = s/s* - 1. With L = log1p(x), a = n-1-λ log(s*/m) and T = τs*²
// it is
//
//	slope·x + a(L - x) - λL²/2 - Tx²/2,
//
// in which nothing large cancels: at a mode inside the range the slope is zero.
type logNormalDensity struct {
	mode, slope, a, lambda, tau float64 // tau is T
}

// LogNormalMoments is [NewLogNormalPosterior] for the moments alone. The mass is that about the
// mean, as [GainMomentsBatch] has it: log ∫ s^(n-1) exp(-λ log²(s/m)/2 - τ(s²-ŝ²)/2 + B(s-ŝ)) ds.
func LogNormalMoments(n, tau, b, median, lambda, lo, hi float64) (logMass, mean, variance float64) {
	h := logNormalExponent{n - 1, tau, b, median, lambda}
	d, ok := h.single(lo, hi)
	var rel relative
	if width, series := d.narrow(lo, hi); ok && series {
		rel = d.series(width)
	} else {
		d, rel = h.integral(lo, hi)
	}
	l := math.Log(d.mode / median)
	mean = clamp(d.mode+d.mode*rel.mean, lo, hi)
	logMass = rel.logMass + math.Log(d.mode) + (n-1)*math.Log(d.mode) - 0.5*lambda*l*l
	if mean != d.mode {
		logMass += (d.mode - mean) * (b - 0.5*tau*(d.mode+mean))
	}
	return clamp(logMass, -math.MaxFloat64, math.MaxFloat64), mean, rel.variance * d.mode * d.mode
}

// NewLogNormalPosterior integrates the density, with t = B/τ; LogMass is that of
// s^(n-1) exp(-λ log²(s/m)/2 - τ(s-t)²/2).
func NewLogNormalPosterior(n, tau, t, median, lambda, lo, hi float64) LogNormalPosterior {
	var buffer nodes
	h := logNormalExponent{n - 1, tau, tau * t, median, lambda}
	d, rel := h.integrate(&buffer, lo, hi)
	l := math.Log(d.mode / median)
	offset := d.mode - t
	if d.slope == 0 && tau > 0 {
		offset = d.a / (tau * d.mode) // h'(s*) = 0
	}
	q := LogNormalPosterior{Mode: d.mode}
	q.Mean = clamp(d.mode+d.mode*rel.mean, lo, hi)
	q.Offset = offset + d.mode*rel.mean
	q.Var = d.mode * d.mode * rel.variance
	q.LogMass = rel.logMass + n*math.Log(d.mode) - 0.5*lambda*l*l - 0.5*tau*offset*offset
	// What the moments alone do without: the rest of the averages.
	lMean, one := math.Log(q.Mean/median), 1+rel.mean
	var mass float64
	for i, x := range buffer.x[:buffer.count] {
		w, c := buffer.w[i], x-rel.mean
		growth := math.Log1p(c / one)
		mass += w
		q.Third += w * c * c * c
		q.Inverse += w / (1 + x)
		q.Spread += w * c * c / ((1 + x) * one)
		q.CovLog += w * c * growth
		q.PriorOf += w * c * (one*growth - c*lMean) / ((1 + x) * one)
	}
	q.Third *= d.mode * d.mode * d.mode / mass
	q.Inverse /= mass * d.mode
	q.Spread /= mass
	q.CovLog *= d.mode / mass
	q.PriorOf /= mass
	q.AtLo = d.atEnd(lo, rel.logMass)
	q.AtHi = d.atEnd(hi, rel.logMass)
	return q
}

// atEnd is q at an end of the range.
func (d *logNormalDensity) atEnd(end, logMass float64) float64 {
	return math.Exp(d.at(end/d.mode-1)-logMass) / d.mode
}

// nodes are those of a rule, as offsets x, with their weights.
type nodes struct {
	x, w  [4 * logNormalNodes]float64
	count int
}

func (b *nodes) add(x, w float64) {
	b.x[b.count], b.w[b.count] = x, w
	b.count++
}

const (
	logNormalNodes = 40 // from the mode to where the density ends
	logNormalDepth = 45 // of which the logarithm is so far below that at the mode

	// A density inside its range, by so many of its standard deviations, is a Gaussian but for its first
	// corrections where both its relative width and its skewness are less than these; but for a factor that 8
	// nodes resolve, or 20. Chosen so that the tests hold: 1e-12 in the variance.
	pointLike    = 1e-3
	pointSkew    = 1e-6
	smallSkew    = 3e-4
	roundSkew    = 0.02
	roundReach   = 9.5
	roundHalfway = 0.5 // of the way to s = 0
)

var logNormalRule = newLineRule(logNormalNodes, logNormalDepth)

// relative are moments in units of the mode.
type relative struct{ logMass, mean, variance float64 }

// integral is integrate, without the nodes.
func (h *logNormalExponent) integral(lo, hi float64) (d logNormalDensity, rel relative) {
	var buffer nodes
	return h.integrate(&buffer, lo, hi)
}

// single finds the mode where it can be the only one, near B/τ; ok is false where that is not sure.
func (h *logNormalExponent) single(lo, hi float64) (d logNormalDensity, ok bool) {
	// Readings tell s better than the prior, and from λ/(T+…) < 1 times s on the exponent is concave in log s. Below, it
	// rises: its slope there is more than n-1 + λ(1 - log(s/m)).
	s := h.b / h.tau
	if !(h.power >= 0) || !(h.tau > 0) || !(s > lo && s < hi) || !(h.b*s > 4*h.lambda) || !(s < 2*h.median) {
		return d, false
	}
	for range 8 {
		f, df := h.slope(s)
		step := -f / df
		s += s * step
		if math.Abs(step) < 1e-9 { // the next would be its square
			return h.about(s, lo, hi), s > lo && s < hi
		}
	}
	return d, false
}

// curvature is minus the second derivative of the exponent at the mode.
func (d *logNormalDensity) curvature() float64 { return d.a + d.lambda + d.tau }

// shape is the width of the Gaussian at the mode, and how much the exponent's cubic part is there.
func (d *logNormalDensity) shape() (width, skew float64) {
	width = 1 / math.Sqrt(d.curvature())
	return width, (math.Abs(d.a) + 1.5*d.lambda) * width * width * width
}

// narrow reports whether a density that is well inside its range is a Gaussian but for its first corrections, and
// its relative width.
func (d *logNormalDensity) narrow(lo, hi float64) (width float64, ok bool) {
	width, skew := d.shape()
	return width, width < pointLike && skew < pointSkew && min(1-lo/d.mode, hi/d.mode-1) > roundReach*width
}

// integrate finds the mode and integrates about it; buffer keeps the nodes.
func (h *logNormalExponent) integrate(buffer *nodes, lo, hi float64) (d logNormalDensity, rel relative) {
	if d, ok := h.single(lo, hi); ok {
		if width, ok := d.narrow(lo, hi); ok {
			rel := d.series(width)
			buffer.spread(rel)
			return d, rel
		}
		if d.round(buffer, lo, hi) {
			return d, buffer.moments()
		}
	}
	pieces, count := h.pieces(lo, hi)
	best := 0
	if count == 2 && h.at(pieces[1].peak) > h.at(pieces[0].peak) {
		best = 1
	}
	d = h.about(pieces[best].peak, lo, hi)
	if count == 1 && d.round(buffer, lo, hi) {
		return d, buffer.moments()
	}
	for _, p := range pieces[:count] {
		d.integrate(buffer, p, lo, hi)
	}
	return d, buffer.moments()
}

func (b *nodes) moments() (rel relative) {
	var mass float64
	for i, x := range b.x[:b.count] {
		mass += b.w[i]
		rel.mean += b.w[i] * x
	}
	rel.mean /= mass
	for i, x := range b.x[:b.count] {
		c := x - rel.mean
		rel.variance += b.w[i] * c * c
	}
	rel.variance /= mass
	rel.logMass = math.Log(mass)
	return rel
}

// series are the moments of exp(-u²/2 + c₃u³ + c₄u⁴ + c₅u⁵), u = x/width, to second order in c₃.
func (d *logNormalDensity) series(width float64) relative {
	c3 := (d.a/3 + d.lambda/2) * width * width * width
	c4 := -(d.a/4 + 11*d.lambda/24) * width * width * width * width
	c5 := (d.a/5 + 5*d.lambda/12) * width * width * width * width * width
	return relative{
		logMass:  math.Log(width) + 0.5*math.Log(2*math.Pi) + 3*c4 + 7.5*c3*c3,
		mean:     width * (3*c3 + 15*c5),
		variance: width * width * (1 + 12*c4 + 36*c3*c3),
	}
}

// spread are three nodes with these first moments.
func (b *nodes) spread(rel relative) {
	sd := math.Sqrt(3 * rel.variance)
	b.add(rel.mean-sd, 1.0/6)
	b.add(rel.mean, 2.0/3)
	b.add(rel.mean+sd, 1.0/6)
}

// round integrates what is a Gaussian times a factor near one, well inside the range; it returns false of anything else.
func (d *logNormalDensity) round(buffer *nodes, lo, hi float64) bool {
	width, skew := d.shape()
	room := min(1-lo/d.mode, hi/d.mode-1, roundHalfway)
	if !(width > 0) || d.slope != 0 || !(room > roundReach*width) || !(skew < roundSkew) {
		return false
	}
	rule := &hermiteLarge
	if skew < smallSkew {
		rule = &hermiteSmall
	}
	for i, u := range rule.x {
		x := width * u
		l := math.Log1p(x)
		factor := d.a*log1pCubic(x) - 0.5*d.lambda*(l-x)*(l+x)
		buffer.add(x, width*math.Sqrt(2*math.Pi)*rule.w[i]*math.Exp(factor))
	}
	return true
}

// leastOffset is the next number above -1: nearer to s = 0 an offset from the mode has no digits.
const leastOffset = -1 + 0x1p-53

// at is the log-density, relative to the mode's.
func (d *logNormalDensity) at(x float64) float64 {
	x = max(x, leastOffset)
	l := math.Log1p(x)
	return x*(d.slope-0.5*d.tau*x) + d.a*log1pLess(x) - 0.5*d.lambda*l*l
}

// piece is a part of the range on which the density rises to one peak and falls.
type piece struct{ from, peak, to float64 }

// integrate adds nodes on both sides of a piece's peak, as far as the density is not negligible. They are
// spaced evenly in log s, in which it is an entire function.
func (d *logNormalDensity) integrate(buffer *nodes, p piece, lo, hi float64) {
	peak := math.Log(p.peak / d.mode)
	for _, end := range [...]float64{p.from, p.to} {
		side := d.fall(peak, math.Log(end/d.mode))
		half := 0.5 * math.Abs(side-peak)
		if half == 0 {
			continue
		}
		for i, x := range logNormalRule.x {
			v := 0.5*(side+peak) + half*x
			offset := clamp(math.Expm1(v), max(lo/d.mode-1, leastOffset), hi/d.mode-1)
			buffer.add(offset, half*logNormalRule.w[i]*(1+offset)*math.Exp(d.at(offset)))
		}
	}
}

// fall is where, from the peak towards the end, the density is negligible; positions are logarithms.
func (d *logNormalDensity) fall(peak, end float64) float64 {
	side := math.Copysign(1, end-peak)
	level := math.Log1p(math.Expm1(peak)) // its density in log s has the factor s
	height := d.at(math.Expm1(peak)) + level
	below := func(v float64) bool { return d.at(math.Expm1(v))+v < height-logNormalDepth }
	step := side * min(1e-3, math.Abs(end-peak))
	if curvature := d.curvature(); curvature > 0 {
		step = side * min(1/math.Sqrt(curvature), math.Abs(end-peak))
	}
	return search.Fall(below, peak, end, step, 0.05)
}

// logNormalExponent is h(s) = (n-1) log s - λ log²(s/m)/2 - τs²/2 + Bs.
type logNormalExponent struct{ power, tau, b, median, lambda float64 }

func (h *logNormalExponent) at(s float64) float64 {
	l := math.Log(s / h.median)
	return h.power*math.Log(s) - 0.5*h.lambda*l*l + s*(h.b-0.5*h.tau*s)
}

// slope is s·h'(s), and its derivative in log s.
func (h *logNormalExponent) slope(s float64) (f, df float64) {
	force := math.FMA(-h.tau, s, h.b)
	return h.power - h.lambda*math.Log(s/h.median) + s*force, -h.lambda + s*(force-h.tau*s)
}

// about is the density relative to its peak at s.
func (h *logNormalExponent) about(s, lo, hi float64) logNormalDensity {
	d := logNormalDensity{mode: s, a: h.power - h.lambda*math.Log(s/h.median), lambda: h.lambda, tau: h.tau * s * s}
	if s == lo || s == hi {
		d.slope, _ = h.slope(s)
	}
	return d
}

// pieces are one or two. In log s the exponent is concave but where B s > λ + 2τs²: between two
// points, which there are where readings tell s better than the prior. If it has a minimum there, that
// is where two peaks part.
func (h *logNormalExponent) pieces(lo, hi float64) (p [2]piece, count int) {
	first, second := math.Inf(1), math.Inf(1) // ends of where it is not concave
	if h.b > 0 {
		if root := h.b*h.b - 8*h.tau*h.lambda; h.tau > 0 && root > 0 {
			second = (h.b + math.Sqrt(root)) / (4 * h.tau)
			first = h.lambda / (2 * h.tau * second)
		}
		if h.tau == 0 || first == 0 { // there is no second, or it is beyond double precision
			first = h.lambda / h.b
		}
	}
	if !(first < hi && second > lo) {
		return [2]piece{{lo, h.peak(lo, hi), hi}}, 1
	}
	first, second = max(first, lo), min(second, hi)
	atFirst, _ := h.slope(first)
	atSecond, _ := h.slope(second)
	switch {
	case atFirst >= 0: // it rises all the way between them
		if second == hi {
			return [2]piece{{lo, hi, hi}}, 1
		}
		return [2]piece{{lo, h.peak(second, hi), hi}}, 1
	case atSecond <= 0:
		return [2]piece{{lo, h.peak(lo, first), hi}}, 1
	}
	valley := h.zero(first, second, false)
	left := piece{lo, h.peak(lo, first), valley}
	right := piece{valley, h.peak(second, hi), hi}
	return [2]piece{left, right}, 2
}

// peak is the maximum on a part of the range on which h is concave in log s.
func (h *logNormalExponent) peak(lo, hi float64) float64 {
	if f, _ := h.slope(lo); f <= 0 {
		return lo
	}
	if f, _ := h.slope(hi); f >= 0 {
		return hi
	}
	return h.zero(lo, hi, true)
}

// zero is that of the slope on [lo, hi], by Newton's method in log s, kept between bounds.
func (h *logNormalExponent) zero(lo, hi float64, falling bool) float64 {
	s := math.Sqrt(lo) * math.Sqrt(hi)
	if h.tau > 0 && falling {
		if fit := GainMode(math.Max(h.power, 0), h.tau, h.b); fit > lo && fit < hi {
			s = fit
		}
	}
	for range 200 {
		f, df := h.slope(s)
		if (f > 0) == falling {
			lo = s
		} else {
			hi = s
		}
		step := -f / df
		next := s * math.Exp(step)
		if !(next > lo && next < hi) {
			if math.Abs(step) < 1e-15 {
				break
			}
			next = math.Sqrt(lo) * math.Sqrt(hi)
		}
		if f == 0 || math.Abs(next-s) < 1e-16*s {
			break
		}
		s = next
	}
	return s
}

// LogNormalMode is where the density of [LogNormalPosterior] has its maximum, and minus the second
// derivative of its logarithm there.
func LogNormalMode(n, tau, b, median, lambda, lo, hi float64) (mode, curvature float64) {
	h := logNormalExponent{n - 1, tau, b, median, lambda}
	pieces, count := h.pieces(lo, hi)
	mode = pieces[0].peak
	if count == 2 && h.at(pieces[1].peak) > h.at(mode) {
		mode = pieces[1].peak
	}
	d := h.about(mode, lo, hi)
	return mode, d.curvature() / (mode * mode)
}
