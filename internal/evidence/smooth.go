package evidence

import (
	"context"
	"math"
	"runtime"
	"slices"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"github.com/calamp/calamp/internal/dense"
	"github.com/calamp/calamp/internal/smooth"
)

// Smooth is a prior of gains of which a part is smooth along the rows of W, as under vignetting: s - 1 ~ N(0, K), K = Spread² ((1-p) 1 + p C), and C is Matérn's correlation less what all gains have in common. Under white
// gains each place of a smooth factor costs as much as any other, and scenes, whose entries are free, take that factor: they are darker at their edges, and gains too even.
type Smooth struct {
	Part float64 // p, of the mean variance of gains

	waves   dense.Matrix // M×r, orthonormal: eigenvectors of C that are more than rounding
	powers  []float64    // r, their eigenvalues, of sum M
	inverse dense.Matrix // ((1-p) 1 + p C)⁻¹, both triangles
	logDet  float64      // of (1-p) 1 + p C
}

const (
	// lengthOfGains is that of Matérn's correlation, in numbers of rows: from the middle of a detector to its ends. Shorter waves have the part that its spectrum gives them, 1/k⁶.
	lengthOfGains = 0.5

	firstPart, mostPart = 0.5, 1 - 1e-4
	leastWave           = 1e-8 // an eigenvalue, relative to the largest one
	partSteps           = 30   // of p and the spread, at given gains
)

// smooth reports whether gains have a prior by now, and a smooth part.
func (f *Fit) smooth() bool { return f.Smooth != nil && f.Spread > 0 }

// newSmooth is the prior of m gains; nil for one alone.
func newSmooth(m int) *Smooth {
	rows := make([]float64, m)
	for mu := range rows {
		rows[mu] = float64(mu)
	}
	places, err := smooth.At(rows, 1)
	if err != nil {
		return nil
	}
	data, r := places.Columns(lengthOfGains * float64(m))
	phi, gram := mat.NewDense(m, r, data), mat.NewSymDense(r, nil)
	for j := range r { // what all have in common is the scale
		column := mat.Col(nil, j, phi)
		floats.AddConst(-floats.Sum(column)/float64(m), column)
		phi.SetCol(j, column)
	}
	gram.SymOuterK(1, phi.T())
	var eigen mat.EigenSym
	if !eigen.Factorize(gram, true) {
		return nil
	}
	var vectors, waves mat.Dense
	eigen.VectorsTo(&vectors)
	waves.Mul(phi, &vectors)
	powers, first := eigen.Values(nil), 0 // from the least
	for powers[first] < leastWave*powers[r-1] {
		first++
	}
	s := &Smooth{waves: dense.New(m, r-first), powers: powers[first:]}
	for i := range m {
		for j, power := range s.powers {
			s.waves.Row(i)[j] = waves.At(i, first+j) / math.Sqrt(power)
		}
	}
	floats.Scale(float64(m)/floats.Sum(s.powers), s.powers)
	return s.with(firstPart)
}

// anew is the same prior before any gains are known.
func (s *Smooth) anew() *Smooth {
	if s == nil {
		return nil
	}
	return s.with(firstPart)
}

// with is the same prior with another part p: with QΛQᵀ the waves and their powers, its inverse is 1/(1-p) - Q diag(1/(1-p) - 1/(1-p+pλ)) Qᵀ.
func (s *Smooth) with(part float64) *Smooth {
	m, white := s.waves.Rows, 1-part
	next := &Smooth{Part: part, waves: s.waves, powers: s.powers, inverse: dense.New(m, m)}
	next.logDet = float64(m-len(s.powers)) * math.Log(white)
	roots := make([]float64, len(s.powers))
	for j, power := range s.powers {
		next.logDet += math.Log(white + part*power)
		roots[j] = math.Sqrt(1/white - 1/(white+part*power))
	}
	scaled, done := dense.Scratch(m, len(roots))
	defer done()
	for i := range m {
		next.inverse.Row(i)[i] = 1 / white
		floats.MulTo(scaled.Row(i), roots, s.waves.Row(i))
	}
	dense.AddProduct(next.inverse, -1, scaled, scaled.T(), dense.Lower, runtime.GOMAXPROCS(0))
	dense.Mirror(next.inverse)
	return next
}

// learnSmooth moves the spread of gains, and its smooth part, to the maximum of the evidence at their present posterior.
func (f *Fit) learnSmooth() {
	squares, total, err := f.squaresAlong()
	if err != nil {
		return
	}
	f.Smooth, f.Spread = f.Smooth.learned(squares, total, f.Spread)
}

