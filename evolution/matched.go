package evolution

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/integrate/quad"

	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/internal/quadrature"
	"github.com/calamp/calamp/internal/vector"
)

// When teacher and student agree and s is uniform, the two-dimensional average
// of [sensorLaw] is done by fixed rules, a hundred times faster than adaptively
// and as accurate:
//
//   - over y, the trapezoidal rule in u, y = exp(u - e^{u₀-u}), where the
//     integrand is analytic and dies out doubly exponentially on both sides. The
//     step is halved until the estimate of its error is below the tolerance;
//   - over t, the trapezoidal rule where the posterior is no narrower than a
//     twentieth of the range [a, b]; otherwise Gauss–Legendre on three zones: a
//     layer of some posterior widths σ at either end, and what lies between them;
//   - over s, composite Gauss–Legendre. At given y the nodes are the same for all
//     t; in a layer the Gaussian factor, in units of σ, is the same for all y.

//
// They are not for every prior. Where the range is wide and signals are many the nodes in s and t are too close: b√P/a over the
// range. And the recursion of the Gaussian factors loses the density, which shows in its mass. Adaptive panels, which are where the density
// is, then take less.

// matchedRule is a choice of these rules.
type matchedRule struct {
	tStep  float64  // of the trapezoidal rule in t, in units of the integrand's width
	sPanel lineRule // on [0, 1], for panels of sWidth posterior widths
	layer  layerRule
	middle lineRule // between the layers, on [0, 1]
	acc    quadrature.Accuracy
	floor  float64 // largest relative error of the rules in s and t
}

// lineRule is a Gauss–Legendre rule.
type lineRule struct{ x, w []float64 }

func newLineRule(n int, lo, hi float64) lineRule {
	r := lineRule{make([]float64, n), make([]float64, n)}
	quad.Legendre{}.FixedLocations(r.x, r.w, lo, hi)
	if r.x[0] > r.x[n-1] {
		slices.Reverse(r.x)
		slices.Reverse(r.w)
	}
	return r
}

// composite is a rule on consecutive panels.
func composite(n int, cuts ...float64) lineRule {
	var r lineRule
	for i := 1; i < len(cuts); i++ {
		p := newLineRule(n, cuts[i-1], cuts[i])
		r.x, r.w = append(r.x, p.x...), append(r.w, p.w...)
	}
	return r
}

// Lengths in units of the posterior width σ. At nine of them a Gaussian has fallen
// to 3e-18. TestFixedRulesAgainstAdaptive holds the result against adaptive panels:
// docs/log/theory.md has 2e-11 as the largest difference.
const (
	layerDepth = 9.0  // depth of the layer at an end of [a, b]: the end has no effect beyond it
	outside    = 8.7  // distance outside of [a, b] at which the density of t is negligible
	oneZone    = 20.0 // (b-a)/σ below which the two layers would fill the range
	sWidth     = 6.0  // of a panel in s
)

// layerRule integrates over t = a + σu and s = a + σx near an end.
type layerRule struct {
	t, s   lineRule
	kernel []float64 // e^{-(x-u)²/2}, rows u
}

func newLayerRule(n int) layerRule {
	l := layerRule{
		t: composite(n, -outside, -5, -2.5, 0, 2.5, 5, layerDepth),
		s: composite(n+2, 0, 4.5, 9, 13.5, 2*layerDepth),
	}
	for _, u := range l.t.x {
		for _, x := range l.s.x {
			l.kernel = append(l.kernel, math.Exp(-0.5*(x-u)*(x-u)))
		}
	}
	return l
}

var fastRule, fullRule = newMatchedRule(0.5, 10, 1e-10, quadrature.Fast), newMatchedRule(0.36, 14, 2e-13, quadrature.Full)

func newMatchedRule(step float64, n int, floor float64, acc quadrature.Accuracy) *matchedRule {
	return &matchedRule{tStep: step, sPanel: newLineRule(n+2, 0, 1), layer: newLayerRule(n), middle: newLineRule(n, 0, 1), acc: acc, floor: floor}
}

