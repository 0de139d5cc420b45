package channel

import (
	"errors"
	"math"
	"slices"
	"sort"
)

const (
	// outlierCost is by how much the log-likelihood of a sensor can be below that of
	// an s from anywhere in the range: a sensor further out is taken as one of the few
	// that no distribution of s explains, and weighs no more.
	outlierCost = 9.2

	// wallSlack is how far outside a range s may be, in its own standard deviations,
	// before [GainPrior.LogInside] counts it: blurred s lie outside by chance.
	wallSlack = 3

	// blurred is how well the typical s must be known, relative to the width of the range,
	// to learn how s is distributed in it. Hundreds of sensors do where each is known
	// to the width alone.
	blurred = 2

	// leastFilled is how many sensors it takes to learn how s is distributed.
	leastFilled = 10

	// apart is how many standard deviations a sensor may be from the middle of a normal
	// distribution that is learned from it.
	apart = 6

	// pointlike is the least variance of a learned normal, relative to its mean squared.
	pointlike = 1e-8

	// A learned normal is cut where no gain can be.
	lowestCut, highestCut = 0.02, 5
)

// Fills reports whether the sensors could be tested for filling the range: it is for
// a uniform prior.
func (p GainPrior) Fills() error {
	switch {
	case p.Each != nil:
		return errors.New("every sensor is known by itself")
	case p.Precision != 0:
		return errors.New("the gains' distribution is no uniform one")
	}
	return nil
}

// Contradiction is the logarithm of how much likelier the sensors' statistics are
// under the best uniform or normal distribution, or the best of two kinds (see
// [peaks.ofTwoKinds]), than under this uniform one: the maximum over l, h and m, σ of
//
//	Σ_µ log ∫_l^h q̃_µ(s) ds/(h-l)   and   Σ_µ log ∫ q̃_µ(s) N(s; m, σ²) ds
//
// minus the same for l = Lo, h = Hi, with each q̃ (see [Gain]) taken as the Gaussian
// around its mode. For M sharp s that are uniform on the range, the part that they
// cover is Beta(M-1, 2), so that the maximum over l and h is above x with probability
// (1+x)e^{-x}, whatever M; blur makes it smaller. Where the typical s is not known well
// enough for that, or lies far outside, it is 0. Sensors for which omit, nil or one value
// a sensor, is true do not count.
//
// Its second result is the logarithm of the mean of the likelihood ratio over the uniform ranges
// within this one, their ends anywhere in it (see [filling.odds]); -Inf where
// this cannot be computed.
func (p GainPrior) Contradiction(stats []float64, omit []bool) (most, mean float64) {
	all := p.telling(stats, omit)
	if all == nil {
		return 0, math.Inf(-1)
	}
	in := newFilling(all, p.leastLog())
	fixed := in.between(p.Lo, p.Hi)
	at, best := in.best(p)
	center, variance := all.normal(all.typical())
	most = max(fixed, best, all.underNormal(center, variance, p.leastLog()), all.ofTwoKinds(center, variance, p.leastLog())) - fixed
	return most, in.odds(p, at)
}

// odds is the logarithm of
//
//	2/(Hi-Lo)² ∫∫ L(l, h) dl dh / L(Lo, Hi),
//
// with the double integral about the best l and h taken for the product of two single
// ones. For M sharp s that do fill the range it is of the order of -2 log M.
func (f *filling) odds(p GainPrior, at [2]float64) float64 {
	lo, hi := max(at[0], p.Lo), min(at[1], p.Hi)
	if !(hi > lo) {
		return math.Inf(-1)
	}
	width, fixed, best := p.Hi-p.Lo, f.between(p.Lo, p.Hi), f.between(lo, hi)
	lows := integral(func(l float64) float64 {
		f.setLo(l)
		return f.evidence() - best
	}, lo, p.Lo, hi)
	f.setLo(lo)
	highs := integral(func(h float64) float64 {
		f.setHi(h)
		return f.evidence() - best
	}, hi, lo, p.Hi)
	return best - fixed + math.Log(2*lows*highs/(width*width))
}

