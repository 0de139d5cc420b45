package sweep

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat"

	"github.com/calamp/calamp"
	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/online"
	"github.com/calamp/calamp/solver"
)

func solveOffline(ctx context.Context, p Point, threads int, in posed) (*outcome, error) {
	opt := p.options()
	opt.Threads = threads
	out := &outcome{}
	truth := transposed(in.truth.X)
	watched, stop := context.WithCancel(ctx)
	defer stop()
	learns, givenUp := learning{priorVar: in.Prior.Variance()}, false
	if p.Record.Trajectory || p.Solver.GiveUp {
		opt.Observe = func(it calamp.Iteration, x, s []float64) {
			if p.Record.Trajectory {
				v := Values{}
				p.errors(v, x, truth, s, in.truth)
				v.set("x_var", float64(p.columns())*it.MeanXVar)
				v.set("s_var", it.MeanSVar)
				out.measures = append(out.measures, Measure{Iteration: it.Index, Values: v})
			}
			if p.Solver.GiveUp && learns.hopeless(it) {
				givenUp = true
				stop()
			}
		}
	}
	res, err := calamp.Solve(watched, in.Problem, &opt)
	if err != nil && !(givenUp && ctx.Err() == nil) {
		return nil, err
	}
	out.status, out.iterations = res.Status.String(), res.Iterations
	switch {
	case givenUp:
		out.status = statusGivenUp
	case res.Status == calamp.NothingRecovered:
		out.status = calamp.Converged.String() // a row says how the iteration ended; its errors say the rest
	}
	if !p.Record.Trajectory {
		out.measures = []Measure{{Iteration: res.Iterations, Values: p.offlineValues(res, in.truth)}}
	}
	return out, predict(ctx, p, out)
}

// columns is how many an entry has.
func (p Point) columns() int {
	if p.Complex() {
		return 2
	}
	return 1
}

// errors are those of estimates while a run goes on: of complex gains only the sizes are known then, and nothing is said of them.
func (p Point) errors(v Values, x, x0, s []float64, truth calamp.Truth) {
	if p.Complex() {
		complexErrors(v, x, x0, p.N, nil, calamp.Truth{})
		return
	}
	errorsOf(v, x, x0, s, truth.S)
}

func (p Point) offlineValues(res *calamp.Result, truth calamp.Truth) Values {
	v := Values{}
	if p.Complex() {
		p.complexOffline(v, res, truth)
	} else {
		x, x0 := transposed(res.X), transposed(truth.X)
		errorsOf(v, x, x0, res.S, truth.S)
		v.set("scale_sd", res.ScaleSD)
		intervals(v, "x", x, transposed(res.XVar), x0, res.ScaleSD)
		intervals(v, "s", res.S, res.SVar, truth.S, res.ScaleSD)
	}
	if n := len(res.Trace); n > 0 {
		v.set("v_diagonal", res.Trace[n-1].MeanV)
		v.set("v_off_diagonal", res.Trace[n-1].OffV)
	}
	return v
}

// transposed lists a matrix column by column.
func transposed(m *mat.Dense) []float64 {
	rows, columns := m.Dims()
	out := make([]float64, 0, rows*columns)
	for k := range columns {
		for i := range rows {
			out = append(out, m.At(i, k))
		}
	}
	return out
}

// solveOnline streams P samples through one calibrator. What is recorded of a
// sample is the error of its own signal, and of s once it was learned from.
func solveOnline(ctx context.Context, p Point, threads int, in posed) (*outcome, error) {
	run := &onlineRun{Point: p, problem: in.Problem, truth: in.truth, x: transposed(in.truth.X)}
	opt := run.options(threads)
	c, err := online.NewCalibrator(in.W, in.Prior, in.Channel.(channel.Calibrating), opt)
	if err != nil {
		return nil, err
	}
	for k := range p.P {
		if err := run.sample(ctx, c, k); err != nil {
			return nil, err
		}
		if run.status == statusGivenUp {
			break
		}
	}
	return &run.outcome, predict(ctx, p, &run.outcome)
}

type onlineRun struct {
	Point
	outcome
	problem *calamp.Problem
	truth   calamp.Truth
	x       []float64 // P×N, of complex signals all real parts and then all imaginary ones of each
	present int       // sample, from 0
}

func (r *onlineRun) options(threads int) *online.Options {
	opt := &online.Options{Settings: r.Solver.Settings, Commit: r.Solver.Commit}
	opt.Threads = threads
	// The paper's model, as offline: gains that stay, uniform, and the scale where it is likeliest.
	opt.Still, opt.Certain = true, true
	opt.SPrior, opt.ScaleAtPeak = solver.UniformS, true
	opt.WarmUp = r.together()
	if r.Record.Trajectory {
		opt.Observe = func(iteration int, x, s []float64) {
			if r.records(r.present) {
				v := Values{}
				r.errors(v, x, r.signal(r.present), s, r.truth)
				r.measures = append(r.measures, Measure{Sample: r.present + 1, Iteration: iteration, Values: v})
			}
		}
	}
	return opt
}

func (r *onlineRun) signal(k int) []float64 {
	size := r.columns() * r.N
	return r.x[k*size : (k+1)*size]
}

