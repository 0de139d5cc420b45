package calamp

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"gonum.org/v1/gonum/mat"

	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/internal/amp"
	"github.com/calamp/calamp/internal/diagnosis"
	"github.com/calamp/calamp/internal/warning"
	"github.com/calamp/calamp/prior"
	"github.com/calamp/calamp/solver"
)

// Solve runs offline cal-AMP on all signals at once (paper, "Cal-AMP as a
// special case of GAMP", with the diagonal ansatz unless opt says otherwise).
//
// It returns an error for a problem or options that make no sense, naming the
// input and the place. Not converging is no error: it is the result's Status.
// When ctx is cancelled the result so far is returned with ctx.Err().
func Solve(ctx context.Context, p *Problem, opt *Options) (*Result, error) {
	if opt == nil {
		opt = &Options{}
	}
	start := time.Now()
	solve := solveOnce
	if opt.Retry {
		solve = solveTrying
	}
	ctx, stop, err := opt.within(ctx, p)
	if err != nil {
		return nil, err
	}
	defer stop()
	if opt, err = p.paired(opt); err != nil {
		return nil, err
	}
	given := p
	if p, err = p.together(opt); err != nil {
		return nil, err
	}
	res, err := solve(ctx, p, opt)
	if res != nil {
		scattered := false
		if err == nil && p.rows != nil {
			res, scattered = given.withRowGains(ctx, opt, res)
		}
		warning.Sort(res.Warnings, func(w Warning) string { return string(w.Code) })
		res.Wall = time.Since(start)
		if !scattered {
			p.rows.apart(res)
		}
		if errors.Is(context.Cause(ctx), errTimeLimit) {
			err = nil
		}
	}
	return res, err
}

// solveOnce is one run, or two where vector AMP turns out to be falsely sure.
func solveOnce(ctx context.Context, p *Problem, opt *Options) (*Result, error) {
	r, err := newRun(p, opt)
	if err != nil {
		return nil, err
	}
	outcome, err := r.solver.Run(ctx, r.opt.limit())
	if err != nil && ctx.Err() == nil {
		return nil, err
	}
	if belong, ok := amp.PartOf[*amp.JointTest](r.solver); ok && belong.Ends && err == nil {
		return solveTogether(ctx, p, opt, r)
	}
	res, falselySure := r.end(outcome, context.Cause(ctx))
	if r.failed != nil {
		return nil, r.failed
	}
	if brightness := r.solver.OneScene(); brightness != nil && err == nil {
		return r.solveAsOne(ctx, res, brightness)
	}
	if falselySure && opt.Algorithm == solver.AutoAlgorithm && err == nil {
		again := *opt
		again.Algorithm = solver.AMP
		if res, err = solveOnce(ctx, p, &again); res != nil {
			res.Plan.Parts[0].Why = "tried: it would be falsely sure of this W"
		}
	}
	return res, err
}

// run is one call of Solve.
type run struct {
	problem  *Problem
	opt      *Options
	readings *readings
	solver   *amp.Solver
	plan     *solver.Plan
	rounding float64 // noise variance that stands for what rounding W took away
	trace    []Iteration
	failed   error // of what was looked for at the fixed point
}

