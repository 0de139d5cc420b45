package main

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/calamp/calamp/internal/search"
)

// A row is what is kept of a problem and its run: a line of the .csv.
type row struct {
	kind                string
	index               int
	complex             bool
	m, n, p             int
	decibel             float64
	gains, phases, flaw string
	density, limit      float64 // of what gives the signals to 5 %; α_min
	bound               float64 // see blindBound; NaN in tables from before it
	others              others
	solvable            bool
	outcome             string
	code                int
	status              string
	warnings            []string
	wall, cpu           float64 // seconds
	error, gainError    float64
	coverage, deviation float64
}

var header = []string{
	"kind", "index", "set", "complex", "m", "n", "p", "decibel", "gains", "phases", "flaw", "density", "alpha_min", "known_pursuit", "known_lasso", "known_calamp",
	"alternating", "ignored", "solvable", "outcome", "exit", "status", "warnings", "wall_s", "cpu_s", "error", "gain_error", "coverage", "deviation", "blind_bound",
}

func (r *row) fields() []string {
	number := func(v float64) string { return strconv.FormatFloat(v, 'g', 4, 64) }
	return []string{
		r.kind, strconv.Itoa(r.index), set(r.index), strconv.FormatBool(r.complex), strconv.Itoa(r.m), strconv.Itoa(r.n), strconv.Itoa(r.p),
		number(r.decibel), r.gains, r.phases, r.flaw, number(r.density), number(r.limit), number(r.others.pursuit), number(r.others.lasso), number(r.others.calamp),
		number(r.others.alternating), number(r.others.ignored), strconv.FormatBool(r.solvable), r.outcome, strconv.Itoa(r.code), r.status,
		strings.Join(r.warnings, " "), number(r.wall), number(r.cpu), number(r.error), number(r.gainError), number(r.coverage), number(r.deviation), number(r.bound),
	}
}

func parse(fields []string) (r *row, err error) {
	number := func(s string) float64 {
		v, failed := strconv.ParseFloat(s, 64)
		err = errors.Join(err, failed)
		return v
	}
	whole := func(s string) int { return int(number(s)) }
	if len(fields) < len(header) {
		fields = append(slices.Clone(fields), "NaN")
	}
	return &row{
		kind: fields[0], index: whole(fields[1]), complex: fields[3] == "true", m: whole(fields[4]), n: whole(fields[5]), p: whole(fields[6]),
		decibel: number(fields[7]), gains: fields[8], phases: fields[9], flaw: fields[10], density: number(fields[11]), limit: number(fields[12]),
		others:   others{number(fields[13]), number(fields[14]), number(fields[15]), number(fields[16]), number(fields[17])},
		solvable: fields[18] == "true", outcome: fields[19], code: whole(fields[20]), status: fields[21], warnings: strings.Fields(fields[22]),
		wall: number(fields[23]), cpu: number(fields[24]), error: number(fields[25]), gainError: number(fields[26]),
		coverage: number(fields[27]), deviation: number(fields[28]), bound: number(fields[29]),
	}, err
}

// readRows reads a .csv; none where there is no such file.
func readRows(path string) ([]*row, error) {
	file, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer file.Close()
	reader := csv.NewReader(file)
	reader.FieldsPerRecord = -1 // tables from before the last column are read, and gone on with
	lines, err := reader.ReadAll()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	var rows []*row
	for i, fields := range lines {
		if before := header[:len(header)-1]; i == 0 && !slices.Equal(fields, header) && !slices.Equal(fields, before) || len(fields) != len(header) && len(fields) != len(before) {
			return nil, fmt.Errorf("%s: other columns than this program writes", path)
		}
		if i == 0 {
			continue
		}
		r, err := parse(fields)
		if err != nil {
			return nil, fmt.Errorf("%s, line %d: %w", path, i+1, err)
		}
		rows = append(rows, r)
	}
	return rows, nil
}

// appendRow writes a row to the end of a .csv, which is made where it is not there.
func appendRow(path string, r *row) error {
	file, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	w := csv.NewWriter(file)
	if info, err := file.Stat(); err == nil && info.Size() == 0 {
		w.Write(header)
	}
	w.Write(r.fields())
	w.Flush()
	return errors.Join(w.Error(), file.Close())
}

// summarise writes a table of the rows, a line a kind, in Markdown.
func summarise(to io.Writer, all []*row) {
	fmt.Fprint(to, "| kind | problems | solvable | of them solved |")
	for _, o := range outcomes {
		fmt.Fprintf(to, " %s |", o)
	}
	fmt.Fprintln(to, " error ÷ known | where solved | alternating ℓ1 useful | ignored useful | median s | largest s | of processor | largest |")
	fmt.Fprintln(to, "| --- |"+strings.Repeat(" --: |", 3+len(outcomes)+8))
	for _, k := range kinds() {
		sumUp(k.name, all, func(r *row) bool { return r.kind == k.name }).write(to)
	}
	sumUp("with a flaw", all, func(r *row) bool { return r.flaw != "" }).write(to)
	sumUp("without", all, func(r *row) bool { return r.flaw == "" }).write(to)
	sumUp("**all**", all, func(*row) bool { return true }).write(to)
}

// A summary is a line of the table.
type summary struct {
	name                  string
	count, solvable, good int
	ends                  map[string]int
	ratios, solvedRatios  []float64 // of the error to that with known gains
	alternating, ignored  int
	times, processor      []float64 // seconds
}

func sumUp(name string, all []*row, of func(*row) bool) *summary {
	s := &summary{name: name, ends: map[string]int{}}
	for _, r := range all {
		if !of(r) {
			continue
		}
		s.count++
		s.ends[r.outcome]++
		if r.solvable {
			s.solvable++
		}
		if r.solvable && r.outcome == solved {
			s.good++
		}
		known := r.others.known()
		if !math.IsNaN(r.error) {
			s.ratios = append(s.ratios, r.error/known)
			if r.outcome == solved {
				s.solvedRatios = append(s.solvedRatios, r.error/known)
			}
		}
		useful := usefulUpTo(known)
		if r.others.alternating <= useful {
			s.alternating++
		}
		if r.others.ignored <= useful {
			s.ignored++
		}
		s.times, s.processor = append(s.times, r.wall), append(s.processor, r.cpu)
	}
	return s
}

func (s *summary) write(to io.Writer) {
	if s.count == 0 {
		return
	}
	fmt.Fprintf(to, "| %s | %d | %d | %d |", s.name, s.count, s.solvable, s.good)
	for _, o := range outcomes {
		fmt.Fprintf(to, " %d |", s.ends[o])
	}
	fmt.Fprintf(to, " %s | %s | %d | %d | %.1f | %.1f | %.1f | %.1f |\n", ratio(s.ratios), ratio(s.solvedRatios), s.alternating, s.ignored, search.Median(s.times), slices.Max(s.times), search.Median(s.processor), slices.Max(s.processor))
}

func ratio(v []float64) string {
	if len(v) == 0 {
		return "–"
	}
	return fmt.Sprintf("%.2g", search.Median(v))
}
