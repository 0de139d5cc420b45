package evidence

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"runtime"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/mathext"

	"github.com/calamp/calamp/internal/dense"
	"github.com/calamp/calamp/internal/parallel"
)

// Integrate makes X and C the posterior means and variances of the signals with the gains and the variances Γ integrated out. Gains
// have the given variances about S, to first order. Γ_i is integrated out given all others. An entry whose Γ went to zero would otherwise be known to be zero exactly. The readings say of entry i of all snapshots
// N(x_ik; λ_k, σ). With a density 1/(Γ+σ) of Γ, u = σ/(Γ+σ) has a gamma distribution on (0, 1),
//
//	p(u) ∝ u^(P/2-1) exp(-u Σ_k λ_k²/2σ),   x̂_k = (1 - E u) λ_k,   C_k = (1 - E u) σ + Var(u) λ_k².
func (f *Fit) Integrate(gains []float64) {
	if f.Sparse != nil {
		f.integrateSites()
		return
	}
	for i := range f.shared() {
		switch {
		case i == f.common:
		case f.Mixture != nil:
			for _, family := range f.Families {
				f.mixEntry(family, i)
			}
		case f.Sizes != nil:
			f.sizeEntry(i)
		case f.Correlated != nil:
			f.integrateTurned(i)
		default:
			f.integrate(f.Families[0], i)
		}
	}
	for _, family := range f.Families {
		for _, at := range family.patterns {
			w := f.allColumns(at)
			for _, k := range at.snapshots {
				f.addGainErrors(family.Gamma, at, w, k, gains)
			}
		}
	}
}

func (f *Fit) integrate(a *Family, i int) {
	sum, count := 0.0, 0.0
	for _, k := range a.Snapshots {
		switch sigma := f.Sigma.At(i, k); {
		case sigma == 0:
			return // the readings leave nothing open
		case !math.IsInf(sigma, 1):
			sum += f.Lambda.At(i, k) * f.Lambda.At(i, k) / sigma
			count++
		}
	}
	if count == 0 {
		return
	}
	mean, variance := truncatedGamma(0.5*count, 0.5*sum)
	for _, k := range a.Snapshots {
		if lambda, sigma := f.Lambda.At(i, k), f.Sigma.At(i, k); !math.IsInf(sigma, 1) {
			f.X.Set(i, k, (1-mean)*lambda)
			f.C.Set(i, k, (1-mean)*sigma+variance*lambda*lambda)
		}
	}
}

// addGainErrors adds to C what errors of the gains do to x = Γ Wᵀ A⁻¹ (s∘y).
func (f *Fit) addGainErrors(gamma []float64, at *pattern, w dense.Matrix, k int, gains []float64) {
	moved, done := dense.Scratch(len(f.S), len(at.rows))
	defer done()
	f.follow(moved, at, k)
	for mu, variance := range gains {
		floats.Scale(math.Sqrt(variance), moved.Row(mu))
	}
	for i, square := range squaresOfProduct(moved, w) {
		f.C.Set(i, k, f.C.At(i, k)+gamma[i]*gamma[i]*square)
	}
}

// mixEntry makes the posterior of an entry that of the mixture, given its fields, where all snapshots of a family see it: a mixture again.
func (f *Fit) mixEntry(a *Family, i int) {
	m := f.Mixture
	for _, k := range a.Snapshots {
		if sigma := f.Sigma.At(i, k); math.IsInf(sigma, 1) || sigma == 0 {
			return
		}
	}
	for j, weight := range m.Weight {
		m.responsibilities[j] = math.Log(weight)
	}
	f.sumOver(i, a.Snapshots, m.Variance, m.responsibilities)
}

