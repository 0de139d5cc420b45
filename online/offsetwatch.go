package online

import (
	"math"

	"github.com/calamp/calamp/internal/diagnosis"
)

// watchedTogether is the number of samples over which the residuals of a sensor are averaged: offsets of the noise's size show
// in ten.
const watchedTogether = 10

// offsetWatch looks for offsets that are not in the model, in the residuals of some samples after the other.
type offsetWatch struct {
	samples             float64   // as they are weighed
	count, mean, spread []float64 // M, of residuals in units of their sample's spread: the sum of squared deviations
	found               *diagnosis.Warning
}

// watches reports whether offsets would show: what gains are wrong by changes sign with the signals, if readings do.
func (c *Calibrator) watches() bool {
	return c.columns == 1 && c.opt.Commit == Sane && c.offsets() == nil && !c.oneSigned()
}

// watchOffsets takes in the residuals of a sample that was learned from, as far as it differs from those before: what a scene is wrong by does not
// average over its samples, and would look like an offset.
func (c *Calibrator) watchOffsets() {
	if !c.watches() || !(c.spread > 0) || c.weight == 0 {
		return
	}
	w := &c.watched
	if w.count == nil {
		w.count, w.mean, w.spread = make([]float64, c.m), make([]float64, c.m), make([]float64, c.m)
	}
	for mu, chi := range c.chi {
		if x := chi / c.spread; c.uses(mu) && !math.IsNaN(x) {
			off := x - w.mean[mu] // Welford's way: no difference of squares
			w.count[mu] += c.weight
			w.mean[mu] += c.weight * off / w.count[mu]
			w.spread[mu] += c.weight * off * (x - w.mean[mu])
		}
	}
	if w.samples += c.weight; w.samples < watchedTogether {
		return
	}
	var ratios []float64
	for mu, n := range w.count {
		if ratio, ok := diagnosis.MeanOff(n, w.mean[mu], w.spread[mu]); ok {
			ratios = append(ratios, ratio)
		}
	}
	w.found, w.samples = diagnosis.OffsetsIn(ratios, 1, "samples", diagnosis.FindOffsets), 0
	clear(w.count)
	clear(w.mean)
	clear(w.spread)
}
