package evidence

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/stat"

	"github.com/calamp/calamp/internal/dense"
)

// Unequal is noise that differs from sensor to sensor, Δ_µ = Δ exp(l_µ) with l_µ ~ N(0, v). l is at its maximum, and integrated out to second order; v is learned. Along l_µ the evidence has the slope and the information
//
//	½ Δ_µ Σ_k G_µk² - ½ c Δ_µ Σ_k (A_k⁻¹)_µµ,   d_µ = ½ Σ_k (c Δ_µ (A_k⁻¹)_µµ)²,
//
// where c is the part of the traces that gains leave: at the best Δ these slopes have no sum. While signals are unknown, what is wrong with them is taken for noise of single sensors. So a fit begins with equal noise.
type Unequal struct {
	Logs     []float64 // l of each sensor
	Variance float64   // v

	known []float64 // d of each
	fixed bool      // l are those of another fit
	cost  float64   // of l in the evidence of that
	given float64   // Δ, where l are given
}

const (
	firstUnequal = 0.1  // v at first
	leastUnequal = 1e-3 // and the least: noise is then the same to 3 %
	mostUnequal  = 4    // and the most, a factor of e² either way
	mostLouder   = 1    // of l in a step
)

// Unequally is a fit that goes on where f ended, and learns the noise of each sensor from what it has, with v as readings determine it now. Of Gaussian signals it is f itself; one with sites has the structure of another fit.
func (f *Fit) Unequally(like *Fit) (*Fit, error) {
	next := f
	if f.Sparse != nil {
		if by := f.Sparse.scaledBy; by != nil {
			like = by
		}
		next = like.SparselyAs(f, f, mostSites)
		if err := next.Solve(); err != nil {
			return nil, err
		}
	}
	next.Unequal = &Unequal{Logs: make([]float64, len(f.S)), Variance: firstUnequal}
	if f.Unequal != nil {
		copy(next.Unequal.Logs, f.Unequal.Logs)
	}
	next.Unequal.learnVariance(next.noiseSeen())
	return next, next.Solve()
}

// WithNoises gives sensors noise of variances that are known, in units in which the mean of s is one. What they have in common is learned until [Fit.BeginGivenNoise]: while signals are unknown, noise stands for them.
func (f *Fit) WithNoises(variances []float64) {
	f.Unequal = &Unequal{fixed: true}
	for _, v := range variances {
		f.Unequal.Logs = append(f.Unequal.Logs, math.Log(max(v, leastNoise*f.power())))
	}
	middle := stat.Mean(f.Unequal.Logs, nil)
	floats.AddConst(-middle, f.Unequal.Logs)
	f.Unequal.given = math.Exp(middle)
}

// BeginGivenNoise makes the noise the one that is known.
func (f *Fit) BeginGivenNoise() {
	f.GivenNoise = f.Unequal.given
	if f.Sparse != nil { // sites move again
		f.Sparse.rested, f.Sparse.most = 0, mostSites
	}
}

// NoiseMisfit is what readings say of noise variances Δ_µ that were given of each sensor.
type NoiseMisfit struct {
	Factor, SD float64 // the likeliest factor that all have in common, and the standard error of its logarithm
	Spread     float64 // the standard deviation of what logarithms differ by besides, that of the largest likelihood
	Score      float64 // by how many of its standard deviations the evidence rises with the square of that, at zero
}

// MisfitOfNoise is that of variances that are known, while their common factor is learned.
func (f *Fit) MisfitOfNoise() NoiseMisfit {
	found := f.noiseSeen().misfit()
	found.Factor = f.Noise / f.Unequal.given
	return found
}

// MisfitOfNoise is that of M sensors with P readings each, of which at gives the noise variance, g and -∂g. The factor is one step of Fisher scoring towards the likeliest.
func MisfitOfNoise(m, p int, at func(mu, k int) (noise, g, slope float64)) NoiseMisfit {
	return seenOfNoise(m, p, at).misfit()
}

func (n noiseSeen) misfit() NoiseMisfit {
	ratios := Unequal{Logs: make([]float64, len(n.known)), Variance: firstUnequal}
	ratios.learnVariance(n)
	return NoiseMisfit{Factor: math.Exp(n.common.log), SD: math.Sqrt(n.common.spread), Spread: math.Sqrt(ratios.Variance), Score: n.score()}
}

// NoiseScore is by how many of its standard deviations the evidence rises with v, at v = 0, where sensors have the noise that they have now.
func (f *Fit) NoiseScore() float64 { return f.noiseSeen().score() }

// score is that of v: dL/dv = ½ Σ_µ (slope_µ² - d_µ).
func (n noiseSeen) score() float64 {
	return (floats.Dot(n.slopes, n.slopes) - floats.Sum(n.known)) / math.Sqrt(2*floats.Dot(n.known, n.known))
}

// noiseSeen is what readings say of l of each sensor: the slopes of the evidence, d, and how many readings have noise of the sensor, which is twice the second part of the slope.
type noiseSeen struct {
	slopes, known, counts []float64
	common                size // the same of what all l have in common
}

