package evolution

import (
	"math"
	"slices"

	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/internal/quadrature"
)

// inherited is a table of the averages U, G and S of online state evolution (see
// online.go) after n samples, the current one included, as functions of (K, F).
type inherited struct {
	work     *work
	gain     channel.GainPrior
	n        float64
	scale    float64 // F₀, the precision that the prior gives s: smaller F hardly change the averages
	lo, step float64 // grid in log(F + F₀)
	top      float64 // the largest F
	kTop     float64 // Chebyshev grid in √K on [0, √kTop]
	coef     [][3][kTerms]float64
	miss     float64 // largest relative error of the interpolation at the points tried
}

// The table's resolution. Every run measures the error of the interpolation and adds
// it to its results (see tried); TestOnlineInterpolation bounds it.
const (
	kTerms = 10   // Chebyshev terms in √K
	fStep  = 0.25 // grid in log(F+F₀), with sixth-order interpolation
)

// law tabulates the averages for sample k; nil for the first, which needs none.
func (o *online) law(k int) *inherited {
	if k == 1 || o.Gain.Lo == o.Gain.Hi {
		return nil
	}
	_, variance := o.Gain.Moments()
	gain := trimmed(o.Gain)
	t := &inherited{work: o.work, gain: gain, n: float64(k), scale: gain.Lo * gain.Lo / variance, step: fStep}
	most := 0.0
	for _, p := range o.stream {
		for i := range p.f {
			t.kTop = max(t.kTop, p.k[i])
			most = max(most, p.f[i])
		}
	}
	t.kTop += topChi * topChi
	// The current sample adds m/D per unit of χ²: most at the smallest error V that it
	// can reach.
	best := o.q0 / (o.NoiseVar + 1e-17*o.q0)
	t.lo = math.Log(t.scale)
	t.top = most + topChi*topChi*best
	// The interpolation needs six nodes, that is five cells.
	cells := max(5, int(math.Ceil((math.Log(t.scale+t.top)-t.lo)/t.step))+1)
	t.coef = make([][3][kTerms]float64, cells+1)
	parallel(len(t.coef), func(i int) {
		f := max(0, math.Exp(t.lo+float64(i)*t.step)-t.scale)
		t.coef[i] = t.chebyshev(f)
	})
	t.miss = t.tried(o.stream[0])
	return t
}

// tried compares the interpolation with the integrals, near some members of the
// population and between the nodes, and returns the largest relative difference.
func (t *inherited) tried(p *population) float64 {
	const trials = 6
	var miss [trials]float64
	parallel(trials, func(i int) {
		member := p.order[(2*i+1)*len(p.order)/(2*trials)]
		k, f := p.k[member]+0.7, min(p.f[member]+0.4*math.Exp(float64(i))*t.scale, t.top)
		got, want := t.value(k, f), t.at(k, f)
		for q := range got {
			miss[i] = max(miss[i], math.Abs(got[q]/want[q]-1))
		}
	})
	return slices.Max(miss[:])
}

// topChi is the largest |χ| that is integrated over; a standard normal variable lies
// beyond with probability 2e-7.
const topChi = 5.2

// chebyshev returns the Chebyshev expansions in √K of U, G and S at given F. Each is
// multiplied by a power of F+F₀, after which it varies little with F.
func (t *inherited) chebyshev(f float64) (coef [3][kTerms]float64) {
	scales := t.scales(f)
	var values [kTerms][3]float64
	for j := range values {
		x := math.Cos(math.Pi * (float64(j) + 0.5) / kTerms)
		values[j] = t.at(0.25*t.kTop*(1+x)*(1+x), f)
	}
	for q := range coef {
		for i := range coef[q] {
			sum := 0.0
			for j := range values {
				sum += scales[q] * values[j][q] * math.Cos(math.Pi*float64(i)*(float64(j)+0.5)/kTerms)
			}
			coef[q][i] = 2 * sum / kTerms
		}
		coef[q][0] *= 0.5
	}
	return coef
}

var (
	shiftRule = newHermite(20)
	gainRule  = newLineRule(8, 0, 1)
)

