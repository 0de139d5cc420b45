package operator

import (
	"cmp"
	"context"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/calamp/calamp/internal/tridiagonal"
)

// Density says how the eigenvalues of A = W̃W̃ᵀ, or of W̃ᵀW̃ where that is smaller, are
// distributed: tr f(A) is about Σ Weights f(Eigenvalues).
type Density struct {
	Eigenvalues, Weights []float64
	Dim                  int  // of A, the sum of the weights
	Columns              bool // A is W̃ᵀW̃
}

// DensityOf estimates it by products with W alone: stochastic Lanczos quadrature (S. Ubaru, J. Chen,
// Y. Saad, "Fast estimation of tr(f(A)) via stochastic Lanczos quadrature", 2017), from so many random
// signs, or, where A is no larger than that, from all unit vectors. W̃ has the rows of w times scale (M);
// those with a scale of 0 are left out. Vectors are not orthogonalised again: that gives some eigenvalues
// twice, which then share their weight (A. Greenbaum, Z. Strakoš, 1992). A trace is right to √(2/(Dim probes))
// times the variation of f.
func DensityOf(ctx context.Context, w Operator, scale []float64, probes, steps, threads int) (*Density, error) {
	_, n := w.Dims()
	var rows []int
	for mu, s := range scale {
		if s != 0 {
			rows = append(rows, mu)
		}
	}
	d := &Density{Dim: min(len(rows), n), Columns: len(rows) > n}
	l := &lanczos{w: w, scale: scale, probes: min(probes, d.Dim), columns: d.Columns}
	if l.probes == 0 {
		return d, nil
	}
	if err := l.start(rows, d.Dim, threads); err != nil {
		return nil, err
	}
	for step, more := 0, true; step < steps && more; step++ {
		err := ctx.Err()
		if err == nil {
			more, err = l.step()
		}
		if err != nil {
			return nil, err
		}
	}
	share := float64(d.Dim) / float64(l.probes)
	for k := range l.probes {
		diagonal, off := l.diagonal[k], l.off[k]
		nodes, weights := tridiagonal.Quadrature(diagonal, off[:len(off)-1])
		for i, v := range nodes {
			d.Eigenvalues = append(d.Eigenvalues, max(0, v))
			d.Weights = append(d.Weights, share*weights[i])
		}
	}
	return d, nil
}

// lanczos are the steps of all probes side by side.
type lanczos struct {
	w        Operator
	scale    []float64
	probes   int
	columns  bool
	products Linear

	now, before, next []float64 // of unit length, or zero where a probe has seen all that there is
	side              []float64 // the other side of W
	diagonal, off     [][]float64
}

// exhausted is the part of an eigenvalue below which the rest of a vector is rounding.
const exhausted = 1e-13

func (l *lanczos) start(rows []int, dim, threads int) (err error) {
	if l.products, err = NewLinear(l.w, l.probes, threads); err != nil {
		return err
	}
	m, n := l.w.Dims()
	size, other := m*l.probes, n*l.probes
	if l.columns {
		size, other = other, size
		rows = nil
		for i := range n {
			rows = append(rows, i)
		}
	}
	for _, v := range []*[]float64{&l.now, &l.before, &l.next} {
		*v = make([]float64, size)
	}
	l.side, l.diagonal, l.off = make([]float64, other), make([][]float64, l.probes), make([][]float64, l.probes)
	rng := rand.New(rand.NewPCG(8, 60))
	for k := range l.probes {
		if l.probes == dim {
			l.now[l.at(k, rows[k])] = 1
			continue
		}
		for _, i := range rows {
			l.now[l.at(k, i)] = float64(1-2*rng.IntN(2)) / math.Sqrt(float64(dim))
		}
	}
	return nil
}

// at is the place of entry i of probe k.
func (l *lanczos) at(k, i int) int {
	if l.columns {
		return k*(len(l.now)/l.probes) + i
	}
	return i*l.probes + k
}

// apply sets next to A times now.
func (l *lanczos) apply() error {
	if l.columns {
		if err := l.products.Forward(l.side, l.now); err != nil {
			return err
		}
		for j := range l.side {
			l.side[j] *= l.scale[j/l.probes] * l.scale[j/l.probes]
		}
		return l.products.Backward(l.next, l.side)
	}
	for j, v := range l.now {
		l.next[j] = v * l.scale[j/l.probes]
	}
	if err := l.products.Backward(l.side, l.next); err != nil {
		return err
	}
	if err := l.products.Forward(l.next, l.side); err != nil {
		return err
	}
	for j := range l.next {
		l.next[j] *= l.scale[j/l.probes]
	}
	return nil
}

// step says whether there is more to see.
func (l *lanczos) step() (more bool, err error) {
	if err := l.apply(); err != nil {
		return false, err
	}
	length := len(l.now) / l.probes
	for k := range l.probes {
		last := 0.0
		if count := len(l.off[k]); count > 0 {
			last = l.off[k][count-1]
		}
		along := 0.0
		for i := range length {
			along += l.now[l.at(k, i)] * l.next[l.at(k, i)]
		}
		rest := 0.0
		for i := range length {
			at := l.at(k, i)
			l.next[at] -= along*l.now[at] + last*l.before[at]
			rest += l.next[at] * l.next[at]
		}
		rest = math.Sqrt(rest)
		l.diagonal[k] = append(l.diagonal[k], along)
		if rest <= exhausted*slices.Max(l.diagonal[k]) {
			rest = 0
		}
		l.off[k] = append(l.off[k], rest)
		more = more || rest > 0
		for i := range length {
			at := l.at(k, i)
			if rest > 0 {
				l.next[at] /= rest
			} else {
				l.next[at] = 0
			}
		}
	}
	l.before, l.now, l.next = l.now, l.next, l.before
	return more, nil
}

// Singular are Dim singular values of W̃, ascending, as far apart as the density has them.
func (d *Density) Singular() []float64 {
	order := make([]int, len(d.Weights))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(d.Eigenvalues[a], d.Eigenvalues[b]) })
	values, passed := make([]float64, 0, d.Dim), 0.0
	for _, i := range order {
		for passed += d.Weights[i]; len(values) < d.Dim && passed > float64(len(values))+0.5; {
			values = append(values, math.Sqrt(d.Eigenvalues[i]))
		}
	}
	return values
}
