package calamp_test

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"gonum.org/v1/gonum/mat"

	"github.com/calamp/calamp"
	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/internal/tables"
	"github.com/calamp/calamp/operator"
)

// centralPart is the part of ranks within the central interval of 95 %.
func centralPart(ranks []float64) float64 {
	count := 0
	for _, r := range ranks {
		if r > 0.025 && r < 0.975 {
			count++
		}
	}
	return float64(count) / float64(len(ranks))
}

// wrongAtRandom is m × n normal entries, of which a solver is given others, wrong by a part eta.
func wrongAtRandom(m, n int, eta float64, rng *rand.Rand) (right, given operator.Operator) {
	a, b := make([]float64, m*n), make([]float64, m*n)
	for i := range a {
		a[i] = rng.NormFloat64() / math.Sqrt(float64(n))
		b[i] = a[i] + eta*rng.NormFloat64()/math.Sqrt(float64(n))
	}
	right, _ = operator.NewDense(m, n, a)
	given, _ = operator.NewDense(m, n, b)
	return right, given
}

// TestLongMatrixError measures what becomes of a W whose entries are wrong at random: N = 400, M = 320, P = 10, noise of variance 1e-6.
func TestLongMatrixError(t *testing.T) {
	longOnly(t)
	count := seedCount(20)
	table := tables.New(t, "", "η", "noise", "η told or learned", "converged", "coverage of s", "of x", "error²/variance of x", "η̂/η, mean", "least, most", "iterations")
	for _, eta := range []float64{0.001, 0.01, 0.05} {
		for _, c := range []struct {
			noise, matrix string
		}{{"told", "not"}, {"told", "told"}, {"told", "learned"}, {"learned", "told"}, {"learned", "learned"}, {"all learned", "not"}, {"all learned", "learned"}} {
			var lock sync.Mutex
			var s, x, ratio, size, iterations float64
			converged, least, most := 0, math.Inf(1), 0.0
			inParallel(count, func(i int) {
				rng := rand.New(rand.NewPCG(uint64(i), 41))
				right, given := wrongAtRandom(320, 400, eta, rng)
				y, truth := scenes(right, 10, 0.15, 1e-6, rng)
				p, opt := toldModel(given, y, 0.15, 1e-6), allLearned()
				opt.Learn = calamp.Learn{Noise: c.noise == "learned", MatrixError: c.matrix == "learned"}
				if c.noise == "all learned" {
					p, opt.Learn.Noise, opt.Learn.Range = freeModel(given, y), true, true
				}
				if c.matrix == "told" {
					opt.MatrixError = eta
				}
				res, err := calamp.Solve(context.Background(), p, &opt)
				if err != nil {
					t.Error(err)
					return
				}
				ranks, _ := res.Ranks(truth, rng)
				scale := res.Score(truth).Scale
				covered := coverage95(res, truth)
				lock.Lock()
				defer lock.Unlock()
				if res.Status == calamp.Converged {
					converged++
				}
				s, x = s+covered/float64(count), x+centralPart(ranks)/float64(count)
				ratio += res.Score(truth).XMSEScaled / (scale * scale * mat.Sum(res.XVar) / 4000) / float64(count)
				iterations += float64(res.Iterations) / float64(count)
				size += res.MatrixError / eta / float64(count)
				least, most = min(least, res.MatrixError/eta), max(most, res.MatrixError/eta)
			})
			table.Row("| %g %% | %s | %s | %d of %d | %.3f | %.3f | %.2f | %.3f | %.3f, %.3f | %.0f |", 100*eta, c.noise, c.matrix, converged, count, s, x, ratio, size, least, most, iterations)
			if c.matrix != "not" && c.noise == "told" && (converged < count || s < 0.92 || s > 0.98 || x < 0.92 || x > 0.98 || least < 0.9 || most > 1.1) {
				t.Errorf("η = %g, noise %s, η %s", eta, c.noise, c.matrix)
			}
		}
	}
}

var (
	_ = fmt.Sprint
	_ = time.Now
	_ channel.Channel
)
