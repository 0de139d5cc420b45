package amp

import (
	"context"
	"slices"

	"github.com/calamp/calamp/internal/dense"
	"github.com/calamp/calamp/operator"
)

// leftOut are rows of W that count in no signal, as those of sensors that are broken. By Woodbury's identity each of them is an equation more for every signal in every iteration, since
// γ and τ are of the signal: that took half of the time of a radar, of whose pulses most are in doubt for ten iterations. A decomposition of the other rows serves all
// signals, for as long as these are the rows. It is made once the equations of the same rows have taken as long as it does: so both together take no more than twice the lesser of them.
type leftOut struct {
	ctx   context.Context // of the run: a decomposition takes a while
	rows  []int           // those of the latest solution
	spent float64         // multiplications of their equations
	made  *otherRows      // nil while the equations are solved
	all   dense.Matrix    // W̃W̃ᵀ, made when it is first needed
}

// decomposing is how many multiplications of a product take the time of a decomposition of n rows, over n³: BenchmarkReduce
// (0.13 s for 1000 rows) beside BenchmarkProduct of internal/dense (20 in a nanosecond).
const decomposing = 2.7

// forget forgets the rows: what is solved next does not depend on what was before.
func (o *leftOut) forget() { o.rows, o.spent, o.made = nil, 0, nil }

// others is the linear half of the rows that are left; nil where the equations of those left out are to be solved.
func (o *leftOut) others(l *decomposed) (*otherRows, error) {
	rows := l.leftOutRows()
	if !slices.Equal(rows, o.rows) {
		o.forget()
		o.rows = rows
	}
	absent, left := float64(len(rows)), float64(l.m-len(rows))
	if o.made != nil || absent == 0 || left == 0 {
		return o.made, nil
	}
	o.spent += absent * absent * float64(l.m) * float64(l.p)
	if o.spent < decomposing*left*left*left {
		return nil, nil
	}
	if o.all.Rows == 0 {
		o.all = l.gram.Products(l.threads)
	}
	var err error
	o.made, err = newOtherRows(o.ctx, l, o.all, rows)
	return o.made, err
}

// leftOutRows are the rows whose readings count in no signal.
func (l *decomposed) leftOutRows() (rows []int) {
	for mu := range l.m {
		if !slices.ContainsFunc(l.weight[mu*l.p:(mu+1)*l.p], func(w float64) bool { return w > counts }) {
			rows = append(rows, mu)
		}
	}
	return rows
}

// otherRows is the linear half of some rows of a W, which sets that of all: of rows that are left out h is 0, and z what the others predict, with
// K' the products of those rows with these,
//
//	z = W̃r + (τ/γ) K'h.
type otherRows struct {
	all          *decomposed
	kept         *decomposed // whose P×N and P are those of all
	rows, absent []int
	products     *someRows
	across       dense.Matrix // K'
}

func newOtherRows(ctx context.Context, all *decomposed, k dense.Matrix, absent []int) (*otherRows, error) {
	o := &otherRows{all: all, absent: absent, rows: othersOf(all.m, absent)}
	count := len(o.rows)
	own := *all.lmmse
	own.m, own.norms = count, make([]float64, count)
	own.makeReadings()
	inside := dense.New(count, count)
	for i, mu := range o.rows {
		own.norms[i] = all.norms[mu]
		pick(inside.Row(i), k.Row(mu), o.rows)
	}
	o.across = dense.New(len(absent), count)
	for i, mu := range absent {
		pick(o.across.Row(i), k.Row(mu), o.rows)
	}
	o.products = &someRows{Linear: all.products, rows: o.rows, p: own.p, all: make([]float64, all.m*own.p)}
	own.products = o.products
	o.kept = newDecomposed(&own)
	var err error
	if o.kept.gram, err = operator.Decompose(ctx, inside.Data, own.norms, own.threads); err != nil {
		return nil, err
	}
	return o, o.kept.rotates()
}

// solve is that of all rows.
func (o *otherRows) solve() error {
	l, kept, p := o.all.lmmse, o.kept.lmmse, o.all.p
	for i, mu := range o.rows {
		copy(kept.q[i*p:(i+1)*p], l.q[mu*p:])
		copy(kept.weight[i*p:(i+1)*p], l.weight[mu*p:])
	}
	if err := o.kept.solve(); err != nil {
		return err
	}
	for i, mu := range o.rows {
		copy(l.z[mu*p:(mu+1)*p], kept.z[i*p:])
		copy(l.h[mu*p:(mu+1)*p], kept.h[i*p:])
	}
	o.predict()
	return nil
}

// predict sets z and h of the rows that are left out. The latest product with W was that with r.
func (o *otherRows) predict() {
	l, p := o.all.lmmse, o.all.p
	predicted, done := dense.Scratch(len(o.absent), p)
	defer done()
	clear(predicted.Data)
	dense.AddProduct(predicted, 1, o.across, dense.Of(o.kept.h, len(o.rows), p), dense.All, l.threads)
	for i, mu := range o.absent {
		for k, more := range predicted.Row(i) {
			j := mu*p + k
			l.z[j], l.h[j] = l.tau[k]/l.gamma[k]*more, 0
			if norm := l.norms[mu]; norm > 0 {
				l.z[j] += o.products.all[j] / norm
			}
		}
	}
}

// someRows are products with some rows of a matrix.
type someRows struct {
	operator.Linear
	rows []int
	p    int
	all  []float64 // M×P, the readings' side of the latest product
}

// Forward implements [operator.Linear].
func (s *someRows) Forward(z, x []float64) error {
	if err := s.Linear.Forward(s.all, x); err != nil {
		return err
	}
	for i, mu := range s.rows {
		copy(z[i*s.p:(i+1)*s.p], s.all[mu*s.p:])
	}
	return nil
}

// Backward implements [operator.Linear].
func (s *someRows) Backward(r, g []float64) error {
	all, done := dense.Scratch(len(s.all)/s.p, s.p)
	defer done()
	clear(all.Data)
	for i, mu := range s.rows {
		copy(all.Row(mu), g[i*s.p:])
	}
	return s.Linear.Backward(r, all.Data)
}

// othersOf are the numbers below m that are not among these, which ascend.
func othersOf(m int, these []int) (others []int) {
	for i := range m {
		if len(these) > 0 && these[0] == i {
			these = these[1:]
			continue
		}
		others = append(others, i)
	}
	return others
}

// pick sets dst to the entries of src at those places.
func pick(dst, src []float64, places []int) {
	for j, place := range places {
		dst[j] = src[place]
	}
}
