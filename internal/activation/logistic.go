package activation

import (
	"math"
	"slices"

	"github.com/calamp/calamp/internal/quadrature"
)

func logistic(u float64) float64 {
	if u < 0 {
		e := math.Exp(u)
		return e / (1 + e)
	}
	return 1 / (1 + math.Exp(-u))
}

// tilted is the density N(u; ω, V) N(σ(u); λ, 1/a), as its logarithm relative to that at a point m:
//
//	-d(2(m-ω)+d)/2V - ½ a Δ(2(σ(m)-λ)+Δ),   d = u-m,   Δ = σ(u)-σ(m).
type tilted struct{ lambda, a, omega, v, m, fm, rest float64 }

func (t *tilted) about(m float64) { t.m, t.fm, t.rest = m, logistic(m), logistic(-m) }

// change is Δ, with all its digits: σ(m)(1-σ(m)) (e^d-1) / (1-σ(m) + σ(m)e^d).
func (t *tilted) change(d float64) float64 {
	if d > 30 {
		return logistic(t.m+d) - t.fm
	}
	e := math.Expm1(d)
	return t.fm * t.rest * e / (t.rest + t.fm*(1+e))
}

func (t *tilted) log(d, change float64) float64 {
	return -0.5*d*(2*(t.m-t.omega)+d)/t.v - 0.5*t.a*change*(2*(t.fm-t.lambda)+change)
}

// slope is the derivative of the logarithm at u, and its derivative.
func (t *tilted) slope(u float64) (first, second float64) {
	f := logistic(u)
	df := f * logistic(-u)
	off := f - t.lambda
	return -(u-t.omega)/t.v - t.a*off*df, -1/t.v - t.a*(df*df+off*df*(1-2*f))
}

// wanted is where the field alone has its maximum in u. What is beyond the range of σ pulls less and less: then it is where that pull and N(u; ω, V) are equal.
func (t *tilted) wanted() float64 {
	if t.lambda > 0 && t.lambda < 1 {
		return math.Log(t.lambda) - math.Log1p(-t.lambda)
	}
	if t.lambda <= 0 {
		mirrored := tilted{lambda: 1 - t.lambda, a: t.a, omega: -t.omega, v: t.v}
		return -mirrored.wanted()
	}
	lo := max(0, t.omega)
	hi := max(lo, t.omega+0.25*t.a*t.v*t.lambda)
	return t.zero(lo, hi)
}

// zero is where the density's slope changes from rising to falling between lo and hi, or the end that it rises towards.
func (t *tilted) zero(lo, hi float64) float64 {
	const most = 200 // of halvings, and of Newton's steps
	u := min(max(t.omega, lo), hi)
	for range most {
		first, second := t.slope(u)
		if first > 0 {
			lo = max(lo, u)
		} else {
			hi = min(hi, u)
		}
		next := u - first/second
		if !(second < 0) || !(next > lo && next < hi) {
			next = 0.5 * (lo + hi)
		}
		if second < 0 && math.Abs(next-u) <= 1e-9/math.Sqrt(-second) || !(hi-lo > 1e-12*math.Abs(u)) {
			return next
		}
		u = next
	}
	return u
}

// marks are where cuts are put about a peak, in its standard deviations.
var marks = [...]float64{-8, -3, 0, 3, 8}

var logisticRule = quadrature.NewIntegrator(1e-9)

// logisticFactor is the factor of σ, by adaptive quadrature: there may be a peak where the field has its maximum, and another one near ω.
func logisticFactor(lambda, a, omega, v float64) Moments {
	t := tilted{lambda: lambda, a: a, omega: omega, v: v}
	peaks := t.peaks()
	t.about(peaks[0])
	if d := peaks[1] - peaks[0]; t.log(d, t.change(d)) > 0 {
		t.about(peaks[1])
	}
	if m, ok := t.narrow(peaks); ok {
		return m
	}
	if m, ok := t.even(peaks); ok {
		return m
	}
	return t.adaptive(peaks)
}

// adaptive is the factor about m, whatever its shape.
func (t *tilted) adaptive(peaks [2]float64) Moments {
	var room [4 * len(marks)]float64
	sum := logisticRule.Integrate(func(d float64) (value, err quadrature.Vec) {
		change := t.change(d)
		w := math.Exp(t.log(d, change))
		value[0], value[1], value[2], value[3], value[4] = w, w*d, w*change, w*d*d, w*change*change
		return value, err
	}, t.cuts(room[:0], peaks))
	return t.moments(sum.Value[0], sum.Value[1], sum.Value[2], sum.Value[3], sum.Value[4])
}

// moments are those of the integrals of the density, relative to that at m, times 1, d, Δ, d² and Δ².
func (t *tilted) moments(mass, first, firstX, second, secondX float64) Moments {
	first, firstX, second, secondX = first/mass, firstX/mass, second/mass, secondX/mass
	off := t.m - t.omega
	top := -0.5*off*(off/t.v) - 0.5*(t.fm-t.lambda)*((t.fm-t.lambda)*t.a)
	return Moments{
		X: t.fm + firstX, XVar: max(0, secondX-firstX*firstX),
		U: t.m + first, UVar: max(0, second-first*first), Off: off + first,
		LogMass: top + math.Log(mass) - 0.5*math.Log(2*math.Pi*t.v),
	}
}

// mostNarrow is the width of a peak below which it is nearly Gaussian: where a field makes it so narrow, the density beyond σ's range of 0 … 1, on
// which the field has no say, is below e^-35 of it, since σ' is less than the distance from either end.
const mostNarrow = 0.05

