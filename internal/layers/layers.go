// Package layers is the node of signals that come out of a network, x = f(Fh + b): given fields on x it finds the posterior of x, by messages to and from h, which are
// the node's own, and of which the prior may be a layer again. It knows fields, and nothing of sensors or of how fields came about.
//
// One update is one iteration of multi-layer AMP (A. Manoel, F. Krzakala, M. Mézard and L. Zdeborová, "Multi-layer generalized linear estimation", ISIT 2017)
// for matrices F with independent entries ([independent]; others are those of [together], or [vector]),
//
//	V = F²C_h,   ω = Fĥ + b - V g_old,
//	N(u; ω, V) δ(x - f(u)) N(x; λ, Σ)   →   x̂, C;  û, v_u;  log-mass
//	g = (û - ω)/V,   ∂g = (v_u/V - 1)/V,
//	Σ_h = 1/(-F²ᵀ∂g),   λ_h = ĥ + Σ_h Fᵀg   →   ĥ, C_h by the prior of h.
//
// Entries are stored signal by signal (P×N), rows of u entry by entry (N×P).
package layers

import (
	"fmt"
	"math"

	"gonum.org/v1/gonum/floats"

	"github.com/calamp/calamp/internal/activation"
	"github.com/calamp/calamp/internal/joint"
	"github.com/calamp/calamp/internal/parallel"
	"github.com/calamp/calamp/operator"
	"github.com/calamp/calamp/prior"
)

// Signals is what is known of signals besides the readings, with messages of its own. It is the view that an iteration has of it.
type Signals interface {
	// Start makes the messages those before any reading.
	Start()

	// Update is the posterior x̂, C (P×N) of signals under fields N(x; λ, Σ), Σ = +Inf where nothing was measured. The part delta of the messages stays.
	Update(x, c, lambda, sigma []float64, delta float64) error

	// LogNorm is the part of the Bethe free energy that is the signals' own, in place of Σ log ∫ p(x) exp(-(x-λ)²/2Σ) dx, of the latest update.
	LogNorm() float64

	// Kept is all that an update changes and the next one depends on. Linear is the part of it that is proportional to the signals, where signals of another
	// scale are those of latents of another scale; nil elsewhere.
	Kept() [][]float64
	Linear() [][]float64
}

// Latents are those of the last layer: independent entries.
type latents struct {
	n, p, threads int
	prior         prior.Prior
	x, c          []float64 // as given to the latest update
	lambda, sigma []float64
	signal        func(k int)
}

func (l *latents) Start() {}

func (l *latents) Update(x, c, lambda, sigma []float64, _ float64) error {
	l.x, l.c, l.lambda, l.sigma = x, c, lambda, sigma
	parallel.Run(l.p, l.threads, l.signal)
	return nil
}

func (l *latents) update(k int) {
	from, to := k*l.n, (k+1)*l.n
	l.prior.Posterior(l.x[from:to], l.c[from:to], l.lambda[from:to], l.sigma[from:to])
}

func (l *latents) moments() (mean, variance []float64) { return moments(l.prior, l.n) }

// moments are those of n entries before any reading.
func moments(p prior.Prior, n int) (mean, variance []float64) {
	mean, variance = make([]float64, n), make([]float64, n)
	for j := range mean {
		at := prior.At(p, j)
		mean[j], variance[j] = at.Mean(), at.Variance()
	}
	return mean, variance
}

func (l *latents) LogNorm() float64 { return prior.SumLogNorm(l.prior, l.lambda, l.sigma) }

// rows are latents of which each is zero in all signals, or in none, with a covariance across signals: joint rows, with one evidence of all signals.
type rows struct {
	latents
	joint *joint.Rows
}

func newRows(l latents) *rows {
	g := l.prior.(interface {
		GaussBernoulliPrior() prior.GaussBernoulli
	}).GaussBernoulliPrior()
	return &rows{latents: l, joint: joint.NewRows(l.n, l.p, l.threads, joint.Isotropic(l.p, g.Density, g.SignalMean, g.SignalVar))}
}

