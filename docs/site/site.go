package main

import (
	"bytes"
	"embed"
	"encoding/csv"
	"errors"
	"fmt"
	"html"
	"html/template"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/renderer"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
)

//go:embed page.html site.css search.js
var files embed.FS

// source is where what is no page of the site can be read: all else that docs link to.
const source = "https://github.com/calamp/calamp/blob/main/"

// group is a part of the menu.
type group struct {
	Title string
	Pages []string
}

// menu is the pages in their order, by the reader's task; further ones come where home says.
var menu = []group{
	{"", []string{"README.md", "docs/is-this-my-problem.md"}},
	{"Tutorials", []string{"docs/guides/single-pixel-camera.md", "docs/guides/microphone-array.md", "docs/guides/a-stream.md", "docs/guides/imager.md", "docs/guides/radar.md"}},
	{"Guides", []string{"docs/guides/solving.md", "docs/guides/knowing.md", "docs/guides/gains.md", "docs/guides/signals.md", "docs/guides/joint.md", "docs/guides/networks.md", "docs/guides/matrices.md", "docs/guides/large.md", "docs/nearly-known-matrix.md", "docs/guides/complex.md", "docs/guides/faults.md", "docs/guides/sensors.md", "docs/guides/plan.md", "docs/model.md", "docs/python.md", "docs/library.md", "docs/stream.md", "docs/page.md", "docs/sweeps.md", "docs/cluster.md", "docs/speed.md"}},
	{"Trust", []string{"docs/trust.md", "docs/warnings/README.md", "docs/claims.md", "docs/results/peers.md", "docs/results/field.md", "docs/results/README.md"}},
	{"Theory", []string{"docs/theory.md", "docs/derivations.md"}},
	{"Reference", []string{"docs/glossary.md", "docs/reference/command.md", "docs/reference/python.md", "docs/online-json.md", "docs/format/intake.md", "docs/format/state.md", "docs/format/sweep.md", "docs/stability.md", "CHANGELOG.md"}},
	{"Contributing", []string{"CONTRIBUTING.md", "docs/architecture.md", "docs/decisions/README.md", "docs/decisions/2026-11.md", "experiments/README.md", "examples/README.md", "SECURITY.md"}},
}

// home is the part of the menu for a page of docs that is not listed, "" for one that only other pages lead to: the
// log of measurements and the warnings, which have an index.
func home(name string) string {
	switch {
	case strings.HasPrefix(name, "docs/log/"), strings.HasPrefix(name, "docs/warnings/"):
		return ""
	case strings.HasPrefix(name, "docs/decisions/"):
		return "Contributing"
	case strings.HasPrefix(name, "docs/results/"):
		return "Trust"
	case strings.HasPrefix(name, "docs/reference/"):
		return "Reference"
	}
	return "Guides"
}

// page is one of the site.
type page struct {
	Path     string // of the Markdown, from the root of the repository
	Title    string
	Body     template.HTML
	Sections []section // its headings of the second level

	anchors map[string]bool
	links   []string // to files of the site, with anchors
	entries []entry  // of the search
}

type section struct{ Title, Anchor string }

// address is where a page of the repository is on the site.
func address(p string) string {
	if p == "README.md" {
		return "index.html"
	}
	p = strings.TrimSuffix(strings.TrimPrefix(p, "docs/"), ".md") + ".html"
	return strings.ReplaceAll(p, "README.html", "index.html")
}

// build writes the site, or says what is wrong with the docs.
func build(root, out string) error {
	b := &builder{root: root, out: out, pages: make(map[string]*page), files: make(map[string]bool)}
	var err error
	if b.version, err = b.release(); err != nil {
		return err
	}
	if err := b.list(); err != nil {
		return err
	}
	names := slices.Clone(b.apart)
	for _, g := range b.groups {
		names = append(names, g.Pages...)
	}
	for _, p := range names {
		if err := b.read(p); err != nil {
			return err
		}
	}
	if err := b.dead(); err != nil {
		return err
	}
	for _, p := range b.pages {
		if err := b.write(p); err != nil {
			return err
		}
	}
	for name := range b.files {
		content, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(name)))
		if err != nil {
			return err
		}
		if err := b.put(strings.TrimPrefix(name, "docs/"), content); err != nil {
			return err
		}
	}
	if err := b.index(); err != nil {
		return err
	}
	return b.styles()
}

