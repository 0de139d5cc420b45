package evolution

import (
	"fmt"
	"math"

	"github.com/calamp/calamp/internal/field"
	"github.com/calamp/calamp/prior"
)

// Group is a part of the entries of a signal with one prior: where entries differ, averages
// over an entry are those over the groups.
type Group struct {
	Fraction float64 // of all entries; the fractions sum to one
	Signal   prior.GaussBernoulli
}

// GroupsOf are the groups of a prior.
func GroupsOf(g prior.Groups) (list []Group) {
	for j, kind := range g.Kinds() {
		list = append(list, Group{g.Fraction(j), kind})
	}
	return list
}

// groups are those of the model: one, where all entries have one prior.
func (m Model) groups() []Group {
	if m.Groups == nil {
		return []Group{{1, m.Signal}}
	}
	return m.Groups
}

func validGroups(groups []Group) error {
	total := 0.0
	for j, g := range groups {
		if !(g.Fraction > 0) {
			return fmt.Errorf("group %d: its fraction of the entries must be positive, found %g", j, g.Fraction)
		}
		if err := validSignal(g.Signal); err != nil {
			if len(groups) > 1 {
				return fmt.Errorf("group %d: %w", j, err)
			}
			return err
		}
		total += g.Fraction
	}
	if math.Abs(total-1) > 1e-9 {
		return fmt.Errorf("the fractions of the groups must sum to 1, found %g", total)
	}
	return nil
}

func validSignal(g prior.GaussBernoulli) error {
	if err := g.Validate(); err != nil {
		return err
	}
	if sd := math.Sqrt(g.SignalVar); !(math.Abs(g.SignalMean) <= mostMean*sd) {
		return fmt.Errorf("a signal mean of %g beside a standard deviation of %g: rounding hides what differs, expected at most %g standard deviations", g.SignalMean, sd, mostMean)
	}
	return nil
}

// Variance is that of an entry, before anything is read: within its group.
func (m Model) Variance() float64 {
	if m.Network != nil {
		return newNetworkState(m).first.Value
	}
	if m.Entries != nil {
		return m.Entries.Variance()
	}
	return m.over(prior.GaussBernoulli.Variance)
}

// SecondMoment is q₀ = E x².
func (m Model) SecondMoment() float64 {
	if m.Network != nil {
		s := newNetworkState(m)
		return s.rho[len(m.Network)]
	}
	if m.Entries != nil {
		return prior.Square(m.Entries)
	}
	return m.over(secondMoment)
}

// Density is the part of all entries, of latents where there is a network, that are not zero.
func (m Model) Density() float64 {
	if m.Entries != nil {
		return m.Entries.NonZero()
	}
	return m.over(prior.GaussBernoulli.NonZero)
}

func (m Model) over(f func(prior.GaussBernoulli) float64) float64 {
	total := 0.0
	for _, g := range m.groups() {
		total += g.Fraction * f(g.Signal)
	}
	return total
}

// average integrates over an entry and its field N(x; λ, Σ).
func (m Model) average(sigma, tol float64) (sum field.Averages) {
	if m.Network != nil {
		return m.averageNetwork(sigma)
	}
	if m.Entries != nil {
		return field.OfPrior(m.Entries, sigma, tol)
	}
	for j, g := range m.groups() {
		f := field.Matched(g.Signal, sigma)
		a := f.Integrate(tol)
		if j == 0 && g.Fraction == 1 {
			return a
		}
		for _, pair := range [...]struct{ to, of *field.Number }{
			{&sum.Variance, &a.Variance}, {&sum.Square, &a.Square}, {&sum.MSE, &a.MSE}, {&sum.Loss, &a.Loss}, {&sum.LogNorm, &a.LogNorm},
		} {
			pair.to.Value += g.Fraction * pair.of.Value
			pair.to.Err += g.Fraction * pair.of.Err
		}
	}
	return sum
}

// Entry is [Entry] of the model's signals.
func (m Model) Entry(sigma float64, opt *Options) EntryAverages {
	return entryAverages(m.average(sigma, opt.tol()))
}
