package command

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/internal/dataset"
	"github.com/calamp/calamp/internal/tables"
	"github.com/calamp/calamp/internal/tests"
	"github.com/calamp/calamp/operator"
	"github.com/calamp/calamp/prior"
	"github.com/calamp/calamp/teacher"
)

// instrument is a problem in units of its own, with the model that it was drawn from.
type instrument struct {
	name                 string
	matrix               string // kind of W, in units of unitW
	n, m, p              int
	density, mean        float64 // the mean in standard deviations of the non-zero entries
	lo, hi               float64 // of s, relative to its unit
	snr                  float64 // the signals' power in readings over the noise's
	unitX, unitW, unitS  float64 // standard deviation of the non-zero entries; factors of W and s
	complex, nonNegative bool
	kappa                float64 // of complex gains
}

var inf = math.Inf(1)

// instruments are problems that can be solved with nothing given.
var instruments = []instrument{
	{name: "numbers", n: 120, m: 110, p: 8, density: 0.15, lo: 0.7, hi: 1.3, snr: 1e4},
	{name: "few signals", n: 120, m: 160, p: 2, density: 0.1, lo: 0.8, hi: 1.2, snr: 1e4},
	{name: "camera", matrix: "binary", n: 128, m: 110, p: 8, density: 0.15, mean: 2, lo: 0.7, hi: 1.3, snr: 1e4, unitX: 1000, unitW: 11.3},
	{name: "camera, two pictures", matrix: "binary", n: 100, m: 150, p: 2, density: 0.1, mean: 2, lo: 0.8, hi: 1.2, snr: 1e4, unitX: 300, unitW: 10},
	{name: "volts", n: 120, m: 120, p: 8, density: 0.2, lo: 0.5, hi: 1.5, snr: 1e3, unitX: 1e-6, unitS: 1e-3},
	{name: "hadamard", matrix: "hadamard", n: 128, m: 110, p: 8, density: 0.15, lo: 0.8, hi: 1.25, snr: 1e4, unitX: 50, unitW: 11.3},
	{name: "cosines, two signals", matrix: "dct", n: 128, m: 128, p: 2, density: 0.06, lo: 0.9, hi: 1.1, snr: 1e4, unitX: 0.02},
	{name: "good gains", n: 120, m: 100, p: 8, density: 0.15, lo: 0.95, hi: 1.05, snr: 300, unitX: 1e6},
	{name: "noise", n: 120, m: 140, p: 8, density: 0.15, lo: 0.8, hi: 1.2, snr: 30, unitX: 12},
	{name: "sparse W", matrix: "sparse:0.2", n: 120, m: 120, p: 8, density: 0.15, lo: 0.7, hi: 1.3, snr: 1e4, unitX: 1e-3, unitS: 1e3},
	{name: "dense signals", n: 100, m: 150, p: 8, density: 0.4, lo: 0.8, hi: 1.2, snr: 1e3, unitX: 7},
	{name: "signs", matrix: "sign", n: 100, m: 150, p: 2, density: 0.1, mean: 1, lo: 0.8, hi: 1.2, snr: 1e3, unitX: 1e3, unitW: 1e-6},
	{name: "photons", matrix: "binary", n: 100, m: 100, p: 8, density: 0.15, mean: 0.5, lo: 0.8, hi: 1.25, snr: 1e4, unitX: 400, unitW: 10, nonNegative: true},
	{name: "positive", n: 100, m: 100, p: 8, density: 0.2, mean: 0, lo: 0.8, hi: 1.25, snr: 1e3, unitX: 1e-2, nonNegative: true},
	{name: "antennas", n: 100, m: 100, p: 8, density: 0.15, lo: 0.7, hi: 1.3, snr: 1e4, unitX: 1e-6, complex: true, kappa: inf},
	{name: "antennas, two snapshots", n: 100, m: 140, p: 2, density: 0.1, lo: 0.8, hi: 1.2, snr: 1e4, unitX: 1e3, complex: true, kappa: inf},
	{name: "phases nearly known", n: 100, m: 110, p: 8, density: 0.12, lo: 0.8, hi: 1.2, snr: 1e4, unitX: 20, complex: true, kappa: 30},
	{name: "phases nearly known, two", n: 100, m: 150, p: 2, density: 0.08, lo: 0.9, hi: 1.1, snr: 1e4, unitX: 0.01, complex: true, kappa: 30},
	{name: "phases free", n: 100, m: 130, p: 8, density: 0.1, lo: 0.8, hi: 1.2, snr: 1e4, unitX: 1e4, unitS: 1e-3, complex: true},
	{name: "noisy antennas", n: 100, m: 120, p: 8, density: 0.15, lo: 0.8, hi: 1.2, snr: 100, unitX: 3, unitS: 10, complex: true, kappa: inf},
	{name: "single-pixel camera", matrix: "binary", n: 256, m: 200, p: 8, density: 0.15, mean: 3.3, lo: 0.7, hi: 1.3, snr: 1e4, unitX: 300, unitW: 16},
}

