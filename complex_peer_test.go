package calamp_test

import (
	"math"
	"math/cmplx"

	"gonum.org/v1/gonum/mat"

	"github.com/calamp/calamp/internal/quadrature"
)

// peerCalAMP is cal-AMP for complex gains as the program of C. Schülke, F. Caltagirone and L. Zdeborová
// (github.com/cschuelke/CalAMP, 2015) has it, so that others can be measured against it. The
// power of |s| in its posterior, the variance of s, the noise, the mixture of variances of a part with those of both in
// its prior, and the gains' rescaling are as they stand there, and not as they should be.
type peerCalAMP struct {
	W, Y     *mat.CDense // M×N, M×P
	Density  float64     // of the signals, whose entries have the variance 1
	NoiseVar float64
	GainVar  float64 // of s, CN(0, GainVar), to which its estimates are rescaled
	Damping  float64 // the part of the new: 1 is undamped

	X *mat.CDense  // N×P, the signals as they were found
	S []complex128 // M

	square                   []float64 // M×N |W|²
	x, field, oldField       []complex128
	c, variance, oldVariance []float64
	omega, z, oldOmega       []complex128
	v, zVar, oldV            []float64
	gainVar                  []float64
	m, n, p, iteration       int
	w, y                     []complex128
}

// peerSettled is the relative change of the signals after which nothing more happens.
const peerSettled = 1e-13

// Run makes so many iterations at most, from the beginning.
func (a *peerCalAMP) Run(iterations int) {
	a.begin()
	before := make([]complex128, len(a.x))
	for range iterations {
		copy(before, a.x)
		if !a.step() {
			break
		}
		change, size := 0.0, 0.0
		for j, x := range a.x {
			d := x - before[j]
			change += real(d)*real(d) + imag(d)*imag(d)
			size += real(x)*real(x) + imag(x)*imag(x)
		}
		if change < peerSettled*peerSettled*size {
			break
		}
	}
	a.X = mat.NewCDense(a.n, a.p, a.x)
}

func (a *peerCalAMP) begin() {
	a.m, a.n = a.W.Dims()
	_, a.p = a.Y.Dims()
	a.w, a.y = a.W.RawCMatrix().Data, a.Y.RawCMatrix().Data
	a.square = make([]float64, len(a.w))
	for i, w := range a.w {
		a.square[i] = real(w)*real(w) + imag(w)*imag(w)
	}
	entries, readings := a.n*a.p, a.m*a.p
	a.x, a.field, a.oldField = make([]complex128, entries), make([]complex128, entries), make([]complex128, entries)
	a.c, a.variance, a.oldVariance = make([]float64, entries), make([]float64, entries), make([]float64, entries)
	a.z, a.omega, a.oldOmega = make([]complex128, readings), make([]complex128, readings), make([]complex128, readings)
	a.v, a.zVar, a.oldV = make([]float64, readings), make([]float64, readings), make([]float64, readings)
	a.S, a.gainVar = make([]complex128, a.m), make([]float64, a.m)
	for i := range a.c {
		a.c[i], a.variance[i] = a.Density, a.Density
	}
	copy(a.z, a.y)
	copy(a.omega, a.y)
	for j := range a.v {
		a.v[j] = 1
	}
	a.iteration = 0
}

