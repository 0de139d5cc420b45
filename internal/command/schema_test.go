package command

import (
	"bytes"
	"cmp"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/calamp/calamp/internal/command/option"
	"github.com/calamp/calamp/internal/dataset"
	"github.com/calamp/calamp/internal/tests"
	"github.com/calamp/calamp/prior"
)

var updateDocs = flag.Bool("update", false, "write the reference of docs/model.md, and docs/reference/command.md, anew")

// run is the command with these arguments.
func run(args ...string) (code int, out, errs string) {
	var stdout, stderr bytes.Buffer
	code = Run(args, strings.NewReader(""), &stdout, &stderr)
	return code, stdout.String(), stderr.String()
}

// parameters calls f for all of the schema.
func parameters(f func(s option.Section, p option.Parameter)) {
	for _, s := range option.Schema {
		for _, p := range s.Parameters {
			f(s, p)
		}
	}
}

// takers are the commands that have a flag of the name.
func takers(name string) (list []*cobra.Command) {
	all(freshTree(), func(cmd *cobra.Command) {
		if option.FlagOf(cmd.Flags(), option.ParameterOf(name), name) != nil && cmd.Flags().Lookup("model") != nil && cmd.Name() != "serve" {
			list = append(list, cmd)
		}
	})
	return list
}

