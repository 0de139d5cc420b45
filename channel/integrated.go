package channel

import (
	"math"
	"slices"

	"github.com/calamp/calamp/internal/quadrature"
	"github.com/calamp/calamp/internal/search"
)

// Sensors whose readings depend on s through more than τ, B and n: codes, signs, counts. Given s each reading is an integral over z, of which
//
//	P(y | s) = ∫ p(y | z, s) N(z; ω, D) dz,   m and v, the mean and variance of t = (z - ω)/√D under that integrand,
//
// are all that is needed: g = m/√D and ∂g = (v-1)/D. The posterior p(s) ∏ P(y | s) is integrated by Gauss–Legendre rules between its ends and
// its mode.

// integrand is what a reading says.
type integrand interface {
	gains() *GainPrior

	// variance is D for a z of variance v.
	variance(v float64) float64

	// at returns log P(y | s) of reading j, m, v and ∂_s log P(y | s), where root is √D.
	at(j int, y, s, omega, root float64) (logP, mean, variance, slope float64)

	// logUnit is what log P is above a density of readings.
	logUnit() float64
}

// sensorIntegral is the posterior of s of one sensor.
type sensorIntegral struct {
	of      integrand
	gain    *GainPrior
	scale   float64 // of ω
	prior   posteriorDensity
	nothing []float64 // statistics of no reading

	y, omega, root []float64 // of each reading that is there, with √D
	at             []int     // and its place in the block
	first          int       // the place of the block in all readings

	known, toward float64 // what is known of the sensor by itself

	// Nodes of the integral over s, with Σ ∂_s log P, and of every reading m and v.
	s, weight, slope []float64
	mean, variance   []float64 // nodes×readings
	logMass          float64
}

// newIntegral is room for the posterior of one sensor after the other.
func newIntegral(of integrand) *sensorIntegral {
	q := &sensorIntegral{of: of, gain: of.gains(), scale: 1}
	q.nothing = make([]float64, q.gain.Width())
	if q.gain.Each == nil {
		q.prior = q.gain.density(q.nothing)
	}
	return q
}

// load takes a sensor's readings.
func (q *sensorIntegral) load(b *Block, row int) {
	q.y, q.omega, q.root, q.at, q.first = q.y[:0], q.omega[:0], q.root[:0], q.at[:0], b.First*b.P
	for j := row * b.P; j < (row+1)*b.P; j++ {
		if math.IsNaN(b.Y[j]) {
			b.G[j], b.DG[j] = 0, 0
			continue
		}
		q.y, q.omega, q.at = append(q.y, b.Y[j]), append(q.omega, q.scale*b.Omega[j]), append(q.at, j)
		q.root = append(q.root, math.Sqrt(max(q.of.variance(b.V[j]), math.SmallestNonzeroFloat64)))
	}
	if q.gain.Each != nil {
		clear(q.nothing)
		copy(q.nothing[gainWidth:], b.statsOf(row)[gainWidth:])
		q.known, q.toward = q.gain.own(q.nothing, 0)
		q.prior = q.gain.density(q.nothing)
	}
}

// likelihood is log P of all readings at s, and its derivative; the moments of each are written where there is room.
func (q *sensorIntegral) likelihood(s float64, means, variances []float64) (value, slope float64) {
	for i, y := range q.y {
		logP, m, v, d := q.of.at(q.first+q.at[i], y, s, q.omega[i], q.root[i])
		value += logP
		slope += d
		if means != nil {
			means[i], variances[i] = m, v
		}
	}
	return value, slope
}

// core is the prior without its tail, and its derivative, but for a constant.
func (q *sensorIntegral) core(s float64) (value, slope float64) {
	p := q.gain
	value, slope = s*(q.toward-0.5*q.known*s), q.toward-q.known*s
	if p.Log {
		l := math.Log(s / p.Center)
		return value - 0.5*p.Precision*l*l - math.Log(s), slope - (p.Precision*l+1)/s
	}
	return value - 0.5*p.Precision*(s-p.Center)*(s-p.Center), slope - p.Precision*(s-p.Center)
}

// codeDepth is how far below its peak the logarithm of a density is cut.
const codeDepth = 40