// matchedAverage is one evaluation of the averages.
type matchedAverage struct {
	*matchedRule
	work           *work
	most, values   int64 // of integrands: allowed, and so far
	a, b, p, delta float64
	kappa, q       float64

	s, s0, s1, s2    []float64 // nodes in s, (s-a)/σ powers times weight times (s/b)^P
	gauss, ratio     []float64
	logScale, width  float64 // of the density of (y, t); √κ/y
	tau, invQ, sigma float64 // at the current y: y²/D, y²/q, √D/y
}

// matchedAverages are the averages of [matchedLaw] for a uniform prior; good says that the fixed rules are for it.
// Adaptive panels take 0.05 to 0.8 s to 1e-4, whatever the prior (P of 1 to 1000, b/a of 1.2 to 1e6), as long as 1e7 to 1e8 values of the
// fixed rules. For pictures these are given up after as many; for more digits later, so that what they gave within seconds they still give.
func matchedAverages(p int, gain channel.GainPrior, delta, tol float64, w *work) (a averages, good bool) {
	rule, most := fullRule, int64(1<<30)
	if tol >= 1e-9 {
		rule, most = fastRule, 1<<27
	}
	if tol >= 1e-5 {
		most = 1 << 24
	}
	law := matchedLaw(p, gain, delta)
	m := &matchedAverage{matchedRule: rule, work: w, most: most, a: gain.Lo, b: gain.Hi, p: float64(p), delta: delta, kappa: law.kappa, q: law.q}
	sums := m.integrate(tol)
	if m.tooMany() {
		return a, false
	}
	a = law.assemble(sums)
	return a, math.Abs(a.mass.Value-1) < massLack
}

// massLack is how much of the density's mass may be missing; where the rules are good it is 1e-6 at most.
const massLack = 1e-3

// spend counts values before they are computed.
func (m *matchedAverage) spend(values int) {
	m.work.spend(values)
	m.values += int64(values)
}

func (m *matchedAverage) tooMany() bool { return m.values > m.most }

// integrate sums over y.
func (m *matchedAverage) integrate(tol float64) quadrature.Result {
	rootP := math.Sqrt(m.p)
	// Readings smaller than e^u₀ say nothing of s.
	u0 := math.Log(min(0.1*math.Sqrt(m.delta)/(m.b-m.a), 0.3*max(rootP-3, 1)/m.b))
	hi := math.Log((rootP + 9) / m.a)
	lo := u0 - math.Log(1+90/m.p)
	step := min(0.5, 1/rootP)

	var total quadrature.Result
	add := func(start, h float64) (sum quadrature.Vec) {
		for u := start; u < hi && !m.tooMany(); u += h {
			m.spend(1)
			drop := math.Exp(u0 - u)
			v, evals := m.atReading(math.Exp(u-drop), u-drop)
			jacobian := math.Exp(u-drop) * (1 + drop)
			for k := range sum {
				sum[k] += jacobian * v[k]
			}
			total.Evals += evals
		}
		return sum
	}
	previous := add(lo, step)
	for k := range previous {
		previous[k] *= step
	}
	for range 8 {
		between := add(lo+0.5*step, step)
		step *= 0.5
		done := true
		for k := range between {
			total.Value[k] = 0.5*previous[k] + step*between[k]
			// Halving the step squares the rule's error, and the difference between
			// the two results is the error of the coarser one. To be safe, its power
			// 3/2 is taken for the error of the finer one, in place of its square.
			size := math.Abs(total.Value[k])
			if k == atEvidence {
				size = max(size, 1)
			}
			d := math.Abs(total.Value[k] - previous[k])
			if size > 0 {
				total.Err[k] = d*math.Sqrt(d/size) + m.floor*size
			}
			allowed := tol * size
			if k == atShrink {
				allowed = tol * max(size, m.p-1)
			}
			done = done && total.Err[k] <= allowed
		}
		previous = total.Value
		if done || m.tooMany() {
			break
		}
	}
	return total
}

