package operator

import (
	"math"
	"math/rand/v2"
	"testing"
)

// A sweep over bytes is off by what it says, and the same over ranks.
func TestByteSweep(t *testing.T) {
	rng := rand.New(rand.NewPCG(8, 8))
	const m, n, p = 61, 230, 3
	w := make([]float32, m*n)
	for i := range w {
		w[i] = float32(rng.NormFloat64() * math.Exp(float64(i/n%5))) // rows of any size
	}
	whole, err := NewDense32(m, n, w)
	if err != nil {
		t.Fatal(err)
	}
	rows, columns := squaresOf(w, m, n)
	x := make([]float64, p*n)
	for i := range x {
		x[i] = rng.NormFloat64()
	}
	bytes, off, err := ByteSweep(whole, rows, columns, p, 1)
	if err != nil || !(off > 0.003 && off < 0.02) {
		t.Fatalf("off by %g, %v", off, err)
	}
	product := func(s Sweep) (z, r []float64) {
		z, r = make([]float64, m*p), make([]float64, n*p)
		if err := s.Run(r, nil, x, nil, func(first int, here, _, g, _ []float64) {
			copy(z[first*p:], here)
			for j := range g {
				g[j] = math.Cos(float64(first*p + j))
			}
		}); err != nil {
			t.Fatal(err)
		}
		return z, r
	}
	sweeps, err := NewSweeps(whole, p, 1)
	if err != nil {
		t.Fatal(err)
	}
	z, r := product(bytes)
	wantZ, wantR := product(sweeps.Linear)
	for mu, square := range rows {
		for k := range p {
			if e := math.Abs(z[mu*p+k]-wantZ[mu*p+k]) / math.Sqrt(square); !(e < 5*off) {
				t.Errorf("row %d: off by %.2g of its size, expected %.2g", mu, e, off)
			}
		}
	}
	var e, all float64
	for i, v := range wantR {
		e, all = e+(r[i]-v)*(r[i]-v), all+v*v
	}
	if e = math.Sqrt(e / all); !(e < 2*off) {
		t.Errorf("Wᵀg is off by %.2g, expected %.2g", e, off)
	}
	double := make([]float64, m*n)
	for i, v := range w {
		double[i] = float64(v)
	}
	for _, reproducible := range []bool{false, true} {
		overRanks(t, 3, reproducible, false, m, n, double, func(rank int, d Matrix) {
			if s, off, err := ByteSweep(d, rows, columns, p, 1); s != nil || err != nil || !math.IsInf(off, 1) {
				t.Errorf("a sweep over bytes of a matrix in double precision, off by %g, %v", off, err)
			}
			single, _ := d.(Rounder).Rounded(1)
			s, same, err := ByteSweep(single, rows, columns, p, 1)
			if err != nil || same != off {
				t.Errorf("rank %d: off by %g, alone %g, %v", rank, same, off, err)
				return
			}
			rankZ, rankR := product(s)
			for i, v := range z {
				if math.Abs(rankZ[i]-v) > 1e-12*math.Abs(v) {
					t.Errorf("rank %d: z %d is %g, alone %g", rank, i, rankZ[i], v)
				}
			}
			for i, v := range r {
				if math.Abs(rankR[i]-v) > 0.05*off*math.Sqrt(all/float64(len(r))) { // units of g are those of a rank
					t.Errorf("rank %d: r %d is %g, alone %g", rank, i, rankR[i], v)
				}
			}
		})
	}
	for mu := range m {
		w[mu*n] *= 1e-4 // a column that bytes say nothing of
	}
	if whole, err = NewDense32(m, n, w); err != nil {
		t.Fatal(err)
	}
	rows, columns = squaresOf(w, m, n)
	if _, off, _ := ByteSweep(whole, rows, columns, p, 1); !(off > 1) {
		t.Errorf("off by %g with a column of a ten-thousandth", off)
	}
}

func squaresOf(w []float32, m, n int) (rows, columns []float64) {
	rows, columns = make([]float64, m), make([]float64, n)
	for i, v := range w {
		rows[i/n] += float64(v) * float64(v)
		columns[i%n] += float64(v) * float64(v)
	}
	return rows, columns
}
