package evidence

import (
	"cmp"
	"context"
	"errors"
	"math"
	"runtime"
	"slices"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"github.com/calamp/calamp/internal/dense"
	"github.com/calamp/calamp/internal/parallel"
)

// Sparse is a prior of entries that is not Gaussian, x ~ w_0 δ(x) + Σ_j w_j N(μ_j, v_j), one for all entries of all snapshots.
//
// The posterior of signals and gains is approximated by expectation propagation (Minka, "Expectation propagation for approximate Bayesian
// inference", 2001; for slabs and spikes Hernández-Lobato et al., 2015). In place of the prior, each entry of each snapshot has a Gaussian site
// N(m, Γ). With these the evidence is as concave in s as with Gaussian signals, and readings less W m take the place of readings. A site is such that the
// posterior of its entry has the mean and variance of
//
//	p(x) N(x; λ, c),   1/c = 1/V - 1/Γ,   λ/c = x̂/V - m/Γ,
//
// where V is the variance of the entry with gains integrated out. No matrix is taken for random, and no variance is fitted to a single entry.
type Sparse struct {
	Weight, Mean, Variance []float64 // of components; the first is the spike, of mean and variance zero

	zeros          *ownZeros  // nil with one snapshot
	scale          []float64  // N, of entries: the prior is that of x/scale
	scaledBy       *Fit       // from whose variances the scale is; nil where it is one for all entries
	location       *mat.Dense // N×P, m
	lambda, cavity *mat.Dense // N×P, λ and c; c is zero where an entry has no cavity
	seen           *mat.Dense // M×P, W m
	pull, reach    *mat.Dense // N×P, Wᵀ A⁻¹ (s∘y - W m), and the diagonal of WᵀA⁻¹W
	taken          *mat.Dense // N×P, the part of the latter that unknown gains take
	spent          float64    // Σ_k tr(H⁻¹ (A_k⁻² ∘ y_k y_kᵀ)), in units of Σ_k tr A_k⁻¹: the part of it that gains take
	settled        bool
	common         bool    // gains began at what all snapshots have in common
	rested         int     // steps in a row that moved hardly anything
	least, most    int     // steps it has to take, and may
	steps          int     // taken, with those of the fit at whose sites it began: it goes on with their damping
	later          *Sparse // whose components follow those that it begins with; nil where these are learned
}

const (
	// slabs begin with these weights and variances, the latter in units of the signals' mean square. Three are enough for large, middle and small
	// entries. Their parameters stay for a few steps, in which entries are distinguished at all.
	firstSlab           = 0.1
	largestSlab, fallBy = 10, 31.6
	slabs, slabsStayFor = 3, 3

	// A site is moved by half of the step, and by less from the step on that damps: steps as 1/n average what does not converge by itself. Its variance is at most looseSite times that of the cavity, which says as little; a site that
	// widens the posterior has a negative variance, which A could not have.
	siteStep  = 0.5
	damps     = 20
	looseSite = 100

	// leastCavity is the part that gains leave at least of what readings say of an entry, so that its site is moved: less is rounding.
	leastCavity = 1e-4

	// The sites have converged where steps in a row move signals by less than a tenth of what the posterior leaves open, and have as many steps as that takes with room.
	sitesRest, noiseRests, restsFor, mostSites = 0.1, 0.05, 4, 80

	// What gains add to variances is found in each of the first steps, and in every so many later ones, in which it hardly changes: it takes more than half of a step. Found in every
	// fourth one from the start, sites of cameras of spots ended elsewhere, with errors of s 2.9 times those stated (docs/log/field.md).
	gainsEachUntil, gainsEvery = 30, 4

	// A Laplace prior is there for so many steps, in which its sites come to rest, and has variances of these powers of two, in units of the mean square: those beyond have a hundredth of the weight.
	laplaceSteps                  = 12
	leastOfLaplace, mostOfLaplace = -8, 2

	narrowSlab = 1e-10 // the least variance of a slab, in units of the signals' mean square
)

// errUnsettled is that of sites that did not converge.
var errUnsettled = errors.New("the sites of a sparse prior reached no fixed point")

