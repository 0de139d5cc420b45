package online_test

import (
	"cmp"
	"context"
	"math"
	"slices"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/calamp/calamp"
	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/internal/dataset"
	"github.com/calamp/calamp/online"
	"github.com/calamp/calamp/prior"
	"github.com/calamp/calamp/solver"
	"github.com/calamp/calamp/teacher"
)

// Real signals, which no prior here describes: windows of an electrocardiogram,
// compressed to 8 % of their cosine coefficients.
const (
	window  = 512
	density = 0.08
)

// electrocardiogram returns the coefficients of all windows, window×210, in
// units of the standard deviation of those that are not zero.
func electrocardiogram(t *testing.T) *mat.Dense {
	t.Helper()
	a, err := dataset.LoadArray("testdata/ecg/ecg_mitbih208_108000.npz", "microvolt")
	if err != nil {
		t.Fatal(err)
	}
	windows := len(a.Data) / window
	signal := mat.NewDense(windows, window, a.Data[:windows*window])
	var x mat.Dense
	x.Mul(cosines(window), signal.T())
	square, kept := 0.0, 0
	for k := range windows {
		c := largest(mat.Col(nil, k, &x), int(math.Round(density*window)))
		x.SetCol(k, c)
		for _, v := range c {
			if v != 0 {
				square += v * v
				kept++
			}
		}
	}
	x.Scale(1/math.Sqrt(square/float64(kept)), &x)
	return &x
}

// cosines is the orthonormal discrete cosine transform (type II).
func cosines(n int) *mat.Dense {
	d := mat.NewDense(n, n, nil)
	d.Apply(func(k, i int, _ float64) float64 {
		norm := math.Sqrt(2 / float64(n))
		if k == 0 {
			norm = math.Sqrt(1 / float64(n))
		}
		return norm * math.Cos(math.Pi*float64(k)*(float64(i)+0.5)/float64(n))
	}, d)
	return d
}

// largest sets all but the count entries of largest size to zero.
func largest(x []float64, count int) []float64 {
	order := make([]int, len(x))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(i, j int) int { return cmp.Compare(math.Abs(x[j]), math.Abs(x[i])) })
	for _, i := range order[count:] {
		x[i] = 0
	}
	return x
}

func TestElectrocardiogram(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	x := electrocardiogram(t)
	_, windows := x.Dims()
	noises := []float64{1e-4}
	if *long {
		noises = append(noises, 1e-6)
	}
	for _, noise := range noises {
		te := teacher.Teacher{
			N: window, M: 205, P: windows, X: x,
			Signal:   prior.GaussBernoulli{Density: density, SignalVar: 1},
			Gain:     channel.Uniform(0.9, 1.1),
			NoiseVar: noise,
		}
		s := newStream(t, te, 3)
		c := s.calibrator(t, &online.Options{Settings: solver.Settings{Threads: 1}})
		committed, spent := 0, 0
		var errors []float64
		rejects := map[string]int{}
		for k := range windows {
			est, err := c.Absorb(context.Background(), s.sample(k))
			if err != nil {
				t.Fatal(err)
			}
			if est.Committed {
				committed++
			} else {
				rejects[est.Reject.String()]++
			}
			spent += est.Iterations
			_, scaled := s.xError(est, k)
			errors = append(errors, scaled)
		}
		post := c.Posterior()
		score := calamp.Score(nil, post.S, calamp.Truth{S: s.Truth.S})
		t.Logf("Δ = %g: correlation of s %.5f, %d of %d windows learned from, %v, flagged %v, %d iterations a window, median MSE of x %.2g, of the last 50 %.2g", noise,
			1-score.SOneMinusCNCC, committed, windows, rejects, post.Flagged, spent/windows, median(errors), median(errors[windows-50:]))
		if !(1-score.SOneMinusCNCC >= 0.99) {
			t.Errorf("Δ = %g: correlation of s %g, expected at least 0.99", noise, 1-score.SOneMinusCNCC)
		}
	}
}
