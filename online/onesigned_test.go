package online_test

import (
	"context"
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/internal/tables"
	"github.com/calamp/calamp/internal/tests"
	"github.com/calamp/calamp/online"
	"github.com/calamp/calamp/prior"
	"github.com/calamp/calamp/teacher"
)

// masked are positive signals behind masks of 0 and 1.
type masked struct {
	teacher.Teacher
	*teacher.Instance
}

func behindMasks(t *testing.T, n, m, p int, spread float64, seed uint64) masked {
	t.Helper()
	te := teacher.Teacher{
		N: n, M: m, P: p, Entries: prior.NonNegative{Density: 0.15, SignalVar: 1},
		Gain: channel.Uniform(1-spread, 1+spread), NoiseVar: 1e-6,
	}
	if err := te.Matrix.UnmarshalText([]byte("binary")); err != nil {
		t.Fatal(err)
	}
	in, err := te.Draw(seed)
	if err != nil {
		t.Fatal(err)
	}
	return masked{te, in}
}

func (w masked) start(t *testing.T, opt online.Options) *online.Calibrator {
	t.Helper()
	signal := prior.GaussBernoulli{Density: 0.15, SignalMean: 0.8, SignalVar: 0.36}
	c, err := online.NewCalibrator(w.W, signal, channel.Gain{Prior: w.Gain, NoiseVar: w.NoiseVar}, &opt)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func (w masked) sample(k int) []float64 {
	y := make([]float64, w.M)
	for mu := range y {
		y[mu] = w.Y.At(mu, k)
	}
	return y
}

// absorb takes samples in; those before the tenth are kept, unless they are to be learned from one by one.
func (w masked) absorb(t *testing.T, c *online.Calibrator, from, to int, oneByOne bool) {
	t.Helper()
	for k := from; k < to; k++ {
		e, err := c.Absorb(context.Background(), w.sample(k))
		if err != nil {
			t.Fatal(err)
		}
		if warm := k < online.LeastWarmUp-1 && !oneByOne; warm != (e.Reject == online.WarmingUp) {
			t.Errorf("sample %d: %v", k, e.Reason())
		}
	}
}

// off are the root mean squares of the relative errors of s beside the common scale, and of those that are stated, and the part of
// the sensors that is less than 1.96 of its own away.
func (w masked) off(c *online.Calibrator) (found, stated, covered float64) {
	p, scale, m := c.Posterior(), 0.0, float64(w.M)
	for mu, s := range p.S {
		scale += w.Truth.S[mu] / s / m
	}
	for mu, s := range p.S {
		d, v := s*scale/w.Truth.S[mu]-1, p.SVar[mu]/(s*s)
		found, stated = found+d*d/m, stated+v/m
		if d*d < 1.96*1.96*v {
			covered += 1 / m
		}
	}
	return math.Sqrt(found), math.Sqrt(stated), covered
}

// TestOneSignedStream: of positive signals behind masks of 0 and 1 all sensors read nearly the same. Samples that are learned from one by one
// then leave gains ten times as far off as they say; ten are solved together, also across a restart. Nothing changes for signals
// of both signs.
func TestOneSignedStream(t *testing.T) {
	tests.Long(t)
	w := behindMasks(t, 120, 96, 16, 0.2, 2)
	whole := w.start(t, online.Options{})
	w.absorb(t, whole, 0, 16, false)
	found, stated, _ := w.off(whole)
	single := w.start(t, online.Options{WarmUp: 1})
	w.absorb(t, single, 0, 16, true)
	alone, sure, _ := w.off(single)
	t.Logf("together: off by %.2g, stated %.2g; one by one: %.2g, %.2g", found, stated, alone, sure)
	if !(found < 1.3*stated) || !(found < 0.2*alone) {
		t.Error("not as they should be")
	}

	for _, cut := range []int{4, 12} {
		begun, again := w.start(t, online.Options{}), w.start(t, online.Options{})
		w.absorb(t, begun, 0, cut, false)
		if err := again.Restore(begun.Snapshot()); err != nil {
			t.Fatal(err)
		}
		w.absorb(t, again, cut, 16, false)
		if !reflect.DeepEqual(whole.Snapshot(), again.Snapshot()) {
			t.Errorf("after a restart at %d the state is another one", cut)
		}
	}

	begun, impatient := w.start(t, online.Options{}), w.start(t, online.Options{WarmUp: 1})
	w.absorb(t, begun, 0, 6, false)
	if err := impatient.Restore(begun.Snapshot()); err != nil {
		t.Fatal(err)
	}
	w.absorb(t, impatient, 6, 12, true)
	if s := impatient.Snapshot(); len(s.Warm) > 0 || s.Samples != 12 || begun.Restore(s) != nil {
		t.Errorf("%d samples kept after %d", len(s.Warm), s.Samples)
	}

	if _, err := w.start(t, online.Options{RangeGuessed: true}).Absorb(context.Background(), w.sample(0)); err == nil || !strings.Contains(err.Error(), "--s-range") {
		t.Errorf("with a guessed range: %v", err)
	}
	centred := w.sample(0)
	for mu := range centred {
		centred[mu] *= float64(1 - 2*(mu%2))
	}
	if e, err := w.start(t, online.Options{RangeGuessed: true}).Absorb(context.Background(), centred); err != nil || e.Reject == online.WarmingUp {
		t.Errorf("readings of both signs: %v", err)
	}
}

// TestLongOneSignedStreams measures both, against what is known of gains beforehand.
func TestLongOneSignedStreams(t *testing.T) {
	longOnly(t)
	table := tables.New(t, "", "range of s", "samples", "error of s", "stated", "inside 95 %", "one by one: error of s", "stated", "inside 95 %")
	for _, spread := range []float64{0.5, 0.2, 0.05, 0.02, 0.005} {
		for _, samples := range []int{10, 30, 100} {
			var all [6]float64
			seeds := seedCount(5)
			for seed := range uint64(seeds) {
				w := behindMasks(t, 200, 160, samples, spread, seed)
				for way, opt := range []online.Options{{}, {WarmUp: 1}} {
					c := w.start(t, opt)
					for k := range samples {
						if _, err := c.Absorb(t.Context(), w.sample(k)); err != nil {
							t.Fatal(err)
						}
					}
					found, stated, covered := w.off(c)
					for i, v := range []float64{found, stated, covered} {
						all[3*way+i] += v / float64(seeds)
					}
				}
			}
			table.Row("| ±%g %% | %d | %.1e | %.1e | %.0f %% | %.1e | %.1e | %.0f %% |", 100*spread, samples, all[0], all[1], 100*all[2], all[3], all[4], 100*all[5])
			if all[2] < 0.88 {
				t.Errorf("±%g, %d samples: %.0f %% inside", spread, samples, 100*all[2])
			}
		}
	}
}
