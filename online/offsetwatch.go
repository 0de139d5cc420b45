package online

import (
	"math"

	"github.com/calamp/calamp/internal/diagnosis"
)

// watchedTogether is the number of samples over which the residuals of a sensor are averaged: offsets of the noise's size show
// in ten.
const watchedTogether = 10

// offsetWatch looks for offsets that nobody modelled, in the residuals of some samples after the other.
type offsetWatch struct {
	samples             int
	count, sum, squares []float64 // M, of residuals in units of their sample's spread
	found               *diagnosis.Warning
}

// watches reports whether offsets would show: what gains are wrong by changes sign with the signals, if readings do.
func (c *Calibrator) watches() bool {
	return c.columns == 1 && c.opt.Commit == Sane && c.opt.WarmUp == 0 && c.offsets() == nil
}

// watchOffsets takes in the residuals of a sample that was learned from.
func (c *Calibrator) watchOffsets() {
	if !c.watches() || !(c.spread > 0) {
		return
	}
	w := &c.watched
	if w.count == nil {
		w.count, w.sum, w.squares = make([]float64, c.m), make([]float64, c.m), make([]float64, c.m)
	}
	for mu, chi := range c.chi {
		if x := chi / c.spread; c.uses(mu) && !math.IsNaN(x) {
			w.count[mu]++
			w.sum[mu] += x
			w.squares[mu] += x * x
		}
	}
	if w.samples++; w.samples < watchedTogether {
		return
	}
	var ratios []float64
	for mu, n := range w.count {
		mean := w.sum[mu] / max(1, n)
		if ratio, ok := diagnosis.MeanOff(n, mean, w.squares[mu]-n*mean*mean); ok {
			ratios = append(ratios, ratio)
		}
	}
	w.found, w.samples = diagnosis.OffsetsIn(ratios, "samples"), 0
	clear(w.count)
	clear(w.sum)
	clear(w.squares)
}
