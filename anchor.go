package calamp

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strings"

	"gonum.org/v1/gonum/mat"

	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/internal/amp"
	"github.com/calamp/calamp/internal/diagnosis"
	"github.com/calamp/calamp/prior"
)

// Anchor is what is known of the calibration itself. It takes the place of all
// that the priors say of the global scale: after the run, signals and s are
// multiplied by the factor that it asks for. The zero value is no anchor.
type Anchor struct {
	Mean    float64         // of s over all sensors with readings; 0 says nothing
	Sensors map[int]float64 // s of known sensors, by row of W from 0

	// Phase is the sensor, by row of W from 0, whose phase is taken for 0 where gains are complex and
	// nothing is known of their phases; nil takes that of the sum of all s.
	Phase *int
}

// PhaseSensor is the sensor whose phase is taken for 0; false where none is named.
func (a *Anchor) PhaseSensor() (mu int, ok bool) {
	if a.Phase == nil {
		return 0, false
	}
	return *a.Phase, true
}

// Set reports whether there is anything in it about the scale.
func (a *Anchor) Set() bool { return a.Mean != 0 || len(a.Sensors) > 0 }

// Or is the anchor, with what other says of the scale, or of the phase, where it says nothing.
func (a Anchor) Or(other Anchor) Anchor {
	if !a.Set() {
		a.Mean, a.Sensors = other.Mean, other.Sensors
	}
	if a.Phase == nil {
		a.Phase = other.Phase
	}
	return a
}

// String is as the command's --anchor has it.
func (a Anchor) String() string {
	var words []string
	if a.Mean != 0 {
		words = append(words, fmt.Sprintf("mean=%g", a.Mean))
	}
	if mu, ok := a.PhaseSensor(); ok {
		words = append(words, fmt.Sprintf("phase-sensor=%d", mu))
	}
	for _, mu := range slices.Sorted(maps.Keys(a.Sensors)) {
		words = append(words, fmt.Sprintf("sensor=%d:%g", mu, a.Sensors[mu]))
	}
	return strings.Join(words, " ")
}

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

// ValidateFor reports sensors that are none of so many.
func (a *Anchor) ValidateFor(sensors int) error {
	if mu, ok := a.PhaseSensor(); ok && (mu < 0 || mu >= sensors) {
		return fmt.Errorf("anchored sensor %d: there are %d sensors, counted from 0", mu, sensors)
	}
	for _, mu := range slices.Sorted(maps.Keys(a.Sensors)) {
		if mu < 0 || mu >= sensors {
			return fmt.Errorf("anchored sensor %d: there are %d sensors, counted from 0", mu, sensors)
		}
	}
	return nil
}

// checkAnchor reports an anchor that holds nothing.
func (r *run) checkAnchor() error {
	a := &r.opt.Anchor
	if a.Set() && r.state().Calibration() == nil {
		return fmt.Errorf("a %T calibrates nothing that could be anchored", r.problem.Channel)
	}
	if err := a.ValidateFor(r.state().M); err != nil {
		return err
	}
	if err := r.checkPhaseAnchor(); err != nil {
		return err
	}
	for _, mu := range slices.Sorted(maps.Keys(a.Sensors)) {
		if slices.Contains(r.readings.silent, mu) {
			return fmt.Errorf("anchored sensor %d has no usable reading", mu)
		}
	}
	return nil
}

// anchor brings a result to the scale of its anchor.
func (r *run) anchor(res *Result) *Warning {
	a := &r.opt.Anchor
	if !a.Set() || res.Iterations == 0 {
		return nil
	}
	fit := a.Fit(res.S, res.SVar, r.solver.Heard)
	before := res.ScaleSD
	if fit.Holds() {
		res.ScaleSD, res.placement = fit.SD, amp.Placement{SD: fit.SD}
		res.rescale(fit.Factor)
	}
	if r.opt.Learn.Range {
		before = math.Inf(1)
	}
	return fit.Warning(before)
}

// anchorExcess is how many standard deviations an anchor may be off.
const anchorExcess = 5

// Anchored is the common scale that an anchor asks for.
type Anchored struct {
	Factor float64 // by which signals and s are to be multiplied
	SD     float64 // relative standard deviation of the scale that is then left
	Misfit float64 // sum of the squares by which anchored sensors are off nevertheless, in standard deviations

	anchor *Anchor
}

// Holds reports whether something is known of what is anchored.
func (f Anchored) Holds() bool { return f.Factor > 0 && !math.IsInf(f.Factor, 1) }

// Fit finds the scale for the M calibrations s with variances sVar, of which those count
// that known says something is known of. Where that is none that is anchored, it
// does not hold.
func (a *Anchor) Fit(s, sVar []float64, known func(mu int) bool) Anchored {
	if a.Mean != 0 {
		return a.fitMean(s, sVar, known)
	}
	return a.fitSensors(s, sVar, known)
}

// fitMean is the factor that makes the mean of s what it shall be, and how well it is known.
func (a *Anchor) fitMean(s, sVar []float64, known func(mu int) bool) Anchored {
	var total, variance, count float64
	for mu, v := range s {
		if known(mu) {
			total += v
			variance += sVar[mu]
			count++
		}
	}
	return Anchored{Factor: a.Mean * count / total, SD: math.Sqrt(variance) / total, anchor: a}
}

