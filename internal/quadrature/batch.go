package quadrature

import (
	"math"
	"sync"

	"github.com/calamp/calamp/internal/vector"
)

// batch is how many sensors are integrated at a time.
const batch = 64

// workspace is the memory for one batch.
type workspace struct {
	n, tau, b [batch]float64 // with the calibration prior's part
	shapes    [batch * vector.ShapeFields]float64
	task      [batch]int8            // how each sensor is integrated, see below
	sizes     [2 * rulesAtMost]uint8 // how many sensors each task has
	members   [batch]uint8           // the sensors, task by task
	modes     [batch]float64         // and their logarithms
	mass      [batch]float64         // and its logarithm
	integrals
}

// A task is the number of a rule: for sensors whose n is a small whole number the
// number itself, for others with rulesAtMost added. Sensors that need no rule have one
// of these in its place:
const (
	pointMass = -1 // so steep that in double precision it is a point mass
	narrow    = -2 // integrated by a series

	rulesAtMost = 16
)

// integrals is the memory that [vector.GainIntegrals] needs.
type integrals struct {
	d       [batch * vector.GainFields]float64
	out     [batch * vector.GainResults]float64
	scratch [2 * mostNodes * vector.Lanes]float64
}

var workspaces = sync.Pool{New: func() any { return new(workspace) }}

// GainMomentsBatch is [GainMoments] for a block of sensors, whose statistics
// and results are slices of one length. extraTau and extraB are added to every τ and
// B; they are those of the calibration's prior. In place of the log-normaliser there is
//
//	log ∫ s^n exp(-τ(s²-ŝ²)/2 + B(s-ŝ)) ds,
//
// without the exponent at the mean ŝ: that is as large as y²/D, the inverse of the
// noise, and would leave no digits of the rest. A nil logMass is left out, which takes a fifth of the time.
// It allocates nothing. A sensor's result does not depend on the other sensors.
func GainMomentsBatch(logMass, mean, variance, n, tau, b []float64, extraTau, extraB, lo, hi float64) {
	s := workspaces.Get().(*workspace)
	for first := 0; first < len(tau); first += batch {
		end := min(first+batch, len(tau))
		s.load(n[first:end], tau[first:end], b[first:end], extraTau, extraB)
		padded := vector.Padded(end - first)
		vector.GainShapes(s.n[:padded], s.tau[:padded], s.b[:padded], lo, hi, s.shapes[:])
		if !s.finishNarrow(mean[first:end], variance[first:end]) {
			s.choose(end-first, lo, hi)
			s.integrate(mean[first:end], variance[first:end], lo, hi)
		}
		if logMass != nil {
			s.logarithms(logMass[first:end], mean[first:end])
		}
	}
	workspaces.Put(s)
}

// load copies the statistics of a batch, and fills its last group with sensors that
// do no harm.
func (s *workspace) load(n, tau, b []float64, extraTau, extraB float64) {
	copy(s.n[:], n)
	for i, t := range tau {
		s.tau[i], s.b[i] = t+extraTau, b[i]+extraB
	}
	for i := len(tau); i < vector.Padded(len(tau)); i++ {
		s.n[i], s.tau[i], s.b[i] = 0, 1, 1
	}
}

// group returns the shapes of a sensor's group, starting with its own lane.
func (s *workspace) group(i int) *shapes {
	return (*shapes)(s.shapes[i/vector.Lanes*vector.Lanes*vector.ShapeFields:])
}

// finishNarrow computes the moments of sensors that need no rule, and reports whether
// that was all of them. For the others it stores the task that chooseInside proposes.
func (s *workspace) finishNarrow(mean, variance []float64) (all bool) {
	all = true
	for first := 0; first < len(mean); first += vector.Lanes {
		g := s.group(first)
		for i := first; i < min(first+vector.Lanes, len(mean)); i++ {
			lane := i - first
			if g[vector.ShapeNarrow*vector.Lanes+lane] != 0 { // most are, late in a run: no more is done for them than that
				s.modes[i], s.mass[i], s.task[i] = g[vector.ShapeMode*vector.Lanes+lane], g[vector.ShapeSeriesMass*vector.Lanes+lane], narrow
				mean[i] = s.modes[i] + g[vector.ShapeSeriesMean*vector.Lanes+lane]
				variance[i] = g[vector.ShapeSeriesVariance*vector.Lanes+lane]
				continue
			}
			task := s.chooseInside(i, g)
			if task == pointMass {
				mean[i], variance[i] = s.modes[i], 0
			} else {
				all = false
			}
			s.task[i] = task
		}
	}
	return all
}

