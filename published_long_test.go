package calamp_test

import (
	"context"
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/calamp/calamp"
	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/internal/tables"
	"github.com/calamp/calamp/operator"
	"github.com/calamp/calamp/prior"
	"github.com/calamp/calamp/recovery"
	"github.com/calamp/calamp/solver"
	"github.com/calamp/calamp/teacher"
)

// published is the real-valued recursion of Schülke, Caltagirone and Zdeborová
// (2015): GAMP whose estimates of z and fields are damped in natural parameters,
// from a random start, for a given number of iterations or until nothing changes. Their gain posterior by
// incomplete gamma functions is replaced by an accurate one.
type published struct {
	w, w2       *mat.Dense
	y           *mat.Dense
	signal      prior.Prior
	channel     channel.Channel
	damping     float64 // 1 is none
	x, c        *mat.Dense
	omega, v    *mat.Dense
	lambda, sig *mat.Dense
	block       *channel.Block
}

func newPublished(p *calamp.Problem, density float64, seed uint64) *published {
	m, n := p.W.Dims()
	_, signals := p.Y.Dims()
	a := &published{y: p.Y, signal: p.Prior, channel: p.Channel, damping: 0.8}
	a.w, a.w2 = mat.NewDense(m, n, nil), mat.NewDense(m, n, nil)
	for mu := range m {
		if err := p.W.(operator.Matrix).RowInto(a.w.RawRowView(mu), mu); err != nil {
			panic(err) // of a matrix in memory
		}
	}
	a.w2.MulElem(a.w, a.w)
	rng := rand.New(rand.NewPCG(seed, 3))
	fill := func(rows int, value func() float64) *mat.Dense {
		d := mat.NewDense(rows, signals, nil)
		d.Apply(func(_, _ int, _ float64) float64 { return value() }, d)
		return d
	}
	a.x = fill(n, rng.NormFloat64)
	a.c = fill(n, func() float64 { return density })
	a.lambda, a.sig = fill(n, func() float64 { return 0 }), fill(n, func() float64 { return density })
	a.omega, a.v = mat.DenseCopyOf(p.Y), fill(m, func() float64 { return 1 })
	a.block = channel.NewBlock(p.Channel, m, signals)
	a.block.Y = p.Y.RawMatrix().Data
	return a
}

// damp mixes variances harmonically, and means by the same weights.
func (a *published) damp(mean, variance, oldMean, oldVariance *mat.Dense) {
	m, v, om, ov := mean.RawMatrix().Data, variance.RawMatrix().Data, oldMean.RawMatrix().Data, oldVariance.RawMatrix().Data
	for i := range m {
		damped := 1 / (a.damping/v[i] + (1-a.damping)/a.damping/ov[i])
		weight := a.damping * damped / v[i]
		v[i] = damped
		m[i] = weight*m[i] + (1-weight)*om[i]
	}
}

func (a *published) run(iterations int) {
	_, signals := a.y.Dims()
	var omega, v, lambda, sigma mat.Dense
	before := mat.DenseCopyOf(a.x)
	for t := range iterations {
		v.Mul(a.w2, a.c)
		omega.Mul(a.w, a.x)
		for j, vj := range v.RawMatrix().Data {
			omega.RawMatrix().Data[j] -= vj * a.block.G[j]
		}
		if t > 0 && signals > 1 {
			a.damp(&omega, &v, a.omega, a.v)
		}
		a.omega.Copy(&omega)
		a.v.Copy(&v)
		a.block.Omega, a.block.V = a.omega.RawMatrix().Data, a.v.RawMatrix().Data
		a.channel.Output(a.block)
		m, _ := a.y.Dims()
		sigma.Mul(a.w2.T(), mat.NewDense(m, signals, a.block.DG))
		sigma.Apply(func(_, _ int, h float64) float64 {
			if h >= 0 {
				return 1 // as the published code has it: the signals' variance
			}
			return -1 / h
		}, &sigma)
		lambda.Mul(a.w.T(), mat.NewDense(m, signals, a.block.G))
		lambda.MulElem(&lambda, &sigma)
		lambda.Add(&lambda, a.x)
		if t > 0 {
			a.damp(&lambda, &sigma, a.lambda, a.sig)
		}
		a.lambda.Copy(&lambda)
		a.sig.Copy(&sigma)
		before.Copy(a.x)
		a.signal.Posterior(a.x.RawMatrix().Data, a.c.RawMatrix().Data, a.lambda.RawMatrix().Data, a.sig.RawMatrix().Data)
		before.Sub(before, a.x)
		if mat.Norm(before, 2) < 1e-13*mat.Norm(a.x, 2) {
			return // nothing more will happen
		}
	}
}

