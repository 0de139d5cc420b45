package replica

import (
	"context"

	"github.com/calamp/calamp/evolution"
)

// Point is a point at which the mismatched potential is evaluated: overlaps, per
// entry, and their conjugates.
type Point struct {
	Q   float64 // E⟨x²⟩, of the student's posterior with itself
	M   float64 // E x₀⟨x⟩
	Q12 float64 // E⟨x⟩², of two replicas

	QHat, MHat, Q12Hat float64
}

// Mismatched is the potential of a student whose model is not the teacher's (paper,
// "Replica free energy"), for each of the N rows of X:
//
//	φ = P[-m m̂ + ½ q q̂ + ½ q₁₂ q̂₁₂ + I_x(q̂, m̂, q̂₁₂)] + α I_z(q, m, q₁₂).
//
// (The paper prints q q̂ without the ½, which its stationarity needs.) Where φ is
// stationary, q₁₂, m and q-q₁₂ are the q, m and V of state evolution, and
// q̂₁₂, m̂ and q̂+q̂₁₂ are α times its q̂, m̂ and χ̂.
type Mismatched struct {
	Model evolution.Mismatch
	Tol   float64 // relative accuracy of the averages; 0 is 1e-8
}

func (p Mismatched) options() *evolution.Options { return &evolution.Options{Tol: p.Tol} }

// IX is I_x(q̂, m̂, q̂₁₂) of an entry, and the overlaps that its gradient gives:
// ∂I_x/∂m̂ = m, ∂I_x/∂q̂ = -½q, ∂I_x/∂q̂₁₂ = -½q₁₂.
func (p Mismatched) IX(at Point) (value evolution.Number, overlaps Point) {
	e := p.Model.Entry(at.Q12Hat, at.MHat, at.QHat+at.Q12Hat, p.options())
	return e.LogNorm, Point{Q: e.Q.Value + e.V.Value, M: e.M.Value, Q12: e.Q.Value}
}

// IZ is I_z(q, m, q₁₂) of a sensor, and the conjugates that its gradient gives, without
// the factor α: ∂I_z/∂m = P m̂, ∂I_z/∂q = -½P q̂, ∂I_z/∂q₁₂ = -½P q̂₁₂.
func (p Mismatched) IZ(ctx context.Context, at Point) (value evolution.Number, hats Point, err error) {
	s, err := p.Model.Sensor(ctx, at.Q12, at.M, at.Q-at.Q12, p.options())
	if err != nil {
		return value, hats, err
	}
	return s.Evidence, Point{QHat: s.ChiHat.Value - s.QHat.Value, MHat: s.MHat.Value, Q12Hat: s.QHat.Value}, nil
}

// Phi is the potential and its gradient: each field of gradient is the derivative with
// respect to the field of that name.
func (p Mismatched) Phi(ctx context.Context, at Point) (phi evolution.Number, gradient Point, err error) {
	iz, hats, err := p.IZ(ctx, at)
	if err != nil {
		return phi, gradient, err
	}
	ix, overlaps := p.IX(at)
	n, alpha := float64(p.Model.P), p.Model.Alpha
	phi = evolution.Number{
		Value: n*(-at.M*at.MHat+0.5*at.Q*at.QHat+0.5*at.Q12*at.Q12Hat+ix.Value) + alpha*iz.Value,
		Err:   n*ix.Err + alpha*iz.Err,
	}
	gradient = Point{
		Q: 0.5 * n * (at.QHat - alpha*hats.QHat), M: n * (alpha*hats.MHat - at.MHat), Q12: 0.5 * n * (at.Q12Hat - alpha*hats.Q12Hat),
		QHat: 0.5 * n * (at.Q - overlaps.Q), MHat: n * (overlaps.M - at.M), Q12Hat: 0.5 * n * (at.Q12 - overlaps.Q12),
	}
	return phi, gradient, nil
}

// At is the point with the overlaps of a step of state evolution; its conjugates are α
// times those of the output side.
func (p Mismatched) At(o evolution.Overlaps) Point {
	a := p.Model.Alpha
	return Point{
		Q: o.Q.Value + o.V.Value, M: o.M.Value, Q12: o.Q.Value,
		QHat: a * (o.ChiHat.Value - o.QHat.Value), MHat: a * o.MHat.Value, Q12Hat: a * o.QHat.Value,
	}
}
