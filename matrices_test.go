package calamp_test

import (
	"strings"
	"testing"

	"github.com/calamp/calamp"
)

// Matrices for which AMP is not derived, solved as well as the one for which it is.
func TestMatricesOfInstruments(t *testing.T) {
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
		if res.MeansRemoved != want && !strings.HasPrefix(name, "correlated") {
			t.Errorf("%s: means removed: %t", name, res.MeansRemoved)
		}
	}
}

// What does not converge, or only to something wrong, says so and why.
func TestCauses(t *testing.T) {
	for _, c := range []struct {
		matrix string
		opt    calamp.Options
		want   string
	}{
		{"binary", calamp.Options{NoMeanRemoval: true, MaxIter: 200}, "means of W"},
		{"condition:1e4", calamp.Options{MaxIter: 200}, "ill-conditioned"},
		{"correlated:0.98", calamp.Options{MaxIter: 200}, "correlated"},
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
