package amp

import (
	"encoding/csv"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/evolution"
	"github.com/calamp/calamp/internal/tables"
	"github.com/calamp/calamp/internal/tests"
	"github.com/calamp/calamp/operator"
	"github.com/calamp/calamp/prior"
	"github.com/calamp/calamp/solver"
)

// The bare iteration for joint rows against what state evolution says beforehand: .ci/long LongJointEvolution.
var (
	evolvedSeeds      = flag.Int("evolved-seeds", 16, "runs of each case of TestLongJointEvolution")
	evolvedEntries    = flag.Int("evolved-n", 4000, "entries of a signal in TestLongJointEvolution")
	evolvedIterations = flag.Int("evolved-iterations", 24, "of each run of TestLongJointEvolution")
	evolvedFilter     = flag.String("evolved", "", "part of P/correlation/gains of the cases of TestLongJointEvolution")
)

// evolvedCase is a problem that the bare iteration for joint rows is compared with state evolution on.
type evolvedCase struct {
	p           int
	alpha       float64
	correlation float64
	known       bool // gains
}

func (c evolvedCase) name() string {
	gains := "unknown"
	if c.known {
		gains = "known"
	}
	return fmt.Sprintf("%d/%g/%s", c.p, c.correlation, gains)
}

func (c evolvedCase) model() evolution.JointModel {
	m := evolution.JointModel{
		Model:       evolution.Model{Signal: prior.GaussBernoulli{Density: 0.2, SignalVar: 1}, Gain: channel.Uniform(0.7, 1.3), NoiseVar: 1e-4, Alpha: c.alpha, P: c.p},
		Correlation: c.correlation,
	}
	if c.known {
		m.Gain = evolution.Known(1)
	}
	return m
}

// run is the bare iteration, undamped and with R known, on an instance of n entries: errors of x and s after each, at the best common scale
// where gains are unknown.
func (c evolvedCase) run(t *testing.T, n, iterations int, seed uint64) (errX, errS []float64) {
	t.Helper()
	model, rng := c.model(), rand.New(rand.NewPCG(seed, 36))
	m, p := int(math.Round(c.alpha*float64(n))), c.p
	w, x := make([]float32, m*n), make([]float64, p*n)
	for j := range w {
		w[j] = float32(rng.NormFloat64() / math.Sqrt(float64(n)))
	}
	var there []int
	for i := range n {
		if rng.Float64() >= model.Signal.Density {
			continue
		}
		there = append(there, i)
		common := rng.NormFloat64()
		for k := range p {
			x[k*n+i] = math.Sqrt(c.correlation)*common + math.Sqrt(1-c.correlation)*rng.NormFloat64()
		}
	}
	c.standardise(t, x, n, there)
	y, s := make([]float64, m*p), make([]float64, m)
	for mu := range m {
		s[mu] = 1
		if !c.known {
			s[mu] = model.Gain.Quantile(make([]float64, model.Gain.Width()), rng.Float64())
		}
		for k := range p {
			z := math.Sqrt(model.NoiseVar) * rng.NormFloat64()
			for _, i := range there {
				z += float64(w[mu*n+i]) * x[k*n+i]
			}
			y[mu*p+k] = z / s[mu]
		}
	}
	op, err := operator.NewDense32(m, n, w)
	if err != nil {
		t.Fatal(err)
	}
	var likelihood channel.Channel = channel.Gain{Prior: model.Gain, NoiseVar: model.NoiseVar}
	if c.known {
		likelihood = channel.AWGN{NoiseVar: model.NoiseVar}
	}
	solver, _, _, err := NewSolver(Problem{
		W: op, P: p, Y: y, Joint: solver.JointOn, Model: Model{Prior: model.Signal, Channel: likelihood},
	}, solver.Settings{Threads: 1, NoMeanRemoval: true, NoScaleStep: true})
	if err != nil {
		t.Fatal(err)
	}
	e := solver.Iteration.(*jointRows)
	for k := range p {
		for l := range k {
			e.rows.Prior.Cov[k*p+l], e.rows.Prior.Cov[l*p+k] = c.correlation, c.correlation
		}
	}
	for j, r := range e.rows.Prior.Cov {
		e.sumC[j] = float64(n) * model.Signal.Density * r
	}
	for range iterations {
		step(t, solver, 0)
		errX = append(errX, c.meanSquare(e.X, x))
		errS = append(errS, c.meanSquare(e.S, s))
	}
	return errX, errS
}

// standardise makes the second moments of the rows that are there those of the model, as they are of infinitely many: x → L K⁻¹ x with KKᵀ theirs and LLᵀ the model's. Of n rows the spread of a sensor's power over P signals is 1+P/n of
// that, 6 % at P = 50 and n = 800, and so is the error of its gain in the first iterations.
func (c evolvedCase) standardise(t *testing.T, x []float64, n int, there []int) {
	t.Helper()
	p := c.p
	model, own := mat.NewSymDense(p, nil), mat.NewSymDense(p, nil)
	rows := mat.NewDense(len(there), p, nil)
	for k := range p {
		for at, i := range there {
			rows.Set(at, k, x[k*n+i])
		}
		for l := range k {
			model.SetSym(k, l, c.correlation)
		}
		model.SetSym(k, k, 1)
	}
	own.SymOuterK(1/float64(len(there)), rows.T())
	var to, from mat.Cholesky
	if !to.Factorize(model) || !from.Factorize(own) {
		t.Fatal("second moments without a factor")
	}
	var u, v mat.TriDense
	to.UTo(&u)
	from.UTo(&v)
	if err := v.InverseTri(&v); err != nil {
		t.Fatal(err)
	}
	var turn, turned mat.Dense
	turn.Mul(&v, &u)
	turned.Mul(rows, &turn)
	for k := range p {
		for at, i := range there {
			x[k*n+i] = turned.At(at, k)
		}
	}
}

