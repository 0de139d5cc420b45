package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/calamp/calamp/channel"

	"gonum.org/v1/gonum/floats"

	"github.com/calamp/calamp"
	"github.com/calamp/calamp/internal/figure"
)

const (
	maxDots = 1500 // sensors drawn one by one; more would only make the file large
	maxBars = 400  // sensors drawn with error bars
	worst   = 8    // rows of a table of the worst sensors

	mostBroken = 50 // rows of the table of broken ones
)

// sensors shows the calibration: by sensor, and against the truth where known.
func (r *Report) sensors() plots {
	if len(r.Result.S) == 0 {
		return plots{}
	}
	var p plots
	known := len(r.Truth.S) == len(r.Result.S)
	if known {
		p.Figures = append(p.Figures, r.againstTruth())
	} else {
		p.Figures = append(p.Figures, r.bySensor())
	}
	if r.gainsKnown() {
		return p
	}
	if known && (r.uncertain() || r.phases == nil) {
		p.Figures = append(p.Figures, r.relativeErrors(), r.standardisedErrors())
	}
	if r.uncertain() || r.phases == nil {
		p.Figures = append(p.Figures, positive("How well each s is known",
			"Posterior standard deviation over mean, at a fixed common scale.", "sd(s) / ŝ, in percent", scaledBy(100, r.relativeSD()), 0))
	}
	p.Figures = append(p.Figures, r.phases.figures(r)...)
	return p
}

func scaledBy(c float64, values []float64) []float64 {
	out := slices.Clone(values)
	floats.Scale(c, out)
	return out
}

// shown picks at most n of all sensors, evenly.
func shown(all, n int) []int {
	if all <= n {
		n = all
	}
	out := make([]int, n)
	for i := range out {
		out[i] = i * all / n
	}
	return out
}

// dots are the values y of some sensors over x, with error bars of ±2 sd when there are
// few enough sensors to tell the bars apart.
func (r *Report) dots(sensors []int, x, y, sd func(int) float64) figure.Series {
	s := figure.Series{Style: figure.Points, Color: figure.Blue}
	bars := len(sensors) <= maxBars && !r.gainsKnown()
	if bars {
		s.Name = "ŝ ± 2 sd"
	}
	for _, i := range sensors {
		s.X = append(s.X, x(i))
		s.Y = append(s.Y, y(i))
		if bars {
			s.Lo = append(s.Lo, y(i)-2*sd(i))
			s.Hi = append(s.Hi, y(i)+2*sd(i))
		}
	}
	return s
}

func (r *Report) estimate(sensor int) float64 { return r.Result.S[sensor] }

func (r *Report) bySensor() plot {
	sensors := shown(len(r.Result.S), maxDots)
	f := figure.Figure{X: figure.Axis{Label: "sensor", Whole: true}, Y: figure.Axis{Label: "ŝ"}}
	f.Series = []figure.Series{r.dots(sensors, func(i int) float64 { return float64(i) }, r.estimate, r.sd)}
	return draw("Calibration by sensor", "A trend along the sensors has a cause: wiring, temperature, neighbours."+r.sampled(sensors), f)
}

func (r *Report) sampled(sensors []int) string {
	if len(sensors) == len(r.Result.S) {
		return ""
	}
	return fmt.Sprintf(" Drawn are %s of %s sensors, evenly chosen.", count(len(sensors)), count(len(r.Result.S)))
}

// againstTruth draws ŝ over the true s, with the line that a common scale
// alone would give.
func (r *Report) againstTruth() plot {
	sensors := shown(len(r.Result.S), maxDots)
	low, high := span(r.Truth.S)
	c := r.scale()
	dots := r.dots(sensors, r.truth, r.estimate, r.sd)
	if dots.Name == "" {
		dots.Name = "ŝ"
	}
	f := figure.Figure{X: figure.Axis{Label: "true s"}, Y: figure.Axis{Label: "ŝ"}}
	f.Series = []figure.Series{
		dots,
		{Name: "ŝ = s", X: []float64{low, high}, Y: []float64{low, high}, Color: figure.Neutral, Size: 1},
	}
	const heading = "Calibration against the truth"
	if r.gainsKnown() {
		return draw(heading, "The gains were taken as known."+r.sampled(sensors), f)
	}
	f.Series = append(f.Series, figure.Series{
		Name: "common scale fitted", X: []float64{low, high}, Y: []float64{low / c, high / c},
		Color: figure.Orange, Dashed: true, Size: 1,
	})
	caption := fmt.Sprintf("The readings do not fix the scale common to all signals and gains: here it is off by a factor of %s", digits(1/c, 5))
	switch {
	case r.ScaleFree:
		caption += ", which a convention decides"
	case r.Result.ScaleSD > 0:
		caption += ", where the run expects " + percent(r.Result.ScaleSD)
	}
	return draw(heading, caption+"."+r.sampled(sensors), f)
}