func orOne(v float64) float64 {
	if v == 0 {
		return 1
	}
	return v
}

// knowledge is what can be given, as flags.
type knowledge map[string][]string

// draw is the problem of a seed with all that is true of it.
func (i instrument) draw(t *testing.T, seed uint64) (*dataset.Problem, knowledge) {
	t.Helper()
	unitX, unitW, unitS := orOne(i.unitX), orOne(i.unitW), orOne(i.unitS)
	gains := channel.Uniform(unitS*i.lo, unitS*i.hi)
	mean, variance := i.mean*unitX, unitX*unitX
	square := variance + mean*mean
	if i.nonNegative {
		p := prior.NonNegative{Density: 1, SignalMean: mean, SignalVar: variance}
		square = p.Variance() + p.Mean()*p.Mean()
	}
	noise := i.density * square / i.snr // of rows of norm 1
	var problem *dataset.Problem
	if i.complex {
		in, err := teacher.Complex{
			N: i.n, M: i.m, P: i.p, NoiseVar: noise,
			Signal: prior.ComplexGaussBernoulli{Density: i.density, SignalVar: variance},
			Gain:   channel.ComplexPrior{Concentration: i.kappa}.WithAmplitude(gains),
		}.Draw(seed)
		if err != nil {
			t.Fatal(err)
		}
		problem = &dataset.Problem{W: in.W, Y: in.Y, Truth: in.Truth, Complex: true}
	} else {
		problem = i.drawReal(t, seed, gains, noise)
	}
	number := func(v float64) string { return fmt.Sprintf("%.6g", v) }
	return problem, knowledge{
		"density": {"--density", number(i.density)},
		"mean":    {"--signal-mean", number(mean)},
		"var":     {"--signal-var", number(variance)},
		"range":   {"--s-range", number(unitS*i.lo) + "," + number(unitS*i.hi)},
		"noise":   {"--noise-var", number(noise * unitW * unitW)},
		"prior":   i.prior(),
		"gains":   {"--gain-prior", "uniform"},
		"phase":   i.phase(),
		"working": {"--faulty", "off"},
		"clean":   {"--outliers", "off"},
	}
}

// prior and phase are how signals and phases are given; nil where there is nothing to give.
func (i instrument) prior() []string {
	if !i.nonNegative {
		return nil
	}
	return []string{"--prior", "nonnegative"}
}

func (i instrument) phase() []string {
	switch {
	case !i.complex:
		return nil
	case math.IsInf(i.kappa, 1):
		return []string{"--phase", "known"}
	case i.kappa == 0:
		return []string{"--phase", "free"}
	}
	return []string{"--phase", fmt.Sprint(i.kappa)}
}

func (i instrument) drawReal(t *testing.T, seed uint64, gains channel.GainPrior, noise float64) *dataset.Problem {
	t.Helper()
	unitX, unitW := orOne(i.unitX), orOne(i.unitW)
	signal := prior.GaussBernoulli{Density: i.density, SignalMean: i.mean * unitX, SignalVar: unitX * unitX}
	drawn := teacher.Teacher{N: i.n, M: i.m, P: i.p, Signal: signal, Gain: gains, NoiseVar: noise}
	if i.nonNegative {
		drawn.Entries = prior.NonNegative(signal)
	}
	if i.matrix != "" {
		if err := drawn.Matrix.UnmarshalText([]byte(i.matrix)); err != nil {
			t.Fatal(err)
		}
	}
	in, err := drawn.Draw(seed)
	if err != nil {
		t.Fatal(err)
	}
	problem := &dataset.Problem{W: in.W, Y: in.Y, Truth: in.Truth}
	return inUnits(t, problem, 1, unitW, 1)
}

