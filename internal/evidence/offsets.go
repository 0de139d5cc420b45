package evidence

import (
	"math"
	"runtime"
	"slices"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"github.com/calamp/calamp/internal/dense"
	"github.com/calamp/calamp/internal/parallel"
)

// Offsets are those of sensors, y = (W x + noise)/s + o. With b = s∘o ~ N(0, v) the corrected readings of all snapshots are s∘y_k = b + W x_k + noise. Given s, b is Gaussian: with r_k = s∘y_k - W m_k
//
//	b ~ N(B⁻¹ Σ_k A_k⁻¹ r_k, B⁻¹),   B = Σ_k A_k⁻¹ + 1/v,   Σ_k A_k⁻¹ r_k = C s - h,   C = Σ_k A_k⁻¹ diag(y_k).
//
// Integrated out, it leaves the evidence as it was but for Q - CᵀB⁻¹C in place of Q, which is positive semidefinite, too: the evidence stays concave in s.
// Of A⁻¹, the covariance of one snapshot, it takes A⁻¹B⁻¹A⁻¹. The prior is that of b and not of o: s is near one.
type Offsets struct {
	B     []float64 // the posterior mean of each sensor
	Var   []float64 // the posterior variance of each, with gains integrated out; set by [Fit.SetOffsets]
	SD    float64   // √v
	Given bool      // v is known

	cross  dense.Matrix // C, then L⁻¹C, then B⁻¹C, which is db/ds
	factor dense.Matrix // L, of B = LLᵀ
	pulled []float64    // h, then L⁻¹h
	trace  float64      // of B⁻¹
}

// startOffsets is the part of the readings' power that is taken for offsets at first, as it is for noise.
const startOffsets = startNoise

// WithOffsets gives sensors offsets of a standard deviation that is known, in units in which the mean of s is one, or that is learned where it is 0.
func (f *Fit) WithOffsets(sd float64) {
	given := sd > 0
	if !given {
		sd = math.Sqrt(startOffsets * f.power())
	}
	f.Offsets = newOffsets(len(f.S), sd, given)
}

func newOffsets(m int, sd float64, given bool) *Offsets {
	return &Offsets{
		B: make([]float64, m), SD: sd, Given: given,
		cross: dense.New(m, m), factor: dense.New(m, m), pulled: make([]float64, m),
	}
}

// inherit gives a fit the offsets of another one of the same sensors to begin with, and the sensors that this one has not, or that see an entry alone.
func (f *Fit) inherit(from *Fit) {
	f.GainsKnown = from.GainsKnown
	f.Levels, f.Outliers, f.Alone, f.Smooth, f.Unequal = from.Levels, from.Outliers, from.Alone, from.Smooth, from.Unequal.asFound()
	if o := from.Offsets; o != nil {
		f.Offsets = newOffsets(len(f.S), o.SD, o.Given)
	}
}

// afresh is a fit of such readings from the start, of what is given and left out as in f, and with nothing known of what is smooth.
func (f *Fit) afresh(w dense.Matrix, y *mat.Dense) *Fit {
	next := newFit(w, y, f.each, false)
	next.GivenNoise = f.GivenNoise
	next.inherit(f)
	next.Smooth = next.Smooth.anew()
	return next
}

// offset reports whether sensors have offsets by now: while gains are held at one, these would take their place.
func (f *Fit) offset() bool { return f.Offsets != nil && !f.held }

func (o *Offsets) clear() {
	clear(o.cross.Data)
	clear(o.factor.Data)
	clear(o.pulled)
}

// add adds what snapshots say of b.
func (o *Offsets) add(f *Fit, at *pattern) {
	sums := make([]float64, len(at.rows))
	for i, row := range at.rows {
		for _, k := range at.snapshots {
			sums[i] += f.offsetIn(k) * f.y.At(row, k)
		}
	}
	count := 0.0
	for _, k := range at.snapshots {
		count += f.offsetIn(k) * f.offsetIn(k)
	}
	for i, mu := range at.sensors {
		cross, own, inverse := o.cross.Row(mu), o.factor.Row(mu), at.inverse.Row(i)
		for j, nu := range at.sensors {
			cross[nu] += inverse[j] * sums[j]
			own[nu] += count * inverse[j]
		}
	}
}