// extent is where a density of s, given as its logarithm with its derivative, has all but e^-codeDepth of its peak.
func (q *sensorIntegral) extent(density func(s float64) (value, slope float64)) (left, mode, right float64) {
	lo, hi := q.gain.Lo, q.gain.Hi
	mode = modeOf(density, lo, hi)
	peak, _ := density(mode)
	below := func(s float64) bool { v, _ := density(s); return !(v >= peak-codeDepth) }
	step := curvatureWidth(density, mode, lo, hi)
	return search.Fall(below, mode, lo, -step, 0.1), mode, search.Fall(below, mode, hi, step, 0.1)
}

// modeOf is where a log-concave density on [lo, hi] is within half of its peak's logarithm, by bisection of what may span decades.
func modeOf(density func(s float64) (value, slope float64), lo, hi float64) float64 {
	if _, slope := density(lo); slope <= 0 {
		return lo
	}
	if _, slope := density(hi); slope >= 0 {
		return hi
	}
	for range 100 {
		middle := math.Sqrt(lo * hi)
		_, slope := density(middle)
		if slope > 0 {
			lo = middle
		} else {
			hi = middle
		}
		if math.Abs(slope)*(hi-lo) < 0.5 || hi-lo < 1e-14*hi {
			return middle
		}
	}
	return lo
}

// curvatureWidth is the standard deviation of a density about its mode, from the change of its slope.
func curvatureWidth(density func(s float64) (value, slope float64), mode, lo, hi float64) float64 {
	h := 1e-5 * mode
	a, b := max(lo, mode-h), min(hi, mode+h)
	_, before := density(a)
	_, after := density(b)
	if bend := (before - after) / (b - a); bend > 0 {
		return min(1/math.Sqrt(bend), hi-lo)
	}
	return hi - lo
}

// integrate finds the nodes, their weights and the moments of readings there.
func (q *sensorIntegral) integrate() {
	likelihood := func(s float64) (value, slope float64) { return q.likelihood(s, nil, nil) }
	left, mode, right := q.extent(func(s float64) (value, slope float64) {
		value, slope = q.likelihood(s, nil, nil)
		v, d := q.core(s)
		return value + v, slope + d
	})
	cuts := []float64{left, mode, right}
	if q.gain.Tail > 0 { // the likelihood may have its maximum at an outlying s
		if from, most, to := q.extent(likelihood); from < left || to > right {
			cuts = append(cuts, from, most, to)
			slices.Sort(cuts)
		}
	}
	q.s, q.weight, q.slope, q.mean, q.variance = q.s[:0], q.weight[:0], q.slope[:0], q.mean[:0], q.variance[:0]
	peak, readings := math.Inf(-1), len(q.y)
	for i, from := range cuts[:len(cuts)-1] {
		half, middle := 0.5*(cuts[i+1]-from), 0.5*(cuts[i+1]+from)
		if !(half > 0) {
			continue
		}
		x, w := quadrature.Legendre20()
		for j := range x {
			s, end := middle+half*x[j], len(q.mean)
			q.mean = append(q.mean, make([]float64, readings)...)
			q.variance = append(q.variance, make([]float64, readings)...)
			value, slope := q.likelihood(s, q.mean[end:], q.variance[end:])
			log := value + math.Log(half*w[j]*q.prior.at(s))
			peak = max(peak, log)
			q.s, q.weight, q.slope = append(q.s, s), append(q.weight, log), append(q.slope, slope)
		}
	}
	if math.IsInf(peak, -1) { // a density so steep that in double precision it is a point mass
		q.s, q.mean, q.variance = []float64{mode}, make([]float64, readings), make([]float64, readings)
		value, slope := q.likelihood(mode, q.mean, q.variance)
		q.weight, q.slope, q.logMass = []float64{1}, []float64{slope}, value
		return
	}
	total := 0.0
	for i, log := range q.weight {
		q.weight[i] = math.Exp(log - peak)
		total += q.weight[i]
	}
	for i := range q.weight {
		q.weight[i] /= total
	}
	q.logMass = peak + math.Log(total)
}

// moments are the mean and the variance of values at the nodes.
func (q *sensorIntegral) moments(value func(node int) float64) (mean, variance float64) {
	for i, w := range q.weight {
		mean += w * value(i)
	}
	for i, w := range q.weight {
		d := value(i) - mean
		variance += w * d * d
	}
	return mean, variance
}

