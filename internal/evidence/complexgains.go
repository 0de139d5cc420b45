package evidence

import (
	"context"
	"math"
	"math/cmplx"
	"math/rand/v2"
	"runtime"
	"slices"

	"gonum.org/v1/gonum/cmplxs"
	"gonum.org/v1/gonum/floats"

	"github.com/calamp/calamp/internal/dense"
	"github.com/calamp/calamp/internal/quadrature"
)

const (
	// mostKappa stands for phases that are known: a spread of 1e-4 radian.
	mostKappa = 1e8

	// stiffening is the precision, in units of the mean one, that is added along the common amplitude and the common phase, so that the
	// precision can be factored where readings do not determine these. At a fixed mean it changes nothing.
	stiffening = 10

	// longestTurn bounds a step of log r and φ.
	longestTurn = 1.5

	// newtonsAStep is how many Newton steps gains take for one of the sites at most. With 6 of them 22 of 32 starts for microphone arrays come to the answer, and with 30 all; of 64 for
	// lines of antennas 57 and 58.
	newtonsAStep = 30

	// A step is damped by a precision of one radian at least, where it is damped, and by dampBy times as much or as little from one to the next.
	leastDamping, dampBy, mostDampings = 1, 4, 40
)

// phaseTightness is the concentration of the prior of a phase.
func (f *Complex) phaseTightness(mu int) float64 {
	phase := min(f.Kappa, mostKappa)
	if f.heard[mu] == 0 {
		phase = max(phase, 1) // a silent sensor has no phase
	}
	return phase
}

// priorOf is the logarithm of the prior of |s| = r, its slope in log r, and minus its second derivative. That of a silent sensor is of log r: as one of r it has no slope at
// zero, where a step may end.
func (f *Complex) priorOf(mu int, r float64) (value, slope, curvature float64) {
	precision := 1 / (f.Spread * f.Spread)
	if f.heard[mu] == 0 {
		l := math.Log(r)
		return -0.5 * precision * l * l, -precision * l, precision
	}
	return -0.5 * precision * (r - 1) * (r - 1), -precision * (r - 1) * r, precision * (2*r - 1) * r
}

// gainValue is the evidence as a function of the sensors' s.
func (f *Complex) gainValue(gains []complex128) (value float64) {
	for i, v := range gains {
		r := cmplx.Abs(v)
		prior, _, _ := f.priorOf(i, r)
		value += prior + f.phaseTightness(i)*(real(v)/r-1)
	}
	s := f.ofRows(gains)
	for mu, v := range s {
		value += 2 * f.readings[mu] * math.Log(cmplx.Abs(v))
		sum := -2 * f.b[mu]
		for nu, q := range f.q[mu*f.m:][:f.m] {
			sum += q * s[nu]
		}
		if f.Real {
			for nu, t := range f.twin[mu*f.m:][:f.m] {
				sum += t * cmplx.Conj(s[nu])
			}
		}
		value -= real(cmplx.Conj(v) * sum)
	}
	return value
}

// setPrecision sets the gradient of the evidence in t, and the lower triangle of bend to minus its second derivative. With
// ds = s (t + t²/2) to second order, the quadratic form gives tᴴ S̄QS t + Re Σ c t², c = s ∘ (s̄Q - b̄), and that of real signals Re tᴴ S̄TS̄ t̄ and a part of c as well. Far from a maximum that may not be positive definite.
func (f *Complex) setPrecision(gradient []float64) {
	own, h := gradient, f.bend
	if f.readers != nil {
		gradient, h = f.readers.gradient, f.readers.bend
	}
	m := f.m
	for mu, v := range f.S {
		sum, twice := -f.b[mu], 2*cmplx.Conj(v)
		amplitudes, phases, between := h.Row(mu), h.Row(m + mu)[m:], h.Row(m+mu)
		for nu, q := range f.q[mu*m:][:m] {
			turned := q * f.S[nu]
			sum += turned
			bend := twice * turned
			amplitudes[nu], phases[nu], between[nu] = real(bend), real(bend), imag(bend)
		}
		if f.Real {
			for nu, t := range f.twin[mu*m:][:m] {
				turned := t * cmplx.Conj(f.S[nu])
				sum += turned
				bend := twice * turned
				amplitudes[nu] += real(bend)
				phases[nu] -= real(bend)
				between[nu] += imag(bend)
			}
		}
		c := cmplx.Conj(sum) * v
		gradient[mu] = 2*f.readings[mu] - 2*real(c)
		gradient[m+mu] = 2 * imag(c)
		amplitudes[mu] += 2 * real(c)
		phases[mu] -= 2 * real(c)
		between[mu] -= 2 * imag(c)
	}
	if f.readers != nil {
		f.readers.gather(own, f.bend)
	}
	f.addPrior(own)
}

