package channel

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/calamp/calamp/internal/quadrature"
	"github.com/calamp/calamp/internal/search"
)

// Codes is the channel of converters: a reading is the code of an interval [a, b) that (z+ε)/s lies in, and no more is known of it
// (Zymnis, Boyd and Candès, "Compressed sensing with quantized measurements", 2010). Given s its likelihood is
//
//	P(sa < z+ε < sb) = Φ(β) - Φ(α),   α = (sa - ω)/√D,   β = (sb - ω)/√D,   D = V+Δ,
//
// which is log-concave in s and ω. With the mean m and the variance v of N(0, 1) between α and β
//
//	g = m/√D,   ∂g = (v-1)/D,   ∂_s log P = (1 - v - m(m + ω/√D))/s,
//
// and over the posterior of s, p(s) ∏ P, an integral,
//
//	g = E[g(s)],   ∂g = E[∂g(s)] + Var g(s).
//
// The statistics of a sensor are those of a [Gain] that says the same of s as far as the second order goes: τ and B are the straight line
// through ∂_s log P - n/s over the posterior. They are exact in the limit of fine codes.
type Codes struct {
	Prior    GainPrior
	NoiseVar float64 // Δ ≥ 0

	// Step is the width of a code in units of the readings, which lie in the middle: y stands for [y - Step/2, y + Step/2). 0 for one bit:
	// then a positive reading says that (z+ε)/s is above Threshold, and any other that it is not.
	Step      float64
	Threshold float64 // only for one bit

	// Saturation is the size of the last code on either side: it stands for all that is beyond. 0 where codes do not end.
	Saturation float64
}

// CodesOf are the sensors in order of c as converters; ok is false where they are none.
func CodesOf(c Channel) (codes Codes, ok bool) {
	codes, ok = InOrder(c).(Codes)
	return codes, ok
}

// Noise implements [Noisy].
func (c Codes) Noise() float64 { return c.NoiseVar }

// WithNoise implements [Noisy].
func (c Codes) WithNoise(v float64) Channel {
	c.NoiseVar = v
	return c
}

// LeastLearned is the noise below which readings do not tell how much there is: a thousandth of the variance of an error that is anywhere in
// a cell, Step²/12, times s².
func (c Codes) LeastLearned() float64 {
	width := c.Step * Middle(c.Prior)
	return width * width / 12 * unseenNoise
}

// unseenNoise is the part of a cell's own variance below which noise is not seen beside it.
const unseenNoise = 1e-3

// Calibration implements [Calibrating].
func (c Codes) Calibration() Calibration { return c.Prior }

// WithCalibration implements [Calibrating]; the calibration must be a [GainPrior].
func (c Codes) WithCalibration(to Calibration) Channel {
	c.Prior = to.(GainPrior)
	return c
}

// Name implements [Named].
func (c Codes) Name() string {
	if c.OneBit() {
		return fmt.Sprintf("sign threshold=%g", c.Threshold)
	}
	return fmt.Sprintf("codes step=%g saturation=%g", c.Step, c.Saturation)
}

// OneBit reports whether readings are signs.
func (c Codes) OneBit() bool { return c.Step == 0 }

// Validate reports a parameter that describes no channel.
func (c Codes) Validate() error {
	switch {
	case !(c.Step >= 0) || math.IsInf(c.Step, 1):
		return fmt.Errorf("the step between codes must be positive and finite, found %g", c.Step)
	case math.IsNaN(c.Threshold) || math.IsInf(c.Threshold, 0):
		return fmt.Errorf("the threshold of one-bit readings must be finite, found %g", c.Threshold)
	case !(c.Saturation >= 0) || math.IsInf(c.Saturation, 1):
		return fmt.Errorf("the size of the last code must be positive and finite, found %g", c.Saturation)
	case c.OneBit() && c.Saturation > 0:
		return errors.New("one-bit readings have no last code: leave saturation out")
	case !c.OneBit() && c.Threshold != 0:
		return errors.New("a threshold is for one-bit readings, and these have a step")
	}
	if err := c.Prior.Validate(); err != nil {
		return err
	}
	return validNoise(c.NoiseVar)
}

// cell is the interval that a reading stands for.
func (c *Codes) cell(y float64) (a, b float64) {
	half := 0.5 * c.Step
	switch {
	case c.OneBit() && y > 0:
		return c.Threshold, math.Inf(1)
	case c.OneBit():
		return math.Inf(-1), c.Threshold
	case Clipped(y, c.Saturation) && y > 0:
		return c.Saturation - half, math.Inf(1)
	case Clipped(y, c.Saturation):
		return math.Inf(-1), half - c.Saturation
	}
	return y - half, y + half
}

