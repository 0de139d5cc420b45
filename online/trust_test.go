package online_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/calamp/calamp"
	"github.com/calamp/calamp/internal/tests"
	"github.com/calamp/calamp/online"
)

// smallWorld is a world that is solved in milliseconds a sample, with a calibrator
// that has learned from 25 samples of it.
func smallWorld(t *testing.T, seed uint64) (*world, *online.Calibrator) {
	t.Helper()
	w := newWorld(t, 160, 200, seed)
	c := w.calibrator(t, online.Options{})
	for range 25 {
		absorb(t, c, w.draw())
	}
	return w, c
}

func namesOffsets(c *online.Calibrator) bool {
	return slices.ContainsFunc(c.Posterior().Warnings, func(w calamp.Warning) bool { return w.Code == calamp.Offsets })
}

// Offsets that were not declared are reported, and others are not.
func TestOffsetsInStreamsAreNamed(t *testing.T) {
	tests.Long(t)
	w, c := smallWorld(t, 3)
	if namesOffsets(c) {
		t.Error("offsets are named where there are none")
	}
	c = w.calibrator(t, online.Options{})
	rng := rand.New(rand.NewPCG(3, 5))
	offsets := make([]float64, 160)
	for mu := range offsets {
		offsets[mu] = 0.05 * rng.NormFloat64()
	}
	for range 20 {
		y := w.draw()
		for mu, o := range offsets {
			y[mu] += o
		}
		absorb(t, c, y)
	}
	if !namesOffsets(c) {
		t.Errorf("offsets are not named: %v", c.Posterior().Warnings)
	}
}

// Gains that walk are followed, reported, and within their intervals; those that stay
// raise no alarm.
func TestDriftIsFollowedAndReported(t *testing.T) {
	tests.Long(t)
	w, c := smallWorld(t, 1)
	for range 60 {
		w.walk(0.003, 1)
		absorb(t, c, w.draw())
	}
	p := c.Posterior()
	rms, covered := w.calibration(c)
	t.Logf("error %.2g, %.0f %% within intervals, drift %.2g", rms, 100*covered, p.Drift)
	if !(covered > 0.85) || !(rms < 0.02) {
		t.Errorf("error %.2g, %.0f %% within 95 %% intervals", rms, 100*covered)
	}
	if !(p.Drift > 0.001 && p.Drift < 0.01) {
		t.Errorf("a drift of %g, expected about 0.003", p.Drift)
	}
	w, c = smallWorld(t, 2)
	for range 60 {
		if e := absorb(t, c, w.draw()); e.Drift != 0 {
			t.Fatalf("a drift of %g, but the gains stay", e.Drift)
		}
	}
}

// After a change every sample would contradict what was learned: it is found out
// what has changed, within ten samples.
func TestStreamRecoversFromChanges(t *testing.T) {
	tests.Long(t)
	for name, v := range map[string]struct {
		do   func(w *world)
		what string
		nmse float64 // afterwards
	}{
		"noise":      {func(w *world) { w.noise *= 26 }, "noise", 2e-2},
		"brightness": {func(w *world) { w.power *= 400 }, "signals", 1e-5},
		"gains":      {jump(0.3, 0.1), "gains", 2e-3},
	} {
		t.Run(name, func(t *testing.T) {
			w, c := smallWorld(t, 5)
			s := slices.Clone(w.s)
			v.do(w)
			var found *online.Change
			after := 0.0
			for k := range 14 {
				e := absorb(t, c, w.draw())
				if e.Change != nil && found == nil {
					found = e.Change
				}
				if k >= 10 {
					after += w.nmse(e.X) / 4
				}
			}
			if found == nil || !slices.Contains(found.What(), v.what) {
				t.Fatalf("found %+v, expected %s", found, v.what)
			}
			t.Logf("%v after %d samples, %d sensors, error %.2g", found.What(), found.Samples, len(found.Sensors), after)
			if !(after < v.nmse) {
				t.Errorf("error %.2g afterwards", after)
			}
			right := 0
			for _, mu := range found.Sensors {
				if w.s[mu] != s[mu] {
					right++
				}
			}
			if 10*right < 8*len(found.Sensors) {
				t.Errorf("of %d sensors said to have changed %d have", len(found.Sensors), right)
			}
		})
	}
}

