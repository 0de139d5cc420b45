package amp

import (
	"context"
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/operator"
	"github.com/calamp/calamp/prior"
	"github.com/calamp/calamp/solver"
)

// illConditioned is a W of so many rows and columns whose singular values fall from the first to the last by a factor of the condition number.
func illConditioned(m, n int, condition float64, rng *rand.Rand) *mat.Dense {
	w := mat.NewDense(m, n, nil)
	w.Apply(func(int, int, float64) float64 { return rng.NormFloat64() }, w)
	var f mat.SVD
	f.Factorize(w, mat.SVDThin)
	var u, v, left mat.Dense
	f.UTo(&u)
	f.VTo(&v)
	values := make([]float64, m)
	for i := range values {
		values[i] = math.Pow(condition, -float64(i)/float64(m-1))
	}
	left.Mul(&u, mat.NewDiagDense(m, values))
	w.Mul(&left, v.T())
	w.Scale(math.Sqrt(float64(m))/mat.Norm(w, 2), w)
	return w
}

func vectorRows(t testing.TB, w, y *mat.Dense, model Model, algorithm solver.Algorithm) *Solver {
	t.Helper()
	m, n := w.Dims()
	_, p := y.Dims()
	op, err := operator.NewDense(m, n, w.RawMatrix().Data)
	if err != nil {
		t.Fatal(err)
	}
	s := newSolver(t, Problem{W: op, P: p, Y: y.RawMatrix().Data, Joint: solver.JointOn, Model: model}, solver.Settings{Algorithm: algorithm})
	if err := s.Iteration.prepare(context.Background()); err != nil {
		t.Fatal(err)
	}
	return s
}

// Of rows that are all there, behind known gains, the fixed point is the exact posterior for any W whose rows are of one size, and so is its evidence: along the eigenvectors of R = U r Uᵀ signals are independent,
// and y has the covariance r_k WWᵀ + Δ.
func TestJointVAMPIsExactForGaussianRows(t *testing.T) {
	const m, n, p, noise = 30, 50, 4, 1e-3
	rng := rand.New(rand.NewPCG(1, 2))
	w, y := illConditioned(m, n, 30, rng), mat.NewDense(m, p, nil)
	y.Apply(func(int, int, float64) float64 { return rng.NormFloat64() }, y)
	for mu := range m { // sensors have one precision then
		row := w.RawRowView(mu)
		scale(row, 1/math.Sqrt(mat.Dot(w.RowView(mu), w.RowView(mu))))
	}
	s := vectorRows(t, w, y, Model{prior.GaussBernoulli{Density: 1, SignalVar: 1}, channel.AWGN{NoiseVar: noise}}, solver.VAMP)
	v := s.Iteration.(*jointVAMP)
	cov := mat.NewSymDense(p, nil)
	for k := range p {
		for l := range k + 1 {
			cov.SetSym(k, l, 0.7)
		}
		cov.SetSym(k, k, 1+0.2*float64(k))
	}
	for k := range p {
		for l := range p {
			v.rows.Prior.Cov[k*p+l] = cov.At(k, l)
		}
	}
	for range 5 {
		step(t, s, 0)
	}
	var e mat.EigenSym
	e.Factorize(cov, true)
	var u, turned, x mat.Dense
	e.VectorsTo(&u)
	turned.Mul(y, &u)
	mean, evidence := mat.NewDense(n, p, nil), -0.5*m*p*math.Log(2*math.Pi)
	for k, r := range e.Values(nil) {
		of := mat.NewSymDense(m, nil)
		of.SymOuterK(r, w)
		for mu := range m {
			of.SetSym(mu, mu, of.At(mu, mu)+noise)
		}
		var factor mat.Cholesky
		factor.Factorize(of)
		var solved, back mat.VecDense
		if err := factor.SolveVecTo(&solved, turned.ColView(k)); err != nil {
			t.Fatal(err)
		}
		evidence -= 0.5 * (factor.LogDet() + mat.Dot(&solved, turned.ColView(k)))
		back.MulVec(w.T(), &solved)
		for i := range n {
			mean.Set(i, k, r*back.AtVec(i))
		}
	}
	x.Mul(mean, u.T())
	worst := 0.0
	for i := range n {
		for k := range p {
			worst = max(worst, math.Abs(x.At(i, k)-s.State.X[k*n+i]))
		}
	}
	off := math.Abs(evidence - s.Iteration.LogEvidence())
	t.Logf("x off by %.2g, the evidence %.10g by %.2g", worst, evidence, off)
	if worst > 1e-8 || off > 1e-8*math.Abs(evidence) {
		t.Errorf("x off by %.2g, the evidence %.10g by %.2g", worst, evidence, off)
	}
}

// Behind independent entries both iterations have one fixed point, up to what the sizes of rows and columns of W differ by.
func TestJointVAMPIsAMPForIndependentEntries(t *testing.T) {
	const m, n, p, noise = 150, 300, 6, 1e-4
	w, y, _, _ := jointProblem(m, n, p, 0.15, 0.8, noise, 4, false)
	model := Model{prior.GaussBernoulli{Density: 0.15, SignalVar: 1}, channel.Gain{Prior: channel.Uniform(0.7, 1.3), NoiseVar: noise}}
	vector, plain := vectorRows(t, w, y, model, solver.VAMP), vectorRows(t, w, y, model, solver.AMP)
	for _, s := range []*Solver{vector, plain} {
		if outcome, err := s.Run(t.Context(), 500); err != nil || outcome != Converged {
			t.Fatalf("%v after %d, %v", outcome, s.Iterations, err)
		}
	}
	off, variances := 0.0, 0.0
	for j, x := range vector.State.X {
		off += (x - plain.State.X[j]) * (x - plain.State.X[j])
		variances += plain.State.C[j]
	}
	gain, ratio := 0.0, sum(vector.State.C)/variances
	for mu, s := range vector.State.S {
		gain += (s - plain.State.S[mu]) * (s - plain.State.S[mu]) / sum(plain.State.SVar)
	}
	evidence := vector.Iteration.LogEvidence() - plain.Iteration.LogEvidence()
	t.Logf("%d and %d iterations: x differs by %.2g, s by %.2g standard deviations, variances by a factor of %.3f, evidence by %.2g", vector.Iterations, plain.Iterations, math.Sqrt(off/variances), math.Sqrt(gain), ratio, evidence)
	if off > 0.02*variances || gain > 0.02 || math.Abs(math.Log(ratio)) > 0.05 {
		t.Error("another fixed point")
	}
}
