package calamp

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"

	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/internal/diagnosis"
	"github.com/calamp/calamp/prior"
)

// Anchor is what is known of the calibration itself. It takes the place of all
// that the priors say of the global scale: after the run, signals and s are
// multiplied by the factor that it asks for. The zero value is no anchor.
type Anchor struct {
	Mean    float64         // of s over all sensors with readings; 0 says nothing
	Sensors map[int]float64 // s of known sensors, by row of W from 0
}

func (a *Anchor) set() bool { return a.Mean != 0 || len(a.Sensors) > 0 }

// Validate reports what no calibration can be.
func (a *Anchor) Validate() error {
	if a.Mean != 0 && len(a.Sensors) > 0 {
		return errors.New("an anchor is the mean of s or known sensors, not both")
	}
	if !(a.Mean >= 0) || math.IsInf(a.Mean, 1) {
		return fmt.Errorf("the anchored mean of s must be positive and finite, found %g", a.Mean)
	}
	for mu, s := range a.Sensors {
		if !(s > 0) || math.IsInf(s, 1) {
			return fmt.Errorf("the anchored s of sensor %d must be positive and finite, found %g", mu, s)
		}
	}
	return nil
}

// checkAnchor reports an anchor that holds nothing.
func (r *run) checkAnchor() error {
	a := &r.opt.Anchor
	if a.set() && r.state().Calibration() == nil {
		return fmt.Errorf("a %T calibrates nothing that could be anchored", r.problem.Channel)
	}
	for _, mu := range slices.Sorted(maps.Keys(a.Sensors)) {
		if mu < 0 || mu >= r.state().M {
			return fmt.Errorf("anchored sensor %d: there are %d sensors, counted from 0", mu, r.state().M)
		}
		if slices.Contains(r.readings.silent, mu) {
			return fmt.Errorf("anchored sensor %d has no usable reading", mu)
		}
	}
	return nil
}

// anchor brings a result to the scale of its anchor.
func (r *run) anchor(res *Result) *Warning {
	a := &r.opt.Anchor
	if !a.set() || res.Iterations == 0 {
		return nil
	}
	before := res.ScaleSD
	var factor, misfit float64
	if a.Mean != 0 {
		factor, res.ScaleSD = r.anchorMean(res)
	} else {
		factor, res.ScaleSD, misfit = r.anchorSensors(res)
	}
	res.rescale(factor)
	switch others := float64(len(a.Sensors) - 1); {
	case misfit > others+anchorExcess*math.Sqrt(2*max(others, 1)):
		return &Warning{
			Code:    AnchorMismatch,
			Message: fmt.Sprintf("the %d anchored sensors contradict each other: χ² = %.3g for %.0f degrees of freedom", len(a.Sensors), misfit, others),
			Sensors: slices.Sorted(maps.Keys(a.Sensors)),
		}
	case !r.opt.Learn.Range && math.Abs(math.Log(factor)) > anchorExcess*math.Hypot(before, res.ScaleSD):
		return &Warning{
			Code:    AnchorMismatch,
			Message: fmt.Sprintf("the anchor puts the common scale %.4g times where the model does (±%.2g): it is followed", factor, before),
		}
	}
	return nil
}

// anchorExcess is how many standard deviations an anchor may be off.
const anchorExcess = 5

// anchorMean is the factor that makes the mean of s what it shall be, and how well it is known.
func (r *run) anchorMean(res *Result) (factor, sd float64) {
	var total, variance, count float64
	for mu, s := range res.S {
		if st := r.state(); st.Calibration().Readings(st.Of(st.Stats, mu)) > 0 {
			total += s
			variance += res.SVar[mu]
			count++
		}
	}
	return r.opt.Anchor.Mean * count / total, math.Sqrt(variance) / total
}

