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
	Logs     []float64 // M, l
	Variance float64   // v

	known []float64 // M, d
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

// Unequally is a fit that goes on where f ended, and learns the noise of each sensor, with v as readings determine it now. Of Gaussian signals it is f itself; one with sites has the structure of another fit.
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
	next.Unequal.learnVariance(next.noiseSeen())
	return next, next.Solve()
}

// WithNoises gives sensors noise of variances that are known (M), in units in which the mean of s is one. What they have in common is learned until [Fit.BeginGivenNoise]: while signals are unknown, noise stands for them.
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

// NoiseScore is by how many of its standard deviations the evidence rises with v, at v = 0, where all sensors have the same noise: dL/dv = ½ Σ_µ (slope_µ² - d_µ).
func (f *Fit) NoiseScore() float64 {
	seen := f.noiseSeen()
	return (floats.Dot(seen.slopes, seen.slopes) - floats.Sum(seen.known)) / math.Sqrt(2*floats.Dot(seen.known, seen.known))
}

// noiseSeen is what readings say of l (M each): the slopes of the evidence, d, and how many readings have noise of the sensor, which is twice the second part of the slope.
type noiseSeen struct{ slopes, known, counts []float64 }

func (f *Fit) noiseSeen() (n noiseSeen) {
	m := len(f.S)
	n.slopes, n.known, n.counts = make([]float64, m), make([]float64, m), make([]float64, m)
	for mu := range m {
		noise := f.noiseOf(mu)
		for k, g := range f.G.RawRowView(mu) {
			share := noise * f.Inverse.At(mu, k)
			n.slopes[mu] += 0.5 * noise * g * g
			n.counts[mu] += share
			n.known[mu] += 0.5 * share * share
		}
	}
	left := 2 * floats.Sum(n.slopes) / floats.Sum(n.counts)
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

// NoiseVariances are those of the sensors (M).
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
	for i, mu := range at.rows {
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
	for i, mu := range at.rows {
		floats.AddScaled(scaled.Row(i), math.Sqrt(f.ratioOf(mu)), a.Row(i))
	}
	return scaled
}
