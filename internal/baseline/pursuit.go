package baseline

import (
	"context"
	"math"
	"math/cmplx"
	"slices"
)

// Pursuit is orthogonal matching pursuit: the signals x (N×P) of z = Wx + ε, for readings z (M×P, NaN where one is
// missing) with gains that are known, and W M×N. It adds entries to a signal until its mean square residual is no more than the
// noise variance, that of both parts where numbers are complex, or half as many entries as readings are there.
// The error is that of ctx, with the signals so far.
func Pursuit(ctx context.Context, w, z Parts, noise float64) (Parts, error) {
	_, n := w.Dims()
	return pursue(ctx, w, z, noise, n)
}

// pursue is [Pursuit] of no more than so many entries a signal.
func pursue(ctx context.Context, w, z Parts, noise float64, most int) (Parts, error) {
	m, n := w.Dims()
	_, p := z.Dims()
	residual, missing := z.present()
	norms := columnNorms(w)
	x := NewParts(n, p, w.Im != nil || z.Im != nil)
	signals := make([]pursued, p)
	for k := range signals {
		for mu := range m {
			if !missing(mu, k) {
				signals[k].rows = append(signals[k].rows, mu)
			}
		}
		signals[k].chosen = make([]bool, n)
	}
	var err error
	for running := p; running > 0 && err == nil; err = ctx.Err() {
		correlation := w.MulH(residual)
		running = 0
		for k := range signals {
			if s := &signals[k]; s.done || len(s.entries) >= most || !s.add(w, residual, correlation, norms, noise, k) {
				s.done = true
				continue
			}
			running++
		}
	}
	for k := range signals {
		for j, v := range signals[k].coefficients() {
			x.Set(signals[k].entries[j], k, v)
		}
	}
	return x, err
}

// columnNorms are the lengths of the columns.
func columnNorms(w Parts) []float64 {
	m, n := w.Dims()
	norms := make([]float64, n)
	for mu := range m {
		for i := range n {
			norms[i] += square(w.At(mu, i))
		}
	}
	for i, v := range norms {
		norms[i] = math.Sqrt(v)
	}
	return norms
}

// pursued is a signal, with the factors W_S = QR of its columns.
type pursued struct {
	rows    []int // readings that are there
	chosen  []bool
	entries []int
	q, r    [][]complex128 // columns of Q, and of R
	qz      []complex128   // Qᴴz
	done    bool
}

// add adds the entry that fits the residual best; false where there is nothing to add.
func (s *pursued) add(w, residual, correlation Parts, norms []float64, noise float64, k int) bool {
	power := 0.0
	for _, mu := range s.rows {
		power += square(residual.At(mu, k))
	}
	if power <= noise*float64(len(s.rows)) || 2*len(s.entries) >= len(s.rows) {
		return false
	}
	best, at := 0.0, -1
	least := 1e-9 * slices.Max(norms) // a column of less reaches no reading
	for i, norm := range norms {
		if norm < least {
			continue
		}
		if fit := cmplx.Abs(correlation.At(i, k)); !s.chosen[i] && fit > best*norm {
			best, at = fit/norm, i
		}
	}
	if at < 0 {
		return false
	}
	s.chosen[at] = true
	q, r := make([]complex128, len(s.rows)), make([]complex128, len(s.entries)+1)
	for j, mu := range s.rows {
		q[j] = w.At(mu, at)
	}
	for range 2 { // the second time restores what rounding has lost
		for j, earlier := range s.q {
			c := inner(earlier, q)
			r[j] += c
			for i, v := range earlier {
				q[i] -= c * v
			}
		}
	}
	length := math.Sqrt(real(inner(q, q)))
	if length < 1e-9*norms[at] { // it is a combination of those that are there
		return true
	}
	r[len(s.entries)] = complex(length, 0)
	var c complex128
	for i, mu := range s.rows {
		q[i] /= complex(length, 0)
		c += cmplx.Conj(q[i]) * residual.At(mu, k)
	}
	for i, mu := range s.rows {
		residual.Set(mu, k, residual.At(mu, k)-c*q[i])
	}
	s.entries, s.q, s.r, s.qz = append(s.entries, at), append(s.q, q), append(s.r, r), append(s.qz, c)
	return true
}

// coefficients solves Rx = Qᴴz.
func (s *pursued) coefficients() []complex128 {
	x := make([]complex128, len(s.qz))
	for j := len(x) - 1; j >= 0; j-- {
		x[j] = s.qz[j]
		for l := j + 1; l < len(x); l++ {
			x[j] -= s.r[l][j] * x[l]
		}
		x[j] /= s.r[j][j]
	}
	return x
}

// inner is aᴴb.
func inner(a, b []complex128) (sum complex128) {
	for i, v := range a {
		sum += cmplx.Conj(v) * b[i]
	}
	return sum
}
