package amp

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/mat"

	"github.com/calamp/calamp/operator"
	"github.com/calamp/calamp/prior"
)

// widening mends the error bars of correlated signals. AMP takes what P signals
// say of a gain for independent. Where they share a support, it errs on the same
// entries in all of them, and these errors do not average over the signals. No
// system of equations around the fixed point knows of entries that were never found, so
// the correction is empirical. The P×P correlation of the calibrated readings has a
// leading eigenvalue with the share ℓ of the trace; independent signals reach
// ℓ₀ = (1+√(P/M))²/P (Marchenko and Pastur), and with h the mean of V/(V+Δ)
//
//	z = h (ℓ-ℓ₀)/(1-ℓ),   κ = 1 + z/2 + 0.004 P z² + (z/8)⁶.
//
// What readings say of s counts 1/κ. It was fitted to Gauss–Bernoulli signals with a
// common support (docs/log/validation.md). To a signal the errors of the gains are noise of
// variance Cˢy² beside V+Δ, and its variances grow as the sum of both does.
//
// Of signals that share their rows, or are one scene, joint rows have true error bars without this, and `LongTrustCorrelated` is the same without it where they are tried. What needs it are runs that
// cannot take rows together. With --matrix-error auto scenes that change by 10 % have s inside 94 and 69 %, and x 31 and
// 26 %, without it and 100 %, and 82 and 87 %, with it (two draws). By vector AMP, where it is asked for, 95 % intervals of s of scenes that change by 10 % or not at all cover 10 to 46 % without it, and 92 to 96 % with it.
//
// Gaussian signals have no entries that were never found: where sensors have several rows, the joint density of gains and signals ([sharedBars]) has error bars of gains without this. Behind a
// compressive imager information was divided by 99, and errors were a tenth to a third of those stated in six simulated scenes with .9 of the power in common; without it .8 to 1.1 (docs/log/sensors.md).
type widening struct {
	Idle
	share  float64 // ℓ
	factor float64 // κ
}

const (
	// leastWidening is the κ below which error bars are left as they are: by chance
	// independent signals reach 1.005.
	leastWidening = 1.02

	// mostShare is the ℓ above which nothing tells gains and signals apart: the
	// gains are known no better than beforehand.
	mostShare = 0.98
)

// Widening is what was done to error bars because signals are correlated: their
// variances were multiplied by factor, +Inf where nothing is known beyond the prior;
// share is the part of the calibrated readings' power in their leading common pattern.
func (s *Solver) Widening() (share, factor float64) {
	if w, ok := PartOf[*widening](s); ok {
		return w.share, w.factor
	}
	return 0, 1
}

// Begin implements [Part].
func (w *widening) Begin(*Solver) { w.share, w.factor = 0, 1 }

// Report implements [Part].
func (w *widening) Report(s *Solver) {
	e := s.State
	w.share, w.factor = e.commonPattern()
	if !(w.factor > leastWidening) {
		w.factor = 1
		return
	}
	before := e.meanSquareOf(e.SVar)
	e.calibration.Carry(e.Stats, 1/w.factor, 1) // what is said of offsets or phases, too
	if known := e.offsets(); known != nil {
		known.Posteriors(e.S, e.SVar, e.Stats)
		known.Offsets(e.O, e.OVar, e.Stats)
	} else {
		e.calibration.Posteriors(make([]float64, e.M), e.SVar, e.Stats) // the gains stay those of the signals
	}
	noise := e.meanNoise()
	factor := (noise + e.meanSquareOf(e.SVar)) / (noise + before)
	for k := range e.P {
		own := e.PriorOf(k)
		for i := range e.N {
			c := &e.C[k*e.N+i]
			*c = max(*c, min(*c*factor, prior.At(own, i).Variance()))
		}
	}
}

// alwaysGaussian reports whether all entries are Gaussian under p, and stay so while it is learned.
func alwaysGaussian(p prior.Prior) bool {
	switch p := p.(type) {
	case prior.GaussBernoulli:
		return p.Density == 1 && p.Learn&prior.Density == 0
	case prior.Groups:
		zero := func(g prior.GaussBernoulli) bool { return g.Density < 1 }
		return p.Learn&prior.Density == 0 && !slices.ContainsFunc(p.Kinds(), zero)
	}
	return false
}

// commonPattern has ℓ and κ.
func (s *State) commonPattern() (share, factor float64) {
	if s.columns == 2 {
		return s.commonPatternComplex()
	}
	z := make([]float64, len(s.Y))
	s.NovelReadings(z)
	share = leadingShare(z, s.Each)
	return share, widthOf(share, float64(s.Each), float64(s.M), s.unexplained())
}

