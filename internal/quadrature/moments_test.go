package quadrature

import (
	"encoding/json"
	"math"
	"math/big"
	"math/rand/v2"
	"os"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/calamp/calamp/internal/vector"
)

// goldenRow is one case of testdata/moments.json, computed with 60 digits.
type goldenRow struct {
	N       float64     `json:"n"`
	Tau     json.Number `json:"tau"`
	B       json.Number `json:"B"`
	Lo      float64     `json:"a"`
	Hi      float64     `json:"b"`
	LogNorm json.Number `json:"log_norm"`
	Mean    json.Number `json:"mean"`
	Var     json.Number `json:"var"`
}

func goldenRows(t testing.TB) []goldenRow {
	t.Helper()
	raw, err := os.ReadFile("testdata/moments.json")
	if err != nil {
		t.Fatal(err)
	}
	var file struct{ Rows []goldenRow }
	if err := json.Unmarshal(raw, &file); err != nil {
		t.Fatal(err)
	}
	if len(file.Rows) == 0 {
		t.Fatal("no golden rows")
	}
	return file.Rows
}

func number(t testing.TB, s json.Number) float64 {
	t.Helper()
	v, err := s.Float64()
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// difference is got - want, with all 50 digits of want: a mean near 1 whose standard
// deviation is 1e-9 must not be rounded before the comparison.
func difference(t testing.TB, got float64, want json.Number) float64 {
	t.Helper()
	w, _, err := big.ParseFloat(want.String(), 10, 200, big.ToNearestEven)
	if err != nil {
		t.Fatal(err)
	}
	d, _ := new(big.Float).SetPrec(200).Sub(new(big.Float).SetFloat64(got), w).Float64()
	return d
}

func TestGainMomentsGolden(t *testing.T) {
	const tol = 1e-12
	var worstVar, worstMean, worstLog float64
	for i, r := range goldenRows(t) {
		tau, b := number(t, r.Tau), number(t, r.B)
		logNorm, mean, variance := GainMoments(r.N, tau, b, r.Lo, r.Hi)

		wantVar := number(t, r.Var)
		varErr := math.Abs(difference(t, variance, r.Var)) / wantVar
		worstVar = max(worstVar, varErr)
		if varErr > tol {
			t.Errorf("row %d (n=%g τ=%g B=%g [%g,%g]): variance %g, want %s: relative error %.2g", i, r.N, tau, b, r.Lo, r.Hi, variance, r.Var, varErr)
		}

		// A double near the mean is spaced by its ulp, so no result can be
		// closer than half of that: the bound is 1e-12 sd plus one ulp.
		wantMean := number(t, r.Mean)
		ulp := math.Nextafter(wantMean, math.Inf(1)) - wantMean
		sd := math.Sqrt(wantVar)
		meanErr := max(0, math.Abs(difference(t, mean, r.Mean))-ulp) / sd
		worstMean = max(worstMean, meanErr)
		if meanErr > tol {
			t.Errorf("row %d (n=%g τ=%g B=%g [%g,%g]): mean %.17g, want %s: %.2g sd off", i, r.N, tau, b, r.Lo, r.Hi, mean, r.Mean, meanErr)
		}

		// The log-normaliser is a sum of terms of this size, which bounds its rounding
		// error.
		scale := 1 + math.Abs(tau*mean*mean) + math.Abs(b*mean) + r.N
		logErr := math.Abs(difference(t, logNorm, r.LogNorm)) / scale
		worstLog = max(worstLog, logErr)
		if logErr > tol {
			t.Errorf("row %d: log-normaliser %.17g, want %s", i, logNorm, r.LogNorm)
		}
	}
	t.Logf("worst: variance %.2g relative, mean %.2g sd beyond one ulp, log-normaliser %.2g of its terms", worstVar, worstMean, worstLog)
}

func TestGainMomentsNeverNaN(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.OneOf(rapid.Just(0.0), rapid.Float64Range(0, 1e6)).Draw(t, "n")
		tau := rapid.OneOf(rapid.Just(0.0), rapid.Float64Range(0, math.MaxFloat64), rapid.Float64Range(0, 1e20)).Draw(t, "tau")
		b := rapid.OneOf(rapid.Just(0.0), rapid.Float64(), rapid.Float64Range(-1e20, 1e20)).Filter(func(v float64) bool {
			return !math.IsInf(v, 0) && !math.IsNaN(v)
		}).Draw(t, "B")
		lo := rapid.Float64Range(1e-3, 10).Draw(t, "lo")
		hi := lo * (1 + rapid.Float64Range(1e-6, 10).Draw(t, "width"))
		logNorm, mean, variance := GainMoments(n, tau, b, lo, hi)
		if math.IsNaN(logNorm) || math.IsInf(logNorm, 0) {
			t.Fatalf("log-normaliser %g", logNorm)
		}
		if !(mean >= lo && mean <= hi) {
			t.Fatalf("mean %g outside [%g, %g]", mean, lo, hi)
		}
		if !(variance >= 0) || variance > 0.25*(hi-lo)*(hi-lo)*(1+1e-12) {
			t.Fatalf("variance %g", variance)
		}
		// The density is log-concave, at least as concave as the Gaussian of
		// precision τ (Brascamp–Lieb).
		if variance*tau > 1+1e-9 {
			t.Fatalf("variance·τ = %g > 1", variance*tau)
		}
	})
}

