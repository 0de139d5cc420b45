package online

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/mat"

	"github.com/calamp/calamp"
	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/internal/amp"
	"github.com/calamp/calamp/operator"
	"github.com/calamp/calamp/solver"
)

// Sensors with offsets cannot be learned from single samples: what the first one says of the offsets is what its
// signal is wrong by, and the posterior never forgets it. Nor can complex gains of whose phases nothing is known: one
// sample then determines nothing at all. And where all sensors read nearly the same, as of positive signals behind masks, what gains are
// wrong by looks like a signal, the same one in all samples. So such a stream begins with samples that are kept until
// there are enough of them to be solved together, and goes on from there sample by sample.

// LeastWarmUp is the number of samples from which on offsets are found: with fewer their error bars do not hold. It is what a stream whose
// readings are nearly the same begins with.
const LeastWarmUp = 10

// Readings of a sample have one sign where the sum of their signs is this part of their number, and there are so many of them: by
// chance that happens once in half a million samples of twenty.
const (
	oneSign     = 0.95
	leastSigned = 20
)

// knownGains is the relative standard deviation of gains up to which signals can be separated from them however similar readings are: with one of 0.0029
// samples that are learned from one by one are as good, with 0.012 they are not (docs/log/validation.md).
const knownGains = 0.003

// LeastTogether is the number of samples from which on phases can be found of which nothing is known.
const LeastTogether = 2

// beyondStated is how many times their variances the squared errors of offsets are in a stream: what one signal is wrong
// by is in all that it says of them. Empirical: 1.2 times after 20 samples, 1.4 times after 100.
const beyondStated = 1.3

// mostWarmUp bounds the samples that are kept.
const mostWarmUp = 1000

// warmUpIterations is the least number of iterations that samples solved together are given.
const warmUpIterations = 1000

// Together is what the samples with which a stream begins, or those of a block, were found to be when they were solved together.
type Together struct {
	X, XVar *mat.Dense // N×K, in the order in which they came
	Outlier *mat.Dense // M×K, probabilities of readings to be outliers; nil where that was not looked at
	Ago     []int      // K, how many samples came after each; nil where that is K-1, K-2, …

	Unsolved int // of a block: samples that had not been learned from one by one
}

// errOneScene is that of samples that differ in nothing but brightness: they teach no more of the gains than one of them, from which the stream goes on.
var errOneScene = errors.New("the samples are of one scene")

// checkWarmUp reports options that do not go with the channel.
func checkWarmUp(o *Options, g channel.Calibrating) error {
	_, offsets := channel.CalibrationOf(g).(channel.Offsetting)
	_, complexGains := channel.CalibrationOf(g).(channel.Turning)
	switch {
	case len(o.SensorDerivatives) > 0 && o.WarmUp > 1:
		return errors.New("parameters of sensors are learned from single samples: leave out the warm-up")
	case o.WarmUp > mostWarmUp:
		return fmt.Errorf("at most %d samples are solved together, found %d", mostWarmUp, o.WarmUp)
	case complexGains && o.LearnOffsets:
		return errors.New("complex gains have no offsets")
	case channel.PhasesFree(channel.CalibrationOf(g)) && o.WarmUp < LeastTogether:
		return fmt.Errorf("nothing is known of phases, so that a single sample does not determine its signal, and the stream would learn wrong gains: a stream begins with %d samples or more that are solved together (WarmUp), found %d", LeastTogether, o.WarmUp)
	case complexGains:
		return nil
	case !offsets && o.LearnOffsets:
		return fmt.Errorf("a %T has no offsets", g)
	case !offsets || o.Commit == Always && o.WarmUp == 0 && !o.LearnOffsets:
		return nil // the bare recursion
	case o.WarmUp < LeastWarmUp:
		return fmt.Errorf("offsets cannot be learned from single samples: a stream begins with %d of them or more that are solved together (WarmUp), found %d", LeastWarmUp, o.WarmUp)
	case o.Memory > 0:
		return errors.New("a stream with offsets forgets nothing: leave out the memory")
	case len(o.NoiseVar) > 0 && o.LearnNoise:
		return errors.New("noise variances that were given are not learned")
	}
	return nil
}

