package calamp_test

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/calamp/calamp"
	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/evolution"
	"github.com/calamp/calamp/internal/tables"
	"github.com/calamp/calamp/operator"
	"github.com/calamp/calamp/prior"
	"github.com/calamp/calamp/solver"
	"github.com/calamp/calamp/teacher"
)

// complexGains are what is known of complex gains, in the tables.
var complexGains = []struct {
	name string
	gain channel.ComplexPrior
}{
	{"amplitude; phase known", channel.ComplexPrior{Lo: 0.5, Hi: 1.5, Concentration: math.Inf(1)}},
	{"phase only, free", channel.ComplexPrior{Lo: 1, Hi: 1}},
	{"phase only, κ = 5", channel.ComplexPrior{Lo: 1, Hi: 1, Concentration: 5}},
	{"amplitude; phase free", channel.ComplexPrior{Lo: 0.5, Hi: 1.5}},
	{"amplitude; κ = 20", channel.ComplexPrior{Lo: 0.5, Hi: 1.5, Concentration: 20}},
}

// complexRun is one run of the default command: sensors may be broken.
type complexRun struct {
	converged     bool
	broken        int
	iterations    float64
	x, stated, s  float64    // after the best factor; x̂'s variance as stated
	inside        [2]float64 // relative intervals: amplitudes, phases
	scaleZ, turnZ float64    // errors of the common scale and phase, in their standard deviations
	warnings      int
}

func solveComplexRun(t *testing.T, te teacher.Complex, seed uint64) (r complexRun) {
	in, err := te.Draw(seed)
	if err != nil {
		t.Error(err)
		return r
	}
	p := te.Problem(in)
	p.Channel = channel.Faulty{Working: p.Channel}
	opt := &calamp.Options{}
	opt.Threads = 1
	res, err := calamp.Solve(context.Background(), p, opt)
	if err != nil {
		t.Error(err)
		return r
	}
	m := calamp.ScoreComplex(res.X, res.ComplexS(), in.Truth)
	r = complexRun{
		converged: res.Status == calamp.Converged, broken: len(res.BrokenSensors), iterations: float64(res.Iterations), warnings: len(res.Warnings),
		x: m.XMSEScaled, stated: meanTotal(res), s: m.SMSEScaled, inside: intervalsHold(res, in.Truth, m),
	}
	r.scaleZ = math.Log(m.Scale) / res.ScaleSD
	if res.PhaseSD > 0 {
		r.turnZ = m.PhaseShift / res.PhaseSD
	}
	return r
}

type complexRuns []complexRun

func (all complexRuns) mean(of func(r complexRun) float64) (mean, err float64) {
	var total, square float64
	for _, r := range all {
		v := of(r)
		total += v
		square += v * v
	}
	n := float64(len(all))
	mean = total / n
	return mean, math.Sqrt(max(0, square/n-mean*mean) / max(1, n-1))
}

