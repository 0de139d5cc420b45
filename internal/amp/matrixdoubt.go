package amp

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"

	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/operator"
	"github.com/calamp/calamp/prior"
)

// MatrixDoubt looks in the residuals for entries of W that are wrong independently of each other, by a part η of the row's root mean square w_µ. The error of a row is the same for all
// signals, so that it gives residuals r of its sensor the covariance η² w_µ² G over signals, G = XᵀX, beside D, that of noise. What is parallel to the readings y is in ŝ, and signals follow a part of the
// rest, so that the covariance is η² w_µ² H, and D has correlations, too (see [State.followed]). With r̃ = Pr across the posterior mean ẑ, P = I - ẑẑᵀ/ẑᵀẑ,
//
//	q_µ = r̃ᵀG r̃ - r̃ᵀr̃ tr(PDPG)/tr(PD),   E q_µ = η² w_µ² (tr(PGPH) - tr(PH) tr(PDPG)/tr(PD)),
//
// has the mean zero where W is right, whatever the level of D is: errors of ẑ are independent of r, as those of y and of ω are not. Across y, r̃ is minus what is left of ω, and where signals have
// much in common and noise is large, G is along that: healthy masks of zeros and ones had 5 to 11 standard errors. Σq/√Σq² is then by how many of its standard errors W is wrong. Of ŝ = yᵀω/yᵀy, the noise of
// which has only the diagonal of that covariance, it leaves the further variance
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
	plain := false
	switch channel.CalibrationOf(b.Model.Channel).(type) {
	case channel.GainPrior:
		plain = true
	case channel.ComplexPrior:
		plain = !b.evidence()
	}
	return unless("", []reason{
		{b.stream(), oneByOne},
		{!plain, "not possible: it is for one gain a sensor"},
		{b.codes(), "not possible: readings are codes or counts, whose residuals are not those of noise"},
		{b.joint(), jointInstead}, // errors of their signals are correlated as signals are
		{b.P < leastForOffsets*prior.ColumnsOf(b.Model.Prior), "not possible: residuals of so few signals say nothing of W"},
		{b.NoScaleStep && b.Tol < 0, leftAlone},
	})
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

