package operator_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/calamp/calamp/operator"
)

// Rows in another order, with some that are zero, and blocks of whole sensors: the products are those of the rows, whatever the operator is.
func TestArrangeInWholeBlocks(t *testing.T) {
	const m, n, p, each = 530, 37, 3, 7
	rng := rand.New(rand.NewPCG(38, 1))
	table, single := make([]float64, m*n), make([]float32, m*n)
	for i := range table {
		single[i] = float32(rng.NormFloat64())
		table[i] = float64(single[i])
	}
	dense, err := operator.NewDense(m, n, table)
	if err != nil {
		t.Fatal(err)
	}
	dense32, err := operator.NewDense32(m, n, single)
	if err != nil {
		t.Fatal(err)
	}
	order := rng.Perm(m)
	for range (each - m%each) % each {
		order = append(order, -1)
	}
	rng.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
	of := func(count int) []float64 {
		v := make([]float64, count)
		for i := range v {
			v[i] = rng.NormFloat64()
		}
		return v
	}
	x, c, g, d := of(p*n), of(p*n), of(len(order)*p), of(len(order)*p)
	for name, w := range map[string]operator.Operator{"f64": dense, "f32": dense32, "wrapped": plainOperator{dense}} {
		a, err := operator.Arrange(w, order)
		if err != nil {
			t.Fatal(err)
		}
		if rows, _ := a.Dims(); rows != len(order) || a.MeanSquare() != w.MeanSquare() {
			t.Errorf("%s: %d rows, mean square %g", name, rows, a.MeanSquare())
		}
		sweep, err := operator.WholeBlocks(a, each).NewSweep(p, p, 2)
		if err != nil {
			t.Fatal(err)
		}
		z, v, r, h := make([]float64, len(g)), make([]float64, len(g)), make([]float64, p*n), make([]float64, p*n)
		err = sweep.Run(r, h, x, c, func(first int, zs, vs, gs, ds []float64) {
			if first%each != 0 {
				t.Errorf("%s: a block begins at row %d", name, first)
			}
			copy(z[first*p:], zs)
			copy(v[first*p:], vs)
			copy(gs, g[first*p:])
			copy(ds, d[first*p:])
		})
		if err != nil {
			t.Fatal(err)
		}
		for k := range p {
			wantR, wantH := make([]float64, n), make([]float64, n)
			for i, row := range order {
				wantZ, wantV := 0.0, 0.0
				for j := 0; row >= 0 && j < n; j++ {
					e := table[row*n+j]
					wantZ += e * x[k*n+j]
					wantV += e * e * c[k*n+j]
					wantR[j] += e * g[i*p+k]
					wantH[j] += e * e * d[i*p+k]
				}
				if math.Abs(z[i*p+k]-wantZ) > 1e-11 || math.Abs(v[i*p+k]-wantV) > 1e-11 {
					t.Fatalf("%s: row %d, column %d: %g and %g, expected %g and %g", name, i, k, z[i*p+k], v[i*p+k], wantZ, wantV)
				}
			}
			for j := range n {
				if math.Abs(r[k*n+j]-wantR[j]) > 1e-10 || math.Abs(h[k*n+j]-wantH[j]) > 1e-10 {
					t.Fatalf("%s: entry %d of %d: %g and %g, expected %g and %g", name, j, k, r[k*n+j], h[k*n+j], wantR[j], wantH[j])
				}
			}
		}
	}
	if _, err := operator.Arrange(dense, []int{0, m}); err == nil {
		t.Error("a row that W does not have was taken")
	}
}

// plainOperator shows nothing of a table but sweeps.
type plainOperator struct{ table *operator.Dense }

func (o plainOperator) Dims() (m, n int)    { return o.table.Dims() }
func (o plainOperator) MeanSquare() float64 { return o.table.MeanSquare() }
func (o plainOperator) HasSquares() bool    { return true }
func (o plainOperator) NewSweep(p, q, threads int) (operator.Sweep, error) {
	return o.table.NewSweep(p, q, threads)
}
