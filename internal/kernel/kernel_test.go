package kernel

import (
	"math"
	"math/rand/v2"
	"testing"
)

// available lists the instruction sets of this machine besides plain Go.
func available() []Level {
	var list []Level
	for l := AVX2; l <= best(); l++ {
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

func compare[T Entry](t *testing.T, l Level, seed uint64, panels, blocks int) {
	t.Helper()
	fast, reference := set[T](l), set[T](Go)
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

// near asks for agreement to 1e-12 of the largest value: sums of products of
// values of order one, in another order.
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

func TestChoose(t *testing.T) {
	for _, c := range []struct {
		name string
		best Level
		want Level
		ok   bool
	}{
		{"", AVX2, AVX2, true},
		{"", AVX512, AVX2, true}, // not proven
		{"avx512", AVX512, AVX512, true},
		{"go", AVX512, Go, true},
		{"avx2", AVX512, AVX2, true},
		{"avx512", AVX2, AVX2, false},
		{"AVX2", AVX2, AVX2, false},
	} {
		if got, err := choose(c.name, c.best); got != c.want || (err == nil) != c.ok {
			t.Errorf("choose(%q, %v) = %v, %v", c.name, c.best, got, err)
		}
	}
}

// math.Exp is itself off by up to a unit in the last place, 2.2e-16.
func TestExp(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	v, want := make([]float64, 4000), make([]float64, 4000)
	for i := range v {
		v[i] = -708 + 1417*rng.Float64()
		if i%2 == 0 {
			v[i] = (rng.Float64() - 0.5) * math.Exp2(-20*rng.Float64())
		}
		want[i] = math.Exp(v[i])
	}
	Exp(v)
	worst := 0.0
	for i, w := range want {
		worst = max(worst, math.Abs(v[i]/w-1))
	}
	if t.Logf("relative difference from math.Exp %.2g", worst); !(worst < 6e-16) {
		t.Errorf("relative difference %.2g", worst)
	}
}

func TestLog(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	v, want := make([]float64, 4000), make([]float64, 4000)
	for i := range v {
		v[i] = math.Exp(rng.Float64()*1400 - 700)
		if i%2 == 0 {
			v[i] = 1 + (rng.Float64()-0.5)*math.Exp2(-50*rng.Float64())
		}
		want[i] = math.Log(v[i])
	}
	Log(v)
	worst := 0.0
	for i, w := range want {
		if w != 0 || v[i] != 0 {
			worst = max(worst, math.Abs(v[i]-w)/math.Abs(w))
		}
	}
	if t.Logf("relative error %.2g", worst); !(worst < 4e-16) {
		t.Errorf("relative error %.2g", worst)
	}
}

// log(1+v) - v, to its own relative precision: with n = 1/|log(1+v) - v| the
// density at offset v·mode is 1/e.
func TestLog1pTail(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	x, w := make([]float64, 4), []float64{1, 0, 0, 0}
	d, scratch, out := make([]float64, GainFields*Lanes), make([]float64, 8*Lanes), make([]float64, GainResults*Lanes)
	worst := 0.0
	for range 5000 {
		var want [Lanes]float64
		for lane := range Lanes {
			v := math.Exp(-20*rng.Float64()) * (1.9*rng.Float64() - 0.9)
			want[lane] = math.Log1p(v) - v
			if math.Abs(v) < 0.3 {
				want[lane] = 0
				for k := 40; k >= 2; k-- {
					want[lane] = want[lane]*-v - 1/float64(k)
				}
				want[lane] *= v * v
			}
			d[GainInverse*Lanes+lane], d[GainMiddle*Lanes+lane] = 1, v
			d[GainCount*Lanes+lane] = -1 / want[lane]
		}
		GainIntegrals(x, w, 1, d, scratch, out)
		for lane := range Lanes {
			// Its logarithm is -1 up to the relative error.
			worst = max(worst, math.Abs(out[GainMass*Lanes+lane]*math.E-1))
		}
	}
	if t.Logf("relative error %.2g", worst); !(worst < 2e-15) {
		t.Errorf("relative error %.2g", worst)
	}
}

// The two ways to integrate agree to rounding, for any parameters of which the
// density stays within range.
func FuzzGainIntegrals(f *testing.F) {
	for seed := range uint64(200) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, seed uint64) {
		rng := rand.New(rand.NewPCG(seed, 0))
		nodes, groups := 4+4*rng.IntN(12), 1+rng.IntN(3)
		x, w := make([]float64, nodes), make([]float64, nodes)
		for i := range x {
			x[i], w[i] = 2*rng.Float64()-1, rng.Float64()
		}
		d := make([]float64, groups*GainFields*Lanes)
		power := rng.IntN(MostPower) - MostPower/2
		for at := range groups * Lanes {
			field := func(i int, v float64) { d[(at/Lanes*GainFields+i)*Lanes+at%Lanes] = v }
			mode, half := 0.1+2*rng.Float64(), math.Exp(-20*rng.Float64())
			half *= 0.45 * mode
			field(GainSlope, rng.NormFloat64()*20/half)
			field(GainHalfTau, rng.Float64()*40/(half*half))
			field(GainCount, []float64{0, 1, 2.5, 10, 1000}[rng.IntN(5)])
			if power >= 0 {
				field(GainCount, float64(power))
			}
			field(GainInverse, 1/mode)
			field(GainMiddle, half*rng.NormFloat64()*0.1)
			field(GainHalfWidth, half)
		}
		got, want := make([]float64, groups*GainResults*Lanes), make([]float64, groups*GainResults*Lanes)
		scratch := make([]float64, 2*nodes*Lanes)
		GainIntegrals(x, w, groups, d, scratch, got)
		plainGainIntegrals(x, w, groups, d, scratch, want)
		if power >= 0 {
			for at := range groups * Lanes {
				lane := d[at/Lanes*GainFields*Lanes+at%Lanes:]
				lane[GainSlope*Lanes] -= float64(power) * lane[GainInverse*Lanes]
			}
			GainPowers(x, w, power, groups, d, scratch, got)
		}
		for i, v := range want {
			if e := math.Abs(got[i] - v); !(e <= 3e-13*math.Abs(v)+1e-13*float64(i/Lanes%GainResults&1)) {
				t.Errorf("result %d: %g, plain Go %g", i, got[i], v)
			}
		}
	})
}

func FuzzGaussBernoulli(f *testing.F) {
	for seed := range uint64(200) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, seed uint64) {
		rng := rand.New(rand.NewPCG(seed, 0))
		n := 1 + rng.IntN(9)
		lambda, sigma := make([]float64, n), make([]float64, n)
		for i := range lambda {
			lambda[i], sigma[i] = 3*rng.NormFloat64(), math.Exp(60*rng.Float64()-50)
			if rng.IntN(5) == 0 {
				sigma[i] = math.Inf(1)
			}
		}
		logOdds, center, power := 10*rng.NormFloat64(), rng.NormFloat64()*float64(rng.IntN(2)), math.Exp(rng.NormFloat64())
		if rng.IntN(5) == 0 {
			logOdds = math.Inf(1)
		}
		var got, want [2][]float64
		for i := range 2 {
			got[i], want[i] = make([]float64, n), make([]float64, n)
		}
		GaussBernoulli(got[0], got[1], lambda, sigma, logOdds, center, power)
		plainGaussBernoulli(want[0], want[1], lambda, sigma, logOdds, center, power)
		for i := range n {
			// The odds are a difference: their rounding is relative to their terms.
			_, _, odds := Slab(lambda[i], sigma[i], center, power)
			tol := 1e-15 * (10 + math.Abs(odds) + lambda[i]*lambda[i]/sigma[i])
			for what := range 2 {
				g, w := got[what][i], want[what][i]
				if !(math.Abs(g-w) <= tol*math.Abs(w)+1e-300) {
					t.Errorf("λ=%g Σ=%g log-odds %g, %g, %g: %g, plain Go %g", lambda[i], sigma[i], logOdds, center, power, g, w)
				}
			}
		}
	})
}

