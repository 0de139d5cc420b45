// Command field measures calamp on problems like those that people have: instruments of many kinds, each drawn many times, with
// gains, noise and flaws of many kinds.
//
//	go run ./bench/field                            the half to work with, the command of this tree
//	go run ./bench/field -set final -o final.csv    the other half: for the final figure only
//	go run ./bench/field -kind '^camera' -calamp ./calamp-before -args "--faulty off"
//	go run ./bench/field -subsets -o subsets.csv    each that is solved again, with subsets of what is true given: does any do harm?
//	go run ./bench/field -kind microphones -only 4 -write problems     writes the problem, to try it by hand
//
// What is measured is `calamp solve P.npz --json -o R.npz`, given nothing; with -given the range of the gains, the noise, the spread of phases and the
// kind of prior. Beside it are others: matching pursuit and calamp given the gains, alternating ℓ1, and gains ignored. judge.go
// says what is right. Each problem is a line of the .csv, written as soon as it is done; a second run goes on where the first
// one ended. The table, a line for each kind, goes to standard output and to a .md beside the .csv.
//
// Problems depend on the name of their kind and their number alone. Even ones are to work with; the odd ones are only for
// final figures, so that nothing is fitted to them.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/schollz/progressbar/v3"
)

// A plan is what to do, as the flags say.
type plan struct {
	command        command
	problems       []choice
	output         string // .csv
	procs          int
	competitors    map[choice]*row // of other tables
	write          string
	given, subsets bool
}

// A choice names a problem.
type choice struct {
	kind  *kind
	index int
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	p, tidy, err := flags(ctx)
	if err == nil {
		err = p.run(ctx)
		tidy()
	}
	stop()
	switch {
	case errors.Is(err, context.Canceled):
		os.Exit(130)
	case err != nil:
		fmt.Fprintln(os.Stderr, "field:", err)
		os.Exit(1)
	}
}

func flags(ctx context.Context) (p *plan, tidy func(), err error) {
	p = &plan{competitors: map[choice]*row{}}
	pattern := flag.String("kind", "", "kinds whose name this regular expression matches")
	which := flag.String("set", "work", "work, final or all")
	count := flag.Int("instances", instances, "how many of each kind, of both sets together")
	only := flag.Int("only", -1, "one instance of each kind")
	list := flag.Bool("list", false, "print the kinds")
	path := flag.String("calamp", "", "the calamp that is measured; built from this tree where none is given")
	further := flag.String("args", "", "further flags for it")
	others := flag.String("competitors", "", "take the other methods' errors from this .csv of an earlier run where it has them")
	flag.BoolVar(&p.given, "given", false, "give it the range of gains, the noise, and the kind of prior")
	flag.BoolVar(&p.subsets, "subsets", false, "measure what is solved again with each of many subsets of what is true given")
	flag.DurationVar(&p.command.limit, "time-limit", 30*time.Second, "of processor time for a problem")
	flag.StringVar(&p.output, "o", "field.csv", "the table of problems; one that is there is gone on with")
	flag.StringVar(&p.write, "write", "", "only write the problems, with the truth, into this folder")
	flag.IntVar(&p.procs, "procs", 1, "problems at a time")
	flag.Parse()
	matches, err := regexp.Compile(*pattern)
	if err != nil {
		return nil, nil, err
	}
	if flag.NArg() > 0 || *count < 1 || p.procs < 1 || !slices.Contains([]string{"work", "final", "all"}, *which) {
		return nil, nil, fmt.Errorf("wrong usage: see -help")
	}
	for _, k := range kinds() {
		if !matches.MatchString(k.name) {
			continue
		}
		if *list {
			fmt.Printf("%-28s %s\n", k.name, k.what)
		}
		for i := range *count {
			if (*which == "all" || *which == set(i)) && *only < 0 || *only == i {
				p.problems = append(p.problems, choice{k, i})
			}
		}
	}
	if *list {
		p.problems = nil
		return p, func() {}, nil
	}
	rows, err := readRows(*others)
	if err != nil {
		return nil, nil, err
	}
	for _, r := range rows {
		for _, c := range p.problems {
			if c.kind.name == r.kind && c.index == r.index {
				p.competitors[c] = r
			}
		}
	}
	p.command.path, p.command.arguments = *path, strings.Fields(*further)
	if *path != "" || p.write != "" {
		return p, func() {}, nil
	}
	folder, err := os.MkdirTemp("", "calamp-field-")
	if err != nil {
		return nil, nil, err
	}
	p.command.path = filepath.Join(folder, "calamp")
	build := exec.CommandContext(ctx, "go", "build", "-o", p.command.path, "./cmd/calamp")
	build.Stderr = os.Stderr
	return p, func() { os.RemoveAll(folder) }, build.Run()
}

