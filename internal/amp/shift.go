package amp

import (
	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/lapack/lapack64"

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

// shift looks for entries i that are off by the same multiple m of the common
// proportions t in all signals, x_ik → x_ik + m t_k, which gains can
// make up for: AMP, entry by entry and signal by signal, does not find the way
// from the wrong place to the right one. The place is right where several
// entries become zero at once, and there
//
//	Σₖ [log Z_in(λ_k + m t_k, Σ_k) - log Z_in(λ_k, Σ_k)] - m²/2v > 0
//
// with the posterior variance v of m, the gains being free. It moves the best
// of these, where they are, and leaves it to the step to move the gains. It uses up
// [jointSignal.follow] of the system, which the step itself needs no more.
func (j *jointMoves) shift() (any bool) {
	e := j.state
	variance := j.commonVariance()
	lambda, sigma := make([]float64, e.P), make([]float64, e.P)
	for i, v := range variance {
		if v == 0 || j.shifts[i] == mostShifts {
			continue
		}
		for k := range e.P {
			lambda[k], sigma[k] = e.Lambda[k*e.N+i], e.Sigma[k*e.N+i]
		}
		m := j.bestShift(prior.At(e.model.Prior, i), lambda, sigma, v)
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

// bestShift tries all shifts of an entry that make it zero in one of the signals.
func (j *jointMoves) bestShift(entry prior.Prior, lambda, sigma []float64, variance float64) (best float64) {
	now, most := 0.0, float64(shiftGain)
	for k, l := range lambda {
		now += entry.LogNorm(l, sigma[k])
	}
	for k, l := range lambda {
		m := -l / j.common[k]
		if !(m*m < farShift*farShift*variance) {
			continue
		}
		gain := -now - 0.5*m*m/variance
		for k, l := range lambda {
			gain += entry.LogNorm(l+m*j.common[k], sigma[k])
		}
		if gain > most {
			best, most = m, gain
		}
	}
	return best
}

// followed replaces follow by how the active entries follow the gains, dx = K ds.
func (s *jointSignal) followed() blas64.General {
	if len(s.active) > 0 {
		blas64.Trsm(blas.Left, blas.NoTrans, 1, s.factor, s.follow)
	}
	return s.follow
}

// commonVariance is for each entry the posterior variance of m in x_ik = m t_k + …
// that comes from the gains; 0 where no signal has the entry. It uses up the system.
func (j *jointMoves) commonVariance() []float64 {
	e := j.state
	out, weight := make([]float64, e.N), make([]float64, e.N)
	sums := blas64.General{Rows: e.N, Cols: e.M, Stride: e.M, Data: make([]float64, e.N*e.M)}
	for k := range j.signals {
		s, t := &j.signals[k], j.common[k]
		follow := s.followed()
		for a, i := range s.active {
			blas64.Axpy(t, vector(row(follow, a)), vector(row(sums, i)))
			weight[i] += t * t
		}
	}
	blas64.Trsm(blas.Right, blas.NoTrans, 1, j.factor, sums)
	for i, w := range weight {
		if w > 0 {
			length := blas64.Nrm2(vector(row(sums, i))) / w
			out[i] = length * length
		}
	}
	return out
}

// Report makes the posterior variances of gains and signals at least those of the
// joint system: what AMP says of gains leaves out that the signals are not known
// independently of each other. The global scale stays out of them.
func (j *jointMoves) Report(*Solver) {
	e := j.state
	if !j.assemble() {
		return
	}
	j.holdScale()
	if !j.solvable() {
		return
	}
	for k := range j.signals {
		s := &j.signals[k]
		follow := s.followed()
		if len(s.active) == 0 {
			continue
		}
		blas64.Trsm(blas.Right, blas.NoTrans, 1, j.factor, follow)
		own, ok := lapack64.Potri(s.factor)
		for a, i := range s.active {
			length := blas64.Nrm2(vector(row(follow, a)))
			c := length * length
			if ok {
				c += own.Data[a*own.Stride+a]
			}
			e.C[k*e.N+i] = max(e.C[k*e.N+i], c)
		}
	}
	covariance, ok := lapack64.Potri(j.factor)
	if !ok {
		return
	}
	for mu, s := range e.S {
		if v := covariance.Data[mu*covariance.Stride+mu]; v > e.SVar[mu] {
			e.calibration.SetNormal(e.Of(e.Stats, mu), s, v)
			e.SVar[mu] = v
		}
	}
}

// holdScale adds the knowledge of the global scale to the gains' system.
func (j *jointMoves) holdScale() {
	s, most := vector(j.state.S), 0.0
	for mu := range s.N {
		most = max(most, j.gains.Data[mu*s.N+mu])
	}
	blas64.Syr(noScale*most/blas64.Dot(s, s), s, j.gains)
}

func row(g blas64.General, i int) []float64 { return g.Data[i*g.Stride : i*g.Stride+g.Cols] }
