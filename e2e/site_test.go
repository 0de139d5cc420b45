package e2e

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// TestSite looks at the documentation as a site, opened as files: its first page, a page of a folder, and what the search finds from there.
func TestSite(t *testing.T) {
	out := t.TempDir()
	if said, err := exec.Command("sh", filepath.Join("..", "scripts", "site"), out).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
	each(t, func(t *testing.T, width int64, theme string) {
		b := open(t, width, theme)
		for _, page := range []string{"index", "guides/solving"} {
			b.do(chromedp.Navigate("file://" + filepath.ToSlash(out) + "/" + page + ".html"))
			b.look(fmt.Sprintf("site-%s-%d-%s", filepath.Base(page), width, theme), theme)
		}
		b.do(chromedp.SendKeys(`#search input`, "error bars"))
		b.until(`document.querySelectorAll("#found a").length > 3`)
		b.look(fmt.Sprintf("site-search-%d-%s", width, theme), theme)
		if first := is[string](b, `document.querySelector("#found a strong").textContent`); !strings.Contains(strings.ToLower(first), "error bar") {
			t.Errorf("the search finds %q first", first)
		}
		b.do(chromedp.SendKeys(`#search input`, " zzzz"))
		b.until(`document.querySelector("#found").textContent.startsWith("No section")`)
		b.do(chromedp.KeyEvent(kb.Escape))
		b.until(`document.querySelector("#found").hidden`)
		is[string](b, `document.querySelector("#search input").value = ""`)
		b.do(chromedp.SendKeys(`#search input`, "Glossary\r"))
		b.until(`location.pathname.endsWith("/glossary.html")`)
	})
}
