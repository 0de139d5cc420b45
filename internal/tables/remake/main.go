// Command remake runs long tests and puts the tables that they measure into docs/data,
// or lists the tables that may no longer be true. Where a page of docs has a table, it has two lines,
//
//	<!-- table: LongReferenceErrors, commit abc1234 -->
//	[LongReferenceErrors](../data/LongReferenceErrors.csv)
//
// with the test that measures it, after a slash the part where a test has several,
// and the commit that it was measured at, with a + where there were changes
// besides. .ci/long and .ci/tables call it.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

func main() {
	check := flag.Bool("check", false, "measure nothing: check the lines before tables, and list tables whose packages have changed since")
	list := flag.Bool("list", false, "measure nothing: list the long tests")
	flag.Parse()
	var err error
	switch {
	case *check:
		err = checkAll(".", os.Stdout)
	case *list:
		err = listAll(".", flag.Arg(0))
	default:
		err = remake(".", flag.Arg(0))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "tables:", err)
		os.Exit(1)
	}
}

// longTest is a test that runs with -long only.
type longTest struct {
	name string // without Test
	pkg  string // as in ./online
}

var longFunction = regexp.MustCompile(`(?m)^func Test(Long\w+)\(t \*testing\.T\) \{\n\t(?:longOnly\(t\)|if !\*(?:tables\.L|l)ong \{)`)

// longTests finds all long tests below root.
func longTests(root string) ([]longTest, error) {
	var out []longTest
	err := filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") || e.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		folder, err := filepath.Rel(root, filepath.Dir(path))
		for _, found := range longFunction.FindAllSubmatch(text, -1) {
			out = append(out, longTest{string(found[1]), "./" + filepath.ToSlash(folder)})
		}
		return err
	})
	return out, err
}

// marker is the line before a table.
type marker struct {
	file       string
	line       int // from 0
	test, part string
	commit     string
}

func (m marker) name() string {
	if m.part == "" {
		return m.test
	}
	return m.test + "/" + m.part
}

func (m marker) place() string { return fmt.Sprintf("%s:%d", m.file, m.line+1) }

var markerLine = regexp.MustCompile(`^<!-- table: (Long\w+)(?:/([\w.-]+))?, commit ([0-9a-f]{7,40}\+?) -->$`)

// markersOf reads the lines of a file of docs.
func markersOf(file string, lines []string) ([]marker, error) {
	var out []marker
	for i, line := range lines {
		if !strings.Contains(line, "<!-- table") {
			continue
		}
		found := markerLine.FindStringSubmatch(line)
		if found == nil {
			return nil, fmt.Errorf("%s:%d: expected <!-- table: LongName, commit abc1234 -->, found %s", file, i+1, line)
		}
		m := marker{file: file, line: i, test: found[1], part: found[2], commit: found[3]}
		if link := "[" + m.name() + "]("; i+1 == len(lines) || !strings.HasPrefix(lines[i+1], link) || !strings.HasSuffix(lines[i+1], "data/"+m.name()+".csv)") {
			return nil, fmt.Errorf("%s: expected %s…/data/%s.csv) in the next line", m.place(), link, m.name())
		}
		out = append(out, m)
	}
	return out, nil
}

// docs are the files with tables.
func docs(root string) ([]string, error) {
	var out []string
	err := filepath.WalkDir(filepath.Join(root, "docs"), func(path string, e fs.DirEntry, err error) error {
		if err == nil && strings.HasSuffix(path, ".md") {
			out = append(out, path)
		}
		return err
	})
	return out, err
}

func readLines(path string) ([]string, error) {
	text, err := os.ReadFile(path)
	return strings.Split(string(text), "\n"), err
}

// allMarkers reads and checks the markers of all docs.
func allMarkers(root string, tests []longTest) ([]marker, error) {
	files, err := docs(root)
	if err != nil {
		return nil, err
	}
	var all []marker
	for _, file := range files {
		lines, err := readLines(file)
		if err != nil {
			return nil, err
		}
		found, err := markersOf(file, lines)
		if err != nil {
			return nil, err
		}
		for _, m := range found {
			if !slices.ContainsFunc(tests, func(t longTest) bool { return t.name == m.test }) {
				return nil, fmt.Errorf("%s: there is no long test Test%s", m.place(), m.test)
			}
			if i := slices.IndexFunc(all, func(o marker) bool { return o.name() == m.name() }); i >= 0 {
				return nil, fmt.Errorf("%s: the table %s is at %s already", m.place(), m.name(), all[i].place())
			}
			all = append(all, m)
		}
	}
	return all, nil
}

// checkAll lists the tables whose packages have changed since they were measured.
func checkAll(root string, out io.Writer) error {
	tests, err := longTests(root)
	if err != nil {
		return err
	}
	markers, err := allMarkers(root, tests)
	if err != nil {
		return err
	}
	sources := map[string][]string{} // by package
	stale := 0
	for _, m := range markers {
		pkg := tests[slices.IndexFunc(tests, func(t longTest) bool { return t.name == m.test })].pkg
		if sources[pkg] == nil {
			if sources[pkg], err = sourcesOf(root, pkg); err != nil {
				return err
			}
		}
		if why := changedSince(root, m.commit, sources[pkg]); why != "" {
			stale++
			fmt.Fprintf(out, "%s: %s: %s\n", m.place(), m.name(), why)
		}
	}
	fmt.Fprintf(out, "%d of %d tables may no longer be true; .ci/long NAME measures one anew\n", stale, len(markers))
	return nil
}

