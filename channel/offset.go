package channel

import (
	"math"
	"runtime"

	"github.com/calamp/calamp/internal/parallel"
	"github.com/calamp/calamp/internal/quadrature"
)

// Offset is the channel of sensors that have a gain and an offset, y = (z + ε)/s + o with o ~ N(0, SD²).
// The readings of a sensor say of both what is in the sums of [OffsetPrior]. With the means ȳ and ω̄ over its
// readings, weighted with 1/D = 1/(V+Δ), and the moments of s and ζ (see [quadrature.OffsetPosterior]),
//
//	g_k  = (ŝ(y_k-ȳ) - (ω_k-ω̄) + Eζ)/D_k,
//	∂g_k = (Cˢ(y_k-ȳ)² + 2 Cov(s,ζ)(y_k-ȳ) + Var ζ + Eρ/T₀)/D_k² - 1/D_k.
//
// What offsets do to one signal they do to all, with the same sign, which variances signal by signal leave out: with these
// error bars are right from some ten signals on. [Block.Common] has it.
type Offset struct {
	Prior    OffsetPrior
	NoiseVar float64 // Δ ≥ 0
}

// Noise implements [Noisy].
func (c Offset) Noise() float64 { return c.NoiseVar }

// WithNoise implements [Noisy].
func (c Offset) WithNoise(v float64) Channel {
	c.NoiseVar = v
	return c
}

// Calibration implements [Calibrating].
func (c Offset) Calibration() Calibration { return c.Prior }

// WithCalibration implements [Calibrating]; the calibration must be an [OffsetPrior].
func (c Offset) WithCalibration(to Calibration) Channel {
	c.Prior = to.(OffsetPrior)
	return c
}

// Name implements [Named].
func (c Offset) Name() string { return "gain and offset" }

// Validate reports a parameter that describes no channel.
func (c Offset) Validate() error {
	if err := c.Prior.Validate(); err != nil {
		return err
	}
	return validNoise(c.NoiseVar)
}

// lot is what the readings of one sensor in a block say, about their own means.
type lot struct {
	OffsetStats
	square float64 // Σ (ω-ω̄)²/D
	logD   float64 // Σ log 2πD
	share  float64 // of T₀ that a common variance of z leaves
}

// d is the variance of reading k given s, o and what z has in common with the other signals.
func (c Offset) d(b *Block, k int, common float64) float64 { return b.V[k] - common + c.NoiseVar }

// commonOf is the variance of z that the signals of a sensor have in common.
func commonOf(b *Block, row int) float64 {
	if len(b.Common) == 0 {
		return 0
	}
	return b.Common[row]
}

// lotOf sums over the readings of a sensor, in two passes: raw sums would leave no digits of the spread where the
// offset is large.
func (c Offset) lotOf(b *Block, row int) (l lot) {
	logD, common := logProduct{value: 1}, commonOf(b, row)
	var y, omega float64
	for k := row * b.P; k < (row+1)*b.P; k++ {
		if math.IsNaN(b.Y[k]) {
			continue
		}
		d := c.d(b, k, common)
		l.N++
		l.T0 += 1 / d
		y += b.Y[k] / d
		omega += b.Omega[k] / d
		logD.multiply(2 * math.Pi * d)
	}
	if l.N == 0 {
		return l
	}
	l.Y, l.Omega, l.logD, l.share = y/l.T0, omega/l.T0, logD.log(), 1
	for k := row * b.P; k < (row+1)*b.P; k++ {
		if math.IsNaN(b.Y[k]) {
			continue
		}
		d := c.d(b, k, common)
		dy, dw := b.Y[k]-l.Y, b.Omega[k]-l.Omega
		l.Tau += dy * (dy / d)
		l.B += dy * (dw / d)
		l.square += dw * (dw / d)
	}
	if common > 0 { // the mean of the readings has that variance, too
		l.share = 1 / (1 + common*l.T0)
		l.logD -= math.Log(l.share)
		l.T0 *= l.share
	}
	return l
}

// misfit is Σ (s(y-ȳ) - (ω-ω̄))²/D of a lot, without the cancellation of its three sums.
func (c Offset) misfit(b *Block, row int, l *lot, s float64) (sum float64) {
	common := commonOf(b, row)
	for k := row * b.P; k < (row+1)*b.P; k++ {
		if !math.IsNaN(b.Y[k]) {
			r := s*(b.Y[k]-l.Y) - (b.Omega[k] - l.Omega)
			sum += r * (r / c.d(b, k, common))
		}
	}
	return sum
}