// narrow integrates a density of one narrow peak by Gauss and Hermite's rule about it; false where it is not that.
func (t *tilted) narrow(peaks [2]float64) (m Moments, ok bool) {
	_, curvature := t.slope(t.m)
	width := 1 / math.Sqrt(-curvature)
	if !(width < mostNarrow) || peaks[1]-peaks[0] > 1e-3*width {
		return m, false
	}
	var mass, first, firstX, second, secondX float64
	for j, x := range hermiteNodes {
		d := width * x
		change := t.change(d)
		w := hermiteWeights[j] * width * math.Exp(t.log(d, change)+0.5*x*x)
		mass += w
		first += w * d
		firstX += w * change
		second += w * d * d
		secondX += w * change * change
	}
	return t.moments(mass, first, firstX, second, secondX), true
}

const (
	// The trapezoidal rule begins with steps of a width of the peak, and mostEven at most: halved, a Gaussian leaves it e^(-2π²/0.5²), and σ, whose poles are π
	// from the real line, e^(-2π·1.5/0.25) at half that distance.
	mostEven = 0.5

	// evenReach is the logarithm of the density below which it is neglected, and evenNodes what the rule may take.
	evenReach = -45
	evenNodes = 4000

	// evenAgree is how far the sums may move by halving the step, relative: since the error of the rule falls as e^(-c/h²) or e^(-c/h), what is left then is the
	// square of that or less.
	evenAgree = 1e-6
)

// even integrates the density by the trapezoidal rule, which for an analytic integrand that vanishes at both ends is good to all digits. The step is halved until that
// changes nothing; false where that takes too many nodes.
func (t *tilted) even(peaks [2]float64) (m Moments, ok bool) {
	h := mostEven
	for _, p := range peaks {
		if _, curvature := t.slope(p); curvature < 0 {
			h = min(h, 1/math.Sqrt(-curvature))
		}
	}
	var sums [5]float64 // of 1, d, Δ, d² and Δ²
	t.add(&sums, 0)
	lo, hi := 0, 0
	for d := h; (t.add(&sums, d) > evenReach || t.m+d < peaks[1]) && hi < evenNodes; d = h * float64(hi+1) {
		hi++
	}
	for d := -h; (t.add(&sums, d) > evenReach || t.m+d > peaks[0]) && lo > -evenNodes; d = h * float64(lo-1) {
		lo--
	}
	for nodes := hi - lo + 3; 2*nodes <= evenNodes; nodes *= 2 {
		before := sums
		for k := lo - 1; k <= hi; k++ {
			t.add(&sums, h*(float64(k)+0.5))
		}
		agree := true
		for _, j := range [...]int{0, 3, 4} {
			agree = agree && math.Abs(2*before[j]-sums[j]) <= evenAgree*sums[j]
		}
		if h *= 0.5; agree {
			return t.moments(h*sums[0], h*sums[1], h*sums[2], h*sums[3], h*sums[4]), true
		}
		lo, hi = 2*lo-1, 2*hi+1
	}
	return m, false
}

// add is a node of the rule, d from m; and the logarithm of the density there.
func (t *tilted) add(sums *[5]float64, d float64) float64 {
	change := t.change(d)
	log := t.log(d, change)
	w := math.Exp(log)
	sums[0] += w
	sums[1] += w * d
	sums[2] += w * change
	sums[3] += w * d * d
	sums[4] += w * change * change
	return log
}

// mostBend is the largest |σ”|, 1/(6√3).
const mostBend = 0.0962251

// peaks are the density's, one towards where the field has its maximum and one towards ω; twice the same where there is one.
func (t *tilted) peaks() [2]float64 {
	if t.a == 0 {
		return [2]float64{t.omega, t.omega}
	}
	wanted := t.wanted()
	lo, hi := min(t.omega, wanted), max(t.omega, wanted)
	if off := max(math.Abs(logistic(lo)-t.lambda), math.Abs(logistic(hi)-t.lambda)); t.a*t.v*mostBend*off < 1 { // the logarithm is concave between them
		p := t.zero(lo, hi)
		return [2]float64{p, p}
	}
	mid := 0.5 * (lo + hi)
	below, above := t.zero(lo, mid), t.zero(mid, hi)
	near := 1e-6 * (hi - lo)
	switch { // an end towards which the density rises is no peak
	case mid-below <= near:
		below = above
	case above-mid <= near:
		above = below
	}
	return [2]float64{below, above}
}

// cuts are the ends of the first panels, relative to m: about both peaks, in their own widths, and where one of them is far narrower than N(u; ω, V), beside
// which there may be a shoulder, in that width, too.
func (t *tilted) cuts(list []float64, peaks [2]float64) []float64 {
	sd := math.Sqrt(t.v)
	for i, p := range peaks {
		if i == 1 && p-peaks[0] < 1e-6*sd {
			break
		}
		width := sd
		if _, second := t.slope(p); second < 0 {
			width = min(sd, 1/math.Sqrt(-second))
		}
		for _, mark := range marks {
			list = append(list, p-t.m+mark*width)
			// Far out the density is no more than that of N(u; ω, V), and below e^-32 it is neglected.
			if d := p - t.m + mark*sd; width < 0.5*sd && mark != 0 && t.log(d, t.change(d)) > -34 {
				list = append(list, d)
			}
		}
	}
	slices.Sort(list)
	return list
}
