package amp

import (
	"context"
	"math"

	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/internal/parallel"
	"github.com/calamp/calamp/operator"
	"github.com/calamp/calamp/prior"
)

// exchangeable is the iteration for signals that differ by chance alone, whose errors agree: what a sensor's offset does to one signal
// it does to all. The covariances of z and of the fields are two numbers each,
//
//	V = (v-w) I + w 11ᵀ,   fields with the covariance S I + b 11ᵀ,
//
// of which S and S+Pb are the inverse sums of -∂g over what signals differ in, and over what they have in common. A field is then off by an unknown
// c ~ N(0, b) in all signals of an entry (see [prior.CommonShift]). Variances are scalar: W² is its mean. [jointRows] has no offsets. With one variance a signal 35 to 93 % of the offsets of 4 to 8
// signals are within their intervals, and 94 to 98 % with this.
type exchangeable struct {
	*State
	sweep operator.Sweep
	delta float64

	apart, shift      float64   // S and b
	newX, newC, newDG []float64 // P×N, M×P
	newSum            []float64 // M
	together          []float64 // N, variance of an entry's sum over the signals, damped
	logs, pulls       []float64 // N
	rows              operator.RowFunc
	entries           func(chunk int)
	blocks            parallel.Pool[channel.Block]
	works             parallel.Pool[exchangeableWork]
}

// exchangeableWork is what an entry is computed in.
type exchangeableWork struct {
	shift                         prior.CommonShift
	lambda, sigma, mean, variance []float64
}

func newExchangeableWork(p int) *exchangeableWork {
	w := &exchangeableWork{}
	for _, v := range []*[]float64{&w.lambda, &w.sigma, &w.mean, &w.variance} {
		*v = make([]float64, p)
	}
	return w
}

func newExchangeable(s *State) *exchangeable {
	e := &exchangeable{State: s}
	e.newX, e.newC, e.newDG = make([]float64, len(s.X)), make([]float64, len(s.X)), make([]float64, len(s.DG))
	e.newSum = make([]float64, s.M)
	s.sumDG, s.common = make([]float64, s.M), make([]float64, s.M)
	s.sensors = s.block(0, s.M)
	for _, v := range []*[]float64{&e.together, &e.logs, &e.pulls, &s.squares} {
		*v = make([]float64, s.N)
	}
	e.rows, e.entries = e.outputRows, e.inputEntries
	e.works.New = func() *exchangeableWork { return newExchangeableWork(s.P) }
	s.keep(s.sumDG, e.together)
	for i := range e.together {
		for k := range s.P {
			e.together[i] += s.C[k*s.N+i]
		}
	}
	return e
}

// sweepsOver implements [Iteration].
func (e *exchangeable) sweepsOver(w operator.Operator) (s operator.Sweeps, err error) {
	s.Linear, err = w.NewSweep(e.P, 0, e.Threads)
	return s, err
}

// prepare implements [Iteration].
func (e *exchangeable) prepare(context.Context) error { return nil }

func (e *exchangeable) use(s operator.Sweeps) { e.sweep = s.Linear }

// Step implements [Iteration].
func (e *exchangeable) Step(delta float64) error {
	e.delta = delta
	e.fieldPull = e.nextPull
	w, p := e.W.MeanSquare(), float64(e.P)
	each := w * sum(e.C) / p
	common := max(0, (w*sum(e.together)/p-each)/(p-1))
	for mu := range e.common {
		e.common[mu] = common
	}
	for j := range e.V {
		e.V[j] = each
	}
	if err := e.sweep.Run(e.Onward, nil, e.X, nil, e.rows); err != nil {
		return err
	}
	e.precisions()
	parallel.Run((e.N+entryChunk-1)/entryChunk, e.Threads, e.entries)
	e.nextPull = sum(e.pulls)
	for k := range e.P {
		from, to := k*e.N, (k+1)*e.N
		e.takeUp(k, e.newX[from:to], e.newC[from:to], delta)
	}
	return nil
}

