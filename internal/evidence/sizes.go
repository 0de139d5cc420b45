package evidence

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat"
)

// Sizes is a prior of the variances that all snapshots share: log Γ_i is normal, with one variance about Σ_j a_j r_ij. The regressors r are log |w_i|², since coefficients of smooth
// signals and of images decay, and so do the columns of W that see them, and log(1 + f_i), where f is the place of an entry on a line, or on a grid of rows and columns: coefficients of images
// and spectra fall as powers of their frequency. Free variances of entries that few snapshots determine, or that are hardly seen, take noise and errors of gains
// for signal; here they are what the others make likely. The law and the variance about it are learned.
//
// Γ_i moves to the maximum of the evidence and its prior, by its slope ½(Σ_k E x²_ik/Γ_i - n) - (log Γ_i - m_i)/V. It is integrated out to second order.
type Sizes struct {
	Variance float64
	Law      []float64 // a, that of the constant first
	Places   bool      // whether the law may follow places of entries

	regressors [][]float64   // N each, of which the first is one
	of         [][][]float64 // that may be chosen
	steps      int           // that chose
	line       []float64     // N, m_i
	moved      []float64     // N, what unknown gains add to Σ_k x²_ik
	stale      bool          // it is that of another scale
	spent      float64       // and, with what integrating Γ out does, the part of tr A⁻¹ that they take
	looked     float64       // the evidence when gains were last looked at
	determined []float64     // N, d_i: readings have the information d_i/2 on log Γ_i
}

const (
	// leastUneven is the ratio of the squares of columns of W, tenth to ninetieth per cent, from which sizes may follow columns. Of the kinds of
	// field problems it is at most 9 for those whose entries are all seen equally, and 30 to 4e6 for images in cosines, spectra and scans (docs/log/field.md).
	leastUneven = 10

	// An entry whose variance the readings know from leastPart of the snapshots takes the steps that never lower the evidence. Below leastKnown of one it says nothing of the law.
	leastPart, leastKnown = 0.25, 1e-3

	leastSide = 4 // entries of a grid along a side

	firstSizes = 1    // the variance of log Γ at first
	leastSizes = 1e-2 // and the least: Γ is then known to a tenth, as from two hundred snapshots
	mostSizes  = 4    // and the most, a factor e² of Γ either way: with more, sizes follow no law, and entries that are not needed vanish as free ones do
	mostRise   = 1.5  // of log Γ in a step
	lawSteps   = 20   // of the variance about the law
	choosesFor = 10   // steps, after which regressors stay

	sizeNodes, sizeReach = 96, 6 // of the sum over log Γ, in standard deviations

	mostSized = 100 // steps of a fit
)

// Sized is a fit with the prior of sizes, begun at what f found; nil for one snapshot, and where no regressor is likelier than none. Without places the law is that of columns of W alone:
// chosen in the first steps, places run away from where columns would have come to rest, so that both are fits of their own.
func (f *Fit) Sized(places bool) *Fit {
	_, p := f.read.Dims()
	if f.summed || len(f.Families) > 1 || p == 1 {
		return nil
	}
	n, of := f.w.Columns, regressors(unevenColumns(columnSquares(f.w), f.seen), f.w.Columns, places)
	if len(of) == 0 {
		return nil
	}
	next := newFit(f.w, f.read, f.each, false)
	next.beginAt(f, 0, 1)
	next.inherit(f)
	next.Sizes = &Sizes{Variance: firstSizes, Places: places, of: of, line: make([]float64, n), determined: make([]float64, n), moved: make([]float64, n)}
	if next.Solve() != nil || !next.setLaw() || len(next.Sizes.Law) == 1 {
		return nil
	}
	next.followLaw()
	return next
}

