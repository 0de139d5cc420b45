package evolution

import (
	"math"

	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/internal/quadrature"
)

// The output side of state evolution: averages over a sensor's readings of what
// the gain channel makes of them.
//
// T₀ = q₀+Δ₀ is the variance of z̃ = z+ε = s₀y; here it is the unit, T₀ = 1. Given
// z̃, ω ~ N(c z̃, κ) in each of the P components, with c = m/T₀ and κ = q - m²/T₀.
// Channel and prior are invariant under rotations of R^P, so only y = |z̃|/s₀ and the
// component w of ω along z̃ matter; the P-1 others enter E|g|² through their variance
// κ alone. The student's statistics of s are τ = y²/D and t = B/τ = w/y. The joint
// density of (y, t) is an integral over s₀,
//
//	p(y,t) = N_P y^P (2πκ)^-½ e^{-y²t²/2q} ∫ p(s₀) s₀^P e^{-τ₀(s₀-t₀)²/2} ds₀,
//	N_P = 2^{1-P/2}/Γ(P/2),  τ₀ = y² q/κ,  t₀ = t m/q,
//
// over a density of the same form as the student's posterior of s. Its mean and
// variance are those of s₀ given the readings. When student and teacher agree, τ₀ = τ
// and t₀ = t: one integral serves both, and the rest of the average is
// two-dimensional.

// sensorLaw is the joint law of a sensor's reading and of its estimate, with the
// moments in the student's posterior, in units where T₀ = 1.
type sensorLaw struct {
	p                int
	teacher, student channel.GainPrior
	matched          bool    // teacher and student agree: one posterior serves both
	c, cBias         float64 // c = m, and 1-c without cancellation
	kappa            float64 // variance of ω given z̃
	q                float64 // variance of ω
	qLessM           float64 // q - m, without cancellation
	d                float64 // the student's V+Δ
}

// matchedLaw is the Bayes-optimal law: q = m = 1-δ and κ = mδ, where
// δ = (V+Δ)/(q₀+Δ) is all that remains of the signals.
func matchedLaw(p int, gain channel.GainPrior, delta float64) sensorLaw {
	m := max(0, 1-delta)
	return sensorLaw{
		p: p, teacher: gain, student: gain, matched: true,
		c: m, cBias: delta, kappa: m * delta, q: m, d: delta,
	}
}

// bayesAverages are the averages of matchedLaw: in closed form for known gains, by
// fixed rules for a uniform prior of s where these are good for it, by adaptive panels otherwise.
func bayesAverages(p int, g channel.GainPrior, delta, tol float64, w *work) averages {
	switch {
	case g.Lo == g.Hi:
		d := Number{Value: 1 / delta}
		return averages{qHat: d, mHat: d, chiHat: d, evidence: knownEvidence(p, g.Lo, delta), mass: Number{Value: 1}}
	case g.Precision == 0:
		if a, good := matchedAverages(p, g, delta, tol, w); good {
			return a
		}
	}
	l := matchedLaw(p, trimmed(g), delta)
	return l.integrate(tol, w)
}

// knownEvidence is E log s^P e^{-(sy-w)²/2D}. Along z̃ the residual is
// (1-c)|z̃| - √κu: its square averages to D(1+δ(P-1)).
func knownEvidence(p int, s, delta float64) Number {
	return Number{Value: float64(p)*math.Log(s) - 0.5*(1+delta*float64(p-1))}
}

// Components of the integrand.
const (
	atMass     = iota // 1, for a check
	atShrink          // 1 - Cˢτ
	atMSE             // (ŝ-s₀)², averaged over s₀ given the readings
	atResidual        // (ŝ y - w)²
	atResponse        // P D ∂_z·g
	atEvidence        // log ∫ p(s) s^P e^{-(sy-w)²/2D} ds
)

// averages are the results, in the same units (g as 1/√T₀, and so on).
type averages struct {
	qHat, mHat, chiHat Number // per component: E g², E ∂_z g, -E ∂_ω g
	mseS               Number
	evidence           Number
	mass               Number
}

