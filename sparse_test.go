package calamp_test

import (
	"math"
	"strings"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/calamp/calamp"
	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/internal/tests"
	"github.com/calamp/calamp/operator"
	"github.com/calamp/calamp/prior"
)

// Signals that are not sparse in the given basis are distinguished from those of which too few sensors read, and the basis of cosines is named where they are sparse in that.
func TestNotSparse(t *testing.T) {
	tests.Long(t)
	for _, c := range []struct {
		name string
		jointCase
		pixels bool   // signals are sparse in cosines
		want   string // part of the message; empty for no warning
	}{
		{"dense", jointCase{alpha: 0.5, density: 1}, false, "nor are they sparse in a basis of cosines"},
		{"sparse in cosines", jointCase{alpha: 0.6, density: 0.1}, true, "--basis dct:100"},
		{"recovered", jointCase{alpha: 0.8, density: 0.15}, false, ""},
		{"too few sensors", jointCase{alpha: 0.3, density: 0.15}, false, ""},
		{"dense, and found", jointCase{alpha: 1.6, density: 1}, false, "they are as right as W is"},
	} {
		c.n, c.p, c.noise = 100, 8, 1e-5
		w, y, _ := c.draw(t, 1)
		var matrix operator.Operator = w
		if c.pixels {
			basis, err := operator.Cosines(c.n)
			if err != nil {
				t.Fatal(err)
			}
			if matrix, err = operator.Compose(w, operator.Transpose(basis)); err != nil {
				t.Fatal(err)
			}
		}
		problem := learnedProblem(t, matrix, y)
		opt := &calamp.Options{Retry: true, Learn: calamp.Learn{Noise: true, Range: true}}
		opt.MaxIter = 200
		res := solve(t, problem, opt)
		message := ""
		for _, w := range res.Warnings {
			if w.Code == calamp.NotSparse {
				message = w.Message
			}
		}
		t.Logf("%s: %v, %s", c.name, res.Status, message)
		if (message != "") != (c.want != "") || !strings.Contains(message, c.want) {
			t.Errorf("%s: %v, warned %q, expected %q in it", c.name, res.Status, message, c.want)
		}
	}
}

// learnedProblem is a problem of which nothing was given.
func learnedProblem(t *testing.T, w operator.Operator, y *mat.Dense) *calamp.Problem {
	t.Helper()
	unknown := math.NaN()
	signal, gain, err := calamp.Guess(w, y, prior.GaussBernoulli{Density: unknown, SignalMean: unknown, SignalVar: unknown}, channel.Gain{Prior: channel.GainPrior{Lo: unknown, Hi: unknown}, NoiseVar: unknown})
	if err != nil {
		t.Fatal(err)
	}
	return &calamp.Problem{W: w, Y: y, Channel: gain, Prior: signal.Learning(prior.Density | prior.SignalMean | prior.SignalVar)}
}