// regressors are those of n entries that may be chosen: log |w|² where columns are unequal, or, with places, none but the constant, log |w|², and with these the place on a line, the distance from the first entry of a grid, or the places along its sides.
// The first entry then has a size of its own: it is the mean of a scene, and on no power law.
func regressors(logs []float64, n int, places bool) (of [][][]float64) {
	column := func(at func(i int) float64) []float64 {
		r := make([]float64, n)
		for i := range r {
			r[i] = at(i)
		}
		return r
	}
	base := [][]float64{column(func(int) float64 { return 1 })}
	if places {
		of = append(of, base)
	}
	if logs != nil {
		base = append(base, logs)
		of = append(of, base)
	}
	if !places {
		return of
	}
	first := make([]float64, n)
	first[0] = 1
	with := func(along ...func(i int) float64) {
		more := append(slices.Clone(base), first)
		for _, place := range along {
			more = append(more, column(func(i int) float64 { return math.Log1p(place(i)) }))
		}
		of = append(of, more)
	}
	with(func(i int) float64 { return float64(i) })
	for side := leastSide; side <= n/leastSide; side++ {
		if n%side == 0 {
			across, down := func(i int) float64 { return float64(i % side) }, func(i int) float64 { return float64(i / side) }
			with(func(i int) float64 { return math.Hypot(across(i), down(i)) })
			with(across, down)
		}
	}
	return of
}

// unevenColumns are log |w|² (N) where columns of W differ; of those that no reading sees that of the least.
func unevenColumns(squares []float64, seen []bool) (logs []float64) {
	var sorted []float64
	for i, v := range squares {
		if seen[i] {
			sorted = append(sorted, v)
		}
	}
	slices.Sort(sorted)
	if len(sorted) == 0 || !(stat.Quantile(0.9, stat.Empirical, sorted, nil) > leastUneven*stat.Quantile(0.1, stat.Empirical, sorted, nil)) {
		return nil
	}
	for _, v := range squares {
		logs = append(logs, math.Log(max(v, sorted[0])))
	}
	return logs
}

// followLaw makes all Γ those of the law.
func (f *Fit) followLaw() {
	gammas := f.shared()
	for i, log := range f.Sizes.line {
		if i != f.common {
			gammas[i] = math.Exp(log)
		}
	}
}

// stepSizes takes a step of all Γ, and makes the law that of the entries that determine it.
func (f *Fit) stepSizes() {
	s, gammas := f.Sizes, f.shared()
	_, p := f.X.Dims()
	n := float64(p)
	f.setLaw()
	for i, gamma := range gammas {
		switch {
		case i == f.common:
			gammas[i] = f.sharedSquare(i) / n
			continue
		case !f.seen[i] || s.steps < choosesFor:
			gammas[i] = math.Exp(s.line[i])
			continue
		}
		slope, information := f.slopeOf(i, gamma)
		if s.determined[i] >= leastPart*n {
			information = 0.5 * n // that of E x², which never lowers the evidence: its steps would be too short where readings hardly know the entry
		}
		gammas[i] = s.stepped(i, gamma, slope, information)
	}
}

// stepped is the variance of entry i after a step.
func (s *Sizes) stepped(i int, gamma, slope, information float64) float64 {
	off := math.Log(gamma) - s.line[i]
	rise := (slope - off/s.Variance) / (information + 1/s.Variance)
	return gamma * math.Exp(min(max(rise, -mostRise), mostRise))
}

// slopeOf is that of entry i, see [slopeOfSize].
func (f *Fit) slopeOf(i int, gamma float64) (slope, information float64) {
	_, p := f.X.Dims()
	return slopeOfSize(f.sharedSquare(i)/gamma, f.Sizes.determined[i], float64(p))
}

// slopeOfSize is the slope of the evidence along log Γ_i, and the information on it, with the sum of n mean squares in units of Γ_i. That is Fisher's, d_i/2; where an entry is smaller than its variance has it, the observed one, which is larger where readings determine less than
// half of it: with Fisher's, sizes and the law went up and down by turns.
func slopeOfSize(squares, d, n float64) (slope, information float64) {
	slope = 0.5 * (squares - n)
	return slope, 0.5*d + max(0, (2*math.Sqrt(d/n)-1)*slope)
}

