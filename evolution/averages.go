package evolution

import (
	"context"
	"math"

	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/internal/field"
	"github.com/calamp/calamp/internal/quadrature"
	"github.com/calamp/calamp/prior"
)

// SensorAverages are averages over a sensor's P readings when the signals are known
// up to the error V, for a student whose model is the true one (Bayes-optimal).
type SensorAverages struct {
	MHat     Number // m̂ = E g², per signal
	MSES     Number // mean square error on s
	Evidence Number // E log Z_out, natural logarithm (the paper's I_z)
}

// Sensor computes the [SensorAverages] at the error V in [0, Var x], to the relative
// tolerance of opt (default 1e-8). V+Δ must be positive. Alpha is not used. It ends with
// ctx, and with [ErrWork] after opt.Work.
func (m Model) Sensor(ctx context.Context, v float64, opt *Options) (a SensorAverages, err error) {
	defer ending(&err)
	e, err := newEvolution(m, opt)
	if err != nil {
		return SensorAverages{}, err
	}
	e.work = opt.heeding(ctx)
	return e.sensor(v), nil
}

// sensor computes the averages. To the evidence of the one direction that
// [sensorLaw] integrates it adds that of the P-1 directions of ω perpendicular to z̃
// and of the Gaussian's normaliser: -(P-1)κ/2D - (P/2) log 2πD.
func (e *evolution) sensor(v float64) SensorAverages {
	out := e.output(v)
	d := v + e.NoiseVar
	delta := min(1, d/(e.q0+e.NoiseVar))
	p := float64(e.P)
	evidence := out.evidence
	evidence.Value -= 0.5*(p-1)*(1-delta) + 0.5*p*math.Log(2*math.Pi*d)
	return SensorAverages{MHat: out.chiHat, MSES: out.mseS, Evidence: evidence}
}

// EntryAverages are averages over a signal's entry seen through the field
// N(x; λ, Σ), λ = x + N(0, Σ).
type EntryAverages struct {
	MMSE        Number // E (x-x̂)²
	Information Number // mutual information of x and λ, in nats
}

// Entry computes the [EntryAverages] at Σ > 0, to the relative tolerance of opt
// (default 1e-8).
func Entry(g prior.GaussBernoulli, sigma float64, opt *Options) EntryAverages {
	f := field.Matched(g, sigma)
	return entryAverages(f.Integrate(opt.tol()))
}

func entryAverages(r field.Averages) EntryAverages {
	// I(x;λ) = E log p(λ|x) - E log p(λ). With the common factor √(2πΣ) in both, the
	// first is -½ and the second is the mean log-normaliser.
	return EntryAverages{MMSE: Number(r.Variance), Information: Number{-r.LogNorm.Value - 0.5, r.LogNorm.Err}}
}

// MeanLog is E log s under the prior of a calibration variable.
func MeanLog(g channel.GainPrior) float64 {
	if g.Lo == g.Hi {
		return math.Log(g.Lo)
	}
	g = trimmed(g)
	q := quadrature.NewIntegrator(1e-13)
	mass := logMass(g)
	r := q.Integrate(func(s float64) (v, e quadrature.Vec) {
		v[0] = math.Log(s) * math.Exp(g.LogDensity(s)-mass)
		return v, e
	}, gainPanels(g))
	return r.Value[0]
}
