package amp

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/stat"

	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/internal/moments"
	"github.com/calamp/calamp/operator"
	"github.com/calamp/calamp/prior"
)

// Entries of W that are wrong independently of each other, by a part η of the size w_µ of their row, add to z_µk an error of variance
//
//	η² w_µ² Σ_i x_ik²:
//
//
// noise that follows the signals. It is the excess of a reading (see noise.go), set anew in every iteration. Errors of one row are the same for
// all signals, so that noise of two signals of a sensor is correlated as the signals themselves are: that is left out, and correlated signals
// leave more doubt of s than is stated.

// MatrixErrors is the part that keeps this excess, and learns η.
type MatrixErrors struct {
	Idle

	Size  float64 // η
	learn bool
	noise bool      // the noise is learned, too
	given []float64 // what noise a reading has beyond the channel's without it, M or M×P; nil for none
	least float64   // of given
	rows  []float64 // M, w_µ²
	power []float64 // P, Σ_i x²
	moved float64   // of the last fit of η, in standard errors of η²
	sd    float64   // of η, relative

	noiseNext float64 // the noise that goes with the latest η, until learning takes it
}

// leastError is the least η that is learned: below, rounding is what is left of readings (see leastNoise).
const leastError = 1e-7

// follows reports whether noise follows the signals.
func (p *Problem) follows() bool { return p.MatrixError > 0 || p.LearnMatrixError }

func (b *planner) followsPossible() error {
	_, noisy := channel.InOrder(b.Model.Channel).(channel.Noisy)
	return refusal([]reason{
		{!noisy, fmt.Sprintf("errors of W are counted as noise, and a %T has none: it is no channel.Noisy", channel.InOrder(b.Model.Channel))},
		{b.stream(), "errors of W are for offline problems"},
		{b.codes(), "errors of W are for readings that are no codes"},
		{b.full() || b.exchangeable(), "errors of W need diagonal covariances"},
		{b.LearnSensorNoise, "errors of W and noise of every sensor are not learned together: leave one of them out"},
		{b.joint(), "errors of W are for signals by themselves: leave out that they belong together"},
		{b.evidence(), "the evidence of Gaussian signals is for a W that is right"},
	})
}

func (b *planner) makeUnequalNoise(s *Solver) (Part, error) {
	switch {
	case b.detects():
		return b.own, nil
	case !b.follows():
		return Idle{}, nil
	}
	e := &MatrixErrors{Size: b.MatrixError, learn: b.LearnMatrixError, noise: b.LearnNoise, given: b.Noise, power: make([]float64, b.P)}
	if e.learn && e.Size == 0 {
		e.Size = 1 / math.Sqrt(moments.SignalToNoise) // where learning the noise starts, too
	}
	if e.given != nil {
		e.least = Least(e.given)
	}
	s.State.follows = e
	var err error
	e.rows, err = rowSizes(b.W, b.P, s.State.Threads)
	return e, err
}

// rowSizes are w_µ². The mean square of a row of N entries differs from those of others by chance, too. Where that is all, errors are of one size for all rows, and what differs by chance makes η smaller
// where the noise is learned beside it (0.94 in place of 0.98 of the truth, for 400 entries). So w_µ² is the mean of all rows and that part of a row's difference from it which is not chance.
func rowSizes(w operator.Operator, p, threads int) ([]float64, error) {
	m, n := w.Dims()
	rows, err := operator.RowSquares(w, threads)
	if err != nil {
		return nil, err
	}
	floats.Scale(1/float64(n), rows)
	mean, variance := stat.PopMeanVariance(rows, nil)
	if !operator.HasSquares(w) || !(variance > 0) {
		return rows, nil
	}
	signs := make([]float64, n)
	for i := range n / 2 {
		signs[2*i], signs[2*i+1] = 1, -1
	}
	rand.New(rand.NewPCG(0, 0)).Shuffle(n, func(i, j int) { signs[i], signs[j] = signs[j], signs[i] })
	sums := make([][]float64, 2) // over rows of W², of all entries and of these with random signs, which leaves what is chance
	for i, of := range [][]float64{slices.Repeat([]float64{1}, n), signs} {
		if sums[i], err = meanSquares(w, of, p, threads); err != nil {
			return nil, err
		}
	}
	whole := stat.Mean(sums[0], nil)
	chance := floats.Dot(sums[1], sums[1]) / (float64(m) * whole * whole)
	real := max(0, 1-chance*mean*mean/variance)
	for mu, v := range rows {
		rows[mu] = mean + real*(v-mean)
	}
	return rows, nil
}