// commonPatternComplex has those of complex signals. Readings serve as they are, since the product of one with the conjugate of
// another of its sensor does not know the phase of the gain.
func (s *State) commonPatternComplex() (share, factor float64) {
	z := make([]float64, 0, 2*len(s.Y))
	for mu := range s.M {
		y := s.Y[mu*s.Each : (mu+1)*s.Each]
		if s.OutOfOrder(mu) || slices.ContainsFunc(y, math.IsNaN) {
			continue
		}
		z = append(z, y...)
		for k := 0; k < s.Each; k += 2 { // i times the row: so the correlation of real numbers is that of complex ones, twice
			z = append(z, -y[k+1], y[k])
		}
	}
	share = 2 * leadingShare(z, s.Each)
	return share, widthOf(share, float64(s.Each/2), float64(max(1, len(z)/(2*s.Each))), s.unexplained())
}

// widthOf is κ.
func widthOf(share, p, m, unexplained float64) float64 {
	if share > mostShare {
		return math.Inf(1)
	}
	chance := 1 + math.Sqrt(p/m)
	z := unexplained * max(0, share-chance*chance/p) / (1 - share)
	return 1 + z/2 + 0.004*p*z*z + math.Pow(z/8, 6)
}

// meanNoise is the mean of V+Δ over all readings, and meanSquareOf that of vy² for a
// number v of every sensor.
func (s *State) meanNoise() float64 {
	return s.meanOf(s.Doubt)
}

func (s *sensorState) meanSquareOf(v []float64) float64 {
	return s.meanOf(func(j int) float64 { return v[s.SensorOf(j)] * s.Reading(j) * s.Reading(j) })
}

// meanOf is the mean over the readings j that are present, of sensors in order.
func (s *sensorState) meanOf(value func(j int) float64) float64 {
	total, count := 0.0, 0.0
	for j, y := range s.Y {
		if !math.IsNaN(y) && s.Broken[s.SensorOf(j)] <= 0.5 {
			total += value(j)
			count++
		}
	}
	return total / max(1, count)
}

// unexplained is the mean of V/(V+Δ): the part of the residuals that is the
// signals' error.
func (s *State) unexplained() float64 {
	return s.meanOf(func(j int) float64 { return s.V[j] / max(s.Doubt(j), math.SmallestNonzeroFloat64) })
}

// NovelReadings writes the calibrated readings ŝy without W times the prior's mean,
// which is known: M×P, 0 where there is no reading of a sensor in order.
func (s *State) NovelReadings(z []float64) {
	expected := s.expected()
	for j, y := range s.Y {
		mu := s.SensorOf(j)
		z[j] = 0
		if math.IsNaN(y) || s.OutOfOrder(mu) {
			continue
		}
		z[j] = s.S[mu] * s.Reading(j)
		if expected != nil {
			z[j] -= expected[j/s.P]
		}
	}
}

// expected is W times the prior's mean, a number a row; nil where that is zero, or cannot be had.
func (s *State) expected() []float64 {
	if v, ok := s.model.Prior.(prior.Varied); ok {
		means, z := make([]float64, s.N), make([]float64, s.Rows())
		for i := range means {
			means[i] = v.At(i).Mean()
		}
		if operator.Mul(z, s.W, means) != nil { // the products of iterations fail, too
			return nil
		}
		return z
	}
	mean := s.model.Prior.Mean() * float64(s.N)
	if mean == 0 {
		return nil
	}
	means, err := operator.MeansOf(s.W, s.Threads)
	if err != nil { // as above
		return nil
	}
	z := make([]float64, s.Rows())
	for mu, row := range means.Rows {
		z[mu] = row * mean
	}
	return z
}

// leadingShare is the part of the trace that the largest eigenvalue has of the
// correlation of the p columns of z.
func leadingShare(z []float64, p int) float64 {
	correlation := blas64.Symmetric{N: p, Stride: p, Uplo: blas.Upper, Data: make([]float64, p*p)}
	blas64.Syrk(blas.Trans, 1, blas64.General{Rows: len(z) / p, Cols: p, Stride: p, Data: z}, 0, correlation)
	dense, trace := mat.NewSymDense(p, nil), 0.0
	for k := range p {
		for l := k; l < p; l++ {
			if d := correlation.Data[k*p+k] * correlation.Data[l*p+l]; d > 0 {
				dense.SetSym(k, l, correlation.Data[k*p+l]/math.Sqrt(d))
			}
		}
		trace += dense.At(k, k)
	}
	var eigen mat.EigenSym
	if !(trace > 0) || !eigen.Factorize(dense, false) {
		return 0
	}
	return slices.Max(eigen.Values(nil)) / trace
}
