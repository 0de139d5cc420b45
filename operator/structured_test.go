package operator_test

import (
	"bytes"
	"errors"
	"math"
	"math/bits"
	"math/rand/v2"
	"strings"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/calamp/calamp/operator"
)

// structured is an operator that is no table, and the table that it should be.
type structured struct {
	name    string
	op      operator.Operator
	entries *mat.Dense
}

func must[T any](t *testing.T) func(T, error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func randomRows(rng *rand.Rand, m, n int, mixed bool) operator.Rows {
	r := operator.Rows{N: n, Rows: rng.Perm(n)[:m]}
	if mixed {
		r.Permutation = rng.Perm(n)
		for range n {
			r.Signs = append(r.Signs, 1-2*float64(rng.IntN(2)))
		}
	}
	return r
}

// chosen is the table of rows of an orthonormal transform.
func chosen(r operator.Rows, entry func(row, i int) float64) *mat.Dense {
	w := mat.NewDense(len(r.Rows), r.N, nil)
	for mu, row := range r.Rows {
		for i := range r.N {
			at, sign := i, 1.0
			if r.Permutation != nil {
				at = r.Permutation[i]
			}
			if r.Signs != nil {
				sign = r.Signs[i]
			}
			w.Set(mu, i, sign*entry(row, at))
		}
	}
	return w
}

func hadamardRows(t *testing.T, rng *rand.Rand, m, n int, mixed bool) structured {
	r := randomRows(rng, m, n, mixed)
	return structured{"hadamard", must[*operator.Hadamard](t)(operator.NewHadamard(r)), chosen(r, func(row, i int) float64 {
		return float64(1-2*(bits.OnesCount(uint(row&i))%2)) / math.Sqrt(float64(n))
	})}
}

func cosine(n int) func(row, i int) float64 {
	return func(row, i int) float64 {
		if row == 0 {
			return math.Sqrt(1 / float64(n))
		}
		return math.Sqrt(2/float64(n)) * math.Cos(math.Pi*float64(row*(2*i+1)%(4*n))/float64(2*n))
	}
}

func dctRows(t *testing.T, rng *rand.Rand, m, n int, mixed bool) structured {
	r := randomRows(rng, m, n, mixed)
	return structured{"dct", must[*operator.DCT](t)(operator.NewDCT(r)), chosen(r, cosine(n))}
}

func sparseTable(t *testing.T, rng *rand.Rand, m, n int, density float64, single bool) structured {
	w, c := mat.NewDense(m, n, nil), operator.CSR{M: m, N: n, Start: []int64{0}}
	for mu := range m {
		for _, i := range rng.Perm(n) { // columns in any order
			if rng.Float64() < density && mu != m/2 {
				v := float32(rng.NormFloat64())
				w.Set(mu, i, float64(v))
				c.Columns = append(c.Columns, int32(i))
				if single {
					c.Values32 = append(c.Values32, v)
				} else {
					c.Values = append(c.Values, float64(v))
				}
			}
		}
		c.Start = append(c.Start, int64(len(c.Columns)))
	}
	return structured{"sparse", must[*operator.Sparse](t)(operator.NewSparse(c)), w}
}

func denseTable(t *testing.T, rng *rand.Rand, m, n int) structured {
	w := mat.NewDense(m, n, nil)
	w.Apply(func(_, _ int, _ float64) float64 { return rng.NormFloat64() }, w)
	return structured{"dense", must[*operator.Dense](t)(operator.NewDense(m, n, w.RawMatrix().Data)), w}
}

func convolved(t *testing.T, rng *rand.Rand, m, n int) structured {
	kernel := make([]float64, n)
	for i := range kernel {
		kernel[i] = rng.NormFloat64() * math.Exp(-float64(i)/5)
	}
	places, w := rng.Perm(n)[:m], mat.NewDense(m, n, nil)
	w.Apply(func(mu, i int, _ float64) float64 { return kernel[((places[mu]-i)%n+n)%n] }, w)
	return structured{"convolution", must[*operator.Convolution](t)(operator.NewConvolution(kernel, places)), w}
}

func kron(a, b structured) structured {
	var w mat.Dense
	w.Kronecker(a.entries, b.entries)
	return structured{a.name + " ⊗ " + b.name, operator.NewKronecker(a.op, b.op), &w}
}

func composed(t *testing.T, a, b structured) structured {
	var w mat.Dense
	w.Mul(a.entries, b.entries)
	return structured{a.name + " · " + b.name, must[operator.Operator](t)(operator.Compose(a.op, b.op)), &w}
}

func transposed(a structured) structured {
	return structured{a.name + "ᵀ", operator.Transpose(a.op), mat.DenseCopyOf(a.entries.T())}
}

func functions(t *testing.T, a structured) structured {
	m, n := a.entries.Dims()
	return structured{"functions", must[operator.Operator](t)(operator.NewFunction(operator.Function{
		M: m, N: n, Name: "test",
		Mul: func(z, x []float64) error {
			mat.NewVecDense(m, z).MulVec(a.entries, mat.NewVecDense(n, x))
			return nil
		},
		MulTrans: func(r, g []float64) error {
			mat.NewVecDense(n, r).MulVec(a.entries.T(), mat.NewVecDense(m, g))
			return nil
		},
	})), a.entries}
}

// structuredOperators is every kind, in sizes whose transforms have other steps.
func structuredOperators(t *testing.T) []structured {
	rng := rand.New(rand.NewPCG(5, 1))
	small := func() structured { return denseTable(t, rng, 6, 8) }
	all := []structured{
		hadamardRows(t, rng, 1, 1, false), hadamardRows(t, rng, 5, 8, false), hadamardRows(t, rng, 40, 64, true), hadamardRows(t, rng, 64, 64, true),
		dctRows(t, rng, 1, 1, false), dctRows(t, rng, 2, 2, false), dctRows(t, rng, 4, 5, true), dctRows(t, rng, 16, 16, false),
		dctRows(t, rng, 30, 48, true), dctRows(t, rng, 50, 67, true), dctRows(t, rng, 60, 90, false),
		dctRows(t, rng, 40, 2000, true), dctRows(t, rng, 20, 6561, false), dctRows(t, rng, 20, 5000, true),
		sparseTable(t, rng, 30, 40, 0.1, false), sparseTable(t, rng, 70, 50, 0.3, true), sparseTable(t, rng, 100, 300, 0.02, false),
		convolved(t, rng, 20, 32), convolved(t, rng, 7, 7),
		kron(small(), denseTable(t, rng, 5, 3)), kron(hadamardRows(t, rng, 4, 8, true), dctRows(t, rng, 6, 6, false)),
		kron(small(), sparseTable(t, rng, 9, 7, 0.5, false)), kron(kron(small(), small()), dctRows(t, rng, 2, 3, true)),
		composed(t, small(), dctRows(t, rng, 8, 8, false)), composed(t, hadamardRows(t, rng, 20, 32, true), transposed(dctRows(t, rng, 32, 32, false))),
		composed(t, sparseTable(t, rng, 20, 30, 0.4, false), transposed(dctRows(t, rng, 30, 30, false))),
		composed(t, sparseTable(t, rng, 20, 30, 0.4, false), denseTable(t, rng, 30, 12)),
		transposed(small()), transposed(dctRows(t, rng, 12, 12, false)), transposed(sparseTable(t, rng, 20, 30, 0.3, false)),
		functions(t, denseTable(t, rng, 12, 20)), composed(t, functions(t, denseTable(t, rng, 12, 20)), dctRows(t, rng, 20, 20, false)),
	}
	return all
}

// Every product of a sweep is that of the table, linear and quadratic, for any
// number of columns; forward and backward alone give the same; and threads change no bit.
func TestStructuredOperatorsAreTheirTables(t *testing.T) {
	for _, s := range structuredOperators(t) {
		m, n := s.op.Dims()
		if rows, columns := s.entries.Dims(); m != rows || n != columns {
			t.Errorf("%s is %d×%d, expected %d×%d", s.name, m, n, rows, columns)
			continue
		}
		mean := mat.Norm(s.entries, 2) * mat.Norm(s.entries, 2) / float64(m*n)
		tolerance := 1e-12
		if !operator.HasSquares(s.op) {
			if _, orthogonal := operator.Orthogonal(s.op); !orthogonal {
				tolerance = 0.3 // an estimate; the sizes here are tiny
			}
		}
		if math.Abs(s.op.MeanSquare()/mean-1) > tolerance {
			t.Errorf("%s: mean square %g, want %g", s.name, s.op.MeanSquare(), mean)
		}
		for _, columns := range [][2]int{{1, 0}, {1, 1}, {2, 0}, {3, 3}, {4, 4}, {5, 0}, {6, 2}, {1, 5}, {0, 3}} {
			p, q := columns[0], columns[1]
			if q > 0 && !operator.HasSquares(s.op) {
				if _, err := s.op.NewSweep(p, q, 1); !errors.Is(err, operator.ErrNoSquares) {
					t.Errorf("%s: a sweep with squares: %v", s.name, err)
				}
				continue
			}
			sameAsTable(t, s, p, q)
		}
	}
}

func sameAsTable(t *testing.T, s structured, p, q int) {
	t.Helper()
	m, n := s.op.Dims()
	x, c, g, d := normals(p*n), normals(q*n), normals(m*p), normals(m*q)
	squares := mat.DenseCopyOf(s.entries)
	squares.MulElem(squares, squares)
	scale := math.Sqrt(float64(n+m)) * mat.Max(squares)

	run := func(threads int) (z, v, r, h []float64) {
		sweep := must[operator.Sweep](t)(s.op.NewSweep(p, q, threads))
		z, v, r, h = make([]float64, m*p), make([]float64, m*q), make([]float64, p*n), make([]float64, q*n)
		for range 2 { // nothing of a run is left for the next
			err := sweep.Run(r, h, x, c, func(first int, zs, vs, gs, ds []float64) {
				copy(z[first*p:], zs)
				copy(v[first*q:], vs)
				copy(gs, g[first*p:])
				copy(ds, d[first*q:])
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		if half, ok := sweep.(operator.Halves); ok {
			again := make([]float64, m*p)
			errs := errors.Join(half.Forward(again, make([]float64, m*q), x, c), half.Backward(make([]float64, p*n), make([]float64, q*n), g, d))
			if errs != nil {
				t.Fatal(errs)
			}
			for i, value := range again {
				if value != z[i] {
					t.Fatalf("%s, %d+%d columns: other bits forward alone", s.name, p, q)
				}
			}
		}
		return z, v, r, h
	}
	z, v, r, h := run(1)
	z2, v2, r2, h2 := run(2)
	for i, pair := range [][2][]float64{{z, z2}, {v, v2}, {r, r2}, {h, h2}} {
		for j := range pair[0] {
			if pair[0][j] != pair[1][j] {
				t.Fatalf("%s, %d+%d columns: other bits on two threads, array %d", s.name, p, q, i)
			}
		}
	}
	compare := func(what string, got []float64, w *mat.Dense, from []float64, count int, forward bool) {
		for k := range count {
			var want mat.VecDense
			if forward {
				want.MulVec(w, mat.NewVecDense(n, from[k*n:(k+1)*n]))
			} else {
				column := mat.NewVecDense(m, nil)
				for mu := range m {
					column.SetVec(mu, from[mu*count+k])
				}
				want.MulVec(w.T(), column)
			}
			for j := range want.Len() {
				at := j*count + k
				if !forward {
					at = k*n + j
				}
				if math.Abs(got[at]-want.AtVec(j)) > 2e-14*(1+scale) {
					t.Errorf("%s, %d+%d columns: %s %d of %d is %g, want %g", s.name, p, q, what, j, k, got[at], want.AtVec(j))
					return
				}
			}
		}
	}
	compare("Wx", z, s.entries, x, p, true)
	compare("W²c", v, squares, c, q, true)
	compare("Wᵀg", r, s.entries, g, p, false)
	compare("(W²)ᵀd", h, squares, d, q, false)
}

// ⟨Wx, g⟩ = ⟨x, Wᵀg⟩, in sizes at which transforms leave the cache.
func TestAdjoints(t *testing.T) {
	rng := rand.New(rand.NewPCG(6, 1))
	big := []structured{
		{name: "hadamard", op: must[*operator.Hadamard](t)(operator.NewHadamard(randomRows(rng, 9000, 1<<14, true)))},
		{name: "dct", op: must[*operator.DCT](t)(operator.NewDCT(randomRows(rng, 9000, 20000, true)))},
		{name: "dct of a prime size", op: must[*operator.DCT](t)(operator.NewDCT(randomRows(rng, 5000, 10007, true)))},
		{name: "image", op: operator.NewKronecker(
			must[*operator.DCT](t)(operator.NewDCT(randomRows(rng, 90, 120, false))),
			must[*operator.Hadamard](t)(operator.NewHadamard(randomRows(rng, 64, 128, false))))},
	}
	for _, s := range append(big, structuredOperators(t)...) {
		m, n := s.op.Dims()
		const p = 3
		x, g := normals(p*n), normals(m*p)
		z, r := make([]float64, m*p), make([]float64, p*n)
		if err := errors.Join(operator.Mul(z, s.op, x), operator.MulTrans(r, s.op, g)); err != nil {
			t.Fatal(err)
		}
		there, back, size := 0.0, 0.0, 0.0
		for i, v := range z {
			there += v * g[i]
			size += v * v
		}
		for i, v := range r {
			back += v * x[i]
		}
		if math.Abs(there-back) > 1e-13*(1+size) {
			t.Errorf("%s: ⟨Wx, g⟩ = %g, ⟨x, Wᵀg⟩ = %g", s.name, there, back)
		}
	}
}

// Rows that say they are orthogonal are, and those of a chosen transform say so.
func TestRowOrthogonal(t *testing.T) {
	for _, s := range structuredOperators(t) {
		kappa, ok := operator.Orthogonal(s.op)
		var gram mat.Dense
		gram.Mul(s.entries, s.entries.T())
		m, _ := gram.Dims()
		worst := 0.0
		for i := range m {
			for j := range m {
				want := 0.0
				if i == j {
					want = kappa
				}
				worst = max(worst, math.Abs(gram.At(i, j)-want))
			}
		}
		if ok && worst > 1e-13 {
			t.Errorf("%s: WWᵀ is %g from %g times the identity", s.name, worst, kappa)
		}
		if !ok && (s.name == "hadamard" || s.name == "dct") {
			t.Errorf("%s does not say that its rows are orthogonal", s.name)
		}
	}
}

// What describes no matrix is refused with the array and the place.
func TestWrongStructures(t *testing.T) {
	csr := func(change func(c *operator.CSR)) error {
		c := operator.CSR{M: 2, N: 3, Start: []int64{0, 2, 3}, Columns: []int32{0, 2, 1}, Values: []float64{1, 2, 3}}
		change(&c)
		_, err := operator.NewSparse(c)
		return err
	}
	hadamard := func(r operator.Rows) error { _, err := operator.NewHadamard(r); return err }
	dct := func(r operator.Rows) error { _, err := operator.NewDCT(r); return err }
	function := func(wrong float64) error {
		_, err := operator.NewFunction(operator.Function{
			M: 1, N: 2,
			Mul:      func(z, x []float64) error { z[0] = x[0] + 2*x[1]; return nil },
			MulTrans: func(r, g []float64) error { r[0], r[1] = g[0], wrong*g[0]; return nil },
		})
		return err
	}
	small := must[*operator.Dense](t)(operator.NewDense(2, 3, []float64{1, 2, 3, 4, 5, 6}))
	_, shapes := operator.Compose(small, small)
	for want, err := range map[string]error{
		"n is 12, expected a power of two": hadamard(operator.Rows{N: 12, Rows: []int{1}}),
		"n is 0":                           dct(operator.Rows{Rows: []int{1}}),
		"rows is empty":                    dct(operator.Rows{N: 5}),
		"rows 1 (counting from 0) is 16, expected 0 to 15":         hadamard(operator.Rows{N: 16, Rows: []int{3, 16}}),
		"rows 2 (counting from 0) is -1":                           dct(operator.Rows{N: 5, Rows: []int{3, 1, -1}}),
		"rows 0 and 2 (counting from 0) are both 3":                dct(operator.Rows{N: 5, Rows: []int{3, 1, 3}}),
		"signs has 2 values, expected n = 4":                       hadamard(operator.Rows{N: 4, Rows: []int{1}, Signs: []float64{1, 1}}),
		"signs of entry 1 is 0.5":                                  hadamard(operator.Rows{N: 2, Rows: []int{1}, Signs: []float64{1, 0.5}}),
		"permutation has 3 values":                                 hadamard(operator.Rows{N: 4, Rows: []int{1}, Permutation: []int{0, 1, 2}}),
		"permutation 0 and 1 (counting from 0) are both 1":         hadamard(operator.Rows{N: 2, Rows: []int{1}, Permutation: []int{1, 1}}),
		"indices 1, in row 0, is column 5, expected 0 to 2":        csr(func(c *operator.CSR) { c.Columns[1] = 5 }),
		"row 0 has column 2 twice":                                 csr(func(c *operator.CSR) { c.Columns[0] = 2 }),
		"row 1, column 1 is NaN":                                   csr(func(c *operator.CSR) { c.Values[2] = math.NaN() }),
		"indptr has 2 values, expected one more than the 2 rows":   csr(func(c *operator.CSR) { c.Start = c.Start[:2] }),
		"indptr of rows 0 and 1 is 0 and 4":                        csr(func(c *operator.CSR) { c.Start[1] = 4 }),
		"indptr ends with 2, expected the 3 entries":               csr(func(c *operator.CSR) { c.Start[2] = 2 }),
		"indices has 2 values and data has 3":                      csr(func(c *operator.CSR) { c.Columns = c.Columns[:2] }),
		"mean square of the entries is 0":                          csr(func(c *operator.CSR) { clear(c.Values) }),
		"expected a basis with 3 rows":                             shapes,
		"Mul and MulTrans do not belong to one matrix: ⟨Wx, g⟩ is": function(2.1),
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q in it", err, want)
		}
	}
	if err := function(2); err != nil {
		t.Error(err)
	}
}

// Operators are identified by what they are made of.
func TestIdentities(t *testing.T) {
	seen := map[string]string{}
	for _, s := range structuredOperators(t) {
		var first, second bytes.Buffer
		if err := errors.Join(operator.Identify(&first, s.op), operator.Identify(&second, s.op)); err != nil {
			t.Errorf("%s: %v", s.name, err)
			continue
		}
		if !bytes.Equal(first.Bytes(), second.Bytes()) {
			t.Errorf("%s has two identities", s.name)
		}
		if other, twice := seen[first.String()]; twice {
			t.Errorf("%s and %s are taken for one", s.name, other)
		}
		seen[first.String()] = s.name
	}
	rows := operator.Rows{N: 8, Rows: []int{1, 2, 3}}
	swapped := operator.Rows{N: 8, Rows: []int{2, 1, 3}}
	var a, b bytes.Buffer
	operator.Identify(&a, must[*operator.Hadamard](t)(operator.NewHadamard(rows)))
	operator.Identify(&b, must[*operator.Hadamard](t)(operator.NewHadamard(swapped)))
	if bytes.Equal(a.Bytes(), b.Bytes()) {
		t.Error("rows in another order are taken for the same")
	}
}