// integrateOffsets takes b out of Q and of what is linear in s, and returns what that adds to the evidence.
func (f *Fit) integrateOffsets() (value float64, err error) {
	o, threads := f.Offsets, runtime.GOMAXPROCS(0)
	for mu := range f.S {
		o.factor.Data[mu*o.factor.Down+mu] += 1 / (o.SD * o.SD)
	}
	if !dense.Factor(o.factor, threads) {
		return 0, errSingular
	}
	value = -0.5*dense.LogDet(o.factor) - float64(len(f.S))*math.Log(o.SD)
	dense.SolveLower(o.factor, o.cross, threads)
	dense.AddProduct(f.q, -1, o.cross.T(), o.cross, dense.Lower, threads)
	dense.SolveLower(o.factor, dense.Of(o.pulled, len(o.pulled), 1), threads)
	for mu, v := range o.pulled {
		floats.AddScaled(f.linear, -v, o.cross.Row(mu))
		value += 0.5 * v * v
	}
	return value, nil
}

// setOffsets sets b, at the present s, and takes what offsets cost out of what readings say of entries.
func (f *Fit) setOffsets() {
	o, inverse := f.Offsets, f.Offsets.inverse()
	clear(o.B)
	for mu, h := range o.pulled {
		floats.AddScaled(o.B, floats.Dot(o.cross.Row(mu), f.S)-h, inverse.Row(mu))
	}
	moved := dense.New(o.cross.Rows, o.cross.Columns)
	dense.AddProduct(moved, 1, inverse.T(), o.cross, dense.All, runtime.GOMAXPROCS(0))
	o.cross, o.trace = moved, floats.Sum(columnSquares(inverse))
	parallel.Run(len(f.Families), runtime.GOMAXPROCS(0), func(i int) {
		for _, at := range f.Families[i].patterns {
			if len(at.rows) > 0 {
				f.spendOnOffsets(f.Families[i], at)
			}
		}
	})
}

// inverse is L⁻¹: the diagonal of B⁻¹ are the squares of its columns.
func (o *Offsets) inverse() dense.Matrix {
	inverse := dense.New(len(o.B), len(o.B))
	copy(inverse.Data, o.factor.Data)
	dense.InvertLower(inverse, runtime.GOMAXPROCS(0))
	for mu := range inverse.Rows {
		clear(inverse.Row(mu)[mu+1:])
	}
	return inverse
}

// offsetIn is how often a snapshot has the offsets: once, unless snapshots were turned.
func (f *Fit) offsetIn(k int) float64 {
	if f.Correlated == nil {
		return 1
	}
	return f.Correlated.sums[k]
}

// columnSquares are the squared norms of the columns.
func columnSquares(a dense.Matrix) []float64 {
	squares := make([]float64, a.Columns)
	for mu := range a.Rows {
		for i, v := range a.Row(mu) {
			squares[i] += v * v
		}
	}
	return squares
}

func (o *Offsets) clone() *Offsets {
	c := *o
	c.B = slices.Clone(o.B)
	return &c
}

// movedBy is (db/ds)ᵀ of b in the rows of a pattern (sensors×rows).
func (o *Offsets) movedBy(at *pattern) dense.Matrix {
	if len(at.rows) == len(o.B) && at.sensors[len(o.B)-1] == len(o.B)-1 { // each sensor has one
		return o.cross.T()
	}
	some := dense.New(len(o.B), len(at.rows))
	for i, mu := range at.sensors {
		for nu, v := range o.cross.Row(mu) {
			some.Row(nu)[i] = v
		}
	}
	return some
}

// spentOn is what offsets take of the diagonal of A⁻¹ in row i.
func (at *pattern) spentOn(i int) float64 {
	if at.spent == nil {
		return 0
	}
	return at.spent[i]
}

// reachOfOffsets is L⁻¹A⁻¹ (sensors×rows) of a pattern, times how often its snapshots have the offsets: offsets take the squares of its columns from the diagonal of A⁻¹, and those of the columns of its product with W from that of WᵀA⁻¹W.
func (f *Fit) reachOfOffsets(at *pattern) (reach dense.Matrix, done func()) {
	o, times := f.Offsets, f.offsetIn(at.snapshots[0]) // snapshots of a pattern have them as often
	reach, done = dense.Scratch(len(o.B), len(at.rows))
	clear(reach.Data)
	for i, mu := range at.sensors {
		floats.AddScaled(reach.Row(mu), times, at.inverse.Row(i))
	}
	dense.SolveLower(o.factor, reach, runtime.GOMAXPROCS(0))
	return reach, done
}