// startOffsets is the channel with some standard deviation of offsets where it is to be learned from the first samples.
func startOffsets(o *Options, g channel.Calibrating) channel.Calibrating {
	known, ok := channel.CalibrationOf(g).(channel.Offsetting)
	if !ok || !o.LearnOffsets || known.OffsetSD() > 0 {
		return g
	}
	return g.WithCalibration(known.WithOffsetSD(1)).(channel.Calibrating)
}

// offsets is what is known of the sensors' offsets; nil where the channel has none.
func (c *solvers) offsets() channel.Offsetting {
	known, _ := c.sample.Calibration().(channel.Offsetting)
	return known
}

// beginning is how many samples the stream begins with that are solved together. Where none was asked for it follows from what was kept, and
// the sample, so that a process that starts again finds the same.
func (c *Calibrator) beginning() int {
	if c.opt.WarmUp == 0 && (len(c.state.Warm) > 0 || c.oneSigned()) {
		return LeastWarmUp
	}
	return c.opt.WarmUp
}

// oneSigned reports whether the sample's readings leave open what is its signal and what are gains.
func (c *Calibrator) oneSigned() bool {
	if typical, variance := channel.Typical(c.sample.Calibration()); c.columns > 1 || c.opt.Commit != Sane || !(variance > knownGains*knownGains*typical*typical) {
		return false
	}
	if len(c.opt.SensorDerivatives) > 0 {
		return false
	}
	signs, n := 0.0, 0.0
	for mu, y := range c.y {
		if c.candidate(mu) {
			signs += math.Copysign(1, y)
			n++
		}
	}
	return n >= leastSigned && math.Abs(signs) >= oneSign*n
}

// warming reports whether the sample is one of those with which the stream begins.
func (c *Calibrator) warming() bool {
	return c.state.Samples == 0 && !c.opt.Freeze && (c.beginning() > 1 || len(c.state.Warm) > 0)
}

// warmUp keeps the sample, and solves all that were kept when there are enough.
func (c *Calibrator) warmUp(ctx context.Context) (*Estimate, error) {
	if c.opt.RangeGuessed && c.opt.WarmUp == 0 {
		return nil, errors.New("the readings of the first sample have one sign: gains are found from such signals only within a range of s, and none was given (--s-range)")
	}
	s := &c.state
	s.Warm = append(s.Warm, slices.Concat(c.y, c.matrix))
	c.noSample()
	if len(s.Warm) < c.beginning() {
		c.report(WarmingUp)
		return &c.estimate, ctx.Err()
	}
	reject, err := c.solveTogether(ctx)
	if errors.Is(err, errOneScene) {
		s.Warm = nil
		c.begin()
		return c.absorb(ctx)
	}
	if reject != Accepted {
		s.Warm = slices.Delete(s.Warm, 0, 1) // another try with the next sample
	}
	if err != nil {
		return nil, err
	}
	together := c.estimate.Together
	c.report(reject)
	c.estimate.Together = together
	return &c.estimate, ctx.Err()
}

// noSample makes the present estimate that of nothing.
func (c *Calibrator) noSample() {
	c.sample.Reset()
	for mu := range c.chi {
		c.chi[mu] = math.NaN()
	}
	c.outcome, c.spread = amp.AtLimit, 0
	c.notRun()
	c.estimate.Together = nil
}

// solveTogether is an offline problem, after which the stream has learned from all of its signals.
func (c *Calibrator) solveTogether(ctx context.Context) (Reject, error) {
	b, outcome, err := c.runTogether(ctx)
	switch {
	case b == nil:
		return NotConverged, fmt.Errorf("the first %d samples: %w", len(c.state.Warm), err)
	case outcome == amp.Cancelled:
		return Interrupted, err
	case outcome == amp.Diverged:
		return Diverged, nil
	case b.OneScene() != nil && !c.oneSigned():
		return Accepted, errOneScene
	case outcome != amp.Converged && c.opt.Tol >= 0:
		return NotConverged, nil
	case unrecovered(b.State):
		return Unexplained, nil
	}
	c.learnTogether(b)
	c.showTogether(b)
	c.testTogether(b)
	return Accepted, nil
}

