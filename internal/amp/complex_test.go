package amp

import (
	"math"
	"math/cmplx"
	"testing"

	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/operator"
	"github.com/calamp/calamp/prior"
	"github.com/calamp/calamp/solver"
)

func (tr trace) complex(name string) []complex128 {
	tr.t.Helper()
	var v []complex128
	if err := tr.f.Read(name+".npy", &v); err != nil {
		tr.t.Fatal(name, err)
	}
	return v
}

// complexCase is one of the problems of trace_complex.npz: states of the bare algorithm with complex
// numbers, computed independently, with total variances.
type complexCase struct {
	trace
	name     string
	nominal  float64 // phase that readings are turned by
	m, n, p  int
	solver   *Solver
	readings []float64
}

// referencePrior does what the reference does with a field that is a tilt: by an overflow it takes
// every such entry for one that is not zero.
type referencePrior struct{ prior.ComplexGaussBernoulli }

func (p referencePrior) Posterior(mean, variance, lambda, sigma []float64) {
	p.ComplexGaussBernoulli.Posterior(mean, variance, lambda, sigma)
	for i, s := range sigma {
		if math.IsInf(s, 1) {
			mean[i], variance[i] = 0.5*p.SignalVar*lambda[i], 0.5*p.SignalVar
		}
	}
}

const complexM, complexN, complexP = 60, 48, 3

func openComplex(t testing.TB, name string) *complexCase {
	t.Helper()
	c := &complexCase{trace: openTrace(t, "complex"), name: name, m: complexM, n: complexN, p: complexP}
	w, err := operator.NewComplex(c.m, c.n, c.complex(name+"_W"))
	if err != nil {
		t.Fatal(err)
	}
	params, given := c.vector("params"), c.vector(name+"_prior") // ρ, Δ; a, b, µ₀, κ, known?
	gains := channel.ComplexPrior{Lo: given[0], Hi: given[1], Concentration: given[3]}
	if given[4] != 0 {
		gains.Concentration = math.Inf(1)
	}
	c.nominal = given[2]
	for _, y := range c.complex(name + "_Y") {
		y *= cmplx.Rect(1, c.nominal)
		c.readings = append(c.readings, real(y), imag(y))
	}
	c.solver = newSolver(t, Problem{
		W: w, P: 2 * c.p, Y: c.readings, Model: Model{
			Prior:   referencePrior{prior.ComplexGaussBernoulli{Density: params[0], SignalVar: 1}},
			Channel: channel.ComplexGain{Prior: gains, NoiseVar: params[1]},
		},
	}, solver.Settings{Tol: -1, NoScaleStep: true, Damping: solver.FixedDamping(0)})
	c.setSignals(c.complex(name + "_x_init"))
	return c
}

// setSignals sets X from N×P complex numbers.
func (c *complexCase) setSignals(x []complex128) {
	for k := range c.p {
		for i := range c.n {
			v := x[i*c.p+k]
			c.solver.State.X[2*k*c.n+i], c.solver.State.X[(2*k+1)*c.n+i] = real(v), imag(v)
		}
	}
}

func (c *complexCase) signalsAre(name string, worst *float64) {
	want := c.complex(c.name + name)
	largest := 0.0
	for _, v := range want {
		largest = max(largest, cmplx.Abs(v))
	}
	e := c.solver.State
	for k := range c.p {
		for i := range c.n {
			got := complex(e.X[2*k*c.n+i], e.X[(2*k+1)*c.n+i])
			*worst = max(*worst, cmplx.Abs(got-want[i*c.p+k])/largest)
		}
	}
}

func (c *complexCase) variancesAre(name string, worst *float64) {
	for j, want := range c.matrix(c.name + name).RawMatrix().Data {
		i, k := j/c.p, j%c.p
		got := c.solver.State.C[2*k*c.n+i] + c.solver.State.C[(2*k+1)*c.n+i]
		*worst = max(*worst, math.Abs(got-want)/want)
	}
}

