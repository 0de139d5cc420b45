package diagnosis

import (
	"fmt"

	"github.com/calamp/calamp/evolution"
	"github.com/calamp/calamp/internal/amp"
	"github.com/calamp/calamp/prior"
)

// takeNetwork makes the model that of signals which come out of a network, whose weights are taken for independent ones.
func (m *theory) takeNetwork(p prior.Prior) {
	network, ok := prior.NetworkOf(p)
	if !ok {
		return
	}
	m.Signal, m.Network = gaussBernoulli(network.Latents()), evolution.LayersOf(network)
}

// entries is what density is said of.
func (m *theory) entries() string {
	if m.Network != nil {
		return "signals out of a network with latents"
	}
	return "signals"
}

const (
	// offNetwork is from how many standard errors on signals that ask for slack are off the network. Of 48 problems of the right network, half of them with
	// noise of a fifth of the readings' power, none asked for more than 2.1; of 21 of permuted weights or rows at α ≥ 0.4 the least was 3.6.
	offNetwork = 3

	// surelyOff is the same where the signals are known well: as for all that was given and that readings contradict.
	surelyOff = 5
)

// warnNetwork is about signals that may not come out of the network they were said to: noise or slack that was learned then stands for the signals.
func (r *Run) warnNetwork() *Warning {
	network, ok := prior.NetworkOf(r.model().Prior)
	if !ok || !r.Converged || r.Solver.Iterations == 0 || r.warnOnlyNoise() != nil || r.orthogonal() || r.illConditioned() != "" {
		return nil
	}
	own := r.model().Prior.Variance()
	left := amp.Mean(r.state.C) / own
	more, z := r.state.SlackWanted()
	learned := r.LearnNoise || network.SlackLearned()
	switch {
	case learned && left > poorlyKnown, left > wellKnown && z > offNetwork:
		return &Warning{Code: UnrecoveredOrNoise, Message: fmt.Sprintf("%.3g %% of the signals' power remains unknown, with a noise variance of %.3g and slack of %.3g: it is noise, or these signals do not come out of this network (their likelihood prefers more slack by %.1f standard errors)", 100*min(left, 1), r.noise(), network.Slack(), max(0, z))}
	case z > surelyOff && more > network.Slack():
		return &Warning{Code: toldContradicted, Message: fmt.Sprintf("the signals deviate from the network by more than its slack of %.3g: the likelihood prefers about %.2g, by %.0f standard errors; --slack auto learns it", network.Slack(), network.Slack()+more, z)}
	}
	return nil
}

// toldContradicted is the code that package calamp has for numbers that were given.
const toldContradicted = "told-contradicted"

// otherNetwork says that signals which theory recovers were not found; empty where they were, or come out of none.
func (r *Run) otherNetwork() string {
	if _, ok := prior.NetworkOf(r.model().Prior); !ok || amp.Mean(r.state.C) < wellKnown*r.model().Prior.Variance() {
		return ""
	}
	return "theory recovers signals that come out of this network from so many sensors: these may come out of another one, or its weights are far from independent"
}
