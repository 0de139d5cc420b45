package calamp_test

import (
	"context"
	"flag"
	"fmt"
	"math"
	"runtime"
	"slices"
	"sync"
	"testing"

	"github.com/calamp/calamp"
	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/internal/quadrature"
	"github.com/calamp/calamp/internal/tables"
	"github.com/calamp/calamp/prior"
	"github.com/calamp/calamp/recovery"
	"github.com/calamp/calamp/solver"
	"github.com/calamp/calamp/teacher"
)

// Measurements too long for every run: .ci/long, which puts their tables into
// docs, or go test -run Long -long -v -timeout 3h .
var (
	long            = tables.Long
	density         = flag.Float64("density", 0, "only this density of the robustness grid")
	plainIterations = flag.Int("plain-iterations", 10000, "plain iterations that the scale step is compared with")
	seeds           = flag.Int("seeds", 0, "seeds of a long measurement; 0 is the number on record")
)

func longOnly(t *testing.T) {
	t.Helper()
	if !*long {
		t.Skip("a long measurement: add -long")
	}
}

func seedCount(standard int) int {
	if *seeds > 0 {
		return *seeds
	}
	return standard
}

// outcome is a run with its errors.
type outcome struct {
	*calamp.Result
	calamp.Metrics
	truth calamp.Truth
}

// study solves count instances of te, seeds 0, 1, …, in parallel, one thread
// each. The solver's model is the teacher's, with noise in place of Δ.
func study(t *testing.T, te teacher.Teacher, noise float64, count int, opt calamp.Options) []outcome {
	t.Helper()
	return studyWith(t, te, func(calamp.Truth) channel.Channel {
		return channel.Gain{Prior: te.Gain, NoiseVar: noise}
	}, count, opt)
}

// studyWith is study with a channel of the caller's choice.
func studyWith(t *testing.T, te teacher.Teacher, model func(calamp.Truth) channel.Channel, count int, opt calamp.Options) []outcome {
	t.Helper()
	return studyDrawn(t, te, te.Draw, model, count, opt)
}

// studyDrawn is studyWith with instances of the caller's.
func studyDrawn(t *testing.T, te teacher.Teacher, draw func(seed uint64) (*teacher.Instance, error), model func(calamp.Truth) channel.Channel, count int, opt calamp.Options) []outcome {
	t.Helper()
	opt.Threads = 1
	return studySolved(t, draw, count, func(in *teacher.Instance) (*calamp.Result, error) {
		p := te.Problem(in)
		p.Channel = model(in.Truth)
		return calamp.Solve(context.Background(), p, &opt)
	})
}

// studyNothingGiven is study of what the command does by default with readings and W.
func studyNothingGiven(t *testing.T, te teacher.Teacher, count int) []outcome {
	t.Helper()
	return studySolved(t, te.Draw, count, func(in *teacher.Instance) (*calamp.Result, error) {
		return solveNothingGiven(t, in, calamp.Learn{Noise: true, Range: true}), nil
	})
}

// studySolved solves so many instances, several at once.
func studySolved(t *testing.T, draw func(seed uint64) (*teacher.Instance, error), count int, solve func(*teacher.Instance) (*calamp.Result, error)) []outcome {
	t.Helper()
	out := make([]outcome, count)
	var wg sync.WaitGroup
	free := make(chan struct{}, runtime.GOMAXPROCS(0))
	for seed := range count {
		wg.Go(func() {
			free <- struct{}{}
			defer func() { <-free }()
			in, err := draw(uint64(seed))
			if err != nil {
				t.Error(err)
				return
			}
			res, err := solve(in)
			if err != nil {
				t.Error(err)
				return
			}
			out[seed] = outcome{res, calamp.Score(res.X, res.S, in.Truth), in.Truth}
		})
	}
	wg.Wait()
	return out
}

func medianOf[T any](list []T, value func(T) float64) float64 {
	v := make([]float64, len(list))
	for i, x := range list {
		v[i] = value(x)
	}
	slices.Sort(v)
	n := len(v)
	return 0.5 * (v[(n-1)/2] + v[n/2])
}

func countOf[T any](list []T, ok func(T) bool) int {
	n := 0
	for _, x := range list {
		if ok(x) {
			n++
		}
	}
	return n
}

