package sweep

import (
	"encoding/csv"
	"fmt"
	"io"
	"slices"
	"strconv"
	"time"
)

// MergeOptions say what goes into the table.
type MergeOptions struct {
	// Runs adds when, where and how long: columns that differ from run to run.
	Runs bool
}

// Merge writes the table of a sweep as CSV: a line for every measure of every
// point, in the order of the points, whatever order they were run in. Points
// that failed have one line without measures, points without a row have none.
// The bytes are the same for any number of workers, shards and resumptions.
func Merge(w io.Writer, points []Point, rows Rows, opt *MergeOptions) error {
	if opt == nil {
		opt = &MergeOptions{}
	}
	c := csv.NewWriter(w)
	columns, parameters := Columns, []string{"key", "algorithm", "n", "density", "alpha", "p", "noise_var", "s_lo", "s_hi"}
	complexOnes := slices.ContainsFunc(points, Point.Complex)
	if complexOnes {
		columns, parameters = append(slices.Clone(columns), complexColumns...), append(parameters, "phase")
	}
	kinds := slices.ContainsFunc(points, func(p Point) bool { return !p.independent() })
	if kinds {
		parameters = append(parameters, "matrix", "solver")
	}
	joint := slices.ContainsFunc(points, func(p Point) bool { return p.Joint.on() })
	if joint {
		parameters = append(parameters, "joint")
	}
	rowsEach := slices.ContainsFunc(points, func(p Point) bool { return p.Rows > 1 })
	if rowsEach {
		parameters = append(parameters, "rows_per_sensor")
	}
	networks := slices.ContainsFunc(points, func(p Point) bool { return p.Network != "" })
	if networks {
		parameters = append(parameters, "network")
	}
	header := append(append(parameters, "covariance", "seed", "status", "error_class", "iterations", "sample", "iteration"), columns...)
	if opt.Runs {
		header = append(header, "wall_s", "done", "version", "host")
	}
	c.Write(header)
	for _, p := range points {
		row, there := rows[p.Key()]
		if !there {
			continue
		}
		measures := row.Measures
		if len(measures) == 0 {
			measures = []Measure{{}}
		}
		for _, m := range measures {
			line := append(row.cells(p, complexOnes, kinds, joint, rowsEach, networks), m.cells(columns)...)
			if opt.Runs {
				line = append(line, decimal(row.WallS), row.Done.Format(time.RFC3339Nano), row.Version, row.Host)
			}
			c.Write(line)
		}
	}
	c.Flush() // keeps the first error of the writes before
	return c.Error()
}

func (r *Row) cells(p Point, phase, kind, joint, rows, network bool) []string {
	covariance := p.Covariance
	if covariance == "" && p.Algorithm.synthetic() {
		covariance = "diagonal"
	}
	cells := []string{
		p.Key(), string(p.Algorithm), whole(p.N), decimal(p.Density), decimal(p.Alpha), whole(p.P),
		decimal(p.NoiseVar), decimal(p.SRange[0]), decimal(p.SRange[1]),
	}
	if phase {
		cells = append(cells, string(p.Phase))
	}
	if kind {
		cells = append(cells, p.Matrix.String(), p.Solver.Algorithm.String())
	}
	if joint {
		cells = append(cells, string(p.Joint))
	}
	if rows {
		cells = append(cells, whole(p.rows()))
	}
	if network {
		cells = append(cells, p.Network)
	}
	return append(cells, covariance, fmt.Sprint(p.Seed), r.Status, r.Class, whole(r.Iterations))
}

func (m Measure) cells(columns []string) []string {
	out := []string{whole(m.Sample), whole(m.Iteration)}
	for _, name := range columns {
		cell := ""
		if v, ok := m.Values[name]; ok {
			cell = decimal(v)
		}
		out = append(out, cell)
	}
	return out
}

func whole(v int) string { return strconv.Itoa(v) }

func decimal(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }
