package online_test

import (
	"math"
	"slices"
	"testing"

	"github.com/calamp/calamp"
	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/internal/gainkind"
	"github.com/calamp/calamp/internal/tests"
	"github.com/calamp/calamp/online"
	"github.com/calamp/calamp/prior"
	"github.com/calamp/calamp/solver"
	"github.com/calamp/calamp/teacher"
)

// Gains that do not fill the given range leave the common scale open by what is left of
// it; a stream that was given the true distribution, or insists, keeps the uniform distribution.
func TestStreamWithARangeThatMerelyContainsTheGains(t *testing.T) {
	tests.Long(t)
	te := teacher.Teacher{N: 200, M: 160, P: 12, Signal: prior.GaussBernoulli{Density: 0.2, SignalVar: 1}, Gain: channel.Uniform(0.95, 1.05), NoiseVar: 1e-6}
	in, err := te.Draw(1)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		given   channel.GainPrior
		insist  solver.SPrior
		learned bool
	}{
		{channel.Uniform(0.9, 1.1), solver.AutoS, true},
		{channel.Uniform(0.9, 1.1), solver.UniformS, false},
		{channel.Uniform(0.95, 1.05), solver.AutoS, false},
	} {
		s, err := online.NewCalibrator(in.W, te.Signal, channel.Gain{Prior: c.given, NoiseVar: te.NoiseVar}, &online.Options{Settings: solver.Settings{SPrior: c.insist}})
		if err != nil {
			t.Fatal(err)
		}
		var sd float64
		for k := range te.P {
			y := make([]float64, te.M)
			for mu := range y {
				y[mu] = in.Y.At(mu, k)
			}
			e, err := s.Absorb(t.Context(), y)
			if err != nil {
				t.Fatal(err)
			}
			sd = e.ScaleSD()
		}
		p := s.Posterior()
		if (p.Range != nil) != c.learned {
			t.Errorf("given [%g, %g], %v: %v", c.given.Lo, c.given.Hi, c.insist, p.Range)
			continue
		}
		var with, own float64
		for mu, s0 := range in.Truth.S {
			with += p.S[mu] * s0
			own += p.S[mu] * p.S[mu]
		}
		off := math.Log(with / own)
		if c.learned && (math.Abs(off) > 3*p.ScaleSD || p.ScaleSD < 0.01 || p.ScaleSD > 0.05 || sd != p.ScaleSD) {
			t.Errorf("off by %.2g, stated %.2g and %.2g", off, p.ScaleSD, sd)
		}
		if lo, hi := p.Calibration.Interval(0.95); lo[0] > p.S[0] || hi[0] < p.S[0] {
			t.Errorf("sensor 0 is %g, and lies in [%g, %g]", p.S[0], lo[0], hi[0])
		}
	}
}

// A range that is ten times too wide bends the first signals, and one that is too narrow has
// most samples rejected: the stream begins anew with what the gains are, says so, and its
// intervals hold. Interruptions leave the same bits.
func TestStreamWithAFalseRange(t *testing.T) {
	tests.Long(t)
	for _, c := range []struct {
		kind  int
		wide  float64
		noise float64
	}{{0, 0.7, 1e-8}, {5, 0.7, 1e-6}, {2, 0.7, 1e-6}, {2, 10, 1e-6}, {4, 10, 1e-8}} {
		kind := gainkind.All[c.kind]
		te := teacher.Teacher{N: 200, M: 160, P: 10, Signal: prior.GaussBernoulli{Density: 0.2, SignalVar: 1}, Gain: channel.Uniform(0.95, 1.05), NoiseVar: c.noise}
		s := newStream(t, te, 2)
		kind.Spread(s.Instance, 2)
		calibrator := func() *online.Calibrator {
			given, err := online.NewCalibrator(s.W, te.Signal, channel.Gain{Prior: kind.Stated(c.wide, 2), NoiseVar: te.NoiseVar}, nil)
			if err != nil {
				t.Fatal(err)
			}
			return given
		}
		all, part := calibrator(), calibrator()
		widened := false
		for k := range te.P {
			e := absorb(t, all, s.sample(k))
			widened = widened || e.Change != nil && slices.Contains(e.Change.What(), "range")
			part = again(t, part, calibrator())
			absorb(t, part, s.sample(k))
		}
		p := all.Posterior()
		out := statedOf(p, s.Truth.S)
		if p.Range == nil || len(p.Warnings) != 1 || p.Warnings[0].Code != calamp.RangeNotFilled || c.wide < 1 && c.kind != 2 && !(p.Range.TooNarrow && widened) {
			t.Errorf("%s, %g×: %+v, change of the range %t", kind.Name, c.wide, p.Range, widened)
		}
		if out.covered < 0.9 || math.Abs(out.t) > 3*out.sd || out.sd > 0.06 || out.rel > 0.01 {
			t.Errorf("%s, %g×: scale off by %.2g (±%.2g), error %.2g, intervals cover %.2f", kind.Name, c.wide, out.t, out.sd, out.rel, out.covered)
		}
		if bits(t, all) != bits(t, part) {
			t.Errorf("%s, %g×: other bits after interruptions", kind.Name, c.wide)
		}
	}
}

