package dataset

import (
	"errors"
	"math"

	"gonum.org/v1/gonum/mat"

	"github.com/calamp/calamp"
	"github.com/calamp/calamp/operator"
)

// assemble makes a problem from its arrays.
func assemble(w, y *Array, t truths) (*Problem, error) {
	readings, truth, err := check(w.size(), y, t)
	if err != nil {
		return nil, err
	}
	matrix, err := w.operator()
	if err != nil {
		return nil, err
	}
	p := &Problem{W: matrix, Y: readings, Truth: truth, Complex: y.isComplex()}
	if err := p.chooseMatrices(t.matrix, w); err != nil {
		return nil, err
	}
	return p, p.checkSignals(w)
}

// check applies the rules for a problem that is read to one that will be written.
func (p *Problem) check() error {
	if p.W == nil || p.Y == nil {
		return errors.New("a problem needs W and Y")
	}
	m, n := p.W.Dims()
	w := &Array{Info: Info{Name: "W", Shape: []int{m, n}}}
	var t truths
	y := fromMatrix("Y", p.Y)
	if p.Truth.X != nil {
		t.x0 = fromMatrix("X0", p.Truth.X)
	}
	if p.Truth.S != nil {
		t.s0 = fromVector("s0", p.Truth.S)
	}
	if p.Truth.O != nil {
		t.o0 = fromVector("o0", p.Truth.O)
	}
	if p.Sensors != nil {
		t.sensors = fromVector(sensorsName, make([]float64, len(p.Sensors)))
		for row, g := range p.Sensors {
			t.sensors.Data[row] = float64(g)
		}
	}
	if p.Complex {
		y = y.halved()
		if t.x0 != nil {
			t.x0 = t.x0.halved()
		}
	}
	if _, _, err := check(w, y, t); err != nil {
		return notInput(err)
	}
	return notInput(p.checkSignals(w))
}

// notInput is the text of an InputError without its type, for data that does not come
// from a file.
func notInput(err error) error {
	if e, ok := errors.AsType[*InputError](err); ok {
		return errors.New(e.sentence())
	}
	return err
}

// fromMatrix shares the values of m where they are contiguous.
func fromMatrix(name string, m *mat.Dense) *Array {
	rows, columns := m.Dims()
	a := &Array{Info: Info{Name: name, Shape: []int{rows, columns}}}
	if raw := m.RawMatrix(); raw.Stride == columns {
		a.Data = raw.Data[:rows*columns]
		return a
	}
	for i := range rows {
		a.Data = append(a.Data, m.RawRowView(i)...)
	}
	return a
}

func fromVector(name string, v []float64) *Array {
	return &Array{Info: Info{Name: name, Shape: []int{len(v)}}, Data: v}
}

// check compares the arrays of a problem with each other, all but the values of w.
func check(w, y *Array, t truths) (readings *mat.Dense, truth calamp.Truth, err error) {
	if len(w.Shape) != 2 {
		return nil, truth, w.fault("W is %s, expected a matrix M×N", w.dims())
	}
	if err := checkKinds(w, y, t); err != nil {
		return nil, truth, err
	}
	whole := y.isComplex()
	if y, err = y.asPairs(whole); err != nil {
		return nil, truth, err
	}
	if t.x0 != nil {
		if t.x0, err = t.x0.asPairs(whole); err != nil {
			return nil, truth, err
		}
	}
	if t.s0 != nil && whole {
		t.s0, truth.Phase = t.s0.polar()
	}
	if y, err = y.columns("M×P"); err != nil {
		return nil, truth, err
	}
	if err := checkReadings(w, y); err != nil {
		return nil, truth, err
	}
	m, n, p := w.Shape[0], w.Shape[1], y.Shape[1]
	if x0 := t.x0; x0 != nil {
		if x0, err = x0.columns("N×P"); err != nil {
			return nil, truth, err
		}
		if err := checkSignals(x0, n, p); err != nil {
			return nil, truth, err
		}
		truth.X = x0.matrix()
	}
	ids, err := t.sensors.sensors(m)
	if err != nil {
		return nil, truth, err
	}
	if t.s0 != nil {
		if count := calamp.SensorCount(ids, m); ids != nil && t.s0.count() != count {
			return nil, truth, t.s0.fault("s0 is %s, expected %d values, one for each of the sensors", t.s0.dims(), count)
		}
		if err := checkCalibration(t.s0, calamp.SensorCount(ids, m), n); err != nil {
			return nil, truth, err
		}
		truth.S = t.s0.Data
	}
	if t.o0 != nil {
		if err := checkOffsets(t.o0, m); err != nil {
			return nil, truth, err
		}
		truth.O = t.o0.Data
	}
	return y.matrix(), truth, nil
}

