package channel

import (
	"fmt"
	"math"

	"github.com/calamp/calamp/internal/smooth"
)

// Gains that belong together: the logarithm of s is a Gaussian process over the places of the sensors, and white scatter beside. What readings leave of the
// other sensors is what is known of each one by itself (see [Knowledge]): the message that expectation propagation sends it (T. Minka, "Expectation
// propagation for approximate Bayesian inference", 2001), since a sensor's posterior without that is what its readings say.

// Places are where sensors are, for gains that change little from one to the next.
type Places struct{ places *smooth.Places }

// At are sensors at positions (M×d, sensor by sensor), with one length for all d directions.
func At(positions []float64, d int) (Places, error) {
	p, err := smooth.At(positions, d)
	return Places{p}, err
}

// Combined are sensors of which the logarithms of s are a combination of known columns (M×k, sensor by sensor), a level, and scatter.
func Combined(columns []float64, k int) (Places, error) {
	p, err := smooth.Columns(columns, k)
	return Places{p}, err
}

// Sensors is how many there are.
func (p Places) Sensors() int { return p.places.Sensors() }

// leastStart is the relative spread of gains that learning starts from, if p says less: vignetting, or an array of microphones.
const leastStart = 0.2

// Together is the distribution of gains that belong together, which is learned ([Learnable]) from about on: that says how large they are, and about how
// much they differ.
func (p Places) Together(about GainPrior) GainPrior {
	mean, variance := about.Moments()
	sd := max(math.Sqrt(variance)/mean, leastStart)
	known := &Knowledge{Mean: make([]float64, p.Sensors()), SD: make([]float64, p.Sensors())}
	for mu := range known.Mean {
		known.Mean[mu], known.SD[mu] = mean, sd*mean
	}
	field := smooth.New(p.places, sd)
	known.field = &field
	return About(known)
}

// TogetherAs is Together where it is known how gains belong together: only the gains are learned.
func (p Places) TogetherAs(about GainPrior, how Smooth) GainPrior {
	together := p.Together(about)
	field := smooth.Held(p.places, how.Amplitude, how.Length, how.Scatter)
	together.Each.field = &field
	return together
}

// Smooth is how gains belong together.
type Smooth struct {
	Amplitude float64 // standard deviation of the smooth part of log s
	Length    float64 // of the kernel, in the unit of the positions; 0 where columns are given
	Scatter   float64 // standard deviation of what every log s has of its own
}

// SmoothOf is what was learned of gains that belong together; ok is false where they do not.
func SmoothOf(c Calibration) (s Smooth, ok bool) {
	if p, is := c.(GainPrior); is && p.together() {
		f := p.Each.field
		return Smooth{f.Amplitude, f.Length(), f.Scatter}, true
	}
	return s, false
}

// together reports whether gains belong together.
func (p *GainPrior) together() bool { return p.Each != nil && p.Each.field != nil }

// SmoothPart is what s would be without scatter, for every sensor, and the relative standard deviation of that; sensors for which omit is true do not count.
func (p GainPrior) SmoothPart(stats []float64, omit []bool) (s, sd []float64) {
	mean, variance := p.sites(stats, omit)
	q := p.Each.field.Posterior(mean, variance)
	s, sd = make([]float64, len(mean)), make([]float64, len(mean))
	for mu, log := range q.Smooth {
		s[mu], sd[mu] = math.Exp(log), math.Sqrt(q.SmoothVar[mu])
	}
	return s, sd
}

// ScatterGain is by how much the logarithm of the evidence is higher with the scatter of gains that belong together than with hardly any.
func (p GainPrior) ScatterGain(stats []float64, omit []bool) float64 {
	mean, variance := p.sites(stats, omit)
	return p.Each.field.ScatterGain(mean, variance)
}

// PairsOf are sensors that are read two at a time: rows of W are read with s = s_i s_j, for the pairs i, j of sensors from 0 to count-1. It is an error where such products do not
// determine the gains of all.
func PairsOf(pairs [][2]int, count int) (Places, error) {
	if _, err := determined(pairs, count); err != nil {
		return Places{}, err
	}
	columns := make([]float64, len(pairs)*count)
	for row, pair := range pairs {
		for _, sensor := range pair {
			columns[row*count+sensor]++
		}
	}
	return Combined(columns, count)
}

