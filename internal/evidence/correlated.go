package evidence

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"
)

// Correlated is a prior of snapshots that resemble each other, lines of a scan or views of a scene: x_i ~ N(0, Γ_i R) with one R (P×P) of mean
// diagonal one. With R = U diag(r) Uᵀ, snapshots turned by U are independent, of variances r_k Γ. Gains are those of rows, so that (s∘Y)U = s∘(YU): the
// evidence is that of turned readings. Taken for independent, resembling snapshots count gains' errors once each.
//
// Γ and R take turns (Zhang and Rao, "Sparse signal recovery with temporally correlated source vectors using sparse Bayesian learning", 2011).
type Correlated struct {
	Gamma []float64 // N

	vectors  *mat.Dense    // P×P, U
	values   []float64     // P, r
	moved    *mat.SymDense // P×P, what unknown gains add to products of entries; nil where that is not known
	sums     []float64     // P, of columns of U: how often a turned snapshot has what all have
	floor    float64       // t
	spectrum *spectrum     // in place of R; nil where it is the same for all entries
	worth    float64       // by how much the evidence rises with R at what independent snapshots were found to be
	pace     []pace        // N, of Γ
}

// Correlate is a fit of correlated snapshots, begun at what f found; nil where there is one snapshot, or where readings of some are missing.
func (f *Fit) Correlate() *Fit {
	_, p := f.read.Dims()
	if p < 2 || len(f.Families) > 1 || f.Mixture != nil || f.Sparse != nil || f.missesSome() {
		return nil
	}
	products, count := f.productsOfEntries()
	r := newCorrelated(f.Families[0].Gamma, p)
	if !r.adopt(products, count) {
		return nil
	}
	r.worth = -0.5*count*logSum(r.values) - r.cost(count)
	next := newFit(f.w, f.read, f.each, true)
	next.beginAt(f, 0, 1)
	next.inherit(f)
	copy(r.Gamma, next.Families[0].Gamma)
	next.Correlated = r
	if f.Sizes != nil {
		next.Sizes = f.Sizes.clone()
	}
	next.turn()
	return next
}

// missesSome reports whether readings of some snapshots are missing, which cannot be turned.
func (f *Fit) missesSome() bool {
	return slices.ContainsFunc(f.Families, func(a *Family) bool { return len(a.patterns) > 1 })
}

// LeastIndependent is how many independent snapshots there are at least where scenes change. Of one that does not every sensor reads a level of its own, and halves of the snapshots are the same: of 1000 dense entries
// that 400 sensors read 20 times 71 sensors were left out, and signals were wrong by 100 % with 29 times the stated error. Dense scenes that do not change have 1.00 to 1.08, spectra that follow each other closely 1.5 and more.
const LeastIndependent = 1.25

// Independent is how many independent snapshots know as much of a variance as these: (tr R)²/tr R² with the covariance R of snapshots, as it was learned or as signals have it. Those of a scene
// that does not change are one, and their halves are the same. Lines of a scan have no R.
func (f *Fit) Independent() float64 {
	_, p := f.read.Dims()
	if f.Correlated.InOrder() {
		return float64(p)
	}
	if f.Correlated != nil {
		sum := floats.Sum(f.Correlated.values)
		return sum * sum / floats.Dot(f.Correlated.values, f.Correlated.values)
	}
	products, count := f.productsOfEntries()
	if !(count > 0) {
		return float64(p)
	}
	trace, norm := mat.Trace(products), mat.Norm(products, 2)
	return trace * (trace / (norm * norm))
}

// InOrder reports whether snapshots follow each other as lines of a scan do (see [Fit.Scanned]).
func (r *Correlated) InOrder() bool { return r != nil && r.spectrum != nil }

// variance is that of an entry of a turned snapshot.
func (r *Correlated) variance(i, k int) float64 {
	if r.spectrum != nil {
		return math.Exp(r.spectrum.log(i, k))
	}
	return r.values[k] * r.Gamma[i]
}

