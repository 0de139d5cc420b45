package evidence

import (
	"math"
	"slices"
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
					r[j] -= math.Log(math.Pi*(v+c)) + square(s.Lambda[i])/(v+c)
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
	moments := f.newSlabMoments()
	if f.rowWeights == nil {
		f.rowsEvidence()
	}
	least := narrowSlab * f.meanSquare()
	for i, r := range f.rowWeights {
		moments.r = r
		total, count := 0.0, 0.0
		for _, s := range f.Snapshots {
			if c := s.Sigma[i]; !math.IsInf(c, 1) {
				mean, variance := moments.take(s.Lambda[i], c)
				total, count = total+square(mean)+variance, count+1
			}
		}
		if count == 0 {
			continue
		}
		for _, s := range f.Snapshots {
			s.gamma[i] = max(total/count, least)
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