// integrate computes the averages to a relative tolerance.
func (l *sensorLaw) integrate(tol float64, w *work) averages {
	acc := quadrature.Full
	if tol > 1e-9 {
		acc = quadrature.Fast
	}
	outer := quadrature.NewIntegrator(tol / 2)
	inner := quadrature.NewIntegrator(tol / 4)
	// Errors are judged against what assemble adds to each integral, or against values
	// below which it does not matter.
	others := float64(l.p - 1)
	outer.Floor[atShrink], outer.Floor[atResponse] = others, others
	outer.Floor[atResidual] = others * l.kappa
	outer.Floor[atMSE] = 1e-6 * l.d
	outer.Floor[atEvidence] = 1
	logNorm := (1-0.5*float64(l.p))*math.Ln2 - lgamma(0.5*float64(l.p))

	var cuts [64]float64
	single := l.q == 0 // ω is zero: nothing to integrate over t
	r := outer.Integrate(func(y float64) (v, e quadrature.Vec) {
		w.spend(readingValues)
		if single {
			return l.atReading(y, 0, logNorm, acc), e
		}

		in := inner
		in.Floor = outer.Floor
		res := in.Integrate(func(t float64) (v, e quadrature.Vec) {
			w.spend(readingValues)
			return l.atReading(y, t, logNorm, acc), e
		}, l.tCuts(cuts[:0], y))
		return res.Value, res.Err
	}, l.yCuts())
	return l.assemble(r)
}

// assemble turns the integrals into averages, and adds what the P-1 components of g
// perpendicular to z̃ contribute.
func (l *sensorLaw) assemble(r quadrature.Result) averages {
	p := float64(l.p)
	lack := math.Abs(r.Value[atMass] - 1)
	at := func(k int) Number {
		// The density's mass must be one. What it lacks, the other integrals may lack as
		// well, and it counts as their error.
		return Number{r.Value[k], r.Err[k] + lack*math.Abs(r.Value[k])}
	}
	shrink, residual, response := at(atShrink), at(atResidual), at(atResponse)
	pd := p * l.d
	return averages{
		chiHat:   Number{(p - 1 + shrink.Value) / pd, shrink.Err / pd},
		qHat:     Number{(residual.Value + (p-1)*l.kappa) / (pd * l.d), residual.Err / (pd * l.d)},
		mHat:     Number{response.Value / pd, response.Err / pd},
		mseS:     at(atMSE),
		evidence: at(atEvidence),
		mass:     at(atMass),
	}
}

// atReading is the integrand: density times components.
func (l *sensorLaw) atReading(y, t, logNorm float64, acc quadrature.Accuracy) (v quadrature.Vec) {
	p := float64(l.p)
	var truth gainPosterior
	logDensity := logNorm + p*math.Log(y)
	if l.q == 0 { // no estimate yet: only the size of the readings says something of s₀
		logDensity -= math.Log(y)
		truth = posterior(l.teacher, p, y*y, 0, acc)
	} else {
		logDensity -= 0.5*(y*y*t*(t/l.q)) + 0.5*math.Log(2*math.Pi*l.kappa)
		truth = posterior(l.teacher, p, y*y*l.q/l.kappa, t*(l.c/l.q), acc)
	}
	density := math.Exp(logDensity + truth.LogMass - logMass(l.teacher))
	if density == 0 {
		return v
	}
	student := truth
	if !l.matched {
		student = posterior(l.student, p, y*(y/l.d), t, acc)
	}
	v[atMass] = density
	v[atShrink] = density * student.shrink(p, y*(y/l.d))
	v[atEvidence] = density * (student.LogMass - logMass(l.student))
	if l.matched {
		v[atMSE] = density * student.Var
		return v
	}
	miss := student.Offset - truth.Offset // of ŝ from E[s₀|y,t]
	if l.q > 0 {
		miss += t * (l.qLessM / l.q)
	}
	residual := y * student.Offset
	v[atMSE] = density * (miss*miss + truth.Var)
	v[atResidual] = density * residual * residual
	v[atResponse] = density * truth.Inverse * student.response(p)
	return v
}

