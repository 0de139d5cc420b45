package evidence

import (
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/mat"
)

// TestAlone: where one sensor alone sees an entry, and nothing else, the fit is that without both. Its gain has the mean and the spread of the others, and the entry is its reading.
func TestAlone(t *testing.T) {
	const m, n, p = 50, 30, 8
	w, y, _, _ := blurred(3, m, n, p, 1e-2)
	r := rand.New(rand.NewPCG(7, 7))
	w.Apply(func(int, int, float64) float64 { return r.NormFloat64() }, w)
	more, readings := mat.NewDense(m+1, n+1, nil), mat.NewDense(m+1, p, nil)
	more.Slice(1, m+1, 1, n+1).(*mat.Dense).Copy(w)
	readings.Slice(1, m+1, 0, p).(*mat.Dense).Copy(y)
	more.Set(0, 0, 16)
	for k := range p {
		readings.Set(0, k, 100+10*r.NormFloat64()) // the mean of scenes, on no law of their details
	}
	readings.Set(0, 5, math.NaN())
	without, with := learned(t, New(w, y, false), 150), learned(t, New(more, readings, false), 150)
	variances, err := with.Variances()
	if err != nil {
		t.Fatal(err)
	}
	for mu, s := range without.S { // the smooth part of gains has another length with one row more
		if sd := math.Sqrt(variances[mu+1]); math.Abs(with.S[mu+1]-s) > 0.1*sd {
			t.Errorf("s[%d] = %.6g ± %.2g, without the sensor before %.6g", mu+1, with.S[mu+1], sd, s)
		}
	}
	if math.Abs(with.S[0]-1) > 0.02*with.Spread {
		t.Errorf("the gain of a sensor that says nothing of it is %.6g", with.S[0])
	}
	if sd := math.Sqrt(variances[0]); math.Abs(sd/with.Spread-1) > 0.1 {
		t.Errorf("its standard deviation is %.3g, that of all gains %.3g", sd, with.Spread)
	}
	for k := range p {
		x, c, _, _ := with.Entry(0, k)
		if k == 5 {
			if x != 0 {
				t.Errorf("entry 0 of snapshot %d, which was not read, is %.3g", k, x)
			}
			continue
		}
		if expected := with.S[0] * readings.At(0, k) / 16; math.Abs(x/expected-1) > 1e-12 || math.Abs(math.Sqrt(c)/(expected*with.Spread)-1) > 0.01 {
			t.Errorf("entry 0 of snapshot %d is %.4g ± %.2g, expected %.4g ± %.2g", k, x, math.Sqrt(c), expected, expected*with.Spread)
		}
	}
}

// TestAloneDiagonal: with a diagonal W all sensors are alone, and none is left out.
func TestAloneDiagonal(t *testing.T) {
	w, y := mat.NewDense(4, 4, nil), mat.NewDense(4, 2, []float64{1, 2, 3, 4, 5, 6, 7, 8})
	for i := range 4 {
		w.Set(i, i, 1)
	}
	if alone, _, left := setAlone(w, y); alone != nil || left != y {
		t.Error("sensors of a diagonal W were left out")
	}
}
