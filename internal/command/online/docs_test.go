package online

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/calamp/calamp/internal/command/console"
	"github.com/calamp/calamp/online"
	"github.com/calamp/calamp/operator"
)

// TestSummaryIsDocumented requires every field of --json in docs.
func TestSummaryIsDocumented(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "online-json.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(text), "## The object of `--json`")
	table, _, _ = strings.Cut(table, "\n## ")
	w, err := operator.NewDense(1, 1, []float64{1})
	if err != nil {
		t.Fatal(err)
	}
	r := &onlineRun{calibration: &calibration{Console: &console.Console{}}, in: &material{w: w}}
	summary := r.object("", &online.Posterior{}, 0)
	for k := 0; k < len(summary); k += 2 {
		name, isName := strings.TrimSuffix(summary[k].(string), "?"), summary[k] != ""
		if isName && !strings.Contains(table, "`"+name+"`") {
			t.Errorf("the field %s is not in docs/online-json.md", name)
		}
	}
}
