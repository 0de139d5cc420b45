package calamp

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/prior"
)

// Rows of a sensor that ask for different gains have gains of their own about that of their sensor: log s of a row is the sum of a level, of what its sensor has in common, and of scatter. So a
// run follows in which each row is a sensor, and their gains belong together by columns that are the sensors ([channel.Combined]): the spread between sensors and the scatter within them are both learned
// by the evidence. Where it is likelier it is the answer. s of a sensor is then what its rows have in common, with an error bar that has the scatter in it: which row has the sensor's own gain is not known.

// mostScattered is how many entries the columns may have: rows times sensors.
const mostScattered = 1 << 21

// leastScatterGain is the logarithm of a likelihood ratio from which on rows scatter: an odds of 150.
const leastScatterGain = 5

// withRowGains is that run, of a problem as it was given, and res with its answer; res itself where it is none.
func (p *Problem) withRowGains(ctx context.Context, opt *Options, res *Result) (*Result, bool) {
	columns := p.columnsOfSensors(opt)
	if columns == nil || !res.rowsApart && !res.rowsScatter {
		return res, false
	}
	working := channel.InOrder(p.Channel).(channel.Gain)
	places, err := channel.Combined(columns, SensorCount(p.Sensors, len(p.Sensors)))
	if err != nil {
		return res, false
	}
	own := *p
	working.Prior = places.Together(channel.CalibrationOf(res.Channel).(channel.Gains).Gains())
	own.Sensors, own.Channel = nil, channel.WithInOrder(p.Channel, working)
	tried := &try{name: "a gain for each row", problem: &own, opt: *opt}
	tried.opt.Learn.Range = true
	if err := tried.solve(ctx, 1); err != nil || !(tried.res.scatterGain() > leastScatterGain) {
		return res, false
	}
	if tried.trusted() && !(res.Status == Converged && res.LogEvidence > tried.res.LogEvidence) {
		found := tried.res.ofSensors(p.Sensors, res)
		if !opt.Learn.Range {
			found.toScaleOf(res)
		}
		return found, true
	}
	if res.Status == Converged && !res.rowsApart && tried.res.scattersBeyond(res, p.Sensors) {
		res.Status, res.Reason = NotConverged, "rows of one sensor have gains of their own, and with a gain for each row there is no answer: "+tried.res.Reason
	}
	return res, false
}

// scattersBeyond reports whether rows scatter by more than error bars of sensors allow: means of a sensor's rows are then off by more than its s is said to be. Outliers that were not found make readings scatter a little.
func (r *Result) scattersBeyond(sensors *Result, ids []int) bool {
	found, _ := channel.SmoothOf(r.Calibration.Prior)
	rows := make([]float64, len(sensors.S))
	for _, g := range ids {
		rows[g]++
	}
	off, stated := 0.0, 0.0
	for g, s := range sensors.S {
		off += found.Scatter * found.Scatter / rows[g]
		stated += sensors.SVar[g] / (s * s)
	}
	return off > stated
}

// scatterGain is that of the gains of rows, of those in order.
func (r *Result) scatterGain() float64 {
	omit := make([]bool, len(r.S))
	for mu := range omit {
		omit[mu] = r.Broken != nil && r.Broken[mu] > 0.5
	}
	return r.Calibration.Prior.(channel.Gains).Gains().ScatterGain(r.Calibration.Stats, omit)
}

// columnsOfSensors are one for each sensor (M×S), 1 where a row is read with it; nil where rows cannot have gains of their own.
func (p *Problem) columnsOfSensors(opt *Options) []float64 {
	gain, real := channel.InOrder(p.Channel).(channel.Gain)
	sensors := SensorCount(p.Sensors, len(p.Sensors))
	switch {
	case !opt.Retry || opt.Anchor.Set() || opt.Scale.Set() || p.NoiseVar != nil || opt.Learn.SensorNoise:
		return nil
	case !real || gain.Prior.Each != nil || gain.Own != channel.Detector{} || gain.Saturation > 0 || len(p.Sensors)*sensors > mostScattered:
		return nil
	}
	columns := make([]float64, len(p.Sensors)*sensors)
	for row, g := range p.Sensors {
		columns[row*sensors+g] = 1
	}
	return columns
}