// spentOnOffsets are what offsets take of wᵀA⁻¹w, of columns w in the rows of a pattern.
func (f *Fit) spentOnOffsets(at *pattern, w dense.Matrix) []float64 {
	reach, done := f.reachOfOffsets(at)
	defer done()
	return squaresOfProduct(reach, w)
}

func squaresOfProduct(a, b dense.Matrix) []float64 {
	product, done := dense.Scratch(a.Rows, b.Columns)
	defer done()
	dense.Product(product, a, b)
	return columnSquares(product)
}

// spendOnOffsets takes what offsets cost out of what readings say of entries, and of one another.
func (f *Fit) spendOnOffsets(a *Family, at *pattern) {
	reach, done := f.reachOfOffsets(at)
	defer done()
	at.spent = columnSquares(reach)
	for j, spent := range squaresOfProduct(reach, at.w) {
		at.reach[j] -= spent
		at.kept[j] = min(1, at.kept[j]+a.Gamma[a.active[j]]*spent)
	}
}

// improve takes a step of v, down to a least one: its square becomes Σ b² / tr(1/v - B⁻¹/v²), as that of a variance of signals does (see [Fit.improve]).
func (o *Offsets) improve(least float64) {
	if o.Given {
		return
	}
	v := o.SD * o.SD
	reach := (float64(len(o.B)) - o.trace/v) / v
	if square := floats.Dot(o.B, o.B); reach > 0 {
		ratio := math.Sqrt(square / (reach * v * v))
		o.SD = max(o.SD*math.Sqrt(min(max(ratio, 1/mostFactor), mostFactor)), math.Sqrt(least))
	}
}

// SetOffsets sets the variances of offsets, given s, with gains integrated out.
func (f *Fit) SetOffsets() error {
	if f.Offsets == nil {
		return nil
	}
	o, threads := f.Offsets, runtime.GOMAXPROCS(0)
	if !f.factorPrecision() {
		return errSingular
	}
	moved := transposed(o.cross) // then L⁻¹(db/ds)ᵀ, with H = LLᵀ
	dense.SolveLower(f.curved, moved, threads)
	o.Var = columnSquares(o.inverse())
	floats.Add(o.Var, columnSquares(moved))
	return nil
}

// rescale follows gains and signals that become c times as large.
func (o *Offsets) rescale(c float64) {
	floats.Scale(c, o.B)
	o.SD *= c
	floats.Scale(1/c, o.factor.Data)
}

// transposed is a copy of aᵀ, row by row.
func transposed(a dense.Matrix) dense.Matrix {
	t := dense.New(a.Columns, a.Rows)
	for i := range a.Rows {
		for j, v := range a.Row(i) {
			t.Row(j)[i] = v
		}
	}
	return t
}

// OffsetScore is by how many of its standard deviations the evidence rises with the variance v of offsets, at v = 0, where sensors have none: dL/dv = ½ ‖Σ_k G_k‖² - ½ tr(F - C H⁻¹ Cᵀ), F = Σ_k A_k⁻¹,
// of which the second is what s, the maximum of the evidence, leaves of the first where there are none.
func (f *Fit) OffsetScore() (float64, error) {
	m, threads := len(f.S), runtime.GOMAXPROCS(0)
	if !f.factorPrecision() {
		return 0, errSingular
	}
	o := newOffsets(m, 0, true)
	for _, a := range f.Families {
		for _, at := range a.patterns {
			if len(at.rows) > 0 {
				o.add(f, at)
			}
		}
	}
	moved := transposed(o.cross)
	dense.SolveLower(f.curved, moved, threads)
	dense.AddProduct(o.factor, -1, moved.T(), moved, dense.Lower, threads)
	square, trace, norm := 0.0, 0.0, 0.0
	for mu := range m {
		sum := 0.0
		for j, g := range f.rowsOf(f.G, mu) {
			_, k := f.place(mu, j)
			sum += f.offsetIn(k) * g
		}
		square += sum * sum
		trace += o.factor.At(mu, mu)
		norm += o.factor.At(mu, mu) * o.factor.At(mu, mu)
		for _, v := range o.factor.Row(mu)[:mu] {
			norm += 2 * v * v
		}
	}
	return (square - trace) / math.Sqrt(2*norm), nil
}
