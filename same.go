package calamp

import (
	"context"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/mat"

	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/prior"
	"github.com/calamp/calamp/solver"
)

// oneSceneReach is how near one signal comes to its fixed point, in posterior standard deviations: with 1e-3 36 scenes took 20 iterations more, and no answer changed.
const oneSceneReach = 1e-2

// solveAsOne solves a problem whose signals were found to differ in brightness alone (see [amp.Solver.OneScene]): they are one signal, read once with a P-th of the noise. Joint rows of
// one scene settle where they should not: of eight scenes of 200 entries and 140 sensors s was inside its 95 % intervals 73 to 98 % of the time, after 60 to more than 500 iterations, with up to twice the errors
// of one signal. res is the result so far.
func (r *run) solveAsOne(ctx context.Context, res *Result, brightness []float64) (*Result, error) {
	m, p := r.problem.Y.Dims()
	s := r.state()
	noise := channel.NoiseOf(s.Model().Channel)
	y, each, read := mat.NewDense(m, 1, nil), make([]float64, m), 0
	for mu := range m {
		along, square := 0.0, 0.0
		for k, u := range brightness {
			v := r.problem.Y.At(mu, k)
			if math.IsNaN(v) || s.OutOfOrder(mu) || res.Outlier != nil && res.Outlier.At(mu, k) > 0.5 {
				continue
			}
			weight := u / s.Noise(mu*p+k)
			along, square = along+weight*v, square+weight*u
		}
		if each[mu] = noise / float64(p); square > 0 {
			each[mu], read = 1/square, read+1
		}
		y.Set(mu, 0, along/square) // NaN without readings
	}
	if 2*read < m { // what is not broken differs in nothing, and that says nothing
		return res, nil
	}
	one, opt := *r.problem, *r.opt
	one.Y, one.NoiseVar = y, each
	one.Channel = channel.InOrder(s.Model().Channel).(channel.Noisy).WithNoise(noise / float64(p))
	if known, ok := prior.LearnerOf(one.Prior).(prior.Slabbed); ok {
		g, _ := s.Model().Prior.(prior.GaussBernoulli)
		one.Prior = g.Learning(known.Learned())
	}
	opt.from = r.oneSignal(res, brightness)
	opt.mix, opt.NoScaleStep, opt.Joint, opt.Learn.Noise, opt.Outliers = true, true, solver.JointOff, false, Outliers{}
	if opt.MaxIter == mostFirst { // no further try is any better
		opt.MaxIter = mostFurther
	}
	alone, err := newRun(&one, &opt)
	if err != nil {
		return nil, err
	}
	alone.solver.Reach = oneSceneReach
	outcome, err := alone.solver.Run(ctx, alone.opt.limit())
	if err != nil && ctx.Err() == nil {
		return nil, err
	}
	part, _ := alone.end(outcome, context.Cause(ctx))
	if alone.failed != nil {
		return nil, alone.failed
	}
	alone.spread(part, res, r.problem.Y, s.Noise, brightness)
	res.oneScene = true
	return res, err
}

// oneSignal is what joint rows know of the one signal.
func (r *run) oneSignal(res *Result, brightness []float64) *Result {
	n, p := res.X.Dims()
	x, v := mat.NewDense(n, 1, nil), mat.NewDense(n, 1, nil)
	for i := range n {
		for k, u := range brightness { // of mean square 1
			x.Set(i, 0, x.At(i, 0)+u*res.X.At(i, k)/float64(p))
			v.Set(i, 0, v.At(i, 0)+res.XVar.At(i, k)/float64(p))
		}
	}
	return &Result{X: x, XVar: v, S: res.S}
}

// spread makes the result of one signal that of signals which are as many times as bright, in to.
func (r *run) spread(part, to *Result, readings *mat.Dense, noise func(j int) float64, brightness []float64) {
	p, s := len(brightness), r.state()
	for k, u := range brightness {
		for i := range s.N {
			to.X.Set(i, k, u*part.X.At(i, 0))
			to.XVar.Set(i, k, u*u*part.XVar.At(i, 0))
		}
		for mu := range s.M {
			if j := mu*p + k; to.Residual.At(mu, k) != 0 { // else there is no reading
				off := part.S[mu]*readings.At(mu, k) - u*s.Omega[mu]
				to.Residual.Set(mu, k, off/math.Sqrt(u*u*s.V[mu]+noise(j)))
			}
		}
		to.Converged[k], to.Change[k] = part.Converged[0], part.Change[0]
	}
	level := channel.NoiseOf(channel.InOrder(to.Channel))
	in := channel.WithInOrder(to.Channel, asGain(part.Channel).(channel.Noisy).WithNoise(level))
	to.Channel, to.Prior, to.Amplitude = in, part.Prior, nil
	to.S, to.SVar, to.Gain, to.Calibration = part.S, part.SVar, part.Gain, part.Calibration
	to.ScaleSD, to.placement = part.ScaleSD, part.placement
	to.SignalCov, to.Support, to.rowSizes, to.ownSlab = nil, nil, 0, false
	to.ColumnShift, to.ColumnShiftSD = part.ColumnShift, part.ColumnShiftSD
	to.Status, to.Reason, to.LogEvidence = part.Status, part.Reason, part.LogEvidence
	to.Iterations += part.Iterations
	to.Trace = append(to.Trace, part.Trace...)
	to.Warnings = slices.DeleteFunc(to.Warnings, func(w Warning) bool { return w.Code != SensorBroken && w.Code != OutlyingReadings })
	for _, w := range part.Warnings {
		if w.Code != SingleSignal { // it has its own words here
			w.Signals = nil
			to.Warnings = append(to.Warnings, w)
		}
	}
	what := fmt.Sprintf("the %d signals differ in nothing but brightness and noise: they were solved as one, and tell of the gains what one signal tells; signals that differ would tell more", p)
	to.Warnings = append(to.Warnings, Warning{Code: SignalsAlike, Message: what})
	to.Plan.Explain("joint rows", what)
}
