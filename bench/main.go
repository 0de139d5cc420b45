// Command bench times calamp against numpy, gonum and Octave on the same data,
// and prints tables in Markdown:
//
//	go run ./bench          everything, with plots: a quarter of an hour
//	go run ./bench -quick   the same on smaller problems
//	go run ./bench -only iteration -m 6000 -n 10000 -p 1 -threads 2
//
// What is compared is paired: a round runs every variant once, and what is
// reported is medians and quartiles over the rounds' ratios, beside the time
// that merely reading W takes in the same rounds. Rounds in which other
// processes used the processor are left out.
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/calamp/calamp/internal/figure"
	"github.com/calamp/calamp/internal/simd"
)

// bench is one run of the command.
type bench struct {
	quick, cpu     bool
	rounds         int
	settle         time.Duration
	python, octave string // commands, empty where they are not there

	m, n, p, threads int // of one table, when the user asks for it

	bars []bar // see summary

	directory string // for the results
	out       io.Writer
}

// sections are the parts of a full run.
var sections = []struct {
	name string
	run  func(*bench) error
}{
	{"iteration", (*bench).iterations},
	{"complex", (*bench).complexNumbers},
	{"signals", (*bench).signals},
	{"sizes", (*bench).sizes},
	{"functions", (*bench).functions},
	{"problems", (*bench).problems},
	{"online", (*bench).online},
	{"solve", (*bench).solves},
}

func main() {
	if len(os.Args) > 1 && os.Args[1] == gonumCommand {
		exitOn(serveGonum(os.Args[2:]))
		return
	}
	names := make([]string, len(sections))
	for i, s := range sections {
		names[i] = s.name
	}
	b := bench{out: os.Stdout}
	var only, python, octave string
	flag.StringVar(&only, "only", "", "one part of the run: "+strings.Join(names, ", "))
	flag.BoolVar(&b.quick, "quick", false, "smaller problems and fewer rounds")
	flag.IntVar(&b.rounds, "rounds", 0, "undisturbed rounds of a table (default 11, with -quick 3)")
	flag.BoolVar(&b.cpu, "cpu", false, "processor time of one thread in place of wall time, for a machine with other work")
	flag.IntVar(&b.m, "m", 0, "rows of W, for one table of an iteration")
	flag.IntVar(&b.n, "n", 0, "columns of W")
	flag.IntVar(&b.p, "p", 1, "signals")
	flag.IntVar(&b.threads, "threads", 1, "threads of each variant")
	flag.StringVar(&python, "python", "/usr/bin/python3", "Python with numpy; empty to leave it out")
	flag.StringVar(&octave, "octave", "octave-cli", "Octave; empty to leave it out")
	flag.DurationVar(&b.settle, "settle", 400*time.Millisecond, "pause after OpenBLAS on several threads, which go on spinning")
	flag.StringVar(&b.directory, "o", "bench.out", "directory for the tables and plots")
	flag.Parse()
	if b.rounds == 0 {
		b.rounds = 11
		if b.quick {
			b.rounds = 3
		}
	}
	if only != "" && !slices.Contains(names, only) || flag.NArg() > 0 {
		fmt.Fprintln(os.Stderr, "bench: -only is one of", strings.Join(names, ", "))
		os.Exit(2)
	}
	exitOn(b.run(only, python, octave))
}

func exitOn(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func (b *bench) run(only, python, octave string) error {
	if err := os.MkdirAll(b.directory, 0o755); err != nil {
		return err
	}
	file, err := os.Create(filepath.Join(b.directory, "tables.md"))
	if err != nil {
		return err
	}
	defer file.Close()
	b.out = io.MultiWriter(os.Stdout, file)

	runtime.LockOSThread() // what is timed on one thread is this one
	if err := b.describe(python, octave); err != nil {
		return err
	}
	for _, s := range sections {
		if only == "" || only == s.name {
			if err := s.run(b); err != nil {
				return fmt.Errorf("%s: %w", s.name, err)
			}
		}
	}
	b.summary()
	return file.Close()
}

// describe prints what the run is made on, and finds the baselines.
func (b *bench) describe(python, octave string) error {
	level, err := simd.Active()
	if err != nil {
		return err
	}
	clock := "wall time"
	if b.cpu {
		clock = "processor time of one thread"
	}
	b.printf("%s, %s, %d cores, %s, %s kernels, %s; times are %s.\n\n",
		time.Now().Format("2 January 2006"), processor(), runtime.NumCPU(), runtime.Version(), level, load(), clock)
	if python != "" {
		if version, err := exec.Command(python, "-c", "import numpy; print(numpy.__version__)").Output(); err != nil {
			b.printf("**Skipped: numpy**, since `%s` has none (Debian: python3-numpy).\n\n", python)
		} else {
			b.python = python
			b.printf("numpy %s.\n", strings.TrimSpace(string(version)))
		}
	}
	if octave != "" {
		if version, err := exec.Command(octave, "--version").Output(); err != nil {
			b.printf("**Skipped: Octave**, since there is no `%s` (Debian: octave).\n\n", octave)
		} else {
			b.octave = octave
			line, _, _ := strings.Cut(string(version), "\n")
			b.printf("%s.\n", line)
		}
	}
	return nil
}

func (b *bench) printf(format string, args ...any) { fmt.Fprintf(b.out, format, args...) }

// plot writes a figure beside the tables.
func (b *bench) plot(name string, f figure.Figure) error {
	file, err := os.Create(filepath.Join(b.directory, name))
	if err != nil {
		return err
	}
	if err := f.Write(file, filepath.Ext(name)); err != nil {
		return err
	}
	return file.Close()
}
