package online

import (
	"fmt"
	"slices"

	"github.com/calamp/calamp"
	"github.com/calamp/calamp/prior"
)

// unrelated is what samples so far said of the network that their signals were said to come out of. It belongs to a run, and not to its state.
type unrelated struct {
	samples int
	z       float64 // their sum, by how many standard errors each asks for slack of the network, cut to ±mostZ
	left    float64 // the sum of the parts of the signals' own variance that are not known
}

const (
	// Of 160 samples of four streams of the right network, half of them with noise of a seventh of the readings' power, z had a mean of 0.5 and a standard deviation of 2;
	// of four with permuted weights or rows means above 4. Five samples separate a mean of 3 from 0.5 by 2.8 standard errors, and all that follow by more.
	offNetwork = 3
	leastGiven = 5
	mostZ      = 10

	// foundLeaves is the part that is left of signals which were found, as package diagnosis has it.
	foundLeaves = 0.015
)

// watchNetwork takes in what the present sample says, which was solved.
func (c *Calibrator) watchNetwork() {
	e, u := c.sample, &c.unrelated
	if _, ok := prior.NetworkOf(e.Model().Prior); !ok {
		return
	}
	_, z := e.SlackWanted()
	left := 0.0
	for _, v := range e.C {
		left += v
	}
	u.samples++
	u.z += max(-mostZ, min(z, mostZ))
	u.left += min(1, left/(e.Model().Prior.Variance()*float64(len(e.C))))
}

// otherNetwork says that signals were not found, and ask for slack of the network: they come out of another one, and would teach gains that are not there.
func (c *watching) otherNetwork() bool {
	u, count := &c.unrelated, float64(c.unrelated.samples)
	return u.samples >= leastGiven && u.z > offNetwork*count && u.left > foundLeaves*count
}

func (u *unrelated) String() string {
	count := float64(u.samples)
	return fmt.Sprintf("signals do not come out of this network, or not out of it alone: %.2g %% of their power remains unknown, and the likelihood prefers slack by %.1f standard errors a sample on average", 100*u.left/count, u.z/count)
}

// latent is the posterior of the present sample's latents, at the scale of its signal; nil where there are none.
func (c *Calibrator) latent() (mean, variance []float64) {
	mean, variance = c.solver.Latent()
	n, _ := prior.NetworkOf(c.sample.Model().Prior)
	if mean == nil || !n.Scales() || !c.held.Holds() {
		return mean, variance
	}
	mean, variance = slices.Clone(mean), slices.Clone(variance)
	for j, f := 0, c.held.Factor; j < len(mean); j++ {
		mean[j] *= f
		variance[j] *= f * f
	}
	return mean, variance
}

// doubtsNetwork is the warning that it is another one.
func (c *watching) doubtsNetwork(p *Posterior) {
	if c.otherNetwork() {
		p.Warnings = append(p.Warnings, calamp.Warning{Code: calamp.UnrecoveredOrNoise, Message: c.unrelated.String() + "; the calibration does not learn from these samples"})
	}
}
