package calamp

import (
	"fmt"
	"math"

	"gonum.org/v1/gonum/mat"

	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/internal/search"
	"github.com/calamp/calamp/prior"
	"github.com/calamp/calamp/solver"
)

// readings is Y as a run uses it, and what carries no information in it.
type readings struct {
	y      []float64 // M×P, NaN where missing
	silent []int     // sensors with no usable reading
	zero   []int     // of these, the ones whose readings are all exactly zero
	beyond []int     // places of what was read and is too large to compute with
}

// readingsOf checks Y and takes out what carries no information: a sensor whose
// readings are all exactly zero is disconnected, since a reading of a continuous
// quantity is zero with probability zero. With known gains zeros stay: they may be
// what a user's own channel reads. Readings beyond the limit at which sensors saturate
// are brought to it.
func readingsOf(p *Problem) (*readings, error) {
	m, n := p.W.Dims()
	rows, signals := p.Y.Dims()
	if rows != m {
		return nil, shapeError(m, n, rows, signals)
	}
	r := &readings{y: flat(p.Y)}
	columns := prior.ColumnsOf(p.Prior)
	blind, limit := channel.CalibrationOf(p.Channel) != nil, channel.LimitOf(p.Channel)
	if codes, is := channel.CodedOf(p.Channel); is {
		blind = false // zero is a code like others
		if err := codes.Check(r.y, signals); err != nil {
			return nil, err
		}
	}
	if err := r.examine(limit, signals); err != nil {
		return nil, err
	}
	if columns > 1 {
		r.pair()
	}
	each := signals * p.rows.rowsEach()
	r.turn(p.Phases, each)
	for mu := range m * signals / each {
		row := r.y[mu*each : (mu+1)*each]
		present, nonzero := 0, 0
		for k, y := range row {
			if math.IsNaN(y) {
				continue
			}
			present++
			if y != 0 {
				nonzero++
			}
			if channel.Clipped(y, limit) {
				row[k] = math.Copysign(limit, y)
			}
		}
		if nonzero > 0 {
			continue
		}
		r.silent = append(r.silent, mu)
		if present > 0 && blind {
			r.zero = append(r.zero, mu)
			for k := range row {
				row[k] = math.NaN()
			}
		}
	}
	return r, r.measured(signals, columns)
}

// examine refuses readings that are infinite, and finds single ones that are too large. A reading at a limit of saturation has that size, whatever it is.
func (r *readings) examine(limit float64, signals int) error {
	sizes := make([]float64, 0, len(r.y))
	for j, y := range r.y {
		if math.IsInf(y, 0) {
			return fmt.Errorf("Y: sensor %d, signal %d is %g, expected a finite reading, or NaN for a missing one", j/signals, j%signals, y)
		}
		if size := math.Abs(y); size > 0 {
			sizes = append(sizes, size)
		}
		if math.Abs(y) > solver.MostSize && !channel.Clipped(y, limit) {
			r.beyond = append(r.beyond, j)
		}
	}
	if len(sizes) > 0 && search.Select(sizes, len(sizes)/2) > solver.MostSize { // no outliers: all are
		r.beyond = nil
	}
	return nil
}

// refuseBeyond reports the first reading that is too large to compute with, for runs that leave none out.
func (r *readings) refuseBeyond(p *Problem) error {
	if len(r.beyond) == 0 {
		return nil
	}
	j, signals, columns := r.beyond[0], len(r.y)/p.Y.RawMatrix().Rows, prior.ColumnsOf(p.Prior)
	value := p.Y.At(j/signals, j%signals)
	return fmt.Errorf("Y: sensor %d, signal %d has a reading of %g, expected at most %.1g where single readings are not left out: make it NaN, as a missing one",
		j/signals, j%signals/columns, value, solver.MostSize)
}

// CheckSizes reports readings that are typically of no size to compute with, from [solver.LeastSize] to [solver.MostSize]: a run with
// these ends, but not with what they are of. They need other units.
func CheckSizes(y *mat.Dense) error {
	var sizes []float64
	for _, v := range flat(y) {
		if size := math.Abs(v); size > 0 {
			sizes = append(sizes, size)
		}
	}
	if len(sizes) == 0 {
		return nil
	}
	if typical := search.Select(sizes, len(sizes)/2); typical < solver.LeastSize || typical > solver.MostSize {
		return fmt.Errorf("Y: the typical size of a reading is %.3g, expected one from %.1g to %.1g: give the readings in other units", typical, solver.LeastSize, solver.MostSize)
	}
	return nil
}

// pair makes both parts of a complex reading missing where one is.
func (r *readings) pair() {
	for j := 0; j+1 < len(r.y); j += 2 {
		if math.IsNaN(r.y[j]) || math.IsNaN(r.y[j+1]) {
			r.y[j], r.y[j+1] = math.NaN(), math.NaN()
		}
	}
}

// turn takes nominal phases off complex readings.
func (r *readings) turn(phases []float64, columns int) {
	for mu, phase := range phases {
		sin, cos := math.Sincos(phase)
		row := r.y[mu*columns : (mu+1)*columns]
		for k := 0; k+1 < columns; k += 2 {
			row[k], row[k+1] = cos*row[k]-sin*row[k+1], sin*row[k]+cos*row[k+1]
		}
	}
}

// measured reports a signal that nothing was read of.
func (r *readings) measured(signals, columns int) error {
	read := make([]bool, signals/columns)
	for j, y := range r.y {
		if !math.IsNaN(y) && y != 0 {
			read[j%signals/columns] = true
		}
	}
	for k, any := range read {
		if !any {
			return fmt.Errorf("Y: signal %d (column %d) has no non-zero reading: nothing can be recovered from it", k, k)
		}
	}
	return nil
}

func shapeError(m, n, rows, signals int) error {
	hint := ""
	if signals == m {
		hint = "; Y looks transposed"
	} else if rows == n {
		hint = "; W looks transposed"
	}
	return fmt.Errorf("Y is %d×%d, but W is %d×%d: Y must have one row a sensor, M×P = %d×P%s", rows, signals, m, n, m, hint)
}
