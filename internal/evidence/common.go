package evidence

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"github.com/calamp/calamp/internal/dense"
)

// Positive scenes behind masks of 0 and 1 are one large common mode: all readings are nearly the same multiple of what a constant scene would
// give, but for the gains. Where these are held at one at first, their pattern, the same in all snapshots, is taken for a scene that never changes. So a
// second fit begins at the gains that make the common mode that of one column of W, as a constant is in a basis of cosines or wavelets, or of the sum
// of all columns, as it is in pixels. The evidence tells which fit is right.

const (
	// mostUneven is the standard deviation of the logarithm of gains above which a column is not what all snapshots have in common: gains
	// are hardly ever spread by more than a factor e.
	mostUneven = 1.0

	commonSteps = 100 // of the power method
)

// Common is a fit of the same readings that begins at the gains which the common mode of all snapshots tells; nil where it tells none.
func (f *Fit) Common() *Fit {
	if f.GainsKnown {
		return nil
	}
	u := f.leading()
	column, gains := f.commonColumn(u)
	if gains == nil {
		return nil
	}
	w, summed := f.w, column == f.w.Columns
	if summed {
		w = withSums(w)
	}
	next := f.afresh(w, f.read)
	next.common, next.summed, next.begun = column, summed, true
	for mu := range next.S {
		log, count := 0.0, 0.0
		for _, v := range gains[mu*f.each : (mu+1)*f.each] {
			if v > 0 {
				log, count = log+math.Log(v), count+1
			}
		}
		next.S[mu] = math.Exp(log / max(count, 1))
	}
	next.beginAtCommon()
	return next
}

// leading is the first left singular vector of the readings (M).
func (f *Fit) leading() []float64 {
	m, p := f.y.Dims()
	y := mat.NewDense(m, p, nil)
	y.Apply(func(mu, k int, v float64) float64 {
		if math.IsNaN(v) {
			return 0
		}
		return v
	}, f.y)
	u, v := mat.NewVecDense(m, nil), mat.NewVecDense(p, nil)
	for k := range p {
		v.SetVec(k, mat.Norm(y.ColView(k), 2))
	}
	for range commonSteps {
		u.MulVec(y, v)
		v.MulVec(y.T(), u)
		norm := mat.Norm(v, 2)
		if norm == 0 {
			break
		}
		v.ScaleVec(1/norm, v)
	}
	u.MulVec(y, v)
	return u.RawVector().Data
}

// commonColumn is the column of W, or N for the sum of all, that differs from u by the most even gains, all of one sign; s is these of all rows, 0 for those without readings, and nil
// where there is no such column, or several: a W that is all positive says nothing of which of them signals have in common.
func (f *Fit) commonColumn(u []float64) (column int, s []float64) {
	least, count := mostUneven, 0
	for i := range f.w.Columns + 1 {
		w := make([]float64, len(u))
		for mu := range w {
			if i < f.w.Columns {
				w[mu] = f.w.At(mu, i)
			} else {
				w[mu] = floats.Sum(f.w.Row(mu))
			}
		}
		uneven, gains := f.gainsBetween(w, u)
		if uneven < mostUneven && i < f.w.Columns {
			count++
		}
		if uneven < least {
			least, column, s = uneven, i, gains
		}
	}
	if count > 1 {
		return 0, nil
	}
	return column, s
}

// gainsBetween are s ∝ w/u, and the standard deviation of their logarithm, infinite where signs differ.
func (f *Fit) gainsBetween(w, u []float64) (uneven float64, s []float64) {
	s = make([]float64, len(u))
	sum, squares, count, sign := 0.0, 0.0, 0.0, 0.0
	for mu := range u {
		if !f.isRead(mu) {
			continue
		}
		ratio := w[mu] / u[mu]
		if sign == 0 {
			sign = math.Copysign(1, ratio)
		}
		if !(sign*ratio > 0) || math.IsInf(ratio, 0) {
			return math.Inf(1), nil
		}
		s[mu] = sign * ratio
		log := math.Log(s[mu])
		sum, squares, count = sum+log, squares+log*log, count+1
	}
	return math.Sqrt(max(0, squares/count-sum/count*sum/count)), s
}

// isRead reports whether a row has readings.
func (f *Fit) isRead(row int) bool {
	return slices.ContainsFunc(f.y.RawRowView(row), func(y float64) bool { return !math.IsNaN(y) })
}

