package evidence

import (
	"math"
	"runtime"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"github.com/calamp/calamp/internal/dense"
	"github.com/calamp/calamp/internal/parallel"
)

// integrateMoves sets what unknown gains add to squares of entries, and take of tr A⁻¹. With H⁻¹ the covariance of gains at a fixed mean of all, and b_i = A⁻¹w_i, signals move by
// Γ_i b_iᵀ(y∘ds): over the snapshots of a pattern that is Γ_i² b_iᵀ(H⁻¹ ∘ Σ_k y_k y_kᵀ)b_i. Left out, Γ fits itself to errors of gains: with eight snapshots of 60 readings gains were then 20 times as far off as stated.
func (f *Fit) integrateMoves() error {
	f.Sizes.spent, f.Sizes.stale = 0, false
	clear(f.Sizes.moved)
	if err := f.addAllMoves(); err != nil {
		return err
	}
	_, trace := f.noiseSums()
	f.Sizes.spent /= trace
	return nil
}

// addAllMoves adds those of all snapshots.
func (f *Fit) addAllMoves() error {
	if f.Correlated != nil {
		return f.addTurnedMoves()
	}
	covariance, err := f.covarianceOfGains()
	if err != nil {
		return err
	}
	for _, a := range f.Families {
		for _, at := range a.patterns {
			f.addMoves(a, at, covariance)
		}
	}
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
	for i, mu := range at.sensors {
		for j, nu := range at.sensors[:i+1] {
			moves.Row(i)[j] = covariance.At(mu, nu) * products.At(i, j)
		}
	}
	dense.Mirror(moves)
	dense.Product(projected, at.inverse, at.w)
	dense.Product(b, moves, projected)
	for i := range rows {
		for j, entry := range a.active {
			s.moved[entry] += a.Gamma[entry] * a.Gamma[entry] * projected.At(i, j) * b.At(i, j) / unit
		}
	}
	s.spent += f.spentOnVariances(a, at, projected)
	square := dense.New(rows, rows)
	inverse := f.byNoise(at, at.inverse)
	dense.AddProduct(square, 1, inverse.T(), inverse, dense.Lower, threads)
	for i := range rows {
		s.spent += 2*floats.Dot(moves.Row(i)[:i+1], square.Row(i)[:i+1]) - moves.At(i, i)*square.At(i, i)
	}
}

// spentOnVariances is what integrating Γ out takes of tr A⁻¹: d_i = Σ_k γ_ik², of which the cost of that is a function, falls with Δ by 2 γ_ik Γ_i |A⁻¹w_i|².
func (f *Fit) spentOnVariances(a *Family, at *pattern, projected dense.Matrix) (spent float64) {
	for j, square := range columnSquares(f.byNoise(at, projected)) {
		if i := a.active[j]; i != f.common {
			spent += 2 * f.Sizes.costSlope(i) * float64(len(at.snapshots)) * (1 - at.kept[j]) * a.Gamma[i] * square
		}
	}
	return spent
}

// addTurnedMoves adds those of correlated snapshots, and sets what they add to the products of entries of which R is made. Left out there, R comes to have a combination of snapshots without signals, whose readings are
// gains alone: of three scenes behind 0/1 masks gains were ten times as far off as stated.
func (f *Fit) addTurnedMoves() error {
	u, total, err := f.alongMean()
	if err != nil {
		return err
	}
	turned := make([]*turnedMoves, len(f.Families))
	parallel.Run(len(turned), runtime.GOMAXPROCS(0), func(k int) { turned[k] = f.turnedMoves(k, u, total) })
	products := mat.NewSymDense(len(turned), nil)
	for k, own := range turned {
		f.Sizes.spent += own.spent
		for j, i := range f.Families[k].active {
			f.Sizes.moved[i] += f.Correlated.Gamma[i] * own.squares[j]
		}
		for l, other := range turned[:k+1] {
			products.SetSym(k, l, floats.Dot(own.moves.Data, other.moves.Data)-floats.Dot(own.along, other.along)/total)
		}
	}
	products.ScaleSym(1/f.entriesKnown(f.Sizes.determined), products)
	f.Correlated.moved = f.Correlated.asRead(products)
	return nil
}

// turnedMoves is what unknown gains add to a turned snapshot.
type turnedMoves struct {
	squares []float64    // of active entries, in units of their variances
	moves   dense.Matrix // L⁻¹FWΓ^½, with H = LLᵀ (M×active), and F of [Fit.follow]; columns have the roots of the weights of entries
	along   []float64    // uᵀ times the same without L⁻¹, u = H⁻¹1
	spent   float64      // of tr A⁻¹, on variances as well
}

func (f *Fit) turnedMoves(k int, u []float64, total float64) *turnedMoves {
	a, t := f.Families[k], new(turnedMoves)
	at := a.patterns[0]
	follows, done := dense.Scratch(len(f.S), len(at.rows))
	defer done()
	projected, projectedDone := dense.Scratch(len(at.rows), len(a.active))
	defer projectedDone()
	f.follow(follows, at, k)
	t.moves = dense.New(len(f.S), len(a.active))
	dense.Product(t.moves, follows, at.w)
	dense.Product(projected, at.inverse, at.w)
	along := rowsTimes(u, follows)
	t.along = rowsTimes(u, t.moves)
	dense.SolveLower(f.curved, t.moves, 1) // after the product: of an entry that moves with the mean alone, (L⁻¹F)W leaves three digits fewer
	dense.SolveLower(f.curved, follows, 1)
	t.spent = f.spentOnVariances(a, at, projected)
	for i, square := range columnSquares(follows) {
		t.spent += f.ratioOf(at.sensors[i]) * (square - along[i]*along[i]/total)
	}
	t.squares = columnSquares(t.moves)
	for j, i := range a.active {
		t.squares[j] = a.Gamma[i] * (t.squares[j] - t.along[j]*t.along[j]/total)
		root := math.Sqrt(a.Gamma[i] * f.Sizes.determined[i] / float64(len(f.Families)))
		if i == f.common {
			root = 0
		}
		t.along[j] *= root
		for mu := range t.moves.Rows {
			t.moves.Row(mu)[j] *= root
		}
	}
	return t
}

// rowsTimes is uᵀA.
func rowsTimes(u []float64, a dense.Matrix) []float64 {
	sum := make([]float64, a.Columns)
	for mu, v := range u {
		floats.AddScaled(sum, v, a.Row(mu))
	}
	return sum
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
