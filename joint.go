package calamp

import (
	"context"
	"fmt"

	"github.com/calamp/calamp/solver"
)

// solveTogether solves a problem whose signals belong together, as a run of independent signals found. Where that run does not come to rest, or what it came to
// speaks against it, they are solved one by one after all, and the likelier answer that came to rest is the result.
func solveTogether(ctx context.Context, p *Problem, opt *Options, apart *run) (*Result, error) {
	found := apart.solver.JointGain()
	on, off := *opt, *opt
	on.Joint, off.Joint = solver.JointOn, solver.JointOff
	together, err := solveOnce(ctx, p, &on)
	if err != nil {
		return together, err
	}
	if together.Status == Converged && together.jointGain > 0 {
		together.Plan.Explain("joint rows", fmt.Sprintf("the fields are e^%.3g times as likely if entries are there in all signals or in none, and e^%.3g times at rest; %s", found, together.jointGain, together.covarianceInWords()))
		return together, nil
	}
	single, err := solveOnce(ctx, p, &off)
	if err != nil || single == nil {
		return together, err // which has ended
	}
	if better(together, single) {
		together.Plan.Explain("joint rows", fmt.Sprintf("signals that belong together are likelier than independent ones by e^%.3g; %s", together.LogEvidence-single.LogEvidence, together.covarianceInWords()))
		return together, nil
	}
	single.Plan.Explain("joint rows", fmt.Sprintf("tried: %v after %d iterations, and independent signals are likelier by e^%.3g", together.Status, together.Iterations, single.LogEvidence-together.LogEvidence))
	return single, nil
}

// better says which of two results is preferred: what came to rest, then what is likelier.
func better(a, b *Result) bool {
	if (a.Status == Converged) != (b.Status == Converged) {
		return a.Status == Converged
	}
	return a.LogEvidence > b.LogEvidence
}

// covarianceInWords says what signals were found to have in common beside their support.
func (r *Result) covarianceInWords() string {
	p, _ := r.SignalCov.Dims()
	most := 0.0
	for k := range p {
		for l := range k {
			c := r.SignalCov.At(k, l)
			most = max(most, c*c/(r.SignalCov.At(k, k)*r.SignalCov.At(l, l)))
		}
	}
	if most == 0 {
		return "their amplitudes are independent"
	}
	return "with a covariance that was learned"
}
