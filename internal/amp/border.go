package amp

import (
	"math"

	"github.com/calamp/calamp/operator"
)

// border holds what removing the means of W adds to the iteration (see
// [operator.Centred]): further entries of the signals with a flat prior, whose
// posterior is their field, and further rows that read zero without noise,
//
//	x̂ = λ, C = Σ;   g = -ω/V, ∂g = -1/V.
//
// They are no sensors and no entries to anyone else: the engine's arrays, the
// change of a signal and the stop rule leave them out, the evidence and the
// scale step do not.
type border struct {
	w *operator.Centred

	x, c, centre, lambda, sigma []float64 // P×extra, as the engine's
	g, dg, omega, v             []float64 // extra×P

	// The signals' side of the sweep: the engine's arrays, P×N, followed by the
	// further entries, P×extra.
	allX, allC, allR, allH []float64

	rows operator.RowFunc
}

func newBorder(e *Engine, w *operator.Centred) *border {
	b := &border{w: w}
	for _, s := range []*[]float64{&b.centre, &b.lambda, &b.sigma, &b.g, &b.dg, &b.omega, &b.v} {
		*s = make([]float64, e.P*w.Extra)
	}
	for _, s := range []struct{ all, engine *[]float64 }{{&b.allX, &e.X}, {&b.allC, &e.C}, {&b.allR, &e.r}, {&b.allH, &e.h}} {
		*s.all = make([]float64, e.P*(e.N+w.Extra))
		*s.engine = (*s.all)[:e.P*e.N]
	}
	b.x, b.c = b.allX[e.P*e.N:], b.allC[e.P*e.N:]
	b.rows = func(first int, z, v, g, d []float64) { b.outputRows(e, first, z, v, g, d) }
	return b
}

func (b *border) state() [][]float64 {
	return [][]float64{b.x, b.c, b.centre, b.lambda, b.sigma, b.g, b.dg, b.omega, b.v}
}

// reset makes the further entries what the signals' start says they are.
func (b *border) reset(e *Engine) {
	for j, combination := range b.w.Combinations {
		for k := range e.P {
			at := k*b.w.Extra + j
			b.x[at], b.c[at] = 0, 0
			for i, q := range combination {
				b.x[at] += q * e.X[k*e.N+i]
				b.c[at] += q * (q * e.C[k*e.N+i])
			}
		}
	}
	copy(b.sigma, b.c)
	clear(b.g)
	clear(b.dg)
}

// run is the sweep over all entries and rows, and the further entries' update.
func (b *border) run(e *Engine) error {
	if err := e.sweep.Run(b.allR, b.allH, b.allX, b.allC, b.rows); err != nil {
		return err
	}
	further := e.P * e.N
	for at := range b.x {
		b.input(e, at, b.allR[further+at], b.allH[further+at])
	}
	return nil
}

// input is the update of one further entry of one signal.
func (b *border) input(e *Engine, at int, r, h float64) {
	if !(h > 0) { // as for the other entries
		b.sigma[at] = -1 / h
	}
	b.centre[at] = b.x[at] + e.delta*(b.centre[at]-b.x[at])
	b.lambda[at] = b.centre[at] + b.sigma[at]*r
	b.x[at] = b.lambda[at]
	b.c[at] = b.sigma[at] + e.delta*(b.c[at]-b.sigma[at])
}

// outputRows divides a block into sensors and further rows.
func (b *border) outputRows(e *Engine, first int, z, v, g, d []float64) {
	p := e.P
	sensors := max(0, min(len(z)/p, e.M-first)) * p
	if sensors > 0 {
		e.outputRows(first, z[:sensors], v[:sensors], g[:sensors], d[:sensors])
	}
	for j := sensors; j < len(z); j++ {
		at := (first-e.M)*p + j
		omega := z[j] - v[j]*b.g[at]
		b.omega[at], b.v[at] = omega, v[j]
		newG, newD := -omega/v[j], -1/v[j]
		b.g[at] = newG + e.delta*(b.g[at]-newG)
		b.dg[at] = newD + e.delta*(b.dg[at]-newD)
		g[j], d[j] = b.g[at], b.dg[at]
	}
}

// scaleSums is what the further rows add to Q and κ of the scale's evidence;
// the further entries add nothing to S.
func (b *border) scaleSums() (quadratic, volume float64) {
	for j, omega := range b.omega {
		quadratic += omega * (omega / b.v[j])
		volume += b.v[j] * b.g[j] * b.g[j]
	}
	return quadratic, volume
}

func (b *border) scale(c float64) {
	scale(b.x, c)
	scale(b.centre, c)
	scale(b.g, c)
}

// logEvidence is the border's part of [Engine.LogEvidence]; the pivots make it
// the same for any scaling of the border.
func (b *border) logEvidence(p int) float64 {
	total := 0.0
	for j, omega := range b.omega {
		v := b.v[j]
		total += 0.5 * (v*b.g[j]*b.g[j] - omega*(omega/v) - math.Log(2*math.Pi*v))
	}
	for at, sigma := range b.sigma {
		d := b.x[at] - b.lambda[at]
		total += 0.5 * (math.Log(2*math.Pi*sigma) + (b.c[at]+d*d)/sigma)
	}
	for _, pivot := range b.w.Pivots {
		total += float64(p) * math.Log(math.Abs(pivot))
	}
	return total
}