// inUnits is a real problem with W, x and s in other units.
func inUnits(t *testing.T, p *dataset.Problem, x, w, s float64) *dataset.Problem {
	t.Helper()
	m, n := p.W.Dims()
	rows := make([]float64, m*n)
	for mu := range m {
		if err := p.W.(*operator.Dense).RowInto(rows[mu*n:(mu+1)*n], mu); err != nil {
			t.Fatal(err)
		}
	}
	for j := range rows {
		rows[j] *= w
	}
	matrix, err := operator.NewDense(m, n, rows)
	if err != nil {
		t.Fatal(err)
	}
	to := &dataset.Problem{W: matrix, Y: mat.DenseCopyOf(p.Y)}
	to.Y.Scale(x*w/s, to.Y)
	to.Truth.X = mat.DenseCopyOf(p.Truth.X)
	to.Truth.X.Scale(x, to.Truth.X)
	for _, v := range p.Truth.S {
		to.Truth.S = append(to.Truth.S, s*v)
	}
	return to
}

// answer is what calamp solve --json says.
type answer struct {
	code   int
	stderr string

	Status  string
	Metrics struct {
		XMSEScaled float64 `json:"x_mse_scaled"`
		SCNCC      float64 `json:"s_one_minus_cncc"`
	}
	Model struct {
		Density   float64
		SignalVar float64    `json:"signal_var"`
		NoiseVar  float64    `json:"noise_var"`
		SRange    [2]float64 `json:"s_range"`
	}
	BrokenSensors []struct{} `json:"broken_sensors"`
}

// solved runs calamp solve on a file.
func solved(t *testing.T, file string, flags ...string) (a answer) {
	t.Helper()
	var out, errs bytes.Buffer
	a.code = Run(append([]string{"solve", file, "--json"}, flags...), strings.NewReader(""), &out, &errs)
	a.stderr = errs.String()
	if err := json.Unmarshal(out.Bytes(), &a); err != nil {
		t.Errorf("%v: exit %d, %v\n%s", flags, a.code, err, a.stderr)
	}
	return a
}

// error is that of the signals, after the best factor, relative to their size.
func (a answer) error(p *dataset.Problem) float64 {
	x := mat.Norm(p.Truth.X, 2)
	rows, columns := p.Truth.X.Dims()
	if p.Complex {
		columns /= 2
	}
	return math.Sqrt(a.Metrics.XMSEScaled*float64(rows*columns)) / x
}

// subsets are what a user may know.
var subsets = []string{
	"density", "noise", "range", "var", "mean", "density mean var", "range noise", "density noise", "density range", "var noise",
	"density mean var noise", "noises", "noises density", "density mean var range noise", "working", "clean", "working clean noise", "gains range", "phase", "phase range density",
}

// flags are those of a subset, with the prior; nil where it says no more.
func (k knowledge) flags(i instrument, subset string) (flags []string) {
	for _, word := range strings.Fields(subset) {
		if i.complex && (word == "mean" || word == "noises") {
			continue
		}
		flags = append(flags, k[word]...)
	}
	if flags == nil {
		return nil
	}
	return append(flags, k["prior"]...)
}

// TestGivenTrueValues: who tells some of what is true is not worse off than who tells nothing, whatever the units.
func TestGivenTrueValues(t *testing.T) {
	tests.Long(t)
	for at, i := range instruments {
		for seed := range uint64(tellings) {
			short := at%4 == 0 || i.name == "antennas, two snapshots" // which blew up with a density that is true
			if !*tables.Long && (!short || seed > 0) || (!*tables.Long || seed > 0) && i.n > 200 {
				continue
			}
			t.Run(fmt.Sprintf("%s/%d", i.name, seed+1), func(t *testing.T) { i.tell(t, seed+1) })
		}
	}
}

// tellings is how many problems are drawn of each instrument.
const tellings = 4

func (i instrument) tell(t *testing.T, seed uint64) {
	problem, known := i.draw(t, seed)
	file := filepath.Join(t.TempDir(), "P.npz")
	if err := dataset.Save(file, problem); err != nil {
		t.Fatal(err)
	}
	noises := &dataset.Array{Info: dataset.Info{Shape: []int{i.m}}} // a file with the same for every sensor
	for range i.m {
		v, err := strconv.ParseFloat(known["noise"][1], 64)
		if err != nil {
			t.Fatal(err)
		}
		noises.Data = append(noises.Data, v)
	}
	known["noises"] = []string{"--noise-var", filepath.Join(filepath.Dir(file), "noises.npy")}
	if err := dataset.SaveArray(known["noises"][1], "a", noises); err != nil {
		t.Fatal(err)
	}
	nothing := solved(t, file)
	least := nothing.error(problem)
	t.Logf("nothing given: exit %d, error %.3g, %d broken\n%s", nothing.code, least, len(nothing.BrokenSensors), nothing.stderr)
	for at, subset := range append([]string{"prior"}, subsets...) {
		flags := known.flags(i, subset)
		if flags == nil || !*tables.Long && at%2 == 1 {
			continue
		}
		stated := solved(t, file, flags...)
		err := stated.error(problem)
		word := "ok"
		if strings.Contains(stated.stderr, "told-contradicted") {
			t.Errorf("%s given, which is true: %s", subset, stated.stderr)
		}
		if stated.code > nothing.code || !(err <= 1.2*least) {
			word = "WORSE"
			t.Errorf("%s given: exit %d and error %.3g, with nothing given %d and %.3g: calamp solve %s\n%s",
				subset, stated.code, err, nothing.code, least, strings.Join(flags, " "), stated.stderr)
		}
		t.Logf("%-30s exit %d, error %.3g, %d broken: %s", subset, stated.code, err, len(stated.BrokenSensors), word)
	}
}