func withSums(w dense.Matrix) dense.Matrix {
	more := dense.New(w.Rows, w.Columns+1)
	for mu := range w.Rows {
		copy(more.Row(mu), w.Row(mu))
		more.Row(mu)[w.Columns] = floats.Sum(w.Row(mu))
	}
	return more
}

// beginAtCommon sets the scale, the variances and the noise to what is left beside the common mode.
func (f *Fit) beginAtCommon() {
	floats.Scale(floats.Sum(f.S)/floats.Dot(f.S, f.S), f.S)
	square := 0.0
	for _, s := range f.S {
		square += (s - 1) * (s - 1)
	}
	f.Spread = min(max(math.Sqrt(square/float64(len(f.S))), leastSpread), mostSpread)
	_, p := f.y.Dims()
	amplitudes, rest, count := 0.0, 0.0, 0.0
	for k := range p {
		along, norm, power := 0.0, 0.0, 0.0
		for row := range f.w.Rows {
			if y := f.y.At(row, k); !math.IsNaN(y) {
				s, w := f.S[f.sensorOf(row)], f.w.At(row, f.common)
				along, norm, power, count = along+s*y*w, norm+w*w, power+s*y*s*y, count+1
			}
		}
		if norm > 0 {
			amplitudes += along / norm * along / norm / float64(p)
			rest += power - along*along/norm
		}
	}
	rest = max(rest/max(count, 1), leastNoise*f.power())
	norms := 0.0
	for mu := range f.w.Rows {
		for i, v := range f.w.Row(mu) {
			if i != f.common {
				norms += v * v / float64(f.w.Rows)
			}
		}
	}
	for _, family := range f.Families {
		for i := range family.Gamma {
			family.Gamma[i] = rest / norms
		}
		family.Gamma[f.common] = amplitudes
	}
	f.Noise = startNoise * rest
}

// HasColumnInCommon reports whether all snapshots have much of one column of W. It is not an entry like the others, and as long as gains are known to the part of
// the readings that is noise, patterns of gains and entries that are there in all snapshots can take each other's place.
func (f *Fit) HasColumnInCommon() bool { return f.common >= 0 && !f.summed }

// Entries is how many entries a signal has: columns of W that were added are not among them.
func (f *Fit) Entries() int {
	if f.summed {
		return f.w.Columns - 1
	}
	return f.w.Columns
}

// Entry is the posterior mean and variance of an entry, and its field.
func (f *Fit) Entry(i, k int) (x, c, lambda, sigma float64) {
	if x, c, is := f.aloneEntry(i, k); is {
		return x, c, x, c
	}
	if f.Correlated != nil {
		return f.backEntry(i, k)
	}
	x, c, lambda, sigma = f.X.At(i, k), f.C.At(i, k), f.Lambda.At(i, k), f.Sigma.At(i, k)
	if f.summed {
		mean := f.X.At(f.common, k)
		x, lambda = x+mean, lambda+mean
		if f.together != nil && f.together.At(i, k) > 0 {
			c, sigma = c*f.together.At(i, k), sigma*f.together.At(i, k)
		} else {
			c += f.C.At(f.common, k)
		}
	}
	return x, c, lambda, sigma
}

// setSummed says what an entry and the mean are together: their errors have opposite signs, Cov = -Γ_i Γ_m w_iᵀA⁻¹w_m.
func (f *Fit) setSummed(a *Family, at *pattern, projected dense.Matrix, i, k int) {
	if f.together == nil {
		f.together = mat.NewDense(f.w.Columns, f.y.RawMatrix().Cols, nil)
	}
	overlap := 0.0
	for r, mu := range at.rows {
		overlap += f.w.At(mu, f.common) * projected.At(r, i)
	}
	own := f.C.At(i, k)
	both := own + f.C.At(f.common, k) - 2*a.Gamma[i]*a.Gamma[f.common]*overlap
	f.together.Set(i, k, max(both, unseen*own)/own)
}

// mostOpen is the part of the prior variance of the common entry that readings may leave.
const mostOpen = 0.1

// openMean reports whether readings leave the common entry open: where columns of W are nearly dependent, as smooth ones are, others make up for it.
func (f *Fit) openMean() bool {
	if f.common < 0 {
		return false
	}
	most, gamma := 0.0, 0.0
	for _, a := range f.Families {
		gamma = max(gamma, a.Gamma[f.common])
		for _, k := range a.Snapshots {
			most = max(most, f.C.At(f.common, k))
		}
	}
	return most > mostOpen*gamma
}
