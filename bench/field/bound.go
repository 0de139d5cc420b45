package main

import (
	"errors"
	"math"
	"math/cmplx"

	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat"

	"github.com/calamp/calamp/internal/baseline"
)

// blindBound is the error, as [relative] has it, that is left to those who know which entries are not zero, their variances, the noise, the spread of the gains, and
// which readings are wrong, but not the gains: the Bayesian Cramér–Rao bound (van Trees, 1968) at the truth. Gains can take the place of what signals have in common,
// and where that is much, as in positive scenes, it is far above the error with known gains.
//
// With z = Wx, log s = a + iφ, J = diag(z), and A the columns of W of the entries, a snapshot determines the gains to JᵀQJ, Q = 1/Δ - AKAᵀ/Δ², K = (AᵀA/Δ + 1/Γ)⁻¹.
// With C the inverse of the sum of these and of what is known before, errors of x have the covariance K + BCBᵀ, B = KAᵀJ/Δ. Complex numbers are pairs of real ones, with half of the noise each.
func (p *problem) blindBound() float64 {
	m, _ := p.w.Dims()
	_, count := p.x.Dims()
	parts := 1
	if p.kind.complex {
		parts = 2
	}
	gains, z := p.beforehand(parts), p.w.Mul(p.x)
	square := 0.0
	known, moved := make([]*mat.Dense, count), make([]*mat.Dense, count) // K, B
	for k := range count {
		entries := p.active(k)
		a, j := p.activeColumns(entries, k, parts), p.gainSlopes(z, k, parts)
		precision, seen, b, spent := new(mat.Dense), new(mat.Dense), new(mat.Dense), new(mat.Dense)
		noise := p.noise / float64(parts)
		precision.Mul(a.T(), a)
		precision.Scale(1/noise, precision)
		for i, v := range p.activeVariances(entries, k) {
			for part := range parts {
				at := parts*i + part
				precision.Set(at, at, precision.At(at, at)+float64(parts)/v)
			}
		}
		known[k] = new(mat.Dense)
		if singular(known[k].Inverse(precision)) {
			return math.NaN()
		}
		seen.Mul(a.T(), j)
		seen.Scale(1/noise, seen)
		b.Mul(known[k], seen)
		spent.Mul(seen.T(), b)
		gains.Sub(gains, spent)
		spent.Mul(j.T(), j)
		spent.Scale(1/noise, spent)
		gains.Add(gains, spent)
		moved[k] = b
	}
	c := mat.NewDense(parts*m, parts*m, nil)
	if singular(c.Inverse(gains)) {
		return math.NaN()
	}
	for k, b := range moved {
		var e mat.Dense
		e.Product(b, c, b.T())
		e.Add(&e, known[k])
		square += mat.Trace(&e)
		for part := range parts {
			mean := mat.NewVecDense(e.RawMatrix().Rows, nil)
			for i, entry := range p.active(k) {
				if p.mean != nil {
					mean.SetVec(parts*i+part, p.mean[entry])
				}
			}
			square -= mat.Inner(mean, &e, mean)
		}
	}
	shown := without(p.x, p.mean)
	n, _ := p.x.Dims()
	return math.Sqrt(square / (meanPower(shown) * float64(n*count)))
}

// beforehand is what is known of a (and φ) of all sensors before: their spread, and the common factor, which is no error.
func (p *problem) beforehand(parts int) *mat.Dense {
	m, _ := p.w.Dims()
	logs := p.sizes()
	for mu, s := range logs {
		logs[mu] = math.Log(s)
	}
	before := mat.NewDense(parts*m, parts*m, nil)
	phase := min(1/min(math.Pi*math.Pi/3, 1/p.phaseConcentration), factorKnown)
	for r := range m {
		for part, precision := range []float64{1 / stat.PopVariance(logs, nil), phase}[:parts] {
			at := parts*r + part
			before.Set(at, at, precision)
			for c := range m {
				before.Set(at, parts*c+part, before.At(at, parts*c+part)+factorKnown/float64(m*m))
			}
		}
	}
	return before
}

// factorKnown is the precision of the common factor of the gains, and of phases that are zero, which makes their errors nothing beside all others.
const factorKnown = 1e12

// singular reports whether there is no inverse; a bad condition is that of variances that differ by many decades.
func singular(err error) bool {
	var condition mat.Condition
	return err != nil && (!errors.As(err, &condition) || math.IsInf(float64(condition), 1))
}

// active are the entries of a snapshot that are not zero, but for rounding.
func (p *problem) active(k int) (entries []int) {
	n, _ := p.x.Dims()
	most := 0.0
	for i := range n {
		most = max(most, power(p.x.At(i, k)))
	}
	for i := range n {
		if power(p.x.At(i, k)) > 1e-12*most {
			entries = append(entries, i)
		}
	}
	return entries
}

// activeVariances are the mean squares of these entries in all snapshots in which they are not zero.
func (p *problem) activeVariances(entries []int, k int) (variances []float64) {
	_, count := p.x.Dims()
	for _, i := range entries {
		square, in := 0.0, 0.0
		for l := range count {
			if v := power(p.x.At(i, l)); v > 1e-12*power(p.x.At(i, k)) {
				square, in = square+v, in+1
			}
		}
		variances = append(variances, square/in)
	}
	return variances
}

// activeColumns are the columns of W of these entries, and the rows whose readings are there and right; others are zero.
func (p *problem) activeColumns(entries []int, k, parts int) *mat.Dense {
	m, _ := p.w.Dims()
	a := mat.NewDense(parts*m, parts*len(entries), nil)
	for mu := range m {
		for i, entry := range entries {
			if p.reads(mu, k) {
				setPair(a, parts, mu, i, p.w.At(mu, entry))
			}
		}
	}
	return a
}

// gainSlopes are the derivatives of z in a (and φ).
func (p *problem) gainSlopes(z baseline.Parts, k, parts int) *mat.Dense {
	m, _ := p.w.Dims()
	j := mat.NewDense(parts*m, parts*m, nil)
	for mu := range m {
		if p.reads(mu, k) {
			setPair(j, parts, mu, mu, z.At(mu, k))
		}
	}
	return j
}

// setPair sets the product with a complex number, as one of pairs of real ones.
func setPair(to *mat.Dense, parts, row, column int, v complex128) {
	to.Set(parts*row, parts*column, real(v))
	if parts == 2 {
		to.Set(2*row, 2*column+1, -imag(v))
		to.Set(2*row+1, 2*column, imag(v))
		to.Set(2*row+1, 2*column+1, real(v))
	}
}

// reads reports whether a reading is there and right.
func (p *problem) reads(mu, k int) bool {
	return !p.dead[mu] && (p.wrong == nil || !p.wrong[mu][k]) && !cmplx.IsNaN(p.y.At(mu, k))
}
