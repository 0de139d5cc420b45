package quadrature

import (
	"math"

	"gonum.org/v1/gonum/integrate/quad"
)

// GainPosterior holds what state evolution needs of the density
//
//	q(s) ∝ s^n exp(-τ(s-t)²/2)   on [lo, hi], 0 < lo ≤ hi,
//
// the posterior of a calibration variable; without the power s^n its maximum would be
// at t = B/τ. Positions are offsets from t, which keeps their digits when the
// posterior is 1e-8 wide. The averages below are sums of positive terms, so that
// 1-τVar can be computed from them without a subtraction.
type GainPosterior struct {
	LogMass   float64 // log ∫ s^n exp(-τ(s-t)²/2) ds
	Mean      float64 // ŝ
	Offset    float64 // ŝ - t
	Var       float64 // centred
	Third     float64 // third central moment
	Inverse   float64 // E[1/s]
	Spread    float64 // E[(s-ŝ)²/(s ŝ)] = ŝ E[1/s] - 1
	AtLo      float64 // q(lo), normalised
	AtHi      float64 // q(hi)
	PointLike bool    // lo == hi: the density is a point mass and AtLo, AtHi mean nothing
}

// Accuracy chooses between the two rules of [NewGainPosterior].
type Accuracy int

const (
	Full Accuracy = iota // 1e-14 relative
	Fast                 // 1e-10 relative, two thirds of the time
)

// lineRule is a Gauss–Legendre rule on [-1, 1]. Before it is applied, the integral is
// cut where the log-density is depth below its maximum.
type lineRule struct {
	x, w  []float64
	depth float64
}

// hermiteRule integrates f(x) exp(-x²/2)/√(2π).
type hermiteRule struct{ x, w []float64 }

var (
	lineRules = [...]lineRule{Full: newLineRule(48, 42), Fast: newLineRule(32, 28)}

	// hermiteRules are for a posterior deep inside its range, nearly Gaussian.
	hermiteSmall, hermiteLarge = newHermiteRule(8), newHermiteRule(20)
)

func newLineRule(n int, depth float64) lineRule {
	r := lineRule{x: make([]float64, n), w: make([]float64, n), depth: depth}
	quad.Legendre{}.FixedLocations(r.x, r.w, -1, 1)
	return r
}

func newHermiteRule(n int) hermiteRule {
	r := hermiteRule{x: make([]float64, n), w: make([]float64, n)}
	quad.Hermite{}.FixedLocations(r.x, r.w, math.Inf(-1), math.Inf(1))
	for i := range r.x {
		r.x[i] *= math.Sqrt2
		r.w[i] /= math.Sqrt(math.Pi)
	}
	return r
}

// NewGainPosterior integrates the density, for τ ≥ 0 and any t; at τ = 0 t has no
// effect.
func NewGainPosterior(n, tau, t, lo, hi float64, acc Accuracy) GainPosterior {
	if hi <= lo {
		x := lo - t
		return GainPosterior{LogMass: n*math.Log(lo) - 0.5*tau*x*x, Mean: lo, Offset: x, Inverse: 1 / lo, PointLike: true}
	}
	mode, offset, inside := gainModeOffset(n, tau, t, lo, hi)
	d := offsetDensity{n: n, tau: tau, mode: mode}
	if !inside {
		d.slope = n/mode - tau*offset
	}
	peak := n*math.Log(mode) - 0.5*tau*offset*offset

	var g GainPosterior
	curvature := tau + n/(mode*mode)
	width := 1 / math.Sqrt(curvature)
	if ratio := width / mode; inside && ratio < 0.02 && n*ratio*ratio*ratio < 1e-3 &&
		mode-lo > 9*width && hi-mode > 9*width {
		rule := &hermiteLarge
		if ratio < 1e-4 && n*ratio < 1e-2 {
			rule = &hermiteSmall
		}
		g = d.gaussianMoments(rule, width)
	} else {
		rule := &lineRules[acc]
		// Curvature is at least τ + n/mode² to the left, τ + n/hi² to the right.
		left := -descent(-d.slope, curvature, rule.depth, mode-lo)
		right := descent(d.slope, tau+n/(hi*hi), rule.depth, hi-mode)
		g = d.moments(rule, left, right)
		mass := math.Exp(g.LogMass)
		// At an end that the integral does not reach, the density counts as zero.
		if -left >= mode-lo {
			g.AtLo = math.Exp(d.at(lo-mode)) / mass
		}
		if right >= hi-mode {
			g.AtHi = math.Exp(d.at(hi-mode)) / mass
		}
	}
	// Up to here LogMass and Offset were relative to the mode.
	g.LogMass += peak
	g.Offset += offset
	return g
}

