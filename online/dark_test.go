package online_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/calamp/calamp"
	"github.com/calamp/calamp/internal/gainkind"
	"github.com/calamp/calamp/internal/tests"
	"github.com/calamp/calamp/online"
)

// dark returns the readings of no signal.
func (w *world) dark() []float64 {
	clear(w.x)
	return w.readings()
}

// stated compares the error of the latest signal, at the best scale, with what is stated of it: both squared and summed.
func (w *world) stated(e *online.Estimate) (error2, variance float64) {
	var dot, own float64
	for i, x := range e.X {
		dot += x * w.x[i]
		own += x * x
	}
	f := dot / max(own, math.SmallestNonzeroFloat64)
	for i, x := range e.X {
		error2 += (f*x - w.x[i]) * (f*x - w.x[i])
		variance += f * f * e.XVar[i]
	}
	return error2, variance
}

// darkTally is what became of a stream of which some samples are dark.
type darkTally struct {
	samples, rejected, dark, learned int
	covered                          float64
}

// darkStream absorbs so many good samples, and then 300 of which the part is dark; with a half, every second one.
func darkStream(t *testing.T, seed uint64, good, samples int, part float64) (d darkTally) {
	w := newWorld(t, 160, 200, seed)
	c := w.calibrator(t, online.Options{})
	for k := range good + samples {
		dark := k >= good && w.rng.Float64() < part
		if part == 0.5 {
			dark = k >= good && (k+int(seed))%2 == 0
		}
		if dark {
			d.dark++
			if absorb(t, c, w.dark()).Committed {
				d.learned++
			}
			continue
		}
		d.samples++
		if !absorb(t, c, w.draw()).Committed {
			d.rejected++
		}
	}
	_, d.covered = w.calibration(c)
	return d
}

// Every second sample is dark, from the first or the second on: these teach nothing, and the others are learned from.
func TestDarkSamplesTeachNothing(t *testing.T) {
	tests.Long(t)
	for seed := range uint64(2) {
		d := darkStream(t, seed, 0, 40, 0.5)
		t.Logf("%+v", d)
		if d.learned > 0 || d.rejected > 1 || d.covered < 0.88 {
			t.Errorf("seed %d: %+v", seed, d)
		}
	}
}

// Dark samples are quieter than others where light itself is noisy. These teach nothing either, or the noise learned falls with them.
func TestQuietDarkSamplesTeachNothing(t *testing.T) {
	tests.Long(t)
	w := newWorld(t, 160, 200, 1)
	c := w.calibrator(t, online.Options{})
	noise := w.noise
	for k := range 24 {
		if k%2 == 1 {
			w.noise = noise * []float64{1e-2, 1e-6, 1e-60}[k/2%3]
			if e := absorb(t, c, w.dark()); e.Committed || e.Reject != online.NoSignal {
				t.Errorf("dark sample %d: %v", k, e.Reject)
			}
			continue
		}
		w.noise = noise
		if e := absorb(t, c, w.draw()); !e.Committed {
			t.Errorf("sample %d: %s", k, e.Reason())
		}
	}
}

// A dark sample leaves the state as it is.
func TestDarkSampleIsNamed(t *testing.T) {
	w := newWorld(t, 160, 200, 3)
	c := w.calibrator(t, online.Options{})
	for range 4 {
		absorb(t, c, w.draw())
	}
	before, err := c.Snapshot().AppendBinary(nil)
	if err != nil {
		t.Fatal(err)
	}
	e := absorb(t, c, w.dark())
	if e.Committed || e.Reject != online.NoSignal || e.Reject.String() != "no signal" {
		t.Errorf("a dark sample: %v, %s", e.Reject, e.Reason())
	}
	if after, err := c.Snapshot().AppendBinary(nil); err != nil || !slices.Equal(before, after) {
		t.Errorf("it has changed the state; %v", err)
	}
	if e := absorb(t, c, w.draw()); !e.Committed {
		t.Errorf("a good sample afterwards: %s", e.Reason())
	}
}

