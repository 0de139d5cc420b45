package main

import (
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/calamp/calamp"
	"github.com/calamp/calamp/dataset"
)

// output is a file to be written: the flag that asked for it, and where.
type output struct {
	flag string // -o, --trace
	path string // empty when not asked for, - for standard output
}

// outputs are the files of one command.
type outputs []output

// check finds, before a long run, what would make writing fail after it.
func (all outputs) check(jsonAsked bool, inputs ...string) error {
	stdout := ""
	if jsonAsked {
		stdout = "--json"
	}
	for k, o := range all {
		if o.path == "" {
			continue
		}
		if o.path == "-" {
			if stdout != "" {
				return usage("%s and %s both want standard output", stdout, o.flag)
			}
			stdout = o.flag + " -"
			continue
		}
		if err := o.writable(); err != nil {
			return err
		}
		for _, input := range inputs {
			if sameFile(o.path, input) {
				return usage("%s %s would overwrite the input", o.flag, o.path)
			}
		}
		for _, other := range all[:k] {
			if other.path != "" && other.path != "-" && (sameFile(o.path, other.path) || filepath.Clean(o.path) == filepath.Clean(other.path)) {
				return usage("%s and %s both want to write %s", other.flag, o.flag, o.path)
			}
		}
	}
	return nil
}

// takesStdout says whether a file goes to standard output.
func (all outputs) takesStdout() bool {
	for _, o := range all {
		if o.path == "-" {
			return true
		}
	}
	return false
}

// writable refuses a path that cannot be written.
func (o output) writable() error {
	stat, err := os.Stat(o.path)
	if err == nil && stat.IsDir() {
		return usage("%s %s is a folder, expected the name of a file", o.flag, o.path)
	}
	if err == nil && !stat.Mode().IsRegular() { // a device or a pipe: opening it may block
		return nil
	}
	folder := filepath.Dir(o.path)
	if target, err := filepath.EvalSymlinks(o.path); err == nil {
		folder = filepath.Dir(target)
	}
	if stat, err := os.Stat(folder); errors.Is(err, fs.ErrNotExist) {
		return usage("%s %s: there is no folder %s", o.flag, o.path, folder)
	} else if err == nil && !stat.IsDir() {
		return usage("%s %s: %s is not a folder", o.flag, o.path, folder)
	}
	// Permissions are best asked of the system itself.
	probe, err := os.CreateTemp(folder, ".calamp-*.tmp")
	if err != nil {
		return usage("%s %s cannot be written: %w", o.flag, o.path, cause(err))
	}
	probe.Close()
	os.Remove(probe.Name())
	return nil
}

// cause is a file error without the path.
func cause(err error) error {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		return e.Err
	}
	return err
}

func sameFile(a, b string) bool {
	x, errA := os.Stat(a)
	y, errB := os.Stat(b)
	return errA == nil && errB == nil && x.Mode().IsRegular() && os.SameFile(x, y)
}

// write writes to the path, all or nothing, or to standard output.
func (a *app) write(path string, write func(io.Writer) error) error {
	if path == "-" {
		return write(a.stdout)
	}
	return dataset.WriteFile(path, write)
}

// printJSON prints one object.
func (a *app) printJSON(v any) error {
	e := json.NewEncoder(a.stdout)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(v)
}

// known is v for JSON, where there is no NaN: nil leaves the field out.
func known(v float64) *float64 {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return nil
	}
	return &v
}

// orNaN is the way back.
func orNaN(v *float64) float64 {
	if v == nil {
		return math.NaN()
	}
	return *v
}

// writeTrace writes the iterations as CSV; a value that is not finite is left
// empty.
func writeTrace(w io.Writer, trace []calamp.Iteration) error {
	c := csv.NewWriter(w)
	c.Write([]string{"iteration", "change", "mean_x_var", "mean_s_var", "mean_v", "off_v", "scale", "damping", "log_evidence"})
	for _, it := range trace {
		row := []string{strconv.Itoa(it.Index)}
		for _, v := range []float64{it.Change, it.MeanXVar, it.MeanSVar, it.MeanV, it.OffV, it.Scale, it.Damping, it.LogEvidence} {
			cell := ""
			if known(v) != nil {
				cell = strconv.FormatFloat(v, 'g', -1, 64)
			}
			row = append(row, cell)
		}
		c.Write(row)
	}
	c.Flush() // keeps the first error of the writes before
	return c.Error()
}

// summary is text for people, in lines of a name and a sentence.
type summary struct{ strings.Builder }

func (s *summary) line(name, format string, args ...any) {
	fmt.Fprintf(s, "%-12s %s\n", name, fmt.Sprintf(format, args...))
}

// percent is a relative uncertainty.
func percent(v float64) string {
	if known(v) == nil {
		return "?"
	}
	return fmt.Sprintf("%.2g %%", 100*v)
}
