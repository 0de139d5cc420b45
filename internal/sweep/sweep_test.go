package sweep

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/calamp/calamp/solver"
)

// small has points of every algorithm, each of some milliseconds.
const small = `
name = "small"
[[grid]]
algorithm = ["offline", "published"]
n = 40
density = [0.1, 0.3]
alpha = { from = 0.5, to = 1.0, count = 3 }
p = [2, 3]
noise_var = 1e-6
seeds = 1
[[grid]]
algorithm = ["online", "se"]
n = 40
density = 0.2
alpha = [0.6, 0.9]
p = 4
noise_var = 1e-6
seeds = [3, 5]
record = { samples = [1, 4], prediction = false }
[[grid]]
algorithm = "offline"
n = 40
density = 1.0
alpha = 1.5
p = 2
noise_var = 1e-3
covariance = ["diagonal", "full"]
solver = { max_iter = 5, tol = -1.0, damping = 0 }
record = { trajectory = true, prediction = true }
[[grid]]
algorithm = "threshold"
density = 0.3
p = 3
noise_var = 1e-6
[solver]
max_iter = 12
`

func parsed(t *testing.T, text string) *Spec {
	t.Helper()
	s, err := Parse("test.toml", text)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// table is the merged table of a store.
func table(t *testing.T, dir string, points []Point) string {
	t.Helper()
	rows, _, err := Store{dir}.Rows()
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := Merge(&out, points, rows, nil); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// runInto runs points; with limit above 0 it is interrupted after so many rows.
func runInto(t *testing.T, dir string, points []Point, l *Local, limit int) error {
	t.Helper()
	w, err := Store{dir}.Writer()
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	n := 0
	l.Each = func(r Row) error {
		if n++; n == limit {
			cancel()
		}
		return w.Append(r)
	}
	return l.Run(ctx, points)
}

func TestTableDoesNotDependOnWhoRan(t *testing.T) {
	points := parsed(t, small).Points()
	one := t.TempDir()
	if err := runInto(t, one, points, &Local{Workers: 1}, 0); err != nil {
		t.Fatal(err)
	}
	want := table(t, one, points)
	if lines := strings.Count(want, "\n"); lines < len(points)+1 || strings.Contains(want, "failed") {
		t.Fatalf("%d lines for %d points:\n%s", lines, len(points), want)
	}
	compare := func(name, dir string) {
		t.Helper()
		if got := table(t, dir, points); got != want {
			t.Errorf("%s: another table", name)
		}
	}
	two := t.TempDir()
	if err := runInto(t, two, points, &Local{Workers: 2}, 0); err != nil {
		t.Fatal(err)
	}
	compare("two workers", two)
	for _, n := range []int{3, 7} {
		if testing.Short() && n == 7 {
			break
		}
		dir := t.TempDir()
		for i := range n {
			if err := runInto(t, dir, Shard{i + 1, n}.Of(points), &Local{Workers: 2}, 0); err != nil {
				t.Fatal(err)
			}
		}
		compare(fmt.Sprint(n, " shards"), dir)
	}
	compare("interrupted", interrupted(t, points))
}

// interrupted runs points in six pieces, and leaves after each what a process
// leaves that was killed while it wrote: a part of a line.
func interrupted(t *testing.T, points []Point) string {
	dir := t.TempDir()
	for round := range 6 {
		rows, damaged, err := Store{dir}.Rows()
		if err != nil || damaged != round {
			t.Fatalf("%d damaged lines after %d kills, %v", damaged, round, err)
		}
		missing := rows.Missing(points, false)
		limit := 5
		if round == 5 {
			limit = 0
		}
		err = runInto(t, dir, missing, &Local{Workers: 2}, limit)
		if round < 5 && !errors.Is(err, context.Canceled) {
			t.Fatalf("interrupted run ended with %v", err)
		}
		tear(t, dir)
	}
	return dir
}

// tear repeats a part of the last line of the file that ends with a whole one: the others were torn before.
func tear(t *testing.T, dir string) {
	t.Helper()
	files, _ := Store{dir}.files()
	for _, path := range files {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		lines := strings.SplitAfter(string(text), "\n")
		if len(lines) < 2 || lines[len(lines)-1] != "" {
			continue
		}
		last := lines[len(lines)-2]
		if err := os.WriteFile(path, append(text, last[:len(last)/2]...), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func TestFailuresAreRows(t *testing.T) {
	s := parsed(t, `
[[grid]]
algorithm = "rehearsal"
seeds = 12
[rehearsal]
work = "1ms"
panic = 3
hang = 7
eat = 9
[run]
timeout = "50ms"`)
	points := s.Points()
	dir := t.TempDir()
	if err := runInto(t, dir, points, &Local{Workers: 2, Runner: Runner{Limits: s.Run}}, 0); err != nil {
		t.Fatal(err)
	}
	rows, _, _ := Store{dir}.Rows()
	got := StatusOf(points, rows)
	want := map[string]int{ClassPanic: 1, ClassTimeout: 1, ClassOutOfMemory: 1}
	if got.Done != 12 || got.Failed != 3 || !maps.Equal(got.Classes, want) {
		t.Errorf("status %+v", got)
	}
	for _, r := range rows {
		if r.Class == ClassPanic && !strings.Contains(r.Message, "seed 3 was to panic (github.com/calamp/calamp/internal/sweep.rehearse") {
			t.Errorf("panic is reported as %q", r.Message)
		}
	}
	if missing := rows.Missing(points, false); len(missing) != 0 {
		t.Errorf("%d points would be run again", len(missing))
	}
	if missing := rows.Missing(points, true); len(missing) != 3 {
		t.Errorf("with retry %d points would be run again", len(missing))
	}
}

// A computation that never looks at its context is left behind.
func TestTimeoutOfTheDeaf(t *testing.T) {
	if testing.Short() {
		t.Skip("waits for two seconds")
	}
	t.Parallel()
	release := make(chan struct{})
	defer close(release)
	r := Runner{Limits: Limits{Timeout: Duration(time.Millisecond)}, compute: func(context.Context, Point, int) (*outcome, error) {
		<-release
		return nil, nil
	}}
	row, ok := r.Run(t.Context(), Point{Algorithm: Rehearsal})
	if !ok || row.Class != ClassTimeout {
		t.Errorf("%+v", row)
	}
}

func TestCancelledPointIsNoRow(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if row, ok := new(Runner).Run(ctx, Point{Algorithm: Rehearsal, Seed: 1, Rehearse: Rehearse{Hang: 1}}); ok {
		t.Errorf("%+v", row)
	}
}

func TestParseErrors(t *testing.T) {
	grid := "[[grid]]\nalgorithm = \"offline\"\nn = 10\ndensity = 0.1\nalpha = 1\np = 2\n"
	cases := []struct{ text, want string }{
		{"", "test.toml: there is no [[grid]]"},
		{grid + "rho = 0.1\n", "test.toml:7: unknown key grid.rho"},
		{grid + "[solver]\n\nmaxiter = 3\n", "test.toml:9: unknown key solver.maxiter"},
		{grid + "[sover]\n", "test.toml:7: unknown key sover"},
		{grid + "p = 3\n", "test.toml:7: grid.p: Key 'grid.p' has already been defined"},
		{grid + "[run]\ntimeout = \"soon\"\n", "test.toml:8: run.timeout: expected a duration"},
		{grid + "noise_var = { from = 1, two = 2 }\n", "unknown key two in a range"},
		{grid + "s_range = [2, 1]\n", "expected [a, b] with 0 < a ≤ b"},
		{strings.Replace(grid, "offline", "ofline", 1), `there is no algorithm "ofline"`},
		{strings.Replace(grid, "alpha = 1\n", "", 1), "alpha is missing, which offline needs"},
		{strings.Replace(grid, "0.1", "1.1", 1), "density"},
		{strings.Replace(grid, "p = 2", "p = 2.5", 1), "p: expected whole numbers from 1, found 2.5"},
		{grid + "covariance = \"round\"", "covariance is diagonal or full"},
		{grid + "record = { samples = [1, 3] }", "samples must increase from 1 to at most p = 2"},
		{grid + "seeds = 0", "expected a number of seeds from 1"},
		{"= 3", "test.toml:1:"},
	}
	for _, c := range cases {
		_, err := Parse("test.toml", c.text)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: %v, want %q", c.text, err, c.want)
		}
	}
}

func TestAxis(t *testing.T) {
	s := parsed(t, "[[grid]]\nalgorithm = \"se\"\ndensity = { from = 0.1, to = 0.5, count = 5 }\nalpha = { from = 1e-2, to = 1, count = 3, log = true }\np = 1")
	if got := fmt.Sprint(s.Grids[0].Density, s.Grids[0].Alpha); got != "[0.1 0.2 0.3 0.4 0.5] [0.01 0.1 1]" {
		t.Error(got)
	}
}

// Keys are for ever: rows that somebody has must be found again.
func TestKeys(t *testing.T) {
	points := parsed(t, small).Points()
	if len(points) != 24+4+2+2+1 {
		t.Errorf("%d points", len(points))
	}
	if got := points[0].Key(); got != goldenKey {
		t.Errorf("the first point's key is %s; if its row would be another one now, raise Version", got)
	}
	if a, b := points[0], points[12]; a.Algorithm == b.Algorithm || a.stream() != b.stream() {
		t.Errorf("%v and %v are not compared on the same problem", a, b)
	}
	full, diagonal := points[len(points)-2], points[len(points)-3]
	if full.Covariance != "full" || full.Key() == diagonal.Key() || full.stream() != diagonal.stream() {
		t.Errorf("%v and %v", diagonal, full)
	}
	// Nothing that a theory does not look at is in its key.
	a := Point{Algorithm: SE, P: 2, Alpha: 1, Density: 0.1, N: 5, Seed: 7, Solver: Solver{Settings: solver.Settings{MaxIter: 9}}}
	b := Point{Algorithm: SE, P: 2, Alpha: 1, Density: 0.1}
	if a.Key() != b.Key() {
		t.Error("state evolution depends on a seed")
	}
}

const goldenKey = "d2356e94a5efca037ba9130873725f4a"

func TestPrediction(t *testing.T) {
	points := parsed(t, small).Points()
	p := points[slices.IndexFunc(points, func(p Point) bool { return p.Record.Prediction })]
	row, ok := new(Runner).Run(t.Context(), p)
	if !ok || row.Failed() || len(row.Measures) != 5 {
		t.Fatalf("%+v", row)
	}
	for i, m := range row.Measures {
		amp, se := m.Values.Get("x_mse"), m.Values.Get("se_x_mse")
		if m.Iteration != i+1 || !(math.Abs(math.Log(amp/se)) < 1) {
			t.Errorf("iteration %d: %g, predicted %g", m.Iteration, amp, se)
		}
	}
}

func TestShards(t *testing.T) {
	cases := []struct{ text, env, want string }{
		{"2/5", "", "2/5"},
		{"all", "SLURM_ARRAY_TASK_ID=3", "all"},
		{"auto", "", "all"},
		{"auto", "SLURM_ARRAY_TASK_ID=3 SLURM_ARRAY_TASK_MIN=1 SLURM_ARRAY_TASK_COUNT=4", "3/4"},
		{"auto/4", "SLURM_ARRAY_TASK_ID=2 SLURM_ARRAY_TASK_MIN=2 SLURM_ARRAY_TASK_COUNT=1", "3/4"},
		{"auto/8", "JOB_COMPLETION_INDEX=7", "8/8"},
		{"auto", "JOB_COMPLETION_INDEX=7", "give --shard auto/n"},
		{"auto", "OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=2", "1/2"},
		{"auto/2", "", "neither SLURM_ARRAY_TASK_ID"},
		{"auto/2", "JOB_COMPLETION_INDEX=2", "there are 2 shards"},
		{"0/5", "", "expected i/n"},
		{"6/5", "", "expected i/n"},
		{"x", "", "expected i/n"},
	}
	for _, c := range cases {
		env := make(map[string]string)
		for _, pair := range strings.Fields(c.env) {
			name, value, _ := strings.Cut(pair, "=")
			env[name] = value
		}
		s, err := ParseShard(c.text, func(name string) string { return env[name] })
		got := s.String()
		if err != nil {
			got = err.Error()
		}
		if !strings.Contains(got, c.want) {
			t.Errorf("%s with %s: %s, want %s", c.text, c.env, got, c.want)
		}
	}
}

func TestShardsPartThePoints(t *testing.T) {
	points := parsed(t, small).Points()
	seen := make(map[string]int)
	for i := range 7 {
		for _, p := range (Shard{i + 1, 7}).Of(points) {
			seen[p.Key()]++
		}
	}
	for _, p := range points {
		if seen[p.Key()] != 1 {
			t.Errorf("%v is in %d shards", p, seen[p.Key()])
		}
	}
}

func TestRowsPreferResults(t *testing.T) {
	failed := &Row{Key: "k", Status: statusFailed, Class: ClassTimeout}
	lost := &Row{Key: "k", Status: statusFailed, Class: ClassLost}
	good := &Row{Key: "k", Status: statusConverged}
	for _, order := range [][]*Row{{failed, lost, good}, {good, lost, failed}, {lost, good, failed}} {
		rows := make(Rows)
		for _, r := range order {
			rows.Add(r)
		}
		if rows["k"] != good {
			t.Errorf("kept %+v", rows["k"])
		}
	}
	for _, order := range [][]*Row{{failed, lost}, {lost, failed}} {
		rows := make(Rows)
		for _, r := range order {
			rows.Add(r)
		}
		if rows["k"] != lost {
			t.Errorf("of two failures %s was kept", rows["k"].Class)
		}
	}
}

func TestPlan(t *testing.T) {
	points := parsed(t, small).Points()
	plan, err := NewPlan(t.Context(), &Runner{}, points, time.Second)
	if err != nil {
		t.Fatal(err)
	}
	if plan.Points != len(points) || plan.Work <= 0 || plan.Memory < 1e6 || len(plan.Parts) != 5 {
		t.Errorf("%+v", plan)
	}
}

func TestStoreErrors(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("needs /dev/full")
	}
	dir := t.TempDir()
	rows, damaged, err := Store{filepath.Join(dir, "none")}.Rows()
	if len(rows) != 0 || damaged != 0 || err != nil {
		t.Errorf("%v %d %v", rows, damaged, err)
	}
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skip(err)
	}
	w := &Writer{dir: dir, file: full}
	points := parsed(t, "[[grid]]\nalgorithm = \"rehearsal\"\nseeds = 50").Points()
	l := Local{Workers: 2, Each: func(r Row) error { return w.Append(r) }}
	if err := l.Run(t.Context(), points); err == nil || !strings.Contains(err.Error(), "no space left") {
		t.Errorf("a full disk ends the run with %v", err)
	}
}
