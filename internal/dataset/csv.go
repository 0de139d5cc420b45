package dataset

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/calamp/calamp/internal/memory"
)

// csvOrder marks an array that was read from text, in Info.Order.
const csvOrder = "CSV"

// readings reads Y from a .npy, .npz, .mat or text, whichever it is, and from a .npz or .mat the
// truth as well, if it is there.
func (c *container) readings(mayBeComplex bool) (y *Array, truth truths, err error) {
	if c.format != foreignFormat {
		if y, err = c.readNumbers("Y", false, mayBeComplex); err != nil || c.format == npyFormat {
			return y, truth, err
		}
		if mayBeComplex { // else nor is the truth of interest
			truth, err = c.truth()
		}
		return y, truth, err
	}
	if len(c.head) == 0 || !isText(c.head) {
		return nil, truth, c.fault("", "%s, or readings as text (CSV)", foreign(c.head))
	}
	y, err = c.textTable("Y")
	return y, truth, err
}

// textTable reads an array from a text with a line for each row.
func (c *container) textTable(name string) (*Array, error) {
	text, err := io.ReadAll(io.NewSectionReader(c.file, 0, c.size))
	if err != nil {
		return nil, c.fault(name, "%w", withoutPath(err))
	}
	return parseText(c.path, name, text, c.allowed)
}

// separatorOf is what separates cells in a text: a semicolon, a comma, a tab, or, as 0, spaces; that of its first line which has any.
func separatorOf(text []byte) rune {
	for line := range bytes.Lines(text) {
		line = bytes.TrimSpace(line)
		if !bytes.ContainsAny(line, "0123456789") { // a header says little
			continue
		}
		for _, separator := range ";,\t" {
			if bytes.ContainsRune(line, separator) {
				return separator
			}
		}
		if len(bytes.Fields(line)) > 1 {
			return 0
		}
	}
	return ','
}

// parseText reads separated numbers, a row in each line.
func parseText(path, name string, text []byte, allowed *memory.Allowance) (*Array, error) {
	text = bytes.TrimPrefix(text, []byte("\ufeff")) // Excel's mark of UTF-8
	text = bytes.TrimRight(text, " \t\r\n")         // empty lines at the end are not sensors
	a := &Array{Info: Info{Name: name, Dtype: "text", Order: csvOrder, Bytes: int64(len(text))}, path: path, allowed: allowed}
	separator := separatorOf(text)
	all, longest := 0, 0
	for line := range bytes.Lines(text) {
		cells := bytes.Count(line, []byte(string(separator))) + 1
		if separator == 0 {
			cells = len(bytes.Fields(line))
		}
		all, longest = all+cells, max(longest, cells)
	}
	if err := allowed.Take(8*int64(all) + 16*int64(longest)); err != nil { // numbers, and a line's cells as text
		return nil, a.fault("%d cells: %w", all, err)
	}
	a.Data = make([]float64, 0, all)
	columns, rows, number := 0, 0, 0
	for line := range bytes.Lines(text) {
		number++
		cells := splitLine(string(line), separator)
		if number == 1 && isHeader(cells) {
			continue
		}
		if columns == 0 {
			columns = len(cells)
		}
		if len(cells) != columns {
			return nil, a.fault("line %d has %s, expected %d, as in the lines before", number, countCells(cells), columns)
		}
		for k, cell := range cells {
			v, err := parseReading(cell)
			if err != nil && k == 0 && len(cells) > 1 && isHeader(cells[:1]) {
				return nil, a.fault("line %d: the first column is %s, a label of the row perhaps: remove it (pandas: to_csv(index=False))", number, quote(cell))
			}
			if err != nil {
				return nil, a.fault("line %d, column %d: %w", number, k+1, err)
			}
			a.Data = append(a.Data, v)
		}
		rows++
	}
	if rows == 0 {
		return nil, a.fault("no numbers, expected them separated by commas, semicolons, tabs or spaces, one sensor a line")
	}
	a.Shape = []int{rows, columns}
	if a.countsRows() {
		return nil, a.fault("the first column counts the rows, which is an index and no signal: remove it (pandas: to_csv(index=False, header=False)), or give a .npy, where it is none")
	}
	return a, nil
}

// leastCounted is the number of rows from which a column that counts them is no chance.
const leastCounted = 3

// countsRows reports whether the first of several columns is 0, 1, 2, … or 1, 2, 3, …
func (a *Array) countsRows() bool {
	rows, columns := a.Shape[0], a.Shape[1]
	if rows < leastCounted || columns < 2 || a.Data[0] != 0 && a.Data[0] != 1 {
		return false
	}
	for i := range rows {
		if a.Data[i*columns] != a.Data[0]+float64(i) {
			return false
		}
	}
	return true
}

// splitLine separates cells, without the quotes and spaces around them.
func splitLine(line string, separator rune) []string {
	cells := strings.Split(line, string(separator))
	if separator == 0 {
		if cells = strings.Fields(line); len(cells) == 0 {
			cells = []string{""} // as an empty line is where commas separate
		}
	}
	for k, cell := range cells {
		cell = strings.TrimSpace(cell)
		if len(cell) >= 2 && cell[0] == '"' && cell[len(cell)-1] == '"' {
			cell = strings.TrimSpace(cell[1 : len(cell)-1])
		}
		if separator == ';' && strings.Count(cell, ",") == 1 { // where semicolons separate, a comma is a decimal one
			cell = strings.Replace(cell, ",", ".", 1)
		}
		cells[k] = cell
	}
	return cells
}

func countCells(cells []string) string {
	if len(cells) == 1 && cells[0] == "" {
		return "nothing in it"
	}
	if len(cells) == 1 {
		return "1 column"
	}
	return strconv.Itoa(len(cells)) + " columns"
}

// isHeader recognises a line of names: all text, without any number. A line with both
// is a damaged line of readings.
func isHeader(cells []string) bool {
	text := false
	for _, cell := range cells {
		_, err := strconv.ParseFloat(cell, 64)
		if err == nil || errors.Is(err, strconv.ErrRange) {
			return false
		}
		text = text || cell != ""
	}
	return text
}

// parseReading reads one cell; an empty cell or nan is a missing reading.
func parseReading(cell string) (float64, error) {
	if cell == "" || strings.EqualFold(cell, "nan") {
		return math.NaN(), nil
	}
	v, err := strconv.ParseFloat(cell, 64)
	if err == nil && !math.IsInf(v, 0) {
		return v, nil
	}
	return 0, fmt.Errorf("found %s, expected a finite number, or nothing or nan where a reading is missing", quote(cell))
}

// quote shows the text of a cell, shortened if it is long.
func quote(cell string) string {
	const most = 40
	if len(cell) <= most {
		return strconv.Quote(cell)
	}
	end := most
	for end > most-utf8.UTFMax && !utf8.RuneStart(cell[end]) {
		end--
	}
	return strconv.Quote(cell[:end]) + "…"
}

// headerHint explains why a CSV may have one row too many: a header line with numbers
// for names looks like readings.
func (a *Array) headerHint(m int) string {
	if a.Order == csvOrder && a.Shape[0] == m+1 {
		return "; if the first line is a header, remove it: all in it are numbers"
	}
	return ""
}