// bench is a folder with a problem of 6 sensors and what files of the examples name.
func bench(t *testing.T) string {
	t.Helper()
	folder := t.TempDir()
	if code, _, errs := run("simulate", "--n", "8", "--m", "6", "--p", "3", "-o", filepath.Join(folder, "P.npz")); code != 0 {
		t.Fatal(errs)
	}
	if code, _, errs := run("simulate", "--n", "8", "--m", "6", "--p", "3", "--complex", "-o", filepath.Join(folder, "C.npz")); code != 0 {
		t.Fatal(errs)
	}
	for file, flag := range map[string]string{"Q.npz": "--quantised=0.25", "B.npz": "--sign=0.5", "K.npz": "--counts=0.01"} {
		if code, _, errs := run("simulate", "--n", "8", "--m", "6", "--p", "3", "--density", "0.8", "--prior", "nonnegative", "--matrix-kind", "binary", flag, "-o", filepath.Join(folder, file)); code != 0 {
			t.Fatal(errs)
		}
	}
	vector := func(v ...float64) *dataset.Array {
		return &dataset.Array{Info: dataset.Info{Shape: []int{len(v)}}, Data: v}
	}
	table := &dataset.Array{Info: dataset.Info{Shape: []int{6, 8}}}
	for i := range 48 {
		table.Data = append(table.Data, float64(i*i%17-8))
	}
	network, err := prior.NewNetwork([]prior.Layer{{Rows: 8, Cols: 6, Weights: table.Data}}, prior.Gaussian(0, 1), 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := dataset.SaveNetwork(filepath.Join(folder, "N.npz"), network); err != nil {
		t.Fatal(err)
	}
	for name, a := range map[string]*dataset.Array{
		"groups.npy": vector(0, 0, 0, 0, 1, 1, 1, 1), "each.npy": vector(.1, .1, .1, .1, .3, .3, .3, .3), "noise.npy": vector(1, 1, 1, 1, 1, 2), "sensors.npy": vector(0, 0, 1, 1, 2, 2), "short.npy": vector(1, 2), "W.npy": table, "positions.npy": vector(0, 1, 2, 3, 4, 5), "columns.npy": vector(1, 0, -1, 2, 1, 1),
	} {
		if err := dataset.SaveArray(filepath.Join(folder, name), "a", a); err != nil {
			t.Fatal(err)
		}
	}
	if code, _, errs := run("simulate", "--n", "8", "--m", "6", "--p", "3", "--s-known", "0.01", "-o", filepath.Join(folder, "known.npz")); code != 0 {
		t.Fatal(errs)
	}
	return folder
}

// write puts a model file into a folder.
func write(t *testing.T, folder string, lines ...string) string {
	t.Helper()
	path := filepath.Join(folder, "model.toml")
	if err := os.WriteFile(path, []byte(strings.Join(lines, "\n")+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// example is a parameter's line in a model file, with what it needs beside it.
func example(p option.Parameter) string {
	text := fmt.Sprintf("%s = %q", p.Key(), p.Example)
	switch {
	case p.Repeated:
		text = fmt.Sprintf("%s = [%q]", p.Key(), p.Example)
	case regexp.MustCompile(`^[-0-9.e,]+$`).MatchString(p.Example) && strings.Contains(p.Example, ","):
		text = fmt.Sprintf("%s = [%s]", p.Key(), p.Example)
	case regexp.MustCompile(`^[-0-9.e]+$`).MatchString(p.Example), p.Example == "true":
		text = fmt.Sprintf("%s = %s", p.Key(), p.Example)
	}
	switch p.Name {
	case "component", "learn-components":
		text += "\nprior = \"mixture\""
	case "slack":
		text += "\nprior = \"network:N.npz\""
	case "s-mean":
		text += "\ns_sd = 0.1"
	case "s-sd":
		text += "\ns_mean = 1"
	case "sign":
		text += "\ns_range = [0.5, 1.5]"
	}
	if p.Name == "learn-components" {
		text += "\ncomponent = [[0.2, 0, 1]]"
	}
	return text
}

// unsaid is where a parameter of the schema is not, and why.
var unsaid = map[string]string{
	"json basis":       "its spec is in the provenance's command",
	"json anchor":      "it is in the provenance's command, and what holds the scale in scale_sd",
	"json sensors":     "gains have a value for each; the file is in the provenance's command",
	"json derivatives": "matrix_scores has what was tested, where the run came to its end",
	"json image":       "as derivatives",
	"json complex":     "readings are of a complex type",
	"json spectrum":    "of commands that have no W",
	"json row-square":  "of commands that have no W",

	"python matrix":     "it is the first argument, W",
	"python complex":    "Y is of a complex type; calamp.simulate hands it on",
	"python spectrum":   "calamp.threshold and calamp.se_offline hand it on",
	"python row-square": "calamp.threshold and calamp.se_offline hand it on",

	"page component": "is a list", "page learn-components": "is of components", "page groups": "is a file", "page basis": "may be a file", "page sensors": "is a file", "page derivatives": "are files", "page sensor-derivatives": "are files", "page s-from": "is a file",
	"page matrix": "is in the problem", "page complex": "is in the problem", "page spectrum": "has a slider of its own under Theory", "page row-square": "is of commands that have no W",
	"page anchor": "is a list", "page slack": "is of a network, which is a file", "page gain-smooth": "is a file", "page gain-basis": "is a file",
}

// TestSchema walks the parameters of a model, and finds each as a flag, in model files, in JSON, on the page, in Python, in MATLAB and in the docs, or why not.
func TestSchema(t *testing.T) {
	tests.Long(t)
	folder := bench(t)
	text := func(path string) string {
		data, err := os.ReadFile(filepath.FromSlash("../../" + path))
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	python, keywords, matlab, page := text("python/calamp/_solve.py"), text("python/calamp/_command.py"), text("matlab/calamp.m"), option.OnPage()
	signature := python[strings.Index(python, "def solve("):strings.Index(python, ") -> Result")]
	files := regexp.MustCompile(`FILE_KEYWORDS = \((.*)\)`).FindStringSubmatch(keywords)[1]
	parameters(func(_ option.Section, p option.Parameter) {
		missing := func(where string, there bool) {
			why, excused := unsaid[where+" "+p.Name]
			if there == excused {
				t.Errorf("%s: in %s: %v (%s)", p.Name, where, there, why)
			}
		}
		commands := takers(p.Name)
		missing("flags", len(commands) > 0)
		model := write(t, folder, example(p))
		for _, cmd := range commands {
			m, err := option.LoadModel(model)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := m.Apply(cmd.Flags(), false); err != nil || !cmd.Flags().Changed(p.Name) {
				t.Errorf("%s: %s in a model file: %v", cmd.CommandPath(), p.Name, err)
			}
		}
		if !p.NoData {
			problem := cmp.Or(map[string]string{"phase": "C.npz", "quantised": "Q.npz", "sign": "B.npz", "counts": "K.npz"}[p.Name], "P.npz")
			_, out, errs := run("solve", filepath.Join(folder, problem), "--json", "--max-iter", "3", "--model", model)
			missing("json", p.JSON != "" && at(t, out, p.JSON))
			if p.JSON != "" && !at(t, out, p.JSON) {
				t.Logf("%s\n%s", errs, out)
			}
		} else {
			missing("json", p.JSON != "")
		}
		missing("page", slices.ContainsFunc(page, func(o *option.Parameter) bool { return o.Name == p.Name }))
		missing("python", strings.Contains(signature, "\n    "+p.Key()+": "))
		if p.Array != "" && !p.NoData && p.Name != "matrix" && !strings.Contains(files, `"`+p.Key()+`"`) {
			t.Errorf("python: an array in the place of %s is not made a file of", p.Key())
		}
		if !strings.Contains(matlab, "strrep(varargin{k}, '_', '-')") { // every name is a flag
			t.Errorf("matlab: %s", p.Key())
		}
		// What excludes what is said by both, and refused.
		for other := range strings.FieldsSeq(p.Excludes) {
			o := option.ParameterOf(other)
			if !slices.Contains(strings.Fields(o.Excludes), p.Name) && p.Name != "phase" && p.Name != "learn-components" {
				t.Errorf("%s excludes %s, and not the reverse", p.Name, other)
			}
			if p.Name == "phase" || other == "phase" || p.Name == "learn-components" {
				continue // of complex problems
			}
			both := map[string]bool{}
			for line := range strings.Lines(example(p) + "\n" + example(*o) + "\nmatrix = \"W.npy\"\n") {
				both[line] = true
			}
			var lines []string
			for line := range both {
				lines = append(lines, line)
			}
			if code, out, _ := run("model", write(t, folder, lines...)); code != 2 {
				t.Errorf("%s beside %s: exit %d\n%s", p.Name, other, code, out)
			}
		}
	})
	const begin, end = "<!-- schema -->\n", "<!-- /schema -->"
	docs := text("docs/model.md")
	first, rest, _ := strings.Cut(docs, begin)
	_, last, _ := strings.Cut(rest, end)
	want := first + begin + reference() + end + last
	if *updateDocs {
		if err := os.WriteFile("../../docs/model.md", []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if strings.ReplaceAll(docs, "\r\n", "\n") != want {
		t.Error("docs/model.md is not what the schema says: go test ./internal/command -run TestSchema -update")
	}
}

// at says whether a path of names leads to something in a JSON object.
func at(t *testing.T, text, path string) bool {
	t.Helper()
	var value any
	if err := json.Unmarshal([]byte(text), &value); err != nil {
		t.Logf("%v in %s", err, text)
		return false
	}
	for name := range strings.SplitSeq(path, ".") {
		object, _ := value.(map[string]any)
		var there bool
		if value, there = object[name]; !there {
			return false
		}
	}
	return true
}

// reference is the tables of docs/model.md.
func reference() string {
	var b strings.Builder
	for _, s := range option.Schema {
		fmt.Fprintf(&b, "\n### [%s]\n\n| key | value | unit | where not given | beside it never | |\n| --- | --- | --- | --- | --- | --- |\n", s.Name)
		for _, p := range s.Parameters {
			kind, names := "", []string{}
			for _, cmd := range takers(p.Name) {
				if v := cmd.Flags().Lookup(p.Name).Value.Type(); kind == "" || cmd.Name() == "solve" {
					kind = v
				}
				names = append(names, strings.TrimPrefix(cmd.CommandPath(), "calamp "))
			}
			unstated := p.Default
			switch {
			case p.Learnable && (unstated == "" || unstated == "auto"):
				unstated = "learned"
			case p.Learnable && unstated != "off":
				unstated = "learned, or " + unstated
			}
			others := strings.Join(strings.Fields(strings.ReplaceAll(p.Excludes, "-", "_")), ", ")
			doc := strings.ReplaceAll(p.Doc, "\n", " ")
			if p.Array != "" && p.Array != "spec" {
				doc += "; or a file with an array (" + p.Array + ")"
			}
			cell := func(text string) string { return strings.ReplaceAll(text, "|", "\\|") }
			fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s | %s. For %s |\n", p.Key(), cell(kind), p.Unit, unstated, others, cell(doc), strings.Join(names, ", "))
		}
	}
	return b.String() + "\n"
}

// TestModelFile: what a file says is what flags would, flags go before it, and what is wrong is named.
func TestModelFile(t *testing.T) {
	tests.Long(t)
	folder := bench(t)
	problem := filepath.Join(folder, "P.npz")
	model := write(t, folder, "about = \"a bench\"", "[signals]", "density = 0.15", "[sensors]", "gain_range = [0.5, 2]", "reference = [\"mean=1\"]", "[noise]", "noise_var = \"noise.npy\"", "[matrix]", "matrix = \"W.npy\"")
	_, byFile, errs := run("solve", problem, "--json", "--max-iter", "3", "--model", model, "--density", "0.2")
	_, byFlag, _ := run("solve", problem, "--json", "--max-iter", "3", "--density", "0.2", "--gain-range", "0.5,2", "--reference", "mean=1", "--noise-var", filepath.Join(folder, "noise.npy"))
	wall := regexp.MustCompile(`"wall_s": [^,]*`)
	if a, b := wall.ReplaceAllString(byFile, ""), wall.ReplaceAllString(byFlag, ""); a != b || a == "" {
		t.Errorf("by a file:\n%s\n%s\nby flags:\n%s", a, errs, b)
	}
	if code, out, errs := run("model", model); code != 0 || !strings.Contains(out, "6 sensors, one gain a row, gains 1/s unknown within [0.5, 2]") || !strings.Contains(out, "signal_mean, signal_var") {
		t.Errorf("exit %d\n%s%s", code, out, errs)
	}
	for _, args := range [][]string{
		{"online", problem, "--model", model},
		{"simulate", "--model", model, "--p", "2", "-o", filepath.Join(folder, "S.npz")},
		{"threshold", "--model", write(t, t.TempDir(), "density = 0.2", "s_range = [0.9, 1.1]", "row_square = 2", "noise_var = 0"), "--p", "3", "--json"},
		{"plan", "--model", model, "--p", "2"},
		{"se", "offline", "--model", model, "--noise-var", "1", "--alpha", "1", "--p", "2"},
		{"free-energy", "--model", model, "--noise-var", "1", "--alpha", "1", "--p", "2"},
		{"check-calibration", "--model", model, "--noise-var", "1", "--n", "8", "--alpha", "1", "--p", "2", "--seeds", "2"},
	} {
		if code, _, errs := run(args...); code != 0 && code != 3 {
			t.Errorf("%v: exit %d, %s", args, code, errs)
		}
	}
	for lines, want := range map[string]string{
		"[signals]\ndensty = 1":                         "hint: did you mean density?",
		"[sensor]\ns_mean = 1":                          "hint: did you mean sensors?",
		"noise-var = 1":                                 "hint: did you mean noise_var?",
		"[sensors]\ndensity = 0.1":                      "[sensors] density: expected it in [signals]",
		"density = 2":                                   "density = 2: expected a number in (0, 1]",
		"density = [0.1, \"a\"]":                        "density: expected one value, or numbers",
		"s_range = [0.5, 2]\ngain_range = 1":            "both say the same",
		"density = ":                                    "line 1",
		"density = 1979-05-27":                          "expected a number, numbers or a text",
		"noise_var = \"nowhere.npy\"":                   "nowhere.npy: no such file",
		"matrix = \"W.npy\"\nnoise_var = \"short.npy\"": "has 2 rows, expected 6",
		"s_mean = 1":                                    "--s-mean and --s-sd go together",
		"xyzzy = 1":                                     "expected one of density",
		"[matrix.more]\na=1":                            "expected",
	} {
		path := write(t, folder, lines)
		if code, _, errs := run("model", path); code != 2 || !strings.Contains(errs, want) || !strings.Contains(errs, path) {
			t.Errorf("%s: exit %d, %s", lines, code, errs)
		}
	}
}

// TestSaveModel: what a run learned is a model, with error bars, from which the same answer is found.
func TestSaveModel(t *testing.T) {
	folder := t.TempDir()
	problem, path := filepath.Join(folder, "P.npz"), filepath.Join(folder, "learned.toml")
	if code, _, errs := run("simulate", "--n", "120", "--m", "110", "--p", "8", "--s-range", "0.7,1.3", "--noise-var", "1e-4", "-o", problem); code != 0 {
		t.Fatal(errs)
	}
	code, out, errs := run("solve", problem, "--anchor", "mean=1", "--save-model", path, "--json")
	data, err := os.ReadFile(path)
	if code != 0 || err != nil {
		t.Fatal(code, err, errs)
	}
	for _, want := range []string{"\ndensity = 0.", " # ± 0.0", "\nanchor = [\"mean=1\"]   # given", "\ns_range = [0.", "\nrow_square = "} {
		if !strings.Contains(string(data), want) {
			t.Errorf("%q is not in\n%s", want, data)
		}
	}
	again, second, errs := run("solve", problem, "--model", path, "--json")
	var a, b answer
	if err := json.Unmarshal([]byte(out), &a); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal([]byte(second), &b); err != nil || again != 0 {
		t.Fatal(again, err, errs)
	}
	if a.Metrics.XMSEScaled < 0.9*b.Metrics.XMSEScaled || b.Metrics.XMSEScaled < 0.9*a.Metrics.XMSEScaled {
		t.Errorf("mean square error %g, and %g with what was learned", a.Metrics.XMSEScaled, b.Metrics.XMSEScaled)
	}
	if strings.Contains(errs, "has no use") {
		t.Error(errs)
	}
	if code, _, _ := run("solve", problem, "--save-model", "x.json"); code != 2 {
		t.Errorf("--save-model x.json: exit %d", code)
	}
}
