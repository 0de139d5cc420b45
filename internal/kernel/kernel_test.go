package kernel

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/calamp/calamp/internal/simd"
)

// available lists the instruction sets of this machine besides plain Go.
func available() []simd.Level {
	var list []simd.Level
	for l := simd.AVX2; l <= simd.Best(); l++ {
		list = append(list, l)
	}
	return list
}

// The kernels of every instruction set agree with plain Go on any shape.
func FuzzKernels(f *testing.F) {
	f.Add(uint64(1), uint8(1), uint8(1))
	f.Add(uint64(2), uint8(3), uint8(7))
	f.Add(uint64(3), uint8(5), uint8(40))
	f.Fuzz(func(t *testing.T, seed uint64, panels, blocks uint8) {
		a, b := 1+int(panels%9), 1+int(blocks%70)
		for _, l := range available() {
			compare[float32](t, l, seed, a, b)
			compare[float64](t, l, seed, a, b)
		}
	})
}

func TestKernelsAgree(t *testing.T) {
	for seed := range uint64(40) {
		for _, l := range available() {
			compare[float32](t, l, seed, 1+int(seed%5), 1+int(seed%37))
			compare[float64](t, l, seed, 1+int(seed%5), 1+int(seed%37))
		}
	}
}

// workspace is one call's arguments for every kernel, and its results.
type workspace[T Entry] struct {
	w                      []T
	panels, blocks, step   int
	signals, xStep         int
	x, c, g, d, z, v, r, h []float64
}

func newWorkspace[T Entry](seed uint64, panels, blocks, signals int) *workspace[T] {
	rng := rand.New(rand.NewPCG(seed, uint64(signals)))
	s := &workspace[T]{panels: panels, blocks: blocks, signals: signals}
	s.step = (blocks + int(seed%3)) * blockSize // a tile may be narrower than a panel
	s.xStep = (signals + int(seed%2)) * Columns // and a group smaller than all signals
	s.w = make([]T, panels*s.step)
	for i := range s.w {
		s.w[i] = T(rng.NormFloat64())
	}
	values := func(n int) []float64 {
		v := make([]float64, n)
		for i := range v {
			v[i] = rng.NormFloat64()
		}
		return v
	}
	s.x, s.c, s.r, s.h = values(blocks*s.xStep), values(blocks*s.xStep), values(blocks*s.xStep), values(blocks*s.xStep)
	rows := panels * Rows * (signals + 2)
	s.g, s.d, s.z, s.v = values(rows), values(rows), values(rows), values(rows)
	return s
}

// one runs the kernels for one signal, several those for more.
func (s *workspace[T]) one(k *Set[T], linear bool) {
	for a := range s.panels {
		w, at := s.w[a*s.step:], a*Rows
		if linear {
			k.ForwardOneLinear(w, s.blocks, s.x, s.z[at:])
			k.BackwardOneLinear(w, s.blocks, s.r, s.g[at:])
			continue
		}
		k.ForwardOne(w, s.blocks, s.x, s.c, s.z[at:], s.v[at:])
		k.BackwardOne(w, s.blocks, s.r, s.h, s.g[at:], s.d[at:])
	}
}

func (s *workspace[T]) several(k *Set[T], group int) {
	count := s.signals + 1
	for from := 0; from < s.signals; from += group {
		at := from * Columns
		k.Dot[group](s.w, s.panels, s.step, s.blocks, s.x[at:], s.xStep, s.z[from*Rows:], count*Rows)
		k.DotSquares[group](s.w, s.panels, s.step, s.blocks, s.c[at:], s.xStep, s.v[from*Rows:], count*Rows)
		k.Axpy[group](s.w, s.panels, s.step, s.blocks, s.g[from:], count, s.r[at:], s.xStep)
		k.AxpySquares[group](s.w, s.panels, s.step, s.blocks, s.d[from:], count, s.h[at:], s.xStep)
	}
}

func compare[T Entry](t *testing.T, l simd.Level, seed uint64, panels, blocks int) {
	t.Helper()
	fast, reference := set[T](l), set[T](simd.Go)
	check := func(what string, signals int, run func(s *workspace[T], k *Set[T])) {
		t.Helper()
		got, want := newWorkspace[T](seed, panels, blocks, signals), newWorkspace[T](seed, panels, blocks, signals)
		run(got, fast)
		run(want, reference)
		near(t, l.String()+" "+what+" z", got.z, want.z)
		near(t, l.String()+" "+what+" v", got.v, want.v)
		near(t, l.String()+" "+what+" r", got.r, want.r)
		near(t, l.String()+" "+what+" h", got.h, want.h)
	}
	check("one", 1, func(s *workspace[T], k *Set[T]) { s.one(k, false) })
	check("one, linear", 1, func(s *workspace[T], k *Set[T]) { s.one(k, true) })
	for group := 1; group <= fast.Group; group++ {
		check("several", group, func(s *workspace[T], k *Set[T]) { s.several(k, min(group, k.Group)) })
	}
}

// near asks for agreement to 1e-12 of the largest value. The two are sums of the same
// products, of order one, in different orders.
func near(t *testing.T, what string, got, want []float64) {
	t.Helper()
	scale := 0.0
	for _, v := range want {
		scale = max(scale, math.Abs(v))
	}
	for i, v := range want {
		if !(math.Abs(got[i]-v) <= 1e-12*scale) {
			t.Fatalf("%s[%d] = %g, plain Go %g", what, i, got[i], v)
		}
	}
}

func TestPackedMatrix(t *testing.T) {
	for _, shape := range [][2]int{{1, 1}, {4, 16}, {5, 17}, {9, 40}, {3, 15}} {
		m, n := shape[0], shape[1]
		w := make([]float32, m*n)
		for i := range w {
			w[i] = float32(i + 1)
		}
		p := Pack(m, n, w)
		row, sum := make([]float64, n), 0.0
		for mu := range m {
			p.RowInto(row, mu)
			for i := range n {
				if want := float64(w[mu*n+i]); p.At(mu, i) != want || row[i] != want {
					t.Fatalf("%d×%d: entry (%d, %d) is %g and %g, want %g", m, n, mu, i, p.At(mu, i), row[i], want)
				}
			}
		}
		for _, v := range p.Data {
			sum += float64(v)
		}
		if want := float64(m*n) * float64(m*n+1) / 2; sum != want {
			t.Errorf("%d×%d: the padding is not zero", m, n)
		}
	}
}