// AMP on complex problems against state evolution, what it states of its errors, and how often intervals of 95 % hold.
func TestLongComplexEvolution(t *testing.T) {
	longOnly(t)
	count := seedCount(10)
	table := tables.New(t, "", "gains", "N", "x: SE", "AMP", "stated", "s: SE", "AMP", "iterations", "not converged", "called broken", "coverage of amplitudes", "of phases", "rms z scale", "rms z phase")
	for _, c := range complexGains {
		for _, n := range []int{400, 2000} {
			te := teacher.Complex{N: n, M: n * 6 / 10, P: 4, Signal: prior.ComplexGaussBernoulli{Density: 0.2, SignalVar: 1}, Gain: c.gain, NoiseVar: 1e-6}
			tr, err := evolution.ComplexOffline(context.Background(), evolution.ComplexModel{Signal: te.Signal, Gain: te.Gain, NoiseVar: te.NoiseVar, Alpha: 0.6, P: te.P}, &evolution.ComplexOptions{Iterations: 80})
			if err != nil {
				t.Fatal(err)
			}
			se := tr.Steps[len(tr.Steps)-1]
			runs := make(complexRuns, count)
			inParallel(count, func(i int) { runs[i] = solveComplexRun(t, te, uint64(i)) })
			x, xErr := runs.mean(func(r complexRun) float64 { return r.x })
			stated, _ := runs.mean(func(r complexRun) float64 { return r.stated })
			s, _ := runs.mean(func(r complexRun) float64 { return r.s })
			iterations, _ := runs.mean(func(r complexRun) float64 { return r.iterations })
			lost, _ := runs.mean(func(r complexRun) float64 { return map[bool]float64{false: 1}[r.converged] })
			broken, _ := runs.mean(func(r complexRun) float64 { return float64(r.broken) })
			amplitude, _ := runs.mean(func(r complexRun) float64 { return r.inside[0] })
			phase, _ := runs.mean(func(r complexRun) float64 { return r.inside[1] })
			scale, _ := runs.mean(func(r complexRun) float64 { return r.scaleZ * r.scaleZ })
			turn, _ := runs.mean(func(r complexRun) float64 { return r.turnZ * r.turnZ })
			table.Row("| %s | %d | %.3g | %.3g ± %.2g | %.3g | %.3g | %.3g | %.0f | %.0f of %d | %.0f | %.3f | %.3f | %.2f | %.2f |", c.name, n,
				se.MSEX.Value, x, xErr, stated, se.MSES.Value, s, iterations, lost*float64(count), count, broken*float64(count), amplitude, phase, math.Sqrt(scale), math.Sqrt(turn))
			slack, off := 0.1, 0.1 // of small problems
			if n >= 2000 {
				slack, off = 0, 0.05
			}
			if math.Abs(x-se.MSEX.Value) > 3*xErr+slack*x || math.Abs(stated/se.MSEX.Value-1) > off {
				t.Errorf("%s: AMP %.3g ± %.2g, stated %.3g, state evolution %.3g", c.name, x, xErr, stated, se.MSEX.Value)
			}
		}
	}
}

// Recovery without noise, at 1.4 times the threshold of state evolution.
func TestLongComplexRecovery(t *testing.T) {
	longOnly(t)
	count := seedCount(10)
	table := tables.New(t, "", "gains", "P", "α_min", "α_SE", "α", "recovered", "iterations")
	gains := append(slices.Clone(complexGains[:4]), complexGains[4])
	gains[4].name, gains[4].gain.Concentration = "amplitude; κ = 5", 5
	for _, c := range gains {
		for _, p := range []int{3, 5, 10} {
			te := teacher.Complex{N: 1000, P: p, Signal: prior.ComplexGaussBernoulli{Density: 0.3, SignalVar: 1}, Gain: c.gain}
			a, err := evolution.ComplexAlphaCal(context.Background(), te.Signal, te.Gain, 0, p, nil)
			if err != nil {
				t.Fatal(err)
			}
			alpha := 1.4 * a.Value
			te.M = int(math.Round(alpha * float64(te.N)))
			runs := make(complexRuns, count)
			inParallel(count, func(i int) { runs[i] = solveComplexRun(t, te, uint64(i)) })
			recovered, _ := runs.mean(func(r complexRun) float64 { return map[bool]float64{true: 1}[r.x < 1e-8] })
			iterations, _ := runs.mean(func(r complexRun) float64 { return r.iterations })
			least := te.Signal.Density * float64(2*p) / float64(2*p-te.Gain.Unknowns())
			table.Row("| %s | %d | %.3f | %.3f | %.3f | %.0f of %d | %.0f |", c.name, p, least, a.Value, alpha, recovered*float64(count), count, iterations)
			if recovered < 0.97 {
				t.Errorf("%s, P = %d: %.0f of %d recovered", c.name, p, recovered*float64(count), count)
			}
		}
	}
}

// complexFrames makes the signals of an instance correlated, as frames does real ones: all have the support of the first.
func complexFrames(te teacher.Complex, in *teacher.ComplexInstance, level float64, rng *rand.Rand) {
	if level > 1 {
		return
	}
	noise := func(variance float64) complex128 {
		size := math.Sqrt(0.5 * variance)
		return complex(size*rng.NormFloat64(), size*rng.NormFloat64())
	}
	x := mat.NewCDense(te.N, te.P, nil)
	for i := range te.N {
		common := complex(in.Truth.X.At(i, 0), in.Truth.X.At(i, 1))
		for k := 0; k < te.P && common != 0; k++ {
			x.Set(i, k, (common+noise(level*level))/complex(math.Sqrt(1+level*level), 0))
		}
	}
	in.Truth.X = calamp.Pairs(x)
	w, s := in.W.(*operator.Complex), in.Truth.ComplexS()
	y := mat.NewCDense(te.M, te.P, nil)
	re, im := make([]float64, te.N), make([]float64, te.N)
	for mu := range te.M {
		if err := w.RowInto(re, im, mu); err != nil {
			panic(err)
		}
		for k := range te.P {
			z := noise(te.NoiseVar)
			for i := range re {
				z += complex(re[i], im[i]) * x.At(i, k)
			}
			y.Set(mu, k, z/s[mu])
		}
	}
	in.Y = calamp.Pairs(y)
}

