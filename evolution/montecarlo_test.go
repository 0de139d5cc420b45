package evolution

import (
	"context"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/internal/quadrature"
	"github.com/calamp/calamp/internal/tables"
	"github.com/calamp/calamp/prior"
)

// Measurements too long for every run: go test -run Long -long -v ./evolution
var long = tables.Long

func longOnly(t *testing.T) {
	t.Helper()
	if !*long {
		t.Skip("a long measurement: add -long")
	}
}

// randomMismatch draws a problem, P in 1…20, and some error reached on the way.
func randomMismatch(rng *rand.Rand, matched bool) Mismatch {
	belief := func() Belief {
		half := 0.02 + 0.4*rng.Float64()
		return Belief{
			Signal:   prior.GaussBernoulli{Density: 0.1 + 0.8*rng.Float64(), SignalVar: 0.5 + rng.Float64()},
			Gain:     channel.Uniform(1-half, 1+half),
			NoiseVar: math.Pow(10, -1-5*rng.Float64()),
		}
	}
	m := Mismatch{Teacher: belief(), Alpha: 0.3 + rng.Float64(), P: 1 + rng.IntN(20)}
	m.Student = m.Teacher
	if !matched {
		m.Student = belief()
		m.Student.NoiseVar = m.Teacher.NoiseVar * math.Pow(10, 2*rng.Float64()-1)
	}
	return m
}

// compareWithSampling runs a few deterministic iterations, and the last of them
// by sampling from the same state. It returns the ratio of the times to reach
// the deterministic error.
func compareWithSampling(t *testing.T, m Mismatch, samples int, seed uint64) float64 {
	t.Helper()
	e, err := newMismatched(m, &Options{Tol: 1e-8})
	if err != nil {
		t.Fatal(err)
	}
	for range 4 {
		e.step()
	}
	q0 := e.q0
	before := Overlaps{
		Q: Number{Value: e.mse + q0 - 2*e.loss}, M: Number{Value: q0 - e.loss}, V: Number{Value: e.v},
	}
	start := time.Now()
	var want Overlaps
	if m.Teacher == m.Student {
		b, _ := newEvolution(Model{Signal: m.Teacher.Signal, Gain: m.Teacher.Gain, NoiseVar: m.Teacher.NoiseVar, Alpha: m.Alpha, P: m.P}, &Options{Tol: 1e-8})
		s, _ := b.at(e.v)
		want = Overlaps{MSEX: s.MSEX, V: s.MSEX, QHat: s.MHat, MHat: s.MHat, ChiHat: s.MHat, MSES: s.MSES}
		want.Q = Number{q0 - s.MSEX.Value, s.MSEX.Err}
		want.M = want.Q
	} else {
		want = e.step()
	}
	exact := time.Since(start)
	start = time.Now()
	s, err := newSampling(Sampled{
		Truth: m.Teacher.Truth(), Prior: m.Student.Signal, Channel: m.Student.Channel(), Alpha: m.Alpha, P: m.P,
	}, &MonteCarloOptions{Samples: samples, Seed: seed})
	if err != nil {
		t.Fatal(err)
	}
	got := s.output(before, q0)
	entry := got
	// The entries' averages are compared given the exact output side.
	entry.QHat, entry.MHat, entry.ChiHat = want.QHat, want.MHat, want.ChiHat
	s.input(&entry)
	sampled := time.Since(start)
	for _, c := range []struct {
		name      string
		got, want Number
	}{
		{"q̂", got.QHat, want.QHat},
		{"m̂", got.MHat, want.MHat},
		{"χ̂", got.ChiHat, want.ChiHat},
		{"mse_s", got.MSES, want.MSES},
		{"q", entry.Q, want.Q},
		{"m", entry.M, want.M},
		{"V", entry.V, want.V},
		{"mse_x", entry.MSEX, want.MSEX},
	} {
		if d := math.Abs(c.got.Value - c.want.Value); d > 3*c.got.Err+c.want.Err {
			t.Errorf("%+v: %s = %v, sampled %v: %.1f standard errors", m, c.name, c.want, c.got, d/c.got.Err)
		}
	}
	// How much longer sampling would take to the quadrature's error of q̂: its time
	// grows with the inverse square of the error.
	need := got.QHat.Relative() / want.QHat.Relative()
	return float64(sampled) * need * need / float64(exact)
}

func TestQuadratureAgainstSampling(t *testing.T) {
	for _, matched := range []bool{true, false} {
		rng := rand.New(rand.NewPCG(3, 5))
		worst := math.Inf(1)
		n := 1 // problem of each kind; ten with -long
		switch {
		case *long:
			n = 10
		case testing.Short() && !matched:
			continue
		case matched && !testing.Short():
			n = 4
		}
		for i := range n {
			worst = min(worst, compareWithSampling(t, randomMismatch(rng, matched), 20000, uint64(i)))
		}
		t.Logf("matched %v: sampling takes at least %.1e times as long to the same error", matched, worst)
	}
}

// The error on s at P = 2 and 3 is dominated by rare sensors whose readings are
// all small, which fixed rules miss: sampling decides.
func TestLongErrorOnGainsBySampling(t *testing.T) {
	longOnly(t)
	for _, p := range []int{2, 3} {
		m := paperModel(0.2, 0.6, 1e-8, p)
		pt, err := FixedPoint(context.Background(), m, nil)
		if err != nil {
			t.Fatal(err)
		}
		delta := (pt.MSEX.Value + m.NoiseVar) / (0.2 + m.NoiseVar)
		rng := rand.New(rand.NewPCG(1, 2))
		var got moments
		for range 3_000_000 {
			r2 := 0.0
			for range p {
				z := rng.NormFloat64()
				r2 += z * z
			}
			s0 := m.Gain.Lo + (m.Gain.Hi-m.Gain.Lo)*rng.Float64()
			// ω∥ = c r + √κ u in units of √T₀.
			t := s0 * (1 - delta + math.Sqrt((1-delta)*delta)*rng.NormFloat64()/math.Sqrt(r2))
			q := posterior(m.Gain, float64(p), r2/(s0*s0*delta), t, quadrature.Fast)
			got.add(q.Var)
		}
		n := got.number()
		t.Logf("P=%d: %v, sampled %v", p, pt.MSES, n)
		if math.Abs(n.Value-pt.MSES.Value) > 3*n.Err {
			t.Errorf("P=%d: %v, sampled %v", p, pt.MSES, n)
		}
	}
}