func (r *rows) Update(x, c, lambda, sigma []float64, _ float64) error {
	r.joint.UpdateUnequal(lambda, sigma)
	copy(x, r.joint.X)
	copy(c, r.joint.C)
	return nil
}

func (r *rows) LogNorm() float64 { return floats.Sum(r.joint.LogMass) }

func (l *latents) Kept() [][]float64 { return nil }

func (l *latents) Linear() [][]float64 { return nil }

// below is what a layer knows of its inputs.
type below struct {
	h, c          []float64 // P×N₂, ĥ and C_h
	lambda, sigma []float64 // P×N₂, the fields on h
}

func (b *below) allocate(n int) {
	for _, v := range []*[]float64{&b.h, &b.c, &b.lambda, &b.sigma} {
		*v = make([]float64, n)
	}
}

// reset makes them what is known before any reading, the same for p signals.
func (b *below) reset(mean, variance []float64, p int) {
	for k := range p {
		copy(b.h[k*len(mean):], mean)
		copy(b.c[k*len(mean):], variance)
	}
	for j := range b.sigma {
		b.lambda[j], b.sigma[j] = 0, math.Inf(1)
	}
}

// layer is what the nodes of one layer have, whatever its matrix is.
type layer struct {
	below
	n, width, p, threads int
	f                    activation.Function
	bias                 []float64 // N; nil for none
	slack                float64
	inner                Signals
	start                func() (mean, variance []float64) // of h, the same for all signals
	newH, newC           []float64                         // P×N₂, what inner gives

	// Of the present update.
	x, xVar, fieldX, fieldVar []float64
	delta                     float64
}

func (l *layer) own() *layer { return l }

func (l *layer) allocate() {
	size := l.p * l.width
	l.below.allocate(size)
	l.newH, l.newC = make([]float64, size), make([]float64, size)
}

// begin notes what an update is given.
func (l *layer) begin(x, c, lambda, sigma []float64, delta float64) {
	l.x, l.xVar, l.fieldX, l.fieldVar, l.delta = x, c, lambda, sigma, delta
}

// output sets the posterior of entry i of signal k given N(u; ω, V), but for the bias, and says what it is of u.
func (l *layer) output(i, k int, omega, v float64) activation.Moments {
	if l.bias != nil {
		omega += l.bias[i]
	}
	entry := k*l.n + i
	m := l.f.Entry(l.fieldX[entry], l.fieldVar[entry], omega, v, l.slack)
	l.x[entry], l.xVar[entry] = m.X, m.XVar
	return m
}

// independent is the node of one layer whose matrix has independent entries.
type independent struct {
	layer
	nothing bool // h is x
	sweep   operator.Sweep

	// Messages, and what they were made of: the centres of fields (P×N₂), g and ∂g (N×P); damped.
	centre    []float64
	g, dg     []float64
	backward  []float64 // P×N₂, Fᵀg
	curvature []float64 // P×N₂, F²ᵀ∂g

	logMass []float64 // N: Σ_k log-mass + ½ V g²
	rows    operator.RowFunc
}

// Node is a network's, with the prior of its latents.
type Node struct {
	Signals
	bottom  *below
	top     *layer
	latents *latents
	whole   *together // nil where layers are not taken together

	// Joint are the latents as rows across signals; nil where they are independent. What is known of them is theirs.
	Joint *joint.Rows
}

// How says how the messages of layers are computed: of AMP, unless they are
type How struct {
	Together bool   // all layers at once: their matrices have structure, and latents are few
	Vector   []bool // of vector AMP, those that are true: their matrices have structure
	Rows     bool   // a latent is zero in all signals, or in none, with a covariance across them
}

