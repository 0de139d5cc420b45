package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"gonum.org/v1/gonum/floats"

	"github.com/calamp/calamp"
	"github.com/calamp/calamp/internal/baseline"
	"github.com/calamp/calamp/internal/dataset"
)

// A command is the calamp that is measured.
type command struct {
	path      string
	arguments []string      // further ones
	limit     time.Duration // of processor time
}

// wallTimes is after how many limits a run is ended by the clock, however little of the processor it has had.
const wallTimes = 10

// A run is what came of it.
type run struct {
	code      int
	timedOut  bool
	wall, cpu time.Duration
	status    string
	warnings  []string // codes
	verdict   *verdict // nil where there is no result
	message   string   // the last line on standard error, where there is no result
}

// solve writes the problem into the folder, without the truth, and runs the command on it, with these flags of what is true. The error is that of ctx,
// or of a disk.
func (c *command) solve(ctx context.Context, p *problem, folder string, flags ...string) (*run, error) {
	in, out := filepath.Join(folder, "P.npz"), filepath.Join(folder, "R.npz")
	if err := p.save(in, false); err != nil {
		return nil, err
	}
	os.Remove(out)
	arguments := slices.Concat([]string{"solve", in, "--json", "-o", out}, c.arguments, flags)
	within, cancel := context.WithTimeout(ctx, wallTimes*c.limit)
	defer cancel()
	limited := fmt.Sprintf(`ulimit -t %d && exec "$0" "$@"`, int(max(1, c.limit.Seconds()))) // other work on the machine does not count
	execution := exec.CommandContext(within, "sh", append([]string{"-c", limited, c.path}, arguments...)...)
	var stdout, stderr bytes.Buffer
	execution.Stdout, execution.Stderr = &stdout, &stderr
	start := time.Now()
	err := execution.Run()
	r := &run{wall: time.Since(start)}
	var exit *exec.ExitError
	if ctx.Err() != nil || err != nil && !errors.As(err, &exit) {
		return nil, errors.Join(ctx.Err(), err)
	}
	r.code = execution.ProcessState.ExitCode()
	r.cpu = execution.ProcessState.UserTime() + execution.ProcessState.SystemTime()
	if r.timedOut = within.Err() != nil || !execution.ProcessState.Exited() && r.cpu >= c.limit-time.Second; r.timedOut {
		return r, nil
	}
	var said struct {
		Status   string
		Warnings []struct{ Code string }
	}
	if err := json.Unmarshal(stdout.Bytes(), &said); err == nil {
		r.status = said.Status
		for _, w := range said.Warnings {
			r.warnings = append(r.warnings, w.Code)
		}
	}
	a, err := p.load(out)
	if err != nil {
		lines := strings.Split(strings.TrimSpace(stderr.String()), "\n")
		r.message = lines[len(lines)-1]
		return r, nil
	}
	v := p.judge(a, !slices.Contains(flags, "--phase") || p.phaseConcentration == 0)
	r.verdict = &v
	return r, nil
}

// flags are those that say the range of gains, the noise, the kind of prior, and the spread of phases.
func (p *problem) flags() (flags []string) {
	known := p.known("")
	for _, word := range []string{"range", "noise", "prior", "phase"} {
		flags = append(flags, known[word]...)
	}
	return flags
}

// save writes the problem, with the truth where truth is set.
func (p *problem) save(path string, truth bool) error {
	to := &dataset.Problem{W: p.operator(), Y: p.pairs(p.y), Complex: p.kind.complex}
	if truth {
		to.Truth = calamp.Truth{X: p.pairs(p.x), S: p.sizes()}
		if p.kind.complex {
			for _, s := range p.s {
				to.Truth.Phase = append(to.Truth.Phase, math.Atan2(imag(s), real(s)))
			}
		}
	}
	return dataset.Save(path, to)
}

// load reads a result.
func (p *problem) load(path string) (*answer, error) {
	result, err := dataset.LoadResult(path)
	if err != nil {
		return nil, err
	}
	n, count := p.x.Dims()
	if rows, columns := result.X.Dims(); rows != n || columns != count*result.ColumnsPerSignal() || (result.Phase != nil) != p.kind.complex {
		return nil, fmt.Errorf("%s: x is %d×%d, expected %d signals of %d entries", path, rows, columns, count, n)
	}
	a := &answer{x: p.unpaired(result.X), xVar: baseline.NewParts(n, count, false)}
	parts := result.ColumnsPerSignal()
	a.xVar.Apply(func(i, k int, _ complex128) complex128 {
		return complex(floats.Sum(result.XVar.RawRowView(i)[parts*k:parts*(k+1)]), 0)
	})
	if a.s = result.ComplexS(); a.s == nil {
		for _, s := range result.S {
			a.s = append(a.s, complex(s, 0))
		}
	}
	for name, bounds := range map[string]*[]float64{"s_rel_lo": &a.low, "s_rel_hi": &a.top} {
		array, err := dataset.LoadArray(path, name)
		if err != nil {
			return nil, err
		}
		if *bounds = array.Data; len(array.Data) != len(p.s) {
			return nil, fmt.Errorf("%s: %s has %d numbers, expected %d", path, name, len(array.Data), len(p.s))
		}
	}
	return a, nil
}
