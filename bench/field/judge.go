package main

import (
	"math"
	"math/cmplx"
	"slices"

	"github.com/calamp/calamp/internal/baseline"
	"github.com/calamp/calamp/internal/search"
)

// What counts as right is said here and nowhere else. An answer (x̂, its variances, and intervals of |s| at a fixed common scale) is judged
// after its common factor is taken off: of x the one complex (or real) number that brings x̂ closest to the truth (of what x says of the scene, for its error), of the intervals
// the median of |s|/|ŝ|. Phases of gains are judged by the signals that come out with them.
//
//	honest   the 95 % intervals of |s| do not hold significantly less than 85 % of the sensors that are not dead, and
//	         the root mean square error of x is no more than 3 times the root mean square of the stated standard deviations;
//	useful   the error of what x says of the scene (the mean taken out where it says nothing), relative to its size, is no more than
//	         3 times that of the best method that is given the gains, or no more than 5 %, and in any case no more than 50 %;
//	right    both.
const (
	leastCoverage = 0.85
	significance  = 0.01 // of the test that coverage is less than that
	mostDeviation = 3.0
	timesKnown    = 3.0
	usefulError   = 0.05
	uselessError  = 0.5
	countMargin   = 1.25 // by which α must be above the counting limit
)

// How a run may end.
const (
	solved        = "solved"         // exit 0 and right
	notSure       = "right, exit 3"  // right, but not converged
	useless       = "honest, no use" // exit 0, the error bars hold, and it is not useful
	wrongWarned   = "wrong, warned"  // exit 0, the error bars do not hold, and there is a warning
	silentlyWrong = "silently wrong" // the same without a warning
	givenUp       = "given up"       // exit 3, and not right
	late          = "time"           // longer than the limit
	broke         = "failed"         // any other exit code, or no result
)

var outcomes = []string{solved, notSure, useless, wrongWarned, silentlyWrong, givenUp, late, broke}

// conventions are codes of warnings that healthy runs have by default: they name a convention and no doubt.
var conventions = []string{"scale-from-gains", "scale-from-noise"}

// An answer is what a run has found.
type answer struct {
	x, xVar  baseline.Parts // N×P; variances are of both parts, in Re
	s        []complex128   // M
	low, top []float64      // M, of |s|
}

// A verdict is what an answer is worth.
type verdict struct {
	error     float64 // of what x says of the scene, relative
	gainError float64 // relative root mean square error of |s|, dead sensors left out
	coverage  float64 // of the intervals of s
	deviation float64 // root mean square error of x over that which is stated
	honest    bool
}

// judge compares an answer with the truth. free says that phases were free, so that a move of the scene is no error.
func (p *problem) judge(a *answer, free bool) verdict {
	truth := p.x
	if free && p.moves > 0 {
		truth = p.nearest(a.x)
	}
	v := verdict{error: relative(a.x, truth, p.mean), coverage: math.NaN(), deviation: math.NaN()}
	if a.xVar.Re == nil {
		return v
	}
	c := factor(a.x, truth)
	off := meanPower(a.x.Clone().Apply(func(i, k int, x complex128) complex128 { return c*x - truth.At(i, k) }))
	stated := power(c) * meanOf(a.xVar)
	v.deviation = math.Sqrt(off / stated)

	var ratios []float64
	for mu, s := range a.s {
		if !p.dead[mu] {
			ratios = append(ratios, cmplx.Abs(p.s[mu])/cmplx.Abs(s))
		}
	}
	scale := search.Median(ratios)
	held, squares := 0, 0.0
	for mu, s := range a.s {
		if p.dead[mu] {
			continue
		}
		size := cmplx.Abs(p.s[mu])
		if scale*a.low[mu] <= size && size <= scale*a.top[mu] {
			held++
		}
		squares += (scale*cmplx.Abs(s)/size - 1) * (scale*cmplx.Abs(s)/size - 1)
	}
	v.coverage = float64(held) / float64(len(ratios))
	v.gainError = math.Sqrt(squares / float64(len(ratios)))
	v.honest = atMost(held, len(ratios), leastCoverage) >= significance && v.deviation <= mostDeviation
	return v
}

// outcome is how a run has ended. known is the error with the gains given.
func outcome(code int, timedOut bool, v *verdict, known float64, warnings []string) string {
	doubt := slices.ContainsFunc(warnings, func(code string) bool { return !slices.Contains(conventions, code) })
	switch {
	case timedOut:
		return late
	case v == nil || code != 0 && code != 3:
		return broke
	}
	useful := v.error <= usefulUpTo(known)
	switch {
	case code == 3 && v.honest && useful:
		return notSure
	case code == 3:
		return givenUp
	case v.honest && useful:
		return solved
	case v.honest:
		return useless
	case doubt:
		return wrongWarned
	}
	return silentlyWrong
}