func (c *complexCase) gainsAre(name, variance string, worst *float64) {
	e := c.solver.State
	v := c.vector(c.name + variance)
	for mu, want := range c.complex(c.name + name) {
		got := cmplx.Rect(e.S[mu], e.Phase[mu]+c.nominal)
		*worst = max(*worst, cmplx.Abs(got-want)/max(cmplx.Abs(want), math.Sqrt(v[mu])), math.Abs(e.SVar[mu]-v[mu])/v[mu])
	}
}

var complexCases = []string{"known", "vm", "uniform", "phase", "phasevm"}

func TestComplexFollowsGoldenTraces(t *testing.T) {
	for _, name := range complexCases {
		t.Run(name, func(t *testing.T) {
			c := openComplex(t, name)
			done := 0
			for _, to := range []int{1, 2, 3, 5, 8} {
				for ; done < to; done++ {
					step(t, c.solver, 0)
				}
				worst, suffix := 0.0, "_"+string(rune('0'+to))
				c.signalsAre("_x"+suffix, &worst)
				c.variancesAre("_xvar"+suffix, &worst)
				c.gainsAre("_s"+suffix, "_svar"+suffix, &worst)
				t.Logf("%d iterations: largest relative difference %.2g", to, worst)
				if worst > 1e-9 {
					t.Errorf("%d iterations: relative difference %.2g, want at most 1e-9", to, worst)
				}
			}
			c.checkScaleStep(t)
		})
	}
}

// checkScaleStep compares the sums of the evidence along scale and phase, and its maximum.
func (c *complexCase) checkScaleStep(t *testing.T) {
	e := c.solver.State
	tau, fields := c.vector(c.name+"_tau_8"), c.complex(c.name+"_B_8")
	for mu, want := range tau {
		stats := e.Of(e.Stats, mu)
		field := complex(stats[1], stats[2]) * cmplx.Rect(1, c.nominal)
		if math.Abs(stats[0]-want) > 1e-9*want || cmplx.Abs(field-fields[mu]) > 1e-9*cmplx.Abs(fields[mu]) {
			t.Fatalf("sensor %d: τ, B = %g, %v, want %g, %v", mu, stats[0], field, want, fields[mu])
		}
	}
	sums := c.vector(c.name + "_sums_8")
	q, volume := c.solver.Iteration.scaleSums(0, 0)
	for i, got := range []float64{q / 2, e.nextPull / 2, volume / 2} {
		if math.Abs(got-sums[i]) > 1e-9*math.Abs(sums[i]) {
			t.Errorf("sum %d of [Q, S, κ] is %.12g, want %.12g", i, got, sums[i])
		}
	}
	e.fieldPull, e.fieldTurn = e.nextPull, e.nextTurn
	theta := 0.0
	if p, _ := complexPriorOf(e.model); !p.Known() && !p.Free() {
		along := alongPhase(e)
		theta, _ = along.argmax()
	}
	var want complex128
	if err := c.f.Read(c.name+"_c_star.npy", &want); err != nil {
		t.Fatal(err)
	}
	if math.Abs(theta-cmplx.Phase(want)) > 1e-9 {
		t.Errorf("phase step %.12g, want %.12g", theta, cmplx.Phase(want))
	}
	// The phase first: the scale's step is that of the B that were turned.
	turned := cmplx.Rect(1, theta)
	for mu := range e.M {
		stats := e.Of(e.Stats, mu)
		b := turned * complex(stats[1], stats[2])
		stats[1], stats[2] = real(b), imag(b)
	}
	along := alongScale(c.solver.Iteration)
	limit := math.Log(1.1)
	size, _ := maximise(along.slope, math.Exp(-limit), math.Exp(limit), 0, 1e-9)
	if math.Abs(size-cmplx.Abs(want)) > 1e-9 {
		t.Errorf("scale step %.12g, want %.12g", size, cmplx.Abs(want))
	}
}
