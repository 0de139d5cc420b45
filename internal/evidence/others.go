package evidence

import (
	"slices"

	"gonum.org/v1/gonum/floats"
)

// Where a few columns of W together nearly vanish, readings do not tell which of their entries are zero, and the sites of a sparse prior have several fixed points. Each states
// errors as if there was no other one. Two fits that began elsewhere, or with another prior, find that out.

// farApart is the mean square of the differences between two fits of the same readings, in the sum of their variances, above which one of them is wrong: what the readings tell
// is the same for both, so that their errors are, and their difference is less than either's. Of eight tomographs with a gain for each ray it was 0.2 to 0.8 in signals that were right, and 1.8 to
// 100 in those off by more than twice as stated.
const farApart = 1

// SparselyAs is a fit with the prior of a sparse fit, begun at the sites of another one, so that it ends at the fixed point that is next to that. It may take so many steps.
func (f *Fit) SparselyAs(prior, other *Fit, most int) *Fit {
	next := f.Sparsely(prior.Sparse.Scaled(), other.S, most)
	next.Sparse.Weight, next.Sparse.Mean, next.Sparse.Variance = slices.Clone(prior.Sparse.Weight), slices.Clone(prior.Sparse.Mean), slices.Clone(prior.Sparse.Variance)
	next.Sparse.zeros = prior.Sparse.zeros.clone()
	next.Sparse.location.Copy(other.Sparse.location)
	for k, family := range next.Families {
		copy(family.Gamma, other.Families[k].Gamma)
	}
	next.Noise, next.Spread, next.Smooth = other.Noise, other.Spread, other.Smooth
	next.Sparse.least, next.Sparse.steps = leastSites, other.Sparse.steps
	return next
}

// Apart reports whether fits of the same readings have signals that are far apart.
func (f *Fit) Apart(other *Fit) bool {
	for k := range f.Families {
		if _, far := f.Differences(other, k); far {
			return true
		}
	}
	return false
}

// Differences are the squared differences of the entries of a snapshot, and whether they are far apart.
func (f *Fit) Differences(other *Fit, k int) (squared []float64, far bool) {
	unit, total, open := floats.Sum(f.S)/floats.Sum(other.S), 0.0, 0.0
	for i := range f.Entries() {
		x, c, _, _ := f.Entry(i, k)
		y, d, _, _ := other.Entry(i, k)
		squared = append(squared, (x-unit*y)*(x-unit*y))
		total += squared[i]
		open += c + unit*unit*d
	}
	return squared, total > farApart*open
}

// DifferencesOfGains are the squared differences of s at the same mean.
func (f *Fit) DifferencesOfGains(other *Fit) (squared []float64) {
	unit := floats.Sum(f.S) / floats.Sum(other.S)
	for mu, s := range f.S {
		squared = append(squared, (s-unit*other.S[mu])*(s-unit*other.S[mu]))
	}
	return squared
}
