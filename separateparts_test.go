package calamp_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/calamp/calamp"
	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/internal/tests"
	"github.com/calamp/calamp/operator"
	"github.com/calamp/calamp/prior"
	"github.com/calamp/calamp/solver"
)

// Where W is made of blocks, intervals of s hold relative to one common scale of all of them, which they did for half of the sensors, and that is said. It is so whether signals are integrated out or not.
func TestIntervalsOfSeparateParts(t *testing.T) {
	tests.Long(t)
	const blocks, m, n, signals, seeds = 5, 24, 12, 4, 3
	for _, algorithm := range []solver.Algorithm{solver.Evidence, solver.AMP} {
		inside := 0.0
		for seed := range uint64(seeds) {
			r := rand.New(rand.NewPCG(seed, 34))
			w, y, s := mat.NewDense(blocks*m, blocks*n, nil), mat.NewDense(blocks*m, signals, nil), make([]float64, blocks*m)
			w.Apply(func(mu, i int, _ float64) float64 {
				if mu/m != i/n {
					return 0
				}
				return r.NormFloat64() / math.Sqrt(n)
			}, w)
			x := gaussian(r, blocks*n, signals)
			x.Apply(func(_, _ int, v float64) float64 {
				if r.Float64() < 0.7 {
					return 0
				}
				return v
			}, x)
			y.Mul(w, x)
			for mu := range s {
				s[mu] = 1 + 0.1*r.NormFloat64()
				for k, v := range y.RawRowView(mu) {
					y.Set(mu, k, (v+1e-3*r.NormFloat64())/s[mu])
				}
			}
			table, err := operator.NewDense(blocks*m, blocks*n, w.RawMatrix().Data)
			if err != nil {
				t.Fatal(err)
			}
			opt := &calamp.Options{Learn: calamp.Learn{Noise: true, Range: true}}
			opt.Algorithm = algorithm
			res := solve(t, &calamp.Problem{
				W: table, Y: y, Prior: prior.GaussBernoulli{Density: 0.3, SignalVar: 1, Learn: prior.Density | prior.SignalVar},
				Channel: channel.Gain{Prior: channel.NormalAbout(1, 0.1), NoiseVar: 1e-4},
			}, opt)
			if find(res, calamp.SeparateParts) == nil {
				t.Errorf("%v, seed %d: no warning", algorithm, seed)
			}
			lo, hi := res.SInterval(0.95)
			off := 0.0
			for mu, v := range s {
				off += math.Log(res.S[mu]/v) / float64(len(s))
			}
			for mu, v := range s {
				if v *= math.Exp(off); lo[mu] <= v && v <= hi[mu] {
					inside += 1 / float64(seeds*len(s))
				}
			}
		}
		t.Logf("%v: %.3f", algorithm, inside)
		if inside < 0.9 {
			t.Errorf("%v: 95 %% intervals hold %.3f of s", algorithm, inside)
		}
	}
}
