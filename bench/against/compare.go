package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strings"
)

// What is counted as equal where bits are not. The first is what is asked of x
// and s. The others are what is known of values that are found by searches:
// with one more rounding an iteration (see docs/log/performance.md) the ends of intervals
// move by up to 3e-9 standard deviations and scale_sd by up to 1e-6 of itself
// where x and s stay within the first.
const (
	inStandardDeviations = 1e-9 // of x, s and gains, or 4 units in the last place
	ofIntervals          = 1e-8 // of their ends, in standard deviations as well
	ofVariances          = 1e-8 // relative, of all other arrays, and of numbers in a state
	ofResiduals          = 1e-8 // absolute, of standardised residuals and probabilities
	ofReported           = 1e-5 // relative, of numbers in the JSON and arrays of one number
	ofZero               = 1e-12
	ofIterations         = 1
	lastPlaces           = 4 * 0x1p-52
)

// A verdict is what a comparison came to.
type verdict int

const (
	same verdict = iota
	within
	differs
)

// A comparison collects how two runs of a problem differ.
type comparison struct {
	problem     *problem
	unlike      bool     // in a bit of something
	differences []string // beyond the tolerances
	words       []string // other wordings
	added       []string // what only the later command writes
	status      string   // the earlier command's
	iterations  string
	x, s        float64 // largest differences in standard deviations
	apart       float64 // of x, root mean square, but for a common factor
}

func (c *comparison) verdict() verdict {
	switch {
	case len(c.differences) > 0:
		return differs
	case c.unlike:
		return within
	}
	return same
}

func (c *comparison) differ(format string, values ...any) {
	c.unlike = true
	c.differences = append(c.differences, fmt.Sprintf(format, values...))
}

// print is the comparison's line in the table, and lines of what differs.
func (c *comparison) print() {
	if c.verdict() == same {
		fmt.Printf("%-34s %-14s %10s  %-9s %-9s %-9s same bytes", c.problem.name, c.status, c.iterations, "", "", "")
	} else {
		word := "within"
		if c.verdict() == differs {
			word = "DIFFERS"
		}
		fmt.Printf("%-34s %-14s %10s  %-9.1e %-9.1e %-9.1e %s", c.problem.name, c.status, c.iterations, c.x, c.s, c.apart, word)
	}
	if len(c.words) > 0 {
		fmt.Print(", other words")
	}
	fmt.Println()
	const most = 6
	for i, line := range append(slices.Clone(c.differences), c.words...) {
		if i == most {
			fmt.Printf("    and %d more\n", len(c.differences)+len(c.words)-most)
			break
		}
		fmt.Println("    " + shortened(line))
	}
}

func shortened(line string) string {
	const most = 160
	if runes := []rune(line); len(runes) > most {
		return string(runes[:most]) + " …"
	}
	return line
}

// run compares exit codes, what was printed, and the results.
func (c *comparison) run(before, after *finished) {
	if before.code != after.code {
		c.differ("exit code %d → %d %s", before.code, after.code, bytes.TrimSpace(after.stderr))
	}
	const done, notConverged = 0, 3
	if before.code != done && before.code != notConverged {
		c.status = fmt.Sprintf("exit code %d", before.code)
		c.word("standard error", string(before.stderr), string(after.stderr))
	}
	c.printed(before.stdout, after.stdout)
	_, errBefore := os.Stat(before.result)
	_, errAfter := os.Stat(after.result)
	switch {
	case errBefore == nil && errAfter == nil:
		c.results(before.result, after.result)
	case errBefore == nil:
		c.differ("no result is written any more")
	case errAfter == nil:
		c.differ("a result is written now, and was not before")
	}
}

