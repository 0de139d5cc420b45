package option

import (
	"github.com/spf13/pflag"

	"github.com/calamp/calamp"
	"github.com/calamp/calamp/internal/command/console"
	"github.com/calamp/calamp/internal/report"
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

// JointJSON is what was found, for output.
type JointJSON struct {
	Joint   string  `json:"joint"`                       // the flag
	Rows    float64 `json:"joint_rows,omitempty"`        // the expected number of entries that are not zero, where signals belong together
	Largest float64 `json:"joint_correlation,omitempty"` // the largest correlation of two signals where they are not zero
}

// JSON is the flag, with what res found.
func (j *Joint) JSON(res *calamp.Result) JointJSON {
	out := JointJSON{Joint: j.which.String()}
	if res.Support != nil {
		out.Rows, out.Largest = jointRows(res), res.LargestCorrelation()
	}
	return out
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

// Fields is the flag for the report.
func (j *Joint) Fields() []report.Field {
	return []report.Field{{Name: "signals belong together", Value: j.which.String()}}
}

func jointRows(res *calamp.Result) (total float64) {
	for _, v := range res.Support {
		total += v
	}
	return total
}
