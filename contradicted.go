package calamp

import (
	"fmt"
	"math"
	"strings"

	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/internal/amp"
	"github.com/calamp/calamp/internal/evidence"
	"github.com/calamp/calamp/prior"
	"github.com/calamp/calamp/solver"
)

const (
	// Given numbers are contradicted where the likelihood prefers them larger or smaller by contradictedBy, beyond surely standard errors: real
	// signals and noise are never quite what a model says, and within a factor of two of a parameter errors are what they are with the true
	// one, to a few per cent (docs/log/validation.md, "Learning the model").
	contradictedBy = 2
	surely         = 5

	// fits is how many steps the likelihood's maximum is looked for: expectation–maximisation of two numbers from fields that stay.
	fits = 50
)

// contradicted names the numbers that were given and that the readings contradict, with what the likelihood prefers in their place.
func (r *run) contradicted(res *Result) *Warning {
	if res.Iterations == 0 || res.Status == Cancelled || res.Status == Diverged || r.opt.Covariance == solver.Full {
		return nil
	}
	words := r.noiseContradicted()
	words = append(words, r.signalsContradicted()...)
	if text := disagree(r.scale(res).estimates(res)); text != "" {
		words = append(words, text)
	}
	return contradiction(words)
}

// contradiction is the warning of what the readings contradict; nil where that is nothing.
func contradiction(words []string) *Warning {
	if words == nil {
		return nil
	}
	return &Warning{Code: ToldContradicted, Message: "the readings contradict what was given: " + strings.Join(words, "; ") + "; what is not given is learned"}
}

func where(name string, given, likeliest float64) string {
	return fmt.Sprintf("%s as %.4g, where the likelihood has its maximum at about %.2g", name, given, likeliest)
}

// noiseContradicted is about a noise variance of message passing, or those of sensors.
func (r *run) noiseContradicted() []string {
	_, own := channel.DetectorOf(r.problem.Channel)
	if each := r.problem.NoiseVar; each != nil && !own && amp.Least(each) > 0 {
		return r.noisesContradicted(r.solver.NoiseMisfit(each))
	}
	if r.opt.Algorithm == solver.Evidence || r.opt.Learn.Noise || r.opt.Learn.SensorNoise || r.problem.NoiseVar != nil || own {
		return nil
	}
	columns := float64(channel.ColumnsOf(r.problem.Channel))
	noise := channel.NoiseOf(channel.InOrder(r.problem.Channel))
	// What was computed with: more than was given where W was rounded, or where that is too small to compute with.
	computed := max(noise, channel.NoiseOf(channel.InOrder(r.state().Model().Channel)))
	likely, sd := r.state().NoiseWanted()
	if noise > 0 && (computed == noise || likely > computed) && apart(likely/computed, sd) {
		return []string{where("the noise variance", columns*noise, columns*likely)}
	}
	return nil
}

// noisesContradicted is about variances that were given of each sensor or reading: the factor that all have in common, where it is not learned, and what they are beside one another.
func (r *run) noisesContradicted(found *evidence.NoiseMisfit) (words []string) {
	if found == nil {
		return nil
	}
	if !r.opt.Learn.Noise && apart(found.Factor, found.SD) {
		words = append(words, timesNoise(found.Factor))
	}
	if found.Score > surely && found.Spread > math.Log(contradictedBy) {
		words = append(words, fmt.Sprintf("the noise variances of sensors beside one another, where the likelihood has its maximum at others, by a factor of about %.2g either way", math.Exp(found.Spread)))
	}
	return words
}

func timesNoise(factor float64) string {
	return fmt.Sprintf("the noise variances of sensors, where the likelihood has its maximum at about %.2g times them", factor)
}

// signalsContradicted is about the signals' prior: the likeliest one, with all that it has learned from the fields that readings leave
// for each entry, beside the one that was given. Where signals are integrated out their scale is another one, and the density alone is compared.
func (r *run) signalsContradicted() (words []string) {
	given := independent(r.state().Model().Prior)
	free, learned, ok := learning(given, everything)
	if rows, _ := r.solver.Joint(); rows != nil && ok { // they learn their covariance whatever was given, and what they are for one entry no longer says what else
		_, learned, ok = learning(r.problem.Prior, 0)
		learned |= prior.SignalVar
	}
	if !ok || learned&everything == everything {
		return nil
	}
	lambda, sigma := r.state().Fields()
	for range fits {
		free, _ = free.Refit(lambda, sigma, 1)
	}
	density, likely := given.(prior.Sparse).NonZero(), free.(prior.Sparse).NonZero()
	active := likely * float64(len(lambda)) // real numbers
	if learned&prior.Density == 0 && apart(likely/density, math.Sqrt(float64(channel.ColumnsOf(r.problem.Channel))/active)) {
		words = append(words, where("the density", density, likely))
	}
	if r.opt.Scale.Set() || r.opt.Algorithm == solver.Evidence {
		return words
	}
	mean, variance := given.(prior.Slabbed).Slab()
	likelyMean, likelyVariance := free.(prior.Slabbed).Slab()
	meanSD, varianceSD := free.(prior.Slabbed).SlabSD(active)
	if learned&prior.SignalVar == 0 && apart(likelyVariance/variance, varianceSD/likelyVariance) {
		words = append(words, where("the variance of non-zero entries", variance, likelyVariance))
	}
	if learned&prior.SignalMean == 0 && math.Abs(likelyMean-mean) > max(math.Sqrt(likelyVariance), surely*meanSD) {
		words = append(words, where("the mean of non-zero entries", mean, likelyMean))
	}
	return words
}

const everything = prior.Density | prior.SignalMean | prior.SignalVar

// apart says that a factor, whose logarithm has this standard error, is surely a large one, or a small one.
func apart(factor, sd float64) bool {
	log := math.Abs(math.Log(factor))
	return log > math.Log(contradictedBy) && log > surely*sd && !math.IsInf(log, 1)
}