// choose decides by which rule each of the other sensors is integrated.
func (s *workspace) choose(count int, lo, hi float64) {
	clear(s.sizes[:])
	var open [batch / vector.Lanes]bool // groups with a sensor that needs a Legendre rule
	for i, task := range s.task[:count] {
		if task == hermiteRules {
			open[i/vector.Lanes] = true
		}
	}
	for g, is := range open {
		if i := g * vector.Lanes; is {
			vector.GainEnds(s.n[i:], s.tau[i:], s.b[i:], lo, hi, s.group(i)[:])
		}
	}
	powers := hi <= vector.MostRatio*lo
	for i, task := range s.task[:count] {
		if task < 0 {
			continue
		}
		if task == hermiteRules {
			task = s.chooseLegendre(i, s.group(i))
		}
		if n := s.n[i]; !powers || n > vector.MostPower || n != math.Trunc(n) {
			task += rulesAtMost
		}
		s.task[i] = task
		s.sizes[task]++
	}
}

// shapes are those of a group.
type shapes = [vector.Lanes * vector.ShapeFields]float64

// chooseInside chooses the task of a posterior well inside its range, that is not narrow. For any other,
// and where no Hermite rule is accurate enough, it returns hermiteRules, the number of
// the first Legendre rule.
func (s *workspace) chooseInside(i int, g *shapes) int8 {
	lane := i % vector.Lanes
	s.modes[i], s.mass[i] = g[vector.ShapeMode*vector.Lanes+lane], 1
	if !vector.InDoublePrecision(g[vector.ShapeSlope*vector.Lanes+lane], s.tau[i]) {
		return pointMass
	}
	width := g[vector.ShapeWidth*vector.Lanes+lane]
	relative := width * g[vector.ShapeInverse*vector.Lanes+lane]
	if !(g[vector.ShapeRoom*vector.Lanes+lane] > EdgeReach*width) || !(EdgeReach*relative < hermiteSpan) {
		return hermiteRules
	}
	skew := g[vector.ShapeSkew*vector.Lanes+lane]
	r := int8(0)
	for r < hermiteRules && !(skew < rules[r].limit) {
		r++
	}
	return r
}

func (s *workspace) chooseLegendre(i int, g *shapes) int8 {
	lane := i % vector.Lanes
	left, right := g[vector.ShapeLeft*vector.Lanes+lane], g[vector.ShapeRight*vector.Lanes+lane]
	steepness := g[vector.ShapeSteepness*vector.Lanes+lane]
	r := hermiteRules
	for _, limit := range legendreLimits {
		if steepness >= limit {
			r++ // compiled without a branch, which would be predicted badly
		}
	}
	middle, half := s.modes[i]+0.5*(left+right), 0.5*(right-left)
	for r < len(rules)-1 && s.n[i] != 0 && !(middle > rules[r].farthest*half) {
		r++
	}
	return int8(r)
}

// integrate computes the moments of the sensors that have a rule, task by task.
func (s *workspace) integrate(mean, variance []float64, lo, hi float64) {
	var next [2 * rulesAtMost]uint8
	for task := 1; task < len(next); task++ {
		next[task] = next[task-1] + s.sizes[task-1]
	}
	for i, task := range s.task[:len(mean)] {
		if task >= 0 {
			s.members[next[task]] = uint8(i)
			next[task]++
		}
	}
	for task, size := range s.sizes {
		if size == 0 {
			continue
		}
		members := s.members[next[task]-size : next[task]]
		if task >= rulesAtMost {
			s.integrateRule(task-rulesAtMost, -1, members, mean, variance, lo, hi)
			continue
		}
		s.sortByCount(members)
		for first, end := 0, 0; first < len(members); first = end {
			n := s.n[members[first]]
			for end = first + 1; end < len(members) && s.n[members[end]] == n; {
				end++
			}
			s.integrateRule(task, int(n), members[first:end], mean, variance, lo, hi)
		}
	}
}

