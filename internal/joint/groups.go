package joint

import (
	"math"

	"github.com/calamp/calamp/internal/vector"
)

// Groups are rows whose densities and sizes differ by kind, as those of images do in a basis of cosines or wavelets: with the kind g of row i
//
//	x_i = √t_g x'_i,   x'_i = 0 with probability 1-ρ_g,   x'_i ~ N(m, R) else.
//
// So what signals have in common is one covariance, and its scale is that of rows of middle size. In units of √t_g rows have fields of the precision t_g a_i A, and nothing else changes.
type Groups struct {
	Of       []int     // N, the kind of each row
	Families [][]int   // kinds whose ρ and t are learned together
	Density  []float64 // ρ by kind
	Size     []float64 // t by kind
	rows     [][]int   // of each family
}

// NewGroups sorts rows by family.
func NewGroups(of []int, families [][]int, density, size []float64) *Groups {
	g := &Groups{Of: of, Families: families, Density: density, Size: size, rows: make([][]int, len(families))}
	family := make([]int, len(density))
	for f, kinds := range families {
		for _, kind := range kinds {
			family[kind] = f
		}
	}
	for i, kind := range of {
		g.rows[family[kind]] = append(g.rows[family[kind]], i)
	}
	return g
}

// density is that of row i, and size its t.
func (q *Prior) density(i int) float64 {
	if q.Groups == nil {
		return q.Density
	}
	return q.Groups.Density[q.Groups.Of[i]]
}

func (q *Prior) size(i int) float64 {
	if q.Groups == nil {
		return 1
	}
	return q.Groups.Size[q.Groups.Of[i]]
}

// precision is the size of the field of row i, in the units of its group.
func (r *Rows) precision(i int) float64 { return r.field.Size[i] * r.Prior.size(i) }

// scatter adds to what rows of one size would be expected to have, and have, of Σ_k γ_k u_k²/d_k, with the part γ = ad/(1+ad) that readings give of a value: it is t over what it is taken for.
func (r *Rows) scatter(i int, part, a, t float64, mu, s []float64, apart int) {
	if r.Prior.Groups == nil {
		return
	}
	for k, d := range r.basis.variance {
		if d *= t; d > 0 {
			value, m := mu[k*apart], r.basis.mean[k]
			known := part * r.basis.times[k] * a / (1 + a*d) // γ/d
			r.seen[i] += known * (value*value + s[k*apart])
			r.expected[i] += known * (d + m*m)
		}
	}
}

// refitGroups moves densities and sizes of groups, and returns how far, in standard errors. The mean size of rows that are there stays what it is: their scale is R's.
func (r *Rows) refitGroups(learns Learns, step float64) (change float64) {
	q := r.Prior.Groups
	ratios, known, common := make([]float64, len(q.Families)), make([]float64, len(q.Families)), 0.0
	for f, kinds := range q.Families {
		count, seen, expected := 0.0, 1.0, 1.0 // one value is as it is expected, where there are no others
		for _, i := range q.rows[f] {
			count, seen, expected = count+r.Support[i], seen+r.seen[i], expected+r.expected[i]
		}
		ratios[f], known[f] = math.Log(seen/expected), expected
		common += ratios[f] * count / r.count
		if learns.Density {
			to, moved := refitDensity(q.Density[kinds[0]], count, float64(len(q.rows[f])), step)
			change = max(change, moved)
			for _, kind := range kinds {
				q.Density[kind] = to
			}
		}
	}
	r.Prior.Density = 0
	for i := range r.N {
		r.Prior.Density += r.Prior.density(i) / float64(r.N)
	}
	if !learns.Size || !(r.count > leastDensity*float64(r.N)) {
		return change
	}
	for f, kinds := range q.Families {
		ratio := ratios[f] - common
		change = max(change, math.Abs(ratio)*math.Sqrt(0.5*known[f]))
		for _, kind := range kinds {
			q.Size[kind] *= math.Exp(step * ratio)
		}
	}
	return change
}

// refitDensity is a density moved by the fraction step of the way to what so many of n rows have, and how far that is.
func refitDensity(density, count, n, step float64) (moved, change float64) {
	to := min(max(count/n, leastDensity), 1-leastDensity)
	return density + step*(to-density), math.Abs(to-density) / math.Sqrt(density*(1-density)/n+1/(n*n))
}

// evidence is that of rows with the logarithms l, at the best density of each family.
func (r *Rows) evidence(l []float64) (total float64) {
	q := r.Prior.Groups
	if q == nil {
		return evidence(l, r.N, r.Prior.Density)
	}
	for f, rows := range q.rows {
		own := make([]float64, vector.Padded(len(rows)))
		for at, i := range rows {
			own[at] = l[i]
		}
		total += evidence(own, len(rows), q.Density[q.Families[f][0]])
	}
	return total
}