// Every rule is accurate wherever it is chosen. It is compared with Gauss–Legendre
// quadrature of 160 nodes over a wider interval.
func TestRulesSuffice(t *testing.T) {
	fine := legendre(160)
	used := map[int]int{}
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.SampledFrom([]float64{0, 1, 1.5, 3, 10, 100, 1e4}).Draw(t, "n")
		tau := math.Exp(rapid.Float64Range(-4, 35).Draw(t, "log tau"))
		s := rapid.Float64Range(0.1, 3).Draw(t, "s")
		b := tau*s - n/s
		lo := s * rapid.Float64Range(0.1, 1.5).Draw(t, "lo")
		hi := max(lo*1.0001, s*rapid.Float64Range(0.5, 10).Draw(t, "hi"))
		var w workspace
		w.load([]float64{n}, []float64{tau}, []float64{b}, 0, 0)
		vector.GainShapes(w.n[:vector.Lanes], w.tau[:vector.Lanes], w.b[:vector.Lanes], lo, hi, w.shapes[:])
		w.finishNarrow(make([]float64, 1), make([]float64, 1))
		w.choose(lo, hi)
		vector.GainEnds(w.n[:], w.tau[:], w.b[:], lo, hi, legendreLadder, w.shapes[:])
		task := slices.Index(w.sizes[:], 1) // -1 where it needs no rule
		used[task]++
		shape := func(what int) float64 { return w.shapes[what*vector.Lanes] }
		mode := shape(vector.ShapeMode)
		d := offsetDensity{n: n, tau: tau, slope: shape(vector.ShapeSlope), mode: mode}
		left, right := max(lo-mode, 1.3*shape(vector.ShapeLeft)), min(hi-mode, 1.3*shape(vector.ShapeRight))
		half, mid := 0.5*(right-left), 0.5*(right+left)
		var mass, mean, variance float64
		weight := func(i int) float64 { return fine.w[i] * math.Exp(d.at(mid+half*fine.x[i])) }
		for i, x := range fine.x {
			mass += weight(i)
			mean += weight(i) * x
		}
		mean /= mass
		for i, x := range fine.x {
			variance += weight(i) * (x - mean) * (x - mean)
		}
		variance *= half * half / mass
		sd := math.Sqrt(variance)
		logNorm, gotMean, gotVariance := GainMoments(n, tau, b, lo, hi)
		wantLog := n*math.Log(mode) + mode*(b-0.5*tau*mode) + math.Log(half*mass)
		wantMean := mode + (mid + half*mean)
		ulp := math.Nextafter(wantMean, math.Inf(1)) - wantMean
		scale := 1 + math.Abs(tau*mode*mode) + math.Abs(b*mode) + n
		if math.Abs(logNorm-wantLog) > 1e-13*scale || math.Abs(gotMean-wantMean) > 3e-13*sd+2*ulp || math.Abs(gotVariance/variance-1) > 1e-12 {
			t.Fatalf("task %d: log-normaliser off by %.2g of its terms, mean by %.2g sd, variance by %.2g", task,
				(logNorm-wantLog)/scale, (gotMean-wantMean)/sd, gotVariance/variance-1)
		}
	})
	t.Logf("tasks used: %v", used)
}

