package diagnosis

import (
	"github.com/calamp/calamp/evolution"
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

// otherNetwork says that signals which theory recovers were not found; empty where they were, or come out of none.
func (r *Run) otherNetwork() string {
	if _, ok := prior.NetworkOf(r.model().Prior); !ok || mean(r.state.C) < wellKnown*r.model().Prior.Variance() {
		return ""
	}
	return "theory recovers signals that come out of this network from so many sensors: these may come out of another one, or its weights are far from independent"
}
