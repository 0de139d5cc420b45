package online

import (
	"context"
	"strings"

	"github.com/spf13/pflag"

	"github.com/calamp/calamp"
	"github.com/calamp/calamp/evolution"
	"github.com/calamp/calamp/internal/command/console"
	"github.com/calamp/calamp/internal/command/option"
	"github.com/calamp/calamp/internal/intake"
	"github.com/calamp/calamp/online"
	"github.com/calamp/calamp/operator"
)

// takeComplex finds out whether readings are complex, and checks what belongs to that.
func (c *calibration) takeComplex(flags *pflag.FlagSet, in *material) error {
	c.complex, c.nominal = in.complex, in.phases
	if c.sourceKind != columnSource {
		frames := strings.HasPrefix(c.input, "c")
		if in.complex && c.width() > 0 && !frames {
			return console.Usage("--input %s: W is complex, and so are its readings: frames are c8 or c16", c.input)
		}
		c.complex = in.complex || frames || c.phases.Given()
		if c.complex && c.width() > 0 && !frames {
			return console.Usage("--phase is for complex readings, and frames of --input %s are real: c8 or c16", c.input)
		}
	}
	err := c.phases.CheckProblem(flags, &c.model, &c.groups, in.known, c.complex)
	if c.complex && c.phases.Free() && !option.Given(flags, "warm-up") {
		c.warmUp = option.WarmUpPhases
	}
	return err
}

// mostBatch is the largest batch that is proposed.
const mostBatch = 12

// checkBatch refuses to begin with a batch whose signals nothing could find, by state evolution: a stream that begins with a
// wrong answer goes on with it.
func (r *onlineRun) checkBatch(ctx context.Context) error {
	c, s := r.calibration, r.loop.Calibrator.Snapshot()
	if !c.complex || !c.phases.Free() || s.Samples > 0 || len(s.Warm) > 0 {
		return nil // or begun
	}
	m, n := r.in.w.Dims()
	alpha := float64(m) / float64(n)
	rows := m / calamp.SensorCount(c.ids, m)
	least, err := c.leastAlpha(ctx, c.warmUp*rows)
	if err != nil || alpha >= least {
		return err
	}
	e := console.Usage("--phase free: state evolution finds the signals of a batch of %d from M/N = %.3g on, and there are %.3g: "+
		"the stream would begin with what is wrong", c.warmUp, least, alpha)
	for k := c.warmUp + 1; k <= mostBatch; k++ {
		if least, err = c.leastAlpha(ctx, k*rows); err == nil && alpha >= least {
			return e.WithHint("--warm-up %d is enough, from %.3g on; better more", k, least)
		}
	}
	return e.WithHint("no batch is large enough: more sensors, or phases that are known better (--phase κ)")
}

// leastAlpha is the smallest M/N at which state evolution finds a batch of k signals.
func (c *calibration) leastAlpha(ctx context.Context, k int) (float64, error) {
	if k < online.LeastTogether {
		return 0, nil // which the calibrator refuses
	}
	const found, points = 0.01, 1024 // a part of the signals' power: that something is found
	least, err := evolution.ComplexAlphaCal(ctx, c.model.ComplexPrior(), c.model.ComplexGain(&c.phases), c.model.NoiseVar, k,
		&evolution.ThresholdOptions{Target: found * c.model.Density, Points: points})
	return least.Value, err
}

// form is what samples consist of.
func (r *onlineRun) form() intake.Form {
	m, _ := r.in.w.Dims()
	f := intake.Form{Sensors: m, Complex: r.complex, Width: r.width()}
	if choice := operator.ChoiceOf(r.in.w); choice != nil {
		f.Matrix = choice.Numbers()
	}
	return f
}

// columns is how many columns a signal has.
func (r *onlineRun) columns() int {
	if r.complex {
		return 2
	}
	return 1
}

// takeComplexModel takes what was learned of signals and noise.
func (r *onlineRun) takeComplexModel(p *online.Posterior) {
	r.model.Scale(&r.stated, p.Factor)
	if p.Model == nil {
		return
	}
	r.model.NoiseVar = 2 * p.Model.NoiseVar // that of both parts
	if g, ok := p.Model.ComplexGaussBernoulli(); ok {
		r.model.Density, r.model.SignalVar = g.Density, g.SignalVar
	}
}
