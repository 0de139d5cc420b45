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
	count := seedCount(100)
	table := tables.New(t, "", "η", "noise", "η given or learned", "converged", "coverage of s", "of x", "error²/variance of x", "η̂/η, mean", "least, most", "η within 95 %", "iterations")
	for _, eta := range []float64{0.001, 0.01, 0.05} {
		for _, c := range []struct {
			noise, matrix string
		}{{"given", "not"}, {"given", "given"}, {"given", "learned"}, {"learned", "given"}, {"learned", "learned"}, {"all learned", "not"}, {"all learned", "learned"}} {
			var lock sync.Mutex
			var s, x, ratio, size, iterations float64
			converged, least, most, within := 0, math.Inf(1), 0.0, 0
			squares := 0.0
			inParallel(count, func(i int) {
				rng := rand.New(rand.NewPCG(uint64(i), 41))
				right, given := wrongAtRandom(320, 400, eta, rng)
				y, truth := scenes(right, 10, 0.15, 1e-6, rng)
				p, opt := givenModel(given, y, 0.15, 1e-6), allLearned()
				opt.Learn = calamp.Learn{Noise: c.noise == "learned", MatrixError: c.matrix == "learned"}
				if c.noise == "all learned" {
					p, opt.Learn.Noise, opt.Learn.Range = freeModel(given, y), true, true
				}
				if c.matrix == "given" {
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
				if math.Abs(res.MatrixError-eta) < 1.96*res.MatrixErrorSD*res.MatrixError {
					within++
				}
				size += res.MatrixError / eta / float64(count)
				squares += res.MatrixError * res.MatrixError / (eta * eta * float64(count))
				least, most = min(least, res.MatrixError/eta), max(most, res.MatrixError/eta)
			})
			held := ""
			if c.matrix == "learned" {
				held = fmt.Sprintf("%d of %d", within, count)
			}
			table.Row("| %g %% | %s | %s | %d of %d | %.3f | %.3f | %.2f | %.3f | %.3f, %.3f | %s | %.0f |", 100*eta, c.noise, c.matrix, converged, count, s, x, ratio, size, least, most, held, iterations)
			if c.matrix != "not" && (converged < count || s < 0.92 || s > 0.98 || x < 0.92 || x > 0.98) {
				t.Errorf("η = %g, noise %s, η %s", eta, c.noise, c.matrix)
			}
			chance := math.Sqrt((squares - size*size) / float64(count)) // of the mean
			if c.matrix == "learned" && (math.Abs(size-1) > 0.1+chance || 10*within < 9*count) {
				t.Errorf("η = %g, noise %s: learned as %g ± %g of it, within its interval in %d of %d", eta, c.noise, size, chance, within, count)
			}
		}
	}
}

// boundOfMatrixError is the least relative standard deviation of an unbiased estimate of η (Cramér and Rao), with the noise variance given and learned: readings of a sensor have the
// covariance K = η²XᵀX/N + Δ over signals (x is N×P), and what entries that are not zero and gains could make of them is projected out. With alone, correlations are not looked at.
func boundOfMatrixError(w, x *mat.Dense, eta, noise float64, alone bool) (given, learned float64) {
	m, n := w.Dims()
	_, p := x.Dims()
	var gram, inverse mat.Dense
	parts := [2]*mat.Dense{mat.NewDense(p, p, nil), mat.NewDense(p, p, nil)} // ∂K/∂log η² and ∂K/∂log Δ
	gram.Mul(x.T(), x)
	parts[0].Apply(func(k, l int, v float64) float64 { return eta * eta / float64(n) * v * bit(k == l || !alone) }, &gram)
	parts[1].Apply(func(k, l int, _ float64) float64 { return noise * bit(k == l) }, parts[1])
	inverse.Add(parts[0], parts[1])
	invert(&inverse)
	j := tangents(w, x)
	_, columns := j.Dims()
	between := func(factors ...mat.Matrix) *mat.Dense { // Jᵀ B J, with the product of factors for each sensor's block of B
		var block, product mat.Dense
		block.Product(factors...)
		moved := mat.NewDense(m*p, columns, nil)
		for mu := range m {
			moved.Slice(mu*p, (mu+1)*p, 0, columns).(*mat.Dense).Mul(&block, j.Slice(mu*p, (mu+1)*p, 0, columns))
		}
		product.Mul(j.T(), moved)
		return &product
	}
	solved := between(&inverse)
	invert(solved)
	var information [2][2]float64
	for a, one := range parts {
		for b, other := range parts {
			var whole, once, twice mat.Dense
			whole.Product(&inverse, one, &inverse, other)
			once.Mul(solved, between(&inverse, one, &inverse, other, &inverse))
			twice.Product(solved, between(&inverse, one, &inverse), solved, between(&inverse, other, &inverse))
			information[a][b] = 0.5 * (float64(m)*mat.Trace(&whole) - 2*mat.Trace(&once) + mat.Trace(&twice))
		}
	}
	own := information[0][0]
	return 0.5 / math.Sqrt(own), 0.5 / math.Sqrt(own-information[0][1]*information[1][0]/information[1][1])
}

