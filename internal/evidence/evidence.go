// Package evidence finds gains and signals by the evidence of Gaussian signals, which are integrated out exactly.
// It knows matrices and readings, and nothing of message passing.
//
// Readings are y = (W x + noise)/s. With x_ik ~ N(0, Γ_i) and noise of variance Δ, the readings of snapshot k that are corrected by s
// have the covariance A = W diag(Γ) Wᵀ + Δ I, and the evidence is, up to a constant,
//
//	L(s) = Σ_µ n_µ log s_µ - ½ sᵀQs - ½ Σ_k log det A_k + log p(s),   Q = Σ_k A_k⁻¹ ∘ (y_k y_kᵀ).
//
// A Schur product of positive semidefinite matrices is one. So L is strictly concave in s, and Newton's method finds its maximum from
// any start, whatever W is. Γ and Δ are hyperparameters (sparse Bayesian learning: Tipping, "Sparse Bayesian learning and the relevance
// vector machine", 2001). Each of their steps maximises a lower bound of L that touches it, so L never falls (Wipf and Nagarajan,
// "Iterative reweighted ℓ1 and ℓ2 methods for finding sparse solutions", 2010).
package evidence

import (
	"errors"
	"math"
	"runtime"
	"slices"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"github.com/calamp/calamp/internal/dense"
	"github.com/calamp/calamp/internal/parallel"
)

// Fit is the present state: hyperparameters, gains and signals.
type Fit struct {
	// Noise is Δ, and GivenNoise what it is where it is known, in units in which the mean of s is one; 0 learns it. The
	// variances Γ are those of Families.
	Noise      float64
	GivenNoise float64
	Families   []*Family

	// GainsKnown is that gains are one, to knownSpread.
	GainsKnown bool

	// Mixture is the prior from which the variances come; nil where they are free.
	Mixture *Mixture

	// Sizes is the prior of these variances; nil where they are free.
	Sizes *Sizes

	// Correlated is the prior of snapshots that resemble each other; nil where they are independent. X and all below are then those of turned snapshots.
	Correlated *Correlated

	// Sparse is a prior that is not Gaussian, in whose place entries have sites; nil where they have none.
	Sparse *Sparse

	// Offsets are those of the sensors; nil where they have none.
	Offsets *Offsets

	// Levels are sensors that are left out; nil where none are.
	Levels *Levels

	// Outliers are single readings that are left out; nil where none are.
	Outliers *Outliers

	// Unequal is how noise differs from sensor to sensor, of which Noise is then the middle; nil where all have the same.
	Unequal *Unequal

	// Alone are sensors that alone see an entry; nil where there are none.
	Alone *Alone

	// S maximises the evidence, given Gamma and Noise, one of each sensor: M where every row of W is one. Spread is the standard deviation of its Gaussian prior about
	// one; 0 is a flat prior.
	S      []float64
	Spread float64

	// Smooth is what gains have in common with those of the rows beside them; nil for a white prior.
	Smooth *Smooth

	// X and C (N×P) are the posterior means and variances of the signals, given S, Gamma and Noise.
	X, C *mat.Dense

	// Lambda and Sigma (N×P) are the field of an entry: what the readings alone say of it, the other entries having their
	// variances. Sigma is +Inf where no reading sees the entry.
	Lambda, Sigma *mat.Dense

	// G (M×P) is A⁻¹(s∘y), and Inverse (M×P) the diagonal of A⁻¹: (s y)_µ - G/Inverse is what the other readings of the
	// snapshot predict for reading µ, with the variance 1/Inverse, noise included. Both are 0 where a reading is missing.
	G, Inverse *mat.Dense

	// Evidence is L at S, Gamma and Noise.
	Evidence float64

	w          dense.Matrix // M×N
	read       *mat.Dense   // M×P, as they were given
	y          *mat.Dense   // the same, or turned
	each       int          // rows of a sensor, which lie together
	readings   []float64    // n_µ of each sensor, as are all below that say so
	seen       []bool       // N, whether a column of W is more than rounding
	q          dense.Matrix // of sensors by sensors
	linear     []float64    // of each sensor, Σ_k y_k ∘ A_k⁻¹W m_k: what the locations of sites add to the slope in s
	curved     dense.Matrix // of sensors by sensors, the factor of the latest precision of s, or its inverse
	common     int          // column of W that all snapshots have much of; -1 where there is none
	summed     bool         // it is the last one, the sum of the others
	together   *mat.Dense   // N×P where it is, the variance of an entry and the mean together, over that of the entry
	begun      bool         // at the gains of another fit
	held       bool         // gains stay as they are
	exact      bool         // gains are found to the last digit
	pace       pace         // of Δ
	readmitted int          // how often entries were given a variance again
}