// reading is that of sample k.
func (r *onlineRun) reading(k int) []float64 {
	if !r.Complex() {
		return mat.Col(nil, k, r.problem.Y)
	}
	y := make([]float64, 0, 2*r.sensors())
	for mu := range r.sensors() {
		y = append(y, r.problem.Y.At(mu, 2*k), r.problem.Y.At(mu, 2*k+1))
	}
	return y
}

func (r *onlineRun) sample(ctx context.Context, c *online.Calibrator, k int) error {
	r.present = k
	e, err := c.Absorb(ctx, r.reading(k))
	if err != nil {
		return err
	}
	r.iterations += e.Iterations
	r.status = e.Status.String() // of the last sample
	recorded := !r.Record.Trajectory && r.records(k)
	asked := r.Solver.GiveUp && (k+1)%hopelessSamples == 0 && k < r.P-1 && r.unknown(float64(r.columns())*stat.Mean(e.XVar, nil))
	if !recorded && !asked {
		return nil
	}
	v, post := Values{}, c.Posterior()
	sd := post.ScaleSD // and that of x
	if r.Complex() {
		t := turned{size: post.S, phase: post.Phase, variance: post.SVar, from: post.Calibration, scaleSD: sd, phaseSD: post.PhaseSD, free: post.PhaseFree}
		m := complexErrors(v, e.X, r.signal(k), r.N, t.means(), r.truth)
		t.intervals(v, e.X, e.XVar, r.signal(k), r.N, r.truth, m)
	} else {
		errorsOf(v, e.X, r.signal(k), post.S, r.truth.S)
		v.set("scale_sd", sd)
		intervals(v, "x", e.X, e.XVar, r.signal(k), sd)
		intervals(v, "s", post.S, post.SVar, r.truth.S, sd)
	}
	if asked && r.hopeless(v) {
		r.status, recorded = statusGivenUp, !r.Record.Trajectory
	}
	if !recorded {
		return nil
	}
	r.measures = append(r.measures, Measure{Sample: k + 1, Iteration: e.Iterations, Values: v})
	return nil
}

// records says whether sample k, from 0, is to be recorded.
func (p Point) records(k int) bool {
	if len(p.Record.Samples) == 0 {
		return k == p.P-1
	}
	return slices.Contains(p.Record.Samples, k+1)
}

// errorsOf compares estimates with the truth: the errors of [calamp.Score], and
// the correlation of s as the paper has it, means not subtracted, which is
// nearly one for any estimate when the range is narrow.
func errorsOf(v Values, x, x0, s, s0 []float64) {
	m := calamp.Score(mat.NewDense(len(x), 1, x), s, calamp.Truth{X: mat.NewDense(len(x0), 1, x0), S: s0})
	v.score(m, true)
	raw := calamp.Score(mat.NewDense(len(s), 1, s), nil, calamp.Truth{X: mat.NewDense(len(s0), 1, s0)})
	v.set("s_one_minus_ncc", raw.XOneMinusNCC)
}

// score sets the errors of signals, and where s is known those of gains.
func (v Values) score(m calamp.Metrics, gains bool) {
	v.set("x_mse", m.XMSE)
	v.set("x_mse_scaled", m.XMSEScaled)
	v.set("x_one_minus_ncc", m.XOneMinusNCC)
	v.set("scale", m.Scale)
	if gains {
		v.set("s_mse", m.SMSE)
		v.set("s_mse_scaled", m.SMSEScaled)
		v.set("s_one_minus_cncc", m.SOneMinusCNCC)
	}
}

// levels are the credible intervals of Gaussian posteriors, in standard deviations.
var levels = [...]struct {
	name  string
	width float64
}{{"50", 0.6744897501960817}, {"90", 1.6448536269514722}, {"99", 2.5758293035489004}}

// intervals records the mean posterior variance, and which fraction of true
// values is inside the intervals of its standard deviation, that of the common
// scale included.
func intervals(v Values, name string, mean, variance, truth []float64, scaleSD float64) {
	total := 0.0
	var inside held
	for i, value := range mean {
		total += variance[i]
		inside.add(value-truth[i], math.Sqrt(variance[i]+value*value*scaleSD*scaleSD))
	}
	v.set(name+"_var", total/float64(max(1, len(mean))))
	inside.set(v, name)
}

// held counts what is inside the intervals.
type held struct {
	inside [len(levels)]int
	of     int
}

func (h *held) add(off, sd float64) {
	h.of++
	for l, level := range levels {
		if math.Abs(off) <= level.width*sd {
			h.inside[l]++
		}
	}
}

func (h *held) set(v Values, name string) {
	if h.of == 0 {
		return // what is known beforehand
	}
	for l, level := range levels {
		v.set(name+"_in_"+level.name, float64(h.inside[l])/float64(h.of))
	}
}

// rehearse takes its time.
func rehearse(ctx context.Context, p Point) (*outcome, error) {
	switch p.Seed {
	case p.Rehearse.Panic:
		panic(fmt.Sprintf("seed %d was to panic", p.Seed))
	case p.Rehearse.Hang:
		<-ctx.Done()
		return nil, ctx.Err()
	}
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-time.After(time.Duration(p.Rehearse.Work)):
	}
	v := Values{"x_mse": rand.New(rand.NewPCG(p.stream(), 0)).Float64()}
	return &outcome{status: statusDone, measures: []Measure{{Values: v}}}, nil
}
