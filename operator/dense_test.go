package operator

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// naive is the definition of the sweep, with one loop for each operation.
func naive(w []float64, m, n, p, q int, x, c []float64, rows RowFunc) (r, h []float64) {
	r, h = make([]float64, p*n), make([]float64, q*n)
	for mu := range m {
		z, v := make([]float64, p), make([]float64, q)
		for i := range n {
			for k := range p {
				z[k] += w[mu*n+i] * x[k*n+i]
			}
			for k := range q {
				v[k] += w[mu*n+i] * w[mu*n+i] * c[k*n+i]
			}
		}
		g, d := make([]float64, p), make([]float64, q)
		rows(mu, z, v, g, d)
		for i := range n {
			for k := range p {
				r[k*n+i] += w[mu*n+i] * g[k]
			}
			for k := range q {
				h[k*n+i] += w[mu*n+i] * w[mu*n+i] * d[k]
			}
		}
	}
	return r, h
}

func TestSweepIsItsDefinition(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m, n := rapid.IntRange(1, 150).Draw(t, "M"), rapid.IntRange(1, 40).Draw(t, "N")
		p, q := rapid.IntRange(1, 7).Draw(t, "p"), rapid.IntRange(0, 7).Draw(t, "q")
		single := rapid.Bool().Draw(t, "f32")
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		w, x, c := make([]float64, m*n), make([]float64, p*n), make([]float64, q*n)
		w32 := make([]float32, m*n)
		for i := range w {
			w32[i] = float32(rng.NormFloat64())
			w[i] = float64(w32[i])
		}
		for i := range x {
			x[i] = rng.NormFloat64()
		}
		for i := range c {
			c[i] = rng.Float64()
		}
		// The test needs some function of a row's own z and v, and of its number.
		rows := func(first int, z, v, g, d []float64) {
			for j := range z {
				g[j] = math.Sin(z[j]) + float64(first+j/p)
			}
			for j := range v {
				d[j] = math.Cos(v[j])
			}
		}
		wantR, wantH := naive(w, m, n, p, q, x, c, rows)
		dense, err := NewDense(m, n, w)
		if single {
			dense, err = NewDense32(m, n, w32)
		}
		if err != nil {
			t.Fatal(err)
		}
		r, h := make([]float64, p*n), make([]float64, q*n)
		sweep, err := dense.NewSweep(p, q, rapid.IntRange(1, 3).Draw(t, "threads"))
		if err != nil {
			t.Fatal(err)
		}
		for range 2 { // the workspace must not remember the first run
			if err := sweep.Run(r, h, x, c, rows); err != nil {
				t.Fatal(err)
			}
		}
		scale := float64(m*m) + 1
		for i := range r {
			if math.Abs(r[i]-wantR[i]) > 1e-13*scale {
				t.Fatalf("r[%d] = %g, want %g", i, r[i], wantR[i])
			}
		}
		for i := range h {
			if math.Abs(h[i]-wantH[i]) > 1e-13*scale {
				t.Fatalf("h[%d] = %g, want %g", i, h[i], wantH[i])
			}
		}
	})
}

func TestNewDenseNamesTheBadEntry(t *testing.T) {
	w := make([]float64, 12)
	w[7] = math.NaN()
	if _, err := NewDense(3, 4, w); err == nil || !strings.Contains(err.Error(), "row 1, column 3") {
		t.Errorf("error %v does not name row 1, column 3", err)
	}
	if _, err := NewDense(3, 4, make([]float64, 12)); err == nil {
		t.Error("a matrix of zeros was accepted")
	}
	if _, err := NewDense32(3, 5, make([]float32, 12)); err == nil {
		t.Error("12 values were accepted as 3×5")
	}
}

func BenchmarkSweep(b *testing.B) {
	for _, p := range []int{1, 10} {
		const m, n = 1000, 1000
		w := make([]float64, m*n)
		for i := range w {
			w[i] = math.Sin(float64(i))
		}
		dense, err := NewDense(m, n, w)
		if err != nil {
			b.Fatal(err)
		}
		x, c, r, h := make([]float64, p*n), make([]float64, p*n), make([]float64, p*n), make([]float64, p*n)
		sweep, err := dense.NewSweep(p, p, 1)
		if err != nil {
			b.Fatal(err)
		}
		b.Run(map[int]string{1: "P=1", 10: "P=10"}[p], func(b *testing.B) {
			for b.Loop() {
				sweep.Run(r, h, x, c, func(_ int, z, v, g, d []float64) {
					copy(g, z)
					copy(d, v)
				})
			}
		})
	}
}

func TestRoundedByAnyNumberOfThreads(t *testing.T) {
	const m, n = 500, 1100
	w := make([]float64, m*n)
	want := 0.0
	for i := range w {
		w[i] = math.Sin(float64(i))
		off := float64(float32(w[i])) - w[i]
		want += off * off / (m * n)
	}
	var first float64
	for _, threads := range []int{1, 3} {
		dense, err := NewDense(m, n, w)
		if err != nil {
			t.Fatal(err)
		}
		single, lost := dense.Rounded(threads)
		row := make([]float64, n)
		for mu := range m {
			if err := single.(Matrix).RowInto(row, mu); err != nil {
				t.Fatal(err)
			}
			for i, v := range row {
				if v != float64(float32(w[mu*n+i])) {
					t.Fatalf("entry (%d, %d) is %g, not %g rounded", mu, i, v, w[mu*n+i])
				}
			}
		}
		if math.Abs(lost-want) > 1e-12*want || first != 0 && lost != first {
			t.Errorf("%d threads: lost %g, want %g", threads, lost, want)
		}
		first = lost
	}
}
