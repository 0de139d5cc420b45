package dataset

import (
	"encoding/binary"
	"math"
	"math/cmplx"

	"gonum.org/v1/gonum/mat"

	"github.com/calamp/calamp"
	"github.com/calamp/calamp/operator"
	"github.com/calamp/calamp/prior"
)

// Complex problems: W, Y, X0 and s0 can be of type c8 or c16. Y says whether a problem is complex, and W
// may be real all the same.

func (a *Array) isComplex() bool { return a.complex64 != nil || a.complex128 != nil || a.parts == 2 }

// checkKinds refuses arrays of which some are complex where others say that the problem is real.
func checkKinds(w, y *Array, t truths) error {
	if y.isComplex() {
		if t.o0 != nil {
			return t.o0.fault("o0 is for real problems, and Y is complex")
		}
		return nil
	}
	if w.isComplex() {
		return y.fault("Y is real (%s) and W is complex: a complex W needs complex readings, of type c8 or c16", y.Dtype)
	}
	for _, a := range []*Array{t.x0, t.s0} {
		if a != nil && a.isComplex() {
			return a.fault("%s is complex (%s) and Y is real: the truth of a real problem is real", a.Name, a.Dtype)
		}
	}
	return nil
}

// asPairs is a with its values as real and imaginary parts beside each other, where the problem is complex.
func (a *Array) asPairs(whole bool) (*Array, error) {
	if !whole || a.parts == 2 {
		return a, nil
	}
	if err := a.allowed.TakeTimes(a.count(), 2, 8); err != nil {
		return nil, a.fault("%s of complex numbers: %w", a.dims(), err)
	}
	b := *a
	b.parts, b.Data = 2, make([]float64, 0, 2*a.count())
	for _, v := range a.Data {
		b.Data = append(b.Data, v, 0)
	}
	for _, v := range a.complex128 {
		b.Data = append(b.Data, real(v), imag(v))
	}
	for _, v := range a.complex64 {
		b.Data = append(b.Data, float64(real(v)), float64(imag(v)))
	}
	b.complex64, b.complex128 = nil, nil
	return &b, nil
}

// halved is a matrix with two columns for each complex number as what it stands for.
func (a *Array) halved() *Array {
	b := *a
	b.Shape, b.parts = []int{a.Shape[0], a.Shape[1] / 2}, 2
	return &b
}

// polar divides complex values into sizes, which are the values of an array, and phases.
func (a *Array) polar() (sizes *Array, phases []float64) {
	b := *a
	b.Data = nil
	b.complex128 = nil
	values := a.complex128
	for _, v := range a.Data {
		values = append(values, complex(math.Abs(v), 0))
	}
	for _, v := range values {
		b.Data = append(b.Data, cmplx.Abs(v))
		phases = append(phases, cmplx.Phase(v))
	}
	return &b, phases
}

// readPhases reads s_phase, nominal phases of sensors, where a problem has them.
func (p *Problem) readPhases(c *container) error {
	if c.format == npyFormat || c.format == foreignFormat {
		return nil
	}
	a, err := c.readOptional("s_phase")
	if err != nil || a == nil {
		return err
	}
	m, _ := p.W.Dims()
	switch {
	case !p.Complex:
		return a.fault("s_phase is for complex problems, and Y is real")
	case !a.isVector() || a.count() > m: // sensors may have several rows, and be named later
		return a.fault("s_phase is %s, expected %d values, one for each row of W, or for each sensor of several rows", a.dims(), m)
	}
	for i, v := range a.Data {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return a.fault("s_phase of sensor %d is %g, expected a finite number", i, v)
		}
	}
	p.Phases = a.Data
	return nil
}

// pairsOutput writes a matrix with two columns for each complex number.
func pairsOutput(name string, m *mat.Dense) output {
	rows, columns := m.Dims()
	return output{name, "<c16", []int{rows, columns / 2}, rows, func(dst []byte, row int) ([]byte, error) {
		return appendFloats(dst, m.RawRowView(row)), nil
	}}
}

func complexVectorOutput(name string, v []complex128) output {
	return output{name, "<c16", []int{len(v)}, 1, func(dst []byte, _ int) ([]byte, error) {
		for _, z := range v {
			dst = appendFloats(dst, []float64{real(z), imag(z)})
		}
		return dst, nil
	}}
}

// complexOutput keeps the precision that w is stored in.
func complexOutput(name string, w *operator.Complex) output {
	m, n := w.Dims()
	re, im := make([]float64, n), make([]float64, n)
	single := w.Storage() == "f32"
	dtype := "<c16"
	if single {
		dtype = "<c8"
	}
	return output{name, dtype, []int{m, n}, m, func(dst []byte, row int) ([]byte, error) {
		err := w.RowInto(re, im, row)
		for i := range re {
			if single {
				dst = binary.LittleEndian.AppendUint32(dst, math.Float32bits(float32(re[i])))
				dst = binary.LittleEndian.AppendUint32(dst, math.Float32bits(float32(im[i])))
				continue
			}
			dst = appendFloats(dst, []float64{re[i], im[i]})
		}
		return dst, err
	}}
}

// isComplex tells whether there is an array of this name, and complex.
func (c *container) isComplex(name string) bool {
	e := c.find(name)
	if e == nil {
		return false
	}
	info, err := e.info()
	if err != nil {
		return false
	}
	t, err := parseDtype(info.Dtype)
	return err == nil && t.complex()
}

// complexMatrix is an array as pairs of columns.
func (l *resultLoader) complexMatrix(name string) *mat.Dense {
	if l.err != nil {
		return nil
	}
	a, err := l.c.readNumbers(name, false, true)
	if err == nil {
		a, err = a.columns("with two dimensions")
	}
	if err == nil {
		a, err = a.asPairs(true)
	}
	if l.err = err; err != nil {
		return nil
	}
	return a.matrix()
}

// complexResult is a result of complex signals and gains.
func (l *resultLoader) complexResult() (*calamp.Result, error) {
	x, total, s := l.complexMatrix("x"), l.matrix("x_var"), l.complexMatrix("s")
	r := &calamp.Result{
		X: x, SVar: l.vector("s_var"), ScaleSD: l.number("scale_sd"),
		Prior: prior.ComplexGaussBernoulli{Density: l.number("density"), SignalVar: l.number("signal_var")},
	}
	converged := l.bools("converged")
	if l.c.find("broken") != nil {
		r.Broken = l.vector("broken")
	}
	if l.err != nil {
		return nil, l.err
	}
	n, columns := x.Dims()
	if rows, signals := total.Dims(); rows != n || 2*signals != columns {
		return nil, l.c.fault("x_var", "x_var is %d×%d, expected %d×%d", rows, signals, n, columns/2)
	}
	r.XVar = mat.NewDense(n, columns, nil)
	r.XVar.Apply(func(i, k int, _ float64) float64 { return 0.5 * total.At(i, k/2) }, r.XVar)
	for _, done := range converged {
		r.Converged = append(r.Converged, done, done)
	}
	sensors, _ := s.Dims()
	for mu := range sensors {
		v := complex(s.At(mu, 0), s.At(mu, 1))
		r.S, r.Phase = append(r.S, cmplx.Abs(v)), append(r.Phase, cmplx.Phase(v))
		r.Gain = append(r.Gain, 1/cmplx.Abs(v))
	}
	r.Sensors = l.sensorsOf(sensors)
	return l.checked(r)
}
