package diagnosis

import (
	"context"
	"fmt"
	"math"

	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/evolution"
	"github.com/calamp/calamp/internal/amp"
	"github.com/calamp/calamp/prior"
)

const (
	// wellKnown is the part of the signals' own variance below which their posterior
	// variance leaves no doubt that they were recovered.
	wellKnown = 0.015

	// trapped is how many times the error that theory predicts the posterior variance
	// must be for the iteration to have stopped somewhere else. Where signals were
	// recovered it was 1.4 at most, at 300 entries.
	trapped = 2

	// fewerSensors and lessNoise describe the problem that theory must be able to solve
	// for a learned noise to be accepted: this one with a fifth of its sensors taken
	// away, and next to no noise. Failures of finite problems lie within that margin;
	// where more than poorlyKnown is left the density learned may be too small as well,
	// and the margin is that of farFewer.
	fewerSensors = 0.8
	poorlyKnown  = 0.15
	farFewer     = 0.65
	lessNoise    = 1e-3

	theoryTol   = 1e-4
	theorySteps = 200
	converged   = 1e-3 // relative change of an error that has converged
)

// warnUnrecovered is about learned models in which noise may stand for signals that
// were not recovered. Near the threshold both look similar: the iteration converges, its
// error bars are large, and the noise learned is what the residuals are. State
// evolution of the model learned tells where that cannot be ruled out.
func (r *Run) warnUnrecovered() *Warning {
	if !r.Converged || r.Solver.Iterations == 0 || !r.learns() || !r.additive() || r.warnOnlyNoise() != nil {
		return nil
	}
	if w := r.warnNetwork(); w != nil && w.Code == UnrecoveredOrNoise {
		return nil // it says so
	}
	if w := r.warnOneEntry(); w != nil {
		return w
	}
	own, left := r.model().Prior.Variance(), r.unknown()
	if !(left > wellKnown) {
		return nil
	}
	if r.Solver.Integrated() != (amp.Integrated{}) && left <= poorlyKnown {
		return nil // theory is about random matrices and exchangeable entries, and the posterior is found for any
	}
	if r.joint() {
		return r.warnJointUnrecovered(left)
	}
	m := r.theory()
	cause := "theory predicts less than half of that error for the learned model, so the iteration stopped short of it"
	if !reaches(m, left*own/trapped) {
		if cause = nearThreshold(m, left); cause == "" {
			return nil // the noise is what there is
		}
	}
	text := fmt.Sprintf("%.3g %% of the signals' power remains unknown: ", 100*min(left, 1))
	if r.LearnNoise {
		text = fmt.Sprintf("%.3g %% of the signals' power remains unknown, and the noise variance was learned as %.3g: it is noise, or signals that were not recovered; ", 100*min(left, 1), r.noise())
	}
	return &Warning{Code: UnrecoveredOrNoise, Message: text + cause + "; more sensors or signals would decide, or a known noise variance (--noise-var)"}
}

// unknown is the part of the signals' power that their posterior leaves open.
func (r *Run) unknown() float64 { return r.unknownOf(r.state.C) / r.model().Prior.Variance() }

// unknownOf is the mean variance of entries, each one no larger than that of an entry which is not zero: the mean of a scene that a single sensor sees is known as well as the gain of that, and it may be larger than all else.
func (r *Run) unknownOf(variances []float64) (mean float64) {
	most := r.model().Prior.Variance()
	if sparse, ok := r.model().Prior.(prior.Sparse); ok && sparse.NonZero() > 0 {
		most /= sparse.NonZero()
	}
	for _, v := range variances {
		mean += min(v, most) / float64(len(variances))
	}
	return mean
}

// warnOneEntry is about one signal, of which a single entry was found. Gains and other entries that are small beside it look like noise then, and the density of largest likelihood
// is that of one entry: of 16 field problems with one signal that ended with exit 0 two had, and had lost all other entries, with error bars of zero.
func (r *Run) warnOneEntry() *Warning {
	p, is := r.model().Prior.(interface{ GaussBernoulliPrior() prior.GaussBernoulli })
	if !is || !r.LearnNoise || !r.blind() || r.signals() > 1 || r.shared() || p.GaussBernoulliPrior().Density*float64(r.state.N) >= 2 {
		return nil
	}
	return &Warning{Code: UnrecoveredOrNoise, Message: fmt.Sprintf("a single entry of the one signal was found, and the noise variance was learned as %.3g: it is noise, or entries that were not recovered and gains, which one signal does not tell apart; more signals would decide, or a known noise variance (--noise-var)", r.noise())}
}

// nearThreshold tells of a problem that theory could not solve with somewhat fewer sensors, not
// even without noise; left is the posterior variance relative to the signals' own.
func nearThreshold(m theory, left float64) string {
	alpha := m.Alpha
	if left > poorlyKnown {
		m.Alpha *= farFewer
	} else {
		m.Alpha *= fewerSensors
	}
	m.NoiseVar *= lessNoise
	if reaches(m, wellKnown*m.Variance()) {
		return ""
	}
	return fmt.Sprintf("α = M/N = %.3g is close to the least at which theory recovers %s of density %.3g", alpha, m.entries(), m.Density())
}

// theory is a problem that state evolution is asked about.
type theory struct {
	evolution.Model
	spectrum evolution.Spectrum // the zero value: independent entries, and AMP

	gains *channel.ComplexPrior // of a complex problem, of whose numbers Model has one part; nil for a real one
}

