package online_test

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/calamp/calamp"
	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/internal/tests"
	"github.com/calamp/calamp/online"
	"github.com/calamp/calamp/operator"
	"github.com/calamp/calamp/prior"
)

// choices is a stream of samples of the same sensors, each with one of several matrices.
type choices struct {
	m, n     int
	signal   prior.GaussBernoulli
	noise    float64
	gains    channel.GainPrior
	matrices []operator.Operator
	entries  [][]float64
	s        []float64
	x, y     [][]float64
}

func drawChoices(t *testing.T, m, n, matrices, samples int, seed uint64) *choices {
	t.Helper()
	rng := rand.New(rand.NewPCG(38, seed))
	c := &choices{m: m, n: n, signal: prior.GaussBernoulli{Density: 0.1, SignalVar: 1}, noise: 1e-6, gains: channel.Uniform(0.8, 1.2)}
	for range matrices {
		table := make([]float64, m*n)
		for i := range table {
			table[i] = rng.NormFloat64() / math.Sqrt(float64(n))
		}
		w, err := operator.NewDense(m, n, slices.Clone(table))
		if err != nil {
			t.Fatal(err)
		}
		c.entries, c.matrices = append(c.entries, table), append(c.matrices, w)
	}
	for range m {
		c.s = append(c.s, 0.8+0.4*rng.Float64())
	}
	for k := range samples {
		x, y := make([]float64, n), make([]float64, m)
		for i := range x {
			if rng.Float64() < c.signal.Density {
				x[i] = rng.NormFloat64()
			}
		}
		for mu := range y {
			z := math.Sqrt(c.noise) * rng.NormFloat64()
			for i, w := range c.entries[k%matrices][mu*n : (mu+1)*n] {
				z += w * x[i]
			}
			y[mu] = z / c.s[mu]
		}
		c.x, c.y = append(c.x, x), append(c.y, y)
	}
	return c
}

func (c *choices) calibrator(t *testing.T, w operator.Operator, opt *online.Options) *online.Calibrator {
	t.Helper()
	calibrator, err := online.NewCalibrator(w, c.signal, channel.Gain{Prior: c.gains, NoiseVar: c.noise}, opt)
	if err != nil {
		t.Fatal(err)
	}
	return calibrator
}

func mustOperator(t *testing.T) func(w operator.Operator, err error) operator.Operator {
	return func(w operator.Operator, err error) operator.Operator {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return w
	}
}

// absorb takes samples in from first on, and is the mean square error of signals.
func (c *choices) absorb(t *testing.T, to *online.Calibrator, first, end int, matrix func(k int) []float64) (mse float64) {
	t.Helper()
	for k := first; k < end; k++ {
		if matrix != nil {
			if err := to.Use(matrix(k)); err != nil {
				t.Fatal(err)
			}
		}
		e, err := to.Absorb(context.Background(), c.y[k])
		if err != nil {
			t.Fatal(err)
		}
		if e.Reject != online.WarmingUp && !e.Committed {
			t.Errorf("sample %d: %v", k, e.Reject)
		}
		for i, x := range c.x[k] {
			mse += (x - e.X[i]) * (x - e.X[i]) / float64(c.n*(end-first))
		}
	}
	return mse
}

// Samples of eight matrices are found as those of one, errors of signals and gains within a tenth.
func TestSamplesOfSeveralMatrices(t *testing.T) {
	tests.Long(t)
	const samples, seeds = 20, 6
	var x, s [2]float64
	for seed := range uint64(seeds) {
		for i, matrices := range []int{1, 8} {
			c := drawChoices(t, 200, 300, matrices, samples, seed)
			to := c.calibrator(t, mustOperator(t)(operator.NewChoice(c.matrices)), nil)
			c.absorb(t, to, 0, 10, c.named)
			x[i] += math.Sqrt(c.absorb(t, to, 10, samples, c.named)) / seeds
			p := to.Posterior()
			s[i] += math.Sqrt(offBy(p.S, c.s)) / seeds
		}
	}
	t.Logf("errors of signals %.4g, %.4g, of gains %.4g, %.4g", x[0], x[1], s[0], s[1])
	if math.Abs(x[1]/x[0]-1) > 0.1 || math.Abs(s[1]/s[0]-1) > 0.1 {
		t.Errorf("errors of signals %.4g, of gains %.4g, with one matrix %.4g and %.4g", x[1], s[1], x[0], s[0])
	}
}

