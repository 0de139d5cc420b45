package evolution

import (
	"context"
	"errors"
	"math"
	"runtime"
	"testing"
	"time"

	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/internal/tests"
	"github.com/calamp/calamp/prior"
)

// hard is a model whose every average takes long: 16 GB and hours with fixed rules.
func hard() Model {
	return Model{Signal: prior.GaussBernoulli{Density: 0.2, SignalVar: 1}, Gain: channel.Uniform(1e-3, 1e3), NoiseVar: 1e-6, Alpha: 0.6, P: 1000}
}

// TestWideRange: gains over six decades with a thousand signals are averaged over in little memory. With so many signals the gain is
// known once the noise is, but for one reading in P.
func TestWideRange(t *testing.T) {
	for _, c := range []struct{ delta, lo, hi float64 }{{1e-4, 1e-3, 1e3}, {0.999, 0.9, 1.1}, {0.1, 0.9, 1.1}} { // at the others fixed rules lost the density
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		a := bayesAverages(1000, channel.Uniform(c.lo, c.hi), c.delta, 1e-4, nil)
		runtime.ReadMemStats(&after)
		if left := c.delta * a.chiHat.Value; math.Abs(left-0.999) > 1e-3 || math.Abs(a.mass.Value-1) > 0.01 {
			t.Errorf("gains in [%g, %g], δ = %g: δχ̂ = %g, mass %g", c.lo, c.hi, c.delta, left, a.mass.Value)
		}
		if took := after.TotalAlloc - before.TotalAlloc; took > 256<<20 {
			t.Errorf("gains in [%g, %g], δ = %g: %d MB", c.lo, c.hi, c.delta, took>>20)
		}
	}
}

// TestContextsAreHeeded: within an average, by every function that has a context.
func TestContextsAreHeeded(t *testing.T) {
	tests.Long(t)
	m := hard()
	wide := Mismatch{Teacher: Belief{m.Signal, m.Gain, m.NoiseVar}, Student: Belief{m.Signal, m.Gain, 2 * m.NoiseVar}, Alpha: m.Alpha, P: m.P}
	offset := m
	offset.OffsetSD = 1
	normal := m
	normal.Gain = channel.TruncatedNormal(1, 0.1, 0.1, 10)
	spectrum := Spectrum{kind: orthogonal}
	for name, call := range map[string]func(ctx context.Context) error{
		"Offline":       func(ctx context.Context) error { _, err := Offline(ctx, m, nil); return err },
		"FixedPoint":    func(ctx context.Context) error { _, err := FixedPoint(ctx, m, nil); return err },
		"Vector":        func(ctx context.Context) error { _, err := Vector(ctx, m, spectrum, nil); return err },
		"VectorFixed":   func(ctx context.Context) error { _, err := VectorFixedPoint(ctx, m, spectrum, nil); return err },
		"Online":        func(ctx context.Context) error { _, err := Online(ctx, normal, &OnlineOptions{Tol: 1e-12}); return err },
		"Mismatched":    func(ctx context.Context) error { _, err := OfflineMismatched(ctx, wide, nil); return err },
		"MismatchedFix": func(ctx context.Context) error { _, _, err := FixedPointMismatched(ctx, wide, nil); return err },
		"OnlineMismatched": func(ctx context.Context) error {
			_, err := OnlineMismatched(ctx, wide, &MonteCarloOptions{Samples: 1e7})
			return err
		},
		"Offsets": func(ctx context.Context) error {
			_, err := Offline(ctx, offset, &Options{Iterations: 10000})
			return err
		},
		"AlphaCal": func(ctx context.Context) error {
			_, err := AlphaCal(ctx, m.Signal, m.Gain, m.NoiseVar, m.P, nil)
			return err
		},
		"VectorAlphaCal": func(ctx context.Context) error {
			_, err := VectorAlphaCal(ctx, m.Signal, m.Gain, m.NoiseVar, m.P, spectrum, nil)
			return err
		},
		"Table": func(ctx context.Context) error {
			_, err := Offline(ctx, m, &Options{Table: NewTable(m.P, m.Gain, 1e-8)})
			return err
		},
	} {
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		start := time.Now()
		err := call(ctx)
		cancel()
		if took := time.Since(start); !errors.Is(err, context.DeadlineExceeded) || took > 10*time.Second {
			t.Errorf("%s: %v after %v", name, err, took)
		}
	}
}

// TestTableAfterAnEnd: a node whose computation was ended is computed by the next who asks, and who waits for it heeds a context, too.
func TestTableAfterAnEnd(t *testing.T) {
	m := hard()
	m.P = 3
	table := NewTable(m.P, m.Gain, 1e-4)
	if _, err := Offline(t.Context(), m, &Options{Tol: 1e-4, Table: table, Work: 1000}); !errors.Is(err, ErrWork) {
		t.Fatal(err)
	}
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Offline(cancelled, m, &Options{Tol: 1e-4, Table: table}); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	got, err := Offline(t.Context(), m, &Options{Tol: 1e-4, Table: table, Iterations: 1})
	if err != nil {
		t.Fatal(err)
	}
	want, err := Offline(t.Context(), m, &Options{Tol: 1e-4, Iterations: 1})
	if err != nil || math.Abs(got.Steps[0].MSEX.Value/want.Steps[0].MSEX.Value-1) > 1e-3 {
		t.Errorf("%v, expected %v (%v)", got.Steps[0], want.Steps[0], err)
	}
}

// TestErrorOfZero: where nothing stops an error from shrinking it ends at a finite number.
func TestErrorOfZero(t *testing.T) {
	m := Model{Signal: prior.GaussBernoulli{Density: 0.05, SignalVar: 1}, Gain: channel.Uniform(0.9, 1.1), Alpha: 2, P: 3}
	e, err := newEvolution(m, &Options{Tol: 1e-4})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	e.work = newWork(ctx, 0)
	defer func() {
		if v := recover(); v != nil {
			t.Errorf("still computes after 5 s: %v", v)
		}
	}()
	if s := e.step(Number{}); !(s.MSEX.Value > 0) || math.IsInf(s.MHat.Value, 1) {
		t.Error(s)
	}
}