// Family is the snapshots whose entries have the same variances.
type Family struct {
	Gamma     []float64 // N
	Snapshots []int
	patterns  []*pattern
	active    []int  // entries whose variance is not zero
	pace      []pace // N, of Γ
}

// pattern is a set of snapshots that lack the same readings.
type pattern struct {
	rows      []int // those that are read
	sensors   []int // the sensor of each
	snapshots []int
	w         dense.Matrix // these rows of W, and the active columns
	products  dense.Matrix // Σ_k y yᵀ; empty for a single snapshot
	inverse   dense.Matrix // A⁻¹, both triangles
	reach     []float64    // of each active entry, that of WᵀA⁻¹W
	kept      []float64    // of each active entry, 1 - Γ reach
	spent     []float64    // of each row, what offsets take of the diagonal of A⁻¹; nil where there are none
	logDet    float64
}

// errSingular is that of readings whose covariance is not positive definite in double precision.
var errSingular = errors.New("the covariance of the readings is not positive definite in double precision")

// New prepares a fit of the readings y (M×P, NaN where one is missing) behind w (M×N). It keeps both. With own each snapshot
// has variances of its own, otherwise all share theirs.
// Gains begin at one, all variances at what the readings' power makes them, the noise at 3 % of that power.
func New(w, y *mat.Dense, own bool) *Fit {
	m, n := w.Dims()
	alone, w, y := setAlone(w, y)
	f := newFit(dense.Of(w.RawMatrix().Data, m, n), y, 1, own)
	f.Alone, f.Smooth = alone, newSmooth(m)
	return f
}

// NewShared is [New] of sensors that read so many rows of W each with one gain, as a detector of a tomograph does at all angles. These lie together; those that a sensor has not are NaN in y. With several rows Q is summed over pairs of rows of the same two sensors, and the
// evidence is as concave in s as before.
func NewShared(w, y *mat.Dense, each int) *Fit {
	if each == 1 {
		return New(w, y, false)
	}
	m, n := w.Dims()
	return newFit(dense.Of(w.RawMatrix().Data, m, n), y, each, false)
}

func newFit(w dense.Matrix, y *mat.Dense, each int, own bool) *Fit {
	rows, n := w.Rows, w.Columns
	m := rows / each
	_, p := y.Dims()
	f := &Fit{
		S: make([]float64, m), X: mat.NewDense(n, p, nil), C: mat.NewDense(n, p, nil),
		Lambda: mat.NewDense(n, p, nil), Sigma: mat.NewDense(n, p, nil),
		G: mat.NewDense(rows, p, nil), Inverse: mat.NewDense(rows, p, nil),
		w: w, read: y, y: y, each: each, common: -1, readings: make([]float64, m), q: dense.New(m, m), linear: make([]float64, m), curved: dense.New(m, m),
	}
	for k := range p {
		if own || k == 0 {
			f.Families = append(f.Families, &Family{Gamma: make([]float64, n), pace: make([]pace, n)})
		}
		last := f.Families[len(f.Families)-1]
		last.Snapshots = append(last.Snapshots, k)
	}
	for _, family := range f.Families {
		f.findPatterns(family)
	}
	f.start()
	for _, family := range f.Families {
		f.activate(family)
	}
	return f
}

// startNoise is the part of the readings' power that is taken for noise at first.
const startNoise = 0.03

// unseen is the square of a column of W, relative to the mean one, that is rounding.
const unseen = 1e-24

func (f *Fit) start() {
	for mu := range f.S {
		f.S[mu] = 1
	}
	power, squares := f.power(), columnSquares(f.w)
	norms := floats.Sum(squares) / float64(f.w.Rows)
	f.Noise = startNoise * power
	f.seen = make([]bool, f.w.Columns)
	for i, square := range squares {
		f.seen[i] = square > unseen*norms*float64(f.w.Rows)/float64(f.w.Columns)
	}
	for _, family := range f.Families {
		for i := range family.Gamma {
			family.Gamma[i] = power / norms
		}
	}
}