// fitSensors is the factor that fits the known sensors best, with weights that are the
// inverse variances of log s.
func (a *Anchor) fitSensors(s, sVar []float64, known func(mu int) bool) Anchored {
	weight := func(mu int) float64 { return s[mu] * s[mu] / max(sVar[mu], math.SmallestNonzeroFloat64) }
	sensors := slices.DeleteFunc(slices.Sorted(maps.Keys(a.Sensors)), func(mu int) bool { return !known(mu) })
	var weights, total, misfit float64
	for _, mu := range sensors {
		weights += weight(mu)
		total += weight(mu) * math.Log(a.Sensors[mu]/s[mu])
	}
	shift := total / weights
	for _, mu := range sensors {
		d := math.Log(a.Sensors[mu]/s[mu]) - shift
		misfit += weight(mu) * d * d
	}
	return Anchored{Factor: math.Exp(shift), SD: 1 / math.Sqrt(weights), Misfit: misfit, anchor: a}
}

// Warning is about anchored sensors that contradict each other, and of an anchor far from
// where the model, which has the scale with the relative standard deviation sd, has it.
func (f Anchored) Warning(sd float64) *Warning {
	sensors := slices.Sorted(maps.Keys(f.anchor.Sensors))
	switch others := float64(len(sensors) - 1); {
	case !f.Holds():
		return &Warning{
			Code:    AnchorMismatch,
			Message: "the anchored sensors have no usable readings yet, or are broken: the common scale is the model's",
			Sensors: sensors,
		}
	case f.Misfit > others+anchorExcess*math.Sqrt(2*max(others, 1)):
		return &Warning{
			Code:    AnchorMismatch,
			Message: fmt.Sprintf("the %d anchored sensors contradict each other: χ² = %.3g for %.0f degrees of freedom", len(sensors), f.Misfit, others),
			Sensors: sensors,
		}
	case math.Abs(math.Log(f.Factor)) > anchorExcess*math.Hypot(sd, f.SD):
		return &Warning{
			Code:    AnchorMismatch,
			Message: fmt.Sprintf("the anchor puts the common scale %.4g times where the model does (±%.2g): it is followed", f.Factor, sd),
		}
	}
	return nil
}

// place brings a result to where its global scale belongs. What was given of signals and
// sensors stays as it was given.
func (r *run) place(res *Result, d *diagnosis.Run) {
	s := r.state()
	if s.Placement.Mean == 0 {
		return
	}
	signals, sensors, noise := res.Prior, res.Channel, slices.Clone(res.NoiseVar)
	keep := r.untouched(res, d)
	res.rescale(math.Exp(s.Placement.Mean))
	keep()
	if !s.ScaleLearned || reflect.TypeOf(res.Prior) != reflect.TypeOf(signals) { // a type of the user's own stays
		res.Prior = signals
	}
	if _, own := channel.DetectorOf(res.Channel); own {
		// at the reading, whatever the scale is
	} else if noisy, ok := res.Channel.(channel.Noisy); ok && !r.opt.Learn.Noise && !r.opt.Learn.SensorNoise {
		res.Channel, res.NoiseVar = noisy.WithNoise(channel.NoiseOf(sensors)), noise
	}
	known, ok := res.Channel.(channel.Calibrating)
	switch rejected := d.Rejected(); {
	case !ok:
	case rejected != nil:
		res.Channel = known.WithCalibration(rejected.Bounding(known.Calibration()))
	case !r.opt.Learn.Range:
		res.Channel = known.WithCalibration(channel.CalibrationOf(sensors))
	}
}

// untouched returns what brings back the entries and sensors of which the readings say
// nothing: where they lie was given, and no scale moves it.
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
		if c.Prior.Information(c.Of(mu)) == 0 && d.Rejected() == nil {
			restore = append(restore, func() { res.S[mu], res.SVar[mu], res.Gain[mu] = calibration, sVar, 1/calibration })
		}
	}
	return func() {
		for _, f := range restore {
			f()
		}
	}
}

// scaleBy multiplies a matrix in its place, for which [mat.Dense.Scale] takes a copy.
func scaleBy(c float64, m *mat.Dense) {
	rows, _ := m.Dims()
	for i := range rows {
		row := m.RawRowView(i)
		for k := range row {
			row[k] *= c
		}
	}
}

// rescale multiplies signals and s by c, and all that goes with them.
func (r *Result) rescale(c float64) {
	scaleBy(c, r.X)
	scaleBy(c*c, r.XVar)
	for mu := range r.S {
		r.S[mu] *= c
		r.SVar[mu] *= c * c
		r.Gain[mu] /= c
	}
	for mu := range r.NoiseVar {
		r.NoiseVar[mu] *= c * c
	}
	r.rescaleLatents(c)
	if n, deep := prior.NetworkOf(r.Prior); r.SignalCov != nil && (!deep || n.Scales()) {
		scaleBy(c*c, r.SignalCov)
	}
	r.field.prior = nil // of signals of another scale
	if p, ok := r.Prior.(prior.Scalable); ok {
		r.Prior = p.Scaled(c)
		r.field.prior = distribution(r.Prior)
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