// truncatedGamma returns the mean and variance of the density u^(a-1) exp(-b u) on (0, 1).
func truncatedGamma(a, b float64) (mean, variance float64) {
	const nearlyFlat, farAway = 1e-6, 1e-290
	if b < nearlyFlat {
		mean = a / (a + 1)
		return mean, a/(a+2) - mean*mean
	}
	p := mathext.GammaIncReg(a, b)
	if p < farAway { // a ≫ b: u is 1
		return 1, 0
	}
	mean = a / b * mathext.GammaIncReg(a+1, b) / p
	square := a * (a + 1) / (b * b) * mathext.GammaIncReg(a+2, b) / p
	return mean, max(0, square-mean*mean)
}

const (
	// LeastForHalves is how many snapshots it takes to fit halves of them.
	LeastForHalves = 4

	halfSteps = 150
)

// beginAt begins a fit of every so many snapshots of another one at what that found, with a variance for every entry.
func (f *Fit) beginAt(from *Fit, first, each int) {
	f.Noise, f.GivenNoise, f.Spread, f.begun = from.Noise, from.GivenNoise, from.Spread, true
	f.common, f.summed = from.common, from.summed
	copy(f.S, from.S)
	square := from.meanSquare()
	for j, family := range f.Families {
		gammas := from.familyOf(first + j*each).Gamma
		if from.Correlated != nil {
			gammas = from.Correlated.Gamma
		}
		for i, gamma := range gammas {
			family.Gamma[i] = gamma
			if from.Mixture == nil {
				family.Gamma[i] += openedBy * square
			}
		}
	}
	if m := from.Mixture; m != nil {
		f.Mixture = newMixture(len(m.Weight))
		copy(f.Mixture.Weight, m.Weight)
		copy(f.Mixture.Variance, m.Variance)
	}
}

// Halves fits both halves of the snapshots by themselves, and compares their gains. Half of their difference is the scatter of s, and
// the difference of s to their mean its bias, since a bias that falls as 1/P is twice as large in halves (Quenouille's jackknife). Halves
// returns the mean of both squares relative to the mean variance of s, which is about one where the model is right. Where it is not, as for signals that are not
// Gaussian, Γ and Δ have fitted themselves to the readings at hand, and the second derivative of the evidence knows nothing of that. It
// is NaN for Gaussian signals with free variances where there are fewer than [LeastForHalves] snapshots, or [LeastIndependent] independent ones; of others with few snapshots it is that of readings that are drawn anew.
func (f *Fit) Halves(ctx context.Context) (ratio float64, err error) {
	_, p := f.read.Dims()
	switch few := f.Sparse != nil || f.Sizes != nil || f.Drawn(); {
	case few && p < LeastForHalves:
		return f.redrawn(ctx)
	case p < LeastForHalves || !few && f.Independent() < LeastIndependent:
		return math.NaN(), nil
	}
	gains, err := f.gainsAgain(ctx, 2, func(half int) *mat.Dense {
		y := mat.NewDense(f.w.Rows, (p+1-half)/2, nil)
		for k := half; k < p; k += 2 {
			for row := range f.w.Rows {
				y.Set(row, k/2, f.read.At(row, k))
			}
		}
		return y
	})
	if err != nil {
		return math.NaN(), err
	}
	variances, err := f.Variances()
	if err != nil {
		return math.NaN(), err
	}
	square, scale := 0.0, floats.Sum(f.S)
	for mu := range f.S {
		scatter := 0.5 * scale * (gains[0][mu] - gains[1][mu])
		bias := f.S[mu] - 0.5*scale*(gains[0][mu]+gains[1][mu])
		square += scatter*scatter + bias*bias
	}
	return square / floats.Sum(variances), nil
}

// gainsAgain are the gains, of sum one, of so many fits to other readings, side by side.
func (f *Fit) gainsAgain(ctx context.Context, count int, readings func(i int) *mat.Dense) ([][]float64, error) {
	gains, errs := make([][]float64, count), make([]error, count)
	parallel.Run(count, runtime.GOMAXPROCS(0), func(i int) {
		fit, err := f.again(ctx, readings(i))
		if errs[i] = err; err == nil {
			gains[i] = fit.S
			floats.Scale(1/floats.Sum(fit.S), fit.S)
		}
	})
	return gains, errors.Join(errs...)
}

