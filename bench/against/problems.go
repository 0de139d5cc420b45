package main

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"gonum.org/v1/gonum/mat"
)

// A problem is what simulate makes, perhaps with other readings, and the
// commands that are run on it, in a folder beside the file, one after another.
type problem struct {
	name     string
	simulate []string   // the command line that makes it, without seed and output
	runs     [][]string // command lines, without -o
	input    string     // standard input of the runs, a file beside the folder
	signals  func(*rand.Rand) *mat.Dense
	edit     func(*readings)
	apart    bool // W and Y as two files, and Y as a stream
	timed    bool
	faster   float64 // how many times as fast as before it was to become; 0 for no such bar
	each     bool    // an iteration, and not the whole
}

func (p *problem) String() string {
	lines := []string{fmt.Sprintf("%-34s %s", p.name, strings.Join(p.simulate, " "))}
	for _, r := range p.runs {
		lines = append(lines, fmt.Sprintf("%-34s %s", "", strings.Join(r, " ")))
	}
	return strings.Join(lines, "\n")
}

// state says whether the runs keep a state.
func (p *problem) state() bool {
	return slices.ContainsFunc(p.runs, func(r []string) bool { return slices.Contains(r, "--state") })
}

// Models: what simulate draws from, and the model that the solver is given.
const (
	narrow = "--density 0.2 --s-range 0.95,1.05 --noise-var 1e-8"
	medium = "--density 0.2 --s-range 0.9,1.1 --noise-var 1e-6"
	wide   = "--density 0.2 --s-range 0.5,1.5 --noise-var 1e-6"
	noisy  = "--density 0.2 --s-range 0.8,1.25 --noise-var 1e-3"
	shifty = "--density 0.3 --signal-mean 0.5 --signal-var 2 --s-range 0.9,1.1 --noise-var 1e-5"
	exact  = "--density 0.1 --s-range 0.9,1.1 --noise-var 1e-14"

	nonnegative = "--prior nonnegative " + medium
	laplace     = "--prior laplace " + medium
	mixture     = "--prior mixture --component 0.15,1,0.05 --component 0.1,-2,0.3 --s-range 0.9,1.1 --noise-var 1e-6"

	wrongMixture = "--prior mixture --component 0.2,0.8,0.1 --component 0.2,-1,0.5 --s-range 0.9,1.1 --noise-var 1e-6"

	small = "--n 250 --alpha 0.8 --p 4" // of most problems
)

// list is the problems so far.
type list struct{ all []*problem }

// solve adds a problem that is solved by one that is given the model.
func (l *list) solve(name, size, model, flags string) *problem {
	p := &problem{name: name, simulate: words("simulate", size, model)}
	p.runs = [][]string{words("solve ../P.npz --json", model, flags)}
	l.all = append(l.all, p)
	return p
}

// learn adds a problem of which the solver is given only the flags.
func (l *list) learn(name, size, model, flags string) *problem {
	p := l.solve(name, size, model, "")
	p.runs[0] = words("solve ../P.npz --json", flags)
	return p
}

// stream adds one whose columns come one after the other, with the flags of
// one run after the other on the same state.
func (l *list) stream(name, size, model string, runs ...string) *problem {
	p := l.solve(name, size, model, "")
	p.runs = nil
	for _, flags := range runs {
		p.runs = append(p.runs, words("online ../P.npz --state", stateFile, flags))
	}
	return p
}

func words(lines ...string) []string { return strings.Fields(strings.Join(lines, " ")) }

// problems is the list of all. Names begin with the kind of problem.
func problems() []*problem {
	l := &list{}
	l.independent()
	l.matrices()
	l.broken()
	l.learned()
	l.priors()
	l.options()
	l.bare()
	l.readings()
	l.streams()
	l.larger()
	l.single()
	return l.all
}

