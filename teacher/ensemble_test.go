package teacher

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"gonum.org/v1/gonum/mat"
)

func TestEnsembles(t *testing.T) {
	for _, shape := range [][2]int{{30, 40}, {50, 33}, {1, 7}} {
		for _, text := range []string{
			"iid", "mean:0.5", "binary", "sign", "hadamard", "dct", "correlated:-0.7", "condition:10",
			"sparse:0.5", "duplicated:0.3", "uneven:1", "zero-columns:0.1",
		} {
			var e Ensemble
			if err := e.UnmarshalText([]byte(text)); err != nil {
				t.Fatal(err)
			}
			if e.String() != text {
				t.Errorf("%q became %q", text, e)
			}
			m, n := shape[0], shape[1]
			w, err := e.draw(rand.New(rand.NewPCG(1, 2)), m, n)
			if err != nil {
				t.Fatalf("%s, %d×%d: %v", text, m, n, err)
			}
			square := 0.0
			for _, v := range w {
				square += v * v
			}
			if len(w) != m*n || text != "iid" && math.Abs(square/float64(m)-1) > 1e-12 {
				t.Errorf("%s, %d×%d: %d entries of mean square %g/N", text, m, n, len(w), square/float64(m))
			}
		}
	}
}

// The parameters of the ensembles have the effect that they are named after.
func TestEnsembleParameters(t *testing.T) {
	const m, n = 80, 100
	draw := func(text string) *mat.Dense {
		var e Ensemble
		if err := e.UnmarshalText([]byte(text)); err != nil {
			t.Fatal(err)
		}
		w, err := e.draw(rand.New(rand.NewPCG(1, 2)), m, n)
		if err != nil {
			t.Fatal(err)
		}
		return mat.NewDense(m, n, w)
	}
	condition := func(w mat.Matrix) float64 {
		var svd mat.SVD
		svd.Factorize(w, mat.SVDNone)
		return svd.Cond()
	}
	if c := condition(draw("condition:30")); math.Abs(c/30-1) > 1e-9 {
		t.Errorf("condition:30 has condition number %g", c)
	}
	if c := condition(draw("dct")); math.Abs(c-1) > 1e-9 {
		t.Errorf("rows of the cosine transform have condition number %g", c)
	}
	if mean := mat.Sum(draw("mean:2")) / (m * n) * math.Sqrt(n); math.Abs(mean-2/math.Sqrt(5)) > 0.02 {
		t.Errorf("mean:2 has mean %g, of a root mean square of 1", mean)
	}
	w, along := draw("correlated:0.6"), 0.0
	for mu := range m {
		for i := range n - 1 {
			along += w.At(mu, i) * w.At(mu, i+1) * n / float64(m*(n-1))
		}
	}
	if math.Abs(along-0.6) > 0.05 {
		t.Errorf("correlated:0.6 has correlation %g", along)
	}
}

func TestEnsemblesThatAreNone(t *testing.T) {
	for text, want := range map[string]string{
		"toeplitz": "no matrix of kind", "sparse": "needs the part", "sparse:x": "must be a number",
		"sparse:2": "must be in [1e-06, 1]", "dct:2": "no parameter", "mean:NaN": "must be in",
	} {
		var e Ensemble
		if err := e.UnmarshalText([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q in it", text, err, want)
		}
	}
}
