package amp

import (
	"fmt"
	"math"
	"slices"

	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/operator"
	"github.com/calamp/calamp/solver"
)

// Displacements is the part for rows of W that are known but for a few numbers of each sensor (see [channel.Displaced]). Sweeps go over W with
// its rows at the present estimates θ̂, so that what is left of θ is small, and V is that of the rows as they are. Before each iteration the part
// moves them, and finds what the channel needs beside Wx, the mean of z_j = d_j x before its reading,
//
//	ω_j = D_j x̂ - ((D_j∘W)C) g,
//
// with the same g as ω. Signals enter the evidence through ω_j, too. A part of that is θ̂g, which the rows have; D_jᵀ Cov(θ_j, r)/D, r the
// residual, is added to what the sweep sums. It is the part √D/(P ω_j) of g or less, but of all readings together it is what holds the scale
// against the priors of θ: without it a sweep moves the scale for ever, and each scale step moves it back. The variance of z_j is left out, the
// part of θ² of V.
type Displacements struct {
	Idle

	Known *channel.Displacements

	w     *operator.Moved
	learn bool
	moved float64 // of the last fit of the spreads, in standard errors of their logarithms
}

const (
	// firstDisplaced is which part of itself W changes by with θ as large as their spread, where learning that begins; leastDisplaced is the least that is
	// learned: below, rounding is what is left of readings.
	firstDisplaced = 0.1
	leastDisplaced = 1e-7
)

// displaced is W where its rows move; nil where they do not.
func (b *planner) displaced() *operator.Moved {
	w, _ := b.W.(*operator.Moved)
	return w
}

// learnsSpread reports whether the spread of parameters of the sensors is learned.
func (b *planner) learnsSpread() bool { return b.displaced() != nil && b.Spread == nil }

// displacedLeaves are lines of the plan that look at the entries of W once, and would see none of its moves.
var displacedLeaves = map[string]bool{
	"mean removal": true, "joint moves": true, "row shifts": true, "variances on demand": true, "single precision": true, "joint test": true,
}

const displacedInstead = "not possible with rows of W that move"

func (b *planner) displacements() (on bool, why string, err error) {
	w := b.displaced()
	if w == nil {
		return false, "not needed: rows of W are as given", nil
	}
	gain, isGain := channel.InOrder(b.Model.Channel).(channel.Gain)
	if err = refusal([]reason{
		{!isGain, fmt.Sprintf("parameters of sensors need real gains, found a %T", channel.InOrder(b.Model.Channel))},
		{gain.Saturation > 0, "parameters of sensors and clipped readings do not go along yet: leave one of the two out"},
		{b.Shared.Rows > 0, NotShared("parameters of every sensor").Error()},
		{b.full() || b.exchangeable(), "parameters of sensors need diagonal covariances"},
		{b.Variance == solver.Scalar, "parameters of sensors need exact variances: scalar ones know nothing of rows that move"},
		{b.Joint == solver.JointOn, "parameters of sensors are for signals by themselves: leave out that they belong together"},
	}); err != nil {
		return false, "", err
	}
	b.Joint = solver.JointOff
	spread := make([]float64, w.Parameters())
	for j := range spread {
		spread[j] = firstDisplaced / w.Part(j)
	}
	if b.Spread != nil {
		copy(spread, b.Spread)
	}
	c := channel.Displaced{Gain: gain, By: channel.NewDisplacements(b.m, b.P, spread)}
	c.By.Carried = b.stream()
	if f, ok := b.Model.Channel.(channel.Contaminated); ok {
		b.Model.Channel = f.WithInOrder(c)
	} else {
		b.Model.Channel = c
	}
	if b.Spread == nil {
		return true, "the spread of each over the sensors is learned", nil
	}
	return true, "with spreads as given", nil
}

func (b *planner) makeDisplacements(s *Solver) (Part, error) {
	known := channel.InOrder(b.Model.Channel).(channel.Displaced).By
	s.State.keep(known.Mean, known.Cov, known.At)
	part := &Displacements{Known: known, w: b.displaced(), learn: b.learnsSpread()}
	s.State.displaced = part
	return part, nil
}

// Before moves the rows to the latest estimates, those of broken sensors back, and finds ω_j.
func (d *Displacements) Before(s *Solver) {
	k, state := d.Known, s.State
	js := len(k.Spread)
	if s.began+1 >= s.Iterations { // signals begin anew
		d.begin(state)
	}
	for i, theta := range k.Mean {
		k.At[i] = (1 - state.Broken[i/js]) * theta
	}
	d.w.Move(k.At, state.Threads)
	d.w.Along(k.Along, k.Taken, state.X, state.C, state.P, state.Threads)
	for i := range k.Taken {
		k.Taken[i] *= state.G[i/(js*state.P)*state.P+i%state.P]
		k.Along[i] -= k.Taken[i]
	}
}

