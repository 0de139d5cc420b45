package amp

import (
	"errors"
	"fmt"
	"math"
	"math/cmplx"
	"math/rand/v2"

	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/internal/search"
	"github.com/calamp/calamp/operator"
	"github.com/calamp/calamp/prior"
)

// Complex numbers are pairs of columns, a real and an imaginary part, and everything that is linear
// does not see the difference; W knows how it multiplies them (operator.Complex). The
// variances of both parts are the same, and the output functions of a complex channel and the
// posterior of a complex prior take them together. So a complex problem is a real one with twice
// the columns, whose noise and signals have half their variance in each.

// eachPair calls f with the places in X, or any other array of entries, of both parts of every entry.
func (s *extent) eachPair(f func(re, im int)) {
	for k := 0; k+1 < s.P; k += 2 {
		for i := range s.N {
			f(k*s.N+i, (k+1)*s.N+i)
		}
	}
}

// sumTurns is sumPulls along the phase of complex signals.
func (s *State) sumTurns() {
	s.nextTurn = 0
	if s.columns == 1 {
		return
	}
	s.eachPair(func(re, im int) {
		s.nextTurn += (s.X[im]*(s.Lambda[re]-s.X[re]) - s.X[re]*(s.Lambda[im]-s.X[im])) / s.Sigma[re]
	})
}

// turn multiplies the signals' estimates by e^{iθ}, as rescale does with a real factor.
func (s *State) turn(theta float64) {
	sin, cos := math.Sincos(theta)
	turned := func(re, im *float64) { *re, *im = cos**re-sin**im, sin**re+cos**im }
	a := &s.all
	for _, v := range [][]float64{a.x, s.turned.entries} {
		for k := 0; k < s.P; k += 2 {
			for i := range s.N {
				turned(&v[k*s.N+i], &v[(k+1)*s.N+i])
			}
			first := s.P*s.N + k*s.further.Extra
			for i := range s.further.Extra {
				turned(&v[first+i], &v[first+s.further.Extra+i])
			}
		}
	}
	for _, v := range [][]float64{a.g, s.turned.readings} {
		for j := 0; j < len(v); j += 2 {
			turned(&v[j], &v[j+1])
		}
	}
	if p, ok := s.calibration.(channel.Turning); ok {
		p.Turn(s.Past.Stats, theta)
	}
}

// unevenSize is the size of the start where no phase is preferred, in standard deviations of the signals; unevenEntry that of a start at one entry, in those of a whole signal: a tenth of
// its energy. Of 20 problems with 512 to 2048 rows and columns of the Fourier transform and 5 or 10 signals 14 were found from such an entry, 12 with a tenth of the size, and 11 from noise.
const (
	unevenSize  = 0.1
	unevenEntry = 0.3
)

// startUneven makes the start one that prefers phases, the same in every run with the same draw. Where signals that are shifted differ in nothing but the phases of gains, as behind rows of the Fourier transform, noise
// prefers all shifts a little, and they compete the longer the more there are: then the shift is chosen in which one signal has its middle entry.
func (s *State) startUneven(draw uint64, shifts bool) {
	spread := math.Sqrt(s.model.Prior.Variance())
	s.uneven = make([]float64, len(s.X))
	if shifts {
		signal := int(draw) % (s.P / 2)
		s.uneven[2*signal*s.N+s.N/2] = unevenEntry * math.Sqrt(2*float64(s.N)) * spread
	} else {
		rng := rand.New(rand.NewPCG(17+draw, uint64(len(s.X))))
		for i := range s.uneven {
			s.uneven[i] = unevenSize * spread * rng.NormFloat64()
		}
	}
	s.Reset()
}

// shifts reports whether W is rows of the Fourier transform, of which a shift of all signals changes phases only, and the noise is learned: one that is known, and small, would trust all of a start of which one
// entry is right. Of 24 problems with known noise 12 were found from an entry, and 22 from noise.
func (b *planner) shifts() bool {
	w, is := b.W.(*operator.Complex)
	if !is || !b.LearnNoise {
		return false
	}
	_, fourier := w.Rows()
	return fourier
}

// phasesOpen says that the readings do not tell yet how s turns them: most of E|s|² is variance.
func (s *sensorState) phasesOpen() bool {
	if s.columns == 1 {
		return false
	}
	known, open := 0.0, 0.0
	for mu, size := range s.S {
		known += size * size
		open += s.SVar[mu]
	}
	return known < open
}

// complexPriorOf is what is known of complex gains; false where gains are real, or known.
func complexPriorOf(m Model) (channel.ComplexPrior, bool) {
	p, ok := channel.CalibrationOf(channel.InOrder(m.Channel)).(channel.ComplexPrior)
	return p, ok
}

