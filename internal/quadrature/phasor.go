package quadrature

import (
	"math"
	"math/cmplx"

	"github.com/calamp/calamp/internal/search"
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
const phasorDepth = 42

// Moments integrates the density. The angle is integrated in closed form; with
// β = 2B, R(r) = |βr + K| and A = I₁/I₀ there is left
//
//	h(r) = Power log r - Tau r² + Linear r + log I₀(R),   E[e^{iφ}|r] = A(R) (βr+K)/R,
//
// which is done in the offset u = r - r₀ from its maximum r₀, in forms without cancellation.
// With K > 0 and readings that oppose it h can have two maxima, on either side of
// where βr + K is smallest: then it is done side by side.
func (p *Phasor) Moments() PhasorMoments {
	q, turn := p.integrand()
	if turn == q.Hi {
		return q.side(q.Lo, q.Hi)
	}
	return q.combine(q.side(q.Lo, turn), q.side(turn, q.Hi))
}

// integrand is p as it is integrated, with what a known phase makes of B, and the r inside its range at which
// |βr + K| is smallest; Hi where there is none.
func (p *Phasor) integrand() (q Phasor, turn float64) {
	q = *p
	switch {
	case p.Known:
		q.Linear += 2 * real(p.B)
		q.B, q.K = 0, 0
	case p.B != 0:
		if r := -real(p.K / (2 * p.B)); r > p.Lo && r < p.Hi {
			return q, r
		}
	}
	return q, q.Hi
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
	return z / complex(cmplx.Abs(z), 0)
}

// phasorSide is h around its maximum r₀ on one side.
type phasorSide struct {
	*Phasor
	square, c, d float64 // |β|², Re β*K, Im β*K
	r0, big0     float64 // r₀ and R₀
	rise         float64 // R₀' = dR/dr
	slope        float64 // h₀', 0 inside
	power0       float64 // the power at r₀
	inside       bool    // r₀ is no end
	turn         complex128
	at0          circular
	toB          complex128 // of β, seen from turn: a unit vector
}

// radius is R(r), with βr + K.
func (p *Phasor) radius(r float64) (z complex128, radius float64) {
	z = complex(2*r*real(p.B)+real(p.K), 2*r*imag(p.B)+imag(p.K))
	return z, max(cmplx.Abs(z), 1e-300)
}

func (p *Phasor) side(lo, hi float64) PhasorMoments {
	s := p.newSide(lo, hi)
	if lo == hi {
		return s.pointLike()
	}
	if rule, width := s.nearlyGaussian(lo, hi); rule != nil {
		return s.integrate(rule.x, rule.w, width, 0, 0.5, math.Sqrt(2*math.Pi)*width)
	}
	left, right := s.extent(lo, hi)
	half, rule := 0.5*(right-left), &lineRules[Full]
	return s.integrate(rule.x, rule.w, half, 0.5*(right+left), 0, half)
}

// nearlyGaussian is the rule for a density deep inside its range, as for a real gain (see [NewGainPosterior]),
// and its standard deviation; nil where another one must do. R is to change no faster than r.
func (s *phasorSide) nearlyGaussian(lo, hi float64) (rule *hermiteRule, width float64) {
	_, second := s.slopes(s.r0)
	width = 1 / math.Sqrt(-second)
	ratio, power := width/s.r0, math.Abs(s.power0)+s.LogPrecision
	plain := s.square == 0 || s.K == 0 || s.big0 > 10 && s.big0 > 0.5*math.Sqrt(s.square)*s.r0
	switch {
	case !s.inside || !plain || !(ratio < 0.02 && power*ratio*ratio*ratio < 1e-3 && s.r0-lo > 9*width && hi-s.r0 > 9*width):
		return nil, 0
	case ratio < 1e-4 && power*ratio < 1e-2:
		return &hermiteSmall, width
	}
	return &hermiteLarge, width
}

func (p *Phasor) newSide(lo, hi float64) *phasorSide {
	b := 2 * p.B
	s := &phasorSide{
		Phasor: p, square: real(b)*real(b) + imag(b)*imag(b),
	}
	across := cmplx.Conj(b) * p.K
	s.c, s.d = real(across), imag(across)
	s.r0, s.inside = s.mode(lo, hi)
	s.power0 = s.power(s.r0)
	z, big := p.radius(s.r0)
	s.big0, s.turn = big, 1
	if z != 0 {
		s.turn = z / complex(big, 0)
	}
	s.rise = (s.square*s.r0 + s.c) / big
	s.at0 = s.circularOf(big)
	if !s.inside {
		s.slope, _ = s.slopes(s.r0)
	}
	s.toB = unit(b) * cmplx.Conj(s.turn)
	return s
}

func (s *phasorSide) circularOf(radius float64) circular {
	if s.Known {
		return circular{scaled: 1, ratio: 1}
	}
	return newCircular(radius)
}

// slopes are h' and h” at r.
func (s *phasorSide) slopes(r float64) (first, second float64) {
	power := s.power(r)
	first = power/r - 2*s.Tau*r + s.Linear
	second = -(power+s.LogPrecision)/(r*r) - 2*s.Tau
	if s.square == 0 {
		return first, second
	}
	_, big := s.radius(r)
	c, rise := newCircular(big), (s.square*r+s.c)/big
	bend := s.d / big
	return first + c.ratio*rise, second + c.slope(big)*rise*rise + c.ratio*(bend*bend/big)
}

// mode is the maximum of h on [lo, hi], and whether it is inside.
func (s *phasorSide) mode(lo, hi float64) (r0 float64, inside bool) {
	if first, _ := s.slopes(hi); first >= 0 || lo == hi {
		return hi, false
	}
	if first, _ := s.slopes(lo); first <= 0 {
		return lo, false
	}
	b := search.Bracket{Lo: lo, Hi: hi, Falling: true}
	// Where the phase is told by the readings h' is that of a real gain.
	r := (math.Sqrt(s.square) + s.Linear) / (2 * s.Tau)
	r = 0.5 * (r + math.Sqrt(r*r+2*max(0, s.Power)/s.Tau))
	if !(r > lo && r < hi) {
		r = 0.5 * (lo + hi)
	}
	for range 200 {
		first, second := s.slopes(r)
		next := b.Next(r, first, second)
		done := math.Abs(next-r) <= 4e-16*r
		if r = next; done {
			break
		}
	}
	return r, true
}

// change is h(r₀+u) - h(r₀), with the circular moments at R₁ = R(r₀+u), and how much more R₁ is
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
	across := s.d * (u / s.big0)
	bend = across * (across / (big + s.big0 + s.rise*u))
	c = newCircular(big)
	h += bend + math.Log(c.scaled/s.at0.scaled) + s.at0.complement*s.rise*u
	return h, big, bend, c
}

