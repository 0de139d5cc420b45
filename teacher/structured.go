package teacher

import (
	"fmt"
	"math"
	"math/rand/v2"

	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat/distuv"

	"github.com/calamp/calamp"
	"github.com/calamp/calamp/operator"
)

// structured are the kinds of which there is a matrix that is no table. Rows of transforms
// get random signs and a random permutation, with which they behave like independent
// entries.
var structured = map[string]func(rng *rand.Rand, m, n int, value float64) (operator.Operator, error){
	"hadamard": func(rng *rand.Rand, m, n int, _ float64) (operator.Operator, error) {
		rows, err := drawRows(rng, m, n)
		if err != nil {
			return nil, err
		}
		return operator.NewHadamard(rows)
	},
	"dct": func(rng *rand.Rand, m, n int, _ float64) (operator.Operator, error) {
		rows, err := drawRows(rng, m, n)
		if err != nil {
			return nil, err
		}
		return operator.NewDCT(rows)
	},
	"sparse": drawSparse,
}

// Structured draws an M×N matrix of the ensemble that is no table: a transform or a
// sparse matrix, with a mean square of the entries of 1/N.
func (e Ensemble) Structured(m, n int, seed uint64) (operator.Operator, error) {
	draw, ok := structured[e.Kind]
	if !ok {
		return nil, fmt.Errorf("a matrix of kind %s is a table: expected %s", e, StructuredEnsembles())
	}
	if err := e.Validate(); err != nil {
		return nil, err
	}
	w, err := draw(stream(seed, "W"), m, n, e.Value)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", e, err)
	}
	return w, nil
}

func drawRows(rng *rand.Rand, m, n int) (operator.Rows, error) {
	if m > n {
		return operator.Rows{}, fmt.Errorf("%d sensors and %d entries: a transform has no more rows than entries", m, n)
	}
	r := operator.Rows{N: n, Rows: rng.Perm(n)[:m], Permutation: rng.Perm(n), Signs: make([]float64, n)}
	for i := range r.Signs {
		r.Signs[i] = 1 - 2*float64(rng.IntN(2))
	}
	return r, nil
}

// drawSparse has normal entries in random places, each with the same probability.
func drawSparse(rng *rand.Rand, m, n int, density float64) (operator.Operator, error) {
	c := operator.CSR{M: m, N: n, Start: make([]int64, 1, m+1)}
	size := 1 / math.Sqrt(float64(n)*density)
	for range m {
		for column := gap(rng, density); column < n; column += 1 + gap(rng, density) {
			c.Columns = append(c.Columns, int32(column))
			c.Values = append(c.Values, size*rng.NormFloat64())
		}
		c.Start = append(c.Start, int64(len(c.Columns)))
	}
	return operator.NewSparse(c)
}

// gap is how many places are left out before the next, each with probability 1-density.
func gap(rng *rand.Rand, density float64) int {
	if density >= 1 {
		return 0
	}
	return int(min(math.Log(1-rng.Float64())/math.Log1p(-density), math.MaxInt32))
}

// Readings draws readings of a given matrix, and their truth: N and M are its size. W has
// no part in the seed's other random streams.
func (t Teacher) Readings(w operator.Operator, seed uint64) (*mat.Dense, calamp.Truth, error) {
	t.M, t.N = w.Dims()
	if err := t.Validate(); err != nil {
		return nil, calamp.Truth{}, err
	}
	truth := calamp.Truth{X: t.X, S: t.calibration(stream(seed, "s")), O: t.offsets(stream(seed, "o")), NoiseVar: t.Noise}
	if truth.X == nil {
		truth.X = t.signals(stream(seed, "X"))
	}
	y := mat.NewDense(t.M, t.P, nil)
	entries := mat.DenseCopyOf(truth.X.T())
	if err := operator.Mul(y.RawMatrix().Data, w, entries.RawMatrix().Data); err != nil {
		return nil, truth, err
	}
	return y, truth, t.disturb(y, &truth, seed)
}

// disturb turns Wx into readings: noise, then the sensors' gains, then their offsets.
func (t Teacher) disturb(y *mat.Dense, truth *calamp.Truth, seed uint64) error {
	noise := stream(seed, "noise")
	sd := math.Sqrt(t.NoiseVar)
	y.Apply(func(mu, k int, z float64) float64 {
		if t.Noise != nil {
			sd = math.Sqrt(t.noiseOf(mu, k))
		}
		return (z + sd*noise.NormFloat64()) / truth.S[mu/t.each()]
	}, y)
	if err := t.detect(y, seed); err != nil {
		return err
	}
	if truth.O != nil {
		y.Apply(func(mu, _ int, v float64) float64 { return v + truth.O[mu/t.each()] }, y)
	}
	return nil
}

// detect adds the noise of the sensors' own: photons are counted.
func (t Teacher) detect(y *mat.Dense, seed uint64) error {
	if t.Own.Variance(1) == 0 {
		return nil
	}
	if least := mat.Min(y); t.Own.Photon > 0 && least < 0 {
		return fmt.Errorf("a reading of %.3g is expected, which is a negative number of photons: signals and matrix must not be negative", least)
	}
	rng := stream(seed, "own noise")
	y.Apply(func(_, _ int, v float64) float64 {
		if unit := t.Own.Photon; unit > 0 && v > 0 {
			v = unit * distuv.Poisson{Lambda: v / unit, Src: rng}.Rand()
		}
		return v + math.Sqrt(t.Own.Read)*rng.NormFloat64()
	}, y)
	return nil
}

// noiseOf is the noise variance of a reading where they differ.
func (t Teacher) noiseOf(mu, k int) float64 {
	if len(t.Noise) == t.M {
		return t.Noise[mu]
	}
	return t.Noise[mu*t.P+k]
}

// SpreadNoise draws noise variances of sensors, log-uniform over so many decades, with
// the median NoiseVar.
func (t Teacher) SpreadNoise(decades float64, seed uint64) []float64 {
	rng := stream(seed, "noise variances")
	variances := make([]float64, t.M)
	for mu := range variances {
		variances[mu] = t.NoiseVar * math.Pow(10, decades*(rng.Float64()-0.5))
	}
	return variances
}

// StructuredEnsembles lists the kinds that [Ensemble.Structured] draws.
func StructuredEnsembles() string { return "hadamard, dct, sparse:v" }
