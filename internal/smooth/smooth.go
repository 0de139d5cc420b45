// Package smooth is gains that belong together: it learns how numbers of sensors vary from one to the next, a Gaussian process over the places of the
// sensors, and what each has of its own, white scatter. It takes what is known of every sensor by itself, a mean and a variance, and no readings.
//
//	f = m + Φ c + e,   c ~ N(0, a²),   e ~ N(0, σ²)
//
// The columns Φ are given, or those of a kernel K = Φ Φᵀ of some length. The amplitude a, the scatter σ and the length maximise the evidence (C. E.
// Rasmussen and C. K. I. Williams, "Gaussian processes for machine learning", 2006, chapter 5).
package smooth

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"

	"gonum.org/v1/gonum/floats"

	"github.com/calamp/calamp/internal/dense"
)

const (
	// mostWork bounds M r², the multiplications of a step with r columns: ten milliseconds on a core. A kernel of more columns is cut to
	// so many, and what the others have of each sensor's variance counts as scatter. Up to 251 sensors nothing is cut. With a quarter of that, a detector of 64 × 62 pixels had 31 columns, what they left out
	// was all the scatter that was found, and s was covered 73 %; with 63 columns 94 %, and no more with 100.
	mostWork = 1.6e7

	// leftOver is the part of a sensor's variance that columns of a kernel may leave out.
	leftOver = 1e-8

	// LeastScatter is the least scatter, relative to a gain: that of double precision would make sensors hold each other.
	LeastScatter = 1e-5

	// mostAmplitude is where an amplitude of the logarithm of gains says nothing any more.
	mostAmplitude = 10.0

	// levelSD is the standard deviation of the logarithm of the level common to all sensors, of which nothing is known.
	levelSD = 1.0
)

// Places are where sensors are, or columns that are given in their place. Several runs may use them at a time.
type Places struct {
	sensors   int
	positions []float64 // M×d; nil for columns
	d         int
	lengths   []float64 // from long to short; one, 0, for columns
	unit      float64   // that columns were multiplied by

	mutex sync.Mutex
	known []*columns // by length, as far as they were asked for
}

// columns are Φ (M×r, sensor by sensor), and what they leave of each sensor's variance.
type columns struct {
	phi  []float64
	r    int
	left []float64 // M; nil for nothing
}

// At are sensors at positions (M×d, sensor by sensor).
func At(positions []float64, d int) (*Places, error) {
	if d < 1 || len(positions) == 0 || len(positions)%d > 0 {
		return nil, fmt.Errorf("positions: %d numbers are no rows of %d", len(positions), d)
	}
	m, extent := len(positions)/d, 0.0
	for j := range d {
		lo, hi := math.Inf(1), math.Inf(-1)
		for i := range m {
			v := positions[i*d+j]
			if math.IsNaN(v) || math.IsInf(v, 0) {
				return nil, fmt.Errorf("the position of sensor %d is %g in column %d, expected a finite number", i, v, j)
			}
			lo, hi = min(lo, v), max(hi, v)
		}
		extent = max(extent, hi-lo)
	}
	if !(extent > 0) || math.IsInf(extent, 1) {
		return nil, errors.New("all sensors have the same position, expected different ones, of a finite extent")
	}
	p := &Places{sensors: m, positions: positions, d: d}
	for length := 2 * extent; length > extent/float64(m); length /= math.Sqrt2 {
		p.lengths = append(p.lengths, length)
	}
	p.known = make([]*columns, len(p.lengths))
	return p, nil
}

// Columns are sensors whose smooth part is a combination of given columns (M×k, sensor by sensor).
func Columns(given []float64, k int) (*Places, error) {
	if k < 1 || len(given) == 0 || len(given)%k > 0 {
		return nil, fmt.Errorf("columns: %d numbers are no rows of %d", len(given), k)
	}
	square := 0.0
	for i, v := range given {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return nil, fmt.Errorf("column %d is %g for sensor %d, expected a finite number", i%k, v, i/k)
		}
		square += v * v
	}
	if !(square > 0) || math.IsInf(square, 1) {
		return nil, errors.New("all columns are zero, or too large for double precision")
	}
	m := len(given) / k
	scaled, unit := make([]float64, len(given)), math.Sqrt(float64(m)/square)
	for i, v := range given { // the mean variance of a sensor is a²
		scaled[i] = unit * v
	}
	return &Places{sensors: m, lengths: []float64{0}, unit: unit, known: []*columns{{phi: scaled, r: k}}}, nil
}

