// Command solve recovers signals and gains from a matrix and readings of your own, with a model that is learned.
package main

import (
	"context"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"

	"gonum.org/v1/gonum/mat"

	"github.com/calamp/calamp"
	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/operator"
	"github.com/calamp/calamp/prior"
)

func main() {
	if err := run(os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(out io.Writer) error {
	w, y, gains := instrument(160, 200, 8)
	problem, err := learned(w, y)
	if err != nil {
		return err
	}
	result, err := calamp.Solve(context.Background(), problem, &calamp.Options{Learn: calamp.Learn{Noise: true, Range: true}})
	if err != nil {
		return err // input that makes no sense; not converging is no error
	}
	fmt.Fprintln(out, result.Status)
	for _, w := range result.Warnings {
		fmt.Fprintln(out, "warning:", w.Code)
	}

	// The factor common to all gains is a convention: compare without it.
	square, common := 0.0, meanLog(result.Gain, gains)
	for mu, g := range gains {
		d := math.Log(result.Gain[mu]/g) - common
		square += d * d
	}
	fmt.Fprintf(out, "gains to 1 %%: %v\n", math.Sqrt(square/float64(len(gains))) < 0.01)
	return nil
}

// learned is the problem of which nothing is known but W and Y: what is NaN is learned, and begins where the moments of
// the readings say.
func learned(w operator.Operator, y *mat.Dense) (*calamp.Problem, error) {
	unknown := math.NaN()
	start, gain, err := calamp.Guess(w, y,
		prior.GaussBernoulli{Density: unknown, SignalVar: unknown},
		channel.Gain{Prior: channel.Uniform(0.5, 1.5), NoiseVar: unknown})
	if err != nil {
		return nil, err
	}
	return &calamp.Problem{
		W: w, Y: y, Channel: gain,
		Prior: start.Learning(prior.Density | prior.SignalVar),
	}, nil
}

// instrument stands for your data: W (M×N), readings (M×P) and, only to compare, the true gains (M).
func instrument(m, n, p int) (*operator.Dense, *mat.Dense, []float64) {
	rng := rand.New(rand.NewPCG(1, 2))
	entries := make([]float64, m*n)
	for i := range entries {
		entries[i] = rng.NormFloat64() / math.Sqrt(float64(n))
	}
	w, err := operator.NewDense(m, n, entries)
	if err != nil {
		panic(err)
	}
	x := mat.NewDense(n, p, nil)
	x.Apply(func(_, _ int, _ float64) float64 {
		if rng.Float64() < 0.15 {
			return rng.NormFloat64()
		}
		return 0
	}, x)
	y, gains := mat.NewDense(m, p, nil), make([]float64, m)
	y.Mul(mat.NewDense(m, n, entries), x)
	for mu := range gains {
		gains[mu] = math.Exp(rng.Float64() - 0.5)
	}
	y.Apply(func(mu, _ int, z float64) float64 { return gains[mu] * (z + 1e-3*rng.NormFloat64()) }, y)
	return w, y, gains
}

func meanLog(a, b []float64) float64 {
	sum := 0.0
	for i := range a {
		sum += math.Log(a[i] / b[i])
	}
	return sum / float64(len(a))
}