func (f *Fit) findPatterns(family *Family) {
	same := map[string]*pattern{}
	for _, k := range family.Snapshots {
		key := make([]byte, f.w.Rows)
		var rows []int
		for row := range key {
			if !math.IsNaN(f.y.At(row, k)) {
				key[row] = 1
				rows = append(rows, row)
				f.readings[f.sensorOf(row)]++
			}
		}
		at, ok := same[string(key)]
		if !ok {
			at = f.newPattern(rows)
			same[string(key)] = at
			family.patterns = append(family.patterns, at)
		}
		at.snapshots = append(at.snapshots, k)
	}
}

func (f *Fit) newPattern(rows []int) *pattern {
	at := &pattern{rows: rows, inverse: dense.New(len(rows), len(rows))}
	for _, row := range rows {
		at.sensors = append(at.sensors, f.sensorOf(row))
	}
	return at
}

// sensorOf is the sensor that reads a row.
func (f *Fit) sensorOf(row int) int { return row / f.each }

// rowsOf are values of all rows of a sensor (rows×P).
func (f *Fit) rowsOf(values *mat.Dense, mu int) []float64 {
	_, p := values.Dims()
	return values.RawMatrix().Data[mu*f.each*p : (mu+1)*f.each*p]
}

// place is the row and the snapshot of a value of those of a sensor.
func (f *Fit) place(mu, j int) (row, k int) {
	_, p := f.read.Dims()
	return mu*f.each + j/p, j % p
}

// Silent reports whether no entry has a variance: all is noise, whatever the prior of entries that are there.
func (f *Fit) Silent() bool {
	return !slices.ContainsFunc(f.Families, func(a *Family) bool { return len(a.active) > 0 })
}

// activate makes the entries with a variance the active ones of a family.
func (f *Fit) activate(a *Family) {
	a.active = a.active[:0]
	for i, gamma := range a.Gamma {
		if gamma > 0 {
			a.active = append(a.active, i)
		}
	}
	for _, at := range a.patterns {
		at.reach, at.kept = make([]float64, len(a.active)), make([]float64, len(a.active))
		for j := range at.kept {
			at.kept[j] = 1
		}
		if len(at.rows) == f.w.Rows && len(a.active) == f.w.Columns {
			at.w = f.w
			continue
		}
		at.w = f.columns(at.rows, a.active)
	}
}

// columns are some rows and columns of W.
func (f *Fit) columns(rows, active []int) dense.Matrix {
	w := dense.New(len(rows), len(active))
	for i, mu := range rows {
		to, from := w.Row(i), f.w.Row(mu)
		for j, column := range active {
			to[j] = from[column]
		}
	}
	return w
}

// Solve finds the gains of largest evidence, and the signals with them, for the present Gamma and Noise.
func (f *Fit) Solve() error {
	f.Evidence = 0
	clear(f.q.Data)
	clear(f.linear)
	if f.offset() {
		f.Offsets.clear()
	}
	errs := make([]error, len(f.Families))
	parallel.Run(len(errs), runtime.GOMAXPROCS(0), func(i int) {
		family := f.Families[i]
		for _, at := range family.patterns {
			if len(at.rows) > 0 {
				errs[i] = errors.Join(errs[i], at.factor(family, f.noisesOf(at)))
			}
		}
	})
	if err := errors.Join(errs...); err != nil {
		return err
	}
	for _, family := range f.Families {
		for _, at := range family.patterns {
			if len(at.rows) > 0 {
				f.Evidence -= 0.5 * float64(len(at.snapshots)) * at.logDet
				f.addSchur(at)
				if f.offset() {
					f.Offsets.add(f, at)
				}
				if f.Sparse != nil {
					f.addLocation(family, at)
				}
			}
		}
	}
	if f.offset() {
		value, err := f.integrateOffsets()
		if err != nil {
			return err
		}
		f.Evidence += value
	}
	dense.Mirror(f.q)
	value, err := f.solveGains()
	if err != nil {
		return err
	}
	f.Evidence += value
	if f.offset() {
		f.setOffsets()
	}
	f.solveSignals()
	f.Evidence -= f.costOfUnequal()
	switch {
	case f.Mixture != nil:
		f.Evidence += f.bound()
	case f.Sizes != nil:
		f.setDetermined(f.Sizes.determined)
		f.Evidence -= f.sizesCost(f.Sizes.determined)
	}
	return nil
}

// fewColumns is the number of columns, relative to that of rows, below which the smaller matrix is factored: about where both take as long.
const fewColumns = 0.8

