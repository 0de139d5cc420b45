package teacher

import (
	"errors"
	"fmt"
	"math"
	"math/bits"
	"math/rand/v2"
	"strconv"
	"strings"

	"gonum.org/v1/gonum/mat"
)

// Ensemble says how the entries of W are drawn. The zero value is the ensemble
// for which cal-AMP is derived: independent, of mean zero and variance 1/N. In
// all of them the mean square of the entries is 1/N.
type Ensemble struct {
	Kind  string
	Value float64 // the kind's parameter, see Ensembles
}

// kind is a kind of ensemble. It draws entries up to a common factor.
type kind struct {
	name      string
	parameter string // what Value is; "" when there is none
	low, high float64
	draw      func(rng *rand.Rand, m, n int, value float64) ([]float64, error)
}

var kinds = []kind{
	{"iid", "", 0, 0, func(rng *rand.Rand, m, n int, _ float64) ([]float64, error) { return gaussian(rng, m, n), nil }},
	{"mean", "the mean of the entries in their standard deviations", -1e6, 1e6, withMean},
	{"binary", "", 0, 0, binary},
	{"sign", "", 0, 0, sign},
	{"hadamard", "", 0, 0, hadamard},
	{"dct", "", 0, 0, dct},
	{"correlated", "the correlation of adjacent columns", -0.999, 0.999, correlated},
	{"condition", "the condition number", 1, 1e8, conditioned},
	{"low-rank", "the rank, relative to the smaller side", 1e-3, 1, lowRank},
	{"sparse", "the part of the entries that are not zero", 1e-6, 1, sparse},
	{"duplicated", "the part of the rows that occur twice", 0, 1, duplicated},
	{"uneven", "the standard deviation of the logarithm of the rows' norms", 0, 10, uneven},
	{"zero-columns", "the part of the columns that are zero", 0, 0.999, zeroColumns},
}

// Ensembles lists the kinds of matrix, with the meaning of their values.
func Ensembles() string {
	names := make([]string, len(kinds))
	for i, k := range kinds {
		names[i] = k.name
		if k.parameter != "" {
			names[i] += ":v"
		}
	}
	return strings.Join(names, ", ")
}

// String is the kind, with its value where it has one: "iid", "condition:10".
func (e Ensemble) String() string {
	k, err := e.kind()
	if err != nil {
		return e.Kind
	}
	if k.parameter == "" {
		return k.name
	}
	return k.name + ":" + strconv.FormatFloat(e.Value, 'g', -1, 64)
}

// UnmarshalText reads what String writes.
func (e *Ensemble) UnmarshalText(text []byte) error {
	name, value, given := strings.Cut(string(text), ":")
	parsed := Ensemble{Kind: name}
	k, err := parsed.kind()
	if err != nil {
		return err
	}
	if given != (k.parameter != "") {
		if given {
			return fmt.Errorf("a matrix of kind %s has no parameter, found %q", k.name, text)
		}
		return fmt.Errorf("a matrix of kind %s needs %s, as in %s:0.5", k.name, k.parameter, k.name)
	}
	if given {
		if parsed.Value, err = strconv.ParseFloat(value, 64); err != nil {
			return fmt.Errorf("%s: %s must be a number, found %q", k.name, k.parameter, value)
		}
	}
	if err := parsed.Validate(); err != nil {
		return err
	}
	*e = parsed
	return nil
}

// MarshalText implements encoding.TextMarshaler.
func (e Ensemble) MarshalText() ([]byte, error) { return []byte(e.String()), nil }

// Validate reports what is no ensemble.
func (e Ensemble) Validate() error {
	k, err := e.kind()
	if err != nil {
		return err
	}
	if k.parameter != "" && !(e.Value >= k.low && e.Value <= k.high) {
		return fmt.Errorf("%s: %s must be in [%g, %g], found %g", k.name, k.parameter, k.low, k.high, e.Value)
	}
	return nil
}

func (e Ensemble) kind() (kind, error) {
	if e.Kind == "" {
		return kinds[0], nil
	}
	for _, k := range kinds {
		if k.name == e.Kind {
			return k, nil
		}
	}
	return kind{}, fmt.Errorf("there is no matrix of kind %q, expected one of %s", e.Kind, Ensembles())
}

// draw returns the M×N entries, row by row.
func (e Ensemble) draw(rng *rand.Rand, m, n int) ([]float64, error) {
	k, err := e.kind()
	if err != nil {
		return nil, err
	}
	w, err := k.draw(rng, m, n, e.Value)
	if err != nil || k.name == kinds[0].name {
		return w, err
	}
	total := 0.0
	for _, v := range w {
		total += v * v
	}
	if total == 0 {
		return nil, errors.New("all entries of W were drawn to be zero")
	}
	factor := math.Sqrt(float64(m) / total)
	for i := range w {
		w[i] *= factor
	}
	return w, nil
}

func gaussian(rng *rand.Rand, m, n int) []float64 {
	w := make([]float64, m*n)
	for i := range w {
		w[i] = rng.NormFloat64() / math.Sqrt(float64(n))
	}
	return w
}

