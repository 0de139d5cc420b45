package operator

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"

	"github.com/calamp/calamp/internal/dense"
	"github.com/calamp/calamp/internal/tridiagonal"
)

// Gram is what vector AMP needs of W: with W̃ the matrix with its rows scaled to norm 1,
//
//	W̃W̃ᵀ = Q T Qᵀ,   Q orthogonal, T tridiagonal.
//
// Eigenvectors are not needed: equations with γ + τT are solved in a time
// proportional to M, and traces are sums over eigenvalues.
type Gram struct {
	Norms         []float64 // M, of the rows of W; 0 for a row of zeros, which W̃ has, too
	Diagonal, Off []float64 // M and M-1 entries of T
	Eigenvalues   []float64 // M, of T, ascending; none below 0
	Rotation      *Dense    // Q; nil for the identity
}

// errNoRows is the cause of the error of a Gram matrix whose products leave double precision.
var errNoRows = errors.New("its rows differ too much in size for double precision")

// GramOf decomposes w, once: an operator that remembers it, as [Dense] does, gives it to
// all runs. It takes of the order of M²(N+M) multiplications and M² numbers of memory. It
// returns ctx's error, or that of a W which cannot be read or has no squares within
// double precision. The result does not depend on threads.
func GramOf(ctx context.Context, w Operator, threads int) (*Gram, error) {
	if kappa, ok := Orthogonal(w); ok {
		m, _ := w.Dims()
		return identityGram(m, math.Sqrt(kappa)), nil
	}
	if matrices, _ := Separate(w); matrices != nil {
		return nil, fmt.Errorf("W is a %v: every one of them has a decomposition of its own", Describe(w))
	}
	if r, ok := w.(remembering); ok {
		return r.remembered().gram(func() (*Gram, error) { return gramOf(ctx, w, threads) })
	}
	return gramOf(ctx, w, threads)
}

// remembering is an operator whose entries are in memory, and stay as they are.
type remembering interface{ remembered() *memory }

// memory keeps what was made of such an operator: its Gram matrix, its entries in single precision and in bytes, the norms of its rows, its structure, and the coherence of its columns.
type memory struct {
	mutex sync.Mutex
	kept  *Gram
	made  func(*Gram) // nil where no one is notified

	rounding sync.Once
	single   *Dense
	lost     float64

	coarsening sync.Once
	bytes      *inBytes

	squaring  sync.Once
	squares   []float64 // of the rows
	unsquared error

	measuring  sync.Once
	structure  Structure
	unmeasured error

	comparing  sync.Once
	coherence  Coherence
	uncompared error
}

func (m *memory) remembered() *memory { return m }

func (m *memory) gram(make func() (*Gram, error)) (*Gram, error) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	if m.kept != nil {
		return m.kept, nil
	}
	g, err := make()
	if err == nil {
		m.kept = g
		if m.made != nil {
			m.made(g)
		}
	}
	return g, err
}

// Remember has [GramOf] of w return g, or, where that is nil, calls made with the one that it makes.
// It reports whether w remembers one: orthogonal rows have none, and a W in its file is not decomposed.
func Remember(w Operator, g *Gram, made func(*Gram)) bool {
	r, ok := w.(remembering)
	_, orthogonal := Orthogonal(w)
	if !ok || orthogonal {
		return false
	}
	m := r.remembered()
	m.mutex.Lock()
	defer m.mutex.Unlock()
	m.kept, m.made = g, made
	return true
}

func gramOf(ctx context.Context, w Operator, threads int) (*Gram, error) {
	k, norms, err := gramProducts(ctx, w, threads)
	if err != nil {
		return nil, err
	}
	return Decompose(ctx, k, norms, threads)
}

// Products are W̃W̃ᵀ, M×M.
func (g *Gram) Products(threads int) dense.Matrix {
	m := len(g.Norms)
	q, turned, k := dense.New(m, m), dense.New(m, m), dense.New(m, m)
	for mu := range m {
		row, to := q.Row(mu), turned.Row(mu) // Q, and QT
		_ = g.Rotation.RowInto(row, mu)      // in memory: it does not fail
		for i, d := range g.Diagonal {
			to[i] = row[i] * d
			if i > 0 {
				to[i] += row[i-1] * g.Off[i-1]
			}
			if i+1 < m {
				to[i] += row[i+1] * g.Off[i]
			}
		}
	}
	dense.AddProduct(k, 1, turned, q.T(), dense.Lower, threads)
	dense.Mirror(k)
	return k
}

