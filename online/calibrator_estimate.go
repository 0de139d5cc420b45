package online

import (
	"fmt"
	"math"
	"slices"

	"github.com/calamp/calamp"
	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/internal/amp"
	"github.com/calamp/calamp/prior"
)

// Estimate is what one sample gave. It belongs to the Calibrator and is valid
// until its next call.
type Estimate struct {
	// Posterior mean of the signal (N), and variance at a fixed global scale. Of a complex signal 2N: real parts, and
	// then imaginary parts.
	X, XVar []float64

	// Posterior mean and variance of the latents (N₂), where signals come out of a network; nil elsewhere.
	Latent, LatentVar []float64

	Status     calamp.Status
	Iterations int

	Committed bool
	Reject    Reject  // why it was not
	Weight    float64 // for how much a sample that was learned from counts: less than 1 where it looks like earlier ones, which have taught the same

	ChiSquare float64    // mean χ² of the readings used, 1 under the model; see [Sanity]
	Used      int        // readings that took part in the reconstruction
	Worst     []Residual // the largest |χ|, flagged and masked sensors included
	Masked    []int      // sensors in use whose reading was set aside in this sample
	Flagged   []int      // sensors that are flagged after this sample
	Outlier   []float64  // M, probability of each reading to be an outlier, above ½ where it was left out; nil where that was not looked at

	Scale     float64 // product of the sample's scale steps
	Retention float64 // what was left of the past, 1 without forgetting

	// Drift is the standard deviation of the relative step that gains make from one
	// sample to the next, while they are found to drift; 0 while they stay, and where
	// that is not looked for.
	Drift float64

	// Disturbed is the common mode of all sensors in this sample, beyond its signal; nil for nothing.
	Disturbed *Disturbance

	// Change is what was found to have changed some samples ago, when the stream goes
	// on with it from this sample; nil otherwise.
	Change *Change

	// Together are all the samples with which a stream with offsets begins, when the last of them has come, or those of a block that has ended; nil
	// otherwise (see [Options.WarmUp] and [Options.Block]).
	Together *Together

	calibrator *Calibrator
	aside      *aside // of a sample from which the calibrator has gone on
}

// aside is what an estimate would compute on call.
type aside struct {
	scaleSD float64
	reason  string
}

// setAside makes the estimate independent of the calibrator.
func (e *Estimate) setAside() {
	reason, sd := e.Reason(), e.ScaleSD()
	e.X, e.XVar, e.aside = slices.Clone(e.X), slices.Clone(e.XVar), &aside{sd, reason}
	e.Latent, e.LatentVar = slices.Clone(e.Latent), slices.Clone(e.LatentVar)
	e.Outlier = slices.Clone(e.Outlier)
}

// Residual is the standardised residual of one sensor; see [Sanity].
type Residual struct {
	Sensor int     // row of W, from 0
	Chi    float64 // of order one under the model
}

// Reject says why a sample was not committed.
type Reject uint8

const (
	Accepted     Reject = iota
	NoReadings          // all readings missing, zero, or of flagged sensors
	Diverged            // estimates blew up
	NotConverged        // x̂ was still moving at the iteration limit
	Unexplained         // residuals too large for the model
	Frozen              // sane, but learning is off
	Interrupted         // the context was cancelled
	WarmingUp           // kept, to be solved together with those that follow
	NoSignal            // noise explains it better than signals do; it teaches nothing
)

// contradicts reports whether the sample contradicts what was learned.
func (r Reject) contradicts() bool { return r == Diverged || r == NotConverged || r == Unexplained }

// unsolved reports whether there is no solution of the sample.
func (r Reject) unsolved() bool { return r == NoReadings || r == Interrupted || r == WarmingUp }

// String is the code as written in JSON; empty for Accepted.
func (r Reject) String() string {
	switch r {
	case Accepted:
		return ""
	case NoReadings:
		return "no readings"
	case Diverged:
		return "diverged"
	case NotConverged:
		return "not converged"
	case Unexplained:
		return "unexplained"
	case Frozen:
		return "frozen"
	case WarmingUp:
		return "warming up"
	case NoSignal:
		return "no signal"
	default:
		return "interrupted"
	}
}

// MarshalText implements encoding.TextMarshaler.
func (r Reject) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

const worstSensors = 5

// report fills the estimate.
func (c *Calibrator) report(reject Reject) {
	est := &c.estimate
	if reject != Accepted {
		c.inheritSpread()
	}
	est.X, est.XVar, est.aside = c.sample.X, c.sample.C, nil
	est.Disturbed = nil
	if !reject.unsolved() {
		est.Disturbed = c.disturbance(reject)
	}
	c.followAnchor()
	c.placePhase()
	est.Latent, est.LatentVar = c.latent()
	est.Drift, est.Change = c.state.drift(), c.change
	est.Status = statusOf(c.outcome)
	est.Iterations = c.solver.Iterations
	est.Scale = c.solver.Scale
	est.Retention = c.retention
	est.Reject, est.Committed = reject, reject == Accepted
	est.Used, est.Weight = c.used(), 0
	if est.Committed {
		est.Weight = c.weight
	}
	est.Outlier = c.ofRows(c.outlying())
	est.ChiSquare = 0
	est.Worst, est.Masked, est.Flagged = est.Worst[:0], est.Masked[:0], est.Flagged[:0]
	solved := reject != NoReadings && est.Iterations > 0
	if solved {
		est.ChiSquare = c.chiSquare()
		c.watchNetwork()
	}
	switch {
	case reject.contradicts():
		c.widenSignal(est.ChiSquare) // the noise is then so many times as large
	case reject == Accepted && c.weight < 1:
		c.widenSignal(c.sharedError(c.weight))
	case reject == Frozen: // gains have the errors of the scenes that they were learned from
		c.widenSignal(c.sharedError(c.weightOf()))
	}
	for mu := range c.m {
		if solved && !math.IsNaN(c.chi[mu]) {
			est.Worst = insertWorst(est.Worst, Residual{mu, c.chi[mu]})
		}
		if c.leftOut(mu) {
			est.Masked = append(est.Masked, mu)
		}
		if c.state.Flag[mu] != Healthy {
			est.Flagged = append(est.Flagged, mu)
		}
	}
}