func withMean(rng *rand.Rand, m, n int, value float64) ([]float64, error) {
	w := gaussian(rng, m, n)
	for i := range w {
		w[i] += value / math.Sqrt(float64(n))
	}
	return w, nil
}

// binary is a mask: each entry is 1 or 0 with probability one half.
func binary(rng *rand.Rand, m, n int, _ float64) ([]float64, error) {
	w := make([]float64, m*n)
	for i := range w {
		w[i] = float64(rng.IntN(2))
	}
	return w, nil
}

func sign(rng *rand.Rand, m, n int, _ float64) ([]float64, error) {
	w := make([]float64, m*n)
	for i := range w {
		w[i] = 1 - 2*float64(rng.IntN(2))
	}
	return w, nil
}

// hadamard takes M random rows and the first N columns of the smallest Hadamard matrix
// (Sylvester's construction) that is large enough.
func hadamard(rng *rand.Rand, m, n int, _ float64) ([]float64, error) {
	size := 1 << bits.Len(uint(max(m, n)-1))
	w := make([]float64, 0, m*n)
	for _, row := range rng.Perm(size)[:m] {
		for i := range n {
			w = append(w, 1-2*float64(bits.OnesCount(uint(row&i))%2))
		}
	}
	return w, nil
}

// dct takes M random rows of the discrete cosine transform (type II), and its
// first N columns when M > N.
func dct(rng *rand.Rand, m, n int, _ float64) ([]float64, error) {
	size := max(m, n)
	w := make([]float64, 0, m*n)
	for _, row := range rng.Perm(size)[:m] {
		norm := math.Sqrt2
		if row == 0 {
			norm = 1
		}
		for i := range n {
			w = append(w, norm*math.Cos(math.Pi*float64(row)*(float64(i)+0.5)/float64(size)))
		}
	}
	return w, nil
}

// correlated has rows that are autoregressive processes of first order, so that
// neighbouring columns are correlated.
func correlated(rng *rand.Rand, m, n int, value float64) ([]float64, error) {
	w := gaussian(rng, m, n)
	for i := range w {
		if i%n > 0 {
			w[i] = value*w[i-1] + math.Sqrt((1-value)*(1+value))*w[i]
		}
	}
	return w, nil
}

// conditioned has random singular vectors, and singular values that fall
// geometrically from the condition number to 1.
func conditioned(rng *rand.Rand, m, n int, value float64) ([]float64, error) {
	rank := min(m, n)
	left, right := orthonormal(rng, m, rank), orthonormal(rng, n, rank)
	for j := range rank {
		sigma := math.Pow(value, -float64(j)/float64(max(1, rank-1)))
		for mu := range m {
			left.Set(mu, j, sigma*left.At(mu, j))
		}
	}
	var w mat.Dense
	w.Mul(left, right.T())
	return w.RawMatrix().Data, nil
}

// orthonormal returns random orthonormal columns.
func orthonormal(rng *rand.Rand, rows, columns int) *mat.Dense {
	var qr mat.QR
	qr.Factorize(mat.NewDense(rows, columns, gaussian(rng, rows, columns)))
	var q mat.Dense
	qr.QTo(&q)
	return mat.DenseCopyOf(q.Slice(0, rows, 0, columns))
}

// lowRank is a product of two matrices with independent entries.
func lowRank(rng *rand.Rand, m, n int, value float64) ([]float64, error) {
	rank := max(1, int(math.Round(value*float64(min(m, n)))))
	var w mat.Dense
	w.Mul(mat.NewDense(m, rank, gaussian(rng, m, rank)), mat.NewDense(rank, n, gaussian(rng, rank, n)))
	return w.RawMatrix().Data, nil
}

func sparse(rng *rand.Rand, m, n int, value float64) ([]float64, error) {
	w := gaussian(rng, m, n)
	for i := range w {
		if rng.Float64() >= value {
			w[i] = 0
		}
	}
	return w, nil
}

// duplicated replaces some rows, at random places, by copies of others.
func duplicated(rng *rand.Rand, m, n int, value float64) ([]float64, error) {
	w := gaussian(rng, m, n)
	order := rng.Perm(m)
	copies := min(int(math.Round(value*float64(m)/2)), m/2)
	for j := range copies {
		from, to := order[2*j], order[2*j+1]
		copy(w[to*n:(to+1)*n], w[from*n:(from+1)*n])
	}
	return w, nil
}

func uneven(rng *rand.Rand, m, n int, value float64) ([]float64, error) {
	w := gaussian(rng, m, n)
	for mu := range m {
		factor := math.Exp(value * rng.NormFloat64())
		for i := range n {
			w[mu*n+i] *= factor
		}
	}
	return w, nil
}

func zeroColumns(rng *rand.Rand, m, n int, value float64) ([]float64, error) {
	w := gaussian(rng, m, n)
	for _, i := range rng.Perm(n)[:int(math.Round(value*float64(n)))] {
		for mu := range m {
			w[mu*n+i] = 0
		}
	}
	return w, nil
}