// begin is where a run begins: what earlier samples of a stream said of θ, or nothing.
func (d *Displacements) begin(s *State) {
	known, carried := s.calibration.(channel.Parametric)
	if !carried {
		clear(d.Known.Mean)
		return
	}
	mean, variance := make([]float64, s.M), make([]float64, s.M)
	known.Posteriors(mean, variance, s.Past.Stats)
	known.Parameters(d.Known.Mean, d.Known.Cov, make([]float64, len(d.Known.Mean)), mean, variance, s.Past.Stats)
}

// pull adds Σ_j D_jᵀ Cov(θ_j, r)/D to what a sweep has summed.
func (d *Displacements) pull(r []float64, s *State) {
	pull, each := slices.Clone(d.Known.Pull), len(d.Known.Spread)*s.P
	for i := range pull {
		pull[i] *= 1 - s.Broken[i/each]
	}
	d.w.AddBack(r, pull, s.P, s.Threads)
}

// After learns the spreads.
func (d *Displacements) After(s *Solver, line *Line) Verdict {
	if !d.learn {
		return GoOn
	}
	return refitted(s, line, d.refit, &d.moved)
}

// refit moves every σ² towards Σ θ̂²/Σ(1 - Var θ/σ²), where the evidence is stationary (MacKay 1992, "Bayesian interpolation", eq. 4.3).
func (d *Displacements) refit(s *State) {
	js := len(d.Known.Spread)
	d.moved = 0
	for j, spread := range d.Known.Spread {
		now := spread * spread
		var squares, determined, information float64
		for mu := range s.M {
			working := 1 - s.Broken[mu]
			theta, share := d.Known.Mean[mu*js+j], 1-d.Known.Cov[(mu*js+j)*js+j]/now
			squares, determined, information = squares+working*theta*theta, determined+working*share, information+0.5*working*share*share
		}
		if !(determined > 0) {
			continue
		}
		least := leastDisplaced / d.w.Part(j)
		next := max(now*min(max(squares/(determined*now), 1./noiseReach), noiseReach), least*least)
		d.moved = max(d.moved, math.Abs(math.Log(next/now))*math.Sqrt(information))
		d.Known.Spread[j] = math.Sqrt(next)
	}
}

// SensorParameters is how many every sensor has beside its calibration.
func (s *Solver) SensorParameters() int {
	if d, ok := PartOf[*Displacements](s); ok {
		return len(d.Known.Spread)
	}
	return 0
}

// Report says of sensors that may be broken what is known beforehand.
func (d *Displacements) Report(s *Solver) {
	k := d.Known
	js := len(k.Spread)
	for mu, broken := range s.State.Broken[:s.State.M] {
		if broken == 0 {
			continue
		}
		for j, spread := range k.Spread {
			mean := k.Mean[mu*js+j]
			k.Mean[mu*js+j] = (1 - broken) * mean
			for l := range js {
				at := (mu*js+j)*js + l
				k.Cov[at] *= 1 - broken
				if l == j {
					k.Cov[at] += broken * (spread*spread + (1-broken)*mean*mean)
				}
			}
		}
	}
}

// Bent is the score of residuals that grow with parameters of sensors, and its information, which add up over samples.
type Bent struct{ Score, Information float64 }

// By is by how many standard errors they grow.
func (b Bent) By() float64 {
	if !(b.Information > 0) {
		return 0
	}
	return b.Score / math.Sqrt(b.Information)
}

// Bent is whether the readings of sensors with large θ have larger residuals than others, as they do where W is not linear in
// it: the score of a noise variance that grows with Σ_j θ̂²/σ², beside one that all readings have in common,
//
//	½ Σ (q - q̄)(g² + ∂g), of variance ½ Σ (q - q̄)² (-∂g)/D:
//
// a gain and parameters that are fitted project residuals of a sensor, so that Σ g² has twice the trace of that projection for its variance. It is 0 where no rows move.
func (s *Solver) Bent() (b Bent) {
	d, ok := PartOf[*Displacements](s)
	if !ok {
		return b
	}
	state, js := s.State, len(d.Known.Spread)
	size, mean, all := make([]float64, state.M), 0.0, 0.0
	for mu := range size {
		for j, spread := range d.Known.Spread {
			theta := (1 - state.Broken[mu]) * d.Known.Mean[mu*js+j] / spread
			size[mu] += theta * theta
		}
	}
	for j, slope := range state.DG {
		weight := -slope / state.Doubt(j)
		mean, all = mean+size[j/state.P]*weight, all+weight
	}
	mean /= max(all, math.SmallestNonzeroFloat64)
	for j, slope := range state.DG {
		q := size[j/state.P] - mean
		b.Score, b.Information = b.Score+0.5*q*(state.G[j]*state.G[j]+slope), b.Information-0.5*q*q*slope/state.Doubt(j)
	}
	return b
}