// independent has W with independent entries, from easy to impossible.
func (l *list) independent() {
	models := []struct{ name, flags string }{
		{"narrow", narrow}, {"medium", medium}, {"wide", wide}, {"noisy", noisy}, {"shifty", shifty},
	}
	for _, size := range []struct{ name, flags string }{
		{"p10", "--n 250 --alpha 0.6 --p 10"},
		{"p4", "--n 300 --alpha 0.8 --p 4"},
		{"p2", "--n 200 --alpha 1.2 --p 2"},
		{"p1", "--n 200 --alpha 0.9 --p 1"},
	} {
		for _, m := range models {
			l.solve("iid/"+size.name+"-"+m.name, size.flags, m.flags, "")
		}
	}
	l.solve("iid/exact", "--n 400 --alpha 0.5 --p 5", exact, "")
	l.solve("iid/too-few", "--n 250 --alpha 0.2 --p 4", medium, "")
	l.solve("iid/f4", small+" --f4", medium, "")
	l.solve("iid/odd-sizes", "--n 37 --m 61 --p 7", medium, "")
	l.solve("iid/tiny", "--n 8 --m 9 --p 3", medium, "")
	l.solve("iid/tall", "--n 40 --m 900 --p 3", wide, "")
	l.solve("iid/many-signals", "--n 60 --m 60 --p 70", medium, "")
	l.solve("iid/gains-known", small, "--density 0.2 --s-range 0.999999999,1.000000001 --noise-var 1e-6", "")
}

// matrices has other W, with the model known and not.
func (l *list) matrices() {
	for _, kind := range []string{
		"mean:0.2", "mean:3", "binary", "sign", "hadamard", "dct", "correlated:0.5", "correlated:0.9",
		"condition:10", "condition:30", "sparse:0.1", "duplicated:0.1", "uneven:1", "zero-columns:0.1",
	} {
		name := strings.ReplaceAll(kind, ":", "-")
		size := "--n 256 --m 200 --p 4 --matrix-kind " + kind
		l.solve("matrix/"+name, size, medium, "")
		l.learn("matrix/"+name+"-learned", size, medium, "")
	}
	l.solve("matrix/means-stay", "--n 256 --m 200 --p 4 --matrix-kind mean:1", medium, "--mean-removal off")
	l.solve("matrix/means-stay-binary", small+" --matrix-kind binary", medium, "--mean-removal off --max-iter 200")
	l.solve("matrix/uneven-2", "--n 256 --m 200 --p 4 --matrix-kind uneven:2", medium, "--max-iter 300")
	l.solve("matrix/binary-f4", "--n 256 --m 200 --p 4 --matrix-kind binary --f4", wide, "")
}

// broken has sensors that do not read the signals.
func (l *list) broken() {
	kinds := []struct {
		name string
		edit func(*readings)
	}{
		{"stuck", stuck(37)},
		{"garbage", garbage(41)},
		{"out-of-range", scaled(43, 3)},
		{"dead", scaled(53, 0)},
		{"inverted", scaled(47, -1)},
		{"several", all(stuck(37), garbage(41), scaled(43, 0.2), scaled(67, 0))},
	}
	for _, k := range kinds {
		l.solve("broken/"+k.name, small, medium, "").edit = k.edit
		l.learn("broken/"+k.name+"-learned", small, medium, "").edit = k.edit
	}
	l.solve("broken/off", small, medium, "--faulty off").edit = garbage(41)
	l.solve("broken/fraction", small, medium, "--faulty 0.05").edit = garbage(41)
	l.solve("broken/one-signal", "--n 200 --alpha 1.2 --p 1", medium, "").edit = scaled(41, 5)
	l.solve("broken/mask", small+" --matrix-kind binary", medium, "").edit = all(stuck(37), garbage(41))
	l.solve("broken/missing", small, wide, "").edit = all(garbage(41), missing(0.05))
	l.solve("broken/half", small, medium, "--max-iter 300").edit = garbage(2)
}