func BenchmarkGaussBernoulli(b *testing.B) {
	const n = 1000
	var v [4][]float64
	for i := range v {
		v[i] = make([]float64, n)
	}
	for i := range n {
		v[2][i], v[3][i] = math.Sin(float64(i)), 1e-3
	}
	for b.Loop() {
		GaussBernoulli(v[0], v[1], v[2], v[3], -1, 0, 1)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/element")
}

func BenchmarkGainIntegrals(b *testing.B) {
	const nodes, groups = 32, 16
	x, w := make([]float64, nodes), make([]float64, nodes)
	for i := range x {
		x[i], w[i] = float64(i)/nodes, 1
	}
	d, scratch, out := make([]float64, groups*GainFields*Lanes), make([]float64, 2*nodes*Lanes), make([]float64, groups*GainResults*Lanes)
	for i := range d {
		d[i] = 0.1
	}
	for b.Loop() {
		GainIntegrals(x, w, groups, d, scratch, out)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/groups/Lanes/nodes, "ns/node")
}

// The environment may ask for an instruction set: it must be one of those here.
func TestChosenKernelIsThere(t *testing.T) {
	if _, err := Active(); err != nil {
		t.Fatal(err)
	}
}

func BenchmarkGainPowers(b *testing.B) {
	const nodes, groups = 32, 16
	x, w := make([]float64, nodes), make([]float64, nodes)
	for i := range x {
		x[i], w[i] = float64(i)/nodes, 1
	}
	d, scratch, out := make([]float64, groups*GainFields*Lanes), make([]float64, 2*nodes*Lanes), make([]float64, groups*GainResults*Lanes)
	for i := range d {
		d[i] = 0.1
	}
	for b.Loop() {
		GainPowers(x, w, 10, groups, d, scratch, out)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/groups/Lanes/nodes, "ns/node")
}
