package operator

import (
	"fmt"
	"math"

	"github.com/calamp/calamp/internal/kernel"
)

// Means are the averages of the entries of a matrix by row and by column. AMP
// is derived for entries of mean zero.
type Means struct {
	Rows, Columns []float64 // M and N
}

// summary holds the averages over the entries of a matrix.
type summary struct {
	meanSquare float64
	means      Means
}

// Means returns the row and column means, which the caller must not change.
func (s *summary) Means() Means { return s.means }

// MeanSquare implements [Operator].
func (s *summary) MeanSquare() float64 { return s.meanSquare }

// measurement reads a matrix row by row, and refuses what is not finite.
type measurement struct {
	above int // the number of its first row in messages
	means Means
	total float64
}

func newMeasurement(m, n int) *measurement {
	return &measurement{means: Means{Rows: make([]float64, m), Columns: make([]float64, n)}}
}

func addRow[T kernel.Entry](m *measurement, mu int, row []T) error {
	columns := m.means.Columns[:len(row)]
	// Four sums side by side: with a single one every addition would have to wait for
	// the one before.
	var sum, squares [4]float64
	for i, v := range row {
		x := float64(v)
		sum[i%4] += x
		squares[i%4] += x * x
		columns[i] += x
	}
	total := squares[0] + squares[1] + squares[2] + squares[3]
	if math.IsNaN(total) || math.IsInf(total, 0) {
		for i, v := range row {
			if x := float64(v); math.IsNaN(x) || math.IsInf(x, 0) {
				return fmt.Errorf("row %d, column %d is %g, expected a finite number", m.above+mu, i, x)
			}
		}
	}
	m.means.Rows[mu] = (sum[0] + sum[1] + sum[2] + sum[3]) / float64(len(row))
	m.total += total
	return nil
}

// summary returns the averages, after the last row.
func (m *measurement) summary() summary {
	rows, columns := len(m.means.Rows), len(m.means.Columns)
	for i := range m.means.Columns {
		m.means.Columns[i] /= float64(rows)
	}
	return summary{meanSquare: m.total / (float64(rows) * float64(columns)), means: m.means}
}

// check refuses a matrix without entries, and one of entries too large.
func (s *summary) check() error {
	if s.meanSquare == 0 || math.IsInf(s.meanSquare, 1) {
		return fmt.Errorf("the mean square of the entries is %g, expected a positive finite number", s.meanSquare)
	}
	return nil
}
