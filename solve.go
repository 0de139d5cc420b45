package calamp

import (
	"context"
	"fmt"
	"math"
	"time"

	"gonum.org/v1/gonum/mat"

	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/internal/amp"
	"github.com/calamp/calamp/internal/memory"
	"github.com/calamp/calamp/operator"
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
	if err := opt.Validate(); err != nil {
		return nil, err
	}
	r, err := newRun(p, opt)
	if err != nil {
		return nil, err
	}
	start := time.Now()
	err = r.iterate(ctx)
	if err != nil && ctx.Err() == nil {
		return nil, err
	}
	res := r.result()
	res.Warnings = r.warnings(res)
	if w := r.anchor(res); w != nil {
		res.Warnings = append(res.Warnings, *w)
	}
	res.Wall = time.Since(start)
	return res, err
}

// iteration is what diagonal and full-covariance engines have in common.
type iteration interface {
	amp.Iteration
	LogEvidence() float64
	// MeanV returns the mean variance of z, and its mean |covariance| between signals.
	MeanV() (v, off float64)
}

// run is one call of Solve.
type run struct {
	problem *Problem
	opt     *Options
	m, n, p int

	engine *amp.Engine // the state that results are read from
	step   iteration   // the engine, or its full-covariance variant
	gain   channel.Gain
	blind  bool // the channel calibrates, so the global scale is free

	rounding float64 // noise variance that stands for what rounding W took away

	silent  []int // sensors with no usable reading
	zero    []int // of these, the ones whose readings are all exactly zero
	missing int

	centred  *operator.Centred // W without its means, or nil
	doubtful bool              // came to rest at estimates that disagree with their variances

	solver *amp.Solver // runs step until it settles
	trace  []Iteration
	status Status
	reason string

	scaleSD float64 // before the joint system widened the variances
}

func newRun(p *Problem, opt *Options) (*run, error) {
	if p == nil || p.W == nil || p.Y == nil || p.Prior == nil || p.Channel == nil {
		panic("calamp: Solve needs W, Y, Prior and Channel")
	}
	m, n := p.W.Dims()
	rows, signals := p.Y.Dims()
	if rows != m {
		return nil, shapeError(m, n, rows, signals)
	}
	if err := validate("the signal prior", p.Prior); err != nil {
		return nil, err
	}
	if err := validate("the channel", p.Channel); err != nil {
		return nil, err
	}
	r := &run{problem: p, opt: opt, m: m, n: n, p: signals}
	r.gain, r.blind = channel.Unwrap(p.Channel).(channel.Gain)

	cfg := amp.Config{
		W: p.W, Prior: p.Prior, Channel: p.Channel, P: signals,
		Scalar: opt.Variance == Scalar, Threads: amp.Threads(opt.Threads, m*n*signals),
		Precision: amp.Precision(opt.Precision),
	}
	if opt.Precision == SinglePrecision {
		r.round(&cfg)
	}
	if opt.Covariance == Diagonal && !cfg.Scalar && !opt.NoMeanRemoval {
		centred, err := operator.RemoveMeans(cfg.W, int64(memory.Total()))
		if err != nil {
			return nil, err
		}
		cfg.Centred, r.centred = centred, centred
	}
	if opt.Covariance == Full {
		full, err := amp.NewFull(cfg)
		if err != nil {
			return nil, err
		}
		r.engine, r.step = full.Engine, full
	} else {
		engine, err := amp.New(cfg)
		if err != nil {
			return nil, err
		}
		r.engine, r.step = engine, engine
	}
	r.startCalibration()
	r.solver = amp.NewSolver(r.step, r.engine)
	r.solver.Tol = opt.Tol
	r.solver.Damping = amp.NewDamper(opt.Damping.Fixed())
	r.solver.Gain, r.solver.ScaleSteps = r.gain, r.blind && !opt.NoScaleStep
	r.solver.Each = r.record
	if err := r.learning(); err != nil {
		return nil, err
	}
	if err := r.readings(); err != nil {
		return nil, err
	}
	r.learnFaults(nil)
	if r.blind && opt.Covariance == Diagonal && !opt.NoScaleStep && opt.Tol >= 0 {
		joint, err := amp.NewJoint(r.engine, r.solver.Learn != nil)
		if err != nil {
			return nil, err
		}
		r.solver.Joint = joint
	}
	return r, r.checkAnchor()
}

// round makes the run one on a rounded W, whose noise is larger by what that
// takes away.
func (r *run) round(cfg *amp.Config) {
	cfg.W, r.rounding = amp.Round(cfg.W, cfg.Prior)
	if c, ok := cfg.Channel.(interface {
		WithNoise(v float64) channel.Channel
	}); ok {
		cfg.Channel = c.WithNoise(r.rounding)
	}
	r.gain, r.blind = channel.Unwrap(cfg.Channel).(channel.Gain)
}

// startCalibration sets s to what is known of it beforehand, which is the answer
// of a run that ends before its first iteration.
func (r *run) startCalibration() {
	s, sVar := 1.0, 0.0
	if r.blind {
		s, sVar = r.gain.Prior.Moments()
	}
	for mu := range r.m {
		r.engine.S[mu], r.engine.SVar[mu] = s, sVar
	}
}

func shapeError(m, n, rows, signals int) error {
	hint := ""
	if signals == m {
		hint = "; Y looks transposed"
	} else if rows == n {
		hint = "; W looks transposed"
	}
	return fmt.Errorf("Y is %d×%d, but W is %d×%d: Y must have one row a sensor, M×P = %d×P%s", rows, signals, m, n, m, hint)
}

