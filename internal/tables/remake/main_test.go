package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const page = `# What was measured

<!-- table: LongOne, commit 0123abc -->
[LongOne](data/LongOne.csv)

Between.

<!-- table: LongTwo/part-1, commit 0123abc+ -->
[LongTwo/part-1](data/LongTwo/part-1.csv)
After.`

// tests is written so that this file has no long tests itself.
var tests = strings.ReplaceAll(`package x

FUNC TestLongOne(t *testing.T) {
	longOnly(t)
}

FUNC TestLongTwo(t *testing.T) {
	if !*long {
	}
}

FUNC TestLongNames(t *testing.T) {
	t.Log("is no long test")
}
`, "FUNC", "func")

func TestMarkers(t *testing.T) {
	lines := strings.Split(page, "\n")
	found, err := markersOf("page.md", lines)
	if err != nil || len(found) != 2 {
		t.Fatal(found, err)
	}
	if one, two := found[0], found[1]; one.name() != "LongOne" || two.name() != "LongTwo/part-1" || two.commit != "0123abc+" || two.place() != "page.md:8" {
		t.Errorf("%+v", found)
	}
	for _, bad := range []string{
		"<!-- table: LongOne -->\n[LongOne](data/LongOne.csv)", "<!-- table: One, commit 0123abc -->\n[One](data/One.csv)", "<!-- table: LongOne, commit today -->\n[LongOne](data/LongOne.csv)",
		"<!-- table: LongOne, commit 0123abc -->\n\n[LongOne](data/LongOne.csv)", "text <!-- table: LongOne, commit 0123abc -->\n[LongOne](data/LongOne.csv)",
		"<!-- table: LongOne, commit 0123abc -->\n[LongTwo](data/LongTwo.csv)", "<!-- table: LongOne, commit 0123abc -->",
	} {
		if found, err := markersOf("page.md", strings.Split(bad, "\n")); err == nil || !strings.HasPrefix(err.Error(), "page.md:1: ") {
			t.Errorf("%s: %v, %v", bad, found, err)
		}
	}
}

// write makes a repository of one page of docs and one file of tests.
func write(t *testing.T, page string) (root string) {
	t.Helper()
	root = t.TempDir()
	for path, text := range map[string]string{"docs/page.md": page, "x/x_test.go": tests} {
		path = filepath.Join(root, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

func TestNamesThatAreNotThere(t *testing.T) {
	found, err := longTests(write(t, page))
	if err != nil || !slices.Equal(found, []longTest{{"LongOne", "./x"}, {"LongTwo", "./x"}}) {
		t.Fatal(found, err)
	}
	if list := chosen(found, "LongTwo"); len(list) != 1 {
		t.Error(list)
	}
	for page, want := range map[string]string{
		page: "",
		strings.ReplaceAll(page, "LongOne", "LongX"): "there is no long test TestLongX",
		page + "\n" + strings.Split(page, "\n\n")[1]: "the table LongOne is at ",
	} {
		_, err := allMarkers(write(t, page), found)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%v, expected %q", err, want)
		}
	}
}

func TestPut(t *testing.T) {
	root := write(t, page)
	found, err := longTests(root)
	if err != nil {
		t.Fatal(err)
	}
	markers, err := allMarkers(root, found)
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	if err := put(root, folder, markers[1], "fedcba9"); err == nil || !strings.Contains(err.Error(), "page.md:8") {
		t.Error("no table was made: ", err)
	}
	if err := os.MkdirAll(filepath.Join(folder, "LongTwo"), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, "LongTwo", "part-1.csv"), []byte("d\n5\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	if err := put(root, folder, markers[1], "fedcba9"); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(filepath.Join(root, "docs", "page.md"))
	if want := strings.Replace(page, "0123abc+ -->", "fedcba9 -->", 1); err != nil || string(got) != want {
		t.Errorf("%s, %v", got, err)
	}
	if got, err := os.ReadFile(filepath.Join(root, "docs", "data", "LongTwo", "part-1.csv")); err != nil || string(got) != "d\n5\n" {
		t.Errorf("%s, %v", got, err)
	}
}

// TestThisRepository: every line before a table is in order.
func TestThisRepository(t *testing.T) {
	root := filepath.Join("..", "..", "..")
	found, err := longTests(root)
	if err != nil {
		t.Fatal(err)
	}
	if markers, err := allMarkers(root, found); err != nil || len(markers) == 0 {
		t.Error(len(markers), err)
	}
}
