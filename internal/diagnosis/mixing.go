package diagnosis

import (
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/mat"

	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/operator"
)

// part is a part of W that shares no entry with the rest: its rows, and the entries of the signals that these read.
type part struct{ rows, entries []int }

// partsOf are the parts that w falls into: rows that read a common entry are of one part, and so are all that are linked through others. nil where
// entries cannot be looked at.
func partsOf(w operator.Operator) (parts []part) {
	rows, columns := w.Dims()
	of, first, left := make([]int, columns), make([]int, rows), columns // the entry that stands for an entry's part; an entry of each row; parts of entries
	for i := range of {
		of[i] = i
	}
	find := func(i int) int {
		for of[i] != i {
			of[i] = of[of[i]]
			i = of[i]
		}
		return i
	}
	join := func(mu, i int, v float64) bool {
		switch {
		case v == 0:
		case first[mu] == 0:
			first[mu] = i + 1
		default:
			if to, from := find(first[mu]-1), find(i); to != from {
				of[from] = to
				left--
			}
		}
		return left > 1
	}
	switch w := w.(type) {
	case operator.Streamed: // reading all of it takes as long as an iteration
		return nil
	case *operator.Sparse:
		w.Each(join)
	case operator.Matrix:
		row := make([]float64, columns)
		for mu := 0; mu < rows && left > 1; mu++ { // of most matrices the first row ends it
			if w.RowInto(row, mu) != nil {
				return nil
			}
			for i, v := range row {
				join(mu, i, v)
			}
		}
	default:
		return nil
	}
	if left == 1 {
		return []part{{upTo(rows), upTo(columns)}}
	}
	all := make([]part, columns)
	for i := range of {
		own := &all[find(i)]
		own.entries = append(own.entries, i)
	}
	for mu, i := range first {
		if i > 0 {
			own := &all[find(i-1)]
			own.rows = append(own.rows, mu)
		}
	}
	return slices.DeleteFunc(all, func(p part) bool { return p.rows == nil }) // entries that nothing reads
}

// upTo are the numbers from 0 on, so many.
func upTo(n int) []int {
	list := make([]int, n)
	for i := range list {
		list[i] = i
	}
	return list
}

// Unmixed says in words that each part of w has one row, or one entry: y_µ = x_i W_µi/s_µ, where W and the readings alone
// never tell a gain from a signal. It is empty for other matrices, and where entries cannot be looked at.
func Unmixed(w operator.Operator) string {
	parts := partsOf(w)
	if len(parts) == 0 || slices.ContainsFunc(parts, func(p part) bool { return len(p.rows) > 1 && len(p.entries) > 1 }) {
		return ""
	}
	what := "one sensor alone reads each entry of the signals"
	if slices.ContainsFunc(parts, func(p part) bool { return len(p.rows) > 1 }) {
		what = "each sensor reads one entry of the signals"
	}
	return what + " through this W: gains cannot be separated from signals; use a W that mixes, or known gains"
}

// Part is a part of W that shares no entry of the signals with the rest, whose common scale readings do not tell: log s of its sensors has a mean that differs from
// that of all by a variance ScaleVar beforehand.
type Part struct {
	Sensors, Entries []int // sensors that were heard
	ScaleVar         float64
}

// Parts are those of W, nil where it is one. Of gains that are spread by a relative variance v, m of which are in the part and M in all, ScaleVar is v/m - v/M; where sensors are known by themselves, which places
// their part, it is 0.
func (r *Run) Parts() (parts []Part) {
	if rows, _ := r.Solver.Matrix.Dims(); !r.blind() || rows != r.state.M { // sensors of several rows link parts as well
		return nil
	}
	all, found := 0, partsOf(r.Solver.Matrix)
	if len(found) < 2 {
		return nil
	}
	for _, p := range found {
		heard := slices.DeleteFunc(p.rows, func(mu int) bool { return !r.Solver.Heard(mu) || r.state.OutOfOrder(mu) })
		all += len(heard)
		parts = append(parts, Part{Sensors: heard, Entries: p.entries})
	}
	mean, variance := channel.Typical(r.calibration())
	if known, ok := r.calibration().(channel.Gains); ok && known.Gains().Each != nil {
		variance = 0
	}
	for i, p := range parts {
		if m := len(p.Sensors); m > 0 {
			parts[i].ScaleVar = variance / (mean * mean) * (1/float64(m) - 1/float64(all))
		}
	}
	return parts
}