// CodeOf is the code that a converter makes of a reading; one that is missing stays so.
func (c Codes) CodeOf(y float64) float64 {
	switch {
	case math.IsNaN(y):
		return y
	case c.OneBit() && y > c.Threshold:
		return 1
	case c.OneBit():
		return -1
	}
	y = c.Step * math.Round(y/c.Step)
	if c.Saturation > 0 {
		y = min(max(y, -c.Saturation), c.Saturation)
	}
	return y
}

// offGrid is how far from the middle of a code a reading may be, in steps: files in single precision have seven digits of a code.
const offGrid = 1e-3

// Check reports a reading that no such converter gives.
func (c Codes) Check(y []float64, p int) error {
	first, any := 0.0, false
	for j, v := range y {
		switch {
		case math.IsNaN(v) || Clipped(v, c.Saturation):
		case c.OneBit():
			if v != 1 && v != -1 && v != 0 {
				return fmt.Errorf("Y: sensor %d, signal %d has a reading of %g, expected 1 above the threshold and -1 (or 0) below", j/p, j%p, v)
			}
		case !any:
			first, any = v, true
		default:
			codes := (v - first) / c.Step
			if off := math.Abs(codes - math.Round(codes)); off > offGrid+1e-7*math.Abs(v/c.Step) {
				return fmt.Errorf("Y: sensor %d, signal %d has a reading of %g, which is %.3g steps of %g from that of the first reading, %g: expected a whole number of steps. Readings that are no codes are for a run without the step",
					j/p, j%p, v, codes, c.Step, first)
			}
		}
	}
	return nil
}

// Output implements [Channel].
func (c Codes) Output(b *Block) {
	c.posterior().fill(b)
}

// posterior is the room for that of one sensor after the other.
func (c *Codes) posterior() *codePosterior {
	q := &codePosterior{codes: c, nothing: make([]float64, c.Prior.Width()), scale: 1}
	if c.Prior.Each == nil {
		q.prior = c.Prior.density(q.nothing)
	}
	return q
}

// codePosterior is the posterior of s of one sensor.
type codePosterior struct {
	codes   *Codes
	scale   float64 // of ω
	prior   posteriorDensity
	nothing []float64 // statistics of no reading

	lo, hi, omega, root []float64 // of each reading that is there: its cell, ω and √D
	at                  []int     // and its place in the block

	known, toward float64 // what is known of the sensor by itself

	// Nodes of the integral over s, with Σ ∂_s log P, and of every reading the mean and variance of N(0, 1) in its cell.
	s, weight, slope []float64
	mean, variance   []float64 // nodes×readings
	logMass          float64
}

// load takes a sensor's readings.
func (q *codePosterior) load(b *Block, row int) {
	c := q.codes
	q.lo, q.hi, q.omega, q.root, q.at = q.lo[:0], q.hi[:0], q.omega[:0], q.root[:0], q.at[:0]
	for j := row * b.P; j < (row+1)*b.P; j++ {
		if math.IsNaN(b.Y[j]) {
			b.G[j], b.DG[j] = 0, 0
			continue
		}
		from, to := c.cell(b.Y[j])
		q.lo, q.hi = append(q.lo, from), append(q.hi, to)
		q.omega, q.at = append(q.omega, q.scale*b.Omega[j]), append(q.at, j)
		q.root = append(q.root, math.Sqrt(max(b.V[j]+c.NoiseVar, math.SmallestNonzeroFloat64)))
	}
	if c.Prior.Each != nil {
		clear(q.nothing)
		copy(q.nothing[gainWidth:], b.statsOf(row)[gainWidth:])
		q.known, q.toward = c.Prior.own(q.nothing, 0)
		q.prior = c.Prior.density(q.nothing)
	}
}

// reading is reading i at s: the logarithm of its probability, and the mean and variance of N(0, 1) in its cell.
func (q *codePosterior) reading(i int, s float64) (logMass, mean, variance float64) {
	return quadrature.NormalCell((s*q.lo[i]-q.omega[i])/q.root[i], (s*q.hi[i]-q.omega[i])/q.root[i])
}

// likelihood is log P of all readings at s, and its derivative; the moments of each are written where there is room.
func (q *codePosterior) likelihood(s float64, means, variances []float64) (value, slope float64) {
	for i := range q.lo {
		logMass, m, v := q.reading(i, s)
		value += logMass
		slope += 1 - v - m*(m+q.omega[i]/q.root[i])
		if means != nil {
			means[i], variances[i] = m, v
		}
	}
	return value, slope / s
}

