package report

import (
	"slices"
	"strings"
	"testing"

	"github.com/calamp/calamp"
	"github.com/calamp/calamp/solver"
)

// Several tries have a table of their own, above the problem; the plan, folded, comes last.
func TestTries(t *testing.T) {
	r := Report{Result: &calamp.Result{Plan: &solver.Plan{Parts: []solver.Choice{
		{Part: "faults", On: true, Why: "asked"},
		{Part: try, Why: "as asked: not converged after 1000 iterations, log evidence 3"},
		{Part: try, On: true, Why: "as asked, begun at the answer of: evidence: converged after 20 iterations, log evidence 5"},
	}}}}
	got := r.tries()
	want := [][]string{
		{"as asked", "", "Not converged after 1000 iterations, log evidence 3."},
		{"as asked, begun at the answer of: evidence", "taken", "Converged after 20 iterations, log evidence 5."},
	}
	if got == nil || !slices.EqualFunc(got.Rows, want, slices.Equal) {
		t.Errorf("%+v", got)
	}
	if plan := r.plan(); len(plan.Rows) != 1 {
		t.Errorf("%+v", plan)
	}
	var page strings.Builder
	if err := Write(&page, r); err != nil {
		t.Fatal(err)
	}
	tries, problem, plan := strings.Index(page.String(), `id="tries"`), strings.Index(page.String(), `id="problem"`), strings.Index(page.String(), `id="plan"`)
	if !(0 < problem && problem < tries && tries < plan) {
		t.Errorf("tries at %d, the problem at %d, the plan at %d", tries, problem, plan)
	}
	r.Result.Plan.Parts = r.Result.Plan.Parts[:1]
	if r.tries() != nil {
		t.Error("one run is no table of tries")
	}
}