// Worthwhile reports whether R is worth its parameters at what independent snapshots were found to be. Of field problems of which a sparse prior is likelier than independent Gaussian signals, snapshots that have nothing in common
// have a rise of -10 to -230, and those that follow a covariance 7 to 90.
func (r *Correlated) Worthwhile() bool { return r.worth > 0 }

func newCorrelated(gamma []float64, p int) *Correlated {
	return &Correlated{Gamma: slices.Clone(gamma), vectors: mat.NewDense(p, p, nil), values: make([]float64, p), sums: make([]float64, p), pace: make([]pace, len(gamma))}
}

func logSum(values []float64) (total float64) {
	for _, v := range values {
		total += math.Log(v)
	}
	return total
}

// covarianceAs is how many entries the prior of R is worth, an inverse Wishart distribution about t times one: hardly more than makes it proper. t is learned: of snapshots that resemble each other
// closely R has many small eigenvalues, and a prior about one would not let them be.
func covarianceAs(p int) float64 { return float64(p + 2) }

// cost is what it costs the evidence that R is found from so many entries: their likelihood at R, over that with R integrated out and t found.
func (r *Correlated) cost(count float64) float64 {
	p := float64(len(r.values))
	prior := covarianceAs(len(r.values))
	both, inverses := prior+count, 0.0
	for _, v := range r.values {
		inverses += 1 / v
	}
	likelihood := -0.5*count*logSum(r.values) - 0.5*(both*p-r.floor*inverses) - 0.5*count*p*math.Log(2)
	integrated := logGammas(0.5*both, len(r.values)) - logGammas(0.5*prior, len(r.values)) + 0.5*prior*p*math.Log(r.floor) - 0.5*both*(p*math.Log(both)+logSum(r.values))
	return likelihood - integrated + 0.5*math.Log(max(count, 1))
}

// logGammas is the logarithm of the multivariate gamma function of dimension p, but for a constant.
func logGammas(a float64, p int) (total float64) {
	for j := range p {
		l, _ := math.Lgamma(a - 0.5*float64(j))
		total += l
	}
	return total
}

// turn makes readings those of turned snapshots, and variances theirs.
func (f *Fit) turn() {
	r := f.Correlated
	f.y = mat.NewDense(f.read.RawMatrix().Rows, f.read.RawMatrix().Cols, nil)
	f.y.Mul(f.read, r.vectors)
	for k, a := range f.Families {
		zeros := false
		for i, gamma := range r.Gamma {
			zeros = zeros || (gamma > 0) != (a.Gamma[i] > 0)
			a.Gamma[i] = r.variance(i, k)
		}
		if zeros {
			f.activate(a)
		}
	}
}

// productsOfEntries are Σ_i w_i E x_i x_iᵀ/Γ_i / Σ_i w_i (P×P), in turned snapshots where they are, and the number of entries Σ_i w_i. The weight is the part of an entry that readings
// determine: the others have R as it is.
func (f *Fit) productsOfEntries() (products *mat.SymDense, count float64) {
	n, p := f.X.Dims()
	products = mat.NewSymDense(p, nil)
	determined, x := make([]float64, n), make([]float64, p)
	f.setDetermined(determined)
	for i, of := range determined {
		part := of / float64(p)
		if i == f.common || !(part > 0) {
			continue
		}
		count += part
		for k := range p {
			gamma := f.familyOf(k).Gamma[i]
			x[k] = f.X.At(i, k) / math.Sqrt(gamma)
			products.SetSym(k, k, products.At(k, k)+part*f.C.At(i, k)/gamma)
		}
		products.SymRankOne(products, part, mat.NewVecDense(p, x))
	}
	products.ScaleSym(1/count, products)
	return products, count
}

// adopt makes R the likeliest with products of so many entries of unit variance. It reports whether R has all its eigenvalues.
func (r *Correlated) adopt(products *mat.SymDense, count float64) bool {
	var eigen mat.EigenSym
	if !eigen.Factorize(products, true) {
		return false
	}
	eigen.Values(r.values)
	eigen.VectorsTo(r.vectors)
	r.sumUp()
	prior := covarianceAs(len(r.values))
	r.floor = likeliestFloor(r.values, prior, count)
	for k, v := range r.values {
		r.values[k] = (r.floor + count*max(v, 0)) / (prior + count)
	}
	unit := floats.Sum(r.values) / float64(len(r.values))
	floats.Scale(1/unit, r.values)
	r.floor /= unit
	return true
}

