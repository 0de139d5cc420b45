package evolution

import (
	"context"
	"fmt"
	"math"

	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/internal/field"
	"github.com/calamp/calamp/prior"
)

// Belief is a model of signals, gains and noise.
type Belief struct {
	Signal   prior.GaussBernoulli
	Gain     channel.GainPrior // [Known] for known gains
	NoiseVar float64
}

// Mismatch is a problem made by a teacher and solved by a student who may
// assume another model.
type Mismatch struct {
	Teacher, Student Belief
	Alpha            float64 // M/N
	P                int     // signals
}

// Matched is the problem of a student whose model is the teacher's.
func Matched(m Model) Mismatch {
	b := Belief{Signal: m.Signal, Gain: m.Gain, NoiseVar: m.NoiseVar}
	return Mismatch{Teacher: b, Student: b, Alpha: m.Alpha, P: m.P}
}

// Validate reports a parameter that describes no problem.
func (m Mismatch) Validate() error {
	for _, c := range []struct {
		name string
		Belief
	}{{"teacher", m.Teacher}, {"student", m.Student}} {
		if err := (Model{Signal: c.Signal, Gain: c.Gain, NoiseVar: c.NoiseVar, Alpha: m.Alpha, P: m.P}).Validate(); err != nil {
			return fmt.Errorf("%s: %w", c.name, err)
		}
	}
	return nil
}

// Overlaps are the order parameters of mismatched state evolution after an
// iteration, and what led to them, per signal (paper, "State Evolution
// derivation for mismatched prior and channel").
type Overlaps struct {
	Q Number // E x̂²
	M Number // E x̂ x₀
	V Number // E C, the variance of the student's posterior

	QHat   Number // E g²
	MHat   Number // E ∂_z g
	ChiHat Number // -E ∂_ω g

	MSEX Number // E (x̂-x₀)², the true error
	MSES Number // E (ŝ-s₀)², with the estimates before the iteration
	MSEO Number // the same of the sensors' offsets, where there are any
}

// MSEXScaled is the mean square error of x̂ after multiplication with the best common
// factor m/q, given q₀ = E x₀²: the part of the error that is not due to a wrong scale
// of signals and gains. With the error e and the lost overlap r = q₀-m it is
// q₀ - m²/q = (e q₀ - r²)/q, which does not cancel where errors are small.
func (o Overlaps) MSEXScaled(secondMoment float64) Number {
	lost := secondMoment - o.M.Value
	scale := secondMoment / o.Q.Value
	return Number{
		Value: o.MSEX.Value*scale - lost*lost/o.Q.Value,
		Err:   o.MSEX.Err*scale + 2*math.Abs(lost)/o.Q.Value*o.M.Err,
	}
}

// OfflineMismatched follows offline cal-AMP iteration by iteration, started from
// the student's prior mean and variance. It is deterministic: the averages are
// three-dimensional integrals for any two beliefs (see output.go). A cancelled run
// returns the iterations made and ctx.Err().
func OfflineMismatched(ctx context.Context, m Mismatch, opt *Options) (out []Overlaps, err error) {
	defer ending(&err)
	e, err := newMismatched(m, opt)
	if err != nil {
		return nil, err
	}
	e.work = opt.heeding(ctx)
	for range opt.iterations(defaultSteps) {
		if err := ctx.Err(); err != nil {
			return out, err
		}
		out = append(out, e.step())
		opt.progress(len(out))
	}
	return out, nil
}

// FixedPointMismatched iterates until errors and variances, at the rate at which
// they converge, are within the tolerance of their limit. ok is false when that did
// not happen within the iterations allowed (default 1000), or when the iteration
// diverges.
func FixedPointMismatched(ctx context.Context, m Mismatch, opt *Options) (o Overlaps, ok bool, err error) {
	defer ending(&err)
	e, err := newMismatched(m, opt)
	if err != nil {
		return o, false, err
	}
	e.work = opt.heeding(ctx)
	change := math.Inf(1)
	for range opt.iterations(1000) {
		if err := ctx.Err(); err != nil {
			return o, false, err
		}
		before := e.overlapState
		o = e.step()
		last := change
		change = e.overlapState.distance(before)
		if settled(change, last, e.tol) {
			return o, true, nil
		}
		if math.IsNaN(change) {
			return o, false, nil
		}
	}
	return o, false, nil
}

