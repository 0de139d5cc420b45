package amp

import (
	"context"
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/internal/joint"
	"github.com/calamp/calamp/internal/tests"
	"github.com/calamp/calamp/operator"
	"github.com/calamp/calamp/prior"
	"github.com/calamp/calamp/solver"
)

// exactRows is the paper's Algorithm 1 with a covariance for each sensor and each row: what the iteration with one shape is compared with. It
// is neither damped nor takes scale steps.
type exactRows struct {
	w, y    *mat.Dense
	channel channel.Correlated
	prior   joint.Prior

	x, g     [][]float64 // rows of N and M, of P values
	cov      [][]float64 // N of P×P
	v, dg    [][]float64 // M of P×P
	s, sVar  []float64
	support  []float64
	evidence float64
}

func newExactRows(w, y *mat.Dense, c channel.Correlated, q joint.Prior) *exactRows {
	m, n := w.Dims()
	_, p := y.Dims()
	e := &exactRows{w: w, y: y, channel: c, prior: q, s: make([]float64, m), sVar: make([]float64, m), support: make([]float64, n)}
	start := joint.NewRows(1, p, 1, q)
	start.Start()
	for range n {
		e.x = append(e.x, append([]float64(nil), start.X...))
		e.cov = append(e.cov, append([]float64(nil), start.Sum...))
	}
	for range m {
		e.g, e.v, e.dg = append(e.g, make([]float64, p)), append(e.v, make([]float64, p*p)), append(e.dg, make([]float64, p*p))
	}
	return e
}

func (e *exactRows) step(t *testing.T) {
	t.Helper()
	m, n := e.w.Dims()
	_, p := e.y.Dims()
	e.evidence = 0
	for mu := range m {
		s := channel.NewSensor(e.channel, p)
		copy(s.Y, e.y.RawRowView(mu))
		for i := range n {
			w := e.w.At(mu, i)
			for k, x := range e.x[i] {
				s.Omega[k] += w * x
			}
			for j, c := range e.cov[i] {
				s.V[j] += w * w * c
			}
		}
		copy(e.v[mu], s.V)
		for k := range p {
			for l := range p {
				s.Omega[k] -= s.V[k*p+l] * e.g[mu][l]
			}
		}
		e.channel.OutputCorrelated(s)
		copy(e.g[mu], s.G)
		copy(e.dg[mu], s.DG)
		e.s[mu], e.sVar[mu] = s.S, s.SVar
		e.evidence += s.LogZ
		for k, g := range s.G {
			for l, h := range s.G {
				e.evidence += 0.5 * g * s.V[k*p+l] * h
			}
		}
	}
	for i := range n {
		a, r := make([]float64, p*p), make([]float64, p)
		for mu := range m {
			w := e.w.At(mu, i)
			for j, d := range e.dg[mu] {
				a[j] -= w * w * d
			}
			for k, g := range e.g[mu] {
				r[k] += w * g
			}
		}
		shape, size, ok := joint.NewShape(a, p, 1, 0)
		if !ok {
			t.Fatal("a field without a precision")
		}
		row := joint.NewRows(1, p, 1, e.prior)
		row.Update(joint.Field{Shape: shape, Size: []float64{size}, Centre: e.x[i], Onward: r})
		e.evidence += row.LogMass[0] + 0.5*row.Square[0]
		e.x[i], e.cov[i], e.support[i] = row.X, row.Sum, row.Support[0]
	}
}

func TestJointRowsExactFollowGoldenTrace(t *testing.T) {
	tr := openTrace(t, "joint")
	model := tr.vector("model") // ρ, a, b, Δ
	w, y := tr.matrix("W"), tr.matrix("Y")
	q := joint.Prior{Density: model[0], Mean: tr.vector("mean"), Cov: tr.matrix("R").RawMatrix().Data}
	e := newExactRows(w, y, channel.Gain{Prior: channel.Uniform(model[1], model[2]), NoiseVar: model[3]}, q)
	done := 0
	for _, c := range []struct {
		iterations int
		suffix     string
	}{{1, "1"}, {2, "2"}, {3, "3"}, {5, "5"}, {8, "8"}} {
		for ; done < c.iterations; done++ {
			e.step(t)
		}
		x := tr.matrix("x_" + c.suffix)
		worst := max(relative(tr.vector("s_"+c.suffix), e.s), relative(tr.vector("s_var_"+c.suffix), e.sVar))
		for i, row := range e.x {
			for k, v := range row {
				worst = max(worst, math.Abs(v-x.At(i, k))/math.Sqrt(e.cov[i][k*len(row)+k]))
			}
		}
		for i, pi := range tr.vector("pi_" + c.suffix) {
			worst = max(worst, math.Abs(pi-e.support[i]))
		}
		t.Logf("%d iterations: off by %.2g", c.iterations, worst)
		if worst > 1e-9 {
			t.Errorf("%d iterations: off by %.2g, expected at most 1e-9", c.iterations, worst)
		}
	}
}

// jointProblem is a problem with rows that are there in all signals, of which the part common of the variance is an amplitude that all signals have; the entries
// of W are of one size where even is set.
func jointProblem(m, n, p int, density, common, noise float64, seed uint64, even bool) (w, y, x *mat.Dense, s []float64) {
	rng := rand.New(rand.NewPCG(seed, 7))
	w, x, y = mat.NewDense(m, n, nil), mat.NewDense(n, p, nil), mat.NewDense(m, p, nil)
	for mu := range m {
		for i := range n {
			v := rng.NormFloat64()
			if even {
				v = math.Copysign(1, v)
			}
			w.Set(mu, i, v/math.Sqrt(float64(n)))
		}
	}
	for i := range n {
		if rng.Float64() < density {
			amplitude := rng.NormFloat64()
			for k := range p {
				x.Set(i, k, math.Sqrt(common)*amplitude+math.Sqrt(1-common)*rng.NormFloat64())
			}
		}
	}
	y.Mul(w, x)
	s = make([]float64, m)
	for mu := range s {
		s[mu] = 0.7 + 0.6*rng.Float64()
		for k := range p {
			y.Set(mu, k, (y.At(mu, k)+math.Sqrt(noise)*rng.NormFloat64())/s[mu])
		}
	}
	return w, y, x, s
}

