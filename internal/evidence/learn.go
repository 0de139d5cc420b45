package evidence

import (
	"context"
	"math"
	"runtime"
	"slices"

	"gonum.org/v1/gonum/floats"

	"github.com/calamp/calamp/internal/dense"
)

const (
	// heldFor is how many steps gains are held at one. A sensor that alone sees an entry of many times the others' power, as the
	// first row of a Hadamard matrix does, would otherwise take that power for its gain: of a flat Γ nothing else can come.
	heldFor = 10

	// FirstSpread is the standard deviation of gains about one before any are known, and leastSpread and mostSpread bound what
	// is learned of it: with less the prior would hold gains at one for ever, and gains are positive.
	FirstSpread             = 0.3
	knownSpread             = 1e-5 // of gains that are known: more is not seen in readings, and less is rounding
	leastSpread, mostSpread = 1e-3, 1

	// The spread of gains, and their mean, are looked at every few steps. In those between the evidence says exactly what a step was worth.
	looksEvery = 5

	// hardlyThere is the part of an entry that readings determine, where its variance falls, below which it is zero. It is then worth no more than that
	// of the evidence, a snapshot.
	hardlyThere = 1e-6

	// worthReadmitting is how much an entry must be worth to be given a variance again, or a reading to be left out or taken back, and mostReadmissions how often that is asked.
	worthReadmitting = 1
	mostReadmissions = 12

	// rounding is the relative error of the evidence, of which logarithms of determinants are a part.
	rounding = 1e-9

	// leastNoise is the least noise variance, relative to the readings' power, with which the covariance of the readings
	// still has some eight digits.
	leastNoise = 1e-8

	// logRange is the logarithm of the factor between the largest and the smallest variance of an entry that anyone would
	// expect: ten decades.
	logRange = 23

	// A fit has ended when a step raises the evidence by less than endsBelow a reading.
	endsBelow = 3e-5
)

// LogEvidence is the logarithm of p(y), with gains integrated out to second order about their maximum, and with the variances Γ
// where they are free: log Γ then has a flat density over logRange, and n snapshots of an entry that the
// readings determine to the part γ tell it to 2/(nγ²) (Fisher's information).
func (f *Fit) LogEvidence() (float64, error) {
	value, err := f.withVariances()
	if err != nil {
		return 0, err
	}
	value -= f.costOfSmooth()
	if f.Levels != nil {
		value += f.Levels.evidence
	}
	if f.Outliers != nil {
		value += f.Outliers.evidence - f.Outliers.cost
	}
	if f.Sparse != nil {
		if !f.Sparse.settled {
			return 0, errUnsettled
		}
		return value + f.evidenceOfSites() - f.Sparse.costOfScale(), nil
	}
	switch {
	case f.Correlated != nil:
		value -= f.costOfCorrelated()
	case f.Sizes != nil:
		value -= f.costOfSizes()
	case f.Mixture == nil:
		determined := make([]float64, f.w.Columns)
		for _, family := range f.Families {
			clear(determined)
			family.addDetermined(determined)
			value -= costOfVariances(family.Gamma, determined)
		}
	}
	return value, nil
}

// withVariances is the logarithm of p(y) at the variances Γ.
func (f *Fit) withVariances() (float64, error) {
	if !f.factorPrecision() {
		return 0, errSingular
	}
	return f.Evidence - 0.5*floats.Sum(f.readings)*math.Log(2*math.Pi) - 0.5*dense.LogDet(f.curved), nil
}

// Likelier reports whether a fit has more evidence than another one of the same readings. One with a common entry that the readings do not tell is
// not, and none that explains any readings.
func (f *Fit) Likelier(other *Fit) bool {
	if f.openMean() || f.overfull() {
		return false
	}
	own, err := f.LogEvidence()
	others, failed := other.LogEvidence()
	return err == nil && (failed != nil || own > others)
}

// Learn takes steps, most at most, until the evidence hardly rises. It returns how many it took. The error is ctx's, or [ErrSingular].
func (f *Fit) Learn(ctx context.Context, most int) (steps int, err error) {
	for steps = 1; steps <= most; steps++ {
		if err := ctx.Err(); err != nil {
			return steps - 1, err
		}
		risen, err := f.Step(steps)
		if err != nil {
			return steps, err
		}
		if f.Ended(steps, risen) {
			return steps, nil
		}
	}
	return most, nil
}

