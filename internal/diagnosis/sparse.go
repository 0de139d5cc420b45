package diagnosis

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/mat"

	"github.com/calamp/calamp/internal/amp"
	"github.com/calamp/calamp/internal/cholesky"
	"github.com/calamp/calamp/internal/dense"
	"github.com/calamp/calamp/operator"
)

// Concentration is how few entries have the signals' power in a basis, as the readings tell it where nothing was recovered. With Gaussian signals integrated out, readings z = W x + noise
// have the covariance K = WWᵀ + λ, and
//
//	q = cᵀK⁻¹z,   f = cᵀK⁻¹c
//
// of a column c of W say how much of z its entry explains: of an entry of variance 1, q has the variance f² Var(x) + f(1-f). So q²/f is χ² with one degree of freedom where signals
// are dense and Gaussian, in any basis, and of entries that are zero or Gaussian with density ρ its mean square is 3 (1 + f² (1/ρ - 1)).
type Concentration struct {
	Inverse, SD float64 // 1/ρ, and its standard deviation where signals are Gaussian
}

// Density is the density of entries as concentrated.
func (c Concentration) Density() float64 { return 1 / max(1, c.Inverse) }

// Least is the density that is exceeded with 98 %.
func (c Concentration) Least() float64 { return 1 / max(1, c.Inverse+2*c.SD) }

const (
	// assumedNoise is the noise variance λ in units of what signals of variance 1 add to a reading, and levelVariance the variance of the signals' common level, in those of all of them:
	// scenes have a large one, of which no basis is to be judged.
	assumedNoise  = 0.01
	levelVariance = 1e4

	// barelySeen is the f, relative to the mean, below which an entry is not asked.
	barelySeen = 0.02

	// scatter is the variance of (q²/f)²/3 of one Gaussian entry: (105 - 9)/9.
	scatter = 32.0 / 3
)

// Readings are those of the sensors that read all signals, with their rows of W, gains made as equal as their sizes tell.
type Readings struct {
	rows dense.Matrix // L⁻¹W, with K = LLᵀ
	z    dense.Matrix // L⁻¹z
}

// Gaussian prepares readings y (M×P, NaN where missing) for [Readings.Concentration].
func Gaussian(w operator.Matrix, y *mat.Dense, threads int) (*Readings, error) {
	m, p := y.Dims()
	_, n := w.Dims()
	var all, rows []float64
	used := 0
	for mu := range m {
		if slices.ContainsFunc(y.RawRowView(mu), math.IsNaN) || mat.Norm(y.RowView(mu), 2) == 0 {
			continue
		}
		row := make([]float64, n)
		if err := w.RowInto(row, mu); err != nil {
			return nil, err
		}
		all, rows, used = append(all, y.RawRowView(mu)...), append(rows, row...), used+1
	}
	if used < 2 || 2*used < m {
		return nil, errors.New("too many sensors miss readings")
	}
	r := &Readings{dense.Of(rows, used, n), dense.Of(all, used, p)}
	k, level, trace := dense.New(used, used), make([]float64, used), 0.0
	dense.AddProduct(k, 1, r.rows, r.rows.T(), dense.Lower, threads)
	for mu := range used {
		for _, v := range r.rows.Row(mu) {
			level[mu] += v
		}
		trace += k.At(mu, mu)
	}
	r.equalGains(k, level)
	squares := cholesky.Dot(level, level)
	for mu := range used {
		row := k.Row(mu)
		for nu := range mu + 1 {
			if squares > 0 {
				row[nu] += levelVariance * trace * level[mu] * level[nu] / squares
			}
		}
		row[mu] += assumedNoise * trace / float64(used)
	}
	if !dense.Factor(k, threads) {
		return nil, errors.New("W has no independent rows")
	}
	dense.SolveLower(k, r.rows, threads)
	dense.SolveLower(k, r.z, threads)
	return r, nil
}

