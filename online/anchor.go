package online

import (
	"maps"
	"math"

	"github.com/calamp/calamp"
	"github.com/calamp/calamp/prior"
)

// SetAnchor holds the common scale by known calibrations from now on; the zero value
// lets go of it. An anchor that no calibration can have, or of sensors that are not
// there, is an error and changes nothing.
func (c *Calibrator) SetAnchor(a calamp.Anchor) error {
	if err := a.Validate(); err != nil {
		return err
	}
	if err := a.ValidateFor(c.m); err != nil {
		return err
	}
	c.anchor = calamp.Anchor{Mean: a.Mean, Sensors: maps.Clone(a.Sensors), Phase: a.Phase}
	return nil
}

// Anchor is what holds the common scale: that of the options, or of the state that
// was restored.
func (c *Calibrator) Anchor() calamp.Anchor {
	return calamp.Anchor{Mean: c.anchor.Mean, Sensors: maps.Clone(c.anchor.Sensors), Phase: c.anchor.Phase}
}

// anchored is the scale that the anchor asks for, given posteriors of s. Sensors that are
// flagged have no say.
func (c *Calibrator) anchored(s, sVar []float64) calamp.Anchored {
	known := c.sample.Calibration()
	return c.anchor.Fit(s, sVar, func(mu int) bool {
		return c.state.Flag[mu] == Healthy && known.Readings(c.statsOf(mu)) > 0
	})
}

// followAnchor brings the sample's estimate to the anchor's scale.
func (c *Calibrator) followAnchor() {
	c.held = calamp.Anchored{Factor: math.NaN()}
	if !c.anchor.Set() {
		return
	}
	c.held = c.anchorNow()
	if c.held.Holds() {
		c.rescaleSample(c.held.Factor)
	}
}

// anchorNow is where the anchor has the scale of what is known of the sensors.
func (c *Calibrator) anchorNow() calamp.Anchored {
	c.sample.Calibration().Posteriors(c.means, c.variances, c.state.Stats)
	return c.anchored(c.means, c.variances)
}

// hold brings a posterior to the anchor's scale.
func (c *Calibrator) hold(p *Posterior) {
	fit := c.anchored(p.S, p.SVar)
	if w := fit.Warning(p.ScaleSD); w != nil {
		p.Warnings = append(p.Warnings, *w)
	}
	if !fit.Holds() {
		return
	}
	p.ScaleSD = fit.SD
	f := fit.Factor
	for mu := range p.S {
		p.S[mu] *= f
		p.SVar[mu] *= f * f
		p.Gain[mu] = 1 / p.S[mu]
	}
	p.Calibration.Prior.ScaleStats(p.Calibration.Stats, f)
	p.Calibration.Prior = p.Calibration.Prior.Scaled(f)
	p.Factor = f
	if p.Range != nil {
		p.Range.Prior = p.Range.Prior.Times(f)
		p.Range.ScaleSD = p.ScaleSD
	}
	scale(p.NoiseVar, f*f)
	if p.Model != nil {
		p.Model.rescaleNoise(f)
		p.Model.rescaleSignals(c.sample.Model().Prior, f)
	}
}

// rescaleNoise brings the noise to signals f times as large.
func (m *Model) rescaleNoise(f float64) {
	m.NoiseVar *= f * f
	m.NoiseInformation /= f * f * f * f
	if m.Sensors != nil {
		scale(m.Sensors.Sum, f*f)
	}
}

// rescaleSignals does the same for what is learned of a prior p.
func (m *Model) rescaleSignals(p prior.Prior, f float64) {
	if signal, ok := p.(prior.Parametric); ok && len(m.Values) > 0 {
		m.Values = scaled(signal, m.Values, f)
	}
}

// scaled are the parameters of a prior of signals f times as large; the same ones where it
// has none.
func scaled(p prior.Parametric, values []float64, f float64) []float64 {
	now, err := p.WithValues(values)
	if err != nil {
		return values
	}
	if s, ok := now.(prior.Scalable); ok {
		if larger, ok := s.Scaled(f).(prior.Parametric); ok {
			return larger.Values()
		}
	}
	return values
}
