package amp

import (
	"math"

	"gonum.org/v1/gonum/floats"

	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/operator"
)

// MatrixDoubt looks in the residuals for entries of W that are wrong independently of each other, by a part η of the row's root mean square w_µ. The error of a row is the same for all
// signals, so that residuals of its sensor have the covariance η² w_µ² G over signals, G = XᵀX, beside D on the diagonal. What is parallel to the readings y of the sensor is in ŝ. With r̃ = r - y(yᵀr)/yᵀy, P = I - yyᵀ/yᵀy
//
//	q_µ = r̃ᵀG r̃ - r̃ᵀr̃ tr(PDPG)/tr(PD),   E q_µ = η² w_µ² (tr(PGPG) - tr(PG) tr(PDPG)/tr(PD)),
//
// has the mean zero where W is right, whatever the level of D is. Σq/√Σq² is then by how many of its standard errors W is wrong. Of ŝ = yᵀω/yᵀy, the noise of which has only the diagonal of that covariance, it leaves the further variance
//
//	η² w_µ² (yᵀGy - Σ_k y_k² G_kk)/(yᵀy)².
//
// Not in the paper.
type MatrixDoubt struct {
	Idle
	rows  []float64 // M, w_µ²
	Score float64   // in standard errors
	Size  float64   // η
	known bool      // η is a part of the model (see [MatrixErrors])
}

// leastMatrixScore is the score from which on error bars of s are wider: of a normal number, one in 700. Wider error bars in that one are no harm.
const leastMatrixScore = 3

// Doubtful reports whether W was found to be wrong, and is not known to be.
func (d *MatrixDoubt) Doubtful() bool { return !d.known && d.Score > leastMatrixScore }

func (b *planner) matrixDoubt() (on bool, why string, err error) {
	_, plain := channel.CalibrationOf(b.Model.Channel).(channel.GainPrior)
	switch {
	case b.stream() || b.Batch:
		return false, "not possible: readings come one by one", nil
	case !plain:
		return false, "not possible: it is for one real gain a sensor", nil
	case b.joint():
		return false, jointInstead, nil // errors of their signals are correlated as signals are
	case b.P < leastForOffsets:
		return false, "not possible: residuals of so few signals say nothing of W", nil
	case b.NoScaleStep && b.Tol < 0:
		return false, leftAlone, nil
	}
	return true, "", nil
}

func (b *planner) makeMatrixDoubt(s *Solver) (Part, error) {
	d := &MatrixDoubt{}
	var err error
	if d.rows, err = operator.RowSquares(b.W, s.State.Threads); err != nil {
		return nil, err
	}
	floats.Scale(1/float64(b.n), d.rows)
	return d, nil
}

// gram is XᵀX (P×P).
func (s *State) gram() [][]float64 {
	g := make([][]float64, s.P)
	for k := range g {
		g[k] = make([]float64, s.P)
		for l := range k + 1 {
			g[k][l] = floats.Dot(s.X[k*s.N:(k+1)*s.N], s.X[l*s.N:(l+1)*s.N])
			g[l][k] = g[k][l]
		}
	}
	return g
}

// rowDoubt is what the residuals of a sensor say.
type rowDoubt struct{ q, expected, variance float64 }

// Report implements [Part].
func (d *MatrixDoubt) Report(s *Solver) {
	e := s.State
	if e.Each != e.P {
		return
	}
	g, all := e.gram(), make([]rowDoubt, e.M)
	total, squares, expected := 0.0, 0.0, 0.0
	for mu := range all {
		if e.OutOfOrder(mu) {
			continue
		}
		all[mu] = e.rowDoubt(mu, g)
		total, squares, expected = total+all[mu].q, squares+all[mu].q*all[mu].q, expected+d.rows[mu]*all[mu].expected
	}
	if !(squares > 0) || !(expected > 0) {
		return
	}
	d.Score, d.Size = total/math.Sqrt(squares), math.Sqrt(max(0, total/expected))
	if f, modelled := PartOf[*MatrixErrors](s); modelled {
		d.Size, d.known = f.Size, true
	}
	if !d.known && !d.Doubtful() {
		return
	}
	for mu, r := range all {
		if add := d.Size * d.Size * d.rows[mu] * r.variance; add > 0 {
			e.SVar[mu] += add
			e.calibration.SetNormal(e.Of(e.Stats, mu), e.S[mu], e.SVar[mu])
		}
	}
}

// rowDoubt is what the residuals of sensor mu say, with G. Readings that are missing count as zero.
func (s *State) rowDoubt(mu int, g [][]float64) (r rowDoubt) {
	y, residual := make([]float64, s.P), make([]float64, s.P)
	d, n, trace, doubt := make([]float64, s.P), 0.0, 0.0, 0.0
	for k := range s.P {
		j := mu*s.P + k
		if v := s.Y[j]; !math.IsNaN(v) {
			y[k], residual[k], d[k] = v, s.Residual(mu, k), s.Doubt(j)
			n, trace, doubt = n+1, trace+g[k][k], doubt+d[k]
		}
	}
	power := floats.Dot(y, y)
	if n < leastForOffsets || power == 0 || !(doubt > 0) {
		return r
	}
	floats.AddScaled(residual, -floats.Dot(y, residual)/power, y)
	along, gy, square, diagonal, quadratic := 0.0, 0.0, 0.0, 0.0, 0.0 // yᵀGy, |Gy|², |G|², Σ y²G_kk, r̃ᵀGr̃
	traceDG, yDGy, yDy := 0.0, 0.0, 0.0
	for k, row := range g {
		if math.IsNaN(s.Y[mu*s.P+k]) {
			continue
		}
		v, of := 0.0, 0.0
		for l, x := range row {
			if !math.IsNaN(s.Y[mu*s.P+l]) {
				v, of, square = v+x*y[l], of+x*residual[l], square+x*x
			}
		}
		along, gy, quadratic = along+v*y[k], gy+v*v, quadratic+of*residual[k]
		diagonal += y[k] * y[k] * row[k]
		traceDG, yDGy, yDy = traceDG+d[k]*row[k], yDGy+y[k]*d[k]*v, yDy+y[k]*d[k]*y[k]
	}
	share := (traceDG - 2*yDGy/power + along*yDy/(power*power)) / (doubt - yDy/power) // tr(PDPG)/tr(PD)
	r.q = quadratic - floats.Dot(residual, residual)*share
	r.expected = square - 2*gy/power + along*along/(power*power) - (trace-along/power)*share
	sensitivity := min(1/power, s.SVar[mu]*n/doubt) // of ŝ to yᵀω
	r.variance = sensitivity * sensitivity * (along - diagonal)
	return r
}

// MatrixDoubtOf is what a run found of W; nil where it did not look.
func (s *Solver) MatrixDoubtOf() *MatrixDoubt {
	d, _ := PartOf[*MatrixDoubt](s)
	return d
}