// Sensors is how many there are.
func (p *Places) Sensors() int { return p.sensors }

// of are the columns for a length.
func (p *Places) of(at int) *columns {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if p.known[at] == nil {
		p.known[at] = p.kernel(p.lengths[at])
	}
	return p.known[at]
}

// Columns are Φ (M×r, sensor by sensor) for a length: ΦΦᵀ is the correlation of sensors at their positions, but for leftOver of each one's variance.
func (p *Places) Columns(length float64) (phi []float64, r int) {
	c := p.kernel(length)
	return c.phi, c.r
}

// smoothness is ν of the Matérn kernel.
const smoothness = 2.5

// correlation of two sensors is Matérn's with ν = 5/2 (Rasmussen and Williams, equation 4.17): twice differentiable functions.
func (p *Places) correlation(i, j int, length float64) float64 {
	square := 0.0
	for k := range p.d {
		v := (p.positions[i*p.d+k] - p.positions[j*p.d+k]) / length
		square += v * v
	}
	r := math.Sqrt(5 * square)
	return (1 + r + r*r/3) * math.Exp(-r)
}

// kernel is the Cholesky decomposition with pivots of the correlations, as far as they leave more than leftOver (F. Bach and M. Jordan, "Kernel independent
// component analysis", 2002, figure 2).
func (p *Places) kernel(length float64) *columns {
	m := p.sensors
	most := min(m, max(1, int(math.Sqrt(mostWork/float64(m)))))
	var list [][]float64
	left := slices.Repeat([]float64{1}, m)
	for len(list) < most {
		pivot := 0
		for i, v := range left {
			if v > left[pivot] {
				pivot = i
			}
		}
		if left[pivot] <= leftOver {
			break
		}
		next, root := make([]float64, m), math.Sqrt(left[pivot])
		for i := range next {
			if left[i] > 0 {
				next[i] = p.correlation(i, pivot, length)
			}
		}
		for _, column := range list {
			at := column[pivot]
			for i, v := range column {
				next[i] -= float64(at * v)
			}
		}
		for i := range next {
			if left[i] == 0 { // a pivot before
				next[i] = 0
				continue
			}
			next[i] /= root
			left[i] = max(0, left[i]-next[i]*next[i])
		}
		left[pivot] = 0
		list = append(list, next)
	}
	c := &columns{phi: make([]float64, m*len(list)), r: len(list), left: left}
	for j, column := range list {
		for i, v := range column {
			c.phi[i*c.r+j] = v
		}
	}
	return c
}

// Field is a Gaussian process with its parameters.
type Field struct {
	places             *Places
	at                 int // of the lengths
	Amplitude, Scatter float64
	held               bool // what it is, is known
	lostFor            int  // fits since the smooth part was lost
}

// Held is a process whose parameters are known, and not learned; its length is that of the places' which is nearest.
func Held(places *Places, amplitude, length, scatter float64) Field {
	f := Field{places: places, Amplitude: amplitude, Scatter: max(scatter, LeastScatter), held: true}
	for i, l := range places.lengths {
		if math.Abs(math.Log(l/length)) < math.Abs(math.Log(places.lengths[f.at]/length)) {
			f.at = i
		}
	}
	return f
}

// New is where learning starts: an amplitude, a quarter of that as scatter, and a length of half the extent.
func New(places *Places, amplitude float64) Field {
	return Field{places: places, at: min(4, len(places.lengths)-1), Amplitude: amplitude, Scatter: 0.25 * amplitude}
}

// Sensors is how many there are.
func (f Field) Sensors() int { return f.places.sensors }

// Length is that of the kernel, in the unit of the positions; 0 where columns are given.
func (f Field) Length() float64 { return f.places.lengths[f.at] }

// Posterior is what a [Field] and what is known of every sensor say.
type Posterior struct {
	// Mean and Variance of each sensor are what all others say of it. Smooth is the posterior mean of the level and of the part of the columns, and
	// SmoothVar its variance.
	Mean, Variance, Smooth, SmoothVar []float64

	evidence float64

	level                 float64 // about which the coefficients are, that of the level the last
	coefficients, inverse []float64

	// The derivatives of the evidence by log a² and log σ², and minus the expectations of the second ones.
	slope, information [2]float64
}

