package calamp_test

import (
	"context"
	"math"
	"math/bits"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/calamp/calamp"
	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/operator"
	"github.com/calamp/calamp/solver"
)

// Text is black or white, and masks of 0 and 1 hold the sum of its pixels: the mean of those that are white is learned, and the run comes to rest.
func TestTwoValuesBehindMasks(t *testing.T) {
	if testing.Short() {
		t.Skip("linear algebra, slow with the race detector")
	}
	const m, n, p, white, noise = 188, 256, 30, 0.16, 1e-3
	rng := rand.New(rand.NewPCG(34, 1))
	masks, x0, y := mat.NewDense(m, n, nil), mat.NewDense(n, p, nil), mat.NewDense(m, p, nil)
	for mu, row := range rng.Perm(n)[:m] {
		for i := range n {
			masks.Set(mu, i, float64(1-bits.OnesCount(uint(row&i))%2)) // of Hadamard's matrix
		}
	}
	for i := range n {
		for k := range p {
			if rng.Float64() < white {
				x0.Set(i, k, 1)
			}
		}
	}
	y.Mul(masks, x0)
	for mu := range m {
		s := 0.8 + 0.4*rng.Float64()
		for k := range p {
			y.Set(mu, k, (y.At(mu, k)+noise*white*n/2*rng.NormFloat64())/s)
		}
	}
	w, err := operator.NewDense(m, n, masks.RawMatrix().Data)
	if err != nil {
		t.Fatal(err)
	}
	problem, opt := unknown(t, w, y)
	problem.Channel, opt.Outliers, opt.Algorithm = channel.InOrder(problem.Channel), calamp.Outliers{}, solver.VAMP
	res, err := calamp.Solve(context.Background(), problem, opt)
	if err != nil {
		t.Fatal(err)
	}
	if res.Status != calamp.Converged {
		t.Fatalf("%v: %s", res.Status, res.Reason)
	}
	if off := math.Sqrt(calamp.Score(res.X, res.S, calamp.Truth{X: x0}).XMSEScaled); !(off < 1e-3) {
		t.Errorf("signals are off by %g", off)
	}
}
