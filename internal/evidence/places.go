package evidence

import (
	"math"
	"math/cmplx"
	"slices"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"github.com/calamp/calamp/internal/dense"
)

const (
	// smoothColumns is how far, relative to its norm, a column of W may be from what three neighbours on either side say of it. Between columns the polynomial that goes through these is
	// then off by a ninth of that at most: the differences of sixth order are 1/20 and 5/1024.
	smoothColumns = 0.1

	// mostTurned is how far, in radians, phases of columns are followed from one to the next: at π two ways are as far.
	mostTurned = 0.75 * math.Pi

	// placePrecision is that of a place which is uniform between the middles to both neighbours, and the least there is: what readings do not determine of places is in the errors of gains all the same.
	placePrecision = 12

	// Of a shift of all places, which slopes of gains' phases undo, the evidence hardly knows anything: along a line its information is -0.2 to 0.02, where two places of eight antennas have 36. It is a convention.
	shiftPrecision = 1

	// longestMove bounds a step of a place, which is halved where the next one leads back: beyond a maximum that is not that of a parabola, steps would change between two places for ever.
	longestMove = 0.25

	// handsOver is how far beyond the middle between two columns an entry is handed over from one to the other.
	handsOver = 0.05
)

// places are entries that lie between columns of W, in columns: entry i at place d has the column between neighbours of i. They are learned where columns follow a smooth curve, as those of directions on a grid do,
// with rows of entries that all snapshots have: what W is wrong by is then the same in all of them, and more snapshots would not average it.
type places struct {
	grid    func(mu, i int) complex128 // W
	columns []int
	at      []float64

	slope       [][]complex128 // of each, the derivative of the column (M)
	information *mat.SymDense  // of places, with gains and signals integrated out
	covariance  *mat.SymDense  // the inverse, at most that of places between the middles to both neighbours
	gains       dense.Matrix   // how gains follow places: the change of t for one of each, a row each
	promised    float64        // by the latest step
	volume      float64        // the logarithm of the integral over places
	latest      []float64      // step
	longest     float64        // that a step may be
}

// neighbours are columns about a place, each turned by a phase that makes it most like the middle one: the phase of a column is that of its entry.
type neighbours struct {
	first   int // index of the first, relative to the column
	columns [][]complex128
	logs    bool // the columns are logarithms of those of W
}

// near are the columns from first to last about column i, nil where W has no such columns: each is turned by the phase that makes it most like its neighbour towards i. The last column is a neighbour of the first
// where these follow the same curve. They are logarithms where those say better what column i is: the size and the phase of a wave are smooth where directions are so far apart that the wave is not.
func (f *Complex) near(w func(mu, i int) complex128, i, first, last int) *neighbours {
	out := &neighbours{first: first, columns: make([][]complex128, last-first+1)}
	for _, step := range []int{1, -1} {
		var towards []complex128
		for l := 0; first <= l && l <= last; l += step {
			j, column := ((i+l)%f.n+f.n)%f.n, make([]complex128, f.m)
			along := complex(0, 0)
			for mu := range column {
				column[mu] = w(mu, j)
				if towards != nil {
					along += cmplx.Conj(column[mu]) * towards[mu]
				}
			}
			if towards != nil {
				if along == 0 {
					return nil
				}
				turn := along / complex(cmplx.Abs(along), 0)
				for mu := range column {
					column[mu] *= turn
				}
			}
			out.columns[l-first], towards = column, column
		}
	}
	if logs := out.logarithms(); logs != nil && logs.misses() < out.misses() {
		return logs
	}
	return out
}