// meanSquare is that of the difference of estimates and truth, at the best common scale where gains are unknown.
func (c evolvedCase) meanSquare(got, truth []float64) (total float64) {
	scale := 1.0
	if !c.known {
		both, own := 0.0, 0.0
		for j, v := range got {
			both, own = both+v*truth[j], own+v*v
		}
		if own > 0 {
			scale = both / own
		}
	}
	for j, v := range got {
		total += (scale*v - truth[j]) * (scale*v - truth[j]) / float64(len(got))
	}
	return total
}

// beside is the geometric mean over runs, its standard error, and how many of these it is from the prediction.
func beside(runs [][]float64, iteration int, want float64) (mean, se, distance float64) {
	n, log, square := float64(len(runs)), 0.0, 0.0
	for _, r := range runs {
		log += math.Log(r[iteration]) / n
	}
	for _, r := range runs {
		square += (math.Log(r[iteration]) - log) * (math.Log(r[iteration]) - log)
	}
	se = math.Sqrt(square / (n * (n - 1)))
	return math.Exp(log), math.Exp(log) * se, (log - math.Log(want)) / se
}

// TestLongJointEvolution compares the bare iteration for joint rows with state evolution at N = 4000, iteration by iteration.
func TestLongJointEvolution(t *testing.T) {
	if !*tables.Long {
		t.Skip("a long measurement, see -long")
	}
	n, iterations := *evolvedEntries, *evolvedIterations
	table := tables.New(t, "", "P", "correlation", "gains", "α", "iterations", "x at the end, predicted", "AMP", "farthest x, in s.e.", "s at the end, predicted", "AMP", "farthest s, in s.e.", "beyond 3 s.e.")
	rows := [][]string{{"p", "correlation", "gains", "alpha", "iteration", "mse_x", "amp_mse_x", "amp_mse_x_err", "x_distance", "mse_s", "amp_mse_s", "amp_mse_s_err", "s_distance"}}
	for _, at := range []struct {
		p     int
		alpha float64
	}{{2, 0.6}, {5, 0.4}, {10, 0.36}, {50, 0.3}} {
		for _, correlation := range []float64{0, 0.5, 0.9} {
			for _, known := range []bool{true, false} {
				c := evolvedCase{at.p, at.alpha, correlation, known}
				if !strings.Contains(c.name(), *evolvedFilter) || at.p == 50 && (known || correlation == 0.5) {
					continue
				}
				want, err := evolution.JointOffline(t.Context(), c.model(), &evolution.Options{Iterations: iterations, Tol: 1e-6})
				if err != nil {
					t.Fatal(err)
				}
				var ofX, ofS [][]float64
				for seed := range *evolvedSeeds {
					x, s := c.run(t, n, iterations, uint64(seed+1))
					ofX, ofS = append(ofX, x), append(ofS, s)
				}
				worstX, worstS, outside := 0.0, 0.0, 0
				var x, s float64
				label := strings.Split(c.name(), "/")
				for i, step := range want.Steps {
					var seX, seS, dx, ds float64
					x, seX, dx = beside(ofX, i, step.MSEX.Value)
					if s, seS, ds = 0, 0, 0; !known {
						s, seS, ds = beside(ofS, i, step.MSES.Value)
					}
					worstX, worstS = max(worstX, math.Abs(dx)), max(worstS, math.Abs(ds))
					if math.Abs(dx) > 3 || math.Abs(ds) > 3 {
						outside++
						t.Errorf("%s, iteration %d: x %.4g ± %.2g, state evolution %.4g; s %.4g ± %.2g, %.4g", c.name(), i+1, x, seX, step.MSEX.Value, s, seS, step.MSES.Value)
					}
					row := []string{label[0], label[1], label[2], fmt.Sprint(at.alpha), fmt.Sprint(i + 1)}
					for _, v := range []float64{step.MSEX.Value, x, seX, dx, step.MSES.Value, s, seS, ds} {
						row = append(row, fmt.Sprintf("%.5g", v))
					}
					rows = append(rows, row)
				}
				last := want.Steps[iterations-1]
				table.Row("| %d | %g | %s | %g | %d | %.4g | %.4g | %.1f | %.4g | %.4g | %.1f | %d |", c.p, correlation, label[2], c.alpha, iterations, last.MSEX.Value, x, worstX, last.MSES.Value, s, worstS, outside)
			}
		}
	}
	path, wanted := tables.File(t, "results/joint-evolution.csv")
	if !wanted {
		return
	}
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := csv.NewWriter(f).WriteAll(rows); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestJointEvolution: the iteration is where state evolution says, up to what the density of one small instance is off by.
func TestJointEvolution(t *testing.T) {
	tests.Long(t)
	const n, iterations = 1000, 8
	for _, correlation := range []float64{0, 0.9} {
		c := evolvedCase{p: 10, alpha: 0.5, correlation: correlation}
		want, err := evolution.JointOffline(t.Context(), c.model(), &evolution.Options{Iterations: iterations, Tol: 1e-5})
		if err != nil {
			t.Fatal(err)
		}
		x, s := c.run(t, n, iterations, 1)
		for i, step := range want.Steps {
			for name, pair := range map[string][2]float64{"x": {x[i], step.MSEX.Value}, "s": {s[i], step.MSES.Value}} {
				if off := math.Abs(math.Log(pair[0] / pair[1])); !(off < 0.4) {
					t.Errorf("correlation %g, iteration %d: error of %s %.3g, state evolution %.3g", correlation, i+1, name, pair[0], pair[1])
				}
			}
		}
	}
}
