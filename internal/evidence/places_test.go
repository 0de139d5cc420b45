package evidence

import (
	"math"
	"math/cmplx"
	"math/rand/v2"
	"testing"
)

// circle is W of antennas on a circle of three wavelengths, with columns for n directions, and readings of three sources with gains, all at columns or some between them.
func circle(m, n, p int, between bool, seed uint64) (w func(mu, i int) complex128, y [][]complex128, gains []complex128, directions []float64) {
	rng := rand.New(rand.NewPCG(seed, 7))
	normal := func() complex128 { return complex(rng.NormFloat64(), rng.NormFloat64()) * math.Sqrt2 / 2 }
	wave := func(mu int, direction float64) complex128 {
		return cmplx.Rect(1/math.Sqrt(float64(m)), 3*math.Pi*math.Cos(2*math.Pi*(float64(mu)/float64(m)-direction/float64(n))))
	}
	directions = []float64{7, 19, 36}
	if between {
		directions = []float64{7.2, 19.3, 35.6}
	}
	gains = make([]complex128, m)
	for mu := range gains {
		gains[mu] = cmplx.Rect(0.7+0.7*rng.Float64(), 2*math.Pi*rng.Float64())
	}
	y = make([][]complex128, p)
	for k := range y {
		y[k] = make([]complex128, m)
		for _, direction := range directions {
			x := normal()
			for mu := range y[k] {
				y[k][mu] += gains[mu] * wave(mu, direction) * x
			}
		}
		for mu := range y[k] {
			y[k][mu] += gains[mu] * normal() * complex(0.03, 0)
		}
	}
	return func(mu, i int) complex128 { return wave(mu, float64(i)) }, y, gains, directions
}

func jointFit(m, n int, w func(mu, i int) complex128, y [][]complex128, gains []complex128) *Complex {
	f := NewComplex(m, n, len(y), w, func(mu, k int) complex128 { return y[k][mu] }, 0)
	f.Joint = true
	f = f.Turned()
	if gains != nil {
		s := make([]complex128, m)
		for mu, g := range gains {
			s[mu] = 1 / g
		}
		f.BeginAt(s)
	}
	return f
}

// TestTurned: snapshots that are turned until all but M have no readings are the same problem: the first step of both has the same evidence, and both end at the same gains.
func TestTurned(t *testing.T) {
	w, y, gains, _ := circle(16, 48, 60, false, 1)
	turned := jointFit(16, 48, w, y, gains)
	whole := NewComplex(16, 48, len(y), w, func(mu, k int) complex128 { return y[k][mu] }, 0)
	whole.Joint = true
	whole.BeginAt(turned.S)
	if len(turned.Snapshots) != 17 || !turned.IsTurned() || whole.IsTurned() {
		t.Fatalf("%d turned snapshots", len(turned.Snapshots))
	}
	for _, f := range []*Complex{turned, whole} {
		if _, err := f.Step(); err != nil {
			t.Fatal(err)
		}
	}
	if off := math.Abs(turned.LogEvidence() - whole.LogEvidence()); off > 1e-9*math.Abs(whole.LogEvidence()) {
		t.Errorf("evidence %g and %g", turned.LogEvidence(), whole.LogEvidence())
	}
	for _, f := range []*Complex{turned, whole} {
		for done := false; !done; {
			var err error
			if done, err = f.Step(); err != nil {
				t.Fatal(err)
			}
		}
	}
	if apart := whole.apart(turned.S); apart > 1e-2 {
		t.Errorf("gains are apart by %.2g of their variances", apart)
	}
}

// TestPlaces: where sources lie between columns, places are learned, and the derivatives of the evidence in these are those of differences.
func TestPlaces(t *testing.T) {
	w, y, gains, directions := circle(16, 48, 60, true, 2)
	f := jointFit(16, 48, w, y, gains)
	for done := false; !done; {
		var err error
		if done, err = f.Step(); err != nil {
			t.Fatal(err)
		}
	}
	b := f.Between(w)
	if b == nil {
		t.Fatal("no entries between columns")
	}
	at := func(places []float64) float64 {
		copy(b.places.at, places)
		for j := range places {
			b.setPlace(j)
		}
		if err := b.solve(); err != nil {
			t.Fatal(err)
		}
		return b.fixed + b.evidence
	}
	for range heldFor {
		if _, err := b.Step(); err != nil {
			t.Fatal(err)
		}
	}
	b.steps = heldFor + 1 // gains are free
	from := append([]float64(nil), b.places.at...)
	at(from)
	gradient := append([]float64(nil), b.places.derivatives(b)...)
	for j := range from {
		const h = 1e-4
		next := append([]float64(nil), from...)
		next[j] += h
		up := at(next)
		next[j] -= 2 * h
		down := at(next)
		if difference := (up - down) / (2 * h); math.Abs(difference-gradient[j]) > 1e-3*math.Abs(gradient[j])+1e-2 {
			t.Errorf("place %d: derivative %g, differences %g", j, gradient[j], difference)
		}
	}
	at(from)
	for done := false; !done; {
		var err error
		if done, err = b.Step(); err != nil {
			t.Fatal(err)
		}
	}
	if !b.Settled() || b.LogEvidence() < f.LogEvidence()+100 {
		t.Errorf("settled %v, evidence %g, %g before", b.Settled(), b.LogEvidence(), f.LogEvidence())
	}
	shift, sd := b.Places()
	for _, direction := range directions {
		i := int(math.Round(direction))
		if off := float64(i) + shift[i] - direction; math.Abs(off) > 4*sd[i] || sd[i] == 0 || sd[i] > 0.02 {
			t.Errorf("source at %.3f: found at %.3f ± %.3f", direction, float64(i)+shift[i], sd[i])
		}
	}
	random := rand.New(rand.NewPCG(1, 1))
	entries := make([]complex128, 16*48)
	for j := range entries {
		entries[j] = complex(random.NormFloat64(), random.NormFloat64())
	}
	if b.Between(func(mu, i int) complex128 { return entries[mu*48+i] }) != nil {
		t.Error("places between columns of a random W")
	}
}

// TestCoarseColumns: waves whose phases turn by 1.5 radian from one column to the next are known between these by their logarithms, and those that turn by 2.5 are not.
func TestCoarseColumns(t *testing.T) {
	const m, between = 16, 10.4
	for _, n := range []int{40, 24} {
		w, y, _, _ := circle(m, n, 4, false, 3)
		f := jointFit(m, n, w, y, nil)
		if is := f.smooth(w, 10); is != (n == 40) {
			t.Errorf("%d columns: smooth %v", n, is)
		}
		if n != 40 {
			continue
		}
		column, _ := f.near(w, 10, -2, 3).column(between-10, false)
		var along complex128
		truth := make([]complex128, m)
		for mu := range truth {
			truth[mu] = cmplx.Rect(1/math.Sqrt(m), 3*math.Pi*math.Cos(2*math.Pi*(float64(mu)/m-between/float64(n))))
			along += cmplx.Conj(column[mu]) * truth[mu]
		}
		if off := 1 - cmplx.Abs(along); off > 1e-6 {
			t.Errorf("a column between two: 1 - correlation is %g", off)
		}
	}
}