// Ended reports whether a step that raised the evidence by so much was the last one needed.
func (f *Fit) Ended(step int, risen float64) bool {
	if f.Sizes != nil && step == mostSized {
		return true
	}
	return (step > f.holds()+1 || f.begun) && risen < f.least()
}

// holds is how many steps gains are held at one. Sensors of several rows need none of it, and what gains are wrong by would be in the signals for good: of 48 tomographic images one was 30 % off, with half of the right noise and exit code 0.
func (f *Fit) holds() int {
	if f.each > 1 || f.GainsKnown {
		return 1
	}
	return heldFor
}

// Step improves the hyperparameters, but in the first step, and solves for gains and signals. It returns by how much the
// evidence rose. Where a long step would lower it, a short one is taken in its place; those of sizes, which raise it with gains integrated out, are as long as they are.
func (f *Fit) Step(step int) (risen float64, err error) {
	switch {
	case step == 1:
		f.held = !f.begun
		return math.Inf(1), f.Solve()
	case f.held && step > f.holds():
		f.held, f.Spread = false, f.firstSpread()
		return math.Inf(1), f.Solve() // gains are free from now on
	}
	if f.Sparse != nil {
		return f.stepSites(step)
	}
	before, looks := f.Evidence, !f.held && step%looksEvery == 0
	if looks {
		before += f.learnSpread()
	}
	was := f.remember()
	err = f.advance()
	if worse := before - f.Evidence; err != nil || f.Sizes == nil && worse > rounding*math.Abs(before) {
		f.recall(was)
		err = f.advance()
	}
	risen = f.Evidence - before
	switch {
	case err != nil:
		return 0, err
	case f.Sizes != nil:
		return f.Sizes.rose(f.Evidence, looks), nil
	case looks:
		return math.Inf(1), nil // gains follow their new prior
	case risen < f.least() && !f.held && f.readmit():
		return math.Inf(1), f.Solve()
	}
	return risen, nil
}

// advance takes a step of the hyperparameters, and solves with them.
func (f *Fit) advance() error {
	if err := f.improve(); err != nil {
		return err
	}
	return f.Solve()
}

// least is the rise of the evidence below which it has converged.
func (f *Fit) least() float64 { return endsBelow * floats.Sum(f.readings) }

// readmit gives entries without a variance one where that would raise the evidence by more than what a variance costs, and takes it from
// those that are worth less. It reports whether there were any. With
// q² the mean of (wᵀA⁻¹(s∘y))² over n snapshots, and d = wᵀA⁻¹w, both without the entry, the evidence of it alone is largest at Γ = (q² - d)/d², where it is
// n(q²/d - 1 - log q²/d)/2 more than at zero (Faul and Tipping, "Analysis of sparse Bayesian learning", 2002).
func (f *Fit) readmit() (any bool) {
	if f.Mixture != nil || f.Sizes != nil || f.Correlated != nil || f.readmitted == mostReadmissions {
		return false
	}
	for _, a := range f.Families {
		if len(a.patterns) != 1 {
			continue
		}
		at, changed := a.patterns[0], false
		n := float64(len(at.snapshots))
		chosen := choices(len(a.Gamma), min(len(a.active)+1, len(a.Gamma))) - choices(len(a.Gamma), len(a.active))
		worth := func(ratio float64) float64 { return 0.5*n*(ratio-1-math.Log(ratio)) - chosen }
		reach, _ := f.reachOf(at)
		for i, gamma := range a.Gamma {
			if !f.seen[i] || !(reach[i] > 0) {
				continue
			}
			if gamma > 0 {
				kept := max(1-gamma*reach[i], unseen)
				if determined := 1 - kept; worth(1/kept) < occam(n*determined*determined) {
					a.Gamma[i], changed = 0, true
				}
				continue
			}
			square := 0.0
			for _, k := range at.snapshots {
				q := 0.0
				for _, mu := range at.rows {
					q += f.w.At(mu, i) * f.G.At(mu, k)
				}
				square += q * q
			}
			ratio := square / (n * reach[i])
			if determined := 1 - 1/ratio; ratio > 1 && worth(ratio) > occam(n*determined*determined) {
				a.Gamma[i], a.pace[i], changed = (ratio-1)/reach[i], pace{}, true
			}
		}
		if changed {
			f.activate(a)
			any = true
		}
	}
	if any {
		f.readmitted++
	}
	return any
}