// runTogether solves the samples that were kept one by one or, where their entries are there in all of them or in none, as joint rows (see [amp.JointTest]). Where these are no answer they
// are taken for independent after all.
func (c *Calibrator) runTogether(ctx context.Context) (b *amp.Solver, outcome amp.Outcome, err error) {
	for _, joint := range []solver.Joint{solver.AutoJoint, solver.JointOn, solver.JointOff} {
		if b, err = c.together(c.state.Warm, joint); err != nil {
			return nil, outcome, err
		}
		outcome, err = b.Run(ctx, max(c.opt.MaxIter, warmUpIterations))
		test, tested := amp.PartOf[*amp.JointTest](b)
		switch {
		case outcome == amp.Cancelled || joint == solver.AutoJoint && !(tested && test.Ends):
			return b, outcome, err
		case joint == solver.JointOn && (b.OneScene() != nil || outcome == amp.Converged && b.JointGain() > 0):
			return b, outcome, err
		}
	}
	return b, outcome, err
}

// unrecovered reports whether signals were not found: a stream that begins with these would not find its way.
func unrecovered(s *amp.State) bool {
	total := 0.0
	for _, sum := range s.SumC {
		total += sum
	}
	return total > found*float64(len(s.C))*s.Model().Prior.Variance()
}

// readingsOf are those of samples that were kept.
func (c *instrument) readingsOf(kept [][]float64) *mat.Dense {
	y := mat.NewDense(c.m*c.rows, len(kept)*c.parts, nil)
	for k, sample := range kept {
		for mu := range c.m {
			nothing := c.power(sample, mu) == 0
			for j, v := range c.row(sample, mu) {
				if nothing {
					v = math.NaN()
				}
				y.Set(mu*c.rows+j/c.parts, k*c.parts+j%c.parts, v)
			}
		}
	}
	return y
}

// together is the solver of the samples that were kept.
func (c *Calibrator) together(kept [][]float64, joint solver.Joint) (*amp.Solver, error) {
	p := len(kept) * c.parts
	y := c.readingsOf(kept)
	model, err := c.startTogether(y)
	if err != nil {
		return nil, err
	}
	if c.opt.Commit == Sane {
		model.Channel = channel.Faulty{Working: model.Channel}
	}
	w, err := c.matrixTogether(kept)
	if err != nil {
		return nil, err
	}
	b, _, _, err := amp.NewSolver(amp.Problem{
		W: w, Model: model, P: p, Shared: c.shared(), Y: y.RawMatrix().Data, Noise: c.opt.NoiseVar,
		LearnNoise: c.opt.LearnNoise, LearnSensorNoise: c.opt.LearnSensorNoise, LearnOffsets: c.opt.LearnOffsets,
		Outliers: c.outliers != nil, OutlierRate: c.opt.Outliers.Rate, Joint: joint,
	}, c.opt.Settings)
	return b, err
}

// matrixTogether is the W of the samples that were kept.
func (c *solvers) matrixTogether(kept [][]float64) (w operator.Operator, err error) {
	if c.choice == nil {
		return c.sample.W, nil
	}
	matrices := make([]operator.Operator, len(kept))
	for k, sample := range kept {
		if matrices[k], err = c.choice.Of(sample[c.m*c.columns:]); err != nil {
			return nil, err
		}
	}
	return operator.NewEach(matrices, nil)
}

// startTogether is the model with which the samples y begin: what is to be learned of it starts from their moments.
func (c *Calibrator) startTogether(y *mat.Dense) (amp.Model, error) {
	if c.opt.LearnOffsets {
		c.setOffsets(calamp.GuessOffset(y, nil))
	}
	if c.learner == nil {
		return c.sample.Model(), nil
	}
	m, err := c.learner.guess(c, calamp.WithoutOffsets(y, nil))
	if err == nil {
		err = c.setModel(m)
	}
	model := c.sample.Model()
	model.Prior = drawn(model.Prior)
	return model, err
}

// learnTogether makes what the samples said the stream's past.
func (c *Calibrator) learnTogether(b *amp.Solver) {
	s, e := &c.state, b.State
	c.weight = 1
	for mu := range c.m {
		if e.OutOfOrder(mu) {
			s.Flag[mu] = Inconsistent
			clear(e.Of(e.Stats, mu))
			c.restart(mu)
		}
	}
	copy(s.Stats, e.Stats)
	s.Quadratic, s.Volume = b.Sums()
	if c.hearsSignals() {
		s.Signals = e.SignalSums()
	}
	s.Samples, s.Warm = uint64(len(s.Warm)), nil
	if c.bank != nil {
		s.Drift = newDrift(s) // which begins with what they said
	}
	if c.opt.LearnOffsets {
		s.OffsetSD = channel.CalibrationOf(e.Model().Channel).(channel.Offsetting).OffsetSD()
		c.adoptOffsets()
	}
	if c.learner == nil {
		return
	}
	m := c.modelTogether(b)
	if c.learnsEach() {
		m.takeTogether(b.State)
		m.NoiseVar = b.State.TypicalNoise()
	}
	s.Model = m
	if err := c.setModel(m); err != nil {
		panic("calamp: a learned model that is none: " + err.Error())
	}
}

