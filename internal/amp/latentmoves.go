package amp

import (
	"fmt"
	"math"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/internal/parallel"
	"github.com/calamp/calamp/operator"
	"github.com/calamp/calamp/prior"
)

// latentMoves are [jointMoves] of signals whose layers are taken together: gains and latents take each other's place, most of all along the common scale, which a network with a scale
// of its own holds by little: of a trained decoder's images 2 to 4 % of their squares are not along its latents. Messages creep along that, or stop a hundred standard deviations before
// its end. With slopes J of the signals by the latents h, whose sites have the precision t, the changes of a step obey
//
//	t dh = JᵀWᵀ(g + dg) + r - th,   Δ dg = ds y - WJ dh + q,   Σₖ y_k dg_k + τ ds = 0,
//
// and so much of it is taken as makes the readings likelier. Fixed points stay where they are. Not in the paper.
type latentMoves struct {
	jointMoves

	along []latentSignal
}

// latentSignal is one signal: f(h), WJ, and what the sites have of a step d, slope d - ½ t d². With slack x̂ is not quite f(h), and goes along with it.
type latentSignal struct {
	f                []float64  // N
	product          *mat.Dense // M×N₂
	slope, precision []float64  // N₂
	step, next       []float64  // N₂; N: x̂ after a part of the step
}

const (
	// mostAlong is how many multiplications with entries of W the slopes of all signals may take: a second on a core.
	mostAlong = 2e9

	// latentHalvings is how often a step is halved.
	latentHalvings = 6
)

func (b *planner) latentMoves() (on bool, why string, err error) {
	n, is := prior.NetworkOf(b.Model.Prior)
	_, seen := b.W.(operator.Matrix)
	_, streamed := b.W.(operator.Streamed)
	_, noisy := channel.InOrder(b.Model.Channel).(channel.Noisy)
	return unless(fmt.Sprintf("every %d iterations", jointEvery), []reason{
		{!is || !b.layers.Together, "not needed: no latents are taken together"},
		{b.stream(), oneByOne},
		{!b.calibrates(), noCalibration},
		{b.offsetting() != nil || b.clips() || !noisy, "not possible with offsets, clipped readings, or without noise"},
		{b.untouched() != "", b.untouched()},
		{!seen || streamed || is && float64(b.m)*float64(b.n)*float64(n.LatentEntries())*float64(b.P) > mostAlong, "not possible: W is not a table in memory, or it would take long"},
	})
}

func (b *planner) makeLatentMoves(s *Solver) (Part, error) {
	j, err := newJointMoves(s.State, b.W.(operator.Matrix), nil)
	if err != nil {
		return nil, err
	}
	return &latentMoves{jointMoves: *j, along: make([]latentSignal, s.State.P)}, nil
}

// After implements [Part].
func (j *latentMoves) After(s *Solver, l *Line) Verdict {
	if l.Index%jointEvery != 0 {
		return GoOn
	}
	if j.step() {
		s.damping.jumped()
		s.damping.begin(s.startDamping)
	}
	return GoOn
}

// Report implements [Part]: error bars are those of messages.
func (j *latentMoves) Report(*Solver) {}

// step moves gains and latents; false where that is no better.
func (j *latentMoves) step() bool {
	e := j.state
	parallel.Run(e.P, e.Threads, j.linearise)
	j.sites()
	if !j.follows() || !j.solvable() {
		return false
	}
	j.solveGains()
	changes := make([][]float64, e.P)
	for k := range changes {
		changes[k] = j.follow(k)
	}
	lo, hi := e.calibration.Range()
	before, part := j.misfit(0, lo, hi), 1.0
	for range latentHalvings {
		if j.misfit(part, lo, hi) < before {
			for k := range changes {
				j.take(k, part, changes[k])
			}
			return true
		}
		part *= 0.5
	}
	return false
}