func newRun(p *Problem, opt *Options) (*run, error) {
	if p == nil || p.W == nil || p.Y == nil || p.Prior == nil || p.Channel == nil {
		panic("calamp: Solve needs W, Y, Prior and Channel")
	}
	if err := opt.Validate(); err != nil {
		return nil, err
	}
	_, n := p.W.Dims()
	if err := prior.ValidateFor(p.Prior, n); err != nil {
		return nil, fmt.Errorf("the signal prior: %w", err)
	}
	r := &run{problem: p, opt: opt}
	if err := p.checkComplex(); err != nil {
		return nil, err
	}
	m, _ := p.W.Dims()
	for j := range opt.Directions {
		if err := opt.Directions[j].check(m, n); err != nil {
			return nil, err
		}
	}
	var err error
	if r.readings, err = readingsOf(p); err != nil {
		return nil, err
	}
	if err := p.Channel.Validate(); err != nil { // after Y, from which what is not given of it may have been guessed
		return nil, fmt.Errorf("the channel: %w", err)
	}
	_, signals := p.Y.Dims()
	w, err := opt.moved(p.W)
	if err != nil {
		return nil, err
	}
	_, own := channel.DetectorOf(p.Channel)
	r.solver, r.plan, r.rounding, err = amp.NewSolver(amp.Problem{
		W: w, Spread: opt.SensorSpread, Model: amp.Model{Prior: p.Prior, Channel: p.Channel}, P: signals, Y: r.readings.y, Shared: p.rows.shared(p.given),
		Noise: p.NoiseVar, LearnNoise: opt.Learn.Noise, LearnSensorNoise: opt.Learn.SensorNoise, LearnCalibration: opt.Learn.Range, LearnOffsets: opt.Learn.Offset, LearnPhases: opt.Learn.Phases,
		Outliers: opt.Outliers.Look, OutlierRate: opt.Outliers.Rate, Outlying: opt.outlying, Beyond: r.readings.beyond, Start: opt.start(), StartDraw: opt.draw, UntilOffsets: opt.untilOffsets, Searches: opt.searches, Mix: opt.mix, Joint: opt.joint(own), JointFound: opt.jointFound,
		MatrixError: opt.MatrixError, LearnMatrixError: opt.Learn.MatrixError,
		Watch: &recorder{run: r}, WatchFor: "the trace is kept",
	}, opt.Settings)
	if err != nil {
		return nil, err
	}
	if looked := r.plan.Has("outliers") || r.plan.Has("faults") && channel.ColumnsOf(p.Channel) == 1; !looked {
		if err := r.readings.refuseBeyond(p); err != nil {
			return nil, err
		}
	}
	r.readings.y = nil // the solver has its own
	return r, r.checkAnchor()
}

func (r *run) state() *amp.State { return r.solver.State }

// limit is the iteration limit.
func (o *Options) limit() int {
	if o.MaxIter == 0 {
		return defaultMaxIter
	}
	return o.MaxIter
}

// recorder is the part that keeps the trace and tells the caller of each iteration.
type recorder struct {
	amp.Idle
	run *run
}

// After implements [amp.Part].
func (p *recorder) After(s *amp.Solver, l *amp.Line) amp.Verdict {
	it := Iteration{Algorithm: p.run.plan.Algorithm, Index: l.Index, Change: l.Change, Scale: l.Scale, Damping: l.Damping}
	it.MeanXVar = amp.Mean(s.State.C)
	it.MeanSVar = amp.Mean(s.State.SVar)
	it.MeanV, it.OffV = s.Iteration.MeanV()
	r := p.run
	it.LogEvidence = math.NaN()
	if r.opt.Evidence || r.opt.Progress != nil {
		it.LogEvidence = s.Iteration.LogEvidence()
	}
	r.trace = append(r.trace, it)
	if r.opt.Progress != nil {
		r.opt.Progress(it)
	}
	if r.opt.Observe != nil {
		r.opt.Observe(it, s.State.X, s.State.S)
	}
	return amp.GoOn
}

