package sweep

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/calamp/calamp/internal/tests"
)

// heap is what has been allocated until now, in bytes.
func heap() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.TotalAlloc
}

// parseBounded parses a spec, and looks at the time and the memory that this took; points is how many it may validate.
func parseBounded(t *testing.T, text string, points uint64) (*Spec, error) {
	t.Helper()
	// mostPoints values as numbers, twice, what the parser makes of text, and garbage of the points.
	most := 2*8*mostPoints + 2000*uint64(len(text)) + 8<<20 + 256*points
	before, start := heap(), time.Now()
	s, err := Parse("spec.toml", text)
	if took := time.Since(start); took > 10*time.Second {
		t.Errorf("%v for a spec of %d bytes", took, len(text))
	}
	if allocated := heap() - before; allocated > most {
		t.Errorf("%d bytes allocated for a spec of %d, expected at most %d", allocated, len(text), most)
	}
	return s, err
}

// FuzzSpec parses any text: a sound spec, or an error with its place, without more time and memory than a sweep may take.
func FuzzSpec(f *testing.F) {
	specs, err := filepath.Glob("../../experiments/*.toml")
	if err != nil {
		f.Fatal(err)
	}
	for _, path := range append(specs, "testdata/plane.toml") {
		text, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(text))
	}
	for _, grid := range []string{
		"algorithm = [\"offline\", \"online\"]\nn = 100\ndensity = 0.2\nalpha = {from = 0.1, to = 1, count = 5, log = true}\np = [1, 2]\nseeds = 3\nmatrix = [\"iid\", \"condition:10\"]\n",
		"algorithm = \"offline\"\nn = 50\ndensity = 0.2\nalpha = 1\np = 2\ncomplex = true\nphase = [\"free\", 10]\ns_range = [[0.9, 1.1], [1, 1]]\nseeds = [1, 7]\n",
		"algorithm = \"se\"\ndensity = 0.2\nalpha = 0.5\np = 2\nnoise_var = 1e-8\n[grid.record]\ntrajectory = true\n",
		"algorithm = \"threshold\"\ndensity = 0.2\np = 2\n[grid.solver]\nmax_iter = 10\n",
		"algorithm = \"rehearsal\"\nseeds = 1000000\nn = {from = 1, to = 2, count = 1000000}\n",
	} {
		f.Add("name = \"x\"\n[run]\ntimeout = \"10s\"\nmemory = \"1GB\"\n[rehearsal]\nwork = \"1ms\"\n[[grid]]\n" + grid + "[[quick]]\n" + grid)
	}
	f.Fuzz(func(t *testing.T, text string) {
		s, err := parseBounded(t, text, mostPoints)
		if err != nil {
			if _, ok := errors.AsType[*SpecError](err); !ok || err.Error() == "" {
				t.Errorf("%v (%T) is no SpecError", err, err)
			}
			return
		}
		total := 0.0
		for i := range s.Grids {
			total += s.Grids[i].size()
		}
		if total > 1000 {
			return // keys of a million points take seconds
		}
		points := s.Points()
		if len(points) == 0 || float64(len(points)) > total {
			t.Errorf("%d points of a product of %g", len(points), total)
		}
		for _, p := range points {
			if p.Memory() < 0 || p.Cost() < 0 || p.String() == "" || len(p.Key()) != 32 {
				t.Errorf("%v: memory %v, cost %g, key %q", p, p.Memory(), p.Cost(), p.Key())
			}
		}
	})
}

// TestShortSpecsThatAskForMuch parses specs of a few lines with millions of values: without the memory of these, and without
// the keys of points that are not asked for.
func TestShortSpecsThatAskForMuch(t *testing.T) {
	tests.Long(t)
	grid := func(axes ...string) string {
		return "[[grid]]\nalgorithm = \"rehearsal\"\n" + strings.Join(axes, "\n") + "\n"
	}
	axis := func(name string) string { return name + " = {from = 0.1, to = 0.9, count = 1000000}" }
	for name, text := range map[string]string{
		"every axis":      grid(axis("density"), axis("alpha"), axis("noise_var"), "seeds = 1000000"),
		"many grids":      strings.Repeat(grid(axis("density")), 30),
		"wrong elsewhere": "quick = 1\n" + strings.ReplaceAll(strings.Repeat(grid(axis("alpha")), 30), "[[grid]]", "[[Grid]]"),
		"inline":          "grid = [" + strings.Repeat("{alpha = {from = 1, to = 2, count = 1000000}}, ", 30) + "]",
		"many seeds":      strings.Repeat(grid("seeds = 1000000"), 30),
		"many sketches":   grid("seeds = 1") + strings.ReplaceAll(strings.Repeat(grid(axis("alpha")), 30), "[[grid]]", "[[quick]]"),
	} {
		if _, err := parseBounded(t, text, 0); err == nil || !strings.Contains(err.Error(), "expected at most") {
			t.Errorf("%s: found %v, expected a refusal", name, err)
		}
	}
	// As many as there may be.
	for _, text := range []string{
		grid(axis("density"), "alpha = 1", "p = 1", "n = 10"),
		strings.Replace(grid(axis("density"), "alpha = 1", "p = 1", "n = 10"), "rehearsal", "offline", 1),
		strings.Replace(grid(axis("density"), "alpha = 1", "p = 1"), "rehearsal", "se", 1),
		strings.Repeat(grid("seeds = 1000"), 1000),
	} {
		if _, err := parseBounded(t, text, mostPoints); err != nil {
			t.Errorf("%.60q: %v", text, err)
		}
	}
}

// TestSpecWithoutAnEnd: a device such as /dev/zero is not read for ever.
func TestSpecWithoutAnEnd(t *testing.T) {
	path := filepath.Join(t.TempDir(), "zeros.toml")
	if err := errors.Join(os.WriteFile(path, nil, 0o600), os.Truncate(path, mostText+1)); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(path); err == nil || !strings.Contains(err.Error(), "expected a sweep's lines of text") {
		t.Error(err)
	}
}