// addPrior adds the part of the prior to the gradient and the precision.
func (f *Complex) addPrior(gradient []float64) {
	count := len(f.gains)
	for i, v := range f.gains {
		r, phi := cmplx.Abs(v), cmplx.Phase(v)
		phase := f.phaseTightness(i)
		_, slope, curvature := f.priorOf(i, r)
		gradient[i] += slope
		gradient[count+i] -= phase * math.Sin(phi)
		f.bend.Row(i)[i] += curvature
		f.bend.Row(count + i)[count+i] += phase * math.Cos(phi)
	}
}

// stiffen adds to the precision along both conventions, and returns how much.
func (f *Complex) stiffen() (by float64) {
	m, h := len(f.gains), f.curved
	for j := range 2 * m {
		by += stiffening * math.Abs(h.Row(j)[j]) / float64(2*m)
	}
	for j := range 2 * m {
		row := h.Row(j)
		if f.Real && j >= m {
			break
		}
		for l := j / m * m; l <= j; l++ {
			row[l] += by / float64(m)
		}
	}
	return by
}

// factorPrecision factors the precision with a damping that makes it positive definite, stiff along both conventions.
func (f *Complex) factorPrecision() (by float64, err error) {
	for range mostDampings {
		copy(f.curved.Data, f.bend.Data)
		by = f.stiffen()
		for j := range f.curved.Rows {
			f.curved.Row(j)[j] += f.damping
		}
		if dense.Factor(f.curved, runtime.GOMAXPROCS(0)) {
			return by, nil
		}
		f.dampMore()
	}
	return by, errSingular
}

func (f *Complex) dampMore() { f.damping = max(dampBy*f.damping, leastDamping) }

func (f *Complex) dampLess() {
	if f.damping /= dampBy; f.damping < leastDamping {
		f.damping = 0
	}
}

// BeginAt begins at gains s of the sensors, at a mean of |s| of one, and at one where s is NaN or zero. They are held at first, as sites that know nothing of the signals would move them away.
func (f *Complex) BeginAt(s []complex128) {
	known := func(v complex128) bool { return v != 0 && !cmplx.IsNaN(v) }
	sum, count, gains := 0.0, 0, make([]complex128, len(s))
	for _, v := range s {
		if known(v) {
			sum, count = sum+cmplx.Abs(v), count+1
		}
	}
	for i, v := range s {
		if gains[i] = 1; known(v) {
			gains[i] = v * complex(float64(count)/sum, 0)
		}
	}
	f.setGains(gains)
	f.begun = true
}

// newtonSteps is how many Newton steps gains take between two steps of the sites at most.
func (f *Complex) newtonSteps() int {
	if f.begun && f.steps <= heldFor {
		return 0
	}
	return newtonsAStep
}

// StayedAt reports whether gains are still s, as far as their errors allow, where few others would be.
func (f *Complex) StayedAt(s []complex128) bool {
	return f.apartByChance() > mostApart*mostApart && f.apart(f.ofRows(s)) <= mostApart
}

