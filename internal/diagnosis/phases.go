package diagnosis

import (
	"fmt"
	"math"

	"github.com/calamp/calamp/channel"
)

// phasesContradicted is the logarithm of how much likelier another spread of the phases must be than the one that was given: by chance that happens to one in 10⁵.
const phasesContradicted = 10

// warnPhases is about phases that are not spread as was given.
func (r *Run) warnPhases() *Warning {
	stated, ok := r.calibration().(channel.Turning)
	if !ok || !r.Converged || r.Solver.Iterations == 0 {
		return nil
	}
	message := PhasesContradict(stated, r.state.Stats, r.outOfOrder())
	if r.LearnPhases {
		message = phasesAnywhere(stated, r.state.Stats, r.outOfOrder())
	}
	if message == "" {
		return nil
	}
	return &Warning{Code: PhaseSpread, Message: message}
}

// aboutNominal is the logarithm of how much likelier learned phases must be about the nominal ones than anywhere: by chance, and the best common phase, that
// happens to one in a hundred.
const aboutNominal = 4.6

// phasesAnywhere says so of phases whose spread was learned; empty where they are about the nominal ones.
func phasesAnywhere(learned channel.Turning, stats []float64, omit []bool) string {
	ratio := learned.AboutNominal(stats, omit)
	if ratio > aboutNominal {
		return ""
	}
	return fmt.Sprintf("the spread of phases about the nominal ones was learned as κ = %.2g, and free phases are as likely (log-likelihood ratio %.2g): "+
		"the common phase, and its phase_sd, carry no information; give --phase free", learned.Phases(), ratio)
}

// PhasesContradict says so of statistics of sensors; empty where they do not.
func PhasesContradict(stated channel.Turning, stats []float64, omit []bool) string {
	kappa, ratio := stated.PhaseSpread(stats, omit)
	if !(ratio > phasesContradicted) {
		return ""
	}
	was := fmt.Sprintf("with κ = %g", stated.Phases())
	if channel.PhasesKnown(stated) {
		was = "as known"
	}
	return fmt.Sprintf("the phases were given %s, but the likeliest ones are spread about them with κ = %.2g, by some %.2g rad (log-likelihood ratio %.3g): "+
		"the common phase and its phase_sd depend on the given prior, and so do signals where readings carry little information; give --phase %.2g, or free", was, kappa, min(math.Pi/math.Sqrt(3), 1/math.Sqrt(kappa)), ratio, kappa)
}
