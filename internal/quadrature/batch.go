package quadrature

import (
	"math"

	"github.com/calamp/calamp/internal/parallel"
	"github.com/calamp/calamp/internal/vector"
)

// batch is how many sensors are integrated at a time.
const batch = 128

// workspace is the memory for one batch.
type workspace struct {
	n, tau, b [batch]float64 // with the calibration prior's part
	shapes    [batch * vector.ShapeFields]float64
	rest      []uint8 // the sensors that need a rule, in room
	room      [batch]uint8
	rules     [batch]uint8                  // and the one that well inside the range would do for each
	modes     [batch]float64                // and their logarithms
	mass      [batch]float64                // and its logarithm
	members   [2 * rulesAtMost][batch]uint8 // the sensors of each task,
	sizes     [2 * rulesAtMost]uint8        // and how many these are
	integrals
}

// A task is the number of a rule: for sensors whose n is a small whole number the
// number itself, for others with rulesAtMost added.
const rulesAtMost = 16

// integrals is the memory that [vector.GainIntegrals] needs.
type integrals struct {
	d       [batch * vector.GainFields]float64
	out     [batch * vector.GainResults]float64
	scratch [2 * mostNodes * vector.Lanes]float64
}

var workspaces parallel.Pool[workspace]

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
	s := workspaces.Get()
	for first := 0; first < len(tau); first += batch {
		end := min(first+batch, len(tau))
		s.load(n[first:end], tau[first:end], b[first:end], extraTau, extraB)
		padded := vector.Padded(end - first)
		vector.GainShapes(s.n[:padded], s.tau[:padded], s.b[:padded], lo, hi, s.shapes[:])
		s.finishNarrow(mean[first:end], variance[first:end])
		if len(s.rest) > 0 {
			s.choose(lo, hi)
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

// shapes are those of a group of sensors.
type shapes = [vector.Lanes * vector.ShapeFields]float64

// group returns the shapes of a sensor's group, and its lane.
func (s *workspace) group(i int) (g *shapes, lane uint) {
	return (*shapes)(s.shapes[i/vector.Lanes*vector.Lanes*vector.ShapeFields:]), uint(i) % vector.Lanes
}

// finishNarrow computes the moments of sensors that need no rule. The others are the rest.
func (s *workspace) finishNarrow(mean, variance []float64) {
	s.rest = s.room[:0]
	for i := range mean {
		g, lane := s.group(i)
		s.modes[i] = g[vector.ShapeMode*vector.Lanes+lane]
		switch {
		case g[vector.ShapeNarrow*vector.Lanes+lane] != 0: // most are, late in a run: no more is done for them than that
			s.mass[i] = g[vector.ShapeSeriesMass*vector.Lanes+lane]
			mean[i] = s.modes[i] + g[vector.ShapeSeriesMean*vector.Lanes+lane]
			variance[i] = g[vector.ShapeSeriesVariance*vector.Lanes+lane]
		case !vector.InDoublePrecision(g[vector.ShapeSlope*vector.Lanes+lane], s.tau[i]): // a point mass
			s.mass[i], mean[i], variance[i] = 1, s.modes[i], 0
		default:
			s.rest = append(s.rest, uint8(i))
		}
	}
}

// choose decides by which rule each sensor of the rest is integrated.
func (s *workspace) choose(lo, hi float64) {
	var open [batch / vector.Lanes]bool // groups with a sensor that needs a Legendre rule
	for at, i := range s.rest {
		r := chooseHermite(s.group(int(i)))
		s.rules[at] = uint8(r)
		if r == hermiteRules {
			open[i/vector.Lanes] = true
		}
	}
	for g, is := range open {
		if i := g * vector.Lanes; is {
			shapes, _ := s.group(i)
			vector.GainEnds(s.n[i:], s.tau[i:], s.b[i:], lo, hi, legendreLadder, shapes[:])
		}
	}
	clear(s.sizes[:])
	powers := hi <= vector.MostRatio*lo
	for at, i := range s.rest {
		task := int(s.rules[at])
		if task == hermiteRules {
			g, lane := s.group(int(i))
			task += int(g[vector.ShapeRule*vector.Lanes+lane])
		}
		if n := s.n[i]; !powers || n > vector.MostPower || n != math.Trunc(n) {
			task += rulesAtMost
		}
		s.members[task][s.sizes[task]] = i
		s.sizes[task]++
	}
}

// chooseHermite chooses the rule of a posterior well inside its range. For any other, and where no Hermite rule is accurate enough,
// it returns hermiteRules, the number of the first Legendre rule.
func chooseHermite(g *shapes, lane uint) int {
	width := g[vector.ShapeWidth*vector.Lanes+lane]
	relative := width * g[vector.ShapeInverse*vector.Lanes+lane]
	if !(g[vector.ShapeRoom*vector.Lanes+lane] > EdgeReach*width) || !(EdgeReach*relative < hermiteSpan) {
		return hermiteRules
	}
	skew := g[vector.ShapeSkew*vector.Lanes+lane]
	r := 0
	for r < hermiteRules && !(skew < rules[r].limit) {
		r++
	}
	return r
}

// integrate computes the moments of the sensors that have a rule, task by task.
func (s *workspace) integrate(mean, variance []float64, lo, hi float64) {
	for task, size := range s.sizes {
		if size == 0 {
			continue
		}
		members := s.members[task][:size]
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
		g, lane := s.group(i)
		halfTau, left, right := 0.5*s.tau[i], g[vector.ShapeLeft*vector.Lanes+lane], g[vector.ShapeRight*vector.Lanes+lane]
		if r < hermiteRules {
			// The Gaussian of the Hermite rule stands for the whole quadratic part of the
			// exponent. GainIntegrals still adds the quadratic part of the logarithm,
			// which therefore is taken off here.
			halfTau, right = -0.5*g[vector.ShapeCurvature*vector.Lanes+lane], g[vector.ShapeWidth*vector.Lanes+lane]
			left = -right
		}
		slope, inverse := g[vector.ShapeSlope*vector.Lanes+lane], g[vector.ShapeInverse*vector.Lanes+lane]
		if power >= 0 {
			slope -= s.n[i] * inverse
		}
		to, lane := s.parameters(at)
		to[vector.GainSlope*vector.Lanes+lane] = slope
		to[vector.GainHalfTau*vector.Lanes+lane] = halfTau
		to[vector.GainCount*vector.Lanes+lane] = s.n[i]
		to[vector.GainInverse*vector.Lanes+lane] = inverse
		to[vector.GainMiddle*vector.Lanes+lane] = 0.5 * (left + right)
		to[vector.GainHalfWidth*vector.Lanes+lane] = 0.5 * (right - left)
	}
	rule, groups := &rules[r], padded/vector.Lanes
	if power >= 0 {
		vector.GainPowers(rule.x, rule.w, power, groups, s.d[:], s.scratch[:], s.out[:])
	} else {
		vector.GainIntegrals(rule.x, rule.w, groups, s.d[:], s.scratch[:], s.out[:])
	}
	for at, i := range members {
		d, lane := s.parameters(at)
		out := (*[vector.GainResults * vector.Lanes]float64)(s.out[at/vector.Lanes*vector.GainResults*vector.Lanes:])
		halfWidth, middle := d[vector.GainHalfWidth*vector.Lanes+lane], d[vector.GainMiddle*vector.Lanes+lane]
		s.mass[i] = halfWidth * out[vector.GainMass*vector.Lanes+lane]
		mean[i] = clamp(s.modes[i]+(middle+halfWidth*out[vector.GainFirst*vector.Lanes+lane]), lo, hi)
		variance[i] = halfWidth * halfWidth * out[vector.GainSecond*vector.Lanes+lane]
	}
}

// parameters returns those of the group of the sensor that is integrated as the at-th, and its lane.
func (s *workspace) parameters(at int) (d *[vector.GainFields * vector.Lanes]float64, lane uint) {
	return (*[vector.GainFields * vector.Lanes]float64)(s.d[at/vector.Lanes*vector.GainFields*vector.Lanes:]), uint(at) % vector.Lanes
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