// A stream that is certain of its model refuses samples that contradict it, and looks for no reason.
func TestCertainStreamTriesNothing(t *testing.T) {
	tests.Long(t)
	w := newWorld(t, 160, 200, 5)
	c := w.calibrator(t, online.Options{Certain: true})
	for range 25 {
		absorb(t, c, w.draw())
	}
	before := c.Snapshot().Samples
	jump(0.3, 0.1)(w)
	for range 6 {
		if e := absorb(t, c, w.draw()); e.Committed || e.Change != nil {
			t.Fatalf("learned from a sample of other gains: %+v", e.Change)
		}
	}
	if s := c.Snapshot(); len(s.Forks) > 0 || s.Samples != before {
		t.Errorf("%d forks after %d samples", len(s.Forks), s.Samples)
	}
}

// What no model explains teaches nothing, three times running or not.
func TestGarbageTeachesNothing(t *testing.T) {
	tests.Long(t)
	w, c := smallWorld(t, 6)
	garbage := map[string]func(y []float64){
		"huge":   func(y []float64) { each(y, func(float64) float64 { return 1e30 * w.rng.NormFloat64() }) },
		"zeros":  func(y []float64) { clear(y) },
		"noise":  func(y []float64) { each(y, func(float64) float64 { return w.rng.NormFloat64() }) },
		"louder": func(y []float64) { each(y, func(float64) float64 { return 1e6 * w.rng.NormFloat64() }) },
		"permuted": func(y []float64) {
			w.rng.Shuffle(len(y), func(i, j int) { y[i], y[j] = y[j], y[i] })
		},
	}
	for name, spoil := range garbage {
		t.Run(name, func(t *testing.T) {
			before := c.Snapshot()
			for range 3 {
				y := w.draw()
				spoil(y)
				if e := absorb(t, c, y); e.Committed {
					t.Fatalf("learned from it: %+v", e.Change)
				}
			}
			e := absorb(t, c, w.draw())
			if !e.Committed || e.Change != nil {
				t.Fatalf("a good sample afterwards: %s, change %+v", e.Reason(), e.Change)
			}
			after := c.Snapshot()
			if after.Samples != before.Samples+1 || len(after.Forks) > 0 || after.Alert.Left > 0 {
				t.Errorf("%d samples, before %d; %d forks", after.Samples, before.Samples, len(after.Forks))
			}
		})
	}
}

func each(y []float64, f func(float64) float64) {
	for mu, v := range y {
		y[mu] = f(v)
	}
}

// A run that is interrupted while it finds out what has changed goes on with the same
// bits.
func TestForksResume(t *testing.T) {
	tests.Long(t)
	w, through := smallWorld(t, 7)
	broken := w.calibrator(t, online.Options{})
	if err := broken.Restore(through.Snapshot()); err != nil {
		t.Fatal(err)
	}
	w.noise *= 26
	forks, changes := 0, 0
	for k := range 14 {
		y := w.draw()
		e := absorb(t, through, y)
		var state online.State
		if err := state.UnmarshalBinary([]byte(bits(t, broken))); err != nil {
			t.Fatal(err)
		}
		forks += len(state.Forks)
		broken = w.calibrator(t, online.Options{})
		if err := broken.Restore(&state); err != nil {
			t.Fatal(err)
		}
		if e.Change != nil {
			changes++
		}
		absorb(t, broken, y)
		if bits(t, through) != bits(t, broken) {
			t.Fatalf("sample %d differs after an interruption", k+1)
		}
	}
	if forks == 0 || changes == 0 {
		t.Errorf("%d forks and %d changes: nothing was tested", forks, changes)
	}
}

