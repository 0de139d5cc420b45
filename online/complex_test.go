package online

import (
	"bytes"
	"context"
	"math"
	"math/cmplx"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/sbinet/npyio/npz"
	"gonum.org/v1/gonum/mat"

	"github.com/calamp/calamp"
	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/internal/tests"
	"github.com/calamp/calamp/operator"
	"github.com/calamp/calamp/prior"
	"github.com/calamp/calamp/solver"
	"github.com/calamp/calamp/teacher"
)

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

// TestComplexOneByOneFollowsGoldenTraces: the bare recursion, three iterations a sample, computed independently.
func TestComplexOneByOneFollowsGoldenTraces(t *testing.T) {
	const m, n, samples = 60, 48, 3
	f, err := npz.Open("../testdata/trace_complex.npz")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for _, name := range []string{"known", "vm"} {
		t.Run(name, func(t *testing.T) {
			numbers := func(what string) (v []complex128) {
				if err := f.Read(name+"_"+what+".npy", &v); err != nil {
					t.Fatal(what, err)
				}
				return v
			}
			reals := func(file string) (v []float64) {
				if err := f.Read(file+".npy", &v); err != nil {
					t.Fatal(file, err)
				}
				return v
			}
			w, err := operator.NewComplex(m, n, numbers("W"))
			if err != nil {
				t.Fatal(err)
			}
			params, given := reals("params"), reals(name+"_prior") // ρ, Δ; a, b, µ₀, κ, known?
			gains := channel.ComplexPrior{Lo: given[0], Hi: given[1], Concentration: given[3]}
			if given[4] != 0 {
				gains.Concentration = math.Inf(1)
			}
			phases := make([]float64, m)
			for mu := range phases {
				phases[mu] = given[2]
			}
			c, err := NewCalibrator(w, referencePrior{prior.ComplexGaussBernoulli{Density: params[0], SignalVar: 1}},
				channel.ComplexGain{Prior: gains, NoiseVar: params[1]}, &Options{
					Commit: Always, Phases: phases,
					Settings: solver.Settings{MaxIter: 3, Tol: -1, Damping: solver.FixedDamping(0), NoScaleStep: true, NoMeanRemoval: true},
				})
			if err != nil {
				t.Fatal(err)
			}
			compare := func(what string, got, want []complex128) {
				t.Helper()
				largest, worst := 0.0, 0.0
				for i, v := range want {
					largest, worst = max(largest, cmplx.Abs(v)), max(worst, cmplx.Abs(got[i]-v))
				}
				t.Logf("%s: %.2g", what, worst/largest)
				if !(worst <= 1e-9*largest) {
					t.Errorf("%s differs by %.2g, want at most 1e-9", what, worst/largest)
				}
			}
			x, y := numbers("online3_x"), numbers("Y")
			for k := range samples {
				var sample []float64
				var want, got []complex128
				for mu := range m {
					sample = append(sample, real(y[mu*samples+k]), imag(y[mu*samples+k]))
				}
				e, err := c.Absorb(context.Background(), sample)
				if err != nil || !e.Committed {
					t.Fatal(err, e.Reject)
				}
				for i := range n {
					want, got = append(want, x[i*samples+k]), append(got, complex(e.X[i], e.X[n+i]))
				}
				compare("x", got, want)
			}
			p := c.Posterior()
			var s, b, tau, sVar []complex128
			turn := cmplx.Rect(1, given[2])
			for mu := range m {
				stats := c.statsOf(mu)
				s = append(s, cmplx.Rect(p.S[mu], p.Phase[mu]))
				b = append(b, turn*complex(stats[1], stats[2]))
				tau, sVar = append(tau, complex(stats[0], 0)), append(sVar, complex(p.SVar[mu], 0))
			}
			compare("s", s, numbers("online3_s"))
			compare("B", b, numbers("online3_B"))
			compare("τ", tau, asComplex(reals(name+"_online3_tau")))
			compare("variance of s", sVar, asComplex(reals(name+"_online3_svar")))
		})
	}
}

func asComplex(v []float64) (out []complex128) {
	for _, x := range v {
		out = append(out, complex(x, 0))
	}
	return out
}

func complexStream(gains channel.ComplexPrior) teacher.Complex {
	return teacher.Complex{N: 80, M: 66, P: 10, Signal: prior.ComplexGaussBernoulli{Density: 0.2, SignalVar: 1}, Gain: gains, NoiseVar: 1e-6}
}

func drawComplex(t testing.TB, te teacher.Complex, seed uint64) *teacher.ComplexInstance {
	t.Helper()
	in, err := te.Draw(seed)
	if err != nil {
		t.Fatal(err)
	}
	return in
}

