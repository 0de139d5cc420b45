package evidence

import (
	"math"
	"runtime"
	"slices"

	"gonum.org/v1/gonum/floats"

	"github.com/calamp/calamp/internal/dense"
)

// What the other sensors predict of the readings of one. Its rows in a snapshot predict each other, as those of a stuck detector do at all angles, so that all of them are left out together.

// ofGain is the logarithm of the likelihood of a sensor's readings, n log s - ½(a s² - 2b s + c) + log.
type ofGain struct{ n, a, b, c, log float64 }

// beforeRead is what is known of s before it is read.
func (f *Fit) beforeRead() ofGain {
	spread := f.Spread
	if spread == 0 {
		spread = f.firstSpread()
	}
	tight := 1 / (spread * spread)
	return ofGain{a: tight, b: tight, c: tight, log: -math.Log(spread)}
}

// add adds readings y of a snapshot, of which the others predict s y ~ N(mean, times P⁻¹).
func (g *ofGain) add(y, mean []float64, precision dense.Matrix, logDet, times float64) {
	for i := range y {
		row := precision.Row(i)
		g.a += y[i] * floats.Dot(row, y) / times
		g.b += y[i] * floats.Dot(row, mean) / times
		g.c += mean[i] * floats.Dot(row, mean) / times
	}
	n := float64(len(y))
	g.n += n
	g.log += 0.5*logDet - 0.5*n*math.Log(2*math.Pi*times)
}

// integrated is the evidence, with s integrated out to second order.
func (g ofGain) integrated() float64 {
	s := (g.b + math.Sqrt(g.b*g.b+4*g.a*g.n)) / (2 * g.a)
	if g.n > 0 {
		g.log += g.n * math.Log(s)
	}
	return g.log - 0.5*(g.a*s*s-2*g.b*s+g.c) - 0.5*math.Log(g.a+g.n/(s*s))
}

// foreseen is the likelihood of the readings of each sensor by what the others predict of them, with the variances of each snapshot so many times as large, and the sum of the variances of z that they leave. Readings of correlated
// snapshots are left out one by one.
func (f *Fit) foreseen(wider []float64) (likelihoods []ofGain, left []float64) {
	likelihoods, left = make([]ofGain, len(f.S)), make([]float64, len(f.S))
	for mu := range f.S {
		likelihoods[mu] = f.beforeRead()
		if f.Correlated == nil {
			continue
		}
		list := f.foreseenOf(mu, wider)
		likelihoods[mu] = f.ofReadings(list)
		for j, r := range list {
			if _, k := f.place(mu, j); r.variance > 0 {
				left[mu] += r.variance/wider[k] - f.noiseOf(mu)
			}
		}
	}
	if f.Correlated != nil {
		return likelihoods, left
	}
	for _, a := range f.Families {
		for _, at := range a.patterns {
			f.addForeseen(at, wider, likelihoods, left)
		}
	}
	return likelihoods, left
}

// addForeseen adds the readings of the snapshots of a pattern, sensor by sensor.
func (f *Fit) addForeseen(at *pattern, wider []float64, likelihoods []ofGain, left []float64) {
	all := f.precisionOf(at)
	for from, to := 0, 0; from < len(at.rows); from = to {
		mu := at.sensors[from]
		for to = from; to < len(at.rows) && at.sensors[to] == mu; {
			to++
		}
		precision := all.Part(from, to, from, to)
		covariance, logDet, ok := inverseOf(precision)
		if !ok {
			continue
		}
		y, mean, g := make([]float64, to-from), make([]float64, to-from), make([]float64, to-from)
		for _, k := range at.snapshots {
			for i, row := range at.rows[from:to] {
				y[i], g[i] = f.y.At(row, k), f.G.At(row, k)
			}
			for i := range y {
				mean[i] = f.S[mu]*y[i] - floats.Dot(covariance.Row(i), g)
				left[mu] += covariance.At(i, i) - f.noiseOf(mu)
			}
			likelihoods[mu].add(y, mean, precision, logDet, wider[k])
		}
	}
}