// logarithms are those of the columns, with phases that are followed from the middle one on; nil where entries are zero, or turn so far from one column to the next that they might have turned the other way.
func (b *neighbours) logarithms() *neighbours {
	out := &neighbours{first: b.first, logs: true, columns: make([][]complex128, len(b.columns))}
	for j, column := range b.columns {
		out.columns[j] = make([]complex128, len(column))
		for mu, v := range column {
			if v == 0 {
				return nil
			}
			out.columns[j][mu] = complex(math.Log(cmplx.Abs(v)), 0)
		}
	}
	for mu, v := range b.middle() {
		out.middle()[mu] = cmplx.Log(v)
		for _, step := range []int{1, -1} {
			for j := step - b.first; 0 <= j && j < len(b.columns); j += step {
				turned := cmplx.Phase(b.columns[j][mu] / b.columns[j-step][mu])
				if math.Abs(turned) > mostTurned {
					return nil
				}
				out.columns[j][mu] += complex(0, imag(out.columns[j-step][mu])+turned)
			}
		}
	}
	return out
}

func (b *neighbours) middle() []complex128 { return b.columns[-b.first] }

// misses is how far the middle column is from what the others say, relative to its norm.
func (b *neighbours) misses() float64 {
	said, _ := b.column(0, true)
	is, _ := b.column(0, false)
	off, norm := 0.0, 0.0
	for mu, v := range is {
		off, norm = off+square(said[mu]-v), norm+square(v)
	}
	return math.Sqrt(off / norm)
}

// column is the polynomial through the neighbours at place d, and its derivative. That of the middle one is left out where without is set.
func (b *neighbours) column(d float64, without bool) (value, slope []complex128) {
	m := len(b.columns[0])
	value, slope = make([]complex128, m), make([]complex128, m)
	for j, column := range b.columns {
		if without && b.first+j == 0 {
			continue
		}
		weight, derivative := 1.0, 0.0 // Lagrange's
		for l := range b.columns {
			if l == j || without && b.first+l == 0 {
				continue
			}
			part, by := (d-float64(b.first+l))/float64(j-l), 1/float64(j-l)
			weight, derivative = weight*part, derivative*part+weight*by
		}
		for mu, v := range column {
			value[mu] += complex(weight, 0) * v
			slope[mu] += complex(derivative, 0) * v
		}
	}
	if b.logs {
		for mu := range value {
			value[mu] = cmplx.Exp(value[mu])
			slope[mu] *= value[mu]
		}
	}
	return value, slope
}

// smooth reports whether a column is where its neighbours say.
func (f *Complex) smooth(w func(mu, i int) complex128, i int) bool {
	if f.n < 7 {
		return false
	}
	about := f.near(w, i, -3, 3)
	return about != nil && about.misses() <= smoothColumns
}

// Between is a fit, for more steps, of entries that may lie between columns of W, begun at this one: of entries that are larger than both neighbours, whose columns follow a smooth curve, the place is learned. It is nil
// where there are none, where readings are missing, or where sensors have several rows.
func (f *Complex) Between(w func(mu, i int) complex128) *Complex {
	if f.readers != nil || f.Real || f.Units != nil || f.Weight == nil || f.readingsMissing() {
		return nil
	}
	size, all := make([]float64, f.n), 0.0
	for _, s := range f.Snapshots {
		for i, x := range s.X {
			size[i] += s.times * (square(x) + s.C[i])
		}
	}
	all = floats.Sum(size)
	p := &places{grid: w}
	for i, e := range size {
		before, after := size[(i+f.n-1)%f.n], size[(i+1)%f.n]
		if e*float64(f.n) <= all || e < before || e <= after || !f.smooth(w, i) {
			continue
		}
		at := math.Sqrt(after) / (math.Sqrt(after) + math.Sqrt(e))
		if before > after {
			at = -math.Sqrt(before) / (math.Sqrt(before) + math.Sqrt(e))
		}
		p.columns, p.at, p.slope = append(p.columns, i), append(p.at, at), append(p.slope, nil)
	}
	if len(p.columns) == 0 {
		return nil
	}
	out := f.onFrom(w)
	out.Joint = true
	out = out.Turned()
	out.places = p
	for j, i := range p.columns {
		for _, l := range []int{(i + f.n - 1) % f.n, (i + 1) % f.n} { // a neighbour's part is that of the entry between
			size[i] += size[l]
			size[l] = 0
		}
		out.setPlace(j)
	}
	unit, least := square(out.S[0]/f.S[0])/f.snapshots(), narrowSlab*all/float64(f.n)
	for _, s := range out.Snapshots {
		for i, e := range size {
			s.gamma[i] = unit * max(e, least)
		}
	}
	return out
}