// Output implements [Channel].
func (c Offset) Output(b *Block) {
	logMass := c.Prior.Gain.logMass()
	for row := range b.Rows() {
		own := c.lotOf(b, row)
		past := offsetStats(b.Past, row)
		total := past.Merged(own.OffsetStats)
		total.put(b.Stats, row)
		p := c.Prior.Posterior(&total)
		b.S[row], b.SVar[row] = p.S, p.SVar
		if len(b.Offset) > 0 {
			b.Offset[row], b.OffsetVar[row] = p.Offset, p.OffsetVar
		}
		c.derivatives(b, row, own.share, &total, &p)
		b.LogZ[row] = c.logZ(b, row, &past, &own, &p) - logMass
	}
}

// derivatives fills g and ∂g of one sensor. With a common variance w of z, D⁻¹1 is the share 1/(1+wΣ1/D) of 1/D.
func (c Offset) derivatives(b *Block, row int, share float64, total *OffsetStats, p *quadrature.OffsetPosterior) {
	common := commonOf(b, row)
	for k := row * b.P; k < (row+1)*b.P; k++ {
		if math.IsNaN(b.Y[k]) {
			b.G[k], b.DG[k] = 0, 0
			continue
		}
		d, y := c.d(b, k, common), b.Y[k]-total.Y
		b.G[k] = (p.S*y - (b.Omega[k] - total.Omega) + share*p.Zeta) / d
		spread := p.SVar*y*y + 2*share*p.SZeta*y + share*share*(p.ZetaVar+p.Rho/total.T0)
		b.DG[k] = min(0, ((spread+share*common)/d-1)/d)
	}
	if len(b.SumDG) > 0 {
		b.SumDG[row] = 0
		if total.T0 > 0 {
			b.SumDG[row] = min(0, total.T0*(total.T0*p.ZetaVar+p.Rho-1))
		}
	}
}

// spreadOfZ is the variance that s and o leave of s(y-o), for a reading that is y from the mean.
func spreadOfZ(y float64, total *OffsetStats, p *quadrature.OffsetPosterior) float64 {
	return p.SVar*y*y + 2*p.SZeta*y + p.ZetaVar + p.Rho/total.T0
}

// logZ is the logarithm of the density of a sensor's readings, but for the prior's mass: at the mode of s, where
// residuals are squared as they are, and from there by the integral.
func (c Offset) logZ(b *Block, row int, past *OffsetStats, own *lot, p *quadrature.OffsetPosterior) float64 {
	total := past.Merged(own.OffsetStats)
	d, s := c.Prior.density(&total), p.Mode
	apart := 0.0 // of the means of the lots
	if past.T0 > 0 && own.T0 > 0 {
		r := s*(own.Y-past.Y) - (own.Omega - past.Omega)
		apart = past.T0 / total.T0 * own.T0 * r * r
	}
	k, r := 1+c.Prior.variance()*total.T0*s*s, s*total.Y-total.Omega
	if c.Prior.flat() {
		k, r = s*s, 0 // of T₀Q without the infinite σ²
	}
	return d.N*math.Log(s) + s*(past.B-0.5*past.Tau*s) + c.Prior.Gain.logWeight(s) -
		0.5*(own.logD+c.misfit(b, row, own, s)+apart+math.Log(k)+total.T0*r*(r/k)) + p.LogMass
}

// Contraction implements [Contracting].
func (c Offset) Contraction(dst []float64, b *Block) {
	for row := range b.Rows() {
		total := offsetStats(b.Stats, row)
		p := c.Prior.Posterior(&total)
		for k := row * b.P; k < (row+1)*b.P; k++ {
			v := b.V[k]
			d := v + c.NoiseVar
			dst[k] = 1
			if !math.IsNaN(b.Y[k]) {
				dst[k] = (c.NoiseVar + v*(spreadOfZ(b.Y[k]-total.Y, &total, &p)/d)) / d
			}
		}
	}
}

// ScaleQuadratic implements [Calibrating]: Σ (1-π)(ω-ω̄)²/D, about the means with the past.
func (c Offset) ScaleQuadratic(sum float64, b *Block) float64 {
	for row := range b.Rows() {
		own, past := c.lotOf(b, row), offsetStats(b.Past, row)
		square := own.square
		if past.T0 > 0 && own.T0 > 0 {
			d := own.Omega - past.Omega
			square += past.T0 / (past.T0 + own.T0) * own.T0 * d * d
		}
		sum += (1 - b.Broken[row]) * square
	}
	return sum
}

