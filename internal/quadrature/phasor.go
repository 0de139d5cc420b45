package quadrature

import (
	"math"
	"math/cmplx"

	"github.com/calamp/calamp/internal/search"
	"github.com/calamp/calamp/internal/vector"
)

// Phasor is the density in r and φ of a complex number s = r e^{iφ},
//
//	q(r, φ) ∝ r^Power exp(Linear·r - Tau·r² + 2 Re(e^{-iφ} r B) + Re(e^{-iφ} K)),   Lo ≤ r ≤ Hi,
//
// the posterior of a complex calibration variable: a density in the amplitude and the
// phase, not per area. K = κ e^{iµ} is a von Mises distribution of φ about µ, and K = 0
// the uniform one. Where the phase is known, φ = 0. With Lo = Hi only the phase is open.
type Phasor struct {
	Power, Linear, Tau float64
	B                  complex128
	K                  complex128
	Known              bool    // φ = 0, in place of K
	Lo, Hi             float64 // 0 < Lo ≤ Hi

	// A factor exp(-LogPrecision·log²(r/LogCenter)/2)/r, where LogPrecision is not 0: that of a log-normal amplitude.
	LogCenter, LogPrecision float64
}

// power is that of r in the slope of h: r h' without what is linear in r or quadratic.
func (p *Phasor) power(r float64) float64 {
	if p.LogPrecision == 0 {
		return p.Power
	}
	return p.Power - 1 - p.LogPrecision*math.Log(r/p.LogCenter)
}

// Pull is the derivative of log I₀(R) in r (see [Phasor.Moments]): how B and K pull at an amplitude.
func (p *Phasor) Pull(r float64) float64 {
	b := 2 * p.B
	if p.Known {
		return real(b)
	}
	z, big := p.radius(r)
	return newCircular(big).ratio * (real(b)*real(z) + imag(b)*imag(z)) / big
}

// PhasorMoments are those of a [Phasor].
type PhasorMoments struct {
	Mean complex128 // E s
	Var  float64    // E|s|² - |E s|²

	// Along is the part of Var that is along B: the variance of Re(s e^{-i arg B}).
	Along float64

	// The logarithm of the integral of the density over r, and over φ with dφ/2π, is that
	// of the density's exponent at the point Peak, without B, Tau and K, plus LogMass.
	// What is left out is a square of residuals there, and its caller has its digits.
	Peak    complex128
	LogMass float64
}

// phasorDepth is where the density over r is cut, as the logarithm below its maximum.
const phasorDepth = 38

// Moments integrates the density. The angle is integrated in closed form; with
// β = 2B, R(r) = |βr + K| and A = I₁/I₀ there is left
//
//	h(r) = Power log r - Tau r² + Linear r + log I₀(R),   E[e^{iφ}|r] = A(R) (βr+K)/R,
//
// which is done in the offset u = r - r₀ from its maximum r₀, in forms without cancellation.
// With K > 0 and readings that oppose it h can have several maxima: then it is done stretch by stretch.
func (p *Phasor) Moments() PhasorMoments {
	if sum := p.Power + p.Linear + p.Tau + real(p.B+p.K) + imag(p.B+p.K); math.IsNaN(sum - sum) {
		nan := math.NaN() // no maximum would be found
		return PhasorMoments{Mean: complex(nan, nan), Var: nan, Along: nan, Peak: complex(nan, nan), LogMass: nan}
	}
	q := p.field()
	var room [mostStretches]stretch
	parts := q.stretches(&room)
	m := q.side(parts[0].lo, parts[0].hi)
	for _, part := range parts[1:] {
		m = q.combine(m, q.side(part.lo, part.hi))
	}
	return m
}

// phasorField is a density as it is integrated: with what a known phase makes of B.
type phasorField struct {
	Phasor
	square, c, d float64 // |β|², Re β*K, Im β*K
}

func (p *Phasor) field() phasorField {
	if p.Known {
		f := phasorField{Phasor: *p}
		f.Linear += 2 * real(p.B)
		f.B, f.K = 0, 0
		return f
	}
	b := 2 * p.B
	both := cmplx.Conj(b) * p.K
	return phasorField{Phasor: *p, square: real(b)*real(b) + imag(b)*imag(b), c: real(both), d: imag(both)}
}

