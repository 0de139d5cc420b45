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
// distributed: tr f(A) is about Σ Weights f(Eigenvalues). Some weights are negative, unless there is
// a probe for every dimension.
type Density struct {
	Eigenvalues, Weights []float64
	Dim                  int  // of A, the sum of the weights
	Columns              bool // A is W̃ᵀW̃

	levels     []level
	controlled bool // the first is
}

// level is where the nodes of a level of probes are: those of all their steps, and those of the steps
// of the level before, whose weights are negative.
type level struct {
	from, to, end int
	probes        int
}

// Probes are random vectors from which a density is estimated, each followed for so many steps at most.
type Probes struct{ Count, Steps int }

const (
	// Probes of the last level end when traces of (1 + A/θ)⁻¹ with θ down to 1e-4 of the largest eigenvalue, of the first askedProbes, have changed by
	// less than followedWithin in followedSteps, or followedExactly where nothing is estimated.
	followedSteps   = 10
	followedWithin  = 1e-4
	followedExactly = 1e-10
	askedProbes     = 8
)

// DensityOf estimates it by products with W alone: stochastic Lanczos quadrature (S. Ubaru, J. Chen,
// Y. Saad, "Fast estimation of tr(f(A)) via stochastic Lanczos quadrature", 2017), from random
// signs, or, where A is no larger than there are probes in the first level, from all unit vectors, exactly. W̃ has the rows of w times scale (M);
// those with a scale of 0 are left out. squares (M) are the squared norms of the rows of w; nil where they are unknown.
//
// A trace is right to √(2/(Dim probes)) times the variation of f, and most of that variation is in a polynomial of low degree,
// for which few steps are enough. So levels go from many short probes to a few long ones, which estimate what the steps
// of the level before leave out (M. B. Giles, "Multilevel Monte Carlo methods", 2015). The trace of A itself is known
// from squares, and weights are made to have it, as a control variate.
//
// Vectors are not orthogonalised again: that gives some eigenvalues
// twice, which then share their weight (A. Greenbaum, Z. Strakoš, 1992).
func DensityOf(ctx context.Context, w Operator, squares, scale []float64, levels []Probes, threads int) (*Density, error) {
	_, n := w.Dims()
	var rows []int
	trace := 0.0
	for mu, s := range scale {
		if s != 0 {
			rows = append(rows, mu)
			if squares != nil {
				trace += s * s * squares[mu]
			}
		}
	}
	d := &Density{Dim: min(len(rows), n), Columns: len(rows) > n}
	if d.Dim == 0 {
		return d, nil
	}
	last := len(levels) - 1
	exact := levels[0].Count >= d.Dim
	if exact {
		levels, last = []Probes{{d.Dim, levels[last].Steps}}, 0
	}
	before := 0
	for i, probes := range levels {
		within := 0.0
		switch {
		case exact:
			within = followedExactly
		case i == last:
			within = followedWithin
		}
		l := &lanczos{w: w, scale: scale, probes: probes.Count, columns: d.Columns, seed: uint64(i)}
		if err := l.follow(ctx, rows, d.Dim, probes.Steps, threads, within); err != nil {
			return nil, err
		}
		d.add(l, before)
		before = probes.Steps
	}
	if squares != nil && !exact {
		d.control(trace)
	}
	return d, nil
}

// add adds a level that begins where that with so many steps ends.
func (d *Density) add(l *lanczos, before int) {
	at := level{from: len(d.Weights), probes: l.probes}
	d.take(l, len(l.diagonal[0]), 1)
	at.to = len(d.Weights)
	if before > 0 {
		d.take(l, before, -1)
	}
	at.end = len(d.Weights)
	d.levels = append(d.levels, at)
}

// take adds the quadratures of so many steps.
func (d *Density) take(l *lanczos, steps int, sign float64) {
	share := sign * float64(d.Dim) / float64(l.probes)
	for k := range l.probes {
		nodes, weights := l.quadrature(k, steps)
		for i, v := range nodes {
			d.Eigenvalues = append(d.Eigenvalues, max(0, v))
			d.Weights = append(d.Weights, share*weights[i])
		}
	}
}

// Error is the standard error of tr f(A), from how much probes differ; 0 where it is exact.
func (d *Density) Error(f func(eigenvalue float64) float64) float64 {
	if len(d.levels) == 1 && d.levels[0].probes == d.Dim {
		return 0
	}
	variance := 0.0
	for i, l := range d.levels {
		values := d.perProbe(l, f)
		if i == 0 && d.controlled {
			slope := d.slope(f)
			for k, v := range d.perProbe(l, func(v float64) float64 { return v }) {
				values[k] -= slope * v
			}
		}
		variance += varianceOf(values) / float64(l.probes)
	}
	return math.Sqrt(variance)
}