// columns turns a vector into a matrix with one column. It refuses arrays that are
// neither vectors nor matrices, and empty ones.
func (a *Array) columns(expected string) (*Array, error) {
	b := *a
	if len(a.Shape) == 1 {
		b.Shape = []int{a.Shape[0], 1}
	}
	if len(b.Shape) != 2 {
		return nil, a.fault("%s is %s, expected a matrix %s or a vector", a.Name, a.dims(), expected)
	}
	if a.count() == 0 {
		return nil, a.fault("%s is %s: there is nothing in it, expected %s", a.Name, a.dims(), expected)
	}
	return &b, nil
}

// checkReadings compares the numbers of rows of W and Y, recognises transposed
// readings, and refuses infinite ones.
func checkReadings(w, y *Array) error {
	m, n := w.Shape[0], w.Shape[1]
	rows, columns := y.Shape[0], y.Shape[1]
	switch {
	case rows == m:
		return checkFinite(y, true)
	case columns == m && rows == n:
		return y.fault("Y is %d×%d and W is %d×%d: one of the two looks transposed, expected Y M×P and W M×N with M sensors",
			rows, columns, m, n)
	case columns == m:
		return y.fault("Y is %d×%d but W has %d rows (sensors): Y looks transposed, expected %d×P", rows, columns, m, m)
	case rows == n:
		return w.fault("W is %d×%d and Y has %d rows: W looks transposed, expected %d×N", m, n, rows, rows)
	}
	return y.fault("Y is %d×%d but W has %d rows (sensors): expected %d×P%s", rows, columns, m, m, y.headerHint(m))
}

// table makes an operator of the values, real or complex.
func (a *Array) table() (operator.Operator, error) {
	// In the order of the kernels a narrow table is larger.
	if more := operator.Packed(a.Shape[0], a.Shape[1]) - int64(a.count()); more > 0 {
		if err := a.allowed.Take(more * a.converted() / int64(a.count())); err != nil {
			return nil, a.fault("%s: %w", a.dims(), err)
		}
	}
	if !a.isComplex() {
		return a.dense()
	}
	m, n := a.Shape[0], a.Shape[1]
	var w *operator.Complex
	var err error
	if a.complex64 != nil {
		w, err = operator.NewComplex64(m, n, a.complex64)
	} else {
		w, err = operator.NewComplex(m, n, a.complex128)
	}
	if err != nil {
		return nil, a.fault("%w", err)
	}
	return w, nil
}

// dense makes an operator of the values.
func (a *Array) dense() (*operator.Dense, error) {
	m, n := a.Shape[0], a.Shape[1]
	var d *operator.Dense
	var err error
	if a.data32 != nil {
		d, err = operator.NewDense32(m, n, a.data32)
	} else {
		d, err = operator.NewDense(m, n, a.Data)
	}
	if err != nil {
		return nil, a.fault("%w", err)
	}
	return d, nil
}

// matrix makes a matrix of the values, which it shares. It must not be empty.
func (a *Array) matrix() *mat.Dense {
	return mat.NewDense(a.Shape[0], a.Shape[1]*max(1, a.parts), a.Data)
}

// checkFinite refuses Inf, and NaN unless it stands for a missing reading.
func checkFinite(a *Array, missing bool) error {
	expected := "a finite number"
	if missing {
		expected = "a finite number, or NaN where a reading is missing"
	}
	columns, parts := a.Shape[1], max(1, a.parts)
	for i, v := range a.Data {
		i /= parts
		if math.IsInf(v, 0) || math.IsNaN(v) && !missing {
			return a.fault("row %d, column %d is %g, expected %s", i/columns, i%columns, v, expected)
		}
	}
	return nil
}

func checkSignals(x *Array, n, p int) error {
	rows, columns := x.Shape[0], x.Shape[1]
	switch {
	case rows == p && columns == n && n != p:
		return x.fault("X0 is %d×%d: it looks transposed, expected N×P = %d×%d", rows, columns, n, p)
	case rows != n || columns != p:
		return x.fault("X0 is %d×%d, expected N×P = %d×%d (columns of W, columns of Y)", rows, columns, n, p)
	}
	return checkFinite(x, false)
}

func checkCalibration(s *Array, m, n int) error {
	if !s.isVector() || s.count() != m {
		hint := ""
		if s.count() == n {
			hint = ", as many as W has columns"
		}
		return s.fault("s0 is %s%s, expected %d values, one for each row of W", s.dims(), hint, m)
	}
	for i, v := range s.Data {
		if !(v > 0) || math.IsInf(v, 1) {
			return s.fault("s0 of sensor %d is %g, expected a positive finite number", i, v)
		}
	}
	return nil
}

func checkOffsets(o *Array, m int) error {
	if !o.isVector() || o.count() != m {
		return o.fault("o0 is %s, expected %d values, one for each row of W", o.dims(), m)
	}
	for i, v := range o.Data {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return o.fault("o0 of sensor %d is %g, expected a finite number", i, v)
		}
	}
	return nil
}

// isVector says whether at most one dimension is not 1: M, M×1 and 1×M.
func (i Info) isVector() bool {
	longer := 0
	for _, d := range i.Shape {
		if d != 1 {
			longer++
		}
	}
	return longer <= 1 && len(i.Shape) > 0
}
