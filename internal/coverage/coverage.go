// Package coverage checks whether stated uncertainties hold: it compares truths and
// results, however these come about. By simulation-based calibration, it
// draws problems from a model, solves them, and counts where the truth lies in the
// posteriors (Talts, Betancourt, Simpson, Vehtari, Gelman 2018, "Validating Bayesian
// inference algorithms with simulation-based calibration").
package coverage

import (
	"context"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"

	"github.com/calamp/calamp"
	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/internal/crash"
)

// Bins is how many bins of equal width a rank histogram has.
const Bins = 20

// Levels are the probabilities of the intervals that are counted.
var Levels = []float64{0.5, 0.8, 0.9, 0.95, 0.99}

// Teacher draws problems, as those of package teacher do.
type Teacher interface {
	Pose(seed uint64) (*calamp.Problem, calamp.Truth, error)
}

// Check is what to simulate.
type Check struct {
	Teacher Teacher
	Channel channel.Channel // that the solver is given; default the teacher's
	Seeds   int             // problems, of seeds 1, 2, …
	Options *calamp.Options // of the solver
	Workers int             // problems at a time; default GOMAXPROCS

	// Progress, when set, is called after every problem, one at a time.
	Progress func()
}

// Report is what came of a check. It does not depend on Workers.
type Report struct {
	Instances int `json:"instances"`
	Converged int `json:"converged"` // only these are counted below

	X Ranks `json:"x"` // of the signals' entries; empty where the prior's posterior has no distribution function
	S Ranks `json:"s"` // of the sensors' calibration, both at the true global scale; of complex s the amplitudes, empty where these are known

	Levels []Level `json:"levels"`
}

// Ranks is the histogram of the truth's ranks in its posterior, relative to a uniform
// one: it is 1 everywhere when the posterior is right. It has the shape of a ∪ when
// the posterior is too narrow, that of a ∩ when it is too wide, and a slope when it is
// biased.
type Ranks struct {
	Frequency []float64 `json:"frequency"` // Bins
	Error     []float64 `json:"error"`     // standard errors over the instances
}

// Level counts how often the truth was inside intervals of one probability. What is known beforehand is nil.
type Level struct {
	Level float64 `json:"level"`
	X     *Share  `json:"x,omitempty"`     // of complex signals both parts
	S     *Share  `json:"s,omitempty"`     // of complex gains the amplitudes
	SRaw  *Share  `json:"s_raw,omitempty"` // without rescaling, intervals widened by the scale's uncertainty
	Scale *Share  `json:"scale,omitempty"` // of the global scale itself, one for each instance

	Phase    *Share `json:"phase,omitempty"`     // of complex gains, at the true common phase
	PhaseRaw *Share `json:"phase_raw,omitempty"` // as they are, intervals widened by the common phase's uncertainty; nil where that is a convention
}

// shares are all that a level may have, in the same order for all.
func (l *Level) shares() []**Share {
	return []**Share{&l.X, &l.S, &l.SRaw, &l.Scale, &l.Phase, &l.PhaseRaw}
}

// Share is a fraction with its standard error over the instances.
type Share struct {
	Value float64 `json:"value"`
	Error float64 `json:"error"`
}

// tally holds the counts of one instance, as fractions of its entries and sensors.
type tally struct {
	converged bool
	x, s      [Bins]float64
	levels    []Level
}

// Run draws and solves the problems. It returns an error when the teacher or the
// options make no sense, and when ctx is cancelled.
func Run(ctx context.Context, c *Check) (*Report, error) {
	tallies := make([]tally, c.Seeds)
	errs := make([]error, c.Seeds)
	seeds := make(chan int)
	var busy sync.WaitGroup
	var one sync.Mutex
	for range max(1, min(c.workers(), c.Seeds)) {
		busy.Go(func() {
			for i := range seeds {
				tallies[i], errs[i] = crash.Try(func() (tally, error) { return c.instance(ctx, uint64(i+1)) })
				if c.Progress != nil {
					one.Lock()
					c.Progress()
					one.Unlock()
				}
			}
		})
	}
	for i := range c.Seeds {
		if ctx.Err() != nil {
			break
		}
		seeds <- i
	}
	close(seeds)
	busy.Wait()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	for _, err := range errs {
		if err != nil {
			return nil, err
		}
	}
	return summarise(tallies), nil
}

func (c *Check) workers() int {
	if c.Workers > 0 {
		return c.Workers
	}
	return runtime.GOMAXPROCS(0)
}

