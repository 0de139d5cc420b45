package channel

import (
	"math"
	"slices"

	"github.com/calamp/calamp/internal/quadrature"
)

// Clipped readings. A sensor that saturates at L gives y = ±L for all |z/s| ≥ L,
// so such a reading is a censored one: its likelihood is that of z+ε ≥ sL (for
// y = +L),
//
//	P(z+ε ≥ sL) = Φ(u(s)),   u(s) = (σω - sL)/√D,   σ = sign y,   D = V+Δ,
//
// which depends on s no longer through τ and B alone. The posterior of s is that
// of the sensor's other readings times these factors, all of them log-concave,
// and is integrated numerically; given s
//
//	g = σ h(u)/√D,   ∂g = -h(u)(h(u)+u)/D,   h = φ/Φ,
//
// for a clipped reading, as for any other g = (sy - ω)/D and ∂g = -1/D, and then
//
//	g = E[g(s)],   ∂g = E[∂g(s)] + Var g(s)   over the posterior of s.

// noInfluence is u above which a clipped reading is no surprise: Φ(u) is 1.
const noInfluence = 9

// Clipping is a channel whose sensors may saturate.
type Clipping interface {
	Channel

	// Limit is the size of a reading at which sensors clip; 0 where they do not.
	Limit() float64
}

// LimitOf is the size of a reading at which the sensors of c clip; 0 where they do not.
func LimitOf(c Channel) float64 {
	if c, ok := c.(Clipping); ok {
		return c.Limit()
	}
	return 0
}

// Clipped reports whether a reading is clipped at a limit (see [LimitOf]).
func Clipped(y, limit float64) bool { return limit > 0 && math.Abs(y) >= limit }

// AnyClipped reports whether one of several readings is.
func AnyClipped(y []float64, limit float64) bool {
	for _, v := range y {
		if Clipped(v, limit) {
			return true
		}
	}
	return false
}

func (c Gain) clips(y float64) bool { return Clipped(y, c.Saturation) }

// outputClipped is Output with clipped readings: first without them, then anew
// for the sensors that have some.
func (c Gain) outputClipped(b *Block) {
	plain := *b
	plain.Y = make([]float64, len(b.Y))
	for j, y := range b.Y {
		plain.Y[j] = y
		if c.clips(y) {
			plain.Y[j] = math.NaN()
		}
	}
	c.output(&plain)
	for row := range b.Rows() {
		from, to := row*b.P, (row+1)*b.P
		if !AnyClipped(b.Y[from:to], c.Saturation) {
			continue
		}
		q := &clippedPosterior{gain: c, y: b.Y[from:to], omega: b.Omega[from:to], v: b.V[from:to]}
		if far := b.S[row] + 10*math.Sqrt(b.SVar[row]); q.surprising(min(far, c.Prior.Hi)) {
			q.integrate(c.Prior.of(b.Stats, row), 1)
			q.output(b, row)
		}
	}
}

// clippedPosterior is the posterior of s of one sensor with clipped readings.
type clippedPosterior struct {
	quadrature.Factored
	gain        Gain
	y, omega, v []float64
}

// surprising reports whether some clipped reading could have been another one,
// at s or where s is less.
func (q *clippedPosterior) surprising(s float64) bool {
	for k, y := range q.y {
		if q.gain.clips(y) && q.u(k, s) < noInfluence {
			return true
		}
	}
	return false
}

// integrate takes in the statistics of the readings that are not clipped, with
// their B multiplied by scale.
func (q *clippedPosterior) integrate(stats *[gainWidth]float64, scale float64) {
	var turns []quadrature.Turn
	for k, y := range q.y {
		if q.gain.clips(y) {
			at := math.Copysign(q.omega[k], q.omega[k]*y) / q.gain.Saturation // where u = 0
			turns = append(turns, quadrature.Turn{At: at, Width: math.Sqrt(q.d(k)) / q.gain.Saturation})
		}
	}
	p := q.gain.Prior
	q.Factored = quadrature.NewFactored(stats[readings], stats[precision]+p.Precision, scale*stats[field]+p.Precision*p.Center, p.Lo, p.Hi, q.logFactor, turns)
}

func (q *clippedPosterior) d(k int) float64 {
	return max(q.v[k]+q.gain.NoiseVar, math.SmallestNonzeroFloat64)
}

// u is how many standard deviations the prediction of clipped reading k is
// beyond the limit.
func (q *clippedPosterior) u(k int, s float64) float64 {
	beyond := math.Copysign(q.omega[k], q.omega[k]*q.y[k]) - s*q.gain.Saturation
	return beyond / math.Sqrt(q.d(k))
}

// logFactor is what the clipped readings say of s, and its derivative.
func (q *clippedPosterior) logFactor(s float64) (value, slope float64) {
	for k, y := range q.y {
		if !q.gain.clips(y) {
			continue
		}
		if u := q.u(k, s); u < noInfluence {
			logMass, mean, _ := quadrature.TruncatedNormal(u)
			value += logMass
			slope -= (mean - u) * q.gain.Saturation / math.Sqrt(q.d(k))
		}
	}
	return value, slope
}

