package amp

import (
	"math"
	"slices"

	"github.com/calamp/calamp/internal/joint"
	"github.com/calamp/calamp/prior"
)

// rowsOfGroups is the distribution of an entry that is drawn at random, where it is not zero, and how often it is not.
func rowsOfGroups(groups prior.Groups) prior.GaussBernoulli {
	density := groups.NonZero()
	mean := groups.Mean() / density
	return prior.GaussBernoulli{Density: density, SignalMean: mean, SignalVar: groups.Square()/density - mean*mean}
}

// jointGroups are the groups of rows, sizes being relative to those of entries drawn at random. Learned ones begin at one size: of what every group has from the start little is to be believed.
func jointGroups(groups prior.Groups, random prior.GaussBernoulli) *joint.Groups {
	var density, size []float64
	for _, kind := range groups.Kinds() {
		density = append(density, kind.Density)
		size = append(size, (kind.SignalVar+kind.SignalMean*kind.SignalMean)/(random.SignalVar+random.SignalMean*random.SignalMean))
	}
	return joint.NewGroups(groups.Of(), groups.Families(), density, size)
}

// meansOfGroups reports whether entries that are not zero have a mean that was given: rows have one mean, in units of what their group's size is learned to be.
func meansOfGroups(p prior.Prior) bool {
	groups, is := p.(prior.Groups)
	return is && groups.Learn&prior.SignalMean == 0 && slices.ContainsFunc(groups.Kinds(), func(g prior.GaussBernoulli) bool { return g.SignalMean != 0 })
}

// withGroups is a prior of groups with what was learned of joint rows.
func withGroups(groups prior.Groups, q *joint.Prior) prior.Prior {
	one := entryOf(q)
	var values []float64
	for kind, t := range q.Groups.Size {
		values = append(values, q.Groups.Density[kind], math.Sqrt(t)*one.SignalMean, t*one.SignalVar)
	}
	to, err := groups.WithValues(values)
	if err != nil {
		return groups // no number yet: the loop sees it elsewhere
	}
	return to
}

// groupFields are the fields of entries of one distribution in all signals.
type groupFields struct {
	n              int
	lambda, sigma  []float64 // P×n
	mean, variance []float64 // P, where they are not zero
	density        float64
}

// eachGroup are those of all entries, or of each group.
func (s *State) eachGroup(sigma []float64) (each []groupFields) {
	groups, is := s.model.Prior.(prior.Groups)
	if !is {
		g, _ := partOf(s.model.Prior)
		mean, variance := s.perSignal(g)
		return []groupFields{{s.N, s.Lambda, sigma, mean, variance, g.Density}}
	}
	for _, kind := range groups.Kinds() {
		mean, variance := s.perSignal(kind)
		each = append(each, groupFields{mean: mean, variance: variance, density: kind.Density})
	}
	for _, kind := range groups.Of() {
		each[kind].n++
	}
	for j := range each {
		a := &each[j]
		a.lambda, a.sigma = make([]float64, 0, a.n*s.P), make([]float64, 0, a.n*s.P)
	}
	for k := range s.P {
		for i, kind := range groups.Of() {
			a, j := &each[kind], k*s.N+i
			a.lambda, a.sigma = append(a.lambda, s.Lambda[j]), append(a.sigma, sigma[j])
		}
	}
	return each
}
