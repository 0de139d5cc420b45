package warning

import (
	"flag"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write docs/warnings")

// Each code of the library has a page, and there is no page besides.
func TestEveryCodeHasAPage(t *testing.T) {
	var codes []string
	for path, kind := range map[string]string{"../diagnosis/run.go": "", "../../result.go": "WarningCode"} {
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			v, ok := n.(*ast.ValueSpec)
			if !ok || len(v.Values) != 1 {
				return true
			}
			if name, is := v.Type.(*ast.Ident); kind != "" && (!is || name.Name != kind) {
				return true
			}
			if text, is := v.Values[0].(*ast.BasicLit); is && text.Kind == token.STRING {
				code, _ := strconv.Unquote(text.Value)
				codes = append(codes, code)
			}
			return true
		})
	}
	slices.Sort(codes)
	var have []string
	for _, p := range Pages() {
		have = append(have, p.Code)
		for _, text := range []string{p.Seen, p.Means, p.Ignore} {
			if !strings.HasSuffix(text, ".") {
				t.Errorf("%s: %q is no sentence", p.Code, text)
			}
		}
		if len(p.Remedies) == 0 {
			t.Errorf("%s has no remedy", p.Code)
		}
	}
	slices.Sort(have)
	if !slices.Equal(codes, have) {
		t.Errorf("codes %v\npages %v", codes, have)
	}
}

// The docs have these pages: go test ./internal/warning -update writes them.
func TestDocs(t *testing.T) {
	const folder = "../../docs/warnings"
	want := map[string]string{"README.md": Index()}
	for _, p := range Pages() {
		want[p.Code+".md"] = p.Markdown()
	}
	if *update {
		if err := os.RemoveAll(folder); err != nil {
			t.Fatal(err)
		}
		if err := os.MkdirAll(folder, 0o755); err != nil {
			t.Fatal(err)
		}
		for name, text := range want {
			if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	for name, text := range want {
		if have, err := os.ReadFile(filepath.Join(folder, name)); err != nil || strings.ReplaceAll(string(have), "\r\n", "\n") != text {
			t.Errorf("%s is not what the code says (%v)", name, err)
		}
	}
	files, _ := filepath.Glob(folder + "/*.md")
	if len(files) != len(want) {
		t.Errorf("%d files, %d pages", len(files), len(want))
	}
}
