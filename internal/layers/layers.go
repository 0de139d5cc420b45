// Package layers is the node of signals that come out of a network, x = f(Fh + b): given fields on x it finds the posterior of x, by messages to and from h, which are
// the node's own, and of which the prior may be a layer again. It knows fields, and nothing of sensors or of how fields came about.
//
// One update is one iteration of multi-layer AMP (A. Manoel, F. Krzakala, M. Mézard and L. Zdeborová, "Multi-layer generalized linear estimation", ISIT 2017)
// for matrices F with independent entries,
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

	"github.com/calamp/calamp/internal/activation"
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

func (l *latents) Kept() [][]float64 { return nil }

func (l *latents) Linear() [][]float64 { return nil }

// Layer is the node of one layer.
type Layer struct {
	n, width, p int
	f           activation.Function
	bias        []float64 // N; nil for none
	slack       float64
	inner       Signals
	nothing     bool // h is x
	sweep       operator.Sweep
	start       func() (mean, variance []float64) // of h, the same for all signals

	// Messages, and what they were made of: ĥ, C_h and the centres of fields (P×N₂), g and ∂g (N×P); damped.
	h, c, centre  []float64
	g, dg         []float64
	lambda, sigma []float64 // P×N₂, the fields on h
	backward      []float64 // P×N₂, Fᵀg
	curvature     []float64 // P×N₂, F²ᵀ∂g
	newH, newC    []float64

	// Of the present update.
	x, xVar, fieldX, fieldVar []float64
	delta                     float64
	logMass                   []float64 // N: Σ_k log-mass + ½ V g²
	rows                      operator.RowFunc
}

// Node is a network's, with the prior of its latents.
type Node struct {
	*Layer
	bottom  *Layer
	latents *latents
}

// New is the node of a network for p signals.
func New(n prior.Network, p, threads int) (*Node, error) {
	list := n.Layers()
	first := list[0]
	bottom := &latents{n: first.Cols, p: p, threads: threads, prior: n.Latents()}
	bottom.signal = bottom.update
	node := &Node{latents: bottom}
	var inner Signals = bottom
	for i, l := range list {
		f, err := operator.NewDense(l.Rows, l.Cols, l.Weights)
		if err != nil {
			return nil, fmt.Errorf("W%d: %w", i+1, err)
		}
		layer := &Layer{n: l.Rows, width: l.Cols, p: p, f: l.Activation, bias: l.Bias, inner: inner, nothing: l.Nothing() && n.Slack() == 0}
		if layer.sweep, err = f.NewSweep(p, p, threads); err != nil {
			return nil, err
		}
		layer.allocate()
		if i == 0 {
			node.bottom = layer
			layer.start = bottom.moments
		} else {
			below, err := prior.NewNetwork(list[:i], n.Latents(), 0)
			if err != nil {
				return nil, err
			}
			layer.start = func() (mean, variance []float64) { return moments(below.WithLatents(bottom.prior), l.Cols) }
		}
		inner, node.Layer = layer, layer
	}
	node.slack = n.Slack()
	return node, nil
}

func (l *Layer) allocate() {
	for _, v := range []*[]float64{&l.h, &l.c, &l.centre, &l.lambda, &l.sigma, &l.backward, &l.curvature, &l.newH, &l.newC} {
		*v = make([]float64, l.p*l.width)
	}
	l.g, l.dg, l.logMass = make([]float64, l.n*l.p), make([]float64, l.n*l.p), make([]float64, l.n)
	l.rows = l.outputRows
}

// SetLatents changes the prior of the latents.
func (n *Node) SetLatents(p prior.Prior) { n.latents.prior = p }

// Latent is the posterior of the latents, mean and variance (P×N₂), and Fields what x says of them. They are the node's own.
func (n *Node) Latent() (mean, variance []float64) { return n.bottom.h, n.bottom.c }

// Fields are those on the latents (P×N₂).
func (n *Node) Fields() (lambda, sigma []float64) { return n.bottom.lambda, n.bottom.sigma }

// Start implements [Signals].
func (l *Layer) Start() {
	mean, variance := l.start()
	for k := range l.p {
		copy(l.h[k*l.width:], mean)
		copy(l.c[k*l.width:], variance)
	}
	copy(l.centre, l.h)
	clear(l.g)
	clear(l.dg)
	for j := range l.sigma {
		l.lambda[j], l.sigma[j] = 0, math.Inf(1)
	}
	l.inner.Start()
}

// Update implements [Signals].
func (l *Layer) Update(x, c, lambda, sigma []float64, delta float64) error {
	if l.nothing {
		copy(l.lambda, lambda)
		copy(l.sigma, sigma)
		err := l.inner.Update(x, c, l.lambda, l.sigma, delta)
		copy(l.h, x)
		copy(l.c, c)
		return err
	}
	l.x, l.xVar, l.fieldX, l.fieldVar, l.delta = x, c, lambda, sigma, delta
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
func (l *Layer) outputRows(first int, z, v, g, dg []float64) {
	for row := range len(z) / l.p {
		i := first + row
		bias, mass := 0.0, 0.0
		if l.bias != nil {
			bias = l.bias[i]
		}
		for k := range l.p {
			j, at, entry := row*l.p+k, i*l.p+k, k*l.n+i
			omega := z[j] + bias - v[j]*l.g[at]
			m := l.f.Entry(l.fieldX[entry], l.fieldVar[entry], omega, v[j], l.slack)
			l.x[entry], l.xVar[entry] = m.X, m.XVar
			g[j], dg[j] = 0, 0
			if v[j] > 0 {
				g[j], dg[j] = m.Off/v[j], (m.UVar/v[j]-1)/v[j]
			}
			g[j] += l.delta * (l.g[at] - g[j])
			dg[j] += l.delta * (l.dg[at] - dg[j])
			l.g[at], l.dg[at] = g[j], dg[j]
			mass += m.LogMass + 0.5*v[j]*g[j]*g[j]
		}
		l.logMass[i] = mass
	}
}

// LogNorm implements [Signals]:
//
//	Σ [log-mass + ½ V g²] + Σ ½ (C_h + (ĥ-λ_h)²)/Σ_h + that of h.
func (l *Layer) LogNorm() (total float64) {
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
func (l *Layer) Kept() [][]float64 {
	return append([][]float64{l.h, l.c, l.centre, l.g, l.dg, l.lambda, l.sigma}, l.inner.Kept()...)
}

// Linear implements [Signals].
func (l *Layer) Linear() [][]float64 {
	return append([][]float64{l.h, l.centre, l.g}, l.inner.Linear()...)
}