// New is the node of a network for p signals.
func New(n prior.Network, p, threads int, how How) (*Node, error) {
	list := n.Layers()
	bottom := &latents{n: list[0].Cols, p: p, threads: threads, prior: n.Latents()}
	bottom.signal = bottom.update
	node := &Node{Signals: bottom, latents: bottom}
	if how.Rows {
		r := newRows(*bottom)
		bottom = &r.latents
		node.Signals, node.latents, node.Joint = r, bottom, r.joint
	}
	if how.Together {
		own := layer{n: n.Entries(), width: bottom.n, p: p, threads: threads, slack: n.Slack(), inner: node.Signals, start: bottom.moments}
		own.allocate()
		made := newTogether(list, own)
		node.Signals, node.top, node.bottom, node.whole = made, &made.layer, &made.below, made
		return node, nil
	}
	for i, l := range list {
		start, slack := bottom.moments, 0.0
		if i > 0 {
			before, err := prior.NewNetwork(list[:i], n.Latents(), 0)
			if err != nil {
				return nil, err
			}
			start = func() (mean, variance []float64) { return moments(before.WithLatents(bottom.prior), l.Cols) }
		}
		if i == len(list)-1 {
			slack = n.Slack()
		}
		own := layer{
			n: l.Rows, width: l.Cols, p: p, threads: threads, f: l.Activation, bias: l.Bias, slack: slack, inner: node.Signals, start: start,
		}
		own.allocate()
		var err error
		if how.Vector[i] {
			node.Signals, err = newVector(l, own)
		} else {
			node.Signals, err = newIndependent(l, own)
		}
		if err != nil {
			return nil, fmt.Errorf("W%d: %w", i+1, err)
		}
		node.top = node.Signals.(interface{ own() *layer }).own()
		if i == 0 {
			node.bottom = &node.top.below
		}
	}
	return node, nil
}

func newIndependent(l prior.Layer, own layer) (*independent, error) {
	made := &independent{layer: own, nothing: l.Nothing() && own.slack == 0}
	f, err := operator.NewDense(l.Rows, l.Cols, l.Weights)
	if err != nil {
		return nil, err
	}
	if made.sweep, err = f.NewSweep(own.p, own.p, own.threads); err != nil {
		return nil, err
	}
	made.allocateMessages()
	return made, nil
}

func (l *independent) allocateMessages() {
	for _, v := range []*[]float64{&l.centre, &l.backward, &l.curvature} {
		*v = make([]float64, l.p*l.width)
	}
	l.g, l.dg, l.logMass = make([]float64, l.n*l.p), make([]float64, l.n*l.p), make([]float64, l.n)
	l.rows = l.outputRows
}

// SetModel changes the prior of the latents, and the variance of noise on the signals' entries.
func (n *Node) SetModel(latents prior.Prior, slack float64) {
	n.latents.prior, n.top.slack = latents, slack
}

// Latent is the posterior of the latents, mean and variance (P×N₂), and Fields what x says of them. They are the node's own.
func (n *Node) Latent() (mean, variance []float64) { return n.bottom.h, n.bottom.c }

// Tangent is what the latents of a signal, of layers that are taken together, do to it: X = f(m), J = ∂f/∂m (N×N₂), and of the sites that stand for the prior of each the
// precision t and the slope r - tm.
type Tangent struct{ X, J, Precision, Slope []float64 }

// Tangent is that of signal k.
func (n *Node) Tangent(k int) Tangent { return n.whole.tangent(k) }

// At sets x to signal k where its latents are moved by a part of a step.
func (n *Node) At(k int, step []float64, part float64, x []float64) { n.whole.at(k, step, part, x) }

// Move moves the latents of signal k by a part of a step.
func (n *Node) Move(k int, step []float64, part float64) { n.whole.move(k, step, part) }

// Fields are those on the latents (P×N₂).
func (n *Node) Fields() (lambda, sigma []float64) { return n.bottom.lambda, n.bottom.sigma }

// Start implements [Signals].
func (l *independent) Start() {
	mean, variance := l.start()
	l.below.reset(mean, variance, l.p)
	copy(l.centre, l.h)
	clear(l.g)
	clear(l.dg)
	l.inner.Start()
}