func (f *Fit) noiseSeen() noiseSeen {
	_, p := f.G.Dims()
	variances := f.NoiseVariances()
	return seenOfNoise(len(f.S), f.each*p, func(mu, j int) (noise, g, inverse float64) {
		return variances[mu], f.rowsOf(f.G, mu)[j], f.rowsOf(f.Inverse, mu)[j]
	})
}

// seenOfNoise is that of M sensors with P readings each, of which at gives Δ_µ, G and the diagonal of A⁻¹.
func seenOfNoise(m, p int, at func(mu, k int) (noise, g, inverse float64)) (n noiseSeen) {
	n.slopes, n.known, n.counts = make([]float64, m), make([]float64, m), make([]float64, m)
	for mu := range m {
		for k := range p {
			noise, g, inverse := at(mu, k)
			share := noise * inverse
			n.slopes[mu] += 0.5 * noise * g * g
			n.counts[mu] += share
			n.known[mu] += 0.5 * share * share
		}
	}
	count := floats.Sum(n.counts)
	n.common = sizeFrom(0, 1, floats.Sum(n.slopes)-0.5*count, floats.Sum(n.known), count)
	left := 2 * floats.Sum(n.slopes) / count
	floats.Scale(left, n.counts)
	floats.Scale(left*left, n.known)
	floats.AddScaled(n.slopes, -0.5, n.counts)
	return n
}

// learnVariance makes v the one of the largest likelihood of what is seen of l.
func (u *Unequal) learnVariance(seen noiseSeen) {
	var found logSizes
	for mu, d := range seen.known {
		if d > leastKnown {
			found = append(found, sizeFrom(mu, math.Exp(u.Logs[mu]), seen.slopes[mu], d, seen.counts[mu]))
		}
	}
	u.known, u.Variance = seen.known, min(max(found.about(u.Variance), leastUnequal), mostUnequal)
}

// stepUnequal takes a step of all l, and of v. It reports whether v has come to rest.
func (f *Fit) stepUnequal() (rests bool) {
	u := f.Unequal
	if u == nil || u.fixed || f.held {
		return true
	}
	seen, before := f.noiseSeen(), u.Variance
	u.learnVariance(seen)
	for mu, slope := range seen.slopes {
		d := seen.known[mu] + max(0, slope) // that which is seen is larger where residuals are
		rise := (slope - u.Logs[mu]/u.Variance) / (d + 1/u.Variance)
		u.Logs[mu] += min(max(rise, -mostLouder), mostLouder)
	}
	return math.Abs(math.Log(u.Variance/before)) < noiseRests
}

// about is the variance of logarithms about zero of the largest likelihood, by steps of Fisher scoring.
func (t logSizes) about(variance float64) float64 {
	for range lawSteps {
		slope, information := 0.0, 0.0
		for _, a := range t {
			weight := 1 / (variance + a.spread)
			slope += weight * (a.log*a.log*weight - 1)
			information += weight * weight
		}
		if information > 0 {
			variance = max(variance+slope/information, leastPart*variance)
		}
	}
	return variance
}

// costOfUnequal is what the prior of l, and that v is found, take of the evidence.
func (f *Fit) costOfUnequal() float64 {
	if f.Unequal == nil {
		return 0
	}
	return f.Unequal.costs()
}

func (u *Unequal) costs() float64 {
	if u.fixed {
		return u.cost
	}
	cost := 0.5 * math.Log(float64(len(u.Logs)))
	for mu, l := range u.Logs {
		cost += 0.5*l*l/u.Variance + 0.5*math.Log1p(u.Variance*u.known[mu])
	}
	return cost
}

func (u *Unequal) clone() *Unequal {
	if u == nil {
		return nil
	}
	next := *u
	next.Logs, next.known = slices.Clone(u.Logs), slices.Clone(u.known)
	return &next
}

// asFound is the same noise, no longer learned.
func (u *Unequal) asFound() *Unequal {
	next := u.clone()
	if next != nil {
		next.fixed, next.cost = true, u.costs()
	}
	return next
}

// ratioOf is Δ_µ/Δ.
func (f *Fit) ratioOf(mu int) float64 {
	if f.Unequal == nil {
		return 1
	}
	return math.Exp(f.Unequal.Logs[mu])
}

// noiseOf is Δ_µ.
func (f *Fit) noiseOf(mu int) float64 { return f.Noise * f.ratioOf(mu) }

// NoiseVariances are those of the sensors.
func (f *Fit) NoiseVariances() []float64 {
	noise := make([]float64, len(f.S))
	for mu := range noise {
		noise[mu] = f.noiseOf(mu)
	}
	return noise
}

// noisesOf are those of the rows of a pattern.
func (f *Fit) noisesOf(at *pattern) []float64 {
	noise := make([]float64, len(at.rows))
	for i, mu := range at.sensors {
		noise[i] = f.noiseOf(mu)
	}
	return noise
}

// byNoise is a matrix of the rows of a pattern with each times √(Δ_µ/Δ), so that sums of squares over rows are those by which the evidence changes with Δ.
func (f *Fit) byNoise(at *pattern, a dense.Matrix) dense.Matrix {
	if f.Unequal == nil {
		return a
	}
	scaled := dense.New(a.Rows, a.Columns)
	for i, mu := range at.sensors {
		floats.AddScaled(scaled.Row(i), math.Sqrt(f.ratioOf(mu)), a.Row(i))
	}
	return scaled
}
