package joint

import (
	"math"
	"math/rand/v2"
	"testing"
)

// Rows of groups are those that have the density and the covariance of their group by themselves, with one size and with many.
func TestGroups(t *testing.T) {
	const n, p = 12, 3
	rng := rand.New(rand.NewPCG(2, 3))
	density, size := []float64{0.9, 0.2}, []float64{3, 0.05}
	of := make([]int, n)
	for i := range of {
		of[i] = i % 2
	}
	shape, _, _ := NewShape([]float64{1, 0.4, 0, 0.4, 2, 0.1, 0, 0.1, 5}, p, 1, 0)
	field := func(rows int) Field {
		return Field{Shape: shape, Size: make([]float64, rows), Centre: make([]float64, rows*p), Onward: make([]float64, rows*p)}
	}
	f := field(n)
	for i := range n {
		f.Size[i] = math.Exp(3 * rng.NormFloat64())
		for k := range p {
			f.Centre[k*n+i], f.Onward[k*n+i] = rng.NormFloat64(), f.Size[i]*rng.NormFloat64()
		}
	}
	mean, cov := []float64{0.2, 0, -1}, []float64{2, 1.5, 0.3, 1.5, 3, -0.2, 0.3, -0.2, 1}
	for _, sizes := range []float64{0, 1} {
		q := Prior{Density: 0.5, Mean: mean, Cov: cov, Sizes: sizes, Groups: NewGroups(of, [][]int{{0}, {1}}, density, size)}
		all := NewRows(n, p, 2, q)
		all.Update(f)
		for i := range n {
			d, t2 := density[of[i]], size[of[i]]
			own := Prior{Density: d, Mean: make([]float64, p), Cov: make([]float64, p*p), Sizes: sizes}
			for j, v := range cov {
				own.Cov[j] = t2 * v
			}
			one, at := NewRows(1, p, 1, own), field(1)
			at.Size[0] = f.Size[i]
			for k := range p {
				one.Prior.Mean[k] = math.Sqrt(t2) * mean[k]
				at.Centre[k], at.Onward[k] = f.Centre[k*n+i], f.Onward[k*n+i]
			}
			one.Update(at)
			agree := func(what string, got, want float64) {
				if !(math.Abs(got-want) <= 1e-11*max(1, math.Abs(want))) {
					t.Errorf("sizes %g, row %d: %s %.14g, expected %.14g", sizes, i, what, got, want)
				}
			}
			for k := range p {
				agree("mean", all.X[k*n+i], one.X[k])
				agree("variance", all.C[k*n+i], one.C[k])
			}
			agree("support", all.Support[i], one.Support[0])
			agree("evidence", all.LogMass[i], one.LogMass[0])
			agree("pull", all.Pull[i], one.Pull[0])
			agree("square", all.Square[i], one.Square[0])
			agree("trace", all.Trace[i], one.Trace[0])
		}
		total := 0.0
		for _, v := range all.Trace {
			total += v
		}
		if sum := trace(all.Sum, p); math.Abs(sum-total) > 1e-10*total {
			t.Errorf("sizes %g: Σ C has the trace %g, expected %g", sizes, sum, total)
		}
	}
}

// Densities and sizes of groups are found from rows that are seen well, from one density and one size.
func TestGroupsAreLearned(t *testing.T) {
	const n, p = 3000, 4
	rng := rand.New(rand.NewPCG(4, 5))
	density, size := []float64{0.8, 0.1, 0.1}, []float64{1, 0.04, 0.04}
	of := make([]int, n)
	f := Field{Shape: (*Span)(nil).Round(p), Size: make([]float64, n), Centre: make([]float64, n*p), Onward: make([]float64, n*p)}
	for i := range of {
		of[i] = i % 3
		f.Size[i] = p * 1e4
		there, common := rng.Float64() < density[of[i]], rng.NormFloat64()
		for k := range p {
			f.Centre[k*n+i] = 1e-2 * rng.NormFloat64()
			if there {
				f.Centre[k*n+i] += math.Sqrt(size[of[i]]) * (0.8*common + 0.6*rng.NormFloat64())
			}
		}
	}
	q := Isotropic(p, 0.5, 0, 1)
	q.Groups = NewGroups(of, [][]int{{0}, {1, 2}}, []float64{0.5, 0.5, 0.5}, []float64{1, 1, 1})
	r := NewRows(n, p, 1, q)
	change := math.Inf(1)
	for range 60 {
		r.Update(f)
		change = r.Refit(Learns{Density: true, Size: true}, 0.7)
	}
	g := r.Prior.Groups
	if change > 1e-3 || g.Density[1] != g.Density[2] || g.Size[1] != g.Size[2] {
		t.Errorf("change %g, densities %v, sizes %v", change, g.Density, g.Size)
	}
	if ratio := g.Size[1] / g.Size[0]; math.Abs(ratio/0.04-1) > 0.15 || math.Abs(g.Density[0]-0.8) > 0.05 || math.Abs(g.Density[1]-0.1) > 0.03 {
		t.Errorf("densities %v, sizes %v", g.Density, g.Size)
	}
	if v := g.Size[0] * r.Prior.Cov[0]; math.Abs(v-1) > 0.15 {
		t.Errorf("variance of the first group %g, expected 1", v)
	}
}
