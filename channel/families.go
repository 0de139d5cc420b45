package channel

import "math"

// Family is a kind of distributions of gains.
type Family uint8

const (
	UniformFamily Family = iota
	NormalFamily
	LogNormalFamily
)

// Families is a [Learnable] that is one of several kinds of distributions, of which readings select the
// one that explains the sensors.
type Families interface {
	Learnable

	// Family is the present kind.
	Family() Family

	// As is the distribution of a kind that explains the statistics of several sensors best, and Likeliest
	// the same of the kind that is likeliest, where another than the present one has to be so by far
	// unless that is uniform. Sensors
	// for which omit, nil or one value a sensor, is true do not count. A distribution other than uniform
	// gives each sensor a broad tail of weight [LikeNoOther].
	As(kind Family, stats []float64, omit []bool) Families
	Likeliest(stats []float64, omit []bool) Families
}

// likelier is the logarithm of a likelihood ratio by which another kind must be likelier: each has two
// parameters that were fitted, worth one such unit or two.
const likelier = 3

// Family implements [Families].
func (p GainPrior) Family() Family {
	switch {
	case p.Precision == 0:
		return UniformFamily
	case p.Log:
		return LogNormalFamily
	}
	return NormalFamily
}

// As implements [Families].
func (p GainPrior) As(kind Family, stats []float64, omit []bool) Families {
	all, _ := p.flat().peaks(stats, omit)
	if len(all) < leastFilled || kind == UniformFamily {
		return p
	}
	next, _ := p.likeliest(kind, all)
	return next
}

// Likeliest implements [Families].
func (p GainPrior) Likeliest(stats []float64, omit []bool) Families {
	all, _ := p.flat().peaks(stats, omit)
	if len(all) < leastFilled {
		return p
	}
	_, most := p.likeliest(p.Family(), all)
	if p.Family() != UniformFamily { // with which a run begins, for no reason of the sensors'
		most += likelier
	}
	best := p
	for _, kind := range []Family{UniformFamily, NormalFamily, LogNormalFamily} {
		if kind == p.Family() {
			continue
		}
		next, evidence := p.likeliest(kind, all)
		if kind == LogNormalFamily && next.Precision*pointlike >= 1 {
			continue // gains that are all the same: the normal one does, whose fit is not skewed
		}
		if evidence > most {
			best, most = next, evidence
		}
	}
	return best
}

// likeliest is the distribution of a kind under which the sensors are likeliest, and the logarithm of
// that: their peaks taken for Gaussians, and none for less than what an outlier costs.
func (p GainPrior) likeliest(kind Family, all peaks) (best GainPrior, evidence float64) {
	middle, variance := all.typical()
	least := -math.Log(6*math.Sqrt(variance)) - outlierCost
	switch kind {
	case UniformFamily:
		sorted := all.sorted()
		in := newFilling(sorted, least)
		at, evidence := in.best(Uniform(sorted[0].mode, sorted[len(sorted)-1].mode))
		return Uniform(at[0], at[1]), evidence
	case LogNormalFamily:
		logs := all.logarithms()
		mean, variance := logs.normal(logs.typical())
		return learnedLogNormal(math.Exp(mean), variance), all.underLogNormal(logs, mean, variance, least)
	}
	mean, variance := all.normal(middle, variance)
	return learnedNormal(mean, variance), all.underNormal(mean, variance, least)
}

// logarithms are the peaks as functions of log s.
func (p peaks) logarithms() peaks {
	logs := make(peaks, len(p))
	for i, s := range p {
		logs[i] = peak{math.Log(s.mode), s.inverseSD * s.mode}
	}
	return logs
}

// underLogNormal is underNormal for a normal distribution of log s: with the density of s.
func (p peaks) underLogNormal(logs peaks, mean, variance, least float64) float64 {
	total := 0.0
	for i, s := range logs {
		v := variance + s.variance()
		d := s.mode - mean
		total += max(-0.5*(math.Log(2*math.Pi*v)+d*(d/v))-math.Log(p[i].mode), least)
	}
	return total
}

// refitLogNormal is Refit for a log-normal: of a normal distribution of log s.
func (p GainPrior) refitLogNormal(all peaks) (next GainPrior, change float64) {
	logs := all.logarithms()
	before := 1 / p.Precision
	mean, variance := logs.normal(math.Log(p.Center), before)
	weights := 0.0
	for _, s := range logs {
		weights += 1 / (variance + s.variance())
	}
	moved := max(math.Abs(mean-math.Log(p.Center)), math.Abs(math.Sqrt(variance)-math.Sqrt(before)))
	next = learnedLogNormal(math.Exp(mean), variance)
	next.Tail = p.Tail
	return next, moved * math.Sqrt(weights)
}

func learnedLogNormal(median, variance float64) GainPrior {
	p := LogNormalAbout(median, math.Sqrt(max(variance, pointlike)))
	p.Tail = LikeNoOther
	return p
}