// readingsMissing reports whether a snapshot has no reading of some row, as all have not of a silent one.
func (f *Complex) readingsMissing() bool { return slices.Contains(f.readings, 0) || !f.complete() }

// setPlace makes a column of W that of its place.
func (f *Complex) setPlace(j int) {
	p := f.places
	i, whole := p.columns[j], math.Floor(p.at[j])
	value, slope := f.near(p.grid, i, int(whole)-2, int(whole)+3).column(p.at[j], false)
	for mu, v := range value {
		f.w.set(mu, i, v)
	}
	p.slope[j] = slope
}

// movePlaces takes a Newton step of the places, which gains follow, and reports whether they have come to rest.
func (f *Complex) movePlaces() (rests bool) {
	if f.places == nil || f.steps <= heldFor {
		return f.places == nil
	}
	f.places.settle(f, f.places.derivatives(f))
	return f.places.promised < enough
}

// derivatives are those of the evidence in the places. In the place of entry i it is 2 Σ_k Re(x̄_i d_iᴴg_k) - 2 Σ_k γ_i Re(w_iᴴA⁻¹d_i), with d the slope of its column and
// g = A⁻¹(s∘y - Wx). The information, which it sets, is 2 Σ_k Re Jᴴ A⁻¹ J, with columns s_µy_µ and i s_µy_µ of t and -d_i x_i of places.
func (p *places) derivatives(f *Complex) (gradient []float64) {
	one := f.Snapshots[0]
	count, m := len(p.columns), f.m
	inverse := embedded{one.inverse}
	pulled := make([][]complex128, count)
	gradient = make([]float64, count)
	p.information, p.gains = mat.NewSymDense(count, nil), dense.New(2*m, count)
	for j, i := range p.columns {
		pulled[j] = inverse.times(p.slope[j])
		var trace complex128
		for mu, v := range pulled[j] {
			trace += cmplx.Conj(f.w.at(mu, i)) * v
		}
		gradient[j] = -2 * f.snapshots() * one.gamma[i] * real(trace)
		for k, s := range f.Snapshots {
			var along complex128
			for mu, g := range s.G {
				along += cmplx.Conj(p.slope[j][mu]) * g
				c := pulled[j][mu] * s.mean[i] * cmplx.Conj(f.S[mu]*f.y[k][mu])
				p.gains.Row(mu)[j] += 2 * real(c)
				p.gains.Row(m + mu)[j] += 2 * imag(c)
			}
			gradient[j] += 2 * real(cmplx.Conj(s.mean[i])*along)
		}
	}
	for j, i := range p.columns {
		for l, other := range p.columns[:j+1] {
			var slopes, entries complex128
			for mu, v := range pulled[l] {
				slopes += cmplx.Conj(p.slope[j][mu]) * v
			}
			for _, s := range f.Snapshots {
				entries += cmplx.Conj(s.mean[i]) * s.mean[other]
			}
			p.information.SetSym(j, l, 2*real(slopes*entries))
		}
	}
	return gradient
}

// logVolume is the logarithm of the integral over places.
func (p *places) logVolume() float64 {
	if p == nil {
		return 0
	}
	return p.volume
}