// settled reports whether what is left to go is below tol, from the last two changes
// of an iteration that converges linearly.
func settled(change, last, tol float64) bool {
	if change < 1e-14 {
		return true
	}
	rate := change / last
	return !math.IsInf(last, 1) && rate < 1 && change*rate/(1-rate) < tol
}

// overlapState is the state of the iteration: the true error, the lost overlap and
// the student's variance. Small errors keep their digits in these; in q and m they
// would be differences of nearly equal numbers.
type overlapState struct {
	mse  float64 // E (x̂-x₀)² = q - 2m + q₀
	loss float64 // E x₀(x₀-x̂) = q₀ - m
	v    float64 // V
}

func (s overlapState) distance(o overlapState) float64 {
	return max(math.Abs(math.Log(s.mse/o.mse)), math.Abs(math.Log(s.v/o.v)))
}

type mismatched struct {
	Mismatch
	overlapState
	work *work
	tol  float64
	q0   float64 // E x₀²
}

func newMismatched(m Mismatch, opt *Options) (*mismatched, error) {
	if err := m.Validate(); err != nil {
		return nil, err
	}
	if err := opt.validate(); err != nil {
		return nil, err
	}
	e := &mismatched{Mismatch: m, tol: opt.tol(), q0: secondMoment(m.Teacher.Signal)}
	e.overlapState = e.ignorant()
	return e, nil
}

// ignorant is the state at x̂ = the student's prior mean.
func (e *mismatched) ignorant() overlapState {
	t, s := e.Teacher.Signal, e.Student.Signal
	bias := s.Mean() - t.Mean()
	return overlapState{
		mse:  t.Variance() + bias*bias,
		loss: e.q0 - s.Mean()*t.Mean(),
		v:    s.Variance(),
	}
}

// law is the joint law of readings and estimates in this state. With e the
// error and r the loss, the variance of ω given z̃ is
//
//	κ = q - m²/T₀ = e + (Δ₀(q₀-2r) - r²)/T₀.
func (e *mismatched) law() sensorLaw {
	noise := e.Teacher.NoiseVar
	t0 := e.q0 + noise
	q := e.mse + e.q0 - 2*e.loss
	kappa := e.mse + (noise*(e.q0-2*e.loss)-e.loss*e.loss)/t0
	if q < 1e-14*e.q0 {
		q, kappa = 0, 0
	}
	return sensorLaw{
		p: e.P, teacher: trimmed(e.Teacher.Gain), student: trimmed(e.Student.Gain),
		c: (e.q0 - e.loss) / t0, cBias: (e.loss + noise) / t0,
		kappa: kappa / t0, q: q / t0, qLessM: (e.mse - e.loss) / t0,
		d: (e.v + e.Student.NoiseVar) / t0,
	}
}

// output is the output side in the signals' units.
func (e *mismatched) output() averages {
	l := e.law()
	a := l.integrate(e.tol, e.work)
	t0 := e.q0 + e.Teacher.NoiseVar
	for _, n := range []*Number{&a.qHat, &a.mHat, &a.chiHat} {
		n.Value /= t0
		n.Err /= t0
	}
	return a
}

// fieldLaw is the law of an entry and its field after the output side.
func (e *mismatched) fieldLaw(a averages) field.Law {
	chi := a.chiHat.Value
	return field.Law{
		Teacher: e.Teacher.Signal, Student: e.Student.Signal,
		Sigma: 1 / (e.Alpha * chi), Gamma: a.mHat.Value / chi, GammaBias: (chi - a.mHat.Value) / chi,
		Noise: a.qHat.Value / (e.Alpha * chi * chi),
	}
}