// warnParts is about a W that falls into parts: gains are compared through entries that sensors have in common.
func (r *Run) warnParts() *Warning {
	parts := r.Parts()
	if parts == nil {
		return nil
	}
	bars := "error bars are as wide as the spread of gains leaves it"
	if r.complex() {
		bars = "error bars take it, and the phase, for one: they hold within a part"
	}
	return &Warning{Code: SeparateParts, Message: fmt.Sprintf("W falls into %d parts that share no entry of the signals: each has a common scale of its own, which the readings do not tell; %s", len(parts), bars)}
}

func (r *Run) unmixed() string {
	if !r.blind() {
		return ""
	}
	return Unmixed(r.Solver.Matrix)
}

const (
	// inVain is the part of what a W that has nothing to do with the readings leaves unexplained, 1 - N/M, from which on the two do
	// not belong together: W and Y of compressive problems in each other's place left 0.56 to 0.69 of it, readings of which half of the power was noise 0.44 to 0.5
	// (TestSwapped). It is more noise than leaves a run anything to recover (onlyNoise).
	inVain = 0.54

	// mostCompared is how many sensors are compared: a subset of them is as good, if it is more than there are entries.
	mostCompared = 600
)

// leastUnexplained is the least part of the power of calibrated readings s∘y that lies outside of the range of W, whatever s and x are: the
// least eigenvalue of
// D^(-½) Q D^(-½), with Q = (1 - W W⁺) ∘ (Y Yᵀ), of which sᵀQs is that power, and D the power of the sensors. It is 0
// where there are no more sensors than entries of a signal, and NaN where it was not computed.
func leastUnexplained(w, y *mat.Dense) float64 {
	m, n := w.Dims()
	if m <= n {
		return 0
	}
	var qr mat.QR
	qr.Factorize(w)
	var q mat.Dense
	qr.QTo(&q)
	basis := q.Slice(0, m, 0, n)
	var onto, both mat.Dense
	onto.Mul(basis, basis.T())
	both.Mul(y, y.T())
	form := mat.NewSymDense(m, nil)
	for i := range m {
		for j := range i + 1 {
			outside := -onto.At(i, j)
			if i == j {
				outside++
			}
			form.SetSym(i, j, outside*both.At(i, j)/math.Sqrt(both.At(i, i)*both.At(j, j)))
		}
	}
	var eigen mat.EigenSym
	if !eigen.Factorize(form, false) {
		return math.NaN()
	}
	return max(0, eigen.Values(nil)[0])
}

// Swapped says in words that w and y look as if each were given in place of the other, as they are where there are more sensors than
// entries of a signal, no fewer signals than sensors, and no gains and no signals whatever explain the readings. It is empty where nothing says so.
func Swapped(w operator.Operator, y *mat.Dense) string {
	table, ok := w.(operator.Matrix)
	m, n := w.Dims()
	_, p := y.Dims()
	if !ok || p < m || m <= n || n >= mostCompared {
		return ""
	}
	a, b := complete(table, y, min(m, mostCompared))
	if a == nil {
		return ""
	}
	used, _ := a.Dims()
	left := leastUnexplained(a, b)
	if !(left > inVain*(1-float64(n)/float64(used))) {
		return ""
	}
	return fmt.Sprintf("W is %d×%d and Y is %d×%d: whatever gains and signals are, %.0f %% of the readings' power is not explained by this W. Are the two swapped, or do the readings belong to another W? W has one row per sensor and one column per entry of the signals; Y has one row per sensor and one column per signal",
		m, n, m, p, 100*left)
}

// complete is the first rows of W and Y of sensors whose readings are all there, at most so many, without what all signals have
// in common; nil where these are no more than the entries of a signal.
func complete(w operator.Matrix, y *mat.Dense, most int) (a, b *mat.Dense) {
	m, n := w.Dims()
	_, p := y.Dims()
	a, b = mat.NewDense(most, n, nil), mat.NewDense(most, p, nil)
	used := 0
	for mu := 0; mu < m && used < most; mu++ {
		power := mat.Dot(y.RowView(mu), y.RowView(mu))
		if !(power > 0) || math.IsInf(power, 0) || w.RowInto(a.RawRowView(used), mu) != nil {
			continue // a reading is missing, or all are zero
		}
		mean := mat.Sum(y.RowView(mu)) / float64(p)
		for k, v := range y.RawRowView(mu) {
			b.Set(used, k, v-mean)
		}
		used++
	}
	if used <= n {
		return nil, nil
	}
	return a.Slice(0, used, 0, n).(*mat.Dense), b.Slice(0, used, 0, p).(*mat.Dense)
}