// choices is the logarithm of the number of ways to choose k of n entries, and of n+1 for k itself: what it costs the evidence that
// those with a variance are found from the readings.
func choices(n, k int) float64 {
	log := func(v int) float64 { l, _ := math.Lgamma(float64(v + 1)); return l }
	return log(n) - log(k) - log(n-k) + math.Log(float64(n+1))
}

// costOfVariances is what it costs the evidence that variances are free, and which entries have one is found.
func costOfVariances(gamma, determined []float64) (cost float64) {
	active := 0
	for i, v := range gamma {
		if v > 0 {
			cost += occam(determined[i])
			active++
		}
	}
	return cost + choices(len(gamma), active)
}

// occam is what it costs the evidence that a variance is found from data with the information determined/2 on its logarithm: log Γ has a flat density over logRange.
func occam(determined float64) float64 {
	return 0.5 * math.Log1p(logRange*logRange*determined/(4*math.Pi))
}

// pace is how long the steps of a hyperparameter are, in the logarithm and in units of the shortest one, which never lowers the evidence. Steps in the
// same direction become longer, up to those of MacKay ("Bayesian interpolation", 1992), twice as long. Longer ones yet decide between collinear columns of W before
// gains are known.
type pace struct{ length, last float64 }

const (
	longer, shorter     = 1.5, 0.4
	longest, mostFactor = 2, 1e3
)

// factor is that of a hyperparameter for which the short step is a factor √ratio.
func (p *pace) factor(ratio float64) float64 {
	log := 0.5 * math.Log(max(ratio, math.SmallestNonzeroFloat64))
	switch {
	case p.length < 1:
		p.length = 1
	case log*p.last > 0:
		p.length = min(p.length*longer, longest)
	default:
		p.length = max(p.length*shorter, 1)
	}
	p.last = log
	return math.Exp(min(max(p.length*log, -math.Log(mostFactor)), math.Log(mostFactor)))
}

// memory is what a step may have to take back.
type memory struct {
	noise, evidence         float64
	offsets                 *Offsets
	gains, x, c, g, inverse []float64
	families                []familyMemory
	mixture                 *Mixture
	correlated              *Correlated
	unequal                 *Unequal
}

type familyMemory struct {
	gamma       []float64
	reach, kept [][]float64 // of each pattern
}

func (f *Fit) remember() (m memory) {
	m = memory{noise: f.Noise, evidence: f.Evidence, gains: slices.Clone(f.S)}
	m.x, m.c, m.g, m.inverse = slices.Clone(f.X.RawMatrix().Data), slices.Clone(f.C.RawMatrix().Data), slices.Clone(f.G.RawMatrix().Data), slices.Clone(f.Inverse.RawMatrix().Data)
	for _, a := range f.Families {
		was := familyMemory{gamma: slices.Clone(a.Gamma)}
		for _, at := range a.patterns {
			was.reach, was.kept = append(was.reach, slices.Clone(at.reach)), append(was.kept, slices.Clone(at.kept))
		}
		m.families = append(m.families, was)
	}
	m.unequal = f.Unequal.clone()
	if f.Offsets != nil {
		m.offsets = f.Offsets.clone()
	}
	if f.Correlated != nil {
		m.correlated = f.Correlated.clone()
	}
	if f.Mixture != nil {
		m.mixture = &Mixture{Weight: slices.Clone(f.Mixture.Weight), Variance: slices.Clone(f.Mixture.Variance)}
	}
	return m
}

