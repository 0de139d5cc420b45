package online

import (
	"context"
	"math"
	"reflect"
	"strings"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/calamp/calamp"
	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/internal/tests"
	"github.com/calamp/calamp/prior"
	"github.com/calamp/calamp/teacher"
)

func learningStream(t *testing.T, noise float64, samples int) (teacher.Teacher, *teacher.Instance) {
	t.Helper()
	te := teacher.Teacher{N: 200, M: 130, P: samples, Signal: prior.GaussBernoulli{Density: 0.2, SignalMean: 0.5, SignalVar: 2}, Gain: channel.Uniform(0.9, 1.1), NoiseVar: noise}
	in, err := te.Draw(3)
	if err != nil {
		t.Fatal(err)
	}
	return te, in
}

// knowingNothing learns all of the model but the range of s.
func knowingNothing(t *testing.T, te teacher.Teacher, in *teacher.Instance, opt Options) *Calibrator {
	t.Helper()
	nan := math.NaN()
	opt.LearnNoise = true
	c, err := NewCalibrator(in.W, prior.GaussBernoulli{Density: nan, SignalMean: nan, SignalVar: nan, Learn: prior.Density | prior.SignalMean | prior.SignalVar}, channel.Gain{Prior: te.Gain, NoiseVar: nan}, &opt)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func absorb(t *testing.T, c *Calibrator, in *teacher.Instance, k int) *Estimate {
	t.Helper()
	e, err := c.Absorb(context.Background(), mat.Col(nil, k, in.Y))
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func TestLearnsTheModelAlongAStream(t *testing.T) {
	tests.Long(t)
	for _, noise := range []float64{1e-3, 1e-6} {
		te, in := learningStream(t, noise, 30)
		given, err := NewCalibrator(in.W, te.Signal, channel.Gain{Prior: te.Gain, NoiseVar: noise}, nil)
		if err != nil {
			t.Fatal(err)
		}
		c := knowingNothing(t, te, in, Options{})
		committed := 0
		for k := range te.P {
			absorb(t, given, in, k)
			if absorb(t, c, in, k).Committed {
				committed++
			}
		}
		if committed < te.P-3 {
			t.Errorf("Δ = %g: %d of %d samples learned from", noise, committed, te.P)
		}
		m := c.Posterior().Model
		signal, _ := m.GaussBernoulli()
		for _, p := range []struct {
			name      string
			got, want float64
		}{{"density", signal.Density, 0.2}, {"mean", signal.SignalMean, 0.5}, {"variance", signal.SignalVar, 2}, {"noise", m.NoiseVar, noise}} {
			if math.Abs(p.got/p.want-1) > 0.25 {
				t.Errorf("Δ = %g: %s is %g, want %g", noise, p.name, p.got, p.want)
			}
		}
		score := func(c *Calibrator) float64 {
			return calamp.Score(nil, c.Posterior().S, calamp.Truth{S: in.Truth.S}).SMSEScaled
		}
		if a, b := score(given), score(c); b > 1.5*a {
			t.Errorf("Δ = %g: MSE of s %g, with the true model %g", noise, b, a)
		}
	}
}

// resumed absorbs an instance twice, once with an interruption after every sample, and
// returns the calibrator and the bytes of both final states, which must be the same.
func resumed(t *testing.T, in *teacher.Instance, samples int, calibrator func() *Calibrator) (*Calibrator, []byte) {
	t.Helper()
	all, part := calibrator(), calibrator()
	for k := range samples {
		absorb(t, all, in, k)
		b, err := part.Snapshot().MarshalBinary()
		if err != nil {
			t.Fatal(err)
		}
		var s State
		if err := s.UnmarshalBinary(b); err != nil {
			t.Fatal(err)
		}
		part = calibrator()
		if err := part.Restore(&s); err != nil {
			t.Fatal(err)
		}
		absorb(t, part, in, k)
	}
	a, _ := all.Snapshot().MarshalBinary()
	b, _ := part.Snapshot().MarshalBinary()
	if string(a) != string(b) {
		t.Error("the state after interruptions is another one")
	}
	return all, a
}

// A learned model is part of the state, bit for bit.
func TestLearnedModelResumes(t *testing.T) {
	te, in := learningStream(t, 1e-4, 8)
	_, a := resumed(t, in, te.P, func() *Calibrator { return knowingNothing(t, te, in, Options{}) })
	if len(a) != 48+8+8*5+33*te.M+watchedBytes(te.M)+believedBytes+4 || a[4] != 7 {
		t.Errorf("%d bytes of version %d", len(a), a[4])
	}
}

// What is frozen learns nothing of the model either, and a sample that is not
// learned from leaves it as it was.
func TestLearnsOnlyFromWhatIsCommitted(t *testing.T) {
	te, in := learningStream(t, 1e-4, 8)
	c := knowingNothing(t, te, in, Options{})
	for k := range 6 {
		absorb(t, c, in, k)
	}
	before := c.Posterior().Model
	c.Freeze(true)
	absorb(t, c, in, 6)
	c.Freeze(false)
	noise := make([]float64, te.M)
	for mu := range noise {
		noise[mu] = 10 * math.Sin(float64(mu*mu))
	}
	e, err := c.Absorb(context.Background(), noise)
	if err != nil {
		t.Fatal(err)
	}
	if e.Committed {
		t.Error("noise was learned from")
	}
	if after := c.Posterior().Model; !reflect.DeepEqual(after, before) {
		t.Errorf("%+v, before %+v", after, before)
	}
}

// A stream learns any prior whose parameters can be kept, and goes on with the same bits.
func TestMixtureIsLearnedAndResumes(t *testing.T) {
	if testing.Short() {
		t.Skip("a whole stream: leave out -short")
	}
	te, in := learningStream(t, 1e-4, 12)
	start := prior.Mixture{Components: []prior.Component{{Weight: 0.3, Mean: 1, Var: 1}, {Weight: 0.1, Mean: -1, Var: 1}}, Learn: true}
	all, a := resumed(t, in, te.P, func() *Calibrator {
		c, err := NewCalibrator(in.W, start, channel.Gain{Prior: te.Gain, NoiseVar: math.NaN()}, &Options{LearnNoise: true})
		if err != nil {
			t.Fatal(err)
		}
		return c
	})
	if len(a) != 48+8+8*8+33*te.M+watchedBytes(te.M)+believedBytes+4 || a[4] != 7 {
		t.Errorf("%d bytes of version %d", len(a), a[4])
	}
	m := all.Posterior().Model
	learned, err := start.WithValues(m.Values)
	if err != nil {
		t.Fatal(err)
	}
	p := learned.(prior.Mixture)
	if math.Abs(p.Density()-te.Signal.Density) > 0.05 || math.Abs(m.NoiseVar/te.NoiseVar-1) > 0.3 {
		t.Errorf("learned %+v and noise %g", p, m.NoiseVar)
	}
}

func TestStreamCannotLearn(t *testing.T) {
	te, in := learningStream(t, 1e-4, 1)
	g := channel.Gain{Prior: te.Gain, NoiseVar: 1e-4}
	g.NoiseVar = math.NaN()
	if _, err := NewCalibrator(in.W, te.Signal, g, nil); err == nil || !strings.Contains(err.Error(), "found NaN") {
		t.Error(err)
	}
	bad := newState(3, 3, 1)
	bad.Model = &Model{Values: []float64{2, 0, 1}}
	if err := bad.Validate(); err == nil || !strings.Contains(err.Error(), "learned model: density") {
		t.Error(err)
	}
}

func TestIdentityOfALearnedModel(t *testing.T) {
	te, in := learningStream(t, 1e-4, 1)
	free := te.Signal.Learning(prior.Density)
	id, err := Identify(in.W, free, channel.Gain{Prior: te.Gain, NoiseVar: 1}, &Options{LearnNoise: true})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"signal gauss-bernoulli density=learned mean=0.5 variance=2\n", "noise variance=learned\n"} {
		if !strings.Contains(id.Model, want) {
			t.Errorf("%q has no %q", id.Model, want)
		}
	}
}

// believedBytes is what versions 5 to 7 have more, without an anchor, samples kept, and noise of every sensor.
const believedBytes = 16 + 4 + 8 + 4 + 8 + 4 + 32 + 4 + 24

// watchedBytes is what version 4 of a state of m sensors has more, without forks.
func watchedBytes(m int) int {
	const members = 11
	return 4 + 8 + 2*8 + 2*8*members + members*(3+1)*8*m + 4 + 4*(16+8*m) + 4 + 4
}
