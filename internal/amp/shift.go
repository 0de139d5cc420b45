package amp

import (
	"math"

	"gonum.org/v1/gonum/floats"

	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/internal/dense"
	"github.com/calamp/calamp/internal/parallel"
	"github.com/calamp/calamp/prior"
)

const (
	// shiftGain is by how much a shift must make the fields of an entry likelier (the
	// logarithm), and mostShifts how often an entry is shifted: the gain is estimated, and could
	// be so in both directions.
	shiftGain  = 3
	mostShifts = 3

	// shiftBelow is the change above which an iteration is still on its way.
	shiftBelow = 1e-4

	// farShift is the number of standard deviations beyond which no gain is enough.
	farShift = 15

	// noScale is the curvature that keeps the global scale where it is, relative to the gains' own.
	noScale = 1e3
)

// shift looks for entries i that are off by the same multiple of the common
// proportions t in all signals, x_ik → x_ik + m t_k, which gains can
// make up for: AMP, entry by entry and signal by signal, does not find the way
// from the wrong place to the right one. The place is right where several
// entries become zero at once. It moves the entry where the posterior is higher there, see [commonFields], and
// leaves it to the step to move the gains.
func (j *jointMoves) shift() (any bool) {
	e := j.state
	f, ok := newCommonFields(e, j.common)
	if !ok {
		return false
	}
	for i := range e.N {
		if j.shifts[i] == mostShifts || !f.see(i) {
			continue
		}
		m := f.bestShift(prior.At(e.model.Prior, i))
		if m == 0 {
			continue
		}
		any = true
		j.shifts[i]++
		for k, t := range j.common {
			at := k*e.N + i
			e.Lambda[at] += m * t
			prior.At(e.model.Prior, i).Posterior(e.X[at:at+1], e.C[at:at+1], e.Lambda[at:at+1], e.Sigma[at:at+1])
			e.Centre[at] = e.X[at]
		}
	}
	return any
}

// Report makes the posterior variances of gains and signals at least those of the
// joint system: what AMP says of gains leaves out that the signals are not known
// independently of each other. The global scale stays out of them.
//
// What is open between places is admitted of entries that are at one of them. A run that ended on its way has none, and is distinguished from an
// answer by its status; the integrals over the places would take longer than the run itself.
func (j *jointMoves) Report(s *Solver) {
	if !j.assemble() {
		return
	}
	if j.holdScale(); j.solvable() {
		f, ok := newCommonFields(j.state, j.common)
		if j.widen(); ok && (s.atFixedPoint() || s.line.Change < shiftBelow) {
			j.admitShifts(f)
		}
	}
}

// widen is what the joint system says: of entries with the gains known, and what errors of these make of them.
func (j *jointMoves) widen() {
	e := j.state
	parallel.Run(e.P, e.Threads, func(k int) {
		s := &j.signals[k]
		if len(s.active) == 0 {
			return
		}
		moves, alone := s.followed()
		dense.SolveRight(j.gains, moves, 1)
		for a, i := range s.active {
			c := &e.C[k*e.N+i]
			*c = max(*c, alone[a]+floats.Dot(moves.Row(a), moves.Row(a)))
		}
	})
	for mu, v := range dense.InvertDiagonal(j.gains, e.Threads) {
		if v > e.SVar[mu] {
			e.calibration.SetNormal(e.Of(e.Stats, mu), e.S[mu], v)
			e.SVar[mu] = v
		}
	}
}

// admitShifts adds what is left open between the places to which [jointMoves.shift] moves an entry: where two of them
// are nearly as likely, the entry is at one, and AMP is sure of it.
func (j *jointMoves) admitShifts(f *commonFields) {
	e := j.state
	shift := prior.CommonShift{Along: j.common}
	mean, spread := make([]float64, e.P), make([]float64, e.P)
	together, open := make([]float64, e.N), false // the mean square of t·δx_i that AMP does not know of
	for i := range e.N {
		if !f.see(i) {
			continue
		}
		shift.Posterior(prior.At(e.model.Prior, i), mean, spread, f.lambda, f.sigma, f.b)
		off, known := 0.0, 0.0
		for k, t := range j.common {
			at := k*e.N + i
			d := mean[k] - e.X[at]
			off += t * d
			known += t * (t * e.C[at])
			e.C[at] = max(e.C[at], spread[k]+d*d)
		}
		together[i] = max(0, shift.SumVar+off*off-known)
		open = open || together[i] > 0
	}
	if open {
		j.followShifts(together)
	}
}

// followShifts adds to the gains what they would make up for,
//
//	δs = -ŝ (ẑ·t) W_i (t·δx_i)/|ẑ|²,   ẑ_k = ŝ y_k.
func (j *jointMoves) followShifts(together []float64) {
	e := j.state
	_, most := channel.Typical(e.calibration)
	total, sensors := 0.0, 0.0
	for mu, s := range e.S {
		along, size, added := 0.0, 0.0, 0.0
		for k, t := range j.common {
			z := s * j.signals[k].y[mu] // 0 where it is missing
			along += t * z
			size += z * z
		}
		if size == 0 || e.OutOfOrder(mu) || e.SVar[mu] >= most {
			continue
		}
		for i, w := range j.w.RawRowView(mu) {
			added += w * (w * together[i])
		}
		added *= (along / size) * (along / size)
		e.SVar[mu] = min(e.SVar[mu]+s*(s*added), most)
		e.calibration.SetNormal(e.Of(e.Stats, mu), s, e.SVar[mu])
		total += added
		sensors++
	}
	// Where gains touch the ends of their range is known no better than they are.
	e.Placement = e.Placement.widened(math.Sqrt(total / max(1, sensors)))
}

// holdScale adds the knowledge of the global scale to the gains' system.
func (j *jointMoves) holdScale() {
	s, most := j.state.S, 0.0
	for mu := range s {
		most = max(most, j.gains.At(mu, mu))
	}
	hold := noScale * most / floats.Dot(s, s)
	for mu, v := range s {
		floats.AddScaled(j.gains.Row(mu)[:mu+1], hold*v, s[:mu+1])
	}
}