// stretch is a part of [Lo, Hi] on which h has one maximum.
type stretch struct{ lo, hi float64 }

const (
	mostStretches = 4

	// mostSteps is how many a part is looked at in: each grows by the half at least, but near the turn, from where they grow, too.
	mostSteps = 4 * search.MostDoublings
)

// stretches are those of the density, from Lo to Hi. There is more than one only where B opposes K: log I₀(R) is a convex function
// of r that bends most at the turn, where R is smallest, and on either side of it there may be a minimum of h.
func (p *phasorField) stretches(room *[mostStretches]stretch) []stretch {
	turn := 0.0
	if p.B != 0 {
		turn = -real(p.K / (2 * p.B))
	}
	switch {
	case turn <= 0 || p.Lo == p.Hi:
		return append(room[:0], stretch{p.Lo, p.Hi})
	case turn <= p.Lo || turn >= p.Hi:
		return p.atValley(room[:0], stretch{p.Lo, p.Hi}, turn)
	}
	return p.atValley(p.atValley(room[:0], stretch{p.Lo, turn}, turn), stretch{turn, p.Hi}, turn)
}

// atValley appends to list a part on one side of the turn, divided at the minimum of h that is inside of it, if one is.
func (p *phasorField) atValley(list []stretch, part stretch, turn float64) []stretch {
	b := 2 * cmplx.Abs(p.B)
	nearest := min(max(turn, part.lo), part.hi)
	if _, least := p.radius(nearest); p.LogPrecision == 0 && b*b*newCircular(least).ratio <= 2*p.Tau*least {
		return append(list, part) // all of it is concave: log I₀(R) bends by less than |β|² A/R
	}
	// Powers of r change over distances of about r, and log I₀(R) over the distance from the turn, or where its bend ends.
	_, atTurn := p.radius(turn)
	bend := max(atTurn, 1) / b
	lo, falls := part.lo, p.slopeAt(part.lo) < 0
	for range mostSteps {
		if !(lo < part.hi) {
			break
		}
		hi := min(part.hi, lo+0.5*min(lo, max(math.Abs(lo-turn), bend, closeToMode*lo)))
		rises := p.slopeAt(hi) >= 0
		if falls && rises {
			for range search.MostDoublings {
				mid := 0.5 * (lo + hi)
				switch {
				case !(mid > lo && mid < hi):
					return append(list, stretch{part.lo, lo}, stretch{hi, part.hi})
				case p.slopeAt(mid) < 0:
					lo = mid
				default:
					hi = mid
				}
			}
		}
		lo, falls = hi, !rises
	}
	return append(list, part)
}

// exponent is the logarithm of the density at a point s, for [Phasor.combine].
func (p *Phasor) exponent(s complex128) float64 {
	r := cmplx.Abs(s)
	toB := real(s)*real(p.B) + imag(s)*imag(p.B)
	log := p.Power * math.Log(r)
	if p.LogPrecision > 0 {
		l := math.Log(r / p.LogCenter)
		log -= 0.5*p.LogPrecision*l*l + math.Log(r)
	}
	return log + p.Linear*r - p.Tau*r*r + 2*toB + (real(s)*real(p.K)+imag(s)*imag(p.K))/r
}

// combine adds the moments of two densities by their masses.
func (p *Phasor) combine(a, b PhasorMoments) PhasorMoments {
	apart := p.exponent(b.Peak) + b.LogMass - p.exponent(a.Peak) - a.LogMass
	if apart > 0 {
		a, b, apart = b, a, -apart
	}
	odds := math.Exp(apart)
	w := odds / (1 + odds) // of b
	step := b.Mean - a.Mean
	between := w * (1 - w) * (real(step)*real(step) + imag(step)*imag(step))
	along := step * cmplx.Conj(unit(p.B))
	return PhasorMoments{
		Mean:  a.Mean + complex(w, 0)*step,
		Var:   (1-w)*a.Var + w*b.Var + between,
		Along: (1-w)*a.Along + w*b.Along + w*(1-w)*real(along)*real(along),
		Peak:  a.Peak, LogMass: a.LogMass + math.Log1p(odds),
	}
}