// Intervals of complex gains, and what they state of x, for signals that are correlated to a degree.
func TestLongComplexCorrelated(t *testing.T) {
	longOnly(t)
	count := seedCount(4)
	table := tables.New(t, "", "gains", "differing by", "P", "coverage of amplitudes", "of phases", "error²/variance of x", "converged", "named")
	for _, gain := range []channel.ComplexPrior{{Lo: 0.8, Hi: 1.2, Concentration: math.Inf(1)}, {Lo: 0.8, Hi: 1.2, Concentration: 20}, {Lo: 0.8, Hi: 1.2}} {
		for _, level := range []float64{2, 0.5, 0.3, 0.1} {
			for _, p := range []int{4, 8, 16} {
				te := teacher.Complex{N: 250, M: 200, P: p, Signal: prior.ComplexGaussBernoulli{Density: 0.15, SignalVar: 1}, Gain: gain, NoiseVar: 1e-5}
				runs := make(complexRuns, count)
				named := make([]float64, count)
				inParallel(count, func(i int) {
					in, err := te.Draw(uint64(i))
					if err != nil {
						t.Error(err)
						return
					}
					complexFrames(te, in, level, rand.New(rand.NewPCG(uint64(i), 7)))
					res := solve(t, te.Problem(in), nil)
					m := calamp.ScoreComplex(res.X, res.ComplexS(), in.Truth)
					runs[i] = complexRun{converged: res.Status == calamp.Converged, x: m.XMSEScaled, stated: meanTotal(res), inside: intervalsHold(res, in.Truth, m)}
					if warned(res, calamp.SignalsAlike) {
						named[i] = 1
					}
				})
				done := make(complexRuns, 0, count)
				for _, r := range runs {
					if r.converged {
						done = append(done, r)
					}
				}
				amplitude, _ := done.mean(func(r complexRun) float64 { return r.inside[0] })
				phase, _ := done.mean(func(r complexRun) float64 { return r.inside[1] })
				ratio, _ := done.mean(func(r complexRun) float64 { return r.x / r.stated })
				table.Row("| κ = %g | %.0f %% | %d | %.3f | %.3f | %.2f | %d of %d | %.0f |", gain.Concentration, 100*level, p, amplitude, phase, ratio, len(done), count, sumOfAll(named))
				if len(done) > 0 && min(amplitude, phase) < 0.88 {
					t.Errorf("κ = %g, differing by %g, P = %d: intervals of 95 %% hold %.3f and %.3f", gain.Concentration, level, p, amplitude, phase)
				}
			}
		}
	}
}

func sumOfAll(v []float64) (sum float64) {
	for _, x := range v {
		sum += x
	}
	return sum
}

