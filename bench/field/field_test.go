package main

import (
	"context"
	"math"
	"math/cmplx"
	"path/filepath"
	"slices"
	"testing"

	"github.com/calamp/calamp/internal/baseline"
	"github.com/calamp/calamp/internal/dataset"
	"github.com/calamp/calamp/internal/tests"
)

// TestSameEveryTime: a problem depends on the name of its kind and its number alone.
func TestSameEveryTime(t *testing.T) {
	tests.Long(t)
	for _, k := range kinds() {
		a, b, other := draw(k, 3), draw(k, 3), draw(k, 5)
		if !same(a.w, b.w) || !same(a.y, b.y) || !same(a.x, b.x) || !slices.Equal(a.s, b.s) {
			t.Errorf("%s: two draws of a problem differ", k.name)
		}
		if same(a.y, other.y) {
			t.Errorf("%s: problems 3 and 5 are the same", k.name)
		}
	}
}

// same compares entries, where NaN is like NaN.
func same(a, b baseline.Parts) bool {
	m, n := a.Dims()
	if rows, columns := b.Dims(); rows != m || columns != n {
		return false
	}
	for i := range m {
		for j := range n {
			if u, v := a.At(i, j), b.At(i, j); u != v && !(cmplx.IsNaN(u) && cmplx.IsNaN(v)) {
				return false
			}
		}
	}
	return true
}

// TestTruthExplainsReadings: without a flaw, sy - Wx is noise of the variance that is stated; with one it is larger or the reading is marked. W, x and s are
// numbers, sizes are within bounds, and gains differ.
func TestTruthExplainsReadings(t *testing.T) {
	tests.Long(t)
	for _, k := range kinds() {
		for index := range 4 {
			p := draw(k, index)
			m, n := p.w.Dims()
			_, count := p.x.Dims()
			if m*n > 1e6 || m < 20 || n < 20 || count > 50 || (p.w.Im != nil || p.y.Im != nil) != k.complex {
				t.Errorf("%s: %d×%d, %d signals, complex %v", p.name(), m, n, count, p.y.Im != nil)
			}
			left := p.left(p.calibrated())
			switch p.flaw {
			case "", "missing readings", "outliers", "dead sensors", "offsets":
				if sd := math.Sqrt(2 / (0.9 * float64(m*count))); math.Abs(left/p.noise-1) > 5*sd {
					t.Errorf("%s: noise of variance %g, stated %g (flaw %q)", p.name(), left, p.noise, p.flaw)
				}
			default:
				if !(left > 0.3*p.noise) {
					t.Errorf("%s: noise of variance %g, stated %g (flaw %q)", p.name(), left, p.noise, p.flaw)
				}
			}
			if total := meanPower(p.w.Mul(p.x)); !(p.noise >= leastNoise*total && p.noise < total) {
				t.Errorf("%s: noise of variance %g in readings of power %g", p.name(), p.noise, total)
			}
			if p.lowGain <= 0 || p.highGain/p.lowGain < 1.03 {
				t.Errorf("%s: gains from %g to %g", p.name(), p.lowGain, p.highGain)
			}
		}
	}
}

// TestVariety: both halves of each kind have problems with and without a flaw, all gains and all flaws occur, and there are enough kinds.
func TestVariety(t *testing.T) {
	all := kinds()
	if len(all) < 20 {
		t.Errorf("%d kinds", len(all))
	}
	seen, names := map[string]int{}, map[string]bool{}
	for _, k := range all {
		if names[k.name] {
			t.Errorf("two kinds are called %s", k.name)
		}
		names[k.name] = true
	}
	// Gains, flaws and snapshots are drawn before the readings: a cheap kind shows them all.
	for _, k := range all {
		if k.name != "microphones" && k.name != "camera-line" && k.name != "plumes" && k.name != "radar" && k.name != "antenna-uniform" {
			continue
		}
		flawed := map[string]int{}
		for i := range instances {
			p := draw(k, i)
			seen[p.gains]++
			seen[p.flaw]++
			if p.flaw != "" {
				flawed[set(i)]++
			}
		}
		for _, half := range []string{"work", "final"} {
			if flawed[half] < 2 || flawed[half] > 4 {
				t.Errorf("%s: %d of %d problems of the half %s have a flaw", k.name, flawed[half], instances/2, half)
			}
		}
	}
	for _, g := range gainKinds {
		if seen[g.name] == 0 {
			t.Errorf("gains %s never occur", g.name)
		}
	}
	for _, f := range flaws {
		if seen[f.name] == 0 {
			t.Errorf("flaw %q never occurs", f.name)
		}
	}
}

// TestArraysMove: what the truth calls a move of the scene gives readings that differ in phases alone.
func TestArraysMove(t *testing.T) {
	for _, k := range kinds() {
		if k.name != "antenna-uniform" && k.name != "fourier-points" { // of others, those at the edge of the grid have nowhere to go
			continue
		}
		p := draw(k, 0)
		for i := 1; p.flaw == "W wrong"; i++ {
			p = draw(k, i)
		}
		n, count := p.x.Dims()
		moved := baseline.NewParts(n, count, true)
		for i := range n {
			for c := range count {
				moved.Set(p.moved(i, 3), c, p.x.At(i, c))
			}
		}
		z, other := p.w.Mul(p.x), p.w.Mul(moved)
		m, _ := z.Dims()
		for mu := range m {
			first := other.At(mu, 0) / z.At(mu, 0)
			for c := range count {
				if off := other.At(mu, c) - first*z.At(mu, c); math.Abs(power(first)-1) > 1e-9 || power(off) > 1e-16*meanPower(z) {
					t.Fatalf("%s: reading %d of signal %d is not turned as that of signal 0", k.name, mu, c)
				}
			}
		}
		if v := p.judge(&answer{x: moved}, true); v.error > 1e-9 {
			t.Errorf("%s: a moved scene has the error %g", k.name, v.error)
		}
	}
}