func invert(a *mat.Dense) {
	if err := a.Inverse(a); err != nil {
		panic(err)
	}
}

func bit(v bool) float64 {
	if v {
		return 1
	}
	return 0
}

// tangents are what entries that are not zero, and gains but one, which is the common scale, add to readings, sensor by sensor: MP rows.
func tangents(w, x *mat.Dense) *mat.Dense {
	m, n := w.Dims()
	_, p := x.Dims()
	var z, j mat.Dense
	z.Mul(w, x)
	var columns []float64
	add := func(value func(mu, k int) float64) {
		for mu := range m {
			for k := range p {
				columns = append(columns, value(mu, k))
			}
		}
	}
	for of := range p {
		for i := range n {
			if x.At(i, of) != 0 {
				add(func(mu, k int) float64 { return w.At(mu, i) * bit(k == of) })
			}
		}
	}
	for of := 1; of < m; of++ {
		add(func(mu, k int) float64 { return z.At(mu, k) * bit(mu == of) })
	}
	j.CloneFrom(mat.NewDense(len(columns)/(m*p), m*p, columns).T())
	return &j
}

// TestLongMatrixBound computes how well η can be known at all, of the problems of TestLongMatrixError.
func TestLongMatrixBound(t *testing.T) {
	longOnly(t)
	table := tables.New(t, "", "η", "signals", "noise given", "learned", "learned, by variances alone")
	for _, eta := range []float64{0.001, 0.003, 0.01, 0.05} {
		rng := rand.New(rand.NewPCG(0, 41))
		const m, n, p = 320, 400, 10
		right, _ := wrongAtRandom(m, n, eta, rng)
		_, truth := scenes(right, p, 0.15, 1e-6, rng)
		w := mat.NewDense(m, n, nil)
		for mu := range m {
			if err := right.(operator.Matrix).RowInto(w.RawRowView(mu), mu); err != nil {
				t.Fatal(err)
			}
		}
		given, learned := boundOfMatrixError(w, truth.X, eta, 1e-6, false)
		_, alone := boundOfMatrixError(w, truth.X, eta, 1e-6, true)
		table.Row("| %g %% | %d | %.3f | %.3f | %.3f |", 100*eta, p, given, learned, alone)
	}
}

// TestLongMatrixShift measures whether a shift of all rows is named, where nothing is known but the images' shape: 20 × 20 pixels, 320 sensors,
// 6 signals in one pixel of seven, noise of variance 1e-6.
func TestLongMatrixShift(t *testing.T) {
	longOnly(t)
	table := tables.New(t, "", "shift, pixels", "model", "runs", "warned", "ended well without a word", "shift along the right axis surest", "standard errors of the surest, least", "most", "rms of all", "converged")
	for _, c := range []struct {
		shift float64
		runs  int
	}{{0, 200}, {0.02, 20}, {0.05, 20}, {0.2, 20}} {
		for _, model := range []string{"learned", "given"} {
			var lock sync.Mutex
			hits, silent, named, converged := 0, 0, 0, 0
			least, most, squares, scores := math.Inf(1), 0.0, 0.0, 0.0
			inParallel(seedCount(c.runs), func(i int) {
				rng := rand.New(rand.NewPCG(uint64(i), 42))
				patterns := newWaves(320, 20, 20, rng)
				given, _ := patterns.at(nil)
				right, _ := patterns.at([]float64{c.shift})
				y, _ := scenes(right, 6, 0.15, 1e-6, rng)
				p, opt := freeModel(given, y), allLearned()
				opt.Retry = true // as the command does
				if model == "given" {
					p, opt.Learn = givenModel(given, y, 0.15, 1e-6), calamp.Learn{}
				}
				var err error
				if opt.Directions, err = calamp.ImageDirections(given, nil, 20, 20); err != nil {
					t.Error(err)
					return
				}
				res, err := calamp.Solve(context.Background(), p, &opt)
				if err != nil {
					t.Error(err)
					return
				}
				lock.Lock()
				defer lock.Unlock()
				highest := 0.0
				for _, s := range res.MatrixScores {
					highest = max(highest, math.Abs(s.Score))
					squares, scores = squares+s.Score*s.Score, scores+1
				}
				least, most = min(least, highest), max(most, highest)
				if warned(res, calamp.MatrixDoubtful) {
					hits++
				}
				if !warned(res, calamp.MatrixDoubtful) && res.Status == calamp.Converged {
					silent++
				}
				if math.Abs(res.MatrixScores[0].Score) == highest {
					named++
				}
				if res.Status == calamp.Converged {
					converged++
				}
			})
			table.Row("| %g | %s | %d | %d | %d | %d | %.1f | %.1f | %.2f | %d |", c.shift, model, seedCount(c.runs), hits, silent, named, least, most, math.Sqrt(squares/scores), converged)
			if c.shift == 0 && hits > 0 || c.shift > 0 && (silent > 0 || named < hits || model == "learned" && hits < seedCount(c.runs)) {
				t.Errorf("a shift of %g pixels was named in %d of %d runs", c.shift, named, seedCount(c.runs))
			}
		}
	}
}