// step is one iteration; false where it has left the numbers.
func (a *peerCalAMP) step() bool {
	copy(a.oldOmega, a.omega)
	copy(a.oldV, a.v)
	copy(a.oldField, a.field)
	copy(a.oldVariance, a.variance)
	for mu := range a.m {
		for k := range a.p {
			j := mu*a.p + k
			var v float64
			var omega complex128
			for i := range a.n {
				v += a.square[mu*a.n+i] * a.c[i*a.p+k]
				omega += a.w[mu*a.n+i] * a.x[i*a.p+k]
			}
			omega -= complex(v/a.oldV[j], 0) * (a.z[j] - a.oldOmega[j])
			a.omega[j], a.v[j] = omega, v
			if a.iteration > 0 {
				a.omega[j], a.v[j] = a.damped(omega, v, a.oldOmega[j], a.oldV[j])
			}
		}
	}
	a.gains()
	a.readings()
	for i := range a.n {
		for k := range a.p {
			j := i*a.p + k
			var precision float64
			var pull complex128
			for mu := range a.m {
				at := mu*a.p + k
				precision += a.square[mu*a.n+i] * (a.v[at] - a.zVar[at]) / (a.v[at] * a.v[at])
				pull += cmplx.Conj(a.w[mu*a.n+i]) * (a.z[at] - a.omega[at]) / complex(a.v[at], 0)
			}
			variance := 1 / precision
			if variance < 0 {
				variance = 1
			}
			a.field[j], a.variance[j] = a.x[j]+complex(variance, 0)*pull, variance
			if a.iteration > 0 {
				a.field[j], a.variance[j] = a.damped(a.field[j], variance, a.oldField[j], a.oldVariance[j])
			}
		}
	}
	a.signals()
	a.iteration++
	return !cmplx.IsNaN(a.x[0]) && !cmplx.IsInf(a.x[0])
}

func (a *peerCalAMP) damped(mean complex128, variance float64, oldMean complex128, oldVariance float64) (complex128, float64) {
	d := a.Damping
	to := 1 / (d/variance + (1-d)/d/oldVariance)
	weight := complex(d*to/variance, 0)
	return weight*mean + (1-weight)*oldMean, to
}

// gains are calculate_d.m: the posterior of |s| has the power P+1, and s the variance 1/τ.
func (a *peerCalAMP) gains() {
	for mu := range a.m {
		var tau float64
		var b complex128
		for j := mu * a.p; j < (mu+1)*a.p; j++ {
			inverse := 1 / (a.NoiseVar + a.v[j])
			tau += (real(a.y[j])*real(a.y[j]) + imag(a.y[j])*imag(a.y[j])) * inverse
			b += a.omega[j] * cmplx.Conj(a.y[j]) * complex(inverse, 0)
		}
		a.gainVar[mu] = 1 / tau
		size := cmplx.Abs(b)
		if size == 0 {
			a.S[mu] = 1
			continue
		}
		mode := quadrature.GainMode(float64(a.p+1), tau, size)
		log, mean, _ := quadrature.GainMoments(float64(a.p+1), tau, size, 1e-9*mode, 1e3*mode)
		mass := math.Exp(log - 0.5*size*size/tau)
		a.S[mu] = b * complex(mean*mass/max(mass, epsilon)/size, 0)
	}
	var mean complex128
	for _, s := range a.S {
		mean += s
	}
	mean /= complex(float64(a.m), 0) // exactly 1 where all are
	spread := 0.0
	for _, s := range a.S {
		d := cmplx.Abs(s - mean)
		spread += d * d / float64(a.m-1)
	}
	if spread > 0 {
		for mu := range a.S {
			a.S[mu] *= complex(math.Sqrt(a.GainVar/spread), 0)
		}
	}
}

// readings are mzvz.m.
func (a *peerCalAMP) readings() {
	for j, v := range a.v {
		mu := j / a.p
		known := v / (a.NoiseVar + v)
		size := cmplx.Abs(a.y[j])
		a.zVar[j] = known * (a.NoiseVar + known*size*size*a.gainVar[mu])
		a.z[j] = complex(a.NoiseVar/(a.NoiseVar+v), 0)*a.omega[j] + complex(known, 0)*a.y[j]*a.S[mu]
	}
}

// signals are mxvx.m: the likelihoods take the variances for those of a part.
func (a *peerCalAMP) signals() {
	for j, field := range a.field {
		v := a.variance[j]
		square := real(field)*real(field) + imag(field)*imag(field)
		slab := a.Density * math.Exp(-0.5*square/(v+1)) / (2 * math.Pi * (v + 1))
		sum := max(slab+(1-a.Density)*math.Exp(-0.5*square/v)/(2*math.Pi*v), epsilon)
		a.x[j] = complex(slab/sum/(v+1), 0) * field
		size := cmplx.Abs(a.x[j])
		a.c[j] = slab/sum*(square+v*(v+1))/((v+1)*(v+1)) - size*size
	}
}

// epsilon is the least that the program divides by.
const epsilon = 0x1p-52
