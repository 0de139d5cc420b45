package sweep

import (
	"compress/gzip"
	"encoding/csv"
	"encoding/json"
	"maps"
	"os"
	"slices"
	"strconv"
	"testing"

	"github.com/calamp/calamp/internal/tables"
)

const sharing = `
[[grid]]
algorithm = ["offline", "published", "online"]
n = 40
density = [0.1, 0.3]
alpha = [0.5, 1.0]
p = [2, 3]
noise_var = 1e-6
seeds = 2
shared_matrix = true
[solver]
max_iter = 12
`

// result is a row without where and when.
func result(t *testing.T, r *Runner, p Point) string {
	t.Helper()
	row, ok := r.Run(t.Context(), p)
	if !ok || row.Failed() {
		t.Fatalf("%v: %+v", p, row)
	}
	text, err := json.Marshal([]any{row.Status, row.Iterations, row.Measures})
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// Points that share a matrix give what each gives on its own, and are kept together.
func TestSharedMatrix(t *testing.T) {
	points := InTurn(parsed(t, sharing).Points())
	groups := together(points)
	if len(groups) != 8 {
		t.Fatalf("%d groups of points, want one for each density, α and seed", len(groups))
	}
	shared := new(Runner)
	for _, group := range groups[:2] {
		if len(group) != 6 {
			t.Errorf("%d points share a matrix, want 6", len(group))
		}
		w, _, err := shared.draw(group[0])
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range group {
			in, done, err := shared.draw(p)
			if err != nil || in.W != w.W {
				t.Errorf("%v has another matrix, %v", p, err)
			}
			done()
			if got, want := result(t, shared, p), result(t, new(Runner), p); got != want {
				t.Errorf("%v with others:\n%s\nalone:\n%s", p, got, want)
			}
		}
	}
	var parted int
	for i := range 3 {
		mine := Shard{i + 1, 3}.Of(points)
		parted += len(together(mine))
	}
	if parted != len(groups) {
		t.Errorf("%d groups over three shards, %d in all", parted, len(groups))
	}
	// Keys of points that share nothing are what they were (TestKeys), those of others differ.
	own := points[0]
	own.SharedMatrix = false
	if own = own.identified(); own.Key() == points[0].Key() {
		t.Error("a point has the same key with a matrix of its own")
	}
}

// Matrices are kept while points use them, and then until another is drawn.
func TestMatricesAreDropped(t *testing.T) {
	points := parsed(t, sharing).Points()
	r := new(Runner)
	for _, p := range points {
		_, done, err := r.draw(p)
		if err != nil {
			t.Fatal(err)
		}
		done()
		if n := len(r.drawn.kept); n != 1 {
			t.Fatalf("%d matrices are kept where one is in use", n)
		}
	}
}

const wretched = `
[[grid]]
algorithm = ["offline", "online"]
n = 60
density = 0.5
alpha = [0.3, 1.6]
p = 25
noise_var = 1e-10
record = { samples = [5, 25] }
`

func TestGiveUp(t *testing.T) {
	patient := parsed(t, wretched+"[solver]\nmax_iter = 250\n").Points()
	for i, p := range parsed(t, wretched+"[solver]\nmax_iter = 250\ngive_up = true\n").Points() {
		row, _ := new(Runner).Run(t.Context(), p)
		if p.Alpha > 1 {
			if got, want := result(t, new(Runner), p), result(t, new(Runner), patient[i]); got != want {
				t.Errorf("%v is another one where hopeless points are given up:\n%s\n%s", p, got, want)
			}
			continue
		}
		if p.Algorithm == Offline { // on its way, or converged before it is looked at
			if row.Status != statusGivenUp && row.Iterations >= hopelessFrom+hopelessWindow {
				t.Errorf("%v: %s after %d iterations", p, row.Status, row.Iterations)
			}
			continue
		}
		samples := func(measures []Measure) (out []int) {
			for _, m := range measures {
				out = append(out, m.Sample)
			}
			return out
		}
		if row.Status != statusGivenUp || !slices.Equal(samples(row.Measures), []int{5, 10}) || !slices.Equal(samples(row.MeasuresAt()), []int{5, 25}) {
			t.Errorf("%v: %s, measured at %v and %v", p, row.Status, samples(row.Measures), samples(row.MeasuresAt()))
		}
	}
}

// A dozen entries of a thousand are found within a few iterations, in which variances fall by factors of ten and more: the run
// of the planes in which their shape was kept for too long.
func TestFewEntries(t *testing.T) {
	p := parsed(t, `
[[grid]]
algorithm = "offline"
n = 1000
density = 0.0125
alpha = 1.025
p = 10
noise_var = 1e-14
seeds = [1]
shared_matrix = true
`).Points()[0]
	row, _ := new(Runner).Run(t.Context(), p)
	if off := row.Measures[0].Values.Get("x_one_minus_ncc"); row.Status != statusConverged || !(off < 1e-12) {
		t.Errorf("%s after %d iterations, 1 - correlation %.2g", row.Status, row.Iterations, off)
	}
}

// recordedPlane is one seed of the paper's planes (testdata/plane.toml), in which nothing was given up, recorded on 22 November 2026: the
// columns that are needed here, as columns by name.
func recordedPlane(t *testing.T) []map[string]string {
	t.Helper()
	f, err := os.Open("testdata/plane.csv.gz")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	lines, err := csv.NewReader(z).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	var out []map[string]string
	for _, cells := range lines[1:] {
		line := make(map[string]string)
		for i, name := range lines[0] {
			line[name] = cells[i]
		}
		out = append(out, line)
	}
	return out
}

func number(t *testing.T, text string) float64 {
	t.Helper()
	v, err := strconv.ParseFloat(text, 64)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// recoveredBelow is the 1 - correlation at which an instance counts as recovered.
const recoveredBelow = 1e-9

// No stream of the recorded plane would have been given up that recovered in the end, and
// most of the others would.
func TestGivingUpOnTheRecordedPlane(t *testing.T) {
	given, final := make(map[string]bool), make(map[string]float64)
	for _, line := range recordedPlane(t) {
		if line["algorithm"] != string(Online) {
			continue
		}
		p := Point{Density: number(t, line["density"]), SRange: [2]float64{number(t, line["s_lo"]), number(t, line["s_hi"])}}
		v := Values{"x_var": number(t, line["x_var"]), "s_var": number(t, line["s_var"])}
		switch k := line["sample"]; k {
		case "10", "20": // of the samples recorded those after which it is decided
			given[line["key"]] = given[line["key"]] || p.unknown(v.Get("x_var")) && p.hopeless(v)
		case "50":
			final[line["key"]] = number(t, line["x_one_minus_ncc"])
		}
	}
	lost, ended := 0, 0
	for key, e := range final {
		switch {
		case e > recoveredBelow:
			lost++
			if given[key] {
				ended++
			}
		case given[key]:
			t.Errorf("point %s would have been given up, and recovers: %g", key, e)
		}
	}
	if lost != 562 || ended < 478 {
		t.Errorf("%d of %d lost streams would have been given up", ended, lost)
	}
}

// The same for offline points, of which the plane has no trajectories: those that took long
// and recovered are run again.
func TestLongGivingUpOffline(t *testing.T) {
	if !*tables.Long {
		t.Skip("a long measurement: -long")
	}
	slow := make(map[[3]string]bool)
	for _, line := range recordedPlane(t) {
		if line["algorithm"] == string(Offline) && number(t, line["iterations"]) >= 0.8*hopelessFrom && number(t, line["x_one_minus_ncc"]) <= recoveredBelow {
			slow[[3]string{line["density"], line["alpha"], line["p"]}] = true
		}
	}
	spec, err := Load("testdata/plane.toml")
	if err != nil {
		t.Fatal(err)
	}
	spec.Solver.GiveUp = true
	table := tables.New(t, "", "P", "points of the plane that recovered, in 80 iterations or more", "recover where hopeless points are given up", "given up")
	counts := make(map[int]*[3]int)
	for _, p := range spec.Points() {
		if p.Algorithm != Offline || !slow[[3]string{decimal(p.Density), decimal(p.Alpha), whole(p.P)}] {
			continue
		}
		row, _ := new(Runner).Run(t.Context(), p)
		c := counts[p.P]
		if c == nil {
			c = new([3]int)
			counts[p.P] = c
		}
		c[0]++
		if row.Measures[0].Values.Get("x_one_minus_ncc") <= recoveredBelow {
			c[1]++
		}
		if row.Status == statusGivenUp {
			c[2]++
			p.Solver.GiveUp = false // the plane was recorded by another version, which rounds otherwise
			if whole, _ := new(Runner).Run(t.Context(), p); whole.Measures[0].Values.Get("x_one_minus_ncc") <= recoveredBelow {
				t.Errorf("%v is given up after %d iterations, and recovers in %d", p, row.Iterations, whole.Iterations)
			}
		}
	}
	for _, p := range slices.Sorted(maps.Keys(counts)) {
		table.Row("| %d | %d | %d | %d |", p, counts[p][0], counts[p][1], counts[p][2])
	}
}
