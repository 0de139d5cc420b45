package calamp

import (
	"fmt"
	"math"
	"math/cmplx"
	"slices"

	"gonum.org/v1/gonum/mat"

	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/internal/quadrature"
	"github.com/calamp/calamp/prior"
)

// Pairs are complex numbers as this package has them: two columns for each, the real parts and, beside
// them, the imaginary parts.
func Pairs(z *mat.CDense) *mat.Dense {
	rows, columns := z.Dims()
	out := mat.NewDense(rows, 2*columns, nil)
	for i := range rows {
		for k := range columns {
			v := z.At(i, k)
			out.Set(i, 2*k, real(v))
			out.Set(i, 2*k+1, imag(v))
		}
	}
	return out
}

// FromPairs is the inverse of [Pairs].
func FromPairs(m *mat.Dense) *mat.CDense {
	rows, columns := m.Dims()
	out := mat.NewCDense(rows, columns/2, nil)
	for i := range rows {
		for k := range columns / 2 {
			out.Set(i, k, complex(m.At(i, 2*k), m.At(i, 2*k+1)))
		}
	}
	return out
}

// ColumnsPerSignal is how many columns X, XVar, Residual and Converged have for a signal: 2 where
// signals are complex.
func (r *Result) ColumnsPerSignal() int { return prior.ColumnsOf(r.Prior) }

// ComplexS are the posterior means of complex calibration variables (M); nil where they are real.
func (r *Result) ComplexS() []complex128 { return polar(r.S, r.Phase) }

// ComplexS are the true calibration variables where they are complex, nil where they are not, or not known.
func (t *Truth) ComplexS() []complex128 { return polar(t.S, t.Phase) }

func polar(size, phase []float64) []complex128 {
	if phase == nil || size == nil {
		return nil
	}
	out := make([]complex128, len(size))
	for mu, r := range size {
		out[mu] = cmplx.Rect(r, phase[mu])
	}
	return out
}

// checkComplex reports nominal phases that belong to nothing.
func (p *Problem) checkComplex() error {
	_, signals := p.Y.Dims()
	if prior.ColumnsOf(p.Prior) == 2 && signals%2 != 0 {
		return fmt.Errorf("Y has %d columns: complex signals have two each, real and imaginary parts", signals)
	}
	if p.Phases == nil {
		return nil
	}
	known, ok := channel.CalibrationOf(p.Channel).(channel.Turning)
	m, _ := p.W.Dims()
	m /= p.rows.rowsEach()
	switch {
	case !ok:
		return fmt.Errorf("nominal phases are for complex gains, and the channel is a %T", p.Channel)
	case channel.PhasesFree(known):
		return fmt.Errorf("nominal phases are given, and the prior says that nothing is known of phases")
	case len(p.Phases) != m:
		return fmt.Errorf("%d nominal phases for %d sensors", len(p.Phases), m)
	}
	for mu, v := range p.Phases {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return fmt.Errorf("the nominal phase of sensor %d is %g, expected a finite number", mu, v)
		}
	}
	return nil
}

// placePhase brings a result to the common phase that is its convention, where nothing is known of
// phases, and to nominal phases.
func (r *run) placePhase(res *Result) {
	if res.Phase == nil {
		return
	}
	sd, known := r.solver.PhaseSD()
	res.PhaseSD, res.PhaseFree = sd, !known
	if res.PhaseFree {
		res.turn(-r.commonPhase(res))
	}
	for mu, nominal := range r.problem.Phases {
		res.Phase[mu] = math.Remainder(res.Phase[mu]+nominal, 2*math.Pi)
	}
}

// commonPhase is the phase that the convention takes for zero: of the anchored sensor, or of the sum of
// all s that something was read of.
func (r *run) commonPhase(res *Result) float64 {
	if mu, ok := r.opt.Anchor.PhaseSensor(); ok {
		return res.Phase[mu]
	}
	total := complex128(0)
	for mu, s := range res.ComplexS() {
		if r.solver.Heard(mu) {
			total += s
		}
	}
	return cmplx.Phase(total)
}

// turn multiplies signals and s by e^{iθ}.
func (r *Result) turn(theta float64) {
	sin, cos := math.Sincos(theta)
	turned := func(re, im float64) (float64, float64) { return cos*re - sin*im, sin*re + cos*im }
	rows, columns := r.X.Dims()
	for i := range rows {
		for k := 0; k+1 < columns; k += 2 {
			re, im := turned(r.X.At(i, k), r.X.At(i, k+1))
			r.X.Set(i, k, re)
			r.X.Set(i, k+1, im)
		}
	}
	for j := range r.field.lambda {
		if j/rows%2 == 0 {
			re, im := &r.field.lambda[j], &r.field.lambda[j+rows]
			*re, *im = turned(*re, *im)
		}
	}
	for mu := range r.Phase {
		r.Phase[mu] = math.Remainder(r.Phase[mu]+theta, 2*math.Pi)
	}
}

// PhaseIntervals returns for every sensor of complex gain the bounds between which its phase lies with
// the given probability, in radians about Phase: relLo and relHi at a fixed common phase, lo and hi with the
// uncertainty of that included. Where the phase may be anywhere they are 2π apart. All are nil for real gains.
func (r *Result) PhaseIntervals(level float64) (lo, hi, relLo, relHi []float64) {
	c := r.Calibration
	if c == nil || r.Phase == nil {
		return nil, nil, nil, nil
	}
	p := c.Prior.(channel.Turning)
	common := quadrature.NormalBound(level) * r.PhaseSD
	for mu, phase := range r.Phase {
		_, half := p.PhaseInterval(c.Of(mu), level)
		whole := min(math.Pi, math.Hypot(half, common))
		relLo, relHi = append(relLo, phase-half), append(relHi, phase+half)
		lo, hi = append(lo, phase-whole), append(hi, phase+whole)
	}
	return lo, hi, relLo, relHi
}

// checkPhaseAnchor reports a sensor whose phase cannot be what others are counted from.
func (r *run) checkPhaseAnchor() error {
	mu, ok := r.opt.Anchor.PhaseSensor()
	if !ok {
		return nil
	}
	p, is := r.state().Calibration().(channel.Turning)
	switch {
	case !is:
		return fmt.Errorf("the phase of sensor %d is anchored, and gains are real", mu)
	case !channel.PhasesFree(p):
		return fmt.Errorf("the phase of sensor %d is anchored, but phases are known beforehand (κ = %g): an anchor is for phases of which nothing is known", mu, p.Phases())
	case slices.Contains(r.readings.silent, mu):
		return fmt.Errorf("anchored sensor %d has no usable reading", mu)
	}
	return nil
}