// Intervals of the default command, where nothing is given but the distribution of phases.
func TestLongComplexLearned(t *testing.T) {
	longOnly(t)
	count := seedCount(50)
	table := tables.New(t, "", "gains", "Δ", "x: model given", "learned", "coverage of amplitudes", "of phases", "not converged", "called broken")
	gains := append(slices.Clone(complexGains), []struct {
		name string
		gain channel.ComplexPrior
	}{
		{"log-normal 0.2; κ = 5", channel.ComplexPrior{Lo: 0.2, Hi: 5, Center: 1, Precision: 25, Log: true, Concentration: 5}},
		{"normal 0.2; phase free", channel.ComplexPrior{Lo: 0.02, Hi: 5, Center: 1, Precision: 25}},
	}...)
	for _, c := range gains {
		for _, noise := range []float64{1e-4} {
			te := teacher.Complex{N: 250, M: 175, P: 6, Signal: prior.ComplexGaussBernoulli{Density: 0.2, SignalVar: 1}, Gain: c.gain, NoiseVar: noise}
			given, runs := make(complexRuns, count), make(complexRuns, count)
			inParallel(count, func(i int) {
				given[i] = solveComplexRun(t, te, uint64(i))
				runs[i] = learnComplexRun(t, te, uint64(i))
			})
			// A run that says that it has not converged is no answer: it counts as lost. (One of 350 is: while nothing is known of phases the way is
			// chaotic, and rounding decides.)
			done := slices.DeleteFunc(slices.Clone(runs), func(r complexRun) bool { return !r.converged })
			x, _ := given.mean(func(r complexRun) float64 { return r.x })
			learned, _ := done.mean(func(r complexRun) float64 { return r.x })
			amplitude, _ := done.mean(func(r complexRun) float64 { return r.inside[0] })
			phase, _ := done.mean(func(r complexRun) float64 { return r.inside[1] })
			lost, _ := runs.mean(func(r complexRun) float64 { return map[bool]float64{false: 1}[r.converged] })
			broken, _ := done.mean(func(r complexRun) float64 { return float64(r.broken) })
			table.Row("| %s | %g | %.3g | %.3g | %.3f | %.3f | %.0f of %d | %.0f |", c.name, noise, x, learned, amplitude, phase, lost*float64(count), count, broken*float64(len(done)))
			for what, part := range map[string]float64{"amplitudes": amplitude, "phases": phase} {
				if known := map[string]bool{"amplitudes": c.gain.Lo == c.gain.Hi, "phases": c.gain.Known()}[what]; !known && (part < 0.9 || part > 0.98) {
					t.Errorf("%s, Δ = %g: intervals of 95 %% hold %.3f of the %s", c.name, noise, part, what)
				}
			}
			if learned > 1.2*x || lost > 0.05 {
				t.Errorf("%s, Δ = %g: error %.3g, with the model given %.3g; %.0f not converged", c.name, noise, learned, x, lost*float64(count))
			}
		}
	}
}

// learnComplexRun is solveComplexRun with nothing given but the distribution of phases, and that of amplitudes where it is known.
func learnComplexRun(t *testing.T, te teacher.Complex, seed uint64) (r complexRun) {
	in, err := te.Draw(seed)
	if err != nil {
		t.Error(err)
		return r
	}
	unknown := channel.ComplexGain{Prior: te.Gain, NoiseVar: math.NaN()}
	opt := &calamp.Options{Learn: calamp.Learn{Noise: true}}
	opt.Threads = 1
	if te.Gain.Lo < te.Gain.Hi {
		unknown.Prior = channel.ComplexPrior{Lo: math.NaN(), Concentration: te.Gain.Concentration}
		opt.Learn.Range = true
	}
	start, guess, err := calamp.GuessComplex(in.W, in.Y, prior.ComplexGaussBernoulli{Density: math.NaN(), SignalVar: math.NaN()}, unknown)
	if err != nil {
		t.Error(err)
		return r
	}
	p := te.Problem(in)
	p.Prior = start.Learning(prior.Density | prior.SignalVar)
	p.Channel = channel.Faulty{Working: guess}
	res, err := calamp.Solve(context.Background(), p, opt)
	if err != nil {
		t.Error(err)
		return r
	}
	m := calamp.ScoreComplex(res.X, res.ComplexS(), in.Truth)
	return complexRun{
		converged: res.Status == calamp.Converged, broken: len(res.BrokenSensors), iterations: float64(res.Iterations),
		x: m.XMSEScaled, stated: meanTotal(res), s: m.SMSEScaled, inside: intervalsHold(res, in.Truth, m),
	}
}

