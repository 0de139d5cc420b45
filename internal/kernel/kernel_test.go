package kernel

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
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
			compareAll(t, l, seed, a, b)
		}
	})
}

func TestKernelsAgree(t *testing.T) {
	for seed := range uint64(40) {
		for _, l := range available() {
			compareAll(t, l, seed, 1+int(seed%5), 1+int(seed%37))
		}
	}
}

func compareAll(t *testing.T, l simd.Level, seed uint64, panels, blocks int) {
	t.Helper()
	for _, w := range []Layout{Packed, InRows} {
		compare[float32, float64](t, w, l, seed, panels, blocks)
		compare[float64, float64](t, w, l, seed, panels, blocks)
		compare[float32, float32](t, w, l, seed, panels, blocks)
	}
	compareWhole(t, l, seed, panels, blocks)
}

// workspace is one call's arguments for every kernel, and its results.
type workspace[T Entry, V Value] struct {
	w                    []T
	panels, blocks, step int
	signals, xStep       int
	x, c, g, d, r, h     []V
	z, v                 []float64
}

func newWorkspace[T Entry, V Value](layout Layout, seed uint64, panels, blocks, signals int) *workspace[T, V] {
	rng := rand.New(rand.NewPCG(seed, uint64(signals)))
	s := &workspace[T, V]{panels: panels, blocks: blocks, signals: signals}
	s.step = (blocks + int(seed%3)) * blockSize // a tile may be narrower than a panel
	if layout == InRows {
		s.step -= Rows * int(seed%Columns) // and a row end within a block
	}
	s.xStep = (signals + int(seed%2)) * Columns // and a group smaller than all signals
	s.w = make([]T, panels*s.step+Columns)
	for i := range s.w {
		s.w[i] = T(float32(rng.NormFloat64())) // the same for all kinds
	}
	doubles := func(n int) []float64 {
		v := make([]float64, n)
		for i := range v {
			v[i] = float64(float32(rng.NormFloat64()))
		}
		return v
	}
	values := func(n int) []V {
		v := make([]V, n)
		for i := range v {
			v[i] = V(rng.NormFloat64())
		}
		return v
	}
	s.x, s.c, s.r, s.h = values(blocks*s.xStep), values(blocks*s.xStep), values(blocks*s.xStep), values(blocks*s.xStep)
	rows := panels * Rows * (signals + 2)
	s.g, s.d, s.z, s.v = values(rows), values(rows), doubles(rows), doubles(rows)
	return s
}

// one runs the kernels for one signal, several those for more.
func (s *workspace[T, V]) one(k *Set[T, V], linear bool) {
	for a := range s.panels {
		w, at := s.w[a*s.step:], a*Rows
		if linear {
			k.ForwardOneLinear(w, s.step, s.blocks, s.x, s.z[at:])
			k.BackwardOneLinear(w, s.step, s.step, s.blocks, s.r, s.g[at:])
			continue
		}
		k.ForwardOne(w, s.step, s.blocks, s.x, s.c, s.z[at:], s.v[at:])
		k.BackwardOne(w, s.step, s.step, s.blocks, s.r, s.h, s.g[at:], s.d[at:])
	}
}

func (s *workspace[T, V]) several(k *Set[T, V]) {
	count, group := s.signals+1, 1
	for from := 0; from < s.signals; from += group {
		group = min(s.signals-from, len(k.Dot)-1)
		at := from * Columns
		k.Dot[group](s.w, s.panels, s.step, s.blocks, s.x[at:], s.xStep, s.z[from*Rows:], count*Rows)
		k.DotSquares[group](s.w, s.panels, s.step, s.blocks, s.c[at:], s.xStep, s.v[from*Rows:], count*Rows)
	}
	for from := 0; from < s.signals; from += group {
		group = min(s.signals-from, len(k.Axpy)-1)
		at := from * Columns
		k.Axpy[group](s.w, s.panels, s.step, s.blocks, s.g[from:], count, s.r[at:], s.xStep)
		k.AxpySquares[group](s.w, s.panels, s.step, s.blocks, s.d[from:], count, s.h[at:], s.xStep)
	}
}

