package calamp

import (
	"cmp"
	"errors"
	"fmt"
	"math"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/stat"

	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/internal/amp"
	"github.com/calamp/calamp/prior"
)

// Scale is what is known of the model's scale where all else of it is learned, the signals' scale, the noise and the range of s
// among them. (x, s, Δ) and (cx, cs, c²Δ) give the same readings, so one known number says what c is, and nothing else: the run learns
// that number, too, and signals and s are then multiplied by the factor that makes it the known one. Of several each is an estimate of log c,
// and the factor is their mean, weighted by their inverse variances. The zero value holds no number.
type Scale struct {
	SignalVar  float64 // of the non-zero entries
	SignalMean float64 // of the non-zero entries
	NoiseVar   float64 // before the division by s
}

// Set reports whether anything is known.
func (c Scale) Set() bool { return c != Scale{} }

// Validate reports what none of the numbers can be.
func (c Scale) Validate() error {
	for _, v := range []float64{c.SignalVar, c.SignalMean, c.NoiseVar} {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return fmt.Errorf("what holds the scale must be finite, found %g", v)
		}
	}
	if c.SignalVar < 0 || c.NoiseVar < 0 {
		return errors.New("a variance that holds the scale must not be negative")
	}
	return nil
}

// held is what one known number says of the common scale c, beside a result: an estimate of log c, and its standard deviation.
type held struct {
	name         string
	given, found float64 // the number, and that of the result, which goes with the power c^power
	power        float64
	logScale, sd float64
}

// active is how many entries are not zero.
func (r *Result) active() float64 {
	rows, columns := r.X.Dims()
	active := float64(rows * columns)
	if p, ok := r.Prior.(prior.Sparse); ok {
		active *= p.NonZero()
	}
	return active
}

// spare is how many readings there are beyond the unknowns that they determine: these say what the noise is.
func (r *Result) spare() float64 {
	sensors, signals := r.Residual.Dims()
	return max(1, float64(sensors*signals)-r.active()-float64(sensors))
}

// noiseSD is the standard error of the logarithm of a learned noise variance, or of the mean of those of sensors, which the largest ones decide. Signals that are known worse than noise allows take up more readings than they have entries.
func (r *Result) noiseSD() float64 {
	uneven := 1.0
	if each := r.NoiseVar; len(each) > 0 && !r.noisesGiven {
		mean := stat.Mean(each, nil)
		uneven = floats.Dot(each, each) / (float64(len(each)) * mean * mean)
	}
	return max(math.Sqrt(2*uneven/r.spare()), r.logNoiseSD*math.Sqrt(uneven))
}

// scale is what is known of it. Of noise variances that were given one by one the common factor is learned, and known to be 1; one number is the mean of those that were learned.
func (r *run) scale(res *Result) Scale {
	known := r.opt.Scale
	switch each := r.problem.NoiseVar; {
	case each != nil && known.NoiseVar != 0:
		known.NoiseVar = channel.NoiseOf(res.Channel) * float64(channel.ColumnsOf(res.Channel)) * each[0] / r.state().Noise(0)
	case each == nil && len(res.NoiseVar) > 0:
		known.NoiseVar *= channel.NoiseOf(res.Channel) / res.meanNoise()
	}
	return known
}

// meanNoise is what one number says of noise that was learned for each sensor, their mean: [channel.NoiseOf] is their harmonic mean. Of a tomograph's photon noise that was 300 times less, and scales from noise were off by the root of that.
func (r *Result) meanNoise() float64 {
	if len(r.NoiseVar) > 0 {
		return stat.Mean(r.NoiseVar, nil)
	}
	return channel.NoiseOf(r.Channel)
}

// estimates are those of all numbers that are known. The relative standard deviation of a variance from n numbers is √(2/n).
func (c Scale) estimates(res *Result) (list []held) {
	active := res.active()
	var mean, variance, meanSD, varianceSD float64
	if p, ok := res.Prior.(prior.Slabbed); ok {
		mean, variance = p.Slab()
		meanSD, varianceSD = p.SlabSD(active)
	}
	noise := channel.NoiseOf(res.Channel) * float64(channel.ColumnsOf(res.Channel))
	for _, h := range []held{
		{name: "the variance of non-zero entries", given: c.SignalVar, found: variance, power: 2, sd: varianceSD / (2 * variance)},
		{name: "the mean of non-zero entries", given: c.SignalMean, found: mean, power: 1, sd: meanSD / math.Abs(mean)},
		{name: "the noise variance", given: c.NoiseVar, found: noise, power: 2, sd: 0.5 * res.noiseSD()},
	} {
		h.logScale = math.Log(h.given/h.found) / h.power
		if h.given != 0 && !math.IsNaN(h.logScale) && !math.IsInf(h.logScale, 0) && h.sd < math.Inf(1) { // a mean of the other sign says nothing, nor does noise that no reading shows
			list = append(list, h)
		}
	}
	return list
}

