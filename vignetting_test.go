package calamp_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/calamp/calamp"
	"github.com/calamp/calamp/operator"
)

// TestVignettingBehindBlur has scenes in cosines behind a blur, and pixels darker by a third at both ends, with nothing given. Readings say little of which is darker. While gains were white scenes were, and a tenth of s was within its intervals.
func TestVignettingBehindBlur(t *testing.T) {
	if testing.Short() {
		t.Skip("linear algebra of others, slow with the race detector")
	}
	const m, p = 80, 15
	r := rand.New(rand.NewPCG(0, 5))
	blur, cosines, x := mat.NewDense(m, m, nil), mat.NewDense(m, m, nil), mat.NewDense(m, p, nil)
	blur.Apply(func(i, j int, _ float64) float64 { return math.Exp(-0.5 * float64((i-j)*(i-j)) / 4) }, blur)
	cosines.Apply(func(i, j int, _ float64) float64 { return math.Cos(math.Pi * float64(j) * (float64(i) + 0.5) / m) }, cosines)
	x.Apply(func(i, _ int, _ float64) float64 { return r.NormFloat64() / float64(1+i) }, x)
	var w, y mat.Dense
	w.Mul(blur, cosines)
	y.Mul(&w, x)
	s := make([]float64, m)
	for mu := range s {
		u := 2*float64(mu)/(m-1) - 1
		s[mu] = 1 / ((1 - u*u/3) * (1 + 0.02*r.NormFloat64()))
		for k := range p {
			y.Set(mu, k, (y.At(mu, k)+0.01*r.NormFloat64())/s[mu])
		}
	}
	table, err := operator.NewDense(m, m, w.RawMatrix().Data)
	if err != nil {
		t.Fatal(err)
	}
	res := solveUnknown(t, table, &y, func(opt *calamp.Options) { opt.Retry = true })
	truth := calamp.Truth{X: x, S: s}
	inS, inX := covered(res, truth, res.Score(truth).Scale)
	t.Logf("%v, within 95 %% intervals s %.3f, x %.3f, %v", res.Status, inS, inX, res.Warnings)
	if res.Status != calamp.Converged || inS < 0.85 || inX < 0.85 {
		t.Errorf("%v, within 95 %% intervals s %.3f, x %.3f", res.Status, inS, inX)
	}
}