func (r *Report) truth(sensor int) float64 { return r.Truth.S[sensor] }

// relativeErrors draws the relative errors of ŝ, which againstTruth is too coarse to
// show, with error bars. Fewer sensors are drawn, so that the bars can be distinguished.
func (r *Report) relativeErrors() plot {
	sensors := shown(len(r.Result.S), maxBars/2)
	low, high := span(r.Truth.S)
	c := r.scale()
	f := figure.Figure{X: figure.Axis{Label: "true s"}, Y: figure.Axis{Label: "ŝ / s − 1, in percent"}}
	f.Series = []figure.Series{
		{X: []float64{low, high}, Y: []float64{0, 0}, Color: figure.Neutral, Size: 1},
		r.dots(sensors, r.truth,
			func(i int) float64 { return 100 * (r.Result.S[i]/r.Truth.S[i] - 1) },
			func(i int) float64 { return 100 * r.sd(i) / r.Truth.S[i] }),
		{Name: "common scale fitted", X: []float64{low, high}, Y: []float64{100 * (1/c - 1), 100 * (1/c - 1)}, Color: figure.Orange, Dashed: true},
	}
	return draw("Errors of the calibration", "The error bars are at a fixed common scale: they should reach the dashed line."+r.sampled(sensors), f)
}

// scale is the factor that brings the estimates closest to the truth: fitted on
// the signals where they are known, on s otherwise.
func (r *Report) scale() float64 {
	estimate, truth := r.Result.S, r.Truth.S
	if sameShape(r.Truth.X, r.x()) {
		estimate, truth = flat(r.x()), flat(r.Truth.X)
	}
	c := floats.Dot(estimate, truth) / floats.Dot(estimate, estimate)
	if !(c > 0) || math.IsInf(c, 0) {
		return 1
	}
	return c
}

func (r *Report) standardisedErrors() plot {
	c := r.scale()
	var errs []float64
	inside := 0
	for i, s := range r.Result.S {
		e := (c*s - r.Truth.S[i]) / (c * r.sd(i))
		if math.IsNaN(e) || math.IsInf(e, 0) {
			continue
		}
		errs = append(errs, e)
		if math.Abs(e) <= 1.96 {
			inside++
		}
	}
	caption := "After fitting the common scale."
	if len(errs) > 0 {
		caption = fmt.Sprintf("After fitting the common scale. The 95\u202f%% intervals at a fixed scale (s_rel_lo, s_rel_hi in the file) hold the truth for %s\u202f%% of the sensors.",
			digits(100*float64(inside)/float64(len(errs)), 3))
	}
	return standardised("Are the error bars right?", caption, "error of ŝ / sd(s)", "sensors", errs)
}

// residuals shows whether the model explains the readings.
func (r *Report) residuals() plots {
	values := r.present()
	if len(values) == 0 {
		return plots{}
	}
	p := plots{Figures: []plot{
		standardised("Standardised residuals", "All readings. Too wide: the model or its noise is wrong. Far too narrow: the noise is overestimated.",
			"residual / standard deviation", "readings", values),
	}}
	if sensors := r.meanSquares(); len(sensors) > 1 {
		p.Figures = append(p.Figures, positive("Residuals by sensor",
			"χ²/P is the mean square of a sensor's standardised residuals. Sensors far above 1 do not follow the model.", "χ²/P", finite(sensors), 1))
	}
	return p
}

// broken reports whether a sensor was left out.
func (r *Report) broken(sensor int) bool {
	return slices.ContainsFunc(r.Result.BrokenSensors, func(b channel.BrokenSensor) bool { return b.Sensor == sensor })
}

// present are the residuals of the readings that were used. Those of missing readings
// are 0, and left out.
func (r *Report) present() []float64 {
	var out []float64
	rows, _ := dims(r.Result.Residual)
	for i := range rows {
		for _, v := range r.Result.Residual.RawRowView(i) {
			if v != 0 && !r.broken(r.Result.SensorOf(i)) {
				out = append(out, v)
			}
		}
	}
	return out
}

