package sweep

import (
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/calamp/calamp/solver"
)

// TestReference parses the spec of docs/format/sweep.md, which has every key.
func TestReference(t *testing.T) {
	text, err := os.ReadFile("../../docs/format/sweep.md")
	if err != nil {
		t.Fatal(err)
	}
	_, spec, _ := strings.Cut(strings.ReplaceAll(string(text), "\r\n", "\n"), "```toml\n")
	spec, _, _ = strings.Cut(spec, "```\n")
	if _, err := Parse("spec.toml", spec); err != nil {
		t.Error(err)
	}
	for _, part := range []any{Spec{}, Grid{}, Solver{}, solver.Settings{}, Record{}, Limits{}} {
		kind := reflect.TypeOf(part)
		for i := range kind.NumField() {
			key := kind.Field(i).Tag.Get("toml")
			if key == "" || key == "-" || key == "rehearsal" { // which is for tests
				continue
			}
			if !regexp.MustCompile(`(?m)^(\[+)?`+key+`(\]+| = )`).MatchString(spec) && !strings.Contains(spec, "# "+key+" = ") {
				t.Errorf("docs/format/sweep.md: the spec does not have %q", key)
			}
		}
	}
}