// core is the prior without sensors like no other, and its derivative, but for a constant.
func (q *codePosterior) core(s float64) (value, slope float64) {
	p := &q.codes.Prior
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
func (q *codePosterior) extent(density func(s float64) (value, slope float64)) (left, mode, right float64) {
	lo, hi := q.codes.Prior.Lo, q.codes.Prior.Hi
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
func (q *codePosterior) integrate() {
	likelihood := func(s float64) (value, slope float64) { return q.likelihood(s, nil, nil) }
	left, mode, right := q.extent(func(s float64) (value, slope float64) {
		value, slope = q.likelihood(s, nil, nil)
		v, d := q.core(s)
		return value + v, slope + d
	})
	cuts := []float64{left, mode, right}
	if q.codes.Prior.Tail > 0 { // the readings may want an s that the others have not
		if from, most, to := q.extent(likelihood); from < left || to > right {
			cuts = append(cuts, from, most, to)
			slices.Sort(cuts)
		}
	}
	q.s, q.weight, q.slope, q.mean, q.variance = q.s[:0], q.weight[:0], q.slope[:0], q.mean[:0], q.variance[:0]
	peak, readings := math.Inf(-1), len(q.lo)
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
func (q *codePosterior) moments(value func(node int) float64) (mean, variance float64) {
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
func (q *codePosterior) fill(b *Block) {
	for row := range b.Rows() {
		stats := b.statsOf(row)
		copy(stats, b.Past[row*len(stats):(row+1)*len(stats)]) // what is known of the sensor by itself
		clear(stats[:gainWidth])
		q.load(b, row)
		if len(q.lo) == 0 {
			q.codes.Prior.Posteriors(b.S[row:row+1], b.SVar[row:row+1], stats)
			b.LogZ[row] = 0
			continue
		}
		q.integrate()
		readings := len(q.lo)
		for i, j := range q.at {
			root := q.root[i]
			g, spread := q.moments(func(node int) float64 { return q.mean[node*readings+i] / root })
			inside, _ := q.moments(func(node int) float64 { return q.variance[node*readings+i] })
			b.G[j], b.DG[j] = g, min(0, (inside-1)/(root*root)+spread)
		}
		s, variance := q.moments(func(node int) float64 { return q.s[node] })
		b.S[row], b.SVar[row] = min(max(s, q.codes.Prior.Lo), q.codes.Prior.Hi), variance
		q.condense(stats, s, variance)
		b.LogZ[row] = q.logMass
		if !q.codes.OneBit() { // a density of readings, as that of other channels
			b.LogZ[row] -= float64(readings) * math.Log(q.codes.Step)
		}
	}
}

// condense writes the statistics of a [Gain] that says the same of s: the line through ∂_s log P - n/s over the posterior, whose mean and
// variance are given. n is the number of readings, and fewer where codes are so wide that they say less of s than n/s² alone.
func (q *codePosterior) condense(stats []float64, mean, variance float64) {
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
	n := min(float64(len(q.lo)), max(0, wideCodes*bend/inverseBend))
	tau := max(0, bend-n*inverseBend)
	stats[precision], stats[field], stats[readings] = tau, slope-n*inverse+tau*mean, n
}

// wideCodes is the part of what readings say of s that n/s² may be at most: for Gaussian noise it is less than a half, since the rest, y²/D,
// is at least as much where readings are above the noise.
const wideCodes = 0.5

// ScaleQuadratic implements [Calibrating]: all is in ScaleDerivatives.
func (c Codes) ScaleQuadratic(sum float64, _ *Block) float64 { return sum }

// ScaleDerivatives implements [Calibrating].
func (c Codes) ScaleDerivatives(scale float64, b *Block) (first, second float64) {
	q := c.posterior()
	q.scale = scale
	for row := range b.Rows() {
		working := 1 - b.Broken[row]
		if working == 0 {
			continue
		}
		unread := *b
		unread.G, unread.DG = make([]float64, len(b.Y)), make([]float64, len(b.Y))
		q.load(&unread, row)
		if len(q.lo) == 0 {
			continue
		}
		q.integrate()
		readings := len(q.lo)
		sum := func(node int, of func(i int) float64) (total float64) {
			for i := range readings {
				total += of(i)
			}
			return total
		}
		mean, spread := q.moments(func(node int) float64 {
			return sum(node, func(i int) float64 { return b.Omega[q.at[i]] * q.mean[node*readings+i] / q.root[i] })
		})
		curve, _ := q.moments(func(node int) float64 {
			return sum(node, func(i int) float64 {
				w := b.Omega[q.at[i]] / q.root[i]
				return w * w * (q.variance[node*readings+i] - 1)
			})
		})
		first += working * mean
		second += working * (curve + spread)
	}
	return first, second
}

// ScaleTangent implements [SlowScale]: every sensor is an integral.
func (c Codes) ScaleTangent(at float64, b *Block) func(scale float64) (first, second float64) {
	first, second := c.ScaleDerivatives(at, b)
	return func(scale float64) (float64, float64) { return first + second*(scale-at), second }
}
