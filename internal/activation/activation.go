// Package activation holds the functions x = f(u) between the layers of a network, and what a Gaussian on each side of one says of
// both: the factor N(u; ω, V) δ(x - f(u)) N(x; λ, Σ). It treats one entry, and does not depend on matrices, or on where the Gaussians came from.
package activation

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Function is x = f(u), taken entry by entry. The zero value is the identity.
type Function struct {
	name   string
	pieces []piece // from left to right; nil for the identity, or where it is smooth
	smooth bool    // the logistic function
	scales bool    // f(cu) = c f(u) for c > 0
}

// piece is x = slope·u + at for lo < u < hi.
type piece struct{ lo, hi, slope, at float64 }

// leakySlope is f(u)/u of a leaky ReLU at u < 0, unless it is specified otherwise: what PyTorch and Keras's papers take.
const leakySlope = 0.01

var inf = math.Inf(1)

// The functions, by name.
var (
	Identity = Function{name: "identity", scales: true}
	ReLU     = Function{name: "relu", pieces: []piece{{-inf, 0, 0, 0}, {0, inf, 1, 0}}, scales: true}
	HardTanh = Function{name: "tanh-hard", pieces: []piece{{-inf, -1, 0, -1}, {-1, 1, 1, 0}, {1, inf, 0, 1}}}
	Sign     = Function{name: "sign", pieces: []piece{{-inf, 0, 0, -1}, {0, inf, 0, 1}}}
	Sigmoid  = Function{name: "sigmoid", smooth: true}
)

// Leaky is the ReLU with a slope below zero.
func Leaky(slope float64) Function {
	name := "leaky"
	if slope != leakySlope {
		name = "leaky:" + strconv.FormatFloat(slope, 'g', -1, 64)
	}
	return Function{name: name, pieces: []piece{{-inf, 0, slope, 0}, {0, inf, 1, 0}}, scales: true}
}

// Names are those that [Parse] accepts.
const Names = "identity, relu, leaky, leaky:SLOPE, tanh-hard, sigmoid or sign"

// Parse is the function of a name.
func Parse(name string) (Function, error) {
	for _, f := range []Function{Identity, ReLU, HardTanh, Sign, Sigmoid, Leaky(leakySlope)} {
		if f.name == name {
			return f, nil
		}
	}
	if text, is := strings.CutPrefix(name, "leaky:"); is {
		if slope, err := strconv.ParseFloat(text, 64); err == nil && slope >= 0 && slope < 1 {
			return Leaky(slope), nil
		}
		return Function{}, fmt.Errorf("%q has no slope, expected leaky:SLOPE with a slope of 0 to below 1", name)
	}
	return Function{}, fmt.Errorf("%q is no activation, expected %s", name, Names)
}

// String is its name.
func (f Function) String() string {
	if f.name == "" {
		return Identity.name
	}
	return f.name
}

// Scales reports whether f(cu) = c f(u) for all c > 0.
func (f Function) Scales() bool { return f.scales || f.name == "" }

// Linear reports whether it is the identity.
func (f Function) Linear() bool { return f.pieces == nil && !f.smooth }

// Work is about how many multiplications take as long as an entry of [Function.Entries], by BenchmarkNetworkIteration, and at worst: the logistic function's is
// integrated by quadrature.
func (f Function) Work() float64 {
	switch {
	case f.smooth:
		return 900
	case f.pieces == nil || f.hinge():
		return 150
	}
	return 500
}

// Of is f(u).
func (f Function) Of(u float64) float64 {
	if f.smooth {
		return logistic(u)
	}
	for _, p := range f.pieces {
		if u < p.hi {
			return p.slope*u + p.at
		}
	}
	return u
}

// Varying is the probability that f varies at u ~ N(0, sd²).
func (f Function) Varying(sd float64) float64 {
	if f.pieces == nil {
		return 1
	}
	total := 0.0
	for _, p := range f.pieces {
		if p.slope != 0 {
			total += 0.5 * (math.Erf(p.hi/(sd*math.Sqrt2)) - math.Erf(p.lo/(sd*math.Sqrt2)))
		}
	}
	return total
}

// Moments is what a factor says.
type Moments struct {
	X, XVar float64 // mean and variance of x
	U, UVar float64 // of u
	Off     float64 // U - ω, with the digits of the difference

	// LogMass is log ∫ N(u; ω, V) exp(-½ a (f(u)-λ)²) du: as that of a prior's LogNorm, without the norm of the field.
	LogMass float64
}

// Factor is N(u; ω, V) δ(x - f(u)) N(x; λ, 1/a), for V > 0 and a precision a ≥ 0.
func (f Function) Factor(lambda, a, omega, v float64) Moments {
	switch {
	case f.smooth:
		return logisticFactor(lambda, a, omega, v)
	case f.pieces == nil:
		return whole(lambda, a, omega, v)
	}
	return piecewise(f.pieces, lambda, a, omega, v)
}

// whole is the factor of the identity.
func whole(lambda, a, omega, v float64) Moments {
	narrower := 1 / (1 + a*v)
	d := lambda - omega
	off := a * v * narrower * d
	s := v * narrower
	return Moments{
		X: omega + off, XVar: s, U: omega + off, UVar: s, Off: off,
		LogMass: 0.5*math.Log(narrower) - 0.5*d*(d*(a*narrower)),
	}
}

// Slope is f'(u).
func (f Function) Slope(u float64) float64 {
	if f.smooth {
		return logistic(u) * logistic(-u)
	}
	for _, p := range f.pieces {
		if u < p.hi {
			return p.slope
		}
	}
	return 1
}

// Smooth reports whether f has a slope everywhere.
func (f Function) Smooth() bool { return f.pieces == nil }

// Over is the mean of f and of its slope over u ~ N(mean, variance), of a function of straight pieces that meet; f and its slope at the mean for another one.
func (f Function) Over(mean, variance float64) (value, slope float64) {
	if f.Smooth() || !(variance > 0) {
		return f.Of(mean), f.Slope(mean)
	}
	sd := math.Sqrt(variance)
	first := f.pieces[0]
	value, slope = first.slope*mean+first.at, first.slope
	for i, p := range f.pieces[1:] { // where a piece begins the slope changes
		z, change := (mean-p.lo)/sd, p.slope-f.pieces[i].slope
		above := 0.5 * math.Erfc(-z/math.Sqrt2)
		slope += change * above
		value += change * sd * (z*above + math.Exp(-0.5*z*z-halfLog2Pi))
	}
	return value, slope
}
