package calamp

import (
	"math"

	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/prior"
)

// ModelSD is how well a model can be known from what a run found: standard deviations of what it may have learned, were signals and gains themselves
// known. They are those of the number of non-zero entries, of sensors and of readings beyond what these determine, and of the common scale, whose
// relative uncertainty all that has a scale has as well. Numbers that were given have them, too, and they mean nothing there.
type ModelSD struct {
	Density, SignalMean, SignalVar, NoiseVar float64

	SRange      [2]float64 // of the ends of a uniform distribution
	SMean, SSD  float64    // of a normal one; of a log-normal one, of its median and of the standard deviation of log s
	Sensors     int        // that these are from
	ActiveReals float64    // real numbers among the signals that are not zero
}

// ModelSD is how well the model of this result can be known.
func (r *Result) ModelSD() ModelSD {
	rows, columns := r.X.Dims()
	sensors, readings := r.Residual.Dims()
	reals, parts := float64(rows*columns), float64(channel.ColumnsOf(r.Channel))
	entries := independent(r.Prior)
	if r.Latent != nil {
		rows, columns = r.Latent.Dims()
		reals = float64(rows * columns)
	}
	density := 1.0
	if p, ok := entries.(prior.Sparse); ok {
		density = p.NonZero()
	}
	sd := ModelSD{Sensors: sensors - len(r.BrokenSensors), ActiveReals: density * reals}
	independent := reals / parts
	if r.Support != nil { // entries are there in all signals or in none
		independent = float64(rows)
	}
	sd.Density = math.Sqrt(density * (1 - density) / independent)
	if p, ok := entries.(prior.Slabbed); ok {
		mean, variance := p.Slab()
		ofMean, ofVar := p.SlabSD(sd.ActiveReals)
		sd.SignalMean = math.Hypot(ofMean, mean*r.ScaleSD)
		sd.SignalVar = math.Hypot(ofVar, 2*variance*r.ScaleSD)
	}
	left := max(1, float64(sensors*readings)-sd.ActiveReals-parts*float64(sd.Sensors))
	if own, ok := channel.DetectorOf(r.Channel); ok {
		sd.NoiseVar = own.Read * r.detectorSD
	} else {
		sd.NoiseVar = parts * channel.NoiseOf(channel.InOrder(r.Channel)) * math.Hypot(math.Sqrt(2/left), 2*r.ScaleSD)
	}
	if c := channel.CalibrationOf(r.Channel); c != nil {
		known, ok := c.(channel.Gains)
		if !ok {
			return sd
		}
		gains, m := known.Gains(), float64(sd.Sensors)
		for i, end := range []float64{gains.Lo, gains.Hi} { // the largest of M uniform numbers is a width/M off
			sd.SRange[i] = math.Hypot((gains.Hi-gains.Lo)/m, end*r.ScaleSD)
		}
		mean, width, normal := channel.NormalOf(gains)
		if !normal && gains.Family() != channel.LogNormalFamily {
			return sd
		}
		sd.SSD = math.Hypot(width/math.Sqrt(2*m), width*r.ScaleSD)
		sd.SMean = math.Hypot(width/math.Sqrt(m), mean*r.ScaleSD)
		if gains.Family() == channel.LogNormalFamily {
			sd.SSD, sd.SMean = width/math.Sqrt(2*m), mean*math.Hypot(width/math.Sqrt(m), r.ScaleSD)
		}
	}
	return sd
}
