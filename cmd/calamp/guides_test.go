package main

import (
	"io/fs"
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
var quick = []string{"docs/guides/solving.md", "docs/guides/plan.md", "docs/guides/large.md", "docs/guides/matrices.md"}

// shellBlock is a block of commands or of a file, after the comment that says why it does not run, which commands make the files that it takes,
// or what file it is; and before the block of what its last command prints, all of it or some of its lines, if there are these.
var shellBlock = regexp.MustCompile("(?ms)^(?:<!-- (not run|before|file): ([^\n]*) -->\n)?^```(?:sh|toml)\n(.*?)^```$(?:\n\n(<!-- some lines -->\n)?^```text\n(.*?)^```$)?")

// documents are the pages below docs, experiments and examples, but for those with blocks of Python: of these python/tests runs the tutorials
// and docs/python.md. TestReadme runs README.md.
func documents(t *testing.T, root string) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, dir := range []string{"docs", "experiments", "examples"} {
		err := filepath.WalkDir(filepath.Join(root, dir), func(p string, _ fs.DirEntry, err error) error {
			if err != nil || filepath.Ext(p) != ".md" {
				return err
			}
			content, err := os.ReadFile(p)
			name, _ := filepath.Rel(root, p)
			if text := strings.ReplaceAll(string(content), "\r\n", "\n"); !strings.Contains(text, "```python") {
				out[filepath.ToSlash(name)] = text
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return out
}

// output is what the last command of a block prints, or some lines of it.
type output struct {
	text string
	some bool
}

// script of a page, and what its blocks print at their ends, by where that goes.
func script(page string) (commands string, printed map[string]output) {
	var b strings.Builder
	printed = map[string]output{}
	for i, found := range shellBlock.FindAllStringSubmatch(page, -1) {
		comment, said, code, some, text := found[1], found[2], found[3], found[4], found[5]
		switch comment {
		case "not run":
			continue
		case "file":
			b.WriteString("cat >" + said + " <<'THE END'\n" + code + "THE END\n")
			continue
		case "before":
			b.WriteString(said + "\n")
		}
		if text != "" {
			lines := strings.Split(strings.TrimSuffix(code, "\n"), "\n")
			file := "printed-" + string(rune('a'+i))
			b.WriteString(strings.Join(lines[:len(lines)-1], "\n") + "\n{ " + lines[len(lines)-1] + "\n} >" + file + "\n")
			printed[file] = output{text, some != ""}
			continue
		}
		b.WriteString(code)
	}
	return b.String(), printed
}

// compare what was printed with what the document has.
func (o output) compare(t *testing.T, got string) {
	t.Helper()
	if !o.some {
		sameWords(t, got, o.text)
		return
	}
	for line := range strings.Lines(o.text) {
		if !strings.Contains("\n"+got, "\n"+line) {
			t.Errorf("without the line %q:\n%s", line, got)
		}
	}
}

// TestDocuments runs the commands of each page as they are written, in one folder a page. A block that cannot run has the line
// <!-- not run: why --> before it. One that takes files of the reader has <!-- before: commands -->, which make them (arrays), and one that is a
// file <!-- file: name -->. A block of text after one of commands is what the last command prints: the words are compared, and figures to a tenth
// (sameWords); with <!-- some lines --> before it, some lines of that.
func TestDocuments(t *testing.T) {
	shell, err := exec.LookPath("sh")
	if err != nil || runtime.GOOS == "windows" {
		t.Skip("no sh")
	}
	for name, page := range documents(t, filepath.Join("..", "..")) {
		commands, printed := script(page)
		if commands == "" {
			continue
		}
		t.Run(name, func(t *testing.T) {
			if !slices.Contains(quick, name) {
				tests.Long(t)
			}
			if _, err := exec.LookPath("jq"); err != nil && strings.Contains(commands, "\njq ") {
				t.Skip("no jq")
			}
			t.Parallel()
			c := exec.Command(shell, "-e", "-x")
			c.Dir, c.Stdin = t.TempDir(), strings.NewReader(commands)
			if out, err := c.CombinedOutput(); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			for file, want := range printed {
				got, err := os.ReadFile(filepath.Join(c.Dir, file))
				if err != nil {
					t.Fatal(err)
				}
				want.compare(t, string(got))
			}
		})
	}
}
