package calamp_test

import (
	"context"
	"encoding/csv"
	"flag"
	"fmt"
	"math"
	"os"
	"strconv"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/calamp/calamp"
	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/evolution"
	"github.com/calamp/calamp/internal/amp"
	"github.com/calamp/calamp/internal/tables"
	"github.com/calamp/calamp/online"
	"github.com/calamp/calamp/operator"
	"github.com/calamp/calamp/prior"
	"github.com/calamp/calamp/solver"
	"github.com/calamp/calamp/teacher"
)

// AMP against what state evolution says beforehand; results are recorded in
// docs/log/theory.md:
//
//	.ci/long LongEvolution
var (
	entries = flag.Int("n", 0, "entries of a signal in the comparisons with state evolution; 0 is the number on record")
	first   = flag.Uint64("first-seed", 0, "first seed of the comparisons with state evolution")
)

func entryCount(standard int) int {
	if *entries > 0 {
		return *entries
	}
	return standard
}

// paperTeacher is the paper's setting of state evolution, ρ = 0.2, α = 0.6,
// Δ = 1e-8, at a finite size.
func paperTeacher(n, p int) teacher.Teacher {
	return teacher.Teacher{
		N: n, M: int(math.Round(0.6 * float64(n))), P: p,
		Signal: prior.GaussBernoulli{Density: 0.2, SignalVar: 1}, Gain: channel.Uniform(0.95, 1.05), NoiseVar: 1e-8,
	}
}

// errorsAt are the mean square errors at one time, each after the common factor
// that makes it smallest: at finite N the global scale wanders, in state
// evolution it does not.
type errorsAt struct{ x, s float64 }

// trajectories are what an instance did, and what state evolution says of an
// instance with just its density and power.
type trajectories struct{ amp, predicted []errorsAt }

// drawSingle is an instance with W in single precision, which is half the memory; the
// readings are made with what is stored.
func drawSingle(t *testing.T, te teacher.Teacher, seed uint64) (*teacher.Instance, *operator.Dense) {
	t.Helper()
	in, err := te.Draw(seed)
	if err != nil {
		t.Fatal(err)
	}
	rounded := make([]float32, te.M*te.N)
	row, lost := make([]float64, te.N), make([]float64, te.N)
	for mu := range te.M {
		in.W.RowInto(row, mu)
		for i, w := range row {
			rounded[mu*te.N+i] = float32(w)
			lost[i] = float64(float32(w)) - w
		}
		var dz mat.VecDense
		dz.MulVec(in.Truth.X.T(), mat.NewVecDense(te.N, lost))
		for k := range te.P {
			in.Y.Set(mu, k, in.Y.At(mu, k)+dz.AtVec(k)/in.Truth.S[mu])
		}
	}
	w, err := operator.NewDense32(te.M, te.N, rounded)
	if err != nil {
		t.Fatal(err)
	}
	in.W = w
	return in, w
}

// bareTrajectory does the published iteration, undamped and without the scale
// step, and measures it after every step.
func bareTrajectory(t *testing.T, te teacher.Teacher, student evolution.Belief, seed uint64, iterations int) trajectories {
	t.Helper()
	out, x := bareErrors(t, te, student, seed, iterations)
	return trajectories{amp: out, predicted: realised(t, te, x, student, iterations)}
}

// bareErrors are those of the iteration, and the signals.
func bareErrors(t *testing.T, te teacher.Teacher, student evolution.Belief, seed uint64, iterations int) (out []errorsAt, signals *mat.Dense) {
	t.Helper()
	in, w := drawSingle(t, te, seed)
	s, _, _, err := amp.NewSolver(amp.Problem{
		W: w, P: te.P, Y: in.Y.RawMatrix().Data, Model: amp.Model{Prior: student.Signal, Channel: student.Channel()},
	}, solver.Settings{Threads: 1, NoMeanRemoval: true, NoScaleStep: true})
	if err != nil {
		t.Fatal(err)
	}
	x0 := in.Truth.X.T()
	for range iterations {
		if err := s.Iteration.Step(0); err != nil {
			t.Fatal(err)
		}
		x := mat.NewDense(te.P, te.N, s.State.X)
		out = append(out, scaledErrors(x, x0, s.State.S, in.Truth.S))
	}
	return out, in.Truth.X
}

