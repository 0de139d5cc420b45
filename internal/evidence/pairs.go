package evidence

import (
	"math"
	"math/cmplx"
	"slices"

	"gonum.org/v1/gonum/floats"

	"github.com/calamp/calamp/internal/dense"
)

// readers are the sensors that rows are read with: s_µ is g_i of one, which may read others as well, or g_i g_j* of two, as of interferometers. Steps are taken in log |g| and the phases of g, of which
// those of rows are sums and differences: with the matrix L of these, the gradient is Lᵀ times that of rows, and the precision Lᵀ H L. The phase common to all g is in no row that two sensors read.
type readers struct {
	of       [][]int
	bend     dense.Matrix // 2M×2M, minus the second derivative in what rows have
	gradient []float64    // 2M, of rows
}

// inPairs reports whether two sensors read each row.
func (r *readers) inPairs() bool { return r != nil && len(r.of[0]) == 2 }

// ReadBy has each row read by one or two of so many sensors, which begin at gains of one, or for draws other than 0 at phases that are uniform.
func (f *Complex) ReadBy(of [][]int, count int, draw uint64) {
	f.readers = &readers{of: of, bend: dense.New(2*f.m, 2*f.m), gradient: make([]float64, 2*f.m)}
	f.gains, f.heard = make([]complex128, count), make([]float64, count)
	f.bend, f.curved = dense.New(2*count, 2*count), dense.New(2*count, 2*count)
	for mu, by := range of {
		for _, i := range by {
			f.heard[i] += f.readings[mu]
		}
	}
	drawPhases(f.gains, draw)
	f.S = f.ofRows(f.gains)
}

// ofRows is s of the rows, of gains of the sensors.
func (f *Complex) ofRows(gains []complex128) []complex128 {
	if f.readers == nil {
		return gains
	}
	s := make([]complex128, f.m)
	for mu, by := range f.readers.of {
		s[mu] = gains[by[0]]
		if len(by) > 1 {
			s[mu] *= cmplx.Conj(gains[by[1]])
		}
	}
	return s
}

// setGains has gains of the sensors be these.
func (f *Complex) setGains(gains []complex128) {
	copy(f.gains, gains)
	f.S = f.ofRows(f.gains)
}

// Gains are those of the sensors, with the variances of their log |g| at a fixed mean, and of their phases beside that of the first one.
func (f *Complex) Gains() (gains []complex128, log, phase []float64) {
	count := len(f.gains)
	log, phase = f.covariances()[:count], make([]float64, count)
	if f.along[0] == nil {
		return slices.Clone(f.gains), log, f.unknown(count)[count:]
	}
	l := f.spreads()
	for i := range phase {
		phase[i] = f.varianceOf(l, count+i, count, -1)
	}
	return slices.Clone(f.gains), log, phase
}

// varianceOf is the variance of what sensors have at i, with a sign times that at j added.
func (f *Complex) varianceOf(spreads dense.Matrix, i, j int, sign float64) (sum float64) {
	for row := range spreads.Rows {
		v := spreads.Row(row)[i] + sign*spreads.Row(row)[j]
		sum += v * v
	}
	return max(0, sum-f.ofGauge(f.along[0][i]+sign*f.along[0][j], f.along[1][i]+sign*f.along[1][j]))
}

// signs are those of the sensors of a row: both add to its amplitude, and phases are differences.
var signs = [2][2]float64{{1, 1}, {1, -1}}

// gather sets the gradient in what sensors have, and the lower triangle of minus the second derivative, from those in what rows have.
func (p *readers) gather(gradient []float64, bend dense.Matrix) {
	m, count := len(p.of), len(gradient)/2
	clear(gradient)
	clear(bend.Data)
	for half := range 2 {
		for mu, pair := range p.of {
			for a, i := range pair {
				gradient[half*count+i] += signs[half][a] * p.gradient[half*m+mu]
			}
			for other := range half + 1 {
				from := p.bend.Row(half*m + mu)[other*m:][:m]
				for a, i := range pair {
					to := bend.Row(half*count + i)[other*count:][:count]
					for nu, v := range from {
						for b, j := range p.of[nu] {
							to[j] += signs[half][a] * signs[other][b] * v
						}
					}
				}
			}
		}
	}
}

// sensorsOf are those that a row is read with.
func (f *Complex) sensorsOf(mu int) []int {
	if f.readers == nil {
		return []int{mu}
	}
	return f.readers.of[mu]
}

// sameGains reports whether another fit has come to the same gains, as far as the errors of both allow: the same amplitudes but for a scale, and the same phases, of which pairs leave none open. Powers
// of readings alone determine amplitudes, and wrong answers agree in them. Where two draws from the prior would pass, agreement says nothing.
func (f *Complex) sameGains(other *Complex) bool {
	logs, phases := make([]float64, f.m), make([]float64, f.m)
	for mu, v := range f.S {
		logs[mu], phases[mu] = math.Log(cmplx.Abs(other.S[mu]/v)), cmplx.Phase(other.S[mu]/v)
	}
	floats.AddConst(-floats.Sum(logs)/float64(f.m), logs)
	own, others, free := f.rowCovariances(), other.rowCovariances(), 2*f.Spread*f.Spread
	for half, off := range [][]float64{logs, phases} {
		open := mostApart * (floats.Sum(own[half*f.m:][:f.m]) + floats.Sum(others[half*f.m:][:f.m]))
		if floats.Dot(off, off) > open || open >= 2*float64(f.m)*free {
			return false
		}
		free = math.Pi * math.Pi / 3
	}
	return true
}

// BeginAtGains begins at the gains of another fit, as BeginAt.
func (f *Complex) BeginAtGains(other *Complex) {
	f.setGains(other.gains)
	f.begun = true
}

// rowCovariances are the variances of log r and φ of the rows (2M).
func (f *Complex) rowCovariances() []float64 {
	if f.readers == nil {
		return f.covariances()
	}
	out := f.unknown(f.m)
	if f.along[0] == nil {
		for i := range out {
			out[i] *= float64(len(f.readers.of[0]))
		}
		return out
	}
	l, count := f.spreads(), len(f.gains)
	for half := range 2 {
		for mu, by := range f.readers.of {
			first, other, sign := half*count+by[0], half*count+by[0], 0.0
			if len(by) > 1 {
				other, sign = half*count+by[1], signs[half][1]
			}
			out[half*f.m+mu] = f.varianceOf(l, first, other, sign)
		}
	}
	return out
}
