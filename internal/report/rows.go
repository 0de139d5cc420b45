package report

import "fmt"

// rowsName is what the rows of W are called: sensors, or what several of them share one.
func (r *Report) rowsName() string {
	if r.Result.Sensors == nil {
		return "Sensors M"
	}
	return fmt.Sprintf("Rows M, of %s sensors", count(len(r.Result.S)))
}
