package sweep

import (
	"context"
	"fmt"
	"math"
	"math/cmplx"
	"strconv"

	"gonum.org/v1/gonum/mat"

	"github.com/calamp/calamp"
	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/evolution"
	"github.com/calamp/calamp/prior"
	"github.com/calamp/calamp/recovery"
	"github.com/calamp/calamp/teacher"
)

// Points with a [Phase] are complex problems: W, signals, noise and gains, with the range of s that of the amplitudes.

// Phase is what is known of the phases of complex gains, as --phase has it: "known", "free", or κ of a von Mises distribution about zero.
// It is empty where numbers are real.
type Phase string

const (
	phaseKnown Phase = "known"
	phaseFree  Phase = "free"
)

// concentration is κ: 0 where phases are free, +Inf where they are known.
func (p Phase) concentration() float64 {
	switch p {
	case phaseKnown:
		return math.Inf(1)
	case phaseFree:
		return 0
	}
	kappa, _ := strconv.ParseFloat(string(p), 64)
	return kappa
}

// Phases is one or a list of [Phase]; in TOML words, and numbers.
type Phases []Phase

// UnmarshalTOML implements toml.Unmarshaler.
func (p *Phases) UnmarshalTOML(v any) error {
	for _, entry := range listOf(v) {
		word, ok := entry.(string)
		if !ok {
			kappa, err := toFloat(entry)
			if err != nil || !(kappa > 0) {
				return fmt.Errorf("expected \"known\", \"free\" or a finite number above 0, found %v", entry)
			}
			word = strconv.FormatFloat(kappa, 'g', -1, 64)
		} else if Phase(word) != phaseKnown && Phase(word) != phaseFree {
			return fmt.Errorf("expected \"known\", \"free\" or a finite number above 0, found %q", word)
		}
		*p = append(*p, Phase(word))
	}
	return nil
}

// phases are the values of the axis: none, once, where numbers are real.
func (g *Grid) phases() Phases {
	switch {
	case !g.Complex:
		return Phases{""}
	case len(g.Phase) == 0:
		return Phases{phaseFree}
	}
	return g.Phase
}

// Complex reports whether the point's numbers are.
func (p Point) Complex() bool { return p.Phase != "" }

// together is how many samples a stream begins with that are solved together, as calamp online has it: phases of which nothing
// is known need that.
func (p Point) together() int {
	if p.Phase == phaseFree {
		return 4
	}
	return 0
}

// validateComplex reports what complex problems cannot be asked for.
func (p Point) validateComplex() error {
	switch {
	case p.Covariance == "full":
		return fmt.Errorf("full covariances are for real numbers")
	case p.Algorithm.online() && p.P < max(1, p.together()):
		return fmt.Errorf("a stream with free phases begins with %d samples that are solved together, and p = %d", p.together(), p.P)
	}
	for _, k := range p.Record.Samples {
		if p.Algorithm.online() && k < p.together() {
			return fmt.Errorf("record: sample %d: the first %d, with free phases, are solved together: there is nothing before the last of them", k, p.together())
		}
	}
	return p.complexModel().Validate()
}

func (p Point) complexSignal() prior.ComplexGaussBernoulli {
	return prior.ComplexGaussBernoulli{Density: p.Density, SignalVar: 1}
}

func (p Point) complexGain() channel.ComplexPrior {
	return channel.ComplexPrior{Lo: p.SRange[0], Hi: p.SRange[1], Concentration: p.Phase.concentration()}
}

func (p Point) complexTeacher() teacher.Complex {
	return teacher.Complex{N: p.N, M: p.sensors(), P: p.P, Signal: p.complexSignal(), Gain: p.complexGain(), NoiseVar: p.NoiseVar, Matrix: p.Matrix}
}

func (p Point) complexModel() evolution.ComplexModel {
	return evolution.ComplexModel{Signal: p.complexSignal(), Gain: p.complexGain(), NoiseVar: p.NoiseVar, Alpha: p.ratio(), P: p.P}
}

// pairsOf are complex signals as columns of real and imaginary parts beside each other, of arrays of all real parts of a signal and then
// all imaginary ones, n each.
func pairsOf(x []float64, n int) *mat.Dense {
	out := mat.NewDense(len(x)/2, 2, nil)
	for k := 0; k < len(x); k += 2 * n {
		for i := range n {
			out.Set(k/2+i, 0, x[k+i])
			out.Set(k/2+i, 1, x[k+n+i])
		}
	}
	return out
}

// complexErrors are those of [errorsOf], after the best complex factor where they are scaled ones. s may be nil.
func complexErrors(v Values, x, truth []float64, n int, s []complex128, of calamp.Truth) calamp.Metrics {
	m := calamp.ScoreComplex(pairsOf(x, n), s, calamp.Truth{X: pairsOf(truth, n), S: of.S, Phase: of.Phase})
	v.score(m, s != nil)
	v.set("phase_shift", m.PhaseShift)
	return m
}

