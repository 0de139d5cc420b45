package report

import "fmt"

// rowsName is what the rows of W are called: sensors, or what several of them share one.
func (r *Report) rowsName() string {
	if r.Result.Sensors == nil {
		return "Sensors M"
	}
	return fmt.Sprintf("Rows M, of %s sensors", count(len(r.Result.S)))
}

// counted says what the numbers of sensors and signals are those of.
func (r *Report) counted() string {
	of := "the rows of W"
	if r.Result.Sensors != nil {
		of = "those that rows of W are read with"
	}
	return "Sensors are " + of + " and signals the columns of Y, counted from 0."
}
