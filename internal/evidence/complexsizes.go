package evidence

import (
	"math"
	"math/cmplx"
	"slices"

	"gonum.org/v1/gonum/floats"
)

// surelyBelow is by how many standard deviations of their prior gains are below one where they have collapsed: of two hundred normal ones one is in 0.6 % of problems.
const surelyBelow = 4

// lawRounds is how many steps the sizes of entries take towards a law: regressors stay after the first of them, as those of [Sizes] do.
const lawRounds = 3 * choosesFor

// Scaled is a fit, for more steps, with the prior of x in units of a law (see [Sizes]), begun at the gains of this one: variances of entries are those of the law times those of the slabs, so that entries beside it are
// there as well. It is nil where no law is likelier than none, where a gain has collapsed, where entries lie between columns of W, or where sensors have several rows.
func (f *Complex) Scaled() *Complex {
	if f.Units != nil || f.places != nil || f.readers != nil || f.Weight == nil || f.collapsed() {
		return nil
	}
	s := f.lawOfSizes()
	if s == nil {
		return nil
	}
	unit, largest := make([]float64, f.n), floats.Max(s.line)
	for i, log := range s.line {
		unit[i] = math.Exp(0.5 * (log - largest))
	}
	units := &Units{of: unit, cost: costOfLaw(s.Law, f.n) + math.Log(float64(len(s.of)))}
	out := f.onFrom(units.Columns(f.w.at))
	out.Units, out.Weight, out.Variance, out.Noise = units, nil, nil, startNoise*out.power()
	return out.Turned()
}

// collapsed reports whether a gain went to zero with what its sensor alone sees, as the mean of a scene in the first row of a Fourier transform. A law in which the first entry has a size of its own would hold it there: of Fourier masks 0
// with the true range, noise and phases given, the mean was found as a hundredth of what it is, with an error bar as small.
func (f *Complex) collapsed() bool {
	return slices.ContainsFunc(f.S, func(v complex128) bool { return cmplx.Abs(v) < 1-surelyBelow*f.Spread })
}

// Units are the sizes of entries by a law, in which signals of a fit are; nil for one for all.
type Units struct {
	of   []float64 // N
	cost float64   // of the law
}

// Of is that of entry i.
func (u *Units) Of(i int) float64 {
	if u == nil {
		return 1
	}
	return u.of[i]
}

// Columns are those of W for signals in these units.
func (u *Units) Columns(w func(mu, i int) complex128) func(mu, i int) complex128 {
	if u == nil {
		return w
	}
	return func(mu, i int) complex128 { return w(mu, i) * complex(u.of[i], 0) }
}

// costOf is what it costs the evidence that they were found.
func (u *Units) costOf() float64 {
	if u == nil {
		return 0
	}
	return u.cost
}

// lawOfSizes is the law that the variances of Gaussian entries follow, by the fields of the present posterior; nil where none is likelier than one variance for all.
func (f *Complex) lawOfSizes() *Sizes {
	squares := columnSquares(f.w.Matrix)[:f.n]
	seen := make([]bool, f.n)
	for i, v := range squares {
		seen[i] = v > 0
	}
	s := &Sizes{Variance: firstSizes, Places: true, of: regressors(unevenColumns(squares, seen), f.n, true), line: make([]float64, f.n)}
	gammas, slopes, informations := slices.Repeat([]float64{f.meanSquare()}, f.n), make([]float64, f.n), make([]float64, f.n)
	for range lawRounds {
		var found logSizes
		for i, gamma := range gammas {
			square, determined, count := f.under(i, gamma)
			slopes[i], informations[i] = slopeOfSize(square/gamma, determined, count)
			if determined > leastKnown {
				found = append(found, sizeFrom(i, gamma, slopes[i], informations[i], count))
			}
		}
		if !s.choose(found) {
			return nil
		}
		for i, gamma := range gammas {
			gammas[i] = s.stepped(i, gamma, slopes[i], informations[i])
		}
	}
	if len(s.Law) == 1 {
		return nil
	}
	return s
}

// under is the sum of an entry's mean squares over snapshots and parts where its variance is gamma, by its fields, with the sum of (1 - C/γ)², and the number of parts.
func (f *Complex) under(i int, gamma float64) (square, determined, count float64) {
	for _, s := range f.Snapshots {
		parts := s.times * float64(f.parts())
		count += parts
		kept := 0.0
		if c := s.Sigma[i]; !math.IsInf(c, 1) {
			kept = gamma / (gamma + c)
			square += parts * kept * kept * f.size(s.Lambda[i])
		}
		square += parts * gamma * (1 - kept)
		determined += parts * kept * kept
	}
	return square, determined, count
}
