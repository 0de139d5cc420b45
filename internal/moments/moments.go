// Package moments holds what the mean squares of readings say of a model before anything
// is solved: where learning starts. It knows matrices, and nothing of solvers.
package moments

import (
	"math"
	"runtime"
	"slices"

	"gonum.org/v1/gonum/mathext"

	"github.com/calamp/calamp/operator"
)

const (
	// SignalToNoise is the ratio of the signals' power to the noise's where
	// nothing is known (Vila and Schniter 2013, section III-E: 20 dB).
	SignalToNoise = 100

	leastPower = 1e-300 // of z

	narrowest, widest = 0.05, 0.8 // range of s, half-width relative to the middle
)

// Density is the density of signals of n entries where nothing is known but that m sensors read them: about half of what can be recovered at best.
func Density(m, n int) float64 {
	return min(max(guessedDensity*float64(m)/float64(n), 1/float64(n)), 0.5)
}

// guessedDensity is the density relative to the measurement rate.
const guessedDensity = 0.25

// Power is the mean square of z = Wx that the readings suggest when the calibration
// has the given mean, for rows of W of this mean square norm.
func (p *Powers) Power(row, calibration float64) float64 {
	return max(p.Level*row*calibration*calibration, leastPower)
}

// Signal is what is left of a power for the signals beside noise of this variance.
func Signal(power, noise float64) float64 {
	return max(power-noise, power/(1+SignalToNoise))
}

// Powers are the sensors' mean square readings relative to their rows of W.
type Powers struct {
	Level float64 // typical value, whatever a few sensors do

	logs   []float64 // the logarithms
	chance float64   // variance of these if all gains were equal
}

// Of returns those of the readings y (M×P, NaN where missing). It takes the readings of
// a sensor for Gaussian, as sums over many
// entries are: the logarithm of the mean square of n of them has mean
// ψ(n/2) - log(n/2) and variance ψ'(n/2) beside that of their variance. The error is
// that of rows of W which could not be read.
func Of(w operator.Operator, y []float64, signals int) (Powers, error) {
	p := Powers{Level: 1}
	m, n := w.Dims()
	table, seen := w.(operator.Matrix)
	seen = seen && !operator.FarRows(w)
	row, norms := make([]float64, n), []float64(nil)
	if !seen {
		var err error
		if norms, err = operator.RowSquares(w, runtime.GOMAXPROCS(0)); err != nil {
			return p, err
		}
	}
	for mu := range m {
		var norm float64
		if seen {
			if err := table.RowInto(row, mu); err != nil {
				return p, err
			}
			norm = meanSquare(row) * float64(n)
		} else {
			norm = norms[mu]
		}
		sum, count := 0.0, 0.0
		for _, v := range y[mu*signals : (mu+1)*signals] {
			if !math.IsNaN(v) {
				sum += v * v
				count++
			}
		}
		if sum > 0 && norm > 0 && !math.IsInf(sum, 1) {
			p.logs = append(p.logs, math.Log(sum/count/norm)-mathext.Digamma(count/2)+math.Log(count/2))
			p.chance += mathext.Zeta(2, count/2)
		}
	}
	if len(p.logs) > 0 {
		p.chance /= float64(len(p.logs))
		sorted := slices.Sorted(slices.Values(p.logs))
		p.Level = math.Exp(sorted[len(sorted)/2])
	}
	return p, nil
}

// Spread is the half-width of the range of s, relative to its middle: from the
// variance of log s², which is what the sensors' powers vary by beyond chance, two
// standard errors up. The variance is that of a normal distribution with the same
// median deviation, whatever a few sensors do.
func (p *Powers) Spread() float64 {
	m := float64(len(p.logs))
	if m < 2 {
		return narrowest
	}
	deviations := make([]float64, len(p.logs))
	for i, u := range p.logs {
		deviations[i] = math.Abs(u - math.Log(p.Level))
	}
	slices.Sort(deviations)
	sd := deviations[len(deviations)/2] / MedianOfNormal
	excess := sd*sd*(1+2*math.Sqrt(3/m)) - p.chance
	return min(max(math.Sqrt(3*max(excess, 0)/4), narrowest), widest)
}

// MedianOfNormal is the median of |N(0, 1)|.
const MedianOfNormal = 0.6744897501960817

func meanSquare(v []float64) float64 {
	total := 0.0
	for _, x := range v {
		total += x * x
	}
	return total / float64(len(v))
}

// Centred are the readings (M×P) of sensors that may have offsets: without the mean of each sensor's, and as large as
// they would be without an offset.
func Centred(y []float64, p int) []float64 {
	out := make([]float64, len(y))
	for from := 0; from < len(y); from += p {
		total, n := 0.0, 0.0
		for _, v := range y[from : from+p] {
			if !math.IsNaN(v) {
				total += v
				n++
			}
		}
		grow := math.Sqrt(n / max(1, n-1))
		for k, v := range y[from : from+p] {
			out[from+k] = grow * (v - total/n)
		}
	}
	return out
}

// OffsetSD is the standard deviation of the sensors' offsets that the means of their readings suggest, beyond what
// chance makes of means of so many.
func OffsetSD(y []float64, p int) float64 {
	var excess, within []float64
	for from := 0; from < len(y); from += p {
		total, square, n := 0.0, 0.0, 0.0
		for _, v := range y[from : from+p] {
			if !math.IsNaN(v) {
				total += v
				square += v * v
				n++
			}
		}
		if n < 2 {
			continue
		}
		mean := total / n
		spread := (square - n*mean*mean) / (n - 1)
		excess = append(excess, mean*mean)
		within = append(within, spread/n)
	}
	if len(excess) == 0 {
		return 1
	}
	slices.Sort(excess)
	slices.Sort(within)
	// The median of the square of a normal number is 0.455 of its variance.
	chance := within[len(within)/2]
	found := excess[len(excess)/2]/(MedianOfNormal*MedianOfNormal) - chance
	return math.Sqrt(max(found, leastOffset*chance))
}

// leastOffset is the least variance of offsets where learning starts, relative to that of the sensors' means.
const leastOffset = 0.1

// Light is the mean of readings, of which negative ones count as 0 and missing ones (NaN) not at all: what photons bring on average.
func Light(y []float64) float64 {
	total, count := 0.0, 0.0
	for _, v := range y {
		if !math.IsNaN(v) {
			total, count = total+max(0, v), count+1
		}
	}
	return total / max(1, count)
}