// widenSignal multiplies the variances of the signal by a factor above 1. Nothing is known less than beforehand.
func (c *solvers) widenSignal(factor float64) {
	if !(factor > 1) {
		return
	}
	e := c.sample
	for i, v := range e.C {
		e.C[i] = max(v, min(v*factor, prior.At(e.Model().Prior, i%c.n).Variance()))
	}
}

// sharedError is the factor by which the variances of a signal are too small that looks like earlier ones: what the gains are wrong by is then
// what those signals were wrong by, and the same again in this one. To a signal the errors of the gains are noise beside V+Δ. So it is what that
// is with a past that says as much of this signal as the signal is let say of the gains, in what it is with all of the past.
func (c *Calibrator) sharedError(weight float64) float64 {
	_, most := channel.Typical(c.sample.Calibration())
	var with, without float64
	for mu := range c.m {
		if v := c.pastSVar[mu]; c.uses(mu) && v > 0 && v < most {
			noise, y := c.sample.U[mu*c.columns]+c.noise, c.power(c.y, mu)/float64(c.columns)
			with += noise + v*y
			without += noise + y/(1/most+weight*(1/v-1/most))
		}
	}
	return without / with
}

// insertWorst keeps the largest residuals, largest first.
func insertWorst(list []Residual, r Residual) []Residual {
	if len(list) == cap(list) {
		if math.Abs(r.Chi) <= math.Abs(list[len(list)-1].Chi) {
			return list
		}
		list = list[:len(list)-1]
	}
	list = append(list, r)
	for i := len(list) - 1; i > 0 && math.Abs(list[i].Chi) > math.Abs(list[i-1].Chi); i-- {
		list[i], list[i-1] = list[i-1], list[i]
	}
	return list
}

func statusOf(o amp.Outcome) calamp.Status {
	switch o {
	case amp.Converged:
		return calamp.Converged
	case amp.Diverged:
		return calamp.Diverged
	case amp.Cancelled:
		return calamp.Cancelled
	default:
		return calamp.NotConverged
	}
}

// ScaleSD is the relative standard deviation of the global scale, common to x and
// s: an error bar of its own beside XVar. It is computed on call, at the cost of
// a few iterations.
func (e *Estimate) ScaleSD() float64 {
	c := e.calibrator
	if e.aside != nil {
		return e.aside.scaleSD
	}
	if c.held.Holds() {
		return c.held.SD
	}
	sd := 0.0
	if e.Committed || e.Iterations == 0 || c.state.Range != nil || e.Together != nil || c.amplitudesOpen() {
		sd = c.scaleSD()
	} else {
		sd = c.withDoubt(c.unlearnedSD())
	}
	return math.Hypot(sd, channel.CommonScaleSD(c.sample.Calibration()))
}

// Reason is the status, and why the sample was not committed, in a sentence.
func (e *Estimate) Reason() string {
	if e.aside != nil {
		return e.aside.reason
	}
	c := e.calibrator
	status := fmt.Sprintf("%s after %d iterations", e.Status, e.Iterations)
	switch {
	case e.Reject == WarmingUp:
		return fmt.Sprintf("the sample is kept: %d of %d samples to be solved together are here", len(c.state.Warm), c.beginning())
	case c.warming() && e.Reject.contradicts():
		return fmt.Sprintf("%d samples solved together gave no answer (%v); the next sample brings another try", c.beginning(), e.Reject)
	}
	switch e.Reject {
	case Accepted:
		return status
	case NoReadings:
		return "no reading can be used: all are missing, zero, or of flagged sensors"
	case NotConverged:
		return fmt.Sprintf("the iteration limit %d was reached with a relative change of %.2g; the tolerance is %.2g", e.Iterations, c.solver.Change[0], c.solver.Tolerance())
	case Unexplained:
		if c.otherNetwork() {
			return c.unrelated.String()
		}
		return fmt.Sprintf("the mean χ² of %d readings is %.3g, and at most %.3g is explained: the noise variance is too small, the sample is no signal of the model, or the sensors have changed", e.Used, e.ChiSquare, c.chiSquareLimit())
	case Diverged:
		if c.overflows() {
			return "many readings are too large to compute with"
		}
		return fmt.Sprintf("the estimates diverged at iteration %d; the last finite ones are returned", e.Iterations)
	case Frozen:
		return status + "; learning is off"
	case NoSignal:
		return status + "; noise explains the readings better than a signal does"
	default:
		return fmt.Sprintf("the sample was cancelled after %d iterations", e.Iterations)
	}
}