func compare[T Entry, V Value](t *testing.T, layout Layout, l simd.Level, seed uint64, panels, blocks int) {
	t.Helper()
	fast, reference := set[T, V](layout, l), set[T, V](layout, simd.Go)
	check := func(what string, signals int, run func(s *workspace[T, V], k *Set[T, V])) {
		t.Helper()
		got, want := newWorkspace[T, V](layout, seed, panels, blocks, signals), newWorkspace[T, V](layout, seed, panels, blocks, signals)
		run(got, fast)
		run(want, reference)
		what = fmt.Sprintf("%v layout %d %T %T %s", l, layout, got.w[0], got.x[0], what)
		near(t, what+" z", got.z, want.z, tolerance[V]())
		near(t, what+" v", got.v, want.v, tolerance[V]())
		near(t, what+" r", got.r, want.r, tolerance[V]())
		near(t, what+" h", got.h, want.h, tolerance[V]())
	}
	check("one", 1, func(s *workspace[T, V], k *Set[T, V]) { s.one(k, false) })
	check("one, linear", 1, func(s *workspace[T, V], k *Set[T, V]) { s.one(k, true) })
	for signals := 1; signals < len(fast.Axpy); signals++ {
		check("several", signals, func(s *workspace[T, V], k *Set[T, V]) { s.several(k) })
	}
}

// wholeSpace is one call's arguments for the kernels in whole numbers, and its results.
type wholeSpace struct {
	w                             []int8
	panels, blocks, step, signals int
	x, g                          []int16
	z, total                      []float64
	sums                          []int32
	units                         []float64
}

// newWholeSpace draws them, or makes all the largest.
func newWholeSpace(seed uint64, panels, blocks, signals int, largest bool) *wholeSpace {
	rng := rand.New(rand.NewPCG(seed, uint64(signals)))
	s := &wholeSpace{panels: panels, blocks: blocks, signals: signals, step: (blocks + int(seed%3)) * blockSize}
	up := func(most int) int {
		if largest {
			return most
		}
		return rng.IntN(2*most+1) - most
	}
	words := func(n int) []int16 {
		v := make([]int16, n)
		for i := range v {
			v[i] = int16(up(MostWord))
		}
		return v
	}
	s.w = make([]int8, panels*s.step)
	for i := range s.w {
		s.w[i] = int8(up(mostByte))
	}
	s.x, s.g = words(blocks*signals*Columns), words(panels*Rows*signals)
	s.z, s.units = make([]float64, panels*signals*Rows), make([]float64, signals)
	s.sums, s.total = make([]int32, len(s.x)), make([]float64, len(s.x))
	for k := range s.units {
		s.units[k] = rng.NormFloat64()
	}
	return s
}

func (s *wholeSpace) run(k *Whole) {
	step := s.signals * Columns
	for a := range s.panels {
		for from, group := 0, 1; from < s.signals; from += group {
			group = min(s.signals-from, len(k.Forward)-1)
			k.Forward[group](s.w[a*s.step:], s.blocks, s.x[from*Columns:], step, s.z[(a*s.signals+from)*Rows:])
		}
		for from, group := 0, 1; from < s.signals; from += group {
			group = min(s.signals-from, len(k.Backward)-1)
			k.Backward[group](s.w[a*s.step:], s.step, s.blocks, s.sums[from*Columns:], step, s.g[a*Rows*s.signals+2*from:], 2*s.signals)
		}
	}
	k.Drain(s.total, s.sums, s.units)
}

// compareWhole asks for the same bits.
func compareWhole(t *testing.T, l simd.Level, seed uint64, panels, blocks int) {
	t.Helper()
	for signals := 1; signals <= 7; signals++ {
		got, want := newWholeSpace(seed, panels, blocks, signals, false), newWholeSpace(seed, panels, blocks, signals, false)
		got.run(&wholes[l])
		want.run(&wholes[simd.Go])
		if !slices.Equal(got.z, want.z) || !slices.Equal(got.total, want.total) {
			t.Errorf("%v, %d signals, %d panels of %d blocks: not the bits of plain Go", l, signals, panels, blocks)
		}
		if slices.ContainsFunc(got.sums, func(v int32) bool { return v != 0 }) {
			t.Errorf("%v: sums are left", l)
		}
	}
}