// Posterior is that of sensors of which N(mean, variance) is known, each by itself; nothing where the variance is +Inf.
//
// With weights 1/D, D = v + σ² + what columns leave out, A = 1 + ΦᵀD⁻¹Φ, columns times a and one for the level among them, and r = mean - level:
//
//	log evidence = -½ (Σ log D + log det A + rᵀD⁻¹r - ‖A^{-½}ΦᵀD⁻¹r‖²)
func (f Field) Posterior(mean, variance []float64) *Posterior {
	c := f.places.of(f.at)
	m, r := f.places.sensors, c.r+1
	weight, rest, level := f.weights(c, mean, variance)
	phi := f.rows(c)
	weighted, free := dense.Scratch(m, r)
	defer free()
	b := make([]float64, r)
	quadratic, logs := 0.0, 0.0
	for i, w := range weight {
		to := weighted.Row(i)
		floats.ScaleTo(to, w, phi.Row(i))
		if w == 0 {
			continue
		}
		off := mean[i] - level
		quadratic += w * off * off
		logs -= math.Log(w)
		floats.AddScaled(b, off, to)
	}
	a, inverse := dense.New(r, r), dense.New(r, r)
	for j := range r {
		a.Row(j)[j] = 1
	}
	dense.AddProduct(a, 1, weighted.T(), phi, dense.Lower, 1)
	dense.Factor(a, 1) // the sum of a positive matrix and one
	coefficients := slices.Clone(b)
	dense.Solve(a, coefficients)
	p := &Posterior{Mean: make([]float64, m), Variance: make([]float64, m), Smooth: make([]float64, m), SmoothVar: make([]float64, m)}
	p.evidence = -0.5 * (logs + dense.LogDet(a) + quadratic - floats.Dot(b, coefficients))
	whitened := weighted
	copy(whitened.Data, phi.Data)
	dense.SolveRight(a, whitened, 1)
	dense.InvertLower(a, 1)
	dense.Square(inverse, a, 1)
	dense.Mirror(inverse)
	p.level, p.coefficients, p.inverse = level, coefficients, inverse.Data
	p.ofColumns(coefficients, p.inverse)
	for i, w := range weight {
		fit := level + floats.Dot(phi.Row(i), coefficients)
		spread := floats.Dot(whitened.Row(i), whitened.Row(i)) // φᵀA⁻¹φ
		out := max(1-w*spread, 1e-9)                           // what of the fit at a sensor is not its own
		p.Smooth[i], p.SmoothVar[i] = fit, spread
		p.Mean[i] = fit
		if w > 0 {
			p.Mean[i] -= w * spread / out * (mean[i] - fit)
		}
		p.Variance[i] = spread/out + rest[i]
		p.ofScatter(f.Scatter*f.Scatter, w*out, w*(mean[i]-fit))
	}
	return p
}

// Sum is what a sensor would have that is no sensor: a sum of so many times each column that was given, and of so many levels, with its variance.
func (f Field) Sum(p *Posterior, columns []float64, levels float64) (mean, variance float64) {
	r := len(p.coefficients)
	phi := make([]float64, r)
	for j, v := range columns {
		phi[j] = f.Amplitude * f.places.unit * v
	}
	phi[r-1] = levels * levelSD
	for j, v := range phi {
		variance += v * floats.Dot(phi, p.inverse[j*r:(j+1)*r])
	}
	return levels*p.level + floats.Dot(phi, p.coefficients), variance
}

// weights are 1/D, what of D is not v, and the mean of all sensors by them.
func (f Field) weights(c *columns, mean, variance []float64) (weight, rest []float64, level float64) {
	weight, rest = make([]float64, len(mean)), make([]float64, len(mean))
	total := 0.0
	for i := range weight {
		rest[i] = f.Scatter * f.Scatter
		if c.left != nil {
			rest[i] += f.Amplitude * f.Amplitude * c.left[i]
		}
		if weight[i] = 1 / (variance[i] + rest[i]); weight[i] > 0 {
			level += weight[i] * mean[i]
			total += weight[i]
		}
	}
	if total > 0 {
		level /= total
	}
	return weight, rest, level
}

// rows are a Φ, sensor by sensor, and the column of the level.
func (f Field) rows(c *columns) dense.Matrix {
	phi := dense.New(f.places.sensors, c.r+1)
	for i := range phi.Rows {
		to := phi.Row(i)
		floats.ScaleTo(to[:c.r], f.Amplitude, c.phi[i*c.r:][:c.r])
		to[c.r] = levelSD
	}
	return phi
}