// meanSquares are Σ_i W_µi² c_i, on average over the P signals, each of which may have a W of its own.
func meanSquares(w operator.Operator, c []float64, p, threads int) ([]float64, error) {
	m, n := w.Dims()
	sweep, err := w.NewSweep(p, p, threads)
	if err != nil {
		return nil, err
	}
	sums, r := make([]float64, m), make([]float64, p*n)
	return sums, sweep.Run(r, slices.Clone(r), slices.Clone(r), slices.Repeat(c, p), func(first int, _, v, g, d []float64) {
		for j, of := range v {
			sums[first+j/p] += of / float64(p)
		}
		clear(g)
		clear(d)
	})
}

// Before sets the excess for the present signals.
func (e *MatrixErrors) Before(s *Solver) {
	state := s.State
	columns := prior.ColumnsOf(state.model.Prior)
	for k := range e.power {
		e.power[k] = 0
		for i := k * state.N; i < (k+1)*state.N; i++ {
			e.power[k] += state.X[i]*state.X[i] + state.C[i]
		}
	}
	for k := 0; k+columns <= len(e.power) && columns > 1; k += columns { // each part of a complex reading has half of the error of both
		both := 0.5 * (e.power[k] + e.power[k+1])
		e.power[k], e.power[k+1] = both, both
	}
	for j := range state.excess {
		state.excess[j] = e.Size*e.Size*e.of(j, state.P) + e.noiseExcess(j, state)
	}
}

// of is the excess of reading j for η = 1.
func (e *MatrixErrors) of(j, p int) float64 { return e.rows[j/p] * e.power[j%p] }

// noiseExcess is that of the noise alone.
func (e *MatrixErrors) noiseExcess(j int, s *State) float64 {
	switch len(e.given) {
	case 0:
		return 0
	case s.M:
		return e.given[j/s.P] - e.least
	}
	return e.given[j] - e.least
}

// After moves η towards the stationarity of the Bethe free energy, ½ Σ q (g² + ∂g) = 0 with q the excess for η = 1, as [Learning] does the noise.
func (e *MatrixErrors) After(s *Solver, line *Line) Verdict {
	if !e.learn {
		return GoOn
	}
	return refitted(s, line, e.refit, &e.moved)
}

// refitted refits a part's own hyperparameters every few iterations, and goes on while they move.
func refitted(s *Solver, line *Line, refit func(*State), moved *float64) Verdict {
	if line.Index < firstRefit {
		return GoOn
	}
	if line.Index%refitEvery == 0 {
		refit(s.State)
	}
	if *moved > modelTolerance && !(s.State.Standing && *moved < creepTolerance) {
		return Disturbed
	}
	return GoOn
}

func (e *MatrixErrors) refit(s *State) {
	t := e.scores(s)
	if !(t.curved[1][1] > 0) {
		return
	}
	now := e.Size * e.Size
	next := now * within(1+t.slope[1]/(t.curved[1][1]*now))
	if e.noise {
		e.noiseNext, next = t.both(t.noise, now)
	}
	next = min(max(next, leastError*leastError), 1)
	information := t.information[1][1] * now * now
	if other := t.information[0][0]; e.noise && other > 0 {
		information = max(0, information-now*now*t.information[0][1]*t.information[0][1]/other)
	}
	e.moved = math.Abs(math.Log(next/now)) * math.Sqrt(information)
	e.Size = math.Sqrt(next)
	sd := now / (next * math.Sqrt(information)) // relative, of η²: η is stated to the further of the two values where that is one more or one less
	e.sd = min(max(math.Sqrt(1+sd)-1, 1-math.Sqrt(max(0, 1-sd))), 1/e.Size)
}

