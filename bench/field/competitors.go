package main

import (
	"context"
	"math"
	"math/cmplx"
	"time"

	"gonum.org/v1/gonum/mat"

	"github.com/calamp/calamp"
	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/internal/baseline"
	"github.com/calamp/calamp/operator"
	"github.com/calamp/calamp/prior"
)

// competitorTime is how long each competitor may take; what it has by then is its answer.
const competitorTime = 20 * time.Second

// held is how far amplitudes of complex gains may be from one where calamp is given that they are one.
const held = 1e-6

// others are the errors of other ways to the same signals.
type others struct {
	pursuit     float64 // orthogonal matching pursuit, given gains and noise
	lasso       float64 // ℓ1, given gains and noise, and that signals are positive where they are
	calamp      float64 // calamp, given gains, noise and the moments of the signals
	alternating float64 // ℓ1 and least squares in turn, given nothing
	ignored     float64 // matching pursuit with all gains one, given how far they spread
}

// known is the best with the gains given.
func (o *others) known() float64 { return min(o.pursuit, o.lasso, o.calamp) }

// compete runs them all. The error is that of ctx.
func (p *problem) compete(ctx context.Context) (o others, err error) {
	z := p.calibrated()
	noise := p.left(z)
	run := func(method func(ctx context.Context) (baseline.Parts, error), free bool) float64 {
		within, cancel := context.WithTimeout(ctx, competitorTime)
		defer cancel()
		x, failed := method(within)
		if err = ctx.Err(); x.Re == nil || failed != nil && within.Err() == nil {
			return 1 // nothing found
		}
		if e := p.judge(&answer{x: x}, free).error; !math.IsNaN(e) {
			return e
		}
		return 1
	}
	o.pursuit = run(func(ctx context.Context) (baseline.Parts, error) { return baseline.Pursuit(ctx, p.w, z, noise) }, false)
	o.lasso = run(func(ctx context.Context) (baseline.Parts, error) {
		return baseline.Lasso(ctx, p.w, z, noise, p.positive)
	}, false)
	o.calamp = run(func(ctx context.Context) (baseline.Parts, error) { return p.given(ctx, z, noise) }, false)
	o.alternating = run(func(ctx context.Context) (baseline.Parts, error) {
		x, _, err := baseline.AlternatingLasso(ctx, p.w, p.y)
		return x, err
	}, true)
	o.ignored = run(func(ctx context.Context) (baseline.Parts, error) {
		return baseline.Pursuit(ctx, p.w, p.y, noise+p.spread()*presentPower(p.y))
	}, true)
	return o, err
}

// calibrated are the readings for those who know gains, offsets, and which sensors and readings are wrong.
func (p *problem) calibrated() baseline.Parts {
	return p.y.Clone().Apply(func(mu, k int, v complex128) complex128 {
		if p.dead[mu] || p.wrong != nil && p.wrong[mu][k] {
			return complex(math.NaN(), 0)
		}
		return p.s[mu] * (v - p.offset[mu])
	})
}

// left is the mean square of what the truth leaves of calibrated readings: noise, and what the flaw does.
func (p *problem) left(z baseline.Parts) float64 {
	exact := p.w.Mul(p.x)
	return presentPower(z.Clone().Apply(func(mu, k int, v complex128) complex128 { return v - exact.At(mu, k) }))
}

// presentPower is the mean square of what is not NaN.
func presentPower(a baseline.Parts) float64 {
	total, count := 0.0, 0.0
	a.Clone().Apply(func(_, _ int, v complex128) complex128 {
		if !cmplx.IsNaN(v) {
			total += power(v)
			count++
		}
		return v
	})
	return total / max(1, count)
}

// spread is the variance of s, relative.
func (p *problem) spread() float64 {
	var sum complex128
	square := 0.0
	for _, s := range p.s {
		sum += s
		square += power(s)
	}
	return max(0, square/float64(len(p.s))-power(sum)/float64(len(p.s)*len(p.s)))
}

// given is calamp with the gains held at one, for readings that are calibrated.
func (p *problem) given(ctx context.Context, z baseline.Parts, noise float64) (baseline.Parts, error) {
	density := p.density()
	mean, square := p.moments()
	in := &calamp.Problem{W: p.operator(), Y: p.pairs(z)}
	if p.kind.complex {
		in.Prior = prior.ComplexGaussBernoulli{Density: density, SignalVar: square / density, Learn: prior.Density | prior.SignalVar}
		in.Channel = channel.ComplexGain{Prior: channel.ComplexPrior{Lo: 1 - held, Hi: 1 + held, Concentration: math.Inf(1)}, NoiseVar: noise}
	} else {
		ones := make([]float64, len(p.s))
		for mu := range ones {
			ones[mu] = 1
		}
		start := prior.GaussBernoulli{Density: density, SignalMean: mean / density, SignalVar: max(0.1*square/density, square/density-mean*mean/(density*density))}
		in.Prior = start.Learning(prior.Density | prior.SignalMean | prior.SignalVar)
		in.Channel = channel.AWGN{NoiseVar: noise, S: ones}
	}
	result, err := calamp.Solve(ctx, in, nil)
	if result == nil || result.X == nil {
		return baseline.Parts{}, err
	}
	return p.unpaired(result.X), err
}

// moments are the mean and the mean square of the signals' entries.
func (p *problem) moments() (mean, square float64) {
	n, count := p.x.Dims()
	return mat.Sum(p.x.Re) / float64(n*count), meanPower(p.x)
}

// operator is W as calamp has it.
func (p *problem) operator() operator.Operator {
	m, n := p.w.Dims()
	if p.w.Im == nil {
		w, err := operator.NewDense(m, n, mat.DenseCopyOf(p.w.Re).RawMatrix().Data)
		if err != nil {
			panic(err) // an instrument has no NaN
		}
		return w
	}
	var values []complex128
	for mu := range m {
		for i := range n {
			values = append(values, p.w.At(mu, i))
		}
	}
	w, err := operator.NewComplex(m, n, values)
	if err != nil {
		panic(err) // the same
	}
	return w
}

// pairs is a matrix as calamp has it: where the problem is complex, the two parts of a column beside each other.
func (p *problem) pairs(a baseline.Parts) *mat.Dense {
	if !p.kind.complex {
		return a.Re
	}
	rows, columns := a.Dims()
	out := mat.NewDense(rows, 2*columns, nil)
	for i := range rows {
		for k := range columns {
			v := a.At(i, k)
			if cmplx.IsNaN(v) {
				v = complex(math.NaN(), math.NaN())
			}
			out.Set(i, 2*k, real(v))
			out.Set(i, 2*k+1, imag(v))
		}
	}
	return out
}

// unpaired is the inverse of pairs.
func (p *problem) unpaired(a *mat.Dense) baseline.Parts {
	if !p.kind.complex {
		return baseline.Parts{Re: a}
	}
	rows, columns := a.Dims()
	out := baseline.NewParts(rows, columns/2, true)
	return out.Apply(func(i, k int, _ complex128) complex128 { return complex(a.At(i, 2*k), a.At(i, 2*k+1)) })
}
