package amp

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/internal/tests"
	"github.com/calamp/calamp/operator"
	"github.com/calamp/calamp/prior"
	"github.com/calamp/calamp/solver"
)

// choice is one thing that can be asked for, or that a problem can have.
type choice struct {
	name  string
	apply func(*Problem, *solver.Settings)
}

// planChoices are all of them, beside the default.
func planChoices() []choice {
	channelOf := func(edit func(c channel.Gain) channel.Channel) func(*Problem, *solver.Settings) {
		return func(p *Problem, _ *solver.Settings) {
			if g, ok := p.Model.Channel.(channel.Gain); ok {
				p.Model.Channel = edit(g)
			}
		}
	}
	return []choice{
		{"full covariances", func(_ *Problem, s *solver.Settings) { s.Covariance = solver.Full }},
		{"exchangeable covariances", func(_ *Problem, s *solver.Settings) { s.Covariance = solver.Exchangeable }},
		{"scalar variances", func(_ *Problem, s *solver.Settings) { s.Variance = solver.Scalar }},
		{"f32", func(_ *Problem, s *solver.Settings) { s.Precision = solver.SinglePrecision }},
		{"f64", func(_ *Problem, s *solver.Settings) { s.Precision = solver.DoublePrecision }},
		{"all iterations", func(_ *Problem, s *solver.Settings) { s.Tol = -1 }},
		{"fixed damping", func(_ *Problem, s *solver.Settings) { s.Damping = solver.FixedDamping(0.3) }},
		{"no scale step", func(_ *Problem, s *solver.Settings) { s.NoScaleStep = true }},
		{"no mean removal", func(_ *Problem, s *solver.Settings) { s.NoMeanRemoval = true }},
		{"little memory", func(_ *Problem, s *solver.Settings) { s.RAM = 1 << 10 }},
		{"learned noise", func(p *Problem, _ *solver.Settings) { p.LearnNoise = true }},
		{"learned calibration", func(p *Problem, _ *solver.Settings) { p.LearnCalibration = true }},
		{"learned prior", func(p *Problem, _ *solver.Settings) {
			p.Model.Prior = prior.GaussBernoulli{Density: 0.2, SignalVar: 1, Learn: prior.SignalVar}
		}},
		{"prior without covariances", func(p *Problem, _ *solver.Settings) { p.Model.Prior = prior.Laplace{Density: 0.2, SignalVar: 1} }},
		{"broken sensors", channelOf(func(c channel.Gain) channel.Channel { return channel.Faulty{Working: c} })},
		{"clipped readings", channelOf(func(c channel.Gain) channel.Channel { c.Saturation = 2; return c })},
		{"known gains", channelOf(func(c channel.Gain) channel.Channel { return channel.AWGN{NoiseVar: c.NoiseVar} })},
		{"masks", func(p *Problem, _ *solver.Settings) { p.W = planMatrix(true) }},
		{"signals in common proportions", func(p *Problem, _ *solver.Settings) {
			for j := range p.Y {
				p.Y[j] = (1 + 0.5*math.Sin(float64(j/p.P))) * (1 + 0.01*math.Cos(float64(j)))
			}
		}},
		{"one signal", func(p *Problem, _ *solver.Settings) {
			m, _ := p.W.Dims()
			p.P, p.Y = 1, p.Y[:min(m, len(p.Y))]
		}},
		{"a stream", func(p *Problem, _ *solver.Settings) { p.Y, p.P = nil, 1 }},
		{"offsets", channelOf(func(c channel.Gain) channel.Channel {
			return channel.Offset{Prior: channel.OffsetPrior{Gain: c.Prior, SD: 0.3}, NoiseVar: c.NoiseVar}
		})},
		{"squares unknown", func(p *Problem, _ *solver.Settings) { p.W = opaque{p.W} }},
	}
}

const planM, planN, planP = 24, 30, 3

// opaque is a matrix of which nothing is known but its products.
type opaque struct{ w operator.Operator }

func (o opaque) Dims() (m, n int)    { return o.w.Dims() }
func (o opaque) MeanSquare() float64 { return o.w.MeanSquare() }
func (o opaque) String() string      { return "transform" }