func unit(z complex128) complex128 {
	if z == 0 {
		return 1
	}
	return over(z, cmplx.Abs(z))
}

// over is z divided by a real number, which takes far less time than by a complex one.
func over(z complex128, by float64) complex128 { return complex(real(z)/by, imag(z)/by) }

// slopes are h' and h” at r.
func (p *phasorField) slopes(r float64) (first, second float64) {
	power := p.power(r)
	first = power/r - 2*p.Tau*r + p.Linear
	second = -(power+p.LogPrecision)/(r*r) - 2*p.Tau
	if p.square == 0 {
		return first, second
	}
	_, big := p.radius(r)
	c, rise, bend := newCircular(big), p.component(p.square*r+p.c, big), p.component(p.d, big)
	return first + c.ratio*rise, second + c.slope(big)*rise*rise + c.ratio*(bend*bend/big)
}

// noDigits is what rounding leaves of a difference of equal numbers, relative to them.
const noDigits = 4e-16

// component is a part of dR/dr, of which neither is larger than |β|: where R is 0, the quotient of rounding errors may be.
func (p *phasorField) component(part, radius float64) float64 {
	along := part / radius
	if along*along > 4*p.square {
		along = math.Copysign(math.Sqrt(p.square), along)
	}
	return along
}

func (p *phasorField) slopeAt(r float64) float64 {
	first, _ := p.slopes(r)
	return first
}

// phasorSide is h around its maximum r₀ on one side.
type phasorSide struct {
	*phasorField
	r0, big0     float64 // r₀ and R₀
	rise, across float64 // R₀' = dR/dr, and d/R₀
	slope        float64 // h₀', 0 inside
	second       float64 // h₀”
	power0       float64 // the power at r₀
	inside       bool    // r₀ is no end
	turn         complex128
	at0          circular
	toB          complex128 // of β, seen from turn: a unit vector
}

// radius is R(r), with βr + K.
func (p *Phasor) radius(r float64) (z complex128, radius float64) {
	z = complex(2*r*real(p.B)+real(p.K), 2*r*imag(p.B)+imag(p.K))
	if square := real(z)*real(z) + imag(z)*imag(z); square > 1e-200 && square < 1e200 {
		return z, math.Sqrt(square)
	}
	return z, max(cmplx.Abs(z), 1e-300)
}

func (p *phasorField) side(lo, hi float64) PhasorMoments {
	s := p.newSide(lo, hi)
	if lo == hi {
		return s.pointLike()
	}
	if rule, width := s.nearlyGaussian(lo, hi); rule != nil {
		return s.integrate(rule.x, rule.w, width, 0, 0.5, width)
	}
	left, right := s.extent(lo, hi)
	half, mid := 0.5*(right-left), 0.5*(right+left)
	rule := s.legendre(left, right)
	return s.integrate(rule.x, rule.w, half, mid, 0, half)
}

// phasorLimits are those of [legendreLadder] for densities that are cut deeper, from phasorFirst on. The first Legendre rule is for densities over
// so short a range that they change by no more than flat on it.
var phasorLimits = [...]float64{8, 22, 44, 80, 110}

const (
	phasorFirst = hermiteRules + 2
	flat        = 0.5
)

// legendre is the Legendre rule for u from left to right, by the steepness of h at these ends, as for real gains (see [rules]). e^h and
// its moments are entire functions of r but for powers that are no whole numbers and log-normal factors, which are singular at 0.
func (s *phasorSide) legendre(left, right float64) *rule {
	first, _ := s.slopes(s.r0 + left)
	last, _ := s.slopes(s.r0 + right)
	half, mid := 0.5*(right-left), 0.5*(right+left)
	steepness := half * max(math.Abs(first), math.Abs(last))
	if steepness < flat && s.c >= 0 && half < 0.1*s.r0 && s.LogPrecision == 0 {
		return &rules[hermiteRules]
	}
	r := phasorFirst
	for _, limit := range phasorLimits {
		if steepness >= limit {
			r++
		}
	}
	if s.c < 0 {
		r += 2 // between two maxima it is flat, where its ends do not tell
	}
	r = min(r, len(rules)-1)
	if s.LogPrecision > 0 || s.Power != math.Trunc(s.Power) {
		for r < len(rules)-1 && !(s.r0+mid > farthest[r-hermiteRules]*half) {
			r++
		}
	}
	return &rules[r]
}

