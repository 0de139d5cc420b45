package calamp_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/calamp/calamp"
	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/prior"
	"github.com/calamp/calamp/teacher"
)

// frames makes the signals of an instance alike: all have the support of the first,
// and each of its entries varies by the part level of its size; level 0 makes them the
// same, and above 1 leaves them independent. The readings follow.
func frames(te teacher.Teacher, in *teacher.Instance, level float64, rng *rand.Rand) {
	if level > 1 {
		return
	}
	x := in.Truth.X
	for i := range te.N {
		common := x.At(i, 0)
		for k := range te.P {
			if common != 0 {
				x.Set(i, k, (common+level*rng.NormFloat64())/math.Sqrt(1+level*level))
				continue
			}
			x.Set(i, k, 0)
		}
	}
	row := make([]float64, te.N)
	for mu := range te.M {
		if err := in.W.RowInto(row, mu); err != nil {
			panic(err)
		}
		for k := range te.P {
			z := math.Sqrt(te.NoiseVar) * rng.NormFloat64()
			for i, w := range row {
				z += w * x.At(i, k)
			}
			in.Y.Set(mu, k, z/in.Truth.S[mu])
		}
	}
}

// coverage95 is the part of the sensors whose 95 % interval holds the truth at the
// best common scale.
func coverage95(r *calamp.Result, truth calamp.Truth) float64 {
	var dot, square float64
	for mu, s := range r.S {
		dot += s * truth.S[mu]
		square += s * s
	}
	scale := dot / square
	lo, hi := r.SInterval(0.95)
	in := 0
	for mu, s := range truth.S {
		if s /= scale; lo[mu] <= s && s <= hi[mu] {
			in++
		}
	}
	return float64(in) / float64(len(truth.S))
}

// TestLongTrustAlike measures the intervals of s, and the squared errors of x in
// stated variances, of signals that are alike to a degree.
func TestLongTrustAlike(t *testing.T) {
	longOnly(t)
	count := seedCount(3)
	for _, level := range []float64{2, 0.5, 0.3, 0.2, 0.1, 0.05, 0} {
		line := fmt.Sprintf("| %g |", level)
		for _, p := range []int{8, 16, 40} {
			var sum, worst, square, failed float64 = 0, 1, 0, 0
			for seed := range count {
				te := teacher.Teacher{
					N: 400, M: 320, P: p, Signal: prior.GaussBernoulli{Density: 0.15, SignalVar: 1},
					Gain: channel.Uniform(0.8, 1.2), NoiseVar: 1e-5,
				}
				in, err := te.Draw(uint64(seed))
				if err != nil {
					t.Fatal(err)
				}
				frames(te, in, level, rand.New(rand.NewPCG(uint64(seed), 7)))
				signal := prior.LearnedGaussBernoulli{GaussBernoulli: te.Signal, Learn: prior.Density | prior.SignalVar}
				problem := &calamp.Problem{W: in.W, Y: in.Y, Prior: signal, Channel: channel.Gain{Prior: te.Gain, NoiseVar: 1e-3}}
				res, err := calamp.Solve(t.Context(), problem, &calamp.Options{Learn: calamp.Learn{Noise: true}})
				if err != nil {
					t.Fatal(err)
				}
				c := coverage95(res, in.Truth)
				sum += c
				worst = min(worst, c)
				if res.Status != calamp.Converged {
					failed++
				}
				square += ratioOfErrors(res, in.Truth) / float64(count)
			}
			line += fmt.Sprintf(" %.0f (%.0f) e2/C %.2g failed %g |", 100*sum/float64(count), 100*worst, square, failed)
		}
		fmt.Println(line)
	}
}

// ratioOfErrors is the mean squared error of x at the best scale, in stated variances.
func ratioOfErrors(r *calamp.Result, truth calamp.Truth) float64 {
	m := calamp.Score(r.X, r.S, truth)
	total := 0.0
	for _, v := range mat.DenseCopyOf(r.XVar).RawMatrix().Data {
		total += v
	}
	n, p := r.XVar.Dims()
	return m.XMSEScaled / (total / float64(n*p))
}
