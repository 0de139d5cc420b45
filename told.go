package calamp

import (
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/internal/amp"
	"github.com/calamp/calamp/prior"
	"github.com/calamp/calamp/solver"
)

// Scale is what is known of the model's scale where all else of it is learned, the signals' scale, the noise and the range of s
// among them. (x, s, Δ) and (cx, cs, c²Δ) give the same readings, so one known number says what c is, and nothing else: the run learns
// that number, too, and signals and s are then multiplied by the factor that makes it the known one. The zero value knows nothing.
type Scale struct {
	SignalVar  float64 // of the non-zero entries
	SignalMean float64 // of the non-zero entries
	NoiseVar   float64 // before the division by s
}

// Set reports whether anything is known.
func (c Scale) Set() bool { return c != Scale{} }

// Validate reports more than one known number, and what none can be.
func (c Scale) Validate() error {
	count := 0
	for _, v := range []float64{c.SignalVar, c.SignalMean, c.NoiseVar} {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return fmt.Errorf("what holds the scale must be finite, found %g", v)
		}
		if v != 0 {
			count++
		}
	}
	if c.SignalVar < 0 || c.NoiseVar < 0 {
		return errors.New("a variance that holds the scale must not be negative")
	}
	if count > 1 {
		return errors.New("one number holds the scale: more are given as what they are")
	}
	return nil
}

// factor is that by which signals and s of a result are to be multiplied, and its relative standard deviation: half that of a variance.
func (c Scale) factor(res *Result) (factor, sd float64) {
	var mean, variance float64
	if p, ok := res.Prior.(prior.Slabbed); ok {
		mean, variance = p.Slab()
	}
	rows, columns := res.X.Dims()
	active := float64(rows * columns)
	if p, ok := res.Prior.(prior.Sparse); ok {
		active *= p.NonZero()
	}
	switch {
	case c.SignalVar != 0:
		return math.Sqrt(c.SignalVar / variance), 1 / math.Sqrt(2*active)
	case c.SignalMean != 0:
		return c.SignalMean / mean, math.Sqrt(variance/active) / math.Abs(mean)
	}
	sensors, signals := res.Residual.Dims()
	left := max(1, float64(sensors*signals)-active-float64(sensors)) // readings beyond what they have to tell
	noise := channel.NoiseOf(res.Channel) * float64(channel.ColumnsOf(res.Channel))
	return math.Sqrt(c.NoiseVar / noise), 1 / math.Sqrt(2*left)
}

// hold brings a result to the scale that is known of its model. A mean of the other sign says nothing of it.
func (r *run) hold(res *Result) {
	if !r.opt.Scale.Set() || r.opt.Anchor.Set() || res.Iterations == 0 {
		return
	}
	factor, sd := r.opt.Scale.factor(res)
	if !(factor > 0) || math.IsInf(factor, 1) {
		return
	}
	res.ScaleSD, res.placement = sd, amp.Placement{SD: sd}
	res.rescale(factor)
}

// scaleLearned is a problem of which two or more numbers were told that have a scale, solved as if one of them was: message passing
// along the scale, which they hold, may not come to rest where what is left of it when it is free does. nil where nothing is to be left out.
func scaleLearned(first *try) *try {
	p, opt := *first.problem, first.opt
	if !opt.Learn.Range || opt.Anchor.Set() || opt.Scale.Set() || p.NoiseVar != nil {
		return nil
	}
	free, ok := p.Prior.(prior.Learner)
	if ok && free.LearnsScale() {
		return nil
	}
	const all = prior.SignalMean | prior.SignalVar
	switch g := p.Prior.(type) {
	case prior.GaussBernoulli:
		free = prior.LearnedGaussBernoulli{GaussBernoulli: g, Learn: all}
	case prior.LearnedGaussBernoulli:
		free = prior.LearnedGaussBernoulli{GaussBernoulli: g.GaussBernoulli, Learn: g.Learn | all}
	case prior.ComplexGaussBernoulli:
		free = prior.LearnedComplexGaussBernoulli{ComplexGaussBernoulli: g, Learn: prior.SignalVar}
	case prior.LearnedComplexGaussBernoulli:
		free = prior.LearnedComplexGaussBernoulli{ComplexGaussBernoulli: g.ComplexGaussBernoulli, Learn: g.Learn | prior.SignalVar}
	case prior.NonNegative:
		free = prior.LearnedNonNegative{NonNegative: g, Learn: all}
	case prior.LearnedNonNegative:
		free = prior.LearnedNonNegative{NonNegative: g.NonNegative, Learn: g.Learn | all}
	default:
		return nil
	}
	_, variance := free.(prior.Slabbed).Slab()
	p.Prior, opt.Scale.SignalVar, opt.Learn.Noise = free, variance, true
	return &try{name: "the common scale learned", problem: &p, opt: opt}
}