// again is a fit to other readings of the same kind, from the start.
func (f *Fit) again(ctx context.Context, y *mat.Dense) (*Fit, error) {
	w := f.w
	if f.summed {
		w = w.Part(0, w.Rows, 0, w.Columns-1)
	}
	fit := f.afresh(w, y)
	if f.common >= 0 || f.Sparse != nil && f.Sparse.common {
		if begun := fit.Common(); begun != nil {
			fit = begun
		}
	}
	if _, err := fit.Learn(ctx, halfSteps); err != nil {
		return nil, err
	}
	scanned := f.Correlated.InOrder()
	for _, places := range []bool{false, true} {
		if scanned && !places || f.Sizes != nil && f.Sizes.Places != places || f.Sparse != nil && !f.Sparse.Scaled() { // entries as they are have no sizes to begin with
			continue
		}
		sized := fit.Sized(places)
		if sized == nil {
			continue
		}
		if _, err := sized.Learn(ctx, mostSized); err != nil {
			return nil, err
		}
		if scanned || f.Sizes != nil || sized.Likelier(fit) {
			fit = sized
		}
	}
	var turned *Fit
	switch {
	case scanned:
		turned = fit.Scanned(f.Correlated.spectrum.above)
	case f.Correlated != nil:
		turned = fit.Correlate()
	}
	if turned != nil {
		fit = turned
		if _, err := fit.Learn(ctx, halfSteps); err != nil {
			return nil, err
		}
	}
	switch {
	case f.Sparse != nil:
		fit = fit.Sparsely(f.Sparse.Scaled(), fit.S, mostSites)
		if _, err := fit.Learn(ctx, mostSites); err != nil {
			return nil, err
		}
	case f.Mixture != nil:
		fit = fit.Mix(len(f.Families) > 1)
		if _, err := fit.Learn(ctx, halfSteps); err != nil {
			return nil, err
		}
	}
	return fit, nil
}

// redraws is how many times readings are drawn anew.
const redraws = 3

// redrawn is the same as Halves of too few snapshots: readings are drawn from the model as it was found, with its signals, gains and noise, and the mean square of what their fits are off by
// takes the place of differences between halves (the parametric bootstrap: B. Efron, "Bootstrap methods", 1979).
func (f *Fit) redrawn(ctx context.Context) (ratio float64, err error) {
	m, p := f.read.Dims()
	variances, err := f.Variances()
	if err != nil {
		return math.NaN(), err
	}
	square, scale, expected := 0.0, floats.Sum(f.S), f.expected()
	gains, err := f.gainsAgain(ctx, redraws, func(draw int) *mat.Dense {
		random := rand.New(rand.NewPCG(uint64(draw), 0))
		y := mat.NewDense(m, p, nil)
		y.Apply(func(row, k int, read float64) float64 {
			mu := f.sensorOf(row)
			noise := math.Sqrt(f.noiseOf(mu)) * random.NormFloat64()
			if math.IsNaN(read) {
				return read
			}
			return (expected.At(row, k) + noise) / f.S[mu]
		}, f.read)
		return y
	})
	if err != nil {
		return math.NaN(), err
	}
	for _, drawn := range gains {
		for mu, s := range drawn {
			square += (scale*s - f.S[mu]) * (scale*s - f.S[mu]) / redraws
		}
	}
	return square / floats.Sum(variances), nil
}

// expected is W x of what was found (M×P), with the offsets of corrected readings.
func (f *Fit) expected() *mat.Dense {
	m, p := f.read.Dims()
	z := mat.NewDense(m, p, nil)
	z.Apply(func(row, k int, _ float64) (sum float64) {
		for i := range f.Entries() {
			x, _, _, _ := f.Entry(i, k)
			sum += f.w.At(row, i) * x
		}
		if f.offset() {
			sum += f.Offsets.B[f.sensorOf(row)]
		}
		return sum
	}, z)
	return z
}