// outputRows is the part of an iteration between the two halves of the sweep.
func (e *exchangeable) outputRows(first int, z, _, g, _ []float64) {
	if e.interrupted() {
		return
	}
	count := len(z) / e.P
	b := e.blocks.Get()
	*b = e.block(first, first+count)
	from := first * e.P
	oldG, oldDG, oldSum := b.G, b.DG, b.SumDG
	for row := range count {
		own := oldG[row*e.P : (row+1)*e.P]
		common := e.common[first+row]
		together := common * sum(own)
		for k, old := range own {
			j := row*e.P + k
			b.Omega[j] = z[j] - (e.V[from+j]-common)*old - together
		}
	}
	e.seen(first, len(z))
	dg, sums := e.newDG[from:from+len(z)], e.newSum[first:first+count]
	b.G, b.DG, b.SumDG = g, dg, sums
	e.model.Channel.Output(b)
	e.temper(b)
	e.blocks.Put(b)
	if e.delta > 0 {
		for j := range g {
			g[j] += e.delta * (oldG[j] - g[j])
			dg[j] += e.delta * (oldDG[j] - dg[j])
		}
		for row := range sums {
			sums[row] += e.delta * (oldSum[row] - sums[row])
		}
	}
	copy(oldG, g)
	copy(oldDG, dg)
	copy(oldSum, sums)
}

// precisions sets S and b; where sensors are in doubt the evidence may be convex, and the former ones serve.
func (e *exchangeable) precisions() {
	w, p := e.W.MeanSquare(), float64(e.P)
	together := -w * sum(e.sumDG) / p
	if apart := (-w*sum(e.DG) - together) / (p - 1); apart > 0 {
		e.apart = 1 / apart
	}
	if together > 0 {
		e.shift = max(0, (1/together-e.apart)/p)
	}
}

// inputEntries turns the backward products into fields, and those into posteriors.
func (e *exchangeable) inputEntries(chunk int) {
	if e.interrupted() {
		return
	}
	w := e.works.Get()
	defer e.works.Put(w)
	for i := chunk * entryChunk; i < min((chunk+1)*entryChunk, e.N); i++ {
		e.inputEntry(w, i)
	}
}

func (e *exchangeable) inputEntry(w *exchangeableWork, i int) {
	p, together := float64(e.P), 0.0
	for k := range e.P {
		at := k*e.N + i
		e.Centre[at] = e.X[at] + e.delta*(e.Centre[at]-e.X[at])
		together += e.Onward[at]
	}
	for k := range e.P {
		at := k*e.N + i
		w.lambda[k], w.sigma[k] = e.Centre[at]+e.apart*e.Onward[at]+e.shift*together, e.apart
	}
	w.shift.Posterior(prior.At(e.model.Prior, i), w.mean, w.variance, w.lambda, w.sigma, e.shift)
	e.together[i] += (1 - e.delta) * (w.shift.SumVar - e.together[i])

	// In the metric of the fields, what signals have in common has the variance S+Pb.
	far := e.apart + p*e.shift
	variances, sumX, sumOff, pull, square := 0.0, 0.0, 0.0, 0.0, 0.0
	for k, x := range w.mean {
		off := w.lambda[k] - x
		variances += w.variance[k]
		sumX += x
		sumOff += off
		pull += x * (off / e.apart)
		square += off * (off / e.apart)
		at := k*e.N + i
		e.newX[at], e.newC[at] = x, w.variance[k]
		e.Lambda[at], e.Sigma[at] = w.lambda[k]-w.shift.Mean, e.apart+w.shift.Var
	}
	less := 1/far - 1/e.apart
	e.pulls[i] = pull + sumX*sumOff/p*less
	e.squares[i] = square + sumOff*sumOff/p*less + variances/e.apart + w.shift.SumVar/p*less
	e.logs[i] = w.shift.LogNorm + 0.5*math.Log1p(p*e.shift/e.apart)
}

// LogEvidence implements [Iteration].
func (e *exchangeable) LogEvidence() float64 {
	return sum(e.LogZ) + 0.5*e.quadratic() + sum(e.logs) + 0.5*sum(e.squares)
}

// quadratic is Σ gᵀVg.
func (e *exchangeable) quadratic() (total float64) {
	for mu := range e.M {
		g := e.G[mu*e.P : (mu+1)*e.P]
		all := sum(g)
		total += e.common[mu] * all * all
		for k, v := range g {
			total += (e.V[mu*e.P+k] - e.common[mu]) * v * v
		}
	}
	return total
}

// MeanV implements [Iteration].
func (e *exchangeable) MeanV() (v, off float64) { return e.meanCovariance() }

// meanCovariance is the mean variance of z, and the mean covariance of two signals' z.
func (s *State) meanCovariance() (v, off float64) {
	return Mean(s.V), sum(s.common) / float64(s.M)
}

// scaleSums implements [Iteration].
func (e *exchangeable) scaleSums(quadratic, volume float64) (q, v float64) {
	return e.model.Channel.(channel.Calibrating).ScaleQuadratic(quadratic, &e.sensors), volume + e.quadratic()
}