func (b *planner) complex() bool { return prior.ColumnsOf(b.Model.Prior) == 2 }

// numbers is how many real ones an entry of W is.
func (b *planner) numbers() int64 {
	if b.pairs() {
		return 2
	}
	return 1
}

// complexNumbers requires all parts of a model to be complex, or none.
func (b *planner) complexNumbers() (on bool, why string, err error) {
	_, table := b.W.(*operator.Complex)
	calibration := channel.CalibrationOf(b.Model.Channel)
	_, gains := calibration.(channel.Turning)
	switch {
	case !b.complex() && gains:
		return false, "", fmt.Errorf("complex gains need a prior of complex signals, found a %T", b.Model.Prior)
	case !b.complex() && table:
		return false, "", fmt.Errorf("a complex W needs a prior of complex signals, found a %T", b.Model.Prior)
	case !b.complex():
		return false, "not needed: signals are real", nil
	case calibration != nil && !gains:
		return false, "", fmt.Errorf("complex signals need a channel of complex gains, found a %T", b.Model.Channel)
	case b.P%2 != 0:
		return false, "", fmt.Errorf("complex signals have two columns each, found %d", b.P)
	case b.full():
		return false, "", errors.New("full covariances are for real numbers")
	case table:
		return true, "W and signals are complex", nil
	}
	return true, "W is real, signals are complex", nil
}

// unevenStart is for phases of which nothing is known: x̂ = 0 is then a fixed point, whatever
// the readings say.
func (b *planner) unevenStart() (on bool, why string, err error) {
	p, ok := complexPriorOf(b.Model)
	return unless("nothing is known of phases: at zero signals would stay", []reason{
		{!ok, "not needed: gains are real, or known"},
		{!p.Free(), "not needed: something is known of phases"},
		{b.stream(), "not needed: earlier samples say something of phases"},
		{b.Start != nil, "not needed: the start says something of phases"},
	})
}

func (b *planner) phaseStep() (on bool, why string, err error) {
	p, ok := complexPriorOf(b.Model)
	return unless("with every scale step", []reason{
		{!ok, "not needed: gains are real, or known"},
		{p.Known(), "not needed: phases are known"},
		{p.Free(), "not needed: the common phase is a convention"},
		{b.NoScaleStep, asked},
	})
}

func (b *planner) makePhaseStep(*Solver) (Part, error) { return &phaseStep{}, nil }

// phaseRange bounds one phase step, in radians.
const phaseRange = 0.5

// phaseStep turns all estimates to the common phase with the largest evidence, where something is
// known of phases beforehand (see [scaleEvidence], whose Φ is then one of a complex c):
//
//	∂Φ/∂θ = -2 Im Σ_µ (1-π_µ) ŝ* cB + 2 Im S,   S = Σ x̂(λ-x̂)*/Σ.
type phaseStep struct {
	Idle
	next   int
	placed bool
}

func (p *phaseStep) Begin(*Solver) { p.next, p.placed = 0, false }

func (p *phaseStep) After(s *Solver, l *Line) Verdict {
	if l.Index >= max(p.next, s.began+firstScaleStep) {
		p.next = l.Index + scaleStepEvery
		e := alongPhase(s.State)
		theta, sd := e.argmax()
		s.State.turn(theta)
		s.Turn += theta
		p.placed = math.Abs(theta) <= max(s.Tolerance(), scaleTolerance*sd) || s.movesNothing(math.Abs(theta))
	}
	if !p.placed {
		return Unfinished
	}
	return GoOn
}

// turnable is a channel that has the derivatives of the evidence of a block along the phase common to all of its sensors.
type turnable interface {
	PhaseDerivatives(turn float64, b *channel.Block) (first, second float64)
}

// phaseEvidence is the evidence along the common phase.
type phaseEvidence struct {
	channel turnable
	sensors *channel.Block
	signals float64 // 2 Im S
}

func alongPhase(s *State) phaseEvidence {
	return phaseEvidence{channel: channel.InOrder(s.model.Channel).(turnable), sensors: &s.sensors, signals: s.fieldTurn}
}

// slope is its derivative, with an estimate of the second.
func (e *phaseEvidence) slope(theta float64) (first, second float64) {
	first, second = e.channel.PhaseDerivatives(theta, e.sensors)
	return first + e.signals, second
}

