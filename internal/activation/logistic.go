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
//	-d(2(m-ω)+d)/2V - ½ a Δ(2(σ(m)-λ)+Δ),   d = u-m,   Δ = σ(u)-σ(m) = sinh(d/2) / 2 cosh(u/2) cosh(m/2).
type tilted struct{ lambda, a, omega, v, m, fm float64 }

func (t *tilted) about(m float64) { t.m, t.fm = m, logistic(m) }

// change is Δ.
func (t *tilted) change(d float64) float64 {
	u, m := t.m+d, t.m
	if math.Abs(d) > 1 || math.Abs(u) > 600 || math.Abs(m) > 600 {
		return logistic(u) - t.fm
	}
	return math.Sinh(0.5*d) / (2 * math.Cosh(0.5*u) * math.Cosh(0.5*m))
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

// wanted is where the field alone wants u. What is beyond the range of σ pulls less and less: then it is where that pull and N(u; ω, V) are equal.
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
	u := lo
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
		if math.Abs(next-u) <= 1e-9*(1e-9+math.Sqrt(-1/min(second, -1e-300))) || !(hi > lo) {
			return next
		}
		u = next
	}
	return u
}

// marks are where cuts are put about a peak, in its standard deviations.
var marks = [...]float64{-13, -7, -4, -2, 0, 2, 4, 7, 13}

var logisticRule = quadrature.NewIntegrator(1e-11)

// logisticFactor is the factor of σ, by adaptive quadrature: there may be a peak where the field wants u, and another one near ω.
func logisticFactor(lambda, a, omega, v float64) Moments {
	t := tilted{lambda: lambda, a: a, omega: omega, v: v}
	sd := math.Sqrt(v)
	peaks := [2]float64{omega, omega}
	if a > 0 {
		wanted := t.wanted()
		lo, hi := min(omega, wanted), max(omega, wanted)
		peaks = [2]float64{t.zero(lo, 0.5*(lo+hi)), t.zero(0.5*(lo+hi), hi)}
	}
	t.about(peaks[0])
	if d := peaks[1] - peaks[0]; t.log(d, t.change(d)) > 0 {
		t.about(peaks[1])
	}
	var room [64]float64
	cuts := room[:0]
	for _, p := range peaks {
		_, second := t.slope(p)
		width := sd
		if second < 0 {
			width = min(sd, 1/math.Sqrt(-second))
		}
		for _, mark := range marks {
			cuts = append(cuts, p-t.m+mark*width, p-t.m+mark*sd)
		}
	}
	slices.Sort(cuts)
	// What is far below the peak is no part of the integral.
	sum := logisticRule.Integrate(func(d float64) (value, err quadrature.Vec) {
		change := t.change(d)
		w := math.Exp(t.log(d, change))
		value[0], value[1], value[2] = w, w*d, w*change
		return value, err
	}, cuts)
	mass, first, firstX := sum.Value[0], sum.Value[1]/sum.Value[0], sum.Value[2]/sum.Value[0]
	spread := logisticRule.Integrate(func(d float64) (value, err quadrature.Vec) {
		change := t.change(d)
		w := math.Exp(t.log(d, change))
		value[0], value[1] = w*(d-first)*(d-first), w*(change-firstX)*(change-firstX)
		return value, err
	}, cuts)
	off := t.m - omega
	top := -0.5*off*(off/v) - 0.5*(t.fm-lambda)*((t.fm-lambda)*a)
	return Moments{
		X: t.fm + firstX, XVar: spread.Value[1] / mass,
		U: t.m + first, UVar: spread.Value[0] / mass, Off: off + first,
		LogMass: top + math.Log(mass) - 0.5*math.Log(2*math.Pi*v),
	}
}
