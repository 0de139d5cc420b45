package calamp

import (
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/mat"

	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/internal/amp"
	"github.com/calamp/calamp/operator"
)

// Sensors that have several rows of W are solved as a problem of which the rows of a sensor lie together, and all sensors
// have as many: rows that are lacking are zero in W, and NaN in Y. Only this place maps rows to sensors.

// mostPadding bounds how many times as many rows that makes.
const mostPadding = 4

// rowMap says which row of W belongs to which sensor.
type rowMap struct {
	ids   []int // M, as given
	each  int   // rows of the sensor that has most
	count []int // S, rows of every sensor
	order []int // S·each: the row at each place, -1 where a sensor has no more
	place []int // M: where each row is
}

// CheckSensors reports ids that say of no row, or of none of m rows of W, which sensor it is read with: they count sensors from 0, and every
// sensor has a row.
func CheckSensors(ids []int, m int) error {
	_, err := newRowMap(ids, m)
	return err
}

// RowsOfSensors puts rows together by the sensors that ids name: order has the row at each place, -1 where a sensor has fewer than the one with most, which has each. It is nil where
// every row is its own sensor.
func RowsOfSensors(ids []int, m int) (order []int, each int, err error) {
	r, err := newRowMap(ids, m)
	if r == nil {
		return nil, 1, err
	}
	return r.order, r.each, nil
}

// SensorCount is the number of sensors that ids name; of m rows that are a sensor each where there are no ids.
func SensorCount(ids []int, m int) int {
	if ids == nil {
		return m
	}
	return slices.Max(ids) + 1
}

// newRowMap is nil where every row is its own sensor, in order.
func newRowMap(ids []int, m int) (*rowMap, error) {
	if ids == nil {
		return nil, nil
	}
	if len(ids) != m {
		return nil, fmt.Errorf("sensors: %d values, expected %d, one a row of W: the sensor that it is read with, from 0", len(ids), m)
	}
	same := true
	for row, g := range ids {
		if g < 0 || g >= m {
			return nil, fmt.Errorf("sensors: that of row %d is %d, expected one from 0 to %d: there are no more sensors than rows", row, g, m-1)
		}
		same = same && g == row
	}
	if same {
		return nil, nil
	}
	r := &rowMap{ids: ids, count: make([]int, slices.Max(ids)+1), place: make([]int, m)}
	for _, g := range ids {
		r.count[g]++
	}
	if g := slices.Index(r.count, 0); g >= 0 {
		return nil, fmt.Errorf("sensors: none of the %d rows of W is read with sensor %d, and there is a sensor %d: expected every sensor from 0 on", m, g, len(r.count)-1)
	}
	r.each = slices.Max(r.count)
	if r.each*len(r.count) > mostPadding*m {
		return nil, fmt.Errorf("sensors: sensor %d has %d rows of W, and on average they have %.3g: expected no more than %d times as many", slices.Index(r.count, r.each), r.each, float64(m)/float64(len(r.count)), mostPadding)
	}
	r.order = slices.Repeat([]int{-1}, r.each*len(r.count))
	seen := make([]int, len(r.count))
	for row, g := range ids {
		r.place[row] = g*r.each + seen[g]
		r.order[r.place[row]] = row
		seen[g]++
	}
	return r, nil
}

// shared is the layout of rows as the solver takes it.
func (r *rowMap) shared(given operator.Operator) amp.Shared {
	if r == nil {
		return amp.Shared{}
	}
	return amp.Shared{Rows: r.each, Absent: len(r.order) - len(r.ids), Given: given}
}

// rowsEach is how many rows a sensor has.
func (r *rowMap) rowsEach() int {
	if r == nil {
		return 1
	}
	return r.each
}

// arrange puts values of rows, p of each, in order, and absent where there is no row.
func (r *rowMap) arrange(values []float64, p int, absent float64) []float64 {
	out := make([]float64, len(r.order)*p)
	for i, row := range r.order {
		if row >= 0 {
			copy(out[i*p:(i+1)*p], values[row*p:])
			continue
		}
		for k := range p {
			out[i*p+k] = absent
		}
	}
	return out
}

// restore is the reverse, M×p.
func (r *rowMap) restore(values []float64, p int) *mat.Dense {
	out := mat.NewDense(len(r.place), p, nil)
	for row, i := range r.place {
		out.SetRow(row, values[i*p:(i+1)*p])
	}
	return out
}

