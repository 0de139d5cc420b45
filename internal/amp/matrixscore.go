package amp

import (
	"math"

	"gonum.org/v1/gonum/mat"

	"github.com/calamp/calamp/channel"
)

// What the evidence says of the matrix. At a fixed point the Bethe evidence is stationary in everything that an iteration computes, so
// that a change δW of the matrix changes it by what is explicit in W alone:
//
//	δL = Σ g (δW x̂) + ½ Σ ∂g (δ(W²) C),
//
// since ∂L/∂(Wx̂) = (Wx̂-ω)/V = g, and ∂L/∂V at fixed ω is ½(∂g + g²) - ½g².

// Scores reports whether g and ∂g are those of single readings, which [State.MatrixScore] takes for granted.
func (s *Solver) Scores() bool {
	turned := s.rows() != nil
	_, integrated := s.Iteration.(integrating)
	return !turned && !integrated && s.Iterations > 0
}

// IntegratedScores are slopes and information of directions of W where signals were integrated out (see [evidence.Fit.MatrixScores]); nil elsewhere. Each product sets
// u (M×R) to D x, with x R×N.
func (s *Solver) IntegratedScores(products []func(u, x []float64) error) (slope, scatter []float64, information *mat.SymDense, err error) {
	if g := s.gaussian(); g != nil && g.steps+g.tried > 0 {
		return g.fit.MatrixScores(products)
	}
	return nil, nil, nil, nil
}

// MatrixScore is how fast the evidence grows along a direction D of W, given what that adds to the readings, u = D x̂, and to the variances,
// dv = 2(W∘D)C (both M×P); dv is nil where that is nothing.
func (s *State) MatrixScore(u, dv []float64) (score float64) {
	for j, g := range s.G {
		if !math.IsNaN(s.Y[j]) {
			score += g * u[j]
			if dv != nil {
				score += 0.5 * s.DG[j] * dv[j]
			}
		}
	}
	return score
}

// MatrixInformation is minus the second derivative of the evidence along two directions that add u and v to the readings (M×P), while gains
// follow: of a sensor's readings ∂g_k/∂ω_l = Cˢ y_k y_l/(D_k D_l) where k and l differ, and ∂g_k where not. Signals do not follow: for entries
// that are not those of a signal's support it is right, for others it is an upper bound.
func (s *State) MatrixInformation(u, v []float64) (information float64) {
	_, real := channel.InOrder(s.model.Channel).(channel.Noisy)
	responds := real && s.calibration != nil && s.columns == 1
	for mu := range s.M {
		var alongU, alongV, same float64
		for j := mu * s.P; j < (mu+1)*s.P; j++ {
			if math.IsNaN(s.Y[j]) {
				continue
			}
			information -= s.DG[j] * u[j] * v[j]
			if responds {
				r := s.Reading(j) / s.Doubt(j)
				alongU, alongV, same = alongU+r*u[j], alongV+r*v[j], same+r*r*u[j]*v[j]
			}
		}
		information -= (1 - s.Broken[mu]) * s.SVar[mu] * (alongU*alongV - same)
	}
	return information
}
