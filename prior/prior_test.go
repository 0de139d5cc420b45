package prior

import (
	"encoding/json"
	"math"
	"math/big"
	"math/rand/v2"
	"os"
	"testing"

	"pgregory.net/rapid"
)

func difference(t testing.TB, got float64, want json.Number) float64 {
	t.Helper()
	w, _, err := big.ParseFloat(want.String(), 10, 200, big.ToNearestEven)
	if err != nil {
		t.Fatal(err)
	}
	d, _ := new(big.Float).SetPrec(200).Sub(new(big.Float).SetFloat64(got), w).Float64()
	return d
}

func TestGaussBernoulliGolden(t *testing.T) {
	raw, err := os.ReadFile("testdata/denoiser.json")
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Rows []struct {
			Density, Mean, Var  float64
			Lam, Sigma, Xhat, C json.Number
			LogNorm             json.Number `json:"log_norm"`
		}
	}
	if err := json.Unmarshal(raw, &file); err != nil {
		t.Fatal(err)
	}
	if len(file.Rows) == 0 {
		t.Fatal("no golden rows")
	}
	const tol = 1e-12
	var worstVar, worstMean float64
	for i, r := range file.Rows {
		g := GaussBernoulli{Density: r.Density, SignalMean: r.Mean, SignalVar: r.Var}
		lambda, _ := r.Lam.Float64()
		sigma, _ := r.Sigma.Float64()
		var mean, variance [1]float64
		g.Posterior(mean[:], variance[:], []float64{lambda}, []float64{sigma})

		wantVar, _ := r.C.Float64()
		varErr := math.Abs(difference(t, variance[0], r.C)) / wantVar
		wantMean, _ := r.Xhat.Float64()
		ulp := math.Nextafter(math.Abs(wantMean), math.Inf(1)) - math.Abs(wantMean)
		meanErr := max(0, math.Abs(difference(t, mean[0], r.Xhat))-ulp) / math.Sqrt(wantVar)
		worstVar, worstMean = max(worstVar, varErr), max(worstMean, meanErr)
		if varErr > tol || meanErr > tol {
			t.Errorf("row %d %+v: variance off by %.2g relative, mean by %.2g sd", i, r, varErr, meanErr)
		}
		logNorm := g.LogNorm(lambda, sigma) - 0.5*math.Log(2*math.Pi*sigma)
		scale := 1 + lambda*lambda/sigma
		if e := math.Abs(difference(t, logNorm, r.LogNorm)) / scale; e > tol {
			t.Errorf("row %d: log-normaliser %.17g, want %s", i, logNorm, r.LogNorm)
		}
	}
	t.Logf("%d rows, worst: variance %.2g relative, mean %.2g sd beyond one ulp", len(file.Rows), worstVar, worstMean)
}

func TestNoInformationReturnsThePrior(t *testing.T) {
	for _, g := range []GaussBernoulli{{Density: 0.2, SignalMean: 0, SignalVar: 1}, {Density: 0.3, SignalMean: 1.5, SignalVar: 2}, Gaussian(-1, 4)} {
		var mean, variance [1]float64
		g.Posterior(mean[:], variance[:], []float64{12}, []float64{math.Inf(1)})
		if math.Abs(mean[0]-g.Mean()) > 1e-15 || math.Abs(variance[0]-g.Variance()) > 1e-15 {
			t.Errorf("%+v: posterior %g, %g; prior %g, %g", g, mean[0], variance[0], g.Mean(), g.Variance())
		}
		if l := g.LogNorm(12, math.Inf(1)); math.Abs(l) > 1e-15 {
			t.Errorf("%+v: log-normaliser %g, want 0", g, l)
		}
	}
}

// With a diagonal precision the vector posterior is the scalar one, P times.
func TestVectorPosteriorFactorises(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := rapid.IntRange(1, 4).Draw(t, "P")
		g := GaussBernoulli{
			Density:    rapid.SampledFrom([]float64{0.1, 0.5, 1}).Draw(t, "rho"),
			SignalMean: rapid.Float64Range(-2, 2).Draw(t, "mean"),
			SignalVar:  rapid.Float64Range(0.1, 4).Draw(t, "var"),
		}
		lambda := make([]float64, p)
		sigma := make([]float64, p)
		field := make([]float64, p)
		precision := make([]float64, p*p)
		for k := range p {
			lambda[k] = rapid.Float64Range(-4, 4).Draw(t, "lambda")
			sigma[k] = rapid.Float64Range(0.01, 10).Draw(t, "sigma")
			field[k] = lambda[k] / sigma[k]
			precision[k*p+k] = 1 / sigma[k]
		}
		mean, variance := make([]float64, p), make([]float64, p)
		g.Posterior(mean, variance, lambda, sigma)
		vm, vc := make([]float64, p), make([]float64, p*p)
		logNorm, err := g.PosteriorVector(vm, vc, field, precision)
		if err != nil {
			t.Fatal(err)
		}
		want := 0.0
		for k := range p {
			want += g.LogNorm(lambda[k], sigma[k]) + 0.5*lambda[k]*lambda[k]/sigma[k]
		}
		if math.Abs(logNorm-want) > 1e-9*(1+math.Abs(want)) {
			t.Fatalf("log-normaliser %g, the scalar ones sum to %g", logNorm, want)
		}
		for k := range p {
			if math.Abs(vm[k]-mean[k]) > 1e-10*(1+math.Abs(mean[k])) || math.Abs(vc[k*p+k]-variance[k]) > 1e-10 {
				t.Fatalf("signal %d: vector %g ± %g, scalar %g ± %g", k, vm[k], vc[k*p+k], mean[k], variance[k])
			}
			for l := range p {
				if l != k && math.Abs(vc[k*p+l]) > 1e-10 {
					t.Fatalf("covariance (%d,%d) = %g, want 0", k, l, vc[k*p+l])
				}
			}
		}
	})
}

func BenchmarkGaussBernoulli(b *testing.B) {
	g := GaussBernoulli{Density: 0.2, SignalMean: 0, SignalVar: 1}
	const n = 1000
	lambda, sigma := make([]float64, n), make([]float64, n)
	mean, variance := make([]float64, n), make([]float64, n)
	for i := range lambda {
		lambda[i], sigma[i] = math.Sin(float64(i)), 1e-3
	}
	for b.Loop() {
		g.Posterior(mean, variance, lambda, sigma)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/element")
}

// The sum over a block is that of its entries.
func TestSumLogNorm(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, g := range []GaussBernoulli{{Density: 0.2, SignalVar: 1}, {Density: 0.7, SignalMean: 2, SignalVar: 0.1}, {Density: 1, SignalMean: -1, SignalVar: 3}} {
		lambda, sigma := make([]float64, 131), make([]float64, 131)
		want, size := 0.0, 0.0
		for i := range lambda {
			lambda[i], sigma[i] = 3*rng.NormFloat64(), math.Exp(30*rng.Float64()-25)
			if i%10 == 0 {
				sigma[i] = math.Inf(1)
			}
			one := g.LogNorm(lambda[i], sigma[i])
			want += one
			size += math.Abs(one) + lambda[i]*lambda[i]/sigma[i]
		}
		if got := g.SumLogNorm(lambda, sigma); !(math.Abs(got-want) <= 1e-14*size) {
			t.Errorf("%+v: %.17g, one by one %.17g", g, got, want)
		}
	}
}
