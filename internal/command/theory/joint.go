package theory

import (
	"context"
	"math"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/calamp/calamp/evolution"
	"github.com/calamp/calamp/internal/command/console"
	"github.com/calamp/calamp/internal/command/option"
	"github.com/calamp/calamp/recovery"
	"github.com/calamp/calamp/solver"
)

// registerJoint adds --joint, of which on says that the solver's prior has it and the others that it does not, and --correlation.
func (t *theory) registerJoint(flags *pflag.FlagSet) {
	t.belong.Register(flags)
	flags.Lookup("joint").NoOptDefVal = solver.JointOn.String()
	flags.Var(option.Number(&t.correlation, option.Between(0, 1)), "correlation", "of any two signals where they are not zero, below 1; with --joint")
}

// noArguments takes none, but for the value of --joint behind a blank, as solve has it: that of a flag which may stand alone is an argument to the parser.
func (t *theory) noArguments(cmd *cobra.Command, args []string) error {
	joint := cmd.Flags().Lookup("joint")
	if len(args) == 1 && joint != nil && joint.Changed && t.belong.On() && joint.Value.Set(args[0]) == nil {
		return nil
	}
	return console.NoArguments(cmd, args)
}

// checkJoint refuses what joint signals exclude.
func (t *theory) checkJoint(flags *pflag.FlagSet) error {
	t.joint = t.belong.On()
	if !t.joint && option.Given(flags, "correlation") {
		return console.Usage("--correlation is that of signals that share their entries: it needs --joint")
	}
	return nil
}

// jointModel is the problem that the flags describe.
func (t *theory) jointModel() evolution.JointModel {
	return evolution.JointModel{Model: t.matched(), Correlation: t.correlation}
}

// jointAt are the thresholds of joint signals. What anyone could do is open.
func (t *threshold) jointAt(ctx context.Context, rho float64) (l limits, err error) {
	m := t.jointModel()
	m.Signal.Density, m.Alpha = rho, 1
	none := evolution.Number{Value: math.NaN()}
	l = limits{density: rho, least: recovery.AlphaMin(rho, t.p), ideal: none, informed: none, enough: none}
	known, err := evolution.JointAlphaCS(ctx, m)
	if err != nil {
		return l, err
	}
	l.known = known.Value
	l.cal, err = evolution.JointAlphaCal(ctx, m, &evolution.ThresholdOptions{Target: t.target, Tol: t.tol})
	if err == nil && m.NoiseVar > 0 && t.densities.n == 0 { // seconds
		l.enough, err = evolution.JointAlphaEnough(ctx, m, enoughFactor, &evolution.ThresholdOptions{Tol: enoughTol, Points: enoughPoints})
	}
	return l, err
}

// enoughPoints are those of averages that are compared with a factor.
const enoughPoints = 1024

// jointJSON is where signals belong together.
func (t *theory) jointJSON() console.Object {
	if !t.joint {
		return nil
	}
	return console.Object{"joint", t.joint, "correlation", t.correlation}
}
