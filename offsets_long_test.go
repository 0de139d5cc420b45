package calamp_test

import (
	"context"
	"fmt"
	"math"
	"slices"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/calamp/calamp"
	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/evolution"
	"github.com/calamp/calamp/internal/tables"
	"github.com/calamp/calamp/online"
	"github.com/calamp/calamp/prior"
	"github.com/calamp/calamp/solver"
	"github.com/calamp/calamp/teacher"
)

var nan = math.NaN()

// offsetTeacher has readings with a standard deviation of 0.45; those of offsets are relative to that.
func offsetTeacher(relative float64, p int) teacher.Teacher {
	return teacher.Teacher{
		N: 300, M: 240, P: p, Signal: prior.GaussBernoulli{Density: 0.2, SignalVar: 1},
		Gain: channel.Uniform(0.8, 1.2), NoiseVar: 1e-4, Offset: 0.45 * relative,
	}
}

// TestLongOffsetsNamed: where offsets are not in the model, a warning names them, and only there.
func TestLongOffsetsNamed(t *testing.T) {
	if !*long {
		t.Skip("long: -long runs it")
	}
	table := tables.New(t, "", "offsets, relative to the readings", "P", "runs", "named")
	for _, c := range []struct {
		relative float64
		p, runs  int
		named    bool
	}{{0.1, 10, 20, true}, {0.1, 20, 20, true}, {0.5, 10, 20, true}, {0.5, 20, 20, true}, {0, 4, 100, false}, {0, 10, 100, false}} {
		te, count := offsetTeacher(c.relative, c.p), 0
		for seed := range c.runs {
			in, err := te.Draw(uint64(seed + 1))
			if err != nil {
				t.Fatal(err)
			}
			if res := solveNothingGiven(t, in, calamp.Learn{Noise: true, Range: true}); warned(res, calamp.Offsets) {
				count++
			}
		}
		table.Row("| %g | %d | %d | %d |", c.relative, c.p, c.runs, count)
		if want := map[bool]int{true: c.runs}[c.named]; count != want {
			t.Errorf("offsets of %g, P = %d: named in %d of %d runs, want %d", c.relative, c.p, count, c.runs, want)
		}
	}
}

// offsetRun is a run with offsets against one of the same readings without them, and the truth.
type offsetRun struct {
	status     calamp.Status
	ratio      float64 // of the errors of x
	nmse       float64
	over       float64 // squared error of x / what its variances say
	o, s, x    float64 // part of the intervals of 95 % that hold the truth
	broken     int
	iterations int
	warned     bool
}

// offsetRunOf learns everything.
func offsetRunOf(t testing.TB, te teacher.Teacher, seed uint64) (r offsetRun) {
	in, err := te.Draw(seed)
	if err != nil {
		t.Fatal(err)
	}
	res := solveNothingGiven(t, in, calamp.Learn{Noise: true, Range: true, Offset: true})
	without := *in
	without.Y = mat.DenseCopyOf(in.Y)
	without.Y.Apply(func(mu, _ int, y float64) float64 { return y - in.Truth.O[mu] }, without.Y)
	given := solveNothingGiven(t, &without, calamp.Learn{Noise: true, Range: true})
	score := calamp.Score(res.X, res.S, in.Truth)
	r.status, r.broken, r.iterations = res.Status, len(res.BrokenSensors), res.Iterations
	r.nmse = score.XMSEScaled / 0.2
	r.ratio = score.XMSEScaled / calamp.Score(given.X, given.S, in.Truth).XMSEScaled
	r.warned = warned(res, calamp.OffsetsFewSignals)
	for mu, o := range in.Truth.O {
		if math.Abs(res.Offset[mu]-o) < 1.96*math.Sqrt(res.OffsetVar[mu]) {
			r.o += 1 / float64(te.M)
		}
	}
	_, _, lo, hi := res.SIntervals(0.95)
	for mu, s := range in.Truth.S {
		if s /= score.Scale; lo[mu] <= s && s <= hi[mu] {
			r.s += 1 / float64(te.M)
		}
	}
	r.over = score.XMSEScaled / mat.Sum(res.XVar) * float64(te.N*te.P)
	for i := range te.N {
		for k := range te.P {
			if math.Abs(score.Scale*res.X.At(i, k)-in.Truth.X.At(i, k)) < 1.96*score.Scale*math.Sqrt(res.XVar.At(i, k)) {
				r.x += 1 / float64(te.N*te.P)
			}
		}
	}
	return r
}

