package calamp

import (
	"fmt"
	"time"

	"gonum.org/v1/gonum/mat"

	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/internal/amp"
	"github.com/calamp/calamp/internal/diagnosis"
	"github.com/calamp/calamp/internal/warning"
	"github.com/calamp/calamp/prior"
	"github.com/calamp/calamp/solver"
)

// Result is what a run ended with. It never holds a NaN or an Inf: a run that
// diverges returns its last finite estimate, and says so in Status. It has many fields, and none within others:
// they are the arrays of a result's file, as users name them.
type Result struct {
	X    *mat.Dense // N×P, posterior means of the signals
	XVar *mat.Dense // N×P, posterior variances

	S    []float64 // M, posterior means of the calibration variables (y = z/s)
	SVar []float64 // M, posterior variances, at a fixed global scale
	Gain []float64 // M, the multiplicative gains 1/S

	// Offset and OffsetVar (M) are the posterior means and variances of the sensors' offsets, y = z/s + o, in the
	// units of the readings; nil unless the channel is a [channel.Offset].
	Offset, OffsetVar []float64

	// Phase (M) is the argument of s in radians, where gains are complex: S is then the modulus of the
	// posterior mean, SVar the variance of both parts together, and Gain 1/S. PhaseSD is the standard
	// deviation of the phase common to X and s, which the readings do not determine. Where nothing is known of phases
	// beforehand it is a convention (PhaseFree), that of the anchor, or that the sum of all s is positive.
	Phase     []float64
	PhaseSD   float64
	PhaseFree bool

	// Sensors (M) is the sensor that each row of W was read with, as the problem has it; nil where every row is a sensor of its own. Elsewhere
	// what is said to have M values here has one for each of so many sensors, and [Result.OfRows] has those of rows; Residual and Outlier are M×P.
	Sensors []int

	// RowS and RowSVar (as many as rows of W) are s of every row and its variance, where rows of a sensor were found to have gains of their own (the warning [RowsDisagree]); nil elsewhere. S is
	// then what rows of a sensor have in common.
	RowS, RowSVar []float64

	// Broken (M) holds the probability of each sensor that its readings have
	// nothing to do with the signals; BrokenSensors are those where it is above
	// 1/2, and FaultRate is ε. Nil and 0 unless the channel is [channel.Faulty].
	Broken        []float64
	BrokenSensors []channel.BrokenSensor
	FaultRate     float64

	// Outlier (M×P, one column a complex signal, too) holds the probability of each reading to be an outlier, 0 where one is
	// missing; those above 1/2 were left out. Nil unless they were looked for.
	Outlier *mat.Dense

	// ScaleSD is the relative standard deviation of the global scale common to
	// X and S, which the readings do not determine: an error bar of its own,
	// beside XVar and SVar. It is 0 when the channel does not calibrate.
	ScaleSD float64

	// Calibration is what S, SVar and the intervals of SInterval come from; nil
	// when the channel does not calibrate, and for a result read from a file.
	Calibration *channel.Posteriors

	// Residual (M×P) holds (ŝ y - ω)/√(V+Δ), of order one where the model
	// explains the readings; 0 where a reading is missing, or clipped as it should be. For a channel
	// that is not [channel.Additive] it holds g over the root of the mean of -∂g, whose mean square is 1 as well.
	Residual *mat.Dense

	// The model behind the result: the problem's, with what was learned.
	Prior prior.Prior

	// Amplitude (P) is how large each signal was found to be: signal k is Amplitude[k] times one
	// of Prior. Their mean square is 1. It is nil where signals are taken to have one variance: it is
	// learned together with a prior that differs by entry ([prior.Varied]).
	Amplitude []float64
	Channel   channel.Channel

	// SignalCov (P×P; P×2P, [Pairs] of Hermitian numbers, where signals are complex) is the covariance across signals of an entry that is not zero, and Support (N) the probability of each entry that it is
	// not zero, in all signals at once: where signals belong together ([Options.Joint]). Prior is then what this is on average. Of a network they are those of its latents (N₂). Nil elsewhere.
	SignalCov *mat.Dense
	Support   []float64

	// ColumnShift and ColumnShiftSD (N) are by how many columns of W the source of an entry lies beside the column of the entry, as a direction beside a point of the grid, and the standard deviation of that; zero of
	// all that were not learned to be between columns. Nil where none was.
	ColumnShift, ColumnShiftSD []float64

	// Latent and LatentVar (N₂×P) are the posterior means and variances of the latents, where signals come out of a network ([prior.Network]); nil elsewhere.
	Latent, LatentVar *mat.Dense

	// SlackSD is how well the slack of a network is known that was learned ([prior.Network.WithSlack]): its standard deviation, as far as the readings of
	// signals determine it; 0 elsewhere.
	SlackSD float64

	// NoiseVar (M) is the noise variance of every sensor, on average over its readings, where
	// they differ, given or learned: then that of Channel is their harmonic mean. Nil
	// where all readings have the channel's. Of noise that sensors add themselves, which Channel has as a [channel.Detector], it is what
	// that is before the division by s; what Channel has of such noise is then as given.
	NoiseVar []float64

	// MatrixError is by how much entries of W are wrong at random, relative to the root mean square of their row, given or learned, and
	// MatrixErrorSD its relative standard deviation; 0 where they are taken for right. What it adds to the noise is not in NoiseVar.
	MatrixError, MatrixErrorSD float64

	// Theta and ThetaSD (M×J) are the means and standard deviations of the parameters of every sensor, and SensorSpread (J) their spreads over the
	// sensors, given or learned: where [Options.SensorDerivatives] were given. Nil elsewhere.
	Theta, ThetaSD *mat.Dense
	SensorSpread   []float64

	// Plan is what the run did, and why it left out what it did not do.
	Plan *solver.Plan

	Status     Status
	Reason     string // the status in a sentence, with numbers
	Iterations int
	Converged  []bool    // P, signal by signal
	Change     []float64 // P, last relative change of each signal

	// LogEvidence is the Bethe approximation of log p(Y|W) at the last iteration.
	LogEvidence float64

	// Storage is how the entries of W were stored: "f32", "f64", or "f32+f64", rounded to
	// single precision in the iterations that allow it; "" where the operator has none.
	// Arithmetic is the precision of the products with them, in the same words.
	Storage, Arithmetic string

	// MatrixScores say how surely W is wrong in each of [Options.Directions]; nil where none was given, or the iteration has none.
	MatrixScores []MatrixScore

	Trace    []Iteration
	Warnings []Warning // those that matter most first
	Wall     time.Duration

	notes
}

