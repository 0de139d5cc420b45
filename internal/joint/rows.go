// Package joint is the node of signals that belong together: a row of X, the P values of one entry in all signals, is zero
// altogether or drawn from a normal distribution whose covariance across signals is learned. It owns the posterior of the rows, their
// evidence, and the learning of its hyperparameters; it knows fields, and nothing of sensors or of how the fields came about.
//
//	x_i = 0 with probability 1-ρ,   x_i ~ N(m, R) else.
//
// Matrices over signals are P×P, row-major. Entries of signals are P×N, signal by signal.
package joint

import (
	"math"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"

	"github.com/calamp/calamp/internal/dense"
	"github.com/calamp/calamp/internal/parallel"
)

// Prior are the hyperparameters.
type Prior struct {
	Density float64   // ρ, in (0, 1]
	Mean    []float64 // m, P
	Cov     []float64 // R, P×P, positive semidefinite: of any rank; within a span as [Span.Len] says
	Groups  *Groups   // of rows; nil where all have ρ, which is the mean of groups' else
	Sizes   float64   // κ: rows have the covariances tR and no mean, t gamma-distributed with this shape; 0 where all have R (see [sizes])

	span *Span
}

// Full is the prior with R as P×P numbers.
func (q *Prior) Full() Prior {
	full := *q
	full.Cov, full.span = q.span.Full(q.Cov, len(q.Mean)), nil
	return full
}

// Trace is that of R.
func (q *Prior) Trace() float64 { return q.span.trace(q.Cov, len(q.Mean)) }

// Isotropic is the prior of p signals that share their support and nothing else.
func Isotropic(p int, density, mean, variance float64) Prior {
	q := Prior{Density: density, Mean: make([]float64, p), Cov: make([]float64, p*p)}
	for k := range p {
		q.Mean[k], q.Cov[k*p+k] = mean, variance
	}
	return q
}

// Field is what the readings say of all rows, N(x_i; λ_i, Σ_i) with precisions of one shape, Σ_i⁻¹ = a_i A. It is stated as an offset
// from a centre c_i, as message passing has it: Σ_i⁻¹λ_i = a_i A c_i + r_i.
type Field struct {
	Shape  *Shape    // A
	Size   []float64 // a_i, N; 0 where nothing was measured, or r is a tilt: e^{rᵀx}, which says where to go and not how far
	Centre []float64 // c, P×N
	Onward []float64 // r, P×N
}

// Rows is the node. Its slices are what the latest Update found.
type Rows struct {
	N, P    int
	Columns int // of a value: 2 where it is complex, its parts beside each other, and Cov is [Circular]; else 1
	Threads int
	Prior   Prior
	Span    *Span // of all fields, and of m; nil where there is none (see [Rows.Within])

	X, C    []float64 // P×N posterior means and variances
	Trace   []float64 // N, the trace of a row's covariance C_i
	Support []float64 // N, π_i: the probability that a row is not zero
	Weight  []float64 // N, the mean of its size t, 0 where it is zero
	Sum     []float64 // P×P, Σ_i C_i; within a span as [Span.Len] says

	// Of every row: the evidence log ∫ p(x_i) exp(-½ (x_i-λ_i)ᵀΣ_i⁻¹(x_i-λ_i)) dx_i, 0 where nothing was measured; x̂_iᵀΣ_i⁻¹(λ_i - x̂_i); and
	// tr Σ_i⁻¹(C_i + (x̂_i-λ_i)(x̂_i-λ_i)ᵀ).
	LogMass, Pull, Square []float64

	// Sums over rows that are not zero, by which hyperparameters are learned: Σ π, Σ π/t µ and Σ π/t (S + µµᵀ), t being the sizes of rows.
	count             float64
	away, awaySquared float64 // Σ π d and Σ π d² of the distances d of rows (see [basis.distance])
	first, second     []float64
	within            []float64 // P, Σ π/t S, in the basis of the latest Update
	counts            []float64 // Σ π by size
	seen, expected    []float64 // N, of the sizes of groups (see [Rows.scatter])

	chunks []sums
	run    func(chunk int)
	field  Field
	basis  basis
	sizes  []float64 // logarithms of the densities of sizes; nil where rows have one
	slabs  *slabs    // nil where rows are Gaussian
}