// Sparsely is a fit with a sparse prior, begun at gains (M), and at the variances and the common mode that f found. With scaled the prior is that of entries in units of what f found them to be in
// all snapshots: coefficients of images are the smaller the finer they are. It may take so many steps.
func (f *Fit) Sparsely(scaled bool, gains []float64, most int) *Fit {
	w, common := f.w, f.common
	if f.summed { // the prior has a mean
		w, common = f.w.Part(0, f.w.Rows, 0, f.w.Columns-1), -1
	}
	next := newFit(w, f.read, f.each, true)
	next.GivenNoise, next.Spread, next.begun = f.GivenNoise, f.Spread, true
	next.common = common
	next.inherit(f)
	if next.Spread == 0 {
		next.Spread = f.firstSpread()
	}
	copy(next.S, gains)
	if f.HasColumnInCommon() {
		next.beginAs(f)
	} else {
		next.beginFlat(f)
	}
	n, p := next.X.Dims()
	s := &Sparse{most: min(most, mostSites), common: f.common >= 0, seen: mat.NewDense(f.w.Rows, p, nil)}
	for _, ofEntries := range []**mat.Dense{&s.location, &s.lambda, &s.cavity, &s.pull, &s.reach, &s.taken} {
		*ofEntries = mat.NewDense(n, p, nil)
	}
	if p > 1 {
		s.zeros = newOwnZeros(n, p)
	}
	next.Sparse = s
	square := f.meanSquare()
	next.Sparse.scale = make([]float64, n)
	for i := range n {
		next.Sparse.scale[i] = 1
		if scaled {
			next.Sparse.scaledBy = f
			next.Sparse.scale[i] = math.Sqrt((f.shared()[i] + openedBy*square) / square)
		}
	}
	return next
}

// Pilots is how many snapshots are asked whether entries are sparse: one more than the least, since one with bright spots may be unlike the others.
const Pilots = 2

// SparseInFew reports whether a sparse prior is likelier for the brightest few snapshots than Gaussian signals of the variances that all snapshots have, with gains taken for those found: where a step for all of them takes long, that
// is worth knowing beforehand.
func (f *Fit) SparseInFew(ctx context.Context) bool {
	gaussian := f.afresh(f.w, f.brightest(Pilots))
	gaussian.GainsKnown, gaussian.Smooth, gaussian.Offsets = true, nil, nil
	gaussian.beginAt(f, 0, 1)
	gaussian.Spread = knownSpread
	for mu := range gaussian.S {
		gaussian.S[mu] = 1
	}
	if gaussian.Solve() != nil {
		return false
	}
	own, err := gaussian.withVariances()
	if err != nil {
		return false
	}
	sparse := gaussian.Sparsely(false, gaussian.S, mostSites)
	if _, err := sparse.Learn(ctx, mostSites); err != nil {
		return false
	}
	other, err := sparse.LogEvidence()
	return err == nil && other > own
}

// brightest are the corrected readings of so many snapshots at most, those of the largest power.
func (f *Fit) brightest(most int) *mat.Dense {
	rows, p := f.read.Dims()
	corrected, powers, order := mat.NewDense(rows, p, nil), make([]float64, p), make([]int, p)
	for k := range p {
		order[k] = k
		for row := range rows {
			v := f.S[row/f.each] * f.read.At(row, k)
			if f.Offsets != nil {
				v -= f.Offsets.B[row/f.each]
			}
			if corrected.Set(row, k, v); !math.IsNaN(v) {
				powers[k] += v * v
			}
		}
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(powers[b], powers[a]) })
	few := mat.NewDense(rows, min(most, p), nil)
	for j := range min(most, p) {
		few.SetCol(j, mat.Col(nil, order[j], corrected))
	}
	return few
}

// SparselyAsMixed is Sparsely, begun at the variances that a mixture found for each entry of each snapshot.
func (f *Fit) SparselyAsMixed(mixed *Fit, most int) *Fit {
	next := f.Sparsely(false, mixed.S, most)
	for k, family := range next.Families {
		copy(family.Gamma, mixed.familyOf(k).Gamma)
	}
	next.Noise = mixed.Noise
	return next
}

