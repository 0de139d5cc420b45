package sweep

import (
	"context"
	"errors"
	"math"
	"sync"

	"github.com/calamp/calamp/evolution"
	"github.com/calamp/calamp/recovery"
	"github.com/calamp/calamp/replica"
)

// evolveOffline is state evolution's fixed point, or its way there.
func evolveOffline(ctx context.Context, p Point) (*outcome, error) {
	if p.Complex() {
		return complexFixedPoint(ctx, p)
	}
	m, along, fixedPoint := p.model(), evolution.Offline, evolution.FixedPoint
	if p.Joint.on() {
		correlation := p.Joint.correlation()
		along = func(ctx context.Context, m evolution.Model, opt *evolution.Options) (*evolution.Trajectory, error) {
			return evolution.JointOffline(ctx, evolution.JointModel{Model: m, Correlation: correlation}, opt)
		}
		fixedPoint = func(ctx context.Context, m evolution.Model, opt *evolution.Options) (*evolution.Point, error) {
			return evolution.JointFixedPoint(ctx, evolution.JointModel{Model: m, Correlation: correlation}, opt)
		}
	}
	if !p.independent() {
		spectrum, err := p.spectrum()
		if err != nil {
			return nil, err
		}
		along = func(ctx context.Context, m evolution.Model, opt *evolution.Options) (*evolution.Trajectory, error) {
			return evolution.Vector(ctx, m, spectrum, opt)
		}
		fixedPoint = func(ctx context.Context, m evolution.Model, opt *evolution.Options) (*evolution.Point, error) {
			return evolution.VectorFixedPoint(ctx, m, spectrum, opt)
		}
	}
	if p.Record.Trajectory {
		t, err := along(ctx, m, &evolution.Options{Iterations: p.Solver.MaxIter})
		if err != nil {
			return nil, err
		}
		return &outcome{status: statusDone, iterations: len(t.Steps), measures: steps(0, t.Steps)}, nil
	}
	fixed, err := fixedPoint(ctx, m, nil)
	if err != nil {
		return nil, err
	}
	out := &outcome{status: statusConverged, measures: []Measure{{Values: stepValues(fixed.Step)}}}
	if !fixed.Converged {
		out.status = statusNotConverged
	}
	return out, nil
}

// evolveOnline is the same for a stream of P samples.
func evolveOnline(ctx context.Context, p Point) (*outcome, error) {
	samples, err := p.evolved(ctx)
	if err != nil {
		return nil, err
	}
	out := &outcome{status: statusConverged}
	first := max(1, p.together()) - 1 // those that are solved together are one
	for k, s := range samples {
		k += first
		if !s.Converged {
			out.status = statusNotConverged
		}
		out.iterations += len(s.Steps)
		switch {
		case !p.records(k):
		case p.Record.Trajectory:
			out.measures = append(out.measures, steps(k+1, s.Steps)...)
		default:
			out.measures = append(out.measures, Measure{Sample: k + 1, Iteration: len(s.Steps), Values: stepValues(s.Last())})
		}
	}
	return out, nil
}

// evolved is what state evolution says of a stream.
func (p Point) evolved(ctx context.Context) ([]evolution.Sample, error) {
	if p.Complex() {
		return evolution.ComplexOnline(ctx, p.complexModel(), &evolution.ComplexOnlineOptions{Iterations: p.Solver.MaxIter, WarmUp: p.together()})
	}
	return evolution.Online(ctx, p.model(), &evolution.OnlineOptions{Iterations: p.Solver.MaxIter})
}

func steps(sample int, all []evolution.Step) []Measure {
	out := make([]Measure, len(all))
	for t, s := range all {
		out[t] = Measure{Sample: sample, Iteration: t + 1, Values: stepValues(s)}
	}
	return out
}

func stepValues(s evolution.Step) Values {
	v := Values{}
	v.set("se_x_mse", s.MSEX.Value)
	v.set("se_x_mse_error", s.MSEX.Err)
	v.set("se_s_mse", s.MSES.Value)
	v.set("se_s_mse_error", s.MSES.Err)
	v.set("se_m_hat", s.MHat.Value)
	return v
}