// TestLongMatrixFit measures θ of W(θ) with gains unknown: patterns on 20 × 20 pixels that are shifted and turned, and W + θD of normal entries.
func TestLongMatrixFit(t *testing.T) {
	longOnly(t)
	count := seedCount(20)
	table := tables.New(t, "", "parameters", "model", "within two standard deviations, each", "mean z", "rms z", "error of x over that with θ known, mean", "largest", "runs", "iterations over those with θ known", "over those with W as given", "time over one run, θ known")
	for _, c := range []struct {
		name  string
		theta []float64
	}{{"a shift", []float64{0.05}}, {"shift right, down, rotation", []float64{0.05, -0.03, 0.004}}, {"W + θD", []float64{0.02}}} {
		for _, model := range []string{"learned", "given"} {
			var lock sync.Mutex
			within, squares, sum := make([]int, len(c.theta)), 0.0, 0.0
			var ratio, worst, runs, iterations, wrong, wall float64
			each := func(v float64) float64 { return v / float64(count) }
			inParallel(count, func(i int) {
				rng := rand.New(rand.NewPCG(uint64(i), 43))
				family := calamp.MatrixFamily(newWaves(320, 20, 12, rng).at)
				if c.name == "W + θD" {
					base, _ := wrongAtRandom(320, 400, 0, rng)
					d, _ := wrongAtRandom(320, 400, 0, rng)
					family, _ = calamp.LinearMatrix(base, calamp.Direction{Name: "D", D: d})
				}
				right, _ := family(c.theta)
				given, _ := family(make([]float64, len(c.theta)))
				y, truth := scenes(right, 6, 0.15, 1e-6, rng)
				p, opt := freeModel(given, y), allLearned()
				if model == "given" {
					p, opt.Learn = givenModel(given, y, 0.15, 1e-6), calamp.Learn{}
				}
				asGiven, err := calamp.Solve(context.Background(), p, &opt)
				if err != nil {
					t.Error(err)
					return
				}
				q := *p
				q.W = right
				begun := time.Now()
				known, err := calamp.Solve(context.Background(), &q, &opt)
				one := time.Since(begun)
				if err != nil {
					t.Error(err)
					return
				}
				total := 0
				begun = time.Now()
				fit, err := calamp.FitMatrix(context.Background(), family, p, &calamp.FitOptions{Options: opt, Start: make([]float64, len(c.theta)), Tell: func(r calamp.MatrixRun) { total += r.Iterations }})
				took := time.Since(begun)
				if err != nil {
					t.Errorf("seed %d: %v", i, err)
					return
				}
				lock.Lock()
				defer lock.Unlock()
				for j, v := range c.theta {
					z := (fit.Theta[j] - v) / fit.ThetaSD[j]
					squares += z * z / float64(len(c.theta))
					sum += z / float64(len(c.theta))
					if math.Abs(z) <= 2 {
						within[j]++
					}
				}
				r := fit.Score(truth).XMSEScaled / known.Score(truth).XMSEScaled
				ratio, worst = ratio+each(r), max(worst, r)
				runs += each(float64(len(fit.Runs)))
				iterations += each(float64(total+fit.Iterations) / float64(known.Iterations))
				wrong += each(float64(total+fit.Iterations) / float64(asGiven.Iterations))
				wall += each(float64(took) / float64(one))
			})
			table.Row("| %s | %s | %v of %d | %.2f | %.2f | %.2f | %.2f | %.1f | %.1f | %.1f | %.1f |", c.name, model, within, count, each(sum), math.Sqrt(each(squares)), ratio, worst, runs, iterations, wrong, wall)
			for _, w := range within {
				if count-w > 1+count/10 || ratio > 1.1 { // of honest error bars one in twenty lies beyond; more than this in one case of sixty
					t.Errorf("%s, model %s: within two standard deviations %v, error of x %.2f times", c.name, model, within, ratio)
				}
			}
		}
	}
}
