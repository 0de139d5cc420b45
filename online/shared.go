package online

import (
	"errors"
	"math"
	"math/cmplx"

	"gonum.org/v1/gonum/mat"

	"github.com/calamp/calamp"
	"github.com/calamp/calamp/internal/amp"
	"github.com/calamp/calamp/internal/diagnosis"
	"github.com/calamp/calamp/operator"
)

// gather sets how many sensors there are, and is w with the rows of each together.
func (c *instrument) gather(w operator.Operator) (operator.Operator, error) {
	c.m, _ = w.Dims()
	order, each, err := calamp.RowsOfSensors(c.opt.Sensors, c.m)
	if err != nil || order == nil {
		return w, err
	}
	if len(c.opt.SensorDerivatives) > 0 {
		return nil, errors.New("a stream with sensors of several rows has no parameters of sensors: leave one of the two out")
	}
	c.m, c.rows, c.order = len(order)/each, each, order
	return operator.Arrange(w, order)
}

// shared is how the solver has rows of sensors.
func (c *instrument) shared() (s amp.Shared) {
	if c.order != nil {
		s.Rows = c.rows
	}
	return s
}

// rowsGiven is how many rows W has as it was given.
func (c *instrument) rowsGiven() (count int) {
	if c.order == nil {
		return c.m
	}
	for _, row := range c.order {
		count += int(bit(row >= 0))
	}
	return count
}

// arrange takes the readings of a sample, as rows of W were given.
func (c *Calibrator) arrange(y []float64) {
	if c.order == nil {
		copy(c.y, y)
		return
	}
	for i, row := range c.order {
		for part := range c.parts {
			v := math.NaN()
			if row >= 0 {
				v = y[row*c.parts+part]
			}
			c.y[i*c.parts+part] = v
		}
	}
}

// inRows is what rows have, as they were given.
func (c *instrument) inRows(rows *mat.Dense) *mat.Dense {
	if c.order == nil {
		return rows
	}
	_, columns := rows.Dims()
	out := mat.NewDense(c.rowsGiven(), columns, nil)
	for i, row := range c.order {
		if row >= 0 {
			out.SetRow(row, rows.RawRowView(i))
		}
	}
	return out
}

// ofRows are values of sensors as rows have them that were given; nil for none.
func (c *instrument) ofRows(values []float64) []float64 {
	if c.order == nil || values == nil {
		return values
	}
	out := make([]float64, c.rowsGiven())
	for i, row := range c.order {
		if row >= 0 {
			out[row] = values[i/c.rows]
		}
	}
	return out
}

// rowWatch compares what rows of a sensor ask of its gain, over some samples after the other (see [diagnosis.RowsApart]).
type rowWatch struct {
	samples int
	rows    []diagnosis.RowGain // what of its reading a row asks for beyond its sensor's s
	found   diagnosis.Apart
}

// watchRows takes in a sample that was learned from.
func (c *Calibrator) watchRows() {
	if c.order == nil || c.opt.Commit != Sane {
		return
	}
	w, e := &c.rowsWatched, c.sample
	offsets := make([]float64, c.m)
	if known := c.offsets(); known != nil {
		known.Offsets(offsets, c.variances, e.Stats)
	}
	if w.rows == nil {
		w.rows = make([]diagnosis.RowGain, c.m*c.rows)
	}
	for j := range w.rows {
		mu := j / c.rows
		if y := c.number(c.y, j); c.uses(mu) && !cmplx.IsNaN(y) {
			own := cmplx.Rect(e.S[mu], e.Phase[mu])
			y -= complex(offsets[mu], 0)
			w.rows[j].Add(y, c.number(e.Omega, j)-own*y, float64(c.parts)*(e.U[j*c.parts]+c.noise))
		}
	}
	if w.samples++; w.samples < watchedTogether {
		return
	}
	w.found, _ = diagnosis.RowsApart(w.rows, c.rows, c.parts)
	w.samples = 0
	clear(w.rows)
}

// widenForRows makes error bars of gains wider where rows of sensors disagree.
func (c *watching) widenForRows(p *Posterior) {
	if apart := c.rowsWatched.found; apart.Disagree() {
		scale(p.SVar, apart.Ratio)
		p.Calibration.Prior.Carry(p.Calibration.Stats, 1/apart.Ratio, 1)
	}
}