// realised is state evolution for the density and the power that an instance's
// signals happen to have; the student's belief is what it was.
func realised(t *testing.T, te teacher.Teacher, x *mat.Dense, student evolution.Belief, iterations int) []errorsAt {
	t.Helper()
	on, power := 0.0, 0.0
	for i := range te.N {
		for _, v := range x.RawRowView(i) {
			if v != 0 {
				on++
				power += v * v
			}
		}
	}
	signal := prior.GaussBernoulli{Density: on / float64(te.N*te.P), SignalVar: power / on}
	m := evolution.Mismatch{
		Teacher: evolution.Belief{Signal: signal, Gain: te.Gain, NoiseVar: te.NoiseVar}, Student: student,
		Alpha: float64(te.M) / float64(te.N), P: te.P,
	}
	steps, err := evolution.OfflineMismatched(context.Background(), m, &evolution.Options{Iterations: iterations, Tol: 1e-6})
	if err != nil {
		t.Fatal(err)
	}
	var out []errorsAt
	for _, o := range steps {
		out = append(out, errorsAt{o.MSEXScaled(signal.Density * signal.SignalVar).Value, o.MSES.Value})
	}
	return out
}

func scaledErrors(x, x0 mat.Matrix, s, s0 []float64) errorsAt {
	ofX := calamp.Score(mat.DenseCopyOf(x), nil, calamp.Truth{X: mat.DenseCopyOf(x0)})
	ofS := calamp.Score(nil, s, calamp.Truth{S: s0})
	return errorsAt{ofX.XMSEScaled, ofS.SMSEScaled}
}

// comparison is AMP's mean over seeds beside the prediction.
type comparison struct {
	sample, iteration int // sample is 0 offline
	x, s              evolution.Number
	ownX, ownS        evolution.Number // ratios to the prediction for the instance's own density and power
	wantX, wantS      float64
	wantErrX          float64 // of the prediction, when it is sampled
	wantErrS          float64
}

// logMean is the geometric mean of a positive number over runs and its standard
// error. Where the error falls steeply, what differs between seeds is when, so
// it is the logarithms that are spread evenly.
func logMean[T any](runs []T, value func(T) float64) evolution.Number {
	log := plainMean(runs, func(r T) float64 { return math.Log(value(r)) })
	v := math.Exp(log.Value)
	return evolution.Number{Value: v, Err: v * log.Err}
}

// plainMean is the arithmetic one, which is what is predicted where the error has converged. With two signals a
// quarter of the error on s is that of fewer than one sensor in 6000, which see next to nothing of both: few
// seeds have one, and the geometric mean is 4 % lower.
func plainMean[T any](runs []T, value func(T) float64) evolution.Number {
	n := float64(len(runs))
	var sum, square float64
	for _, r := range runs {
		sum += value(r)
	}
	mean := sum / n
	for _, r := range runs {
		d := value(r) - mean
		square += d * d
	}
	return evolution.Number{Value: mean, Err: math.Sqrt(square / (n * (n - 1)))}
}

// settledBelow is the fall of a predicted error in one iteration below which what differs between seeds is no longer when.
const settledBelow = 0.01

// leastErrS is the standard error that the mean of so many runs' errors on s has, where the predicted error on x is
// mseX. A sensor that sees r² = Σz², of distribution ρσ²χ²_P, has the variance v = 1/(1/σ_s² + r²/(V+Δ)), and (s-ŝ)² the second
// moment 9/5 v² at least, that of a uniform distribution. With two signals v² comes from one sensor in ten thousand: runs that
// have none of these show neither the error nor how uncertain it is.
func leastErrS(te teacher.Teacher, mseX float64, runs int) float64 {
	const cells, depth, kurtosis = 4000, 30.0, 9.0 / 5 // from e⁻³⁰ of the power on, in which no cell is
	_, spread := te.Gain.Moments()
	power, half := te.Signal.Density*te.Signal.SignalVar, 0.5*float64(te.P)
	var mass, mean, square float64
	for i := range cells {
		t := math.Exp(depth * (float64(i)/cells - 0.85)) // r²/power
		weight := math.Pow(t, half) * math.Exp(-0.5*t)
		v := 1 / (1/spread + t*power/(mseX+te.NoiseVar))
		mass, mean, square = mass+weight, mean+weight*v, square+weight*v*v
	}
	mean, square = mean/mass, square/mass
	return math.Sqrt((kurtosis*square - mean*mean) / float64(te.M*runs))
}

