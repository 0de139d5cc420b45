// Package prose reads the documents as their tests do: how many words they have, how long sentences are, which words
// they use, and whether the figures in them are those of the tables.
//
// A figure is checked where a comment follows it, as in
//
//	at most 1.26<!-- max LongGainDistributions: largest --> times
//
// with min, max, sum or rows, the name of a table, and a column. The table is that of a long test, docs/data/LongGainDistributions.csv, or one in docs after a line with "figures:" and its name. The figure is
// that of the column as far as it has digits. A % after min or max turns a fraction into per cent, #2 takes the second
// number of each cell, * all columns but the first, and after semicolons column=value, or !=, <, <=, > or >= in place of =, choose rows. Names that
// begin with results/ are those of the files there ([Results]), as in
//
//	16<!-- rows results/phase; algorithm=offline; over>=1.3; x_one_minus_ncc>1e-9 --> of 32170
package prose

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// Table is one of docs, with the heads of its columns.
type Table struct {
	Heads []string
	Rows  [][]string
}

// tableLine is that of a table of a page that figures are from.
var tableLine = regexp.MustCompile(`(?m)^<!-- figures: (\S+) -->\n((?:\|.*\n?)+)`)

// Tables of a page, by name.
func Tables(page string) map[string]Table {
	out := map[string]Table{}
	for _, found := range tableLine.FindAllStringSubmatch(page, -1) {
		var rows [][]string
		for _, line := range strings.Split(strings.TrimSpace(found[2]), "\n") {
			cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
			for i := range cells {
				cells[i] = strings.TrimSpace(cells[i])
			}
			rows = append(rows, cells)
		}
		if len(rows) > 2 {
			out[found[1]] = Table{rows[0], rows[2:]}
		}
	}
	return out
}

// Figure is a number of a text with the comment that says where it is from.
type Figure struct {
	Text   string
	Source string
}

var figure = regexp.MustCompile(`([-+]?\d[\d.]*(?:e[-+]?\d+)?)<!-- ((?:min|max|sum|rows)%? .*?) -->`)

// Figures of a page that say where they are from.
func Figures(page string) []Figure {
	var out []Figure
	for _, found := range figure.FindAllStringSubmatch(page, -1) {
		out = append(out, Figure{found[1], found[2]})
	}
	return out
}

// Check compares a figure with its table.
func (f Figure) Check(tables map[string]Table, results *Results) error {
	want, err := f.value(tables, results)
	if err != nil {
		return fmt.Errorf("%s, from %q: %w", f.Text, f.Source, err)
	}
	got, err := strconv.ParseFloat(f.Text, 64)
	if err != nil {
		return err
	}
	if math.Abs(got-want) > f.half()*(1+1e-9) {
		return fmt.Errorf("%s, but the table has %g (%s)", f.Text, want, f.Source)
	}
	return nil
}

// half a unit of the last digit.
func (f Figure) half() float64 {
	mantissa, exponent, _ := strings.Cut(f.Text, "e")
	power, _ := strconv.Atoi(exponent)
	_, decimals, _ := strings.Cut(mantissa, ".")
	return 0.5 * math.Pow10(power-len(decimals))
}

var number = regexp.MustCompile(`[-+]?\d+(?:\.\d+)?(?:e[-+]?\d+)?`)

// value is what the table says.
func (f Figure) value(tables map[string]Table, results *Results) (float64, error) {
	parts := strings.Split(f.Source, ";")
	head, column, _ := strings.Cut(parts[0], ":")
	how, name, _ := strings.Cut(head, " ")
	name = strings.TrimSpace(name)
	table, ok := tables[name]
	if !ok && results == nil {
		return 0, fmt.Errorf("there is no table %s", name)
	}
	if !ok {
		if !strings.HasPrefix(name, "results/") {
			name = "data/" + name
		}
		var err error
		if table, err = results.Named(name); err != nil {
			return 0, err
		}
	}
	rows, err := table.chosen(parts[1:])
	if err != nil {
		return 0, err
	}
	if how == "rows" {
		return float64(len(rows)), nil
	}
	if len(rows) == 0 {
		return 0, fmt.Errorf("no row has %s", strings.Join(parts[1:], ";"))
	}
	column, which, hasWhich := strings.Cut(strings.TrimSpace(column), " #")
	nth := 1
	if hasWhich {
		if nth, err = strconv.Atoi(which); err != nil {
			return 0, err
		}
	}
	columns, err := table.columns(column)
	if err != nil {
		return 0, err
	}
	var values []float64
	for _, row := range rows {
		for _, k := range columns {
			found := number.FindAllString(row[k], -1)
			if len(found) < nth {
				continue // a cell that has none: nothing was measured
			}
			v, err := strconv.ParseFloat(found[nth-1], 64)
			if err != nil {
				return 0, err
			}
			values = append(values, v)
		}
	}
	if len(values) == 0 {
		return 0, fmt.Errorf("no number %d in the rows that are left", nth)
	}
	return reduced(how, values), nil
}

