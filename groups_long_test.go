package calamp_test

import (
	"context"
	"math"
	"testing"

	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat"

	"github.com/calamp/calamp"
	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/evolution"
	"github.com/calamp/calamp/internal/tables"
	"github.com/calamp/calamp/internal/tests"
	"github.com/calamp/calamp/solver"
	"github.com/calamp/calamp/teacher"
)

// State evolution by the mixture over groups is what AMP does, iteration by iteration, within three
// standard errors of the mean over the problems, with the common scale removed.
func TestGroupsFollowStateEvolution(t *testing.T) {
	tests.Long(t)
	groupsFollow(t, 800, 6, func(string, ...any) {})
}

// TestLongGroups is the same for large problems, as a table.
func TestLongGroups(t *testing.T) {
	if !*long {
		t.Skip("without -long")
	}
	groupsFollow(t, 4000, 16, tables.New(t, "", "iteration", "mse of x, AMP", "standard error", "state evolution", "standard errors apart").Row)
}

func groupsFollow(t *testing.T, n, seeds int, row func(format string, values ...any)) {
	t.Helper()
	const iterations = 12
	truth := unlikeGroups(t, n)
	gain := channel.Uniform(0.9, 1.1)
	te := teacher.Teacher{N: n, M: 7 * n / 10, P: 3, Entries: truth, Gain: gain, NoiseVar: 1e-4}
	theory, err := evolution.Offline(context.Background(), evolution.Model{
		Groups: evolution.GroupsOf(truth), Gain: gain, NoiseVar: te.NoiseVar, Alpha: 0.7, P: te.P,
	}, &evolution.Options{Iterations: iterations})
	if err != nil {
		t.Fatal(err)
	}
	found := make([][]float64, iterations)
	for seed := range seeds {
		in, err := te.Draw(uint64(seed + 1))
		if err != nil {
			t.Fatal(err)
		}
		opt := &calamp.Options{Settings: solver.Settings{MaxIter: iterations, Tol: -1, Damping: solver.FixedDamping(0), Algorithm: solver.AMP}}
		opt.Observe = func(it calamp.Iteration, x, s []float64) {
			estimate := mat.DenseCopyOf(mat.NewDense(te.P, n, x).T())
			found[it.Index-1] = append(found[it.Index-1], calamp.Score(estimate, s, in.Truth).XMSEScaled)
		}
		if _, err := calamp.Solve(context.Background(), te.Problem(in), opt); err != nil {
			t.Fatal(err)
		}
	}
	for i, mse := range found {
		mean, sd := stat.MeanStdDev(mse, nil)
		want, standard := theory.Steps[i].MSEX.Value, sd/math.Sqrt(float64(seeds))
		row("| %d | %.4g | %.2g | %.4g | %+.1f |", i+1, mean, standard, want, (mean-want)/standard)
		if math.Abs(mean-want) > 3*standard {
			t.Errorf("iteration %d: mean square error %.4g ± %.2g, state evolution %.4g", i+1, mean, standard, want)
		}
	}
}
