package diagnosis

import (
	"fmt"
	"math"
	"math/cmplx"
	"slices"
)

// overlap is the factor by which variances of gains have grown in the joint density from which on gains and signals count as explaining the same
// readings. Behind random W it is 1.00 to 1.01, in tomography 1.5 to 2.8 (docs/log/validation.md).
const overlap = 1.25

// shared reports whether a sensor has several rows of W.
func (r *Run) shared() bool { return r.state.Each > r.state.P }

// usableRows is the number of rows that have a reading of a sensor in order.
func (r *Run) usableRows() (count int) {
	s, many := r.state, r.manyBroken()
	for row := range s.Rows() {
		first := row * s.P
		if !many && r.isBroken(s.SensorOf(first)) {
			continue
		}
		for _, y := range s.Y[first : first+s.P] {
			if !math.IsNaN(y) {
				count++
				break
			}
		}
	}
	return count
}

// readingsOfSensor says how many signals, and rows, tell the gain of a sensor.
func (r *Run) readingsOfSensor() string {
	if r.shared() {
		return fmt.Sprintf("%d readings a sensor (signals times rows)", r.state.Each)
	}
	return fmt.Sprintf("%d signals", r.signals())
}

// warnOverlap says that gains and signals explain the same readings. Joint error bars know it of entries that were found, and not of others.
func (r *Run) warnOverlap() *Warning {
	factor := r.Solver.SharedWidening()
	if !(factor > overlap) {
		return nil
	}
	return &Warning{Code: GainsInSignals, Message: fmt.Sprintf("errors of gains and of signals are correlated, as with rings in tomography: variances of s were multiplied by %.2g, on average; "+
		"these error bars leave out entries too small to be found; more readings of each sensor, other scenes or known gains (--reference) help", factor)}
}

// RowsApart compares what each row of a sensor asks of its gain with what all of them do: s_r = B_r/A_r of a row, with A = Σ|y|²/D, B = Σ ω y*/D and D = V + Δ, has the variance 1/A_r if D is as stated.
// Ratio is the mean square of s_r about their mean, in units of that and of the mean square of what is left in rows, so that it is 1 whatever the noise was learned as; Square is the variance of s_r
// beyond that of noise, and between that of sensors. A row of one reading leaves nothing, and then nothing is said. Where sensors have offsets, s∘o is compared in the same way, as the mean of sY - ω, and
// what is further apart counts.
func (r *Run) RowsApart() (apart Apart, between float64) { return r.apart() }

func (r *Run) findRowsApart() (apart Apart, between float64) {
	if !r.shared() || !r.blind() || !r.additive() || r.Solver.Iterations == 0 {
		return apart, 0
	}
	apart, between = r.rowsApart(r.gainOfRow)
	if r.state.Offsets() {
		if ofOffsets, others := r.rowsApart(r.offsetOfRow); ofOffsets.Ratio > apart.Ratio {
			return ofOffsets, others
		}
	}
	return apart, between
}

// rowsApart is that of what is asked of each row.
func (r *Run) rowsApart(of func(first int) RowGain) (apart Apart, between float64) {
	s := r.state
	rows := make([]RowGain, s.Rows())
	for row := range rows {
		if first := row * s.P; !r.isBroken(s.SensorOf(first)) {
			rows[row] = of(first)
		}
	}
	return RowsApart(rows, s.Rows()/s.M, s.Columns())
}

// RowsApart compares rows, of which each sensor has so many, one after the other, with columns numbers a reading (see [Run.RowsApart]).
func RowsApart(all []RowGain, each, columns int) (apart Apart, between float64) {
	var weighted, square, chance, free, left, freeLeft, sensors, squares float64
	var sum complex128
	for rows := range slices.Chunk(all, each) {
		var a float64
		var b complex128
		for _, row := range rows {
			if a, b = a+row.a, b+row.b; row.a > 0 {
				left, freeLeft = left+row.left(), freeLeft+row.readings-1
			}
		}
		if a == 0 {
			continue
		}
		mean := b / complex(a, 0)
		sensors, sum, squares = sensors+1, sum+mean, squares+real(mean*cmplx.Conj(mean))
		for _, row := range rows {
			if row.a == 0 {
				continue
			}
			off := row.b/complex(row.a, 0) - mean
			own := real(off * cmplx.Conj(off))
			weighted, square, chance, free = weighted+row.a*own, square+own, chance+1/row.a-1/a, free+1-row.a/a
		}
	}
	if !(free > 0) || !(freeLeft > 0) || !(left > 0) {
		return apart, 0
	}
	size := left / freeLeft
	apart = Apart{Ratio: weighted / free / size, Square: max(0, square-size*chance) / free, Sensors: float64(columns) / (1/free + 1/freeLeft)}
	return apart, squares/sensors - real(sum*cmplx.Conj(sum))/(sensors*sensors)
}