func reduced(how string, values []float64) float64 {
	scale := 1.0
	if strings.HasSuffix(how, "%") {
		scale = 100
	}
	switch strings.TrimSuffix(how, "%") {
	case "min":
		return scale * slices.Min(values)
	case "max":
		return scale * slices.Max(values)
	}
	sum := 0.0
	for _, v := range values {
		sum += v
	}
	return scale * sum
}

// columns of a head, or all but the first.
func (t Table) columns(head string) ([]int, error) {
	if head == "*" {
		var all []int
		for k := 1; k < len(t.Heads); k++ {
			all = append(all, k)
		}
		return all, nil
	}
	k := slices.Index(t.Heads, head)
	if k < 0 {
		return nil, fmt.Errorf("there is no column %q; there are %s", head, strings.Join(t.Heads, ", "))
	}
	return []int{k}, nil
}

// chosen are the rows for which all conditions hold, column=value and others.
func (t Table) chosen(conditions []string) ([][]string, error) {
	rows := t.Rows
	for _, text := range conditions {
		found := condition.FindStringSubmatch(strings.TrimSpace(text))
		if found == nil {
			return nil, fmt.Errorf("%q, expected column=value", text)
		}
		column, sign, value := found[1], found[2], found[3]
		k := slices.Index(t.Heads, column)
		if k < 0 {
			return nil, fmt.Errorf("there is no column %q", column)
		}
		var left [][]string
		for _, row := range rows {
			if holds(row[k], sign, value) {
				left = append(left, row)
			}
		}
		rows = left
	}
	return rows, nil
}

var condition = regexp.MustCompile(`^(.*?)(!=|<=|>=|=|<|>)(.*)$`)

// holds compares texts, or numbers where the sign is one of order.
func holds(cell, sign, value string) bool {
	switch sign {
	case "=":
		return cell == value
	case "!=":
		return cell != value
	}
	a, errA := strconv.ParseFloat(cell, 64)
	b, errB := strconv.ParseFloat(value, 64)
	if errA != nil || errB != nil {
		return false
	}
	switch sign {
	case "<":
		return a < b
	case "<=":
		return a <= b
	case ">":
		return a > b
	}
	return a >= b
}

var (
	fence   = regexp.MustCompile("(?ms)^```.*?^```$")
	comment = regexp.MustCompile(`(?s)<!--.*?-->`)
	target  = regexp.MustCompile(`\]\([^)]*\)`)
	inline  = regexp.MustCompile("`[^`]*`")
)

// Text of a page, without code blocks, comments, and where links lead.
func Text(page string) string {
	return target.ReplaceAllString(comment.ReplaceAllString(fence.ReplaceAllString(page, ""), ""), "]")
}

// Words of a text: what has a letter or a digit.
func Words(text string) []string {
	return slices.DeleteFunc(strings.Fields(text), func(w string) bool {
		return !strings.ContainsFunc(w, func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) })
	})
}

var sentenceEnd = regexp.MustCompile(`[.!?:;]["*)]*\s|\n\s*\n\s*(?:[-*] |\d+\. )?|\n\s*(?:[-*]|\d+\.) |\|`)

// Sentences of a page, and the cells of its tables. Colons and semicolons end one, too; formulas and headings are none.
func Sentences(page string) []string {
	var kept []string
	for _, line := range strings.Split(Text(page), "\n") {
		if strings.HasPrefix(line, "    ") || strings.HasPrefix(line, "#") {
			line = ""
		}
		kept = append(kept, line)
	}
	var out []string
	for _, s := range sentenceEnd.Split(strings.Join(kept, "\n")+" ", -1) {
		if s = strings.Join(strings.Fields(s), " "); len(Words(s)) > 1 {
			out = append(out, s)
		}
	}
	return out
}

// Uses finds words of a list in a page, outside of code.
func Uses(page string, words []string) []string {
	text := strings.ToLower(strings.Join(strings.Fields(inline.ReplaceAllString(Text(page), "")), " "))
	return slices.DeleteFunc(slices.Clone(words), func(w string) bool {
		return !regexp.MustCompile(`(^|[^\pL-])` + regexp.QuoteMeta(w) + `($|[^\pL])`).MatchString(text)
	})
}