// solveGains goes to the maximum of the evidence in s that is next, and sets what is known of the gains there.
func (f *Complex) solveGains() error {
	gradient := make([]float64, 2*len(f.gains))
	f.evidence, f.highest, f.damping = f.gainValue(f.gains), false, 0
	for range f.newtonSteps() {
		f.setPrecision(gradient)
		promised, err := f.newtonStep(gradient)
		if err != nil {
			return err
		}
		if promised < enough && f.damping == 0 {
			f.highest = true
			break
		}
	}
	f.damping = 0
	f.setPrecision(gradient)
	by, err := f.factorPrecision()
	if err != nil {
		return err
	}
	f.setGauge(by)
	return nil
}

// center takes the means of log r and of φ away, which are conventions.
func (f *Complex) center(t []float64) {
	m := len(t) / 2
	for _, half := range [][]float64{t[:m], t[m:]}[:f.parts()] {
		floats.AddConst(-floats.Sum(half)/float64(m), half)
	}
}

// newtonStep moves gains by a Newton step that is damped, after Levenberg and Marquardt, as much as a rise of the evidence asks for: along directions in which the readings hardly
// determine the gains, and in which the evidence curves upwards, a step is short. It returns the rise that was promised; 0 where there was none.
func (f *Complex) newtonStep(gradient []float64) (promised float64, err error) {
	m := len(f.gains)
	step, next := make([]float64, 2*m), make([]complex128, m)
	f.center(gradient)
	damping := f.damping
	for range mostDampings {
		if _, err := f.factorPrecision(); err != nil {
			return 0, err
		}
		copy(step, gradient)
		dense.Solve(f.curved, step)
		f.center(step)
		if floats.Norm(step, math.Inf(1)) > longestTurn {
			f.dampMore()
			continue
		}
		promised = 0.5 * (floats.Dot(gradient, step) + f.damping*floats.Dot(step, step))
		for i, v := range f.gains {
			next[i] = v * cmplx.Exp(complex(step[i], step[m+i]))
		}
		value := f.gainValue(next)
		switch rise := value - f.evidence; {
		case rise < 0 && promised < enough: // rounding
			f.damping = 0
			return 0, nil
		case rise < 0.25*promised:
			f.dampMore()
		case (rise > 0.75*promised || promised < enough) && f.damping <= damping:
			f.dampLess()
		}
		if value >= f.evidence {
			f.evidence = value
			f.setGains(next)
			return promised, nil
		}
	}
	return 0, nil
}

// setGauge finds what the common amplitude and phase do: with U = H⁻¹E, the covariance at a fixed mean of log r and φ is H⁻¹ - U (EᵀU)⁻¹ Uᵀ.
func (f *Complex) setGauge(by float64) {
	m := len(f.gains)
	var products [2][2]float64
	for a := range f.along {
		f.along[a] = make([]float64, 2*m)
		for mu := range m {
			f.along[a][a*m+mu] = 1
		}
		dense.Solve(f.curved, f.along[a])
		products[a] = [2]float64{floats.Sum(f.along[a][:m]), floats.Sum(f.along[a][m:])}
	}
	if f.Real {
		clear(f.along[1])
		f.between = [3]float64{1 / products[0][0], 0, 0}
		f.logDet = dense.LogDet(f.curved) + math.Log(products[0][0]) - math.Log(float64(m))
		f.gauge = [2]float64{float64(m)/products[0][0] - by, 2 * math.Pi}
		return
	}
	det := products[0][0]*products[1][1] - products[0][1]*products[1][0]
	f.between = [3]float64{products[1][1] / det, -products[0][1] / det, products[0][0] / det}
	// Along a unit vector the variance with all others integrated out is products/M, and the stiffening is a part of its inverse.
	f.logDet = dense.LogDet(f.curved) + math.Log(det) - 2*math.Log(float64(m))
	for a := range f.gauge {
		f.gauge[a] = float64(m)/products[a][a] - by
	}
}

// ofGauge is the part of a variance that the common amplitude and phase have, of a direction with these products with U.
func (f *Complex) ofGauge(u, v float64) float64 {
	return f.between[0]*u*u + 2*f.between[1]*u*v + f.between[2]*v*v
}

