package calamp

import (
	"fmt"
	"math"

	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/prior"
)

// readings is Y as a run uses it, and what carries no information in it.
type readings struct {
	y      []float64 // M×P, NaN where missing
	silent []int     // sensors with no usable reading
	zero   []int     // of these, the ones whose readings are all exactly zero
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
	if columns > 1 {
		r.pair()
	}
	r.turn(p.Phases, signals)
	blind, limit := channel.CalibrationOf(p.Channel) != nil, channel.LimitOf(p.Channel)
	for mu := range m {
		row := r.y[mu*signals : (mu+1)*signals]
		present, nonzero := 0, 0
		for k, y := range row {
			if math.IsInf(y, 0) {
				return nil, fmt.Errorf("Y: sensor %d, signal %d is %g, expected a finite reading, or NaN for a missing one", mu, k, y)
			}
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

// pair makes both parts of a complex reading missing where one is.
func (r *readings) pair() {
	for j := 0; j+1 < len(r.y); j += 2 {
		if sum := r.y[j] + r.y[j+1]; math.IsNaN(sum) && !math.IsInf(r.y[j], 0) && !math.IsInf(r.y[j+1], 0) {
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
