package report

import (
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/mat"

	"github.com/calamp/calamp/internal/figure"
)

// Complex numbers are drawn as amplitudes, and the gains as phases, too.

// phases is what is known of the phases of gains, in radians.
type phases struct {
	mean, sd []float64 // M, at a fixed common phase
	truth    []float64 // M, brought to the result's common phase; nil where not known
	common   float64   // the result's common phase less the true one
	known    float64   // its standard deviation as stated
	free     bool      // it is a convention
}

// onePart is the probability of one standard deviation to either side.
const onePart = 0.683

// takeAmplitudes makes the report one of amplitudes, and keeps the phases apart.
func (r *Report) takeAmplitudes() {
	res := *r.Result
	scored := res
	scored.X = r.x()
	m := scored.Score(r.Truth)
	res.X, r.Truth.X = moduli(res.X), moduli(r.Truth.X)
	if r.Signals != nil {
		r.Signals = moduli(r.Signals)
	}
	if res.XVar != nil {
		total := moduli(res.XVar) // both parts have the same
		total.Apply(func(_, _ int, v float64) float64 { return math.Sqrt2 * v }, total)
		res.XVar = total
	}
	res.Converged, res.Change = everySecond(res.Converged), everySecond(res.Change)
	p := &phases{mean: res.Phase, known: res.PhaseSD, free: res.PhaseFree}
	if _, _, lo, hi := res.SIntervals(onePart); lo != nil {
		res.SVar = slices.Clone(res.SVar)
		for mu := range lo {
			res.SVar[mu] = 0.25 * (hi[mu] - lo[mu]) * (hi[mu] - lo[mu])
		}
	}
	_, _, lo, hi := res.PhaseIntervals(onePart)
	for mu := range lo {
		p.sd = append(p.sd, 0.5*(hi[mu]-lo[mu]))
	}
	if len(r.Truth.Phase) == len(p.mean) {
		p.common = -m.PhaseShift
		for _, phi := range r.Truth.Phase {
			p.truth = append(p.truth, math.Remainder(phi+p.common, 2*math.Pi))
		}
	}
	r.Result, r.phases = &res, p
	for k, b := range r.Baselines {
		r.Baselines[k].X = moduli(b.X)
	}
}

// moduli are those of pairs of columns; nil for nil.
func moduli(m *mat.Dense) *mat.Dense {
	rows, columns := dims(m)
	if rows == 0 || columns%2 != 0 {
		return nil
	}
	out := mat.NewDense(rows, columns/2, nil)
	out.Apply(func(i, k int, _ float64) float64 { return math.Hypot(m.At(i, 2*k), m.At(i, 2*k+1)) }, out)
	return out
}

func everySecond[T any](v []T) []T {
	var out []T
	for k := 0; k < len(v); k += 2 {
		out = append(out, v[k])
	}
	return out
}

// figures draws the phases: by sensor, and against the truth where that is known.
func (p *phases) figures(r *Report) []plot {
	if p == nil || !slices.ContainsFunc(p.sd, func(sd float64) bool { return sd > 0 }) {
		return nil
	}
	sensors := shown(len(p.mean), maxDots)
	place := func(i int) float64 { return float64(i) }
	axis := figure.Axis{Label: "sensor", Whole: true}
	heading, caption := "Phases by sensor", "Posterior means of the phases of s."
	if p.truth != nil {
		place, axis = func(i int) float64 { return p.truth[i] }, figure.Axis{Label: "true phase, rad"}
		heading, caption = "Phases against the truth", fmt.Sprintf("With the common phase of the result, which is off by %s rad", digits(p.common, 3))
		if !p.free {
			caption += fmt.Sprintf(", where the run expects %s", digits(p.known, 2))
		}
		caption += "."
	}
	if p.free {
		caption += " The phase common to all signals and gains is a convention."
	}
	all := draw(heading, caption+r.sampled(sensors), figure.Figure{
		X: axis, Y: figure.Axis{Label: "phase of ŝ, rad"},
		Series: []figure.Series{r.dots(sensors, place, func(i int) float64 { return p.mean[i] }, func(i int) float64 { return p.sd[i] })},
	})
	if p.truth == nil {
		return []plot{all, positive("How well each phase is known", "Half the 68\u202f% interval, at a fixed common phase.", "sd of the phase, mrad", scaledBy(1000, p.sd), 0)}
	}
	away := make([]float64, len(p.mean))
	var standard []float64
	for i := range away {
		away[i] = math.Remainder(p.mean[i]-p.truth[i], 2*math.Pi)
		if p.sd[i] > 0 {
			standard = append(standard, away[i]/p.sd[i])
		}
	}
	few := shown(len(p.mean), maxBars/2)
	low, high := span(p.truth)
	errors := figure.Figure{
		X: axis, Y: figure.Axis{Label: "error of the phase, mrad"},
		Series: []figure.Series{
			{X: []float64{low, high}, Y: []float64{0, 0}, Color: figure.Neutral, Size: 1},
			r.dots(few, place, func(i int) float64 { return 1000 * away[i] }, func(i int) float64 { return 1000 * p.sd[i] }),
		},
	}
	return []plot{
		all,
		draw("Errors of the phases", "At the best common phase; error bars are at a fixed one."+r.sampled(few), errors),
		standardised("Are the error bars of phases right?", "At the best common phase.", "error of the phase / sd", "sensors", standard),
	}
}
