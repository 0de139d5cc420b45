package amp

import (
	"math"
	"slices"

	"github.com/calamp/calamp/internal/dense"
	"github.com/calamp/calamp/internal/joint"
)

// rowBars mends the error bars of joint rows, as [sharedBars] does those of sensors of several rows. Where signals hardly differ an error of the gains and one of what
// all signals have in common explain the same readings, and the iteration takes the two for independent. With R = U diag(r) Uᵀ, signals and readings that are turned by U are
// independent given the gains, x_ik ~ N(0, t_i r_k) with the mean size t_i of a row, and minus the second derivatives of the joint density of s and x at the answer are
//
//	ss: P/s_µ² + Σ_k y_µk²/Δ_µ + 1/v    sx: -y_µk W_µi/Δ_µ    xx: WᵀΔ⁻¹W + (t r_k)⁻¹.
//
// The last depends on r_k alone, and signals that differ by chance have two of these.
type rowBars struct {
	*jointBars
	chosen   []int          // entries that are followed
	readings []float64      // M×P, y/√Δ, turned
	vectors  []float64      // P×P, U
	moves    []dense.Matrix // for each r, entries × M: what a change of a gain makes of an entry, for a reading of 1
	alone    []dense.Matrix // for each r, entries × 1: the variance of an entry with the gains known
	squares  []dense.Matrix // for each r, M×M: sums of products of the turned readings of two sensors
	starts   []int          // the first direction of each r, and P
}

// sameVariance is the factor within which variances are one, their mean.
const sameVariance = 2

// Report implements [Part].
func (e *jointRows) Report(s *Solver) {
	if e.columns > 1 || e.calibration == nil || !e.correlates() {
		return
	}
	r, size, ok := joint.NewShape(e.rows.Prior.Cov, e.P, 1, 0)
	if !ok {
		return
	}
	b := &rowBars{jointBars: newJointBars(s), vectors: r.Vectors}
	b.choose(e.rows.Weight)
	b.turn(e.partial)
	w := dense.New(e.M, len(b.chosen))
	b.followed[0] = b.chosen
	if !b.columns(w, 0) {
		return
	}
	for from := 0; from < e.P; {
		to, mean := from, 0.0
		for ; to < e.P && r.Values[to] <= sameVariance*r.Values[from]; to++ {
			mean += (r.Values[to] - mean) / float64(to-from+1)
		}
		if !b.add(w, e.rows.Weight, mean*size, from, to) {
			return
		}
		from = to
	}
	b.starts = append(b.starts, e.P)
	if b.invert() {
		b.widenGains()
		b.widenEntries()
	}
}

// correlates reports whether signals have more in common than their support. If not, their errors are as independent as the iteration takes them for.
func (e *jointRows) correlates() bool {
	for k := range e.P {
		if slices.ContainsFunc(e.rows.Prior.Cov[k*e.P:k*e.P+k], func(v float64) bool { return v != 0 }) {
			return true
		}
	}
	return false
}

// choose finds the entries that are followed: the largest ones.
func (b *rowBars) choose(weights []float64) {
	for i, t := range weights {
		if t > leastFollowed {
			b.chosen = append(b.chosen, i)
		}
	}
	slices.SortStableFunc(b.chosen, func(i, k int) int {
		switch {
		case weights[i] > weights[k]:
			return -1
		case weights[i] < weights[k]:
			return 1
		}
		return 0
	})
	b.chosen = b.chosen[:min(b.entries, len(b.chosen))]
	slices.Sort(b.chosen)
}

// leastFollowed is the mean size of a row below which it is zero.
const leastFollowed = 1e-10

// turn sets the readings. Those of sensors that cannot be turned say nothing here, and their gains are known as the iteration has them.
func (b *rowBars) turn(partial [][]float64) {
	y := make([]float64, b.M*b.P)
	for mu := range b.M {
		if partial[mu] != nil {
			b.jointBars.gains.Data[mu*b.M+mu] = 1 / b.SVar[mu]
			continue
		}
		for j := mu * b.P; j < (mu+1)*b.P; j++ {
			if v := b.usable(j); v != 0 {
				y[j] = v / math.Sqrt(b.Noise(j))
			}
		}
	}
	b.readings = make([]float64, b.M*b.P)
	dense.Product(dense.Of(b.readings, b.M, b.P), dense.Of(y, b.M, b.P), dense.Of(b.vectors, b.P, b.P))
}