// RowGain is what a row says of its gain: its A and B, Σ|ω|²/D, and the number of readings.
type RowGain struct {
	a, power, readings float64
	b                  complex128
}

// Add takes in a reading, of which a multiple of y should be ω, with errors of this variance.
func (g *RowGain) Add(y, omega complex128, doubt float64) {
	g.a += real(y*cmplx.Conj(y)) / doubt
	g.b += omega * cmplx.Conj(y) / complex(doubt, 0)
	g.power += real(omega*cmplx.Conj(omega)) / doubt
	g.readings++
}

// left is Σ|s_r y - ω|²/D.
func (g *RowGain) left() float64 { return max(0, g.power-real(g.b*cmplx.Conj(g.b))/g.a) }

// gainOfRow is that of the row whose first reading is at first.
func (r *Run) gainOfRow(first int) (row RowGain) {
	s := r.state
	for j := first; j < first+s.P; j += s.Columns() {
		switch {
		case math.IsNaN(s.Y[j]):
		case r.complex():
			row.Add(complex(s.Y[j], s.Y[j+1]), complex(s.Omega[j], s.Omega[j+1]), s.Doubt(j)+s.Doubt(j+1))
		default:
			row.Add(complex(s.Reading(j), 0), complex(s.Omega[j], 0), s.Doubt(j))
		}
	}
	return row
}

// offsetOfRow is the same of s∘o.
func (r *Run) offsetOfRow(first int) (row RowGain) {
	s := r.state
	for j := first; j < first+s.P; j++ {
		if !math.IsNaN(s.Y[j]) {
			row.Add(1, complex(s.S[s.SensorOf(j)]*s.Y[j]-s.Omega[j], 0), s.Doubt(j))
		}
	}
	return row
}

// RowsScatter reports whether residuals of single readings of rows grow with what is expected of them, as where their gains scatter: with D = c(V+Δ) as large as residuals are on average, the slope of the
// evidence by a further variance in proportion to ω² is ½ Σ (w - w̄)(r²/D - 1), w = ω²/D. That is where a run with gains of rows is worth its time.
func (r *Run) RowsScatter() bool {
	s := r.state
	if !r.shared() || !r.blind() || !r.additive() || r.complex() || s.P > 1 || s.Offsets() || r.Solver.Iterations == 0 {
		return false
	}
	var weights, squares []float64
	for j, y := range s.Y {
		if mu := s.SensorOf(j); !math.IsNaN(y) && !r.isBroken(mu) {
			e, d := s.S[mu]*y-s.Omega[j], s.Doubt(j)
			weights, squares = append(weights, s.Omega[j]*s.Omega[j]/d), append(squares, e*e/d)
		}
	}
	count, weight, square := float64(len(weights)), 0.0, 0.0
	for i, w := range weights {
		weight, square = weight+w, square+squares[i]
	}
	if !(square > 0) {
		return false
	}
	slope := 0.0
	for i, w := range weights {
		slope += (w - weight/count) * (squares[i]*count/square - 1)
	}
	return slope > 0
}

// warnRows tells of rows that ask for other gains than their sensor's.
func (r *Run) warnRows() *Warning {
	apart, _ := r.RowsApart()
	return WarnRows(apart)
}

// WarnRows is the warning of rows of sensors that are apart; nil where they are not.
func WarnRows(apart Apart) *Warning {
	if !apart.Disagree() {
		return nil
	}
	return &Warning{Code: RowsDisagree, Message: fmt.Sprintf("rows of one sensor ask for gains, or offsets, that differ by %.2g, %.2g times what noise explains: they share none, or some are with the wrong sensor; variances of s were multiplied by %.2g",
		math.Sqrt(apart.Square), math.Sqrt(apart.Ratio), apart.Ratio)}
}

// unlike is the variance of what rows of one sensor ask for, in that of sensors, from which on there is no gain that they share. With a tenth of the rows at another sensor it is .1 to .2, and wider error bars
// hold 87 to 97 % of s; with half of them it is .6 to 1.3, and they hold 55 to 80 %.
const unlike = 0.5

// rowsUnlike says that rows of one sensor ask for gains that differ nearly as much as those of different sensors do.
func (r *Run) rowsUnlike() string {
	apart, between := r.RowsApart()
	if !apart.Disagree() || apart.Square < unlike*between {
		return ""
	}
	return fmt.Sprintf("the gains, or offsets, that rows of one sensor ask for have a variance of %.3g, and those of different sensors one of %.3g: rows are with the wrong sensors, or share no gain", apart.Square, between)
}