// learned is the prior of gains whose mean squares are those along waves (r), of the trace total in all. With v and u the variances of the white and the smooth part, the evidence is largest where
// Σ t_j/(v+uλ_j)² = Σ 1/(v+uλ_j), and the same with λ_j; their steps never lower it, as those of Γ and Δ do not (see [Fit.improve]).
func (s *Smooth) learned(squares []float64, total, spread float64) (next *Smooth, sd float64) {
	white, smooth := spread*spread*(1-s.Part), spread*spread*s.Part
	rest, others := max(total-floats.Sum(squares), 0), float64(s.waves.Rows-len(squares))
	for range partSteps {
		ofWhite, whites, ofSmooth, smooths := rest/(white*white), others/white, 0.0, 0.0
		for j, square := range squares {
			precision := 1 / (white + smooth*s.powers[j])
			ofWhite, whites = ofWhite+square*precision*precision, whites+precision
			ofSmooth, smooths = ofSmooth+s.powers[j]*square*precision*precision, smooths+s.powers[j]*precision
		}
		white = max(white*math.Sqrt(ofWhite/whites), leastSpread*leastSpread)
		smooth = max(smooth*math.Sqrt(ofSmooth/smooths), leastSpread*leastSpread)
	}
	return s.with(min(smooth/(smooth+white), mostPart)), math.Sqrt(smooth + white)
}

// squaresAlong are the mean squares of s - 1 along waves, and their trace over all directions.
func (f *Fit) squaresAlong() (squares []float64, total float64, err error) {
	covariance, err := f.covarianceOfGains()
	if err != nil {
		return nil, 0, err
	}
	off := offOne(f.S)
	for mu, v := range off {
		total += v*v + covariance.At(mu, mu)
		floats.AddScaled(covariance.Row(mu)[:mu+1], v, off[:mu+1])
	}
	dense.Mirror(covariance)
	waves := f.Smooth.waves
	moved, done := dense.Scratch(waves.Rows, waves.Columns)
	defer done()
	dense.Product(moved, covariance, waves)
	squares = make([]float64, waves.Columns)
	for mu := range off {
		for j, v := range moved.Row(mu) {
			squares[j] += v * waves.Row(mu)[j]
		}
	}
	return squares, total, nil
}

// costOfSmooth is what it costs the evidence that the smooth part is found: Fisher's information on the logarithm of its variance is ½ Σ (pλ/(1-p+pλ))².
func (f *Fit) costOfSmooth() float64 {
	if f.Smooth == nil {
		return 0
	}
	determined, part := 0.0, f.Smooth.Part
	for _, power := range f.Smooth.powers {
		known := part * power / (1 - part + part*power)
		determined += known * known
	}
	return occam(determined)
}

// surelySmooth is by how much the evidence must rise with a smooth part. With vignetting it rises by 68 to 330. Where gains are white and scenes hardly change, or their prior is wrong, it rises by up to 34, and a smooth
// part of gains is what scenes have in common (docs/log/field.md).
const surelySmooth = 40

// Whiten takes the smooth part away where readings do not surely ask for it, at variances of signals as they are: either prior may be right there. Gaussian signals then follow. It returns the squares of what gains (M) and
// signals (N×P) with both differ by, at a mean gain of one; nil where the smooth part stays.
func (f *Fit) Whiten(ctx context.Context) (gains []float64, signals *mat.Dense, err error) {
	before, err := f.LogEvidence()
	if err != nil || !f.smooth() {
		return nil, nil, err
	}
	smooth, spread, s := f.Smooth, f.Spread, slices.Clone(f.S)
	were, signals := f.atMeanOne()
	f.Smooth, f.Spread = nil, spread*math.Sqrt(1-smooth.Part)
	err = f.Solve()
	for i := 0; err == nil && i < partSteps; i++ { // with the variances Q stays
		f.setSpread()
		_, err = f.solveGains()
	}
	if err == nil {
		err = f.Solve()
	}
	if white, failed := f.LogEvidence(); err != nil || failed != nil || before-white > surelySmooth {
		f.Smooth, f.Spread = smooth, spread
		copy(f.S, s)
		return nil, nil, f.Solve()
	}
	for step := f.holds() + 2; f.Sparse == nil && step < f.holds()+partSteps; step++ {
		risen, err := f.Step(step)
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return nil, nil, err
		}
		if f.Ended(step, risen) {
			break
		}
	}
	gains, x := f.atMeanOne()
	square := func(to, from []float64) {
		floats.Sub(to, from)
		floats.Mul(to, to)
	}
	square(gains, were)
	square(signals.RawMatrix().Data, x.RawMatrix().Data)
	return gains, signals, nil
}

// atMeanOne are gains (M) and signals (N×P) at a mean gain of one.
func (f *Fit) atMeanOne() (gains []float64, signals *mat.Dense) {
	unit := float64(len(f.S)) / floats.Sum(f.S)
	gains = slices.Clone(f.S)
	floats.Scale(unit, gains)
	_, p := f.read.Dims()
	signals = mat.NewDense(f.Entries(), p, nil)
	signals.Apply(func(i, k int, _ float64) float64 {
		x, _, _, _ := f.Entry(i, k)
		return unit * x
	}, signals)
	return gains, signals
}