// toScaleOf brings the result to the common scale of one whose range of s was given.
func (r *Result) toScaleOf(before *Result) {
	off := 0.0
	for g, s := range before.S {
		off += math.Log(s/r.S[g]) / float64(len(r.S))
	}
	signals, gains, c := r.Prior, r.Calibration, math.Exp(off)
	r.Calibration = nil // which has the bounds that were given
	r.rescale(c)
	if prior.LearnerOf(signals) == nil {
		r.Prior = signals
	}
	r.Channel = before.Channel
	for mu := range r.RowS {
		r.RowS[mu], r.RowSVar[mu] = c*r.RowS[mu], c*c*r.RowSVar[mu]
	}
	r.Calibration, r.ScaleSD, r.placement = gains, before.ScaleSD, before.placement
	for g, s := range r.S {
		gains.Prior.SetNormal(gains.Of(g), s, r.SVar[g])
	}
	r.Warnings = slices.DeleteFunc(r.Warnings, func(w Warning) bool { return w.Code == ScaleFromGains })
}

// ofSensors is the result of rows as one of their sensors; before is the one without gains of rows.
func (r *Result) ofSensors(ids []int, before *Result) *Result {
	found, _ := channel.SmoothOf(r.Calibration.Prior)
	gain := r.scatterGain()
	shared, sd := r.SmoothPart()
	sensors := SensorCount(ids, len(ids))
	r.Sensors, r.RowS, r.RowSVar = slices.Clone(ids), r.S, r.SVar
	calibration := &channel.Posteriors{Prior: before.Calibration.Prior, Stats: make([]float64, sensors*before.Calibration.Prior.Width())}
	r.S, r.SVar, r.Gain = make([]float64, sensors), make([]float64, sensors), make([]float64, sensors)
	rows, out := make([]float64, sensors), make([]float64, sensors)
	for row, g := range ids {
		scatter := found.Scatter * shared[row]
		r.S[g], r.SVar[g], r.Gain[g] = shared[row], sd[row]*sd[row]+scatter*scatter, 1/shared[row]
		calibration.Prior.SetNormal(calibration.Of(g), r.S[g], r.SVar[g])
		if rows[g]++; r.Broken != nil {
			out[g] += r.Broken[row]
		}
	}
	r.Calibration = calibration
	if r.Broken != nil {
		for g := range out {
			out[g] /= rows[g]
		}
		r.BrokenSensors = nil
		for _, b := range before.BrokenSensors {
			if out[b.Sensor] > 0.5 {
				r.BrokenSensors = append(r.BrokenSensors, b)
			}
		}
		r.Broken = out
	}
	r.NoiseVar = nil
	noise := channel.NoiseOf(channel.InOrder(r.Channel))
	r.Channel = channel.WithInOrder(before.Channel, channel.InOrder(before.Channel).(channel.Noisy).WithNoise(noise))
	named := []WarningCode{GainsNotSmooth, SensorAtEdge, SensorBroken, RowsDisagree}
	r.Warnings = slices.DeleteFunc(r.Warnings, func(w Warning) bool { return w.Sensors != nil || slices.Contains(named, w.Code) })
	r.Warnings = append(r.Warnings, Warning{Code: RowsDisagree, Message: fmt.Sprintf(
		"rows of one sensor have gains of their own, which scatter by %.2g %% about those of sensors: a model with that scatter is likelier, by %.3g in the logarithm of the evidence. Some rows are with the wrong sensor, or they share no gain; s is what rows of a sensor have in common, its error bar has the scatter, and gain_row are gains of rows",
		100*found.Scatter, gain)})
	r.rowsApart = true
	return r
}
