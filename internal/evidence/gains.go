package evidence

import (
	"math"
	"runtime"
	"slices"

	"gonum.org/v1/gonum/floats"

	"github.com/calamp/calamp/internal/dense"
)

const (
	// The search ends where a step, in units of the posterior's standard deviation, is below 1e-12 a sensor: gainTolerance is its
	// square. Below quadratic the function is as good as its second order, and differences of its values are rounding: whole steps are taken.
	gainTolerance = 1e-24
	quadratic     = 1e-8
	mostNewton    = 100

	// enough is what a step may promise of the evidence, so that another one is not worth it while hyperparameters still move:
	// a thousandth of what one sensor's posterior is known to.
	enough = 1e-3
)

// solveGains maximises Σ n log s - ½ sᵀQs + log p(s) by Newton's method, and returns the value there. Where a
// sensor has no readings its s is the mean of the prior. A step that promises less than enough is the last one: what is then left
// is the square of that.
func (f *Fit) solveGains() (value float64, err error) {
	m := len(f.S)
	value = f.gainValue(f.S)
	if f.held {
		return value, nil
	}
	step, next := make([]float64, m), make([]float64, m)
	last := math.Inf(1) // rise of the latest whole step
	for range mostNewton {
		f.setGradient(step)
		gradient := slices.Clone(step)
		if !f.factorPrecision() {
			return 0, errSingular
		}
		dense.Solve(f.curved, step)
		rise := floats.Dot(gradient, step)
		if !(rise > gainTolerance*float64(m)) {
			break
		}
		if rise < quadratic && f.along(next, step, 1) {
			if !(rise < 0.5*last) {
				break // as near as double precision comes
			}
			last, value = rise, f.gainValue(next)
			copy(f.S, next)
			continue
		}
		moved := false
		for length := 1.0; length > 1e-12; length /= 2 {
			if !f.along(next, step, length) {
				continue
			}
			if v := f.gainValue(next); v >= value {
				moved = v > value || length == 1
				value = v
				copy(f.S, next)
				break
			}
		}
		if !moved { // as near as double precision comes
			break
		}
		if !f.exact && rise < enough {
			break
		}
	}
	return value, nil
}

// along sets next to S and a part of the step, and reports whether all of it is positive.
func (f *Fit) along(next []float64, step []float64, length float64) bool {
	for mu, s := range f.S {
		next[mu] = s + length*step[mu]
		if !(next[mu] > 0) {
			return false
		}
	}
	return true
}

func (f *Fit) gainValue(s []float64) float64 {
	value := f.priorOfGains(s)
	for mu, count := range f.readings {
		value += count*math.Log(s[mu]) - s[mu]*(0.5*floats.Dot(f.q.Row(mu), s)-f.linear[mu])
	}
	return value
}

// priorOfGains is log p(s), but for a constant.
func (f *Fit) priorOfGains(s []float64) (value float64) {
	if f.Spread > 0 {
		value -= float64(len(s)) * math.Log(f.Spread)
	}
	if f.smooth() {
		value -= 0.5 * f.Smooth.logDet
	}
	off := offOne(s)
	return value - 0.5*floats.Dot(off, f.tight(off))
}

// offOne is s - 1.
func offOne(s []float64) []float64 {
	off := slices.Clone(s)
	floats.AddConst(-1, off)
	return off
}

// tight is K⁻¹v, with the covariance K of gains beforehand.
func (f *Fit) tight(v []float64) []float64 {
	out := make([]float64, len(v))
	for mu := range v {
		if f.smooth() {
			out[mu] = floats.Dot(f.Smooth.inverse.Row(mu), v) / (f.Spread * f.Spread)
		} else {
			out[mu] = f.tightness(mu) * v[mu]
		}
	}
	return out
}

func (f *Fit) setGradient(gradient []float64) {
	pull := f.tight(offOne(f.S))
	for mu, s := range f.S {
		gradient[mu] = f.readings[mu]/s - floats.Dot(f.q.Row(mu), f.S) + f.linear[mu] - pull[mu]
	}
}

// precisionInto sets the lower triangle of a (M×M) to that of minus the second derivative of the evidence in s.
func (f *Fit) precisionInto(a dense.Matrix) {
	copy(a.Data, f.q.Data)
	for mu, s := range f.S {
		a.Row(mu)[mu] += f.readings[mu] / (s * s)
		if f.smooth() {
			floats.AddScaled(a.Row(mu)[:mu+1], 1/(f.Spread*f.Spread), f.Smooth.inverse.Row(mu)[:mu+1])
		} else {
			a.Row(mu)[mu] += f.tightness(mu)
		}
	}
}

// factorPrecision makes curved the factor of minus the second derivative. It reports whether that is positive definite.
func (f *Fit) factorPrecision() bool {
	f.precisionInto(f.curved)
	return dense.Factor(f.curved, runtime.GOMAXPROCS(0))
}

// tightness is the precision of a white prior of s. A silent sensor needs one to have an answer at all.
func (f *Fit) tightness(mu int) float64 {
	switch {
	case f.Spread > 0:
		return 1 / (f.Spread * f.Spread)
	case f.readings[mu] == 0:
		return 1
	}
	return 0
}
