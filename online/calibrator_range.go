package online

import (
	"fmt"
	"math"

	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/internal/amp"
	"github.com/calamp/calamp/solver"
)

// RangeNotFilled says that the gains of a stream do not fill the range that was told, and
// what was learned in its place. Then the range tells the common scale no better than that
// it contains the gains: S is what it is in the middle of what this leaves open.
type RangeNotFilled struct {
	Told     channel.Bounded
	LogRatio float64 // how much likelier the gains are under another distribution

	// Scale is what the stream's own s, and with them all signals, are multiplied by.
	Scale float64
}

// String says it in a sentence.
func (f *RangeNotFilled) String() string {
	lo, hi := f.Told.Range()
	return fmt.Sprintf("the gains are not spread evenly over the range [%g, %g] that was told (log-likelihood ratio %.3g): their distribution was learned within it, and all that the range says of the common scale is that it contains the gains", lo, hi, f.LogRatio)
}

// within learns the distribution of s within the range that was told, where what the
// sensors have taught so far contradicts it: nil where it does not. It is for posteriors that
// are reported; the recursion goes on with what it was told.
func (c *Calibrator) within() (found *RangeNotFilled, learned channel.Calibration, scaleSD float64) {
	told, ok := c.sample.Calibration().(channel.Bounded)
	o, s := &c.opt, &c.state
	if !ok || told.Fills() != nil || o.SPrior == solver.UniformS || o.Commit == Always || o.NoScaleStep || o.Tol < 0 || s.Samples < 2 {
		return nil, nil, 0
	}
	omit := make([]bool, c.m)
	for mu, flag := range s.Flag {
		omit[mu] = flag != Healthy || told.Readings(c.statsOf(mu)) == 0
	}
	ratio := told.Contradiction(s.Stats, omit)
	if o.SPrior != solver.NormalS && !(ratio > amp.Contradicted) {
		return nil, nil, 0
	}
	learned = told.Within(s.Stats, omit)
	mean, variance := make([]float64, c.m), make([]float64, c.m)
	learned.Posteriors(mean, variance, s.Stats)
	logScale, scaleSD := amp.ScaleWithin(told, mean, variance, omit)
	return &RangeNotFilled{Told: told, LogRatio: ratio, Scale: math.Exp(logScale)}, learned, scaleSD
}

// place brings a posterior to where its scale belongs.
func (p *Posterior) place(found *RangeNotFilled, scaleSD float64) {
	p.Range, p.ScaleSD = found, scaleSD
	for mu := range p.S {
		p.S[mu] *= found.Scale
		p.SVar[mu] *= found.Scale * found.Scale
		p.Gain[mu] = 1 / p.S[mu]
	}
	p.Calibration.Prior.ScaleStats(p.Calibration.Stats, found.Scale)
	p.Calibration.Prior = p.Calibration.Prior.Scaled(found.Scale)
}
