package cost

import (
	"context"
	"runtime"
	"testing"
	"time"

	"github.com/calamp/calamp"
	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/internal/parallel"
	"github.com/calamp/calamp/prior"
	"github.com/calamp/calamp/solver"
	"github.com/calamp/calamp/teacher"
)

// TestMemory: a run keeps what is said on paper, whichever of its sizes is the largest.
func TestMemory(t *testing.T) {
	heap := func() int64 {
		parallel.Run(2, 2, func(int) {}) // helpers hold what they did last
		runtime.GC()
		runtime.GC() // what the first left to be freed
		var s runtime.MemStats
		runtime.ReadMemStats(&s)
		return int64(s.HeapAlloc)
	}
	for _, p := range []Problem{{M: 2000, N: 300, P: 6}, {M: 300, N: 1500, P: 6}} {
		gauss := prior.GaussBernoulli{Density: 0.05, SignalVar: 1}
		te := teacher.Teacher{M: p.M, N: p.N, P: p.P, Signal: gauss, Gain: channel.Uniform(0.9, 1.1), NoiseVar: 1e-4}
		in, err := te.Draw(1)
		if err != nil {
			t.Fatal(err)
		}
		before, most := heap()-int64(8*p.M*p.N), int64(0)
		opt := &calamp.Options{Settings: solver.Settings{Algorithm: solver.AMP, MaxIter: 12}, Progress: func(calamp.Iteration) {
			most = max(most, heap()-before)
		}}
		if _, err := calamp.Solve(context.Background(), te.Problem(in), opt); err != nil {
			t.Fatal(err)
		}
		runtime.KeepAlive(in)
		said := p.On(Setup{Ranks: 1, Memory: 1 << 40}, Rates{}).Resident
		t.Logf("%+v: %d bytes, said %d", p, most, said)
		if ratio := float64(most) / float64(said); ratio < 0.9 || ratio > 1.05 {
			t.Errorf("%+v: %d bytes, said %d", p, most, said)
		}
	}
}

func TestEstimates(t *testing.T) {
	rates := Rates{Bytes: 1e-10, Single: 2e-10, Double: 3e-10, Beside: 1e-8, Disk: 1e9, Network: 1e10, Latency: 10 * time.Microsecond}
	p := Problem{M: 600_000, N: 1_000_000, P: 10, Single: true}
	many := p.On(Setup{Ranks: 256, Memory: 1 << 40}, rates)
	// By hand: 2344 rows of 10⁶ entries at (7·1 + 3)/8·1e-10 s, 1.6e6·10 numbers at 1e-8 s,
	// 8·11.25·(6e5 + 2e6)·255/256 bytes at 1e10 a second, 4 meetings of 8 messages.
	for _, c := range []struct {
		name      string
		got, want time.Duration
	}{
		{"sweep", many.Sweep, 293 * time.Millisecond},
		{"beside", many.Beside, 160 * time.Millisecond},
		{"network", many.Network, 23309 * time.Microsecond},
		{"waiting", many.Waiting, 320 * time.Microsecond},
	} {
		if off := c.got - c.want; off < -c.want/1000 || off > c.want/1000 {
			t.Errorf("%s takes %v, expected %v", c.name, c.got, c.want)
		}
	}
	if many.OnDisk || many.Limit != Arithmetic {
		t.Errorf("%+v", many)
	}
	one := p.On(Setup{Ranks: 1, Memory: 1 << 30}, rates)
	if !one.OnDisk || one.Limit != Reading || one.Sent != 0 || one.Disk != 2400*time.Second {
		t.Errorf("%+v", one)
	}
	if least := p.Least(200e9, rates); least != 12 {
		t.Errorf("%d ranks of 200 GB hold 2.4 TB", least)
	}
	if least := p.Least(1000, rates); least != 0 {
		t.Errorf("%d ranks of 1 kB hold 2.4 TB", least)
	}
}

// TestMeasures: rates are those of a machine, and in proportion to the signals.
func TestMeasures(t *testing.T) {
	if testing.Short() {
		t.Skip("takes a second")
	}
	r, err := Measure(Problem{M: 500, N: 1000, P: 2, Single: true}, 1)
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range []float64{r.Single, r.Double, r.Beside} {
		if !(v > 1e-12 && v < 1e-4) {
			t.Errorf("%+v", r)
		}
	}
}