// recall takes a step back. The next one is short.
func (f *Fit) recall(m memory) {
	f.Noise, f.Evidence, f.pace = m.noise, m.evidence, pace{}
	copy(f.S, m.gains)
	if m.correlated != nil {
		f.Correlated = m.correlated
		if f.Correlated.spectrum != nil {
			f.Correlated.spectrum.careful = true
		}
		f.turn()
	}
	f.Unequal = m.unequal
	if f.Offsets != nil {
		f.Offsets = m.offsets
	}
	copy(f.X.RawMatrix().Data, m.x)
	copy(f.C.RawMatrix().Data, m.c)
	copy(f.G.RawMatrix().Data, m.g)
	copy(f.Inverse.RawMatrix().Data, m.inverse)
	for j, a := range f.Families {
		was := m.families[j]
		copy(a.Gamma, was.gamma)
		clear(a.pace)
		if f.Mixture == nil {
			f.activate(a)
		}
		for l, at := range a.patterns {
			copy(at.reach, was.reach[l])
			copy(at.kept, was.kept[l])
		}
	}
	if f.Mixture != nil {
		copy(f.Mixture.Weight, m.mixture.Weight)
		copy(f.Mixture.Variance, m.mixture.Variance)
	}
}

// improve takes one step of Γ and Δ. For given signals x the bound
//
//	log det A ≤ Σ_i Γ_i d_i + Δ tr A⁻¹ + const,   sᵀy A⁻¹ s y = min_x ‖s y - W x‖²/Δ + Σ x_i²/Γ_i,
//
// with d = diag(WᵀA⁻¹W) of the present A, is smallest at Γ_i² = Σ_k x_ik² / Σ_k d_ik and Δ² = Σ ‖s y - W x‖² / Σ tr A⁻¹, where
// s y - W x = Δ A⁻¹ s y.
func (f *Fit) improve() error {
	square, trace := f.noiseSums()
	if f.Sizes != nil { // Γ takes its own steps, with which longer ones of Δ do not go along
		f.pace = pace{}
		if f.Sizes.steps < choosesFor || f.Sizes.stale {
			if err := f.integrateMoves(); err != nil {
				return err
			}
		}
		trace *= 1 - min(f.Sizes.spent, mostSpent)
	}
	switch {
	case f.GivenNoise > 0:
		f.Noise = max(f.GivenNoise, leastNoise*f.power())
	case trace > 0:
		f.Noise = max(f.Noise*f.pace.factor(square/trace), leastNoise*f.power())
	}
	f.stepUnequal()
	if f.offset() {
		f.Offsets.improve(leastNoise * f.power())
	}
	switch {
	case f.Mixture != nil:
		f.improveMixture()
		return nil
	case f.Correlated != nil:
		f.improveCorrelated()
		return nil
	case f.Sizes != nil:
		f.stepSizes()
		return nil
	}
	for _, family := range f.Families {
		if f.improveVariances(family.Gamma, family.pace, []*Family{family}) {
			f.activate(family)
		}
	}
	return nil
}

// noiseSums are Σ ‖A⁻¹ s y‖² and Σ tr A⁻¹ of all snapshots, with each sensor weighted by Δ_µ/Δ.
func (f *Fit) noiseSums() (square, trace float64) {
	for mu := range f.S {
		g, ratio := f.rowsOf(f.G, mu), f.ratioOf(mu)
		square += ratio * floats.Dot(g, g)
		trace += ratio * floats.Sum(f.rowsOf(f.Inverse, mu))
	}
	return square, trace
}

// improveVariances takes a step of Γ, of which the variances of families of the same active entries are multiples. It reports whether some became zero.
func (f *Fit) improveVariances(variances []float64, paces []pace, families []*Family) (fewer bool) {
	for j, i := range families[0].active {
		if !f.seen[i] { // an entry that no reading sees keeps its variance
			continue
		}
		square, reach, determined := 0.0, 0.0, 0.0
		for _, a := range families {
			unit := f.unit(a.Snapshots[0])
			for _, at := range a.patterns {
				reach += unit * float64(len(at.snapshots)) * at.reach[j]
				determined = max(determined, 1-at.kept[j])
			}
			for _, k := range a.Snapshots {
				square += f.X.At(i, k) * f.X.At(i, k) / unit
			}
		}
		if !(reach > 0) {
			continue
		}
		gamma := variances[i]
		ratio := square / (reach * gamma * gamma)
		if ratio < 1 && determined < hardlyThere {
			variances[i], fewer = 0, true
			continue
		}
		variances[i] = gamma * paces[i].factor(ratio)
	}
	return fewer
}