// learned has models of which all or a part is to be learned.
func (l *list) learned() {
	l.learn("learned/narrow", small, narrow, "")
	l.learn("learned/wide", small, wide, "")
	l.learn("learned/noisy", small, noisy, "")
	l.learn("learned/shifty", small, shifty, "")
	l.learn("learned/p10", "--n 200 --alpha 0.6 --p 10", medium, "")
	l.learn("learned/p1", "--n 200 --alpha 1 --p 1", medium, "")
	l.learn("learned/too-few", "--n 250 --alpha 0.25 --p 4", medium, "")
	l.learn("learned/density", small, medium, "--density auto --s-range 0.9,1.1 --noise-var 1e-6")
	l.learn("learned/noise", small, medium, "--density 0.2 --s-range 0.9,1.1 --noise-var auto")
	l.learn("learned/range", small, medium, "--density 0.2 --s-range auto --noise-var 1e-6")
	l.learn("learned/scale", small, medium, "--density 0.2 --signal-var auto --s-range 0.9,1.1 --noise-var 1e-6")
	l.learn("learned/signals", small, shifty, "--s-range 0.9,1.1")
	l.learn("learned/wrong-range", small, wide, "--density 0.2 --s-range 0.95,1.05 --noise-var 1e-6")
	l.learn("learned/wrong-noise", small, noisy, "--density 0.2 --s-range 0.8,1.25 --noise-var 1e-8 --max-iter 300")
	l.learn("learned/anchor-mean", small, medium, "--anchor mean=1")
	l.learn("learned/anchor-sensors", small, medium, "--anchor sensor=17:0.98 --anchor sensor=3:1.02")
	l.solve("learned/anchor-given", small, medium, "--anchor sensor=5:1.01")
}

// priors has signals that are not sparse Gaussians.
func (l *list) priors() {
	for _, k := range []struct{ name, flags, learn string }{
		{"nonnegative", nonnegative, "--prior nonnegative"},
		{"laplace", laplace, "--prior laplace"},
		{"mixture", mixture, wrongMixture + " --learn-components"},
	} {
		l.solve("prior/"+k.name, small, k.flags, "")
		l.learn("prior/"+k.name+"-learned", small, k.flags, k.learn)
		l.solve("prior/"+k.name+"-mask", small+" --matrix-kind binary", k.flags, "")
	}
	l.learn("prior/wrong", small, nonnegative, medium)
}

// options has what else can be asked of solve.
func (l *list) options() {
	for _, variant := range []string{"--covariance full", "--variance scalar"} {
		name := strings.NewReplacer("--", "", " ", "-").Replace(variant)
		l.solve("option/"+name, small, medium, variant)
		l.solve("option/"+name+"-wide", "--n 120 --alpha 0.9 --p 3", wide, variant)
		l.learn("option/"+name+"-learned", "--n 150 --alpha 0.9 --p 3", medium, variant)
	}
	// Single precision is only begun with where W has more than 2¹⁹ entries.
	for _, precision := range []string{"auto", "f32", "f64"} {
		l.solve("option/precision-"+precision, "--n 900 --alpha 0.8 --p 3", medium, "--precision "+precision)
	}
	l.solve("option/precision-small", small, medium, "--precision f32")
	l.solve("option/damping", small, medium, "--damping 0.3")
	l.solve("option/no-scale-step", small, medium, "--no-scale-step")
	l.solve("option/tolerance", small, medium, "--tol 1e-5")
	l.solve("option/few-iterations", small, medium, "--max-iter 7")
	l.solve("option/threads-2", "--n 1100 --m 1000 --p 6", medium, "--threads 2")
	l.solve("option/compare", "--n 80 --m 70 --p 4", medium, "--compare")
	l.solve("option/disk", small, medium, "").fromParts("--memory 100KiB")
	l.solve("option/disk-f4-mask", small+" --f4 --matrix-kind binary", medium, "").fromParts("--memory 64KiB")
	l.solve("option/parts", small, medium, "").fromParts("")
	l.solve("option/refused", small, medium, "--damping 2")
	l.solve("option/refused-together", small, medium, "--covariance full --variance scalar")
	l.solve("option/refused-anchor", small, medium, "--anchor sensor=100000:1")
}

// fromParts has a problem solved from W.npy and Y.npy.
func (p *problem) fromParts(flags string) {
	p.apart = true
	p.runs[0] = append(words("solve --matrix ../W.npy --readings ../Y.npy", flags), p.runs[0][2:]...)
}