// integral is that of e^log over [lo, hi], by steps that grow with the distance from at,
// the maximum.
func integral(log func(float64) float64, at, lo, hi float64) (sum float64) {
	const first, growth, mostSteps = 1e-4, 1.4, 100 // 30 of them are the whole way
	for _, end := range []float64{lo, hi} {
		before, weight := at, 1.0
		step := first * (end - at)
		for range mostSteps {
			if before == end || !(weight > 1e-6) {
				break
			}
			x := before + step
			if math.Abs(x-at) >= math.Abs(end-at) {
				x = end
			}
			next := math.Exp(log(x))
			sum += 0.5 * math.Abs(x-before) * (weight + next)
			before, weight = x, next
			step *= growth
		}
	}
	return sum
}

// leastLog is what a sensor counts that nothing explains.
func (p GainPrior) leastLog() float64 { return -math.Log(p.Hi-p.Lo) - outlierCost }

// flat says nothing of s: the peaks are those of the readings alone.
func (p GainPrior) flat() GainPrior { return GainPrior{Each: p.Each} }

// telling are the sensors in the order of their s, if they determine how s is distributed; nil if
// they do not.
func (p GainPrior) telling(stats []float64, omit []bool) peaks {
	all, blur := p.flat().peaks(stats, omit)
	if len(all) < leastFilled || !(blur < blurred*(p.Hi-p.Lo)) {
		return nil
	}
	all = all.sorted()
	margin := 0.5 * (p.Hi - p.Lo)
	if middle := all[len(all)/2].mode; !(middle > p.Lo-margin && middle < p.Hi+margin) {
		return nil // it is the signals' power that is contradicted
	}
	return all
}

// sorted puts them in the order of their s.
func (p peaks) sorted() peaks {
	slices.SortFunc(p, func(a, b peak) int {
		if a.mode < b.mode {
			return -1
		}
		return 1
	})
	return p
}

// best is the uniform range under which the sensors are likeliest, and its evidence.
func (f *filling) best(p GainPrior) (at [2]float64, evidence float64) {
	all := f.sensors
	mean, variance := all.normal(all.typical())
	half := 1.8 * math.Sqrt(variance) // a uniform distribution of that variance
	starts := [][2]float64{{p.Lo, p.Hi}, {mean - half, mean + half}}
	for _, cut := range []int{0, len(all) / 100, len(all) / 20} {
		starts = append(starts, [2]float64{all[cut].mode, all[len(all)-1-cut].mode})
	}
	evidence = math.Inf(-1)
	for _, start := range starts {
		if r, e := f.bestNear(start[0], start[1]); e > evidence {
			at, evidence = r, e
		}
	}
	return at, evidence
}

// Within is where learning starts for sensors that do not fill the range: the normal
// distribution that fits them best.
func (p GainPrior) Within(stats []float64, omit []bool) Learnable {
	all, _ := p.flat().peaks(stats, omit)
	if len(all) < leastFilled {
		return p
	}
	return learnedNormal(all.normal(all.typical()))
}

// Beyond is where learning starts for sensors that do not lie in the range: a normal
// distribution about its middle, with its width as the standard deviation.
func (p GainPrior) Beyond() GainPrior {
	width := p.Hi - p.Lo
	return NormalAbout(0.5*(p.Lo+p.Hi), width)
}

// Spread is this normal distribution with a variance that is larger by so much.
func (p GainPrior) Spread(variance float64) GainPrior {
	wide := learnedNormal(p.Center, 1/p.Precision+variance)
	if p.Log {
		wide = learnedLogNormal(p.Center, 1/p.Precision+variance/(p.Center*p.Center))
	}
	wide.Tail = p.Tail
	return wide
}

// AsFarAsKnown is a learned normal distribution of gains with a variance of no less than two of the standard errors that the sensors leave it,
// √2/√Σw² with w = 1/(σ²+v): where they are less spread than they are blurred by chance, their gains need not be equal. It is not made larger than most.
func AsFarAsKnown(c Gains, stats []float64, omit []bool, most float64) GainPrior {
	p := c.Gains()
	switch c := c.(type) {
	case OffsetPrior:
		stats = c.allAsGains(stats)
	case DisplacedPrior:
		stats = c.asGains(stats)
	}
	all, _ := p.flat().peaks(stats, omit)
	if p.Log {
		all = all.logarithms()
	}
	variance, unit, information := 1/p.Precision, 1.0, 0.0
	if p.Log {
		unit = p.Center * p.Center // of what Spread adds
	}
	for _, s := range all {
		w := 1 / (variance + s.variance())
		information += w * w
	}
	if least := min(2*math.Sqrt(2/information), most/unit); information > 0 && least > variance {
		return p.Spread((least - variance) * unit)
	}
	return p
}

