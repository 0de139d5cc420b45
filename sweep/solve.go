package sweep

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"gonum.org/v1/gonum/mat"

	"github.com/calamp/calamp"
	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/online"
	"github.com/calamp/calamp/solver"
	"github.com/calamp/calamp/teacher"
)

func solveOffline(ctx context.Context, p Point, threads int, instance *teacher.Instance) (*outcome, error) {
	t := p.teacher()
	opt := p.options()
	opt.Threads = threads
	out := &outcome{}
	truth := transposed(instance.Truth.X)
	watched, stop := context.WithCancel(ctx)
	defer stop()
	learns, givenUp := learning{priorVar: t.Signal.Variance()}, false
	if p.Record.Trajectory || p.Solver.GiveUp {
		opt.Observe = func(it calamp.Iteration, x, s []float64) {
			if p.Record.Trajectory {
				v := Values{}
				errorsOf(v, x, truth, s, instance.Truth.S)
				v.set("x_var", it.MeanXVar)
				v.set("s_var", it.MeanSVar)
				out.measures = append(out.measures, Measure{Iteration: it.Index, Values: v})
			}
			if p.Solver.GiveUp && learns.hopeless(it) {
				givenUp = true
				stop()
			}
		}
	}
	res, err := calamp.Solve(watched, t.Problem(instance), opt)
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
		out.measures = []Measure{{Iteration: res.Iterations, Values: offlineValues(res, instance)}}
	}
	return out, predict(ctx, p, out)
}

func offlineValues(res *calamp.Result, in *teacher.Instance) Values {
	v := Values{}
	x, truth := transposed(res.X), transposed(in.Truth.X)
	errorsOf(v, x, truth, res.S, in.Truth.S)
	v.set("scale_sd", res.ScaleSD)
	intervals(v, "x", x, transposed(res.XVar), truth, res.ScaleSD)
	intervals(v, "s", res.S, res.SVar, in.Truth.S, res.ScaleSD)
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
func solveOnline(ctx context.Context, p Point, threads int, instance *teacher.Instance) (*outcome, error) {
	t := p.teacher()
	run := &onlineRun{Point: p, instance: instance, truth: transposed(instance.Truth.X)}
	opt := run.options(threads)
	c, err := online.NewCalibrator(instance.W, t.Signal, channel.Gain{Prior: t.Gain, NoiseVar: t.NoiseVar}, opt)
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
	instance *teacher.Instance
	truth    []float64 // P×N
	present  int       // sample, from 0
}

func (r *onlineRun) options(threads int) *online.Options {
	opt := &online.Options{Settings: r.Solver.Settings, Commit: r.Solver.Commit}
	opt.Threads = threads
	// The paper's model, as offline: gains that stay, uniform, and the scale where it is likeliest.
	opt.Still, opt.SPrior, opt.ScaleAtPeak = true, solver.UniformS, true
	if r.Record.Trajectory {
		opt.Observe = func(iteration int, x, s []float64) {
			if r.records(r.present) {
				v := Values{}
				errorsOf(v, x, r.signal(r.present), s, r.instance.Truth.S)
				r.measures = append(r.measures, Measure{Sample: r.present + 1, Iteration: iteration, Values: v})
			}
		}
	}
	return opt
}

func (r *onlineRun) signal(k int) []float64 { return r.truth[k*r.N : (k+1)*r.N] }

func (r *onlineRun) sample(ctx context.Context, c *online.Calibrator, k int) error {
	r.present = k
	e, err := c.Absorb(ctx, mat.Col(nil, k, r.instance.Y))
	if err != nil {
		return err
	}
	r.iterations += e.Iterations
	r.status = e.Status.String() // of the last sample
	recorded := !r.Record.Trajectory && r.records(k)
	asked := r.Solver.GiveUp && (k+1)%hopelessSamples == 0 && k < r.P-1
	if !recorded && !asked {
		return nil
	}
	v, post, sd := Values{}, c.Posterior(), e.ScaleSD()
	errorsOf(v, e.X, r.signal(k), post.S, r.instance.Truth.S)
	v.set("scale_sd", sd)
	intervals(v, "x", e.X, e.XVar, r.signal(k), sd)
	intervals(v, "s", post.S, post.SVar, r.instance.Truth.S, sd)
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
	v.set("x_mse", m.XMSE)
	v.set("x_mse_scaled", m.XMSEScaled)
	v.set("x_one_minus_ncc", m.XOneMinusNCC)
	v.set("s_mse", m.SMSE)
	v.set("s_mse_scaled", m.SMSEScaled)
	v.set("s_one_minus_cncc", m.SOneMinusCNCC)
	v.set("scale", m.Scale)
	raw := calamp.Score(mat.NewDense(len(s), 1, s), nil, calamp.Truth{X: mat.NewDense(len(s0), 1, s0)})
	v.set("s_one_minus_ncc", raw.XOneMinusNCC)
}

// levels are the credible intervals of Gaussian posteriors, in standard deviations.
var levels = []struct {
	name  string
	width float64
}{{"50", 0.6744897501960817}, {"90", 1.6448536269514722}, {"99", 2.5758293035489004}}

// intervals records the mean posterior variance, and which fraction of true
// values is inside the intervals of its standard deviation, that of the common
// scale included.
func intervals(v Values, name string, mean, variance, truth []float64, scaleSD float64) {
	total := 0.0
	inside := make([]int, len(levels))
	for i, value := range mean {
		total += variance[i]
		sd := math.Sqrt(variance[i] + value*value*scaleSD*scaleSD)
		for l, level := range levels {
			if math.Abs(value-truth[i]) <= level.width*sd {
				inside[l]++
			}
		}
	}
	n := float64(max(1, len(mean)))
	v.set(name+"_var", total/n)
	for l, level := range levels {
		v.set(name+"_in_"+level.name, float64(inside[l])/n)
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