// sums are those of a chunk of rows, in the basis of the latest Update.
type sums struct {
	count             float64
	away, awaySquared float64
	first             []float64 // P, Σ π/t µ
	within            []float64 // P, Σ π/t S
	second, between   []float64 // P×P, Σ π/t µµᵀ, and Σ C_i less the S in it
	inside            []float64 // P, Σ π S
	counts            []float64

	// P×rowsOfChunk, workspace in these coordinates: c, r, µ, µ - c and S.
	centre, onward, mu, offset, s []float64

	scaled, doubted []float64 // vectors of P, workspace of sum
	of              []int     // whose the latter are, where rows have sizes
	one             sized
	slab            *slabWork
}

// rowsOfChunk is how many rows a goroutine takes at a time.
const rowsOfChunk = 64

// NewRows is a node for n rows of p real values.
func NewRows(n, p, threads int, prior Prior) *Rows {
	r := &Rows{N: n, P: p, Columns: 1, Threads: threads, Prior: prior}
	of := func(count int) []float64 { return make([]float64, count) }
	r.X, r.C, r.Sum, r.first, r.second, r.within = of(p*n), of(p*n), of(p*p), of(p), of(p*p), of(p)
	r.counts = of(len(gridOfSizes))
	for _, v := range []*[]float64{&r.Trace, &r.Support, &r.Weight, &r.LogMass, &r.Pull, &r.Square, &r.seen, &r.expected} {
		*v = of(n)
	}
	r.chunks = make([]sums, (n+rowsOfChunk-1)/rowsOfChunk)
	for i := range r.chunks {
		r.chunks[i] = sums{
			first: of(p), within: of(p), inside: of(p), counts: of(len(gridOfSizes)), second: of(p * p), between: of(p * p),
			centre: of(p * rowsOfChunk), onward: of(p * rowsOfChunk),
			mu: of(p * rowsOfChunk), offset: of(p * rowsOfChunk), s: of(p * rowsOfChunk),
			scaled: of(p * rowsOfChunk), doubted: of(p * rowsOfChunk),
		}
	}
	r.run = r.chunk
	return r
}

// Within makes s the span of rows whose prior is isotropic.
func (r *Rows) Within(s *Span) {
	if s == nil {
		return
	}
	v := r.Prior.Cov[0]
	r.Span, r.Prior.span = s, s
	for _, a := range []*[]float64{&r.Prior.Cov, &r.Sum, &r.second} {
		*a = make([]float64, s.Len(r.P))
	}
	s.Times(r.Prior.Cov, r.P, v)
}

// Leave gives the span up.
func (r *Rows) Leave() {
	r.Prior, r.Sum, r.second = r.Prior.Full(), r.Span.Full(r.Sum, r.P), r.Span.Full(r.second, r.P)
	r.Span = nil
}

// Start makes X, C and the sums those of the prior.
func (r *Rows) Start() {
	p, rho := r.P, r.Prior.Density
	clear(r.Sum)
	for k := range p {
		mk := r.Prior.Mean[k]
		for l := range p {
			r.Sum[k*p+l] = float64(r.N) * rho * (r.Prior.Cov[k*p+l] + (1-rho)*mk*r.Prior.Mean[l])
		}
		for i := range r.N {
			r.X[k*r.N+i], r.C[k*r.N+i] = rho*mk, r.Sum[k*p+k]/float64(r.N)
		}
	}
	for i := range r.N {
		r.Support[i], r.Trace[i] = rho, trace(r.Sum, p)/float64(r.N)
	}
}

