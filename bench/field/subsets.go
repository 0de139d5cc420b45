package main

import (
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"gonum.org/v1/gonum/stat"

	"github.com/calamp/calamp/internal/dataset"
	"github.com/calamp/calamp/teacher"
)

// subsets are what a user may know. Words that say nothing of a problem, as phases of real gains, fall away.
var subsets = []string{
	"noise", "range", "prior", "density", "density slab", "slab noise", "range noise", "prior noise", "working", "gains", "sensors", "reference", "phase", "phase range noise",
	"noise range prior density slab working phase",
}

// known is what is true of a problem, each as flags. known.npz in the folder has what the word sensors says.
func (p *problem) known(folder string) map[string][]string {
	number := func(v float64) string { return strconv.FormatFloat(v, 'g', 6, 64) }
	stated := map[string][]string{
		"noise":     {"--noise-var", number(p.noise)},
		"range":     {"--s-range", number(0.99*p.lowGain) + "," + number(1.01*p.highGain)},
		"reference": {"--reference", "sensor=0:" + number(p.sizes()[0])},
	}
	if !slices.Contains(p.dead, true) && p.wrong == nil {
		stated["working"] = []string{"--faulty", "off", "--outliers", "off"}
	}
	switch mean, sd := p.gainMoments(func(s float64) float64 { return s }); {
	case strings.HasPrefix(p.gains, "normal"): // and s = 1/gain nearly so
		stated["gains"] = []string{"--gain-prior", "normal", "--s-mean", number(mean), "--s-sd", number(sd)}
	case strings.HasPrefix(p.gains, "log-normal"):
		mean, sd = p.gainMoments(math.Log)
		stated["gains"] = []string{"--gain-prior", "lognormal", "--s-mean", number(math.Exp(mean)), "--s-sd", number(sd)}
	}
	if p.kind.complex {
		stated["phase"] = []string{"--phase", p.concentration()}
	} else {
		stated["sensors"] = []string{"--s-from", filepath.Join(folder, "known.npz")}
	}
	if p.positive {
		stated["prior"] = []string{"--prior", "nonnegative"}
	}
	if density, mean, variance := p.entries(); density <= mostNonZero && !p.positive {
		stated["density"] = []string{"--density", number(density)}
		stated["slab"] = []string{"--signal-var", number(variance)}
		if !p.kind.complex {
			stated["slab"] = append(stated["slab"], "--signal-mean", number(mean))
		}
	}
	return stated
}

// sizes are |s|.
func (p *problem) sizes() []float64 {
	sizes := make([]float64, len(p.s))
	for mu, s := range p.s {
		sizes[mu] = math.Hypot(real(s), imag(s))
	}
	return sizes
}

// gainMoments are the mean and the standard deviation over sensors of a function of |s|.
func (p *problem) gainMoments(of func(float64) float64) (mean, sd float64) {
	values := p.sizes()
	for mu, s := range values {
		values[mu] = of(s)
	}
	return stat.MeanStdDev(values, nil)
}

// mostNonZero is up to which density the entries that are not zero have a number and moments: compressible signals have no zero at all.
const mostNonZero = 0.5

// entries are the fraction of entries that are not zero, and mean and variance of these.
func (p *problem) entries() (density, mean, variance float64) {
	n, count := p.x.Dims()
	var sum complex128
	squares, nonZero := 0.0, 0.0
	for i := range n {
		for k := range count {
			if v := p.x.At(i, k); v != 0 {
				nonZero++
				sum += v
				squares += power(v)
			}
		}
	}
	if p.kind.complex { // whose mean is zero
		return nonZero / float64(n*count), 0, squares / nonZero
	}
	mean = real(sum) / nonZero
	return nonZero / float64(n*count), mean, squares/nonZero - mean*mean
}

func (p *problem) concentration() string {
	switch {
	case p.phaseConcentration == 0:
		return "free"
	case math.IsInf(p.phaseConcentration, 1):
		return "known"
	}
	return strconv.FormatFloat(p.phaseConcentration, 'g', 6, 64)
}