// Update implements [Signals].
func (l *independent) Update(x, c, lambda, sigma []float64, delta float64) error {
	if l.nothing {
		copy(l.lambda, lambda)
		copy(l.sigma, sigma)
		err := l.inner.Update(x, c, l.lambda, l.sigma, delta)
		copy(l.h, x)
		copy(l.c, c)
		return err
	}
	l.begin(x, c, lambda, sigma, delta)
	if err := l.sweep.Run(l.backward, l.curvature, l.h, l.c, l.rows); err != nil {
		return err
	}
	for j, h := range l.curvature {
		if h < 0 { // else u is less sure with the field than without, and the former one serves
			l.sigma[j] = -1 / h
		}
		l.centre[j] = l.h[j] + delta*(l.centre[j]-l.h[j])
		if l.lambda[j] = 0; !math.IsInf(l.sigma[j], 1) {
			l.lambda[j] = l.centre[j] + l.sigma[j]*l.backward[j]
		}
	}
	if err := l.inner.Update(l.newH, l.newC, l.lambda, l.sigma, delta); err != nil {
		return err
	}
	for j, h := range l.newH {
		l.h[j] = h
		l.c[j] = l.newC[j] + delta*(l.c[j]-l.newC[j])
	}
	return nil
}

// outputRows is the part of an update between the halves of the sweep over F.
func (l *independent) outputRows(first int, z, v, g, dg []float64) {
	var lambda, sigma, omega [activation.AtOnce]float64
	var found [activation.AtOnce]activation.Moments
	clear(l.logMass[first : first+len(z)/l.p])
	for from := 0; from < len(z); from += activation.AtOnce {
		count := min(activation.AtOnce, len(z)-from)
		for a := range count {
			j := from + a
			i, k := first+j/l.p, j%l.p
			lambda[a], sigma[a] = l.fieldX[k*l.n+i], l.fieldVar[k*l.n+i]
			omega[a] = z[j] - v[j]*l.g[first*l.p+j]
			if l.bias != nil {
				omega[a] += l.bias[i]
			}
		}
		l.f.Entries(found[:count], lambda[:], sigma[:], omega[:], v[from:], l.slack)
		for a, m := range found[:count] {
			j := from + a
			i, k, at := first+j/l.p, j%l.p, first*l.p+j
			l.x[k*l.n+i], l.xVar[k*l.n+i] = m.X, m.XVar
			g[j], dg[j] = 0, 0
			if v[j] > 0 {
				g[j], dg[j] = m.Off/v[j], (m.UVar/v[j]-1)/v[j]
			}
			g[j] += l.delta * (l.g[at] - g[j])
			dg[j] += l.delta * (l.dg[at] - dg[j])
			l.g[at], l.dg[at] = g[j], dg[j]
			l.logMass[i] += m.LogMass + 0.5*v[j]*g[j]*g[j]
		}
	}
}

// LogNorm implements [Signals]:
//
//	Σ [log-mass + ½ V g²] + Σ ½ (C_h + (ĥ-λ_h)²)/Σ_h + that of h.
func (l *independent) LogNorm() (total float64) {
	if l.nothing {
		return l.inner.LogNorm()
	}
	for _, m := range l.logMass {
		total += m
	}
	for j, h := range l.h {
		if sigma := l.sigma[j]; !math.IsInf(sigma, 1) {
			d := h - l.lambda[j]
			total += 0.5 * (l.c[j] + d*d) / sigma
		}
	}
	return total + l.inner.LogNorm()
}

// Kept implements [Signals].
func (l *independent) Kept() [][]float64 {
	return append([][]float64{l.h, l.c, l.lambda, l.sigma, l.centre, l.g, l.dg}, l.inner.Kept()...)
}

// Linear implements [Signals].
func (l *independent) Linear() [][]float64 {
	return append([][]float64{l.h, l.centre, l.g}, l.inner.Linear()...)
}
