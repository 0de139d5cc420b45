package calamp_test

import (
	"math"
	"testing"

	"github.com/calamp/calamp"
	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/internal/tests"
	"github.com/calamp/calamp/operator"
	"github.com/calamp/calamp/prior"
	"github.com/calamp/calamp/solver"
	"github.com/calamp/calamp/teacher"
)

// onDemandCase is a problem, solved with the squares of W in every iteration and on demand.
type onDemandCase struct {
	name   string
	te     teacher.Teacher
	matrix string
	change func(p *calamp.Problem)
	within float64 // root mean square distance of the two, in posterior standard deviations
}

func onDemandCases() []onDemandCase {
	base := teacher.Teacher{
		N: 250, M: 175, P: 5, NoiseVar: 1e-6,
		Signal: prior.GaussBernoulli{Density: 0.2, SignalVar: 1}, Gain: channel.Uniform(0.95, 1.05),
	}
	with := func(edit func(te *teacher.Teacher)) teacher.Teacher {
		te := base
		edit(&te)
		return te
	}
	none := func(*calamp.Problem) {}
	return []onDemandCase{
		{"as the theory has it", base, "iid", none, 1e-3},
		{"more noise", with(func(te *teacher.Teacher) { te.NoiseVar = 1e-3 }), "iid", none, 1e-3},
		{"next to none", with(func(te *teacher.Teacher) { te.NoiseVar, te.N, te.M = 1e-12, 500, 350 }), "iid", none, 5e-3}, // the common scale is placed to a thousandth of its error
		{"wide range", with(func(te *teacher.Teacher) { te.Gain = channel.Uniform(0.5, 1.5); te.P = 10 }), "iid", none, 1e-3},
		{"known gains", with(func(te *teacher.Teacher) { te.Gain = channel.Uniform(1-1e-12, 1) }), "iid", func(p *calamp.Problem) { p.Channel = channel.AWGN{NoiseVar: 1e-6} }, 1e-3},
		{"missing readings", base, "iid", func(p *calamp.Problem) {
			for j := range p.Y.RawMatrix().Data {
				if j%7 == 0 {
					p.Y.RawMatrix().Data[j] = math.NaN()
				}
			}
		}, 1e-3},
		{"broken sensors", base, "iid", func(p *calamp.Problem) {
			for mu := 0; mu < base.M; mu += 20 {
				for k := range 5 {
					p.Y.Set(mu, k, math.Sin(float64(mu*5+k)))
				}
			}
			p.Channel = channel.Faulty{Working: p.Channel.(channel.Gain)}
		}, 1e-3},
		{"learned", base, "iid", func(p *calamp.Problem) {
			p.Prior = prior.GaussBernoulli{Density: 0.2, SignalVar: 1, Learn: prior.Density | prior.SignalVar}
		}, 0.1}, // what is learned is known to a thousandth of its standard error
		{"means", base, "mean:1", none, 1e-3},
		{"masks", base, "binary", none, 1e-3},
		{"uneven", base, "uneven:0.5", none, 1e-3},
		{"correlated", base, "correlated:0.5", none, 1e-3},
		{"condition", base, "condition:10", none, 1e-3},
		{"sparse", base, "sparse:0.1", none, 1e-3},
		{"zero columns", base, "zero-columns:0.05", none, 1e-3},
	}
}

// Runs with squares of W on demand converge where those of every iteration do, in as many iterations.
func TestVariancesOnDemand(t *testing.T) {
	tests.Long(t)
	for _, c := range onDemandCases() {
		if c.matrix != "iid" {
			if err := c.te.Matrix.UnmarshalText([]byte(c.matrix)); err != nil {
				t.Fatal(err)
			}
		}
		p, truth := draw(t, c.te, 1)
		c.change(p)
		exact := solve(t, p, &calamp.Options{Settings: solver.Settings{Algorithm: solver.AMP, Variance: solver.Exact}})
		counted := &counting{Matrix: p.W.(operator.Matrix)} // which is not read through it while means are taken out
		p.W = counted
		res := solve(t, p, &calamp.Options{Settings: solver.Settings{Algorithm: solver.AMP}})
		off := apart(res, exact)
		t.Logf("%-20s %v and %v: %3d iterations, of which %d exact, and %d; apart %.2g, error %.3g and %.3g", c.name, res.Status, exact.Status,
			res.Iterations, counted.squares, exact.Iterations, off, calamp.Score(res.X, res.S, truth).XMSE, calamp.Score(exact.X, exact.S, truth).XMSE)
		if res.Status != exact.Status || float64(res.Iterations) > 1.2*float64(exact.Iterations)+10 || !(off <= c.within) {
			t.Errorf("%s: %v after %d iterations, with all exact %v after %d; apart %.2g standard deviations", c.name, res.Status, res.Iterations, exact.Status, exact.Iterations, off)
		}
		if !res.Plan.Has("mean removal") && counted.squares == 0 || 2*counted.squares > res.Iterations {
			t.Errorf("%s: %d of %d sweeps were exact", c.name, counted.squares, res.Iterations)
		}
	}
}

// apart is the root mean square difference of two results' signals, in standard deviations.
func apart(a, b *calamp.Result) float64 {
	square, variance := 0.0, 0.0
	for i, x := range a.X.RawMatrix().Data {
		d := x - b.X.RawMatrix().Data[i]
		square += d * d
		variance += b.XVar.RawMatrix().Data[i]
	}
	return math.Sqrt(square / variance)
}

// counting counts the sweeps over a matrix that multiply with its squares.
type counting struct {
	operator.Matrix
	squares int
}

func (c *counting) HasSquares() bool { return true }

func (c *counting) NewSweep(p, q, threads int) (operator.Sweep, error) {
	s, err := c.Matrix.NewSweep(p, q, threads)
	if q == 0 || err != nil {
		return s, err
	}
	return &countingSweep{s, c}, nil
}

type countingSweep struct {
	operator.Sweep
	of *counting
}

func (s *countingSweep) Run(r, h, x, c []float64, rows operator.RowFunc) error {
	s.of.squares++
	return s.Sweep.Run(r, h, x, c, rows)
}
