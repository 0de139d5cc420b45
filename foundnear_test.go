package calamp

import (
	"testing"

	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/solver"
)

// TestFoundNearIsOfPhases: real signals that were integrated out and came to nothing have found no phases, and further tries follow. Of a camera that reads text, three snapshots and seven dead sensors, a true range of s
// given had x wrong by 300 % in place of .3 %.
func TestFoundNearIsOfPhases(t *testing.T) {
	nothing := func(c channel.Channel) bool {
		res := &Result{Status: NothingRecovered, Channel: c, Plan: &solver.Plan{Algorithm: solver.Evidence}}
		return (&tries{done: []*try{{res: res}}}).foundNear()
	}
	if nothing(channel.Gain{Prior: channel.Uniform(0.9, 1.1)}) {
		t.Error("real gains have phases")
	}
	if !nothing(channel.ComplexGain{Prior: channel.ComplexPrior{Lo: 0.9, Hi: 1.1, Concentration: 1e4}}) {
		t.Error("phases near the nominal ones are not")
	}
}
