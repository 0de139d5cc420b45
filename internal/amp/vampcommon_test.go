package amp

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/internal/cholesky"
	"github.com/calamp/calamp/operator"
	"github.com/calamp/calamp/prior"
	"github.com/calamp/calamp/solver"
)

func TestTurnCommon(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 3))
	for _, p := range []int{3, 4, 9} {
		y := make([]float64, p)
		for k := range y {
			y[k] = rng.NormFloat64()
		}
		z := slices.Clone(y)
		turnCommon(z)
		if math.Abs(z[0]-sum(y)/math.Sqrt(float64(p))) > 1e-15 || math.Abs(cholesky.Dot(y, y)-cholesky.Dot(z, z)) > 1e-14 {
			t.Errorf("%v has become %v", y, z)
		}
		turnCommon(z)
		if far(y, z) > 1e-14 {
			t.Errorf("%v is not %v twice turned", z, y)
		}
	}
}

// TestVectorAMPWithOffsetsIsExactWhereAllIsGaussian: with Gaussian signals, known gains and normal offsets the mean of the signals has the noise Δ+Pσ²,
// and what differs among them Δ; the answer is that of linear algebra, and so is the evidence.
func TestVectorAMPWithOffsetsIsExactWhereAllIsGaussian(t *testing.T) {
	const m, n, p, noise, variance, sd = 15, 25, 4, 0.03, 2.0, 0.6
	rng := rand.New(rand.NewPCG(1, 2))
	w, y := mat.NewDense(m, n, nil), make([]float64, m*p)
	for mu := range m {
		row := w.RawRowView(mu)
		for i := range row {
			row[i] = (0.3 + rng.NormFloat64()) * math.Pow(10, float64(i)/n)
		}
		norm := math.Sqrt(cholesky.Dot(row, row))
		for i := range row {
			row[i] /= norm
		}
	}
	for j := range y {
		y[j] = 3 * rng.NormFloat64()
	}
	op, err := operator.NewDense(m, n, w.RawMatrix().Data)
	if err != nil {
		t.Fatal(err)
	}
	s := newSolver(t, Problem{
		W: op, P: p, Y: y,
		Model: Model{Prior: prior.GaussBernoulli{Density: 1, SignalVar: variance}, Channel: channel.Offset{
			Prior: channel.OffsetPrior{Gain: channel.Uniform(1-1e-9, 1+1e-9), SD: sd}, NoiseVar: noise,
		}},
	}, solver.Settings{Algorithm: solver.VAMP, Covariance: solver.Exchangeable, NoScaleStep: true, Tol: 1e-12})
	if outcome, err := s.Run(t.Context(), 1000); outcome != Converged || err != nil {
		t.Fatalf("outcome %v, error %v", outcome, err)
	}
	want, stated, evidence := mat.NewDense(n, p, nil), 0.0, 0.0 // in the basis, then of signals
	turned := slices.Clone(y)
	for mu := range m {
		turnCommon(turned[mu*p : (mu+1)*p])
	}
	for k := range p {
		var covariance, inverse, gain, left mat.Dense
		covariance.Mul(w, w.T())
		covariance.Scale(variance, &covariance)
		each := noise
		if k == 0 {
			each += p * sd * sd
		}
		for mu := range m {
			covariance.Set(mu, mu, covariance.At(mu, mu)+each)
		}
		if err := inverse.Inverse(&covariance); err != nil {
			t.Fatal(err)
		}
		gain.Mul(w.T(), &inverse)
		gain.Scale(variance, &gain)
		var x, solved mat.VecDense
		known := mat.NewVecDense(m, mat.Col(nil, k, mat.NewDense(m, p, turned)))
		x.MulVec(&gain, known)
		solved.MulVec(&inverse, known)
		logDet, _ := mat.LogDet(&covariance)
		evidence -= 0.5 * (mat.Dot(known, &solved) + logDet + m*math.Log(2*math.Pi))
		left.Mul(&gain, w)
		stated += variance * (n - mat.Trace(&left))
		want.SetCol(k, x.RawVector().Data)
	}
	for i := range n {
		turnCommon(want.RawRowView(i))
	}
	if worst := farOfSignals(want, s.State.X); worst > 1e-6 {
		t.Errorf("signals are off by %.2g", worst)
	}
	if got := s.Iteration.LogEvidence(); math.Abs(got-evidence) > 1e-6*math.Abs(evidence) {
		t.Errorf("log-evidence %.10g, want %.10g", got, evidence)
	}
	if got := sum(s.State.C); math.Abs(got/stated-1) > 1e-6 {
		t.Errorf("variances add up to %.8g, want %.8g", got, stated)
	}
}
