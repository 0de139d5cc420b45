package joint

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"

	"github.com/calamp/calamp/internal/dense"
	"github.com/calamp/calamp/internal/parallel"
	"github.com/calamp/calamp/internal/vector"
)

// sized is a row that is there with one of several sizes: N(0, tR), where t has a gamma distribution of mean 1 whose shape κ is learned. Brightness that changes by one percent
// everywhere makes such a scene: entries that are small change little, too. With one size for all, an entry that does not change as much as others do is
// taken for zero; gains that only the changes tell then take up what it has in all signals, and their error bars know nothing of it (ten scenes that
// change by 1 %, 140 sensors: 55 to 73 % of s inside). What rows have as a mean is a part of R. By itself it ruled out small rows: of sixty scenes that change by 10 % one of half a
// percent of the usual brightness was taken for zero, by a mean that rows had by chance.
//
// On a grid of t a row is one of several Gaussians.
type sized struct {
	odds, pi []float64 // by size: of a row, logarithms of how much likelier it is there than zero, and probabilities
	mu, s    []float64 // by size, P each
}

// gridOfSizes are the t. A row of P values knows log t to √(2/P), and the part of entries with t below the least one is 1.2 % with κ = ½, where the values of a row are products of two normal ones.
var gridOfSizes = []float64{1. / 4096, 1. / 1024, 1. / 256, 1. / 64, 1. / 16, 1. / 4, 1, 4}

// Shapes κ: beyond the largest, sizes are within the grid's step of each other.
const (
	leastShape = 0.25
	mostShape  = 8
)

// logSizes are the logarithms of the densities of sizes on the grid, t^κ e^{-κt} up to a constant; nil for κ = 0.
func logSizes(shape float64) []float64 {
	if shape == 0 {
		return nil
	}
	logs := make([]float64, len(gridOfSizes))
	for j, t := range gridOfSizes {
		logs[j] = shape * (math.Log(t) - t)
	}
	total := floats.LogSumExp(logs)
	for j := range logs {
		logs[j] -= total
	}
	return logs
}

// MeanSize is the mean of t: R times it is the covariance of rows that are there.
func (q *Prior) MeanSize() float64 {
	if q.Sizes == 0 {
		return 1
	}
	mean := 0.0
	for j, l := range logSizes(q.Sizes) {
		mean += math.Exp(l) * gridOfSizes[j]
	}
	return mean
}

// refitSizes moves the shape by one step of scoring, and returns how far, in standard errors.
func (r *Rows) refitSizes() float64 {
	var mean, square, seen float64 // of log t - t
	for j, l := range r.sizes {
		v, w := math.Log(gridOfSizes[j])-gridOfSizes[j], math.Exp(l)
		mean += w * v
		square += w * v * v
		seen += r.counts[j] * v
	}
	information := r.count * (square - mean*mean)
	if !(information > 0) {
		return 0
	}
	before := r.Prior.Sizes
	r.Prior.Sizes = min(max(before+(seen-r.count*mean)/information, leastShape, before/2), mostShape, before*2)
	return math.Abs(r.Prior.Sizes-before) * math.Sqrt(information)
}

// evidences sets the logarithms of how much likelier row i of a chunk is if it is there with each size than if it is zero, and µ and S of each.
func (r *Rows) evidences(w *sums, from, i, n int) {
	count, a, one := len(r.basis.variance), r.precision(from+i), &w.one
	if one.odds == nil {
		of := func(count int) []float64 { return make([]float64, count*len(gridOfSizes)) }
		one.odds, one.pi, one.mu, one.s = of(1), of(1), of(r.P), of(r.P)
	}
	for j, t := range gridOfSizes {
		odds, product := 0.0, logProduct{value: 1}
		for k, d := range r.basis.variance {
			d *= t
			m, c, onward := r.basis.mean[k], w.centre[k*n+i], w.onward[k*n+i]
			h, inverse := a*c+onward, 1/(1+a*d)
			mu := c + (d*onward+(m-c))*inverse
			one.mu[j*count+k], one.s[j*count+k] = mu, d*inverse
			odds += mu*h + m*(h-a*mu)
			product.power(1+a*d, r.basis.times[k])
		}
		one.odds[j] = 0.5 * (odds - product.log())
	}
}

// posteriorsOfSizes is posteriors and sum where rows have sizes.
func (r *Rows) posteriorsOfSizes(w *sums, from, n int) {
	count, one := len(r.basis.variance), &w.one
	for i := range n {
		r.evidences(w, from, i, n)
		for j, l := range r.sizes {
			one.odds[j] += l
		}
		there, zero := floats.LogSumExp(one.odds), 0.0
		if a := r.precision(from + i); a > 0 {
			for k := range count {
				h := a*w.centre[k*n+i] + w.onward[k*n+i]
				zero += h * (h / a)
			}
		}
		pi, mass := presence(r.Prior.density(from+i), there-0.5*zero, -0.5*zero)
		r.Support[from+i], r.LogMass[from+i], r.Weight[from+i] = pi, mass, 0
		for j, l := range one.odds {
			one.pi[j] = math.Exp(l - there)
			r.Weight[from+i] += pi * one.pi[j] * gridOfSizes[j]
		}
		for k := range count {
			at := k*n + i
			w.mu[at], w.s[at] = 0, 0
			for j, q := range one.pi {
				w.mu[at] += q * one.mu[j*count+k]
				w.s[at] += q * one.s[j*count+k]
			}
			w.offset[at] = w.mu[at] - w.centre[at]
		}
		r.distances(w, from, i, n)
		if pi >= absent {
			r.sumOfSizes(w, from, i, n, pi)
		}
	}
}