// atReading integrates over t at given y.
func (m *matchedAverage) atReading(y, logY float64) (v quadrature.Vec, evals int) {
	// The density of y is at most that of |z̃| = s₀y at the s₀ for which y is likeliest:
	// where even that is negligible, nothing is integrated.
	rate := 0.5 * y * y
	best := min(max(math.Sqrt(m.p/(2*rate)), m.a), m.b)
	bound := m.p*(logY+math.Log(best)) - rate*best*best
	if bound < math.Log(1e-22*m.delta)-0.5*m.p && y*m.b < math.Sqrt(m.p) || bound-0.5*m.p*(math.Log(m.p)-1) < math.Log(1e-22*m.delta) {
		return v, 0
	}
	m.tau = y * y / m.delta
	m.sigma = math.Sqrt(m.delta) / y
	m.logScale = (1-0.5*m.p)*math.Ln2 - lgamma(0.5*m.p) + m.p*(logY+math.Log(m.b)) - math.Log(m.b-m.a)
	m.width = math.Sqrt(m.kappa) / y
	if m.q == 0 {
		return m.onlySizes(y, logY), 1
	}
	m.logScale -= 0.5*math.Log(2*math.Pi) + math.Log(m.width*y)
	m.invQ = y * y / m.q
	// The layers are placed at the ends of the range of s₀, while t lies around
	// (1-δ)s₀. They cover it only as long as δs₀ is below a posterior width.
	if (m.b-m.a) < oneZone*m.sigma || m.p*m.sigma > m.a || m.delta*m.b > 0.7*m.sigma {
		return m.throughout()
	}
	return m.zones(y)
}

// onlySizes is the case of no estimate yet, ω = 0.
func (m *matchedAverage) onlySizes(y, logY float64) (v quadrature.Vec) {
	g := channel.Uniform(m.a, m.b)
	law := matchedLaw(int(m.p), g, m.delta)
	return law.atReading(y, 0, (1-0.5*m.p)*math.Ln2-lgamma(0.5*m.p), m.acc)
}

// throughout uses the trapezoidal rule in t. From node to node of a uniform grid
// the Gaussian factor changes by a ratio that itself changes by a constant.
func (m *matchedAverage) throughout() (v quadrature.Vec, evals int) {
	if !m.spread() {
		return v, 0
	}
	narrow := min(m.sigma, m.width)
	h := m.tStep * narrow
	c := 1 - m.delta
	lo, hi := c*m.a-outside*m.width, c*m.b+outside*m.width
	const restart = 12 // nodes after which the factors are computed anew, before rounding errors grow
	var i, from, to int
	shift := math.Exp(-h * h / (m.sigma * m.sigma))
	for t := lo; t < hi && !m.tooMany(); t += h {
		if i%restart == 0 {
			from, to = m.restart(t, t+restart*h, h)
			m.spend(restart * (to - from))
		}
		gauss, ratio := m.gauss[from:to], m.ratio[from:to]
		if e0 := floats.Dot(gauss, m.s0[from:to]); e0 > 0 {
			m.collect(&v, h, t, e0, floats.Dot(gauss, m.s1[from:to]), floats.Dot(gauss, m.s2[from:to]))
		}
		for j, r := range ratio {
			gauss[j] *= r
			ratio[j] = r * shift
		}
		i++
	}
	return v, i
}

// spread places nodes in s over the whole of [a, b], unless they are too many.
func (m *matchedAverage) spread() bool {
	narrow := 1 / math.Sqrt(1/(m.sigma*m.sigma)+m.p/(m.a*m.a))
	count := math.Ceil((m.b - m.a) / (sWidth * narrow))
	nodes := count * float64(len(m.sPanel.x))
	if !(nodes <= mostNodes) {
		m.values = m.most + 1
		return false
	}
	m.spend(int(nodes))
	panels := int(count)
	h := (m.b - m.a) / float64(panels)
	m.s, m.s0, m.s1, m.s2 = m.s[:0], m.s0[:0], m.s1[:0], m.s2[:0]
	for i := range panels {
		for j, x := range m.sPanel.x {
			m.node((float64(i)+x)*h, h*m.sPanel.w[j])
		}
	}
	length := len(m.s) + vector.Lanes
	m.gauss, m.ratio = slices.Grow(m.gauss[:0], length)[:length], slices.Grow(m.ratio[:0], length)[:length]
	return true
}

// node adds a node at the given distance from a.
func (m *matchedAverage) node(offset, weight float64) {
	s := m.a + offset
	w := weight * math.Pow(s/m.b, m.p)
	x := offset / m.sigma
	m.s = append(m.s, s)
	m.s0 = append(m.s0, w)
	m.s1 = append(m.s1, w*x)
	m.s2 = append(m.s2, w*x*x)
}

