// Package coverage checks whether stated uncertainties hold: it knows truths and
// results, and nothing of how a result comes about. By simulation-based calibration, it
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
	"github.com/calamp/calamp/teacher"
)

// Bins is how many bins of equal width a rank histogram has.
const Bins = 20

// Levels are the probabilities of the intervals that are counted.
var Levels = []float64{0.5, 0.8, 0.9, 0.95, 0.99}

// Check is what to simulate.
type Check struct {
	Teacher teacher.Teacher
	Channel channel.Channel // that the solver is told; default the teacher's
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

	X Ranks `json:"x"` // of the signals' entries
	S Ranks `json:"s"` // of the sensors' calibration, both at the true global scale

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

// Level counts how often the truth was inside intervals of one probability.
type Level struct {
	Level float64 `json:"level"`
	X     Share   `json:"x"`
	S     Share   `json:"s"`
	SRaw  Share   `json:"s_raw"` // without rescaling, intervals widened by the scale's uncertainty
	Scale Share   `json:"scale"` // of the global scale itself, one for each instance
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
				tallies[i], errs[i] = c.guarded(ctx, uint64(i+1))
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

// guarded makes a panic the error of its problem: a goroutine's panic would end
// the process.
func (c *Check) guarded(ctx context.Context, seed uint64) (t tally, err error) {
	defer crash.Catch(&err)
	return c.instance(ctx, seed)
}

// instance draws and solves the problem of a seed.
func (c *Check) instance(ctx context.Context, seed uint64) (t tally, err error) {
	in, err := c.Teacher.Draw(seed)
	if err != nil {
		return t, err
	}
	opt := calamp.Options{}
	if c.Options != nil {
		opt = *c.Options
	}
	opt.Threads = 1
	problem := c.Teacher.Problem(in)
	if c.Channel != nil {
		problem.Channel = c.Channel
	}
	res, err := calamp.Solve(ctx, problem, &opt)
	if err != nil {
		return t, err
	}
	t.converged = res.Status == calamp.Converged
	t.count(res, in.Truth, rand.New(rand.NewPCG(seed, 0)))
	return t, nil
}

func (t *tally) count(res *calamp.Result, truth calamp.Truth, rng *rand.Rand) {
	x, s := res.Ranks(truth, rng)
	t.x, t.s = histogram(x), histogram(s)
	scale := calamp.Score(res.X, res.S, truth).Scale
	for _, level := range Levels {
		lo, hi := res.SIntervalRaw(level)
		raw := 0
		for mu, s0 := range truth.S {
			if lo[mu] <= s0 && s0 <= hi[mu] {
				raw++
			}
		}
		l := Level{Level: level}
		l.X.Value, l.S.Value = central(x, level), central(s, level)
		l.SRaw.Value = float64(raw) / float64(len(truth.S))
		if least, most := res.ScaleInterval(level); least <= scale && scale <= most {
			l.Scale.Value = 1
		}
		t.levels = append(t.levels, l)
	}
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
	r.X = ranks(func(t *tally) *[Bins]float64 { return &t.x })
	r.S = ranks(func(t *tally) *[Bins]float64 { return &t.s })
	for i, level := range Levels {
		r.Levels = append(r.Levels, Level{
			Level: level,
			X:     share(func(t *tally) float64 { return t.levels[i].X.Value }),
			S:     share(func(t *tally) float64 { return t.levels[i].S.Value }),
			SRaw:  share(func(t *tally) float64 { return t.levels[i].SRaw.Value }),
			Scale: share(func(t *tally) float64 { return t.levels[i].Scale.Value }),
		})
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
