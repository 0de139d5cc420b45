package calamp_test

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/calamp/calamp"
	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/internal/tests"
	"github.com/calamp/calamp/operator"
	"github.com/calamp/calamp/prior"
)

// free is a problem of which nothing is known, with such a W and such readings.
func free(t *testing.T, w operator.Operator, y *mat.Dense) *calamp.Problem {
	t.Helper()
	return &calamp.Problem{
		W: w, Y: y, Prior: prior.GaussBernoulli{Density: 0.2, SignalVar: 1, Learn: prior.Density | prior.SignalVar},
		Channel: channel.Faulty{Working: channel.Gain{Prior: channel.Uniform(0.5, 1.5), NoiseVar: 0.1}},
	}
}

func gaussian(r *rand.Rand, m, n int) *mat.Dense {
	a := mat.NewDense(m, n, nil)
	a.Apply(func(int, int, float64) float64 { return r.NormFloat64() }, a)
	return a
}

// Of readings that are noise, α is not the cause, and whatever α is reported is that of the sensors which read: not 0.
func TestNoiseIsNamed(t *testing.T) {
	tests.Long(t)
	for seed := range uint64(3) {
		r := rand.New(rand.NewPCG(seed, 7))
		w := gaussian(r, 100, 128)
		table, err := operator.NewDense(100, 128, w.RawMatrix().Data)
		if err != nil {
			t.Fatal(err)
		}
		res := solve(t, free(t, table, gaussian(r, 100, 8)), &calamp.Options{Learn: calamp.Learn{Noise: true, Range: true}})
		said := res.Reason
		for _, w := range res.Warnings {
			said += "\n" + w.Message
		}
		t.Log(res.Status, said)
		if res.Status == calamp.Converged || strings.Contains(res.Reason, "close to the least") {
			t.Errorf("seed %d: %v: %s", seed, res.Status, said)
		}
		for _, alpha := range regexp.MustCompile(`α = M/N = ([0-9.]+)`).FindAllStringSubmatch(said, -1) {
			if 5*len(res.BrokenSensors) > 100 && alpha[1] != fmt.Sprintf("%.4g", 100.0/128) {
				t.Errorf("seed %d, %d sensors broken: %s", seed, len(res.BrokenSensors), alpha[0])
			}
		}
	}
}

// Where W does not mix, that is the reason.
func TestUnmixedIsNamed(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 8))
	w := mat.NewDense(60, 60, nil)
	for i := range 60 {
		w.Set(i, i, 1)
	}
	table, err := operator.NewDense(60, 60, w.RawMatrix().Data)
	if err != nil {
		t.Fatal(err)
	}
	y := gaussian(r, 60, 8)
	y.Apply(func(_, _ int, v float64) float64 { return v * float64(r.IntN(2)) }, y)
	res := solve(t, free(t, table, y), &calamp.Options{Learn: calamp.Learn{Noise: true, Range: true}})
	if res.Status == calamp.Converged || !strings.Contains(res.Reason, "one sensor alone reads each entry") {
		t.Errorf("%v: %s", res.Status, res.Reason)
	}
}
