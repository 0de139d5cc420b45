package diagnosis

import (
	"fmt"
	"math"

	"github.com/calamp/calamp/internal/amp"
	"github.com/calamp/calamp/solver"
)

// orthogonalRows is the largest singular value, relative to that of independent entries, below
// which rows are nearly orthogonal: noise then reaches the fields in another way.
const orthogonalRows = 0.6

// Excess is the factor by which the posterior variances of the signals are too small, since the
// signals are not like the prior; 1 where nothing says so.
func (r *Run) Excess() float64 {
	if r.excess == 0 {
		r.excess = 1
		if u := r.unlike(); u.Clear() && r.illConditioned() == "" && !r.orthogonal() {
			r.excess = u.Excess
		}
	}
	return r.excess
}

// unlike is how far signals are from a prior of one Gaussian; nothing where that cannot be said.
func (r *Run) unlike() amp.Unlike {
	if r.Settings.Covariance == solver.Full || r.joint() || !r.Converged || r.Solver.Iterations == 0 {
		return amp.Unlike{}
	}
	return r.Solver.LatestUnlike()
}

// orthogonal says whether the rows of W are, as those of a cosine transform: there the
// fields' variances are not what AMP takes them for, which looks like another prior.
func (r *Run) orthogonal() bool {
	if r.vector() {
		return false
	}
	w := r.spectrum()
	return w.err != nil || w.largest < orthogonalRows*(1+math.Sqrt(float64(r.state.Rows())/float64(r.state.N)))
}

func (r *Run) warnUnlike() *Warning {
	excess := r.Excess()
	if excess == 1 {
		return nil
	}
	return &Warning{Code: SignalsUnlikePrior, Message: fmt.Sprintf("the signals' entries do not follow the prior, which has them zero or Gaussian: their squared errors are about %.2g times the posterior variances, and the variances of x were multiplied by that; a prior that fits has smaller errors: --learn-components, --prior laplace, or a basis in which the signals are sparser", excess)}
}
