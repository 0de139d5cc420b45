package evidence

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/mat"
)

// spectrum is the prior of snapshots in order, such as lines of a scan: what is fine along a line changes from one to the next, and what is coarse stays. Turned by cosines over snapshots, entries are nearly independent, with the variances
//
//	log Γ_ik = Σ_jl c_jl r_j(i) t_l(k) [+ c_0 [k = 0]],   t = 1, log(1 + k),
//
// of the regressors r of the law of places (see [Sizes]): the spectrum of a scene in two dimensions. One covariance of snapshots for all entries (see [Correlated]) takes coarse and fine ones to change by the same amount. The mean of all snapshots,
// k = 0, is on the same law, or above it where scenes hardly change; with more coefficients of its own it would be what errors of gains make it.
type spectrum struct {
	law     []float64   // c
	terms   [][2]int    // j and l of each
	along   [][]float64 // r, N each
	across  [][]float64 // t, P each
	above   bool        // whether there is a c_0
	careful bool        // the last step was taken back
}

// Scanned is a fit of snapshots in order, begun at the law of places that f has, with the mean of all snapshots on that law or above it; nil where it has none, or where readings of some snapshots are missing.
func (f *Fit) Scanned(above bool) *Fit {
	if f.Sizes == nil || !f.Sizes.Places || f.Correlated != nil || f.common > 0 || f.missesSome() {
		return nil
	}
	_, p := f.read.Dims()
	next := newFit(f.w, f.read, f.each, true)
	next.beginAt(f, 0, 1)
	next.inherit(f)
	next.common = -1
	r := newCorrelated(f.shared(), p)
	law := &spectrum{above: above, along: f.Sizes.regressors, across: [][]float64{make([]float64, p), make([]float64, p), make([]float64, p)}}
	law.across[2][0] = 1
	for k := range p {
		r.values[k], law.across[0][k], law.across[1][k] = 1, 1, math.Log1p(float64(k))
		for j := range p {
			r.vectors.Set(j, k, cosine(j, k, p))
		}
	}
	r.sumUp()
	for j, a := range f.Sizes.Law { // the same for all k
		law.terms, law.law = append(law.terms, [2]int{j, 0}, [2]int{j, 1}), append(law.law, a, 0)
	}
	if above {
		law.terms, law.law = append(law.terms, [2]int{0, 2}), append(law.law, 0)
	}
	r.spectrum, next.Correlated = law, r
	next.turn()
	return next
}

// cosine is entry j of cosine k of p, of length one.
func cosine(j, k, p int) float64 {
	size := math.Sqrt(2 / float64(p))
	if k == 0 {
		size = math.Sqrt(1 / float64(p))
	}
	return size * math.Cos(math.Pi*(float64(j)+0.5)*float64(k)/float64(p))
}

// at is r_j(i) t_l(k) of a coefficient.
func (s *spectrum) at(coefficient, i, k int) float64 {
	term := s.terms[coefficient]
	return s.along[term[0]][i] * s.across[term[1]][k]
}

// log is log Γ_ik.
func (s *spectrum) log(i, k int) (log float64) {
	for j, c := range s.law {
		log += c * s.at(j, i, k)
	}
	return log
}

// stepSpectrum takes a step of Fisher's scoring of the law, with the slope ½(E x²_ik/Γ_ik - 1) of the evidence along log Γ_ik and the information ½ d_ik, where readings determine Γ_ik to the part d_ik. After a step that was taken back the
// information is ½, with which the evidence does not fall.
func (f *Fit) stepSpectrum() {
	s := f.Correlated.spectrum
	n, p := f.X.Dims()
	count := len(s.law)
	information, slope, at := mat.NewSymDense(count, nil), mat.NewVecDense(count, nil), mat.NewVecDense(count, nil)
	for j := range count {
		information.SetSym(j, j, leastKnown) // a coefficient of which nothing is known stays
	}
	each := func(visit func(i, k int)) {
		for i := range n {
			for k := range p {
				if f.seen[i] {
					for j := range count {
						at.SetVec(j, s.at(j, i, k))
					}
					visit(i, k)
				}
			}
		}
	}
	each(func(i, k int) {
		gamma, known := f.Families[k].Gamma[i], 1.0
		if !s.careful {
			known = max(leastPart, 1-f.C.At(i, k)/gamma)
		}
		information.SymRankOne(information, 0.5*known, at)
		slope.AddScaledVec(slope, 0.5*((f.X.At(i, k)*f.X.At(i, k)+f.C.At(i, k))/gamma-1), at)
	})
	s.careful = false
	var factor mat.Cholesky
	var step mat.VecDense
	if !factor.Factorize(information) || factor.SolveVecTo(&step, slope) != nil {
		return
	}
	most := mostRise
	each(func(int, int) { most = max(most, math.Abs(mat.Dot(at, &step))) })
	for j := range count {
		s.law[j] += step.AtVec(j) * mostRise / most
	}
}

// cost is what it costs the evidence that the law is found, without a variance about it.
func (s *spectrum) cost() float64 {
	return costOfLaw(s.law[1:], len(s.along[0])*len(s.across[0]))
}

func (s *spectrum) clone() *spectrum {
	if s == nil {
		return nil
	}
	next := *s
	next.law = slices.Clone(s.law)
	return &next
}