func (r *Correlated) sumUp() {
	for k := range r.sums {
		r.sums[k] = mat.Sum(r.vectors.ColView(k))
	}
}

// likeliestFloor is t, where the likelihood of products with these eigenvalues, with R integrated out, is largest: P n/t = (n + c) Σ 1/(t + c σ).
func likeliestFloor(eigenvalues []float64, prior, count float64) float64 {
	t := prior
	for range floorSteps {
		sum := 0.0
		for _, v := range eigenvalues {
			sum += 1 / (t + count*max(v, 0))
		}
		t = float64(len(eigenvalues)) * prior / ((prior + count) * sum)
	}
	return max(t, leastFloor*prior)
}

const (
	floorSteps = 50
	leastFloor = 1e-6 // of one: rounding
)

// improveCorrelated takes a step of Γ, and of R.
func (f *Fit) improveCorrelated() {
	r := f.Correlated
	if r.spectrum != nil {
		f.stepSpectrum()
		f.turn()
		return
	}
	products, count := f.productsOfEntries() // with the present Γ
	if f.Sizes != nil {
		f.stepSizes()
	} else {
		f.improveVariances(r.Gamma, r.pace, f.Families)
	}
	r.follow(products, count)
	f.turn()
}

// follow makes R what products of turned entries, in units of the present variances, say: R^½ (…) R^½.
func (r *Correlated) follow(products *mat.SymDense, count float64) {
	next := r.asRead(products)
	if r.moved != nil {
		next.AddSym(next, r.moved)
	}
	r.adopt(next, count)
}

// asRead are products of turned entries, in units of the present variances, as those of snapshots that were read: U r^½ (…) r^½ Uᵀ.
func (r *Correlated) asRead(products *mat.SymDense) *mat.SymDense {
	p := len(r.values)
	var turned mat.Dense
	half := mat.NewDense(p, p, nil)
	half.Apply(func(i, k int, v float64) float64 { return v * math.Sqrt(r.values[k]) }, r.vectors)
	turned.Mul(half, products)
	turned.Mul(&turned, half.T())
	next := mat.NewSymDense(p, nil)
	for i := range p {
		for k := range i + 1 {
			next.SetSym(i, k, 0.5*(turned.At(i, k)+turned.At(k, i)))
		}
	}
	return next
}

// back is the sum over turned snapshots of what a snapshot has of each: means turn by U, and variances by its squares.
func (r *Correlated) back(means, variances []float64, k int) (mean, variance float64) {
	for j, u := range r.vectors.RawRowView(k) {
		mean += u * means[j]
		variance += u * u * variances[j]
	}
	return mean, variance
}

// entry is the posterior of an entry of a snapshot as it was read, and its field: precisions turn as variances do.
func (f *Fit) backEntry(i, k int) (x, c, lambda, sigma float64) {
	r := f.Correlated
	x, c = r.back(f.X.RawRowView(i), f.C.RawRowView(i), k)
	for j, u := range r.vectors.RawRowView(k) {
		if own := f.Sigma.At(i, j); own > 0 && !math.IsInf(own, 1) {
			lambda += u * f.Lambda.At(i, j) / own
			sigma += u * u / own
		}
	}
	if !(sigma > 0) {
		return x, c, 0, math.Inf(1)
	}
	return x, c, lambda / sigma, 1 / sigma
}

// Predicted says what the other readings say of that of a row in snapshot k: see G and Inverse.
func (f *Fit) Predicted(row, k int) (g, inverse float64) {
	if f.Correlated == nil {
		return f.G.At(row, k), f.Inverse.At(row, k)
	}
	return f.Correlated.back(f.G.RawRowView(row), f.Inverse.RawRowView(row), k)
}

// clone is a copy whose steps begin short.
func (r *Correlated) clone() *Correlated {
	next := newCorrelated(r.Gamma, len(r.values))
	next.vectors.Copy(r.vectors)
	copy(next.values, r.values)
	next.sumUp()
	next.floor, next.moved, next.spectrum = r.floor, r.moved, r.spectrum.clone()
	return next
}