// gainVolume is the logarithm of the integral over gains about their maximum, with the norms of their priors. The common phase has a circle to be on.
func (f *Complex) gainVolume() (log float64) {
	m := float64(len(f.gains))
	log = 0.5*2*m*math.Log(2*math.Pi) - 0.5*f.logDet
	for a, precision := range f.gauge[:f.parts()] {
		length := math.Inf(1)
		if a == 1 {
			length = 2 * math.Pi * math.Sqrt(m)
		}
		log += min(-0.5*math.Log(max(precision, math.SmallestNonzeroFloat64)), math.Log(length)-0.5*math.Log(2*math.Pi))
	}
	for i, v := range f.gains {
		phase := f.phaseTightness(i)
		log += math.Log(cmplx.Abs(v)) - math.Log(f.Spread) - 0.5*math.Log(2*math.Pi) - math.Log(2*math.Pi) - quadrature.LogBessel(phase)
	}
	return log
}

// covariances are the variances of log r and φ of the sensors, at a fixed mean of each; those of the prior before the first step, or where it failed.
func (f *Complex) covariances() []float64 {
	if f.along[0] == nil {
		return f.unknown(len(f.gains))
	}
	l := f.spreads()
	out := make([]float64, l.Columns)
	for j := range l.Rows {
		for i, v := range l.Row(j)[:j+1] {
			out[i] += v * v
		}
	}
	for i := range out {
		out[i] = max(0, out[i]-f.ofGauge(f.along[0][i], f.along[1][i]))
	}
	f.places.addTo(out)
	return out
}

// spreads are the inverse of the factor of the precision: its columns are what variances are squares of.
func (f *Complex) spreads() dense.Matrix {
	l := dense.New(f.curved.Rows, f.curved.Rows)
	copy(l.Data, f.curved.Data)
	dense.InvertLower(l, runtime.GOMAXPROCS(0))
	for j := range l.Rows {
		clear(l.Row(j)[j+1:])
	}
	return l
}

// unknown are the variances of log r and φ of gains of which nothing is known: those of phases are of a uniform one.
func (f *Complex) unknown(count int) []float64 {
	out := make([]float64, 2*count)
	for i := range count {
		out[i], out[count+i] = f.Spread*f.Spread, math.Pi*math.Pi/3
	}
	return out
}

// Variances are those of s, of both parts together, and of log |s| alone (M), at a fixed mean of log |s| and of phases.
func (f *Complex) Variances() (both, log []float64) {
	of := f.rowCovariances()
	both, log = make([]float64, f.m), of[:f.m]
	for mu, v := range f.S {
		both[mu] = square(v) * (of[mu] + of[f.m+mu])
	}
	return both, log
}

// learnGains takes an EM step of the spread of |s| about one, and of that of phases about zero.
func (f *Complex) learnGains() {
	of, spread, cosines, count := f.covariances(), 0.0, 0.0, len(f.gains)
	for i, v := range f.gains {
		r := cmplx.Abs(v)
		spread += ((r-1)*(r-1) + r*r*of[i]) / float64(count)
		cosines += real(v) / r * math.Exp(-0.5*of[count+i]) / float64(count)
	}
	f.Spread = min(max(math.Sqrt(spread), leastSpread), mostSpread)
	if f.LearnKappa { // Banerjee et al., "Clustering on the unit hypersphere using von Mises-Fisher distributions", 2005, in two dimensions
		c := min(max(cosines, 0), 1-1e-6)
		f.Kappa = c * (2 - c*c) / (1 - c*c)
	}
}

// toConvention goes to the common scale at which the prior of |s| is largest, Σ r² = Σ r, and to the common phase at which that of phases is, where they have one: steps leave both as they are.
func (f *Complex) toConvention() {
	sum, squares := 0.0, 0.0
	var mean complex128
	for _, v := range f.gains {
		r := cmplx.Abs(v)
		sum, squares = sum+r, squares+r*r
		mean += v / complex(r, 0)
	}
	by, turn := complex(sum/squares, 0), complex(1, 0)
	if (f.LearnKappa || f.Kappa > 0) && mean != 0 && !f.Real {
		turn = cmplx.Conj(mean) / complex(cmplx.Abs(mean), 0)
	}
	if f.readers.inPairs() {
		cmplxs.Scale(turn, f.gains) // which rows do not see
		f.Rescale(by * by)
		return
	}
	f.Rescale(by * turn)
}