// As many as may add up do not overflow.
func TestWholeNumbersFit(t *testing.T) {
	for _, l := range append(available(), simd.Go) {
		s := newWholeSpace(1, WholePanels, WholeBlocks, 2, true)
		s.run(&wholes[l])
		want := float64(WholeBlocks * Columns * mostByte * MostWord)
		sum := float64(WholePanels*Rows*mostByte*MostWord) * s.units[0]
		if s.z[0] != want || s.total[0] != sum {
			t.Errorf("%v: sums of %g and %g, expected %g and %g", l, s.z[0], s.total[0], want, sum)
		}
	}
}

// Entries rounded to bytes are within half a unit, whatever rounds them, and a unit is 127th of a row's largest.
func TestToBytes(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	for blocks := 1; blocks < 40; blocks += 3 {
		w, got, want := make([]float32, blocks*blockSize), make([]int8, blocks*blockSize), make([]int8, blocks*blockSize)
		largest := [Rows]float64{}
		for at := range w {
			row := at / Columns % Rows
			w[at] = float32(rng.NormFloat64() * []float64{1, 1e30, 1e-30, 0}[row])
			largest[row] = max(largest[row], math.Abs(float64(w[at])))
		}
		units := ToBytes(w, blocks, got)
		var top, inverse [Rows]float32
		plainLargest(w, blocks, &top)
		for row, v := range top {
			if math.Abs(units[row]*mostByte-largest[row]) > 1e-15*largest[row] || float64(v) != largest[row] {
				t.Errorf("row %d: unit %g, largest entry %g", row, units[row], largest[row])
			}
			if v > 0 {
				inverse[row] = mostByte / v
			}
		}
		plainToBytes(w, blocks, &inverse, want)
		for at, b := range got {
			unit := units[at/Columns%Rows]
			if b != want[at] || math.Abs(float64(w[at])-unit*float64(b)) > 0.5001*unit {
				t.Fatalf("%d blocks: entry %d is %g, as a byte %d of %g, in plain Go %d", blocks, at, w[at], b, unit, want[at])
			}
		}
	}
	tiny := []float32{1e-42, blockSize - 1: 0}
	if units := ToBytes(tiny, 1, make([]int8, blockSize)); !math.IsInf(units[0], 1) || units[1] != 0 {
		t.Errorf("units %v of entries without an inverse", units)
	}
}

// Rows as they lie in a file give the same bits as panels.
func TestRowsAsPanels(t *testing.T) {
	for _, l := range append(available(), simd.Go) {
		for seed := range uint64(20) {
			rowsAsPanels[float32, float64](t, l, seed)
			rowsAsPanels[float64, float64](t, l, seed)
			rowsAsPanels[float32, float32](t, l, seed)
		}
	}
}

func rowsAsPanels[T Entry, V Value](t *testing.T, l simd.Level, seed uint64) {
	t.Helper()
	panels, blocks := 1+int(seed%4), 1+int(seed*7%40)
	rows := newWorkspace[T, V](InRows, 6*seed, panels, blocks, 1) // tiles are as wide as a panel, and x as a group
	n := rows.step / Rows
	padding := (n-1)/Columns*rows.xStep + (n-1)%Columns + 1
	clear(rows.x[padding:])
	clear(rows.c[padding:])
	packed := new(*rows)
	packed.w, packed.step = Pack(panels*Rows, n, rows.w[:panels*rows.step]).Data, blocks*blockSize
	for _, v := range []*[]V{&packed.r, &packed.h} {
		*v = slices.Clone(*v)
	}
	packed.z, packed.v = slices.Clone(rows.z), slices.Clone(rows.v)
	for _, run := range []func(s *workspace[T, V], w Layout){
		func(s *workspace[T, V], w Layout) { s.one(set[T, V](w, l), false) },
		func(s *workspace[T, V], w Layout) { s.one(set[T, V](w, l), true) },
		func(s *workspace[T, V], w Layout) { s.several(set[T, V](w, l)) },
	} {
		run(packed, Packed)
		run(rows, InRows)
		for j := range packed.z {
			if packed.z[j] != rows.z[j] || packed.v[j] != rows.v[j] {
				t.Fatalf("%v, seed %d: row %d gives %g and %g, %g and %g as a panel", l, seed, j, rows.z[j], rows.v[j], packed.z[j], packed.v[j])
			}
		}
		for i := range n {
			at := i/Columns*rows.xStep + i%Columns
			if packed.r[at] != rows.r[at] || packed.h[at] != rows.h[at] {
				t.Fatalf("%v, seed %d: column %d gives %g and %g, %g and %g as a panel", l, seed, i, rows.r[at], rows.h[at], packed.r[at], packed.h[at])
			}
		}
	}
}