// argmax is where it is largest, and its standard deviation by the curvature there. The estimate of the second derivative is for the first step:
// later ones are by the secant, which has all of it.
func (e *phaseEvidence) argmax() (theta, sd float64) {
	bracket := search.Bracket{Lo: -phaseRange, Hi: phaseRange, Falling: true}
	var last, before float64
	ended := false
	for k := range 60 {
		first, second := e.slope(theta)
		sd = phaseSDFrom(-second)
		if first*theta > 0 && math.Abs(theta) == phaseRange {
			break // it is largest at the end
		}
		if secant := (first - before) / (theta - last); k > 0 && secant < 0 {
			second = secant
		}
		last, before = theta, first
		next := bracket.Next(theta, first, second)
		if !ended && !(math.Abs(theta-first/second) < phaseRange) {
			next, ended = math.Copysign(phaseRange, first), true
		}
		step := math.Abs(next - theta)
		if theta = next; step < 1e-15 || step < 1e-9*sd { // the next would be far smaller
			break
		}
	}
	return theta, sd
}

// phaseSDFrom is the standard deviation of a phase with so much curvature.
func phaseSDFrom(curvature float64) float64 {
	if curvature > 0 {
		return min(math.Pi, 1/math.Sqrt(curvature))
	}
	return math.Pi
}

// sd is the standard deviation of the common phase, by the curvature at the present one.
func (e *phaseEvidence) sd() float64 {
	const step = 1e-4
	ahead, _ := e.slope(step)
	behind, _ := e.slope(-step)
	return phaseSDFrom((behind - ahead) / (2 * step))
}

// PastPhaseSD is [Solver.PhaseSD] for a past on its own, with its statistics of all sensors. The signals' prior is circular, so
// that S of the past is real.
func (s *State) PastPhaseSD(past Past) (sd float64, known bool) {
	p, ok := complexPriorOf(s.model)
	switch {
	case !ok || p.Known():
		return 0, true
	case p.Free():
		return 0, false
	}
	e := phaseEvidence{channel: channel.InOrder(s.model.Channel).(turnable), sensors: s.sensorsOf(past)}
	return e.sd(), true
}

// PhaseSD is the standard deviation of the phase common to all signals and gains, in radians, which
// the readings do not determine: 0 where phases are real or known, and not known (false) where it is a
// convention.
func (s *Solver) PhaseSD() (sd float64, known bool) {
	p, ok := complexPriorOf(s.State.model)
	switch {
	case !ok || p.Known() || p.Pairs != nil: // which no common phase of rows is one of
		return 0, true
	case p.Free():
		return 0, false
	}
	e := alongPhase(s.State)
	return e.sd(), true
}

// complexChiSquare is ChiSquare for complex readings, of which each counts as two.
func (s *State) complexChiSquare(mu int, amplitude float64) (chi float64) {
	c := complex(amplitude, 0)
	if p, ok := complexPriorOf(s.model); ok {
		c *= p.PhaseOf(s.Of(s.Stats, mu))
	}
	for j := mu * s.Each; j < (mu+1)*s.Each; j += 2 {
		y := complex(s.Y[j], s.Y[j+1])
		if math.IsNaN(s.Y[j]) || math.IsNaN(s.Y[j+1]) {
			continue
		}
		d := c*y - complex(s.Omega[j], s.Omega[j+1])
		chi += (real(d)*real(d) + imag(d)*imag(d)) / s.Doubt(j)
	}
	return 0.5 * chi // per complex reading, as Readings counts them
}

// Standardized are the distances of readings from their predictions in standard deviations, M×P; 0 for those that are missing, or clipped
// where they should be. Where readings are not z plus noise they are the scores g, in units of the size that the likelihood expects.
func (s *State) Standardized() []float64 {
	out := make([]float64, len(s.Y))
	if !channel.Additive(s.model.Channel) {
		count, slope := 0.0, 0.0
		for j, d := range s.DG {
			if !math.IsNaN(s.Y[j]) {
				count, slope = count+1, slope-d
			}
		}
		for j, g := range s.G {
			out[j] = g / math.Sqrt(max(slope/max(1, count), math.SmallestNonzeroFloat64))
		}
		return out
	}
	limit := channel.LimitOf(s.model.Channel)
	for j, y := range s.Y {
		d := s.Residual(s.SensorOf(j), j%s.Each)
		if math.IsNaN(y) || channel.Clipped(y, limit) && d*y < 0 {
			continue
		}
		out[j] = d / math.Sqrt(max(s.Doubt(j), math.SmallestNonzeroFloat64))
	}
	return out
}

// Residual is ŝ y - ω of a sensor in column k: of complex numbers, the part of them that stands there. NaN where nothing was read.
func (s *State) Residual(mu, k int) float64 {
	if s.columns < 2 {
		return s.S[mu]*s.Reading(mu*s.Each+k) - s.Omega[mu*s.Each+k]
	}
	j := mu*s.Each + k - k%2
	d := cmplx.Rect(s.S[mu], s.Phase[mu])*complex(s.Y[j], s.Y[j+1]) - complex(s.Omega[j], s.Omega[j+1])
	if k%2 == 0 {
		return real(d)
	}
	return imag(d)
}