// end makes the result of a run that has ended, for the given cause where it was cancelled, and says whether its algorithm was not for this W.
func (r *run) end(outcome amp.Outcome, cause error) (res *Result, falselySure bool) {
	r.state().Forget() // the result takes its place
	if n := len(r.trace); n > 0 && math.IsNaN(r.trace[n-1].LogEvidence) {
		r.trace[n-1].LogEvidence = r.solver.Iteration.LogEvidence()
	}
	matrix, err := r.matrixScores(outcome)
	r.failed = err
	d := diagnosis.Of(diagnosis.Run{
		Solver: r.solver, Plan: r.plan, Settings: r.opt.Settings, Limit: r.opt.limit(),
		LearnNoise: r.opt.Learn.Noise || r.opt.Learn.SensorNoise, LearnCalibration: r.opt.Learn.Range, LearnPhases: r.opt.Learn.Phases, Anchored: r.opt.Anchor.Set() || r.opt.Scale.Set() || r.opt.given.bounds != nil,
		GivenNoise: r.leastNoise(), Rounding: r.rounding,
		Silent: r.readings.silent, Zero: r.readings.zero, Outcome: outcome, Changes: r.changes(),
	})
	var reason string
	d.Doubtful, reason = d.Judge(outcome)
	d.Converged = outcome == amp.Converged && !d.Doubtful
	if len(r.trace) > 0 {
		r.solver.Report()
	}
	res = r.result(d)
	r.place(res, d)
	r.placePhase(res)
	res.Status, res.Reason = statusOf(outcome, d.Doubtful), reason
	res.ramp = d.Ramp()
	res.silent = r.solver.Integrated().Silent
	res.offsetScore, res.cut = r.solver.OffsetScore()
	res.hovered = r.solver.Hovered()
	if found, likelier := r.solver.RealSignals(); found {
		res.Plan.Explain("complex numbers", realInWords(likelier))
	}
	if outcome == amp.Cancelled && errors.Is(cause, errTimeLimit) {
		res.Status = TimedOut
		res.Reason = fmt.Sprintf("the time limit of %v came after %d iterations", r.opt.TimeLimit, res.Iterations)
	}
	if text := d.NothingRecovered(); text != "" {
		res.Status, res.Reason = NothingRecovered, text
	}
	scaleBy(d.Excess(), res.XVar)
	for _, w := range d.Warnings() {
		res.Warnings = append(res.Warnings, Warning{WarningCode(w.Code), w.Message, w.Sensors, w.Signals})
	}
	if apart, _ := d.RowsApart(); apart.Disagree() {
		res.widenGains(apart.Ratio)
		res.rowsApart = true
	}
	res.rowsScatter = d.RowsScatter()
	res.widenParts(d.Parts())
	if w := r.anchor(res); w != nil {
		res.Warnings = append(res.Warnings, *w)
	}
	if w := r.contradicted(res); w != nil {
		res.Warnings = append(res.Warnings, *w)
	}
	if matrix != nil {
		res.scores, res.MatrixScores = matrix, matrix.list
		from := float64(surelyDoubtful)
		if res.Status != Converged {
			from = doubtfulEnough
		}
		if w := warnMatrix(matrix.list, from); w != nil {
			res.Warnings = append(res.Warnings, *w)
		}
	}
	if w := warnRandomErrors(r.solver.MatrixDoubtOf(), r.solver.WidenedByHalves(), channel.ColumnsOf(r.problem.Channel) > 1); w != nil && res.Status == Converged {
		res.Warnings = append(res.Warnings, *w)
	}
	if w := diagnosis.Bent(r.solver.Bent().By()); w != nil {
		res.Warnings = append(res.Warnings, Warning{Code: MatrixDoubtful, Message: w.Message})
	}
	r.hold(res)
	if w := r.opt.given.compare(res); w != nil {
		res.Warnings = append(res.Warnings, *w)
	}
	return res, d.FalselySure
}

// realInWords says that signals were found to be real.
func realInWords(likelier float64) string {
	const what = "W and gains are complex, and signals are real"
	if math.IsInf(likelier, 1) {
		return what + ": complex signals came to no fixed point"
	}
	return fmt.Sprintf("%s: the evidence is e^%.3g times that of complex ones", what, likelier)
}

// leastNoise is the least noise variance that was given.
func (r *run) leastNoise() float64 {
	if each := r.problem.NoiseVar; each != nil {
		return amp.Least(each)
	}
	return channel.NoiseOf(r.problem.Channel)
}

// changes are those of the trace.
func (r *run) changes() []float64 {
	list := make([]float64, len(r.trace))
	for i, it := range r.trace {
		list[i] = it.Change
	}
	return list
}

func statusOf(outcome amp.Outcome, doubtful bool) Status {
	switch {
	case outcome == amp.Cancelled:
		return Cancelled
	case outcome == amp.Diverged:
		return Diverged
	case outcome == amp.Converged && !doubtful:
		return Converged
	}
	return NotConverged
}

