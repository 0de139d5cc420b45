package theory

import (
	"github.com/spf13/pflag"

	"github.com/calamp/calamp/internal/command/option"
)

// Where every sensor has L rows of W, theory changes in the sensor's part alone, and there as if it had LP signals: its s is determined
// by all of its readings, and rows are independent as signals are. α counts rows.

// registerRows adds --rows-per-sensor.
func (t *theory) registerRows(flags *pflag.FlagSet) {
	t.rows = 1
	flags.Var(option.Count(&t.rows, 1), "rows-per-sensor", "rows of W that are read with one gain (--sensors of calamp solve); α counts rows")
}

// readings is how many readings a sensor has, of all its rows.
func (t *theory) readings() int { return t.p * max(1, t.rows) }

// rowsJSON is --rows-per-sensor in JSON; 0 where every row is a sensor.
func (t *theory) rowsJSON() int {
	if t.rows > 1 {
		return t.rows
	}
	return 0
}
