package online

import (
	"context"
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"gonum.org/v1/gonum/mat"

	"github.com/calamp/calamp"
	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/internal/amp"
	"github.com/calamp/calamp/internal/tables"
	"github.com/calamp/calamp/internal/tests"
	"github.com/calamp/calamp/prior"
	"github.com/calamp/calamp/solver"
	"github.com/calamp/calamp/teacher"
)

// extremeStream is a stream in which one sample is spoilt.
type extremeStream struct {
	name       string
	calibrator func(t testing.TB) *Calibrator
	sample     func(k int) []float64
	samples    int
}

var extremeSensors = teacher.Teacher{N: 40, M: 32, P: 13, Signal: prior.GaussBernoulli{Density: 0.15, SignalVar: 1}, Gain: channel.Uniform(0.8, 1.2), NoiseVar: 1e-6}

func extremeStreams(t testing.TB) []extremeStream {
	t.Helper()
	te := extremeSensors
	in, err := te.Draw(3)
	if err != nil {
		t.Fatal(err)
	}
	real := func(name string, signal prior.Prior, g channel.Calibrating, opt Options) extremeStream {
		opt.Threads = 1
		return extremeStream{name, func(t testing.TB) *Calibrator {
			c, err := NewCalibrator(in.W, signal, g, &opt)
			if err != nil {
				t.Fatal(err)
			}
			return c
		}, func(k int) []float64 { return mat.Col(nil, k, in.Y) }, te.P}
	}
	look := calamp.Outliers{Look: true}
	nan := math.NaN()
	gain, unknown := channel.Gain{Prior: te.Gain, NoiseVar: te.NoiseVar}, channel.Gain{Prior: te.Gain, NoiseVar: nan}
	learned := prior.GaussBernoulli{Density: nan, SignalMean: nan, SignalVar: nan, Learn: prior.Density | prior.SignalMean | prior.SignalVar}
	offsets := channel.Offset{Prior: channel.OffsetPrior{Gain: te.Gain, SD: 0.3}, NoiseVar: te.NoiseVar}
	all := []extremeStream{
		real("known", te.Signal, gain, Options{}),
		real("outliers", te.Signal, gain, Options{Outliers: look}),
		real("always", te.Signal, gain, Options{Commit: Always}),
		real("memory", te.Signal, gain, Options{Memory: 20, Outliers: look}),
		real("learned", learned, unknown, Options{LearnNoise: true, Outliers: look}),
		real("sensor noise", learned, unknown, Options{LearnSensorNoise: true, Outliers: look}),
		real("offsets", te.Signal, offsets, Options{WarmUp: 10, Outliers: look}),
	}
	for _, free := range []bool{false, true} {
		tc := complexStream(channel.ComplexPrior{Lo: 0.8, Hi: 1.2, Concentration: 30})
		tc.N, tc.M, tc.P = 24, 24, te.P
		opt := Options{Outliers: look}
		if free { // and learned, with samples that are solved together
			tc.Gain.Concentration, opt.WarmUp, opt.LearnNoise = 0, 4, true
		}
		ci := drawComplex(t, tc, 4)
		all = append(all, extremeStream{
			fmt.Sprintf("complex, free %t", free), func(t testing.TB) *Calibrator { return complexCalibrator(t, tc, ci, opt) },
			func(k int) []float64 { return complexSample(ci, k) }, te.P,
		})
	}
	return all
}

// warm is the stream after its first good samples, so many that none are kept to be solved together.
func (s *extremeStream) warm(t *testing.T) *State {
	t.Helper()
	c := s.calibrator(t)
	for k := range s.samples - 2 {
		if _, err := c.Absorb(t.Context(), s.sample(k)); err != nil {
			t.Fatal(s.name, err)
		}
	}
	return c.Snapshot()
}

