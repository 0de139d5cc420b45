package operator

import (
	"fmt"

	"github.com/calamp/calamp/internal/kernel"
)

// Arrange is w with its rows in another order: row i of it is row order[i] of w, and zero where that is -1. Its mean square is
// that of w, so that scalar variances are those of the rows that are there. A table in memory is copied; of another operator
// the products are put in order.
func Arrange(w Operator, order []int) (Operator, error) {
	m, n := w.Dims()
	for i, mu := range order {
		if mu < -1 || mu >= m {
			return nil, fmt.Errorf("row %d of the order is %d, expected a row of W from 0 to %d, or -1", i, mu, m-1)
		}
	}
	if matrices, of := Separate(w); matrices != nil {
		return withEach(matrices, of, func(w Operator) (Operator, error) { return Arrange(w, order) })
	}
	if c, complex := w.(*Complex); complex {
		parts := make([]int, 0, 2*len(order))
		for _, mu := range order {
			parts = append(parts, max(-1, 2*mu), max(-1, 2*mu+1))
		}
		rows, err := Arrange(c.rows, parts)
		return &Complex{m: len(order), n: n, rows: rows}, err
	}
	if c, is := w.(*Choice); is {
		return c.arrange(order)
	}
	if d, several := w.(distributedDense); several {
		return d.arrange(order)
	}
	d, dense := w.(*Dense)
	switch {
	case dense && d.f32 != nil:
		return arranged[float32](d, n, order)
	case dense:
		return arranged[float64](d, n, order)
	}
	return &inOrder{Operator: w, order: order}, nil
}

// arranged is the table with its rows in order.
func arranged[T kernel.Entry](d *Dense, n int, order []int) (Operator, error) {
	table, row := make([]T, len(order)*n), make([]float64, n)
	for i, mu := range order {
		if mu < 0 {
			continue
		}
		if err := d.RowInto(row, mu); err != nil {
			return nil, err
		}
		for j, v := range row {
			table[i*n+j] = T(v)
		}
	}
	var a *Dense
	var err error
	switch table := any(table).(type) {
	case []float32:
		a, err = NewDenseRows(0, len(order), n, table)
	case []float64:
		a, err = NewDenseRows(0, len(order), n, table)
	}
	if err == nil {
		a.meanSquare = d.meanSquare
	}
	return a, err
}

// inOrder puts the products of an operator in order.
type inOrder struct {
	Operator
	order []int
}

// Dims implements [Operator].
func (a *inOrder) Dims() (m, n int) {
	_, n = a.Operator.Dims()
	return len(a.order), n
}

// HasSquares implements [Squares].
func (a *inOrder) HasSquares() bool { return HasSquares(a.Operator) }

// SquaresEqual says so where w does, and no row is missing.
func (a *inOrder) SquaresEqual() bool {
	m, _ := a.Operator.Dims()
	return len(a.order) == m && SquaresEqual(a.Operator)
}

// RowOrthogonal implements [RowOrthogonal] where no row is missing.
func (a *inOrder) RowOrthogonal() (kappa float64, ok bool) {
	if m, _ := a.Operator.Dims(); len(a.order) != m {
		return 0, false
	}
	return Orthogonal(a.Operator)
}

// String says what w is.
func (a *inOrder) String() string { return Describe(a.Operator) }

// NewSweep implements [Operator].
func (a *inOrder) NewSweep(p, q, threads int) (Sweep, error) {
	m, _ := a.Operator.Dims()
	halves, err := newHalves(a.Operator, p, q, threads)
	if err != nil {
		return nil, err
	}
	o := &orderedHalves{
		products: halves, order: a.order, p: p, q: q,
		z: make([]float64, m*p), v: make([]float64, m*q),
	}
	return newWholeSweep(o, len(a.order), p, q, threads), nil
}

// orderedHalves have rows in order on the sensors' side.
type orderedHalves struct {
	products
	order []int
	p, q  int
	z, v  []float64 // of w, then g and d
}

func (o *orderedHalves) forward(z, v, x, c []float64) error {
	if err := o.products.forward(o.z, o.v, x, c); err != nil {
		return err
	}
	o.collect(z, o.z, o.p)
	o.collect(v, o.v, o.q)
	return nil
}

func (o *orderedHalves) backward(r, h, g, d []float64) error {
	o.spread(o.z, g, o.p)
	o.spread(o.v, d, o.q)
	return o.products.backward(r, h, o.z, o.v)
}

func (o *orderedHalves) collect(dst, src []float64, count int) {
	for i, mu := range o.order {
		if mu < 0 {
			clear(dst[i*count : (i+1)*count])
			continue
		}
		copy(dst[i*count:(i+1)*count], src[mu*count:])
	}
}

func (o *orderedHalves) spread(dst, src []float64, count int) {
	clear(dst)
	for i, mu := range o.order {
		if mu >= 0 {
			copy(dst[mu*count:(mu+1)*count], src[i*count:])
		}
	}
}
