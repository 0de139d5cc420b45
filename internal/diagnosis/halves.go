package diagnosis

import (
	"fmt"
	"math"
	"math/cmplx"
)

const (
	// Halves disagree where the mean square of their differences is more than mostApart times that stated: error bars are too small by the square root of
	// it. Of 14 field problems and 70 of random W the largest was 1.6. Chance makes a mean square of M of 1 + apartChance √(2/M), five standard deviations.
	mostApart   = 2
	apartChance = 5
)

// Half is what a part of the snapshots says of every sensor: s (M), and the variance of its error (M), that of both parts together where s is complex; +Inf of a
// sensor of which it says nothing.
type Half struct {
	S   []complex128
	Var []float64
}

// Apart is how far two halves of the snapshots are apart.
type Apart struct {
	Ratio   float64 // mean square of the differences of s, in that stated: 1 where error bars hold
	Square  float64 // mean square of the differences
	Sensors float64 // compared
}

// Disagree reports whether both halves cannot have the same gains and the errors that they state.
func (a Apart) Disagree() bool {
	return a.Ratio > mostApart && a.Ratio > 1+apartChance*math.Sqrt(2/a.Sensors)
}

// Compare says how far two halves are apart, at the best common factor: the scale and, of complex gains, the phase. Where ramp (M, in radians) is not nil, phases of the gains may
// follow it, which moves the directions of all signals. Sensors without a variance are left out.
//
// The fit is the least squares of a_µ - c b_µ, weighted by 1/(Var a_µ + Var b_µ), and that of phases is linear.
func Compare(a, b Half, ramp []float64) Apart {
	weights := make([]float64, len(a.S))
	out, unknowns := Apart{}, 1.0
	for mu := range weights {
		if v := a.Var[mu] + b.Var[mu]; v > 0 && !math.IsInf(v, 1) && !cmplx.IsNaN(a.S[mu]) && !cmplx.IsNaN(b.S[mu]) {
			weights[mu] = 1 / v
			out.Sensors++
		}
	}
	moved := alongRamp(a.S, b.S, weights, ramp)
	if ramp != nil {
		unknowns++
	}
	factor := commonFactor(moved, b.S, weights)
	for mu, w := range weights {
		if w == 0 {
			continue
		}
		d := moved[mu] - factor*b.S[mu]
		square := real(d)*real(d) + imag(d)*imag(d)
		out.Square += square / out.Sensors
		out.Ratio += w * square / max(1, out.Sensors-unknowns)
	}
	return out
}

// commonFactor is the c of the least squares of a - c b.
func commonFactor(a, b []complex128, weights []float64) complex128 {
	var product complex128
	power := 0.0
	for mu, w := range weights {
		product += complex(w, 0) * a[mu] * cmplx.Conj(b[mu])
		power += w * (real(b[mu])*real(b[mu]) + imag(b[mu])*imag(b[mu]))
	}
	if power == 0 {
		return 1
	}
	return product / complex(power, 0)
}

// alongRamp is a with its phases moved along the ramp to those of b, as far as a constant and the ramp explain them.
func alongRamp(a, b []complex128, weights, ramp []float64) []complex128 {
	if ramp == nil {
		return a
	}
	factor := commonFactor(a, b, weights)
	var total, mean, meanAngle float64
	angles, w := make([]float64, len(a)), make([]float64, len(a))
	for mu := range a {
		if z := a[mu] * cmplx.Conj(factor*b[mu]); z != 0 {
			angles[mu], w[mu] = cmplx.Phase(z), weights[mu]*cmplx.Abs(z)
		}
		total, mean, meanAngle = total+w[mu], mean+w[mu]*ramp[mu], meanAngle+w[mu]*angles[mu]
	}
	if !(total > 0) {
		return a
	}
	mean, meanAngle = mean/total, meanAngle/total
	var cross, square float64
	for mu, r := range ramp {
		cross += w[mu] * (r - mean) * (angles[mu] - meanAngle)
		square += w[mu] * (r - mean) * (r - mean)
	}
	if square == 0 {
		return a
	}
	moved := make([]complex128, len(a))
	for mu, r := range ramp {
		moved[mu] = a[mu] * cmplx.Rect(1, -cross/square*(r-mean))
	}
	return moved
}