// restart computes e^{-τ(s-t)²/2} and the ratio to the next t, h away, at the
// nodes from…to within reach of any t between the two given.
func (m *matchedAverage) restart(t, last, h float64) (from, to int) {
	const reach = 9.5
	lo, hi := min(max(t, m.a), m.b)-reach*m.sigma, min(max(last, m.a), m.b)+reach*m.sigma
	from, _ = slices.BinarySearch(m.s, lo)
	to, _ = slices.BinarySearch(m.s, hi)
	k := h / m.sigma
	for j := from; j < to; j++ {
		x := (m.s[j] - t) / m.sigma
		m.gauss[j] = -0.5 * x * x
		m.ratio[j] = k * (x - 0.5*k)
	}
	for _, v := range [][]float64{m.gauss, m.ratio} {
		whole := v[from : from+vector.Padded(to-from)]
		clear(whole[to-from:])
		vector.Exp(whole)
	}
	return from, to
}

// collect adds a node in t, given the moments of the posterior in units of σ.
func (m *matchedAverage) collect(v *quadrature.Vec, weight, t, e0, e1, e2 float64) {
	exponent := m.logScale - 0.5*m.invQ*t*t
	density := weight * e0 * math.Exp(exponent)
	if exponent > 700 { // with many signals a power overflows, and what is left of it is of order one
		density = weight * math.Exp(exponent+math.Log(e0))
	}
	mean := e1 / e0
	scaled := e2/e0 - mean*mean // Cˢτ
	v[atMass] += density
	// Here, near an end of the range or with a wide posterior, 1-Cˢτ is of order one,
	// and the subtraction loses no digits.
	v[atShrink] += density * (1 - scaled)
	v[atMSE] += density * scaled * m.sigma * m.sigma
	v[atEvidence] += density * (math.Log(e0/(m.b-m.a)) + m.p*math.Log(m.b))
}

// zones treats the layers at both ends, and the middle, where the posterior of s
// is nearly Gaussian.
func (m *matchedAverage) zones(y float64) (v quadrature.Vec, evals int) {
	l := &m.layer
	for _, end := range [...]struct{ at, into float64 }{{m.a, 1}, {m.b, -1}} {
		m.s0, m.s1, m.s2 = m.s0[:0], m.s1[:0], m.s2[:0]
		for j, x := range l.s.x {
			w := l.s.w[j] * m.sigma * math.Pow((end.at+end.into*m.sigma*x)/m.b, m.p)
			m.s0 = append(m.s0, w)
			m.s1 = append(m.s1, w*x)
			m.s2 = append(m.s2, w*x*x)
		}
		n := len(l.s.x)
		m.spend(len(l.kernel))
		for i, u := range l.t.x {
			row := l.kernel[i*n : (i+1)*n]
			m.collect(&v, m.sigma*l.t.w[i], end.at+end.into*m.sigma*u,
				floats.Dot(row, m.s0), floats.Dot(row, m.s1), floats.Dot(row, m.s2))
		}
		evals += len(l.t.x)
	}
	lo, hi := m.a+layerDepth*m.sigma, m.b-layerDepth*m.sigma
	panels := math.Ceil(max(y*(hi-lo)/3, 4*math.Log(hi/lo)))
	h := (hi - lo) / panels
	for i := range int(panels) {
		if m.tooMany() {
			break
		}
		m.spend(len(m.middle.x) * posteriorValues)
		for j, x := range m.middle.x {
			t := lo + (float64(i)+x)*h
			q := quadrature.NewGainPosterior(m.p, m.tau, t, m.a, m.b, m.acc)
			g := gainPosterior{GainPosterior: q, prior: channel.Uniform(m.a, m.b)}
			density := h * m.middle.w[j] * math.Exp(m.logScale-0.5*m.invQ*t*t+q.LogMass-m.p*math.Log(m.b))
			v[atMass] += density
			v[atShrink] += density * g.shrink(m.p, m.tau)
			v[atMSE] += density * q.Var
			v[atEvidence] += density * (q.LogMass - math.Log(m.b-m.a))
			evals++
		}
	}
	return v, evals
}