// run does all problems that are not done yet, and writes the table.
func (p *plan) run(ctx context.Context) error {
	if p.write != "" {
		return p.writeAll(ctx)
	}
	if len(p.problems) == 0 {
		return nil
	}
	if p.subsets {
		return p.measureSubsets(ctx, os.Stdout)
	}
	rows, err := readRows(p.output)
	if err != nil {
		return err
	}
	done := map[string]bool{}
	for _, r := range rows {
		done[fmt.Sprintf("%s-%02d", r.kind, r.index)] = true
	}
	left := slices.DeleteFunc(slices.Clone(p.problems), func(c choice) bool { return done[fmt.Sprintf("%s-%02d", c.kind.name, c.index)] })
	bar := progressbar.NewOptions(len(left), progressbar.OptionSetWriter(os.Stderr), progressbar.OptionShowCount(), progressbar.OptionSetPredictTime(true))
	var (
		lock   sync.Mutex
		failed error
		group  sync.WaitGroup
	)
	next := make(chan choice)
	within, cancel := context.WithCancel(ctx)
	defer cancel()
	for range p.procs {
		group.Go(func() {
			for c := range next {
				r, err := p.one(within, c)
				lock.Lock()
				if err == nil {
					err = appendRow(p.output, r)
					rows = append(rows, r)
					bar.Describe(fmt.Sprintf("%s-%02d %s", r.kind, r.index, r.outcome))
					bar.Add(1)
				}
				if err != nil && failed == nil {
					failed = err
					cancel()
				}
				lock.Unlock()
			}
		})
	}
	for _, c := range left {
		select {
		case next <- c:
		case <-within.Done():
		}
	}
	close(next)
	group.Wait()
	fmt.Fprintln(os.Stderr)
	if ctx.Err() != nil {
		failed = ctx.Err()
	}
	summarise(os.Stdout, rows)
	file, err := os.Create(strings.TrimSuffix(p.output, filepath.Ext(p.output)) + ".md")
	if err != nil {
		return errors.Join(failed, err)
	}
	summarise(file, rows)
	return errors.Join(failed, file.Close())
}

// one draws a problem, lets the others at it, and measures the command.
func (p *plan) one(ctx context.Context, c choice) (*row, error) {
	folder, err := os.MkdirTemp("", "calamp-field-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(folder)
	in := draw(c.kind, c.index)
	m, n := in.w.Dims()
	_, count := in.x.Dims()
	r := &row{
		kind: c.kind.name, index: c.index, complex: c.kind.complex, m: m, n: n, p: count, decibel: in.decibel, gains: in.gains, phases: in.phases,
		flaw: in.flaw, density: in.density(), limit: in.countingLimit(), error: math.NaN(), gainError: math.NaN(), coverage: math.NaN(), deviation: math.NaN(),
	}
	if earlier := p.competitors[c]; earlier != nil {
		r.others = earlier.others
	} else if r.others, err = in.compete(ctx); err != nil {
		return nil, err
	}
	r.bound = in.blindBound()
	r.solvable = in.solvable(r.others.known())
	var flags []string
	if p.given {
		flags = in.flags()
	}
	done, err := p.command.solve(ctx, in, folder, flags...)
	if err != nil {
		return nil, err
	}
	if done.message != "" {
		fmt.Fprintf(os.Stderr, "\n%s: exit %d: %s\n", in.name(), done.code, done.message)
	}
	r.code, r.status, r.warnings, r.wall, r.cpu = done.code, done.status, done.warnings, done.wall.Seconds(), done.cpu.Seconds()
	r.outcome = outcome(done.code, done.timedOut, done.verdict, r.others.known(), done.warnings)
	if v := done.verdict; v != nil {
		r.error, r.gainError, r.coverage, r.deviation = v.error, v.gainError, v.coverage, v.deviation
	}
	return r, nil
}

// writeAll writes the problems with their truth.
func (p *plan) writeAll(ctx context.Context) error {
	if err := os.MkdirAll(p.write, 0o755); err != nil {
		return err
	}
	for _, c := range p.problems {
		if err := ctx.Err(); err != nil {
			return err
		}
		in := draw(c.kind, c.index)
		if err := in.save(filepath.Join(p.write, in.name()+".npz"), true); err != nil {
			return err
		}
		fmt.Printf("%s: gains %s %s, noise %g dB, flaw %q; given: %s\n", in.name(), in.gains, in.phases, in.decibel, in.flaw, strings.Join(in.flags(), " "))
	}
	return nil
}
