package amp

import (
	"cmp"
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"

	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/internal/dense"
	"github.com/calamp/calamp/operator"
	"github.com/calamp/calamp/prior"
)

// sharedBars mends the error bars where sensors have several rows. The iteration takes what the rows of a sensor say of its gain for
// independent. Behind a structured W they are not: an error of a gain and an error of the signal can explain the same readings. In tomography a gain of
// a detector and a ring in the image do. The joint density of gains and signals knows it. With s_µ y_j = (W x)_j + noise of variance Δ_j for the rows j of
// sensor µ, and x_i ~ N(0, Γ_i), minus its second derivatives at the answer are
//
//	ss: n_µ/s_µ² + Σ_j y_j²/Δ_j + 1/v    sx: -y_j W_ji/Δ_j    xx: WᵀΔ⁻¹W + Γ⁻¹,
//
// where v is the prior variance of s (Laplace's method). Γ_i = x̂_i² + C_i, as for a Gaussian of free variance (Tipping, "Sparse Bayesian learning and the
// relevance vector machine", 2001). Of an entry that is Gaussian it is the prior variance: with a variance of its own each follows what it was estimated as, and errors of s were 1.28 times those
// stated (TestErrorBarsBehindGaussianSignals). The inverse has the variances of both. An error bar never becomes smaller.
type sharedBars struct {
	Idle
	factor float64 // by which variances of gains have grown, their geometric mean
}

func (b *planner) sharedBars() (on bool, why string, err error) {
	return unless("", []reason{
		{b.Shared.Rows <= 1, "not needed: a row is a sensor"},
		{b.stream(), oneByOne},
		{!b.calibrates(), noCalibration},
		{b.complex() || b.plan.Has("network"), "not possible: signals are real, and their entries independent beforehand"},
		{b.offsetting() != nil, "not possible with offsets"},
		{b.untouched() != "", b.untouched()},
	})
}

// sharesBars reports whether the part goes along.
func (b *planner) sharesBars() bool {
	on, _, _ := b.sharedBars()
	return on
}

func (b *planner) makeSharedBars(*Solver) (Part, error) { return &sharedBars{factor: 1}, nil }

// SharedWidening is the factor by which variances of gains have grown since a gain and the signal explain the same readings (the
// geometric mean over sensors); 1 where nothing was looked for.
func (s *Solver) SharedWidening() float64 {
	if b, ok := PartOf[*sharedBars](s); ok {
		return b.factor
	}
	return 1
}

// Begin implements [Part].
func (b *sharedBars) Begin(*Solver) { b.factor = 1 }

// mostBarred is the number of entries of a signal that are followed at most: their matrix takes 32 MB.
const mostBarred = 2000

// Report implements [Part].
func (b *sharedBars) Report(s *Solver) {
	j := newJointBars(s)
	for k := range s.State.P {
		if !j.add(k) {
			return // the bars of the iteration stay: the readings leave nothing open, or W cannot be read again
		}
	}
	if j.invert() {
		b.factor = j.widenGains()
		j.widenSignals()
	}
}

// jointBars is the joint precision of gains and signals, and its inverse.
type jointBars struct {
	*State
	entries  int            // of a signal that are followed
	prior    float64        // v
	gains    dense.Matrix   // S×S, the precision of gains with signals integrated out, then their covariance at a fixed common scale
	followed [][]int        // of each signal, the entries that are followed
	moves    []dense.Matrix // of each signal, entries × S: what a change of a gain makes of an entry
	alone    [][]float64    // of each signal, the variance of an entry with the gains known
}

func newJointBars(s *Solver) *jointBars {
	e := s.State
	_, most := channel.Typical(e.calibration)
	// No more multiplications than the run took: two products with W and two with its squares in each iteration.
	entries := min(e.N, mostBarred, int(math.Sqrt(4*float64(max(1, s.Iterations))*float64(e.N))))
	j := &jointBars{
		State: e, entries: entries, prior: most, gains: dense.New(e.M, e.M),
		followed: make([][]int, e.P), moves: make([]dense.Matrix, e.P), alone: make([][]float64, e.P),
	}
	for mu, s := range e.S {
		at := &j.gains.Data[mu*e.M+mu]
		*at = 1 / most
		for r := mu * e.Each; r < (mu+1)*e.Each; r++ {
			if y := e.usable(r); y != 0 {
				*at += 1/(s*s) + y*y/e.Noise(r)
			}
		}
	}
	return j
}

