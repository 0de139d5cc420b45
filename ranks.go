package calamp

import (
	"math"
	"math/cmplx"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/mat"

	"github.com/calamp/calamp/internal/amp"
	"github.com/calamp/calamp/prior"
)

// SInterval returns for every sensor the bounds between which s lies with
// probability level (in (0, 1), half of the rest on either side), beside the
// uncertainty of the global scale: common to all sensors, it is ScaleSD and
// stays out of these. It is nil for a result without Calibration.
func (r *Result) SInterval(level float64) (lo, hi []float64) {
	if r.Calibration == nil {
		return nil, nil
	}
	return r.Calibration.Interval(level)
}

// SIntervalRaw widens the bounds of SInterval by the uncertainty of the global
// scale, as independent errors add: s as it is lies between these. They are s_lo and
// s_hi in a result file, and those of SInterval s_rel_lo and s_rel_hi.
func (r *Result) SIntervalRaw(level float64) (lo, hi []float64) {
	lo, hi, _, _ = r.SIntervals(level)
	return lo, hi
}

// SIntervals are the bounds of SIntervalRaw and of SInterval, which take as long as one of
// them.
func (r *Result) SIntervals(level float64) (lo, hi, relLo, relHi []float64) {
	relLo, relHi = r.SInterval(level)
	lo, hi = slices.Clone(relLo), slices.Clone(relHi)
	least, most := r.ScaleInterval(level)
	for mu, s := range r.S[:len(lo)] {
		lo[mu] = max(0, s-math.Hypot(s-lo[mu], s-s*least))
		hi[mu] = s + math.Hypot(hi[mu]-s, s*most-s)
	}
	return lo, hi, relLo, relHi
}

// ScaleInterval returns the factors between which, with probability level, lies the one by
// which X and S would have to be multiplied for the global scale to be right. They need not
// lie evenly about 1: at small noise the scale is held on one side by the largest gain.
func (r *Result) ScaleInterval(level float64) (lo, hi float64) {
	rest := 0.5 * (1 - level)
	p := r.scale()
	return math.Exp(p.Quantile(rest)), math.Exp(p.Quantile(1 - rest))
}

// ScaleRank is where a true global scale, relative to that of X and S (see [Metrics]), lies in its
// posterior: the probability of a smaller one.
func (r *Result) ScaleRank(scale float64) float64 { return r.scale().CDF(math.Log(scale)) }

// scale is what is known of the logarithm of the global scale: where Solve made no distribution, as for
// the result of a stream, a normal one of ScaleSD.
func (r *Result) scale() amp.Placement {
	if r.placement.SD == 0 {
		return amp.Placement{SD: r.ScaleSD}
	}
	return r.placement
}

// Ranks returns where the truth lies in its posterior: the probability of a
// smaller value, for each entry of X (signal by signal, P×N) and each sensor,
// after the truth has been brought to the result's global scale. Where the
// posterior has an atom at the truth, as at zero, a random place within it is
// taken. With a right posterior ranks are uniform on [0, 1] (Talts, Betancourt,
// Simpson, Vehtari, Gelman 2018, "Validating Bayesian inference algorithms with
// simulation-based calibration").
//
// Of complex signals both parts are ranked, and of complex gains the amplitudes; how their phases are known
// is in [Result.PhaseIntervals].
//
// A part is nil where the truth is not known, x also where the prior is no
// [prior.Distribution] or covariances are full, and s where all of it is known beforehand.
func (r *Result) Ranks(truth Truth, rng *rand.Rand) (x, s []float64) {
	m := r.Score(truth)
	if truth.X != nil && r.field.prior != nil {
		x = r.field.ranks(truth.X, cmplx.Rect(m.Scale, m.PhaseShift), rng)
	}
	if c := r.Calibration; truth.S != nil && c != nil {
		if lo, hi := c.Prior.Range(); lo == hi {
			return x, nil
		}
		s = make([]float64, len(truth.S))
		for mu, s0 := range truth.S {
			s[mu] = c.Prior.CDF(c.Of(mu), s0/m.Scale)
		}
	}
	return x, s
}

// field is what the readings said of the signals: N(x; λ, Σ), P×N.
type field struct {
	prior         prior.Prior // nil where its posterior has no distribution functions
	amplitude     []float64   // P; nil where all signals have one variance
	lambda, sigma []float64
}

// parted is a complex prior whose posterior has a distribution function, of each part.
type parted interface {
	PartCDF(x, lambda, other, sigma float64) (below, upTo float64)
}

// distribution is p where its posterior has distribution functions, and else nil.
func distribution(p prior.Prior) prior.Prior {
	_, whole := p.(prior.Distribution)
	_, parts := p.(parted)
	if !whole && !parts {
		return nil
	}
	return p
}

func (f *field) ranks(truth *mat.Dense, factor complex128, rng *rand.Rand) []float64 {
	n, _ := truth.Dims()
	out := make([]float64, len(f.lambda))
	for j := range out {
		c := 1.0
		if f.amplitude != nil {
			c = f.amplitude[j/n]
		}
		below, upTo := f.cdf(truth, factor, j, c)
		out[j] = below + rng.Float64()*(upTo-below)
	}
	return out
}

// cdf is that of entry j at the truth, for a signal that is c times as large as the prior has it.
func (f *field) cdf(truth *mat.Dense, factor complex128, j int, c float64) (below, upTo float64) {
	n, _ := truth.Dims()
	i, k := j%n, j/n
	lambda, sigma := f.lambda[j]/c, f.sigma[j]/(c*c)
	p, complexParts := f.prior.(parted)
	if !complexParts {
		whole := prior.At(f.prior, i).(prior.Distribution) // which those of a varied one are
		return whole.CDF(truth.At(i, k)/real(factor)/c, lambda, sigma)
	}
	x := complex(truth.At(i, k-k%2), truth.At(i, k-k%2+1)) / factor / complex(c, 0)
	if k%2 == 0 {
		return p.PartCDF(real(x), lambda, f.lambda[j+n]/c, sigma)
	}
	return p.PartCDF(imag(x), lambda, f.lambda[j-n]/c, sigma)
}