func (c *choices) named(k int) []float64 { return []float64{float64(k % len(c.matrices))} }

func (c *choices) brought(k int) []float64 { return c.entries[k%len(c.matrices)] }

// offBy is the mean square of s, at the scale of the truth, relative to it.
func offBy(s, truth []float64) float64 {
	along, norm, off, size := 0.0, 0.0, 0.0, 0.0
	for mu, v := range truth {
		along, norm = along+s[mu]*v, norm+s[mu]*s[mu]
	}
	for mu, v := range truth {
		d := along/norm*s[mu] - v
		off, size = off+d*d, size+v*v
	}
	return off / size
}

// What samples bring is what they could name, bit by bit; so is one table for all, and a stream that goes on from its state, amid a warm-up as well.
func TestMatricesOfSamplesAreTheSame(t *testing.T) {
	const samples = 14
	for _, warmUp := range []int{0, 10} {
		c := drawChoices(t, 60, 80, 3, samples, 1)
		opt := &online.Options{WarmUp: warmUp}
		several := func() operator.Operator { return mustOperator(t)(operator.NewChoice(c.matrices)) }
		named := c.calibrator(t, several(), opt)
		c.absorb(t, named, 0, samples, c.named)
		brought := c.calibrator(t, operator.NewBrought(c.matrices[2]), opt)
		c.absorb(t, brought, 0, samples, c.brought)
		equalStates(t, fmt.Sprintf("warm-up %d, brought", warmUp), named.Snapshot(), brought.Snapshot())
		for _, kind := range []struct {
			w      func() operator.Operator
			matrix func(k int) []float64
		}{{several, c.named}, {func() operator.Operator { return operator.NewBrought(c.matrices[2]) }, c.brought}} {
			first := c.calibrator(t, kind.w(), opt)
			c.absorb(t, first, 0, 6, kind.matrix)
			raw, err := first.Snapshot().MarshalBinary()
			if err != nil {
				t.Fatal(err)
			}
			var state online.State
			if err := state.UnmarshalBinary(raw); err != nil {
				t.Fatal(err)
			}
			second := c.calibrator(t, kind.w(), opt)
			if err := second.Restore(&state); err != nil {
				t.Fatal(err)
			}
			c.absorb(t, second, 6, samples, kind.matrix)
			equalStates(t, fmt.Sprintf("warm-up %d, continued", warmUp), named.Snapshot(), second.Snapshot())
			if other := c.calibrator(t, c.matrices[0], opt); warmUp > 0 {
				if err := other.Restore(&state); err == nil || !strings.Contains(err.Error(), "matrices of their own") {
					t.Errorf("a stream of one matrix goes on from a state whose samples have several: %v", err)
				}
			}
		}
	}
	c := drawChoices(t, 60, 80, 1, samples, 1)
	one, same := c.calibrator(t, c.matrices[0], nil), c.calibrator(t, mustOperator(t)(operator.NewChoice([]operator.Operator{c.matrices[0], c.matrices[0]})), &online.Options{})
	c.absorb(t, one, 0, samples, nil)
	if mse := c.absorb(t, same, 0, samples, func(k int) []float64 { return []float64{float64(k % 2)} }); mse > 1e-4 {
		t.Errorf("mean square error %g", mse)
	}
	if off := offBy(one.Posterior().S, same.Posterior().S); off > 1e-6 {
		t.Errorf("gains of two tables that are the same are %g off those of one", off)
	}
}

func equalStates(t *testing.T, what string, a, b *online.State) {
	t.Helper()
	rawA, errA := a.MarshalBinary()
	rawB, errB := b.MarshalBinary()
	if errA != nil || errB != nil || !slices.Equal(rawA, rawB) {
		t.Errorf("%s: the states differ (%v, %v)", what, errA, errB)
	}
}

