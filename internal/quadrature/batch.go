package quadrature

import (
	"math"
	"sync"

	"github.com/calamp/calamp/internal/kernel"
)

// batch is how many sensors are integrated at a time.
const batch = 64

// workspace is what a batch needs.
type workspace struct {
	n, tau, b [batch]float64 // with the calibration prior's part
	shapes    [batch * kernel.ShapeFields]float64
	rule      [batch]int8
	count     [16]int        // sensors of every rule
	members   [batch]uint8   // of one rule
	modes     [batch]float64 // and their logarithms
	mass      [batch]float64 // and its logarithm
	integrals
}

// integrals is what the kernel needs.
type integrals struct {
	d       [batch * kernel.GainFields]float64
	out     [batch * kernel.GainResults]float64
	scratch [mostNodes * kernel.Lanes]float64
}

var workspaces = sync.Pool{New: func() any { return new(workspace) }}

// GainMomentsBatch is [GainMoments] for a block of sensors, whose statistics
// and results have one length; extraTau and extraB, a calibration prior's, are
// added to every τ and B. It allocates nothing. A sensor's result does not
// depend on the others.
func GainMomentsBatch(logNorm, mean, variance, n, tau, b []float64, extraTau, extraB, lo, hi float64) {
	s := workspaces.Get().(*workspace)
	for first := 0; first < len(tau); first += batch {
		end := min(first+batch, len(tau))
		s.load(n[first:end], tau[first:end], b[first:end], extraTau, extraB)
		padded := padding(end - first)
		kernel.GainShapes(s.n[:padded], s.tau[:padded], s.b[:padded], lo, hi, s.shapes[:])
		s.choose(end - first)
		s.integrate(mean[first:end], variance[first:end], lo, hi)
		s.logarithms(logNorm[first:end])
	}
	workspaces.Put(s)
}

// padding is count, rounded up to whole groups.
func padding(count int) int { return (count + kernel.Lanes - 1) / kernel.Lanes * kernel.Lanes }

// load copies a batch, and fills up its last group.
func (s *workspace) load(n, tau, b []float64, extraTau, extraB float64) {
	copy(s.n[:], n)
	for i, t := range tau {
		s.tau[i], s.b[i] = t+extraTau, b[i]+extraB
	}
	for i := len(tau); i < padding(len(tau)); i++ {
		s.n[i], s.tau[i], s.b[i] = 0, 1, 1
	}
}

// shape returns one of [kernel.GainShapes] of sensor i.
func (s *workspace) shape(i, what int) float64 {
	return s.shapes[i/kernel.Lanes*kernel.Lanes*kernel.ShapeFields+what*kernel.Lanes+i%kernel.Lanes]
}

// pointMass marks a sensor that needs no integral.
const pointMass = -1

// choose decides by which rule each sensor is integrated.
func (s *workspace) choose(count int) {
	clear(s.count[:])
	for i := range count {
		s.modes[i], s.mass[i] = s.shape(i, kernel.ShapeMode), 1
		slope := math.Abs(s.shape(i, kernel.ShapeSlope))
		if !(slope <= math.MaxFloat64/4) || s.tau[i] > math.MaxFloat64/4 {
			// So steep that double precision sees a point mass.
			s.rule[i] = pointMass
			continue
		}
		r := s.chooseHermite(i)
		if r == hermiteRules {
			r = s.chooseLegendre(i)
		}
		s.rule[i] = int8(r)
		s.count[r]++
	}
}

// chooseHermite returns hermiteRules if none will do.
func (s *workspace) chooseHermite(i int) int {
	width := s.shape(i, kernel.ShapeWidth)
	if !(s.shape(i, kernel.ShapeRoom) > hermiteReach*width) || !(hermiteReach*width*s.shape(i, kernel.ShapeInverse) < hermiteSpan) {
		return hermiteRules
	}
	skew, r := s.shape(i, kernel.ShapeSkew), 0
	for r < hermiteRules && !(skew < rules[r].limit) {
		r++
	}
	return r
}