// fill is Output.
func (q *sensorIntegral) fill(b *Block) {
	for row := range b.Rows() {
		stats := b.statsOf(row)
		copy(stats, b.Past[row*len(stats):(row+1)*len(stats)]) // what is known of the sensor by itself
		clear(stats[:gainWidth])
		q.load(b, row)
		if len(q.y) == 0 {
			q.gain.Posteriors(b.S[row:row+1], b.SVar[row:row+1], stats)
			b.LogZ[row] = 0
			continue
		}
		q.integrate()
		readings := len(q.y)
		for i, j := range q.at {
			root := q.root[i]
			g, spread := q.moments(func(node int) float64 { return q.mean[node*readings+i] / root })
			inside, _ := q.moments(func(node int) float64 { return q.variance[node*readings+i] })
			b.G[j], b.DG[j] = g, min(0, (inside-1)/(root*root)+spread)
		}
		s, variance := q.moments(func(node int) float64 { return q.s[node] })
		b.S[row], b.SVar[row] = min(max(s, q.gain.Lo), q.gain.Hi), variance
		q.condense(stats, s, variance)
		b.LogZ[row] = q.logMass - float64(readings)*q.of.logUnit()
	}
}

// condense writes the statistics of a [Gain] that says the same of s to second order: the line through ∂_s log P - n/s over the posterior, whose mean and
// variance are given. n is the number of readings, and fewer where codes are so wide that they say less of s than n/s² alone.
func (q *sensorIntegral) condense(stats []float64, mean, variance float64) {
	if !(variance > 0) {
		return
	}
	var slope, inverse, bend, inverseBend float64
	for i, w := range q.weight {
		slope += w * q.slope[i]
		inverse += w / q.s[i]
		bend -= w * (q.s[i] - mean) * q.slope[i] / variance
		inverseBend -= w * (q.s[i] - mean) / (q.s[i] * variance)
	}
	n := min(float64(len(q.y)), max(0, wideCodes*bend/inverseBend))
	tau := max(0, bend-n*inverseBend)
	stats[precision], stats[field], stats[readings] = tau, slope-n*inverse+tau*mean, n
}

// wideCodes is the part of what readings say of s that n/s² may be at most: for Gaussian noise it is less than a half, since the rest, y²/D,
// is at least as much where readings are above the noise.
const wideCodes = 0.5

// scaleDerivatives are the first and second derivative of Σ log Z_out, at scale, by a factor of all ω (see [Calibrating]).
func (q *sensorIntegral) scaleDerivatives(scale float64, b *Block) (first, second float64) {
	q.scale = scale
	for row := range b.Rows() {
		working := 1 - b.Broken[row]
		if working == 0 {
			continue
		}
		unread := *b
		unread.G, unread.DG = make([]float64, len(b.Y)), make([]float64, len(b.Y))
		q.load(&unread, row)
		if len(q.y) == 0 {
			continue
		}
		q.integrate()
		readings := len(q.y)
		sum := func(of func(i int) float64) (total float64) {
			for i := range readings {
				total += of(i)
			}
			return total
		}
		mean, spread := q.moments(func(node int) float64 {
			return sum(func(i int) float64 { return b.Omega[q.at[i]] * q.mean[node*readings+i] / q.root[i] })
		})
		curve, _ := q.moments(func(node int) float64 {
			return sum(func(i int) float64 {
				w := b.Omega[q.at[i]] / q.root[i]
				return w * w * (q.variance[node*readings+i] - 1)
			})
		})
		first += working * mean
		second += working * (curve + spread)
	}
	return first, second
}

// tangent is [SlowScale.ScaleTangent] of a channel all of whose sensors are integrals: what their statistics say at any scale, with the ends of
// the range of s in it, and a line that makes value and slope at one scale those of the integrals.
func tangent(c Calibrating, at float64, b *Block) func(scale float64) (first, second float64) {
	prior := c.Calibration().(GainPrior)
	value, slope := c.ScaleDerivatives(at, b)
	first, second := prior.ScaleDerivatives(at, b.Broken, b.Stats)
	value, slope = value-first, slope-second
	return func(scale float64) (float64, float64) {
		first, second := prior.ScaleDerivatives(scale, b.Broken, b.Stats)
		return first + value + slope*(scale-at), second + slope
	}
}