// Update finds the posterior of all rows: with x = Tu, in whose coordinates A is I and R is diagonal (see [basis]), a row is P numbers of which only
// the question whether they are zero is common,
//
//	S_k = d_k/(1+a d_k),   µ_k = c_k + (d_k r_k + m_k - c_k)/(1+a d_k),   h_k = a c_k + r_k,
//	log odds = log ρ/(1-ρ) + Σ_k ½ [µ_k h_k + m_k (h_k - a µ_k)] - ½ log(1+a d_k).
//
// Written as an offset from c, near which it is at the end of a run, µ has the digits of the offset.
func (r *Rows) Update(f Field) {
	r.field = f
	if r.slabs != nil {
		r.separate()
		return
	}
	r.basis.set(f.Shape, &r.Prior, r.Columns)
	r.sizes = logSizes(r.Prior.Sizes)
	parallel.Run(len(r.chunks), r.Threads, r.run)
	r.collect()
}

// chunk is Update of some rows.
func (r *Rows) chunk(c int) {
	from := c * rowsOfChunk
	n, p := min(rowsOfChunk, r.N-from), r.P
	w := &r.chunks[c]
	r.turnFields(w, from, n)
	clear(r.seen[from : from+n])
	clear(r.expected[from : from+n])
	w.clear(len(r.basis.variance))
	if r.sizes == nil {
		r.posteriors(w, from, n)
		r.sum(w, from, n)
		copy(r.Weight[from:from+n], r.Support[from:from+n])
	} else {
		r.posteriorsOfSizes(w, from, n)
	}
	w.products(len(r.basis.variance))

	// x̂ = πµ, and C_kk = Σ_l T_kl² πS_l + π(1-π) (Tµ)_k².
	x, v := r.columns(r.X, from, n), r.columns(r.C, from, n)
	count := len(r.basis.variance)
	dense.Product(x, dense.Of(r.basis.to, p, count), dense.Of(w.offset, count, n))
	dense.Product(v, dense.Of(r.basis.squares, p, count), dense.Of(w.s, count, n))
	for i := range n {
		r.Trace[from+i] = 0
	}
	for k := range p {
		xs, vs, cs := r.X[k*r.N+from:], r.C[k*r.N+from:], r.field.Centre[k*r.N+from:]
		for i, pi := range r.Support[from : from+n] {
			t := r.Prior.size(from + i)
			mean := cs[i] + math.Sqrt(t)*xs[i]
			xs[i] = pi * mean
			vs[i] = pi * (t*vs[i] + (1-pi)*mean*mean)
			r.Trace[from+i] += vs[i]
		}
	}
	if r.sizes != nil {
		r.spread(w, from)
	}
	if r.Columns > 1 {
		meanOfPairs(v.Data, p, r.N, n)
	}
}

// turnFields sets the c and r of a chunk, in the units of groups, which are zero outside of a span.
func (r *Rows) turnFields(w *sums, from, n int) {
	p, count := r.P, len(r.basis.variance)
	dense.Product(dense.Of(w.centre, count, n), dense.Of(r.basis.from, count, p), r.columns(r.field.Centre, from, n))
	dense.Product(dense.Of(w.onward, count, n), dense.Of(r.basis.to, p, count).T(), r.columns(r.field.Onward, from, n))
	if r.Prior.Groups == nil {
		return
	}
	for i := range n {
		root := math.Sqrt(r.Prior.size(from + i))
		for j := i; j < count*n; j += n {
			w.centre[j] /= root
			w.onward[j] *= root
		}
	}
}