// predictions remembers what state evolution says: points that differ in their
// seed alone ask the same.
var predictions sync.Map // key of the theory's point → *prediction

type prediction struct {
	sync.Mutex
	out *outcome // nil until it is there
}

// predict puts state evolution's numbers next to what was measured.
func predict(ctx context.Context, p Point, out *outcome) error {
	if !p.Record.Prediction {
		return nil
	}
	theory := p
	theory.Algorithm, theory.Alpha = SE, p.ratio()
	if p.Algorithm == Online {
		theory.Algorithm = SEOnline
	}
	theory = theory.identified()
	v, _ := predictions.LoadOrStore(theory.Key(), &prediction{})
	known, err := v.(*prediction).get(ctx, theory)
	if err != nil {
		return err
	}
	type moment struct{ sample, iteration int }
	at := make(map[moment]Values)
	for _, m := range known.measures {
		if !p.Record.Trajectory {
			m.Iteration = 0
		}
		at[moment{m.Sample, m.Iteration}] = m.Values
	}
	for _, m := range out.measures {
		when := moment{m.Sample, m.Iteration}
		if !p.Record.Trajectory {
			when.iteration = 0
		}
		for name, x := range at[when] {
			m.Values.set(name, x)
		}
	}
	return nil
}

// get computes it once; a call that was cancelled leaves it to the next.
func (k *prediction) get(ctx context.Context, p Point) (*outcome, error) {
	k.Lock()
	defer k.Unlock()
	if k.out == nil {
		out, err := withoutProblem(ctx, p)
		if err != nil {
			return nil, err
		}
		k.out = out
	}
	return k.out, nil
}

// thresholds are the lines of the phase diagram at one density.
func thresholds(ctx context.Context, p Point) (*outcome, error) {
	if p.Complex() {
		return complexThresholds(ctx, p)
	}
	if p.Joint.on() {
		return jointThresholds(ctx, p)
	}
	g, v, opt := p.signal(), Values{}, &evolution.ThresholdOptions{Target: p.Record.Target, Network: p.layers()}
	if opt.Network != nil { // the free energy of layers is open
		if dimension := evolution.Dimension(g, opt.Network); !math.IsNaN(dimension) {
			v.set("alpha_min", recovery.AlphaMin(dimension, p.readings()))
		}
		cal, err := evolution.AlphaCal(ctx, g, p.gain(), p.NoiseVar, p.readings(), opt)
		if err != nil {
			return nil, err
		}
		return lines(v, cal), nil
	}
	v.set("alpha_min", recovery.AlphaMin(p.Density, p.readings()))
	if !p.independent() { // α_CS and the replica formula are for independent entries
		spectrum, err := p.spectrum()
		if err != nil {
			return nil, err
		}
		cal, err := evolution.VectorAlphaCal(ctx, g, p.gain(), p.NoiseVar, p.readings(), spectrum, opt)
		if err != nil {
			return nil, err
		}
		return lines(v, cal), nil
	}
	v.set("alpha_cs", recovery.AlphaCS(g))
	cal, err := evolution.AlphaCal(ctx, g, p.gain(), p.NoiseVar, p.readings(), opt)
	if err != nil {
		return nil, err
	}
	if p.NoiseVar > 0 {
		it, err := replica.InformationThreshold(ctx, g, p.gain(), p.NoiseVar, p.readings(), 0)
		switch {
		case errors.Is(err, replica.ErrNoTransition):
		case err != nil:
			return nil, err
		default:
			v.set("alpha_it", it.Information.Value)
			v.set("alpha_it_error", it.Information.Err)
		}
	}
	return lines(v, cal), nil
}

// lines are those of the phase diagram, with α_cal.
func lines(v Values, cal evolution.Number) *outcome {
	v.set("alpha_cal", cal.Value)
	v.set("alpha_cal_error", cal.Err)
	return &outcome{status: statusDone, measures: []Measure{{Values: v}}}
}
