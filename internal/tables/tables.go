// Package tables is how long tests hand over what they measured: as tables in
// Markdown, on standard output, and for .ci/long as .csv files, which it puts into
// docs/data.
package tables

import (
	"encoding/csv"
	"errors"
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
	rows    [][]string
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
	table.rows = append(table.rows, heads)
	fmt.Println("| " + strings.Join(heads, " | ") + " |")
	fmt.Println("|" + strings.Repeat(" --- |", len(heads)))
	t.Cleanup(func() { table.write(name) })
	return table
}

// Row adds a row: "| a | b |" in the words of fmt.Sprintf.
func (b *Table) Row(format string, values ...any) {
	b.t.Helper()
	row := strings.ReplaceAll(fmt.Sprintf(format, values...), "NaN", "–") // a mean of nothing
	cells := strings.Split(strings.Trim(strings.TrimSpace(row), "|"), "|")
	for i := range cells {
		cells[i] = strings.TrimSpace(cells[i])
	}
	if len(cells) != b.columns {
		b.t.Errorf("a row of %d cells in a table of %d: %s", len(cells), b.columns, row)
	}
	fmt.Println(row)
	b.rows = append(b.rows, cells)
}

func (b *Table) write(name string) {
	if *folder == "" {
		return
	}
	path := filepath.Join(*folder, filepath.FromSlash(name)+".csv")
	var text strings.Builder
	err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o777), csv.NewWriter(&text).WriteAll(b.rows))
	if err == nil {
		err = os.WriteFile(path, []byte(text.String()), 0o666)
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