type builder struct {
	root, out string
	groups    []group
	apart     []string // pages that are not in the menu
	version   string
	pages     map[string]*page
	files     map[string]bool // pictures and tables to be copied
}

// read makes a page of a file.
func (b *builder) read(name string) error {
	content, err := os.ReadFile(filepath.Join(b.root, filepath.FromSlash(name)))
	if err != nil {
		return err
	}
	if content, err = b.withTables(name, content); err != nil {
		return err
	}
	p := &page{Path: name, anchors: make(map[string]bool)}
	b.pages[name] = p
	md := goldmark.New(
		goldmark.WithExtensions(extension.Table, extension.Strikethrough),
		goldmark.WithParserOptions(parser.WithASTTransformers(util.Prioritized(transformer{b, p}, 100))),
		goldmark.WithRendererOptions(renderer.WithNodeRenderers(util.Prioritized(formulas{}, 100))),
	)
	var body bytes.Buffer
	if err := md.Convert(content, &body); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	p.Body = template.HTML(body.String())
	return nil
}

// ofTable is where a page has a table of docs/data.
var ofTable = regexp.MustCompile(`(?m)^<!-- table: .* -->\n\[.*\]\((.*\.csv)\)$`)

// withTables puts tables of docs/data into a page, before the links to them.
func (b *builder) withTables(name string, content []byte) ([]byte, error) {
	var failed error
	content = ofTable.ReplaceAllFunc(content, func(found []byte) []byte {
		link := string(ofTable.FindSubmatch(found)[1])
		text, err := os.ReadFile(filepath.Join(b.root, filepath.FromSlash(path.Join(path.Dir(name), link))))
		if err != nil {
			failed = errors.Join(failed, err)
			return found
		}
		rows, err := csv.NewReader(bytes.NewReader(text)).ReadAll()
		failed = errors.Join(failed, err)
		var table strings.Builder
		for i, row := range rows {
			table.WriteString("| " + strings.Join(row, " | ") + " |\n")
			if i == 0 {
				table.WriteString("|" + strings.Repeat(" --- |", len(row)) + "\n")
			}
		}
		return []byte(table.String() + "\n[As .csv](" + link + ")")
	})
	return content, failed
}

// transformer gives headings their anchors, as forges do, and links their places on the site.
type transformer struct {
	b *builder
	p *page
}

func (t transformer) Transform(doc *ast.Document, reader text.Reader, _ parser.Context) {
	ast.Walk(doc, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			return ast.WalkContinue, nil
		}
		switch n := n.(type) {
		case *ast.Heading:
			t.heading(n, reader.Source())
		case *ast.Link:
			n.Destination = []byte(t.place(string(n.Destination)))
		case *ast.Image:
			n.Destination = []byte(t.place(string(n.Destination)))
		}
		return ast.WalkContinue, nil
	})
	t.p.entries = t.p.sections(doc, reader.Source())
}

func (t transformer) heading(n *ast.Heading, source []byte) {
	title := plain(n, source)
	if n.Level == 1 && t.p.Title == "" {
		t.p.Title = title
	}
	base := slug(title)
	anchor := base
	for k := 1; t.p.anchors[anchor]; k++ {
		anchor = fmt.Sprintf("%s-%d", base, k)
	}
	t.p.anchors[anchor] = true
	n.SetAttributeString("id", []byte(anchor))
	if n.Level == 2 {
		t.p.Sections = append(t.p.Sections, section{title, anchor})
	}
}

// plain is the text of a node.
func plain(n ast.Node, source []byte) string {
	var b strings.Builder
	ast.Walk(n, func(c ast.Node, entering bool) (ast.WalkStatus, error) {
		if t, ok := c.(*ast.Text); ok && entering {
			b.Write(t.Segment.Value(source))
		}
		return ast.WalkContinue, nil
	})
	return b.String()
}

// slug is the anchor of a heading on GitHub: small letters, digits, hyphens for spaces.
func slug(title string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == ' ':
			return '-'
		case r == '-' || r == '_' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r > 127 && !strings.ContainsRune("–—·→≤≥×±…", r):
			return r
		}
		return -1
	}, strings.ToLower(title))
}