// A subsetRun is a run with some of what is true given: a line of the .csv.
type subsetRun struct {
	kind           string
	index, p       int
	subset         string // "" for nothing
	code           int
	warnings       []string
	cpu            float64 // seconds
	error, nothing float64 // relative errors of x, and with nothing given
	codeOfNothing  int
}

var subsetHeader = []string{"kind", "index", "p", "given", "exit", "exit_of_nothing", "error", "error_of_nothing", "times", "warnings", "cpu_s"}

// mostTimes is by how much the error may grow with what is true.
const mostTimes = 1.2

func (t *subsetRun) times() float64 { return t.error / t.nothing }

// worse reports whether what is true does harm.
func (t *subsetRun) worse() bool { return t.code > t.codeOfNothing || !(t.times() <= mostTimes) }

func (t *subsetRun) fields() []string {
	number := func(v float64) string { return strconv.FormatFloat(v, 'g', 4, 64) }
	return []string{
		t.kind, strconv.Itoa(t.index), strconv.Itoa(t.p), t.subset, strconv.Itoa(t.code), strconv.Itoa(t.codeOfNothing), number(t.error), number(t.nothing), number(t.times()),
		strings.Join(t.warnings, " "), number(t.cpu),
	}
}

// measureSubsets measures each problem with nothing given, and where that is solved with each subset of what is true.
func (p *plan) measureSubsets(ctx context.Context, to io.Writer) error {
	file, err := os.OpenFile(p.output, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	table := csv.NewWriter(file)
	if info, err := file.Stat(); err == nil && info.Size() == 0 {
		table.Write(subsetHeader)
	}
	problems, runs, worse := 0, 0, 0
	for _, c := range p.problems {
		stated, failed := p.subsetsOf(ctx, draw(c.kind, c.index))
		if err = failed; err != nil {
			break
		}
		if len(stated) > 0 {
			problems++
		}
		for _, t := range stated {
			table.Write(t.fields())
			if runs++; t.worse() {
				worse++
				fmt.Fprintf(to, "%s-%02d %s: exit %d and error %.3g, with nothing given %d and %.3g\n", t.kind, t.index, t.subset, t.code, t.error, t.codeOfNothing, t.nothing)
			}
		}
		table.Flush()
	}
	fmt.Fprintf(to, "%d problems, %d runs with something given, %d worse\n", problems, runs, worse)
	table.Flush()
	return errors.Join(err, table.Error(), file.Close())
}

// subsetsOf is none where the problem is not solved with nothing given.
func (p *plan) subsetsOf(ctx context.Context, in *problem) ([]*subsetRun, error) {
	folder, err := os.MkdirTemp("", "calamp-field-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(folder)
	with := &dataset.Problem{W: in.operator(), Y: in.pairs(in.y), Complex: in.kind.complex, Known: teacher.Known(in.sizes(), sensorError, uint64(in.index))}
	if err := dataset.Save(filepath.Join(folder, "known.npz"), with); err != nil {
		return nil, err
	}
	nothing, err := p.command.solve(ctx, in, folder)
	if err != nil || nothing.verdict == nil || !nothing.verdict.honest || nothing.code != 0 || nothing.verdict.error > uselessError {
		return nil, err
	}
	known := in.known(folder)
	var all []*subsetRun
	for _, words := range subsets {
		var said, flags []string
		for _, word := range strings.Fields(words) {
			if more := known[word]; more != nil {
				said, flags = append(said, word), append(flags, more...)
			}
		}
		subset := strings.Join(said, " ")
		if flags == nil || slices.ContainsFunc(all, func(t *subsetRun) bool { return t.subset == subset }) {
			continue
		}
		done, err := p.command.solve(ctx, in, folder, flags...)
		if err != nil {
			return nil, err
		}
		_, count := in.x.Dims()
		t := &subsetRun{
			kind: in.kind.name, index: in.index, p: count, subset: subset, code: done.code, warnings: done.warnings, cpu: done.cpu.Seconds(),
			error: math.NaN(), nothing: nothing.verdict.error, codeOfNothing: nothing.code,
		}
		if done.verdict != nil {
			t.error = done.verdict.error
		}
		all = append(all, t)
	}
	return all, nil
}

// sensorError is to how much the word sensors knows every s.
const sensorError = 0.02