// tCuts places panels in t at given y. The integrand changes within the width √D/y of
// the student's posterior at the ends of the student's range, and within the spread
// √κ/y of ω at c times the ends of the teacher's.
func (l *sensorLaw) tCuts(buf []float64, y float64) []float64 {
	spread := math.Sqrt(l.kappa) / y
	width := math.Sqrt(l.d) / y
	const reach = 8.5
	lo, hi := l.c*l.teacher.Lo-reach*spread, l.c*l.teacher.Hi+reach*spread
	if l.teacher.Precision > 0 || l.student.Precision > 0 {
		return l.tCutsOf(buf, lo, hi, spread, width)
	}
	if l.matched {
		return quadrature.Grade(buf, lo, hi,
			quadrature.Layer{Edge: l.teacher.Lo, Width: width}, quadrature.Layer{Edge: l.teacher.Hi, Width: width})
	}
	return quadrature.Grade(buf, lo, hi,
		quadrature.Layer{Edge: l.student.Lo, Width: width}, quadrature.Layer{Edge: l.student.Hi, Width: width},
		quadrature.Layer{Edge: l.c * l.teacher.Lo, Width: spread}, quadrature.Layer{Edge: l.c * l.teacher.Hi, Width: spread})
}

// tCutsOf is tCuts where s is not uniform: most of the density may be far from both ends, about y^-1 times the
// typical |z̃|, or where the priors have theirs.
func (l *sensorLaw) tCutsOf(buf []float64, lo, hi, spread, width float64) []float64 {
	marks := gainMarks(buf[:0], l.teacher, l.c)
	if !l.matched {
		marks = gainMarks(marks, l.student, 1)
	}
	for _, end := range [...]float64{l.c * l.teacher.Lo, l.c * l.teacher.Hi} {
		marks = append(marks, end-4*spread, end+4*spread)
	}
	for x := max(spread, width, 1e-3*hi); x < hi; x *= 2 {
		marks = append(marks, x)
	}
	inside := marks[:0]
	for _, x := range marks {
		if x > lo && x < hi {
			inside = append(inside, x)
		}
	}
	return quadrature.Panels(lo, hi, min(spread, width)/3, inside)
}

// leastNormal is the smallest number with all its digits: steps that grow by a factor begin there at the earliest.
const leastNormal = 0x1p-1022

// yCuts places panels in y: in steps of order one over the bulk of |z̃|/s₀, and below it in
// geometric steps, down to readings too small to say anything of s.
func (l *sensorLaw) yCuts() []float64 {
	rootP := math.Sqrt(float64(l.p))
	end := (rootP + 8.7) / l.teacher.Lo
	bulk := max(rootP-8.7, 0.5) / l.teacher.Hi
	width := l.student.Hi - l.student.Lo
	first := bulk
	if width > 0 {
		first = min(bulk, math.Sqrt(min(l.d, l.kappa+l.d*l.d))/width)
	}
	// The probability of smaller readings is y^P/Γ(P/2+1): leave out what would not
	// show even in the mean square error of s, which is of order D.
	const least = 1e-18
	negligible := math.Pow(least*l.d, 1/float64(l.p)) / l.teacher.Hi
	first = max(first, negligible, leastNormal)
	cuts := []float64{0}
	for y := first; y < bulk; y *= 3 {
		cuts = append(cuts, y)
	}
	step := 2.2 / l.teacher.Hi
	for y := bulk; y < end; y += max(step, 0.35*y) {
		cuts = append(cuts, y)
	}
	return append(cuts, end)
}

// gainPosterior is the student's posterior of a calibration variable.
type gainPosterior struct {
	quadrature.GainPosterior
	prior channel.GainPrior

	// Of a log-normal prior: see [quadrature.LogNormalPosterior].
	covLog, priorOf float64
}

