// Package warning says what each warning means: how much it matters, what was seen, when it may be ignored, and what to do. The
// command's help, the pages of the docs and the report are made of it.
package warning

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Level is how much a warning matters.
type Level uint8

// From what matters least.
const (
	Noted     Level = iota // what was assumed, widened or taken away
	Part                   // some sensors, readings or entries
	Doubt                  // the whole answer, or its error bars
	Untrusted              // the answer is none
)

// String is the level in words.
func (l Level) String() string {
	return [...]string{
		"says what was assumed, corrected or widened", "is about single sensors, readings or entries", "puts the answer, or its error bars, in doubt", "the result is not to be trusted: exit code 3",
	}[l]
}

// Page is what there is to say of a warning.
type Page struct {
	Code     string
	Level    Level
	Seen     string   // what was seen, a sentence
	Means    string   // what that means
	Ignore   string   // when it may be ignored, see [Page.Ignoring]
	Remedies []string // in the order in which to try them
}

// Ignoring is when the warning may be ignored, a sentence.
func (p Page) Ignoring() string {
	if rest, never := strings.CutPrefix(p.Ignore, "never"); never {
		return "It may never be ignored" + rest
	}
	return "It may be ignored " + p.Ignore
}

// Pages lists all, the gravest first.
func Pages() []Page {
	return slices.SortedStableFunc(slices.Values(pages), func(a, b Page) int { return cmp.Compare(b.Level, a.Level) })
}

// Of is the page of a code; ok is false where there is none.
func Of(code string) (p Page, ok bool) {
	i := slices.IndexFunc(pages, func(p Page) bool { return p.Code == code })
	if i < 0 {
		return Page{}, false
	}
	return pages[i], true
}

// LevelOf is that of a code's page; of a code that has none it is Doubt.
func LevelOf(code string) Level {
	if p, ok := Of(code); ok {
		return p.Level
	}
	return Doubt
}

// Sort sorts warnings by how much they matter, and leaves those that matter equally in their order.
func Sort[W any](list []W, code func(W) string) {
	slices.SortStableFunc(list, func(a, b W) int { return cmp.Compare(LevelOf(code(b)), LevelOf(code(a))) })
}

// URL is where the page is to be read.
func (p Page) URL() string {
	return "https://github.com/calamp/calamp/blob/main/docs/warnings/" + p.Code + ".md"
}

// Plain is the page without the marks of code.
func (p Page) Plain() Page {
	strip := func(text string) string { return strings.ReplaceAll(text, "`", "") }
	p.Seen, p.Means, p.Ignore, p.Remedies = strip(p.Seen), strip(p.Means), strip(p.Ignore), slices.Clone(p.Remedies)
	for i, r := range p.Remedies {
		p.Remedies[i] = strip(r)
	}
	return p
}

// Text is the page for a terminal.
func (p Page) Text() string {
	p = p.Plain()
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s\n\nWhat was seen: %s\nWhat it means: %s\n%s\n\nWhat to do, in this order:\n", p.Code, p.Level, p.Seen, p.Means, p.Ignoring())
	for i, r := range p.Remedies {
		fmt.Fprintf(&b, "  %d. %s\n", i+1, r)
	}
	return b.String()
}

// List is all codes for a terminal, those that matter most first.
func List() string {
	var b strings.Builder
	level := Untrusted + 1
	for _, p := range Pages() {
		if p.Level != level {
			level = p.Level
			fmt.Fprintf(&b, "%s:\n", capital(level.String()))
		}
		fmt.Fprintf(&b, "  %s\n", p.Code)
	}
	return b.String()
}

// Markdown is the page for the docs.
func (p Page) Markdown() string {
	var b strings.Builder
	fmt.Fprintf(&b, "# Warning `%s`\n\n*%s.*\n\n%s\n\n%s\n\n%s\n\nWhat to do, in this order:\n\n", p.Code, capital(p.Level.String()), p.Seen, p.Means, p.Ignoring())
	for i, r := range p.Remedies {
		fmt.Fprintf(&b, "%d. %s\n", i+1, r)
	}
	fmt.Fprintf(&b, "\nIn the terminal: `calamp help %s`. [All warnings](README.md).\n", p.Code)
	return b.String()
}

// Index is the table of all pages for the docs.
func Index() string {
	var b strings.Builder
	b.WriteString("# All warnings\n\nThose that matter most first; `calamp help CODE` prints a page.\n")
	level := Untrusted + 1
	for _, p := range Pages() {
		if p.Level != level {
			level = p.Level
			fmt.Fprintf(&b, "\n**%s**\n\n| code | what was seen |\n| --- | --- |\n", capital(level.String()))
		}
		fmt.Fprintf(&b, "| [`%s`](%s.md) | %s |\n", p.Code, p.Code, p.Seen)
	}
	return b.String()
}

func capital(text string) string { return strings.ToUpper(text[:1]) + text[1:] }
