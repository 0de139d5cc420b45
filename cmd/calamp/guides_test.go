package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/calamp/calamp/internal/tests"
)

// quick are the pages whose commands take a second together; short runs have these alone.
var quick = []string{"guides/solving.md", "guides/plan.md", "guides/large.md", "guides/matrices.md"}

// shellBlock is a block of commands, after the comment that says why it does not run, if there is one.
var shellBlock = regexp.MustCompile("(?ms)(^<!-- not run: [^\n]* -->\n)?^```sh\n(.*?)^```$")

// TestGuides runs the commands of each page as they are written, in one folder a page. A block that cannot run has the
// line <!-- not run: why --> before it.
func TestGuides(t *testing.T) {
	shell, err := exec.LookPath("sh")
	if err != nil || runtime.GOOS == "windows" {
		t.Skip("no sh")
	}
	docs, err := filepath.Abs(filepath.Join("..", "..", "docs"))
	if err != nil {
		t.Fatal(err)
	}
	pages, err := filepath.Glob(filepath.Join(docs, "guides", "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, page := range append(pages, filepath.Join(docs, "stream.md")) {
		name, _ := filepath.Rel(docs, page)
		name = filepath.ToSlash(name)
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		var script strings.Builder
		for _, found := range shellBlock.FindAllStringSubmatch(strings.ReplaceAll(string(text), "\r\n", "\n"), -1) {
			if found[1] == "" {
				script.WriteString(found[2])
			}
		}
		if script.Len() == 0 || strings.Contains(string(text), "```python") { // which python/tests run
			continue
		}
		t.Run(name, func(t *testing.T) {
			if !slices.Contains(quick, name) {
				tests.Long(t)
			}
			t.Parallel()
			c := exec.Command(shell, "-e", "-x")
			c.Dir, c.Stdin = t.TempDir(), strings.NewReader(script.String())
			if out, err := c.CombinedOutput(); err != nil {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}