// sumOfSizes adds row i of a chunk up.
func (r *Rows) sumOfSizes(w *sums, from, i, n int, pi float64) {
	count, one, size := len(r.basis.variance), &w.one, r.Prior.size(from+i)
	w.count += pi
	for k := range count {
		w.inside[k] += pi * size * w.s[k*n+i]
	}
	if rest := pi * (1 - pi); rest > absent {
		root := math.Sqrt(size * rest)
		for k := range count {
			w.doubted = append(w.doubted, root*w.mu[k*n+i])
		}
		w.of = append(w.of, -1)
	}
	for j, q := range one.pi {
		if q *= pi; q < absent {
			continue
		}
		t := gridOfSizes[j]
		w.counts[j] += q
		w.far(q, r.basis.distance(one.mu[j*count:], one.s[j*count:], 1)/t)
		r.scatter(from+i, q, r.precision(from+i), t, one.mu[j*count:], one.s[j*count:], 1)
		root, rooted, apart := math.Sqrt(q*size), math.Sqrt(q/t), 0.0
		for k, v := range one.mu[j*count : (j+1)*count] {
			w.first[k] += q / t * v
			w.within[k] += q / t * one.s[j*count+k]
			w.scaled = append(w.scaled, rooted*v)
			off := root * (v - w.mu[k*n+i])
			w.doubted = append(w.doubted, off)
			apart += off * off
		}
		w.of = append(w.of, i)
		r.Square[from+i] += r.field.Size[from+i] * apart
	}
}

// spread adds to variances what the means of different sizes of a row differ in: the vectors that were listed with it.
func (r *Rows) spread(w *sums, from int) {
	p := r.P
	rows, count := len(w.of), len(r.basis.variance)
	turned, done := dense.Scratch(p, rows)
	defer done()
	dense.Product(turned, dense.Of(r.basis.to, p, count), dense.Of(w.doubted, rows, count).T())
	for k := range p {
		c := r.C[k*r.N+from:]
		for at, v := range turned.Row(k) {
			if i := w.of[at]; i >= 0 {
				c[i] += v * v
				r.Trace[from+i] += v * v
			}
		}
	}
}

// Sized is q with rows of sizes of that shape, of which its mean is a part of the covariance.
func (q *Prior) Sized(shape float64) Prior {
	s := Prior{Density: q.Density, Mean: make([]float64, len(q.Mean)), Cov: slices.Clone(q.Cov), Groups: q.Groups, Sizes: shape, span: q.span}
	mean := q.span.inside(q.Mean)
	for k, m := range mean {
		floats.AddScaled(s.Cov[k*len(mean):(k+1)*len(mean)], m, mean)
	}
	return s
}

// SizesGain is the logarithm of how much likelier the fields of the latest Update are if rows have sizes, and the shape of these.
func (r *Rows) SizesGain() (gain, shape float64) {
	count, rows := len(gridOfSizes), make([]float64, vector.Padded(r.N))
	for i, odds := 0, r.oddsOfSizes(&r.Prior); i < r.N; i++ {
		rows[i] = odds[i*count+slices.Index(gridOfSizes, 1)]
	}
	before := r.evidence(rows)
	sized := r.Prior.Sized(0)
	odds := r.oddsOfSizes(&sized)
	gain = math.Inf(-1)
	for at := leastShape; at <= mostShape; at *= 2 {
		logs, sum := logSizes(at), make([]float64, count)
		clear(rows)
		for i := range r.N {
			for j, v := range odds[i*count : (i+1)*count] {
				sum[j] = v + logs[j]
			}
			rows[i] = floats.LogSumExp(sum)
		}
		if v := r.evidence(rows) - before; v > gain {
			gain, shape = v, at
		}
	}
	r.basis.set(r.field.Shape, &r.Prior, r.Columns)
	return gain, shape
}

// oddsOfSizes are the logarithms of how much likelier each row is if it is there, by size, than if it is zero (N, each of all sizes), by that prior.
func (r *Rows) oddsOfSizes(q *Prior) []float64 {
	count := len(gridOfSizes)
	odds := make([]float64, r.N*count)
	r.basis.set(r.field.Shape, q, r.Columns)
	parallel.Run(len(r.chunks), r.Threads, func(c int) {
		from, w := c*rowsOfChunk, &r.chunks[c]
		n := min(rowsOfChunk, r.N-from)
		r.turnFields(w, from, n)
		for i := range n {
			r.evidences(w, from, i, n)
			copy(odds[(from+i)*count:], w.one.odds)
		}
	})
	return odds
}