// place is where a link of this page leads, from the page's own place on the site.
func (t transformer) place(link string) string {
	if strings.Contains(link, "://") || strings.HasPrefix(link, "mailto:") {
		return link
	}
	target, anchor, hasAnchor := strings.Cut(link, "#")
	name := t.p.Path
	if target != "" {
		name = path.Join(path.Dir(t.p.Path), target)
	}
	if stat, err := os.Stat(filepath.Join(t.b.root, filepath.FromSlash(name))); err == nil && stat.IsDir() {
		if inside := path.Join(name, "README.md"); exists(filepath.Join(t.b.root, filepath.FromSlash(inside))) {
			name = inside
		}
	}
	switch ext := path.Ext(name); {
	case t.b.listed(name):
		if hasAnchor {
			t.p.links = append(t.p.links, name+"#"+anchor)
			anchor = "#" + anchor
		}
		return relative(address(t.p.Path), address(name)) + anchor
	case strings.HasPrefix(name, "docs/") && ext != ".md" && ext != ".go" && ext != "":
		t.p.links = append(t.p.links, name)
		t.b.files[name] = true
		return relative(address(t.p.Path), strings.TrimPrefix(name, "docs/"))
	}
	t.p.links = append(t.p.links, name)
	return source + name
}

func exists(p string) bool {
	_, err := os.Stat(p)
	return err == nil
}

// listed says whether a file is a page of the site.
func (b *builder) listed(name string) bool {
	return slices.Contains(b.apart, name) || slices.ContainsFunc(b.groups, func(g group) bool { return slices.Contains(g.Pages, name) })
}

// list completes the menu.
func (b *builder) list() error {
	b.groups = slices.Clone(menu)
	for i := range b.groups {
		b.groups[i].Pages = slices.Clone(b.groups[i].Pages)
	}
	return filepath.WalkDir(filepath.Join(b.root, "docs"), func(p string, _ os.DirEntry, err error) error {
		name, _ := filepath.Rel(b.root, p)
		if name = filepath.ToSlash(name); err != nil || path.Ext(name) != ".md" || b.listed(name) {
			return err
		}
		if i := slices.IndexFunc(b.groups, func(g group) bool { return g.Title == home(name) }); i > 0 {
			b.groups[i].Pages = append(b.groups[i].Pages, name)
		} else {
			b.apart = append(b.apart, name)
		}
		return nil
	})
}

// release is the version, from the one place that has it.
func (b *builder) release() (string, error) {
	text, err := os.ReadFile(filepath.Join(b.root, "internal", "version", "version.go"))
	if err != nil {
		return "", err
	}
	_, rest, _ := strings.Cut(string(text), "const Number = \"")
	number, _, ok := strings.Cut(rest, "\"")
	if !ok {
		return "", errors.New("internal/version/version.go has no Number")
	}
	return number, nil
}

// relative is the way from one file of the site to another.
func relative(from, to string) string {
	way, err := filepath.Rel(filepath.Dir(filepath.FromSlash(from)), filepath.FromSlash(to))
	if err != nil {
		return to
	}
	return filepath.ToSlash(way)
}

// dead finds links that lead nowhere.
func (b *builder) dead() error {
	var all error
	for _, p := range b.pages {
		for _, link := range p.links {
			name, anchor, hasAnchor := strings.Cut(link, "#")
			switch {
			case !exists(filepath.Join(b.root, filepath.FromSlash(name))):
				all = errors.Join(all, fmt.Errorf("%s: there is no %s", p.Path, name))
			case hasAnchor && !b.pages[name].anchors[anchor]:
				all = errors.Join(all, fmt.Errorf("%s: %s has no section #%s", p.Path, name, anchor))
			}
		}
	}
	return all
}

var layout = template.Must(template.ParseFS(files, "page.html"))

// item is an entry of the menu.
type item struct {
	Title, Address string
	Current        bool
	Sections       []section // of the page that is shown
}

