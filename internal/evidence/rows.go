package evidence

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"
)

// complete reports whether all snapshots have readings of all rows that are read at all.
func (f *Complex) complete() bool {
	read := 0
	for _, n := range f.readings {
		if n > 0 {
			read++
		}
	}
	for _, s := range f.Snapshots {
		if len(s.rows) < read {
			return false
		}
	}
	return true
}

// take takes over A⁻¹ and what belongs to it of a snapshot with the same sites and readings.
func (s *Snapshot) take(from *Snapshot) {
	s.inverse, s.projected, s.logDet, s.seen = from.inverse, from.projected, from.logDet, from.seen
}

// rowsEvidence sets how likely each component of the prior is of each entry, from the fields of all snapshots, and returns the evidence of those.
func (f *Complex) rowsEvidence() (total float64) {
	if f.rowWeights == nil {
		f.rowWeights = make([][]float64, f.n)
	}
	for i := range f.n {
		r := make([]float64, len(f.Weight))
		for j, v := range f.Variance {
			r[j] = math.Log(f.Weight[j])
			for _, s := range f.Snapshots {
				if c := s.Sigma[i]; !math.IsInf(c, 1) {
					r[j] -= s.times * f.halves() * (math.Log(math.Pi*(v+c)) + f.size(s.Lambda[i])/(v+c))
				}
			}
		}
		total += normalise(r)
		f.rowWeights[i] = r
	}
	return total
}

// moveRows has sites of joint entries be CN(0, γ_i), the same in all snapshots, with γ_i the mean square of the entry's posterior under the prior: sparse Bayesian learning, in which
// variances are drawn from the components of the prior. It takes a step of the prior as well.
func (f *Complex) moveRows() {
	moments, part := f.newSlabMoments(), 1.
	if f.places != nil { // entries beside a source may be there and gone in turns: of 20 arrays 3 came to no rest
		part = damps / max(damps, float64(f.steps))
	}
	if f.rowWeights == nil {
		f.rowsEvidence()
	}
	least := narrowSlab * f.meanSquare()
	for i, r := range f.rowWeights {
		moments.r = r
		total, count := 0.0, 0.0
		for _, s := range f.Snapshots {
			if c := s.Sigma[i]; !math.IsInf(c, 1) {
				moments.times = s.times
				mean, variance := moments.take(s.Lambda[i], c)
				total, count = total+s.times*(f.size(mean)+variance), count+s.times
			}
		}
		if count == 0 {
			continue
		}
		for _, s := range f.Snapshots {
			s.gamma[i] = math.Pow(s.gamma[i], 1-part) * math.Pow(max(total/count, least), part)
		}
	}
	if f.steps > slabsStayFor {
		moments.adopt(f)
	}
}

// beginRows begins at the noise, the prior and the variances of entries of another fit.
func (f *Complex) beginRows(from *Complex) {
	f.Noise, f.Weight, f.Variance = from.Noise, slices.Clone(from.Weight), slices.Clone(from.Variance)
	for _, s := range f.Snapshots {
		copy(s.gamma, from.Snapshots[0].gamma)
	}
}

// snapshots is how many there are.
func (f *Complex) snapshots() (count float64) {
	for _, s := range f.Snapshots {
		count += s.times
	}
	return count
}

// Turned is a fit of as many snapshots as there are rows, which is as good where entries are joint and snapshots are more: readings YV with a unitary V have the same likelihood and the same prior as Y, and V may be that
// of the singular value decomposition of Y, after which all but M snapshots have readings of zero. Those are one, of which there are many. It is to be turned before the first step, and is f itself where that would be of no use.
func (f *Complex) Turned() *Complex {
	if !f.Joint || f.Real || f.readers != nil || f.readingsMissing() || len(f.y) <= f.m+1 {
		return f
	}
	vectors, values, ok := f.covarianceOfReadings()
	if !ok {
		return f
	}
	out := NewComplex(f.m, f.n, f.m+1, f.w.at, func(mu, k int) complex128 {
		if k == f.m {
			return 0
		}
		return complex(math.Sqrt(values[k]), 0) * vectors[k][mu]
	}, 0)
	copy(out.S, f.S)
	copy(out.readings, f.readings)
	out.Snapshots[f.m].times = float64(len(f.y) - f.m)
	for _, s := range out.Snapshots {
		copy(s.gamma, f.Snapshots[0].gamma)
	}
	out.takeSettings(f)
	out.Noise, out.Spread, out.Weight, out.Variance, out.begun, out.whole = f.Noise, f.Spread, f.Weight, f.Variance, f.begun, f.y
	return out
}

// IsTurned reports whether snapshots are those of [Complex.Turned].
func (f *Complex) IsTurned() bool { return f.whole != nil }

// CommonMisfit is what the noise of the K largest turned snapshots is relative to that of all, where K entries are large: these have nearly all of the signals, and all that the model leaves out which is the same in
// all snapshots, as errors of W are. It is one where it may be so by chance, or where snapshots are not turned.
func (f *Complex) CommonMisfit() float64 {
	if !f.IsTurned() {
		return 1
	}
	large := 0
	for i := range f.n {
		if f.large(i) {
			large++
		}
	}
	total, trace := 0.0, 0.0
	for _, s := range f.Snapshots[:min(large, f.m)] {
		trace -= s.spent
		for mu, g := range s.G {
			total, trace = total+square(g), trace+s.Inverse[mu]
		}
	}
	freedom := trace * f.Noise
	if ratio := total / trace; freedom > 1 && ratio > 1+surelyMore/math.Sqrt(freedom) {
		return ratio
	}
	return 1
}

// large reports whether a joint entry has more than the mean variance.
func (f *Complex) large(i int) bool {
	gamma := f.Snapshots[0].gamma
	return gamma[i]*float64(f.n) > floats.Sum(gamma)
}

// surelyMore is by how many standard deviations a mean square is larger than chance has it.
const surelyMore = 3

// Whole is the fit of all snapshots as they are, for a few more steps; nil where they have not been turned.
func (f *Complex) Whole() *Complex {
	if f.whole == nil {
		return nil
	}
	out := f.onFrom(f.w.at)
	for _, s := range out.Snapshots {
		floats.ScaleTo(s.gamma, square(out.S[0]/f.S[0]), f.Snapshots[0].gamma)
	}
	if out.places = f.places; out.places != nil {
		for j := range out.places.columns {
			out.setPlace(j)
		}
	}
	return out
}

// onFrom is a fit of all snapshots, for another matrix, that begins at the gains, the noise and the prior of this one.
func (f *Complex) onFrom(w func(mu, i int) complex128) *Complex {
	y := f.y
	if f.whole != nil {
		y = f.whole
	}
	out := NewComplex(f.m, f.n, len(y), w, func(mu, k int) complex128 { return y[k][mu] }, 0)
	out.takeSettings(f)
	out.Spread = f.Spread
	out.BeginAt(f.S)
	unit := square(out.S[0] / f.S[0])
	out.Noise, out.Weight, out.Variance = unit*f.Noise, slices.Clone(f.Weight), slices.Clone(f.Variance)
	floats.Scale(unit, out.Variance)
	return out
}