// compareAll puts the runs beside the prediction, iteration by iteration.
func compareAll(te teacher.Teacher, runs []trajectories, want []errorsAt) (list []comparison) {
	for i, w := range want {
		mean := func(pick func(errorsAt) float64) (plain, own evolution.Number) {
			over := logMean[trajectories]
			if i > 0 && math.Abs(pick(w)/pick(want[i-1])-1) < settledBelow {
				over = plainMean
			}
			plain = over(runs, func(r trajectories) float64 { return pick(r.amp[i]) })
			own = over(runs, func(r trajectories) float64 { return pick(r.amp[i]) / pick(r.predicted[i]) })
			return plain, own
		}
		c := comparison{iteration: i + 1, wantX: w.x, wantS: w.s}
		c.x, c.ownX = mean(xOf)
		c.s, c.ownS = mean(sOf)
		c.s.Err = max(c.s.Err, leastErrS(te, w.x, len(runs)))
		list = append(list, c)
	}
	return list
}

func xOf(e errorsAt) float64 { return e.x }
func sOf(e errorsAt) float64 { return e.s }

// distance is that from the prediction in standard errors.
func distance(got evolution.Number, want, wantErr float64) float64 {
	return (got.Value - want) / math.Hypot(got.Err, wantErr)
}

// own is what is left after what the instance's density and power explain.
func (c *comparison) own() string {
	if c.ownX.Value == 0 {
		return ""
	}
	return fmt.Sprintf(" %+.2f ± %.2f %% | %+.2f ± %.2f %% |", 100*(c.ownX.Value-1), 100*c.ownX.Err, 100*(c.ownS.Value-1), 100*c.ownS.Err)
}

// comparisonHeads are the heads of judge's columns without a label, and ownHeads with what
// [compare] computes.
func comparisonHeads(at string) []string {
	return []string{at, "x, predicted", "AMP", "difference", "in s.e.", "s, predicted", "AMP", "difference", "in s.e."}
}

func ownHeads(at string) []string { return append(comparisonHeads(at), "x, own", "s, own") }

// judge puts the comparison into the table, one in so many, after a cell that is a
// label or nothing, and fails what is more than three standard errors away.
func judge(t *testing.T, table *tables.Table, label string, every int, list []comparison) {
	t.Helper()
	outside, worstX, worstS := 0, 0.0, 0.0
	for i, c := range list {
		dx, ds := distance(c.x, c.wantX, c.wantErrX), distance(c.s, c.wantS, c.wantErrS)
		at := fmt.Sprint(c.iteration)
		if c.sample > 0 {
			at = fmt.Sprint(c.sample)
		}
		if (i+1)%every == 0 {
			table.Row("|%s %s | %.4g | %.4g | %+.2f %% | %+.1f | %.4g | %.4g | %+.2f %% | %+.1f |%s", label, at,
				c.wantX, c.x.Value, 100*(c.x.Value/c.wantX-1), dx, c.wantS, c.s.Value, 100*(c.s.Value/c.wantS-1), ds, c.own())
		}
		worstX, worstS = max(worstX, math.Abs(dx)), max(worstS, math.Abs(ds))
		if math.Abs(dx) > 3 || math.Abs(ds) > 3 {
			outside++
			t.Errorf("%s %s: x %v, state evolution %.5g; s %v, %.5g", label, at, c.x, c.wantX, c.s, c.wantS)
		}
	}
	fmt.Printf("%s %d of %d beyond three standard errors; largest %.1f (x), %.1f (s)\n", label, outside, len(list), worstX, worstS)
}