// staysAway is how many standard deviations a slab is from zero, so that entries have two values: pixels of text have some thirty.
const staysAway = 3

// WithTwoValues is Sparsely, begun at the gains of a sparse fit whose largest slab stays away from zero: entries are zero, or have its value. Smaller slabs, with which it learned that, would be a
// background of the scene that gains take for their own. It is nil where there is no such slab.
func (f *Fit) WithTwoValues(of *Fit, most int) *Fit {
	s, largest := of.Sparse, 1
	power := func(j int) float64 { return s.Weight[j] * (s.Mean[j]*s.Mean[j] + s.Variance[j]) }
	for j := range s.Weight {
		if power(j) > power(largest) {
			largest = j
		}
	}
	if math.Abs(s.Mean[largest]) < staysAway*math.Sqrt(s.Variance[largest]) {
		return nil
	}
	next := f.Sparsely(s.Scaled(), of.S, most)
	others := firstSlab * (1 - s.Weight[largest])
	next.Sparse.Weight = []float64{1 - s.Weight[largest] - others, s.Weight[largest], others}
	next.Sparse.Mean = []float64{0, s.Mean[largest], 0}
	next.Sparse.Variance = []float64{0, s.Variance[largest], s.Mean[largest] * s.Mean[largest]}
	return next
}

// costOfScale is what it costs the evidence that the scale of entries was learned, as variances of Gaussian signals are, of the part of entries that is not zero: others say nothing of it.
func (s *Sparse) costOfScale() float64 {
	if s.scaledBy == nil {
		return 0
	}
	f, determined := s.scaledBy, make([]float64, s.scaledBy.w.Columns)
	f.setDetermined(determined)
	floats.Scale(1-s.Weight[0], determined)
	if f.Sizes != nil {
		return f.costOfSizes() + f.sizesCost(determined)
	}
	return costOfVariances(f.shared(), determined)
}

// beginFlat gives all entries but the common one the same variance, and noise a part of the readings that are left.
func (f *Fit) beginFlat(from *Fit) {
	n, p := f.X.Dims()
	square := 0.0
	for i := range n {
		for k := range p {
			if x, _, _, _ := from.Entry(i, k); i != f.common {
				square += x * x / float64(n*p)
			}
		}
	}
	for j, family := range f.Families {
		for i := range family.Gamma {
			family.Gamma[i] = square
		}
		if f.common >= 0 {
			family.Gamma[f.common] = from.familyOf(j).Gamma[f.common]
		}
	}
}

// beginAs begins at the variances of Gaussian signals, and at noise that has what their gains leave open. Where entries are small beside the common one, all of them are
// noise with one variance for all, and stay so.
func (f *Fit) beginAs(from *Fit) {
	for j, family := range f.Families {
		copy(family.Gamma, from.familyOf(j).Gamma)
	}
	f.Noise = from.Noise
	if variances, err := from.Variances(); err == nil {
		for mu, v := range variances {
			for _, y := range f.rowsOf(f.y, mu) {
				if !math.IsNaN(y) {
					f.Noise += v * y * y / floats.Sum(f.readings)
				}
			}
		}
	}
}

// stepSites moves all sites once, and with them the prior and the noise, and solves for gains and signals. What it returns is infinite while they move.
func (f *Fit) stepSites(step int) (risen float64, err error) {
	f.Sparse.steps++
	if step%looksEvery == 0 {
		f.learnSpread()
	}
	if err := f.cavities(step <= gainsEachUntil || step%gainsEvery == 0); err != nil {
		return 0, err
	}
	noise := f.Noise
	f.noiseOfSites()
	calm := f.stepUnequal() && math.Abs(math.Log(f.Noise/noise)) < noiseRests
	if f.offset() {
		f.Offsets.improve(leastNoise * f.power())
	}
	switch {
	case f.Sparse.Weight != nil:
	case f.Sparse.later != nil:
		f.beginLaplace()
	default:
		f.beginSlabs()
	}
	next, part := f.newMoments(), siteStep*damps/max(damps, float64(f.Sparse.steps))
	f.eachCavity(func(i, k int, lambda, c float64) {
		mean, variance := next.addOf(i, k, lambda, c)
		f.Sparse.zeros.keep(i, k, next.r[0])
		f.Sparse.moveSite(&f.Families[k].Gamma[i], i, k, mean, variance, c, part)
	})
	if f.Sparse.later != nil {
		f.Sparse.endLaplace(step)
	} else if step > slabsStayFor {
		next.adopt(f.Sparse, f.meanSquare())
		f.Sparse.zeros.learn(f.Sparse.Weight[0])
	}
	was, open := mat.DenseCopyOf(f.X), mat.Sum(f.C)
	if err := f.Solve(); err != nil {
		return 0, err
	}
	f.Sparse.rested++
	if !calm || f.movedFrom(was) > sitesRest*math.Sqrt(open) {
		f.Sparse.rested = 0
	}
	f.Sparse.settled = step >= f.Sparse.least && f.Sparse.rested >= restsFor
	if !f.Sparse.settled && step < f.Sparse.most {
		return math.Inf(1), nil
	}
	return 0, f.cavities(true)
}

