package main

import (
	"encoding/json"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/calamp/calamp/internal/tables"
	"github.com/calamp/calamp/internal/tests"
)

// block is the first block of code in that language after a heading of a document.
func block(t *testing.T, path, heading, language string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(strings.ReplaceAll(string(text), "\r\n", "\n"), "\n## "+heading+"\n")
	_, rest, ok := strings.Cut(rest, "\n```"+language+"\n")
	code, _, closed := strings.Cut(rest, "\n```")
	if !ok || !closed {
		t.Fatalf("%s has no block of %s under %q", path, language, heading)
	}
	return code
}

var figures = regexp.MustCompile(`-?\d+(?:\.\d+)?(?:e[-+]\d+)?`)

// sameWords compares printed text: words are the same, numbers within a tenth, or within one for counts of iterations and
// times, which differ from machine to machine.
func sameWords(t *testing.T, got, want string) {
	t.Helper()
	gotLines, wantLines := strings.Split(strings.TrimSpace(got), "\n"), strings.Split(strings.TrimSpace(want), "\n")
	if len(gotLines) != len(wantLines) {
		t.Fatalf("%d lines, the document has %d:\n%s", len(gotLines), len(wantLines), got)
	}
	for i, line := range gotLines {
		if figures.ReplaceAllString(line, "0") != figures.ReplaceAllString(wantLines[i], "0") {
			t.Errorf("printed  %s\ndocument %s", line, wantLines[i])
			continue
		}
		if strings.HasPrefix(line, "status") {
			continue // iterations and time
		}
		stated := figures.FindAllString(wantLines[i], -1)
		for k, text := range figures.FindAllString(line, -1) {
			a, _ := strconv.ParseFloat(text, 64)
			b, _ := strconv.ParseFloat(stated[k], 64)
			if math.Abs(a-b) > 0.1*math.Abs(b) {
				t.Errorf("%s in %q, the document has %s", text, line, stated[k])
			}
		}
	}
}

// TestReadme runs the example of README.md, and compares what the last command prints.
func TestReadme(t *testing.T) {
	tests.Long(t)
	readme := filepath.Join("..", "..", "README.md")
	commands := strings.Split(block(t, readme, "An example", "sh"), "\n")
	want := block(t, readme, "An example", "text")
	t.Chdir(t.TempDir())
	for i, line := range commands {
		words := strings.Fields(line)
		out, err := exec.Command(words[0], words[1:]...).Output()
		if err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		if i == len(commands)-1 {
			sameWords(t, string(out), want)
		}
	}
}

// TestExampleScripts runs the scripts of examples as users do.
func TestExampleScripts(t *testing.T) {
	tests.Long(t)
	shell, err := exec.LookPath("sh")
	if err != nil {
		t.Skip("no sh")
	}
	scripts, err := filepath.Glob(filepath.Join("..", "..", "examples", "*.sh"))
	if err != nil || len(scripts) == 0 {
		t.Fatal("no scripts", err)
	}
	for i, s := range scripts {
		if scripts[i], err = filepath.Abs(s); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(t.TempDir())
	for _, s := range scripts {
		if out, err := exec.Command(shell, s).CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", s, err, out)
		}
	}
}

// TestThresholdTable computes numbers of sensors that docs/is-this-my-problem.md states; all of them with -long.
func TestThresholdTable(t *testing.T) {
	tests.Long(t)
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "is-this-my-problem.md"))
	if err != nil {
		t.Fatal(err)
	}
	cells := 0
	for r, row := range regexp.MustCompile(`(?m)^\| (P = (\d+)|gains known, no noise) \| (.*) \|$`).FindAllStringSubmatch(string(page), -1) {
		for i, stated := range strings.Split(row[3], " | ") {
			if cells++; !*tables.Long && (i+r)%4 != 0 { // a cell of each row, and of each column
				continue
			}
			density, signals, column := []string{"0.05", "0.1", "0.2", "0.4"}[i], row[2], "alpha_enough"
			if signals == "" {
				signals, column = "2", "alpha_cs"
			}
			code, out, stderr := calampRun(t, "threshold", "--density", density, "--p", signals, "--s-range", "0.5,1.5", "--noise-var", "1e-4", "--json")
			if code != 0 {
				t.Fatal(stderr)
			}
			var found map[string]any
			if err := json.Unmarshal([]byte(out), &found); err != nil {
				t.Fatal(err)
			}
			_, decimals, _ := strings.Cut(stated, ".")
			want, _ := strconv.ParseFloat(stated, 64)
			if got, _ := found[column].(float64); math.Abs(got-want) > 0.51*math.Pow10(-len(decimals)) {
				t.Errorf("ρ = %s, %s: %g, the document has %s", density, row[1], got, stated)
			}
		}
	}
	if cells != 20 {
		t.Errorf("%d cells", cells)
	}
}