func (o opaque) NewSweep(p, q, threads int) (operator.Sweep, error) {
	if q > 0 {
		return nil, operator.NoSquares(o)
	}
	return o.w.NewSweep(p, q, threads)
}

func planMatrix(mask bool) *operator.Dense {
	rng := rand.New(rand.NewPCG(1, 2))
	w := make([]float64, planM*planN)
	for i := range w {
		w[i] = rng.NormFloat64() / math.Sqrt(planN)
		if mask {
			w[i] = float64(rng.IntN(2)) / math.Sqrt(planN)
		}
	}
	d, err := operator.NewDense(planM, planN, w)
	if err != nil {
		panic(err)
	}
	return d
}

// planned makes the solver of the default problem with some choices.
func planned(all ...choice) (*Solver, *solver.Plan, error) {
	rng := rand.New(rand.NewPCG(3, 4))
	p := Problem{
		W: planMatrix(false), P: planP, Y: make([]float64, planM*planP),
		Model: Model{
			Prior:   prior.GaussBernoulli{Density: 0.2, SignalVar: 1},
			Channel: channel.Gain{Prior: channel.Uniform(0.5, 1.5), NoiseVar: 1e-3},
		},
	}
	for j := range p.Y {
		p.Y[j] = rng.NormFloat64()
	}
	var settings solver.Settings
	for _, c := range all {
		c.apply(&p, &settings)
	}
	s, plan, _, err := NewSolver(p, settings)
	return s, plan, err
}

// Every pair of things that can be asked for runs, or says which two exclude each
// other. `go test -v -run Plan` prints the table.
func TestPlanOfEveryPair(t *testing.T) {
	tests.Long(t)
	all := planChoices()
	for i, a := range all {
		for _, b := range all[i:] {
			s, plan, err := planned(a, b)
			if err != nil {
				t.Logf("%-26s %-26s refused: %v", a.name, b.name, err)
				continue
			}
			t.Logf("%-26s %-26s %s", a.name, b.name, summary(plan))
			explained(t, a.name+" and "+b.name, plan)
			if s.State.Y[0] == 0 { // a stream, whose samples come later
				for mu := range s.State.Y {
					s.State.Y[mu] = math.Sin(float64(mu))
				}
			}
			if _, err := s.Run(t.Context(), 12); err != nil {
				t.Errorf("%s and %s: %v", a.name, b.name, err)
			}
			if !s.State.finite() {
				t.Errorf("%s and %s: estimates that are no numbers", a.name, b.name)
			}
		}
	}
}

// Every combination of settings is planned, or refused with a reason.
func TestPlanOfEveryCombination(t *testing.T) {
	all := planChoices()
	settings := all[:12]
	refused := map[string]int{}
	for set := range 1 << len(settings) {
		var chosen []choice
		for i, c := range settings {
			if set>>i&1 == 1 {
				chosen = append(chosen, c)
			}
		}
		_, plan, err := planned(chosen...)
		if err != nil {
			refused[err.Error()]++
			continue
		}
		explained(t, fmt.Sprintf("combination %b", set), plan)
	}
	for reason, count := range refused {
		t.Logf("%4d of %d: %s", count, 1<<len(settings), reason)
	}
}

// explained reports a part that is left out without a reason.
func explained(t *testing.T, of string, plan *solver.Plan) {
	t.Helper()
	if len(plan.Parts) != len(table) {
		t.Errorf("%s: %d parts of %d", of, len(plan.Parts), len(table))
	}
	for _, c := range plan.Parts {
		if !c.On && c.Why == "" {
			t.Errorf("%s: %s is off without a reason", of, c.Part)
		}
		kind, _, _ := strings.Cut(c.Why, ":")
		kind, _, _ = strings.Cut(kind, " ")
		if !c.On && kind != "asked" && kind != "not" {
			t.Errorf("%s: %s is off for %q: neither asked, nor not needed, nor not possible", of, c.Part, c.Why)
		}
	}
}

// summary names the parts that go along.
func summary(plan *solver.Plan) string {
	var on []string
	for _, c := range plan.Parts {
		if c.On {
			on = append(on, c.Part)
		}
	}
	return fmt.Sprintf("%v, %v variances: %s", plan.Iteration, plan.Variance, strings.Join(on, ", "))
}
