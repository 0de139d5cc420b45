package prose

import (
	"compress/gzip"
	"encoding/csv"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Results are the tables that docs has as files, by names such as results/condition for docs/results/condition.csv.gz. A sweep with thresholds
// gets a column "over": α of each point over α_cal of its problem.
type Results struct {
	Docs   string // the folder docs
	tables map[string]Table
}

// Named reads a table, once.
func (r *Results) Named(name string) (Table, error) {
	if t, ok := r.tables[name]; ok {
		return t, nil
	}
	t, err := r.read(filepath.Join(r.Docs, filepath.FromSlash(name)))
	if err != nil {
		return t, err
	}
	if r.tables == nil {
		r.tables = map[string]Table{}
	}
	r.tables[name] = t.withThresholds()
	return r.tables[name], nil
}

func (r *Results) read(path string) (Table, error) {
	var from io.Reader
	if f, err := os.Open(path + ".csv"); err == nil {
		defer f.Close()
		from = f
	} else {
		f, err := os.Open(path + ".csv.gz")
		if err != nil {
			return Table{}, err
		}
		defer f.Close()
		if from, err = gzip.NewReader(f); err != nil {
			return Table{}, err
		}
	}
	rows, err := csv.NewReader(from).ReadAll()
	if err != nil || len(rows) < 2 {
		return Table{}, fmt.Errorf("%s: %d rows, %v", path, len(rows), err)
	}
	return Table{rows[0], rows[1:]}, nil
}

// problem are the columns that a point of a sweep shares with its threshold.
var problem = []string{"density", "p", "noise_var", "s_lo", "s_hi", "matrix", "network", "phase", "joint"}

// withThresholds adds the column "over" where there are thresholds.
func (t Table) withThresholds() Table {
	algorithm, alpha, cal := slices.Index(t.Heads, "algorithm"), slices.Index(t.Heads, "alpha"), slices.Index(t.Heads, "alpha_cal")
	if algorithm < 0 || alpha < 0 || cal < 0 {
		return t
	}
	var columns []int
	for _, name := range problem {
		if k := slices.Index(t.Heads, name); k >= 0 {
			columns = append(columns, k)
		}
	}
	key := func(row []string) string {
		var b strings.Builder
		for _, k := range columns {
			b.WriteString(row[k] + "\n")
		}
		return b.String()
	}
	thresholds := map[string]float64{}
	for _, row := range t.Rows {
		if row[algorithm] == "threshold" {
			thresholds[key(row)], _ = strconv.ParseFloat(row[cal], 64)
		}
	}
	out := Table{Heads: append(slices.Clone(t.Heads), "over")}
	for _, row := range t.Rows {
		over := ""
		if at, ok := thresholds[key(row)]; ok && row[algorithm] != "threshold" {
			a, _ := strconv.ParseFloat(row[alpha], 64)
			over = strconv.FormatFloat(a/at, 'g', -1, 64)
		}
		out.Rows = append(out.Rows, append(row, over))
	}
	return out
}