// gram is G (P×P): XᵀX, and of a W with complex entries, of whose errors both parts have half of the variance, ½ (Re XᴴX, Im XᴴX; -Im XᴴX, Re XᴴX).
func (s *State) gram() [][]float64 {
	g := make([][]float64, s.P)
	for k := range g {
		g[k] = make([]float64, s.P)
		for l := range k + 1 {
			g[k][l] = floats.Dot(s.X[k*s.N:(k+1)*s.N], s.X[l*s.N:(l+1)*s.N])
			g[l][k] = g[k][l]
		}
	}
	if operator.IsComplex(s.W) {
		for k := 0; k < s.P; k += 2 {
			for l := 0; l < s.P; l += 2 {
				re, im := 0.5*(g[k][l]+g[k+1][l+1]), 0.5*(g[k][l+1]-g[k+1][l])
				g[k][l], g[k][l+1], g[k+1][l], g[k+1][l+1] = re, im, -im, re
			}
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
			a[j] = min(1, c/s.Sigma[j]) // error bars may be wider than the field's
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

// directions are those along the readings of some sensors.
func (s *State) directions() (list [][][]float64) {
	for mu := 0; mu < s.M; mu += 1 + s.M/followedBy {
		if units := s.alongReadings(mu); units != nil && !s.OutOfOrder(mu) {
			list = append(list, units)
		}
	}
	return list
}

// alongReadings are orthogonal unit vectors along what the gain of a sensor does to its readings: the posterior mean ẑ, and iẑ where it is complex. Readings that are missing are zero in them; nil where nothing was read.
func (s *State) alongReadings(mu int) [][]float64 {
	u := make([]float64, s.P)
	for k := range u {
		if j := mu*s.P + k; !math.IsNaN(s.Y[j]) {
			u[k] = s.Omega[j] + s.V[j]/s.Doubt(j)*s.Residual(mu, k)
		}
	}
	size := floats.Norm(u, 2)
	if size == 0 {
		return nil
	}
	floats.Scale(1/size, u)
	if s.columns < 2 {
		return [][]float64{u}
	}
	turned := make([]float64, s.P)
	for k := 0; k < s.P; k += 2 {
		turned[k], turned[k+1] = -u[k+1], u[k]
	}
	return [][]float64{u, turned}
}

// across is the mean of PhP over projections P across orthogonal unit vectors.
func across(h [][]float64, sensors [][][]float64) [][]float64 {
	out := make([][]float64, len(h))
	for k := range out {
		out[k] = slices.Clone(h[k])
	}
	for _, units := range sensors {
		each, along := 1/float64(len(sensors)), make([][]float64, len(units))
		for a, u := range units {
			along[a] = times(h, u)
		}
		for a, u := range units {
			for k, row := range out {
				for l := range row {
					row[l] -= each * (u[k]*along[a][l] + along[a][k]*u[l])
				}
			}
			for b, v := range units {
				both := each * floats.Dot(u, along[b])
				for k, row := range out {
					floats.AddScaled(row, both*u[k], v)
				}
			}
		}
	}
	return out
}

// times is hu.
func times(h [][]float64, u []float64) []float64 {
	along := make([]float64, len(h))
	for k, row := range h {
		along[k] = floats.Dot(row, u)
	}
	return along
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
	h, noise := e.followed(g), e.followed(unit(e.P))
	total, squares, expected := 0.0, 0.0, 0.0
	for mu := range all {
		if e.OutOfOrder(mu) {
			continue
		}
		all[mu] = e.rowDoubt(mu, g, h, noise)
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
			e.calibration.Carry(e.Of(e.Stats, mu), 1/(1+add*e.informationOf(mu)), 1)
		}
	}
	e.calibration.Posteriors(make([]float64, e.M), e.SVar, e.Stats) // the gains stay those of the signals
}

// informationOf is what readings say of s of a sensor: one over the variance of its likelihood, about where it is.
func (s *State) informationOf(mu int) float64 {
	stats := s.Of(s.Stats, mu)
	return (s.calibration.Information(stats) + s.calibration.Readings(stats)/(s.S[mu]*s.S[mu])) / float64(s.columns)
}

// unit is the identity.
func unit(n int) [][]float64 {
	u := make([][]float64, n)
	for k := range u {
		u[k] = make([]float64, n)
		u[k][k] = 1
	}
	return u
}

// rowDoubt is what the residuals of sensor mu say, with G and H, and what noise makes of them. Readings that are missing count as zero.
func (s *State) rowDoubt(mu int, g, h, noise [][]float64) (r rowDoubt) {
	units, residual, d := s.alongReadings(mu), make([]float64, s.P), make([]float64, s.P)
	n, doubt := 0.0, 0.0
	for k := range s.P {
		if j := mu*s.P + k; !math.IsNaN(s.Y[j]) {
			residual[k], d[k] = s.Residual(mu, k), s.Doubt(j)
			n, doubt = n+1, doubt+d[k]
		}
	}
	if n < leastForOffsets*float64(s.columns) || units == nil || !(doubt > 0) {
		return r
	}
	for _, u := range units {
		floats.AddScaled(residual, -floats.Dot(u, residual), u)
	}
	covariance := make([][]float64, s.P) // D
	for k := range covariance {
		covariance[k] = make([]float64, s.P)
		for l := range s.P {
			covariance[k][l] = noise[k][l] * math.Sqrt(d[k]*d[l]/(noise[k][k]*noise[l][l]))
		}
	}
	traceGH, traceDG, traceH, quadratic := 0.0, 0.0, 0.0, 0.0 // tr(GH), tr(DG), tr(H), r̃ᵀGr̃
	for k, row := range g {
		if d[k] == 0 {
			continue
		}
		for l, v := range row {
			if d[l] != 0 {
				traceGH += v * h[k][l]
				traceDG += v * covariance[k][l]
				quadratic += residual[k] * v * residual[l]
			}
		}
		traceH += h[k][k]
	}
	left := doubt // tr(PD)
	ofG, ofH, ofD := make([][]float64, len(units)), make([][]float64, len(units)), make([][]float64, len(units))
	for a, u := range units {
		ofG[a], ofH[a], ofD[a] = times(g, u), times(h, u), times(covariance, u)
		left, traceH = left-floats.Dot(u, ofD[a]), traceH-floats.Dot(u, ofH[a])
	}
	for a, u := range units {
		for k, v := range d {
			if v != 0 {
				traceGH, traceDG = traceGH-2*ofG[a][k]*ofH[a][k], traceDG-2*ofD[a][k]*ofG[a][k]
			}
		}
		for b, v := range units {
			traceGH, traceDG = traceGH+floats.Dot(u, ofG[b])*floats.Dot(v, ofH[a]), traceDG+floats.Dot(u, ofD[b])*floats.Dot(v, ofG[a])
		}
	}
	share := traceDG / left // tr(PDPG)/tr(PD)
	r.q = quadratic - floats.Dot(residual, residual)*share
	r.expected = traceGH - traceH*share
	if s.columns < 2 {
		r.variance = s.widerBy(mu, units[0], ofH[0], h, n/doubt)
	}
	return r
}

// widerBy is the further variance of a real ŝ, per η²w²: u is along the readings, and precision that of one of them.
func (s *sensorState) widerBy(mu int, u, ofH []float64, h [][]float64, precision float64) float64 {
	power, apart := 0.0, floats.Dot(u, ofH)
	for k, v := range u {
		if y := s.Y[mu*s.P+k]; !math.IsNaN(y) {
			power += y * y
		}
		apart -= v * v * h[k][k]
	}
	sensitivity := min(1/power, s.SVar[mu]*precision) // of ŝ to yᵀω
	return sensitivity * sensitivity * power * apart
}

// MatrixDoubtOf is what a run found of W; nil where it did not look.
func (s *Solver) MatrixDoubtOf() *MatrixDoubt {
	d, _ := PartOf[*MatrixDoubt](s)
	return d
}
