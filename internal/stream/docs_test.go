package stream

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

// TestLineIsDocumented wants every field of a line in the table of docs, and no
// other ones.
func TestLineIsDocumented(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "online-json.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(text), "## The line of a sample")
	table, _, _ = strings.Cut(table, "\n`scale_step` was")
	line := reflect.TypeFor[Line]()
	for k := range line.NumField() {
		name, _, _ := strings.Cut(line.Field(k).Tag.Get("json"), ",")
		if !strings.Contains(table, "\n| `"+name+"` |") {
			t.Errorf("the field %s is not in docs/online-json.md", name)
		}
	}
	if rows := strings.Count(table, "\n| `"); rows != line.NumField() {
		t.Errorf("docs/online-json.md has %d fields, a line %d", rows, line.NumField())
	}
}