// sizeFrom is where log Γ_i would go without its prior.
func sizeFrom(i int, gamma, slope, information, n float64) size {
	if slope > 0 { // no further than to Σ_k x²_ik/n
		slope = 0.5 * n * math.Log1p(2*slope/n)
	}
	return size{i, math.Log(gamma) + slope/information, 1 / information}
}

// setDetermined sets d_i = Σ_k (1 - C_ik/Γ_ik)² (N).
func (f *Fit) setDetermined(determined []float64) {
	clear(determined)
	for _, a := range f.Families {
		a.addDetermined(determined)
	}
}

func (a *Family) addDetermined(determined []float64) {
	for j, i := range a.active {
		for _, at := range a.patterns {
			determined[i] += float64(len(at.snapshots)) * (1 - at.kept[j]) * (1 - at.kept[j])
		}
	}
}

// sharedSquare is the sum of an entry's mean squares over snapshots, in units of what they have beside Γ, with gains integrated out.
func (f *Fit) sharedSquare(i int) (e float64) {
	e = f.Sizes.moved[i]
	for k := range f.X.RawMatrix().Cols {
		e += (f.X.At(i, k)*f.X.At(i, k) + f.C.At(i, k)) / f.unit(k)
	}
	return e
}

// setLaw fits the law, and the variance about it, to what readings determine of sizes now. z_i, where log Γ_i would go without its prior, is N(m_i, V + 2/d_i) (Fisher scoring). In the first steps the regressors are those of the largest
// likelihood, less what it costs that they are chosen and their coefficients found (Schwarz, "Estimating the dimension of a model", 1978). It reports whether entries determine one.
func (f *Fit) setLaw() bool {
	s, gammas := f.Sizes, f.shared()
	_, p := f.X.Dims()
	f.setDetermined(s.determined)
	var found logSizes
	for i, d := range s.determined {
		if i != f.common && f.seen[i] && d > leastKnown {
			slope, information := f.slopeOf(i, gammas[i])
			found = append(found, sizeFrom(i, gammas[i], slope, information, float64(p)))
		}
	}
	return s.choose(found)
}

// choose fits the law, which setLaw describes, to what is found of sizes.
func (s *Sizes) choose(found logSizes) bool {
	of := s.of
	if s.steps++; s.steps > choosesFor {
		of = [][][]float64{s.regressors}
	}
	best, before := math.Inf(-1), s.Variance
	for _, regressors := range of {
		law, variance, likelihood := found.law(regressors, before)
		if score := likelihood - costOfLaw(law, len(found)); score > best {
			best, s.regressors, s.Law, s.Variance = score, regressors, law, variance
		}
	}
	if math.IsInf(best, -1) {
		return false
	}
	for i := range s.line {
		s.line[i] = lawAt(s.Law, s.regressors, i)
	}
	return true
}

// lawAt is Σ_j a_j r_ij.
func lawAt(law []float64, regressors [][]float64, i int) (m float64) {
	for j, a := range law {
		m += a * regressors[j][i]
	}
	return m
}

// costOfLaw is what it costs the evidence that the coefficients, and the variance about the law, are found from so many entries.
func costOfLaw(law []float64, entries int) float64 {
	return 0.5 * float64(len(law)+1) * math.Log(float64(entries))
}

// logSizes are those of entries as readings determine them, with the variances of what they leave open.
type logSizes []size

type size struct {
	entry       int
	log, spread float64
}