// scores are what readings say of the noise (0) and of η² (1): slopes of the evidence by both, and their information.
type scores struct {
	noise       float64 // as it is
	slope       [2]float64
	information [2][2]float64
	curved      [2][2]float64 // ½ Σ (∂g)², which is less, since signals take part of the noise in
}

func (e *MatrixErrors) scores(s *State) (t scores) {
	t.noise = channel.NoiseOf(s.model.Channel)
	for j, y := range s.Y {
		if math.IsNaN(y) {
			continue
		}
		q, square, response := [2]float64{1, e.of(j, s.P)}, s.G[j]*s.G[j], s.DG[j]
		d := s.Doubt(j)
		for a, qa := range q {
			t.slope[a] += 0.5 * qa * (square + response)
			for b, qb := range q {
				t.information[a][b] += 0.5 * qa * qb / (d * d)
				t.curved[a][b] += 0.5 * qa * qb * response * response
			}
		}
	}
	return t
}

// both is a step of scoring of the noise and of η² together. By themselves each takes what the other has too much of, and the way along which
// their sum stays is crept along. One that would leave what a step may be stays at its end, and the other goes on from there.
func (t *scores) both(noise, size float64) (nextNoise, nextSize float64) {
	now, h := [2]float64{noise, size}, t.curved
	step := func(a int, given float64) float64 { // of a, the other's step given
		return (t.slope[a] - h[0][1]*given) / h[a][a]
	}
	var next [2]float64
	det := h[0][0]*h[1][1] - h[0][1]*h[0][1]
	if !(det > 1e-12*h[0][0]*h[1][1]) { // all signals have one power: only the sum is known
		return noise * within(1+step(0, 0)/noise), size
	}
	next[0] = noise + (t.slope[0]*h[1][1]-t.slope[1]*h[0][1])/det
	next[1] = size + (t.slope[1]*h[0][0]-t.slope[0]*h[0][1])/det
	for a := range next {
		if factor := next[a] / now[a]; within(factor) != factor {
			next[a] = now[a] * within(factor)
			next[1-a] = now[1-a] * within(1+step(1-a, next[a]-now[a])/now[1-a])
			break
		}
	}
	return next[0], next[1]
}

// within bounds the factor of one update.
func within(factor float64) float64 { return min(max(factor, 1./noiseReach), noiseReach) }

// noiseStep is how learning moves a noise variance beside noise that follows the signals, to next, and how far that is in standard errors. Of
// readings of which it is a small part a step in proportion to what they have too much, or too little, of residuals is far too short: it is
// one of scoring, Σ (g² + ∂g) over Σ (∂g)².
func (e *MatrixErrors) noiseStep(s *State, now, ratio float64) (next, change float64) {
	t := e.scores(s)
	switch {
	case e.learn && e.noise && e.noiseNext > 0:
		next, e.noiseNext = e.noiseNext, 0
	case e.learn || !(t.curved[0][0] > 0):
		next = now * ratio
	default:
		next = now + t.slope[0]/t.curved[0][0]
	}
	next = now * within(next/now)
	return next, math.Abs(math.Log(next/now)) * now * math.Sqrt(t.information[0][0])
}

// MatrixError is η, and where it was learned its relative standard deviation; 0 where errors of W are not looked for.
func (s *Solver) MatrixError() (size, sd float64) {
	if e, ok := PartOf[*MatrixErrors](s); ok {
		return e.Size, e.sd
	}
	return 0, 0
}
