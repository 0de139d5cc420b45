package quadrature

import (
	"math"
	"slices"

	"github.com/calamp/calamp/internal/search"
)

// OffsetDensity is the posterior density of a sensor's s whose readings are y = z/s + o with an
// offset o ~ N(0, σ²), on [Lo, Hi]:
//
//	q(s) ∝ s^N K^{-½} exp(-Tau s²/2 + B s - T0 d²/2K),   K = 1 + σ² T0 s²,   d = s Y - Omega,
//
// with the weights 1/D of the readings summed in T0, their means Y of y and Omega of ω, and the
// centred sums Tau of (y-Y)²/D and B of (y-Y)(ω-Omega)/D; a normal prior of s only adds to Tau and B.
// An infinite σ² is a flat prior of o, for which the factor K^{-½} exp(…) is 1/s.
type OffsetDensity struct {
	N, Tau, B, T0, Y, Omega float64
	Var                     float64 // σ²
	Lo, Hi                  float64
}

// OffsetPosterior is what follows from it, all with the digits of differences from the mode. Given s, the
// offset is N((Y-Omega/s)ρ, σ²/K) with ρ = 1-1/K, and ζ = d/K is what it leaves of d.
type OffsetPosterior struct {
	Mode    float64 // highest point of q
	LogMass float64 // log ∫ q(s)/q(Mode) ds

	S, SVar                float64
	Zeta, ZetaVar, SZeta   float64 // mean and variance of ζ, and its covariance with s
	Rho                    float64 // mean of ρ
	Offset, OffsetVar, SOf float64 // mean and variance of o, and its covariance with s
}

const (
	offsetNodes = 32
	offsetDepth = 42 // below its peak q is cut
	offsetGrid  = 24 // places where q is looked at for further peaks, which it can have for few readings
	mostPeaks   = 3

	// Panels of a tail: the first ends so many widths from the peak, each is so much longer than those before,
	// and none is cut off that is nearly the last.
	tailFrom, tailGrowth, tailLeft = 6, 4, 0.7
	mostCuts                       = 64

	steepest = 4 // of the ratio of a panel's ends
)

const (
	// A density is nearly normal where nothing is left of it further from the mode than narrowReach of the
	// mode, and where within nearNormal of its widths its logarithm is off by no more than skewed: then a Hermite
	// rule has all digits.
	narrowReach = 0.3
	nearNormal  = 4
	skewed      = 0.25
	narrowSteps = 12 // of Newton's method
)

var (
	offsetRule    = newLineRule(offsetNodes, offsetDepth)
	offsetHermite = newHermiteRule(20)
	sqrt2Pi       = math.Sqrt(2 * math.Pi)
)

// flat reports whether nothing is known of the offset beforehand.
func (d *OffsetDensity) flat() bool { return math.IsInf(d.Var, 1) }

// weight is σ² T0, 0 for a flat prior, which has a form of its own.
func (d *OffsetDensity) weight() float64 {
	if d.flat() {
		return 0
	}
	return d.Var * d.T0
}

// power and own are N and T0 of the factors beside that of s^N exp(-Tau s²/2 + B s): a flat offset takes
// one reading, and all that their mean says.
func (d *OffsetDensity) power() float64 {
	if d.flat() && d.T0 > 0 {
		return d.N - 1
	}
	return d.N
}

func (d *OffsetDensity) own() float64 {
	if d.flat() {
		return 0
	}
	return d.T0
}

// residual is d at s.
func (d *OffsetDensity) residual(s float64) float64 { return math.FMA(s, d.Y, -d.Omega) }

// Log is log q at s, without its normaliser.
func (d *OffsetDensity) Log(s float64) float64 {
	k, r := 1+d.weight()*s*s, d.residual(s)
	return d.power()*math.Log(s) + s*(d.B-0.5*d.Tau*s) - 0.5*math.Log(k) - 0.5*d.own()*r*(r/k)
}