// usefulUpTo is the largest error that is of use where the best with the gains given has this one.
func usefulUpTo(known float64) float64 { return max(usefulError, min(timesKnown*known, uselessError)) }

// solvable says whether the problem counts: gains that are known give it to 5 %, and there are more readings than unknowns,
// with a margin. The unknowns of a signal are the entries that give it to 5 %: α_min = ρP/(P-1).
func (p *problem) solvable(known float64) bool {
	m, n := p.w.Dims()
	return known <= usefulError && float64(m)/float64(n) >= countMargin*p.countingLimit()
}

// countingLimit is α_min; infinite for one signal.
func (p *problem) countingLimit() float64 {
	_, count := p.x.Dims()
	if count == 1 {
		return math.Inf(1)
	}
	return p.density() * float64(count) / float64(count-1)
}

// density is the fraction of entries that gives all signals to 5 % of what they say of the scene.
func (p *problem) density() float64 {
	n, count := p.x.Dims()
	kept := 0
	shown := without(p.x, p.mean)
	for k := range count {
		squares, total := make([]float64, n), 0.0
		for i := range n {
			squares[i] = power(p.x.At(i, k))
			total += power(shown.At(i, k))
		}
		slices.Sort(squares)
		left := 0.0
		for i, v := range squares {
			if left += v; left > usefulError*usefulError*total {
				kept += n - i
				break
			}
		}
	}
	return float64(kept) / float64(n*count)
}

// nearest is the truth, moved to where it fits x best.
func (p *problem) nearest(x baseline.Parts) baseline.Parts {
	n, count := x.Dims()
	best, at := -1.0, 0
	for j := range p.moves {
		var sum complex128
		for i := range n {
			to := p.moved(i, j)
			for k := range count {
				sum += cmplx.Conj(p.x.At(i, k)) * x.At(to, k)
			}
		}
		if fit := cmplx.Abs(sum); fit > best {
			best, at = fit, j
		}
	}
	to := baseline.NewParts(n, count, true)
	for i := range n {
		for k := range count {
			to.Set(p.moved(i, at), k, p.x.At(i, k))
		}
	}
	return to
}

// relative is the error of x, with the mean taken out, after the best factor of what is left: of a scene behind a Hadamard matrix one sensor alone sees the mean, and its gain, which nothing tells, says nothing of the rest.
func relative(x, truth baseline.Parts, mean []float64) float64 {
	x, truth = without(x, mean), without(truth, mean)
	c := factor(x, truth)
	off := x.Clone().Apply(func(i, k int, v complex128) complex128 { return c*v - truth.At(i, k) })
	return math.Sqrt(meanPower(off) / meanPower(truth))
}

// without is x less its part along the direction mean.
func without(x baseline.Parts, mean []float64) baseline.Parts {
	if mean == nil {
		return x
	}
	_, count := x.Dims()
	along := make([]complex128, count)
	for i, v := range mean {
		for k := range along {
			along[k] += complex(v, 0) * x.At(i, k)
		}
	}
	return x.Clone().Apply(func(i, k int, v complex128) complex128 { return v - complex(mean[i], 0)*along[k] })
}

// factor is the c that brings cx closest to the truth; 0 for x = 0.
func factor(x, truth baseline.Parts) complex128 {
	var xt complex128
	var xx float64
	x.Clone().Apply(func(i, k int, v complex128) complex128 {
		xt += cmplx.Conj(v) * truth.At(i, k)
		xx += power(v)
		return v
	})
	if xx == 0 {
		return 0
	}
	return xt / complex(xx, 0)
}

func meanOf(a baseline.Parts) float64 {
	total := 0.0
	rows, columns := a.Dims()
	for i := range rows {
		for j := range columns {
			total += real(a.At(i, j))
		}
	}
	return total / float64(rows*columns)
}

// atMost is the probability that no more than k of n hold when each does with probability q.
func atMost(k, n int, q float64) float64 {
	total := 0.0
	lgamma := func(v int) float64 { l, _ := math.Lgamma(float64(v + 1)); return l }
	for j := range k + 1 {
		total += math.Exp(lgamma(n) - lgamma(j) - lgamma(n-j) + float64(j)*math.Log(q) + float64(n-j)*math.Log(1-q))
	}
	return total
}