// posteriors sets µ, S, π and the evidence of a chunk, in the coordinates u. The evidences of a row that is there, and of one that is zero, are
//
//	-½ Σ_k log(1+a d_k) + (h_k-a m_k)²/(a(1+a d_k)),   -½ Σ_k h_k²/a,
//
// or ½ Σ_k r_k (d_k r_k + 2m_k) and 0 for a tilt.
func (r *Rows) posteriors(w *sums, from, n int) {
	for i := range n {
		a := r.precision(from + i)
		there, zero, product := 0.0, 0.0, logProduct{value: 1}
		for k, d := range r.basis.variance {
			j := k*n + i
			m, c, onward := r.basis.mean[k], w.centre[j], w.onward[j]
			inverse := 1 / (1 + a*d)
			w.offset[j] = (d*onward + (m - c)) * inverse
			w.mu[j], w.s[j] = c+w.offset[j], d*inverse
			if a > 0 {
				h, off := a*c+onward, a*(c-m)+onward
				there += off * (off * inverse / a)
				zero += h * (h / a)
				product.power(1+a*d, r.basis.times[k])
			} else {
				there -= onward * (d*onward + 2*m)
			}
		}
		r.Support[from+i], r.LogMass[from+i] = presence(r.Prior.density(from+i), -0.5*(there+product.log()), -0.5*zero)
		r.distances(w, from, i, n)
	}
}

// presence is the probability that a row is there, and the logarithm of its evidence, from those of rows that are and are not.
func presence(density, there, zero float64) (pi, logMass float64) {
	if density == 1 {
		return 1, there
	}
	there, zero = there+math.Log(density), zero+math.Log1p(-density)
	if there > zero {
		e := math.Exp(zero - there)
		return 1 / (1 + e), there + math.Log1p(e)
	}
	e := math.Exp(there - zero)
	return e / (1 + e), zero + math.Log1p(e)
}

// distances sets the sums of row i that tell estimates from fields: Σ⁻¹(λ-x̂) is a (c-x̂) + r.
func (r *Rows) distances(w *sums, from, i, n int) {
	a, pi := r.precision(from+i), r.Support[from+i]
	var pull, variance, square float64
	for k, times := range r.basis.times {
		j := k*n + i
		mu := w.mu[j]
		away := a*((1-pi)*w.centre[j]-pi*w.offset[j]) + w.onward[j]
		pull += pi * mu * away
		variance += pi * times * (w.s[j] + (1-pi)*mu*mu)
		square += away * away
	}
	r.Pull[from+i], r.Square[from+i] = pull, 0
	if a > 0 {
		r.Square[from+i] = a*variance + square/a
	}
}

// sum adds up a chunk: rows that are zero for certain have no part in it.
func (r *Rows) sum(w *sums, from, n int) {
	count := len(r.basis.variance)
	there, doubted := w.scaled, w.doubted // √π µ and √(π(1-π)) µ of one row after the other
	for i, pi := range r.Support[from : from+n] {
		if pi < absent {
			continue
		}
		w.count += pi
		root, rest := math.Sqrt(pi), pi*(1-pi)
		w.far(pi, r.basis.distance(w.mu[i:], w.s[i:], n))
		r.scatter(from+i, pi, r.precision(from+i), 1, w.mu[i:], w.s[i:], n)
		t := r.Prior.size(from + i)
		for k := range count {
			mu, s := w.mu[k*n+i], w.s[k*n+i]
			w.first[k] += pi * mu
			w.within[k] += pi * s
			w.inside[k] += pi * t * s
			there = append(there, root*mu)
		}
		if rest > absent {
			root = math.Sqrt(t * rest)
			for k := range count {
				doubted = append(doubted, root*w.mu[k*n+i])
			}
		}
	}
	w.scaled, w.doubted = there, doubted
}

// distance is the square of the values of a row in all directions but the leading one. The values µ and their variances are so many apart.
func (b *basis) distance(mu, s []float64, apart int) (d float64) {
	for k, times := range b.others {
		if times > 0 {
			off := mu[k*apart] - b.mean[k]
			d += times * (off*off + s[k*apart])
		}
	}
	return d
}

func (w *sums) far(pi, distance float64) {
	w.away += pi * distance
	w.awaySquared += pi * distance * distance
}

// effective is how many rows of one size tell as much of a covariance: (Σd)²/Σd² of their distances d in all directions but the leading one (L. Kish, Survey Sampling, 1965), times what Σd²/(Σd)² is for each of rows of one size, 1+2Σv²/(Σv)² with the
// variances v. Of rows that change by a part of their brightness a few have most of the change.
func (r *Rows) effective() float64 {
	var sum, square float64
	for k, v := range r.basis.variance {
		sum += r.basis.others[k] * v
		square += r.basis.others[k] * v * v
	}
	if !(r.awaySquared > 0 && sum > 0) {
		return r.count
	}
	return min(r.count, (1+2*square/(sum*sum))*r.away*(r.away/r.awaySquared))
}

