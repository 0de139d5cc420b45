package main

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"
)

const (
	batchTime = 50 * time.Millisecond // of a variant in a round
	warmTime  = 50 * time.Millisecond // before it

	// disturbing is how many processors others may use in a round that counts.
	disturbing = 0.06
	// tries bounds how many rounds are made for one that counts.
	tries = 3
	// fewest is how many rounds must count for the others to be left out.
	fewest = 3
)

// variant is something timed: f runs it a number of times.
type variant struct {
	name   string
	f      func(repeats int) (time.Duration, error)
	settle time.Duration // pause afterwards
	times  []float64     // ms a run, by round
	batch  int
}

// comparison is what a table is made from: variants, and what was done about
// disturbed rounds, in words.
type comparison struct {
	variants []*variant
	rounds   string
}

// measure runs every variant in every round; pids are the children's.
func (b *bench) measure(variants []*variant, pids []int) (*comparison, error) {
	for _, v := range variants {
		if _, err := v.f(1); err != nil {
			return nil, err
		}
		took, err := v.f(1)
		if err != nil {
			return nil, err
		}
		v.batch = 1 + int(batchTime/max(took, 1))
	}
	var others []float64
	quiet := 0
	for len(others) < tries*b.rounds && quiet < b.rounds {
		if b.cpu && len(others) == b.rounds {
			break // processor time is not disturbed so easily
		}
		before := usage(pids)
		for _, v := range variants {
			if err := v.round(); err != nil {
				return nil, err
			}
		}
		others = append(others, usage(pids).others(before))
		if !(others[len(others)-1] > disturbing) {
			quiet++
		}
	}
	c := &comparison{variants: variants}
	worst := slices.Max(others)
	switch {
	case b.cpu:
		c.rounds = fmt.Sprintf("%d rounds; other processes used up to %.1f processors", len(others), worst)
	case quiet < min(fewest, b.rounds):
		c.rounds = fmt.Sprintf("**disturbed**: %d of %d rounds, in which other processes used up to %.1f processors; all are shown", len(others)-quiet, len(others), worst)
	default:
		c.rounds = fmt.Sprintf("%d rounds, %d more left out because of other processes", quiet, len(others)-quiet)
		for _, v := range variants {
			kept := v.times[:0]
			for i, t := range v.times {
				if !(others[i] > disturbing) {
					kept = append(kept, t)
				}
			}
			v.times = kept
		}
	}
	return c, nil
}

// round times one batch, warm.
func (v *variant) round() error {
	warm := max(1, int(float64(v.batch)*warmTime.Seconds()/batchTime.Seconds()))
	if v.batch == 1 {
		warm = 0 // a run this long warms itself
	}
	if warm > 0 {
		if _, err := v.f(warm); err != nil {
			return err
		}
	}
	took, err := v.f(v.batch)
	if err != nil {
		return err
	}
	v.times = append(v.times, 1e3*took.Seconds()/float64(v.batch))
	time.Sleep(v.settle)
	return nil
}

func (c *comparison) find(name string) *variant {
	for _, v := range c.variants {
		if v.name == name {
			return v
		}
	}
	return nil
}

// ratios are those of the times of two variants, by round.
func ratios(over, under *variant) []float64 {
	r := make([]float64, len(over.times))
	for i, t := range over.times {
		r[i] = t / under.times[i]
	}
	return r
}

// table prints the median times and, against every one of the variants named,
// median and quartiles of how many times as long that one takes.
func (b *bench) table(c *comparison, title, unit string, scale float64, against ...string) {
	var base []*variant
	header := []string{title, unit}
	for _, name := range against {
		if v := c.find(name); v != nil {
			base = append(base, v)
			header = append(header, name+" ÷ it")
		}
	}
	rows := [][]string{header}
	for _, v := range c.variants {
		row := []string{v.name, digits(scale * median(v.times))}
		for _, o := range base {
			if o == v {
				row = append(row, "1")
				continue
			}
			r := ratios(o, v)
			row = append(row, fmt.Sprintf("%s [%s–%s]", digits(median(r)), digits(quantile(r, 0.25)), digits(quantile(r, 0.75))))
		}
		rows = append(rows, row)
	}
	b.markdown(rows)
	b.printf("\n*%s.*\n\n", c.rounds)
}

// markdown prints a table whose first row is the header.
func (b *bench) markdown(rows [][]string) {
	b.printf("\n")
	for i, row := range rows {
		b.printf("| %s |\n", strings.Join(row, " | "))
		if i == 0 {
			b.printf("|%s\n", strings.Repeat(" --- |", len(row)))
		}
	}
}

// digits shows three digits.
func digits(v float64) string {
	switch {
	case v >= 100:
		return fmt.Sprintf("%.0f", v)
	case v >= 10:
		return fmt.Sprintf("%.1f", v)
	case v >= 1:
		return fmt.Sprintf("%.2f", v)
	}
	return fmt.Sprintf("%.3f", v)
}

func median(values []float64) float64 { return quantile(values, 0.5) }

func quantile[T cmp.Ordered](values []T, q float64) T {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[int(q*float64(len(sorted)-1)+0.5)]
}

// timed is the time that repeats runs of f take on this thread or, in wall
// time, on all of its threads.
func (b *bench) timed(f func()) func(int) (time.Duration, error) {
	return func(repeats int) (time.Duration, error) {
		start := b.now()
		for range repeats {
			f()
		}
		return b.now() - start, nil
	}
}

var started = time.Now()

// now is the clock of this run.
func (b *bench) now() time.Duration {
	if b.cpu {
		return threadTime()
	}
	return time.Since(started)
}

// remove drops a directory of the run's own.
func remove(directory string) {
	if err := os.RemoveAll(directory); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
	}
}