// TestJudge: answers that are right, off, or falsely sure.
func TestJudge(t *testing.T) {
	p := draw(kindNamed(t, "random"), 4)
	n, count := p.x.Dims()
	m := len(p.s)
	exact := func(off, stated, gainsOff, gainsStated float64) *answer {
		a := &answer{xVar: baseline.NewParts(n, count, false)}
		sign := complex(1, 0)
		a.x = p.x.Clone().Apply(func(_, _ int, v complex128) complex128 { sign = -sign; return 2 * (v + sign*complex(off, 0)) })
		a.xVar.Apply(func(int, int, complex128) complex128 { return complex(4*stated*stated, 0) })
		for mu := range m {
			sign = -sign
			s := 2 * real(p.s[mu]) * (1 + real(sign)*gainsOff)
			a.s = append(a.s, complex(s, 0))
			a.low, a.top = append(a.low, s*(1-2*gainsStated)), append(a.top, s*(1+2*gainsStated))
		}
		return a
	}
	for name, c := range map[string]struct {
		a               *answer
		honest, useful  bool
		silent, doubted string
	}{
		"right":                  {exact(1e-4, 1e-4, 1e-3, 1e-3), true, true, solved, solved},
		"falsely sure of x":      {exact(1e-3, 1e-4, 1e-3, 1e-3), false, true, silentlyWrong, wrongWarned},
		"falsely sure of gains":  {exact(1e-4, 1e-4, 1e-3, 1e-4), false, true, silentlyWrong, wrongWarned},
		"far off, and says so":   {exact(0.1, 0.1, 0.1, 0.1), true, false, useless, useless},
		"far off, and sure of x": {exact(1, 1e-4, 0.1, 0.1), false, false, silentlyWrong, wrongWarned},
	} {
		v := p.judge(c.a, false)
		if v.honest != c.honest || (v.error <= usefulUpTo(0.01)) != c.useful {
			t.Errorf("%s: %v, honest %v", name, &v, v.honest)
		}
		if got := outcome(0, false, &v, 0.01, conventions); got != c.silent {
			t.Errorf("%s: %s, expected %s", name, got, c.silent)
		}
		if got := outcome(0, false, &v, 0.01, []string{"signals-alike"}); got != c.doubted {
			t.Errorf("%s with a warning: %s, expected %s", name, got, c.doubted)
		}
	}
}

func kindNamed(t *testing.T, name string) *kind {
	for _, k := range kinds() {
		if k.name == name {
			return k
		}
	}
	t.Fatalf("no kind %s", name)
	return nil
}

// TestCompetitors: behind a random W pursuit and ℓ1 find the signals with the gains given, and those who ignore the gains do not.
func TestCompetitors(t *testing.T) {
	tests.Long(t)
	for _, name := range []string{"random", "random-complex"} {
		p := draw(kindNamed(t, name), 6)
		o, err := p.compete(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		if o.pursuit > 0.05 || o.lasso > 0.2 || o.calamp > 0.05 || o.ignored < 3*o.pursuit {
			t.Errorf("%s: %+v", p.name(), o)
		}
	}
}

// TestFiles: problems are files that calamp reads, and rows of a table come back as they were.
func TestFiles(t *testing.T) {
	for _, name := range []string{"plumes", "microphones"} {
		p := draw(kindNamed(t, name), 1)
		path := filepath.Join(t.TempDir(), "P.npz")
		if err := p.save(path, true); err != nil {
			t.Fatal(err)
		}
		read, err := dataset.Load(path)
		if err != nil {
			t.Fatal(err)
		}
		if m, n := read.W.Dims(); m != len(p.s) || n != len(read.Truth.X.RawMatrix().Data)/read.Truth.X.RawMatrix().Cols || read.Complex != p.kind.complex {
			t.Errorf("%s: W came back as %d×%d, complex %v", name, m, n, read.Complex)
		}
	}
	path := filepath.Join(t.TempDir(), "field.csv")
	r := &row{kind: "plumes", index: 4, m: 3, gains: "0.67 to 1.5", warnings: []string{"a", "b"}, outcome: solved, error: math.NaN(), limit: math.Inf(1), others: others{pursuit: 0.5, ignored: 1}}
	if err := appendRow(path, r); err != nil {
		t.Fatal(err)
	}
	if err := appendRow(path, r); err != nil {
		t.Fatal(err)
	}
	rows, err := readRows(path)
	if err != nil || len(rows) != 2 || !slices.Equal(rows[1].fields(), r.fields()) {
		t.Errorf("rows came back as %v: %v", rows, err)
	}
}

// TestBlindBound: with many snapshots behind a random W gains cost little; of positive scenes behind masks of 0 and 1 they cost more the fewer scenes there are, and an error of x
// that is below the bound is not found where the prior is no more than the bound's.
func TestBlindBound(t *testing.T) {
	tests.Long(t)
	byName := map[string]*kind{}
	for _, k := range kinds() {
		byName[k.name] = k
	}
	for _, c := range []struct {
		kind        string
		index       int
		least, most float64
	}{
		{"random", 1, 0, 0.02},
		{"camera-binary", 0, 0.1, 0.3}, // five scenes
		{"camera-haar", 1, 0.005, 0.02},
		{"fourier-masks", 0, 0.05, 0.2},
	} {
		p := draw(byName[c.kind], c.index)
		if bound := p.blindBound(); !(bound >= c.least && bound <= c.most) {
			t.Errorf("%s: bound %.4f, not within %g to %g", p.name(), bound, c.least, c.most)
		}
	}
}