// Ramp is what the phases of gains follow where all directions move by the least step of their grid (M, in radians): the phases of the strongest entry's nearest column relative to its
// own; nil where phases are not free, or entries of W have no common size of which only the phase differs.
func (r *Run) Ramp() []float64 {
	gain, ok := r.calibration().(interface{ Free() bool })
	if !ok || !gain.Free() || float64(r.state.M)*float64(r.state.N) > mostForShifts {
		return nil
	}
	columns, squares := r.steering()
	if columns == nil {
		return nil
	}
	list := r.sources(squares, r.noise())
	if len(list) == 0 {
		return nil
	}
	at, nearest, most := list[0].at, -1, 0.0
	for j, c := range columns {
		if like := cmplx.Abs(dot(columns[at], c)); j != at && squares[j] > 0 && like >= most {
			nearest, most = j, like
		}
	}
	if nearest < 0 {
		return nil
	}
	ramp, each := make([]float64, r.state.M), r.state.Rows()/r.state.M
	units := between(columns[at], columns[nearest], each)
	for mu := range ramp {
		ramp[mu] = cmplx.Phase(units[mu*each])
	}
	return ramp
}

func dot(a, b []complex128) (sum complex128) {
	for mu, v := range a {
		sum += cmplx.Conj(v) * b[mu]
	}
	return sum
}

// warnDrift compares what the first half of the snapshots says of s with what the second says, at the fixed point: s = B/A of a half with A = Σ|y|²/D, B = Σ ω y*/D and D = V + Δ, whose
// errors are independent, since ω has nothing of its own reading. It takes no other run. The gains of both have made the signals, so that it sees only what changed from one half to the other.
func (r *Run) warnDrift() *Warning {
	if !r.Converged || !r.blind() || !r.additive() || r.integrated() || r.signals() < 2 {
		return nil
	}
	apart := Compare(r.byFields(0), r.byFields(1), nil)
	if !apart.Disagree() {
		return nil
	}
	return &Warning{Code: HalvesDisagree, Message: fmt.Sprintf("the gains of the first half of the snapshots and those of the second differ by %.2g times their errors (root mean square over sensors): "+
		"gains or W changed meanwhile, the answer is a mean of both, and its errors of s are larger than stated; solve parts of the snapshots by themselves, or as a stream (calamp online)", math.Sqrt(apart.Ratio))}
}

// byFields is what the first (0) or the second (1) half of the snapshots says at the fixed point.
func (r *Run) byFields(half int) Half {
	s := r.state
	out := Half{make([]complex128, s.M), make([]float64, s.M)}
	for mu := range s.M {
		precision, field := 0.0, complex128(0)
		for j := mu * s.Each; j < (mu+1)*s.Each; j += s.Columns() {
			if signal := j % s.P / s.Columns(); 2*signal/r.signals() != half || math.IsNaN(s.Y[j]) || r.isBroken(mu) {
				continue
			}
			y, omega, doubt := complex(s.Reading(j), 0), complex(s.Omega[j], 0), s.Doubt(j)
			if r.complex() {
				y, omega, doubt = complex(s.Y[j], s.Y[j+1]), complex(s.Omega[j], s.Omega[j+1]), doubt+s.Doubt(j+1)
			}
			precision += real(y*cmplx.Conj(y)) / doubt
			field += omega * cmplx.Conj(y) / complex(doubt, 0)
		}
		out.Var[mu] = 1 / precision
		if precision > 0 {
			out.S[mu] = field / complex(precision, 0)
		}
	}
	return out
}

// WarnHalves is the warning of two halves of the snapshots that were solved by themselves, from the answer of both, where they disagree; nil where they do not.
func WarnHalves(apart Apart) *Warning {
	if !apart.Disagree() {
		return nil
	}
	return &Warning{Code: HalvesDisagree, Message: fmt.Sprintf("even and odd snapshots, solved separately from this answer, have gains that differ by %.2g times their errors (root mean square over %g sensors): "+
		"error bars did not hold, and all variances were multiplied by %.2g; the model lacks something (errors of W, signals between the columns of W, or more entries than its prior has), and errors common to both halves are not in these error bars", math.Sqrt(apart.Ratio), apart.Sensors, apart.Ratio)}
}
