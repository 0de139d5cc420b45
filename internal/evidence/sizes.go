package evidence

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/stat"
)

// Sizes is a prior of the variances that all snapshots share: log Γ_i is normal, with one variance, about a line in log |w_i|². Coefficients of smooth
// signals and of images decay, and so do the columns of W that see them. Free variances of entries that are hardly seen take noise and errors of gains
// for signal; here they are what the others make likely. The line and the variance about it are learned.
//
// Γ_i moves to the maximum of the evidence and its prior, by its slope ½(Σ_k E x²_ik/Γ_i - n) - (log Γ_i - m_i)/V. It is integrated out to second order.
type Sizes struct {
	Mean, Slope, Variance float64

	along      []float64 // N, log |w_i|²
	line       []float64 // N, m_i
	determined []float64 // N, d_i: readings have the information d_i/2 on log Γ_i
}

const (
	// leastUneven is the ratio of the squares of columns of W, tenth to ninetieth per cent, from which sizes may follow columns. Of the kinds of
	// field problems it is at most 9 for those whose entries are all seen equally, and 30 to 4e6 for images in cosines, spectra and scans (docs/log/field.md).
	leastUneven = 10

	// An entry determines the line where the readings know its variance from more than leastKnown snapshots' worth, or half of all there are at most.
	leastKnown, leastPart = 2, 0.25

	firstSizes = 1    // the variance of log Γ at first
	leastSizes = 1e-2 // and the least: Γ is then known to a tenth, as from two hundred snapshots
	mostRise   = 1.5  // of log Γ in a step

	sizeNodes, sizeReach = 96, 6 // of the sum over log Γ, in standard deviations

	mostSized = 100 // steps of a fit
)

// Sized is a fit with the prior of sizes, begun at what f found; nil where columns of W are as good as equal, or few entries are known.
func (f *Fit) Sized() *Fit {
	squares, seen := columnSquares(f.w), []float64(nil)
	for i, v := range squares {
		if f.seen[i] {
			seen = append(seen, v)
		}
	}
	slices.Sort(seen)
	if f.summed || len(f.Families) > 1 || len(seen) == 0 ||
		!(stat.Quantile(0.9, stat.Empirical, seen, nil) > leastUneven*stat.Quantile(0.1, stat.Empirical, seen, nil)) {
		return nil
	}
	n := f.w.Columns
	s := &Sizes{Variance: firstSizes, along: make([]float64, n), line: make([]float64, n), determined: make([]float64, n)}
	for i, v := range squares {
		s.along[i] = math.Inf(-1)
		if f.seen[i] {
			s.along[i] = math.Log(v)
		}
	}
	f.setDetermined(s.determined)
	_, p := f.X.Dims()
	if !s.setLine(f.shared(), float64(p), f.common) {
		return nil
	}
	next := newFit(f.w, f.read, false)
	next.beginAt(f, 0, 1)
	next.inheritOffsets(f)
	next.Sizes = s
	return next
}

// stepSizes takes a step of all Γ, and makes the line that of the entries that determine it.
func (f *Fit) stepSizes() {
	s, gammas := f.Sizes, f.shared()
	_, p := f.X.Dims()
	n := float64(p)
	f.setDetermined(s.determined)
	s.setLine(gammas, n, f.common)
	for i, gamma := range gammas {
		switch {
		case i == f.common:
			gammas[i] = f.sharedSquare(i) / n
			continue
		case !f.seen[i]:
			gammas[i] = math.Exp(s.line[i])
			continue
		}
		information := 0.5 * n // that of E x², which never lowers the evidence
		if s.determined[i] < leastPart*n {
			information = 0.5 * s.determined[i] // its steps would be too short where readings hardly know the entry
		}
		off := math.Log(gamma) - s.line[i]
		rise := (0.5*(f.sharedSquare(i)/gamma-n) - off/s.Variance) / (information + 1/s.Variance)
		gammas[i] = gamma * math.Exp(min(max(rise, -mostRise), mostRise))
	}
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

// sharedSquare is the sum of an entry's mean squares over snapshots, in units of what they have beside Γ.
func (f *Fit) sharedSquare(i int) (e float64) {
	for k := range f.X.RawMatrix().Cols {
		e += (f.X.At(i, k)*f.X.At(i, k) + f.C.At(i, k)) / f.unit(k)
	}
	return e
}

// setLine fits the line, and the variance about it, to the entries that determine them: an EM step. Below the least column of these nothing is known of the line; it is constant there.
// It reports whether there were enough.
func (s *Sizes) setLine(gamma []float64, n float64, common int) bool {
	var x, y, known []float64
	for i, d := range s.determined {
		if i != common && d > max(leastKnown, leastPart*n) {
			x, y, known = append(x, s.along[i]), append(y, math.Log(gamma[i])), append(known, d)
		}
	}
	if len(x) < 3 {
		return false
	}
	s.Mean, s.Slope = stat.LinearRegression(x, y, nil, false)
	squares, left := 0.0, 0.0
	for j, v := range y {
		off := v - s.Mean - s.Slope*x[j]
		squares += off * off
		left += 1 / (0.5*known[j] + 1/s.Variance) / float64(len(x))
	}
	s.Variance = max(left+squares/float64(len(x)-2), leastSizes)
	least := floats.Min(x)
	for i, v := range s.along {
		s.line[i] = s.Mean + s.Slope*max(v, least)
	}
	return true
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

// costOfLine is what it costs the evidence that the line and the variance about it are found from so many entries (Schwarz, "Estimating the dimension of a model", 1978).
func (f *Fit) costOfLine() float64 {
	cost := 1.5 * math.Log(float64(f.Entries()))
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

// rescale follows signals that become c times as large.
func (s *Sizes) rescale(c float64) {
	s.Mean += 2 * math.Log(c)
	for i := range s.line {
		s.line[i] += 2 * math.Log(c)
	}
}

func (s *Sizes) clone() *Sizes {
	next := *s
	next.line, next.determined = slices.Clone(s.line), slices.Clone(s.determined)
	return &next
}