// extent is how far from r₀ the density reaches on either side.
func (s *phasorSide) extent(lo, hi float64) (left, right float64) {
	_, second := s.slopes(s.r0)
	return -s.reach(-1, second, s.r0-lo), s.reach(1, second, hi-s.r0)
}

func (s *phasorSide) reach(side, second, limit float64) float64 {
	if limit <= 0 {
		return 0
	}
	u := descent(side*s.slope, max(0, -second), phasorDepth, limit)
	at := func(u float64) float64 { h, _, _, _ := s.change(side * u); return -h }
	for range 60 {
		switch depth := at(u); {
		case depth < phasorDepth && u < limit:
			u = min(limit, 1.4*u)
		case depth > 2*phasorDepth:
			u *= 0.6
		default:
			return u
		}
	}
	return u
}

// offset is E[s|r₀+u] e^{-iψ₀} - r₀A₀, where e^{iψ₀} is the direction of s at r₀, and the direction of s at
// r₀+u seen from there.
func (s *phasorSide) offset(u, big, bend float64, c circular) (off, direction complex128) {
	turned := complex(bend, u*s.d/s.big0) / complex(big, 0) // 1 - the direction
	away := complex(u*c.ratio+s.r0*(s.at0.complement-c.complement), 0)
	return away - complex((s.r0+u)*c.ratio, 0)*turned, 1 - turned
}

// integrate sums over the nodes u = mid + half·x with the weights w e^{tilt x²}; unit is what their sum is multiplied by.
func (s *phasorSide) integrate(nodes, w []float64, half, mid, tilt, unit float64) PhasorMoments {
	var weights, scatter, along [48]float64
	var offsets [48]complex128
	var sum float64
	var first complex128
	for i, x := range nodes {
		u := mid + half*x
		h, big, bend, c := s.change(u)
		w := w[i] * math.Exp(h+tilt*x*x)
		off, direction := s.offset(u, big, bend, c)
		weights[i], offsets[i] = w, off
		r := s.r0 + u
		scatter[i] = r * r * c.complement * (1 + c.ratio)
		along[i] = s.along(r, big, direction, c)
		sum += w
		first += complex(w, 0) * off
	}
	first /= complex(sum, 0)
	var variance, toB float64
	for i := range nodes {
		d := offsets[i] - first
		variance += weights[i] * (real(d)*real(d) + imag(d)*imag(d) + scatter[i])
		projected := real(d)*real(s.toB) + imag(d)*imag(s.toB)
		toB += weights[i] * (projected*projected + along[i])
	}
	return PhasorMoments{
		Mean: s.turn * (complex(s.r0*s.at0.ratio, 0) + first),
		Var:  variance / sum, Along: toB / sum,
		Peak: s.turn * complex(s.r0, 0), LogMass: s.logPeak() + math.Log(unit*sum),
	}
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