// together is the problem with the rows of a sensor together; p itself where every row is its own sensor.
func (p *Problem) together(opt *Options) (*Problem, error) {
	if p == nil || p.Sensors == nil || p.W == nil || p.Y == nil || p.Prior == nil || p.Channel == nil {
		return p, nil
	}
	m, n := p.W.Dims()
	rows, signals := p.Y.Dims()
	if rows != m {
		return nil, shapeError(m, n, rows, signals)
	}
	r, err := newRowMap(p.Sensors, m)
	if err != nil {
		return nil, err
	}
	if r == nil {
		q := *p
		q.Sensors = nil
		return &q, nil
	}
	looked := amp.Problem{
		W: p.W, Y: entries(p.Y), Model: amp.Model{Prior: p.Prior, Channel: p.Channel}, Joint: opt.Joint, MatrixError: opt.MatrixError, LearnMatrixError: opt.Learn.MatrixError,
	}
	if err := amp.SharedPossible(&looked, &opt.Settings); err != nil {
		return nil, err
	}
	if len(opt.Directions) > 0 {
		return nil, amp.NotShared("directions in which W may be wrong")
	}
	if codes, _ := channel.CodesOf(p.Channel); codes.Thresholds != nil {
		return nil, amp.NotShared("thresholds of every reading")
	}
	for j, y := range entries(p.Y) {
		if math.IsInf(y, 0) {
			return nil, fmt.Errorf("Y: row %d, signal %d is %g, expected a finite reading, or NaN for a missing one", j/signals, j%signals, y)
		}
	}
	q := *p
	q.rows, q.given = r, p.W
	q.Y = mat.NewDense(len(r.order), signals, r.arrange(entries(p.Y), signals, math.NaN()))
	if q.NoiseVar, err = r.noise(p.NoiseVar, m, signals); err != nil {
		return nil, err
	}
	q.W, err = operator.Arrange(p.W, r.order)
	return &q, err
}

// noise is that of every reading where it was given for every sensor, row or reading.
func (r *rowMap) noise(stated []float64, m, signals int) ([]float64, error) {
	switch sensors := len(r.count); len(stated) {
	case 0:
		return nil, nil
	case sensors:
		return slices.Clone(stated), nil
	case m:
		each := make([]float64, 0, m*signals)
		for _, v := range stated {
			each = append(each, slices.Repeat([]float64{v}, signals)...)
		}
		stated = each
	case m * signals:
	default:
		return nil, fmt.Errorf("%d noise variances for %d sensors, %d rows and %d signals: expected one a sensor, a row or a reading", len(stated), sensors, m, signals)
	}
	return r.arrange(stated, signals, slices.Min(stated)), nil
}

// apart gives a result the rows as the problem had them.
func (r *rowMap) apart(res *Result) {
	if r == nil || res == nil {
		return
	}
	res.Sensors = slices.Clone(r.ids)
	_, signals := res.X.Dims()
	res.Residual = r.restore(entries(res.Residual), signals)
	if res.Outlier != nil {
		res.Outlier = r.restore(entries(res.Outlier), signals)
	}
}

// OfRows are values of sensors (S) as rows have them (M): a gain, say, of the sensor that each row is read with. Where every row is its own
// sensor they are as they were.
func (r *Result) OfRows(values []float64) []float64 {
	if r.Sensors == nil {
		return values
	}
	out := make([]float64, len(r.Sensors))
	for row, g := range r.Sensors {
		out[row] = values[g]
	}
	return out
}

// SOfRows is s of each row of W: that of its sensor, or its own where rows have gains of their own (see [Result.RowS]).
func (r *Result) SOfRows() []float64 {
	if r.RowS != nil {
		return r.RowS
	}
	return r.OfRows(r.S)
}

// SensorOf is the sensor that a row of W was read with.
func (r *Result) SensorOf(row int) int {
	if r.Sensors == nil {
		return row
	}
	return r.Sensors[row]
}

// ResidualsOf are the residuals of a sensor, of all its rows; they are to be read only.
func (r *Result) ResidualsOf(sensor int) (all []float64) {
	if r.Sensors == nil {
		return r.Residual.RawRowView(sensor)
	}
	for row, g := range r.Sensors {
		if g == sensor {
			all = append(all, r.Residual.RawRowView(row)...)
		}
	}
	return all
}
