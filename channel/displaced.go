package channel

import (
	"math"

	"github.com/calamp/calamp/internal/cholesky"
)

// Displaced is the [Gain] of sensors whose rows of W are known but for a few numbers θ_µ of each sensor, its position or its delay:
//
//	y_µk = (z_µk + Σ_j θ_µj z_µjk + ε_µk)/s_µ,   z_µjk = d_µj·x_k,   θ_µj ~ N(0, σ_j²).
//
// Given s the readings are linear in θ, whose posterior is normal. With ω at θ = 0 and ω_j the mean of z_j,
//
//	A = Σₖ ω_j ω_lᵀ/D + σ⁻²,   u = Σₖ ω_j y/D,   v = Σₖ ω_j ω/D,   θ | s ~ N(A⁻¹(su - v), A⁻¹),
//
// and what is left of s is the density of [Gain] with τ - uᵀA⁻¹u for τ and B - uᵀA⁻¹v for B. D is that at the latest estimate of θ: in a
// run its variance of z is that of the row there, with which the iteration multiplies. The mean over the posterior of both gives
//
//	g_k = (ŝ y_k - ω_k - Σ_j θ̂_j ω_jk)/D_k,   ∂g_k = (Cˢ(y_k - ω_jk(A⁻¹u)_j)² + ω_jk A⁻¹_jl ω_lk)/D_k² - 1/D_k.
//
// The derivative of the evidence by ω_jk is θ̂_j g_k and what both have in common, with r the residuals,
//
//	Cov(θ_j, r_k)/D_k = (Cˢ(A⁻¹u)_j(y_k - ω_lk(A⁻¹u)_l) - A⁻¹_jl ω_lk)/D_k.
type Displaced struct {
	Gain
	By *Displacements
}

// Displacements are the parameters of all sensors in a run. [Displaced.Output] reads the first three, and writes the next three.
type Displacements struct {
	Spread []float64 // J, the standard deviations σ of θ over the sensors
	At     []float64 // M×J, the θ of the rows of W at which Omega and V of a block are
	Along  []float64 // M×J×P, ω_j

	Mean []float64 // M×J, of the posterior of θ
	Cov  []float64 // M×J×J
	Pull []float64 // M×J×P, Cov(θ_j, r)/D

	Taken []float64 // M×J×P, D_j x̂ - ω_j: nothing where whoever iterates does not say

	// Carried says that samples come one by one: statistics of a sensor are then those of [DisplacedPrior], and [Block.Past] has those of earlier
	// samples.
	Carried bool
}

// NewDisplacements are those of m sensors, p signals and as many parameters as there are spreads.
func NewDisplacements(m, p int, spread []float64) *Displacements {
	j := len(spread)
	return &Displacements{
		Spread: spread, At: make([]float64, m*j), Along: make([]float64, m*j*p),
		Mean: make([]float64, m*j), Cov: make([]float64, m*j*j), Pull: make([]float64, m*j*p), Taken: make([]float64, m*j*p),
	}
}

// WithNoise implements [Noisy].
func (c Displaced) WithNoise(v float64) Channel {
	c.NoiseVar = v
	return c
}

// Calibration implements [Calibrating].
func (c Displaced) Calibration() Calibration {
	if c.By.Carried {
		return c.carried()
	}
	return c.Prior
}

func (c *Displaced) carried() DisplacedPrior { return DisplacedPrior{c.Prior, c.By} }

// WithCalibration implements [Calibrating]; the calibration must be a [GainPrior], or a [DisplacedPrior].
func (c Displaced) WithCalibration(to Calibration) Channel {
	c.Prior = to.(Gains).Gains()
	return c
}

// Name implements [Named].
func (c Displaced) Name() string { return "gain and displacements" }

// displacement is what the readings of one sensor say of its θ, and of s beside it.
type displacement struct {
	inverse    []float64 // J×J, A⁻¹
	factor     []float64 // J×J, L with LLᵀ = A
	slope      []float64 // J, A⁻¹u
	constant   []float64 // J, A⁻¹v
	theta      []float64 // J, at ŝ
	u, v       []float64 // J
	tau, shift float64   // what is left of τ and B
	n, square  float64   // and of Σ ω²/D
}

func newDisplacement(j int) *displacement {
	of := func(count int) []float64 { return make([]float64, count) }
	return &displacement{inverse: of(j * j), factor: of(j * j), slope: of(j), constant: of(j), theta: of(j), u: of(j), v: of(j)}
}

// along is ω_j of a sensor, P numbers.
func (d *Displacements) along(sensor, j, p int) []float64 { return d.of(d.Along, sensor, j, p) }