// add takes what directions of variance r leave open from the precision of the gains.
func (b *rowBars) add(w dense.Matrix, weights []float64, r float64, from, to int) bool {
	n := len(b.chosen)
	scaled, l := dense.New(b.M, n), dense.New(n, n) // W √(Γ/Δ), and I + what it is squared
	for mu := range b.M {
		noise := b.Noise(mu * b.P)
		if !(noise > 0) || b.OutOfOrder(mu) {
			continue
		}
		for at, i := range b.chosen {
			scaled.Row(mu)[at] = w.Row(mu)[at] * math.Sqrt(weights[i]*r/noise)
		}
	}
	for i := range n {
		l.Data[i*n+i] = 1
	}
	dense.AddProduct(l, 1, scaled.T(), scaled, dense.Lower, b.Threads)
	if !dense.Factor(l, b.Threads) {
		return false
	}
	follow := dense.New(n, b.M)
	for at := range n {
		for mu := range b.M {
			follow.Row(at)[mu] = scaled.Row(mu)[at]
		}
	}
	dense.SolveLower(l, follow, b.Threads)
	open, squares := dense.New(b.M, b.M), dense.New(b.M, b.M)
	dense.AddProduct(open, 1, follow.T(), follow, dense.Lower, b.Threads)
	own := dense.Of(b.readings, b.M, b.P).Part(0, b.M, from, to)
	dense.AddProduct(squares, 1, own, own.T(), dense.Lower, b.Threads)
	dense.Mirror(squares)
	b.squares = append(b.squares, squares)
	for mu := range b.M {
		for nu := range mu + 1 {
			b.jointBars.gains.Row(mu)[nu] -= open.Row(mu)[nu] * squares.Row(mu)[nu]
		}
	}
	dense.InvertLower(l, b.Threads)
	moves, alone := dense.New(n, b.M), dense.New(n, 1)
	for row := range n {
		clear(l.Row(row)[row+1:])
		for i, v := range l.Row(row)[:row+1] {
			alone.Data[i] += weights[b.chosen[i]] * r * v * v
		}
	}
	dense.AddProduct(moves, 1, l.T(), follow, dense.All, b.Threads)
	for at, i := range b.chosen {
		for mu := range b.M {
			moves.Row(at)[mu] *= math.Sqrt(weights[i] * r)
		}
	}
	b.moves, b.alone, b.starts = append(b.moves, moves), append(b.alone, alone), append(b.starts, from)
	return true
}

// widenEntries makes variances of entries no smaller than those of the joint density, in which what errors of gains make of an entry is taken on average over the directions of one r.
func (b *rowBars) widenEntries() {
	n := len(b.chosen)
	follow := make([]dense.Matrix, len(b.moves)) // variances of entries that follow the gains, for a direction of r
	for g, moves := range b.moves {
		errors := dense.New(n, b.M)
		for mu := range b.M {
			for nu, v := range b.squares[g].Row(mu) {
				b.squares[g].Row(mu)[nu] = v * b.jointBars.gains.At(mu, nu)
			}
		}
		dense.AddProduct(errors, 1, moves, b.squares[g], dense.All, b.Threads)
		follow[g] = dense.New(n, 1)
		for at := range n {
			for mu, v := range errors.Row(at) {
				follow[g].Data[at] += v * moves.Row(at)[mu] / float64(b.starts[g+1]-b.starts[g])
			}
		}
	}
	for k := range b.P {
		variances := make([]float64, n)
		for g := range b.moves {
			square := 0.0
			for l := b.starts[g]; l < b.starts[g+1]; l++ {
				square += b.vectors[k*b.P+l] * b.vectors[k*b.P+l]
			}
			for at := range n {
				variances[at] += square * (b.alone[g].Data[at] + follow[g].Data[at])
			}
		}
		for at, i := range b.chosen {
			c := &b.C[k*b.N+i]
			*c = max(*c, variances[at])
		}
	}
}