// bare has the published recursion, whose iterations are counted.
func (l *list) bare() {
	const recursion = "--damping 0 --no-scale-step --tol 0 --max-iter "
	for _, iterations := range []string{"1", "2", "8", "30"} {
		l.solve("bare/"+iterations, small, medium, recursion+iterations)
	}
	l.solve("bare/full", small, medium, recursion+"6 --covariance full")
	l.solve("bare/scalar", small, medium, recursion+"6 --variance scalar")
	l.solve("bare/damped", small, medium, "--damping 0.5 --no-scale-step --tol 0 --max-iter 12")
	l.solve("bare/mask", small+" --matrix-kind binary", medium, recursion+"3")
	l.solve("bare/counted", small, medium, "--tol 0 --max-iter 20")
}

// readings has readings that lack something.
func (l *list) readings() {
	l.solve("missing/few", small, medium, "").edit = missing(0.02)
	l.solve("missing/third", "--n 200 --alpha 1.3 --p 4", medium, "").edit = missing(0.33)
	l.learn("missing/learned", small, medium, "").edit = missing(0.1)
	l.solve("missing/full", small, medium, "--covariance full").edit = missing(0.1)
	l.solve("clipped/few", small, medium, "--saturation 1").edit = clipped(1)
	l.solve("clipped/many", "--n 200 --alpha 1.3 --p 4", wide, "--saturation 0.5").edit = clipped(0.5)
	l.learn("clipped/learned", small, medium, "--saturation 0.8").edit = clipped(0.8)
	l.solve("clipped/not-given", small, medium, "--max-iter 300").edit = clipped(0.8)
	for _, part := range []float64{0.01, 0.1} {
		name := fmt.Sprint("similar/", part)
		l.solve(name, "--signals X.npy --alpha 0.9 --p 4", medium, "").signals = similar(200, 4, part)
		l.learn(name+"-learned", "--signals X.npy --alpha 0.9 --p 4", medium, "").signals = similar(200, 4, part)
	}
	mask := l.solve("similar/mask", "--signals X.npy --alpha 0.9 --p 4 --matrix-kind binary", medium, "")
	mask.signals = similar(200, 4, 0.03)
}

// streams has samples that come one after the other.
func (l *list) streams() {
	const long = "--n 120 --alpha 0.8 --p 30"
	l.stream("stream/medium", long, medium, medium)
	l.stream("stream/wide", long, wide, wide)
	l.stream("stream/noisy", long, noisy, noisy)
	l.stream("stream/learned", long, medium, "--s-range 0.9,1.1")
	l.stream("stream/learned-noise", long, medium, "--density 0.2 --s-range 0.9,1.1 --noise-var auto")
	l.stream("stream/memory", long, medium, medium+" --memory 8")
	l.stream("stream/memory-learned", long, medium, "--s-range 0.9,1.1 --memory 8")
	l.stream("stream/mask", long+" --matrix-kind binary", medium, medium)
	l.stream("stream/mask-memory", long+" --matrix-kind binary", wide, wide+" --memory 5")
	l.stream("stream/hadamard", "--n 128 --m 100 --p 20 --matrix-kind hadamard", medium, medium)
	l.stream("stream/bare", long, medium, medium+" --commit always --damping 0 --no-scale-step --tol 0 --max-iter 10")
	l.stream("stream/always", long, medium, medium+" --commit always --max-iter 60")
	l.stream("stream/scalar", long, medium, medium+" --variance scalar")
	l.stream("stream/full", "--n 80 --alpha 0.9 --p 12", medium, medium+" --covariance full")
	l.stream("stream/f32", long, medium, medium+" --precision f32")
	l.stream("stream/object", long, medium, medium+" --json")
	l.stream("stream/signals-printed", "--n 40 --m 40 --p 10", medium, medium+" --emit-x")
	l.stream("stream/resumed", long, medium, medium+" --limit 11", medium)
	l.stream("stream/resumed-learned", long, medium, "--s-range 0.9,1.1 --limit 11 --checkpoint early",
		"--s-range 0.9,1.1", "--s-range 0.9,1.1 --rollback early --limit 3")
	l.stream("stream/frozen", long, medium, medium+" --limit 20", medium+" --freeze --from 15")
	l.stream("stream/broken", long, medium, medium).edit = garbage(31)
	l.stream("stream/broken-learned", long, medium, "--s-range 0.9,1.1").edit = all(scaled(31, 3), scaled(43, 0))
	l.stream("stream/broken-later", long, medium, medium).edit = func(y *readings) {
		for i := 12; i < y.p; i++ {
			y.row(5)[i] *= 4
		}
	}
	l.stream("stream/missing", long, medium, medium).edit = missing(0.05)
	for _, input := range []struct{ name, file string }{{"f8", framesFile}, {"jsonl", linesFile}} {
		p := l.stream("stream/"+input.name, long, medium)
		p.apart, p.input, p.edit = true, "../"+input.file, missing(0.02)
		p.runs = [][]string{words("online --matrix ../W.npy --state", stateFile, medium, "--input", input.name)}
	}
}

