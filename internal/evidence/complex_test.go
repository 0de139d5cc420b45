package evidence

import (
	"context"
	"math"
	"math/cmplx"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/floats"

	"github.com/calamp/calamp/internal/tests"
)

// array is a uniform line of antennas half a wavelength apart, a grid of directions four times as fine as its beam, and a few sources a snapshot.
type array struct {
	m, n, p int
	x       [][]complex128 // P×N
	s       []complex128
	y       [][]complex128 // M×P
}

func (a *array) w(mu, i int) complex128 {
	return cmplx.Rect(1, math.Pi*float64(mu)*(2*(float64(i)+0.5)/float64(a.n)-1))
}

func newArray(rng *rand.Rand, m, p int, phases, noise float64) *array {
	normal := func() complex128 { return complex(rng.NormFloat64(), rng.NormFloat64()) / math.Sqrt2 }
	a := &array{m: m, n: 4 * m, p: p, x: make([][]complex128, p), s: make([]complex128, m), y: make([][]complex128, m)}
	for k := range a.x {
		a.x[k] = make([]complex128, a.n)
		for range 3 {
			a.x[k][rng.IntN(a.n)] = normal() + cmplx.Rect(0.5, 2*math.Pi*rng.Float64())
		}
	}
	for mu := range a.s {
		a.s[mu] = cmplx.Rect(1+0.1*rng.NormFloat64(), phases*rng.NormFloat64())
		a.y[mu] = make([]complex128, p)
		for k, x := range a.x {
			z := complex(noise, 0) * normal()
			for i, v := range x {
				z += a.w(mu, i) * v
			}
			a.y[mu][k] = z / a.s[mu]
		}
	}
	return a
}

func (a *array) fit(draw uint64) *Complex {
	return NewComplex(a.m, a.n, a.p, a.w, func(mu, k int) complex128 { return a.y[mu][k] }, draw)
}

func run(t *testing.T, f *Complex) {
	t.Helper()
	for done := false; !done; {
		var err error
		if done, err = f.Step(); err != nil {
			t.Fatal(err)
		}
	}
}

// error is that of the signals after the best common factor.
func (a *array) error(f *Complex) float64 {
	var xt complex128
	xx, tt := 0.0, 0.0
	for k, s := range f.Snapshots {
		for i, v := range s.X {
			xt += cmplx.Conj(v) * a.x[k][i]
			xx, tt = xx+square(v), tt+square(a.x[k][i])
		}
	}
	return math.Sqrt(max(0, 1-square(xt)/(xx*tt)))
}

// TestComplexArray: phases near the nominal ones are found in one start, and readings that are missing do no harm. The error is about what is stated, and halves agree.
func TestComplexArray(t *testing.T) {
	if testing.Short() {
		t.Skip("numbers, which take many times as long with the race detector")
	}
	a := newArray(rand.New(rand.NewPCG(1, 2)), 32, 10, 0.1, 0.01)
	a.y[3][1], a.y[7][4] = cmplx.NaN(), complex(math.NaN(), 0)
	f := a.fit(0)
	f.LearnKappa = true
	run(t, f)
	open, off, power := 0.0, a.error(f), 0.0
	for k, s := range f.Snapshots {
		for i, c := range s.C {
			open, power = open+c, power+square(a.x[k][i])
		}
	}
	if stated := math.Sqrt(open / power); !f.Settled() || off > 0.05 || off > 2*stated || off < stated/3 {
		t.Errorf("settled %v, error %.3g, stated %.3g", f.Settled(), off, stated)
	}
	if f.Kappa < 30 || f.Kappa > 300 {
		t.Errorf("concentration of phases %.3g, drawn with 100", f.Kappa)
	}
	within := 0
	_, variances := f.Variances()
	middle := 0.0
	for mu, s := range a.s {
		middle += math.Log(cmplx.Abs(s)/cmplx.Abs(f.S[mu])) / float64(a.m)
	}
	for mu, s := range a.s {
		if d := math.Log(cmplx.Abs(s)/cmplx.Abs(f.S[mu])) - middle; d*d < 4*variances[mu] {
			within++
		}
	}
	if within < 27 {
		t.Errorf("%d of %d gains within two standard deviations", within, a.m)
	}
	ratio, err := f.Halves(context.Background())
	if err != nil || ratio > 4 {
		t.Errorf("halves differ by %.3g, %v", ratio, err)
	}
}