// slope is that of the line through f, by which [Density.control] changes its trace with that of A.
func (d *Density) slope(f func(float64) float64) float64 {
	first := d.levels[0]
	var mean, along, square float64
	for i, v := range d.Eigenvalues[:first.to] {
		mean += d.Weights[i] * v / float64(d.Dim)
	}
	for i, v := range d.Eigenvalues[:first.to] {
		along += d.Weights[i] * (v - mean) * f(v)
		square += d.Weights[i] * (v - mean) * (v - mean)
	}
	return along / square
}

// perProbe is what each probe of a level says of tr f(A).
func (d *Density) perProbe(l level, f func(float64) float64) []float64 {
	values := make([]float64, l.probes)
	for _, nodes := range [][2]int{{l.from, l.to}, {l.to, l.end}} {
		each := max(1, (nodes[1]-nodes[0])/l.probes)
		for i := nodes[0]; i < nodes[1]; i++ {
			values[(i-nodes[0])/each] += float64(l.probes) * d.Weights[i] * f(d.Eigenvalues[i])
		}
	}
	return values
}

func varianceOf(v []float64) float64 {
	mean, square := 0.0, 0.0
	for _, a := range v {
		mean += a / float64(len(v))
	}
	for _, a := range v {
		square += (a - mean) * (a - mean)
	}
	return square / float64(max(1, len(v)-1))
}

// control weighs the nodes of the first level by 1 + c(λ - mean), so that A has its trace. For every f
// that takes away what its estimate has in common with that of the trace.
func (d *Density) control(trace float64) {
	first := d.levels[0]
	nodes, weights := d.Eigenvalues[:first.to], d.Weights[:first.to]
	mean, variance := 0.0, 0.0
	for i, v := range nodes {
		mean += weights[i] * v / float64(d.Dim)
	}
	for i, v := range nodes {
		variance += weights[i] * (v - mean) * (v - mean)
	}
	if !(variance > 0) {
		return
	}
	d.controlled = true
	c := (trace - mean*float64(d.Dim)) / variance
	for i, v := range nodes {
		weights[i] *= 1 + c*(v-mean)
	}
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
	seed              uint64 // of probes
}

// exhausted is the part of an eigenvalue below which the rest of a vector is rounding.
const exhausted = 1e-13

// follow takes so many steps with all probes, or fewer where traces have changed by less than within before.
func (l *lanczos) follow(ctx context.Context, rows []int, dim, steps, threads int, within float64) error {
	if err := l.start(rows, dim, threads); err != nil {
		return err
	}
	var before []float64
	for step, more := 1, true; step <= steps && more; step++ {
		err := ctx.Err()
		if err == nil {
			more, err = l.step()
		}
		if err != nil {
			return err
		}
		if within > 0 && step%followedSteps == 0 {
			now := l.traces()
			if before != nil && near(now, before, within) {
				return nil
			}
			before = now
		}
	}
	return nil
}

// traces are those of (1 + A/θ)⁻¹ for θ from a tenth to 1e-4 of the largest eigenvalue, in parts of the dimension, as the first
// probes have them.
func (l *lanczos) traces() (traces []float64) {
	largest := 0.0
	sums := make([]float64, 4)
	probes := min(l.probes, askedProbes)
	for pass := range 2 {
		for k := range probes {
			nodes, weights := l.quadrature(k, len(l.diagonal[k]))
			for i, v := range nodes {
				if pass == 0 {
					largest = max(largest, v)
					continue
				}
				for a, theta := range []float64{1e-1, 1e-2, 1e-3, 1e-4} {
					sums[a] += weights[i] / (1 + max(0, v)/(theta*largest)) / float64(probes)
				}
			}
		}
	}
	return sums
}

// near reports whether traces differ by little of what they, or one less them, are.
func near(now, before []float64, within float64) bool {
	for i, v := range now {
		if !(math.Abs(v-before[i]) <= within*min(v, 1-v)) {
			return false
		}
	}
	return true
}

// quadrature is that of the first steps of a probe.
func (l *lanczos) quadrature(k, steps int) (nodes, weights []float64) {
	steps = min(steps, len(l.diagonal[k]))
	return tridiagonal.Quadrature(slices.Clone(l.diagonal[k][:steps]), slices.Clone(l.off[k][:steps-1]))
}

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
	rng := rand.New(rand.NewPCG(8, 60+l.seed))
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
	last := d.levels[len(d.levels)-1]
	order := make([]int, last.to-last.from)
	for i := range order {
		order[i] = last.from + i
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
