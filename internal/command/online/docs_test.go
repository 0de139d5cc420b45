package online

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

// TestSummaryIsDocumented requires every field of --json in docs.
func TestSummaryIsDocumented(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "online-json.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(text), "## The object of `--json`")
	table, _, _ = strings.Cut(table, "\n## ")
	summary := reflect.TypeFor[runJSON]()
	for k := range summary.NumField() {
		name, _, _ := strings.Cut(summary.Field(k).Tag.Get("json"), ",")
		if !strings.Contains(table, "`"+name+"`") {
			t.Errorf("the field %s is not in docs/online-json.md", name)
		}
	}
}
