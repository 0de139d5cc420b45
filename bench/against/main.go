// Command against compares the calamp of the working tree with that of an
// earlier commit, on 100 and more small problems and in speed:
//
//	go run ./bench/against -commit HEAD~3
//	go run ./bench/against -commit v1.2 -only '^stream/' -keep /tmp/against
//	go run ./bench/against -commit main -rounds 0      no timing
//
// It builds both, makes the problems with the earlier one's simulate (seeds
// depend on the name of the problem alone), runs both on each, and compares
// exit codes, status, warnings, iterations, all numbers of the JSON, all arrays
// of the result and what a stream's state file holds. A problem has
//
//	same bytes  if all that the earlier one wrote is there, equal to the last bit,
//	within      if status and the codes of warnings are the same, iterations are
//	            within 1, x and s within 1e-9 of their posterior standard
//	            deviation, and all else within the tolerances of compare.go,
//	differs     otherwise.
//
// Arrays and JSON fields that only the later one writes are listed and do
// not count; so are words (messages and reasons). Times, and dates in state
// files, are not compared. The third column of numbers is the root mean square difference of x in standard deviations
// after the factor that makes it least: where the two place the common scale otherwise, what is left beside that.
//
// Speed is measured on the larger problems, with nothing else of ours running:
// in each round both solve a problem, one right after the other, and the next
// round has the other one first. What is printed is medians over the rounds'
// ratios, later ÷ earlier: of the wall_s that the solver reports, of the
// process from start to end, and of its processor time, which other
// work on the machine disturbs least. Problems that were to become so many times as fast have that bar, and whether they
// meet it, in their line; of those called iteration it is the solver's time in each iteration.
//
// Only the command's contract is used (flags, JSON, arrays, the documented state
// file) and none of the solver's packages, so that the solver can be
// rewritten and this program stays as it is. The exit code is 0 when nothing
// differs, 1 when something does or fails, and 2 after wrong usage.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"strings"
)

// workers is how many problems are compared at a time. Timing comes after.
const workers = 2

// pair is the two commands that are compared.
type pair struct {
	before, after string // paths of the binaries
	directory     string // of the problems: each has a folder in it
}

func main() {
	commit := flag.String("commit", "", "the earlier revision, as git names it")
	keep := flag.String("keep", "", "keep binaries, problems and results in this folder")
	only := flag.String("only", "", "problems whose name this regular expression matches")
	rounds := flag.Int("rounds", 5, "rounds of timing; 0 for none")
	list := flag.Bool("list", false, "print the names of the problems, and what is run on them")
	flag.Parse()
	pattern, err := regexp.Compile(*only)
	if err != nil || *commit == "" && !*list || flag.NArg() > 0 || *rounds < 0 {
		fmt.Fprintln(os.Stderr, "against: needs -commit REV, and -only, if given, a regular expression")
		os.Exit(2)
	}
	chosen := choose(problems(), pattern)
	if *list {
		for _, p := range chosen {
			fmt.Println(p)
		}
		return
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	differ, err := run(ctx, chosen, *commit, *keep, *rounds)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "against:", err)
	}
	if err != nil || differ {
		os.Exit(1)
	}
}

func choose(all []*problem, pattern *regexp.Regexp) (chosen []*problem) {
	for _, p := range all {
		if pattern.MatchString(p.name) {
			chosen = append(chosen, p)
		}
	}
	return chosen
}

// run builds, compares, times, and says whether anything differs.
func run(ctx context.Context, chosen []*problem, commit, keep string, rounds int) (differ bool, err error) {
	directory := keep
	if keep == "" {
		if directory, err = os.MkdirTemp("", "calamp-against-"); err != nil {
			return false, err
		}
		defer os.RemoveAll(directory)
	}
	if directory, err = filepath.Abs(directory); err != nil {
		return false, err
	}
	both, err := build(ctx, commit, directory)
	if err != nil {
		return false, err
	}
	found := both.compareAll(ctx, chosen, keep == "")
	if err := ctx.Err(); err != nil {
		return false, err
	}
	times, err := both.timeAll(ctx, chosen, rounds)
	if err != nil {
		return false, err
	}
	return summarise(found, times), nil
}

// compareAll compares on all problems, several at a time, and prints a line for
// each in their order. With tidy, folders are removed unless they are timed later.
func (b *pair) compareAll(ctx context.Context, chosen []*problem, tidy bool) []*comparison {
	found := make([]*comparison, len(chosen))
	done := make([]chan struct{}, len(chosen))
	for i := range done {
		done[i] = make(chan struct{})
	}
	next := make(chan int)
	for range workers {
		go func() {
			for i := range next {
				found[i] = b.compare(ctx, chosen[i])
				if tidy && !chosen[i].timed {
					os.RemoveAll(b.folder(chosen[i]))
				}
				close(done[i])
			}
		}()
	}
	go func() {
		for i := range chosen {
			next <- i
		}
		close(next)
	}()
	fmt.Printf("%-34s %-14s %10s  %-9s %-9s %-9s %s\n", "problem", "status", "iterations", "x in sd", "s in sd", "rms of x", "")
	for i := range chosen {
		<-done[i]
		found[i].print()
	}
	return found
}

// summarise prints what was found in one line, and what only the later command
// writes; it says whether anything differs.
func summarise(found []*comparison, times *timing) (differ bool) {
	var count [3]int
	var words []string
	added := map[string]bool{}
	for _, c := range found {
		count[c.verdict()]++
		if len(c.words) > 0 {
			words = append(words, c.problem.name)
		}
		for _, name := range c.added {
			added[name] = true
		}
	}
	fmt.Println()
	if len(added) > 0 {
		fmt.Println("new, and not compared:", strings.Join(sortedKeys(added), ", "))
	}
	if len(words) > 0 {
		fmt.Printf("other words in %d problems: %s\n", len(words), strings.Join(words, ", "))
	}
	fmt.Printf("%d problems: %d same bytes, %d within 1e-9 sd, %d differ",
		len(found), count[same], count[within], count[differs])
	if times != nil {
		fmt.Printf("; time %s", times)
	}
	fmt.Println()
	return count[differs] > 0
}