// given returns g and ∂g of reading k at a value of s, base + offset.
func (q *clippedPosterior) given(k int, offset float64) (g, dg float64) {
	s, y, d := q.Base+offset, q.y[k], q.d(k)
	switch {
	case math.IsNaN(y):
		return 0, 0
	case !q.gain.clips(y):
		return (s*y - q.omega[k]) / d, -1 / d
	}
	u := q.u(k, s)
	if !(u < noInfluence) {
		return 0, 0
	}
	_, mean, variance := quadrature.TruncatedNormal(u)
	return math.Copysign((mean-u)/math.Sqrt(d), y), (variance - 1) / d
}

// moments averages values of g and ∂g, one for each node, over s: E g and
// E ∂g + Var g.
func (q *clippedPosterior) moments(g, dg []float64) (mean, slope float64) {
	for i, w := range q.Weight {
		mean += w * g[i]
		slope += w * dg[i]
	}
	for i, w := range q.Weight {
		d := g[i] - mean
		slope += w * d * d
	}
	return mean, slope
}

func (q *clippedPosterior) output(b *Block, row int) {
	nodes := len(q.Weight)
	g, dg := make([]float64, nodes), make([]float64, nodes)
	offset, variance := q.moments(q.Offset, dg)
	b.S[row], b.SVar[row] = min(max(q.Base+offset, q.gain.Prior.Lo), q.gain.Prior.Hi), variance
	outside := 0.0 // log Z outside of the integral over s
	for k, y := range q.y {
		for i, u := range q.Offset {
			g[i], dg[i] = q.given(k, u)
		}
		j := row*b.P + k
		b.G[j], b.DG[j] = q.moments(g, dg)
		b.DG[j] = min(0, b.DG[j])
		if d := q.d(k); !math.IsNaN(y) && !q.gain.clips(y) {
			outside -= 0.5 * (q.omega[k]*(q.omega[k]/d) + math.Log(2*math.Pi*d))
		}
	}
	b.LogZ[row] = q.LogMass - q.gain.Prior.logMass() + outside
}

// sensorScale returns the first and second derivative in c, at c = scale, of log
// Z_out of one sensor with clipped readings when its ω are multiplied by c.
func (c Gain) sensorScale(scale float64, b *Block, row int) (first, second float64) {
	from, to := row*b.P, (row+1)*b.P
	omega := b.Omega[from:to]
	scaled := make([]float64, len(omega))
	for k, w := range omega {
		scaled[k] = scale * w
	}
	q := &clippedPosterior{gain: c, y: b.Y[from:to], omega: scaled, v: b.V[from:to]}
	q.integrate(c.Prior.of(b.Stats, row), scale)
	g, dg := make([]float64, len(q.Weight)), make([]float64, len(q.Weight))
	for k, w := range omega {
		for i, u := range q.Offset {
			gk, dgk := q.given(k, u)
			g[i] += w * gk
			dg[i] += w * w * dgk
		}
	}
	return q.moments(g, dg)
}

// unclipped is b with the sensors that have clipped readings left out by their
// weight: their evidence along the scale is not closed, see clippedRows.
func (c Gain) unclipped(b *Block) *Block {
	rest := *b
	rest.Broken = slices.Clone(b.Broken)
	for row := range b.Rows() {
		if AnyClipped(b.Y[row*b.P:(row+1)*b.P], c.Saturation) {
			rest.Broken[row] = 1
		}
	}
	return &rest
}

func (c Gain) clippedQuadratic(sum float64, b *Block) float64 {
	return Quadratic(sum, c.unclipped(b), c.NoiseVar)
}

func (c Gain) clippedScale(scale float64, b *Block) (first, second float64) {
	first, second = c.Prior.ScaleDerivatives(scale, c.unclipped(b).Broken, b.Stats)
	f, s := c.clippedRows(scale, b)
	return first + f, second + s
}

// clippedRows is the part of the sensors with clipped readings.
func (c Gain) clippedRows(scale float64, b *Block) (first, second float64) {
	for row := range b.Rows() {
		if !AnyClipped(b.Y[row*b.P:(row+1)*b.P], c.Saturation) {
			continue
		}
		f, s := c.sensorScale(scale, b, row)
		first += (1 - b.Broken[row]) * f
		second += (1 - b.Broken[row]) * s
	}
	return first, second
}

// ScaleTangent implements [SlowScale]: sensors with clipped readings, each an
// integral, are taken to second order.
func (c Gain) ScaleTangent(at float64, b *Block) func(scale float64) (first, second float64) {
	if c.Saturation == 0 {
		return nil
	}
	rest := c.unclipped(b).Broken
	f, s := c.clippedRows(at, b)
	return func(scale float64) (first, second float64) {
		first, second = c.Prior.ScaleDerivatives(scale, rest, b.Stats)
		return first + (f + s*(scale-at)), second + s
	}
}