// instance draws and solves the problem of a seed.
func (c *Check) instance(ctx context.Context, seed uint64) (t tally, err error) {
	problem, truth, err := c.Teacher.Pose(seed)
	if err != nil {
		return t, err
	}
	opt := calamp.Options{}
	if c.Options != nil {
		opt = *c.Options
	}
	opt.Threads = 1
	if c.Channel != nil {
		problem.Channel = c.Channel
	}
	res, err := calamp.Solve(ctx, problem, &opt)
	if err != nil {
		return t, err
	}
	t.converged = res.Status == calamp.Converged
	t.count(res, truth, rand.New(rand.NewPCG(seed, 0)))
	return t, nil
}

func (t *tally) count(res *calamp.Result, truth calamp.Truth, rng *rand.Rand) {
	x, s := res.Ranks(truth, rng)
	t.x, t.s = histogram(x), histogram(s)
	m := res.Score(truth)
	for _, level := range Levels {
		l := Level{Level: level}
		if x != nil {
			l.X = &Share{Value: central(x, level)}
		}
		if s != nil {
			lo, hi := res.SIntervalRaw(level)
			least, most := res.ScaleInterval(level)
			l.S = &Share{Value: central(s, level)}
			l.SRaw = within(truth.S, lo, hi)
			l.Scale = within([]float64{m.Scale}, []float64{least}, []float64{most})
		}
		if res.Phase != nil && !channel.PhasesKnown(res.Calibration.Prior) {
			lo, hi, relLo, relHi := res.PhaseIntervals(level)
			l.Phase = holds(truth.Phase, m.PhaseShift, relLo, relHi)
			if !res.PhaseFree {
				l.PhaseRaw = holds(truth.Phase, 0, lo, hi)
			}
		}
		t.levels = append(t.levels, l)
	}
}

// within is the part of the values that lie between their bounds.
func within(values, lo, hi []float64) *Share {
	inside := 0
	for i, v := range values {
		if lo[i] <= v && v <= hi[i] {
			inside++
		}
	}
	return &Share{Value: float64(inside) / float64(len(values))}
}

// holds is within for angles, after these are turned back by shift.
func holds(angles []float64, shift float64, lo, hi []float64) *Share {
	away, reach, back := make([]float64, len(angles)), make([]float64, len(angles)), make([]float64, len(angles))
	for i, v := range angles {
		away[i] = math.Remainder(v-shift-0.5*(lo[i]+hi[i]), 2*math.Pi)
		reach[i] = 0.5 * (hi[i] - lo[i])
		back[i] = -reach[i]
	}
	return within(away, back, reach)
}

// histogram is the histogram of ranks, relative to a uniform one.
func histogram(ranks []float64) (h [Bins]float64) {
	for _, u := range ranks {
		h[min(int(u*Bins), Bins-1)] += Bins / float64(len(ranks))
	}
	return h
}

// central is the fraction of ranks in the central interval of a level.
func central(ranks []float64, level float64) float64 {
	inside := 0
	for _, u := range ranks {
		if math.Abs(u-0.5) <= 0.5*level {
			inside++
		}
	}
	return float64(inside) / float64(len(ranks))
}

func summarise(tallies []tally) *Report {
	r := &Report{Instances: len(tallies)}
	tallies = slices.DeleteFunc(slices.Clone(tallies), func(t tally) bool { return !t.converged })
	r.Converged = len(tallies)
	if r.Converged == 0 {
		return r
	}
	share := func(of func(t *tally) float64) Share { return meanOf(tallies, of) }
	ranks := func(of func(t *tally) *[Bins]float64) (out Ranks) {
		for b := range Bins {
			bin := share(func(t *tally) float64 { return of(t)[b] })
			out.Frequency, out.Error = append(out.Frequency, bin.Value), append(out.Error, bin.Error)
		}
		return out
	}
	if tallies[0].levels[0].X != nil {
		r.X = ranks(func(t *tally) *[Bins]float64 { return &t.x })
	}
	if tallies[0].levels[0].S != nil {
		r.S = ranks(func(t *tally) *[Bins]float64 { return &t.s })
	}
	for i, level := range Levels {
		l := Level{Level: level}
		first := tallies[0].levels[i]
		for k, one := range first.shares() {
			if *one == nil {
				continue
			}
			mean := share(func(t *tally) float64 { return (*t.levels[i].shares()[k]).Value })
			*l.shares()[k] = &mean
		}
		r.Levels = append(r.Levels, l)
	}
	return r
}

// meanOf is an average over instances, with its standard error. Instances are
// independent of each other; the entries and sensors of one instance are not.
func meanOf(tallies []tally, of func(t *tally) float64) Share {
	n, mean, square := float64(len(tallies)), 0.0, 0.0
	for i := range tallies {
		mean += of(&tallies[i]) / n
	}
	for i := range tallies {
		d := of(&tallies[i]) - mean
		square += d * d
	}
	return Share{mean, math.Sqrt(square / max(1, n-1) / n)}
}
