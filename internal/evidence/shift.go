package evidence

import (
	"math"

	"gonum.org/v1/gonum/floats"
)

// Where all snapshots have much of one column c of W, gains s(1 - ε w_i/w_c) give nearly the readings of entries x_i - ε x_c in all snapshots. For Gaussian signals these are nearly as
// likely, and most of what is wrong with their gains are such shifts. Of sparse signals an entry is zero in many snapshots, and only the right ε has them there. But each site finds
// its entry off zero, for certain as long as gains stay, and all of them together hold the gains. So shifts are tried as a whole.

// Shifted is a fit that begins at the sites and gains of f, a sparse one, moved by the likeliest shift of each entry; nil where none is likelier than no shift by more than choosing
// it costs, of one for each entry and snapshot. It has the structure of another fit, and may take so many steps.
func (f *Fit) Shifted(like *Fit, most int) *Fit {
	if f.each > 1 { // rows of a sensor would shift apart
		return nil
	}
	n, p := f.X.Dims()
	m, shifts := f.newMoments(), make([]float64, n)
	for i := range n {
		if i == f.common || !f.seen[i] {
			continue
		}
		if shift, risen := f.likeliestShift(m, i); risen > math.Log(float64(n*p)) {
			shifts[i] = shift
		}
	}
	if floats.Norm(shifts, 1) == 0 {
		return nil
	}
	next := like.SparselyAs(f, f, most)
	for i, shift := range shifts {
		for k := range p {
			next.Sparse.location.Set(i, k, next.Sparse.location.At(i, k)-shift*f.X.At(f.common, k))
		}
	}
	for mu := range next.S {
		if by := 1 - floats.Dot(shifts, f.w.Row(mu))/f.w.At(mu, f.common); by > 0 && !math.IsInf(by, 0) {
			next.S[mu] *= by
		}
	}
	return next
}

// likeliestShift is the ε for which ∏_k ∫ p(x) N(x; λ_k - ε x_ck, c_k) is largest, of those that make one of the snapshots' λ zero, and by how much its logarithm is above that
// of ε = 0. λ and c are the cavity at the present gains.
func (f *Fit) likeliestShift(m *moments, i int) (shift, risen float64) {
	var lambda, open, common []float64
	var snapshots []int
	_, p := f.X.Dims()
	for k := range p {
		if at, c := f.without(i, k, 0); c > 0 {
			lambda, open, common, snapshots = append(lambda, at), append(open, c), append(common, f.X.At(f.common, k)), append(snapshots, k)
		}
	}
	value := func(shift float64) (log float64) {
		for k := range lambda {
			m.addOf(i, snapshots[k], lambda[k]-shift*common[k], open[k])
			log += m.evidence
		}
		return log
	}
	none := value(0)
	for k := range lambda {
		if at := lambda[k] / common[k]; value(at)-none > risen {
			shift, risen = at, value(at)-none
		}
	}
	return shift, risen
}