// The two settings of the published code, faulty sensors with known gains and
// unknown gains, at its N = 500, without noise. Success is a correlation of 1 - 1e-6 at the
// end, for it after its 1000 iterations, since nothing but the truth tells it when to stop.
func TestLongCalAMPSettings(t *testing.T) {
	longOnly(t)
	table := tables.New(t, "", "setting", "ρ", "P", "factor", "M", "calamp", "published")
	const n, broken = 500, 0.2
	for _, setting := range []string{"faulty", "gain"} {
		for _, rho := range []float64{0.2, 0.4} {
			for _, p := range []int{2, 5} {
				for _, factor := range []float64{1.1, 1.25, 1.5} {
					signal := prior.GaussBernoulli{Density: rho, SignalVar: 1}
					alpha := recovery.AlphaCS(signal) / (1 - broken)
					te := teacher.Teacher{N: n, P: p, Signal: signal, Gain: channel.Uniform(0.6, 1.4)}
					if setting == "gain" {
						alpha = max(recovery.AlphaCS(signal), recovery.AlphaMin(rho, p))
					}
					te.M = int(math.Round(factor * alpha * n))
					var ours, theirs int
					count := seedCount(4)
					for seed := range uint64(count) {
						in, err := te.Draw(seed)
						if err != nil {
							t.Fatal(err)
						}
						problem := te.Problem(in)
						wide := channel.Uniform(0.5, 1.5) // the published code's prior, wider than its truth
						mine := channel.Faulty{Working: channel.Gain{Prior: wide, NoiseVar: 1e-14}}
						their := channel.Channel(channel.Gain{Prior: wide, NoiseVar: 1e-15})
						if setting == "faulty" {
							spoilKnown(in, broken, rho, seed)
							mine.Working = channel.AWGN{NoiseVar: 1e-14}
							their = channel.Faulty{Working: channel.AWGN{NoiseVar: 1e-15}, Rate: broken, Var: rho}
						}
						problem.Channel = mine
						res, err := calamp.Solve(context.Background(), problem, &calamp.Options{Settings: solver.Settings{Threads: 1, MaxIter: 1000}})
						if err != nil {
							t.Fatal(err)
						}
						problem.Channel = their
						a := newPublished(problem, rho, seed)
						a.run(1000)
						if calamp.Score(res.X, res.S, in.Truth).XOneMinusNCC < 1e-6 {
							ours++
						}
						if calamp.Score(a.x, res.S, in.Truth).XOneMinusNCC < 1e-6 {
							theirs++
						}
					}
					table.Row("| %s | %.1f | %d | %.2f | %d | %d/%d | %d/%d |", setting, rho, p, factor, te.M, ours, count, theirs, count)
					if ours < theirs {
						t.Errorf("%s, ρ = %g, P = %d, factor %g: %d recovered, the published algorithm has %d", setting, rho, p, factor, ours, theirs)
					}
				}
			}
		}
	}
}

// spoilKnown makes an instance one of known gains, all of them one, with a
// fraction of broken sensors.
func spoilKnown(in *teacher.Instance, fraction, variance float64, seed uint64) {
	m, p := in.Y.Dims()
	in.Y.Apply(func(mu, _ int, y float64) float64 { return y * in.Truth.S[mu] }, in.Y)
	rng := rand.New(rand.NewPCG(seed, 7))
	for _, mu := range rng.Perm(m)[:int(math.Ceil(fraction*float64(m)))] {
		for k := range p {
			in.Y.Set(mu, k, math.Sqrt(variance)*rng.NormFloat64())
		}
	}
	for mu := range in.Truth.S {
		in.Truth.S[mu] = 1
	}
}