// result copies the state out.
func (r *run) result(d *diagnosis.Run) *Result {
	s := r.state()
	model := s.Model() // with what was learned
	res := &Result{
		Prior: model.Prior, Channel: r.problem.Channel, Plan: r.plan,
		X: mat.NewDense(s.N, s.P, nil), XVar: mat.NewDense(s.N, s.P, nil),
		S: slices.Clone(s.S), SVar: slices.Clone(s.SVar), Gain: make([]float64, s.M),
		Residual:  mat.NewDense(s.M, s.Each, s.Standardized()),
		Converged: make([]bool, s.P), Change: r.solver.Change,
		Trace: r.trace, Storage: r.solver.Storage(), Arithmetic: r.solver.Arithmetic(),
		Calibration: d.Calibration(), Amplitude: slices.Clone(s.Amplitude),
	}
	if s.Offsets() {
		res.Offset, res.OffsetVar = slices.Clone(s.O), slices.Clone(s.OVar)
	}
	if channel.ColumnsOf(model.Channel) > 1 {
		res.Phase = slices.Clone(s.Phase)
	}
	if f, ok := model.Channel.(channel.Contaminated); ok {
		res.Broken = append(res.Broken, s.Broken...)
		res.BrokenSensors, res.FaultRate = d.BrokenSensors(), f.FaultRate()
	}
	for k := range s.P {
		res.X.SetCol(k, s.X[k*s.N:(k+1)*s.N])
		res.XVar.SetCol(k, s.C[k*s.N:(k+1)*s.N])
		res.Converged[k] = d.SignalConverged(k)
	}
	if r.opt.Learn != (Learn{}) || d.LearnsCalibration() {
		res.Channel = asGain(model.Channel)
	}
	res.takeTheta(r.solver)
	if each := r.solver.Outlying(); each != nil {
		res.Outlier = mat.NewDense(s.M, s.Each, each)
	}
	res.MatrixError, res.MatrixErrorSD = r.solver.MatrixError()
	if s.Unequal() && (res.MatrixError == 0 || r.problem.NoiseVar != nil) {
		res.NoiseVar = s.SensorNoise()
		res.Channel = res.Channel.(channel.Noisy).WithNoise(s.TypicalNoise())
	}
	if before, sd, ok := r.solver.OwnNoise(); ok { // it has the noise, and what is before the division is as given
		res.Channel, res.detectorSD = res.Channel.(channel.Noisy).WithNoise(before), sd
	}
	res.logNoiseSD, res.noisesGiven = s.LogNoiseSD(), r.problem.NoiseVar != nil
	res.jointGain = r.solver.JointGain()
	if q, support := r.solver.Joint(); q != nil {
		res.ownRows, res.rowsThere = r.solver.OwnRows()
		res.Prior = asLearned(model.Prior, r.problem.Prior)
		res.SignalCov, res.Support = signalCov(q.Cov, s.P, s.Columns()), slices.Clone(support)
		res.SignalCov.Scale(q.MeanSize(), res.SignalCov)
		res.rowSizes, res.ownSlab = q.Sizes, r.solver.OwnSlab()
	} else if p := distribution(model.Prior); p != nil && r.opt.Covariance != solver.Full {
		res.field = field{p, s.Amplitude, s.Lambda, s.Sigma}
	}
	res.ColumnShift, res.ColumnShiftSD = r.solver.ColumnShifts()
	if latent, variance := r.solver.Latent(); latent != nil {
		res.Latent, res.LatentVar = columns(latent, s.P), columns(variance, s.P)
		if n, _ := prior.NetworkOf(model.Prior); n.SlackLearned() {
			res.SlackSD = prior.SlackSD(s.X, s.C, s.Lambda, s.Sigma)
		}
	}
	for mu, calibration := range s.S {
		res.Gain[mu] = 1 / calibration
	}
	if len(r.trace) > 0 {
		last := r.trace[len(r.trace)-1]
		res.Iterations, res.LogEvidence = last.Index, last.LogEvidence
		res.ScaleSD, res.placement = s.Placement.SD, s.Placement
	}
	return res
}