// printed compares what was printed: one JSON object, or one a line.
func (c *comparison) printed(before, after []byte) {
	b, errBefore := objects(before)
	a, errAfter := objects(after)
	if err := errors.Join(errBefore, errAfter); err != nil {
		c.differ("standard output: %v", err)
		return
	}
	iterations := 0.0
	for _, o := range b {
		if v, ok := o["iterations"].(float64); ok {
			iterations += v
		}
		if v, ok := o["status"].(string); ok && (c.status == "" || c.status == "converged") {
			c.status = v
		}
	}
	c.iterations = fmt.Sprint(iterations)
	if len(b) != len(a) {
		c.differ("%d JSON objects → %d", len(b), len(a))
		return
	}
	for i := range b {
		path := ""
		if len(b) > 1 {
			path = fmt.Sprintf("[%d]", i)
		}
		c.tree(path, "", b[i], a[i])
	}
}

func objects(text []byte) (all []map[string]any, err error) {
	decoder := json.NewDecoder(bytes.NewReader(text))
	for {
		var o map[string]any
		if err := decoder.Decode(&o); errors.Is(err, io.EOF) {
			return all, nil
		} else if err != nil {
			return nil, err
		}
		all = append(all, o)
	}
}

// Fields that differ from run to run, and those that are meant to be read.
var (
	timeFields = []string{"wall_s", "solve_ms", "commit_ms"}
	wordFields = []string{"message", "reason"}
)

// tree compares a JSON value and all below it. The field's own name is key.
func (c *comparison) tree(path, key string, before, after any) {
	switch b := before.(type) {
	case map[string]any:
		if a, ok := after.(map[string]any); ok {
			c.object(path, b, a)
			return
		}
	case []any:
		if a, ok := after.([]any); ok {
			c.list(path, key, b, a)
			return
		}
	case float64:
		if a, ok := after.(float64); ok {
			c.number(path, key, b, a)
			return
		}
	case string:
		if a, ok := after.(string); ok && slices.Contains(wordFields, key) {
			c.word(path, b, a)
			return
		}
	}
	if before != after {
		c.differ("%s: %v → %v", path, before, after)
	}
}

func (c *comparison) object(path string, before, after map[string]any) {
	for _, key := range sortedKeys(before) {
		if slices.Contains(timeFields, key) {
			continue
		}
		value, ok := after[key]
		if !ok {
			c.differ("%s.%s is gone", path, key)
			continue
		}
		c.tree(path+"."+key, key, before[key], value)
	}
	for key := range after {
		if _, ok := before[key]; !ok {
			place, _, _ := strings.Cut(path, "[")
			c.added = append(c.added, "field "+strings.TrimPrefix(place+"."+key, "."))
		}
	}
}

func (c *comparison) list(path, key string, before, after []any) {
	if key == "warnings" {
		before, after = byCode(before), byCode(after)
		if b, a := codes(before), codes(after); b != a {
			c.differ("warnings: [%s] → [%s]", b, a)
			return
		}
	}
	if len(before) != len(after) {
		c.differ("%s: %d values → %d", path, len(before), len(after))
		return
	}
	for i := range before {
		c.tree(fmt.Sprintf("%s[%d]", path, i), "", before[i], after[i])
	}
}

func (c *comparison) number(path, key string, before, after float64) {
	if before == after {
		return
	}
	c.unlike = true
	difference := math.Abs(before - after)
	if key == "iterations" && difference <= ofIterations {
		return
	}
	if key == "iterations" || difference > ofReported*math.Abs(before)+ofZero {
		c.differ("%s: %v → %v", path, before, after)
	}
}

// word notes that a text has changed.
func (c *comparison) word(path, before, after string) {
	if before != after {
		c.words = append(c.words, fmt.Sprintf("%s: %q → %q", path, before, after))
	}
}

// byCode sorts warnings, whose order means nothing.
func byCode(warnings []any) []any {
	return slices.SortedStableFunc(slices.Values(warnings), func(a, b any) int { return cmp.Compare(code(a), code(b)) })
}

func code(warning any) string {
	fields, _ := warning.(map[string]any)
	name, _ := fields["code"].(string)
	return name
}

func codes(warnings []any) string {
	all := make([]string, len(warnings))
	for i, w := range warnings {
		all[i] = code(w)
	}
	return strings.Join(all, " ")
}
