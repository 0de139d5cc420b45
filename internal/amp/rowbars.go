package amp

import (
	"math"
	"slices"

	"github.com/calamp/calamp/internal/dense"
	"github.com/calamp/calamp/internal/joint"
	"github.com/calamp/calamp/prior"
)

// rowBars mends the error bars of joint rows, as [sharedBars] does those of sensors of several rows. Where signals hardly differ an error of the gains and one of what
// all signals have in common explain the same readings, and the iteration takes the two for independent. With R = U diag(r) Uᵀ, signals and readings that are turned by U are
// independent given the gains, x_ik ~ N(0, t_i r_k) with the mean size t_i of a row, and minus the second derivatives of the joint density of s and x at the answer are
//
//	ss: P/s_µ² + Σ_k y_µk²/Δ_µ + 1/v    sx: -y_µk W_µi/Δ_µ    xx: WᵀΔ⁻¹W + (t r_k)⁻¹.
//
// The last depends on r_k alone, and signals that differ by chance have two of these: moves and alone are for each r, and moves for a reading of 1.
type rowBars struct {
	*jointBars
	chosen   []int          // entries that are followed
	readings []float64      // M×P, y/√Δ, turned
	vectors  []float64      // P×P, U
	squares  []dense.Matrix // for each r, M×M: sums of products of the turned readings of two sensors
	starts   []int          // the first direction of each r, and P
}

// sameVariance is the factor within which variances are one, their mean.
const sameVariance = 2

// Report implements [Part].
func (e *jointRows) Report(s *Solver) {
	e.widenBars(s)
	if _, positive := e.slab.(prior.NonNegative); positive && !e.rows.Separable() {
		e.cut()
	}
}

func (e *jointRows) widenBars(s *Solver) {
	rows := e.rows.Prior.Full()
	if e.columns > 1 || e.calibration == nil || !correlates(rows.Cov, e.P) {
		return
	}
	r, size, ok := joint.NewShape(rows.Cov, e.P, 1, 0)
	if !ok {
		return
	}
	b := &rowBars{jointBars: newJointBars(s), vectors: r.Vectors}
	b.chosen = b.largest(e.rows.Weight, leastFollowed)
	b.turn(e.partial)
	w := dense.New(e.M, len(b.chosen))
	b.followed[0], b.moves, b.alone = b.chosen, nil, nil
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
func correlates(cov []float64, p int) bool {
	for k := range p {
		if slices.ContainsFunc(cov[k*p:k*p+k], func(v float64) bool { return v != 0 }) {
			return true
		}
	}
	return false
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
	gamma := make([]float64, len(b.chosen))
	for at, i := range b.chosen {
		gamma[at] = weights[i] * r
	}
	scaled, cross := dense.New(b.M, len(gamma)), dense.New(len(gamma), b.M) // W √(Γ/Δ), and its transpose
	for mu := range b.M {
		noise := b.Noise(mu * b.P)
		if !(noise > 0) || b.OutOfOrder(mu) {
			continue
		}
		for at, v := range gamma {
			scaled.Row(mu)[at] = w.Row(mu)[at] * math.Sqrt(v/noise)
			cross.Row(at)[mu] = scaled.Row(mu)[at]
		}
	}
	moves, alone, ok := entriesOut(scaled, cross, gamma, b.Threads)
	if !ok {
		return false
	}
	open, squares := dense.New(b.M, b.M), dense.New(b.M, b.M)
	dense.AddProduct(open, 1, cross.T(), cross, dense.Lower, b.Threads)
	own := dense.Of(b.readings, b.M, b.P).Part(0, b.M, from, to)
	dense.AddProduct(squares, 1, own, own.T(), dense.Lower, b.Threads)
	dense.Mirror(squares)
	for mu := range b.M {
		for nu := range mu + 1 {
			b.jointBars.gains.Row(mu)[nu] -= open.Row(mu)[nu] * squares.Row(mu)[nu]
		}
	}
	b.squares, b.moves, b.alone, b.starts = append(b.squares, squares), append(b.moves, moves), append(b.alone, alone), append(b.starts, from)
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
				variances[at] += square * (b.alone[g][at] + follow[g].Data[at])
			}
		}
		for at, i := range b.chosen {
			c := &b.C[k*b.N+i]
			*c = max(*c, variances[at])
		}
	}
}
