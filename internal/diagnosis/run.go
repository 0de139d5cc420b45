// Package diagnosis says what a run was worth: whether its fixed point can be
// trusted, what kept it from getting there, and what a user should know before
// trusting the result. It reads the solver's state in the end, and changes nothing.
package diagnosis

import (
	"sync"

	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/internal/amp"
	"github.com/calamp/calamp/operator"
	"github.com/calamp/calamp/solver"
)

// Run is a run that has ended, with what was asked of it.
type Run struct {
	Solver   *amp.Solver
	Plan     *solver.Plan
	Settings solver.Settings
	Limit    int // of iterations

	LearnNoise, LearnCalibration bool
	LearnPhases                  bool
	Anchored                     bool // known calibrations hold the scale

	GivenNoise float64 // the channel's noise variance as given
	Rounding   float64 // noise variance that stands for what rounding W took away

	Silent []int // sensors with no usable reading
	Zero   []int // of these, the ones whose readings are all exactly zero

	Outcome   amp.Outcome
	Changes   []float64 // largest relative change of a signal in each iteration
	Converged bool      // and trusted
	Doubtful  bool      // at a fixed point whose estimates disagree with their variances

	// FalselySure says that vector AMP converged where its error bars cannot be right.
	FalselySure bool

	state  *amp.State
	oracle []float64 // P, what [Run.flatness] found for each signal; nil where it has not looked
	excess float64   // what Excess found; 0 where it has not looked
	edges  edges

	// What several ask for is computed once.
	spectrum func() spectrum
	broken   func() []channel.BrokenSensor
	inCommon func() float64 // part of the readings' power in common proportions
	apart    func() (apart Apart, between float64)
}

// spectrum is the largest and the smallest singular value of W, see [operator.Spectrum].
type spectrum struct {
	largest, smallest float64
	err               error
}

func (r *Run) spectrumOfW() (s spectrum) {
	s.largest, s.smallest, s.err = operator.Spectrum(operator.RealOf(r.Solver.Matrix), r.state.Threads)
	return s
}

// Of prepares the diagnosis of a run.
func Of(r Run) *Run {
	r.state = r.Solver.State
	d := &r
	d.spectrum = sync.OnceValue(d.spectrumOfW)
	d.broken = sync.OnceValue(d.findBroken)
	d.apart = sync.OnceValues(d.findRowsApart)
	d.inCommon = sync.OnceValue(func() float64 {
		_, share := amp.Proportions(d.state.Readings(), d.state.Each)
		return share
	})
	if d.blind() && !d.LearnCalibration {
		d.edges = d.findEdges()
	}
	return d
}

// SignalConverged reports whether signal k met its tolerance.
func (r *Run) SignalConverged(k int) bool {
	return r.Solver.Settled[k] >= amp.SettledFor && !r.Doubtful
}

// rangeTest is the part that tested the given range, and whether it rejected it; nil
// where there was none.
func (r *Run) rangeTest() (test *amp.RangeTest, rejected bool) {
	test, ok := amp.PartOf[*amp.RangeTest](r.Solver)
	return test, ok && test.Rejected
}

// LearnsCalibration reports whether the distribution of s was learned, asked or not.
func (r *Run) LearnsCalibration() bool {
	_, rejected := r.rangeTest()
	return rejected || r.LearnCalibration
}

// Rejected is the range of s that was given and rejected; nil where it was not.
func (r *Run) Rejected() channel.Bounded {
	if test, rejected := r.rangeTest(); rejected {
		return test.Given
	}
	return nil
}

// bounds are those between which s was given, or learned, to lie.
func (r *Run) bounds() (lo, hi float64) {
	if test, rejected := r.rangeTest(); rejected {
		return test.Given.Range()
	}
	return r.calibration().Range()
}

// vector says whether the run was one of vector AMP, which is right for any spectrum of W.
func (r *Run) vector() bool { return r.Plan.Algorithm == solver.VAMP }

// signals is how many there are: a complex one has two columns.
func (r *Run) signals() int { return r.state.P / r.state.Columns() }

// complex says whether readings are pairs of columns, which s turns.
func (r *Run) complex() bool { return r.state.Columns() > 1 }

func (r *Run) model() amp.Model                 { return r.state.Model() }
func (r *Run) calibration() channel.Calibration { return r.state.Calibration() }
func (r *Run) additive() bool                   { return channel.Additive(r.model().Channel) }
func (r *Run) blind() bool                      { return r.calibration() != nil }
func (r *Run) noise() float64                   { return r.state.TypicalNoise() }
func (r *Run) stats(mu int) []float64           { return r.state.Of(r.state.Stats, mu) }

// proportional is the part of the readings' power that is in proportions common to all
// sensors; 0 where gains could not make up for it.
func (r *Run) proportional() float64 {
	if !r.blind() || r.state.Each < 2 || r.complex() {
		return 0
	}
	return r.inCommon()
}

// Warning is something a user should know before trusting a result.
type Warning struct {
	Code    string
	Message string
	Sensors []int // rows of W, from 0
	Signals []int // columns of Y, from 0
}

// Codes of warnings, for programs.
const (
	TooFewMeasurements   = "too-few-measurements"
	NothingLearned       = "nothing-learned"
	UnexplainedVariance  = "unexplained-variance"
	MatrixMean           = "matrix-mean"
	MatrixSpectrum       = "matrix-spectrum"
	SignalsAlike         = "signals-alike"
	SensorAtEdge         = "sensor-at-edge"
	SignalNotConverged   = "signal-not-converged"
	SilentSensor         = "silent-sensor"
	SensorBroken         = "sensor-broken"
	ManyBroken           = "many-broken"
	UnmeasuredEntry      = "unmeasured-entry"
	RoundedMatrix        = "rounded-matrix"
	SingleSignal         = "single-signal"
	ScaleFromGains       = "scale-from-gains"
	ScaleFromNoise       = "scale-from-noise"
	RangeNotLearned      = "range-not-learned"
	OnlyNoise            = "only-noise"
	RangeNotFilled       = "range-not-filled"
	ScaleContradicted    = "scale-contradicted"
	UnrecoveredOrNoise   = "unrecovered-or-noise"
	SignalsUnlikePrior   = "signals-unlike-prior"
	Offsets              = "offsets"
	ClippedReadings      = "clipped-readings"
	OffsetsFewSignals    = "offsets-few-signals"
	OffsetsCommonEntries = "offsets-common-entries"
	NoiseUnequal         = "noise-unequal"
	NoiseElsewhere       = "noise-elsewhere"
	KnowledgeMismatch    = "s-prior-mismatch"
	GainsNotSmooth       = "gains-not-smooth"
	CommonMode           = "common-mode"
	OutlyingReadings     = "outlying-readings"
	EstimatedTraces      = "estimated-traces"
	PhaseSpread          = "phase-spread"
	ShiftedDirections    = "shifted-directions"
	ColumnsAlike         = "columns-alike"
	GainsInSignals       = "gains-in-signals"
	GaussianSignals      = "gaussian-signals"
	NotMixed             = "not-mixed"
	SeparateParts        = "separate-parts"
	HalvesDisagree       = "halves-disagree"
	RowsDisagree         = "rows-disagree"
	NotSparse            = "not-sparse"
	FitsDisagree         = "fits-disagree"
)