// Decompose decomposes k, the products of rows of norm 1, which it overwrites; norms are those that the rows had.
func Decompose(ctx context.Context, k, norms []float64, threads int) (*Gram, error) {
	m := len(norms)
	t, err := tridiagonal.Reduce(ctx, m, k, threads)
	if err != nil {
		return nil, err
	}
	g := &Gram{Norms: norms, Diagonal: t.Diagonal, Off: t.Off, Eigenvalues: t.Eigenvalues()}
	for i, v := range g.Eigenvalues {
		g.Eigenvalues[i] = max(0, v)
	}
	if g.Rotation, err = NewDense(m, m, t.Rotation); err != nil {
		return nil, fmt.Errorf("the decomposition of W: %w", err)
	}
	return g, nil
}

// identityGram is that of orthogonal rows of one norm.
func identityGram(m int, norm float64) *Gram {
	g := &Gram{Off: make([]float64, max(0, m-1))}
	for _, v := range []*[]float64{&g.Norms, &g.Diagonal, &g.Eigenvalues} {
		*v = make([]float64, m)
	}
	for mu := range m {
		g.Norms[mu], g.Diagonal[mu], g.Eigenvalues[mu] = norm, 1, 1
	}
	return g
}

// gramRows is how many rows of W are multiplied with all others in one pass.
const gramRows = 32

// gramProducts returns W̃W̃ᵀ, M×M, and the norms of the rows of W. Passes take some rows as
// signals, which any operator can multiply with: its rows are its products with unit vectors.
func gramProducts(ctx context.Context, w Operator, threads int) (k, norms []float64, err error) {
	m, n := w.Dims()
	k, norms = make([]float64, m*m), make([]float64, m)
	// Sizes are scaled away before anything is squared.
	scale := 1 / math.Sqrt(w.MeanSquare())
	for from := 0; from < m; from += gramRows {
		if err := ctx.Err(); err != nil {
			return nil, nil, err
		}
		count := min(gramRows, m-from)
		halves, err := NewLinear(w, count, threads)
		if err != nil {
			return nil, nil, err
		}
		rows, z := make([]float64, count*n), make([]float64, m*count)
		if err := rowsOf(w, halves, rows, func(j int) int { return from + j }); err != nil {
			return nil, nil, err
		}
		for i := range rows {
			rows[i] *= scale
		}
		if err := halves.Forward(z, rows); err != nil {
			return nil, nil, err
		}
		for mu := range m {
			for j := range count {
				k[mu*m+from+j] = z[mu*count+j] * scale
			}
		}
	}
	for mu := range m {
		square := k[mu*m+mu]
		if !(square >= 0) || math.IsInf(square, 1) {
			return nil, nil, fmt.Errorf("W: row %d: %w", mu, errNoRows)
		}
		norms[mu] = math.Sqrt(square)
	}
	for mu, a := range norms {
		for nu, b := range norms[:mu] {
			v := 0.0
			if a > 0 && b > 0 {
				v = 0.5 * (k[mu*m+nu]/a/b + k[nu*m+mu]/a/b)
			}
			k[mu*m+nu], k[nu*m+mu] = v, v
		}
		k[mu*m+mu] = 0
		if a > 0 {
			k[mu*m+mu] = 1
		}
	}
	for mu := range norms {
		norms[mu] /= scale
	}
	return k, norms, nil
}

// rowsOf fills rows with those rows of w that which names. An operator whose entries
// cannot be seen is multiplied with unit vectors by halves, as many as there are rows.
func rowsOf(w Operator, halves Linear, rows []float64, which func(j int) int) error {
	m, n := w.Dims()
	count := len(rows) / n
	if seen, ok := w.(Matrix); ok {
		for j := range count {
			if err := seen.RowInto(rows[j*n:(j+1)*n], which(j)); err != nil {
				return err
			}
		}
		return nil
	}
	units := make([]float64, m*count)
	for j := range count {
		units[which(j)*count+j] = 1
	}
	return halves.Backward(rows, units)
}