// usable is reading r without its offset, 0 where it is missing, its sensor broken, or its noise not known to be any.
func (s *State) usable(r int) float64 {
	if math.IsNaN(s.Y[r]) || s.OutOfOrder(s.SensorOf(r)) || !(s.Noise(r) > 0) {
		return 0
	}
	return s.Reading(r)
}

// add takes what signal k leaves open from the precision of the gains.
func (j *jointBars) add(k int) bool {
	gamma := j.choose(k)
	w := dense.New(j.Rows(), len(gamma)) // W √(Γ/Δ)
	if !j.columns(w, k) {
		return false
	}
	cross := dense.New(len(gamma), j.M)
	for row := range w.Rows {
		r, to := row*j.P+k, w.Row(row)
		y, root := j.usable(r), 0.0
		if y != 0 {
			root = 1 / math.Sqrt(j.Noise(r))
		}
		mu := j.SensorOf(r)
		for i := range to {
			to[i] *= root * math.Sqrt(gamma[i])
			cross.Data[i*j.M+mu] += to[i] * y * root
		}
	}
	var ok bool
	if j.moves[k], j.alone[k], ok = entriesOut(w, cross, gamma, j.Threads); ok {
		dense.AddProduct(j.gains, -1, cross.T(), cross, dense.Lower, j.Threads)
	}
	return ok
}

// entriesOut integrates entries of variances Γ out that are read by W √(Γ/Δ). cross has √Γ times their second derivatives with the gains, and becomes what is to be squared and taken from the
// precision of these. moves (entries × gains) is what a change of a gain makes of an entry, and alone the variance of an entry with the gains known.
func entriesOut(w, cross dense.Matrix, gamma []float64, threads int) (moves dense.Matrix, alone []float64, ok bool) {
	n := len(gamma)
	l := dense.New(n, n)
	for i := range n {
		l.Data[i*n+i] = 1
	}
	dense.AddProduct(l, 1, w.T(), w, dense.Lower, threads)
	if !dense.Factor(l, threads) {
		return moves, nil, false
	}
	dense.SolveLower(l, cross, threads)
	alone, moves = dense.InvertDiagonal(l, threads), dense.New(n, cross.Columns)
	dense.AddProduct(moves, 1, l.T(), cross, dense.All, threads)
	for i, v := range gamma {
		alone[i] *= v
		floats.Scale(math.Sqrt(v), moves.Row(i))
	}
	return moves, alone, true
}

// sizes are Γ of signal k.
func (j *jointBars) sizes(k int) []float64 {
	all, own := make([]float64, j.N), j.PriorOf(k)
	gaussian := alwaysGaussian(own)
	for i := range all {
		x, c := j.X[k*j.N+i], j.C[k*j.N+i]
		all[i] = x*x + c
		if gaussian {
			all[i] = prior.At(own, i).Variance()
		}
	}
	return all
}

// choose finds the entries of signal k with the largest Γ, in order, and returns that.
func (j *jointBars) choose(k int) []float64 {
	all := j.sizes(k)
	chosen := j.largest(all, 0)
	gamma := make([]float64, len(chosen))
	for at, i := range chosen {
		gamma[at] = all[i]
	}
	j.followed[k] = chosen
	return gamma
}

// largest are the entries of the largest sizes above least that may be followed, in order.
func (j *jointBars) largest(sizes []float64, least float64) (chosen []int) {
	for i, v := range sizes {
		if v > least {
			chosen = append(chosen, i)
		}
	}
	slices.SortStableFunc(chosen, func(a, b int) int { return cmp.Compare(sizes[b], sizes[a]) })
	chosen = chosen[:min(j.entries, len(chosen))]
	slices.Sort(chosen)
	return chosen
}