// Where all entries of W are of one size, all covariances have one shape, and the iteration is the exact one.
func TestJointRowsAreExactForEntriesOfOneSize(t *testing.T) {
	const m, n, p, noise = 60, 80, 3, 1e-3
	w, y, _, _ := jointProblem(m, n, p, 0.2, 0.5, noise, 1, true)
	for j := range 5 { // missing readings, and a sensor that reads nothing
		y.Set(7*j, j%p, math.NaN())
	}
	for k := range p {
		y.Set(50, k, math.NaN())
	}
	op, err := operator.NewDense(m, n, w.RawMatrix().Data)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]channel.Correlated{
		"gains":  channel.Gain{Prior: channel.Uniform(0.7, 1.3), NoiseVar: noise},
		"faulty": channel.Faulty{Working: channel.Gain{Prior: channel.Uniform(0.7, 1.3), NoiseVar: noise}, Rate: 0.1, Var: 0.3},
		"known":  channel.AWGN{NoiseVar: noise},
	} {
		s := newSolver(t, Problem{
			W: op, P: p, Y: y.RawMatrix().Data, Joint: solver.JointOn,
			Model: Model{Prior: prior.GaussBernoulli{Density: 0.2, SignalVar: 1}, Channel: c},
		}, solver.Settings{})
		exact := newExactRows(w, y, c, joint.Isotropic(p, 0.2, 0, 1))
		for range 6 {
			exact.step(t)
			step(t, s, 0)
		}
		worst := math.Abs(exact.evidence-s.Iteration.LogEvidence()) / math.Abs(exact.evidence)
		for i, row := range exact.x {
			for k, x := range row {
				worst = max(worst, math.Abs(x-s.State.X[k*n+i])/math.Sqrt(exact.cov[i][k*p+k]))
			}
		}
		worst = max(worst, relative(exact.s, s.State.S))
		if name != "known" {
			worst = max(worst, relative(exact.sVar, s.State.SVar))
		}
		t.Logf("%s: off by %.2g", name, worst)
		if worst > 1e-9 {
			t.Errorf("%s: off by %.2g, expected at most 1e-9", name, worst)
		}
	}
}

// Rows that fields of independent signals asked for are recovered, and the run ends where its own fields are decided against them: signals that have each other's entries in another order have no support in common.
func TestJointRowsRecoverOrEnd(t *testing.T) {
	tests.Long(t)
	const n, p, noise = 500, 10, 1e-6
	for seed := range uint64(3) {
		for m, own := range map[int]bool{150: false, 400: true} {
			w, y, x, sTrue := jointProblem(m, n, p, 0.2, 0.9, noise, seed+1, false)
			if own {
				rng := rand.New(rand.NewPCG(seed, 9))
				for k := range p {
					rng.Shuffle(n, func(i, j int) { v := x.At(i, k); x.Set(i, k, x.At(j, k)); x.Set(j, k, v) })
				}
				y.Mul(w, x)
				y.Apply(func(mu, _ int, v float64) float64 { return (v + math.Sqrt(noise)*rng.NormFloat64()) / sTrue[mu] }, y)
			}
			op, err := operator.NewDense(m, n, w.RawMatrix().Data)
			if err != nil {
				t.Fatal(err)
			}
			s := newSolver(t, Problem{
				W: op, P: p, Y: y.RawMatrix().Data, Joint: solver.JointOn, JointFound: true,
				Model: Model{Prior: prior.GaussBernoulli{Density: 0.2, SignalVar: 1}, Channel: channel.Gain{Prior: channel.Uniform(0.7, 1.3), NoiseVar: noise}},
			}, solver.Settings{})
			outcome, err := s.Run(context.Background(), 500)
			if err != nil {
				t.Fatal(err)
			}
			off, power, inside := 0.0, 0.0, 0.0
			for i := range n {
				for k := range p {
					d := s.State.X[k*n+i] - x.At(i, k)
					off, power = off+d*d, power+x.At(i, k)*x.At(i, k)
				}
			}
			for mu, v := range sTrue {
				if math.Abs(v-s.State.S[mu]) < 1.96*math.Sqrt(s.State.SVar[mu]) {
					inside += 1 / float64(m)
				}
			}
			gain := s.JointGain()
			t.Logf("rows of their own %v: outcome %v after %d: NMSE %.2g, coverage of s %.3f, gain %.4g", own, outcome, s.Iterations, off/power, inside, gain)
			if own && (s.Iterations > 2*firstJointTest || gain > DecidedApart) || !own && (outcome != Converged || off/power > 3e-4 || inside < 0.85) {
				t.Errorf("rows of their own %v: outcome %v after %d: NMSE %.2g, coverage of s %.3f, gain %.4g", own, outcome, s.Iterations, off/power, inside, gain)
			}
		}
	}
}

// TestJointTestOfAMixture: signals that were found to be of several Gaussians are not compared with joint ones, which are of one.
func TestJointTestOfAMixture(t *testing.T) {
	s := &Solver{State: &State{modelState: modelState{model: Model{Prior: prior.Mixture{Learn: true}}}}}
	if p := new(JointTest); p.look(s) != GoOn || p.Ends || p.Gain != 0 {
		t.Errorf("%+v", p)
	}
}