// combined is the mean of estimates, weighted by their inverse variances, and its standard deviation.
func combined(list []held) (logScale, sd float64) {
	weight := 0.0
	for _, h := range list {
		logScale += h.logScale / (h.sd * h.sd)
		weight += 1 / (h.sd * h.sd)
	}
	return logScale / weight, 1 / math.Sqrt(weight)
}

// hold brings a result to the scale that is known of its model. Where several numbers hold it, its model has them as they are known.
func (r *run) hold(res *Result) {
	bounds := r.opt.given.bounds
	if !r.opt.Scale.Set() && bounds == nil || r.opt.Anchor.Set() || res.Iterations == 0 {
		return
	}
	known := r.scale(res)
	list := known.estimates(res)
	if bounds != nil {
		list = append(list, r.opt.given.scale(res))
	}
	if len(list) == 0 {
		return
	}
	log, sd := combined(list)
	if bounds == nil && known == (Scale{NoiseVar: known.NoiseVar}) {
		res.Warnings = append(res.Warnings, Warning{Code: ScaleFromNoise, Message: fmt.Sprintf("the common scale of signals and gains depends on the noise variance alone, which was learned as %.2g where the middle of s is 1, and brings that to %.2g: all that the model leaves out of readings is a part of it, and makes signals and s too small; a range of s or an anchor would tell", list[0].found, math.Exp(log))})
	}
	res.ScaleSD, res.placement = sd, amp.Placement{SD: sd}
	res.rescale(math.Exp(log))
	res.Prior = known.of(res.Prior)
	if noisy, ok := res.Channel.(channel.Noisy); ok && known.NoiseVar != 0 {
		given := known.NoiseVar / float64(channel.ColumnsOf(res.Channel))
		floats.Scale(given/noisy.Noise(), res.NoiseVar)
		res.Channel = noisy.WithNoise(given)
	}
	if known, ok := res.Channel.(channel.Calibrating); ok && bounds != nil {
		res.Channel = known.WithCalibration(r.opt.given.bounding(known.Calibration()))
	}
}

// of is a prior with the mean and the variance that are known.
func (c Scale) of(p prior.Prior) prior.Prior {
	g, ok := p.(prior.Slabbed)
	if !ok {
		return p
	}
	mean, variance := g.Slab()
	return g.WithSlab(cmp.Or(c.SignalMean, mean), cmp.Or(c.SignalVar, variance))
}

// disagree names two known numbers that cannot both be true, whatever the scale: the readings determine the ratio of their powers that are free of c.
func disagree(list []held) string {
	for j, a := range list {
		for _, b := range list[j+1:] {
			if !apart(math.Exp(2*(a.logScale-b.logScale)), 2*math.Hypot(a.sd, b.sd)) {
				continue
			}
			return fmt.Sprintf("%s as %.4g and %s as %.4g, where they are likeliest at about %.2g for the first or %.2g for the second",
				a.name, a.given, b.name, b.given, a.found*math.Exp(a.power*b.logScale), b.found*math.Exp(b.power*a.logScale))
		}
	}
	return ""
}

// scaleLearned is a problem of which two or more numbers were given that have a scale, solved with all of them learned, and brought to the scale
// that they hold together: message passing would follow one of them along the scale, and be off by what another one says of it. Where errors of W are counted the noise is none of these: a small part of both it may be nothing. nil where
// no number is to be left out.
func scaleLearned(first *try) *try {
	p, opt := *first.problem, first.opt
	if !opt.Learn.Range || opt.Learn.SensorNoise || opt.Anchor.Set() || opt.Scale.Set() || p.NoiseVar != nil && amp.Least(p.NoiseVar) == 0 {
		return nil
	}
	free, learned, ok := learning(p.Prior, prior.SignalVar)
	if !ok {
		return nil
	}
	mean, variance := free.(prior.Slabbed).Slab()
	if learned&prior.SignalVar == 0 {
		opt.Scale.SignalVar = variance
	}
	if learned&prior.SignalMean == 0 && mean != 0 {
		opt.Scale.SignalMean = mean
		free, _, _ = learning(free, prior.SignalMean)
	}
	if _, own := channel.DetectorOf(p.Channel); !opt.Learn.Noise && !own && opt.MatrixError == 0 && !opt.Learn.MatrixError {
		opt.Scale.NoiseVar = channel.NoiseOf(channel.InOrder(p.Channel)) * float64(channel.ColumnsOf(p.Channel))
	}
	if !opt.Scale.Set() {
		return nil
	}
	p.Prior, opt.Learn.Noise = free, opt.Learn.Noise || opt.Scale.NoiseVar != 0
	return &try{name: "the common scale learned", problem: &p, opt: opt}
}

// learning is a prior that learns these parameters, too, of one that can; learned are those that it learned before.
func learning(p prior.Prior, add prior.Parameters) (free prior.Learner, learned prior.Parameters, ok bool) {
	g, ok := p.(prior.Slabbed)
	if !ok {
		return nil, 0, false
	}
	return g.Learning(g.Learned() | add), g.Learned(), true
}