// movedFrom is how far signals are from what they were, but for their common scale, which readings do not tell: it drifts for hundreds of steps after all else has come to rest.
func (f *Fit) movedFrom(was *mat.Dense) float64 {
	now, before := f.X.RawMatrix().Data, was.RawMatrix().Data
	square, along := floats.Dot(now, now), floats.Dot(now, before)
	return math.Sqrt(max(0, floats.Dot(before, before)-along*along/max(square, math.SmallestNonzeroFloat64)))
}

// Settled reports whether sites have converged.
func (s *Sparse) Settled() bool { return s.settled }

// MostlyZero reports whether no slab has as many entries as the spike. What other prior there is makes entries that all snapshots have no less likely than gains.
func (s *Sparse) MostlyZero() bool { return s.Weight[0] > slices.Max(s.Weight[1:]) }

// Scaled reports whether the prior is that of entries in units of what another fit found them to be.
func (s *Sparse) Scaled() bool { return s.scaledBy != nil }

// addLocation sets W m of a snapshot, and adds what it makes of the evidence: -½ (s∘y - Wm)ᵀA⁻¹(s∘y - Wm) has a part that is linear in s, and one without s.
func (f *Fit) addLocation(a *Family, at *pattern) {
	for _, k := range at.snapshots {
		seen, location := make([]float64, len(at.rows)), make([]float64, len(a.active))
		for j, entry := range a.active {
			location[j] = f.Sparse.location.At(entry, k)
		}
		for i, row := range at.rows {
			seen[i] = floats.Dot(at.w.Row(i), location)
			f.Sparse.seen.Set(row, k, seen[i])
		}
		for i, mu := range at.sensors {
			g := floats.Dot(at.inverse.Row(i), seen)
			f.linear[mu] += f.y.At(at.rows[i], k) * g
			if f.offset() {
				f.Offsets.pulled[mu] += g
			}
			f.Evidence -= 0.5 * seen[i] * g
		}
	}
}

// eachCavity visits the entries that have a cavity, and are of the sparse prior.
func (f *Fit) eachCavity(visit func(i, k int, lambda, c float64)) {
	n, p := f.X.Dims()
	for k := range p {
		for i := range n {
			if c := f.Sparse.cavity.At(i, k); i != f.common && f.seen[i] && c != 0 {
				visit(i, k, f.Sparse.lambda.At(i, k), c)
			}
		}
	}
}

// moveSite moves the site of an entry towards that with which its posterior has a mean and a variance.
func (s *Sparse) moveSite(gamma *float64, i, k int, mean, variance, c, part float64) {
	variance = max(variance, narrowSlab*c)
	tau := max(1/variance-1/c, 1/(looseSite*c))
	nu := mean*(tau+1/c) - s.lambda.At(i, k)/c
	was := 1 / *gamma
	nu = part*nu + (1-part)*was*s.location.At(i, k)
	tau = part*tau + (1-part)*was
	*gamma = 1 / tau
	s.location.Set(i, k, nu/tau)
}

