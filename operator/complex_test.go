package operator

import (
	"errors"
	"math"
	"math/cmplx"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestComplexSweep compares both products of a sweep with complex arithmetic, entry by entry.
func TestComplexSweep(t *testing.T) {
	const signals = 3
	for _, size := range [][2]int{{1, 1}, {7, 5}, {50, 130}, {130, 33}} {
		m, n := size[0], size[1]
		rng := rand.New(rand.NewPCG(1, uint64(m)))
		draw := func() complex128 { return complex(rng.NormFloat64(), rng.NormFloat64()) }
		values := make([]complex128, m*n)
		for i := range values {
			values[i] = draw()
		}
		w, err := NewComplex(m, n, values)
		if err != nil {
			t.Fatal(err)
		}
		total := 0.0
		for _, v := range values {
			total += real(v)*real(v) + imag(v)*imag(v)
		}
		if want := total / float64(m*n); math.Abs(w.MeanSquare()-want) > 1e-12*want {
			t.Errorf("mean square %g, want %g", w.MeanSquare(), want)
		}
		const p = 2 * signals
		x, g := make([]float64, p*n), make([]float64, m*p)
		c, d := make([]float64, p*n), make([]float64, m*p)
		for i := range x {
			x[i] = rng.NormFloat64()
		}
		for k := range signals { // both parts have the same variances
			for i := range n {
				v := rng.Float64()
				c[2*k*n+i], c[(2*k+1)*n+i] = v, v
			}
			for mu := range m {
				v := -rng.Float64()
				d[mu*p+2*k], d[mu*p+2*k+1] = v, v
			}
		}
		for j := range g {
			g[j] = rng.NormFloat64()
		}
		z, v := make([]float64, m*p), make([]float64, m*p)
		r, h := make([]float64, p*n), make([]float64, p*n)
		sweep, err := w.NewSweep(p, p, 2)
		if err != nil {
			t.Fatal(err)
		}
		if err := sweep.Run(r, h, x, c, func(first int, zs, vs, gs, ds []float64) {
			copy(z[first*p:], zs)
			copy(v[first*p:], vs)
			copy(gs, g[first*p:])
			copy(ds, d[first*p:])
		}); err != nil {
			t.Fatal(err)
		}
		near := func(what string, got, want complex128) {
			t.Helper()
			if cmplx.Abs(got-want) > 1e-11 {
				t.Fatalf("%d×%d: %s is %v, want %v", m, n, what, got, want)
			}
		}
		for k := range signals {
			back, curve := make([]complex128, n), make([]float64, n)
			for mu := range m {
				forward, spread := complex128(0), 0.0
				at := mu*p + 2*k
				for i := range n {
					e := values[mu*n+i]
					forward += e * complex(x[2*k*n+i], x[(2*k+1)*n+i])
					back[i] += cmplx.Conj(e) * complex(g[at], g[at+1])
					square := real(e)*real(e) + imag(e)*imag(e)
					spread += square * c[2*k*n+i]
					curve[i] += square * d[at]
				}
				near("z", complex(z[at], z[at+1]), forward)
				near("v", complex(v[at], v[at+1]), complex(spread, spread))
			}
			for i := range n {
				near("r", complex(r[2*k*n+i], r[(2*k+1)*n+i]), back[i])
				near("h", complex(h[2*k*n+i], h[(2*k+1)*n+i]), complex(curve[i], curve[i]))
			}
		}
	}
}

func TestComplexSweepsNeedBothParts(t *testing.T) {
	w, err := NewComplex64(2, 2, []complex64{1, 2, 3, 4i})
	if err != nil {
		t.Fatal(err)
	}
	for _, columns := range [][2]int{{1, 0}, {4, 2}, {4, 3}} {
		if _, err := w.NewSweep(columns[0], columns[1], 1); err == nil {
			t.Errorf("a sweep over %d and %d columns", columns[0], columns[1])
		}
	}
}

// TestComplexSweepOfOneVariance: a single quadratic column is the variance of the parts of all signals.
func TestComplexSweepOfOneVariance(t *testing.T) {
	const m, n, p = 9, 6, 4
	rng := rand.New(rand.NewPCG(4, 0))
	values := make([]complex128, m*n)
	for j := range values {
		values[j] = complex(rng.NormFloat64(), rng.NormFloat64())
	}
	w, err := NewComplex(m, n, values)
	if err != nil {
		t.Fatal(err)
	}
	x, c, one := make([]float64, p*n), make([]float64, p*n), make([]float64, n)
	for j := range x {
		x[j] = rng.NormFloat64()
	}
	for i := range one {
		one[i] = rng.Float64()
		for k := range p {
			c[k*n+i] = one[i]
		}
	}
	run := func(q int, c []float64) (z, v, r, h []float64) {
		sweep, err := w.NewSweep(p, q, 1)
		if err != nil {
			t.Fatal(err)
		}
		z, v = make([]float64, m*p), make([]float64, m)
		r, h = make([]float64, p*n), make([]float64, q*n)
		if err := sweep.Run(r, h, x, c, func(first int, zs, vs, g, d []float64) {
			copy(z[first*p:], zs)
			for row := range len(zs) / p {
				v[first+row] = vs[row*q]
				for k := range p {
					g[row*p+k] = zs[row*p+k]
				}
				for k := range q {
					d[row*q+k] = 0.1 * float64(first+row)
				}
			}
		}); err != nil {
			t.Fatal(err)
		}
		return z, v, r, h[:n]
	}
	z, v, r, h := run(1, one)
	allZ, allV, allR, allH := run(p, c)
	for name, pair := range map[string][2][]float64{"z": {z, allZ}, "v": {v, allV}, "r": {r, allR}, "h": {h, allH}} {
		for j, got := range pair[0] {
			if math.Abs(got-pair[1][j]) > 1e-12*(1+math.Abs(got)) {
				t.Fatalf("%s[%d] is %g, expected %g", name, j, got, pair[1][j])
			}
		}
	}
}

// TestRealOf: the real form of a complex matrix gives the same products, and gives the squares of
// its own entries.
func TestRealOf(t *testing.T) {
	const m, n = 9, 6
	rng := rand.New(rand.NewPCG(2, 0))
	values := make([]complex128, m*n)
	entries := make([]float64, 4*m*n) // 2M×2N
	for j := range values {
		values[j] = complex(rng.NormFloat64(), rng.NormFloat64())
		mu, i := j/n, j%n
		re, im := real(values[j]), imag(values[j])
		entries[2*mu*2*n+i], entries[2*mu*2*n+n+i] = re, -im
		entries[(2*mu+1)*2*n+i], entries[(2*mu+1)*2*n+n+i] = im, re
	}
	w, err := NewComplex(m, n, values)
	if err != nil {
		t.Fatal(err)
	}
	dense, err := NewDense(2*m, 2*n, entries)
	if err != nil {
		t.Fatal(err)
	}
	const p, q = 3, 2
	x, c := make([]float64, p*2*n), make([]float64, q*2*n)
	for i := range x {
		x[i] = rng.NormFloat64()
	}
	for i := range c {
		c[i] = rng.Float64()
	}
	run := func(w Operator) (z, v, r, h []float64) {
		z, v, r, h = make([]float64, 2*m*p), make([]float64, 2*m*q), make([]float64, p*2*n), make([]float64, q*2*n)
		sweep, err := w.NewSweep(p, q, 1)
		if err != nil {
			t.Fatal(err)
		}
		if err := sweep.Run(r, h, x, c, func(first int, zs, vs, gs, ds []float64) {
			copy(z[first*p:], zs)
			copy(v[first*q:], vs)
			for j := range gs {
				gs[j] = math.Sin(float64(first*p + j))
			}
			for j := range ds {
				ds[j] = math.Cos(float64(first*q + j))
			}
		}); err != nil {
			t.Fatal(err)
		}
		return z, v, r, h
	}
	z, v, r, h := run(RealOf(w))
	z2, v2, r2, h2 := run(dense)
	for _, pair := range [][2][]float64{{z, z2}, {v, v2}, {r, r2}, {h, h2}} {
		for i, want := range pair[1] {
			if math.Abs(pair[0][i]-want) > 1e-12 {
				t.Fatalf("entry %d is %g, want %g", i, pair[0][i], want)
			}
		}
	}
	linear, err := NewLinear(RealOf(w), p, 1)
	if err != nil {
		t.Fatal(err)
	}
	if _, both := linear.(*wholes); both {
		t.Error("each of its products takes both of the complex matrix")
	}
	g, z3, r3 := make([]float64, 2*m*p), make([]float64, 2*m*p), make([]float64, p*2*n)
	for j := range g {
		g[j] = math.Sin(float64(j))
	}
	if err := errors.Join(linear.Forward(z3, x), linear.Backward(r3, g)); err != nil || !slices.Equal(z3, z) || !slices.Equal(r3, r) {
		t.Errorf("products one at a time are others than those of a sweep (%v)", err)
	}
	largest, smallest, err := Spectrum(RealOf(w), 1)
	largest2, smallest2, err2 := Spectrum(dense, 1)
	if err != nil || err2 != nil || math.Abs(largest-largest2) > 1e-9 || math.Abs(smallest-smallest2) > 1e-6 {
		t.Errorf("singular values %g to %g, want %g to %g (%v, %v)", smallest, largest, smallest2, largest2, err, err2)
	}
}

// TestComplexSingle: sweeps in single precision, and over a rounded table, differ by that.
func TestComplexSingle(t *testing.T) {
	const m, n, p = 60, 150, 4
	rng := rand.New(rand.NewPCG(1, 2))
	values := make([]complex128, m*n)
	for i := range values {
		values[i] = complex(rng.NormFloat64(), rng.NormFloat64())
	}
	w, err := NewComplex(m, n, values)
	if err != nil {
		t.Fatal(err)
	}
	stored, lost := w.Rounded(2)
	single, ok := stored.(*Complex)
	if !ok || single.Storage() != "f32" || w.Storage() != "f64" || HasSingle(w) || !HasSingle(single) {
		t.Fatalf("%v in %q of a %v in %q", stored, stored.Storage(), w, w.Storage())
	}
	want := 0.0
	for _, v := range values {
		off := complex128(complex64(v)) - v
		want += (real(off)*real(off) + imag(off)*imag(off)) / (m * n)
	}
	if math.Abs(lost-want) > 1e-12*want {
		t.Errorf("mean square of what is lost: %g, want %g", lost, want)
	}
	x, c := make([]float64, p*n), make([]float64, p*n)
	for i := range x {
		x[i], c[i] = rng.NormFloat64(), rng.Float64()
	}
	products := func(sweep Sweep, c []float64) []float64 {
		var z [m * p]float64
		r, h := make([]float64, p*n), make([]float64, len(c))
		if err := sweep.Run(r, h, x, c, func(first int, zs, vs, gs, ds []float64) {
			copy(z[first*p:], zs)
			copy(gs, zs)
			for i, v := range vs {
				ds[i] = -1 / v
			}
		}); err != nil {
			t.Fatal(err)
		}
		return append(append(z[:], r...), h...)
	}
	double, err := NewSweeps(w, p, 2)
	if err != nil || double.Single.Exact != nil {
		t.Fatal(err, "or sweeps in single precision over entries in double")
	}
	both, err := NewSweeps(single, p, 2)
	if err != nil {
		t.Fatal(err)
	}
	for name, s := range map[string]struct {
		got, want Sweep
		c         []float64
	}{
		"rounded":        {both.Exact, double.Exact, c},
		"rounded linear": {both.Linear, double.Linear, nil},
		"single":         {both.Single.Exact, double.Exact, c},
		"single linear":  {both.Single.Linear, double.Linear, nil},
	} {
		want := products(s.want, s.c)
		got, size, off := products(s.got, s.c), 0.0, 0.0
		for i, v := range want {
			size += v * v
			off += (got[i] - v) * (got[i] - v)
		}
		if off = math.Sqrt(off / size); !(off < 10*SingleError) || off == 0 {
			t.Errorf("%s: products are off by %.2g", name, off)
		}
	}
}
