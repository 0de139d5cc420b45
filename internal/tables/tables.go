// Package tables is how long tests hand over what they measured: as tables in
// Markdown, on standard output, and for .ci/long in files, which it puts into
// docs.
package tables

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Long is the flag -long of all test binaries with long measurements.
var Long = flag.Bool("long", false, "run the long measurements")

var folder = flag.String("tables", "", "write the tables of long measurements, and further files of docs, into this folder")

// Table is being measured.
type Table struct {
	t       testing.TB
	columns int
	text    strings.Builder
}

// New begins the table of a test, with the heads of its columns. It is named
// after the test without "Test", or "NAME/part" where a test has several parts.
func New(t testing.TB, part string, heads ...string) *Table {
	t.Helper()
	table := &Table{t: t, columns: len(heads)}
	name := strings.TrimPrefix(t.Name(), "Test")
	if part != "" {
		name += "/" + part
	}
	fmt.Println(name)
	table.line("| " + strings.Join(heads, " | ") + " |")
	table.line("|" + strings.Repeat(" --- |", len(heads)))
	t.Cleanup(func() { table.write(name) })
	return table
}

// Row adds a row: "| a | b |" in the words of fmt.Sprintf.
func (b *Table) Row(format string, values ...any) {
	b.t.Helper()
	row := strings.ReplaceAll(fmt.Sprintf(format, values...), "NaN", "–") // a mean of nothing
	if n := strings.Count(row, "|") - 1; n != b.columns {
		b.t.Errorf("a row of %d cells in a table of %d: %s", n, b.columns, row)
	}
	b.line(row)
}

func (b *Table) line(text string) {
	fmt.Println(text)
	b.text.WriteString(text + "\n")
}

func (b *Table) write(name string) {
	if *folder == "" {
		return
	}
	path := filepath.Join(*folder, filepath.FromSlash(name)+".md")
	err := os.MkdirAll(filepath.Dir(path), 0o777)
	if err == nil {
		err = os.WriteFile(path, []byte(b.text.String()), 0o666)
	}
	if err != nil {
		b.t.Error(err)
	}
}

// File is where to write a further file that belongs into docs, theory/a.csv
// for docs/theory/a.csv; ok is false where they are not collected.
func File(t testing.TB, name string) (path string, ok bool) {
	t.Helper()
	if *folder == "" {
		return "", false
	}
	path = filepath.Join(*folder, "docs", filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		t.Fatal(err)
	}
	return path, true
}