// settle takes what gains have off the information, and moves places.
func (p *places) settle(f *Complex, gradient []float64) {
	count, rows := len(p.columns), p.gains.Rows
	follow := dense.New(count, rows)
	for j := range count {
		column := follow.Row(j)
		for a := range column {
			column[a] = p.gains.Row(a)[j]
		}
		dense.Solve(f.curved, column)
		f.center(column)
	}
	taken := dense.New(count, count)
	dense.AddProduct(taken, 1, follow, p.gains, dense.All, 1)
	for j := range count {
		for l := range j + 1 {
			p.information.SetSym(j, l, p.information.At(j, l)-0.5*(taken.At(j, l)+taken.At(l, j)))
		}
	}
	p.gains, p.covariance, p.promised, p.volume = follow, mat.NewSymDense(count, nil), 0, 0
	var eigen mat.EigenSym
	if !eigen.Factorize(p.information, true) {
		return
	}
	var vectors mat.Dense
	eigen.VectorsTo(&vectors)
	step := make([]float64, count)
	for a, value := range eigen.Values(nil) {
		if value < shiftPrecision {
			continue
		}
		value = max(value, placePrecision)
		direction := mat.Col(nil, a, &vectors)
		along := floats.Dot(direction, gradient)
		floats.AddScaled(step, along/value, direction)
		p.covariance.SymRankOne(p.covariance, 1/value, mat.NewVecDense(count, direction))
		p.promised += 0.5 * along * along / value
		p.volume += 0.5 * math.Log(2*math.Pi/value)
	}
	p.bound(step)
	for j := range p.at {
		p.at[j] += step[j]
		if whole := math.Round(p.at[j]); math.Abs(p.at[j]) > 0.5+handsOver {
			f.handOver(j, int(whole))
		}
		p.at[j] = min(max(p.at[j], -1), 1)
		f.setPlace(j)
	}
}

// bound makes a step as long as may be: half as long as the latest where it leads back.
func (p *places) bound(step []float64) {
	longest := floats.Norm(step, math.Inf(1))
	switch {
	case p.latest == nil:
		p.longest = longestMove
	case floats.Dot(step, p.latest) < 0:
		p.longest = 0.5 * min(p.longest, longest)
	default:
		p.longest = min(2*p.longest, longestMove)
	}
	if longest > p.longest {
		floats.Scale(p.longest/longest, step)
	}
	p.latest = step
}

// handOver makes an entry that has come nearer to another column one of that. An entry that had its place there gets the column that is left, unless it is the larger one.
func (f *Complex) handOver(j, by int) {
	p := f.places
	from, to := p.columns[j], ((p.columns[j]+by)%f.n+f.n)%f.n
	other := slices.Index(p.columns, to)
	if other >= 0 && f.Snapshots[0].gamma[to] > f.Snapshots[0].gamma[from] || !f.smooth(p.grid, to) {
		return
	}
	p.columns[j], p.at[j] = to, p.at[j]-float64(by)
	for mu := range f.m {
		f.w.set(mu, from, p.grid(mu, from))
	}
	if other >= 0 {
		p.columns[other], p.at[other] = from, 0
		f.setPlace(other)
	}
	for _, s := range f.Snapshots {
		swap(s.X, from, to)
		swap(s.Lambda, from, to)
		swap(s.C, from, to)
		swap(s.Sigma, from, to)
		swap(s.gamma, from, to)
	}
	swap(f.rowWeights, from, to)
}

func swap[T any](of []T, i, j int) { of[i], of[j] = of[j], of[i] }

// addTo adds to the variances of t of the sensors those that places bring.
func (p *places) addTo(variances []float64) {
	if p == nil || p.covariance == nil {
		return
	}
	count := len(p.columns)
	for a := range variances {
		of := make([]float64, count)
		for j := range of {
			of[j] = p.gains.Row(j)[a]
		}
		v := mat.NewVecDense(count, of)
		variances[a] += mat.Inner(v, p.covariance, v)
	}
}

// Places are where entries lie, in columns from their own, and the standard deviations of these (N); nil where none lies between columns.
func (f *Complex) Places() (at, sd []float64) {
	if f.places == nil || f.places.covariance == nil {
		return nil, nil
	}
	at, sd = make([]float64, f.n), make([]float64, f.n)
	for j, i := range f.places.columns {
		if variance := f.places.covariance.At(j, j); variance > 0 && f.large(i) { // an entry that is zero has no place
			at[i], sd[i] = f.places.at[j], math.Sqrt(variance)
		}
	}
	return at, sd
}