func complexCalibrator(t testing.TB, te teacher.Complex, in *teacher.ComplexInstance, opt Options) *Calibrator {
	t.Helper()
	opt.Threads = 1
	var signal prior.Prior = te.Signal
	noise := te.NoiseVar
	if opt.LearnNoise {
		unknown := prior.ComplexGaussBernoulli{Density: math.NaN(), SignalVar: math.NaN()}
		signal, noise = unknown.Learning(prior.Density|prior.SignalVar), math.NaN()
	}
	c, err := NewCalibrator(in.W, signal, channel.ComplexGain{Prior: te.Gain, NoiseVar: noise}, &opt)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// complexSample is sample k of an instance.
func complexSample(in *teacher.ComplexInstance, k int) (y []float64) {
	m, _ := in.Y.Dims()
	for mu := range m {
		y = append(y, in.Y.At(mu, 2*k), in.Y.At(mu, 2*k+1))
	}
	return y
}

// complexSignal is an estimate as two columns, and signalOf is the truth.
func complexSignal(x []float64) *mat.Dense {
	n := len(x) / 2
	out := mat.NewDense(n, 2, nil)
	out.SetCol(0, x[:n])
	out.SetCol(1, x[n:])
	return out
}

func complexTruth(in *teacher.ComplexInstance, k int) *mat.Dense {
	return complexSignal(append(mat.Col(nil, 2*k, in.Truth.X), mat.Col(nil, 2*k+1, in.Truth.X)...))
}

// TestComplexStreams: whatever is known of amplitudes and phases, samples are found, error bars and intervals hold.
func TestComplexStreams(t *testing.T) {
	tests.Long(t)
	known := math.Inf(1)
	for name, c := range map[string]struct {
		gain   channel.ComplexPrior
		warmUp int
		learn  bool
	}{
		"phases known":        {channel.ComplexPrior{Lo: 0.5, Hi: 1.5, Concentration: known}, 0, false},
		"von Mises":           {channel.ComplexPrior{Lo: 0.5, Hi: 1.5, Concentration: 20}, 0, false},
		"phase only, a batch": {channel.ComplexPrior{Lo: 1, Hi: 1}, 4, false},
		"free, a batch":       {channel.ComplexPrior{Lo: 0.5, Hi: 1.5}, 4, true},
	} {
		t.Run(name, func(t *testing.T) {
			te := complexStream(c.gain)
			in := drawComplex(t, te, 3)
			cal := complexCalibrator(t, te, in, Options{WarmUp: c.warmUp, LearnNoise: c.learn})
			var late, stated, count float64
			for k := range te.P {
				e, err := cal.Absorb(context.Background(), complexSample(in, k))
				if err != nil {
					t.Fatal(err)
				}
				if warming := k < c.warmUp-1; e.Committed == warming {
					t.Fatalf("sample %d: %v, %v (χ² %.3g)", k, e.Status, e.Reject, e.ChiSquare)
				}
				if e.Committed && (e.ChiSquare < 0.5 || e.ChiSquare > 1.6) {
					t.Errorf("sample %d: χ² %.3g", k, e.ChiSquare)
				}
				if k >= 8 {
					m := calamp.ScoreComplex(complexSignal(e.X), nil, calamp.Truth{X: complexTruth(in, k)})
					late, count = late+m.XMSEScaled, count+1
					stated += 2 * sumOf(e.XVar) / float64(len(e.XVar))
				}
			}
			p := cal.Posterior()
			s := make([]complex128, len(p.S))
			for mu, r := range p.S {
				s[mu] = cmplx.Rect(r, p.Phase[mu])
			}
			m := calamp.ScoreComplex(nil, s, calamp.Truth{S: in.Truth.S, Phase: in.Truth.Phase})
			t.Logf("x %.3g (stated %.3g), s %.3g (stated %.3g)", late/count, stated/count, m.SMSEScaled, sumOf(p.SVar)/float64(te.M))
			if ratio := late / stated; !(ratio > 0.5 && ratio < 2) || late/count > 2e-6 {
				t.Errorf("signals: mean square error %.3g, stated %.3g", late/count, stated/count)
			}
			if ratio := m.SMSEScaled / sumOf(p.SVar) * float64(te.M); !(ratio > 0.4 && ratio < 2) {
				t.Errorf("s: mean square error %.3g, stated %.3g", m.SMSEScaled, sumOf(p.SVar)/float64(te.M))
			}
			if len(p.Flagged) > 0 || p.PhaseFree != c.gain.Free() {
				t.Errorf("flagged %v, phase free %v", p.Flagged, p.PhaseFree)
			}
			if !p.PhaseFree && math.Abs(m.PhaseShift) > 5*p.PhaseSD+1e-3 {
				t.Errorf("the common phase is off by %.3g, stated ±%.3g", m.PhaseShift, p.PhaseSD)
			}
		})
	}
}

// TestComplexScaleIsNotHeldByFirstSamples: what is common to all gains is no better known than if all samples had been solved
// together. It was held by the first ones, whose signals are not known well, where phases are known a little.
func TestComplexScaleIsNotHeldByFirstSamples(t *testing.T) {
	te := complexStream(channel.ComplexPrior{Lo: 0.5, Hi: 1.5, Concentration: 20})
	te.N, te.M, te.P = 60, 46, 8
	off := 0.0
	const seeds = 2
	for seed := range seeds {
		in := drawComplex(t, te, uint64(seed+1))
		cal := complexCalibrator(t, te, in, Options{})
		for k := range te.P {
			if _, err := cal.Absorb(context.Background(), complexSample(in, k)); err != nil {
				t.Fatal(err)
			}
		}
		p := te.Problem(in)
		opt := &calamp.Options{}
		opt.Threads = 1
		res, err := calamp.Solve(context.Background(), p, opt)
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("scale ±%.3g, solved together ±%.3g", cal.Posterior().ScaleSD, res.ScaleSD)
		off += math.Log(cal.Posterior().ScaleSD/res.ScaleSD) / seeds
	}
	if off < -0.2 || off > 1 {
		t.Errorf("the scale of a stream is known %.2f times as well as of its samples solved together", math.Exp(-off))
	}
}

func sumOf(v []float64) (total float64) {
	for _, x := range v {
		total += x
	}
	return total
}

// TestComplexStreamsGoOnAfterAnInterruption: samples that are kept are in the state, and what follows has the same bits.
func TestComplexStreamsGoOnAfterAnInterruption(t *testing.T) {
	te := complexStream(channel.ComplexPrior{Lo: 0.5, Hi: 1.5})
	in := drawComplex(t, te, 4)
	sensor := 5
	opt := Options{WarmUp: 4, Anchor: calamp.Anchor{Phase: &sensor}}
	whole, parts := complexCalibrator(t, te, in, opt), complexCalibrator(t, te, in, opt)
	for k := range 7 {
		if _, err := whole.Absorb(context.Background(), complexSample(in, k)); err != nil {
			t.Fatal(err)
		}
		b, err := parts.Snapshot().MarshalBinary()
		if err != nil {
			t.Fatal(err)
		}
		var s State
		if err := s.UnmarshalBinary(b); err != nil {
			t.Fatal(err)
		}
		parts = complexCalibrator(t, te, in, Options{WarmUp: 4}) // the anchor is in the state
		if err := parts.Restore(&s); err != nil {
			t.Fatal(err)
		}
		if _, err := parts.Absorb(context.Background(), complexSample(in, k)); err != nil {
			t.Fatal(err)
		}
	}
	a, err := whole.Snapshot().MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	b, err := parts.Snapshot().MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(a, b) || !reflect.DeepEqual(whole.Posterior().Phase, parts.Posterior().Phase) {
		t.Error("an interruption changed the state")
	}
	if p := whole.Posterior(); math.Abs(p.Phase[sensor]) > 1e-12 || !p.PhaseFree {
		t.Errorf("the anchored phase is %g", p.Phase[sensor])
	}
}

// TestComplexStreamsBadSamples: missing readings, a dead and a broken sensor, garbage.
func TestComplexStreamsBadSamples(t *testing.T) {
	if testing.Short() {
		t.Skip("a whole stream: leave out -short")
	}
	te := complexStream(channel.ComplexPrior{Lo: 1, Hi: 1, Concentration: 20})
	te.N, te.M = 60, 60
	in := drawComplex(t, te, 5)
	c := complexCalibrator(t, te, in, Options{})
	for k := range te.P {
		y := complexSample(in, k)
		for mu := k; mu < te.M; mu += 13 {
			y[2*mu+k%2] = math.NaN() // one part is enough
		}
		y[2*7], y[2*7+1] = 0, 0
		if k >= 5 {
			y[2*9] *= -3 // broken from then on
		}
		if k == 8 {
			for j := range y {
				y[j] = math.Sin(float64(j * j))
			}
		}
		e, err := c.Absorb(context.Background(), y)
		if err != nil {
			t.Fatal(err)
		}
		if (k == 8) == e.Committed {
			t.Errorf("sample %d: %v, χ² %.3g", k, e.Reject, e.ChiSquare)
		}
		if k == te.P-1 {
			m := calamp.ScoreComplex(complexSignal(e.X), nil, calamp.Truth{X: complexTruth(in, k)})
			if stated := 2 * sumOf(e.XVar) / float64(len(e.XVar)); !(m.XMSEScaled < 2*stated) || !(m.XMSEScaled < 2e-6) {
				t.Errorf("error %.3g, stated %.3g", m.XMSEScaled, stated)
			}
		}
	}
	flagged := map[int]Flag{}
	for _, f := range c.Posterior().Flagged {
		flagged[f.Sensor] = f.Reason
	}
	if len(flagged) != 2 || flagged[7] != Zero || flagged[9] == Healthy {
		t.Errorf("flagged: %v", flagged)
	}
}

// What does not work is refused.
func TestComplexStreamsRefused(t *testing.T) {
	te := complexStream(channel.ComplexPrior{Lo: 0.5, Hi: 1.5})
	in := drawComplex(t, te, 1)
	sensor := 3
	about := channel.ComplexPrior{Lo: 0.5, Hi: 1.5, Concentration: 5}
	for want, c := range map[string]struct {
		gain channel.ComplexPrior
		opt  Options
	}{
		"a stream begins with 2 samples or more": {te.Gain, Options{}},
		"complex gains have no offsets":          {about, Options{LearnOffsets: true}},
		"phases are known beforehand (κ = 5)":    {about, Options{Anchor: calamp.Anchor{Phase: &sensor}}},
		"3 nominal phases for 66 sensors":        {about, Options{Phases: make([]float64, 3)}},
		"nothing is known of phases":             {te.Gain, Options{WarmUp: 4, Phases: make([]float64, 66)}},
	} {
		if _, err := NewCalibrator(in.W, te.Signal, channel.ComplexGain{Prior: c.gain, NoiseVar: 1e-6}, &c.opt); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	c := complexCalibrator(t, te, in, Options{WarmUp: 4})
	if _, err := c.Absorb(context.Background(), make([]float64, te.M)); err == nil || !strings.Contains(err.Error(), "a real and an imaginary part") {
		t.Errorf("real readings: %v", err)
	}
}

// TestComplexStreamDoubtsPhases: phases that are spread by κ = 20, given with three times that.
func TestComplexStreamDoubtsPhases(t *testing.T) {
	te := teacher.Complex{
		N: 80, M: 90, P: 4, Signal: prior.ComplexGaussBernoulli{Density: 0.15, SignalVar: 1},
		Gain: channel.ComplexPrior{Lo: 0.8, Hi: 1.2, Concentration: 20}, NoiseVar: 1e-4,
	}
	in := drawComplex(t, te, 3)
	te.Gain.Concentration = 60
	c := complexCalibrator(t, te, in, Options{})
	for k := range te.P {
		if _, err := c.Absorb(context.Background(), complexSample(in, k)); err != nil {
			t.Fatal(err)
		}
	}
	p := c.Posterior()
	if !slices.ContainsFunc(p.Warnings, func(w calamp.Warning) bool { return w.Code == calamp.PhaseSpread }) {
		t.Errorf("warnings: %v", p.Warnings)
	}
}

// TestComplexStreamDoubtsSimilar: samples that differ little, of which the first was solved alone while phases were unknown.
func TestComplexStreamDoubtsSimilar(t *testing.T) {
	te := teacher.Complex{
		N: 80, M: 90, P: 5, Signal: prior.ComplexGaussBernoulli{Density: 0.15, SignalVar: 1},
		Gain: channel.ComplexPrior{Lo: 0.8, Hi: 1.2, Concentration: 20}, NoiseVar: 1e-4,
	}
	in := drawComplex(t, te, 3)
	for _, similar := range []bool{false, true} {
		c := complexCalibrator(t, te, in, Options{})
		rng := rand.New(rand.NewPCG(1, 0))
		for k := range te.P {
			sample := complexSample(in, k)
			if similar {
				sample = complexSample(in, 0)
				for j := range sample {
					sample[j] += 0.005 * rng.NormFloat64()
				}
			}
			if _, err := c.Absorb(context.Background(), sample); err != nil {
				t.Fatal(err)
			}
		}
		warned := slices.ContainsFunc(c.Posterior().Warnings, func(w calamp.Warning) bool { return w.Code == calamp.SignalsAlike })
		if warned != similar {
			t.Errorf("similar %v: warnings %v", similar, c.Posterior().Warnings)
		}
	}
}