// A sample whose matrix is not known, or is none, is an error, and changes nothing.
func TestSamplesWithoutTheirMatrix(t *testing.T) {
	c := drawChoices(t, 60, 80, 3, 2, 1)
	several, own, one := c.calibrator(t, mustOperator(t)(operator.NewChoice(c.matrices)), nil), c.calibrator(t, operator.NewBrought(c.matrices[0]), nil), c.calibrator(t, c.matrices[0], nil)
	endless := slices.Clone(c.entries[0])
	endless[7] = math.Inf(1)
	for _, wrong := range []struct {
		to     *online.Calibrator
		matrix []float64
		want   string
	}{
		{several, nil, "no matrix, expected which one of 0 to 2 it is"},
		{several, []float64{3}, "matrix 3, expected one of 0 to 2"},
		{several, []float64{math.NaN()}, "matrix NaN, expected one of 0 to 2"},
		{several, c.entries[0], "a matrix of its own, expected which one of 0 to 2 it is"},
		{own, nil, "no matrix: expected one with every sample"},
		{own, c.entries[0][1:], "a matrix of 4799 numbers, expected the 4800 entries"},
		{own, endless, "expected a finite number"},
		{one, []float64{0}, "W is the same for all samples"},
	} {
		if err := wrong.to.Use(wrong.matrix); err == nil || !strings.Contains(err.Error(), wrong.want) {
			t.Errorf("%v, want %q", err, wrong.want)
		}
	}
	if _, err := several.Absorb(context.Background(), c.y[0]); err == nil || !strings.Contains(err.Error(), "which matrix the sample has is not known") {
		t.Errorf("a sample without a matrix: %v", err)
	}
	c.absorb(t, several, 0, 1, c.named)
	if _, err := several.Absorb(context.Background(), c.y[1]); err == nil {
		t.Error("a sample has the matrix of the one before")
	}
	if several.Snapshot().Samples != 1 {
		t.Error("a refused sample has changed the state")
	}
	if _, err := operator.NewChoice([]operator.Operator{c.matrices[0], mustOperator(t)(operator.NewDense(60, 79, slices.Repeat([]float64{1}, 60*79)))}); err == nil {
		t.Error("matrices of different sizes")
	}
}

// Complex matrices, named and brought.
func TestSamplesOfComplexMatrices(t *testing.T) {
	const m, n, samples = 90, 60, 12
	rng := rand.New(rand.NewPCG(38, 7))
	normal := func() complex128 { return complex(rng.NormFloat64(), rng.NormFloat64()) }
	var matrices []operator.Operator
	var entries [][]complex128
	for range 3 {
		table := make([]complex128, m*n)
		for i := range table {
			table[i] = normal() / complex(math.Sqrt(2*n), 0)
		}
		matrices, entries = append(matrices, mustOperator(t)(operator.NewComplex(m, n, table))), append(entries, table)
	}
	gains := make([]float64, m)
	for mu := range gains {
		gains[mu] = 0.8 + 0.4*rng.Float64()
	}
	gain := channel.ComplexGain{Prior: channel.ComplexPrior{Lo: 0.8, Hi: 1.2, Concentration: math.Inf(1)}, NoiseVar: 2e-6}
	signal := prior.ComplexGaussBernoulli{Density: 0.1, SignalVar: 1}
	named, err := online.NewCalibrator(mustOperator(t)(operator.NewChoice(matrices)), signal, gain, nil)
	if err != nil {
		t.Fatal(err)
	}
	brought, err := online.NewCalibrator(operator.NewBrought(matrices[0]), signal, gain, nil)
	if err != nil {
		t.Fatal(err)
	}
	for k := range samples {
		x, y, flat := make([]complex128, n), make([]float64, 0, 2*m), make([]float64, 0, 2*m*n)
		for i := range x {
			if rng.Float64() < 0.1 {
				x[i] = normal() / math.Sqrt2
			}
		}
		for mu := range m {
			z := 1e-3 * normal()
			for i, w := range entries[k%3][mu*n : (mu+1)*n] {
				z += w * x[i]
				flat = append(flat, real(w), imag(w))
			}
			y = append(y, real(z)/gains[mu], imag(z)/gains[mu])
		}
		if err := named.Use([]float64{float64(k % 3)}); err != nil {
			t.Fatal(err)
		}
		if err := brought.Use(flat); err != nil {
			t.Fatal(err)
		}
		a, errA := named.Absorb(context.Background(), y)
		b, errB := brought.Absorb(context.Background(), y)
		if errA != nil || errB != nil || a.Status != calamp.Converged || !slices.Equal(a.X, b.X) {
			t.Fatalf("sample %d: %v, %v, %v", k, a.Status, errA, errB)
		}
		off := 0.0
		for i, v := range x {
			off += math.Pow(a.X[i]-real(v), 2) + math.Pow(a.X[n+i]-imag(v), 2)
		}
		if k > 2 && off > 1e-2 {
			t.Errorf("sample %d: the error is %g", k, off)
		}
	}
}