// cavities sets λ and c of all entries, and C to the variances with gains integrated out. What gains add to them is found anew, or what it was.
func (f *Fit) cavities(anew bool) error {
	if anew {
		if err := f.integrateGains(); err != nil {
			return err
		}
	}
	for k, family := range f.Families {
		for _, i := range family.active {
			lambda, c := f.without(i, k, f.Sparse.taken.At(i, k))
			f.Sparse.lambda.Set(i, k, lambda)
			f.Sparse.cavity.Set(i, k, c)
			f.C.Set(i, k, f.variance(i, k, f.Sparse.taken.At(i, k)))
		}
	}
	return nil
}

// integrateGains sets what unknown gains add to variances, and take of tr A⁻¹.
func (f *Fit) integrateGains() error {
	u, total, err := f.alongMean()
	if err != nil {
		return err
	}
	spent := make([]float64, len(f.Families))
	parallel.Run(len(f.Families), runtime.GOMAXPROCS(0), func(k int) {
		for _, at := range f.Families[k].patterns {
			if len(at.rows) > 0 {
				spent[k] = f.integrateGainsOf(k, at, u, total)
			}
		}
	})
	_, trace := f.noiseSums()
	f.Sparse.spent = floats.Sum(spent) / trace
	return nil
}

// integrateGainsOf is integrateGains of a snapshot. The signals move with the gains by dx = Γ Wᵀ Fᵀds, and s has the covariance H⁻¹ at a
// fixed mean of all s: H⁻¹ - uuᵀ/Σu with u = H⁻¹1.
func (f *Fit) integrateGainsOf(k int, at *pattern, u []float64, total float64) (spent float64) {
	a := f.Families[k]
	moved, done := dense.Scratch(len(f.S), len(at.rows)) // F, then L⁻¹F, with H = LLᵀ
	defer done()
	f.follow(moved, at, k)
	along := rowsTimes(u, moved)
	dense.SolveLower(f.curved, moved, 1)
	alongEntries, squares, own := rowsTimes(along, at.w), squaresOfProduct(moved, at.w), columnSquares(moved)
	for i, v := range along {
		spent += f.ratioOf(at.sensors[i]) * max(0, own[i]-v*v/total)
	}
	for j, i := range a.active {
		if at.reach[j] > 0 {
			square := max(0, squares[j]-alongEntries[j]*alongEntries[j]/total)
			f.Sparse.taken.Set(i, k, min(1, square/at.reach[j]))
		}
	}
	return spent
}

// follow sets to (sensors×rows) to F = diag(y)A⁻¹ - (db/ds)ᵀA⁻¹ of a snapshot: what A⁻¹-weighted corrected readings become as gains change.
func (f *Fit) follow(to dense.Matrix, at *pattern, k int) {
	clear(to.Data)
	for i, mu := range at.sensors {
		floats.AddScaled(to.Row(mu), f.y.At(at.rows[i], k), at.inverse.Row(i))
	}
	if f.offset() {
		dense.AddProduct(to, -f.offsetIn(k), f.Offsets.movedBy(at), at.inverse, dense.All, 1)
	}
}

// without is the posterior of an entry without its site, N(λ, c), where gains take a part of what readings say of it: with r left of that, it is
//
//	1/c = r/(1 - Γr),   λ = m + wᵀA⁻¹(s∘y - Wm)/r,
//
// which loses no digits where a site is as narrow as that of an entry that is zero for certain. c is zero where gains leave nothing.
func (f *Fit) without(i, k int, taken float64) (lambda, c float64) {
	left := f.Sparse.reach.At(i, k) * (1 - taken)
	if !(left > 0) || 1-taken < leastCavity {
		return 0, 0
	}
	return f.Sparse.location.At(i, k) + f.Sparse.pull.At(i, k)/left, max(0, 1/left-f.Families[k].Gamma[i])
}

// variance is that of an entry, Γ - Γ²r, where gains take a part of what readings say of it.
func (f *Fit) variance(i, k int, taken float64) float64 {
	gamma := f.Families[k].Gamma[i]
	return gamma * max(0, 1-gamma*f.Sparse.reach.At(i, k)*(1-taken))
}