func iterations(o outcome) float64 { return float64(o.Iterations) }
func raw(o outcome) float64        { return o.XMSE }
func recoveredX(o outcome) bool    { return o.XOneMinusNCC <= 1e-9 }
func scaled(o outcome) float64     { return o.XMSEScaled }

// State evolution's fixed points at ρ = 0.2, α = 0.6, Δ = 1e-8, gains in
// [0.95, 1.05], computed independently.
func TestLongReferenceErrors(t *testing.T) {
	longOnly(t)
	table := tables.New(t, "", "P", "state evolution", "scaled MSE of x", "difference", "raw MSE of x", "raw/scaled", "iterations")
	for _, c := range []struct {
		p    int
		want float64
	}{{2, 1.98996e-8}, {3, 1.00589e-8}, {5, 7.1897e-9}, {10, 5.91955e-9}} {
		te := teacher.Teacher{N: 2000, M: 1200, P: c.p, Signal: prior.GaussBernoulli{Density: 0.2, SignalVar: 1}, Gain: channel.Uniform(0.95, 1.05), NoiseVar: 1e-8}
		runs := study(t, te, te.NoiseVar, seedCount(10), calamp.Options{})
		got, rawGot := medianOf(runs, scaled), medianOf(runs, raw)
		table.Row("| %d | %.3g | %.3g | %+.0f %% | %.3g | %.2f | %.0f |", c.p, c.want, got, 100*(got/c.want-1), rawGot, rawGot/got, medianOf(runs, iterations))
		if math.Abs(got/c.want-1) > 0.15 || rawGot > 3*got {
			t.Errorf("P = %d: scaled MSE %g, state evolution %g; raw %g", c.p, got, c.want, rawGot)
		}
	}
}

// gridDensities are those of the robustness grid, or the one asked for.
func gridDensities() []float64 {
	if *density > 0 {
		return []float64{*density}
	}
	return []float64{0.1, 0.3, 0.6}
}

func TestLongRobustnessGrid(t *testing.T) {
	longOnly(t)
	table := tables.New(t, "", "factor", "ρ", "P", "M", "recovered", "gains known", "scaled MSE ≤ 1e-18", "raw MSE (median)", "scaled MSE (median)", "iterations (median)", "largest raw MSE")
	count := seedCount(20)
	for _, factor := range []float64{1.4, 1.2} {
		total, good := 0, 0
		var all []outcome
		for _, rho := range gridDensities() {
			here, hereGood, reachable := 0, 0, 0
			for _, p := range []int{2, 5, 10} {
				g := prior.GaussBernoulli{Density: rho, SignalVar: 1}
				alpha := factor * max(recovery.AlphaMin(rho, p), recovery.AlphaCS(g))
				te := teacher.Teacher{N: 1000, M: int(math.Round(1000 * alpha)), P: p, Signal: g, Gain: channel.Uniform(0.95, 1.05)}
				runs := study(t, te, 1e-14, count, calamp.Options{})
				known := ""
				if factor == 1.2 {
					// What AMP does when it is given the gains: the limit of any blind one.
					oracle := studyWith(t, te, func(truth calamp.Truth) channel.Channel {
						return channel.AWGN{NoiseVar: 1e-14, S: truth.S}
					}, count, calamp.Options{})
					known = fmt.Sprintf("%d/%d", countOf(oracle, recoveredX), count)
					reachable += countOf(oracle, recoveredX)
				}
				won := countOf(runs, recoveredX)
				fine := countOf(runs, func(o outcome) bool { return o.XMSEScaled <= 1e-18 })
				wild := countOf(runs, func(o outcome) bool { return !(o.XMSE <= rho) })
				worst := slices.MaxFunc(runs, func(a, b outcome) int { return int(math.Copysign(1, a.XMSE-b.XMSE)) }).XMSE
				table.Row("| %.1f | %.1f | %d | %d | %d/%d | %s | %d | %.1e | %.1e | %.0f | %.1e |", factor, rho, p, te.M, won, count, known, fine, medianOf(runs, raw), medianOf(runs, scaled), medianOf(runs, iterations), worst)
				if wild > 0 {
					t.Errorf("×%g ρ=%g P=%d: %d of %d runs end worse than no estimate", factor, rho, p, wild, count)
				}
				here, hereGood = here+count, hereGood+won
				all = append(all, runs...)
			}
			if factor == 1.2 {
				if float64(hereGood) < 0.95*float64(reachable) {
					t.Errorf("×1.2, ρ=%g: %d of %d recovered, %d with the gains known", rho, hereGood, here, reachable)
				}
			}
			total, good = total+here, good+hereGood
		}
		if factor == 1.4 {
			fine := countOf(all, func(o outcome) bool { return o.XMSEScaled <= 1e-18 })
			fmt.Printf("×1.4: %d of %d recovered; scaled MSE ≤ 1e-18 in %d; raw median %.1e; iterations median %.0f\n", good, total, fine, medianOf(all, raw), medianOf(all, iterations))
			if good < total || float64(fine) < 0.95*float64(total) || medianOf(all, raw) > 5e-8 || medianOf(all, iterations) > 300 {
				t.Error("×1.4: below the bar")
			}
		}
	}
}