// again is a fresh calibrator that goes on where c is.
func again(t *testing.T, c, fresh *online.Calibrator) *online.Calibrator {
	t.Helper()
	b, err := c.Snapshot().MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	var s online.State
	if err := s.UnmarshalBinary(b); err != nil {
		t.Fatal(err)
	}
	if err := fresh.Restore(&s); err != nil {
		t.Fatal(err)
	}
	return fresh
}

// An anchor holds the scale of signals, posterior and intervals, leaves what is learned as it
// is, stays with the state, and says where it is contradicted.
func TestStreamFollowsItsAnchor(t *testing.T) {
	te := small(6)
	s := newStream(t, te, 4)
	for name, a := range map[string]calamp.Anchor{"mean": {Mean: 2}, "sensors": {Sensors: map[int]float64{3: 2 * s.Truth.S[3], 90: 2 * s.Truth.S[90]}}} {
		free := s.calibrator(t, nil)
		held := s.calibrator(t, &online.Options{Anchor: a})
		var x, twice []float64
		for k := range te.P {
			x = slices.Clone(absorb(t, free, s.sample(k)).X)
			held = again(t, held, s.calibrator(t, nil))
			e := absorb(t, held, s.sample(k))
			twice = e.X
			if sd := e.ScaleSD(); math.Abs(sd/held.Posterior().ScaleSD-1) > 1e-12 {
				t.Errorf("%s: the scale is known to %g, and to %g", name, sd, held.Posterior().ScaleSD)
			}
		}
		p, own := held.Posterior(), free.Posterior()
		var dot, square float64
		for i, v := range x {
			dot += v * twice[i]
			square += v * v
		}
		if f := dot / square; math.Abs(f/p.Factor-1) > 1e-12 || math.Abs(f/2-1) > 0.01 {
			t.Errorf("%s: signals %g times as large, s %g times", name, f, p.Factor)
		}
		lo, hi := p.Calibration.Interval(0.95)
		ownLo, ownHi := own.Calibration.Interval(0.95)
		for mu := range p.S {
			if math.Abs(p.S[mu]/own.S[mu]/p.Factor-1) > 1e-12 || math.Abs((hi[mu]-lo[mu])/(ownHi[mu]-ownLo[mu])/p.Factor-1) > 1e-6 {
				t.Fatalf("%s: sensor %d: %g, without the anchor %g", name, mu, p.S[mu], own.S[mu])
			}
		}
		if math.Abs(p.Factor/2-1) > 5*p.ScaleSD+0.01 || len(p.Warnings) != 1 || p.Warnings[0].Code != calamp.AnchorMismatch {
			t.Errorf("%s: factor %g ± %g, %v", name, p.Factor, p.ScaleSD, p.Warnings)
		}
		if err := held.SetAnchor(calamp.Anchor{}); err != nil || bits(t, held) != bits(t, free) {
			t.Errorf("%s: what was learned is another: %v", name, err)
		}
	}
	if _, err := online.NewCalibrator(s.W, s.Signal, channel.Gain{Prior: s.Gain, NoiseVar: 1e-8}, &online.Options{Anchor: calamp.Anchor{Sensors: map[int]float64{te.M: 1}}}); err == nil {
		t.Error("an anchored sensor that is not there")
	}
}