// nearlyGaussian is the rule for a density deep inside its range, as for a real gain (see [rules]),
// and its standard deviation; nil where another one must do.
func (s *phasorSide) nearlyGaussian(lo, hi float64) (best *rule, width float64) {
	if !s.inside {
		return nil, 0
	}
	width = 1 / math.Sqrt(-s.second)
	ratio := width / s.r0
	skew := (math.Abs(s.power0) + s.LogPrecision) * ratio * ratio * ratio
	if s.square > 0 {
		// R² = |β|²(r-r_c)² + d²/|β|² goes with e^R/√R, and what bends in it is of the size d²/|β|²R: that, and the root, are skewed as
		// powers of R are.
		if s.big0 < besselTail {
			return nil, 0
		}
		along := max(width*math.Sqrt(s.square)/s.big0, ratio)
		skew += (1 + s.d*s.d/(s.square*s.big0)) * along * along * along
		ratio = along
	}
	if !(s.r0-lo > EdgeReach*width && hi-s.r0 > EdgeReach*width && EdgeReach*ratio < hermiteSpan) {
		return nil, 0
	}
	if skew < narrowest.limit {
		return &narrowest, width
	}
	for r := range hermiteRules {
		if skew < rules[r].limit {
			return &rules[r], width
		}
	}
	return nil, 0
}

// besselTail is an R from which on I₀ is e^R/√R and little else.
const besselTail = 10

func (p *phasorField) newSide(lo, hi float64) *phasorSide {
	s := &phasorSide{phasorField: p}
	s.r0, s.inside = s.mode(lo, hi)
	s.power0 = s.power(s.r0)
	z, big := p.radius(s.r0)
	s.big0, s.turn = big, 1
	if z != 0 {
		s.turn = over(z, big)
	}
	s.rise, s.across = s.component(s.square*s.r0+s.c, big), s.component(s.d, big)
	if beta := math.Sqrt(s.square); big <= noDigits*beta*s.r0 { // at the turn, from which it goes along β
		s.rise, s.across = math.Copysign(beta, 0.5*(lo+hi)-s.r0), 0
		s.turn = unit(s.B) * complex(math.Copysign(1, s.rise), 0)
	}
	s.at0 = s.circularOf(big)
	s.slope, s.second = s.slopes(s.r0)
	if s.inside {
		s.slope = 0
	}
	s.toB = unit(p.B) * cmplx.Conj(s.turn)
	return s
}

func (s *phasorSide) circularOf(radius float64) circular {
	if s.Known {
		return circular{scaled: 1, ratio: 1}
	}
	return newCircular(radius)
}

// mode is the maximum of h on [lo, hi], and whether it is inside.
func (s *phasorSide) mode(lo, hi float64) (r0 float64, inside bool) {
	if lo == hi {
		return hi, false
	}
	r := s.expected()
	b := search.Bracket{Lo: lo, Hi: hi, Falling: true}
	atLo, atHi := r > lo, r < hi // whether h is taken to rise at lo, and to fall at hi
	if !atLo || !atHi {
		r = 0.5 * (lo + hi)
	}
	for range 200 {
		first, second := s.slopes(r)
		newton := r - first/second
		if !(second < 0 && newton > lo && newton < hi) {
			atLo, atHi = false, false
		}
		if !atHi {
			if s.slopeAt(hi) >= 0 {
				return hi, false
			}
		}
		if !atLo {
			if s.slopeAt(lo) <= 0 {
				return lo, false
			}
		}
		atLo, atHi = true, true
		next := b.Next(r, first, second)
		step := math.Abs(next - r)
		if r = next; next == newton && step <= closeToMode*r || step <= 4e-16*r {
			break
		}
	}
	return r, true
}

// closeToMode is a step of Newton's method, relative to r, after which it is there: the next is about its square, times
// how many times as fast as r anything changes.
const closeToMode = 1e-10