// Rescale multiplies gains and signals by a number, which is positive where rows are pairs of sensors.
func (f *Complex) Rescale(by complex128) {
	power := square(by)
	f.Noise *= power
	floats.Scale(power, f.Variance)
	cmplxs.Scale(by, f.S)
	switch {
	case f.readers.inPairs():
		cmplxs.Scale(cmplx.Sqrt(by), f.gains)
	case f.readers != nil:
		cmplxs.Scale(by, f.gains)
	}
	for _, s := range f.Snapshots {
		for _, v := range [][]complex128{s.X, s.Lambda, s.location, s.mean} {
			cmplxs.Scale(by, v)
		}
		for _, v := range [][]float64{s.C, s.Sigma, s.gamma, s.variance} {
			floats.Scale(power, v)
		}
		for mu := range s.G {
			s.G[mu] /= cmplx.Conj(by)
			s.Inverse[mu] /= power
		}
	}
}

// mostApart is the mean square of differences, in those expected, up to which two answers are the same.
const mostApart = 4

// Same reports whether another fit has come to the same answer: the same |s| at a fixed mean of log |s|, and signals with entries of the same sizes. Where phases are free, answers that differ by a shift of
// all signals, or by a common phase, are the same. Where |s| is so uncertain that two draws from its prior would pass, agreement says nothing.
func (f *Complex) Same(other *Complex) bool {
	if f.readers.inPairs() {
		return f.sameGains(other)
	}
	if f.apartByChance() <= mostApart {
		return false
	}
	if f.apart(other.S) > mostApart {
		return false
	}
	if (f.whole == nil) != (other.whole == nil) {
		return true // entries of turned snapshots are others
	}
	off, open := 0.0, 0.0
	for k, s := range f.Snapshots {
		a, b := sizes(s.X), sizes(other.Snapshots[k].X)
		for i := range a {
			off += s.times * (a[i] - b[i]) * (a[i] - b[i])
		}
		open += s.times * floats.Sum(s.C)
	}
	return off <= mostApart*open
}

func sizes(x []complex128) []float64 {
	a := make([]float64, len(x))
	for i, v := range x {
		a[i] = cmplx.Abs(v)
	}
	slices.Sort(a)
	return a
}

// apartByChance is what apart is of two draws from the prior of log |s|, on average.
func (f *Complex) apartByChance() float64 {
	_, variances := f.Variances()
	return float64(f.m) * f.Spread * f.Spread / max(floats.Sum(variances), math.SmallestNonzeroFloat64)
}

// apart is the mean square of the differences of log |s|, in those expected of two independent ones, of sensors of which s is known.
func (f *Complex) apart(s []complex128) float64 {
	_, variances := f.Variances()
	var difference []float64
	expected := 0.0
	for mu, v := range s {
		if !cmplx.IsNaN(v) {
			difference = append(difference, math.Log(cmplx.Abs(v)/cmplx.Abs(f.S[mu])))
			expected += 2 * variances[mu]
		}
	}
	square, middle := 0.0, floats.Sum(difference)/float64(len(difference))
	for _, d := range difference {
		square += (d - middle) * (d - middle)
	}
	return square / max(expected, math.SmallestNonzeroFloat64)
}

// Halves is as [Fit.Halves], for |s|: both halves of the snapshots are fitted from the phases that were found, and nothing else. Half of the snapshots may not find amplitudes that all of them
// do. Where halves disagree they are fitted from the gains as well, and the likelier answer of each counts.
func (f *Complex) Halves(ctx context.Context) (ratio float64, err error) {
	if len(f.y) < LeastForHalves {
		return f.redrawn(ctx)
	}
	var halves [2]*Complex
	for half := range halves {
		if halves[half], err = f.half(ctx, half, false); err != nil {
			return math.NaN(), err
		}
	}
	if ratio = f.disagree(halves); ratio <= mostApart {
		return ratio, nil
	}
	for half, was := range halves {
		again, err := f.half(ctx, half, true)
		if err != nil {
			return math.NaN(), err
		}
		if again.settled && (!was.settled || again.logZ > was.logZ) {
			halves[half] = again
		}
	}
	return f.disagree(halves), nil
}