// TestRangeThatIsNotTheirs: noise that is learned does not take up the gains that a range does not hold.
func TestRangeThatIsNotTheirs(t *testing.T) {
	tests.Long(t)
	for _, i := range instruments {
		if i.name != "numbers" && i.name != "camera" {
			continue
		}
		problem, _ := i.draw(t, 1)
		file := filepath.Join(t.TempDir(), "P.npz")
		if err := dataset.Save(file, problem); err != nil {
			t.Fatal(err)
		}
		nothing, given := solved(t, file), solved(t, file, "--s-range", "0.95,1.05")
		if given.code != 0 || given.error(problem) > 1.2*nothing.error(problem) || !regexp.MustCompile("told-contradicted|range is too narrow").MatchString(given.stderr) {
			t.Errorf("%s: exit %d and error %.3g, with nothing given %.3g\n%s", i.name, given.code, given.error(problem), nothing.error(problem), given.stderr)
		}
	}
}

// TestUnits: in other units of signals, W and readings the answers are the same, whatever is given.
func TestUnits(t *testing.T) {
	tests.Long(t)
	for _, i := range instruments {
		if i.complex || i.n > 200 || !*tables.Long && i.name != "numbers" {
			continue
		}
		t.Run(i.name, i.units)
	}
}

func (i instrument) units(t *testing.T) {
	plain, known := i.draw(t, 1)
	folder := t.TempDir()
	file := filepath.Join(folder, "P.npz")
	if err := dataset.Save(file, plain); err != nil {
		t.Fatal(err)
	}
	stated := func(words string, x, w, s float64) (flags []string) {
		scaled := map[string]float64{"mean": x, "var": x * x, "range": s, "noise": x * w * x * w}
		for _, word := range strings.Fields(words) {
			factor, hasUnit := scaled[word]
			if !hasUnit {
				flags = append(flags, known[word]...)
				continue
			}
			var numbers []string
			for _, text := range strings.Split(known[word][1], ",") {
				v, err := strconv.ParseFloat(text, 64)
				if err != nil {
					t.Fatal(err)
				}
				numbers = append(numbers, strconv.FormatFloat(v*factor, 'g', -1, 64))
			}
			flags = append(flags, known[word][0], strings.Join(numbers, ","))
		}
		return append(flags, known["prior"]...)
	}
	before := map[string]answer{}
	for at, unit := range [][3]float64{{1e9, 1, 1}, {1e-9, 1, 1}, {1, 1e9, 1}, {1, 1e-9, 1}, {1e-9, 1e9, 1}, {1, 1, 1e9}, {1e6, 1e-3, 1e-6}} {
		x, w, s := unit[0], unit[1], unit[2]
		scaled := inUnits(t, plain, x, w, s)
		other := filepath.Join(folder, fmt.Sprintf("P%d.npz", at))
		if err := dataset.Save(other, scaled); err != nil {
			t.Fatal(err)
		}
		for _, subset := range append([]string{""}, subsets...) {
			if !*tables.Long && len(strings.Fields(subset)) > 1 || *tables.Long && i.name != "numbers" && subset != "" && subset != "density mean var range noise" {
				continue
			}
			a, asked := before[subset]
			if !asked {
				a = solved(t, file, stated(subset, 1, 1, 1)...)
				before[subset] = a
			}
			b := solved(t, other, stated(subset, x, w, s)...)
			if a.code != b.code || math.Abs(a.error(plain)/b.error(scaled)-1) > 1e-3 {
				t.Errorf("x in %g, W in %g, s in %g, %q given: exit %d and error %.4g, in other units %d and %.4g\n%s", x, w, s, subset, a.code, a.error(plain), b.code, b.error(scaled), b.stderr)
			}
		}
	}
}
