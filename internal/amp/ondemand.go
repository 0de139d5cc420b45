package amp

import (
	"math"

	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/floats"

	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/operator"
)

// onDemand spares most sweeps the squares of W. V = W²C and 1/Σ = -(W²)ᵀ∂g change slowly
// in shape, and follow in size what they are sums of. So the ratios of the latest exact
// sweep to the means of V over the sensors and of 1/Σ over the entries (up to factors),
//
//	R_µk = (W²C)_µk / Σ_i q_i C_ik,          q_i = Σ_µ W_µi²,
//	R'_ik = ((W²)ᵀ∂g)_ik / Σ_µ p_µ ∂g_µk,    p_µ = Σ_i W_µi²,
//
// and the present means give V = R Σ qC and 1/Σ = -R' Σ p∂g without a product. At a fixed
// point the ratios are exact, so that it stays one. Not in the paper; measured in
// docs/log/performance.md.
//
// As a part it decides which sweeps are exact: the first ones, every few, those after a
// change of what the shapes depend on, and the last before a run may end.
type onDemand struct {
	Idle
	spare         bool      // whether the next sweep goes without squares
	rows, columns []float64 // p and q, with the further ones
	v, h          []float64 // R as the readings, R' as the entries
	sizeV, sizeH  []float64 // P, Σ qC and Σ p∂g at present
	holds         bool      // whether the ratios are those of the latest exact sweep of this run
	latest        latestExact
}

// latestExact is what else the shapes depend on, as the latest exact sweep found it.
type latestExact struct {
	noise, scale float64
	began        int
	sizes        []float64 // P, the sums of C
}

const (
	// exactEvery is how many iterations an exact sweep serves, once a run is under way.
	exactEvery = 8

	// An exact sweep follows when the noise has changed by this factor, the scale by
	// this part of itself, or a signal's Σ C by this factor: a dozen entries among a thousand can be found so fast that after three iterations
	// others hold what is left of it. (One run in five thousand at ρ = 0.0125 and Δ = 1e-14 then was sure of what was wrong, and stayed so.)
	noiseMoves = 2
	scaleMoves = 0.01
	sizeMoves  = 30
)

// newOnDemand is for sweeps over w. It reads w once.
func newOnDemand(s *State, w operator.Operator) (*onDemand, error) {
	m, n := w.Dims()
	p := &onDemand{
		rows: make([]float64, m), columns: make([]float64, n),
		v: make([]float64, len(s.all.v)), h: make([]float64, len(s.all.x)),
		sizeV: make([]float64, s.P), sizeH: make([]float64, s.P),
	}
	c := s.columns // all of them get the same
	sweep, err := w.NewSweep(c, c, s.Threads)
	if err != nil {
		return nil, err
	}
	ones, zero, squares := make([]float64, c*n), make([]float64, c*n), make([]float64, c*n)
	for i := range ones {
		ones[i] = 1
	}
	defer func() { copy(p.columns, squares) }()
	return p, sweep.Run(make([]float64, c*n), squares, zero, ones, func(first int, _, v, g, d []float64) {
		for row := range len(v) / c {
			p.rows[first+row] = v[row*c]
		}
		clear(g)
		for j := range d {
			d[j] = 1
		}
	})
}

// spares reports whether the present sweep goes without squares.
func (p *onDemand) spares() bool { return p != nil && p.spare }

// Begin implements [Part]. What an earlier run left is another problem's.
func (p *onDemand) Begin(*Solver) { p.spare, p.holds = false, false }

// End implements [Part].
func (p *onDemand) End(*Solver) { p.spare = false }

// Before implements [Part].
func (p *onDemand) Before(s *Solver) {
	now := latestExact{channel.NoiseOf(s.State.model.Channel), s.Scale, s.began, s.State.SumC}
	p.spare = p.holds && s.latest == s.Iterations-1 && !scheduled(s.Iterations-s.began) &&
		p.latest.serves(now) && !s.nearEnd()
	if !p.spare {
		sizes := append(p.latest.sizes[:0], now.sizes...)
		p.latest = now
		p.latest.sizes = sizes
	}
}

// scheduled says in which iterations of a run, from 1, sweeps are exact in any case.
func scheduled(t int) bool { return t == 1 || t == 2 || t == 4 || t%exactEvery == 0 }

// serves reports whether the shapes are still nearly those that they were.
func (l latestExact) serves(now latestExact) bool {
	for k, size := range now.sizes {
		if !(size <= sizeMoves*l.sizes[k] && l.sizes[k] <= sizeMoves*size) {
			return false
		}
	}
	return l.began == now.began && math.Abs(now.scale-l.scale) <= scaleMoves*l.scale &&
		now.noise <= noiseMoves*l.noise && l.noise <= noiseMoves*now.noise
}

// nearEnd reports whether this iteration may be the last of the run, or the last but one.
func (s *Solver) nearEnd() bool {
	if s.Iterations == s.limit {
		return true
	}
	for _, n := range s.Settled {
		if n == 0 {
			return false
		}
	}
	return true
}

// AtFixedPoint implements [Part].
func (p *onDemand) AtFixedPoint(*Solver) Verdict {
	if p.spare {
		return Anew
	}
	return GoOn
}

// begin sets the size of V for the sweep that follows.
func (p *onDemand) begin(s *State) {
	clear(p.sizeV)
	s.eachSignal(func(k, from, to, column int) {
		p.sizeV[k] += floats.Dot(p.columns[column:column+to-from], s.all.c[from:to])
	})
}

// variances sets V of the readings from first on.
func (p *onDemand) variances(v []float64, first int) {
	ratios := p.v[first:][:len(v)]
	for at := 0; at < len(v); at += len(p.sizeV) {
		for k, size := range p.sizeV {
			v[at+k] = ratios[at+k] * size
		}
	}
}

// end follows a sweep. After an exact one, which gave h = (W²)ᵀ∂g, it keeps the ratios, and
// after another it sets h.
func (p *onDemand) end(s *State, h []float64) {
	rows := blas64.Vector{N: len(p.rows), Inc: 1, Data: p.rows}
	for k := range p.sizeH {
		p.sizeH[k] = blas64.Dot(rows, blas64.Vector{N: len(p.rows), Inc: s.P, Data: s.all.dg[k:]})
	}
	to, from, factor := h, p.h, func(k int) float64 { return p.sizeH[k] }
	if !p.spare {
		to, from, factor = p.h, h, func(k int) float64 { return 1 / p.sizeH[k] }
		p.keepV(s.all.v)
	}
	s.eachSignal(func(k, first, end, _ int) {
		size := factor(k)
		for i, v := range from[first:end] {
			to[first+i] = v * size
		}
	})
}

// keepV keeps the ratios of V, unless there is nothing that they could be ratios to.
func (p *onDemand) keepV(all []float64) {
	p.holds = true
	for k, size := range p.sizeH {
		p.holds = p.holds && p.sizeV[k] > 0 && size < 0
	}
	for at := 0; at < len(all); at += len(p.sizeV) {
		for k, size := range p.sizeV {
			p.v[at+k] = all[at+k] / size
		}
	}
}

// eachSignal calls f with the entries from … to of every signal k, which are those of the
// columns from column on, and with its further ones.
func (s *sensorState) eachSignal(f func(k, from, to, column int)) {
	for k := range s.P {
		f(k, k*s.N, (k+1)*s.N, 0)
		at := s.P*s.N + k*s.further.Extra
		f(k, at, at+s.further.Extra, s.N)
	}
}