// sourcesOf are the patterns of the files that a package's tests are made of.
func sourcesOf(root, pkg string) ([]string, error) {
	base, err := filepath.Abs(root)
	if err != nil {
		return nil, err
	}
	text, err := command(root, "go", "list", "-deps", "-test", "-f", "{{if not .Standard}}{{.Dir}}{{end}}", pkg)
	if err != nil {
		return nil, err
	}
	var out []string
	for folder := range strings.Lines(text) {
		rel, err := filepath.Rel(base, strings.TrimSpace(folder))
		if err != nil || !filepath.IsLocal(rel) {
			continue
		}
		for _, kind := range []string{"*.go", "*.s"} {
			if pattern := ":(glob)" + filepath.ToSlash(filepath.Join(rel, kind)); !slices.Contains(out, pattern) {
				out = append(out, pattern)
			}
		}
	}
	return append(out, ":(exclude,glob)**/*_test.go"), nil
}

// changedSince says in which way the sources differ from those of the commit;
// empty where they do not.
func changedSince(root, commit string, sources []string) string {
	if clean, dirty := strings.CutSuffix(commit, "+"); dirty {
		return "measured with changes beside commit " + clean
	}
	text, err := command(root, "git", append([]string{"diff", "--name-only", commit, "--"}, sources...)...)
	if err != nil {
		return "measured at commit " + commit + ", which is not here"
	}
	files := strings.Fields(text)
	switch n := len(files); {
	case n == 0:
		return ""
	case n > 3:
		return fmt.Sprintf("%d files have changed since %s: %s, …", n, commit, strings.Join(files[:3], ", "))
	}
	return fmt.Sprintf("changed since %s: %s", commit, strings.Join(files, ", "))
}

func listAll(root, wanted string) error {
	tests, err := longTests(root)
	for _, t := range chosen(tests, wanted) {
		fmt.Println(t.pkg, t.name)
	}
	return err
}

// chosen are the tests whose names contain wanted, or the one of that very name.
func chosen(tests []longTest, wanted string) []longTest {
	var out []longTest
	for _, t := range tests {
		if t.name == wanted {
			return []longTest{t}
		}
		if strings.Contains(t.name, wanted) {
			out = append(out, t)
		}
	}
	return out
}

// remake runs the chosen long tests, one after the other. The tables of a test
// that passes are in docs before the next one begins.
func remake(root, wanted string) error {
	tests, err := longTests(root)
	if err != nil {
		return err
	}
	if _, err := allMarkers(root, tests); err != nil {
		return err
	}
	run, failed := chosen(tests, wanted), []string{}
	for _, t := range run {
		if err := measure(root, t, tests); err != nil {
			fmt.Fprintf(os.Stderr, "tables: %s: %v\n", t.name, err)
			failed = append(failed, t.name)
		}
	}
	switch {
	case len(run) == 0:
		return fmt.Errorf("no long test has %q in its name; -list lists them", wanted)
	case len(failed) > 0:
		return fmt.Errorf("%d of %d long tests failed, and their tables are as they were: %s", len(failed), len(run), strings.Join(failed, ", "))
	}
	return nil
}

func measure(root string, t longTest, tests []longTest) error {
	commit, err := present(root)
	if err != nil {
		return err
	}
	folder, err := os.MkdirTemp("", "tables")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	c := exec.Command("go", "test", t.pkg, "-run", "^Test"+t.name+"$", "-v", "-count", "1", "-timeout", "12h",
		"-long", "-tables", folder)
	c.Dir, c.Stdout, c.Stderr = root, os.Stdout, os.Stderr
	if err := c.Run(); err != nil {
		return err
	}
	markers, err := allMarkers(root, tests)
	if err != nil {
		return err
	}
	for _, m := range markers {
		if m.test != t.name {
			continue
		}
		if err := put(root, folder, m, commit); err != nil {
			return err
		}
	}
	extra := filepath.Join(folder, "docs")
	if _, err := os.Stat(extra); err != nil {
		return nil
	}
	return filepath.WalkDir(extra, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		rel, _ := filepath.Rel(folder, path)
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(root, rel), content, 0o644)
	})
}

// put replaces one table, and the commit that its page has.
func put(root, folder string, m marker, commit string) error {
	name := filepath.FromSlash(m.name()) + ".csv"
	text, err := os.ReadFile(filepath.Join(folder, name))
	if err != nil {
		return fmt.Errorf("the test made no table for %s: %w", m.place(), err)
	}
	lines, err := readLines(m.file)
	if err != nil {
		return err
	}
	path := filepath.Join(root, "docs", "data", name)
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o777), os.WriteFile(path, text, 0o644)); err != nil {
		return err
	}
	lines[m.line] = "<!-- table: " + m.name() + ", commit " + commit + " -->"
	return os.WriteFile(m.file, []byte(strings.Join(lines, "\n")), 0o644)
}

// present is the commit of the tree, with a + where sources differ from it.
func present(root string) (string, error) {
	commit, err := command(root, "git", "rev-parse", "--short=7", "HEAD")
	if err != nil {
		return "", err
	}
	changed, err := command(root, "git", "status", "--porcelain", "--", "*.go", "*.s", "go.mod")
	if err != nil {
		return "", err
	}
	commit = strings.TrimSpace(commit)
	if strings.TrimSpace(changed) != "" {
		commit += "+"
	}
	return commit, nil
}

func command(root, name string, args ...string) (string, error) {
	c := exec.Command(name, args...)
	c.Dir = root
	out, err := c.Output()
	return string(out), err
}
