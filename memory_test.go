package calamp_test

import (
	"runtime"
	"testing"

	"github.com/calamp/calamp"
	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/internal/tests"
	"github.com/calamp/calamp/prior"
	"github.com/calamp/calamp/solver"
	"github.com/calamp/calamp/teacher"
)

// Large transforms are what memory limits. A problem of 2²⁰ entries is to take less than 1 GB: counted in arrays of all
// signals, with readings for half of the entries.
func TestMemoryOfTransforms(t *testing.T) {
	tests.Long(t)
	const n, m, p, most = 1 << 13, 1 << 12, 4, 24
	given := teacher.Teacher{
		N: n, M: m, P: p, Matrix: teacher.Ensemble{Kind: "hadamard"}, Signal: prior.GaussBernoulli{Density: 0.1, SignalVar: 1},
		Gain: channel.Uniform(0.8, 1.2), NoiseVar: 1e-6,
	}
	w, err := given.Matrix.Structured(m, n, 1)
	if err != nil {
		t.Fatal(err)
	}
	y, _, err := given.Readings(w, 1)
	if err != nil {
		t.Fatal(err)
	}
	held := func() float64 {
		runtime.GC()
		var stats runtime.MemStats
		runtime.ReadMemStats(&stats)
		return float64(stats.HeapAlloc) / (8 * n * p)
	}
	before, during := held(), 0.0
	opt := &calamp.Options{
		Settings: solver.Settings{MaxIter: 26},
		Outliers: calamp.Outliers{Look: true},
		Progress: func(it calamp.Iteration) {
			if it.Index == 25 {
				during = held() - before
			}
		},
	}
	if _, err := calamp.Solve(t.Context(), &calamp.Problem{
		W: w, Y: y, Prior: given.Signal, Channel: channel.Faulty{Working: channel.Gain{Prior: channel.Uniform(0.8, 1.2), NoiseVar: 1e-6}},
	}, opt); err != nil {
		t.Fatal(err)
	}
	t.Logf("%.1f arrays of all signals", during)
	if !(during > 0 && during < most) {
		t.Errorf("a run holds as much as %.1f arrays of all signals, want at most %d", during, most)
	}
}