// gainModeOffset is the maximum of n log s - τ(s-t)²/2 on [lo, hi], its offset from t,
// and whether it is inside the range. There n/s = τ(s-t), which gives the offset
// without a subtraction.
func gainModeOffset(n, tau, t, lo, hi float64) (mode, offset float64, inside bool) {
	mode = GainMode(n, tau, tau*t)
	switch {
	case tau == 0 && n == 0, mode <= lo:
		return lo, lo - t, false
	case mode >= hi:
		return hi, hi - t, false
	}
	return mode, n / (tau * mode), true
}

// descent is an upper bound, but at most limit, of the distance in which a concave
// function falls by depth: the positive root of slope·u - curvature·u²/2 = -depth. slope
// is the function's, in the direction of u, and its curvature is at least the one given.
func descent(slope, curvature, depth, limit float64) float64 {
	root := math.Hypot(slope, math.Sqrt(2*depth*curvature))
	if slope < 0 {
		return min(limit, 2*depth/(root-slope))
	}
	if curvature == 0 {
		return limit
	}
	return min(limit, (slope+root)/curvature)
}

// moments integrates e^at over [left, right] around the mode.
func (d *offsetDensity) moments(rule *lineRule, left, right float64) GainPosterior {
	var buffer [48]float64
	weight := buffer[:len(rule.x)]
	half, mid := 0.5*(right-left), 0.5*(right+left)
	var sum, first float64
	for i, x := range rule.x {
		w := rule.w[i] * math.Exp(d.at(mid+half*x))
		weight[i] = w
		sum += w
		first += w * x
	}
	first /= sum
	offset := mid + half*first // of the mean from the mode
	mean := d.mode + offset
	var second, third, inverse, spread float64
	for i, x := range rule.x {
		c := x - first
		c2 := c * c * weight[i]
		r := 1 / (d.mode + (mid + half*x))
		second += c2
		third += c2 * c
		inverse += weight[i] * r
		spread += c2 * r
	}
	h2 := half * half / sum
	return GainPosterior{
		LogMass: math.Log(half * sum), Mean: mean, Offset: offset,
		Var: h2 * second, Third: half * h2 * third, Inverse: inverse / sum, Spread: h2 * spread / mean,
	}
}

// gaussianMoments does the same for a mode deep inside the range: the density
// is a Gaussian of the given width times exp of the cubic and higher terms.
func (d *offsetDensity) gaussianMoments(rule *hermiteRule, width float64) GainPosterior {
	var buffer [20]float64
	weight := buffer[:len(rule.x)]
	ratio := width / d.mode
	var sum, first float64
	for i, x := range rule.x {
		w := rule.w[i] * math.Exp(d.n*log1pCubic(ratio*x))
		weight[i] = w
		sum += w
		first += w * x
	}
	first /= sum
	offset := width * first
	mean := d.mode + offset
	var second, third, inverse, spread float64
	for i, x := range rule.x {
		c := x - first
		c2 := c * c * weight[i]
		r := 1 / (1 + ratio*x)
		second += c2
		third += c2 * c
		inverse += weight[i] * r
		spread += c2 * r
	}
	w2 := width * width / sum
	return GainPosterior{
		LogMass: math.Log(width*sum) + 0.5*math.Log(2*math.Pi), Mean: mean, Offset: offset,
		Var: w2 * second, Third: width * w2 * third,
		Inverse: inverse / (sum * d.mode), Spread: w2 * spread / (d.mode * mean),
	}
}
