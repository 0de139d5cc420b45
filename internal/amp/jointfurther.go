package amp

import (
	"math"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"

	"github.com/calamp/calamp/internal/joint"
)

// jointFurther are the further rows and entries of a W without its means (see [operator.Centred]), beside joint rows: each is a vector over signals, with a covariance of its own.
// A further row reads zero without noise,
//
//	g = -V⁻¹ω,   -∂g = V⁻¹,   V = vK,
//
// and of a further entry nothing is known beforehand: C⁻¹ = aA + c²V⁻¹ with c the pivot, where a is that of the sensors alone. What a further row says of the size of fields is left out, of
// entries as well: it is one row of hundreds, but its precision is of another shape than A, and has no bound where signals hardly differ.
type jointFurther struct {
	*jointRows
	cov     [][]float64 // of each entry, P×P
	inverse []float64   // P×P, K⁻¹
	logDet  float64     // of K
	sizes   []float64   // of each row, v
	logDets float64     // of the covariances of all entries
	volume  float64     // Σ gᵀVg of all rows
	squares float64     // Σ ωᵀV⁻¹ω
}

// newJointFurther is nil where W is as it is.
func newJointFurther(e *jointRows) *jointFurther {
	count := e.further.Extra
	if count == 0 {
		return nil
	}
	f := &jointFurther{jointRows: e, inverse: make([]float64, e.P*e.P), sizes: make([]float64, count)}
	for j := range count {
		c := make([]float64, e.P*e.P)
		for k := range e.P {
			v := e.all.c[e.P*e.N+k*count+j]
			c[k*e.P+k] = v
			e.traces[e.N+j] += v
		}
		f.cov = append(f.cov, c)
		e.keep(c)
	}
	return f
}

// begin adds the covariances of entries to those of the others, and takes up K.
func (f *jointFurther) begin(k *joint.Shape) {
	if f == nil {
		return
	}
	bounded := *k
	bounded.Values = append([]float64(nil), k.Values...)
	f.logDet = 0
	for j, v := range bounded.Values {
		bounded.Values[j] = max(v, leastFurther*k.Values[f.P-1])
		f.logDet += math.Log(bounded.Values[j])
	}
	bounded.Inverse(f.inverse)
}

// leastFurther is the least variance along a direction, relative to the largest, that a further row is inverted for: rounding is below.
const leastFurther = 1e-10

// sum is Σ C of rows and further entries.
func (f *jointFurther) sum(rows []float64) []float64 {
	if f == nil {
		return rows
	}
	all := append([]float64(nil), rows...)
	for _, c := range f.cov {
		for i, v := range c {
			all[i] += v
		}
	}
	return all
}

// output is that of further row j.
func (f *jointFurther) output(j int, z, g []float64, size float64) {
	p, a := f.P, &f.all
	from := f.M*p + j*p
	omega, old := a.omega[from:from+p], a.g[from:from+p]
	f.sizes[j] = size
	blas64.Gemv(blas.NoTrans, -size, block(f.covariance, p), vector(old), 0, vector(omega))
	for k := range p {
		omega[k] += z[k]
		a.v[from+k] = size * f.covariance[k*p+k]
	}
	blas64.Gemv(blas.NoTrans, -1/size, block(f.inverse, p), vector(omega), 0, vector(g))
	a.logZ[f.M+j] = -0.5 * (float64(p)*math.Log(2*math.Pi*size) + f.logDet - blas64.Dot(vector(omega), vector(g)))
	for k := range p {
		g[k] += f.delta * (old[k] - g[k])
	}
	copy(old, g)
}

// input finds the further entries from the fields of shape a and what came back from the sweep.
func (f *jointFurther) input(a *joint.Shape) {
	if f == nil {
		return
	}
	p, count := f.P, f.further.Extra
	shape, precision := make([]float64, p*p), make([]float64, p*p)
	a.Matrix(shape)
	onward, x := make([]float64, p), make([]float64, p)
	f.logDets = 0
	for j, pivot := range f.further.Pivots(0) {
		for i, v := range shape {
			precision[i] = -f.h[f.N+j]*v + pivot*pivot/f.sizes[j]*f.inverse[i]
		}
		s, size, ok := f.rows.Span.NewShape(precision, p, f.columns, 0)
		if !ok || !(s.Values[0] > 0) {
			f.Moved[0] = math.NaN() // as in [jointRows.input]
			return
		}
		inverse := make([]float64, p*p)
		s.Inverse(inverse)
		for k := range p {
			onward[k] = f.all.r[p*f.N+k*count+j]
			f.logDets -= math.Log(size * s.Values[k])
		}
		blas64.Gemv(blas.NoTrans, 1/size, block(inverse, p), vector(onward), 0, vector(x))
		f.traces[f.N+j] = 0
		for k := range p {
			at := p*f.N + k*count + j
			f.all.centre[at] = f.all.x[at] + f.delta*(f.all.centre[at]-f.all.x[at])
			f.all.x[at] = f.all.centre[at] + x[k]
		}
		for i, v := range inverse {
			f.cov[j][i] = v/size + f.delta*(f.cov[j][i]-v/size)
		}
		for k := range p {
			f.traces[f.N+j] += f.cov[j][k*p+k]
			f.all.c[p*f.N+k*count+j] = f.cov[j][k*p+k]
		}
	}
	f.volume, f.squares = 0, 0
	for j, size := range f.sizes {
		from := (f.M + j) * p
		for k := range p {
			for l := range p {
				f.volume += size * f.covariance[k*p+l] * f.all.g[from+k] * f.all.g[from+l]
				f.squares += f.inverse[k*p+l] / size * f.all.omega[from+k] * f.all.omega[from+l]
			}
		}
	}
}

// logEvidence is their part of the evidence.
func (f *jointFurther) logEvidence() float64 {
	if f == nil {
		return 0
	}
	total, numbers := 0.5*f.volume, float64(f.P)
	for j, pivot := range f.further.Pivots(0) {
		total += f.all.logZ[f.M+j] + numbers*(math.Log(math.Abs(pivot))+0.5+0.5*math.Log(2*math.Pi))
	}
	return total + 0.5*f.logDets
}
