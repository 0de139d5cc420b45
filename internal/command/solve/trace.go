package solve

import (
	"encoding/csv"
	"io"
	"strconv"

	"github.com/calamp/calamp"
	"github.com/calamp/calamp/internal/command/console"
)

// columns are the numbers of an iteration.
var columns = []string{"change", "mean_x_var", "mean_s_var", "mean_v", "off_v", "scale", "damping", "log_evidence"}

func valuesOf(it calamp.Iteration) []float64 {
	return []float64{it.Change, it.MeanXVar, it.MeanSVar, it.MeanV, it.OffV, it.Scale, it.Damping, it.LogEvidence}
}

// writeTrace writes the iterations as CSV; a value that is not finite is left
// empty.
func writeTrace(w io.Writer, trace []calamp.Iteration) error {
	c := csv.NewWriter(w)
	c.Write(append([]string{"iteration"}, columns...))
	for _, it := range trace {
		row := []string{strconv.Itoa(it.Index)}
		for _, v := range valuesOf(it) {
			cell := ""
			if console.Known(v) != nil {
				cell = strconv.FormatFloat(v, 'g', -1, 64)
			}
			row = append(row, cell)
		}
		c.Write(row)
	}
	c.Flush() // keeps the first error of the writes before
	return c.Error()
}