// factor sets A⁻¹, its determinant and diag(WᵀA⁻¹W).
func (at *pattern) factor(a *Family, noise []float64) error {
	rows, columns := at.w.Rows, at.w.Columns
	scaled, done := dense.Scratch(rows, columns)
	defer done()
	roots := make([]float64, columns)
	for j, i := range a.active {
		roots[j] = math.Sqrt(a.Gamma[i])
	}
	for mu := range rows {
		to := scaled.Row(mu)
		for i, v := range at.w.Row(mu) {
			to[i] = v * roots[i]
		}
	}
	ok := true
	if float64(columns) < fewColumns*float64(rows) {
		ok = at.factorColumns(scaled, noise)
	} else {
		ok = at.factorRows(scaled, noise)
	}
	if !ok {
		return errSingular
	}
	dense.Mirror(at.inverse)
	for j, i := range a.active {
		if a.Gamma[i] > 0 {
			at.reach[j] /= a.Gamma[i]
		}
	}
	return nil
}

// factorRows is for A = SSᵀ + D = LLᵀ, with S = W√Γ and the noise D of the sensors: Γ diag(WᵀA⁻¹W) are the squares of the columns of L⁻¹S.
func (at *pattern) factorRows(scaled dense.Matrix, noise []float64) bool {
	threads := runtime.GOMAXPROCS(0)
	l, done := dense.Scratch(at.w.Rows, at.w.Rows)
	defer done()
	clear(l.Data)
	for mu := range l.Rows {
		l.Data[mu*l.Down+mu] = noise[mu]
	}
	dense.AddProduct(l, 1, scaled, scaled.T(), dense.Lower, threads)
	if !dense.Factor(l, threads) {
		return false
	}
	at.logDet = dense.LogDet(l)
	dense.SolveLower(l, scaled, threads)
	copy(at.reach, columnSquares(scaled))
	for j, used := range at.reach {
		at.kept[j] = max(1-used, 0)
	}
	dense.InvertLower(l, threads)
	dense.Square(at.inverse, l, threads)
	return true
}

// factorColumns is for B = I + TᵀT = LLᵀ with T = D^-½ S, the smaller matrix where few entries have a variance: A⁻¹ = D^-½ (I - TB⁻¹Tᵀ) D^-½ (Woodbury), and
// Γ diag(WᵀA⁻¹W) = 1 - diag(B⁻¹).
func (at *pattern) factorColumns(scaled dense.Matrix, noise []float64) bool {
	threads := runtime.GOMAXPROCS(0)
	l, done := dense.Scratch(scaled.Columns, scaled.Columns)
	defer done()
	clear(l.Data)
	roots, logs := make([]float64, len(noise)), 0.0
	for mu, v := range noise {
		roots[mu] = math.Sqrt(v)
		logs += math.Log(v)
		floats.Scale(1/roots[mu], scaled.Row(mu))
	}
	dense.AddProduct(l, 1, scaled.T(), scaled, dense.Lower, threads)
	for j := range l.Rows {
		l.Data[j*l.Down+j]++
	}
	if !dense.Factor(l, threads) {
		return false
	}
	at.logDet = dense.LogDet(l) + logs
	dense.SolveRight(l, scaled, threads)
	clear(at.inverse.Data)
	for mu := range at.w.Rows {
		floats.Scale(1/roots[mu], scaled.Row(mu))
		at.inverse.Data[mu*at.inverse.Down+mu] = 1 / noise[mu]
	}
	dense.AddProduct(at.inverse, -1, scaled, scaled.T(), dense.Lower, threads)
	copy(at.kept, dense.InvertDiagonal(l, threads))
	for j, kept := range at.kept {
		at.reach[j] = 1 - kept
	}
	return true
}

// addSchur adds A⁻¹ ∘ Σ y yᵀ to the lower triangle of Q.
func (f *Fit) addSchur(at *pattern) {
	if len(at.snapshots) > 1 && at.products.Rows == 0 {
		at.products = f.productsOf(at)
	}
	y := make([]float64, len(at.rows))
	for i, mu := range at.rows {
		y[i] = f.y.At(mu, at.snapshots[0])
	}
	for i, mu := range at.sensors {
		to, inverse := f.q.Row(mu), at.inverse.Row(i)
		for j, nu := range at.sensors[:i+1] {
			product := y[i] * y[j]
			if at.products.Rows > 0 {
				product = at.products.Row(i)[j]
			}
			if nu == mu && j < i { // as rows i and j, and as rows j and i
				product *= 2
			}
			to[nu] += inverse[j] * product
		}
	}
}