// TestLongOffsets: gains and offsets are found, with nothing given.
func TestLongOffsets(t *testing.T) {
	if !*long {
		t.Skip("long: -long runs it")
	}
	table := tables.New(t, "", "offsets, relative to the readings", "P", "converged", "nmse (median)", "relative to offsets given (median)", "largest", "offsets within their intervals", "s", "x", "called broken", "iterations")
	runs := 10
	if *seeds > 0 {
		runs = *seeds
	}
	for _, p := range []int{10, 20} {
		for _, relative := range []float64{0.1, 0.5} {
			var all []offsetRun
			for seed := range runs {
				all = append(all, offsetRunOf(t, offsetTeacher(relative, p), uint64(seed+1)))
			}
			converged, broken := 0, 0
			var ratios, nmse, iterations []float64
			var o, s, x float64
			for _, r := range all {
				if r.status == calamp.Converged {
					converged++
				}
				broken += r.broken
				ratios, nmse, iterations = append(ratios, r.ratio), append(nmse, r.nmse), append(iterations, float64(r.iterations))
				o += r.o / float64(runs)
				s += r.s / float64(runs)
				x += r.x / float64(runs)
			}
			slices.Sort(ratios)
			slices.Sort(nmse)
			slices.Sort(iterations)
			table.Row("| %g | %d | %d/%d | %.2g | %.3g | %.3g | %.1f %% | %.1f %% | %.1f %% | %d | %.0f |", relative, p, converged, runs,
				nmse[runs/2], ratios[runs/2], ratios[runs-1], 100*o, 100*s, 100*x, broken, iterations[runs/2])
			if ratios[runs/2] > 1.5 || o < 0.9 || o > 0.98 || converged < runs || broken > 0 {
				t.Errorf("offsets of %g, P = %d: error %.3g times that with offsets given, %.1f %% covered, %d converged, %d called broken", relative, p, ratios[runs/2], 100*o, converged, broken)
			}
		}
	}
}

// solveNothingGiven learns all of the model, as calamp solve does when nothing is given.
func solveNothingGiven(t testing.TB, in *teacher.Instance, learn calamp.Learn) *calamp.Result {
	t.Helper()
	y, gain := in.Y, channel.Gain{Prior: channel.GainPrior{Lo: nan}, NoiseVar: nan}
	if learn.Offset {
		y = calamp.WithoutOffsets(y, nil)
	}
	g, gain, err := calamp.Guess(in.W, y, prior.GaussBernoulli{Density: nan, SignalMean: nan, SignalVar: nan}, gain)
	if err != nil {
		t.Fatal(err)
	}
	var working channel.Channel = gain
	if learn.Offset {
		working = channel.Offset{Prior: channel.OffsetPrior{Gain: gain.Prior, SD: calamp.GuessOffset(in.Y, nil)}, NoiseVar: gain.NoiseVar}
	}
	res, err := calamp.Solve(context.Background(), &calamp.Problem{
		W: in.W, Y: in.Y, Prior: g.Learning(allParameters),
		Channel: channel.Faulty{Working: working},
	}, &calamp.Options{Learn: learn, Settings: solver.Settings{Threads: 1}})
	if err != nil {
		t.Fatal(err)
	}
	return res
}

// offsetErrors are those of a run that is given the model: after the scale, and of the offsets.
type offsetErrors struct{ x, s, o float64 }

func offsetErrorsOf(t *testing.T, te teacher.Teacher, seed uint64) offsetErrors {
	in, err := te.Draw(seed)
	if err != nil {
		t.Error(err)
		return offsetErrors{nan, nan, nan}
	}
	p := te.Problem(in)
	p.Channel = te.OffsetChannel()
	res, err := calamp.Solve(context.Background(), p, &calamp.Options{Settings: solver.Settings{Threads: 1}})
	if err != nil {
		t.Error(err)
		return offsetErrors{nan, nan, nan}
	}
	m := calamp.Score(res.X, res.S, in.Truth)
	return offsetErrors{m.XMSEScaled, m.SMSEScaled, meanSquare(res.Offset, in.Truth.O)}
}

func meanSquare(a, b []float64) (mean float64) {
	for i := range a {
		mean += (a[i] - b[i]) * (a[i] - b[i]) / float64(len(a))
	}
	return mean
}

