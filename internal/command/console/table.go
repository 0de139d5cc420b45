package console

import (
	"encoding/csv"
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
)

// Table is a list of numbers with named columns; what is not finite is left
// empty.
type Table struct {
	Header []string
	Rows   [][]float64
}

// CSV writes all digits.
func (t Table) CSV(w io.Writer) error {
	c := csv.NewWriter(w)
	c.Write(t.Header)
	for _, row := range t.Rows {
		c.Write(cells(row, -1, ""))
	}
	c.Flush() // keeps the first error of the writes before
	return c.Error()
}

// Text writes columns for people.
func (t Table) Text(w io.Writer) error {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tw, strings.Join(t.Header, "\t"))
	for _, row := range t.Rows {
		fmt.Fprintln(tw, strings.Join(cells(row, 7, "-"), "\t"))
	}
	return tw.Flush()
}

func cells(row []float64, digits int, none string) []string {
	words := make([]string, len(row))
	for i, v := range row {
		words[i] = none
		if Known(v) != nil {
			words[i] = strconv.FormatFloat(v, 'g', digits, 64)
		}
	}
	return words
}