// takeSettings takes over what is known of noise and phases, whether entries are joint, and the units of signals.
func (f *Complex) takeSettings(from *Complex) {
	f.Units = from.Units
	f.GivenNoise, f.Kappa, f.LearnKappa, f.Joint, f.Real = from.GivenNoise, from.Kappa, from.LearnKappa, from.Joint, from.Real
}

// half fits every second snapshot.
func (f *Complex) half(ctx context.Context, half int, fromGains bool) (*Complex, error) {
	return f.again(ctx, (len(f.y)+1-half)/2, func(mu, k int) complex128 {
		if s := f.Snapshots[2*k+half]; s.Inverse[mu] == 0 {
			return cmplx.NaN()
		}
		return f.y[2*k+half][mu]
	}, fromGains)
}

// redrawn is as [Fit.redrawn], for log |s| at a fixed mean.
func (f *Complex) redrawn(ctx context.Context) (ratio float64, err error) {
	seen := make([][]complex128, len(f.y))
	for k, s := range f.Snapshots {
		seen[k] = f.w.times(s.X)
	}
	for draw := range uint64(redraws) {
		random := rand.New(rand.NewPCG(draw, 0))
		fit, err := f.again(ctx, len(f.y), func(mu, k int) complex128 {
			noise := complex(random.NormFloat64(), random.NormFloat64()) * complex(math.Sqrt(0.5*f.Noise), 0)
			if f.Snapshots[k].Inverse[mu] == 0 {
				return cmplx.NaN()
			}
			return (seen[k][mu] + noise) / f.S[mu]
		}, false)
		if err != nil {
			return math.NaN(), err
		}
		ratio += 2 * f.apart(fit.S) / redraws // which expects errors of both
	}
	return ratio, nil
}

// again fits so many snapshots of readings, from the phases that were found or from the gains; joint entries then begin with their variances as well, which fewer snapshots may not find.
func (f *Complex) again(ctx context.Context, count int, y func(mu, k int) complex128, fromGains bool) (*Complex, error) {
	fit := NewComplex(f.m, f.n, count, f.w.at, y, 0)
	fit.takeSettings(f)
	if f.readers != nil {
		fit.ReadBy(f.readers.of, len(f.gains), 0)
	}
	fit = fit.Turned()
	start := slices.Clone(f.gains)
	if !fromGains {
		for i, v := range start {
			start[i] = v / complex(cmplx.Abs(v), 0)
		}
	}
	fit.setGains(start)
	if fit.begun = fromGains; f.Joint && fromGains {
		fit.beginRows(f)
	}
	for done := false; !done; {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		var err error
		if done, err = fit.Step(); err != nil {
			return nil, err
		}
	}
	return fit, nil
}

// disagree is the mean square of what halves differ by from each other, and from all, in what is stated.
func (f *Complex) disagree(halves [2]*Complex) float64 {
	_, variances := f.Variances()
	logs := make([][2]float64, f.m)
	var middle [2]float64
	for mu := range logs {
		own := math.Log(cmplx.Abs(f.S[mu]))
		for half, fit := range halves {
			logs[mu][half] = math.Log(cmplx.Abs(fit.S[mu])) - own
			middle[half] += logs[mu][half] / float64(f.m)
		}
	}
	square := 0.0
	for _, l := range logs {
		a, b := l[0]-middle[0], l[1]-middle[1]
		scatter, bias := 0.5*(a-b), 0.5*(a+b)
		square += scatter*scatter + bias*bias
	}
	return square / floats.Sum(variances)
}

// AmplitudeVariance is the variance of |s|, given those of log |s|.
func (f *Complex) AmplitudeVariance(mu int, log []float64) float64 { return square(f.S[mu]) * log[mu] }