// posterior is the density proportional to p(s) s^n e^{-τ(s-t)²/2}. LogMass is
// that of the product without the prior's normaliser.
func posterior(g channel.GainPrior, n, tau, t float64, acc quadrature.Accuracy) gainPosterior {
	if g.Log && g.Lo < g.Hi {
		q := quadrature.NewLogNormalPosterior(n, tau, t, g.Center, g.Precision, g.Lo, g.Hi)
		return gainPosterior{GainPosterior: q.GainPosterior, prior: g, covLog: q.CovLog, priorOf: q.PriorOf}
	}
	if g.Precision == 0 || g.Lo == g.Hi {
		return gainPosterior{GainPosterior: quadrature.NewGainPosterior(n, tau, t, g.Lo, g.Hi, acc), prior: g}
	}
	// The product of two Gaussians, of precisions τ and Precision.
	both := tau + g.Precision
	shift := g.Precision * (g.Center - t) / both
	q := quadrature.NewGainPosterior(n, both, t+shift, g.Lo, g.Hi, acc)
	q.Offset += shift
	q.LogMass -= 0.5 * tau * shift * (g.Center - t)
	return gainPosterior{GainPosterior: q, prior: g}
}

// logMass is log of the prior's normaliser.
func logMass(g channel.GainPrior) float64 {
	if g.Lo == g.Hi {
		return 0
	}
	switch {
	case g.Precision == 0:
		return math.Log(g.Hi - g.Lo)
	case g.Log:
		return math.Log(g.Mass()) + 0.5*math.Log(2*math.Pi/g.Precision)
	}
	return posterior(g, 0, 0, g.Center, quadrature.Full).LogMass
}

// shrink is 1 - Cˢτ, the fraction of the readings' information that is left for the
// signals after s has been estimated from it. Integrating the derivative of (s-ŝ)q(s)
// by parts makes it a sum of positive terms,
//
//	1 - Cˢτ = (b-ŝ) q(b) + (ŝ-a) q(a) + n E[(s-ŝ)²/(sŝ)] + Cˢ·(the prior's precision).
//
// Of a log-normal prior with density e^{-λ log²(s/m)/2}/s the last term is
//
//	λ E[(s-ŝ)(log(s/m)/s - log(ŝ/m)/ŝ)] - E[(s-ŝ)²/(sŝ)].
func (q *gainPosterior) shrink(n, tau float64) float64 {
	g := q.prior
	switch {
	case q.PointLike:
		return 1
	case g.Log:
		return (g.Hi-q.Mean)*q.AtHi + (q.Mean-g.Lo)*q.AtLo + (n-1)*q.Spread + g.Precision*q.priorOf
	}
	return (g.Hi-q.Mean)*q.AtHi + (q.Mean-g.Lo)*q.AtLo + n*q.Spread + g.Precision*q.Var
}

// response is D Σ_k ∂g_k/∂y_k: how g changes with the readings. The part that comes
// from the change of ŝ, -τ Cov(s, s²) + B Cˢ, would cancel against the rest; integrating
// the derivative of s(s-ŝ)q(s) by parts replaces it. With λ the precision and c the
// center of a Gaussian prior the result is
//
//	(P-1) ŝ + b(b-ŝ) q(b) + a(ŝ-a) q(a) + λ (Cov(s, s²) - c Cˢ),
//
// and Cov(s, s²) = 2ŝCˢ + the third central moment. With a log-normal prior the last term is
// λ Cov(s, log s).
func (q *gainPosterior) response(p float64) float64 {
	g := q.prior
	if q.PointLike {
		return p * q.Mean
	}
	r := (p-1)*q.Mean + g.Hi*(g.Hi-q.Mean)*q.AtHi + g.Lo*(q.Mean-g.Lo)*q.AtLo
	switch {
	case g.Log:
		r += g.Precision * q.covLog
	case g.Precision > 0:
		r += g.Precision * (q.Var*(2*q.Mean-g.Center) + q.Third)
	}
	return r
}

func lgamma(x float64) float64 {
	v, _ := math.Lgamma(x)
	return v
}