// single has what variances on demand and single precision were to be worth, against the commit before these (a0933f5): whole solves
// to the default stop rule, mean iterations, and a stream.
func (l *list) single() {
	bar := func(p *problem, faster float64, each bool) { p.timed, p.faster, p.each = true, faster, each }
	for _, s := range []struct {
		n, p   int
		faster float64
	}{{500, 3, 1.4}, {1000, 10, 2}, {4000, 4, 2}, {10000, 2, 1.7}} {
		for _, noise := range []string{"1e-4", "1e-8"} {
			model := "--density 0.2 --s-range 0.95,1.05 --noise-var " + noise
			size := fmt.Sprintf("--n %d --alpha 0.7 --p %d", s.n, s.p)
			bar(l.solve(fmt.Sprintf("single/solve-%d-%d-%s", s.n, s.p, noise), size, model, "--threads 1"), s.faster, false)
		}
	}
	const known = "--density 0.2 --s-range 0.999,1.001 --noise-var 1e-8"
	for _, s := range []struct {
		size    string
		n, m, p int
		faster  float64
	}{{"1000-1", 1000, 1000, 1, 2.2}, {"1000-10", 1000, 1000, 10, 2.5}, {"10000-1", 10000, 6000, 1, 1.8}, {"10000-10", 10000, 6000, 10, 2.5}} {
		size := fmt.Sprintf("--n %d --m %d --p %d --f4", s.n, s.m, s.p)
		bar(l.solve("single/iteration-"+s.size, size, known, "--threads 1"), s.faster, true)
	}
	bar(l.stream("single/stream", "--n 1000 --m 600 --p 100", narrow, narrow+" --json --threads 1"), 12.0/5, false)
}

// larger has what takes about a second, on a machine of 2026.
func (l *list) larger() {
	from := len(l.all)
	l.solve("large/p1", "--n 3000 --alpha 0.9 --p 1", medium, "")
	l.solve("large/p4", "--n 2500 --alpha 0.8 --p 4", medium, "")
	l.solve("large/p10", "--n 2000 --alpha 0.6 --p 10", narrow, "")
	l.solve("large/wide", "--n 1500 --alpha 0.9 --p 10", wide, "")
	l.solve("large/f4", "--n 3000 --alpha 0.8 --p 4 --f4", medium, "")
	l.solve("large/f64", "--n 1500 --alpha 0.8 --p 10", medium, "--precision f64 --threads 1")
	l.learn("large/learned", "--n 2000 --alpha 0.8 --p 6", medium, "")
	l.solve("large/mask", "--n 2000 --alpha 0.8 --p 6 --matrix-kind binary", medium, "")
	l.solve("large/correlated", "--n 1500 --alpha 0.8 --p 4 --matrix-kind correlated:0.5", medium, "")
	l.solve("large/full", "--n 1000 --alpha 0.7 --p 5", medium, "--covariance full")
	l.solve("large/scalar", "--n 2500 --alpha 0.8 --p 6", medium, "--variance scalar")
	l.learn("large/broken", "--n 1500 --alpha 0.9 --p 6", medium, "").edit = all(garbage(41), stuck(97))
	l.stream("large/stream", "--n 800 --alpha 0.7 --p 30", medium, medium+" --json")
	l.stream("large/stream-learned", "--n 600 --alpha 0.7 --p 40", medium, "--s-range 0.9,1.1 --json")
	for _, p := range l.all[from:] {
		p.timed = true
	}
}
