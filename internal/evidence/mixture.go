package evidence

import (
	"math"

	"gonum.org/v1/gonum/floats"
)

// Mixture is a prior of exchangeable entries: x ~ Σ_j w_j N(0, v_j), zero mean, one for all entries of all snapshots. With a few
// components it is sparse, or heavy-tailed. It has far fewer hyperparameters than a variance of each entry, and cannot fit itself to
// the noise.
//
// The posterior is approximated by a product of Gaussians of each snapshot and responsibilities r_j of each entry. Given those an entry is
// Gaussian with 1/Γ = Σ_j r_j/v_j, and the bound of the evidence is that of Gaussian signals plus
//
//	Σ_ik ½ log Γ + ½ E x²/Γ + log Σ_j w_j v_j^-½ exp(-E x²/2v_j).
//
// Where all snapshots share their variances an entry is of the same component in all of them, and sums over its snapshots take the place of Γ's and x² of one.
// Weights and variances take EM steps (Vila and Schniter, "Expectation-maximization Gaussian-mixture approximate message passing", 2013).
type Mixture struct {
	Weight, Variance []float64

	responsibilities, sums, squares []float64 // workspace, one a component
}

const (
	// The variances of components begin at even steps of their logarithm between these, in units of the signals' mean square:
	// from entries that hardly matter to the few that have most of the power.
	// Between entries that have one variance in all snapshots there are finer differences than between those of single ones.
	components, fineComponents = 5, 9
	leastFirst, mostFirst      = 1e-5, 30
	leastWeight, leastRatio    = 1e-8, 1e-12

	// openedBy is what the variances of all entries begin with beside those that were learned, in units of the signals' mean
	// square: an entry without a variance could not come back.
	openedBy = 1e-3
)

// Mix is a fit with a mixture in place of the variances that all snapshots share, begun at what f found. With own each entry of each snapshot is
// of a component of its own; otherwise an entry is of the same one in all snapshots.
func (f *Fit) Mix(own bool) *Fit {
	next := newFit(f.w, f.read, f.each, own)
	next.beginAt(f, 0, 1)
	next.inherit(f)
	count := fineComponents
	if own {
		count = components
	}
	m, square := newMixture(count), f.meanSquare()
	for j := range m.Variance {
		m.Weight[j] = 1 / float64(count)
		m.Variance[j] = square * leastFirst * math.Pow(mostFirst/leastFirst, float64(j)/float64(count-1))
	}
	next.Mixture = m
	return next
}

// Drawn reports whether entries are drawn from a mixture whose error bars readings drawn anew can check: those of one snapshot can where sensors have several rows. Where each has one, of three field problems with such an answer two were wrong, by .28 and .26 for .03 and .17.
func (f *Fit) Drawn() bool { return f.Mixture != nil && f.each > 1 }

func newMixture(components int) *Mixture {
	m := &Mixture{}
	for _, a := range []*[]float64{&m.Weight, &m.Variance, &m.responsibilities, &m.sums, &m.squares} {
		*a = make([]float64, components)
	}
	return m
}

func (f *Fit) familyOf(snapshot int) *Family {
	if len(f.Families) == 1 {
		return f.Families[0]
	}
	return f.Families[snapshot]
}

// meanSquare is that of the entries, but the common one.
func (f *Fit) meanSquare() float64 {
	total, count := 0.0, 0.0
	n, p := f.X.Dims()
	for i := range n {
		for k := range p {
			if i != f.common {
				total, count = total+f.X.At(i, k)*f.X.At(i, k), count+1
			}
		}
	}
	return total / count
}

// respond sets the responsibilities for an entry whose mean squares in n snapshots have the sum e, and returns the logarithm of their sum.
func (m *Mixture) respond(e, n float64) (log float64) {
	for j, v := range m.Variance {
		m.responsibilities[j] = math.Log(m.Weight[j]) - 0.5*n*math.Log(v) - 0.5*e/v
	}
	return normalise(m.responsibilities)
}

// normalise makes probabilities of their logarithms up to a constant, and returns the logarithm of what their sum was.
func normalise(r []float64) (log float64) {
	most, total := floats.Max(r), 0.0
	for j, v := range r {
		r[j] = math.Exp(v - most)
		total += r[j]
	}
	for j := range r {
		r[j] /= total
	}
	return most + math.Log(total)
}

// bound is what the mixture adds to the evidence of Gaussian signals. The common entry, if any, is not of the mixture: it has a variance of its own.
func (f *Fit) bound() (total float64) {
	for _, family := range f.Families {
		n := float64(len(family.Snapshots))
		for i, gamma := range family.Gamma {
			if i == f.common {
				continue
			}
			e := f.squareOf(family, i)
			total += 0.5*n*math.Log(gamma) + 0.5*e/gamma + f.Mixture.respond(e, n)
		}
	}
	return total
}

// squareOf is the sum of an entry's mean squares over the snapshots of a family.
func (f *Fit) squareOf(a *Family, i int) (e float64) {
	for _, k := range a.Snapshots {
		e += f.X.At(i, k)*f.X.At(i, k) + f.C.At(i, k)
	}
	return e
}

// improveMixture takes an EM step of weights and variances, and of Γ.
func (f *Fit) improveMixture() {
	m := f.Mixture
	clear(m.sums)
	clear(m.squares)
	most, common := 0.0, 0.0
	for _, family := range f.Families {
		n := float64(len(family.Snapshots))
		for i := range family.Gamma {
			e := f.squareOf(family, i)
			if i == f.common {
				common += e / float64(f.y.RawMatrix().Cols)
				continue
			}
			most = max(most, e/n)
			m.respond(e, n)
			for j, r := range m.responsibilities {
				m.sums[j] += r * n
				m.squares[j] += r * e
			}
		}
	}
	count := floats.Sum(m.sums)
	for j, sum := range m.sums {
		m.Weight[j] = max(sum/count, leastWeight)
		if sum > 0 {
			m.Variance[j] = max(m.squares[j]/sum, leastRatio*most)
		}
	}
	for _, family := range f.Families {
		n := float64(len(family.Snapshots))
		for i := range family.Gamma {
			if i == f.common {
				family.Gamma[i] = common
				continue
			}
			m.respond(f.squareOf(family, i), n)
			precision := 0.0
			for j, r := range m.responsibilities {
				precision += r / m.Variance[j]
			}
			family.Gamma[i] = 1 / precision
		}
	}
}

// rescale follows signals that become c times as large.
func (m *Mixture) rescale(c float64) {
	for j := range m.Variance {
		m.Variance[j] *= c * c
	}
}