// shared is Γ of all snapshots.
func (f *Fit) shared() []float64 {
	if f.Correlated != nil {
		return f.Correlated.Gamma
	}
	return f.Families[0].Gamma
}

// all are the snapshots.
func (f *Fit) all() (snapshots []int) {
	for k := range f.y.RawMatrix().Cols {
		snapshots = append(snapshots, k)
	}
	return snapshots
}

// unit is what the variances of a snapshot have beside Γ.
func (f *Fit) unit(k int) float64 {
	if f.Correlated == nil {
		return 1
	}
	return f.Correlated.values[k]
}

// costOfCorrelated is what free Γ and R cost the evidence.
func (f *Fit) costOfCorrelated() float64 {
	if law := f.Correlated.spectrum; law != nil {
		return law.cost()
	}
	determined := make([]float64, f.w.Columns)
	f.setDetermined(determined)
	cost := f.Correlated.cost(f.entriesKnown(determined))
	if f.Sizes != nil {
		return cost + f.costOfSizes()
	}
	return cost + costOfVariances(f.Correlated.Gamma, determined)
}

// entriesKnown is the number of entries that readings determine, each by its part; the common one is none.
func (f *Fit) entriesKnown(determined []float64) (count float64) {
	for i, d := range determined {
		if i != f.common {
			count += d / float64(len(f.Families))
		}
	}
	return count
}

// integrateTurned is [Fit.integrate] of turned snapshots, of which each has a variance of its own beside Γ: a sum over log Γ takes the place of the
// gamma distribution. Its density is 1/(Γ+σ), with σ of the snapshot that knows the entry best.
func (f *Fit) integrateTurned(i int) {
	if f.Correlated.spectrum != nil { // few parameters, which all entries determine
		return
	}
	least, most := math.Inf(1), 0.0
	for k, v := range f.Correlated.values {
		if sigma := f.Sigma.At(i, k); sigma > 0 && !math.IsInf(sigma, 1) {
			least = min(least, sigma/v)
			most = max(most, (f.Lambda.At(i, k)*f.Lambda.At(i, k)+sigma)/v)
		}
	}
	if math.IsInf(least, 1) {
		return
	}
	gammas, logs := make([]float64, sizeNodes), make([]float64, sizeNodes)
	for j := range gammas {
		t := float64(j) / (sizeNodes - 1)
		gammas[j] = math.Exp((1-t)*math.Log(least/beyond) + t*math.Log(most*beyond))
		logs[j] = math.Log(gammas[j] / (gammas[j] + least))
	}
	f.sumOver(i, f.all(), gammas, logs)
}

// beyond is how far sums over log Γ go beyond what readings say at most, and at least.
const beyond = 1e3

// sumOver makes the posterior of an entry in some snapshots that of its fields N(x; λ_k, σ_k) with x ~ N(0, r_k Γ), and Γ integrated out by a sum over values of these logarithms of weights.
func (f *Fit) sumOver(i int, snapshots []int, gammas, logs []float64) {
	for _, k := range snapshots {
		lambda, sigma := f.Lambda.At(i, k), f.Sigma.At(i, k)
		if sigma == 0 || math.IsInf(sigma, 1) {
			continue
		}
		for j, gamma := range gammas {
			v := f.unit(k)*gamma + sigma
			logs[j] -= 0.5*math.Log(v) + 0.5*lambda*lambda/v
		}
	}
	normalise(logs)
	for _, k := range snapshots {
		lambda, sigma, mean, square := f.Lambda.At(i, k), f.Sigma.At(i, k), 0.0, 0.0
		if sigma == 0 || math.IsInf(sigma, 1) {
			continue
		}
		for j, weight := range logs {
			kept := f.unit(k) * gammas[j] / (f.unit(k)*gammas[j] + sigma)
			mean += weight * kept * lambda
			square += weight * (kept*lambda*kept*lambda + kept*sigma)
		}
		f.X.Set(i, k, mean)
		f.C.Set(i, k, max(0, square-mean*mean))
	}
}