// modelTogether is what was learned of the model.
func (c *Calibrator) modelTogether(b *amp.Solver) *Model {
	learned := b.State.Model()
	if p, is := c.sample.Model().Prior.(following); is {
		learned.Prior = p.Begun(learned.Prior)
	}
	m := modelOf(learned)
	if part, ok := amp.PartOf[*amp.Learning](b); ok && c.opt.LearnNoise {
		m.NoiseInformation = part.Information
	}
	return m
}

// testTogether takes over what the samples said of the range of s, and brings all to where the scale belongs.
func (c *Calibrator) testTogether(b *amp.Solver) {
	test, ok := amp.PartOf[*amp.RangeTest](b)
	if c.given == nil || !ok {
		return
	}
	if test.Rejected {
		learned := channel.CalibrationOf(b.State.Model().Channel).(channel.Gains).Gains()
		c.state.Range = &LearnedRange{Prior: learned, LogRatio: test.LogRatio}
		c.adoptRange()
	}
	c.examineRange()
}

// rescale multiplies all signals by f.
func (t *Together) rescale(f float64) {
	t.X.Scale(f, t.X)
	t.XVar.Scale(f*f, t.XVar)
}

// adoptOffsets takes up the standard deviation of offsets that the state has learned.
func (c *Calibrator) adoptOffsets() {
	if c.offsets() != nil && c.state.OffsetSD > 0 {
		c.setOffsets(c.state.OffsetSD)
	}
}

// setOffsets makes it that of the model.
func (c *solvers) setOffsets(sd float64) {
	m := c.sample.Model()
	m.Channel = m.Channel.(channel.Calibrating).WithCalibration(c.offsets().WithOffsetSD(sd))
	c.sample.Adopt(m)
}

// showTogether makes the latest of the samples the present one, and keeps what all of them are.
func (c *Calibrator) showTogether(b *amp.Solver) {
	e, p := b.State, b.State.P
	t := &Together{X: mat.NewDense(c.n, p, nil), XVar: mat.NewDense(c.n, p, nil)}
	for k := range p {
		t.X.SetCol(k, e.X[k*c.n:(k+1)*c.n])
		t.XVar.SetCol(k, e.C[k*c.n:(k+1)*c.n])
	}
	if each := b.Outlying(); each != nil {
		t.Outlier = c.inRows(mat.NewDense(c.m*c.rows, p, each))
	}
	c.estimate.Together = t
	last := p - c.parts
	c.noise = channel.NoiseOf(e.Model().Channel)
	means, variances := make([]complex128, c.m), make([]float64, c.m)
	if c.columns > 1 {
		for row := range c.m * c.rows {
			from := row*p + last
			copy(c.sample.Omega[row*c.parts:(row+1)*c.parts], e.Omega[from:])
			copy(c.sample.U[row*c.parts:(row+1)*c.parts], e.U[from:])
		}
		c.posteriors(means, variances, e.Stats)
	}
	copy(c.sample.X, e.X[last*c.n:])
	copy(c.sample.C, e.C[last*c.n:])
	for mu := range c.m {
		if !c.candidate(mu) {
			continue
		}
		j := mu*p + last
		if c.columns > 1 {
			c.chi[mu], _ = c.residualOf(mu, means[mu], variances[mu], e.Of(e.Stats, mu))
			continue
		}
		z, doubt := e.S[mu]*c.y[mu], 0.0
		if known := c.offsets(); known != nil {
			z, doubt = known.Corrected(e.Of(e.Stats, mu)).At(c.y[mu])
		}
		c.chi[mu] = (z - e.Omega[j]) / math.Sqrt(e.Doubt(j)+doubt)
	}
	c.outcome = amp.Converged
	c.solver.Iterations = b.Iterations
}