// The same grid with the published recursion, 500 iterations.
func TestLongPublishedGrid(t *testing.T) {
	longOnly(t)
	table := tables.New(t, "", "factor", "ρ", "P", "M", "recovered", "diverged", "raw MSE (median)", "scaled MSE (median)", "largest raw MSE")
	count := seedCount(3)
	for _, factor := range []float64{1.4, 1.2} {
		for _, rho := range gridDensities() {
			for _, p := range []int{2, 5, 10} {
				g := prior.GaussBernoulli{Density: rho, SignalVar: 1}
				alpha := factor * max(recovery.AlphaMin(rho, p), recovery.AlphaCS(g))
				te := teacher.Teacher{N: 1000, M: int(math.Round(1000 * alpha)), P: p, Signal: g, Gain: channel.Uniform(0.95, 1.05)}
				runs := study(t, te, 1e-14, count, *calamp.Published(500))
				won := countOf(runs, recoveredX)
				lost := countOf(runs, func(o outcome) bool { return o.Status == calamp.Diverged })
				worst := slices.MaxFunc(runs, func(a, b outcome) int { return int(math.Copysign(1, a.XMSE-b.XMSE)) }).XMSE
				table.Row("| %.1f | %.1f | %d | %d | %d/%d | %d | %.1e | %.1e | %.1e |", factor, rho, p, te.M, won, count, lost, medianOf(runs, raw), medianOf(runs, scaled), worst)
			}
		}
	}
}

// Plain damped iterations and the scale step must end at the same fixed point.
// Where the plain ones have found none, because an entry between zero and not
// keeps flipping, there is nothing to compare with, and the table says so.
func TestLongScaleStepKeepsFixedPoints(t *testing.T) {
	longOnly(t)
	table := tables.New(t, "", "range of s", "Δ", "seed", "last change of the plain iterations", "iterations", "largest difference of x", "of s", "scale, relative")
	for _, gain := range []channel.GainPrior{channel.Uniform(0.95, 1.05), channel.Uniform(0.5, 1.5)} {
		for _, noise := range []float64{1e-2, 1e-4, 1e-6} {
			te := teacher.Teacher{N: 500, M: 400, P: 4, Signal: prior.GaussBernoulli{Density: 0.3, SignalVar: 1}, Gain: gain, NoiseVar: noise}
			plain := study(t, te, noise, seedCount(3), calamp.Options{Settings: solver.Settings{MaxIter: *plainIterations, Tol: -1, Damping: solver.FixedDamping(0.3), NoScaleStep: true}})
			stepped := study(t, te, noise, seedCount(3), calamp.Options{Settings: solver.Settings{MaxIter: 300, SPrior: solver.UniformS, ScaleAtPeak: true}})
			for i := range plain {
				a, b := plain[i], stepped[i]
				x, s := largestDifference(a, b)
				change := a.Trace[len(a.Trace)-1].Change
				table.Row("| [%g, %g] | %.0e | %d | %.1e | %d | %.1e | %.1e | %.1e |", gain.Lo, gain.Hi, noise, i, change, b.Iterations, x, s, math.Abs(mean(a.S)/mean(b.S)-1))
				if change < 1e-8 && (x > 1e-4 || s > 1e-4) || b.Status != calamp.Converged {
					t.Errorf("[%g, %g], Δ = %g, seed %d: x differs by %.2g, s by %.2g posterior standard deviations", gain.Lo, gain.Hi, noise, i, x, s)
				}
			}
		}
	}
}

