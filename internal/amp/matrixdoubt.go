package amp

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"

	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/operator"
)

// MatrixDoubt looks in the residuals for entries of W that are wrong independently of each other, by a part η of the row's root mean square w_µ. The error of a row is the same for all
// signals, so that it gives residuals of its sensor the covariance η² w_µ² G over signals, G = XᵀX, beside D on the diagonal. What is parallel to the readings y of the sensor is in ŝ, and signals follow a part of the
// rest, so that the covariance is η² w_µ² H (see [State.followed]). With r̃ = r - y(yᵀr)/yᵀy, P = I - yyᵀ/yᵀy
//
//	q_µ = r̃ᵀG r̃ - r̃ᵀr̃ tr(PDPG)/tr(PD),   E q_µ = η² w_µ² (tr(PGPH) - tr(PH) tr(PDPG)/tr(PD)),
//
// has the mean zero where W is right, whatever the level of D is. Σq/√Σq² is then by how many of its standard errors W is wrong. Of ŝ = yᵀω/yᵀy, the noise of which has only the diagonal of that covariance, it leaves the further variance
//
//	η² w_µ² (yᵀHy - Σ_k y_k² H_kk)/(yᵀy)².
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

const (
	// The covariance that signals follow is a mean over followedBy sensors at most, and found within followedTo in followedSteps.
	followedBy    = 64
	followedTo    = 1e-3
	followedSteps = 30
)

// followed is H, where g is G: errors of signals come from the residuals of all sensors, and are correlated as these are. A field of Σ has, of residuals with the covariance R = w²H, errors of the
// covariance R/(M w²), of which an entry takes the part a = C/Σ. So
//
//	H = G + A ∘ ⟨PHP⟩,   A_kl = Σ_i a_ik a_il/M,   A_kk = Σ_i a_ik/M,
//
// since what is parallel to y is in ŝ, and not in the signals. Of 400 × 500 normal entries wrong by 0.1 to 3 %, ρ = 0.2, P = 10 and 20, η came out 14 to 18 % too large with G in its place, and 2 to 4 % with H.
func (s *State) followed(g [][]float64) (h [][]float64) {
	part, sensors := s.parts(), s.directions()
	h = g
	for range followedSteps {
		next, moved := make([][]float64, s.P), 0.0
		for k, row := range across(h, sensors) {
			next[k] = make([]float64, s.P)
			for l, v := range row {
				next[k][l] = g[k][l] + part[k][l]*v
				moved = max(moved, math.Abs(next[k][l]-h[k][l])/math.Sqrt(g[k][k]*g[l][l]))
			}
		}
		if h = next; !(moved > followedTo) {
			break
		}
	}
	return h
}

// parts is A.
func (s *State) parts() [][]float64 {
	a, part := make([]float64, len(s.X)), make([][]float64, s.P)
	for j, c := range s.C {
		if s.Sigma[j] > 0 {
			a[j] = c / s.Sigma[j]
		}
	}
	for k := range part {
		own := a[k*s.N : (k+1)*s.N]
		part[k] = make([]float64, s.P)
		for l := range k {
			part[k][l] = floats.Dot(own, a[l*s.N:(l+1)*s.N]) / float64(s.M)
			part[l][k] = part[k][l]
		}
		part[k][k] = floats.Sum(own) / float64(s.M)
	}
	return part
}

// directions are unit vectors along the readings of some sensors, those that are missing being zero.
func (s *State) directions() (list [][]float64) {
	for mu := 0; mu < s.M; mu += 1 + s.M/followedBy {
		u := slices.Clone(s.Y[mu*s.P : (mu+1)*s.P])
		for k, v := range u {
			if math.IsNaN(v) {
				u[k] = 0
			}
		}
		if size := floats.Norm(u, 2); size > 0 && !s.OutOfOrder(mu) {
			floats.Scale(1/size, u)
			list = append(list, u)
		}
	}
	return list
}

// across is the mean of PhP over projections P across unit vectors.
func across(h, units [][]float64) [][]float64 {
	out := make([][]float64, len(h))
	for k := range out {
		out[k] = slices.Clone(h[k])
	}
	for _, u := range units {
		along, each := make([]float64, len(h)), 1/float64(len(units))
		for k, row := range h {
			along[k] = floats.Dot(row, u)
		}
		both := floats.Dot(u, along)
		for k, row := range out {
			for l := range row {
				row[l] += each * (u[k]*both*u[l] - u[k]*along[l] - along[k]*u[l])
			}
		}
	}
	return out
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
	h := e.followed(g)
	total, squares, expected := 0.0, 0.0, 0.0
	for mu := range all {
		if e.OutOfOrder(mu) {
			continue
		}
		all[mu] = e.rowDoubt(mu, g, h)
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

// rowDoubt is what the residuals of sensor mu say, with G and H. Readings that are missing count as zero.
func (s *State) rowDoubt(mu int, g, h [][]float64) (r rowDoubt) {
	y, residual := make([]float64, s.P), make([]float64, s.P)
	d, n, trace, doubt := make([]float64, s.P), 0.0, 0.0, 0.0
	for k := range s.P {
		j := mu*s.P + k
		if v := s.Y[j]; !math.IsNaN(v) {
			y[k], residual[k], d[k] = v, s.Residual(mu, k), s.Doubt(j)
			n, trace, doubt = n+1, trace+h[k][k], doubt+d[k]
		}
	}
	power := floats.Dot(y, y)
	if n < leastForOffsets || power == 0 || !(doubt > 0) {
		return r
	}
	floats.AddScaled(residual, -floats.Dot(y, residual)/power, y)
	along, followed, both, square, diagonal, quadratic := 0.0, 0.0, 0.0, 0.0, 0.0, 0.0 // yᵀGy, yᵀHy, yᵀGHy, tr(GH), Σ y²H_kk, r̃ᵀGr̃
	traceDG, yDGy, yDy := 0.0, 0.0, 0.0
	for k, row := range g {
		if math.IsNaN(s.Y[mu*s.P+k]) {
			continue
		}
		v, u, of := 0.0, 0.0, 0.0
		for l, x := range row {
			if !math.IsNaN(s.Y[mu*s.P+l]) {
				v, u, of, square = v+x*y[l], u+h[k][l]*y[l], of+x*residual[l], square+x*h[k][l]
			}
		}
		along, followed, both, quadratic = along+v*y[k], followed+u*y[k], both+u*v, quadratic+of*residual[k]
		diagonal += y[k] * y[k] * h[k][k]
		traceDG, yDGy, yDy = traceDG+d[k]*row[k], yDGy+y[k]*d[k]*v, yDy+y[k]*d[k]*y[k]
	}
	share := (traceDG - 2*yDGy/power + along*yDy/(power*power)) / (doubt - yDy/power) // tr(PDPG)/tr(PD)
	r.q = quadratic - floats.Dot(residual, residual)*share
	r.expected = square - 2*both/power + along*followed/(power*power) - (trace-followed/power)*share
	sensitivity := min(1/power, s.SVar[mu]*n/doubt) // of ŝ to yᵀω
	r.variance = sensitivity * sensitivity * (followed - diagonal)
	return r
}

// MatrixDoubtOf is what a run found of W; nil where it did not look.
func (s *Solver) MatrixDoubtOf() *MatrixDoubt {
	d, _ := PartOf[*MatrixDoubt](s)
	return d
}
