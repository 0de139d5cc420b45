package diagnosis

import (
	"cmp"
	"fmt"
	"math"
	"math/cmplx"
	"slices"
	"sync"

	"gonum.org/v1/gonum/blas/cblas128"
	"gonum.org/v1/gonum/floats"

	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/operator"
)

const (
	// asLikely is the logarithm of a ratio of likelihoods up to which readings do not choose between two answers, 20 to 1 (Kass and Raftery 1995).
	asLikely = 3

	// mostForShifts is how many multiplications the search for shifts may take, for each of which a pair of columns is compared: some seconds.
	mostForShifts = 1e9
)

// warnShifts tells of other answers that are as likely: where phases of gains are free, and columns of W are steering vectors of directions on a regular grid, all
// directions can move by the same step, and the phases of the gains by what is between two columns,
//
//	diag(r) W x = W x',  r = W_j/W_i,
//
// for every pair of columns that the signals' entries can move along without one that leaves the grid.
func (r *Run) warnShifts() *Warning {
	known, ok := r.calibration().(channel.Turning)
	if !ok || !r.blind() || r.Solver.Iterations == 0 {
		return nil
	}
	strongest, others := r.shifted(known.Phases())
	anywhere := r.LearnPhases && !(known.AboutNominal(r.state.Stats, r.outOfOrder()) > aboutNominal+math.Log(float64(len(others)+1))) // one of so many is near the nominal ones by chance
	var likely []int
	for _, other := range others {
		if anywhere || r.phasesAllow(known.Phases(), other.turn) {
			likely = append(likely, other.to)
		}
	}
	if len(likely) == 0 {
		return nil
	}
	return &Warning{Code: ShiftedDirections, Message: fmt.Sprintf("%d other answers are as likely: the phases of the gains follow W from one column to another, as from %d to %d, and all signals move by the same step; "+
		"sizes of gains and distances between the signals' entries are the same in all; the direction of one entry would decide, or known phases of gains", len(likely), strongest, likely[0])}
}

// shift is an answer that is moved so that the strongest entry comes to another one, while the gain of each sensor turns by a factor of unit size.
type shift struct {
	to   int
	turn func(sensor int) complex128
}

// shifted are shifts that leave the readings as they are, and the entry that they move: all where the concentration κ of phases is learned, and else those that it allows.
func (r *Run) shifted(kappa float64) (strongest int, others []shift) {
	m, n := float64(r.state.M), float64(r.state.N)
	w, is := r.Solver.Matrix.(*operator.Complex)
	rows, fourier := operator.Rows{}, false
	if is {
		rows, fourier = w.Rows()
	}
	switch {
	case fourier && r.state.Rows() == r.state.M:
		return r.cyclic(rows)
	case m*n*n > mostForShifts:
		return 0, nil
	}
	columns, squares := r.steering()
	if columns == nil {
		return 0, nil
	}
	noise := float64(r.state.Columns()) * channel.NoiseOf(r.model().Channel)
	list := r.sources(squares, noise)
	if len(list) == 0 {
		return 0, nil
	}
	strongest = list[0].at
	near, each := sync.OnceValue(func() float64 { return nearest(columns) }), r.state.Rows()/r.state.M
	for j := range columns {
		if j == strongest {
			continue
		}
		ramp := between(columns[strongest], columns[j], each)
		other := shift{j, func(sensor int) complex128 { return ramp[sensor*each] }}
		if (r.LearnPhases || r.phasesAllow(kappa, other.turn)) && moves(columns, list, ramp, j-strongest, noise, near) {
			others = append(others, other)
		}
	}
	return strongest, others
}

// cyclic are the shifts of signals behind rows of the Fourier transform: by d places the gain of row ρ turns by e^(-2πi ρd/N).
func (r *Run) cyclic(rows operator.Rows) (strongest int, others []shift) {
	n := r.state.N
	entry := make([]int, n) // at a place
	for i := range entry {
		entry[i] = i
	}
	for i, place := range rows.Permutation {
		entry[place] = i
	}
	from, most := 0, 0.0
	for place, i := range entry {
		energy := 0.0
		for column := range r.state.P {
			energy += r.state.X[column*n+i] * r.state.X[column*n+i]
		}
		if energy > most {
			from, most = place, energy
		}
	}
	if most == 0 {
		return 0, nil
	}
	for d := 1; d < n; d++ {
		others = append(others, shift{entry[(from+d)%n], func(sensor int) complex128 {
			return cmplx.Rect(1, -2*math.Pi*float64(rows.Rows[sensor]*d%n)/float64(n))
		}})
	}
	return entry[from], others
}

