package version

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// What cannot read Number says the same: a citation, and the first heading of the changelog.
func TestDocumentsSayTheSame(t *testing.T) {
	if !regexp.MustCompile(`^\d+\.\d+\.\d+$`).MatchString(Number) {
		t.Errorf("%q is no version of a release", Number)
	}
	for name, line := range map[string]string{"CITATION.cff": "version: " + Number, "CHANGELOG.md": "## " + Number} {
		text, err := os.ReadFile(filepath.Join("..", "..", name))
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains("\n"+strings.ReplaceAll(string(text), "\r\n", "\n"), "\n"+line) {
			t.Errorf("%s has no line that begins with %q", name, line)
		}
	}
}
