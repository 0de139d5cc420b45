package operator

import (
	"fmt"

	"gonum.org/v1/gonum/floats"

	"github.com/calamp/calamp/internal/kernel"
	"github.com/calamp/calamp/internal/parallel"
)

// Moved is a table whose rows move with numbers of their own: row µ is w_µ + Σ_j θ_µj d_µj. Sweeps over it see it as it is at present.
type Moved struct {
	*Dense
	base  []float64   // M×N, W
	along [][]float64 // J times M×N, D_j
}

// NewMoved is W with derivatives D_j, all M×N row-major tables, at θ = 0. It keeps them.
func NewMoved(m, n int, w []float64, along ...[]float64) (*Moved, error) {
	table, err := NewDense(m, n, w)
	if err != nil {
		return nil, err
	}
	for j, d := range along {
		if len(d) != m*n {
			return nil, fmt.Errorf("derivative %d has %d entries, expected %d×%d, as W", j, len(d), m, n)
		}
		if !(floats.Norm(d, 2) > 0) {
			return nil, fmt.Errorf("derivative %d: W does not change with it", j)
		}
	}
	return &Moved{Dense: table, base: w, along: along}, nil
}

// Parameters is J.
func (w *Moved) Parameters() int { return len(w.along) }

// Part is by how much of its own size W changes for θ_j = 1, as root mean squares over all entries.
func (w *Moved) Part(j int) float64 { return floats.Norm(w.along[j], 2) / floats.Norm(w.base, 2) }

// Move takes the rows to θ (M×J). No sweep may be under way.
func (w *Moved) Move(theta []float64, threads int) {
	js := len(w.along)
	parallel.Run(w.m, threads, func(mu int) {
		row := make([]float64, w.n)
		copy(row, w.base[mu*w.n:])
		for j, d := range w.along {
			floats.AddScaled(row, theta[mu*js+j], d[mu*w.n:(mu+1)*w.n])
		}
		kernel.PackRow(w.f64.Shape, w.f64.Data, mu, row)
	})
}

// Along sets z (M×J×P) to D_j x, and cross to (D_j∘W)c with W as it is at present: what z and Wx have in common where entries of x, of p signals
// one after the other, have the variances c.
func (w *Moved) Along(z, cross, x, c []float64, p, threads int) {
	js, n := len(w.along), w.n
	parallel.Run(w.m, threads, func(mu int) {
		row, both := make([]float64, n), make([]float64, n)
		w.f64.RowInto(row, mu)
		for j, d := range w.along {
			d = d[mu*n : (mu+1)*n]
			floats.MulTo(both, row, d)
			for k := range p {
				at := (mu*js+j)*p + k
				z[at] = floats.Dot(d, x[k*n:(k+1)*n])
				cross[at] = floats.Dot(both, c[k*n:(k+1)*n])
			}
		}
	})
}

// AddBack adds Σ_j D_jᵀ u_j, with u M×J×P, to dst, which has p signals one after the other.
func (w *Moved) AddBack(dst, u []float64, p, threads int) {
	js, n := len(w.along), w.n
	parallel.Run(p, threads, func(k int) {
		for j, d := range w.along {
			for mu := range w.m {
				floats.AddScaled(dst[k*n:(k+1)*n], u[(mu*js+j)*p+k], d[mu*n:(mu+1)*n])
			}
		}
	})
}