func validate(what string, v any) error {
	if c, ok := v.(interface{ Validate() error }); ok {
		if err := c.Validate(); err != nil {
			return fmt.Errorf("%s: %w", what, err)
		}
	}
	return nil
}

// readings copies Y to the engine, and takes out what carries no information: a
// sensor whose readings are all exactly zero is disconnected, since a
// reading of a continuous quantity is zero with probability zero.
func (r *run) readings() error {
	for mu := range r.m {
		present, nonzero := 0, 0
		row := r.problem.Y.RawRowView(mu)
		for k, y := range row {
			if math.IsInf(y, 0) {
				return fmt.Errorf("Y: sensor %d, signal %d is %g, expected a finite reading, or NaN for a missing one", mu, k, y)
			}
			if !math.IsNaN(y) {
				present++
				if y != 0 {
					nonzero++
				}
			}
		}
		r.missing += len(row) - present
		copy(r.engine.Y[mu*r.p:], row)
		r.clip(mu)
		if nonzero > 0 {
			continue
		}
		r.silent = append(r.silent, mu)
		if present > 0 && r.blind {
			r.zero = append(r.zero, mu)
			for k := range row {
				r.engine.Y[mu*r.p+k] = math.NaN()
			}
		}
	}
	for k := range r.p {
		if !r.measured(k) {
			return fmt.Errorf("Y: signal %d (column %d) has no non-zero reading: nothing can be recovered from it", k, k)
		}
	}
	return nil
}

// clip brings readings beyond the limit at which sensors saturate to it.
func (r *run) clip(mu int) {
	for j := mu * r.p; j < (mu+1)*r.p; j++ {
		if y := r.engine.Y[j]; r.gain.Clips(y) {
			r.engine.Y[j] = math.Copysign(r.gain.Saturation, y)
		}
	}
}

func (r *run) measured(k int) bool {
	for mu := range r.m {
		if y := r.engine.Y[mu*r.p+k]; !math.IsNaN(y) && y != 0 {
			return true
		}
	}
	return false
}

// record adds an accepted iteration to the trace and reports it.
func (r *run) record(l amp.Line) (disturbed bool) {
	r.learnFaults(r.engine.Broken)
	it := Iteration{Index: l.Index, Change: l.Change, Scale: l.Scale, Damping: l.Damping}
	it.MeanXVar = mean(r.engine.C)
	it.MeanSVar = mean(r.engine.SVar)
	it.MeanV, it.OffV = r.step.MeanV()
	it.LogEvidence = r.step.LogEvidence()
	r.trace = append(r.trace, it)
	if r.opt.Progress != nil {
		r.opt.Progress(it)
	}
	if r.opt.Observe != nil {
		r.opt.Observe(it, r.engine.X, r.engine.S)
	}
	return false
}

// result copies the engine's state out.
func (r *run) result() *Result {
	e := r.engine
	// What was learned is in the engine.
	r.gain, r.blind = channel.Unwrap(e.Channel).(channel.Gain)
	res := &Result{
		Prior: e.Prior, Channel: r.problem.Channel,
		X: mat.NewDense(r.n, r.p, nil), XVar: mat.NewDense(r.n, r.p, nil),
		S: append([]float64(nil), e.S...), SVar: append([]float64(nil), e.SVar...),
		Gain:         make([]float64, r.m),
		Residual:     mat.NewDense(r.m, r.p, nil),
		MeansRemoved: r.centred != nil,
		Status:       r.status, Reason: r.reason,
		Converged: make([]bool, r.p), Change: r.solver.Change,
		Trace: r.trace, Storage: r.engine.Storage(),
	}
	if f, ok := e.Channel.(channel.Faulty); ok {
		res.Broken = append(res.Broken, e.Broken...)
		res.BrokenSensors, res.FaultRate = r.brokenSensors(), f.Rate
	}
	for k := range r.p {
		for i := range r.n {
			res.X.Set(i, k, e.X[k*r.n+i])
			res.XVar.Set(i, k, e.C[k*r.n+i])
		}
		res.Converged[k] = r.solver.Settled[k] >= amp.SettledFor && !r.doubtful
	}
	if r.opt.Learn != (Learn{}) {
		res.Channel = e.Channel
	}
	r.keepPosteriors(res)
	for mu, s := range e.S {
		res.Gain[mu] = 1 / s
		for k := range r.p {
			res.Residual.Set(mu, k, r.residual(mu, k))
		}
	}
	if len(r.trace) > 0 {
		last := r.trace[len(r.trace)-1]
		res.Iterations, res.LogEvidence = last.Index, last.LogEvidence
		res.ScaleSD = r.scaleSD
	}
	return res
}

// residual is how far a reading is from its prediction, in standard deviations;
// 0 for one that is missing, or clipped where it should be.
func (r *run) residual(mu, k int) float64 {
	j := mu*r.p + k
	y := r.engine.Y[j]
	d := r.engine.S[mu]*y - r.engine.Omega[j]
	if math.IsNaN(y) || r.gain.Clips(y) && d*y < 0 {
		return 0
	}
	return d / math.Sqrt(max(r.engine.V[j]+noiseOf(r.engine.Channel), math.SmallestNonzeroFloat64))
}

func noiseOf(c channel.Channel) float64 {
	if c, ok := channel.Unwrap(c).(channel.Noisy); ok {
		return c.Noise()
	}
	return 0
}

func mean(v []float64) float64 {
	total := 0.0
	for _, x := range v {
		total += x
	}
	return total / float64(len(v))
}