// save writes the AMP side as a table for calamp se --overlay.
func save(t *testing.T, name string, list []comparison) {
	t.Helper()
	path, wanted := tables.File(t, "theory/"+name+".csv")
	if !wanted {
		return
	}
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	w := csv.NewWriter(f)
	head := []string{"iteration", "mse_x", "mse_x_err", "mse_s", "mse_s_err"}
	if list[0].sample > 0 {
		head = append([]string{"sample"}, head...)
	}
	w.Write(head)
	for _, c := range list {
		row := []string{strconv.Itoa(c.iteration)}
		if c.sample > 0 {
			row = append([]string{strconv.Itoa(c.sample)}, row...)
		}
		for _, v := range []float64{c.x.Value, c.x.Err, c.s.Value, c.s.Err} {
			row = append(row, strconv.FormatFloat(v, 'g', 6, 64))
		}
		w.Write(row)
	}
	w.Flush()
	if err := w.Error(); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}

// The published iteration, every iteration down to the plateau.
func TestLongEvolutionOffline(t *testing.T) {
	longOnly(t)
	for _, c := range []struct{ p, iterations int }{{2, 50}, {5, 30}} {
		te := paperTeacher(entryCount(10000), c.p)
		m := evolution.Model{Signal: te.Signal, Gain: te.Gain, NoiseVar: te.NoiseVar, Alpha: 0.6, P: c.p}
		want, err := evolution.Offline(context.Background(), m, &evolution.Options{Iterations: c.iterations})
		if err != nil {
			t.Fatal(err)
		}
		var runs []trajectories
		for seed := range seedCount(16) {
			runs = append(runs, bareTrajectory(t, te, evolution.Matched(m).Student, *first+uint64(seed), c.iterations))
		}
		var steps []errorsAt
		for _, s := range want.Steps {
			steps = append(steps, errorsAt{s.MSEX.Value, s.MSES.Value})
		}
		list := compareAll(te, runs, steps)
		name := fmt.Sprintf("offline-p%d", c.p)
		save(t, name, list)
		judge(t, tables.New(t, name, ownHeads("iteration")...), "", c.iterations/10, list)
	}
}

// The same for gains of each further distribution.
func TestLongEvolutionGains(t *testing.T) {
	longOnly(t)
	const iterations = 16
	for _, c := range []struct {
		name string
		gain channel.GainPrior
	}{
		{"normal", channel.NormalAbout(1, 0.05)},
		{"cut-normal", channel.TruncatedNormal(1, 0.3, 0.5, 2)},
		{"log-normal-0.1", channel.LogNormalAbout(1, 0.1)},
		{"log-normal-0.5", channel.LogNormalAbout(1, 0.5)},
	} {
		n := entryCount(2000)
		te := teacher.Teacher{N: n, M: 7 * n / 10, P: 4, Signal: prior.GaussBernoulli{Density: 0.2, SignalVar: 1}, Gain: c.gain, NoiseVar: 1e-4}
		m := evolution.Model{Signal: te.Signal, Gain: te.Gain, NoiseVar: te.NoiseVar, Alpha: 0.7, P: te.P}
		want, err := evolution.Offline(context.Background(), m, &evolution.Options{Iterations: iterations, Tol: 1e-6})
		if err != nil {
			t.Fatal(err)
		}
		runs := make([][]errorsAt, seedCount(10))
		inParallel(len(runs), func(i int) {
			runs[i], _ = bareErrors(t, te, evolution.Matched(m).Student, *first+uint64(i), iterations)
		})
		var list []comparison
		for i, s := range want.Steps {
			list = append(list, comparison{
				iteration: i + 1, wantX: s.MSEX.Value, wantS: s.MSES.Value,
				x: logMean(runs, func(r []errorsAt) float64 { return r[i].x }),
				s: logMean(runs, func(r []errorsAt) float64 { return r[i].s }),
			})
		}
		judge(t, tables.New(t, c.name, comparisonHeads("iteration")...), "", 4, list)
	}
}

