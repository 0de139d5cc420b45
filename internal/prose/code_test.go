package prose

import (
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// goBlock is a block of Go, after what it takes of the text around it, if that is not nothing.
var goBlock = regexp.MustCompile("(?ms)^(?:<!-- given: ([^\n]*) -->\n)?^```go\n(.*?)^```$")

// imported are the packages that blocks name; those of this module are below it.
var imported = map[string]string{
	"context": "context", "math": "math", "mat": "gonum.org/v1/gonum/mat", "calamp": "", "channel": "channel", "evolution": "evolution",
	"online": "online", "operator": "operator", "prior": "prior", "solver": "solver", "dataset": "dataset",
}

// TestGoBlocks builds the blocks of Go of all documents, each as the body of a function. A comment <!-- given: declarations --> before a
// block declares what it takes.
func TestGoBlocks(t *testing.T) {
	folder, err := filepath.Abs(root)
	if err != nil {
		t.Fatal(err)
	}
	temporary, replaced, count := t.TempDir(), map[string]string{}, 0
	for _, name := range pages(t) {
		for _, found := range goBlock.FindAllStringSubmatch(read(t, name), -1) {
			if strings.HasPrefix(found[2], "import (") {
				continue
			}
			text, err := program(found[1], found[2])
			if err != nil {
				t.Errorf("%s: %v", name, err)
				continue
			}
			file := filepath.Join(temporary, fmt.Sprintf("block%d.go", count))
			if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
			replaced[filepath.Join(folder, "internal", "prose", "blocks", fmt.Sprintf("block%d", count), "block.go")] = file
			count++
		}
	}
	if count < 6 {
		t.Errorf("only %d blocks of Go", count)
	}
	overlay, _ := json.Marshal(map[string]any{"Replace": replaced})
	list := filepath.Join(temporary, "overlay.json")
	if err := os.WriteFile(list, overlay, 0o644); err != nil {
		t.Fatal(err)
	}
	for i := range count {
		build := exec.Command("go", "build", "-overlay", list, fmt.Sprintf("./internal/prose/blocks/block%d", i))
		build.Dir = folder
		if out, err := build.CombinedOutput(); err != nil {
			text, _ := os.ReadFile(filepath.Join(temporary, fmt.Sprintf("block%d.go", i)))
			t.Errorf("%v\n%s\n%s", err, out, text)
		}
	}
}

// program is a package with the block as the body of a function, the packages that it names imported, and its variables used.
func program(given, code string) (string, error) {
	body := "package block\n\nfunc block() (err error) {\n" + given + "\n" + code + "return err\n}\n"
	file, err := parser.ParseFile(token.NewFileSet(), "block.go", body, 0)
	if err != nil {
		return "", err
	}
	var imports, used []string
	ast.Inspect(file, func(n ast.Node) bool {
		if s, ok := n.(*ast.SelectorExpr); ok {
			if x, ok := s.X.(*ast.Ident); ok {
				if path, ok := imported[x.Name]; ok && !slices.Contains(imports, path) {
					imports = append(imports, path)
				}
			}
		}
		return true
	})
	for _, statement := range file.Decls[0].(*ast.FuncDecl).Body.List {
		switch s := statement.(type) {
		case *ast.AssignStmt:
			for _, left := range s.Lhs {
				if x, ok := left.(*ast.Ident); ok && s.Tok == token.DEFINE {
					used = append(used, "_ = "+x.Name)
				}
			}
		case *ast.DeclStmt:
			for _, spec := range s.Decl.(*ast.GenDecl).Specs {
				for _, x := range spec.(*ast.ValueSpec).Names {
					used = append(used, "_ = "+x.Name)
				}
			}
		}
	}
	var b strings.Builder
	b.WriteString("package block\n")
	for _, path := range imports {
		if !strings.Contains(path, ".") && path != "context" && path != "math" {
			path = strings.TrimSuffix("github.com/calamp/calamp/"+path, "/")
		}
		fmt.Fprintf(&b, "import %q\n", path)
	}
	_, rest, _ := strings.Cut(body, "\n")
	b.WriteString(strings.Replace(rest, "return err\n}\n", strings.Join(used, "\n")+"\nreturn err\n}\n", 1))
	return b.String(), nil
}