// determined reports sensors whose gains products leave open: some may grow as others shrink unless a way along pairs leads from each sensor back to it in an odd number of steps.
// A sensor is there twice, reached by an even and by an odd number of them. array is the same for sensors that pairs connect.
func determined(pairs [][2]int, count int) (array func(sensor int) int, err error) {
	above := make([]int, 2*count) // what each belongs to
	for i := range above {
		above[i] = i
	}
	top := func(i int) int {
		for above[i] != i {
			i = above[i]
		}
		return i
	}
	for _, pair := range pairs {
		above[top(pair[0])] = top(pair[1] + count)
		above[top(pair[0]+count)] = top(pair[1])
	}
	for sensor := range count {
		if top(sensor) != top(sensor+count) {
			return nil, fmt.Errorf("sensor %d: products leave its gain open, since pairs connect it to no ring of an odd number of sensors, such as three with all their pairs", sensor)
		}
	}
	return top, nil
}

// OfPairs is s of each of so many sensors that are read two at a time ([PairsOf]), and its standard deviation at a fixed common scale.
func (p GainPrior) OfPairs(stats []float64, count int) (s, sd []float64) {
	mean, variance := p.sites(stats, nil)
	q := p.Each.field.Posterior(mean, variance)
	s, sd = make([]float64, count), make([]float64, count)
	column := make([]float64, count)
	for sensor := range s {
		clear(column)
		column[sensor] = 1
		log, variance := p.Each.field.Sum(q, column, 0.5)
		s[sensor] = math.Exp(log)
		sd[sensor] = s[sensor] * math.Sqrt(variance)
	}
	return s, sd
}

// leastSite is how much of what is known of a sensor readings must add to it, to count.
const leastSite = 1e-9

// sites are what readings alone say of log s, as normal distributions: the posterior of s without what is known of it by itself, seen about the mean m
// of that: log s = log m + (s - m)/m.
func (p GainPrior) sites(stats []float64, omit []bool) (mean, variance []float64) {
	count := len(stats) / p.Width()
	mean, variance = make([]float64, count), make([]float64, count)
	p.Posteriors(mean, variance, stats)
	for mu := range mean {
		own, field := p.own(stats, mu)
		if own == 0 { // broken, and what was known of it taken away, too
			mean[mu], variance[mu] = 0, math.Inf(1)
			continue
		}
		middle := field / own
		precision := 1/variance[mu] - own
		if !(precision > leastSite*own) || omit != nil && omit[mu] {
			mean[mu], variance[mu] = math.Log(middle), math.Inf(1)
			continue
		}
		s := (mean[mu]/variance[mu] - field) / precision
		mean[mu], variance[mu] = math.Log(middle)+(s-middle)/middle, 1/(precision*middle*middle)
	}
	return mean, variance
}

// refitTogether is Refit for gains that belong together. change is also how far what is known of sensors moved, in its standard deviations.
func (p GainPrior) refitTogether(stats []float64, omit []bool) (next GainPrior, change float64) {
	mean, variance := p.sites(stats, omit)
	field, q, change := p.Each.field.Fit(mean, variance)
	known := &Knowledge{Mean: make([]float64, len(mean)), SD: make([]float64, len(mean)), field: &field}
	moved := 0.0
	for mu, log := range q.Mean {
		own, toward := p.own(stats, mu)
		known.Mean[mu] = math.Exp(log)
		known.SD[mu] = known.Mean[mu] * math.Sqrt(q.Variance[mu])
		off := (known.Mean[mu] - toward/own) / known.SD[mu]
		moved += off * off / float64(len(mean))
	}
	next = About(known)
	return next, max(change, math.Sqrt(moved))
}

// times is what is known of c·s.
func (k *Knowledge) times(c float64) *Knowledge {
	scaled := &Knowledge{Mean: make([]float64, len(k.Mean)), SD: make([]float64, len(k.SD)), ScaleSD: k.ScaleSD, field: k.field}
	for mu, m := range k.Mean {
		scaled.Mean[mu], scaled.SD[mu] = c*m, c*k.SD[mu]
	}
	return scaled
}

// checkSensors reports another number of sensors than there are.
func (k *Knowledge) checkSensors(m int) error {
	switch {
	case len(k.Mean) == m:
		return nil
	case k.field != nil:
		return fmt.Errorf("gains that belong together: there are positions or columns of %d sensors, expected %d", len(k.Mean), m)
	}
	return fmt.Errorf("something is known of %d single sensors, and there are %d", len(k.Mean), m)
}