// staticTally is what became of a stream of one scene.
type staticTally struct {
	covered, error2, variance float64
	offsets, flagged          bool
}

func staticStream(t *testing.T, seed uint64, m, samples int, noise, level float64) (s staticTally) {
	w := newWorld(t, m, 200, seed)
	w.noise, w.level = noise, level
	c := w.calibrator(t, online.Options{})
	for k := range samples {
		e := absorb(t, c, w.draw())
		if e2, v := w.stated(e); k >= samples/2 {
			s.error2 += e2
			s.variance += v
		}
		s.flagged = s.flagged || len(e.Flagged) > 0
		s.offsets = s.offsets || k%5 == 4 && namesOffsets(c)
	}
	_, s.covered = w.calibration(c)
	return s
}

// A scene that stays names no offsets and no sensors, and what is stated of x holds.
func TestStaticSceneNamesNothing(t *testing.T) {
	tests.Long(t)
	for seed := range uint64(2) {
		s := staticStream(t, seed, 160, 45, 1e-4, 0)
		ratio := math.Sqrt(s.error2 / s.variance)
		t.Logf("%+v, error %.2f times what is stated", s, ratio)
		if s.offsets || s.flagged || s.covered < 0.88 || ratio > 1.2 {
			t.Errorf("seed %d: %+v, error %.2f times what is stated", seed, s, ratio)
		}
	}
}

// hiddenTally is what became of a stream with few sensors more than it takes, gains that walk and wrong readings.
type hiddenTally struct {
	samples, unconverged, rejected, wrong, found, others int
	error2, variance                                     float64 // of all samples, in what is stated of each
	covered                                              float64
}

func (h *hiddenTally) stream(t *testing.T, seed uint64, samples int, rate float64, kind gainkind.WrongReading) {
	w := newWorld(t, 120, 200, seed)
	w.density = 0.2
	rng := rand.New(rand.NewPCG(seed, 77))
	c := w.calibrator(t, online.Options{})
	for k := range samples {
		w.walk(0.001, 1)
		y, wrong := w.draw(), make([]bool, len(w.s))
		for mu := range y {
			if wrong[mu] = rng.Float64() < rate; wrong[mu] {
				y[mu] = kind.Spoil(y[mu], math.Sqrt(w.noise), math.Sqrt(w.density*w.power), rng)
			}
		}
		e := absorb(t, c, y)
		if k < 20 {
			continue
		}
		h.samples++
		if e.Status != calamp.Converged {
			h.unconverged++
		}
		if !e.Committed {
			h.rejected++
		}
		e2, v := w.stated(e)
		h.error2 += e2 / v
		h.variance++
		for mu, is := range wrong {
			out := slices.Contains(e.Masked, mu)
			switch {
			case is && out:
				h.found++
			case out:
				h.others++
			}
			if is {
				h.wrong++
			}
		}
	}
	_, covered := w.calibration(c)
	h.covered += covered
}

// Wrong readings that keep a sample from converging are found, where few sensors more than it takes hold them down.
func TestWrongReadingsThatHideAreFound(t *testing.T) {
	tests.Long(t)
	var h hiddenTally
	h.stream(t, 0, 110, 0.01, gainkind.WrongReadings[0])
	t.Logf("%+v", h)
	if h.rejected > 1 || 10*h.found < 9*h.wrong || h.others > 5 || math.Sqrt(h.error2/h.variance) > 1.2 {
		t.Errorf("%+v, error %.2f times what is stated", h, math.Sqrt(h.error2/h.variance))
	}
}

// Noise repeats no pattern: no sample of a scene that does not change is taken for that, of however few sensors.
func TestRepeatedSceneIsNotDark(t *testing.T) {
	tests.Long(t)
	w := newWorld(t, 80, 200, 1)
	c := w.persisting(t, false, online.Options{Block: 1})
	for k := range 40 {
		w.evolve(k, 1, 1)
		if e := absorb(t, c, w.draw()); e.Reject == online.NoSignal {
			t.Errorf("sample %d: %v", k, e.Reject)
		}
	}
}