// offsetRow puts runs beside a prediction, which is uncertain by a part also of itself, and fails what is more than three standard errors away.
func offsetRow(t *testing.T, table *tables.Table, label string, runs []offsetErrors, want evolution.Step, also float64) {
	t.Helper()
	row := label
	for _, c := range []struct {
		name string
		of   func(offsetErrors) float64
		want evolution.Number
	}{
		{"x", func(r offsetErrors) float64 { return r.x }, want.MSEX},
		{"s", func(r offsetErrors) float64 { return r.s }, want.MSES},
		{"o", func(r offsetErrors) float64 { return r.o }, want.MSEO},
	} {
		got := plainMean(runs, c.of)
		d := distance(got, c.want.Value, math.Hypot(c.want.Err, also*c.want.Value))
		row += fmt.Sprintf(" %.4g | %.4g | %+.1f %% | %+.1f |", c.want.Value, got.Value, 100*(got.Value/c.want.Value-1), d)
		if !(math.Abs(d) <= 3) {
			t.Errorf("%s %s: %v, state evolution %v, %.1f standard errors", label, c.name, got, c.want, d)
		}
	}
	table.Row("%s", row)
}

var offsetHeads = []string{"x, predicted", "AMP", "difference", "in s.e.", "s, predicted", "AMP", "difference", "in s.e.", "o, predicted", "AMP", "difference", "in s.e."}

// TestLongEvolutionOffsets: what state evolution says of sensors with offsets. Where offsets are large and signals few, a part of the
// predicted error is that of entries that nearly all signals have, of which there is one in many instances: there is none
// with so many signals.
func TestLongEvolutionOffsets(t *testing.T) {
	longOnly(t)
	heads := append([]string{"standard deviation of offsets", "P", "α"}, offsetHeads...)
	table := tables.New(t, "", heads...)
	for _, c := range []struct {
		sd    float64
		p     int
		alpha float64
	}{{0.05, 10, 0.8}, {0.2, 10, 0.8}, {0.2, 20, 0.8}, {0.2, 10, 0.6}, {1, 20, 0.8}} {
		n := entryCount(1000)
		te := teacher.Teacher{
			N: n, M: int(math.Round(c.alpha * float64(n))), P: c.p, Signal: prior.GaussBernoulli{Density: 0.2, SignalVar: 1},
			Gain: channel.Uniform(0.8, 1.2), NoiseVar: 1e-4, Offset: c.sd,
		}
		want := offsetPrediction(t, te)
		runs := make([]offsetErrors, seedCount(10))
		inParallel(len(runs), func(i int) { runs[i] = offsetErrorsOf(t, te, *first+uint64(i)) })
		offsetRow(t, table, fmt.Sprintf("| %g | %d | %g |", c.sd, c.p, c.alpha), runs, want, 0)
	}
}

func offsetPrediction(t *testing.T, te teacher.Teacher) evolution.Step {
	t.Helper()
	at, err := evolution.FixedPoint(context.Background(), evolution.Model{
		Signal: te.Signal, Gain: te.Gain, NoiseVar: te.NoiseVar, Alpha: float64(te.M) / float64(te.N), P: te.P, OffsetSD: te.Offset,
	}, &evolution.Options{Tol: 1e-3})
	if err != nil || !at.Converged {
		t.Fatal(at, err)
	}
	return at.Step
}

// TestLongEvolutionOffsetsInStreams: a batch, and then sample by sample.
func TestLongEvolutionOffsetsInStreams(t *testing.T) {
	longOnly(t)
	const samples, warm = 20, 10
	const weighed = 0.02 // streams weigh the means of the first samples as if their errors were independent, which costs offsets a few per cent
	n := entryCount(1000)
	te := teacher.Teacher{
		N: n, M: 4 * n / 5, P: samples, Signal: prior.GaussBernoulli{Density: 0.15, SignalVar: 1},
		Gain: channel.Uniform(0.8, 1.2), NoiseVar: 1e-4, Offset: 0.2,
	}
	want, err := evolution.Online(context.Background(), evolution.Model{
		Signal: te.Signal, Gain: te.Gain, NoiseVar: te.NoiseVar, Alpha: 0.8, P: samples, OffsetSD: te.Offset,
	}, &evolution.OnlineOptions{Tol: 1e-3, WarmUp: warm})
	if err != nil {
		t.Fatal(err)
	}
	runs := make([][]offsetErrors, seedCount(10))
	inParallel(len(runs), func(i int) { runs[i] = offsetStreamErrors(t, te, *first+uint64(i), warm) })
	table := tables.New(t, "", append([]string{"sample"}, offsetHeads...)...)
	for k := warm; k < samples; k += 3 {
		at := make([]offsetErrors, len(runs))
		for i, r := range runs {
			at[i] = r[k]
		}
		offsetRow(t, table, fmt.Sprintf("| %d |", k+1), at, want[k-warm+1].Last(), weighed)
	}
}

