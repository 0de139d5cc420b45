package online_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/sbinet/npyio/npz"
	"gonum.org/v1/gonum/mat"

	"github.com/calamp/calamp"
	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/internal/tests"
	"github.com/calamp/calamp/online"
	"github.com/calamp/calamp/operator"
	"github.com/calamp/calamp/prior"
	"github.com/calamp/calamp/solver"
	"github.com/calamp/calamp/teacher"
)

// small is an ensemble that online cal-AMP solves in milliseconds a sample.
func small(samples int) teacher.Teacher {
	return teacher.Teacher{
		N: 200, M: 140, P: samples,
		Signal:   prior.GaussBernoulli{Density: 0.2, SignalVar: 1},
		Gain:     channel.Uniform(0.95, 1.05),
		NoiseVar: 1e-8,
	}
}

// stream is an instance whose columns arrive one by one.
type stream struct {
	teacher.Teacher
	*teacher.Instance
}

func newStream(t testing.TB, te teacher.Teacher, seed uint64) stream {
	t.Helper()
	in, err := te.Draw(seed)
	if err != nil {
		t.Fatal(err)
	}
	return stream{te, in}
}

func (s stream) calibrator(t testing.TB, opt *online.Options) *online.Calibrator {
	t.Helper()
	c, err := online.NewCalibrator(s.W, s.Signal, channel.Gain{Prior: s.Gain, NoiseVar: s.NoiseVar}, opt)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func (s stream) sample(k int) []float64 { return mat.Col(nil, k, s.Y) }

// xError is the mean squared error of an estimate of signal k, as it is and
// after correcting the scale.
func (s stream) xError(est *online.Estimate, k int) (raw, scaled float64) {
	x := s.Truth.X.Slice(0, s.N, k, k+1)
	m := calamp.Score(mat.NewDense(s.N, 1, slices.Clone(est.X)), nil, calamp.Truth{X: mat.DenseCopyOf(x)})
	return m.XMSE, m.XMSEScaled
}

func absorb(t testing.TB, c *online.Calibrator, y []float64) *online.Estimate {
	t.Helper()
	est, err := c.Absorb(context.Background(), y)
	if err != nil {
		t.Fatal(err)
	}
	return est
}

// bits is a state's binary form.
func bits(t testing.TB, c *online.Calibrator) string {
	t.Helper()
	b, err := c.Snapshot().MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func bare(iterations int) *online.Options {
	return &online.Options{Settings: solver.Settings{MaxIter: iterations, Tol: -1, Damping: solver.FixedDamping(0), NoScaleStep: true}, Commit: online.Always}
}

func TestBareRecursionFollowsGoldenTraces(t *testing.T) {
	for _, name := range []string{"small", "mid"} {
		t.Run(name, func(t *testing.T) {
			f, err := npz.Open("../testdata/trace_" + name + ".npz")
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			read := func(name string, into any) {
				t.Helper()
				if err := f.Read(name+".npy", into); err != nil {
					t.Fatal(name, err)
				}
			}
			var w, y mat.Dense
			var params []float64 // ρ, a, b, Δ
			read("W", &w)
			read("Y", &y)
			read("params", &params)
			m, n := w.Dims()
			op, err := operator.NewDense(m, n, w.RawMatrix().Data)
			if err != nil {
				t.Fatal(err)
			}
			c, err := online.NewCalibrator(op, prior.GaussBernoulli{Density: params[0], SignalVar: 1},
				channel.Gain{Prior: channel.Uniform(params[1], params[2]), NoiseVar: params[3]}, bare(3))
			if err != nil {
				t.Fatal(err)
			}
			_, samples := y.Dims()
			check := func(what string, got, want []float64) {
				t.Helper()
				e := relative(got, want)
				t.Logf("%s: largest relative difference %.2g", what, e)
				if !(e <= 1e-9) {
					t.Errorf("%s: largest relative difference %.2g, want at most 1e-9", what, e)
				}
			}
			var x mat.Dense // N×samples
			read("online3_x", &x)
			for k := range samples {
				est := absorb(t, c, mat.Col(nil, k, &y))
				check(fmt.Sprintf("x of sample %d", k), est.X, mat.Col(nil, k, &x))
			}
			post, state := c.Posterior(), c.Snapshot()
			for _, v := range []struct {
				name string
				got  []float64
			}{{"s", post.S}, {"svar", post.SVar}, {"tau", statistic(state, 0)}, {"B", statistic(state, 1)}} {
				var want []float64
				read("online3_"+v.name, &want)
				check(v.name, v.got, want)
			}
		})
	}
}

func relative(got, want []float64) float64 {
	if len(got) != len(want) {
		return math.Inf(1)
	}
	worst := 0.0
	for i, w := range want {
		worst = max(worst, math.Abs(got[i]-w)/math.Abs(w))
	}
	return worst
}

func TestFirstSampleIsTheOfflineSolution(t *testing.T) {
	s := newStream(t, small(1), 3)
	for name, opt := range map[string]online.Options{
		"default": {},
		"scalar":  {Settings: solver.Settings{Variance: solver.Scalar, MaxIter: 60}, Commit: online.Always},
		"bare":    *bare(7),
		"damped":  {Settings: solver.Settings{Damping: solver.FixedDamping(0.3), NoScaleStep: true, MaxIter: 60}, Commit: online.Always},
	} {
		t.Run(name, func(t *testing.T) {
			c := s.calibrator(t, &opt)
			est := absorb(t, c, s.sample(0))
			settings := opt.Settings
			settings.ScaleAtPeak = true // where a stream is, too
			res, err := calamp.Solve(t.Context(), s.Problem(s.Instance), &calamp.Options{Settings: settings})
			if err != nil {
				t.Fatal(err)
			}
			post := c.Posterior()
			for _, v := range []struct {
				name      string
				got, want []float64
			}{
				{"x", est.X, mat.Col(nil, 0, res.X)},
				{"x var", est.XVar, mat.Col(nil, 0, res.XVar)},
				{"s", post.S, res.S},
				{"s var", post.SVar, res.SVar},
				{"gain", post.Gain, res.Gain},
				{"scale sd", []float64{est.ScaleSD()}, []float64{res.ScaleSD}},
			} {
				if e := relative(v.got, v.want); !(e <= 1e-12) {
					t.Errorf("%s: relative difference %.2g", v.name, e)
				}
			}
			if est.Iterations != res.Iterations || est.Status != res.Status || !est.Committed {
				t.Errorf("online %s, offline %s", est.Reason(), res.Reason)
			}
		})
	}
}

func TestStreamCalibrates(t *testing.T) {
	s := newStream(t, small(10), 2)
	c := s.calibrator(t, nil)
	for k := range s.P {
		est := absorb(t, c, s.sample(k))
		raw, scaled := s.xError(est, k)
		post := c.Posterior()
		m := calamp.Score(nil, post.S, calamp.Truth{S: s.Truth.S})
		t.Logf("%2d: %3d iterations, χ² %.2f, x %.2g (%.2g), s %.2g (%.2g), scale sd %.2g, worst %.1f, %s", k+1, est.Iterations, est.ChiSquare, raw, scaled, m.SMSE, m.SMSEScaled, post.ScaleSD, est.Worst[0].Chi, est.Reason())
		if !est.Committed || len(est.Masked) > 0 || len(est.Flagged) > 0 {
			t.Errorf("sample %d: %s; masked %v, flagged %v", k, est.Reason(), est.Masked, est.Flagged)
		}
	}
}

// faults are ways for a sensor to go wrong, as functions of its true reading.
var faults = map[string]func(y float64) float64{
	"zero":     func(float64) float64 { return 0 },
	"constant": func(float64) float64 { return 0.7 },
	"gain 0.5": func(y float64) float64 { return 0.5 * y },
	"gain 1.2": func(y float64) float64 { return 1.2 * y },
	"gain 1.1": func(y float64) float64 { return 1.1 * y },
	"reversed": func(y float64) float64 { return -y },
}

func TestBadSensorIsFlaggedAndDragsNothing(t *testing.T) {
	const bad = 17
	s := newStream(t, small(12), 3)
	clean := make([]float64, s.P)
	c := s.calibrator(t, nil)
	for k := range s.P {
		_, clean[k] = s.xError(absorb(t, c, s.sample(k)), k)
	}
	for _, name := range []string{"zero", "constant", "gain 0.5"} {
		fault := faults[name]
		t.Run(name, func(t *testing.T) {
			c := s.calibrator(t, nil)
			for k := range s.P {
				y := s.sample(k)
				y[bad] = fault(y[bad])
				est := absorb(t, c, y)
				_, got := s.xError(est, k)
				t.Logf("sample %d: %d iterations, error %.2g, without the fault %.2g, masked %v, flagged %v; %s", k+1, est.Iterations, got, clean[k], est.Masked, est.Flagged, est.Reason())
				if !est.Committed {
					t.Errorf("sample %d: %s", k+1, est.Reason())
				}
				if got > 2*clean[k] {
					t.Errorf("sample %d: error %.2g, without the fault %.2g", k+1, got, clean[k])
				}
				if k >= 9 && !slices.Equal(est.Flagged, []int{bad}) {
					t.Errorf("sample %d: sensors %v flagged", k+1, est.Flagged)
				}
			}
			t.Log(c.Posterior().Flagged)
		})
	}
}

// A sensor that breaks late, when its past is narrow, and recovers with another
// gain inside the range.
func TestSensorIsReadmittedWithItsNewGain(t *testing.T) {
	const bad = 40
	s := newStream(t, small(26), 15)
	c := s.calibrator(t, nil)
	change := 0.97 // of its gain
	for k := range s.P {
		y := s.sample(k)
		switch {
		case k >= 10 && k < 16:
			y[bad] = 0
		case k >= 16:
			y[bad] *= change
		}
		est := absorb(t, c, y)
		if _, e := s.xError(est, k); k >= 8 && e > 3e-8 || !est.Committed {
			t.Errorf("sample %d: error %.2g, %s", k+1, e, est.Reason())
		}
		if flagged := len(est.Flagged) > 0; flagged != (k >= 12 && k < 23) {
			t.Errorf("sample %d: flagged %v", k+1, est.Flagged)
		}
	}
	post := c.Posterior()
	want := s.Truth.S[bad] / change
	if e := math.Abs(post.S[bad] - want); e > 5*math.Hypot(math.Sqrt(post.SVar[bad]), post.ScaleSD) {
		t.Errorf("readmitted sensor has s = %g ± %g, want %g", post.S[bad], math.Sqrt(post.SVar[bad]), want)
	}
	m := calamp.Score(nil, post.S, calamp.Truth{S: s.Truth.S})
	t.Logf("scale %g, sd %g", m.Scale-1, post.ScaleSD)
	if math.Abs(m.Scale-1) > 5*post.ScaleSD {
		t.Errorf("scale off by %g, its standard deviation is %g: flagging moved it", m.Scale-1, post.ScaleSD)
	}
}

func TestMissingReadingsAndSilentSensors(t *testing.T) {
	s := newStream(t, small(12), 6)
	c := s.calibrator(t, nil)
	present := make([]float64, s.M)
	for k := range s.P {
		y := s.sample(k)
		for mu := range y {
			missing := (mu+k)%9 == 0 || mu == 3 && k >= 2 && k < 8 || mu == 5
			if missing {
				y[mu] = math.NaN()
			} else {
				present[mu]++
			}
		}
		before := c.Snapshot()
		est := absorb(t, c, y)
		if !est.Committed || len(est.Flagged) > 0 {
			t.Fatalf("sample %d: %s, flagged %v", k+1, est.Reason(), est.Flagged)
		}
		after := c.Snapshot()
		if mu := 3; math.IsNaN(y[mu]) && (statistic(after, 0)[mu] != statistic(before, 0)[mu] || statistic(after, 2)[mu] != statistic(before, 2)[mu]) {
			t.Errorf("sample %d: a missing reading changed its sensor's posterior", k+1)
		}
	}
	post := c.Posterior()
	if !slices.Equal(post.Count, present) {
		t.Error("readings were miscounted")
	}
	mean, variance := s.Gain.Moments()
	if post.S[5] != mean || post.SVar[5] != variance {
		t.Errorf("a sensor that never read has s = %g ± %g", post.S[5], math.Sqrt(post.SVar[5]))
	}
	for _, mu := range []int{3, 10} {
		if e := math.Abs(post.S[mu] - s.Truth.S[mu]); e > 5*math.Hypot(math.Sqrt(post.SVar[mu]), post.ScaleSD) {
			t.Errorf("sensor %d: off by %g, standard deviation %g", mu, e, math.Sqrt(post.SVar[mu]))
		}
	}
}

func TestRejectedSampleLeavesTheStateAlone(t *testing.T) {
	s := newStream(t, small(8), 7)
	missing, zero, noise, loud := make([]float64, s.M), make([]float64, s.M), make([]float64, s.M), make([]float64, s.M)
	rng := rand.New(rand.NewPCG(1, 2))
	for mu := range missing {
		missing[mu] = math.NaN()
		noise[mu] = rng.NormFloat64() // no sparse signal
		loud[mu] = 1e200 * rng.NormFloat64()
	}
	frozen := s.calibrator(t, &online.Options{Freeze: true})
	c := s.calibrator(t, &online.Options{Settings: solver.Settings{MaxIter: 200}})
	unfinished := s.calibrator(t, &online.Options{Settings: solver.Settings{MaxIter: 5}})
	for k := range s.P {
		absorb(t, c, s.sample(k))
	}
	state := bits(t, c)
	for _, v := range []*online.Calibrator{frozen, unfinished} {
		if err := v.Restore(c.Snapshot()); err != nil {
			t.Fatal(err)
		}
	}
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	for _, v := range []struct {
		name string
		c    *online.Calibrator
		ctx  context.Context
		y    []float64
		want []online.Reject
	}{
		{"missing", c, t.Context(), missing, []online.Reject{online.NoReadings}},
		{"zero", c, t.Context(), zero, []online.Reject{online.NoReadings}},
		{"noise", c, t.Context(), noise, []online.Reject{online.Unexplained, online.NotConverged, online.Diverged}},
		{"loud", c, t.Context(), loud, []online.Reject{online.Unexplained, online.NotConverged, online.Diverged}},
		{"frozen", frozen, t.Context(), s.sample(0), []online.Reject{online.Frozen}},
		{"unfinished", unfinished, t.Context(), s.sample(0), []online.Reject{online.NotConverged}},
		{"cancelled", c, cancelled, s.sample(0), []online.Reject{online.Interrupted}},
	} {
		t.Run(v.name, func(t *testing.T) {
			est, err := v.c.Absorb(v.ctx, v.y)
			if v.ctx.Err() != nil != (err != nil) || err != nil && !errors.Is(err, context.Canceled) {
				t.Fatal(err)
			}
			t.Log(est.Reject, "-", est.Reason(), "χ²", est.ChiSquare)
			if est.Committed || !slices.Contains(v.want, est.Reject) {
				t.Errorf("reject code %v", est.Reject)
			}
			for i, x := range est.X {
				if math.IsNaN(x-x) || math.IsNaN(est.XVar[i]-est.XVar[i]) {
					t.Fatalf("x[%d] = %g, variance %g", i, x, est.XVar[i])
				}
			}
			if math.IsNaN(est.ScaleSD()) {
				t.Error("the scale's standard deviation is NaN")
			}
			if bits(t, v.c) != state {
				t.Error("the state has changed")
			}
		})
	}
	for _, y := range [][]float64{make([]float64, s.M-1), append(slices.Clone(zero[1:]), math.Inf(-1))} {
		if est, err := c.Absorb(t.Context(), y); err == nil || est != nil {
			t.Error("readings that do not fit were accepted")
		}
	}
	if bits(t, c) != state {
		t.Error("the state has changed")
	}
}

func TestRestoredCalibratorContinuesWithTheSameBits(t *testing.T) {
	tests.Long(t)
	s := newStream(t, small(6), 8)
	spoil := func(k int, y []float64) []float64 {
		y[9] = 0
		y[k] = math.NaN()
		return y
	}
	for name, opt := range map[string]*online.Options{
		"default": nil, "memory": {Memory: 5},
		"vector AMP":          {Settings: solver.Settings{Algorithm: solver.VAMP}},
		"conjugate gradients": {Settings: solver.Settings{Algorithm: solver.VAMP, RAM: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			through := s.calibrator(t, opt)
			broken := s.calibrator(t, opt)
			for k := range s.P {
				a := absorb(t, through, spoil(k, s.sample(k)))
				raw := bits(t, broken)
				var state online.State
				if err := state.UnmarshalBinary([]byte(raw)); err != nil {
					t.Fatal(err)
				}
				broken = s.calibrator(t, opt)
				if err := broken.Restore(&state); err != nil {
					t.Fatal(err)
				}
				if bits(t, broken) != raw {
					t.Fatal("the binary form is not an exact round trip")
				}
				b := absorb(t, broken, spoil(k, s.sample(k)))
				if !slices.Equal(a.X, b.X) || !slices.Equal(a.XVar, b.XVar) || bits(t, through) != bits(t, broken) {
					t.Fatalf("sample %d differs after an interruption", k+1)
				}
			}
		})
	}
}

func TestDamagedStatesAreRefused(t *testing.T) {
	s := newStream(t, small(1), 9)
	c := s.calibrator(t, nil)
	absorb(t, c, s.sample(0))
	raw := []byte(bits(t, c))
	for cut := range raw {
		if cut%97 == 0 && new(online.State).UnmarshalBinary(raw[:cut]) == nil {
			t.Errorf("%d of %d bytes were accepted", cut, len(raw))
		}
	}
	for i := 0; i < len(raw); i += 101 {
		bad := slices.Clone(raw)
		bad[i] ^= 1 << (i % 8)
		if new(online.State).UnmarshalBinary(bad) == nil {
			t.Errorf("a flipped bit in byte %d was accepted", i)
		}
	}
	state := c.Snapshot()
	state.Stats[3*4+1] = math.NaN()
	if err := c.Restore(state); err == nil || !strings.Contains(err.Error(), "sensor 4") {
		t.Errorf("a NaN in the state: %v", err)
	}
	other := c.Snapshot()
	other.Stats = other.Stats[3:]
	other.Health, other.Flag = other.Health[1:], other.Flag[1:]
	if c.Restore(other) == nil {
		t.Error("a state of other sensors was accepted")
	}
}

func TestForgettingTempersThePast(t *testing.T) {
	s := newStream(t, small(2), 10)
	c := s.calibrator(t, &online.Options{Settings: solver.Settings{MaxIter: 60}, Memory: 4, Commit: online.Always})
	absorb(t, c, s.sample(0))
	before := c.Snapshot()
	silent := s.sample(1)
	silent[7] = math.NaN()
	absorb(t, c, silent)
	after := c.Snapshot()
	keep := math.Exp(-0.25)
	for _, v := range []struct {
		name      string
		got, want float64
	}{
		{"τ", statistic(after, 0)[7], keep * statistic(before, 0)[7]},
		{"count of a silent sensor", statistic(after, 2)[7], keep},
		{"count", statistic(after, 2)[8], 1 + keep},
	} {
		if math.Abs(v.got/v.want-1) > 1e-14 {
			t.Errorf("%s: %g, want %g", v.name, v.got, v.want)
		}
	}
	if r := statistic(after, 1)[7] / (keep * statistic(before, 1)[7]); math.Abs(r-1) > 0.05 {
		t.Errorf("B changed by %g beyond forgetting, the scale moves it a little only", r)
	}
}

// Gains walk by 0.2 % a sample, and the memory asked for is far too long.
func TestMemoryFollowsDrift(t *testing.T) {
	s := newStream(t, small(25), 11)
	c := s.calibrator(t, &online.Options{Memory: 30})
	d := newDrift(s, 0.002, 1)
	rejected := 0
	for k := range s.P {
		est := absorb(t, c, d.sample(k))
		if !est.Committed {
			rejected++
		}
		if k%5 == 4 {
			o := score(s, c, est, k, d.s)
			t.Logf("sample %d: correlation %.3f, covered %.2f, χ² %.2f, retention %.3g, %d iterations, flagged %v", k+1, o.correlation, o.covered, est.ChiSquare, est.Retention, est.Iterations, est.Flagged)
			if o.correlation < 0.99 {
				t.Errorf("sample %d: correlation %g", k+1, o.correlation)
			}
		}
	}
	if rejected > 3 {
		t.Errorf("%d of %d samples rejected", rejected, s.P)
	}
}

// drift lets the gains of a stream walk, reflected at the ends of their range.
type drift struct {
	stream
	s    []float64
	step float64
	rng  *rand.Rand
}

func newDrift(s stream, step float64, seed uint64) *drift {
	return &drift{s, slices.Clone(s.Truth.S), step, rand.New(rand.NewPCG(seed, 99))}
}

// sample is sample k, seen with gains that have moved one step.
func (d *drift) sample(k int) []float64 {
	y := d.stream.sample(k)
	for mu := range y {
		y[mu] *= d.Truth.S[mu] / d.s[mu]
	}
	for mu, s := range d.s {
		s *= 1 + d.step*d.rng.NormFloat64()
		if s > d.Gain.Hi {
			s = 2*d.Gain.Hi - s
		}
		if s < d.Gain.Lo {
			s = 2*d.Gain.Lo - s
		}
		y[mu] *= d.s[mu] / s
		d.s[mu] = s
	}
	return y
}

func TestResultsDoNotDependOnThreads(t *testing.T) {
	s := newStream(t, small(3), 12)
	var want string
	for _, threads := range []int{1, 2, 5} {
		c := s.calibrator(t, &online.Options{Settings: solver.Settings{Threads: threads}})
		for k := range s.P {
			absorb(t, c, s.sample(k))
		}
		got := bits(t, c)
		if want == "" {
			want = got
		}
		if got != want {
			t.Errorf("%d threads give other bits", threads)
		}
	}
}

func TestAbsorbingAllocatesNothing(t *testing.T) {
	if testing.Short() {
		t.Skip("under the race detector, which goes with -short, pools drop what they hold")
	}
	// Six samples again and again are no stream: with one seed in ten the gains are taken to have moved, and what follows is done anew.
	s := newStream(t, small(6), 15)
	samples := make([][]float64, s.P)
	for k := range samples {
		samples[k] = s.sample(k)
		samples[k][9] = 0
	}
	for name, opt := range map[string]online.Options{"default": {}, "memory": {Memory: 20}, "scalar": {Settings: solver.Settings{Variance: solver.Scalar}}} {
		opt.Threads, opt.MaxIter = 1, 60
		c := s.calibrator(t, &opt)
		k := 0
		next := func() {
			absorb(t, c, samples[k%s.P])
			k++
		}
		for range 11 { // the range of s is tested after 10 samples, and then after 20
			next()
		}
		if got := testing.AllocsPerRun(s.P, next); got > 0 {
			t.Errorf("%s: %g allocations a sample", name, got)
		}
	}
}

func TestOptionsListAllProblems(t *testing.T) {
	o := online.Options{Settings: solver.Settings{MaxIter: -1}, Memory: -2, Commit: 7, Sanity: online.Sanity{Faulty: 2, Sensor: math.NaN()}}
	err := o.Validate()
	if err == nil || strings.Count(err.Error(), "\n") != 4 {
		t.Errorf("found: %v", err)
	}
	if err := new(online.Options).Validate(); err != nil {
		t.Errorf("the defaults: %v", err)
	}
}

// What is observed along the way is what a sample that ends there returns.
func TestObserve(t *testing.T) {
	s := newStream(t, small(2), 3)
	for _, commit := range []online.Commit{online.Sane, online.Always} {
		var x []float64
		calls := 0
		c := s.calibrator(t, &online.Options{Settings: solver.Settings{MaxIter: 9, Tol: -1, NoScaleStep: true}, Commit: commit, Observe: func(_ int, now, _ []float64) {
			x = append(x[:0], now...)
			calls++
		}})
		for k := range 2 {
			if est := absorb(t, c, s.sample(k)); !slices.Equal(x, est.X) {
				t.Errorf("%v, sample %d: another estimate was observed", commit, k)
			}
		}
		if calls != 18 {
			t.Errorf("%v: observed %d times in 18 iterations", commit, calls)
		}
	}
}

// statistic is the j-th of every sensor: τ, B and n.
func statistic(s *online.State, j int) []float64 {
	var out []float64
	for at := j; at < len(s.Stats); at += s.Width() {
		out = append(out, s.Stats[at])
	}
	return out
}

// With next to no noise the scale is known by the gaps that gains leave at the ends of their range alone, and the slopes of its evidence are
// differences of sums a trillion times as large: what each sample is short of must not add up in them.
func TestScaleAtNextToNoNoise(t *testing.T) {
	tests.Long(t)
	te := teacher.Teacher{
		N: 200, M: 240, P: 60,
		Signal: prior.GaussBernoulli{Density: 0.1, SignalVar: 1}, Gain: channel.Uniform(0.95, 1.05),
	}
	for _, noise := range []float64{1e-14, 1e-12, 1e-10} {
		te.NoiseVar = noise
		for seed := range 3 {
			s := newStream(t, te, uint64(seed))
			c := s.calibrator(t, &online.Options{Settings: solver.Settings{Threads: 1, SPrior: solver.UniformS, ScaleAtPeak: true}, Still: true})
			for k := range te.P {
				est := absorb(t, c, s.sample(k))
				if k%5 != 4 {
					continue
				}
				post := c.Posterior()
				off := calamp.Score(nil, post.S, calamp.Truth{S: s.Truth.S}).Scale - 1
				if sd := post.ScaleSD; math.Abs(off) > 3*sd || sd > 2e-3 || est.ScaleSD() != sd {
					t.Errorf("noise %g, seed %d, %d samples: the scale is off by %.2g, stated %.2g, of the sample %.2g", noise, seed, k+1, off, sd, est.ScaleSD())
				}
			}
		}
	}
}

// A sample that is not learned from has the scale that it and the past tell, also where there is no past.
func TestScaleOfASampleNotLearnedFrom(t *testing.T) {
	s := newStream(t, small(1), 1)
	c := s.calibrator(t, &online.Options{Settings: solver.Settings{MaxIter: 8}})
	if est := absorb(t, c, s.sample(0)); est.Committed || !(est.ScaleSD() < 0.1) || !(c.Posterior().ScaleSD > 0.1) {
		t.Errorf("learned from: %v, scale %.2g, of the posterior %.2g", est.Committed, est.ScaleSD(), c.Posterior().ScaleSD)
	}
}
