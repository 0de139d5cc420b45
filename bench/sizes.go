package main

import (
	"fmt"

	"github.com/calamp/calamp/solver"

	"github.com/calamp/calamp/internal/figure"
)

// sizes draws the time of an iteration against the number of entries, with the
// time of a plain read below it.
func (b *bench) sizes() error {
	shapes := [][2]int{{180, 300}, {360, 600}, {600, 1000}, {1200, 2000}, {2400, 4000}, {6000, 10000}}
	counts := []int{1, 10, 100}
	if b.quick {
		shapes, counts = shapes[:4], counts[:2]
	}
	entries := make([]float64, len(shapes))
	reads := make([]float64, len(shapes))
	numpy := make([]float64, 0, len(shapes))
	times := make([][]float64, len(counts))
	note := ""
	for i, shape := range shapes {
		m, n := shape[0], shape[1]
		entries[i] = float64(m * n)
		for k, p := range counts {
			d, err := newProblem(iterationTable{m, n, p, 1})
			if err != nil {
				return err
			}
			variants := []*variant{{name: "iteration", f: b.timed(d.iteration(d.single, solver.Exact))}}
			var pids []int
			stop := func() {}
			if k == 0 {
				variants = append(variants, &variant{name: "read", f: b.timed(d.read())})
				if b.python != "" {
					if stop, err = b.addNumpy(d, &variants, &pids); err != nil {
						return err
					}
				}
			}
			c, err := b.measure(variants, pids)
			stop()
			if err != nil {
				return err
			}
			note = c.rounds
			times[k] = append(times[k], median(variants[0].times))
			if k == 0 {
				reads[i] = median(variants[1].times)
				if len(variants) > 2 {
					numpy = append(numpy, median(variants[2].times))
				}
			}
		}
	}
	f := figure.Figure{
		Title: "One iteration, one thread, f32",
		X:     figure.Axis{Label: "N · M", Log: true}, Y: figure.Axis{Label: "ms", Log: true},
	}
	b.printf("\n## Against the size\n\nThe whole iteration with f32 storage on 1 thread, in ms.\n")
	header := []string{"M × N", "plain read", "numpy f64, P = 1, no row function"}
	for k, p := range counts {
		name := fmt.Sprintf("P = %d", p)
		header = append(header, name)
		f.Series = append(f.Series, figure.Series{Name: name, X: entries, Y: times[k]})
	}
	f.Series = append(f.Series, figure.Series{Name: "plain read of W", X: entries, Y: reads, Dashed: true})
	if len(numpy) == len(shapes) {
		f.Series = append(f.Series, figure.Series{Name: "numpy, P = 1, without row function", X: entries, Y: numpy, Dashed: true})
	}
	rows := [][]string{header}
	for i, shape := range shapes {
		row := []string{fmt.Sprintf("%d × %d", shape[0], shape[1]), digits(reads[i]), "–"}
		if i < len(numpy) {
			row[2] = digits(numpy[i])
		}
		for k := range counts {
			row = append(row, digits(times[k][i]))
		}
		rows = append(rows, row)
	}
	b.markdown(rows)
	b.printf("\n*Of the last size: %s.*\n", note)
	return b.plot("iteration.svg", f)
}

// addNumpy adds numpy's four passes to the variants.
func (b *bench) addNumpy(d *problem, variants *[]*variant, pids *[]int) (stop func(), err error) {
	directory, err := d.write()
	if err != nil {
		return nil, err
	}
	numpy, err := b.startNumpy(directory, d.threads, false)
	if err != nil {
		return nil, err
	}
	*variants = append(*variants, numpy.variant("numpy f64", "f64"))
	*pids = append(*pids, numpy.command.Process.Pid)
	return func() {
		numpy.stop()
		remove(directory)
	}, nil
}