// steering are the columns of W, with a norm of 1, and the squares of their norms; nil where the entries of W cannot be seen.
func (r *Run) steering() (columns [][]complex128, squares []float64) {
	m, n := r.state.Rows(), r.state.N
	row := operator.RowReader(r.Solver.Matrix, mostForShifts)
	if row == nil {
		return nil, nil
	}
	columns, squares = make([][]complex128, n), make([]float64, n)
	for i := range columns {
		columns[i] = make([]complex128, m)
	}
	re, im := make([]float64, n), make([]float64, n)
	for mu := range m {
		if row(re, im, mu) != nil {
			return nil, nil
		}
		for i := range n {
			columns[i][mu] = complex(re[i], im[i])
			squares[i] += re[i]*re[i] + im[i]*im[i]
		}
	}
	for i, c := range columns {
		if squares[i] > 0 {
			for mu := range c {
				c[mu] /= complex(math.Sqrt(squares[i]), 0)
			}
		}
	}
	return columns, squares
}

// source is an entry of signals, and the energy Σ_µk |W_µi x_ik|² that readings have of it.
type source struct {
	at     int
	energy float64
}

// sources are the entries that noise of this variance would not make of nothing, the strongest first: by the universal threshold |W_i|²|x|² > Δ log NP
// (Donoho and Johnstone 1994).
func (r *Run) sources(squares []float64, noise float64) (list []source) {
	n, p := r.state.N, r.state.P/2
	for i := range n {
		most, sum := 0.0, 0.0
		for k := range p {
			re, im := r.state.X[2*k*n+i], r.state.X[(2*k+1)*n+i]
			energy := squares[i] * (re*re + im*im)
			most, sum = max(most, energy), sum+energy
		}
		if most > noise*math.Log(float64(n*p)) {
			list = append(list, source{i, sum})
		}
	}
	slices.SortFunc(list, func(a, b source) int { return cmp.Compare(b.energy, a.energy) })
	return list
}

// between is the phase factor of b relative to a, of unit size: one for all rows of a sensor, of which each has so many.
func between(a, b []complex128, each int) []complex128 {
	ramp := make([]complex128, len(a))
	for first := 0; first < len(a); first += each {
		var sum complex128
		for mu := first; mu < first+each; mu++ {
			sum += b[mu] * cmplx.Conj(a[mu])
		}
		unit := complex(1, 0)
		if sum != 0 {
			unit = sum / complex(cmplx.Abs(sum), 0)
		}
		for mu := first; mu < first+each; mu++ {
			ramp[mu] = unit
		}
	}
	return ramp
}

// phasesAllow reports whether phases that are spread about zero with this concentration are about as likely after they are turned, at the best common phase.
func (r *Run) phasesAllow(kappa float64, turn func(sensor int) complex128) bool {
	if kappa == 0 {
		return true
	}
	if float64(r.state.M)*float64(r.state.N) > mostForShifts {
		return false
	}
	var now, then complex128
	for mu, phase := range r.state.Phase {
		now += cmplx.Rect(1, phase)
		then += cmplx.Rect(1, phase) * turn(mu)
	}
	return kappa*(cmplx.Abs(now)-cmplx.Abs(then)) < asLikely
}

// moves reports whether every source is moved along the ramp from its column to another one, but for an energy that noise of this variance hides. Columns of a regular grid are the
// same step apart, so that one is looked at first, for all sources before any other; one that is [nearest] is not looked for any further.
func moves(columns [][]complex128, list []source, ramp []complex128, step int, noise float64, near func() float64) bool {
	n, most := len(columns), asLikely*noise
	lost := make([]float64, len(list))
	total := 0.0
	for k, s := range list {
		lost[k] = s.lost(columns, ramp, (s.at+step+n)%n)
		total += lost[k]
	}
	share := most / float64(len(list))
	for k, s := range list {
		for i := 0; i < n && total > most && lost[k] > max(share, near()*s.energy); i++ {
			if other := s.lost(columns, ramp, i); other < lost[k] {
				total += other - lost[k]
				lost[k] = other
			}
		}
		if total-floats.Sum(lost[k+1:]) > most {
			return false
		}
	}
	return total <= most
}

// nearest is sin² of half the least angle between two columns, of norm 1: what is nearer to a column than that has no nearer one.
func nearest(columns [][]complex128) float64 {
	cosine := 0.0
	for i, a := range columns {
		for _, b := range columns[:i] {
			cosine = max(cosine, cmplx.Abs(cblas128.Dotc(cblas128.Vector{N: len(a), Data: a, Inc: 1}, cblas128.Vector{N: len(b), Data: b, Inc: 1})))
		}
	}
	return (1 - cosine) / 2
}

// lost is the energy of a source that another column does not explain, where it is moved along the ramp.
func (s source) lost(columns [][]complex128, ramp []complex128, to int) float64 {
	var product complex128
	from := columns[s.at]
	for mu, v := range columns[to] {
		product += cmplx.Conj(v) * from[mu] * ramp[mu]
	}
	return s.energy * (1 - real(product)*real(product) - imag(product)*imag(product))
}
