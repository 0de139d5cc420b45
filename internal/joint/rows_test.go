package joint

import (
	"encoding/json"
	"math"
	"math/big"
	"math/rand/v2"
	"os"
	"slices"
	"testing"
)

// moments is a row of testdata/joint_moments.json: the posterior of one row, computed with 50 digits.
type moments struct {
	Rho     float64
	Mean    []float64
	R, A    [][]float64
	H       []float64
	LogNorm float64 `json:"log_norm"`
	X       []float64
	Cov     [][]float64
	Pi      float64
}

func golden(t *testing.T) (list []moments) {
	t.Helper()
	data, err := os.ReadFile("testdata/joint_moments.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, &list); err != nil {
		t.Fatal(err)
	}
	return list
}

func flat(a [][]float64) (v []float64) {
	for _, row := range a {
		v = append(v, row...)
	}
	return v
}

func TestMoments(t *testing.T) {
	worstX, worstC, worstPi, worstLog := 0.0, 0.0, 0.0, 0.0
	for i, g := range golden(t) {
		p := len(g.H)
		shape, size, ok := NewShape(flat(g.A), p, 1, 0)
		if !ok {
			t.Fatal("no shape", i)
		}
		r := NewRows(1, p, 1, Prior{Density: g.Rho, Mean: g.Mean, Cov: flat(g.R)})
		r.Update(Field{Shape: shape, Size: []float64{size}, Centre: make([]float64, p), Onward: g.H})
		mu := make([]float64, p)
		for k := range p {
			mu[k] = r.X[k] / r.Support[0]
		}
		r.Update(Field{Shape: shape, Size: []float64{size}, Centre: mu, Onward: onward(g, mu)})
		field := 0.0 // ½ hᵀA⁻¹h
		for k := range p {
			h := 0.0
			for l := range p {
				h += shape.Vectors[l*p+k] * g.H[l]
			}
			field += 0.5 * h * h / (size * shape.Values[k])
		}
		x, c, pi, log := 0.0, 0.0, math.Abs(r.Support[0]-g.Pi), math.Abs(r.LogMass[0]+field-g.LogNorm)/math.Max(1, math.Abs(g.LogNorm))
		for k := range p {
			sd := math.Sqrt(g.Cov[k][k])
			x = math.Max(x, math.Abs(r.X[k]-g.X[k])/sd)
			for l := range p {
				c = math.Max(c, math.Abs(r.Sum[k*p+l]-g.Cov[k][l])/math.Sqrt(g.Cov[k][k]*g.Cov[l][l]))
			}
		}
		worstX, worstC, worstPi, worstLog = math.Max(worstX, x), math.Max(worstC, c), math.Max(worstPi, pi), math.Max(worstLog, log)
	}
	if worst := max(worstX, worstC, worstPi, worstLog); worst > 1e-12 {
		t.Errorf("moments are off by %.2g, in posterior standard deviations, expected at most 1e-12", worst)
	}
	t.Logf("x %.2g, C %.2g, pi %.2g, log %.2g", worstX, worstC, worstPi, worstLog)
}

// onward is h - A µ, as a sum without rounding: what message passing has of a field around its estimate.
func onward(g moments, mu []float64) (r []float64) {
	for k, h := range g.H {
		total := new(big.Float).SetPrec(300).SetFloat64(h)
		for l, m := range mu {
			a := new(big.Float).SetPrec(300).SetFloat64(g.A[k][l])
			total.Sub(total, a.Mul(a, new(big.Float).SetFloat64(m)))
		}
		v, _ := total.Float64()
		r = append(r, v)
	}
	return r
}

// Fields without a shape in common are those with one, where they have it, and what is learned from them is the same.
func TestUnequal(t *testing.T) {
	const n, p = 150, 3
	rng := rand.New(rand.NewPCG(1, 7))
	for _, cov := range [][]float64{
		{2, 1.5, 0.3, 1.5, 3, -0.2, 0.3, -0.2, 1},
		{1, 2, 3, 2, 4, 6, 3, 6, 9}, // of rank 1
	} {
		q := Prior{Density: 0.4, Mean: []float64{0.2, 0, -1}, Cov: cov}
		shape, _, _ := NewShape([]float64{1, 0, 0, 0, 2, 0, 0, 0, 5}, p, 1, 0)
		a := make([]float64, p*p)
		shape.Matrix(a)
		f := Field{Shape: shape, Size: make([]float64, n), Centre: make([]float64, n*p), Onward: make([]float64, n*p)}
		sigma := make([]float64, n*p)
		for i := range n {
			f.Size[i] = math.Exp(3 * rng.NormFloat64())
			for k := range p {
				f.Centre[k*n+i], sigma[k*n+i] = 2*rng.NormFloat64(), 1/(f.Size[i]*a[k*p+k])
			}
		}
		of := func() *Rows {
			r := NewRows(n, p, 2, q)
			r.Prior.Mean, r.Prior.Cov = slices.Clone(q.Mean), slices.Clone(q.Cov)
			return r
		}
		one, each := of(), of()
		one.Update(f)
		each.UpdateUnequal(f.Centre, sigma)
		agree := func(what string, a, b []float64) {
			for j := range a {
				if !(math.Abs(a[j]-b[j]) <= 1e-10*max(1, math.Abs(a[j]))) {
					t.Errorf("%s %d: %.12g, expected %.12g", what, j, b[j], a[j])
					return
				}
			}
		}
		agree("mean", one.X, each.X)
		agree("variance", one.C, each.C)
		agree("support", one.Support, each.Support)
		agree("evidence", one.LogMass, each.LogMass)
		agree("what the density is learned from", []float64{one.count}, []float64{each.count})
		agree("what the mean is learned from", one.first, each.first)
		agree("what the covariance is learned from", one.second, each.second)
	}
}