// slope is the derivative of Log, and its own derivative.
func (d *OffsetDensity) slope(s float64) (first, second float64) {
	n, w, t := d.power(), d.weight(), d.own()
	k, r := 1+w*s*s, d.residual(s)
	ws, rk, tk := w*s/k, r/k, t/k
	first = n/s + math.FMA(-d.Tau, s, d.B) - ws - tk*r*d.Y + t*rk*rk*w*s
	second = -n/(s*s) - d.Tau - w/k + 2*ws*ws - tk*d.Y*d.Y + 4*t*rk*d.Y*ws + t*w*rk*rk - 4*t*r*rk*ws*ws
	return first, second
}

// from is log q at mode+u without its value at the mode and the slope·u there: every term is of second order in u.
type offsetFrom struct {
	*OffsetDensity
	mode, slopeThere float64
	n, w, t          float64
	k, d             float64 // K and d at the mode
}

func (d *OffsetDensity) from(mode float64) offsetFrom {
	f := offsetFrom{OffsetDensity: d, mode: mode, n: d.power(), w: d.weight(), t: d.own()}
	f.k, f.d = 1+f.w*mode*mode, d.residual(mode)
	if mode == d.Lo || mode == d.Hi {
		f.slopeThere, _ = d.slope(mode)
	}
	return f
}

// at returns log q(mode+u) - log q(mode). With K = K₀(1+x) and x = l+m, its parts of first and second order in u,
//
//	-½ log(1+x) = -½ l - ½ m - ½ (log(1+x) - x),
//	K₀ (d²/K - d₀²/K₀) = 2 d₀Yu - d₀² l + Y²u² - d₀² m - (2d₀Yu + Y²u²) x + d² x²/(1+x),
//
// of which what is linear belongs to the slope.
func (f *offsetFrom) at(u float64) float64 {
	value := f.slopeThere*u - 0.5*f.Tau*u*u + f.n*log1pLess(u/f.mode)
	if f.t == 0 {
		return value
	}
	x, m, yu := f.w*u*(2*f.mode+u)/f.k, f.w*u*u/f.k, f.Y*u
	d := f.d + yu
	square := yu*yu - f.d*f.d*m - (2*f.d+yu)*yu*x + d*d*(x*(x/(1+x)))
	return value - 0.5*(m+log1pLess(x)) - 0.5*f.t*(square/f.k)
}

// differences are by how much ζ, ρ and the mean of o at mode+u differ from those at the mode; at returns them,
// and the variance of o there.
func (f *offsetFrom) differences(u float64) (zeta, rho, offset, variance float64) {
	s := f.mode + u
	if f.flat() {
		return 0, 0, f.Omega * (u / f.mode) / s, 1 / (s * s * f.T0)
	}
	x := f.w * u * (2*f.mode + u) / f.k
	part := x / (1 + x)
	zeta = (f.Y*u - (f.d+f.Y*u)*part) / f.k
	rho = part / f.k
	after := f.rhoThere() + rho
	offset = f.d/f.mode*rho + after*(f.Omega*(u/f.mode)/s)
	return zeta, rho, offset, f.Var / (f.k * (1 + x))
}

// rhoThere is ρ at the mode, 1-1/K.
func (f *offsetFrom) rhoThere() float64 {
	if f.flat() {
		return 1
	}
	return f.w * f.mode * f.mode / f.k
}

// Posterior integrates the density.
func (d *OffsetDensity) Posterior() OffsetPosterior {
	var few [6 * offsetNodes]node // more are rare
	if mode, width, ok := d.narrow(); ok {
		f := d.from(mode)
		if nodes := f.normalNodes(few[:0], width); len(nodes) > 0 {
			return f.moments(nodes)
		}
	}
	var modes [mostPeaks]float64
	peaks := d.peaks(modes[:0])
	f := d.from(peaks[0])
	var cuts [mostCuts]float64
	return f.moments(f.panelNodes(few[:0], d.cuts(cuts[:0], peaks, &f)))
}

