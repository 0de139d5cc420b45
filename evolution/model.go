// Package evolution predicts the errors of cal-AMP, iteration by iteration, before any
// reading is taken: it depends on priors, channels and the limit of large N, and not on
// the solver, or on any particular W. The method is state evolution; that it agrees with
// the solver is a test of both (docs/theory.md).
package evolution

import (
	"errors"
	"fmt"
	"math"

	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/prior"
)

// Model is a problem in the limit of large N: W has independent entries of
// variance 1/N, P signals have independent entries, and sensor µ reads
// (z_µk + ε_µk)/s_µ.
type Model struct {
	Signal   prior.GaussBernoulli // of a signal's entry
	Gain     channel.GainPrior    // of s; [Known] for known gains
	NoiseVar float64              // Δ ≥ 0, variance of ε
	Alpha    float64              // α = M/N > 0
	P        int                  // signals

	Groups []Group // of a signal's entries, when set, in place of Signal

	// OffsetSD is the standard deviation of the sensors' offsets, which read (z + ε)/s + o with o ~ N(0, OffsetSD²), in the
	// units of the readings. Averages are then over points (offsets.go), with their standard errors.
	OffsetSD float64

	// Network, when set, are the layers that signals come out of, from the latents on; Signal is then a latent's entry. Averages over an entry are then over
	// points, with standard errors, and the mutual information is NaN.
	Network []Layer

	// Readings, when set, are what sensors make of (z + ε)/s: codes, counts, noise of their own. Averages are then over points, with their standard errors.
	Readings *Readings

	// Entries, when set, is the prior of an entry in place of Signal, and need not be Gaussian.
	Entries prior.Slabbed
}

// Known is the prior of a calibration variable that is known to be s. With it
// cal-AMP is ordinary compressed sensing (the AWGN channel), and P does not matter.
func Known(s float64) channel.GainPrior { return channel.GainPrior{Lo: s, Hi: s} }

// Calibrated is the model of compressed sensing with known gains.
func Calibrated(signal prior.GaussBernoulli, noiseVar, alpha float64) Model {
	return Model{Signal: signal, Gain: Known(1), NoiseVar: noiseVar, Alpha: alpha, P: 1}
}

// Validate reports a parameter that describes no model.
func (m Model) Validate() error {
	if err := validGroups(m.groups()); err != nil && m.Entries == nil {
		return err
	}
	if err := validGain(m.Gain); err != nil {
		return err
	}
	if m.Entries != nil {
		if err := m.validEntries(); err != nil {
			return err
		}
	}
	if m.Network != nil {
		if err := validNetwork(m); err != nil {
			return err
		}
	}
	if m.OffsetSD != 0 {
		if err := m.validOffsets(); err != nil {
			return err
		}
	}
	if m.Readings != nil {
		if err := m.Readings.validate(m); err != nil {
			return err
		}
	}
	switch {
	case !(m.NoiseVar >= 0) || math.IsInf(m.NoiseVar, 1):
		return fmt.Errorf("noise variance must be finite and not negative, found %g", m.NoiseVar)
	case !(m.Alpha >= 1/mostAlpha && m.Alpha <= mostAlpha):
		return fmt.Errorf("the measurement rate α = M/N must be in [%g, %g], found %g", 1/mostAlpha, mostAlpha, m.Alpha)
	case m.P < 1:
		return fmt.Errorf("the number of signals P must be at least 1, found %d", m.P)
	}
	return nil
}

func (m Model) validEntries() error {
	if m.Groups != nil || m.OffsetSD != 0 || m.Network != nil || m.Readings != nil {
		return errEntriesOffline
	}
	return m.Entries.Validate()
}

var errEntriesOffline = errors.New("state evolution of entries that are not Gaussian is offline, for one prior of all, sensors without offsets that read (z + noise)/s, and a student who knows the model")

// mostAlpha: no machine has more than 10¹² sensors, or entries.
const mostAlpha = 1e12

// mostMean bounds the mean of what is not zero, in its standard deviations: at an error of 10⁻⁵ v the field is 3·10⁻³ √v wide, and
// beside a mean of 10¹⁰ √v numbers are 10⁻⁶ √v apart.
const mostMean = 1e10

func (m Model) validOffsets() error {
	if math.IsInf(m.OffsetSD, 1) {
		return errors.New("the standard deviation of offsets must be finite")
	}
	if m.Gain.Lo == m.Gain.Hi {
		return errors.New("offsets need gains that are not known")
	}
	return m.offsets().Validate()
}

func (m Model) offsets() channel.OffsetPrior {
	return channel.OffsetPrior{Gain: m.Gain, SD: m.OffsetSD}
}

func validGain(g channel.GainPrior) error {
	if g.Lo == g.Hi && g.Lo > 0 && !math.IsInf(g.Lo, 1) {
		return nil // known
	}
	if g.Each != nil {
		return errors.New("state evolution is for sensors of one distribution: found some that are known by themselves")
	}
	if g.Tail > 0 {
		return fmt.Errorf("state evolution is for sensors of one distribution: found a fraction %g of outlying gains", g.Tail)
	}
	return g.Validate()
}

// secondMoment is q₀ = E x².
func secondMoment(g prior.GaussBernoulli) float64 {
	return g.Density * (g.SignalVar + g.SignalMean*g.SignalMean)
}

// Number is a computed value with an estimate of its absolute error. For
// deterministic results that is the error of the quadrature, with what the errors of
// earlier iterations add to it; for Monte Carlo it is one standard error.
type Number struct{ Value, Err float64 }

// Relative is the error relative to the value.
func (n Number) Relative() float64 { return n.Err / math.Abs(n.Value) }

func (n Number) String() string { return fmt.Sprintf("%.10g ± %.1e", n.Value, n.Err) }