// TestComplexFreePhases: with two snapshots and phases of which nothing is known, most starts come to one answer, and it is right but for a shift. Others are less likely, and differ from one another.
func TestComplexFreePhases(t *testing.T) {
	tests.Long(t)
	a := newArray(rand.New(rand.NewPCG(3, 4)), 32, 2, 100, 0.001)
	var fits []*Complex
	best := 0
	for draw := range uint64(5) {
		f := a.fit(draw)
		f.LearnKappa = true
		run(t, f)
		if fits = append(fits, f); f.Settled() && f.LogEvidence() > fits[best].LogEvidence() {
			best = len(fits) - 1
		}
	}
	var truth, found []float64
	for k, x := range a.x {
		truth, found = append(truth, sizes(x)...), append(found, sizes(fits[best].Snapshots[k].X)...)
	}
	scale := floats.Dot(truth, found) / floats.Dot(found, found)
	for i, v := range truth {
		if found[i] *= scale; math.Abs(v-found[i]) > 0.01 {
			t.Errorf("an entry has the size %.4g, found %.4g", v, found[i])
		}
	}
	same := 0
	for _, f := range fits {
		switch {
		case fits[best].Same(f):
			same++
		case f.LogEvidence() > fits[best].LogEvidence()-float64(a.m):
			t.Errorf("another answer is as likely: %.4g, the best has %.4g", f.LogEvidence(), fits[best].LogEvidence())
		}
	}
	if same < 2 {
		t.Errorf("%d of 5 starts came to the likeliest answer", same)
	}
}

// TestComplexGradient: the gradient and the precision in log r and φ are the derivatives of the evidence in s.
func TestComplexGradient(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	a := newArray(rng, 8, 3, 0.2, 0.1)
	f := a.fit(0)
	f.Kappa = 3
	for range 4 {
		if _, err := f.Step(); err != nil {
			t.Fatal(err)
		}
	}
	for mu := range f.S {
		f.S[mu] *= cmplx.Exp(complex(0.1*rng.NormFloat64(), 0.1*rng.NormFloat64()))
	}
	at := func(j int, by float64, l int, too float64) float64 {
		s := append([]complex128(nil), f.S...)
		move := func(j int, by float64) {
			if j < f.m {
				s[j] *= complex(math.Exp(by), 0)
			} else {
				s[j-f.m] *= cmplx.Rect(1, by)
			}
		}
		move(j, by)
		move(l, too)
		return f.gainValue(s)
	}
	gradient := make([]float64, 2*f.m)
	f.setPrecision(gradient)
	const h = 1e-4
	for j := range gradient {
		if got, want := gradient[j], (at(j, h, 0, 0)-at(j, -h, 0, 0))/(2*h); math.Abs(got-want) > 1e-4*(1+math.Abs(want)) {
			t.Errorf("slope %d is %g, expected %g", j, got, want)
		}
		for l := range j + 1 {
			want := -(at(j, h, l, h) - at(j, h, l, -h) - at(j, -h, l, h) + at(j, -h, l, -h)) / (4 * h * h)
			if got := f.bend.At(j, l); math.Abs(got-want) > 1e-3*(10+math.Abs(want)) {
				t.Errorf("curvature %d, %d is %g, expected %g", j, l, got, want)
			}
		}
	}
}

// TestNoStepYet: before the first step gains are as uncertain as their prior, and phases as a uniform one.
func TestNoStepYet(t *testing.T) {
	f := newArray(rand.New(rand.NewPCG(1, 2)), 8, 2, 1, 0.1).fit(3)
	both, log := f.Variances()
	for mu := range both {
		if want := f.Spread * f.Spread; math.Abs(log[mu]-want) > 1e-15 || math.Abs(both[mu]-want-math.Pi*math.Pi/3) > 1e-12 {
			t.Fatalf("sensor %d: variances %g and %g", mu, both[mu], log[mu])
		}
	}
}

// TestBeginAt: gains that are near the right ones lead to them, from where sites know nothing; entries without a cavity have a wide field.
func TestBeginAt(t *testing.T) {
	if testing.Short() {
		t.Skip("numbers, which take many times as long with the race detector")
	}
	rng := rand.New(rand.NewPCG(5, 6))
	a := newArray(rng, 32, 10, 2, 0.01)
	f := a.fit(0)
	near := make([]complex128, a.m)
	for mu, s := range a.s {
		near[mu] = 3 * s * cmplx.Exp(complex(0.05*rng.NormFloat64(), 0.05*rng.NormFloat64()))
	}
	f.BeginAt(near)
	run(t, f)
	if err := a.error(f); !f.Settled() || err > 0.05 {
		t.Errorf("settled: %v, error of x %.3g", f.Settled(), err)
	}
	free := a.fit(0)
	run(t, free)
	if err := a.error(free); err < 0.05 {
		t.Errorf("phases of one lead there as well, error %.3g: this tests nothing", err)
	}
	for i := range f.n {
		if _, c := f.Field(f.Snapshots[0], i); math.IsInf(c, 1) {
			t.Errorf("entry %d has no field", i)
		}
	}
}