// expected is about where h is largest, were there no ends. Where the phase is known from the readings h' is that of a real gain, with
// half a power less.
func (s *phasorSide) expected() float64 {
	pull := 0.5 * (math.Sqrt(s.square) + s.Linear) / s.Tau
	power := s.Power
	if s.square*pull*pull > 1 {
		power -= 0.5
	}
	return 0.5 * (pull + math.Sqrt(pull*pull+2*max(0, power)/s.Tau))
}

// change is h(r₀+u) - h(r₀), but for the logarithm of I₀e^{-R}, with the circular moments at R₁ = R(r₀+u), and how much more R₁ is
// than its tangent says.
func (s *phasorSide) change(u float64) (h, big, bend float64, c circular) {
	h = s.slope*u + s.power0*log1pLess(u/s.r0) - s.Tau*u*u
	if s.LogPrecision > 0 {
		l := math.Log1p(u / s.r0)
		h -= 0.5 * s.LogPrecision * l * l
	}
	if s.square == 0 {
		return h, s.big0, 0, s.at0
	}
	_, big = s.radius(s.r0 + u)
	if across := s.across * u; across != 0 {
		bend = across * (across / (big + s.big0 + s.rise*u))
	}
	c = newCircular(big)
	h += bend + s.at0.complement*s.rise*u
	return h, big, bend, c
}

// density is e^h at r₀+u, relative to r₀.
func (s *phasorSide) density(u float64) float64 {
	h, _, _, c := s.change(u)
	return math.Exp(h) * (c.scaled / s.at0.scaled)
}

// extent is how far from r₀ the density reaches on either side.
func (s *phasorSide) extent(lo, hi float64) (left, right float64) {
	return -s.reach(-1, s.second, min(s.r0-lo, -leastOffset*s.r0)), s.reach(1, s.second, hi-s.r0)
}

func (s *phasorSide) reach(side, second, limit float64) float64 {
	if limit <= 0 {
		return 0
	}
	u := descent(side*s.slope, max(0, -second), phasorDepth, limit)
	at := func(u float64) float64 { h, _, _, c := s.change(side * u); return math.Log(s.at0.scaled/c.scaled) - h }
	for range 60 {
		depth := at(u)
		if depth >= phasorDepth && depth <= 1.4*phasorDepth || depth < phasorDepth && u >= limit {
			return u
		}
		// It falls faster than a straight line, and slower than a parabola, or nearly.
		u = min(limit, u*min(2, max(0.5, math.Sqrt(1.15*phasorDepth/max(depth, 0.1)))))
	}
	return u
}

// offset is E[s|r₀+u] e^{-iψ₀} - r₀A₀, where e^{iψ₀} is the direction of s at r₀, and the direction of s at
// r₀+u seen from there.
func (s *phasorSide) offset(u, big, bend float64, c circular) (off, direction complex128) {
	bent, turned := bend/big, u*s.across/big // 1 - the direction
	away, size := u*c.ratio+s.r0*(s.at0.complement-c.complement), (s.r0+u)*c.ratio
	return complex(away-size*bent, -size*turned), complex(1-bent, -turned)
}

// integrate sums over the nodes u = mid + half·x with the weights w e^{tilt x²}; unit is what their sum is multiplied by.
func (s *phasorSide) integrate(nodes, w []float64, half, mid, tilt, unit float64) PhasorMoments {
	var room [5][mostNodes]float64
	at := vector.PhasorResults{Weight: room[0][:], Re: room[1][:], Im: room[2][:], Scatter: room[3][:], Along: room[4][:]}
	if !s.farNodes(nodes, w, half, mid, tilt, &at) {
		s.nodes(nodes, w, half, mid, tilt, &at)
	}
	var sum, re, im float64
	for i, w := range at.Weight[:len(nodes)] {
		sum += w
		re += w * at.Re[i]
		im += w * at.Im[i]
	}
	re, im = re/sum, im/sum
	var variance, toB float64
	toRe, toIm := real(s.toB), imag(s.toB)
	for i, w := range at.Weight[:len(nodes)] {
		x, y := at.Re[i]-re, at.Im[i]-im
		projected := x*toRe + y*toIm
		variance += w * (x*x + y*y + at.Scatter[i])
		toB += w * (projected*projected + at.Along[i])
	}
	return PhasorMoments{
		Mean: s.turn * complex(s.r0*s.at0.ratio+re, im),
		Var:  variance / sum, Along: toB / sum,
		Peak: s.turn * complex(s.r0, 0), LogMass: math.Log(unit * sum / math.Sqrt(2*math.Pi)),
	}
}