// noiseOfSites takes a step of Δ towards the largest evidence with gains integrated out: dL/dΔ = ½ Σ G² - ½ (tr A⁻¹ - spent).
func (f *Fit) noiseOfSites() {
	if f.GivenNoise > 0 {
		f.Noise = max(f.GivenNoise, leastNoise*f.power())
		return
	}
	square, trace := f.noiseSums()
	f.Noise = max(f.Noise*noiseFactor(square, trace*(1-f.Sparse.spent), trace), leastNoise*leastNoise*f.power())
}

// mostSpent is the part of tr A⁻¹ that gains may take in a step of Δ.
const mostSpent = 0.999

// noiseFactor is that of a step of Δ, of what gains leave of tr A⁻¹.
func noiseFactor(square, left, trace float64) float64 {
	const least, most = 0.3, 3
	return min(max(math.Sqrt(square/max(left, (1-mostSpent)*trace)), least), most)
}

// overfull reports whether as many entries and gains are there as readings, and leave no noise: they explain any readings, and the evidence has no maximum. Gains of a single snapshot are what their prior makes them.
func (f *Fit) overfull() bool {
	if f.Sparse == nil {
		return false
	}
	_, p := f.X.Dims()
	there := (1 - f.Sparse.Weight[0]) * float64(f.w.Columns*p)
	for _, count := range f.readings {
		if count > 0 && p > 1 {
			there++
		}
	}
	return there >= floats.Sum(f.readings) && f.Noise < leastNoise*f.power()
}

func (f *Fit) beginSlabs() {
	s, square := f.Sparse, f.meanSquare()
	s.Weight, s.Mean, s.Variance = []float64{1 - slabs*firstSlab}, []float64{0}, []float64{0}
	for variance := largestSlab * square; len(s.Weight) <= slabs; variance /= fallBy {
		s.Weight, s.Mean, s.Variance = append(s.Weight, firstSlab), append(s.Mean, 0), append(s.Variance, variance)
	}
}

// Convexly is a fit with the prior of a sparse one, begun at sites of a Laplace prior of the same power. That is log-concave, as the likelihood of signals is for given gains, so that its posterior has one maximum: where sites of slabs have
// several fixed points, they are at the one next to it, which need not be that next to Gaussian signals.
func (f *Fit) Convexly(prior *Fit, most int) *Fit {
	next := f.Sparsely(false, prior.S, most)
	next.Sparse.later, next.Sparse.least = prior.Sparse, laplaceSteps+leastSites
	return next
}

// beginLaplace makes the prior one of Laplace: variances of its entries are exponentially distributed (Andrews and Mallows 1974), here at powers of two.
func (f *Fit) beginLaplace() {
	s, square, total := f.Sparse, f.meanSquare(), 0.0
	s.Weight, s.Mean, s.Variance = []float64{0}, []float64{0}, []float64{0}
	for power := leastOfLaplace; power <= mostOfLaplace; power++ {
		variance := math.Ldexp(1, power)
		weight := variance * math.Exp(-variance)
		s.Weight, s.Mean, s.Variance = append(s.Weight, weight), append(s.Mean, 0), append(s.Variance, variance*square)
		total += weight
	}
	floats.Scale(1/total, s.Weight)
}

// endLaplace goes on with the components of the other prior after some steps.
func (s *Sparse) endLaplace(step int) {
	if step < laplaceSteps {
		return
	}
	s.Weight, s.Mean, s.Variance = slices.Clone(s.later.Weight), slices.Clone(s.later.Mean), slices.Clone(s.later.Variance)
	s.zeros, s.later = s.later.zeros.clone(), nil
}

// moments are sums over entries of what their posteriors say of the prior.
type moments struct {
	s                      *Sparse
	w, r, mean, kept       []float64 // of one entry: weight, responsibility, mean and variance of each component
	evidence               float64
	weights, sums, squares []float64
}

func (f *Fit) newMoments() *moments {
	m := &moments{s: f.Sparse}
	for _, a := range []*[]float64{&m.w, &m.r, &m.mean, &m.kept, &m.weights, &m.sums, &m.squares} {
		*a = make([]float64, len(f.Sparse.Weight))
	}
	copy(m.w, f.Sparse.Weight)
	return m
}