// notes are what further tries ask of a result, and what its methods need beside what it says.
type notes struct {
	odd         bool          // at odds with what was given, and learned all the same
	scores      *scores       // for [FitMatrix]
	ramp        []float64     // of phases of s (M) that move all directions by a step; nil where they are not free
	hovered     bool          // entries change places for ever
	rowsScatter bool          // residuals of rows of a sensor grow with what is expected
	rowsApart   bool          // rows of a sensor ask for gains that differ by more than noise explains
	silent      bool          // signals were integrated out, and the evidence is largest without any
	offsetScore float64       // by how many standard deviations the evidence rises with offsets, where signals were integrated out without them
	cut         bool          // and that they are sure enough for the run to have ended before its time
	field       field         // for Ranks
	ownRows     int           // of entries that are there in some signals only
	rowsThere   float64       // expected
	jointGain   float64       // at the fixed point, of signals that belong together
	oneScene    bool          // signals were solved as one
	rowSizes    float64       // see [joint.Prior.Sizes]
	ownSlab     bool          // see [amp.Solver.OwnSlab]
	placement   amp.Placement // for ScaleInterval; zero where Solve did not make the result
	detectorSD  float64       // relative, of what was learned of the noise that sensors add themselves
	logNoiseSD  float64       // of the logarithm of the noise variance, as far as readings determine it by themselves
	noisesGiven bool          // of each sensor, but for a common factor
}

// OutlyingReadings are the sensors and signals, from 0, of the readings that were left out.
func (r *Result) OutlyingReadings() (list [][2]int) {
	if r.Outlier == nil {
		return nil
	}
	_, p := r.Outlier.Dims()
	for j, probability := range r.Outlier.RawMatrix().Data {
		if probability > 0.5 {
			list = append(list, [2]int{j / p, j % p})
		}
	}
	return list
}