// unitsAtOnce is how many columns of a W that is no table are found by one product.
const unitsAtOnce = 16

// columns sets to to the columns of the W of signal k that are followed.
func (j *jointBars) columns(to dense.Matrix, k int) bool {
	w := j.W
	if matrices, of := operator.Separate(w); of != nil {
		w = matrices[of[k]]
	}
	return columnsOf(to, w, j.followed[k], j.Threads) == nil
}

// columnsOf sets to to some columns of W: of a table they are read, and of another operator they are its products with unit vectors.
func columnsOf(to dense.Matrix, w operator.Operator, chosen []int, threads int) error {
	_, n := w.Dims()
	if table, ok := w.(operator.Matrix); ok {
		row := make([]float64, n)
		for mu := range to.Rows {
			if err := table.RowInto(row, mu); err != nil {
				return err
			}
			for at, i := range chosen {
				to.Row(mu)[at] = row[i]
			}
		}
		return nil
	}
	linear, err := operator.NewLinear(w, unitsAtOnce, threads)
	if err != nil {
		return err
	}
	units, products := make([]float64, unitsAtOnce*n), make([]float64, to.Rows*unitsAtOnce)
	for from := 0; from < len(chosen); from += unitsAtOnce {
		clear(units)
		some := chosen[from:min(from+unitsAtOnce, len(chosen))]
		for at, i := range some {
			units[at*n+i] = 1
		}
		if err := linear.Forward(products, units); err != nil {
			return err
		}
		for mu := range to.Rows {
			copy(to.Row(mu)[from:from+len(some)], products[mu*unitsAtOnce:])
		}
	}
	return nil
}

// invert makes the precision of the gains their covariance, less that of the common scale, which has an uncertainty of its own: of
// relative errors e it leaves e - 1 wᵀe/wᵀ1, with the weights w of their precisions.
func (j *jointBars) invert() bool {
	l := j.gains
	if !dense.Factor(l, j.Threads) {
		return false
	}
	dense.InvertLower(l, j.Threads)
	c := dense.New(j.M, j.M)
	dense.Square(c, l, j.Threads)
	dense.Mirror(c)
	weights, total := make([]float64, j.M), 0.0
	for mu, s := range j.S {
		weights[mu] = s * s / c.At(mu, mu)
		total += weights[mu]
	}
	// In units of s: the covariance of each error with the scale's, and the variance of that.
	with, own := make([]float64, j.M), 0.0
	for mu := range j.M {
		for nu, v := range c.Row(mu) {
			with[mu] += v / (j.S[mu] * j.S[nu]) * weights[nu] / total
		}
		own += with[mu] * weights[mu] / total
	}
	for mu := range j.M {
		row := c.Row(mu)
		for nu := range row {
			row[nu] += (own - with[mu] - with[nu]) * j.S[mu] * j.S[nu]
		}
	}
	j.gains = c
	return true
}

// widenGains makes variances of gains no smaller than those of the joint density. It returns the geometric mean of the factors, of all sensors in order.
func (j *jointBars) widenGains() float64 {
	logs, count := 0.0, 0.0
	for mu, v := range j.SVar {
		if j.OutOfOrder(mu) || !(v > 0) {
			continue
		}
		count++
		if wide := min(j.gains.At(mu, mu), j.prior); wide > v {
			logs += math.Log(wide / v)
			j.SVar[mu] = wide
			j.calibration.SetNormal(j.Of(j.Stats, mu), j.S[mu], wide)
		}
	}
	return math.Exp(logs / max(1, count))
}

// widenSignals does it for the entries that are followed: with the gains known, and what errors of these make of them.
func (j *jointBars) widenSignals() {
	for k, chosen := range j.followed {
		moves := j.moves[k]
		errors := dense.New(moves.Rows, j.M)
		dense.AddProduct(errors, 1, moves, j.gains, dense.All, j.Threads)
		for at, i := range chosen {
			variance := j.alone[k][at]
			for mu, v := range errors.Row(at) {
				variance += v * moves.Row(at)[mu]
			}
			c := &j.C[k*j.N+i]
			*c = max(*c, variance)
		}
	}
}