// addOf is add for an entry of a snapshot, with its own probability of zero.
func (m *moments) addOf(i, k int, lambda, c float64) (mean, variance float64) {
	if all := m.s.Weight; m.s.zeros != nil {
		zero := m.s.zeros.of(i, k, all[0])
		for j, w := range all {
			m.w[j] = w * (1 - zero) / (1 - all[0])
		}
		m.w[0] = zero
	}
	return m.add(lambda, c, m.s.scale[i])
}

// add is the posterior of an entry with the field N(λ, c), of which the prior knows x/unit.
func (m *moments) add(lambda, c, unit float64) (mean, variance float64) {
	lambda, c = lambda/unit, c/(unit*unit)
	for j, v := range m.s.Variance {
		off := lambda - m.s.Mean[j]
		m.r[j] = math.Log(m.w[j]) - 0.5*math.Log(2*math.Pi*(v+c)) - 0.5*off*off/(v+c)
		m.mean[j] = (lambda*v + m.s.Mean[j]*c) / (v + c)
		m.kept[j] = v * c / (v + c)
	}
	m.evidence = normalise(m.r) - math.Log(unit)
	for j, r := range m.r {
		mean += r * m.mean[j]
	}
	for j, r := range m.r {
		off := m.mean[j] - mean
		variance += r * (m.kept[j] + off*off)
		m.weights[j] += r
		m.sums[j] += r * m.mean[j]
		m.squares[j] += r * (m.kept[j] + m.mean[j]*m.mean[j])
	}
	return mean * unit, variance * unit * unit
}

// adopt makes the prior that of the sums: a step of expectation maximisation.
func (m *moments) adopt(s *Sparse, square float64) {
	count := floats.Sum(m.weights)
	if count == 0 {
		return
	}
	for j, w := range m.weights {
		s.Weight[j] = max(w/count, leastWeight)
		if j > 0 && w > 0 {
			s.Mean[j] = m.sums[j] / w
			s.Variance[j] = max(m.squares[j]/w-s.Mean[j]*s.Mean[j], narrowSlab*square)
		}
	}
	floats.Scale(1/floats.Sum(s.Weight), s.Weight)
}

// evidenceOfSites is what the prior's place in the evidence has, beside that of Gaussian sites: Σ log ∫ p(x) N(x; λ, c) - log N(λ; m, c + Γ).
func (f *Fit) evidenceOfSites() (total float64) {
	m := f.newMoments()
	f.eachCavity(func(i, k int, lambda, c float64) {
		m.addOf(i, k, lambda, c)
		v, off := c+f.Families[k].Gamma[i], lambda-f.Sparse.location.At(i, k)
		total += m.evidence + 0.5*math.Log(2*math.Pi*v) + 0.5*off*off/v - m.logOfZeros()
	})
	return total + f.Sparse.zeros.evidence(f.Sparse.Weight[0])
}

// logOfZeros is what an entry's own probability of zero has in its evidence, in whose place that of all snapshots is counted.
func (m *moments) logOfZeros() float64 {
	if m.s.zeros == nil {
		return 0
	}
	return m.r[0]*math.Log(m.w[0]) + (1-m.r[0])*math.Log1p(-m.w[0])
}

// integrateSites makes X and C those of the prior, given the cavities, and the fields the cavities.
func (f *Fit) integrateSites() {
	m := f.newMoments()
	f.eachCavity(func(i, k int, lambda, c float64) {
		x, variance := m.addOf(i, k, lambda, c)
		f.X.Set(i, k, x)
		f.C.Set(i, k, variance)
		f.Lambda.Set(i, k, lambda)
		f.Sigma.Set(i, k, c)
	})
}

// rescale follows signals that become c times as large.
func (s *Sparse) rescale(c float64) {
	s.location.Scale(c, s.location)
	s.seen.Scale(c, s.seen)
	s.lambda.Scale(c, s.lambda)
	s.cavity.Scale(c*c, s.cavity)
	s.pull.Scale(1/c, s.pull)
	s.reach.Scale(1/(c*c), s.reach)
	floats.Scale(c, s.Mean)
	floats.Scale(c*c, s.Variance)
}