// Status says how a run ended.
type Status uint8

const (
	NotConverged     Status = iota // the iteration limit came first
	Converged                      // every signal met the tolerance
	Diverged                       // estimates blew up; the last sane ones are returned
	Cancelled                      // the context was cancelled
	NothingRecovered               // at a fixed point without information on the signals
	TimedOut                       // the time limit came first
)

// String is the status as written in JSON.
func (s Status) String() string {
	switch s {
	case Converged:
		return "converged"
	case Diverged:
		return "diverged"
	case Cancelled:
		return "cancelled"
	case NothingRecovered:
		return "nothing recovered"
	case TimedOut:
		return "time limit"
	default:
		return "not converged"
	}
}

// MarshalText implements encoding.TextMarshaler.
func (s Status) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText reads what MarshalText writes.
func (s *Status) UnmarshalText(text []byte) error {
	for _, known := range []Status{NotConverged, Converged, Diverged, Cancelled, NothingRecovered, TimedOut} {
		if string(text) == known.String() {
			*s = known
			return nil
		}
	}
	return fmt.Errorf("unknown status %q", text)
}

// Iteration is one line of a run's trace.
type Iteration struct {
	Try         int    // of the runs of [Options.Retry], from 1; 0 where it is not asked for
	What        string // the try in words; empty where Try is 0
	Algorithm   solver.Algorithm
	Index       int     // from 1
	Change      float64 // largest relative change of a signal, damping accounted for
	MeanXVar    float64 // mean posterior variance of the signals' entries
	MeanSVar    float64 // mean posterior variance of s
	MeanV       float64 // mean variance of z = Wx before its reading
	OffV        float64 // mean |off-diagonal| of V; 0 with diagonal covariances
	Scale       float64 // factor of the scale step; 1 when none was taken
	Damping     float64 // δ of this iteration
	LogEvidence float64 // Bethe approximation; exact meaning only at convergence; NaN where it is not computed ([Options.Evidence])
}

// Untrusted is the warning for which a result that converged is none: docs/warnings says so of it. It is nil where the result
// can be used, as far as its diagnosis goes.
func (r *Result) Untrusted() *Warning {
	for i, w := range r.Warnings {
		if warning.LevelOf(string(w.Code)) == warning.Untrusted {
			return &r.Warnings[i]
		}
	}
	return nil
}

// Warning is something a user should know before trusting a result.
type Warning struct {
	Code    WarningCode `json:"code"`
	Message string      `json:"message"`
	Sensors []int       `json:"sensors,omitempty"` // rows of W, from 0
	Signals []int       `json:"signals,omitempty"` // columns of Y, from 0
}

// WarningCode identifies the kind of a [Warning] to programs.
type WarningCode string