// precisionOf is A⁻¹ of a pattern, less what offsets take of it.
func (f *Fit) precisionOf(at *pattern) dense.Matrix {
	if !f.offset() || len(at.rows) == 0 {
		return at.inverse
	}
	precision := dense.New(len(at.rows), len(at.rows))
	copy(precision.Data, at.inverse.Data)
	reach, done := f.reachOfOffsets(at)
	defer done()
	dense.AddProduct(precision, -1, reach.T(), reach, dense.All, runtime.GOMAXPROCS(0))
	return precision
}

// inverseOf is the inverse of a matrix and the logarithm of its determinant; false where it is not positive definite.
func inverseOf(a dense.Matrix) (inverse dense.Matrix, logDet float64, ok bool) {
	l := dense.New(a.Rows, a.Rows)
	for i := range a.Rows {
		copy(l.Row(i), a.Row(i))
	}
	if !dense.Factor(l, 1) {
		return a, 0, false
	}
	logDet, inverse = dense.LogDet(l), dense.New(a.Rows, a.Rows)
	dense.InvertLower(l, 1)
	dense.Square(inverse, l, 1)
	dense.Mirror(inverse)
	return inverse, logDet, true
}

// unread is the likelihood of the readings of a sensor that is left out, by what the others predict with gains of such variances (open), and snapshots so many times as wide.
func (f *Fit) unread(mu int, read, open, wider []float64) ofGain {
	likelihood := f.beforeRead()
	for _, k := range f.all() {
		var y []float64
		var rows []int
		for j, v := range read {
			if row, of := f.place(mu, j); of == k && !math.IsNaN(v) {
				y, rows = append(y, v), append(rows, row)
			}
		}
		if len(y) == 0 {
			continue
		}
		mean, covariance := f.unreadIn(rows, k, open)
		for i := range rows {
			covariance.Row(i)[i] += f.noiseOf(mu)
		}
		if precision, logDet, ok := inverseOf(covariance); ok {
			likelihood.add(y, mean, precision, -logDet, wider[k])
		}
	}
	return likelihood
}

// unreadIn is the mean and the covariance of z = Wx in rows R of a snapshot that are not read: W_R Γ W_Rᵀ - VA⁻¹Vᵀ, V = W_R ΓWᵀ, and what gains of such variances add, by which z moves as VA⁻¹(y∘ds). An offset has its prior.
func (f *Fit) unreadIn(rows []int, k int, open []float64) (mean []float64, covariance dense.Matrix) {
	a := f.familyOf(k)
	at := a.patterns[slices.IndexFunc(a.patterns, func(at *pattern) bool { return slices.Contains(at.snapshots, k) })]
	own, scaled := f.columns(rows, a.active), f.columns(rows, a.active)
	mean = make([]float64, len(rows))
	for i := range rows {
		for j, entry := range a.active {
			mean[i] += own.At(i, j) * f.X.At(entry, k)
			scaled.Row(i)[j] *= a.Gamma[entry]
		}
	}
	threads := runtime.GOMAXPROCS(0)
	along, pulled, moved := dense.New(len(rows), len(at.rows)), dense.New(len(rows), len(at.rows)), dense.New(len(rows), len(open))
	dense.AddProduct(along, 1, scaled, at.w.T(), dense.All, threads)
	dense.Product(pulled, along, at.inverse)
	for i := range rows {
		for j, mu := range at.sensors {
			moved.Row(i)[mu] += pulled.At(i, j) * f.y.At(at.rows[j], k) * math.Sqrt(open[mu])
		}
	}
	covariance = dense.New(len(rows), len(rows))
	dense.AddProduct(covariance, 1, scaled, own.T(), dense.All, threads)
	dense.AddProduct(covariance, -1, pulled, along.T(), dense.All, threads)
	dense.AddProduct(covariance, 1, moved, moved.T(), dense.All, threads)
	if f.offset() {
		for i := range rows {
			floats.AddConst(f.Offsets.SD*f.Offsets.SD, covariance.Row(i))
		}
	}
	return mean, covariance
}