func (s *workspace) chooseLegendre(i int) int {
	left, right := s.shape(i, kernel.ShapeLeft), s.shape(i, kernel.ShapeRight)
	steepness := s.shape(i, kernel.ShapeSteepness)
	middle := s.shape(i, kernel.ShapeMode) + 0.5*(left+right)
	for r := hermiteRules; r < len(rules)-1; r++ {
		if steepness < rules[r].limit && (s.n[i] == 0 || middle > rules[r].farthest*0.5*(right-left)) {
			return r
		}
	}
	return len(rules) - 1
}

// integrate finds the moments of all sensors of a batch, rule by rule.
func (s *workspace) integrate(mean, variance []float64, lo, hi float64) {
	for i := range mean {
		if s.rule[i] == pointMass {
			mean[i], variance[i] = s.modes[i], 0
		}
	}
	for r := range rules {
		if s.count[r] == 0 {
			continue
		}
		members := s.members[:0]
		for i := range mean {
			if int(s.rule[i]) == r {
				members = append(members, uint8(i))
			}
		}
		s.integrateRule(r, members)
		for at, i := range members {
			halfWidth, middle := s.parameter(at, kernel.GainHalfWidth), s.parameter(at, kernel.GainMiddle)
			s.mass[i] = halfWidth * s.result(at, kernel.GainMass)
			mean[i] = min(max(s.modes[i]+(middle+halfWidth*s.result(at, kernel.GainFirst)), lo), hi)
			variance[i] = halfWidth * halfWidth * s.result(at, kernel.GainSecond)
		}
	}
}

// integrateRule runs the kernel for the sensors of one rule. The last group is
// filled up with copies of its last sensor.
func (s *workspace) integrateRule(r int, members []uint8) {
	padded := padding(len(members))
	for at := range padded {
		i := int(members[min(at, len(members)-1)])
		halfTau, left, right := 0.5*s.tau[i], s.shape(i, kernel.ShapeLeft), s.shape(i, kernel.ShapeRight)
		if r < hermiteRules {
			// The Gaussian takes all of the quadratic term, and the quadratic
			// part of the logarithm, which the kernel does not know.
			halfTau, right = -0.5*s.shape(i, kernel.ShapeCurvature), s.shape(i, kernel.ShapeWidth)
			left = -right
		}
		to := s.d[at/kernel.Lanes*kernel.GainFields*kernel.Lanes+at%kernel.Lanes:]
		to[kernel.GainSlope*kernel.Lanes] = s.shape(i, kernel.ShapeSlope)
		to[kernel.GainHalfTau*kernel.Lanes] = halfTau
		to[kernel.GainCount*kernel.Lanes] = s.n[i]
		to[kernel.GainInverse*kernel.Lanes] = s.shape(i, kernel.ShapeInverse)
		to[kernel.GainMiddle*kernel.Lanes] = 0.5 * (left + right)
		to[kernel.GainHalfWidth*kernel.Lanes] = 0.5 * (right - left)
	}
	rule := &rules[r]
	kernel.GainIntegrals(rule.x, rule.w, padded/kernel.Lanes, s.d[:], s.scratch[:], s.out[:])
}

func (s *workspace) parameter(at, what int) float64 {
	return s.d[(at/kernel.Lanes*kernel.GainFields+what)*kernel.Lanes+at%kernel.Lanes]
}

func (s *workspace) result(at, what int) float64 {
	return s.out[(at/kernel.Lanes*kernel.GainResults+what)*kernel.Lanes+at%kernel.Lanes]
}

// logarithms finishes the log-normalisers.
func (s *workspace) logarithms(logNorm []float64) {
	padded := padding(len(logNorm))
	for i := len(logNorm); i < padded; i++ {
		s.modes[i], s.mass[i] = 1, 1
	}
	for i := range logNorm {
		mode := s.modes[i]
		logNorm[i] = mode * (s.b[i] - 0.5*s.tau[i]*mode)
	}
	kernel.Log(s.modes[:padded])
	kernel.Log(s.mass[:padded])
	for i := range logNorm {
		logNorm[i] = clampFinite(logNorm[i] + s.n[i]*s.modes[i] + s.mass[i])
	}
}