// A stream, each sample at its fixed point; with the mean square of W in place of
// its squares, half the work and the same limit. The error on s is the posterior's
// after the sample.
func TestLongEvolutionOnline(t *testing.T) {
	longOnly(t)
	const samples = 10
	te := paperTeacher(entryCount(10000), samples)
	want, err := evolution.Online(context.Background(), evolution.Model{Signal: te.Signal, Gain: te.Gain, NoiseVar: te.NoiseVar, Alpha: 0.6, P: samples}, nil)
	if err != nil {
		t.Fatal(err)
	}
	var runs [][]errorsAt
	for seed := range seedCount(16) {
		runs = append(runs, streamErrors(t, te, *first+uint64(seed)))
	}
	var list []comparison
	for k, w := range want {
		last := w.Last()
		list = append(list, comparison{
			sample: k + 1, iteration: len(w.Steps),
			x: logMean(runs, func(r []errorsAt) float64 { return r[k].x }), s: logMean(runs, func(r []errorsAt) float64 { return r[k].s }),
			wantX: last.MSEX.Value, wantErrX: last.MSEX.Err, wantS: last.MSES.Value, wantErrS: last.MSES.Err,
		})
	}
	save(t, "online", list)
	judge(t, tables.New(t, "", comparisonHeads("sample")...), "", 1, list)
}

func streamErrors(t *testing.T, te teacher.Teacher, seed uint64) []errorsAt {
	t.Helper()
	in, w := drawSingle(t, te, seed)
	c, err := online.NewCalibrator(w, te.Signal, channel.Gain{Prior: te.Gain, NoiseVar: te.NoiseVar}, &online.Options{Settings: solver.Settings{Threads: 1}})
	if err != nil {
		t.Fatal(err)
	}
	var out []errorsAt
	for k := range te.P {
		e, err := c.Absorb(context.Background(), mat.Col(nil, k, in.Y))
		if err != nil {
			t.Fatal(err)
		}
		if !e.Committed {
			t.Errorf("seed %d, sample %d: %s", seed, k+1, e.Reason())
		}
		x := mat.NewDense(1, te.N, e.X)
		out = append(out, scaledErrors(x, in.Truth.X.ColView(k).T(), c.Posterior().S, in.Truth.S))
	}
	fmt.Printf("seed %d: %.4g\n", seed, out)
	return out
}

// A student who is wrong about one thing, every iteration.
func TestLongEvolutionMismatched(t *testing.T) {
	longOnly(t)
	table := tables.New(t, "", append([]string{"student believes"}, ownHeads("iteration")...)...)
	const iterations = 30
	te := paperTeacher(entryCount(4000), 3)
	te.NoiseVar = 1e-6
	truth := evolution.Belief{Signal: te.Signal, Gain: te.Gain, NoiseVar: te.NoiseVar}
	for _, c := range []struct {
		name, label string
		wrong       func(*evolution.Belief)
	}{
		{"density-0.3", "ρ = 0.3", func(b *evolution.Belief) { b.Signal.Density = 0.3 }},
		{"density-0.15", "ρ = 0.15", func(b *evolution.Belief) { b.Signal.Density = 0.15 }},
		{"range-0.9-1.1", "s in [0.9, 1.1]", func(b *evolution.Belief) { b.Gain = channel.Uniform(0.9, 1.1) }},
		{"range-0.96-1.04", "s in [0.96, 1.04]", func(b *evolution.Belief) { b.Gain = channel.Uniform(0.96, 1.04) }},
		{"noise-times-10", "10 Δ", func(b *evolution.Belief) { b.NoiseVar *= 10 }},
		{"noise-over-10", "Δ/10", func(b *evolution.Belief) { b.NoiseVar /= 10 }},
	} {
		student := truth
		c.wrong(&student)
		m := evolution.Mismatch{Teacher: truth, Student: student, Alpha: 0.6, P: te.P}
		want, err := evolution.OfflineMismatched(context.Background(), m, &evolution.Options{Iterations: iterations})
		if err != nil {
			t.Fatal(err)
		}
		var runs []trajectories
		for seed := range seedCount(10) {
			runs = append(runs, bareTrajectory(t, te, student, *first+uint64(seed), iterations))
		}
		q0 := truth.Truth().SecondMoment()
		var steps []errorsAt
		for _, o := range want {
			steps = append(steps, errorsAt{o.MSEXScaled(q0).Value, o.MSES.Value})
		}
		list := compareAll(te, runs, steps)
		save(t, "mismatch-"+c.name, list)
		judge(t, table, " "+c.label+" |", iterations/3, list)
	}
}
