package evidence

import (
	"runtime"

	"gonum.org/v1/gonum/floats"

	"github.com/calamp/calamp/internal/dense"
)

// integrateMoves sets what unknown gains add to squares of entries, and take of tr A⁻¹. With H⁻¹ the covariance of gains at a fixed mean of all, and b_i = A⁻¹w_i, signals move by
// Γ_i b_iᵀ(y∘ds): over the snapshots of a pattern that is Γ_i² b_iᵀ(H⁻¹ ∘ Σ_k y_k y_kᵀ)b_i. Left out, Γ fits itself to errors of gains: with eight snapshots of 60 readings gains were then 20 times as far off as stated.
func (f *Fit) integrateMoves() error {
	covariance, err := f.covarianceOfGains()
	if err != nil {
		return err
	}
	f.Sizes.spent, f.Sizes.stale = 0, false
	clear(f.Sizes.moved)
	for _, a := range f.Families {
		for _, at := range a.patterns {
			f.addMoves(a, at, covariance)
		}
	}
	_, trace := f.noiseSums()
	f.Sizes.spent /= trace
	return nil
}

// addMoves adds those of the snapshots of a pattern.
func (f *Fit) addMoves(a *Family, at *pattern, covariance dense.Matrix) {
	s, unit := f.Sizes, f.unit(a.Snapshots[0])
	rows, threads := len(at.rows), runtime.GOMAXPROCS(0)
	moves := dense.New(rows, rows)
	projected, projectedDone := dense.Scratch(rows, len(a.active))
	defer projectedDone()
	b, done := dense.Scratch(rows, len(a.active))
	defer done()
	products := at.products
	if products.Rows == 0 {
		products = f.productsOf(at)
	}
	for i, mu := range at.rows {
		for j, nu := range at.rows[:i+1] {
			moves.Row(i)[j] = covariance.At(mu, nu) * products.At(i, j)
		}
	}
	dense.Mirror(moves)
	dense.Product(projected, at.inverse, at.w)
	dense.Product(b, moves, projected)
	for i := range rows {
		for j, entry := range a.active {
			s.moved[entry] += a.Gamma[entry] * a.Gamma[entry] * projected.At(i, j) * b.At(i, j) / unit
			if entry != f.common { // d_i = Σ_k γ_ik² falls with Δ, by 2 γ_ik Γ_i |A⁻¹w_i|²
				s.spent += 2 * s.costSlope(entry) * float64(len(at.snapshots)) * (1 - at.kept[j]) * a.Gamma[entry] * projected.At(i, j) * projected.At(i, j)
			}
		}
	}
	square := dense.New(rows, rows)
	dense.AddProduct(square, 1, at.inverse, at.inverse, dense.Lower, threads)
	for i := range rows {
		s.spent += 2*floats.Dot(moves.Row(i)[:i+1], square.Row(i)[:i+1]) - moves.At(i, i)*square.At(i, i)
	}
}

// covarianceOfGains is H⁻¹ - uuᵀ/Σu (lower triangle): that of s at a fixed mean.
func (f *Fit) covarianceOfGains() (dense.Matrix, error) {
	u, total, err := f.alongMean()
	if err != nil {
		return dense.Matrix{}, err
	}
	covariance := dense.New(len(u), len(u))
	dense.InvertLower(f.curved, runtime.GOMAXPROCS(0))
	dense.Square(covariance, f.curved, runtime.GOMAXPROCS(0))
	for mu, v := range u {
		floats.AddScaled(covariance.Row(mu)[:mu+1], -v/total, u[:mu+1])
	}
	return covariance, nil
}

// alongMean is u = H⁻¹1 (M), along which s moves with its mean, and Σu. It leaves the factor of H in curved.
func (f *Fit) alongMean() (u []float64, total float64, err error) {
	if !f.factorPrecision() {
		return nil, 0, errSingular
	}
	u = make([]float64, len(f.S))
	for mu := range u {
		u[mu] = 1
	}
	dense.Solve(f.curved, u)
	return u, floats.Sum(u), nil
}