// ScaleDerivatives implements [Calibrating], of
//
//	Σ_µ (1-π_µ) log ∫ p(s) sⁿ K^{-½} exp(-τs²/2 + cBs - T₀(sȳ-cω̄)²/2K) ds:
//
// the first is E[sB + T₀ω̄ζ], the second its variance minus ω̄²T₀E[1-ρ].
func (c Offset) ScaleDerivatives(scale float64, b *Block) (first, second float64) {
	const each = 64
	rows := b.Rows()
	chunks := (rows + each - 1) / each
	sums := make([][2]float64, chunks)
	parallel.Run(chunks, runtime.GOMAXPROCS(0), func(i int) {
		for row := i * each; row < min((i+1)*each, rows); row++ {
			working := 1 - b.Broken[row]
			if working == 0 {
				continue // its numbers may be beyond double precision
			}
			total := offsetStats(b.Stats, row)
			at := total
			at.B *= scale
			at.Omega *= scale
			p := c.Prior.Posterior(&at)
			t := total.T0 * total.Omega
			sums[i][0] += working * (total.B*p.S + t*p.Zeta)
			sums[i][1] += working * (total.B*total.B*p.SVar + 2*total.B*t*p.SZeta + t*t*p.ZetaVar - total.Omega*t*(1-p.Rho))
		}
	})
	for _, s := range sums {
		first += s[0]
		second += s[1]
	}
	return first, second
}

// ScaleTangent implements [SlowScale].
func (c Offset) ScaleTangent(at float64, b *Block) func(scale float64) (first, second float64) {
	first, second := c.ScaleDerivatives(at, b)
	return func(scale float64) (float64, float64) { return first + second*(scale-at), second }
}

// OffsetStats are the statistics of a sensor with an offset: over its readings, weighted with 1/D, their number N,
// the sum T0 of the weights, the means Y of y and Omega of ω, and the sums Tau of (y-Y)²/D and B of (y-Y)(ω-Omega)/D.
type OffsetStats struct{ T0, Y, Omega, Tau, B, N float64 }

const offsetWidth = 6

// Slice returns them as the solvers keep them.
func (s OffsetStats) Slice() []float64 { return []float64{s.T0, s.Y, s.Omega, s.Tau, s.B, s.N} }

func offsetStats(stats []float64, sensor int) OffsetStats {
	v := stats[sensor*offsetWidth : (sensor+1)*offsetWidth]
	return OffsetStats{v[0], v[1], v[2], v[3], v[4], v[5]}
}

func (s OffsetStats) put(stats []float64, sensor int) {
	copy(stats[sensor*offsetWidth:], []float64{s.T0, s.Y, s.Omega, s.Tau, s.B, s.N})
}

// Merged are the statistics of both lots of readings (the parallel formula of T. F. Chan, G. H. Golub and R. J.
// LeVeque, 1979).
func (s OffsetStats) Merged(more OffsetStats) OffsetStats {
	t := s.T0 + more.T0
	switch {
	case more.T0 == 0:
		s.Tau, s.B, s.N = s.Tau+more.Tau, s.B+more.B, s.N+more.N
		return s
	case s.T0 == 0:
		more.Tau, more.B, more.N = s.Tau+more.Tau, s.B+more.B, s.N+more.N
		return more
	}
	y, omega, part := more.Y-s.Y, more.Omega-s.Omega, more.T0/t
	between := s.T0 * part
	return OffsetStats{
		T0: t, Y: s.Y + part*y, Omega: s.Omega + part*omega,
		Tau: s.Tau + more.Tau + between*y*y, B: s.B + more.B + between*y*omega, N: s.N + more.N,
	}
}

// Without takes a lot back out: the inverse of Merged.
func (s OffsetStats) Without(less OffsetStats) OffsetStats {
	t := s.T0 - less.T0
	if !(t > 0) || less.T0 == 0 {
		return OffsetStats{T0: max(t, 0), Y: s.Y, Omega: s.Omega, Tau: max(0, s.Tau-less.Tau), B: s.B - less.B, N: s.N - less.N}
	}
	grow := s.T0 / t
	y, omega := (s.Y-less.Y)*grow, (s.Omega-less.Omega)*grow
	between := less.T0 / s.T0 * t
	return OffsetStats{
		T0: t, Y: less.Y + y, Omega: less.Omega + omega,
		Tau: max(0, s.Tau-less.Tau-between*y*y), B: s.B - less.B - between*y*omega, N: s.N - less.N,
	}
}