// clear is for so many directions.
func (w *sums) clear(count int) {
	w.count, w.away, w.awaySquared = 0, 0, 0
	for _, v := range [][]float64{w.first, w.within, w.inside, w.second[:count*count], w.between[:count*count], w.counts} {
		clear(v)
	}
	w.scaled, w.doubted, w.of = w.scaled[:0], w.doubted[:0], w.of[:0]
}

// products sets the sums that are products of the vectors of so many directions that were listed.
func (w *sums) products(count int) {
	for _, c := range []struct{ sum, rows []float64 }{{w.second, w.scaled}, {w.between, w.doubted}} {
		rows := dense.Of(c.rows, len(c.rows)/count, count)
		dense.AddProduct(dense.Of(c.sum, count, count), 1, rows.T(), rows, dense.All, 1)
	}
}

// absent is a probability whose part of a sum over rows is below its rounding.
const absent = 1e-20

// collect adds the chunks up, in order, and turns the sums back: Σ C = T [Σ πS + Σ π(1-π) µµᵀ] Tᵀ.
func (r *Rows) collect() {
	p, count := r.P, len(r.basis.variance)
	r.count, r.away, r.awaySquared = 0, 0, 0
	clear(r.first)
	clear(r.counts)
	r.within = r.within[:count]
	within, second, between := r.within, make([]float64, count*count), make([]float64, count*count)
	clear(within)
	first, inside := make([]float64, count), make([]float64, count)
	for c := range r.chunks {
		w := &r.chunks[c]
		r.count += w.count
		r.away += w.away
		r.awaySquared += w.awaySquared
		add(r.counts, w.counts)
		add(first, w.first[:count])
		add(within, w.within[:count])
		add(inside, w.inside[:count])
		add(second, w.second[:count*count])
		add(between, w.between[:count*count])
	}
	for k, v := range within {
		second[k*count+k] += v
		between[k*count+k] += inside[k]
	}
	r.basis.turn(r.second, second)
	r.basis.turn(r.Sum, between)
	blas64.Gemv(blas.NoTrans, 1, general(r.basis.to, p, count), column(first), 0, column(r.first))
	if r.Columns > 1 {
		r.Span.Circular(r.second, p)
		r.Span.Circular(r.Sum, p)
	}
}

// columns are rows from … from+n of an array of entries, as a P×n matrix.
func (r *Rows) columns(v []float64, from, n int) dense.Matrix {
	return dense.Of(v, r.P, r.N).Part(0, r.P, from, from+n)
}

// logProduct is the logarithm of a product of many factors of 1 or more, taken as seldom as the range of float64 allows.
type logProduct struct{ value, sum float64 }

func (l *logProduct) multiply(factor float64) {
	l.value *= factor
	if !(l.value < 1e150) {
		l.sum += math.Log(l.value)
		l.value = 1
	}
}

// power multiplies by a factor so many times.
func (l *logProduct) power(factor, times float64) {
	if times == 1 {
		l.multiply(factor)
	} else {
		l.sum += times * math.Log(factor)
	}
}

func (l *logProduct) log() float64 { return l.sum + math.Log(l.value) }

func add(to, v []float64) {
	for i, x := range v {
		to[i] += x
	}
}

func trace(a []float64, p int) (total float64) {
	for k := range p {
		total += a[k*p+k]
	}
	return total
}

func square(v []float64, p int) blas64.General { return general(v, p, p) }

func general(v []float64, rows, columns int) blas64.General {
	return blas64.General{Rows: rows, Cols: columns, Stride: columns, Data: v[:rows*columns]}
}

func column(v []float64) blas64.Vector { return blas64.Vector{N: len(v), Data: v, Inc: 1} }