func (e *mismatched) step() Overlaps {
	a := e.output()
	f := e.fieldLaw(a)
	in := f.Integrate(e.tol)
	e.overlapState = overlapState{mse: in.MSE.Value, loss: in.Loss.Value, v: in.Variance.Value}
	// A relative error of the field changes the entry's averages by at most as much.
	outer := a.qHat.Relative() + a.mHat.Relative() + a.chiHat.Relative()
	spread := func(n field.Number) Number { return Number{n.Value, n.Err + outer*math.Abs(n.Value)} }
	v, mse, loss := spread(in.Variance), spread(in.MSE), spread(in.Loss)
	return Overlaps{
		Q: Number{mse.Value + e.q0 - 2*loss.Value, mse.Err + 2*loss.Err}, M: Number{e.q0 - loss.Value, loss.Err}, V: v,
		QHat: a.qHat, MHat: a.mHat, ChiHat: a.chiHat,
		MSEX: mse, MSES: a.mseS,
	}
}

// MismatchedSensor are averages over a sensor's P readings, for a student with a
// wrong model. q̂, m̂ and χ̂ are per signal.
type MismatchedSensor struct {
	QHat, MHat, ChiHat, MSES Number
	Evidence                 Number // E log Z_out under the student's belief
}

// Sensor computes these averages when E x̂² = q, E x̂x₀ = overlap and the student
// has the posterior variance v. It ends with ctx, and with [ErrWork] after opt.Work.
func (m Mismatch) Sensor(ctx context.Context, q, overlap, v float64, opt *Options) (s MismatchedSensor, err error) {
	defer ending(&err)
	e, err := newMismatched(m, opt)
	if err != nil {
		return MismatchedSensor{}, err
	}
	e.work = opt.heeding(ctx)
	e.overlapState = overlapState{mse: q - 2*overlap + e.q0, loss: e.q0 - overlap, v: v}
	law := e.law()
	if law.kappa < 0 || law.q < 0 {
		return MismatchedSensor{}, fmt.Errorf("no estimate has q = %g and m = %g: m² may not exceed q (q₀+Δ₀) = %g", q, overlap, q*(e.q0+e.Teacher.NoiseVar))
	}
	a := e.output()
	d := v + e.Student.NoiseVar
	p := float64(e.P)
	evidence := a.evidence
	evidence.Value -= 0.5*(p-1)*law.kappa/law.d + 0.5*p*math.Log(2*math.Pi*d)
	return MismatchedSensor{a.qHat, a.mHat, a.chiHat, a.mseS, evidence}, nil
}

// MismatchedEntry are averages over an entry and its field.
type MismatchedEntry struct {
	Q, M, V Number // E x̂², E x̂x₀, E C
	LogNorm Number // E log ∫ p(x) exp(-Ax²/2 + (m̂x₀ + √q̂ξ)x) dx under the student's prior
}

// Entry computes them for a field of precision a that carries m̂ of the truth and
// noise of variance q̂ (α times the averages of the output side).
func (m Mismatch) Entry(qHat, mHat, a float64, opt *Options) MismatchedEntry {
	f := field.Law{
		Teacher: m.Teacher.Signal, Student: m.Student.Signal,
		Sigma: 1 / a, Gamma: mHat / a, GammaBias: (a - mHat) / a, Noise: qHat / (a * a),
	}
	r := f.Integrate(opt.tol())
	q0 := secondMoment(m.Teacher.Signal)
	square := f.Gamma*f.Gamma*q0 + f.Noise // E λ²
	return MismatchedEntry{
		Q: Number{r.MSE.Value + q0 - 2*r.Loss.Value, r.MSE.Err + 2*r.Loss.Err},
		M: Number{q0 - r.Loss.Value, r.Loss.Err}, V: Number(r.Variance),
		LogNorm: Number{r.LogNorm.Value + 0.5*square*a, r.LogNorm.Err},
	}
}