// power is the mean square of the corrected readings.
func (f *Fit) power() float64 {
	total, count := 0.0, 0.0
	for mu, s := range f.S {
		for _, y := range f.rowsOf(f.y, mu) {
			if !math.IsNaN(y) {
				total += s * y * s * y
				count++
			}
		}
	}
	return total / max(count, 1)
}

// learnSpread takes an EM step of the standard deviation of gains about one, and of its smooth part, after a step along the common scale, along which the evidence
// changes by the prior of gains alone: it is largest where 1ᵀK⁻¹s = sᵀK⁻¹s. It returns by how much both changed it.
func (f *Fit) learnSpread() (risen float64) {
	if f.GainsKnown {
		return 0
	}
	before := f.priorOfGains(f.S)
	pull := f.tight(f.S)
	f.Rescale(floats.Sum(pull) / floats.Dot(pull, f.S))
	f.setSpread()
	return f.priorOfGains(f.S) - before
}

// firstSpread is that of gains before any are known.
func (f *Fit) firstSpread() float64 {
	if f.GainsKnown {
		return knownSpread
	}
	return FirstSpread
}

// setSpread makes the spread of gains, and its smooth part, those of their posterior.
func (f *Fit) setSpread() {
	if f.Smooth != nil {
		f.learnSmooth()
	} else {
		off := offOne(f.S)
		square := floats.Dot(off, off)
		if variances, err := f.Variances(); err == nil {
			square += floats.Sum(variances)
		}
		f.Spread = math.Sqrt(square / float64(len(f.S)))
	}
	f.Spread = min(max(f.Spread, leastSpread), mostSpread)
}

// Rescale makes all gains and signals c times as large: the common scale is a convention.
func (f *Fit) Rescale(c float64) {
	floats.Scale(c, f.S)
	f.Noise *= c * c
	for _, scaled := range []struct {
		values []float64
		by     float64
	}{
		{f.X.RawMatrix().Data, c},
		{f.C.RawMatrix().Data, c * c},
		{f.Lambda.RawMatrix().Data, c},
		{f.Sigma.RawMatrix().Data, c * c},
		{f.G.RawMatrix().Data, 1 / c},
		{f.Inverse.RawMatrix().Data, 1 / (c * c)},
		{f.q.Data, 1 / (c * c)},
		{f.linear, 1 / c},
	} {
		floats.Scale(scaled.by, scaled.values)
	}
	for _, family := range f.Families {
		floats.Scale(c*c, family.Gamma)
		for _, at := range family.patterns {
			floats.Scale(1/(c*c), at.reach)
			floats.Scale(1/(c*c), at.inverse.Data)
			floats.Scale(1/(c*c), at.spent)
		}
	}
	if f.Mixture != nil {
		f.Mixture.rescale(c)
	}
	if f.Sizes != nil {
		f.Sizes.rescale(c)
	}
	if f.Correlated != nil {
		floats.Scale(c*c, f.Correlated.Gamma)
		if law := f.Correlated.spectrum; law != nil {
			law.law[0] += 2 * math.Log(c)
		}
	}
	if f.Sparse != nil {
		f.Sparse.rescale(c)
	}
	if f.Offsets != nil {
		f.Offsets.rescale(c)
	}
}

// Variances (M) are those of s at a fixed mean of all s, from the precision: the second order about the maximum.
func (f *Fit) Variances() ([]float64, error) {
	rows, total, err := f.alongMean()
	if err != nil {
		return nil, err
	}
	// s' = s - s Σs/Σs̄ is what changes at a fixed mean.
	sum, variances := floats.Sum(f.S), dense.InvertDiagonal(f.curved, runtime.GOMAXPROCS(0))
	for mu, s := range f.S {
		variances[mu] = max(0, variances[mu]-2*s/sum*rows[mu]+s/sum*(s/sum)*total)
	}
	return variances, nil
}
