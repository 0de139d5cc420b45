package calamp_test

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/calamp/calamp"
	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/internal/tests"
	"github.com/calamp/calamp/operator"
	"github.com/calamp/calamp/prior"
	"github.com/calamp/calamp/solver"
)

// Matrices for which AMP is not derived, solved as well as the one for which it is.
func TestMatricesOfInstruments(t *testing.T) {
	tests.Long(t)
	te := small()
	in, truth := draw(t, te, 1)
	reference := calamp.Score(solve(t, in, nil).X, nil, truth).XMSEScaled
	for _, name := range []string{"mean:1", "binary", "hadamard", "correlated:0.5", "condition:10", "uneven:0.5"} {
		if err := te.Matrix.UnmarshalText([]byte(name)); err != nil {
			t.Fatal(err)
		}
		p, truth := draw(t, te, 1)
		res := solve(t, p, nil)
		if e := calamp.Score(res.X, nil, truth).XMSEScaled; res.Status != calamp.Converged || e > 4*reference {
			t.Errorf("%s: %s, error %.2g, independent entries %.2g", name, res.Reason, e, reference)
		}
		// Correlated columns give rows means of their own; either is right there.
		want := name == "mean:1" || name == "binary"
		if removed := res.Plan.Has("mean removal"); removed != want && !strings.HasPrefix(name, "correlated") {
			t.Errorf("%s: means removed: %t", name, removed)
		}
	}
}

// A run on correlated columns that blows up in its first iterations begins anew,
// with more damping.
func TestBlownUpRunBeginsAnew(t *testing.T) {
	if testing.Short() {
		t.Skip("takes a second")
	}
	te := small()
	te.N, te.M, te.P, te.NoiseVar = 500, 400, 10, 1e-4
	if err := te.Matrix.UnmarshalText([]byte("correlated:0.7")); err != nil {
		t.Fatal(err)
	}
	p, truth := draw(t, te, 3)
	res := solve(t, p, nil)
	if e := calamp.Score(res.X, nil, truth).XMSEScaled; !(e < 2e-4) {
		t.Errorf("error %.2g; %s", e, res.Reason)
	}
}

// What does not converge, or only to something wrong, says so and why.
func TestCauses(t *testing.T) {
	tests.Long(t)
	for _, c := range []struct {
		matrix string
		opt    calamp.Options
		want   string
	}{
		{"binary", calamp.Options{Settings: solver.Settings{NoMeanRemoval: true, MaxIter: 200, Algorithm: solver.AMP}}, "means of W"},
		{"condition:1e4", calamp.Options{Settings: solver.Settings{MaxIter: 200, Algorithm: solver.AMP}}, "ill-conditioned"},
		{"correlated:0.98", calamp.Options{Joint: solver.JointOff, Settings: solver.Settings{MaxIter: 200, Algorithm: solver.AMP}}, "correlated"},
	} {
		te := small()
		if err := te.Matrix.UnmarshalText([]byte(c.matrix)); err != nil {
			t.Fatal(err)
		}
		p, _ := draw(t, te, 1)
		res := solve(t, p, &c.opt)
		if res.Status == calamp.Converged || !strings.Contains(res.Reason, c.want) {
			t.Errorf("%s: %v: %s", c.matrix, res.Status, res.Reason)
		}
	}
}

// Matrices of one row, one column, one direction, any size of the entries:
// an answer without NaN and Inf, whatever its status.
func TestDegenerateMatricesAreFinite(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 1))
	kinds := []func(mu, i int) float64{
		func(_, _ int) float64 { return 1 },
		func(mu, i int) float64 { return float64((mu + 1) * (i + 1)) },
		func(_, i int) float64 { return float64(i) },
		func(mu, _ int) float64 { return float64(1 - min(mu, 1)) },
		func(_, _ int) float64 { return 5 + 1e-12*rng.NormFloat64() },
		func(_, _ int) float64 { return 1e8 + rng.NormFloat64() },
		func(_, _ int) float64 { return 1e-150 * (1 + rng.NormFloat64()) },
	}
	for _, m := range []int{1, 2, 40} {
		for _, n := range []int{1, 2, 30} {
			for k, entry := range kinds {
				w, y := make([]float64, m*n), mat.NewDense(m, 2, nil)
				for j := range w {
					w[j] = entry(j/n, j%n)
				}
				y.Apply(func(_, _ int, _ float64) float64 { return rng.NormFloat64() }, y)
				op, err := operator.NewDense(m, n, w)
				if err != nil {
					continue // all zero
				}
				for _, noise := range []float64{0, 1} {
					p := &calamp.Problem{W: op, Y: y, Prior: prior.GaussBernoulli{Density: 0.2, SignalVar: 1}, Channel: channel.Gain{Prior: channel.Uniform(0.5, 1.5), NoiseVar: noise}}
					res, err := calamp.Solve(context.Background(), p, &calamp.Options{Settings: solver.Settings{MaxIter: 50}})
					if err != nil {
						t.Fatalf("%d×%d, kind %d: %v", m, n, k, err)
					}
					for _, v := range slices.Concat(res.X.RawMatrix().Data, res.XVar.RawMatrix().Data, res.S, res.SVar) {
						if math.IsNaN(v - v) {
							t.Fatalf("%d×%d, kind %d, Δ = %g: %g in the result, status %v", m, n, k, noise, v, res.Status)
						}
					}
				}
			}
		}
	}
}
