package calamp_test

import (
	"math/rand/v2"
	"testing"

	"github.com/calamp/calamp"
	"github.com/calamp/calamp/internal/tests"
	"github.com/calamp/calamp/operator"
)

// TestVignettingBehindBlur has scenes in cosines behind a blur, and pixels darker by a third at both ends, with nothing given. Readings say little of which is darker. While gains were white scenes were, and a tenth of s was within its intervals.
func TestVignettingBehindBlur(t *testing.T) {
	if testing.Short() {
		t.Skip("linear algebra of others, slow with the race detector")
	}
	const m = 80
	w, x, y, s := tests.BehindBlur(rand.New(rand.NewPCG(0, 5)), m, 15, tests.Vignetting)
	table, err := operator.NewDense(m, m, w.RawMatrix().Data)
	if err != nil {
		t.Fatal(err)
	}
	res := solveUnknown(t, table, y, func(opt *calamp.Options) { opt.Retry = true })
	truth := calamp.Truth{X: x, S: s}
	inS, inX := covered(res, truth, res.Score(truth).Scale)
	t.Logf("%v, within 95 %% intervals s %.3f, x %.3f, %v", res.Status, inS, inX, res.Warnings)
	if res.Status != calamp.Converged || inS < 0.85 || inX < 0.85 {
		t.Errorf("%v, within 95 %% intervals s %.3f, x %.3f", res.Status, inS, inX)
	}
}