// largestDifference is that of two results, in posterior standard deviations.
func largestDifference(a, b outcome) (x, s float64) {
	n, p := a.X.Dims()
	for i := range n {
		for k := range p {
			x = max(x, math.Abs(a.X.At(i, k)-b.X.At(i, k))/math.Sqrt(a.XVar.At(i, k)))
		}
	}
	for mu := range a.S {
		s = max(s, math.Abs(a.S[mu]-b.S[mu])/math.Sqrt(a.SVar[mu]))
	}
	return x, s
}

func mean(v []float64) float64 {
	total := 0.0
	for _, x := range v {
		total += x
	}
	return total / float64(len(v))
}

// The standard deviation of the scale, and of everything else.
func TestLongUncertainties(t *testing.T) {
	longOnly(t)
	table := tables.New(t, "", "range of s", "P", "Δ", "scale z²", "scale_sd", "variance/error", "coverage", "iterations")
	for _, gain := range []channel.GainPrior{channel.Uniform(0.95, 1.05), channel.Uniform(0.5, 1.5)} {
		for _, p := range []int{4, 10} {
			for _, noise := range []float64{1e-3, 1e-4, 1e-6, 1e-8} {
				te := teacher.Teacher{N: 500, M: 400, P: p, Signal: prior.GaussBernoulli{Density: 0.2, SignalVar: 1}, Gain: gain, NoiseVar: noise}
				runs := study(t, te, noise, seedCount(30), calamp.Options{})
				var z2, c, mse, inside, total float64
				for _, o := range runs {
					// The density of the scale is a ramp with a cliff, and a mixture: z is what its
					// rank would be of a normal one.
					z := quadrature.NormalBound(2*o.ScaleRank(o.Scale) - 1)
					z2 += z * z
					c += o.Trace[len(o.Trace)-1].MeanXVar
					mse += o.XMSEScaled
					for mu, s := range o.S {
						total++
						if math.Abs(o.Scale*s-o.truth.S[mu]) <= 1.959964*math.Sqrt(o.SVar[mu]) {
							inside++
						}
					}
				}
				n := float64(len(runs))
				table.Row("| [%g, %g] | %d | %.0e | %.2f | %.2g | %.3f | %.1f %% | %.0f |", gain.Lo, gain.Hi, p, noise, z2/n, medianOf(runs, func(o outcome) float64 { return o.ScaleSD }), c/mse, 100*inside/total, medianOf(runs, iterations))
				if z2/n < 0.6 || z2/n > 1.6 {
					t.Errorf("[%g, %g], P = %d, Δ = %g: standardised scale errors have mean square %.2f", gain.Lo, gain.Hi, p, noise, z2/n)
				}
				if math.Abs(c/mse-1) > 0.1 {
					t.Errorf("[%g, %g], P = %d, Δ = %g: mean C is %.3f of the error", gain.Lo, gain.Hi, p, noise, c/mse)
				}
				if cover := inside / total; cover < 0.90 || cover > 0.98 {
					t.Errorf("[%g, %g], P = %d, Δ = %g: 95 %% intervals of s cover %.1f %%", gain.Lo, gain.Hi, p, noise, 100*cover)
				}
			}
		}
	}
}

// The paper's figure on the diagonal ansatz.
func TestLongDiagonalAnsatz(t *testing.T) {
	longOnly(t)
	table := tables.New(t, "", "P", "N", "scaled MSE, diagonal", "scaled MSE, full", "V", "mean off-diagonal of V", "ratio")
	for _, p := range []int{2, 3} {
		for _, n := range []int{100, 200, 500, 1000} {
			te := teacher.Teacher{N: n, M: 2 * n, P: p, Signal: prior.Gaussian(0, 1), Gain: channel.Uniform(0.95, 1.05), NoiseVar: 1e-4}
			diagonal := study(t, te, te.NoiseVar, seedCount(5), calamp.Options{})
			full := study(t, te, te.NoiseVar, seedCount(5), calamp.Options{Settings: solver.Settings{Covariance: solver.Full}})
			last := func(o outcome) calamp.Iteration { return o.Trace[len(o.Trace)-1] }
			v := medianOf(full, func(o outcome) float64 { return last(o).MeanV })
			off := medianOf(full, func(o outcome) float64 { return last(o).OffV })
			table.Row("| %d | %d | %.3g | %.3g | %.3g | %.3g | %.3g |", p, n, medianOf(diagonal, scaled), medianOf(full, scaled), v, off, off/v)
		}
	}
}