// peaks are the modes of q: the highest first, and of the others those that matter.
func (d *OffsetDensity) peaks(modes []float64) []float64 {
	var places [offsetGrid + 4]float64
	all := places[:0]
	for i := range offsetGrid {
		all = append(all, d.Lo+(d.Hi-d.Lo)*float64(i)/(offsetGrid-1))
	}
	all[offsetGrid-1] = d.Hi
	for _, s := range [...]float64{d.B / d.Tau, GainMode(max(d.power(), 0), d.Tau, d.B), d.Omega / d.Y} {
		if s > d.Lo && s < d.Hi {
			all = append(all, s)
		}
	}
	slices.Sort(all)
	var logs [offsetGrid + 4]float64
	best := 0
	for i, s := range all {
		logs[i] = d.Log(s)
		if logs[i] > logs[best] {
			best = i
		}
	}
	modes = append(modes, d.refine(all, best))
	for i := range all {
		higher := i > 0 && logs[i-1] >= logs[i] || i+1 < len(all) && logs[i+1] > logs[i]
		if i == best || higher || logs[i] < logs[best]-offsetDepth || len(modes) == mostPeaks {
			continue
		}
		if mode := d.refine(all, i); !slices.Contains(modes, mode) {
			modes = append(modes, mode)
		}
	}
	return modes
}

// refine finds the peak of q next to place i, which is higher than its neighbours.
func (d *OffsetDensity) refine(all []float64, i int) float64 {
	s := all[i]
	first, second := d.slope(s)
	b := search.Bracket{Lo: s, Hi: s, Falling: true}
	switch {
	case first > 0 && i+1 < len(all):
		b.Hi = all[i+1]
	case first < 0 && i > 0:
		b.Lo = all[i-1]
	default:
		return s
	}
	for range 200 {
		next := b.Next(s, first, second)
		if math.Abs(next-s) <= 1e-16*s {
			return next
		}
		s = next
		first, second = d.slope(s)
	}
	return s
}

// cuts are the ends of the panels, as distances from the mode of f: each peak, and where q has fallen
// far below it on either side.
func (d *OffsetDensity) cuts(cuts []float64, peaks []float64, f *offsetFrom) []float64 {
	for _, mode := range peaks {
		g, own := f, 0.0
		if mode != f.mode {
			other := d.from(mode)
			g, own = &other, mode-f.mode
		}
		density := func(u float64) (value, slope float64) { return g.at(u), 0 }
		_, curvature := d.slope(mode)
		step := 1 / math.Sqrt(math.Abs(curvature)+1/((d.Hi-d.Lo)*(d.Hi-d.Lo))+g.slopeThere*g.slopeThere)
		step = max(step, 4e-16*mode)
		left, right := 0.0, 0.0
		if mode > d.Lo {
			left = fall(density, 0, d.Lo-mode, -offsetDepth, -step)
		}
		if mode < d.Hi {
			right = fall(density, 0, d.Hi-mode, -offsetDepth, step)
		}
		cuts = append(cuts, own+left, own, own+right)
		// A Gaussian peak falls within 9.2 of its widths; what falls more slowly has a tail, in panels that grow.
		for far, n := tailFrom*step, 0; far < max(-left, right) && n < mostCuts; far, n = far*tailGrowth, n+1 {
			if far < -left*tailLeft {
				cuts = append(cuts, own-far)
			}
			if far < right*tailLeft {
				cuts = append(cuts, own+far)
			}
		}
	}
	slices.Sort(cuts)
	// Powers of 1/s, as ζ and the mean of o are, need panels that do not reach far towards s = 0.
	left, right := f.mode+cuts[0], f.mode+cuts[len(cuts)-1]
	if !(left > 0.5*d.Lo) { // far below the mode its difference has none of its digits
		left = d.Lo
	}
	for s, n := steepest*left, 0; s < tailLeft*right && n < search.MostDoublings; s, n = s*steepest, n+1 {
		cuts = append(cuts, s-f.mode)
	}
	slices.Sort(cuts)
	return cuts
}