// linearise sets up signal k.
func (j *latentMoves) linearise(k int) {
	e, a, s := j.state, &j.along[k], &j.signals[k]
	tangent := e.network.Tangent(k)
	a.f, a.precision, a.slope = tangent.X, tangent.Precision, tangent.Slope
	if a.product == nil {
		a.product, a.step, a.next = mat.NewDense(e.M, len(a.slope), nil), make([]float64, len(a.slope)), make([]float64, e.N)
	}
	slopes := mat.NewDense(e.N, len(a.slope), tangent.J)
	a.product.Mul(j.w, slopes)
	var pull mat.VecDense
	pull.MulVec(slopes.T(), mat.NewVecDense(e.N, e.Onward[k*e.N:(k+1)*e.N]))
	j.read(k, jointNoise*Mean(e.V), e.X[k*e.N:(k+1)*e.N])
	s.active, s.inverse, s.pull = s.active[:0], s.inverse[:0], s.pull[:0]
	for i, t := range a.precision {
		p := pull.AtVec(i) + a.slope[i]
		s.active, s.inverse, s.pull = append(s.active, i), append(s.inverse, 1/t), append(s.pull, p)
		for mu := range s.rest {
			s.rest[mu] -= a.product.At(mu, i) * p / t
		}
	}
	s.eliminate(a.product)
}

// follow is dg of signal k, and sets dh.
func (j *latentMoves) follow(k int) (dg []float64) {
	e, a, s := j.state, &j.along[k], &j.signals[k]
	v := make([]float64, e.M)
	for mu, ds := range j.ds {
		v[mu] = ds*s.y[mu] + s.rest[mu]
	}
	dg = s.solve(v)
	var back mat.VecDense
	back.MulVec(a.product.T(), mat.NewVecDense(e.M, dg))
	for i, p := range s.pull {
		a.step[i] = s.inverse[i] * (back.AtVec(i) + p)
	}
	return dg
}

// misfit is -log of the density of gains and latents, with a part of the step taken.
func (j *latentMoves) misfit(part, lo, hi float64) float64 {
	e := j.state
	each := make([]float64, e.P)
	parallel.Run(e.P, e.Threads, func(k int) {
		a, s := &j.along[k], &j.signals[k]
		copy(a.next, a.f)
		if part > 0 {
			e.network.At(k, a.step, part, a.next)
		}
		floats.Sub(a.next, a.f)
		floats.Add(a.next, e.X[k*e.N:(k+1)*e.N])
		z := make([]float64, e.M)
		blas64.Gemv(blas.NoTrans, 1, j.w.RawMatrix(), vector(a.next), 0, vector(z))
		for mu, y := range s.y {
			if s.weight[mu] == 0 {
				continue
			}
			gain := min(max(e.S[mu]+part*j.ds[mu], lo), hi)
			off := gain*y - z[mu]
			each[k] += 0.5*s.weight[mu]*off*off - math.Log(gain)
		}
		for i, d := range a.step {
			each[k] += part * d * (0.5*a.precision[i]*part*d - a.slope[i])
		}
	})
	return floats.Sum(each)
}

// take takes a part of the step of signal k.
func (j *latentMoves) take(k int, part float64, dg []float64) {
	e, a := j.state, &j.along[k]
	e.network.Move(k, a.step, part)
	from, square := k*e.N, 0.0
	for i, x := range a.next {
		d := x - e.X[from+i]
		square += d * d
		e.X[from+i] = x
	}
	e.Left[k] = math.Sqrt(square)
	for mu := range dg {
		dg[mu] *= part
		e.G[mu*e.P+k] += dg[mu]
	}
	back := make([]float64, e.N)
	blas64.Gemv(blas.Trans, 1, j.w.RawMatrix(), vector(dg), 0, vector(back))
	for i, d := range back {
		e.Centre[from+i] = e.X[from+i]
		if sigma := e.Sigma[from+i]; !math.IsInf(sigma, 1) {
			e.Lambda[from+i] = e.X[from+i] + sigma*(e.Onward[from+i]+d)
		}
	}
}