// turned is what is known of complex gains, and of what all of them have in common.
type turned struct {
	size, phase, variance []float64
	from                  *channel.Posteriors
	scaleSD, phaseSD      float64
	free                  bool // the common phase is a convention
}

func (t *turned) means() []complex128 {
	return (&calamp.Truth{S: t.size, Phase: t.phase}).ComplexS()
}

// oneSD is the probability within a standard deviation of a normal distribution.
const oneSD = 0.6826894921370859

// intervals records mean posterior variances, of both parts together, and which fraction of amplitudes, phases and parts of entries is inside normal intervals.
// Where the common phase is a convention the truth is turned to it.
func (t *turned) intervals(v Values, x, variance, truth []float64, n int, of calamp.Truth, m calamp.Metrics) {
	shift, phaseSD := 0.0, t.phaseSD
	if t.free {
		shift, phaseSD = m.PhaseShift, 0
	}
	v.set("scale_sd", t.scaleSD)
	v.set("phase_sd", phaseSD)
	v.set("x_var", 2*mean(variance))
	v.set("s_var", mean(t.variance))
	back := cmplx.Rect(1, -shift)
	var parts, amplitudes, phases held
	for k := 0; k < len(x); k += 2 * n {
		for i := k; i < k+n; i++ {
			estimate, is := complex(x[i], x[i+n]), back*complex(truth[i], truth[i+n])
			re, im := real(estimate), imag(estimate)
			parts.add(re-real(is), math.Sqrt(variance[i]+re*re*t.scaleSD*t.scaleSD+im*im*phaseSD*phaseSD))
			parts.add(im-imag(is), math.Sqrt(variance[i+n]+im*im*t.scaleSD*t.scaleSD+re*re*phaseSD*phaseSD))
		}
	}
	parts.set(v, "x")
	known := t.from.Prior.(channel.Turning)
	least, most := known.Range()
	lo, hi := t.from.Interval(oneSD)
	for mu, r := range t.size {
		if least < most {
			amplitudes.add(r-of.S[mu], math.Hypot(0.5*(hi[mu]-lo[mu]), r*t.scaleSD))
		}
		if !channel.PhasesKnown(known) {
			_, half := known.PhaseInterval(t.from.Of(mu), oneSD)
			phases.add(math.Remainder(t.phase[mu]-(of.Phase[mu]-shift), 2*math.Pi), math.Hypot(half, phaseSD))
		}
	}
	amplitudes.set(v, "s")
	phases.set(v, "phase")
}

func mean(v []float64) float64 {
	total := 0.0
	for _, x := range v {
		total += x
	}
	return total / float64(max(1, len(v)))
}

func (p Point) complexOffline(v Values, res *calamp.Result, truth calamp.Truth) {
	x, x0 := transposed(res.X), transposed(truth.X)
	t := turned{
		size: res.S, phase: res.Phase, variance: res.SVar, from: res.Calibration,
		scaleSD: res.ScaleSD, phaseSD: res.PhaseSD, free: res.PhaseFree,
	}
	m := complexErrors(v, x, x0, p.N, t.means(), truth)
	t.intervals(v, x, transposed(res.XVar), x0, p.N, truth, m)
}

// complexFixedPoint is where state evolution of complex problems ends.
func complexFixedPoint(ctx context.Context, p Point) (*outcome, error) {
	opt := &evolution.ComplexOptions{Iterations: p.Solver.MaxIter}
	if !p.Record.Trajectory {
		opt.Iterations, opt.Tol = complexSteps, complexTolerance
	}
	t, err := evolution.ComplexOffline(ctx, p.complexModel(), opt)
	if err != nil {
		return nil, err
	}
	if p.Record.Trajectory {
		return &outcome{status: statusDone, iterations: len(t.Steps), measures: steps(0, t.Steps)}, nil
	}
	out := &outcome{status: statusConverged, measures: []Measure{{Values: stepValues(t.Steps[len(t.Steps)-1])}}}
	if len(t.Steps) == complexSteps {
		out.status = statusNotConverged
	}
	return out, nil
}

// The map of complex state evolution is followed to its fixed point, for so many steps at most.
const (
	complexSteps     = 1000
	complexTolerance = 1e-6
)

// complexThresholds are the lines of the phase diagram of complex problems at one density.
func complexThresholds(ctx context.Context, p Point) (*outcome, error) {
	g, gain, v := p.complexSignal(), p.complexGain(), Values{}
	v.set("alpha_min", recovery.ComplexAlphaMin(p.Density, p.P, gain.Unknowns()))
	v.set("alpha_cs", recovery.ComplexAlphaCS(g))
	cal, err := evolution.ComplexAlphaCal(ctx, g, gain, p.NoiseVar, p.P, &evolution.ThresholdOptions{Target: p.Record.Target})
	if err != nil {
		return nil, err
	}
	return lines(v, cal), nil
}