// meanSquares is χ²/P of every sensor: NaN for one without readings, or broken.
func (r *Report) meanSquares() []float64 {
	rows, cols := dims(r.Result.Residual)
	if rows == 0 {
		return nil
	}
	out, count := make([]float64, len(r.Result.S)), make([]float64, len(r.Result.S))
	for row := range rows {
		sensor := r.Result.SensorOf(row)
		for k := range cols {
			if v := r.Result.Residual.At(row, k); v != 0 && !r.broken(sensor) {
				out[sensor] += v * v
				count[sensor]++
			}
		}
	}
	for i, n := range count {
		out[i] /= n
	}
	return out
}

func finite(values []float64) []float64 {
	return slices.DeleteFunc(slices.Clone(values), func(v float64) bool { return math.IsNaN(v) || math.IsInf(v, 0) })
}

// worstSensors are two tables: the sensors that the model explains least, and those
// whose s is known least.
func (r *Report) worstSensors() []table {
	if len(r.Result.S) == 0 {
		return nil
	}
	squares := r.meanSquares()
	square := func(i int) float64 {
		if i < len(squares) {
			return squares[i]
		}
		return math.NaN()
	}
	relative := func(i int) float64 { return r.sd(i) / math.Abs(r.Result.S[i]) }
	tables := r.brokenSensors()
	tables = append(tables, r.sensorTable("Worst explained", "Largest χ²/P first.", square, square))
	if !r.gainsKnown() {
		tables = append(tables, r.sensorTable("Least known", "Widest posterior of s first.", relative, square))
	}
	return tables
}

// brokenSensors is the table of the sensors that were left out, the most probably
// broken ones first.
func (r *Report) brokenSensors() []table {
	list := slices.Clone(r.Result.BrokenSensors)
	if len(list) == 0 {
		return nil
	}
	slices.SortStableFunc(list, func(a, b channel.BrokenSensor) int { return cmp.Compare(b.Probability, a.Probability) })
	t := table{
		Heading: "Broken", Note: "Their readings do not follow the signals, and had no part in the result.",
		Columns: []string{"sensor", "probability", "fault", "s wanted"},
	}
	for i, b := range list {
		if i == mostBroken {
			t.Note += " " + sentence(fmt.Sprintf("the first %d of %s are listed", mostBroken, count(len(list))))
			break
		}
		wanted := dash
		if b.S != 0 {
			wanted = number(b.S)
		}
		t.Rows = append(t.Rows, []string{strconv.Itoa(b.Sensor), digits(b.Probability, 4), b.Fault.String(), wanted})
	}
	return []table{t}
}

// sensorTable lists the sensors with the largest values of rank.
func (r *Report) sensorTable(heading, note string, rank, square func(int) float64) table {
	order := shown(len(r.Result.S), len(r.Result.S))
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(rank(b), rank(a)) }) // NaN last
	order = order[:min(worst, len(order))]
	t := table{Heading: heading, Note: note, Columns: []string{"sensor", "ŝ", "sd", "gain", "χ²/P"}}
	remarks := r.remarks()
	remarked := slices.ContainsFunc(order, func(i int) bool { return remarks[i] != "" })
	if remarked {
		t.Columns = append(t.Columns, "remark")
	}
	estimates, sds := columnOf(order, r.estimate, 4), columnOf(order, r.sd, 2)
	gains, squares := columnOf(order, r.gain, 4), columnOf(order, square, 3)
	for j, i := range order {
		row := []string{strconv.Itoa(i), estimates[j], sds[j], gains[j], squares[j]}
		if remarked {
			row = append(row, remarks[i])
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

func (r *Report) gain(sensor int) float64 {
	if sensor < len(r.Result.Gain) {
		return r.Result.Gain[sensor]
	}
	return 1 / r.Result.S[sensor]
}

// remarks are what the warnings say about single sensors, by sensor.
func (r *Report) remarks() map[int]string {
	words := map[calamp.WarningCode]string{
		calamp.SensorAtEdge: "at edge", calamp.SilentSensor: "silent", calamp.NothingLearned: "nothing learned",
		calamp.SensorBroken: "broken", calamp.ManyBroken: "broken",
	}
	out := map[int]string{}
	for _, w := range r.Result.Warnings {
		for _, i := range w.Sensors {
			switch word := words[w.Code]; {
			case word == "" || i < 0:
			case out[i] == "":
				out[i] = word
			default:
				out[i] += ", " + word
			}
		}
	}
	return out
}
