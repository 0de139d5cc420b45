package evidence

import (
	"math"
	"math/cmplx"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/calamp/calamp/internal/dense"
)

// baselines are readings of all pairs of antennas, behind W, of snapshots with the same entries.
func baselines(rng *rand.Rand, antennas, n, active, p int, noise float64) (of [][]int, gains []complex128, w, y func(mu, i int) complex128) {
	normal := func() complex128 { return complex(rng.NormFloat64(), rng.NormFloat64()) / math.Sqrt2 }
	for i := range antennas {
		gains = append(gains, cmplx.Rect(math.Exp(0.2*rng.NormFloat64()), rng.NormFloat64()))
		for j := range i {
			of = append(of, []int{j, i})
		}
	}
	table, x := make([]complex128, len(of)*n), make([]complex128, n*p)
	for i := range table {
		table[i] = normal() / complex(math.Sqrt(float64(n)), 0)
	}
	for _, i := range rng.Perm(n)[:active] {
		for k := range p {
			x[i*p+k] = normal()
		}
	}
	readings := make([]complex128, len(of)*p)
	for mu, pair := range of {
		for k := range p {
			z := complex(math.Sqrt(noise), 0) * normal()
			for i := range n {
				z += table[mu*n+i] * x[i*p+k]
			}
			readings[mu*p+k] = z / (gains[pair[0]] * cmplx.Conj(gains[pair[1]]))
		}
	}
	return of, gains, func(mu, i int) complex128 { return table[mu*n+i] }, func(mu, k int) complex128 { return readings[mu*p+k] }
}

// The gradient in what sensors have, and the precision, are derivatives of the evidence: of rows that two sensors read each, and of those that one reads together with others.
func TestReadersDerivatives(t *testing.T) {
	const antennas = 5
	of, _, w, y := baselines(rand.New(rand.NewPCG(1, 38)), antennas, 20, 3, 6, 0.01)
	shared := make([][]int, len(of))
	for mu := range shared {
		shared[mu] = []int{(mu*mu + mu/2) % antennas}
	}
	for name, of := range map[string][][]int{"pairs": of, "shared": shared} {
		t.Run(name, func(t *testing.T) { checkDerivatives(t, of, antennas, w, y) })
	}
}

func checkDerivatives(t *testing.T, of [][]int, antennas int, w, y func(mu, i int) complex128) {
	const step = 1e-5
	f := NewComplex(len(of), 20, 6, w, y, 0)
	f.Kappa = 0.7
	f.ReadBy(of, antennas, 3)
	if _, err := f.Step(); err != nil {
		t.Fatal(err)
	}
	at := slices.Clone(f.gains)
	for i := range at { // away from the maximum
		at[i] *= cmplx.Exp(complex(0.1*float64(i), 0.05*float64(i*i)))
	}
	moved := func(j int, by float64) []complex128 {
		out := slices.Clone(at)
		if j < antennas {
			out[j] *= complex(math.Exp(by), 0)
		} else {
			out[j-antennas] *= cmplx.Rect(1, by)
		}
		return out
	}
	gradient, ahead, behind := make([]float64, 2*antennas), make([]float64, 2*antennas), make([]float64, 2*antennas)
	f.setGains(at)
	f.setPrecision(gradient)
	bend := dense.New(2*antennas, 2*antennas)
	copy(bend.Data, f.bend.Data)
	for j := range gradient {
		if slope := (f.gainValue(moved(j, step)) - f.gainValue(moved(j, -step))) / (2 * step); math.Abs(slope-gradient[j]) > 1e-5*(1+math.Abs(slope)) {
			t.Errorf("slope %d is %g, expected %g", j, gradient[j], slope)
		}
		f.setGains(moved(j, step))
		f.setPrecision(ahead)
		f.setGains(moved(j, -step))
		f.setPrecision(behind)
		for l := range j + 1 {
			if bent := (behind[l] - ahead[l]) / (2 * step); math.Abs(bent-bend.Row(j)[l]) > 1e-4*(1+math.Abs(bent)) {
				t.Errorf("precision %d, %d is %g, expected %g", j, l, bend.Row(j)[l], bent)
			}
		}
	}
}

