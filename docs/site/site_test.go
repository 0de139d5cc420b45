package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestSite builds the site of this repository: no link leads nowhere, no page is left
// out, nothing needs another server, nor a script but that of the search.
func TestSite(t *testing.T) {
	out := t.TempDir()
	if err := build(filepath.Join("..", ".."), out); err != nil {
		t.Fatal(err)
	}
	pages := 0
	filepath.WalkDir(out, func(p string, _ os.DirEntry, _ error) error {
		if filepath.Ext(p) != ".html" {
			return nil
		}
		pages++
		content, _ := os.ReadFile(p)
		for _, word := range []string{"src=\"http", "<link rel=\"stylesheet\" href=\"http", ".md\"", ".md#"} {
			if i := strings.Index(string(content), word); i >= 0 && !strings.Contains(string(content[max(0, i-200):i]), source) {
				t.Errorf("%s has %s: …%s", p, word, content[max(0, i-60):min(len(content), i+60)])
			}
		}
		if n := strings.Count(string(content), "<script"); n != 1 {
			t.Errorf("%s has %d scripts, expected that of the search alone", p, n)
		}
		return nil
	})
	found := index(t, out)
	for _, want := range []entry{
		{Page: "calamp", Section: "When not", Address: "index.html#when-not"},
		{Page: "Glossary", Address: "glossary.html"},
	} {
		if !slices.ContainsFunc(found, func(e entry) bool {
			return e.Page == want.Page && e.Section == want.Section && e.Address == want.Address && len(e.Text) > 100
		}) {
			t.Errorf("the search has no %+v", want)
		}
	}
	for _, e := range found {
		name, _, _ := strings.Cut(e.Address, "#")
		if !exists(filepath.Join(out, name)) || strings.HasPrefix(name, "log/") || strings.Contains(e.Text, "<!-- max") {
			t.Errorf("the search has %+v", e)
		}
	}
	for _, g := range menu {
		pages -= len(g.Pages)
	}
	if pages < 0 {
		t.Errorf("%d pages are missing", -pages)
	}
}

// index reads what the search of a site finds.
func index(t *testing.T, out string) (entries []entry) {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(out, "search-index.js"))
	if err != nil {
		t.Fatal(err)
	}
	object, ok := strings.CutPrefix(string(content), "const searchIndex = ")
	if err := json.Unmarshal([]byte(object), &entries); err != nil || !ok {
		t.Fatal(err)
	}
	return entries
}

func TestFormulas(t *testing.T) {
	for text, want := range map[string]string{
		"f = N_P y^{P-1}":  "<i>f</i> = <i>N</i><sub><i>P</i></sub> <i>y</i><sup><i>P</i>-1</sup>",
		"log p(y) < exp_x": "log <i>p</i>(<i>y</i>) &lt; exp<sub><i>x</i></sub>",
		"e^{−a_{ij}}":      "<i>e</i><sup>−<i>a</i><sub>ij</sub></sup>",
		"a_ _b ^":          "<i>a</i>_ _<i>b</i> ^",
	} {
		if got := set(text); got != want {
			t.Errorf("%s: %s, expected %s", text, got, want)
		}
	}
	for text, want := range map[string]bool{"y = W x": true, "calamp se offline --alpha=0.6": false, "α_CS = sup mmse(Σ)/Σ": true} {
		if isFormula(text) != want {
			t.Error(text)
		}
	}
}

func TestSlug(t *testing.T) {
	for title, want := range map[string]string{
		"The object of `/healthz`": "the-object-of-healthz", "What it reaches": "what-it-reaches", "W, x: and Δ!": "w-x-and-δ", "A — B": "a--b",
	} {
		if got := slug(title); got != want {
			t.Errorf("%s: %s, expected %s", title, got, want)
		}
	}
}