// tolerance is relative to the largest value. The two are sums of the same products, of
// order one, in different orders; in single precision in short runs.
func tolerance[V Value]() float64 {
	if single[V]() {
		return 2e-6
	}
	return 1e-12
}

func near[V Value](t *testing.T, what string, got, want []V, within float64) {
	t.Helper()
	scale := 0.0
	for _, v := range want {
		scale = max(scale, math.Abs(float64(v)))
	}
	for i, v := range want {
		if !(math.Abs(float64(got[i]-v)) <= within*scale) {
			t.Fatalf("%s[%d] = %g, plain Go %g", what, i, got[i], v)
		}
	}
}

// In single precision a sum z of products with N(0, 1/N) entries of W is off by some 1e-7
// of the root mean square of z, whatever N; v and h, sums of positive numbers, by as much
// of themselves, and r, over a run of panels, by 4e-7.
func TestSinglePrecision(t *testing.T) {
	for _, l := range append(available(), simd.Go) {
		for _, signals := range []int{1, 3} {
			for _, blocks := range []int{2, 64, 625} {
				const panels = 64
				if signals > 1 {
					blocks = min(blocks, 32) // a tile
				}
				single, double := newWorkspace[float32, float32](Packed, 7, panels, blocks, signals), newWorkspace[float32, float64](Packed, 7, panels, blocks, signals)
				copied(double.x, single.x)
				copied(double.g, single.g)
				for i := range single.c { // variances
					single.c[i] *= single.c[i]
				}
				for i := range single.d {
					single.d[i] *= single.d[i]
				}
				copied(double.c, single.c)
				copied(double.d, single.d)
				clearAll(single)
				clearAll(double)
				if signals == 1 {
					single.one(set[float32, float32](Packed, l), false)
					double.one(set[float32, float64](Packed, simd.Go), false)
				} else {
					single.several(set[float32, float32](Packed, l))
					double.several(set[float32, float64](Packed, simd.Go))
				}
				for _, c := range []struct {
					what      string
					got, want []float64
					most      float64
				}{
					{"z", single.z, double.z, 2.5e-7},
					{"v", single.v, double.v, 2.5e-7},
					{"r", doubles(single.r), double.r, 8e-7},
					{"h", doubles(single.h), double.h, 2e-6},
				} {
					off := relativeRMS(c.got, c.want)
					t.Logf("%v, %d signals, %d blocks: %s off by %.2g", l, signals, blocks, c.what, off)
					if !(off < c.most) {
						t.Errorf("%v, %d signals, %d blocks: %s off by %.2g", l, signals, blocks, c.what, off)
					}
				}
			}
		}
	}
}

func clearAll[T Entry, V Value](s *workspace[T, V]) {
	clear(s.z)
	clear(s.v)
	clear(s.r)
	clear(s.h)
}

func copied(to []float64, from []float32) {
	for i, v := range from {
		to[i] = float64(v)
	}
}

func doubles(from []float32) []float64 {
	to := make([]float64, len(from))
	copied(to, from)
	return to
}

func relativeRMS(got, want []float64) float64 {
	off, size := 0.0, 0.0
	for i, v := range want {
		off += (got[i] - v) * (got[i] - v)
		size += v * v
	}
	return math.Sqrt(off / size)
}

func TestDrain(t *testing.T) {
	for _, l := range append(available(), simd.Go) {
		total, sums := make([]float64, 5*Columns), make([]float32, 5*Columns)
		for i := range sums {
			total[i], sums[i] = float64(i), 0.5*float32(i)
		}
		drains[l](total[:4*Columns], sums[:4*Columns])
		for i := range total {
			want, left := 1.5*float64(i), float32(0)
			if i >= 4*Columns {
				want, left = float64(i), 0.5*float32(i)
			}
			if total[i] != want || sums[i] != left {
				t.Fatalf("%v: %d: %g and %g", l, i, total[i], sums[i])
			}
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
