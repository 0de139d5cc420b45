// Package search looks for maxima and zeros of functions of one variable. A caller
// takes the steps one by one, since each knows best when its answer is good enough.
package search

import "math"

// golden is the ratio of the golden section.
const golden = 0.6180339887498949

// Golden looks for the maximum of a function with a single peak on [A, B] by golden
// sections.
type Golden struct {
	A, B   float64 // the maximum lies between these
	C, D   float64 // A < C < D < B
	FC, FD float64 // the function there

	f func(x float64) float64
}

// NewGolden evaluates f at the first two points between a and b.
func NewGolden(f func(x float64) float64, a, b float64) *Golden {
	g := &Golden{A: a, B: b, C: b - golden*(b-a), D: a + golden*(b-a), f: f}
	g.FC = f(g.C)
	g.FD = f(g.D)
	return g
}

// Narrow leaves out the part of [A, B] beyond the lower one of C and D, and
// evaluates the function at one new point. It returns false, and does nothing, where
// double precision has no further points between A and B: there a search ends, whatever
// width it was to reach.
func (g *Golden) Narrow() bool {
	if !(g.A < g.C && g.C < g.D && g.D < g.B) { // so for what is no number
		return false
	}
	if g.FC > g.FD {
		g.B, g.D, g.FD = g.D, g.C, g.FC
		g.C = g.B - golden*(g.B-g.A)
		g.FC = g.f(g.C)
	} else {
		g.A, g.C, g.FC = g.C, g.D, g.FD
		g.D = g.A + golden*(g.B-g.A)
		g.FD = g.f(g.D)
	}
	return true
}

// MostDoublings is how often a positive number can double in double precision, from the
// smallest to the largest: a search whose steps grow by such a factor has as many at most.
const MostDoublings = 1074 + 1024

// Fall goes from a point towards end, in steps that double from step on, until below is
// true, and returns where: the last step is bisected to the fraction within of the way. It
// returns end where below is not true at end. Once true, below must stay so. It ends
// whatever the numbers are: a step that is none, or too small to move, leads to the end at
// once.
func Fall(below func(x float64) bool, from, end, step, within float64) float64 {
	side := math.Copysign(1, step)
	inside, outside := from, from+step
	for range MostDoublings + 1 {
		if outside == from || !((end-outside)*side > 0) {
			outside = end
		}
		if below(outside) {
			break
		}
		if outside == end {
			return end
		}
		inside, outside = outside, from+2*(outside-from)
	}
	for range MostDoublings {
		middle := 0.5*inside + 0.5*outside
		if !(math.Abs(outside-inside) > within*math.Abs(outside-from)) || middle == inside || middle == outside {
			break
		}
		if below(middle) {
			outside = middle
		} else {
			inside = middle
		}
	}
	return outside
}

// Bracket holds the zero of a function that rises through it, or falls, between Lo
// and Hi, while Newton's method looks for it. Where there is none the search ends at
// the end that is nearer to one.
type Bracket struct {
	Lo, Hi  float64
	Falling bool
}

// Next takes the function's value and slope at x, between Lo and Hi, which becomes an
// end of the bracket. It returns where to look next: Newton's step, or the middle of
// the bracket where that leads out of it.
func (b *Bracket) Next(x, value, slope float64) float64 {
	if (value > 0) == b.Falling {
		b.Lo = x
	} else {
		b.Hi = x
	}
	next := x - value/slope
	if !(next > b.Lo && next < b.Hi) { // so where the slope is zero, or has the wrong sign
		next = 0.5 * (b.Lo + b.Hi)
	}
	return next
}