// The complex setting of the published code of 2015: N = 500, ρ = 0.2, P = 3, no noise, gains CN(0, 20), both parts of
// W and of the signals as large as those of real ones. It is given all of that, and calamp all but the distribution of gains:
// so its scale depends on the signals alone, of which some 300 entries are not zero.
func TestLongComplexPublished(t *testing.T) {
	longOnly(t)
	count := seedCount(10)
	table := tables.New(t, "", "α", "calamp recovers", "log of its scale, mean", "rms", "rms of it in stated standard deviations", "published recovers", "log of its scale, mean", "rms")
	for _, alpha := range []float64{0.8, 1} {
		ours, theirs := make(complexRuns, count), make(complexRuns, count)
		inParallel(count, func(i int) { ours[i], theirs[i] = published2015(t, alpha, uint64(i)) })
		recovered := func(all complexRuns) (some complexRuns) {
			for _, r := range all {
				if r.x < 1e-6 {
					some = append(some, r)
				}
			}
			return some
		}
		scale := func(all complexRuns) (mean, err, rms float64) {
			mean, err = all.mean(func(r complexRun) float64 { return r.s })
			square, _ := all.mean(func(r complexRun) float64 { return r.s * r.s })
			return mean, err, math.Sqrt(square)
		}
		a, b := recovered(ours), recovered(theirs)
		bias, biasErr, rms := scale(a)
		theirBias, theirErr, theirRMS := scale(b)
		z, _ := a.mean(func(r complexRun) float64 { return r.scaleZ * r.scaleZ })
		table.Row("| %.1f | %d of %d | %+.3f ± %.3f | %.3f | %.2f | %d of %d | %+.3f ± %.3f | %.3f |", alpha, len(a), count, bias, biasErr, rms, math.Sqrt(z), len(b), count, theirBias, theirErr, theirRMS)
		if len(a) < len(b) {
			t.Errorf("α = %g: %d recovered, the published algorithm has %d", alpha, len(a), len(b))
		}
		if math.Abs(bias) > 3*biasErr || math.Sqrt(z) > 2 {
			t.Errorf("α = %g: the scale is off by %+.3f ± %.3f, in its standard deviations %.2f", alpha, bias, biasErr, math.Sqrt(z))
		}
	}
}

// published2015 solves one instance with both: in x is 1-ncc, in s the logarithm of the factor to the truth.
func published2015(t *testing.T, alpha float64, seed uint64) (ours, theirs complexRun) {
	const n, p, gainVar = 500, 3, 20
	te := teacher.Complex{N: n, M: int(math.Ceil(alpha * n)), P: p, Signal: prior.ComplexGaussBernoulli{Density: 0.2, SignalVar: 2}, Gain: channel.ComplexPrior{Lo: 1, Hi: 1}}
	in, err := te.Draw(seed)
	if err != nil {
		t.Error(err)
		return ours, theirs
	}
	rng := rand.New(rand.NewPCG(seed, 9))
	w := mat.NewCDense(te.M, n, nil)
	y := calamp.FromPairs(in.Y)
	re, im := make([]float64, n), make([]float64, n)
	gains := in.Truth.ComplexS()
	for mu := range te.M {
		if err := in.W.(*operator.Complex).RowInto(re, im, mu); err != nil {
			t.Error(err)
		}
		for i := range re {
			w.Set(mu, i, complex(math.Sqrt2*re[i], math.Sqrt2*im[i]))
		}
		s := complex(rng.NormFloat64(), rng.NormFloat64()) * complex(math.Sqrt(gainVar/2.0), 0)
		for k := range p {
			y.Set(mu, k, y.At(mu, k)*gains[mu]/s*complex(math.Sqrt2, 0))
		}
	}
	table, err := operator.NewComplex(te.M, n, w.RawCMatrix().Data)
	if err != nil {
		t.Error(err)
		return ours, theirs
	}
	opt := &calamp.Options{}
	opt.Threads = 1
	opt.Learn.Range = true
	_, guess, err := calamp.GuessComplex(table, calamp.Pairs(y), te.Signal, channel.ComplexGain{Prior: channel.ComplexPrior{Lo: math.NaN()}, NoiseVar: 1e-15})
	if err != nil {
		t.Error(err)
		return ours, theirs
	}
	res, err := calamp.Solve(context.Background(), &calamp.Problem{W: table, Y: calamp.Pairs(y), Prior: te.Signal, Channel: guess}, opt)
	if err != nil {
		t.Error(err)
		return ours, theirs
	}
	score := func(x *mat.Dense) complexRun {
		m := calamp.ScoreComplex(x, nil, calamp.Truth{X: in.Truth.X})
		return complexRun{x: m.XOneMinusNCC, s: math.Log(m.Scale)}
	}
	ours = score(res.X)
	ours.scaleZ = ours.s / res.ScaleSD
	other := peerCalAMP{W: w, Y: y, Density: 0.2, NoiseVar: 1e-15, GainVar: gainVar, Damping: 0.9}
	other.Run(1000)
	return ours, score(calamp.Pairs(other.X))
}

