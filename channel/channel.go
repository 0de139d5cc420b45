// Package channel says how a sensor turns z = Wx into a reading, and holds the
// output functions of AMP that follow from it. It describes single sensors, and
// does not depend on signals, matrices or iterations.
//
// The readings of sensor µ on signals k = 1…P are y_µk = (z_µk + ε_µk)/s_µ with
// noise ε ~ N(0, Δ): the noise is added before the division. AMP presents each
// z_µk as a Gaussian N(ω_µk, V_µk) and asks for the derivatives of the log of
//
//	Z_out = ∫ p(y_µ | z) ∏ₖ N(z_k; ω_µk, V_µk) dz   (paper, "output update functions").
package channel

import (
	"fmt"
	"math"
	"slices"

	"github.com/calamp/calamp/internal/vector"
)

// Channel computes the output functions for a block of consecutive sensors. A
// user's own channel is one type with these methods. Solvers find out what else
// it can do from the further interfaces of this package that it implements:
// [Calibrating], [Noisy], [Correlated], [Clipping].
type Channel interface {
	// Output fills the outputs of a block. It is called from several goroutines
	// at once, on different blocks.
	Output(b *Block)

	// Validate reports a parameter that describes no channel.
	Validate() error
}

// Block is the view of sensors First … First+rows-1 that a channel is given.
// Per-reading slices are rows×P, row-major; per-sensor slices have length rows.
type Block struct {
	First, P int

	// In. A NaN in Y is a missing reading: it carries no information, and the
	// channel must set its G and DG to zero. V is the variance of z, and of what noise
	// a reading has beyond the channel's own.
	Y, Omega, V []float64

	// In: the covariance of z between any two signals, which V has in it; only with SumDG, and without a past. Out: Σ_kl ∂g_k/∂ω_l of each
	// sensor. For channels whose readings of different signals say something of each other beyond s ([Offset]); SumDG is empty else.
	Common []float64
	SumDG  []float64

	// In: the statistics of earlier samples (paper, "Online cal-AMP"), which the
	// sensors' posterior already holds: rows×width, all zero where there were none,
	// and empty for a channel that keeps no statistics.
	Past []float64

	// Out: g = ∂_ω log Z_out and its derivative ∂_ω g, ≤ 0 where Z_out is
	// log-concave.
	G, DG []float64

	// Out, for channels that calibrate: the statistics of s, those of Past
	// included (rows×width, see [Calibration]), its posterior mean and variance.
	// Others leave S = 1, SVar = 0.
	Stats, S, SVar []float64

	// Out, for channels whose calibration is [Offsetting]: the posterior mean and variance of
	// the offsets. Others leave them as they are; both are empty where they are not needed.
	Offset, OffsetVar []float64

	// Out, for channels of complex gains: the argument of the mean of s, whose modulus is S.
	Phase []float64

	// Out: log Z_out of each sensor. In: true where it need not be computed; a channel that makes
	// something of another one's LogZ asks for that.
	LogZ     []float64
	Unscored bool

	// In: the logarithm of how probable beforehand is what was learned of the sensor alone,
	// relative to what is typical: noise of its own. Empty where nothing was. [Faulty]
	// counts it to the evidence of a sensor in order.
	LogPrior []float64

	// The probability that a sensor is broken. Out for [Faulty], which alone
	// writes it; in for what looks along the global scale, where a sensor has
	// the weight 1-Broken.
	Broken []float64
}

// NewBlock allocates a block of so many sensors and signals for c, without a past.
func NewBlock(c Channel, rows, p int) *Block {
	of := func(count int) []float64 { return make([]float64, count) }
	width := widthOf(c)
	return &Block{
		P: p, Y: of(rows * p), Omega: of(rows * p), V: of(rows * p), Past: of(rows * width),
		G: of(rows * p), DG: of(rows * p),
		Stats: of(rows * width), S: of(rows), SVar: of(rows), Phase: of(rows), LogZ: of(rows), Broken: of(rows),
		Offset: of(rows), OffsetVar: of(rows),
	}
}

// widthOf is how many statistics c keeps of a sensor.
func widthOf(c Channel) int {
	if known := CalibrationOf(c); known != nil {
		return known.Width()
	}
	return 0
}

// Rows is the number of sensors in the block.
func (b *Block) Rows() int { return len(b.S) }

// statsOf are the statistics of one sensor of the block; empty where there are none.
func (b *Block) statsOf(row int) []float64 {
	width := len(b.Stats) / b.Rows()
	return b.Stats[row*width : (row+1)*width]
}

