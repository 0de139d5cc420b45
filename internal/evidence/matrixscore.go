package evidence

import (
	"runtime"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"github.com/calamp/calamp/internal/dense"
)

// MatrixScores is how fast the evidence rises as W moves along directions D_j, W + Σ_j θ_j D_j, and minus its second derivative, J×J. Each product sets u (M×R) to D_j x, with x R×N.
// Sites and hyperparameters are where the evidence is stationary in them, so that W changes it explicitly alone. With A of this package's comment, x̂ the posterior mean and
// H minus the second derivative in s, over which the evidence is integrated to second order, it is with u_jk = D_j x̂_k
//
//	dL/dθ_j = Σ_k g_kᵀu_jk - tr(D_j Γ_k (R_k W)ᵀ),   R_k = A_k⁻¹ - A_k⁻¹ Y_k H⁻¹ Y_k A_k⁻¹,   Y_k = diag(y_k),
//	-d²L/dθ_j dθ_l = Σ_k u_jkᵀA_k⁻¹u_lk - c_jᵀH⁻¹c_l,   c_j = Σ_k Y_k A_k⁻¹ u_jk:
//
// signals and gains follow. Scatter is the variance of dL/dθ_j as its snapshots differ, which is what that information says where the model is right. It is nil where sensors have offsets, which
// follow, too.
func (f *Fit) MatrixScores(products []func(u, x []float64) error) (slope, scatter []float64, information *mat.SymDense, err error) {
	if f.Offsets != nil {
		return nil, nil, nil, nil
	}
	if !f.factorPrecision() {
		return nil, nil, nil, errSingular
	}
	slope, scatter, information = make([]float64, len(products)), make([]float64, len(products)), mat.NewSymDense(len(products), nil)
	pulled := dense.New(len(f.S), len(products)) // c
	for _, a := range f.Families {
		for _, at := range a.patterns {
			through, err := f.through(products, a, at)
			if err != nil {
				return nil, nil, nil, err
			}
			for _, k := range at.snapshots {
				own := make([]float64, len(products))
				if err := f.addMatrixScores(own, information, pulled, products, through, at, k); err != nil {
					return nil, nil, nil, err
				}
				floats.Add(slope, own)
				for j, v := range own {
					scatter[j] += v * v
				}
			}
		}
	}
	if p := float64(f.y.RawMatrix().Cols); p > 1 {
		for j, v := range slope {
			scatter[j] = (scatter[j] - v*v/p) * p / (p - 1)
		}
	}
	dense.SolveLower(f.curved, pulled, runtime.GOMAXPROCS(0))
	for mu := range pulled.Rows {
		for j, v := range pulled.Row(mu) {
			for l, w := range pulled.Row(mu)[:j+1] {
				information.SetSym(j, l, information.At(j, l)-v*w)
			}
		}
	}
	return slope, scatter, information, nil
}

// through are D_j Γ Wᵀ of a pattern's snapshots, sensors by rows of the pattern.
func (f *Fit) through(products []func(u, x []float64) error, a *Family, at *pattern) ([]dense.Matrix, error) {
	out, weighted := make([]dense.Matrix, len(products)), make([]float64, 0, len(at.rows)*f.w.Columns)
	w := f.allColumns(at)
	for i := range at.rows {
		for entry, gamma := range a.Gamma {
			weighted = append(weighted, gamma*w.At(i, entry))
		}
	}
	for j, product := range products {
		out[j] = dense.New(f.w.Rows, len(at.rows))
		if err := product(out[j].Data, f.withoutSum(weighted)); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// addMatrixScores adds what a snapshot says: pulled is c.
func (f *Fit) addMatrixScores(slope []float64, information *mat.SymDense, pulled dense.Matrix, products []func(u, x []float64) error, through []dense.Matrix, at *pattern, k int) error {
	rows, signal := len(at.rows), make([]float64, f.w.Columns)
	mat.Col(signal, k, f.X)
	left, done := f.leftOf(at, k)
	defer done()
	along, weighted := make([][]float64, len(products)), make([][]float64, len(products))
	for j, product := range products {
		moved := make([]float64, f.w.Rows)
		if err := product(moved, f.withoutSum(signal)); err != nil {
			return err
		}
		along[j], weighted[j] = make([]float64, rows), make([]float64, rows)
		for i, mu := range at.rows {
			along[j][i] = moved[mu]
			slope[j] += f.G.At(mu, k)*moved[mu] - floats.Dot(left.Row(i), through[j].Row(mu))
		}
		for i, mu := range at.rows {
			weighted[j][i] = floats.Dot(at.inverse.Row(i), along[j])
			pulled.Row(at.sensors[i])[j] += f.y.At(mu, k) * weighted[j][i]
		}
		for l := range j + 1 {
			information.SetSym(j, l, information.At(j, l)+floats.Dot(along[j], weighted[l]))
		}
	}
	return nil
}

// leftOf is R of a snapshot, by rows of its pattern.
func (f *Fit) leftOf(at *pattern, k int) (left dense.Matrix, done func()) {
	rows := len(at.rows)
	moved, movedDone := dense.Scratch(len(f.S), rows) // L⁻¹F, with H = LLᵀ: R is A⁻¹ less its square
	defer movedDone()
	left, done = dense.Scratch(rows, rows)
	f.follow(moved, at, k)
	dense.SolveLower(f.curved, moved, runtime.GOMAXPROCS(0))
	copy(left.Data, at.inverse.Data)
	dense.AddProduct(left, -1, moved.T(), moved, dense.All, runtime.GOMAXPROCS(0))
	return left, done
}

// withoutSum are rows of entries, in each of which the last one, where it is that of the sum of all columns, is added to all others.
func (f *Fit) withoutSum(x []float64) []float64 {
	if !f.summed {
		return x
	}
	n := f.w.Columns
	short := make([]float64, 0, len(x)/n*(n-1))
	for ; len(x) > 0; x = x[n:] {
		for _, v := range x[:n-1] {
			short = append(short, v+x[n-1])
		}
	}
	return short
}