func (f *Fit) productsOf(at *pattern) dense.Matrix {
	y := dense.New(len(at.rows), len(at.snapshots))
	for i, mu := range at.rows {
		for j, k := range at.snapshots {
			y.Row(i)[j] = f.y.At(mu, k)
		}
	}
	products := dense.New(y.Rows, y.Rows)
	dense.AddProduct(products, 1, y, y.T(), dense.Lower, 1)
	return products
}

// solveSignals sets X, C, G and Inverse at the present gains.
func (f *Fit) solveSignals() {
	for _, family := range f.Families {
		for _, at := range family.patterns {
			for _, k := range at.snapshots {
				f.solveSnapshot(k, family, at)
			}
		}
	}
}

func (f *Fit) solveSnapshot(k int, a *Family, at *pattern) {
	corrected, seen := make([]float64, len(at.rows)), make([]float64, len(a.active))
	for i, mu := range at.rows {
		corrected[i] = f.corrected(mu, k)
	}
	for i, mu := range at.rows {
		g := floats.Dot(at.inverse.Row(i), corrected)
		f.G.Set(mu, k, g)
		f.Inverse.Set(mu, k, at.inverse.At(i, i)-at.spentOn(i))
		floats.AddScaled(seen, g, at.w.Row(i))
	}
	if len(a.active) < len(a.Gamma) {
		for i := range a.Gamma {
			f.X.Set(i, k, 0)
			f.C.Set(i, k, 0)
		}
	}
	for j, i := range a.active {
		f.X.Set(i, k, f.location(i, k)+a.Gamma[i]*seen[j])
		f.C.Set(i, k, a.Gamma[i]*at.kept[j])
		if f.Sparse != nil {
			f.Sparse.pull.Set(i, k, seen[j])
			f.Sparse.reach.Set(i, k, at.reach[j])
		}
	}
}

// corrected is the reading of a row in snapshot k that is corrected by s and the offset, less what the locations of sites make of it.
func (f *Fit) corrected(row, k int) float64 {
	v := f.S[f.sensorOf(row)] * f.y.At(row, k)
	if f.Sparse != nil {
		v -= f.Sparse.seen.At(row, k)
	}
	if f.Offsets != nil {
		v -= f.offsetIn(k) * f.Offsets.B[f.sensorOf(row)]
	}
	return v
}

// location is the mean of an entry before it is read.
func (f *Fit) location(i, k int) float64 {
	if f.Sparse == nil {
		return 0
	}
	return f.Sparse.location.At(i, k)
}

// SetFields sets Lambda and Sigma, of all entries, at the present gains.
func (f *Fit) SetFields() {
	for _, a := range f.Families {
		for _, at := range a.patterns {
			f.setFields(a, at)
		}
	}
}

func (f *Fit) setFields(a *Family, at *pattern) {
	reach, projected := f.reachOf(at)
	for _, k := range at.snapshots {
		seen := make([]float64, f.w.Columns)
		for i, mu := range at.rows {
			floats.AddScaled(seen, f.corrected(mu, k), projected.Row(i))
		}
		for i, gamma := range a.Gamma {
			f.Lambda.Set(i, k, 0)
			f.Sigma.Set(i, k, math.Inf(1))
			if !f.seen[i] || !(reach[i] > 0) {
				continue
			}
			kept := max(0, 1-gamma*reach[i])
			if gamma > 0 {
				kept = f.C.At(i, k) / gamma
			}
			if f.summed && gamma > 0 && f.C.At(i, k) > 0 {
				f.setSummed(a, at, projected, i, k)
			}
			f.Lambda.Set(i, k, f.location(i, k)+seen[i]/reach[i])
			f.Sigma.Set(i, k, kept/reach[i])
		}
	}
}

// allColumns are the rows of W that a pattern reads.
func (f *Fit) allColumns(at *pattern) dense.Matrix {
	if len(at.rows) == f.w.Rows {
		return f.w
	}
	all := make([]int, f.w.Columns)
	for i := range all {
		all[i] = i
	}
	return f.columns(at.rows, all)
}

// reachOf is diag(WᵀA⁻¹W), less what offsets take of it, and A⁻¹W, of all columns.
func (f *Fit) reachOf(at *pattern) (reach []float64, projected dense.Matrix) {
	w := f.allColumns(at)
	reach, projected = make([]float64, w.Columns), dense.New(w.Rows, w.Columns)
	dense.Product(projected, at.inverse, w)
	for mu := range w.Rows {
		other := projected.Row(mu)
		for i, v := range w.Row(mu) {
			reach[i] += v * other[i]
		}
	}
	if f.offset() {
		floats.Sub(reach, f.spentOnOffsets(at, w))
	}
	return reach, projected
}
