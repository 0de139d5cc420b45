package amp

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/operator"
	"github.com/calamp/calamp/prior"
	"github.com/calamp/calamp/solver"
)

// A joint step leaves a fixed point where it is, with what the removal of means
// adds.
func TestJointStepAtAFixedPoint(t *testing.T) {
	s := maskSolver(t, 90, 120, 3, solver.Settings{Tol: 1e-13, Damping: solver.FixedDamping(0.3), NoScaleStep: true})
	e := s.State
	if outcome, err := s.Run(context.Background(), 20000); outcome != Converged || err != nil {
		t.Fatal(outcome, err, s.Change)
	}
	common, _ := Proportions(e.Y, e.P)
	j, err := newJointMoves(e, e.W.(operator.Matrix), common)
	if err != nil {
		t.Fatal(err)
	}
	j.step(false)
	for k, moved := range e.Left {
		if sd := math.Sqrt(e.SumC[k]); !(moved < 1e-7*sd) {
			t.Errorf("signal %d: moved by %.2g standard deviations", k, moved/sd)
		}
	}
}

// similarSolver is a solver on masks and signals that are much the same but for
// a factor, with gains in [0.5, 1.5], and the truth. Without joint moves it has the
// scale step all the same.
func similarSolver(t *testing.T, seed uint64, joint bool) (made *Solver, x, s []float64) {
	t.Helper()
	const m, n, p = 240, 200, 16
	rng := rand.New(rand.NewPCG(seed, 1))
	gain := channel.Gain{Prior: channel.Uniform(0.5, 1.5), NoiseVar: 1e-4}
	on, w := onMasks(t, rng, m, n, p, math.Sqrt(2.0/n), prior.GaussBernoulli{Density: 0.15, SignalMean: 1.4, SignalVar: 1}, gain)
	y := make([]float64, m*p)
	x, s = make([]float64, p*n), make([]float64, m)
	for i := range n {
		usual := math.Abs(1.4 + rng.NormFloat64())
		common := rng.Float64() < 0.15
		for k := range p {
			if common && rng.Float64() < 0.85 || !common && rng.Float64() < 0.05 {
				x[k*n+i] = (0.5 + float64(k)/p) * (usual + 0.4*rng.NormFloat64())
			}
		}
	}
	for mu := range m {
		s[mu] = 0.5 + rng.Float64()
		for k := range p {
			z := 1e-2 * rng.NormFloat64()
			for i := range n {
				z += w[mu*n+i] * x[k*n+i]
			}
			y[mu*p+k] = z / s[mu]
		}
	}
	made = on(y, solver.Settings{})
	if _, has := PartOf[*jointMoves](made); !has {
		_, inCommon := Proportions(y, p)
		t.Fatalf("these signals hardly have anything in common: %.3g", inCommon)
	}
	if !joint {
		made.Parts = slices.DeleteFunc(made.Parts, func(p Part) bool {
			_, moves := p.(*jointMoves)
			return moves
		})
	}
	return made, x, s
}

// Where signals have nearly all in common AMP alone creeps, and is far too sure of the gains.
func TestJointWhereSignalsHaveMuchInCommon(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	run := func(joint bool, seed uint64) (outcome Outcome, iterations int, error, pull float64) {
		s, x, truth := similarSolver(t, seed, joint)
		e := s.State
		outcome, err := s.Run(context.Background(), 1000)
		if err != nil {
			t.Fatal(err)
		}
		s.Report()
		var xx, xt, tt, ss, st float64
		for i, v := range e.X {
			xx, xt, tt = xx+v*v, xt+v*x[i], tt+x[i]*x[i]
		}
		for mu, v := range e.S {
			ss, st = ss+v*v, st+v*truth[mu]
		}
		for mu, v := range e.S {
			d := v*st/ss - truth[mu]
			pull += d * d / e.SVar[mu] / float64(e.M)
		}
		return outcome, s.Iterations, 1 - xt*xt/(xx*tt), pull
	}
	ratio := 0.0
	const seeds = 3
	for seed := uint64(1); seed <= seeds; seed++ { // of seed 0 message passing finds nothing; Solve does (TestSignalsInFixedProportions)
		outcome, iterations, err, pull := run(true, seed)
		_, aloneIterations, alone, alonePull := run(false, seed)
		t.Logf("seed %d: %d, error %.3g, z² %.3g in %d; AMP alone %.3g, z² %.3g in %d", seed, outcome, err, pull, iterations, alone, alonePull, aloneIterations)
		if outcome != Converged || !(err < alone) || !(pull < alonePull) {
			t.Errorf("seed %d: no better than AMP alone", seed)
		}
		ratio += math.Log(alone/err) / seeds
	}
	if ratio = math.Exp(ratio); !(ratio > 4) {
		t.Errorf("errors are smaller by a factor of %.3g", ratio)
	}
}

