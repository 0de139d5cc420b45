package online

import (
	"bytes"
	"context"
	"math"
	"reflect"
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

// TestOffsetsOneByOneFollowGoldenTrace: the bare recursion, three iterations a sample, computed independently.
func TestOffsetsOneByOneFollowGoldenTrace(t *testing.T) {
	f, err := npz.Open("../testdata/trace_offset.npz")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	read := func(name string, to any) {
		if err := f.Read(name+".npy", to); err != nil {
			t.Fatal(name, err)
		}
	}
	var w, y, x mat.Dense
	var params []float64
	read("W", &w)
	read("Y", &y)
	read("online3_x", &x)
	read("params", &params)
	m, n := w.Dims()
	op, err := operator.NewDense(m, n, w.RawMatrix().Data)
	if err != nil {
		t.Fatal(err)
	}
	g := channel.Offset{Prior: channel.OffsetPrior{Gain: channel.Uniform(params[1], params[2]), SD: math.Sqrt(params[4])}, NoiseVar: params[3]}
	opt := &Options{Commit: Always, Settings: solver.Settings{MaxIter: 3, Tol: -1, Damping: solver.FixedDamping(0), NoScaleStep: true, NoMeanRemoval: true}}
	c, err := NewCalibrator(op, prior.GaussBernoulli{Density: params[0], SignalVar: 1}, g, opt)
	if err != nil {
		t.Fatal(err)
	}
	compare := func(name string, got, want []float64) {
		for i, v := range want {
			if !(math.Abs(got[i]-v) <= 1e-9*math.Abs(v)) {
				t.Errorf("%s[%d] is %.12g, want %.12g", name, i, got[i], v)
				return
			}
		}
	}
	_, p := y.Dims()
	for k := range p {
		e, err := c.Absorb(context.Background(), mat.Col(nil, k, &y))
		if err != nil || !e.Committed {
			t.Fatal(err, e.Reject)
		}
		compare("x", e.X, mat.Col(nil, k, &x))
	}
	post := c.Posterior()
	for at, name := range []string{"T0", "y_bar", "omega_bar", "tau_c", "B_c"} {
		var want, got []float64
		read("online3_"+name, &want)
		for mu := range m {
			got = append(got, c.state.Stats[mu*c.state.Width()+at])
		}
		compare(name, got, want)
	}
	var s, o []float64
	read("online3_s", &s)
	read("online3_o", &o)
	compare("s", post.S, s)
	compare("o", post.Offset, o)
}

var offsetStream = teacher.Teacher{
	N: 150, M: 120, P: 20, Signal: prior.GaussBernoulli{Density: 0.2, SignalVar: 1},
	Gain: channel.Uniform(0.8, 1.2), NoiseVar: 1e-4, Offset: 0.3,
}

func offsetCalibrator(t testing.TB, in *teacher.Instance, learn bool) *Calibrator {
	t.Helper()
	var signal prior.Prior = offsetStream.Signal
	noise := offsetStream.NoiseVar
	if learn {
		signal = prior.GaussBernoulli{Density: math.NaN(), SignalMean: math.NaN(), SignalVar: 1, Learn: prior.Density | prior.SignalMean}
		noise = math.NaN()
	}
	g := channel.Offset{Prior: channel.OffsetPrior{Gain: offsetStream.Gain, SD: 0.3}, NoiseVar: noise}
	c, err := NewCalibrator(in.W, signal, g, &Options{WarmUp: 10, LearnOffsets: learn, LearnNoise: learn, Settings: solver.Settings{Threads: 1}})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestOffsetsInAStream: samples are kept, solved together, and the stream goes on; error bars hold.
func TestOffsetsInAStream(t *testing.T) {
	tests.Long(t)
	in, err := offsetStream.Draw(1)
	if err != nil {
		t.Fatal(err)
	}
	for _, learn := range []bool{false, true} {
		c := offsetCalibrator(t, in, learn)
		late, count := 0.0, 0.0
		for k := range offsetStream.P {
			e, err := c.Absorb(context.Background(), mat.Col(nil, k, in.Y))
			if err != nil {
				t.Fatal(err)
			}
			switch {
			case k < 9 && (e.Committed || e.Reject != WarmingUp || e.Together != nil):
				t.Errorf("learned %v: sample %d: %v", learn, k, e.Reject)
			case k >= 9 && !e.Committed:
				t.Errorf("learned %v: sample %d: %v (χ² %.3g)", learn, k, e.Reject, e.ChiSquare)
			case k == 9 && e.Together == nil:
				t.Error("no samples together")
			}
			if k > 9 {
				late += calamp.Score(mat.NewDense(len(e.X), 1, e.X), nil, calamp.Truth{X: mat.NewDense(len(e.X), 1, mat.Col(nil, k, in.Truth.X))}).XMSEScaled
				count++
			}
		}
		p := c.Posterior()
		covered, square, stated := 0.0, 0.0, 0.0
		for mu, o := range in.Truth.O {
			d := p.Offset[mu] - o
			square += d * d
			stated += p.OffsetVar[mu]
			if math.Abs(d) < 1.96*math.Sqrt(p.OffsetVar[mu]) {
				covered += 1 / float64(len(in.Truth.O))
			}
		}
		t.Logf("learned %v: x %.3g, offsets %.3g (stated %.3g), %.3g covered, %d samples, flagged %v", learn, late/count, square/120, stated/120, covered, p.Samples, p.Flagged)
		if late/count > 1.2e-4 || covered < 0.87 || square > 1.5*stated || p.Samples != uint64(offsetStream.P) || len(p.Flagged) > 0 {
			t.Errorf("learned %v: error %.3g, %.3g of the offsets covered, %d samples, flagged %v", learn, late/count, covered, p.Samples, p.Flagged)
		}
	}
}

// TestOffsetsGoOnAfterAnInterruption: the samples that are kept are in the state, and what follows has the same bits.
func TestOffsetsGoOnAfterAnInterruption(t *testing.T) {
	tests.Long(t)
	in, err := offsetStream.Draw(2)
	if err != nil {
		t.Fatal(err)
	}
	whole, parts := offsetCalibrator(t, in, true), offsetCalibrator(t, in, true)
	for k := range 14 {
		y := mat.Col(nil, k, in.Y)
		if _, err := whole.Absorb(context.Background(), y); err != nil {
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
		parts = offsetCalibrator(t, in, true)
		if err := parts.Restore(&s); err != nil {
			t.Fatal(err)
		}
		if _, err := parts.Absorb(context.Background(), y); err != nil {
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
	if !bytes.Equal(a, b) || !reflect.DeepEqual(whole.Posterior().Offset, parts.Posterior().Offset) {
		t.Error("an interruption changed the state")
	}
}

// What does not work is refused.
func TestOffsetsInAStreamRefused(t *testing.T) {
	in, err := offsetStream.Draw(1)
	if err != nil {
		t.Fatal(err)
	}
	offset := channel.Offset{Prior: channel.OffsetPrior{Gain: offsetStream.Gain, SD: 0.3}, NoiseVar: 1e-4}
	for want, c := range map[string]struct {
		g   channel.Calibrating
		opt Options
	}{
		"a stream begins with 10 of them or more":    {offset, Options{}},
		"that are solved together (WarmUp), found 9": {offset, Options{WarmUp: 9}},
		"has no offsets":  {channel.Gain{Prior: offsetStream.Gain, NoiseVar: 1e-4}, Options{LearnOffsets: true}},
		"forgets nothing": {offset, Options{WarmUp: 10, Memory: 5}},
	} {
		if _, err := NewCalibrator(in.W, offsetStream.Signal, c.g, &c.opt); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}