// narrow finds the mode of a density that is nearly normal, and reports whether it is one: all that is
// not within farthest of the mode is negligible. The factor of the offset cannot gain more than -log of what it
// is at the mode, and log(mode/Lo) for K; the rest of log q is concave, with a curvature of at least Tau.
func (d *OffsetDensity) narrow() (mode, width float64, ok bool) {
	if !(d.Tau > 0) || d.power() < 0 {
		return 0, 0, false
	}
	mode = GainMode(d.power(), d.Tau, d.B)
	if !(mode > d.Lo && mode < d.Hi) {
		return 0, 0, false
	}
	var second float64
	for range narrowSteps {
		var first float64
		first, second = d.slope(mode)
		step := first / second
		mode -= step
		if !(second < 0 && mode > d.Lo && mode < d.Hi) {
			return 0, 0, false
		}
		if ok = math.Abs(step) <= 2e-16*mode; ok || math.Abs(step) <= 1e-7/math.Sqrt(-second) {
			ok = true // what is left of the way is quadratically less
			break
		}
	}
	k, r := 1+d.weight()*mode*mode, d.residual(mode)
	pull := math.Abs(math.FMA(-d.Tau, mode, d.B) + d.power()/mode) // of the concave part, and minus that of the rest
	gain := offsetDepth + 0.5*d.own()*r*(r/k) + math.Log(mode/d.Lo)
	reach := (pull + math.Sqrt(pull*pull+2*d.Tau*gain)) / d.Tau
	width = 1 / math.Sqrt(-second)
	return mode, width, ok && reach < narrowReach*mode && mode-reach > d.Lo && mode+reach < d.Hi
}

// node is a place u from the mode, with its weight and what the differences are there.
type node struct{ weight, u, zeta, rho, offset, variance float64 }

// normalNodes are those of a density that is nearly normal with this width; none where it is not near enough.
func (f *offsetFrom) normalNodes(nodes []node, width float64) []node {
	for j, x := range offsetHermite.x {
		n := node{u: width * x}
		log := f.at(n.u) + 0.5*x*x
		if x*x < nearNormal*nearNormal && !(math.Abs(log) < skewed) {
			return nodes[:0]
		}
		n.weight = width * sqrt2Pi * offsetHermite.w[j] * math.Exp(min(log, nearNormal))
		nodes = append(nodes, n)
	}
	return nodes
}

// panelNodes are those of the panels between the cuts.
func (f *offsetFrom) panelNodes(nodes []node, cuts []float64) []node {
	for i, left := range cuts[:len(cuts)-1] {
		half, middle := 0.5*(cuts[i+1]-left), 0.5*(cuts[i+1]+left)
		if !(half > 0) {
			continue
		}
		for j, x := range offsetRule.x {
			u := middle + half*x
			nodes = append(nodes, node{u: u, weight: half * offsetRule.w[j] * math.Exp(f.at(u))})
		}
	}
	return nodes
}

// moments takes them over the nodes.
func (f *offsetFrom) moments(nodes []node) OffsetPosterior {
	sum := 0.0
	var mean node
	for i := range nodes {
		n := &nodes[i]
		n.zeta, n.rho, n.offset, n.variance = f.differences(n.u)
		sum += n.weight
		mean.u += n.weight * n.u
		mean.zeta += n.weight * n.zeta
		mean.rho += n.weight * n.rho
		mean.offset += n.weight * n.offset
		mean.variance += n.weight * n.variance
	}
	rho := f.rhoThere()
	p := OffsetPosterior{Mode: f.mode, S: f.mode, Zeta: f.d / f.k, Rho: rho, Offset: f.d / f.mode * rho}
	if f.flat() {
		p.Zeta = 0
	}
	if !(sum > 0) || math.IsInf(sum, 1) { // so steep that in double precision it is a point mass
		_, _, _, p.OffsetVar = f.differences(0)
		p.LogMass = -offsetDepth
		return p
	}
	p.LogMass = math.Log(sum)
	inverse := 1 / sum
	for _, m := range [...]*float64{&mean.u, &mean.zeta, &mean.rho, &mean.offset, &mean.variance} {
		*m *= inverse
	}
	p.OffsetVar = mean.variance
	for i := range nodes {
		n := &nodes[i]
		w, u, z, o := n.weight*inverse, n.u-mean.u, n.zeta-mean.zeta, n.offset-mean.offset
		p.SVar += w * u * u
		p.ZetaVar += w * z * z
		p.SZeta += w * u * z
		p.OffsetVar += w * o * o
		p.SOf += w * u * o
	}
	p.S = clamp(f.mode+mean.u, f.Lo, f.Hi)
	p.Zeta += mean.zeta
	p.Rho += mean.rho
	p.Offset += mean.offset
	return p
}

// LogRatio is log q(s) - log q(mode) for a mode that Posterior found.
func (d *OffsetDensity) LogRatio(s, mode float64) float64 {
	f := d.from(mode)
	return f.at(s - mode)
}
