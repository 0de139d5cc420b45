package evidence

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/mathext"
)

// ownZeros are the probabilities of zero that each entry has of its own: the same entries are there in many snapshots, or supports have nothing in common. They follow a beta distribution of mean w_0, the weight of zero
// of all entries, and of strength κ. An entry of one of P snapshots is zero with the probability
//
//	(κw_0 + Σ_l r_il)/(κ + P - 1),
//
// of the responsibilities r of zero in the other snapshots l (Pólya's urn). κ is learned: it is small where an entry is there in all snapshots or in none, and large where supports have nothing in common. With one
// probability for all, an entry that is there in all snapshots but small in one of them by chance is taken for zero in that one, and for certain: gains have an error along that entry, which that pins.
type ownZeros struct {
	strength     float64   // κ
	r            []float64 // N·P, of entry i and snapshot k at i·P + k; NaN without a cavity
	sums, counts []float64 // N, of r over snapshots, and of how many
}

const (
	// firstStrength is κ before it is learned. Cameras end at the same answers from 2 to 30.
	firstStrength = 10

	// strengthSteps is how many steps of κ are taken in each step of sites. κ stays between these: below, an entry is there in all snapshots or in none, and above all have the same probability.
	strengthSteps                  = 20
	leastStrength, largestStrength = 1e-2, 1e6
)

func newOwnZeros(n, p int) *ownZeros {
	o := &ownZeros{strength: firstStrength, r: make([]float64, n*p), sums: make([]float64, n), counts: make([]float64, n)}
	for i := range o.r {
		o.r[i] = math.NaN()
	}
	return o
}

func (o *ownZeros) clone() *ownZeros {
	if o == nil {
		return nil
	}
	return &ownZeros{strength: o.strength, r: slices.Clone(o.r), sums: slices.Clone(o.sums), counts: slices.Clone(o.counts)}
}

// keep keeps the responsibility of zero of an entry in a snapshot.
func (o *ownZeros) keep(i, k int, r float64) {
	if o != nil {
		o.r[o.at(i, k)] = r
	}
}

// of is the probability of zero of an entry in a snapshot, where w is that of all.
func (o *ownZeros) of(i, k int, w float64) float64 {
	sum, count := o.sums[i], o.counts[i]
	if r := o.r[o.at(i, k)]; count > 0 && !math.IsNaN(r) {
		sum, count = max(0, sum-r), count-1
	}
	return (o.strength*w + sum) / (o.strength + count)
}

func (o *ownZeros) at(i, k int) int { return i*(len(o.r)/len(o.sums)) + k }

// learn adds responsibilities up, and takes steps of Minka's fixed point of κ ("Estimating a Dirichlet distribution", 2000):
//
//	κ ← κ Σ_i Σ_j w_j (ψ(κw_j + n_ij) - ψ(κw_j)) / Σ_i (ψ(κ + n_i) - ψ(κ)),
//
// of zeros and others j and their numbers n_ij.
func (o *ownZeros) learn(w float64) {
	if o == nil {
		return
	}
	o.add()
	psi := mathext.Digamma
	for range strengthSteps {
		above, below := 0.0, 0.0
		before := [2]float64{psi(o.strength * w), psi(o.strength * (1 - w))}
		all := psi(o.strength)
		for i, n := range o.counts {
			for j, part := range o.parts(i, w) {
				above += part.w * (psi(o.strength*part.w+part.n) - before[j])
			}
			below += psi(o.strength+n) - all
		}
		if !(above > 0 && below > 0) {
			return
		}
		o.strength = min(max(o.strength*above/below, leastStrength), largestStrength)
	}
}

// add sets sums.
func (o *ownZeros) add() {
	clear(o.sums)
	clear(o.counts)
	for i := range o.sums {
		for _, r := range o.r[o.at(i, 0):o.at(i+1, 0)] {
			if !math.IsNaN(r) {
				o.sums[i], o.counts[i] = o.sums[i]+r, o.counts[i]+1
			}
		}
	}
}

// outcomes are the weight of one in all entries, and in how many snapshots an entry has it.
type outcomes struct{ w, n float64 }

// parts are those of an entry: zero, and not zero.
func (o *ownZeros) parts(i int, w float64) [2]outcomes {
	return [2]outcomes{{w, o.sums[i]}, {1 - w, o.counts[i] - o.sums[i]}}
}

// evidence is the logarithm of the likelihood of which entries are zero, Σ_i log Γ(κ)/Γ(κ+n_i) Π_j Γ(κw_j+n_ij)/Γ(κw_j), where w is the probability for all.
func (o *ownZeros) evidence(w float64) (total float64) {
	if o == nil {
		return 0
	}
	for i, n := range o.counts {
		total += logGamma(o.strength) - logGamma(o.strength+n)
		for _, part := range o.parts(i, w) {
			total += logGamma(o.strength*part.w+part.n) - logGamma(o.strength*part.w)
		}
	}
	return total
}

func logGamma(x float64) float64 {
	log, _ := math.Lgamma(x)
	return log
}