const (
	TooFewMeasurements   WarningCode = diagnosis.TooFewMeasurements   // α below α_min or α_CS
	NothingLearned       WarningCode = diagnosis.NothingLearned       // posterior of s as wide as its prior
	UnexplainedVariance  WarningCode = diagnosis.UnexplainedVariance  // errors far above what the noise explains
	MatrixMean           WarningCode = diagnosis.MatrixMean           // row or column means of W far from zero
	MatrixSpectrum       WarningCode = diagnosis.MatrixSpectrum       // W ill-conditioned or correlated: variances too small
	SignalsAlike         WarningCode = diagnosis.SignalsAlike         // gains can take the place of what signals have in common
	SensorAtEdge         WarningCode = diagnosis.SensorAtEdge         // s pinned at an end of its range
	SignalNotConverged   WarningCode = diagnosis.SignalNotConverged   // a signal above the tolerance
	SilentSensor         WarningCode = diagnosis.SilentSensor         // all readings missing, or all exactly zero
	SensorBroken         WarningCode = diagnosis.SensorBroken         // readings that have nothing to do with the signals, left out
	ManyBroken           WarningCode = diagnosis.ManyBroken           // so many of them that the model is in doubt
	UnmeasuredEntry      WarningCode = diagnosis.UnmeasuredEntry      // a zero column of W
	RoundedMatrix        WarningCode = diagnosis.RoundedMatrix        // W in single precision, as asked, beside little noise
	SingleSignal         WarningCode = diagnosis.SingleSignal         // P = 1: gains and signal hardly separate
	ScaleFromGains       WarningCode = diagnosis.ScaleFromGains       // the signals' scale was learned: gains alone hold the common one
	ScaleFromNoise       WarningCode = diagnosis.ScaleFromNoise       // the noise variance that was given alone holds the common scale
	RangeNotLearned      WarningCode = diagnosis.RangeNotLearned      // the readings do not determine the spread of s
	NoiseContradicted    WarningCode = "noise-contradicted"           // of a stream: the noise variance given explains no readings any more
	ToldContradicted     WarningCode = "told-contradicted"            // a density, mean or variance that was given is not that of the readings
	AnchorMismatch       WarningCode = "anchor-mismatch"              // anchors contradict each other, or the model
	OnlyNoise            WarningCode = diagnosis.OnlyNoise            // learned noise explains the readings without a signal
	RangeNotFilled       WarningCode = diagnosis.RangeNotFilled       // the given range is not that of the gains: they were learned within it
	ScaleContradicted    WarningCode = diagnosis.ScaleContradicted    // signals' variance and range of s imply different scales
	UnrecoveredOrNoise   WarningCode = diagnosis.UnrecoveredOrNoise   // learned noise may stand for signals that were not recovered
	SignalsUnlikePrior   WarningCode = diagnosis.SignalsUnlikePrior   // entries not zero or Gaussian: XVar was widened
	Offsets              WarningCode = diagnosis.Offsets              // the means of sensors' residuals are not zero: offsets, which are not in the model
	OffsetsFewSignals    WarningCode = diagnosis.OffsetsFewSignals    // with offsets and fewer than 10 signals error bars do not hold
	OffsetsCommonEntries WarningCode = diagnosis.OffsetsCommonEntries // signals not sparse enough to separate offsets from what they share
	NoiseUnequal         WarningCode = diagnosis.NoiseUnequal         // sensors' residuals differ in size: their noise does, which was taken to be the same
	NoiseElsewhere       WarningCode = diagnosis.NoiseElsewhere       // noise is behind the division by s, and was taken to be before it, or the reverse
	KnowledgeMismatch    WarningCode = diagnosis.KnowledgeMismatch    // sensors are not what was known of them
	GainsNotSmooth       WarningCode = diagnosis.GainsNotSmooth       // gains that belong together, but not as a kernel has it
	CommonMode           WarningCode = diagnosis.CommonMode           // in one signal all sensors read too much by the same amount, or by the same factor
	OutlyingReadings     WarningCode = diagnosis.OutlyingReadings     // single readings that nothing explains, left out
	ClippedReadings      WarningCode = diagnosis.ClippedReadings      // readings stop at a limit that was not given
	ShiftedDirections    WarningCode = diagnosis.ShiftedDirections    // other directions, with other phases of gains, are as likely
	PhaseSpread          WarningCode = diagnosis.PhaseSpread          // phases are not spread about the nominal ones as was given
	GainsInSignals       WarningCode = diagnosis.GainsInSignals       // gains and signals explain the same readings
	ColumnsAlike         WarningCode = diagnosis.ColumnsAlike         // entries may be found in the place of others
	GaussianSignals      WarningCode = diagnosis.GaussianSignals      // signals were taken for Gaussian, since message passing did not settle
	HalvesDisagree       WarningCode = diagnosis.HalvesDisagree       // halves of the snapshots have gains that differ by more than their errors
	RowsDisagree         WarningCode = diagnosis.RowsDisagree         // rows of one sensor ask for gains that differ by more than noise explains
	NotSparse            WarningCode = diagnosis.NotSparse            // signals have more entries than sensors can find, or hardly one that is zero
	FitsDisagree         WarningCode = diagnosis.FitsDisagree         // two sparse fits of the same readings have other signals
	NotMixed             WarningCode = diagnosis.NotMixed             // every entry of the signals is read by one sensor alone
	SeparateParts        WarningCode = diagnosis.SeparateParts        // W falls into parts that share no entry
	MatrixDoubtful       WarningCode = "matrix-doubtful"              // the evidence rises along a direction in which W may be wrong
	EstimatedTraces      WarningCode = diagnosis.EstimatedTraces      // vector AMP without a decomposition: precisions are estimates that scatter
)