const (
	// Told numbers are contradicted where the readings want them larger or smaller by contradictedBy, beyond surely standard errors: real
	// signals and noise are never quite what a model says, and within a factor of two of a parameter errors are what they are with the true
	// one, to a few per cent (docs/log/validation.md, "Learning the model").
	contradictedBy = 2
	surely         = 5

	// fits is how many steps what the readings want is looked for: expectation–maximisation of two numbers from fields that stay.
	fits = 50
)

// contradicted names the numbers that were told and that the readings contradict, with what these want in their place.
func (r *run) contradicted(res *Result) *Warning {
	if res.Iterations == 0 || res.Status == Cancelled || res.Status == Diverged || r.opt.Algorithm == solver.Evidence || r.opt.Covariance == solver.Full {
		return nil
	}
	var words []string
	add := func(name string, told, wanted float64) {
		words = append(words, fmt.Sprintf("%s %.4g, where they say about %.2g", name, told, wanted))
	}
	s := r.state()
	_, own := channel.DetectorOf(r.problem.Channel)
	if !r.opt.Learn.Noise && !r.opt.Learn.SensorNoise && r.problem.NoiseVar == nil && !own {
		columns := float64(channel.ColumnsOf(r.problem.Channel))
		noise := channel.NoiseOf(channel.InOrder(r.problem.Channel))
		// What was computed with: more than was told where W was rounded, or where that is too small to compute with.
		computed := max(noise, channel.NoiseOf(channel.InOrder(s.Model().Channel)))
		if wanted, sd := s.NoiseWanted(); noise > 0 && (computed == noise || wanted > computed) && apart(wanted/computed, sd) {
			add("the noise variance as", columns*noise, columns*wanted)
		}
	}
	told, learn, ok := toldSlab(independent(s.Model().Prior))
	if !ok || learn == everything {
		return r.told(words)
	}
	var free prior.Learner = prior.LearnedGaussBernoulli{GaussBernoulli: told, Learn: everything}
	lambda, sigma := s.Fields()
	for range fits {
		free, _ = free.Refit(lambda, sigma, 1)
	}
	wanted := free.(prior.LearnedGaussBernoulli).GaussBernoulli
	active := wanted.Density * float64(len(lambda))
	if learn&prior.Density == 0 && apart(wanted.Density/told.Density, 1/math.Sqrt(active)) {
		add("the density as", told.Density, wanted.Density)
	}
	if learn&prior.SignalVar == 0 && !r.opt.Scale.Set() && apart(wanted.SignalVar/told.SignalVar, math.Sqrt(2/active)) {
		add("the variance of non-zero entries as", told.SignalVar, wanted.SignalVar)
	}
	if sd := math.Sqrt(wanted.SignalVar); learn&prior.SignalMean == 0 && !r.opt.Scale.Set() && math.Abs(wanted.SignalMean-told.SignalMean) > sd {
		add("the mean of non-zero entries as", told.SignalMean, wanted.SignalMean)
	}
	return r.told(words)
}

const everything = prior.Density | prior.SignalMean | prior.SignalVar

// apart says that a factor, whose logarithm has this standard error, is surely a large one, or a small one.
func apart(factor, sd float64) bool {
	log := math.Abs(math.Log(factor))
	return log > math.Log(contradictedBy) && log > surely*sd && !math.IsInf(log, 1)
}

// toldSlab is the prior of a run, with what it learns of it; false for one of another family, of a complex or of groups.
func toldSlab(p prior.Prior) (g prior.GaussBernoulli, learn prior.Parameters, ok bool) {
	switch p := p.(type) {
	case prior.GaussBernoulli:
		return p, 0, true
	case prior.LearnedGaussBernoulli:
		return p.GaussBernoulli, p.Learn, true
	}
	return g, 0, false
}

func (r *run) told(words []string) *Warning {
	if words == nil {
		return nil
	}
	return &Warning{Code: ToldContradicted, Message: "the readings contradict what was given: " + strings.Join(words, "; ") + "; what is not given is learned"}
}