// Bounding implements [Bounded].
func (p GainPrior) Bounding(c Calibration) Calibration {
	if g, ok := c.(GainPrior); ok {
		return g.Between(p.Lo, p.Hi)
	}
	return c
}

// Between is the distribution with other bounds.
func (p GainPrior) Between(lo, hi float64) GainPrior {
	p.Lo, p.Hi = lo, hi
	return p
}

// learnedNormal is a normal distribution as it is learned: a tail of weight [LikeNoOther] allows outlying gains.
func learnedNormal(mean, variance float64) GainPrior {
	p := NormalAbout(mean, math.Sqrt(variance))
	p.Tail = LikeNoOther
	return p
}

// LogInside is the logarithm of the probability that an s of N(mean, sd²) lies in the
// range, moved out by what is chance, and no less than what an outlier costs.
func (p GainPrior) LogInside(mean, sd float64) (log float64, outside bool) {
	if far := (inside - wallSlack) * sd; p.Hi-mean > far && mean-p.Lo > far {
		return 0, false // nearly always
	}
	table := normalMass()
	mass := table.below((p.Hi-mean)/sd+wallSlack) - table.below((p.Lo-mean)/sd-wallSlack)
	if mass > 1-1e-10 {
		return 0, false
	}
	log = max(math.Log(max(mass, 0)), -outlierCost)
	return log, log < -0.9*outlierCost
}

// filling is the evidence of a range (see [peaks.evidence]) in which no sensor counts for
// less than least. What lies below either end is kept: one end is moved at a time.
type filling struct {
	sensors          peaks   // in the order of their s
	reach            float64 // how far from its s any of them has mass
	least            float64
	belowLo, belowHi []float64 // the mass of each sensor's s below lo, and below hi
	lo, hi           float64
}

func newFilling(sensors peaks, least float64) *filling {
	reach := 0.0
	for _, s := range sensors {
		reach = max(reach, inside/s.inverseSD)
	}
	return &filling{sensors: sensors, reach: reach, least: least, belowLo: make([]float64, len(sensors)), belowHi: make([]float64, len(sensors))}
}

func (f *filling) setLo(lo float64) {
	f.lo = lo
	f.below(f.belowLo, lo)
}

func (f *filling) setHi(hi float64) {
	f.hi = hi
	f.below(f.belowHi, hi)
}

// below sets each sensor's mass below the end. A sensor cannot count for less than e^-9
// of one that is inside, so that differences of masses have digits enough.
func (f *filling) below(mass []float64, end float64) {
	table := normalMass()
	first := sort.Search(len(mass), func(i int) bool { return !(f.sensors[i].mode < end-f.reach) })
	for i := range mass[:first] {
		mass[i] = 1
	}
	for i, s := range f.sensors[first:] {
		if s.mode > end+f.reach {
			clear(mass[first+i:])
			return
		}
		mass[first+i] = table.below((end - s.mode) * s.inverseSD)
	}
}

// evidence is that of the present range. Logarithms are taken of products.
func (f *filling) evidence() float64 {
	if !(f.hi > f.lo) {
		return float64(len(f.sensors)) * f.least
	}
	least, density := math.Exp(f.least), 1/(f.hi-f.lo)
	total, product := 0.0, 1.0
	for i, below := range f.belowHi {
		product *= max((below-f.belowLo[i])*density, least)
		if product < 1e-200 || product > 1e200 {
			total += math.Log(product)
			product = 1
		}
	}
	return total + math.Log(product)
}

func (f *filling) between(lo, hi float64) float64 {
	f.setLo(lo)
	f.setHi(hi)
	return f.evidence()
}

// enough is a gain of evidence below which the search of the range stops.
const enough = 1e-3

// bestNear is the range near [lo, hi] with the largest evidence.
func (f *filling) bestNear(lo, hi float64) (at [2]float64, best float64) {
	if !(hi > lo) {
		return at, math.Inf(-1)
	}
	at, best = [2]float64{lo, hi}, f.between(lo, hi)
	for range 3 {
		reach := 0.3 * (hi - lo)
		ofHi := func(hi float64) float64 {
			f.setHi(hi)
			return f.evidence()
		}
		hi = maximum(ofHi, hi-reach, hi+reach)
		f.setHi(hi)
		ofLo := func(lo float64) float64 {
			f.setLo(lo)
			return f.evidence()
		}
		lo = maximum(ofLo, lo-reach, lo+reach)
		before := best
		if e := f.between(lo, hi); e > best {
			at, best = [2]float64{lo, hi}, e
		}
		if best < before+enough {
			break
		}
	}
	return at, best
}