// sortByCount sorts members by their n. Nearly always all have the same, so insertion
// is fast.
func (s *workspace) sortByCount(members []uint8) {
	for at, i := range members {
		for ; at > 0 && s.n[members[at-1]] > s.n[i]; at-- {
			members[at] = members[at-1]
		}
		members[at] = i
	}
}

// integrateRule computes the moments of the sensors of one rule. All have n = power,
// unless that is negative. The last group is filled with copies of its last sensor.
func (s *workspace) integrateRule(r, power int, members []uint8, mean, variance []float64, lo, hi float64) {
	padded := vector.Padded(len(members))
	for at := range padded {
		i := int(members[min(at, len(members)-1)])
		shapes := s.group(i)[i%vector.Lanes:]
		halfTau, left, right := 0.5*s.tau[i], shapes[vector.ShapeLeft*vector.Lanes], shapes[vector.ShapeRight*vector.Lanes]
		if r < hermiteRules {
			// The Gaussian of the Hermite rule stands for the whole quadratic part of the
			// exponent. GainIntegrals still adds the quadratic part of the logarithm,
			// which therefore is taken off here.
			halfTau, right = -0.5*shapes[vector.ShapeCurvature*vector.Lanes], shapes[vector.ShapeWidth*vector.Lanes]
			left = -right
		}
		slope, inverse := shapes[vector.ShapeSlope*vector.Lanes], shapes[vector.ShapeInverse*vector.Lanes]
		if power >= 0 {
			slope -= s.n[i] * inverse
		}
		to := s.d[at/vector.Lanes*vector.GainFields*vector.Lanes+at%vector.Lanes:]
		to[vector.GainSlope*vector.Lanes] = slope
		to[vector.GainHalfTau*vector.Lanes] = halfTau
		to[vector.GainCount*vector.Lanes] = s.n[i]
		to[vector.GainInverse*vector.Lanes] = inverse
		to[vector.GainMiddle*vector.Lanes] = 0.5 * (left + right)
		to[vector.GainHalfWidth*vector.Lanes] = 0.5 * (right - left)
	}
	rule, groups := &rules[r], padded/vector.Lanes
	if power >= 0 {
		vector.GainPowers(rule.x, rule.w, power, groups, s.d[:], s.scratch[:], s.out[:])
	} else {
		vector.GainIntegrals(rule.x, rule.w, groups, s.d[:], s.scratch[:], s.out[:])
	}
	for at, i := range members {
		d := s.d[at/vector.Lanes*vector.GainFields*vector.Lanes+at%vector.Lanes:]
		out := s.out[at/vector.Lanes*vector.GainResults*vector.Lanes+at%vector.Lanes:]
		halfWidth, middle := d[vector.GainHalfWidth*vector.Lanes], d[vector.GainMiddle*vector.Lanes]
		s.mass[i] = halfWidth * out[vector.GainMass*vector.Lanes]
		mean[i] = clamp(s.modes[i]+(middle+halfWidth*out[vector.GainFirst*vector.Lanes]), lo, hi)
		variance[i] = halfWidth * halfWidth * out[vector.GainSecond*vector.Lanes]
	}
}

// logarithms finishes the masses about the means.
func (s *workspace) logarithms(logMass, mean []float64) {
	padded := vector.Padded(len(logMass))
	for i := len(logMass); i < padded; i++ {
		s.modes[i], s.mass[i] = 1, 1
	}
	for i := range logMass {
		logMass[i] = 0
		if mode := s.modes[i]; mode != mean[i] { // equal where numbers may be beyond double precision
			logMass[i] = (mode - mean[i]) * (s.b[i] - 0.5*s.tau[i]*(mode+mean[i]))
		}
	}
	vector.Log(s.modes[:padded])
	vector.Log(s.mass[:padded])
	for i := range logMass {
		logMass[i] = clamp(logMass[i]+s.n[i]*s.modes[i]+s.mass[i], -math.MaxFloat64, math.MaxFloat64)
	}
}
