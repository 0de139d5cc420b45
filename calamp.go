// Package calamp recovers sparse signals from readings of sensors whose gains
// are unknown, and the gains with them: blind calibration for compressed sensing.
//
// The model, with W known and everything else not:
//
//	y_µk = (Σ_i W_µi x_ik + ε_µk) / s_µ,   ε ~ N(0, Δ),
//
// where
//
//	W   M×N   measurement matrix, used as given
//	X   N×P   signals, one a column, entries independent with a known (sparse) prior
//	s   M     calibration of the sensors, positive, with a known prior; the multiplicative gain is 1/s
//	Y   M×P   readings; NaN where one is missing
//
// [Solve] runs offline cal-AMP, all signals at once. The algorithm is that of M.
// Gabrié, J. Barbier, F. Krzakala and L. Zdeborová, "Blind calibration for
// compressed sensing: state evolution and an online algorithm", with its
// misprints corrected, and with damping and a step along the global scale that
// make it converge where the published recursion drifts; [Published] gives the
// options that switch these off.
//
// The readings do not change when all signals and all s are multiplied by the
// same number, so the overall scale comes from the priors alone. A [Result]
// says how well it is known; [Score] compares with a known truth before and
// after removing it.
package calamp

import (
	"gonum.org/v1/gonum/mat"

	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/operator"
	"github.com/calamp/calamp/prior"
)

// Problem is the readings and all that is known of where they come from.
//
// Signals, matrix and gains are complex when Prior is a [prior.ComplexGaussBernoulli] and Channel a
// [channel.ComplexGain]. A signal then has two columns of Y, and of the results X, XVar and
// Residual: its real parts, and beside them its imaginary parts. W is an [operator.Complex], or real.
type Problem struct {
	W       operator.Operator // M×N
	Y       *mat.Dense        // M×P; NaN is a missing reading
	Prior   prior.Prior       // of a signal's entry
	Channel channel.Channel   // from z = Wx to readings

	// NoiseVar is the noise variance of every sensor (M), or of every reading (M×P, sensor
	// by sensor), in place of the channel's, which must be a [channel.Noisy]. The default,
	// nil, is that of the channel for all.
	NoiseVar []float64

	// Sensors (M) is the sensor that each row of W is read with, from 0; nil where every row has a sensor of its own. All that is of
	// sensors, the calibration s above all, is then of as many as there are (S), and what is of readings stays M×P.
	Sensors []int

	// Phases are nominal phases of complex gains, in radians, about which their prior is (M); nil for 0.
	Phases []float64

	rows  *rowMap           // of a problem whose rows were put together; nil for others
	given operator.Operator // W before that
}

// Truth is what a synthetic problem was made from, where it is known.
type Truth struct {
	X *mat.Dense // N×P, or nil
	S []float64  // M, or nil
	O []float64  // M, the sensors' offsets (y = z/s + o), or nil

	// NoiseVar (M, or M×P) is the noise variance of every sensor, or of every reading; nil where
	// all have the same.
	NoiseVar []float64

	// Phase is the argument of complex s (M), whose modulus is S. X then has two columns a signal.
	Phase []float64
}