func (p peaks) underNormal(mean, variance, least float64) float64 {
	total := 0.0
	for _, s := range p {
		v := variance + s.variance()
		d := s.mode - mean
		total += max(-0.5*(math.Log(2*math.Pi*v)+d*(d/v)), least)
	}
	return total
}

// ofTwoKinds is the evidence of the best mixture of two normal distributions of one
// variance, half and half, as from two production runs; the mean and variance of all are given.
// Expectation–maximisation, with s as what is missing.
func (p peaks) ofTwoKinds(mean, variance, least float64) (evidence float64) {
	const steps, ratio = 40, 0.1
	at := [2]float64{mean - math.Sqrt(variance), mean + math.Sqrt(variance)}
	v := ratio * variance
	for range steps {
		evidence = 0
		var weight, first [2]float64
		square := 0.0
		for _, s := range p {
			own := s.variance()
			both, norm := v+own, math.Log(2*math.Pi*(v+own))
			var part [2]float64
			for j, m := range at {
				d := s.mode - m
				part[j] = -0.5 * (d*(d/both) + norm)
			}
			nearer := 0
			if part[1] > part[0] {
				nearer = 1
			}
			top := part[nearer]
			part[nearer], part[1-nearer] = 1, math.Exp(part[1-nearer]-top)
			total := part[0] + part[1]
			here := top + math.Log(0.5*total)
			if !(here > least) {
				evidence += least
				continue
			}
			evidence += here
			for j, m := range at {
				r, gain := part[j]/total, v/both
				d := gain * (s.mode - m)
				weight[j] += r
				first[j] += r * d
				square += r * (d*d + gain*own)
			}
		}
		for j := range at {
			if weight[j] > 0 {
				at[j] += first[j] / weight[j]
			}
		}
		v = max(square/(weight[0]+weight[1]), pointlike*mean*mean)
	}
	return evidence
}

func (s peak) variance() float64 { return 1 / (s.inverseSD * s.inverseSD) }

// typical is the middle and the variance of most sensors, whatever a few do.
func (p peaks) typical() (middle, variance float64) {
	values := make([]float64, len(p))
	for i, s := range p {
		values[i] = s.mode
	}
	slices.Sort(values)
	middle = values[len(values)/2]
	for i, v := range values {
		values[i] = math.Abs(v - middle)
	}
	slices.Sort(values)
	sd := 1.4826 * values[len(values)/2] // of a normal distribution
	return middle, max(sd*sd, pointlike*middle*middle)
}

// normal improves the mean and variance of a normal distribution of s to those that
// explain the sensors best: stationary points of their likelihood.
func (p peaks) normal(mean, variance float64) (m, v float64) {
	m, v = mean, variance
	for range 200 {
		var weights, first, excess, information float64
		for _, s := range p {
			own := s.variance()
			w, d := 1/(v+own), s.mode-m
			if d*d*w > apart*apart {
				continue
			}
			weights += w
			first += w * s.mode
			excess += w * w * (d*d - own)
			information += w * w
		}
		if !(information > 0) {
			return mean, variance
		}
		before := v
		m = first / weights
		v = max(excess/information, pointlike*m*m)
		if math.Abs(v-before) < 1e-9*v {
			break
		}
	}
	return m, v
}

// refitNormal is Refit for a truncated normal or log-normal: its walls play no part.
func (p GainPrior) refitNormal(stats []float64, omit []bool) (next GainPrior, change float64) {
	all, _ := p.flat().peaks(stats, omit)
	if len(all) < 2 {
		return p, 0
	}
	if p.Log {
		return p.refitLogNormal(all)
	}
	before := 1 / p.Precision
	mean, variance := all.normal(p.Center, before)
	weights := 0.0
	for _, s := range all {
		weights += 1 / (variance + s.variance())
	}
	moved := max(math.Abs(mean-p.Center), math.Abs(math.Sqrt(variance)-math.Sqrt(before)))
	next = learnedNormal(mean, variance)
	next.Tail = p.Tail
	return next, moved * math.Sqrt(weights)
}