// equalGains divides the readings of each sensor by the gain that their size gives: all of it where the signals' level makes readings of all sensors equally large, elsewhere the part that
// chance does not explain, which has the variance ψ'(P/2) of the logarithm of a mean of P squares.
func (r *Readings) equalGains(k dense.Matrix, level []float64) {
	m, p := r.z.Rows, r.z.Columns
	logs, levels, trace := make([]float64, m), 0.0, 0.0
	for mu := range m {
		levels, trace = levels+level[mu]*level[mu], trace+k.At(mu, mu)
	}
	_, inCommon := amp.Proportions(r.z.Data, p)
	shared := p > 1 && inCommon > amp.MostInCommon
	for mu := range m {
		expected := k.At(mu, mu)
		if shared && levels > 10*trace {
			expected = level[mu] * level[mu]
		}
		logs[mu] = math.Log(cholesky.Dot(r.z.Row(mu), r.z.Row(mu)) / expected)
	}
	center, spread := amp.Mean(logs), 0.0
	for _, v := range logs {
		spread += (v - center) * (v - center) / float64(m)
	}
	part := 1.0
	if !shared {
		part = max(0, 1-trigamma(0.5*float64(p))/spread)
	}
	for mu, v := range logs {
		factor := math.Exp(-0.5 * part * (v - center))
		for k := range p {
			r.z.Row(mu)[k] *= factor
		}
	}
}

// Concentration is that of the signals in a basis (N×K), nil for the given one.
func (r *Readings) Concentration(basis operator.Operator, threads int) (Concentration, error) {
	columns := r.rows
	if basis != nil {
		whole, err := operator.NewDense(r.rows.Rows, r.rows.Columns, r.rows.Data)
		if err != nil {
			return Concentration{}, err
		}
		turned, err := operator.Compose(whole, basis)
		if err != nil {
			return Concentration{}, err
		}
		m, n := turned.Dims()
		columns = dense.New(m, n)
		for mu := range m {
			if err := turned.(operator.Matrix).RowInto(columns.Row(mu), mu); err != nil {
				return Concentration{}, err
			}
		}
	}
	f, q := make([]float64, columns.Columns), dense.New(columns.Columns, r.z.Columns)
	dense.AddProduct(q, 1, columns.T(), r.z, dense.All, threads)
	for mu := range columns.Rows {
		for i, v := range columns.Row(mu) {
			f[i] += v * v
		}
	}
	return concentration(f, q), nil
}

// concentration is that of entries of which f (N) and q (N×P) are known.
func concentration(f []float64, q dense.Matrix) Concentration {
	least := barelySeen * amp.Mean(f)
	total, seen := make([]float64, q.Columns), 0.0
	for i, v := range f {
		if v > least {
			seen++
			for k, u := range q.Row(i) {
				total[k] += u * u / v
			}
		}
	}
	fourth, square := 0.0, 0.0
	for i, v := range f {
		if v > least {
			square += v * v / seen
			for k, u := range q.Row(i) {
				chi := u * u / v * seen / total[k]
				fourth += chi * chi / (3 * seen * float64(q.Columns))
			}
		}
	}
	return Concentration{1 + (fourth-1)/square, math.Sqrt(scatter/(seen*float64(q.Columns))) / square}
}

// WarnNotSparse is the warning of signals that were not recovered and have more entries than sensors can find; nil where they have not. most is the density that they can find; other is that of them in
// the basis name, where that is clearly more concentrated, and its name empty elsewhere.
func WarnNotSparse(own Concentration, most float64, name string, other Concentration) *Warning {
	if !(own.Least() > most) {
		return nil
	}
	text := fmt.Sprintf("the signals are not sparse in this basis: their power is spread over at least %.2g %% of the entries, and these sensors can find at most %.2g %%, α (P - 1)/P; ", 100*own.Least(), 100*most)
	if name == "" {
		return &Warning{Code: NotSparse, Message: text + "nor are they sparse in a basis of cosines; give a basis in which they are (--basis), or more sensors than entries"}
	}
	return &Warning{Code: NotSparse, Message: text + fmt.Sprintf("in a basis of cosines it is spread over %.2g %%: give --basis %s", 100*other.Density(), name)}
}

// trigamma is ψ'(x), to a thousandth.
func trigamma(x float64) float64 {
	const terms = 20
	sum := 1 / (x + terms - 0.5)
	for k := range terms {
		sum += 1 / ((x + float64(k)) * (x + float64(k)))
	}
	return sum
}