// of are the P numbers that values (M×J×P) has of a parameter of a sensor.
func (d *Displacements) of(values []float64, sensor, j, p int) []float64 {
	at := (sensor*len(d.Spread) + j) * p
	return values[at : at+p]
}

// origin is ω of a reading with θ = 0.
func (c *Displaced) origin(b *Block, row, k int) float64 {
	omega, sensor, js := b.Omega[row*b.P+k], b.First+row, len(c.By.Spread)
	for j := range js {
		omega -= c.By.At[sensor*js+j] * c.By.along(sensor, j, b.P)[k]
	}
	return omega
}

// clear is before any readings.
func (d *displacement) clear() {
	clear(d.factor)
	clear(d.u)
	clear(d.v)
	d.tau, d.shift, d.n, d.square = 0, 0, 0, 0
}

// sum fills d with the sums of one sensor of a block, on top of those of its past.
func (c *Displaced) sum(d *displacement, b *Block, row int) {
	js, sensor := len(c.By.Spread), b.First+row
	d.clear()
	if c.By.Carried && len(b.Past) > 0 {
		c.carried().addTo(d, c.pastOf(b, row))
	}
	for k := range b.P {
		y := b.Y[row*b.P+k]
		if math.IsNaN(y) {
			continue
		}
		inverse, omega := 1/(b.V[row*b.P+k]+c.NoiseVar), c.origin(b, row, k)
		d.n++
		d.tau += y * y * inverse
		d.shift += y * omega * inverse
		d.square += omega * omega * inverse
		for j := range js {
			along := c.By.along(sensor, j, b.P)[k] * inverse
			d.u[j] += along * y
			d.v[j] += along * omega
			for l := range j + 1 {
				d.factor[j*js+l] += along * c.By.along(sensor, l, b.P)[k]
			}
		}
	}
}

// pastOf are the statistics of what a sensor read before, where they are carried.
func (c *Displaced) pastOf(b *Block, row int) []float64 {
	width := c.carried().Width()
	return b.Past[row*width : (row+1)*width]
}

// solve is sum with θ integrated out.
func (c *Displaced) solve(d *displacement, b *Block, row int) {
	c.sum(d, b, row)
	d.integrate(c.By.Spread)
}

// integrate takes θ of these spreads out of τ, B and Σ ω²/D.
func (d *displacement) integrate(spreads []float64) {
	js := len(spreads)
	for j, spread := range spreads {
		d.factor[j*js+j] += 1 / (spread * spread)
	}
	if !cholesky.Factor(d.factor, js) { // which only numbers beyond double precision do: then nothing is known of θ
		clear(d.factor)
		for j, spread := range spreads {
			d.factor[j*js+j] = 1 / spread
		}
		clear(d.u)
		clear(d.v)
	}
	cholesky.Inverse(d.inverse, d.factor, js)
	copy(d.slope, d.u)
	cholesky.Solve(d.factor, d.slope)
	copy(d.constant, d.v)
	cholesky.Solve(d.factor, d.constant)
	d.tau = max(0, d.tau-cholesky.Dot(d.u, d.slope))
	d.shift -= cholesky.Dot(d.u, d.constant)
}

// Output implements [Channel].
func (c Displaced) Output(b *Block) {
	width, d := c.Prior.Width(), newDisplacement(len(c.By.Spread))
	gains := b.Stats
	if c.By.Carried {
		width, gains = gainWidth, make([]float64, b.Rows()*gainWidth)
	}
	for row := range b.Rows() {
		stats := gains[row*width : (row+1)*width]
		if c.By.Carried {
			c.sum(d, b, row)
			c.carried().put(b.statsOf(row), d)
			d.integrate(c.By.Spread)
		} else {
			c.solve(d, b, row)
			copy(stats, b.Past[row*width:(row+1)*width])
		}
		stats[precision], stats[field], stats[readings] = stats[precision]+d.tau, stats[field]+d.shift, stats[readings]+d.n
	}
	c.Prior.posteriors(b.LogZ, b.S, b.SVar, gains, 1)
	logMass := c.Prior.logMass()
	for row := range b.Rows() {
		c.solve(d, b, row)
		s, past := b.S[row], c.Prior.of(b.Past, row)
		if c.By.Carried {
			past = c.Prior.of(c.pastOf(b, row), 0)
		}
		b.LogZ[row] += c.derivatives(d, b, row) + s*(past[field]-0.5*past[precision]*s) + c.Prior.logWeight(s) - logMass
		c.By.put(d, b.First+row, b.SVar[row])
	}
}