const (
	// complexPoints is how many readings theory averages over for complex gains: to a percent or so.
	complexPoints = 512

	// halfKnown is the overlap from which theory starts where phases are free. A run that came anywhere did not stay at nothing, which is a fixed
	// point of all of these problems: the question is whether its answer is the fixed point of those that begin near it.
	halfKnown = 0.5
)

// reachesComplex is reaches for complex problems; target is of a part.
func reachesComplex(m theory, target float64) bool {
	t, err := evolution.ComplexOffline(context.Background(), evolution.ComplexModel{
		Signal: prior.ComplexGaussBernoulli{Density: m.Signal.Density, SignalVar: 2 * m.Signal.SignalVar},
		Gain:   *m.gains, NoiseVar: 2 * m.NoiseVar, Alpha: m.Alpha, P: m.P,
	}, &evolution.ComplexOptions{Iterations: theorySteps, Tol: converged, Points: complexPoints, Spectrum: m.spectrum, Overlap: halfKnown})
	if err != nil {
		return true // nothing to be said against it
	}
	return !(t.Steps[len(t.Steps)-1].MSEX.Value > 2*target)
}

// fewDifferent is α times the number of signals that differ below which free phases may not be determined: at 1 and less
// signals do not grow from nothing.
const fewDifferent = 2

// phasesOpen says that phases are free and signals so similar that hardly anything separates the ones from the others,
// where they are not known well.
func (r *Run) phasesOpen() string {
	if !channel.PhasesFree(r.calibration()) || !(r.unknown() > wellKnown) {
		return ""
	}
	share, _ := r.Solver.Widening()
	differ := float64(r.usable()) / float64(r.state.N) / share
	if !(share > 0) || differ > fewDifferent {
		return ""
	}
	return fmt.Sprintf("phases are free, and one pattern of the signals has a share %.3g of the readings' power: α times the number of signals that differ is %.2g, and near 1 phases cannot be separated from signals; signals that differ more, nominal phases (--phase κ), or more sensors would help", share, differ)
}

// learns says whether anything of the model is learned. Rows that belong together leave a prior that learns no more, and have learned their covariance; the noise that is given may explain what is open.
func (r *Run) learns() bool {
	return r.joint() && r.warnUnexplained() != nil || prior.LearnerOf(r.model().Prior) != nil || r.LearnNoise || r.LearnCalibration
}

// theory is the model of state evolution that is nearest to the run's: signals of the same
// density, mean and variance, s uniform with the same mean and variance, W with independent
// entries, or for vector AMP with the same singular values.
func (r *Run) theory() theory {
	s := r.state
	readings, many := 0, r.manyBroken()
	for j, y := range s.Y {
		if !math.IsNaN(y) && (many || !r.isBroken(s.SensorOf(j))) {
			readings++
		}
	}
	m := theory{Model: evolution.Model{
		Signal: gaussBernoulli(r.model().Prior), Gain: evolution.Known(1),
		NoiseVar: r.noise() / (s.MeanSquare() * float64(s.N)),
		Alpha:    float64(readings) / float64(s.N*s.P), P: s.Each,
	}}
	if g, ok := r.model().Prior.(interface{ GroupsPrior() prior.Groups }); ok {
		m.Groups = evolution.GroupsOf(g.GroupsPrior())
	}
	m.takeNetwork(r.model().Prior)
	if singular := r.Solver.Singular(); singular != nil {
		if spectrum, err := evolution.SpectrumOf(singular); err == nil {
			m.spectrum = spectrum
		}
	}
	if known, ok := r.calibration().(channel.ComplexPrior); ok {
		m.gains, m.P = &known, s.Each/s.Columns()
		return m
	}
	if r.blind() {
		const leastEnd = 0.02 // of a range, relative to its middle
		middle, variance := channel.Typical(r.calibration())
		half := min(math.Sqrt(3*variance), (1-leastEnd)*middle)
		m.Gain = channel.Uniform(middle-half, middle+half)
	}
	return m
}

// gaussBernoulli has the density, mean and variance of p.
func gaussBernoulli(p prior.Prior) prior.GaussBernoulli {
	if g, ok := p.(interface{ GaussBernoulliPrior() prior.GaussBernoulli }); ok {
		return g.GaussBernoulliPrior()
	}
	density := 1.0
	if sparse, ok := p.(prior.Sparse); ok {
		density = sparse.NonZero()
	}
	center := p.Mean() / density
	return prior.GaussBernoulli{
		Density: density, SignalMean: center,
		SignalVar: max(p.Variance()/density-(1-density)*center*center, 1e-6*p.Variance()),
	}
}

// reaches says whether state evolution falls below an error on an entry, from no information. It is
// iterated no further than that: small errors are expensive to average over.
func reaches(m theory, target float64) bool {
	opt := &evolution.Options{Tol: theoryTol}
	if m.gains != nil {
		return reachesComplex(m, target)
	}
	if !m.spectrum.Independent() {
		opt.Iterations = theorySteps
		p, err := evolution.VectorFixedPoint(context.Background(), m.Model, m.spectrum, opt)
		return err != nil || !(p.MSEX.Value > target)
	}
	v := m.Variance()
	for range theorySteps {
		sensor, err := m.Sensor(context.Background(), v, opt)
		if err != nil {
			return true // nothing to be said against it
		}
		next := m.Entry(1/(m.Alpha*sensor.MHat.Value), opt).MMSE.Value
		if !(next > target) {
			return true
		}
		if next > v*(1-converged) {
			return false
		}
		v = next
	}
	return false
}
