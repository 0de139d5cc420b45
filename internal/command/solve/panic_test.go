package solve

import (
	"bytes"
	"context"
	"errors"
	"testing"

	"github.com/calamp/calamp"
	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/internal/command/console"
	"github.com/calamp/calamp/internal/crash"
	"github.com/calamp/calamp/prior"
	"github.com/calamp/calamp/solver"
	"github.com/calamp/calamp/teacher"
)

// TestSolverPanics: a fault inside the solver is an error, also when several
// goroutines are at work.
func TestSolverPanics(t *testing.T) {
	in, err := teacher.Teacher{
		N: 300, M: 300, P: 4, Signal: prior.GaussBernoulli{Density: 0.1, SignalVar: 1},
		Gain: channel.Uniform(0.9, 1.1), NoiseVar: 1e-6,
	}.Draw(1)
	if err != nil {
		t.Fatal(err)
	}
	var errs bytes.Buffer
	c := &console.Console{Stderr: &errs}
	p := &calamp.Problem{W: in.W, Y: in.Y, Prior: faultyPrior{prior.GaussBernoulli{Density: 0.1, SignalVar: 1}}, Channel: channel.Gain{Prior: channel.Uniform(0.9, 1.1), NoiseVar: 1e-6}}
	res, err := runSolver(context.Background(), c, "solving", p, &calamp.Options{Settings: solver.Settings{MaxIter: 10, Threads: 2}})
	if _, bug := errors.AsType[*crash.Error](err); !bug || res != nil {
		t.Fatal(err)
	}
}

// faultyPrior panics when it is asked for a posterior.
type faultyPrior struct{ prior.GaussBernoulli }

func (faultyPrior) Posterior(mean, variance, lambda, sigma []float64) {
	panic("no posterior")
}