// A stream of one static scene says as much of the gains as a few samples.
func TestStaticSceneTeachesLittle(t *testing.T) {
	tests.Long(t)
	for _, level := range []float64{0.3, 0} {
		t.Run(fmt.Sprint(level), func(t *testing.T) {
			w := newWorld(t, 160, 200, 8)
			c := w.calibrator(t, online.Options{})
			w.level = level
			for range 30 {
				absorb(t, c, w.draw())
			}
			_, covered := w.calibration(c)
			if !(covered > 0.8) {
				t.Errorf("%.0f %% within 95 %% intervals", 100*covered)
			}
		})
	}
}

// A state that was kept without looking for drifts goes on with it, and the other way
// round.
func TestDriftOfOlderStates(t *testing.T) {
	w, c := smallWorld(t, 9)
	still := w.calibrator(t, online.Options{Still: true})
	if err := still.Restore(c.Snapshot()); err != nil {
		t.Fatal(err)
	}
	if s := still.Snapshot(); s.Drift != nil || !slices.Equal(s.Stats, c.Snapshot().Stats) {
		t.Error("what was learned is another thing without the bank")
	}
	again := w.calibrator(t, online.Options{})
	if err := again.Restore(still.Snapshot()); err != nil {
		t.Fatal(err)
	}
	if e := absorb(t, again, w.draw()); !e.Committed || again.Snapshot().Drift == nil {
		t.Error(e.Reason())
	}
	state := c.Snapshot()
	state.Drift.Parts[3] = math.NaN()
	if again.Restore(state) == nil {
		t.Error("a drift with a NaN was accepted")
	}
}

// Where most sensors stay and some walk, the intervals of these hold, too.
func TestSensorsThatWalkAreCovered(t *testing.T) {
	tests.Long(t)
	w := newWorld(t, 160, 200, 1)
	c := w.calibrator(t, online.Options{})
	const walking, samples, last = 32, 150, 20
	covered := 0.0
	for k := range samples {
		w.walk(0.005, 0.2)
		absorb(t, c, w.draw())
		if k < samples-last {
			continue
		}
		p := c.Posterior()
		var dot, square float64
		for mu, s := range p.S {
			dot += s * w.s[mu]
			square += s * s
		}
		lo, hi := p.Calibration.Interval(0.95)
		for mu, s := range w.s[:walking] {
			if s *= square / dot; lo[mu] <= s && s <= hi[mu] {
				covered += 1.0 / (walking * last)
			}
		}
	}
	if covered < 0.88 {
		t.Errorf("95 %% intervals of the sensors that walk cover %.0f %%", 100*covered)
	}
}

// Samples of one scene that a stream begins with are solved together by what they have in common and by what they differ in: gains are known better than from one sample after the other. Where they differ
// in nothing the stream goes on from one of them.
func TestWarmUpOfOneScene(t *testing.T) {
	tests.Long(t)
	for _, level := range []float64{0.2, 0} {
		errs := map[int]float64{}
		for _, warmUp := range []int{1, 20} {
			w := newWorld(t, 160, 200, 1)
			w.level = level
			c := w.calibrator(t, online.Options{WarmUp: warmUp})
			for range 30 {
				absorb(t, c, w.draw())
			}
			rms, covered := w.calibration(c)
			t.Logf("differing by %g, %d together: error %.2g, %.0f %% within intervals", level, warmUp, rms, 100*covered)
			if errs[warmUp] = rms; !(covered > 0.88) || c.Snapshot().Samples < 10 {
				t.Errorf("differing by %g, %d together: %.0f %% of s within 95 %% intervals after %d samples", level, warmUp, 100*covered, c.Snapshot().Samples)
			}
		}
		if most := errs[1]; level > 0 && !(errs[20] < 0.8*most) || level == 0 && !(errs[20] < 1.3*most) {
			t.Errorf("differing by %g: errors %v by the samples solved together", level, errs)
		}
	}
}