// write puts a page into the layout.
func (b *builder) write(p *page) error {
	type part struct {
		Title string
		Items []item
	}
	at := address(p.Path)
	view := struct {
		*page
		Up      string // to the root of the site
		Version string
		Menu    []part
	}{page: p, Up: relative(at, ".") + "/", Version: b.version}
	for _, g := range b.groups {
		m := part{Title: g.Title}
		for _, name := range g.Pages {
			i := item{Title: b.pages[name].Title, Address: relative(at, address(name))}
			if name == p.Path {
				i.Current, i.Sections = true, p.Sections
			}
			m.Items = append(m.Items, i)
		}
		view.Menu = append(view.Menu, m)
	}
	var content bytes.Buffer
	if err := layout.Execute(&content, view); err != nil {
		return err
	}
	return b.put(at, content.Bytes())
}

func (b *builder) put(name string, content []byte) error {
	p := filepath.Join(b.out, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(p), 0o777); err != nil {
		return err
	}
	return os.WriteFile(p, content, 0o666)
}

// styles writes the style sheet: that of reports, and what a site needs beside.
func (b *builder) styles() error {
	report, err := os.ReadFile(filepath.Join(b.root, "internal", "report", "style.css"))
	if err != nil {
		return err
	}
	own, err := files.ReadFile("site.css")
	if err != nil {
		return err
	}
	return b.put("style.css", slices.Concat(report, own))
}

// formulas sets what is indented: such blocks are formulas in these docs, but where they
// begin as a command does.
type formulas struct{}

func (formulas) RegisterFuncs(r renderer.NodeRendererFuncRegisterer) {
	r.Register(ast.KindCodeBlock, func(w util.BufWriter, source []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			return ast.WalkContinue, nil
		}
		var lines strings.Builder
		for i := range n.Lines().Len() {
			line := n.Lines().At(i)
			lines.Write(line.Value(source))
		}
		text := strings.TrimRight(lines.String(), "\n")
		if isFormula(text) {
			fmt.Fprintf(w, "<div class=\"formula\">%s</div>\n", set(text))
		} else {
			fmt.Fprintf(w, "<pre><code>%s</code></pre>\n", html.EscapeString(text))
		}
		return ast.WalkSkipChildren, nil
	})
}

// isFormula looks for what commands and programs do not have.
func isFormula(text string) bool {
	for _, word := range []string{"calamp ", "go ", "$ ", "#", ".ci/", "func "} {
		if strings.HasPrefix(text, word) || strings.Contains(text, " | calamp ") {
			return false
		}
	}
	return strings.ContainsAny(text, "=←∝≤~∫Σ")
}

// set turns _x, _{…}, ^x and ^{…} into lowered and raised text, and single letters into
// variables.
func set(text string) string {
	var b strings.Builder
	runes := []rune(text)
	for i := 0; i < len(runes); {
		if r := runes[i]; (r == '_' || r == '^') && i+1 < len(runes) && i > 0 && runes[i-1] != ' ' {
			inner, next := argument(runes, i+1)
			if inner != "" {
				tag := map[rune]string{'_': "sub", '^': "sup"}[r]
				fmt.Fprintf(&b, "<%s>%s</%[1]s>", tag, set(inner))
				i = next
				continue
			}
		}
		end := i
		for end < len(runes) && isLetter(runes[end]) {
			end++
		}
		switch {
		case end == i+1:
			fmt.Fprintf(&b, "<i>%s</i>", string(runes[i]))
		case end > i+1:
			b.WriteString(html.EscapeString(string(runes[i:end])))
		default:
			b.WriteString(html.EscapeString(string(runes[i])))
			end++
		}
		i = end
	}
	return b.String()
}

// argument is what is lowered or raised: {…}, or letters and digits.
func argument(runes []rune, from int) (inner string, next int) {
	if runes[from] == '{' {
		depth := 0
		for i := from; i < len(runes); i++ {
			switch runes[i] {
			case '{':
				depth++
			case '}':
				if depth--; depth == 0 {
					return string(runes[from+1 : i]), i + 1
				}
			}
		}
		return "", from
	}
	end := from
	for end < len(runes) && (isLetter(runes[end]) || runes[end] >= '0' && runes[end] <= '9') {
		end++
	}
	return string(runes[from:end]), end
}

func isLetter(r rune) bool {
	return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= 'α' && r <= 'ω' || r == 'Δ' || r == '̂' || r == '̃'
}