// nodes computes what there is at the nodes.
func (s *phasorSide) nodes(nodes, w []float64, half, mid, tilt float64, at *vector.PhasorResults) {
	var factors [mostNodes]float64
	for i, x := range nodes {
		u := mid + half*x
		h, big, bend, c := s.change(u)
		off, direction := s.offset(u, big, bend, c)
		at.Weight[i], factors[i] = h+tilt*x*x, w[i]*c.scaled*math.Sqrt(2*math.Pi)
		at.Re[i], at.Im[i] = real(off), imag(off)
		r := s.r0 + u
		at.Scatter[i] = r * r * c.complement * (1 + c.ratio)
		at.Along[i] = s.along(r, big, direction, c)
	}
	vector.Exp(at.Weight[:vector.Padded(len(nodes))])
	for i := range nodes {
		at.Weight[i] *= factors[i]
	}
}

// farNodes is nodes four at a time, where R is large at all of them: on one side of its minimum it is smallest at the first or the last.
func (s *phasorSide) farNodes(nodes, w []float64, half, mid, tilt float64, at *vector.PhasorResults) bool {
	if s.square == 0 {
		return false
	}
	_, first := s.radius(s.r0 + (mid + half*nodes[0]))
	_, last := s.radius(s.r0 + (mid + half*nodes[len(nodes)-1]))
	least := min(first, last)
	if least < besselFar || max(first, last) > 1e150 {
		return false
	}
	terms := farNeeded(least)
	z, _ := s.radius(s.r0)
	return vector.PhasorNodes(nodes, w, &[vector.PhasorFields]float64{
		vector.PhasorMiddle: mid, vector.PhasorHalf: half, vector.PhasorTilt: tilt,
		vector.PhasorSlope: s.slope + s.at0.complement*s.rise, vector.PhasorPower: s.power0, vector.PhasorTau: s.Tau,
		vector.PhasorMode: s.r0, vector.PhasorInverse: 1 / s.r0,
		vector.PhasorBetaRe: 2 * real(s.B), vector.PhasorBetaIm: 2 * imag(s.B), vector.PhasorAtRe: real(z), vector.PhasorAtIm: imag(z),
		vector.PhasorBig: s.big0, vector.PhasorRise: s.rise, vector.PhasorAcross: s.across, vector.PhasorComplement: s.at0.complement,
		vector.PhasorToRe: real(s.toB), vector.PhasorToIm: imag(s.toB), vector.PhasorHalfLogPrecision: 0.5 * s.LogPrecision,
	}, farZero[:terms], farDifference[:terms], at)
}

// along is the variance of s along B at a given r: of cos φ it is A', of sin φ A/R.
func (s *phasorSide) along(r, big float64, direction complex128, c circular) float64 {
	if s.square == 0 {
		return 0
	}
	cosine := real(direction)*real(s.toB) + imag(direction)*imag(s.toB)
	sine := real(direction)*imag(s.toB) - imag(direction)*real(s.toB)
	return r * r * (c.slope(big)*cosine*cosine + c.ratio/big*sine*sine)
}

// logPeak is log I₀(R₀) e^{-R₀}, the part of h₀ that is no exponent of the density.
func (s *phasorSide) logPeak() float64 { return math.Log(s.at0.scaled) }

// pointLike is for an amplitude that is known: the density is not integrated over r.
func (s *phasorSide) pointLike() PhasorMoments {
	_, direction := s.offset(0, s.big0, 0, s.at0)
	return PhasorMoments{
		Mean:  s.turn * complex(s.r0*s.at0.ratio, 0),
		Var:   s.r0 * s.r0 * s.at0.complement * (1 + s.at0.ratio),
		Along: s.along(s.r0, s.big0, direction, s.at0),
		Peak:  s.turn * complex(s.r0, 0), LogMass: s.logPeak(),
	}
}