func anyInfinite(v []float64) bool {
	return slices.ContainsFunc(v, func(x float64) bool { return math.IsInf(x, 0) })
}

// AWGN is the calibrated channel: gains known (all one when S is nil), Gaussian
// noise of variance NoiseVar before the division. It is ordinary compressed
// sensing: g = (s y - ω)/(V+Δ), ∂g = -1/(V+Δ).
type AWGN struct {
	NoiseVar float64
	S        []float64 // known calibration of every sensor; nil means 1
}

// WithNoise implements [Noisy].
func (c AWGN) WithNoise(v float64) Channel {
	c.NoiseVar = v
	return c
}

// Validate reports a parameter that describes no channel.
func (c AWGN) Validate() error {
	for mu, s := range c.S {
		if !(s > 0) || math.IsInf(s, 1) {
			return fmt.Errorf("known calibration of sensor %d must be positive and finite, found %g", mu, s)
		}
	}
	return validNoise(c.NoiseVar)
}

// Noise implements [Noisy].
func (c AWGN) Noise() float64 { return c.NoiseVar }

// Output implements [Channel].
func (c AWGN) Output(b *Block) {
	var products [batch]float64
	for from := 0; from < b.Rows(); from += batch {
		rows := min(batch, b.Rows()-from)
		for i := range rows {
			products[i] = c.outputRow(b, from+i)
		}
		subtractHalfLogs(b.LogZ[from:from+rows], &products)
	}
}

// outputRow is Output of one sensor, but for that of a factor product^{-½} of Z_out.
func (c AWGN) outputRow(b *Block, row int) float64 {
	s := 1.0
	if c.S != nil {
		s = c.S[b.First+row]
	}
	b.S[row], b.SVar[row] = s, 0
	quadratic, product := 0.0, logProduct{value: 1}
	for k := row * b.P; k < (row+1)*b.P; k++ {
		if math.IsNaN(b.Y[k]) {
			b.G[k], b.DG[k] = 0, 0
			continue
		}
		d := b.V[k] + c.NoiseVar
		residual := s*b.Y[k] - b.Omega[k]
		inverse := 1 / d
		b.G[k] = residual * inverse
		b.DG[k] = -inverse
		quadratic += residual * (residual * inverse)
		product.multiply(2 * math.Pi * d / (s * s))
	}
	b.LogZ[row] = -0.5 * (quadratic + product.sum)
	return product.value
}

// subtractHalfLogs subtracts half of the logarithms of products, of as many sensors. It changes products.
func subtractHalfLogs(logZ []float64, products *[batch]float64) {
	padded := vector.Padded(len(logZ))
	for i := len(logZ); i < padded; i++ {
		products[i] = 1
	}
	vector.Log(products[:padded])
	for i := range logZ {
		logZ[i] -= 0.5 * products[i]
	}
}

// Noisy is a channel with Gaussian noise before the reading, whose variance can be
// learned.
type Noisy interface {
	Channel
	Noise() float64              // its variance
	WithNoise(v float64) Channel // with noise of variance v in its place
}

// Additive reports whether the readings of c are z plus Gaussian noise, divided by s, so that s y - ω is a residual and can be compared
// with a variance. Those of other channels (signs, counts, codes) are judged by g and ∂g alone: whatever the likelihood, the mean square
// of g is the mean of -∂g where the model is right (Bartlett's second identity).
func Additive(c Channel) bool {
	_, noisy := InOrder(c).(Noisy)
	_, codes := CodedOf(c)
	return noisy && !codes
}

// NoiseOf is the noise variance of a channel; 0 where it has none.
func NoiseOf(c Channel) float64 {
	if c, ok := c.(Noisy); ok {
		return c.Noise()
	}
	return 0
}

// MeanNoise is the mean of several noise variances.
func MeanNoise(variances []float64) float64 {
	total := 0.0
	for _, v := range variances {
		total += v
	}
	return total / float64(len(variances))
}

// Quadratic returns Σ (1-π) ω²/(V+Δ) over the readings of a block that are
// present, added to sum: the part of minus twice the log-evidence of Gaussian noise
// of variance Δ that is quadratic in the signals' scale.
func Quadratic(sum float64, b *Block, noise float64) float64 {
	for j, y := range b.Y {
		if !math.IsNaN(y) {
			sum += (1 - b.Broken[j/b.P]) * (b.Omega[j] * (b.Omega[j] / (b.V[j] + noise)))
		}
	}
	return sum
}

func validNoise(v float64) error {
	if !(v >= 0) || math.IsInf(v, 1) {
		return fmt.Errorf("noise variance must be finite and not negative, found %g", v)
	}
	return nil
}