// at computes U, G and S by quadrature over s₀ and the Gaussian u of s₀B = F +
// √F u. At the ends of the range of s₀ there are layers of width s₀/√F.
func (t *inherited) at(k, f float64) (v [3]float64) {
	g := t.gain
	norm := logMass(g)
	cuts := t.gainCuts(f)
	for i := 1; i < len(cuts); i++ {
		t.work.spend(len(gainRule.x) * len(shiftRule.x) * posteriorValues)
		h := cuts[i] - cuts[i-1]
		for j, x := range gainRule.x {
			s0 := cuts[i-1] + h*x
			weight := h * gainRule.w[j] * math.Exp(g.LogDensity(s0)-norm)
			tau := (k + f) / (s0 * s0)
			for l, u := range shiftRule.x {
				q := posterior(g, t.n, tau, s0*(f+math.Sqrt(f)*u)/(k+f), quadrature.Fast)
				w := weight * shiftRule.w[l]
				v[0] += w * q.shrink(t.n, tau)
				v[1] += w * q.Var / (s0 * s0)
				v[2] += w * q.Var
			}
		}
	}
	return v
}

// gainCuts places panels over the range of s₀.
func (t *inherited) gainCuts(f float64) []float64 {
	a, b := t.gain.Lo, t.gain.Hi
	narrow := a / math.Sqrt(f+t.n)
	if t.gain.Precision > 0 {
		_, variance := t.gain.Moments()
		narrow = min(narrow, math.Sqrt(variance))
	}
	wide := narrow * b / a
	if b-a < 15*(narrow+wide) || t.gain.Precision > 0 {
		// Over the whole range: panels of a few posterior widths, which grow like s₀.
		n := math.Ceil(math.Log(b/a) / math.Log1p(3*narrow/a))
		room(n, t.gain, t.n)
		cuts := []float64{a}
		for i := 1.0; i < n; i++ {
			cuts = append(cuts, a*math.Pow(b/a, i/n))
		}
		return append(cuts, b)
	}
	return []float64{
		a, a + 2*narrow, a + 5*narrow, a + 9*narrow, a + 14*narrow,
		b - 14*wide, b - 9*wide, b - 5*wide, b - 2*wide, b,
	}
}

// value interpolates: U, G, S at (K, F).
func (t *inherited) value(k, f float64) (v [3]float64) {
	x := (math.Log(f+t.scale) - t.lo) / t.step
	first := min(max(int(x)-2, 0), len(t.coef)-6)
	weights := lagrange6(x - float64(first))
	y := min(2*math.Sqrt(k/t.kTop)-1, 1)
	var cheb [kTerms]float64
	cheb[0], cheb[1] = 1, y
	for i := 2; i < kTerms; i++ {
		cheb[i] = 2*y*cheb[i-1] - cheb[i-2]
	}
	var sums [3]float64
	for i, w := range weights {
		c := &t.coef[first+i]
		for q := range sums {
			dot := 0.0
			for j := range cheb {
				dot += cheb[j] * c[q][j]
			}
			sums[q] += w * dot
		}
	}
	for q, scale := range t.scales(f) {
		v[q] = sums[q] / scale
	}
	return v
}

func (t *inherited) scales(f float64) [3]float64 {
	x := f + t.scale
	return [3]float64{math.Sqrt(x), x, x}
}

// lagrange6 are the weights at x of interpolation on 0, 1, …, 5.
func lagrange6(x float64) (w [6]float64) {
	scale := [6]float64{-1.0 / 120, 1.0 / 24, -1.0 / 12, 1.0 / 12, -1.0 / 24, 1.0 / 120}
	for i := range w {
		w[i] = scale[i]
		for j := range w {
			if j != i {
				w[i] *= x - float64(j)
			}
		}
	}
	return w
}

// average returns E[1-Cˢτ_k] and E[Cˢ], over the population and the χ of the current
// sample, when the current sample's information m/D is as given.
func (t *inherited) average(p *population, information float64, w *work) (shrink, mseS float64) {
	rule := t.chiRule(information)
	n := float64(len(p.k))
	for i, k := range p.k {
		w.spend(len(rule.x))
		f := p.f[i]
		for j, c2 := range rule.x {
			v := t.value(k+c2, f+c2*information)
			shrink += rule.w[j] * (v[0] + v[1]*(k+f))
			mseS += rule.w[j] * v[2]
		}
	}
	return shrink / n, mseS / n
}

// chiRule is a rule for averages over χ², χ standard normal. Its panels in |χ| are
// smallest where the current sample says as much of s as the prior does, and grow
// from there.
func (t *inherited) chiRule(information float64) (r lineRule) {
	from := max(math.Sqrt(t.scale/max(information, t.scale)), leastNormal)
	cuts := []float64{0}
	for c := from; c < 0.7; c *= 4 {
		cuts = append(cuts, c)
	}
	cuts = append(cuts, 1, 2.2, 4, topChi)
	base := composite(6, cuts...)
	for i, c := range base.x {
		r.x = append(r.x, c*c)
		r.w = append(r.w, base.w[i]*math.Sqrt(2/math.Pi)*math.Exp(-0.5*c*c))
	}
	return r
}