// From gains of one, or any phases, the gains of eight antennas with phases of one radian are found, though 20 of 200 entries are there behind 28 rows.
func TestPairsOfJointEntries(t *testing.T) {
	const antennas, p = 8, 30
	of, gains, w, y := baselines(rand.New(rand.NewPCG(2, 38)), antennas, 200, 20, p, 1e-6)
	f := NewComplex(len(of), 200, p, w, y, 0)
	f.Joint = true
	f.ReadBy(of, antennas, 0)
	for done := false; !done; {
		var err error
		if done, err = f.Step(); err != nil {
			t.Fatal(err)
		}
	}
	found, log, phase := f.Gains()
	if !f.Settled() || phase[0] != 0 {
		t.Fatalf("settled %v, variance of the first phase %g", f.Settled(), phase[0])
	}
	scale := 0.0
	for i, g := range found {
		scale += math.Log(cmplx.Abs(g)/cmplx.Abs(gains[i])) / antennas
	}
	for i, g := range found {
		offLog := math.Log(cmplx.Abs(g)/cmplx.Abs(gains[i])) - scale
		offPhase := cmplx.Phase(g / found[0] * gains[0] / gains[i])
		if !(math.Abs(offLog) < 4*math.Sqrt(log[i])) || !(math.Abs(offPhase) <= 4*math.Sqrt(phase[i])+1e-12) || !(log[i] < 1e-6) {
			t.Errorf("antenna %d: log |g| is %.2g off, ± %.2g, and its phase %.2g, ± %.2g", i, offLog, math.Sqrt(log[i]), offPhase, math.Sqrt(phase[i]))
		}
	}
}

// With more readings than entries A is inverted by way of a matrix as large as these.
func TestFactorOfManyReadings(t *testing.T) {
	of, _, w, y := baselines(rand.New(rand.NewPCG(3, 38)), 6, 5, 3, 1, 0.01) // 15 rows
	f := NewComplex(len(of), 5, 1, w, y, 0)
	s, noise := f.Snapshots[0], 0.03
	for i := range s.gamma {
		s.gamma[i] = 0.5 + float64(i)
	}
	if !s.factor(noise, 2) {
		t.Fatal("not factored")
	}
	rows, n := s.w.Rows, 5
	a := dense.New(rows, rows)
	for mu := range rows {
		a.Row(mu)[mu] = noise
		for nu := range rows {
			for i := range 2 * n {
				a.Row(mu)[nu] += s.w.Row(mu)[i] * s.w.Row(nu)[i] * s.gamma[i%n]
			}
		}
	}
	for mu := range rows {
		for nu := range rows {
			product, want := 0.0, 0.0
			for k := range rows {
				product += a.Row(mu)[k] * s.inverse.Row(k)[nu]
			}
			if mu == nu {
				want = 1
			}
			if math.Abs(product-want) > 1e-9 {
				t.Fatalf("A A⁻¹ at %d, %d is %g", mu, nu, product)
			}
		}
		for i := range n {
			want := 0.0
			for k := range rows {
				want += s.inverse.Row(mu)[k] * s.w.Row(k)[i]
			}
			if math.Abs(s.projected.Row(mu)[i]-want) > 1e-9*(1+math.Abs(want)) {
				t.Fatalf("A⁻¹W at %d, %d is %g, expected %g", mu, i, s.projected.Row(mu)[i], want)
			}
		}
	}
	if !dense.Factor(a, 1) || math.Abs(s.logDet-0.5*dense.LogDet(a)) > 1e-9 {
		t.Errorf("log det is %g, expected %g", s.logDet, 0.5*dense.LogDet(a))
	}
}