// Moments of the flat density and of a pure power have closed forms.
func TestGainMomentsClosedForms(t *testing.T) {
	_, mean, variance := GainMoments(0, 0, 0, 0.5, 1.5)
	if math.Abs(mean-1) > 1e-15 || math.Abs(variance-1.0/12) > 1e-15 {
		t.Errorf("uniform on [0.5, 1.5]: mean %g, variance %g", mean, variance)
	}
	logNorm, mean, _ := GainMoments(2, 0, 0, 1, 2)
	if math.Abs(logNorm-math.Log(7.0/3)) > 1e-14 || math.Abs(mean-(15.0/4)/(7.0/3)) > 1e-14 {
		t.Errorf("s² on [1, 2]: log-normaliser %g, mean %g", logNorm, mean)
	}
}

func TestGainMomentsBatch(t *testing.T) {
	n, tau, b := []float64{0, 3, 10}, []float64{0, 1e3, 1e12}, []float64{0, 1.1e3, 0.9e12}
	logMass, mean, variance := make([]float64, 3), make([]float64, 3), make([]float64, 3)
	allocs := testing.AllocsPerRun(10, func() {
		GainMomentsBatch(logMass, mean, variance, n, tau, b, 4, 4, 0.5, 1.5)
	})
	if allocs != 0 {
		t.Errorf("%g allocations", allocs)
	}
	for mu := range n {
		l, m, v := GainMoments(n[mu], tau[mu]+4, b[mu]+4, 0.5, 1.5)
		if logNorm := logMass[mu] + m*(b[mu]+4-0.5*(tau[mu]+4)*m); logNorm != l || mean[mu] != m || variance[mu] != v {
			t.Errorf("sensor %d: %g, %g, %g in a batch, %g, %g, %g alone", mu, logNorm, mean[mu], variance[mu], l, m, v)
		}
	}
}

// A sensor's moments are the same bits whatever the other sensors of its batch are:
// here of all counts, as missing readings cause them, and of all widths.
func TestSensorsDoNotDependOnTheirCompany(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	const m = 200
	var n, tau, b, logMass, mean, variance [m]float64
	for mu := range m {
		n[mu] = []float64{10, 10, 10, 9, 8, 0.5, 0, 200}[rng.IntN(8)]
		tau[mu] = math.Pow(10, 14*rng.Float64())
		b[mu] = tau[mu] * (0.4 + 1.2*rng.Float64())
	}
	GainMomentsBatch(logMass[:], mean[:], variance[:], n[:], tau[:], b[:], 0, 0, 0.5, 1.5)
	for mu := range m {
		l, e, v := GainMoments(n[mu], tau[mu], b[mu], 0.5, 1.5)
		if logNorm := logMass[mu] + e*(b[mu]-0.5*tau[mu]*e); logNorm != l || mean[mu] != e || variance[mu] != v {
			t.Errorf("sensor %d (n=%g τ=%g B=%g): %g, %g, %g among others, %g, %g, %g alone",
				mu, n[mu], tau[mu], b[mu], logMass[mu], mean[mu], variance[mu], l, e, v)
		}
	}
}

// The sensors are those of ten signals, early in a run (wide posteriors) and late
// (narrow ones).
func BenchmarkGainMomentsBatch(b *testing.B) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, c := range []struct {
		name   string
		lo, hi float64 // of log10 τ
	}{{"hard", 0, 4}, {"narrow", 6, 12}} {
		const m = 1024
		var n, tau, shift, logNorm, mean, variance [m]float64
		for mu := range m {
			n[mu] = 10
			tau[mu] = math.Pow(10, c.lo+(c.hi-c.lo)*rng.Float64())
			shift[mu] = tau[mu] * (0.55 + 0.9*rng.Float64())
		}
		b.Run(c.name, func(b *testing.B) {
			for b.Loop() {
				GainMomentsBatch(logNorm[:], mean[:], variance[:], n[:], tau[:], shift[:], 0, 0, 0.5, 1.5)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/m, "ns/sensor")
		})
	}
}