// Signals that hardly have anything in common are left to AMP.
func TestJointOnlyForSignalsInCommon(t *testing.T) {
	s := maskSolver(t, 90, 120, 3, solver.Settings{})
	e := s.State
	if _, inCommon := Proportions(e.Y, e.P); inCommon > MostInCommon {
		t.Fatalf("these signals have nearly all in common: %.3g", inCommon)
	}
	if _, has := PartOf[*jointMoves](s); has {
		t.Error("joint moves for signals that hardly have anything in common")
	}
	y := make([]float64, e.M*e.P)
	for mu := range e.M {
		for k := range e.P {
			y[mu*e.P+k] = float64(k+1) * (1 + 0.01*float64(mu%3))
		}
	}
	y[0], y[1], y[2] = -y[0], -y[1], -y[2] // a sign is as good as a gain
	common, inCommon := Proportions(y, e.P)
	if inCommon < 0.9999 || math.Abs(common[1]/common[0]-2) > 1e-12 {
		t.Errorf("readings in fixed proportions: %v, %v of the power", common, inCommon)
	}
	s = newSolver(t, Problem{W: e.W, P: e.P, Y: y, Model: e.Model()}, solver.Settings{})
	if _, has := PartOf[*jointMoves](s); !has {
		t.Error("no joint moves for signals in common proportions")
	}
}

// A signal is eliminated in the space of its entries, or of its readings where these are fewer: what both say of gains, of the signal, and of its variances is that of (Δ + WΛ⁻¹Wᵀ)⁻¹.
func TestEliminatedByEntriesAndByReadings(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for _, n := range []int{5, 20} {
		const m = 8
		w, spread, v := mat.NewDense(m, n, nil), mat.NewDense(m, m, nil), make([]float64, m)
		w.Apply(func(int, int, float64) float64 { return r.NormFloat64() }, w)
		s := &jointSignal{}
		for i := range n {
			s.active, s.inverse = append(s.active, i), append(s.inverse, 0.5+r.Float64())
		}
		for mu := range m {
			s.y, s.weight = append(s.y, r.NormFloat64()), append(s.weight, 1+r.Float64())
			v[mu] = r.NormFloat64()
		}
		for mu := range m {
			for nu := range m {
				for i, inverse := range s.inverse {
					spread.Set(mu, nu, spread.At(mu, nu)+w.At(mu, i)*inverse*w.At(nu, i))
				}
			}
			spread.Set(mu, mu, spread.At(mu, mu)+1/s.weight[mu])
		}
		var left mat.Dense
		if err := left.Inverse(spread); err != nil {
			t.Fatal(err)
		}
		s.eliminate(w)
		var solved mat.VecDense
		solved.MulVec(&left, mat.NewVecDense(m, v))
		nearly(t, "solve", s.solve(v), solved.RawVector().Data)
		for mu := range m {
			squares, want := make([]float64, m), make([]float64, m)
			for nu := range m {
				for a := range s.follow.Rows {
					squares[nu] += s.sign() * s.follow.At(a, mu) * s.follow.At(a, nu)
				}
				if mu == nu && !s.byReadings() {
					squares[nu] += s.y[mu] * s.weight[mu] * s.y[mu]
				}
				want[nu] = s.y[mu] * left.At(mu, nu) * s.y[nu]
			}
			nearly(t, "gains", squares, want)
		}
		moves, alone := s.followed()
		for i, inverse := range s.inverse {
			want, variance := make([]float64, m), inverse
			for mu := range m {
				for nu := range m {
					want[mu] += inverse * w.At(nu, i) * left.At(nu, mu) * s.y[mu]
					variance -= inverse * w.At(mu, i) * left.At(mu, nu) * w.At(nu, i) * inverse
				}
			}
			nearly(t, "moves", moves.Row(i), want)
			nearly(t, "variance", alone[i:i+1], []float64{variance})
		}
	}
}

func nearly(t *testing.T, what string, got, want []float64) {
	t.Helper()
	for k, v := range want {
		if math.Abs(got[k]-v) > 1e-12*(1+math.Abs(v)) {
			t.Errorf("%s: %v, expected %v", what, got[k], v)
		}
	}
}