// ofColumns are the derivatives by log a²: with P = 1 - A⁻¹ of the columns, ½ (‖c‖² - tr P) and ½ ‖P‖².
func (p *Posterior) ofColumns(coefficients, inverse []float64) {
	r := len(coefficients)
	for j, v := range coefficients[:r-1] {
		p.slope[0] += 0.5 * (v*v - (1 - inverse[j*r+j]))
		for k := range r - 1 {
			q := -inverse[j*r+k]
			if j == k {
				q++
			}
			p.information[0] += 0.5 * q * q
		}
	}
}

// ofScatter adds those by log σ² of a sensor: own is the diagonal of the inverse covariance of all, residual that inverse times the residuals.
func (p *Posterior) ofScatter(square, own, residual float64) {
	p.slope[1] += 0.5 * square * (residual*residual - own)
	p.information[1] += 0.5 * (square * own) * (square * own)
}

const (
	// stepReach bounds a step of log a² or log σ².
	stepReach = 1.4 // a factor of four

	// lengthGain is by how much the logarithm of the evidence must grow for another length to be taken: less is of the noise of readings.
	lengthGain = 0.1

	// lost is the amplitude, relative to the scatter, below which the smooth part is looked for anew.
	lost = 0.3

	// halvings is how often a step that lowers the evidence is halved.
	halvings = 6
)

// Fit moves the parameters towards the largest evidence, by steps of Fisher's scoring, and says how far they moved in standard errors.
func (f Field) Fit(mean, variance []float64) (next Field, p *Posterior, change float64) {
	next, p = f, f.Posterior(mean, variance)
	if f.held {
		return next, p, 0
	}
	for range 2 {
		next, p = next.step(p, mean, variance)
	}
	for _, to := range []int{next.at - 1, next.at + 1} {
		if to < 0 || to >= len(f.places.lengths) {
			continue
		}
		other := next
		other.at = to
		// What the kernel has of short waves is a²/ℓ^2ν: so much stays.
		ratio := f.places.lengths[to] / next.Length()
		other.Amplitude = min(next.Amplitude*math.Pow(ratio, smoothness), mostAmplitude)
		q := other.Posterior(mean, variance)
		for range 2 {
			other, q = other.step(q, mean, variance)
		}
		if q.evidence > p.evidence+lengthGain {
			next, p = other, q
			break
		}
	}
	if next.Amplitude < lost*next.Scatter {
		if next.lostFor++; next.lostFor&(next.lostFor-1) == 0 { // ever more seldom
			next, p = next.again(p, mean, variance)
		}
	} else {
		next.lostFor = 0
	}
	if next.at != f.at {
		change = 1
	}
	change = max(change, 2*math.Abs(math.Log(next.Amplitude/f.Amplitude))*math.Sqrt(p.information[0]))
	return next, p, max(change, 2*math.Abs(math.Log(next.Scatter/f.Scatter))*math.Sqrt(p.information[1]))
}

// ScatterGain is by how much the logarithm of the evidence is higher with the scatter that was found than with hardly any.
func (f Field) ScatterGain(mean, variance []float64) float64 {
	without := f
	without.Scatter = LeastScatter
	return f.Posterior(mean, variance).evidence - without.Posterior(mean, variance).evidence
}

// again looks for a smooth part at every length where that in use was taken for scatter: an amplitude near 0 has no length, and steps that grow
// with it do not come back.
func (f Field) again(p *Posterior, mean, variance []float64) (Field, *Posterior) {
	for at := range f.places.lengths {
		other := f
		other.at, other.Amplitude = at, f.Scatter
		q := other.Posterior(mean, variance)
		for range 2 {
			other, q = other.step(q, mean, variance)
		}
		if q.evidence > p.evidence+lengthGain {
			f, p = other, q
		}
	}
	return f, p
}

// step is one of Fisher's scoring, halved until it raises the evidence.
func (f Field) step(p *Posterior, mean, variance []float64) (Field, *Posterior) {
	var by [2]float64
	for i, s := range p.slope {
		if s != 0 {
			by[i] = min(max(s/p.information[i], -stepReach), stepReach)
		}
	}
	for range halvings {
		next := f
		next.Amplitude = min(max(f.Amplitude*math.Exp(0.5*by[0]), LeastScatter), mostAmplitude)
		next.Scatter = min(max(f.Scatter*math.Exp(0.5*by[1]), LeastScatter), mostAmplitude)
		if next == f {
			break
		}
		if q := next.Posterior(mean, variance); q.evidence >= p.evidence {
			return next, q
		}
		by[0], by[1] = 0.5*by[0], 0.5*by[1]
	}
	return f, p
}
