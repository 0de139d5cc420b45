package quadrature

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/integrate/quad"
)

// Width is the number of components of a [Vec].
const Width = 8

// Vec is the value of an integrand with several components, integrated at once.
type Vec [Width]float64

// Result is an integral with an estimate of its absolute error, by component.
type Result struct {
	Value, Err Vec
	Evals      int
}

// Integrator integrates vectors over an interval by Gauss–Legendre rules on
// panels, and bisects panels where the rule has not converged. The error of a panel
// is estimated from the integrand's Legendre coefficients, which the values at the
// nodes give at no cost. When coefficient k decreases like r^-k, a rule of n nodes
// (exact to degree 2n-1) has an error of r^-2n, the square of the last coefficient c
// that it sees. Our integrands are entire functions, whose coefficients decrease ever
// faster. The estimate is (10c)^(5/2), which was too large by at least two digits on
// all averages tried.
type Integrator struct {
	// Tol is the error allowed in a component relative to its integral (or to
	// Floor, where that is larger).
	Tol   float64
	Floor Vec

	rule *panelRule
}

const (
	maxDepth  = 40
	maxPanels = 4000
)

// NewIntegrator returns an integrator with a rule to match the tolerance.
func NewIntegrator(tol float64) Integrator {
	order := 10
	if tol < 3e-10 {
		order = 14
	}
	return Integrator{Tol: tol, rule: panelRules[order]}
}

type panelRule struct {
	x, w       []float64
	last, next []float64 // weights of the two highest Legendre coefficients
}

var panelRules = map[int]*panelRule{10: newPanelRule(10), 14: newPanelRule(14)}

func newPanelRule(n int) *panelRule {
	r := &panelRule{x: make([]float64, n), w: make([]float64, n), last: make([]float64, n), next: make([]float64, n)}
	quad.Legendre{}.FixedLocations(r.x, r.w, -1, 1)
	for i, x := range r.x {
		r.last[i] = 0.5 * float64(2*n-1) * r.w[i] * legendrePolynomial(n-1, x)
		r.next[i] = 0.5 * float64(2*n-3) * r.w[i] * legendrePolynomial(n-2, x)
	}
	return r
}

func legendrePolynomial(n int, x float64) float64 {
	previous, p := 1.0, x
	for k := 2; k <= n; k++ {
		previous, p = p, (float64(2*k-1)*x*p-float64(k-1)*previous)/float64(k)
	}
	return p
}

type panel struct {
	lo, hi float64
	depth  int
	own    Vec // error of the rule; Result.Err has that of the integrand as well
	Result
}

// Integrate returns ∫ f over [cuts[0], cuts[last]]. The cuts, in increasing order, are
// the ends of the first panels. f returns the integrand and its own error.
func (q Integrator) Integrate(f func(x float64) (value, err Vec), cuts []float64) Result {
	var buffer [48]panel
	todo := buffer[:0]
	var total Result
	for i := 1; i < len(cuts); i++ {
		if cuts[i] > cuts[i-1] {
			p := q.panel(f, cuts[i-1], cuts[i], 0)
			total.add(p.Result)
			todo = append(todo, p)
		}
	}
	count := len(todo)
	for len(todo) > 0 {
		p := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if p.depth >= maxDepth || count >= maxPanels || q.accepts(&total, &p, float64(count)) {
			continue
		}
		mid := 0.5 * (p.lo + p.hi)
		left, right := q.panel(f, p.lo, mid, p.depth+1), q.panel(f, mid, p.hi, p.depth+1)
		total.subtract(p.Result)
		total.add(left.Result)
		total.add(right.Result)
		todo = append(todo, left, right)
		count++
	}
	for k := range total.Err {
		total.Err[k] = math.Max(0, total.Err[k]) + 4e-16*math.Abs(total.Value[k])
	}
	return total
}

// accepts reports whether the error of the panel's rule is within its share of the
// tolerance. The error of f is not looked at, since bisection would not reduce it.
func (q Integrator) accepts(total *Result, p *panel, count float64) bool {
	for k, e := range p.own {
		if e == 0 {
			continue
		}
		if allowed := q.Tol * max(math.Abs(total.Value[k]), q.Floor[k]); e*count > allowed && e > 1e-15*math.Abs(p.Value[k]) {
			return false
		}
	}
	return true
}

func (q Integrator) panel(f func(x float64) (value, err Vec), lo, hi float64, depth int) panel {
	p := panel{lo: lo, hi: hi, depth: depth}
	half, mid := 0.5*(hi-lo), 0.5*(hi+lo)
	var last, next, size, inner Vec
	r := q.rule
	for i, x := range r.x {
		v, e := f(mid + half*x)
		w, l, n := r.w[i], r.last[i], r.next[i]
		for k, u := range v {
			p.Value[k] += w * u
			size[k] += w * math.Abs(u)
			last[k] += l * u
			next[k] += n * u
			inner[k] += w * e[k]
		}
	}
	p.Evals = len(r.x)
	for k := range p.Value {
		p.Value[k] *= half
		if tail := math.Abs(last[k]) + math.Abs(next[k]); tail > 0 {
			p.own[k] = 2 * half * tail * min(1, math.Pow(10*tail/size[k], 1.5))
		}
		p.Err[k] = p.own[k] + half*inner[k]
	}
	return p
}

func (r *Result) add(o Result) {
	for k := range r.Value {
		r.Value[k] += o.Value[k]
		r.Err[k] += o.Err[k]
	}
	r.Evals += o.Evals
}

func (r *Result) subtract(o Result) {
	for k := range r.Value {
		r.Value[k] -= o.Value[k]
		r.Err[k] -= o.Err[k]
	}
}

// Layer is a place where an integrand changes over the given width.
type Layer struct{ Edge, Width float64 }

// layerMarks are the ends of panels around a layer, in units of its width. Nine
// widths away a Gaussian layer has fallen to 3e-18.
var layerMarks = [...]float64{-9, -4, 0, 4, 9}

// Grade writes to cuts the ends of panels of [lo, hi] that resolve the layers,
// and returns it. Cuts closer to each other than a third of the narrowest layer
// are merged.
func Grade(cuts []float64, lo, hi float64, layers ...Layer) []float64 {
	cuts = append(cuts[:0], lo)
	narrow := hi - lo
	for _, l := range layers {
		narrow = min(narrow, l.Width)
		for _, m := range layerMarks {
			if x := l.Edge + m*l.Width; x > lo && x < hi {
				cuts = append(cuts, x)
			}
		}
	}
	return Panels(lo, hi, narrow/3, cuts[1:])
}

// Panels returns the ends of panels of [lo, hi]: lo, hi, and the marks between them,
// without those that are closer than gap to another one. It sorts marks, and may
// reuse their memory.
func Panels(lo, hi, gap float64, marks []float64) []float64 {
	slices.Sort(marks)
	cuts := make([]float64, 1, len(marks)+2)
	cuts[0] = lo
	for _, x := range marks {
		if x-cuts[len(cuts)-1] > gap && hi-x > gap {
			cuts = append(cuts, x)
		}
	}
	return append(cuts, hi)
}