// derivatives fills g and ∂g of a sensor, and returns the logarithm of the density of its readings at ŝ, θ integrated out: residuals are squared
// as they are, at the mean of θ there.
func (c *Displaced) derivatives(d *displacement, b *Block, row int) (logGauss float64) {
	js, sensor, s := len(c.By.Spread), b.First+row, b.S[row]
	for j := range js {
		d.theta[j] = s*d.slope[j] - d.constant[j]
	}
	square, logD := 0.0, logProduct{value: 1}
	for k := range b.P {
		at := row*b.P + k
		y := b.Y[at]
		if math.IsNaN(y) {
			b.G[at], b.DG[at] = 0, 0
			for j := range js {
				c.By.of(c.By.Pull, sensor, j, b.P)[k] = 0
			}
			continue
		}
		doubt := b.V[at] + c.NoiseVar
		residual, turn, spread := s*y-c.origin(b, row, k), y, 0.0
		for j := range js {
			along := c.By.along(sensor, j, b.P)[k]
			residual -= d.theta[j] * along
			turn -= d.slope[j] * along
		}
		for j := range js {
			common := 0.0
			for l := range js {
				common += d.inverse[j*js+l] * c.By.along(sensor, l, b.P)[k]
			}
			spread += c.By.along(sensor, j, b.P)[k] * common
			c.By.of(c.By.Pull, sensor, j, b.P)[k] = (b.SVar[row]*d.slope[j]*turn - common) / doubt
		}
		b.G[at] = residual / doubt
		b.DG[at] = min(0, ((b.SVar[row]*turn*turn+spread)/doubt-1)/doubt)
		square += residual * b.G[at]
		logD.multiply(2 * math.Pi * doubt)
	}
	if c.By.Carried {
		square += c.carried().ofParameters(c.pastOf(b, row), s, d.theta)
	}
	logA := cholesky.LogDet(d.factor, js) // of σAσ, whose determinant is one where nothing was read
	for j, spread := range c.By.Spread {
		square += d.theta[j] * d.theta[j] / (spread * spread)
		logA += 2 * math.Log(spread)
	}
	return -0.5 * (square + logD.log() + logA)
}

// put writes the posterior of θ of a sensor, after [Displaced.derivatives].
func (d *Displacements) put(of *displacement, sensor int, sVar float64) {
	js := len(d.Spread)
	copy(d.Mean[sensor*js:], of.theta)
	for j := range js {
		for l := range js {
			d.Cov[(sensor*js+j)*js+l] = of.inverse[j*js+l] + sVar*of.slope[j]*of.slope[l]
		}
	}
}

// ScaleQuadratic implements [Calibrating]. When signals become c times as large, A becomes that of spreads c times as large, by which the
// evidence rises by Σ_j E[θ_j²]/σ_j² - 1 at c = 1: nothing in all where spreads are learned. What Pull has in common with what was taken from
// D_j x̂ is of the volume of the signals, κ, for which [Calibrating] has no place of its own.
//
// Where samples come one by one, all that statistics say of Q is in Φ' and Φ”: it is no sum over samples.
func (c Displaced) ScaleQuadratic(sum float64, b *Block) float64 {
	js, d := len(c.By.Spread), newDisplacement(len(c.By.Spread))
	for row := range b.Rows() {
		c.solve(d, b, row)
		square, sensor := d.square, b.First+row
		if !c.By.Carried {
			square = max(0, square-cholesky.Dot(d.v, d.constant))
		}
		for j, spread := range c.By.Spread {
			at := sensor*js + j
			if !c.By.Carried {
				square -= (c.By.At[at]*c.By.Mean[at]+c.By.Cov[at*js+j])/(spread*spread) - 1
			}
			square -= cholesky.Dot(c.By.of(c.By.Pull, sensor, j, b.P), c.By.of(c.By.Taken, sensor, j, b.P))
		}
		sum += (1 - b.Broken[row]) * square
	}
	return sum
}

// ScaleDerivatives implements [Calibrating].
func (c Displaced) ScaleDerivatives(scale float64, b *Block) (first, second float64) {
	if !c.By.Carried {
		return c.Gain.ScaleDerivatives(scale, b)
	}
	known := c.carried()
	first, second = c.Prior.ScaleDerivatives(scale, b.Broken, known.asGains(b.Stats))
	left := known.ofSquares(b.Stats, b.Broken)
	return first + scale*left, second + left
}

// AtEdges implements [Edged].
func (c Displaced) AtEdges(lo, hi float64, b *Block) (near, inside *Block) {
	if c.By.Carried {
		return nil, nil
	}
	return c.Gain.AtEdges(lo, hi, b)
}