// law is that of the largest likelihood, with the variance about it, a step at a time: coefficients are those of least squares, the variance takes a step of Fisher scoring.
func (t logSizes) law(regressors [][]float64, variance float64) (law []float64, about, likelihood float64) {
	for range lawSteps {
		normal, right := mat.NewSymDense(len(regressors), nil), mat.NewVecDense(len(regressors), nil)
		for j := range regressors {
			normal.SetSym(j, j, leastKnown) // a coefficient of which nothing is known is zero
		}
		for _, a := range t {
			weight := 1 / (variance + a.spread)
			for j, r := range regressors {
				right.SetVec(j, right.AtVec(j)+weight*r[a.entry]*a.log)
				for l, other := range regressors[:j+1] {
					normal.SetSym(j, l, normal.At(j, l)+weight*r[a.entry]*other[a.entry])
				}
			}
		}
		var factor mat.Cholesky
		var coefficients mat.VecDense
		if !factor.Factorize(normal) || factor.SolveVecTo(&coefficients, right) != nil {
			return nil, variance, math.Inf(-1)
		}
		law, likelihood = coefficients.RawVector().Data, 0
		slope, information := 0.0, 0.0
		for _, a := range t {
			weight, off := 1/(variance+a.spread), a.log-lawAt(law, regressors, a.entry)
			likelihood += 0.5 * (math.Log(weight) - off*off*weight)
			slope += weight * (off*off*weight - 1)
			information += weight * weight
		}
		variance = min(max(variance+slope/information, leastPart*variance, leastSizes), mostSizes)
	}
	return law, variance, likelihood
}

// sizesCost is what the prior of sizes takes of the evidence: Γ is integrated out to second order.
func (f *Fit) sizesCost(determined []float64) (total float64) {
	for i, gamma := range f.shared() {
		if i != f.common && f.seen[i] {
			off := math.Log(gamma) - f.Sizes.line[i]
			total += 0.5*math.Log1p(0.5*f.Sizes.Variance*determined[i]) + 0.5*off*off/f.Sizes.Variance
		}
	}
	return total
}

// costSlope is the slope of log(1 + V d_i/2), what it costs the evidence that Γ_i is integrated out, along d_i.
func (s *Sizes) costSlope(i int) float64 { return s.Variance / (2 + s.Variance*s.determined[i]) }

// costOfSizes is what it costs the evidence that the law, and the variance of an entry that all snapshots have, are found, and that regressors were chosen.
func (f *Fit) costOfSizes() float64 {
	cost := costOfLaw(f.Sizes.Law, f.Entries()) + math.Log(float64(len(f.Sizes.of)))
	if f.common >= 0 {
		cost += occam(f.Sizes.determined[f.common])
	}
	return cost
}

// sizeEntry makes the posterior of an entry that of its fields with Γ integrated out.
func (f *Fit) sizeEntry(i int) {
	logs, gammas := make([]float64, sizeNodes), make([]float64, sizeNodes)
	for j := range gammas {
		t := sizeReach * (2*float64(j)/(sizeNodes-1) - 1)
		gammas[j], logs[j] = math.Exp(f.Sizes.line[i]+t*math.Sqrt(f.Sizes.Variance)), -0.5*t*t
	}
	f.sumOver(i, f.all(), gammas, logs)
}

// rose is by how much the evidence has changed since gains were last looked at, where they are now: between looks the common scale drifts, as unknown gains make squares larger. Either way counts,
// since entries that are hardly known move by more than what surely raises the evidence.
func (s *Sizes) rose(evidence float64, looks bool) float64 {
	if !looks {
		return math.Inf(1)
	}
	by := math.Abs(evidence - s.looked)
	s.looked = evidence
	return by
}

// rescale follows signals that become c times as large.
func (s *Sizes) rescale(c float64) {
	s.stale = true
	s.Law[0] += 2 * math.Log(c)
	for i := range s.line {
		s.line[i] += 2 * math.Log(c)
	}
}

func (s *Sizes) clone() *Sizes {
	next := *s
	next.Law = slices.Clone(s.Law)
	next.line, next.determined, next.moved = slices.Clone(s.line), slices.Clone(s.determined), slices.Clone(s.moved)
	return &next
}
