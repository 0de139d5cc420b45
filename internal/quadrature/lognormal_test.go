package quadrature

import (
	"encoding/json"
	"math"
	"os"
	"testing"

	"pgregory.net/rapid"
)

// logNormalRow is one case of testdata/lognormal.json: 60-digit quadrature by mpmath.
type logNormalRow struct {
	N, Tau, B, Median, Precision, Lo, Hi float64
	LogNorm, Mean, Var                   json.Number
}

func logNormalRows(t testing.TB) []logNormalRow {
	t.Helper()
	raw, err := os.ReadFile("testdata/lognormal.json")
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Rows []struct {
			N         float64     `json:"n"`
			Tau       float64     `json:"tau"`
			B         float64     `json:"B"`
			Median    float64     `json:"median"`
			Precision float64     `json:"precision"`
			Lo        float64     `json:"a"`
			Hi        float64     `json:"b"`
			LogNorm   json.Number `json:"log_norm"`
			Mean      json.Number `json:"mean"`
			Var       json.Number `json:"var"`
		}
	}
	if err := json.Unmarshal(raw, &file); err != nil {
		t.Fatal(err)
	}
	var rows []logNormalRow
	for _, r := range file.Rows {
		rows = append(rows, logNormalRow(r))
	}
	if len(rows) == 0 {
		t.Fatal("no golden rows")
	}
	return rows
}

func TestLogNormalMomentsGolden(t *testing.T) {
	const tol = 1e-12
	var worstVar, worstMean, worstLog float64
	for i, r := range logNormalRows(t) {
		logMass, mean, variance := LogNormalMoments(r.N, r.Tau, r.B, r.Median, r.Precision, r.Lo, r.Hi)
		logNorm := logMass + mean*(r.B-0.5*r.Tau*mean)
		wantVar, wantMean := number(t, r.Var), number(t, r.Mean)
		varErr := math.Abs(difference(t, variance, r.Var)) / wantVar
		ulp := math.Nextafter(wantMean, math.Inf(1)) - wantMean
		meanErr := max(0, math.Abs(difference(t, mean, r.Mean))-ulp) / math.Sqrt(wantVar)
		scale := 1 + math.Abs(r.Tau*mean*mean) + math.Abs(r.B*mean) + r.N + r.Precision*math.Pow(math.Log(mean/r.Median), 2)
		logErr := math.Abs(difference(t, logNorm, r.LogNorm)) / scale
		worstVar, worstMean, worstLog = max(worstVar, varErr), max(worstMean, meanErr), max(worstLog, logErr)
		if varErr > tol || meanErr > tol || logErr > tol {
			t.Errorf("row %d (n=%g τ=%g B=%g m=%g λ=%g [%g,%g]): mean %.17g, want %s (%.2g sd off); variance %.2g off; log-normaliser %.17g, want %s", i, r.N, r.Tau, r.B, r.Median, r.Precision, r.Lo, r.Hi, mean, r.Mean, meanErr, varErr, logNorm, r.LogNorm)
		}
		if r.Tau == 0 {
			continue
		}
		// The other way in, by t = B/τ, has the same moments.
		q := NewLogNormalPosterior(r.N, r.Tau, r.B/r.Tau, r.Median, r.Precision, r.Lo, r.Hi)
		if d := math.Abs(q.Var/wantVar - 1); d > 1e-11 || math.Abs(q.Mean-wantMean) > 1e-11*math.Sqrt(wantVar)+3*ulp {
			t.Errorf("row %d: posterior %+v, want mean %g and variance %g", i, q, wantMean, wantVar)
		}
	}
	t.Logf("worst: variance %.2g relative, mean %.2g sd beyond one ulp, log-normaliser %.2g of its terms", worstVar, worstMean, worstLog)
}

// Identities that hold for any density, by parts: nothing in them is as the code computes it.
func TestLogNormalPosteriorIdentities(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.SampledFrom([]float64{1, 2, 5, 30}).Draw(t, "n")
		sd := rapid.SampledFrom([]float64{0.02, 0.1, 0.5, 1}).Draw(t, "sd")
		tau := math.Exp(rapid.Float64Range(-3, 20).Draw(t, "log tau"))
		at := math.Exp(2 * sd * rapid.Float64Range(-1, 1).Draw(t, "at"))
		lo, hi := math.Exp(-3*sd), math.Exp(3*sd)
		q := NewLogNormalPosterior(n, tau, at, 1, 1/(sd*sd), lo, hi)
		shrink := (hi-q.Mean)*q.AtHi + (q.Mean-lo)*q.AtLo + (n-1)*q.Spread + q.PriorOf/(sd*sd)
		if want := 1 - tau*q.Var; math.Abs(shrink-want) > 1e-9 {
			t.Fatalf("1-τ·variance = %g, by parts %g (%+v)", want, shrink, q)
		}
		// [s(s-ŝ)q] over the range.
		ends := hi*(hi-q.Mean)*q.AtHi + lo*(q.Mean-lo)*q.AtLo
		cov := 2*q.Mean*q.Var + q.Third // Cov(s, s²)
		if want := q.Mean - q.CovLog/(sd*sd) - tau*(cov-at*q.Var); math.Abs(ends-want) > 1e-9*(1+tau*cov) {
			t.Fatalf("ends %g, by parts %g", ends, want)
		}
	})
}

func TestLogNormalMomentsNeverNaN(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.OneOf(rapid.Just(0.0), rapid.Float64Range(0, 1e6)).Draw(t, "n")
		tau := rapid.OneOf(rapid.Just(0.0), rapid.Float64Range(0, 1e300), rapid.Float64Range(0, 1e20)).Draw(t, "tau")
		b := rapid.OneOf(rapid.Just(0.0), rapid.Float64Range(-1e300, 1e300), rapid.Float64Range(-1e20, 1e20)).Draw(t, "B")
		median := rapid.Float64Range(1e-3, 1e3).Draw(t, "median")
		lambda := math.Exp(rapid.Float64Range(-3, 18).Draw(t, "log λ"))
		lo := median * rapid.Float64Range(1e-3, 2).Draw(t, "lo")
		hi := lo * (1 + rapid.Float64Range(1e-6, 100).Draw(t, "width"))
		logMass, mean, variance := LogNormalMoments(n, tau, b, median, lambda, lo, hi)
		if math.IsNaN(logMass) || math.IsInf(logMass, 0) || !(mean >= lo && mean <= hi) || !(variance >= 0) || variance > 0.25*(hi-lo)*(hi-lo)*(1+1e-9) {
			t.Fatalf("log-mass %g, mean %g, variance %g on [%g, %g]", logMass, mean, variance, lo, hi)
		}
	})
}

func BenchmarkLogNormalMoments(b *testing.B) {
	for _, c := range []struct {
		name string
		tau  float64
	}{{"wide", 30}, {"round", 1e5}, {"narrow", 1e12}} {
		b.Run(c.name, func(b *testing.B) {
			for b.Loop() {
				LogNormalMoments(10, c.tau, 1.1*c.tau, 1, 100, 0.05, 20)
			}
		})
	}
}