// Vector AMP on complex problems against its state evolution, where W is ill-conditioned, and against AMP where its entries are independent.
func TestLongComplexVector(t *testing.T) {
	longOnly(t)
	count := seedCount(10)
	table := tables.New(t, "", "gains", "condition of W", "α", "Δ", "x: SE", "vector AMP", "standard errors apart", "stated", "s: SE", "vector AMP", "AMP on x", "iterations", "not converged")
	gains := []channel.ComplexPrior{{Lo: 0.8, Hi: 1.2, Concentration: math.Inf(1)}, {Lo: 0.8, Hi: 1.2, Concentration: 20}, {Lo: 0.5, Hi: 1.5}}
	for _, gain := range gains {
		for _, c := range []struct{ condition, alpha, noise float64 }{{0, 0.6, 1e-6}, {10, 0.6, 1e-4}, {100, 0.8, 1e-4}, {100, 0.7, 1e-6}} {
			te := teacher.Complex{N: 400, M: int(math.Round(400 * c.alpha)), P: 4, Signal: prior.ComplexGaussBernoulli{Density: 0.2, SignalVar: 1}, Gain: gain, NoiseVar: c.noise}
			name, opt := "independent entries", &evolution.ComplexOptions{Iterations: 300}
			if c.condition > 0 {
				name = fmt.Sprintf("%g", c.condition)
				te.Matrix = teacher.Ensemble{Kind: "condition", Value: c.condition}
				if err := opt.Spectrum.UnmarshalText([]byte(te.Matrix.String())); err != nil {
					t.Fatal(err)
				}
			}
			tr, err := evolution.ComplexOffline(t.Context(), evolution.ComplexModel{Signal: te.Signal, Gain: gain, NoiseVar: c.noise, Alpha: c.alpha, P: te.P}, opt)
			if err != nil {
				t.Fatal(err)
			}
			se := tr.Steps[len(tr.Steps)-1]
			runs, amp := make(complexRuns, count), make(complexRuns, count)
			inParallel(count, func(i int) {
				runs[i] = vectorComplexRun(t, te, uint64(i), solver.VAMP)
				if c.condition == 0 {
					amp[i] = vectorComplexRun(t, te, uint64(i), solver.AMP)
				}
			})
			x, xErr := runs.mean(func(r complexRun) float64 { return r.x })
			stated, _ := runs.mean(func(r complexRun) float64 { return r.stated })
			s, _ := runs.mean(func(r complexRun) float64 { return r.s })
			other, _ := amp.mean(func(r complexRun) float64 { return r.x })
			iterations, _ := runs.mean(func(r complexRun) float64 { return r.iterations })
			lost, _ := runs.mean(func(r complexRun) float64 { return map[bool]float64{false: 1}[r.converged] })
			apart := (x - se.MSEX.Value) / xErr
			table.Row("| %s | %s | %g | %g | %.3g | %.3g ± %.2g | %.1f | %.3g | %.3g | %.3g | %s | %.0f | %.0f of %d |", phasesOf(gain), name, c.alpha, c.noise,
				se.MSEX.Value, x, xErr, apart, stated, se.MSES.Value, s, map[bool]string{true: fmt.Sprintf("%.3g", other)}[other > 0], iterations, lost*float64(count), count)
			if math.Abs(apart) > 3 {
				t.Errorf("%s, condition %s: x %.3g ± %.2g, state evolution %.3g", phasesOf(gain), name, x, xErr, se.MSEX.Value)
			}
			if other > 0 && math.Abs(x/other-1) > 0.03 {
				t.Errorf("%s: vector AMP %.3g, AMP %.3g", phasesOf(gain), x, other)
			}
		}
	}
}

// vectorComplexRun solves one problem by an algorithm, with the model given.
func vectorComplexRun(t *testing.T, te teacher.Complex, seed uint64, algorithm solver.Algorithm) complexRun {
	in, err := te.Draw(seed)
	if err != nil {
		t.Error(err)
		return complexRun{}
	}
	opt := &calamp.Options{}
	opt.Threads, opt.Algorithm = 1, algorithm
	res, err := calamp.Solve(context.Background(), te.Problem(in), opt)
	if err != nil {
		t.Error(err)
		return complexRun{}
	}
	m := calamp.ScoreComplex(res.X, res.ComplexS(), in.Truth)
	return complexRun{converged: res.Status == calamp.Converged, iterations: float64(res.Iterations), x: m.XMSEScaled, stated: meanTotal(res), s: m.SMSEScaled}
}

// phasesOf is what is known of phases, in the tables.
func phasesOf(p channel.ComplexPrior) string {
	switch {
	case p.Known():
		return "phase known"
	case p.Free():
		return "free"
	}
	return fmt.Sprintf("κ = %g", p.Concentration)
}