// TestExtremeReadings: one reading, or all, that arithmetic hardly survives, in the first sample or a later one. Each is answered, and
// leaves a state that can be opened. What is beyond all arithmetic teaches nothing.
func TestExtremeReadings(t *testing.T) {
	tests.Long(t)
	combinations := 0
	for i, s := range extremeStreams(t) {
		after := s.warm(t)
		for j, size := range []float64{1e30, 1e150, 1e300, 1e-30, 1e-150, 1e-300, math.NaN(), math.Inf(1), 5e-324} {
			if !*tables.Long && (i/3+j)%2 > 0 { // half of the sizes each
				continue
			}
			for _, all := range []bool{false, true} {
				for _, first := range []bool{true, false} {
					if first && i%3 != 1 { // a third of the streams is enough
						continue
					}
					what := fmt.Sprintf("%s: %g, all %t, first %t", s.name, size, all, first)
					combinations++
					c := s.calibrator(t)
					k := 0
					if !first {
						if err := c.Restore(after); err != nil {
							t.Fatal(err)
						}
						k = s.samples - 2
					}
					before := c.Snapshot()
					y := s.sample(k)
					for j := range y {
						if all || j == 0 {
							y[j] = math.Copysign(size, y[j])
						}
					}
					ctx, done := context.WithTimeout(t.Context(), 30*time.Second)
					e, err := c.Absorb(ctx, y)
					done()
					switch {
					case math.IsInf(size, 0):
						if err == nil {
							t.Errorf("%s: infinite readings were taken", what)
						}
					case err != nil:
						t.Errorf("%s: %v", what, err)
					case !amp.AllFinite(e.X) || !amp.AllFinite(e.XVar):
						t.Errorf("%s: x̂ is not finite", what)
					case all && (size > solver.MostSize || size < solver.LeastSize || math.IsNaN(size)) && e.Reject != WarmingUp:
						if e.Committed || !slices.Equal(c.state.Stats, before.Stats) || c.state.Samples != before.Samples {
							t.Errorf("%s: learned from (%v)", what, e.Reject)
						}
					case !all && !first && size > solver.MostSize && (!e.Committed || !slices.Equal(e.Masked, []int{0})):
						t.Errorf("%s: %v, left out %v", what, e.Reject, e.Masked)
					}
					expectGoingOn(t, what, &s, c, k+1, !first && !all)
				}
			}
		}
	}
	t.Logf("%d combinations", combinations)
}

// expectGoingOn restores the state, as from a file, and takes in one more sample.
func expectGoingOn(t *testing.T, what string, s *extremeStream, c *Calibrator, k int, committed bool) {
	t.Helper()
	b, err := c.Snapshot().MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	var saved State
	if err := saved.UnmarshalBinary(b); err != nil {
		t.Errorf("%s: %.200v", what, err)
		return
	}
	again := s.calibrator(t)
	if err := again.Restore(&saved); err != nil {
		t.Errorf("%s: %.200v", what, err)
		return
	}
	e, err := again.Absorb(t.Context(), s.sample(k))
	if err != nil || committed && !e.Committed {
		t.Errorf("%s: the sample after it: %v, %v", what, e.Reject, err)
	}
}

// TestSensorThatReadsTooMuchIsFlagged: one whose readings are always beyond arithmetic is as broken as any, and is taken back when it reads as others do.
func TestSensorThatReadsTooMuchIsFlagged(t *testing.T) {
	for _, s := range extremeStreams(t)[:2] {
		c := s.calibrator(t)
		if err := c.Restore(s.warm(t)); err != nil {
			t.Fatal(err)
		}
		for k := range 80 {
			y := s.sample(k % s.samples)
			if k < 30 {
				y[7] = -1e200
			}
			e, err := c.Absorb(t.Context(), y)
			if err != nil || !e.Committed {
				t.Fatal(s.name, k, e.Reject, err)
			}
			if k == 29 && c.state.Flag[7] != Inconsistent {
				t.Errorf("%s: sensor 7 is %v with health %g", s.name, c.state.Flag[7], c.state.Health[7])
			}
		}
		if c.state.Flag[7] != Healthy {
			t.Errorf("%s: sensor 7 is %v still", s.name, c.state.Flag[7])
		}
	}
}
