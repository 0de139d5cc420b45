package prose

import (
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var root = filepath.Join("..", "..")

func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(name)))
	if err != nil {
		t.Fatal(err)
	}
	return strings.ReplaceAll(string(text), "\r\n", "\n")
}

// pages are README.md and the others for users and contributors.
func pages(t *testing.T) []string {
	t.Helper()
	out := []string{"README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md"}
	err := fs.WalkDir(os.DirFS(root), "docs", func(p string, _ fs.DirEntry, err error) error {
		if err == nil && strings.HasSuffix(p, ".md") {
			out = append(out, p)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TestFigures compares figures of the documents with the tables they are from.
func TestFigures(t *testing.T) {
	tables, figures, results := map[string]Table{}, 0, &Results{Docs: filepath.Join(root, "docs")}
	for _, name := range pages(t) {
		for k, v := range Tables(read(t, name)) {
			tables[k] = v
		}
	}
	for _, name := range pages(t) {
		for _, f := range Figures(read(t, name)) {
			figures++
			if err := f.Check(tables, results); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
	if figures < 30 {
		t.Errorf("only %d figures have a comment that says where they are from", figures)
	}
}

var measurement = regexp.MustCompile("`\\.ci/long (Long\\w+)`")

// TestMeasurements wants the long tests that the claims name.
func TestMeasurements(t *testing.T) {
	var names []string
	err := filepath.WalkDir(root, func(p string, _ fs.DirEntry, err error) error {
		if err == nil && strings.HasSuffix(p, "_test.go") {
			text, err := os.ReadFile(p)
			if err != nil {
				return err
			}
			for _, found := range regexp.MustCompile(`(?m)^func Test(Long\w+)\(`).FindAllStringSubmatch(string(text), -1) {
				names = append(names, found[1])
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, found := range measurement.FindAllStringSubmatch(read(t, "docs/claims.md"), -1) {
		if !slices.ContainsFunc(names, func(name string) bool { return strings.HasPrefix(name, found[1]) }) {
			t.Errorf("there is no long test %s", found[1])
		}
	}
}

// budget is the most words that a page may have; guides have 600, and tutorials 900, without a line here.
var budget = map[string]int{
	"README.md": 600, "CHANGELOG.md": 250, "CONTRIBUTING.md": 1300, "SECURITY.md": 300, "docs/architecture.md": 1200, "docs/is-this-my-problem.md": 1000,
	"docs/claims.md": 1000, "docs/trust.md": 2000, "docs/glossary.md": 600, "docs/stability.md": 400, "docs/speed.md": 800, "docs/page.md": 660,
	"docs/stream.md": 600, "docs/sweeps.md": 600, "docs/cluster.md": 600, "docs/online-json.md": 1700, "docs/nearly-known-matrix.md": 900,
	"docs/theory.md": 1200, "docs/results/peers.md": 800, "docs/results/README.md": 800, "docs/results/field.md": 600,
	"docs/guides/single-pixel-camera.md": 900, "docs/guides/microphone-array.md": 900, "docs/guides/a-stream.md": 900,
	"docs/guides/imager.md": 900, "docs/guides/radar.md": 900,
	"docs/decisions/2026-11.md": 1700, "docs/derivations.md": 4000, "docs/library.md": 950, "docs/python.md": 700,
}

// theirs says whether a page is for users to read from its beginning: not those for contributors, not the log of measurements, and not the reference,
// which is looked up, and mostly generated.
func theirs(name string) bool {
	for _, apart := range []string{"docs/log/", "docs/decisions/", "docs/architecture.md", "CONTRIBUTING.md", "docs/warnings/", "docs/reference/", "docs/format/", "docs/online-json.md", "docs/model.md"} {
		if strings.HasPrefix(name, apart) {
			return false
		}
	}
	return true
}

// TestWordsOfUserDocuments holds their sum, and each guide, below what a reader can be asked for.
func TestWordsOfUserDocuments(t *testing.T) {
	sum := 0
	for _, name := range pages(t) {
		if theirs(name) {
			sum += len(Words(Text(read(t, name))))
		}
	}
	if sum > 22000 {
		t.Errorf("user documents have %d words, at most 22000", sum)
	}
	t.Logf("%d words", sum)
}

// private are words that mean something to those alone who wrote them.
var private = []string{"told", "at rest", "alike", "like no other", "nobody's", "believes"}

// TestStyle of the pages that have a budget: words in all, sentences of more than 30 words, words that no reader outside of the project knows.
func TestStyle(t *testing.T) {
	for _, name := range pages(t) {
		most, has := budget[name]
		switch {
		case has:
		case strings.HasPrefix(name, "docs/guides/"):
			most = 600
		case theirs(name):
			t.Errorf("%s has no budget of words", name)
			continue
		default:
			continue
		}
		page := read(t, name)
		if n := len(Words(Text(page))); n > most {
			t.Errorf("%s has %d words, at most %d", name, n, most)
		}
		var long []string
		sentences := Sentences(page)
		for _, s := range sentences {
			if len(Words(s)) > 30 {
				long = append(long, s)
			}
		}
		if 50*len(long) > len(sentences) {
			t.Errorf("%s: %d of %d sentences have more than 30 words:\n%s", name, len(long), len(sentences), strings.Join(long, "\n"))
		}
		if name == "CONTRIBUTING.md" {
			page, _, _ = strings.Cut(page, "## Words") // which shows what not to write
		}
		if found := Uses(page, private); len(found) > 0 {
			t.Errorf("%s uses %s", name, strings.Join(found, ", "))
		}
	}
}

var (
	// coined are the private words, in identifiers as well, and kept the names that have them for scripts: codes of warnings.
	coined = regexp.MustCompile(`(?i:\b(?:un)?told\b|\bat rest\b|\balike\b|like no other|nobody)|Told|[aA]tRest|Alike|\btold[A-Z]|\balike[A-Z]`)
	kept   = regexp.MustCompile(`told-s-range|(?:told|Told)-?[cC]ontradicted|(?:signals|Signals|columns|Columns)-?[aA]like`)
)

// TestWordsOfCode: no comment, identifier, message or document has them, but for the examples of CONTRIBUTING.md, and this folder.
func TestWordsOfCode(t *testing.T) {
	kinds := []string{".go", ".py", ".m", ".js", ".html", ".css", ".md", ".txtar", ".toml", ".ipynb", ".s", ".yml"}
	err := filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		switch name := filepath.ToSlash(strings.TrimPrefix(p, root+string(filepath.Separator))); {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == ".git" || name == "internal/prose"):
			return filepath.SkipDir
		case d.IsDir() || !slices.Contains(kinds, filepath.Ext(p)) && !strings.HasPrefix(name, ".ci/") && !strings.HasPrefix(name, "scripts/"):
			return nil
		default:
			text := read(t, name)
			if name == "CONTRIBUTING.md" {
				text, _, _ = strings.Cut(text, "## Words")
			}
			for i, line := range strings.Split(text, "\n") {
				if found := coined.FindString(kept.ReplaceAllString(line, "")); found != "" {
					t.Errorf("%s:%d has %q", name, i+1, found)
				}
			}
			return nil
		}
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestFigure(t *testing.T) {
	tables := Tables(`
<!-- figures: LongOne -->
| kind | α = 1 | share |
| --- | --- | --- |
| a | 9/10, 1.26 (3) | 0.941 |
| b | 10/10, 2.04 (7) | 0.95 |
`)
	for text, good := range map[string]bool{
		"1.3<!-- min LongOne: α = 1 #3 --> times":    true,
		"1.2<!-- min LongOne: α = 1 #3 -->":          false,
		"19<!-- sum LongOne: * -->":                  false, // the last column, too
		"19<!-- sum LongOne: α = 1 -->":              true,
		"94<!-- min% LongOne: share --> %":           true,
		"95.0<!-- max% LongOne: share; kind!=a -->":  true,
		"2.04<!-- max LongOne: α = 1 #3; kind=b -->": true,
		"2<!-- rows LongOne -->":                     true,
		"1<!-- min LongOne: beta -->":                false,
		"1<!-- min LongTwo: share -->":               false,
		"1<!-- min LongOne: share; kind=c -->":       false,
		"1<!-- rows LongOne; share>=0.95 -->":        true,
		"0<!-- rows LongOne; share<0.94 -->":         true,
		"1<!-- rows LongOne; share>0.95 -->":         false,
	} {
		figures := Figures(text)
		if len(figures) != 1 {
			t.Errorf("%s: %d figures", text, len(figures))
			continue
		}
		if err := figures[0].Check(tables, nil); (err == nil) != good {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func TestSentences(t *testing.T) {
	page := "# A title\n\nOne two. Three `four five`\nsix: seven eight\n\n- nine ten\n- eleven twelve\n\n    a = b\n\n```sh\ncode code\n```\n| cell one | cell two |\n"
	want := []string{"One two", "Three `four five` six", "seven eight", "nine ten", "eleven twelve", "cell one", "cell two"}
	if got := Sentences(page); !slices.Equal(got, want) {
		t.Errorf("%q, expected %q", got, want)
	}
	if n := len(Words(Text("a [b c](d/e f) — 1 <!-- x y --> d"))); n != 5 {
		t.Errorf("%d words", n)
	}
	if got := Uses("It was told; `alike` and signals-alike are code, nothing is At\nrest.", private); !slices.Equal(got, []string{"told", "at rest"}) {
		t.Errorf("found %q", got)
	}
}

// TestPeers compares the table of docs/results/peers.md with every single run.
func TestPeers(t *testing.T) {
	f, err := os.Open(filepath.Join(root, "docs", "results", "peers.json.gz"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	unpacked, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	var runs []struct {
		Alpha, Half, Error float64
		Method             string
		Inside             *float64
	}
	if err := json.NewDecoder(unpacked).Decode(&runs); err != nil {
		t.Fatal(err)
	}
	page, methods := read(t, "docs/results/peers.md"), 0
	for _, line := range strings.Split(page, "\n") {
		cells := strings.Split(strings.Trim(line, "| "), " | ")
		if len(cells) != 9 || cells[0] == "method" || strings.HasPrefix(cells[0], "---") {
			continue
		}
		methods++
		inside, covered := 0.0, 0.0
		for _, r := range runs {
			if r.Method == cells[0] && r.Inside != nil {
				inside, covered = inside+100**r.Inside, covered+1
			}
		}
		want := "–"
		if covered > 0 {
			want = fmt.Sprintf("%.0f %%", inside/covered)
		}
		if cells[7] != want {
			t.Errorf("%s: %s of s inside, the runs have %s", cells[0], cells[7], want)
		}
		for i, half := range []float64{0.05, 0.5} {
			for j, alpha := range []float64{0.4, 0.6, 0.8} {
				var errors []float64
				good := 0
				for _, r := range runs {
					if r.Method == cells[0] && r.Half == half && r.Alpha == alpha {
						errors = append(errors, r.Error)
						if r.Error < 1e-4 {
							good++
						}
					}
				}
				slices.Sort(errors)
				n := len(errors)
				if n == 0 {
					t.Fatalf("%s has no runs", cells[0])
				}
				want := fmt.Sprintf("%d of %d, %.1e", good, n, (errors[(n-1)/2]+errors[n/2])/2)
				if got := cells[1+3*i+j]; got != want {
					t.Errorf("%s, α = %g, half of the range %g: %s, the runs have %s", cells[0], alpha, half, got, want)
				}
			}
		}
	}
	if methods < 12 {
		t.Errorf("the table has %d methods", methods)
	}
}

// first are README and the pages after it, in the order of the site's menu, then the two that all others lead to.
var first = []string{
	"README.md", "docs/is-this-my-problem.md", "docs/guides/single-pixel-camera.md", "docs/guides/microphone-array.md", "docs/guides/a-stream.md",
	"docs/guides/solving.md", "docs/trust.md",
}

// defined are terms with the words that define them in the first pages; a term without any leads to the glossary where it is first used.
var defined = map[string]string{
	"gain": "multiplies what it reads by a **gain**", "calibration": "s is the **calibration**", "sparse": "are **sparse**: few of their entries", "snapshot": "one column a snapshot",
	"α": "α is M/N", "ρ": "a fraction ρ", "common scale": "this **common scale**", "offset": "An **offset** is", "anchor": "an **anchor**",
	"density": "the density ρ", "residual": "residuals: of order one",
	"prior": "", "posterior": "", "evidence": "", "likelihood": "", "hyperparameter": "", "message passing": "", "fixed point": "", "support": "", "damping": "",
	"gauge": "", "nuisance": "", "vector AMP": "", "Gauss–Bernoulli": "", "coverage": "",
}

// TestTermsAreDefined: no term of the field is used in the first pages before its definition, or a link to the glossary.
func TestTermsAreDefined(t *testing.T) {
	for term, words := range defined {
		use := regexp.MustCompile(`(^|[^\pL-])` + regexp.QuoteMeta(term) + `s?($|[^\pL-])`)
		for _, name := range first {
			page := inline.ReplaceAllString(comment.ReplaceAllString(fence.ReplaceAllString(read(t, name), ""), ""), "`")
			page, _, _ = strings.Cut(page, "\n## Support")                                    // of the project
			page = strings.Replace(page, "**Blind calibration from sparse signals.**", "", 1) // its name
			at := use.FindStringIndex(page)
			if at == nil {
				continue
			}
			linked := regexp.MustCompile(`\[[^\]]*` + regexp.QuoteMeta(term) + `[^\]]*\]\([^)]*glossary\.md`).FindStringIndex(page)
			by := strings.Index(page, words)
			if here := linked != nil && linked[0] <= at[1] || words != "" && by >= 0 && by <= at[1]; !here {
				t.Errorf("%s: %q is used before it is defined: …%s…", name, term, strings.Join(strings.Fields(page[max(0, at[0]-60):min(len(page), at[1]+40)]), " "))
			}
			break
		}
	}
}