// offsetStreamErrors are those after every sample.
func offsetStreamErrors(t *testing.T, te teacher.Teacher, seed uint64, warm int) []offsetErrors {
	out := make([]offsetErrors, te.P)
	in, err := te.Draw(seed)
	if err != nil {
		t.Error(err)
		return out
	}
	c, err := online.NewCalibrator(in.W, te.Signal, te.OffsetChannel(), &online.Options{Settings: solver.Settings{Threads: 1}, WarmUp: warm})
	if err != nil {
		t.Error(err)
		return out
	}
	for k := range te.P {
		e, err := c.Absorb(context.Background(), mat.Col(nil, k, in.Y))
		if err != nil {
			t.Error(err)
			return out
		}
		if k < warm-1 {
			continue
		}
		if !e.Committed {
			t.Errorf("seed %d: sample %d was not learned from: %v", seed, k+1, e.Reject)
		}
		p := c.Posterior()
		x := scaledErrors(mat.NewDense(1, te.N, e.X), mat.NewDense(1, te.N, mat.Col(nil, k, in.Truth.X)), p.S, in.Truth.S)
		out[k] = offsetErrors{x.x, x.s, meanSquare(p.Offset, in.Truth.O)}
	}
	return out
}

// TestLongOffsetsOfFewSignals: with fewer than ten signals what offsets do to all of them is in the error bars, with nothing given.
func TestLongOffsetsOfFewSignals(t *testing.T) {
	longOnly(t)
	fewWithOffsets(t, teacher.Ensemble{}, 4, 6, 8)
}

// TestLongOffsetsOfFewSignalsIllConditioned: the same by vector AMP.
func TestLongOffsetsOfFewSignalsIllConditioned(t *testing.T) {
	longOnly(t)
	fewWithOffsets(t, teacher.Ensemble{Kind: "condition", Value: 100}, 4, 8)
}

// TestLongOffsetsOfFewSignalsBehindMasks: the same by vector AMP, too.
func TestLongOffsetsOfFewSignalsBehindMasks(t *testing.T) {
	longOnly(t)
	fewWithOffsets(t, teacher.Ensemble{Kind: "binary"}, 4, 8)
}

func fewWithOffsets(t *testing.T, w teacher.Ensemble, signals ...int) {
	table := tables.New(t, "", "offsets, relative to the readings", "P", "converged", "nmse (median)", "relative to offsets given (median)", "error of x / x_var (median)", "largest", "offsets within their intervals", "s", "x", "called broken", "iterations")
	for _, p := range signals {
		for _, relative := range []float64{0.1, 0.5} {
			runs := make([]offsetRun, seedCount(10))
			inParallel(len(runs), func(i int) {
				te := offsetTeacher(relative, p)
				te.Matrix = w
				runs[i] = offsetRunOf(t, te, uint64(i+1))
			})
			converged, broken := 0, 0
			var ratios, nmse, iterations, over []float64
			var o, s, x float64
			for _, r := range runs {
				if r.status == calamp.Converged {
					converged++
				}
				broken += r.broken
				ratios, nmse, iterations, over = append(ratios, r.ratio), append(nmse, r.nmse), append(iterations, float64(r.iterations)), append(over, r.over)
				o, s, x = o+r.o/float64(len(runs)), s+r.s/float64(len(runs)), x+r.x/float64(len(runs))
			}
			for _, v := range [][]float64{ratios, nmse, iterations, over} {
				slices.Sort(v)
			}
			half := len(runs) / 2
			table.Row("| %g | %d | %d/%d | %.2g | %.3g | %.2f | %.2f | %.1f %% | %.1f %% | %.1f %% | %d | %.0f |", relative, p, converged, len(runs),
				nmse[half], ratios[half], over[half], over[len(runs)-1], 100*o, 100*s, 100*x, broken, iterations[half])
		}
	}
}
