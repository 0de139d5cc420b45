package option

import (
	"github.com/spf13/pflag"

	"github.com/calamp/calamp"
	"github.com/calamp/calamp/internal/command/console"
	"github.com/calamp/calamp/solver"
)

// Joint is --joint: whether signals belong together.
type Joint struct{ which solver.Joint }

// Register adds the flag.
func (j *Joint) Register(flags *pflag.FlagSet) {
	flags.Var(Text(&j.which, OneOf(solver.AutoJoint, solver.JointOn, solver.JointOff)), "joint", About("joint"))
}

// On reports whether signals are said to belong together.
func (j *Joint) On() bool { return j.which == solver.JointOn }

// Check refuses problems of p signals in which nothing can belong together, and says what is asked where processes share the work.
func (j *Joint) Check(p int, ranks bool) (solver.Joint, error) {
	switch {
	case j.which == solver.JointOn && p < 2:
		return j.which, console.Usage("--joint on: the problem has one signal, expected 2 or more that could have something in common")
	case j.which == solver.JointOn && ranks:
		return j.which, console.Usage("--joint on is for one process: leave out --mpi")
	case ranks:
		return solver.JointOff, nil
	}
	return j.which, nil
}

// JSON is the flag, with what res found: the expected number of entries that are not zero, where signals belong together, and the largest
// correlation of two signals where they are not zero.
func (j *Joint) JSON(res *calamp.Result) console.Object {
	rows, largest := 0.0, 0.0
	if res.Support != nil {
		rows, largest = jointRows(res), res.LargestCorrelation()
	}
	return console.Object{"joint", j.which.String(), "joint_rows?", rows, "joint_correlation?", largest}
}

// Line says what signals have in common.
func (j *Joint) Line(text *console.Summary, res *calamp.Result) {
	if res.Support == nil {
		return
	}
	what, entries := "signals", "entries"
	if res.Latent != nil {
		what, entries = "latents", "latents"
	}
	text.Line("joint", "the %s belong together: %.4g of %d %s are there in all of them; correlations of up to %s", what, jointRows(res), len(res.Support), entries, console.Short(res.LargestCorrelation()))
}

func jointRows(res *calamp.Result) (total float64) {
	for _, v := range res.Support {
		total += v
	}
	return total
}