// anchorSensors is the factor that fits the known sensors best, how well it is known, and
// the sum of the squares by which they are off nevertheless, in standard deviations.
func (r *run) anchorSensors(res *Result) (factor, sd, misfit float64) {
	sensors := slices.Sorted(maps.Keys(r.opt.Anchor.Sensors))
	var weights, total float64
	for _, mu := range sensors {
		w := weightOf(res, mu)
		weights += w
		total += w * math.Log(r.opt.Anchor.Sensors[mu]/res.S[mu])
	}
	shift := total / weights
	for _, mu := range sensors {
		d := math.Log(r.opt.Anchor.Sensors[mu]/res.S[mu]) - shift
		misfit += weightOf(res, mu) * d * d
	}
	return math.Exp(shift), 1 / math.Sqrt(weights), misfit
}

// weightOf is the inverse variance of log s.
func weightOf(res *Result, mu int) float64 {
	return res.S[mu] * res.S[mu] / max(res.SVar[mu], math.SmallestNonzeroFloat64)
}

// place brings a result to where its global scale belongs. What was told of signals and
// sensors stays as it was told.
func (r *run) place(res *Result, d *diagnosis.Run) {
	s := r.state()
	if s.ScaleMean == 0 {
		return
	}
	signals, sensors := res.Prior, res.Channel
	keep := r.untouched(res, d)
	res.rescale(math.Exp(s.ScaleMean))
	keep()
	if !s.ScaleLearned || reflect.TypeOf(res.Prior) != reflect.TypeOf(signals) { // a type of the user's own stays
		res.Prior = signals
	}
	if noisy, ok := res.Channel.(channel.Noisy); ok && !r.opt.Learn.Noise {
		res.Channel = noisy.WithNoise(channel.NoiseOf(sensors))
	}
	known, ok := res.Channel.(channel.Calibrating)
	switch told := d.Told(); {
	case !ok:
	case told != nil:
		res.Channel = known.WithCalibration(told.Bounding(known.Calibration()))
	case !r.opt.Learn.Range:
		res.Channel = known.WithCalibration(channel.CalibrationOf(sensors))
	}
}

// untouched returns what brings back the entries and sensors of which the readings say
// nothing: where they lie was told, and no scale moves it.
func (r *run) untouched(res *Result, d *diagnosis.Run) (keep func()) {
	var restore []func()
	s := r.state()
	for j, sigma := range s.Sigma {
		if i, k := j%s.N, j/s.N; math.IsInf(sigma, 1) && !s.ScaleLearned {
			x, xVar := res.X.At(i, k), res.XVar.At(i, k)
			restore = append(restore, func() { res.X.Set(i, k, x); res.XVar.Set(i, k, xVar) })
		}
	}
	for mu, calibration := range res.S {
		c, sVar := res.Calibration, res.SVar[mu]
		if c.Prior.Information(c.Of(mu)) == 0 && d.Told() == nil {
			restore = append(restore, func() { res.S[mu], res.SVar[mu], res.Gain[mu] = calibration, sVar, 1/calibration })
		}
	}
	return func() {
		for _, f := range restore {
			f()
		}
	}
}

// rescale multiplies signals and s by c, and all that goes with them.
func (r *Result) rescale(c float64) {
	r.X.Scale(c, r.X)
	r.XVar.Scale(c*c, r.XVar)
	for mu := range r.S {
		r.S[mu] *= c
		r.SVar[mu] *= c * c
		r.Gain[mu] /= c
	}
	r.field.prior = nil // of signals of another scale
	if p, ok := r.Prior.(prior.Scalable); ok {
		r.Prior = p.Scaled(c)
		r.field.prior, _ = r.Prior.(prior.Distribution)
	}
	r.Channel = rescaled(r.Channel, c)
	if q := r.Calibration; q != nil {
		q.Prior.ScaleStats(q.Stats, c)
		q.Prior = q.Prior.Scaled(c)
	}
	for j := range r.field.lambda {
		r.field.lambda[j] *= c
		r.field.sigma[j] *= c * c
	}
}

// rescaled is a channel that calibrates, for signals and s that are c times as large.
func rescaled(ch channel.Channel, c float64) channel.Channel {
	if noisy, ok := ch.(channel.Noisy); ok {
		ch = noisy.WithNoise(c * c * noisy.Noise())
	}
	if known, ok := ch.(channel.Calibrating); ok && known.Calibration() != nil {
		ch = known.WithCalibration(known.Calibration().Scaled(c))
	}
	return ch
}
