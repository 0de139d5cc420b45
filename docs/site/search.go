package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/yuin/goldmark/ast"
)

// entry is a section of a page in the index of the search.
type entry struct {
	Page    string `json:"p"` // title of its page
	Section string `json:"s"` // its heading, or "" for what comes before the first
	Address string `json:"a"` // from the root of the site
	Text    string `json:"t"`
}

// sections are the entries of a page: each from one heading of the second or third level to the next.
func (p *page) sections(doc *ast.Document, source []byte) []entry {
	var out []entry
	text := &strings.Builder{}
	next := entry{Address: address(p.Path)}
	end := func() {
		next.Page, next.Text = p.Title, strings.Join(strings.Fields(text.String()), " ")
		if next.Text != "" || next.Section != "" {
			out = append(out, next)
		}
		text.Reset()
	}
	for n := doc.FirstChild(); n != nil; n = n.NextSibling() {
		h, ok := n.(*ast.Heading)
		switch {
		case ok && h.Level == 1:
		case ok && h.Level <= 3:
			end()
			anchor, _ := h.AttributeString("id")
			next = entry{Section: plain(h, source), Address: fmt.Sprintf("%s#%s", address(p.Path), anchor)}
		default:
			words(text, n, source)
		}
	}
	end()
	return out
}

// words writes the text of a node, with that of code and without comments.
func words(b *strings.Builder, n ast.Node, source []byte) {
	ast.Walk(n, func(c ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			return ast.WalkContinue, nil
		}
		switch c := c.(type) {
		case *ast.HTMLBlock, *ast.RawHTML:
			return ast.WalkSkipChildren, nil
		case *ast.Text:
			b.Write(c.Segment.Value(source))
			if c.SoftLineBreak() || c.HardLineBreak() {
				b.WriteByte(' ')
			}
		case *ast.FencedCodeBlock, *ast.CodeBlock:
			for i := range c.Lines().Len() {
				line := c.Lines().At(i)
				b.Write(line.Value(source))
			}
		case *ast.CodeSpan, *ast.Emphasis, *ast.Link: // within a word, as its text is
		default:
			b.WriteByte(' ')
		}
		return ast.WalkContinue, nil
	})
}

// index writes the entries of all pages but the log, in the order of the menu, as a script: pages opened as files cannot read other files.
func (b *builder) index() error {
	names := slices.DeleteFunc(slices.Sorted(slices.Values(b.apart)), func(name string) bool { return strings.HasPrefix(name, "docs/log/") })
	var all []entry
	for _, g := range slices.Backward(b.groups) {
		names = append(slices.Clone(g.Pages), names...)
	}
	for _, name := range names {
		all = append(all, b.pages[name].entries...)
	}
	var content bytes.Buffer
	content.WriteString("const searchIndex = ")
	if err := json.NewEncoder(&content).Encode(all); err != nil {
		return err
	}
	if err := b.put("search-index.js", content.Bytes()); err != nil {
		return err
	}
	script, err := files.ReadFile("search.js")
	if err != nil {
		return err
	}
	return b.put("search.js", script)
}
