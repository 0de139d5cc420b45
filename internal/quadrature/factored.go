package quadrature

import (
	"math"
	"slices"

	"github.com/calamp/calamp/internal/search"
)

// Factored are nodes and weights for averages over the density proportional to
//
//	s^n exp(-τ s²/2 + B s) f(s)   on [lo, hi],
//
// a gain posterior (see [GainMoments]) times a log-concave factor that falls
// with s. Positions are Base + Offset, so that differences between them have
// all their digits.
type Factored struct {
	Base    float64
	Offset  []float64
	Weight  []float64 // sum 1
	LogMass float64   // log of the integral
}

// Turn is a place where a factor goes from flat to steep, within about Width.
type Turn struct{ At, Width float64 }

const (
	factoredNodes = 20 // of a panel
	factoredDepth = 42 // how far below its peak the log-density is cut: a little deeper than vector.Tail

	// sharp is the width of a turn, relative to the range of integration, below
	// which it needs panels of its own.
	sharp = 0.05
)

var factoredRule = newLineRule(factoredNodes, factoredDepth)

// NewFactored computes nodes, weights and the integral. logFactor returns log f and its
// derivative, which is ≤ 0; turns tells where f turns from flat to steep.
func NewFactored(n, tau, b, lo, hi float64, logFactor func(s float64) (value, slope float64), turns []Turn) Factored {
	base := min(max(GainMode(n, tau, b), lo), hi)
	d := offsetDensity{n: n, tau: tau, mode: base}
	if base == lo || base == hi {
		d.slope = n/base - tau*base + b
	}
	density := func(u float64) (value, slope float64) {
		v, g := logFactor(base + u)
		return d.at(u) + v, d.slope - tau*u - n*(u/base)/(base+u) + g
	}
	width := max(1/math.Sqrt(tau+n/(base*base)+1/((hi-lo)*(hi-lo))), 4e-16*base)
	mode := zeroOfSlope(density, lo-base, width)
	peak, _ := density(mode)
	cuts := []float64{fall(density, mode, lo-base, peak-factoredDepth, -width), mode, fall(density, mode, hi-base, peak-factoredDepth, width)}
	left, right := cuts[0], cuts[2]
	for _, t := range turns {
		if t.Width > sharp*(right-left) {
			continue // wide enough for the nodes as they are
		}
		for _, u := range [...]float64{-4, 0, 4} {
			if u = t.At - base + u*t.Width; u > left && u < right {
				cuts = append(cuts, u)
			}
		}
	}
	slices.Sort(cuts)

	f := Factored{Base: base}
	total := 0.0
	for i, left := range cuts[:len(cuts)-1] {
		half, middle := 0.5*(cuts[i+1]-left), 0.5*(cuts[i+1]+left)
		if half <= 0 {
			continue
		}
		for j, x := range factoredRule.x {
			u := middle + half*x
			v, _ := density(u)
			w := half * factoredRule.w[j] * math.Exp(v-peak)
			f.Offset, f.Weight = append(f.Offset, u), append(f.Weight, w)
			total += w
		}
	}
	if !(total > 0) || math.IsInf(total, 1) { // so steep that in double precision it is a point mass
		f.Offset, f.Weight, total = []float64{mode}, []float64{1}, math.SmallestNonzeroFloat64
		f.LogMass = -factoredDepth
	} else {
		for i := range f.Weight {
			f.Weight[i] /= total
		}
		f.LogMass = math.Log(total)
	}
	f.LogMass += peak + n*math.Log(base) + base*(b-0.5*tau*base)
	return f
}

// zeroOfSlope returns a point of [least, 0] where a concave function is at most 0.1
// below its maximum on that interval. It searches from 0, with steps that start at
// width.
func zeroOfSlope(f func(float64) (value, slope float64), least, width float64) float64 {
	hi := 0.0
	if _, s := f(hi); s >= 0 {
		return hi
	}
	lo := max(least, -width)
	_, slope := f(lo)
	for range search.MostDoublings {
		if !(slope <= 0) {
			break
		}
		if lo == least {
			return lo
		}
		hi, lo = lo, max(least, 3*lo)
		_, slope = f(lo)
	}
	for range 200 {
		if slope*(hi-lo) < 0.1 {
			break
		}
		middle := 0.5 * (lo + hi)
		if _, s := f(middle); s > 0 {
			lo, slope = middle, s
		} else {
			hi = middle
		}
	}
	return lo
}

// fall goes from the mode of a concave function towards end, in steps that double from
// step on, until the function is below level, and returns that point, to a tenth of the
// way, or end.
func fall(f func(float64) (value, slope float64), mode, end, level, step float64) float64 {
	return search.Fall(func(u float64) bool { v, _ := f(u); return v < level }, mode, end, step, 0.1)
}
