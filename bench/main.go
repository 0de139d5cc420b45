// Command bench times one iteration of calamp against the same linear algebra
// in numpy, paired in one run: every round runs every variant, and what is
// reported is medians and quartiles of the rounds' ratios, beside the time that
// merely reading W takes in the same rounds.
//
//	go run ./bench -m 6000 -n 10000 -p 1 -threads 2
package main

import (
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/calamp/calamp/internal/kernel"
)

type config struct {
	m, n, p, threads, rounds int
	python                   string
	settle                   time.Duration
	only                     string
	cpu                      bool
}

func main() {
	var c config
	flag.IntVar(&c.m, "m", 1000, "rows of W")
	flag.IntVar(&c.n, "n", 1000, "columns of W")
	flag.IntVar(&c.p, "p", 1, "signals")
	flag.IntVar(&c.threads, "threads", 1, "threads of each variant")
	flag.IntVar(&c.rounds, "rounds", 11, "rounds")
	flag.StringVar(&c.python, "python", "/usr/bin/python3", "Python with numpy; empty to leave numpy out")
	flag.DurationVar(&c.settle, "settle", 400*time.Millisecond, "pause after numpy, whose threads spin")
	flag.BoolVar(&c.cpu, "cpu", false, "with one thread: processor time in place of wall time, for a machine with other work")
	flag.StringVar(&c.only, "variant", "", "run this variant only, without numpy")
	flag.Parse()
	if err := run(&c); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// variant is something timed: f runs it a number of times.
type variant struct {
	name  string
	f     func(repeats int) (time.Duration, error)
	times []float64 // ms a run, by round
	batch int
}

func run(c *config) error {
	if c.cpu {
		if c.threads != 1 {
			return errors.New("-cpu is for one thread")
		}
		runtime.LockOSThread()
	}
	runtime.GOMAXPROCS(max(runtime.GOMAXPROCS(0), c.threads))
	rng := rand.New(rand.NewPCG(1, 2))
	w := make([]float64, c.m*c.n)
	for i := range w {
		w[i] = float64(float32(rng.NormFloat64()))
	}
	variants, err := ours(c, w)
	if err != nil {
		return err
	}
	if c.python != "" && c.only == "" {
		child, err := startNumpy(c, w)
		if err != nil {
			return err
		}
		defer child.stop()
		names := []string{"f64", "f32", "two-pass"}
		if c.p > 1 {
			names = []string{"f64", "f64-first", "f32-first", "two-pass"}
		}
		for _, name := range names {
			variants = append(variants, &variant{name: "numpy " + name, f: func(repeats int) (time.Duration, error) {
				defer time.Sleep(c.settle)
				return child.time(name, repeats)
			}})
		}
	}
	if c.only != "" {
		variants = slices.DeleteFunc(variants, func(v *variant) bool { return v.name != c.only })
	}
	w = nil
	level, err := kernel.Active()
	if err != nil {
		return err
	}
	fmt.Printf("M=%d N=%d P=%d, %d threads, %s kernels, %d rounds\n", c.m, c.n, c.p, c.threads, level, c.rounds)
	if err := measure(variants, c.rounds); err != nil {
		return err
	}
	report(variants)
	return nil
}

// measure runs every variant in every round, in batches of at least 50 ms.
func measure(variants []*variant, rounds int) error {
	const batch = 50 * time.Millisecond
	for _, v := range variants {
		if _, err := v.f(1); err != nil {
			return err
		}
		took, err := v.f(3)
		if err != nil {
			return err
		}
		v.batch = 1 + int(3*batch/max(took, 1))
	}
	for range rounds {
		for _, v := range variants {
			if _, err := v.f(1 + v.batch/4); err != nil { // warm
				return err
			}
			took, err := v.f(v.batch)
			if err != nil {
				return err
			}
			v.times = append(v.times, took.Seconds()*1e3/float64(v.batch))
		}
	}
	return nil
}

// report prints the medians, and the quartiles of the numpy variants' ratios to
// each of ours.
func report(variants []*variant) {
	t := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprint(t, "variant\tms")
	ours := slices.DeleteFunc(slices.Clone(variants), func(v *variant) bool { return strings.HasPrefix(v.name, "numpy") })
	for _, v := range ours {
		fmt.Fprintf(t, "\t÷ %s", v.name)
	}
	fmt.Fprintln(t)
	for _, v := range variants {
		fmt.Fprintf(t, "%s\t%.3f", v.name, quantile(v.times, 0.5))
		for _, other := range ours {
			ratios := make([]float64, len(v.times))
			for i := range ratios {
				ratios[i] = v.times[i] / other.times[i]
			}
			fmt.Fprintf(t, "\t%.2f [%.2f-%.2f]", quantile(ratios, 0.5), quantile(ratios, 0.25), quantile(ratios, 0.75))
		}
		fmt.Fprintln(t)
	}
	t.Flush()
}

func quantile(values []float64, q float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[int(q*float64(len(sorted)-1)+0.5)]
}
