package evidence

import (
	"math"
	"math/cmplx"
	"math/rand/v2"
	"runtime"

	"gonum.org/v1/gonum/floats"

	"github.com/calamp/calamp/internal/dense"
	"github.com/calamp/calamp/internal/parallel"
)

// Complex is a fit of complex signals with a sparse prior, and of complex gains: expectation propagation as of [Sparse], for circular numbers. With
// s = r e^{iφ}, sites CN(m, Γ) of entries, and A = W Γ Wᴴ + Δ I, the evidence is
//
//	L(s) = Σ_µ 2 n_µ log r_µ - sᴴQs + 2 Re sᴴb - Σ_k (log det A_k + (W m_k)ᴴ A_k⁻¹ W m_k) + log p(s),
//	Q = Σ_k ȳ_k ∘ A_k⁻¹ ∘ y_kᵀ,   b = Σ_k ȳ_k ∘ A_k⁻¹ W m_k.
//
// It is concave in amplitudes given phases, and not in phases: there may be several maxima, of which the start of s chooses one. Steps are Newton's in
// t = (log r, φ), and the covariance of t is the inverse of minus the second derivative at a fixed mean of log r and of φ, which are conventions.
// A complex matrix is worked with as a real one of twice the size, ((Re, -Im), (Im, Re)).
type Complex struct {
	Noise      float64 // Δ, of both parts
	GivenNoise float64 // what it is where it is known, in units in which the mean of |s| is one; 0 learns it

	// S (M). Spread is the standard deviation of the normal prior of |s| about one, and Kappa the concentration of that of phases about zero, 0 for none, which
	// LearnKappa learns.
	S          []complex128
	Spread     float64
	Kappa      float64
	LearnKappa bool

	// Units are those of signals, whose columns W has.
	Units *Units

	// Joint says that an entry is of the same component of the prior in all snapshots.
	Joint bool

	// Real says that signals are real numbers, though readings and gains are complex: scenes behind a Fourier transform are. Variances of entries are then twice those of the
	// one part that they have, with which L has the same form: A = Re W Γ Re Wᵀ + … in both parts, half of the logarithms, and columns of the real parts of signals alone. The common
	// phase is no convention then.
	Real bool

	// Of each snapshot, X and C (N) are the posterior means, and the variances of both parts together, under the sparse prior, and Lambda and Sigma their
	// cavities: fields that know nothing of the prior of their own entry. Sigma is +Inf where an entry has none.
	Snapshots []*Snapshot

	Weight, Variance []float64 // of the prior, w_0 δ(x) + Σ_j w_j CN(0, v_j)

	w        embedded
	m, n     int
	y        [][]complex128 // P×M
	whole    [][]complex128 // the same before it was turned; nil where it was not
	readings []float64      // M
	gains    []complex128   // of the sensors: S, but where two of them read a row
	heard    []float64      // readings of each of them
	readers  *readers       // nil where every row has a sensor of its own
	evidence float64        // L, less terms without s and with the sites' own
	q        []complex128   // M×M
	twin     []complex128   // M×M, of real signals: sᴴQs has Re sᴴTs̄ beside it, since readings and their conjugates are correlated
	b        []complex128   // M
	bend     dense.Matrix   // minus the second derivative in t of the sensors, which are M where every row has its own
	curved   dense.Matrix   // the factor of the latest precision of t
	damping  float64        // of steps of t
	highest  bool           // gains are at a maximum of the evidence for the present sites
	along    [2][]float64   // H⁻¹ along the common amplitude and phase
	between  [3]float64     // 11, 12 and 22 of the inverse of their products with those directions
	gauge    [2]float64     // the integral over each of the directions is that of a normal variable of this precision
	logDet   float64        // of the precision at a fixed mean of log r and φ
	fixed    float64        // the evidence's terms without s
	settled  bool
	steps    int
	spent    float64
	floor    float64 // of the noise, relative to the readings' power: that with which the covariance of the readings can be factored
	logZ     float64 // the evidence at the latest step

	places     *places     // nil where entries are those of columns of W
	rowWeights [][]float64 // N, of joint entries: how likely each component is
	begun      bool        // at gains that are held at first, until sites belong to them
}

// Snapshot is the posterior of one signal.
type Snapshot struct {
	X, Lambda []complex128
	C, Sigma  []float64
	spent     float64      // of the trace of A⁻¹ on gains
	times     float64      // how many such snapshots there are: one, but of those that turned ones leave without a reading (see [Complex.Turned])
	G         []complex128 // M, A⁻¹(s∘y - W m), and Inverse the diagonal of A⁻¹; both 0 where a reading is missing
	Inverse   []float64

	rows      []int
	w         embedded
	location  []complex128 // N
	gamma     []float64    // N
	seen      []complex128 // W m, of rows
	inverse   dense.Matrix // of the embedded A
	projected dense.Matrix // A⁻¹W: real parts above imaginary ones
	mean      []complex128 // N, with Gaussian sites
	variance  []float64
	logDet    float64
}

// embedded is ((Re, -Im), (Im, Re)) of a matrix.
type embedded struct{ dense.Matrix }

func embed(m, n int, at func(mu, i int) complex128) embedded {
	w := dense.New(2*m, 2*n)
	for mu := range m {
		for i := range n {
			embedded{w}.set(mu, i, at(mu, i))
		}
	}
	return embedded{w}
}

func (a embedded) set(mu, i int, v complex128) {
	m, n := a.Rows/2, a.Columns/2
	a.Row(mu)[i], a.Row(mu)[n+i] = real(v), -imag(v)
	a.Row(m + mu)[i], a.Row(m + mu)[n+i] = imag(v), real(v)
}

func (a embedded) at(mu, i int) complex128 {
	return complex(a.Matrix.At(mu, i), a.Matrix.At(a.Rows/2+mu, i))
}

// times is the product with a vector.
func (a embedded) times(v []complex128) []complex128 {
	parts := make([]float64, 2*len(v))
	for i, x := range v {
		parts[i], parts[len(v)+i] = real(x), imag(x)
	}
	out := make([]complex128, a.Rows/2)
	for mu := range out {
		out[mu] = complex(floats.Dot(a.Row(mu), parts), floats.Dot(a.Row(len(out)+mu), parts))
	}
	return out
}

// NewComplex prepares a fit of readings y (M×P, a part of which that is NaN is a missing one) behind w (M×N). Gains begin at one, or for draws other than 0 at phases that
// are uniform; variances and noise begin as those of [New].
func NewComplex(m, n, p int, w, y func(mu, i int) complex128, draw uint64) *Complex {
	f := &Complex{
		S: make([]complex128, m), Spread: FirstSpread, floor: leastNoise * leastNoise, w: embed(m, n, w), m: m, n: n, readings: make([]float64, m),
		q: make([]complex128, m*m), b: make([]complex128, m), bend: dense.New(2*m, 2*m), curved: dense.New(2*m, 2*m),
	}
	f.gains, f.heard = f.S, f.readings
	drawPhases(f.S, draw)
	for k := range p {
		readings := make([]complex128, m)
		s := &Snapshot{
			X: make([]complex128, n), Lambda: make([]complex128, n), C: make([]float64, n), Sigma: make([]float64, n), G: make([]complex128, m), Inverse: make([]float64, m),
			location: make([]complex128, n), gamma: make([]float64, n), times: 1,
		}
		for mu := range m {
			if v := y(mu, k); !cmplx.IsNaN(v) {
				readings[mu] = v
				s.rows = append(s.rows, mu)
				f.readings[mu]++
			}
		}
		s.w = f.w
		if len(s.rows) < m {
			s.w = embed(len(s.rows), n, func(j, i int) complex128 { return f.w.at(s.rows[j], i) })
		}
		f.y, f.Snapshots = append(f.y, readings), append(f.Snapshots, s)
	}
	norms := 0.0
	for mu := range m {
		norms += floats.Dot(f.w.Row(mu), f.w.Row(mu)) / float64(m)
	}
	f.Noise = startNoise * f.power()
	for _, s := range f.Snapshots {
		for i := range s.gamma {
			s.gamma[i] = f.power() / norms
		}
	}
	return f
}

// drawPhases sets s to one, or for draws other than 0 to phases that are uniform.
func drawPhases(s []complex128, draw uint64) {
	rng := rand.New(rand.NewPCG(draw, uint64(len(s))))
	for i := range s {
		s[i] = 1
		if draw > 0 {
			s[i] = cmplx.Rect(1, 2*math.Pi*rng.Float64())
		}
	}
}

// power is the mean square of the corrected readings.
func (f *Complex) power() float64 {
	total := 0.0
	for _, y := range f.y {
		for mu, v := range y {
			total += square(f.S[mu] * v)
		}
	}
	return max(total/max(floats.Sum(f.readings), 1), math.SmallestNonzeroFloat64)
}

// Field is the field of entry i of a snapshot, CN(λ, c). An entry whose column of W is not zero has a wide one where it has no cavity, which says hardly anything of it.
func (f *Complex) Field(s *Snapshot, i int) (lambda complex128, c float64) {
	if !math.IsInf(s.Sigma[i], 1) || !f.reaches(s, i) {
		return s.Lambda[i], s.Sigma[i]
	}
	return s.X[i], s.C[i] / leastCavity
}

// reaches reports whether readings of a snapshot have a part of entry i.
func (f *Complex) reaches(s *Snapshot, i int) bool {
	for mu := range s.rows {
		if s.w.at(mu, i) != 0 {
			return true
		}
	}
	return false
}

func square(z complex128) float64 { return real(z)*real(z) + imag(z)*imag(z) }

// Step moves all sites once, and with them the prior, the noise and the gains. It reports whether it was the last one needed.
func (f *Complex) Step() (done bool, err error) {
	f.steps++
	if f.steps%looksEvery == 0 {
		f.toConvention()
	}
	logZ := f.logZ
	for f.solve() != nil {
		if f.GivenNoise > 0 || f.floor > leastNoise {
			return false, errSingular
		}
		f.floor *= floorsRise
		f.Noise = max(f.Noise, f.floor*f.power())
	}
	moved, open := f.cavities()
	rests := f.movePlaces()
	if f.steps%looksEvery == 0 {
		f.learnGains()
	}
	noise := f.Noise
	f.learnNoise()
	calm := math.Abs(math.Log(f.Noise/noise)) < noiseRests && !(f.Joint && f.logZ > logZ+sitesRest)
	if f.Weight == nil {
		f.beginSlabs()
	}
	if f.Joint {
		f.moveRows()
	} else {
		f.moveSites()
	}
	f.settled = calm && rests && f.highest && f.steps > leastSites && moved <= sitesRest*sitesRest*open
	return f.settled || f.steps >= mostSites, nil
}

// floorsRise is by how much the least noise is raised where the covariance of the readings cannot be factored, as where one snapshot does not tell noise from gains.
const floorsRise = 10

// leastSites is how many steps are taken at least: gains' own prior and slabs have then been learned a few times.
const leastSites = 3 * looksEvery

// Settled reports whether sites have converged.
func (f *Complex) Settled() bool { return f.settled }

// LogEvidence is the logarithm of p(y), with gains integrated out to second order about their maximum.
func (f *Complex) LogEvidence() float64 { return f.logZ - f.Units.costOf() }

// solve finds gains and signals for the present sites and noise.
func (f *Complex) solve() error {
	ok := make([]bool, len(f.Snapshots))
	if f.Joint && f.complete() {
		ok[0] = f.Snapshots[0].factor(f.Noise, f.parts())
		for k, s := range f.Snapshots[1:] { // sites are the same
			s.take(f.Snapshots[0])
			ok[1+k] = ok[0]
		}
	} else {
		parallel.Run(len(ok), runtime.GOMAXPROCS(0), func(k int) { ok[k] = f.Snapshots[k].factor(f.Noise, f.parts()) })
	}
	f.fixed = 0
	clear(f.q)
	clear(f.b)
	if f.Real && f.twin == nil {
		f.twin = make([]complex128, f.m*f.m)
	}
	clear(f.twin)
	for k, s := range f.Snapshots {
		if !ok[k] {
			return errSingular
		}
		f.addQuadratic(s, f.y[k])
	}
	if err := f.solveGains(); err != nil {
		return err
	}
	parallel.Run(len(ok), runtime.GOMAXPROCS(0), func(k int) { f.solveSnapshot(f.Snapshots[k], f.y[k]) })
	return nil
}

// factor sets A⁻¹, its determinant and A⁻¹W. Where there are more readings than entries, B = Δ + Γ^½WᴴWΓ^½ is factored in place of A: A⁻¹ = (1 - XᴴX)/Δ with X = L⁻¹Γ^½Wᴴ, B = LLᴴ. Signals have so many parts.
func (s *Snapshot) factor(noise float64, parts int) bool {
	rows, n := s.w.Rows, s.w.Columns/2
	columns := parts * n
	if rows == 0 {
		return true
	}
	scaled, scaledDone := dense.Scratch(rows, columns)
	defer scaledDone()
	for mu := range rows {
		to := scaled.Row(mu)
		for i, v := range s.w.Row(mu)[:columns] {
			to[i] = v * math.Sqrt(s.gamma[i%n])
		}
	}
	left, right := scaled, scaled.T()
	few := columns < rows
	if few {
		left, right = right, left
	}
	l, done := dense.Scratch(left.Rows, left.Rows)
	defer done()
	clear(l.Data)
	for i := range l.Rows {
		l.Row(i)[i] = noise
	}
	dense.AddProduct(l, 1, left, right, dense.Lower, 1)
	if !dense.Factor(l, 1) {
		return false
	}
	s.logDet = 0.5 * (dense.LogDet(l) + float64(rows-l.Rows)*math.Log(noise))
	s.inverse, s.projected = dense.New(rows, rows), dense.New(rows, n)
	if few {
		x, done := dense.Scratch(columns, rows)
		defer done()
		for i := range x.Rows {
			for mu := range rows {
				x.Row(i)[mu] = scaled.Row(mu)[i]
			}
		}
		dense.SolveLower(l, x, 1)
		for mu := range rows {
			s.inverse.Row(mu)[mu] = 1 / noise
		}
		dense.AddProduct(s.inverse, -1/noise, x.T(), x, dense.Lower, 1)
		dense.Mirror(s.inverse)
		dense.InvertLower(l, 1)
		for i := range l.Rows {
			clear(l.Row(i)[i+1:])
		}
		dense.AddProduct(s.projected, 1, x.T(), l.Part(0, columns, 0, n), dense.All, 1)
		for mu := range rows {
			for i, gamma := range s.gamma {
				s.projected.Row(mu)[i] /= math.Sqrt(gamma)
			}
		}
	} else {
		dense.InvertLower(l, 1)
		dense.Square(s.inverse, l, 1)
		dense.Mirror(s.inverse)
		dense.AddProduct(s.projected, 1, s.inverse, s.w.Part(0, rows, 0, n), dense.All, 1)
	}
	s.seen = s.w.times(s.location)
	return true
}

// addQuadratic adds to Q, b and the terms without s.
func (f *Complex) addQuadratic(s *Snapshot, y []complex128) {
	half := len(s.rows)
	if half == 0 {
		return
	}
	g := embedded{s.inverse}.times(s.seen)
	f.fixed -= s.times * (s.logDet + float64(half)*math.Log(math.Pi))
	for i, mu := range s.rows {
		f.b[mu] += cmplx.Conj(y[mu]) * g[i]
		f.fixed -= real(cmplx.Conj(s.seen[i]) * g[i])
		to, re, im := f.q[mu*f.m:][:f.m], s.inverse.Row(i), s.inverse.Row(half+i)
		if f.Real {
			twin := f.twin[mu*f.m:][:f.m]
			for j, nu := range s.rows {
				with, against := turning(re[j], re[half+j], im[j], im[half+j])
				to[nu] += cmplx.Conj(y[mu]) * with * y[nu]
				twin[nu] += cmplx.Conj(y[mu]*y[nu]) * against
			}
			continue
		}
		for j, nu := range s.rows {
			to[nu] += cmplx.Conj(y[mu]) * complex(re[j], im[j]) * y[nu]
		}
	}
}

// turning are a and b of ((p, q), (r, s)) as it acts on the parts of z: a z + b z̄.
func turning(p, q, r, s float64) (a, b complex128) {
	return complex(0.5*(p+s), 0.5*(r-q)), complex(0.5*(p-s), 0.5*(r+q))
}

// parts is how many a signal has: 2 of complex ones.
func (f *Complex) parts() int {
	if f.Real {
		return 1
	}
	return 2
}

// halves is half of the parts of a signal, of which logarithms of densities have one each.
func (f *Complex) halves() float64 { return 0.5 * float64(f.parts()) }

// size is |z|², in units in which the mean of that of a signal is its variance, as [Complex.Real] has it.
func (f *Complex) size(z complex128) float64 { return square(z) / f.halves() }

// Release gives up what a further step alone would need.
func (f *Complex) Release() {
	for _, s := range f.Snapshots {
		s.inverse, s.projected = dense.Matrix{}, dense.Matrix{}
	}
}

// solveSnapshot sets the posterior with Gaussian sites, at the present gains.
func (f *Complex) solveSnapshot(s *Snapshot, y []complex128) {
	if len(s.rows) == 0 {
		s.mean, s.variance = s.location, s.gamma
		return
	}
	n, half := f.n, len(s.rows)
	r := make([]complex128, half)
	for j, mu := range s.rows {
		r[j] = f.S[mu]*y[mu] - s.seen[j]
	}
	g := embedded{s.inverse}.times(r)
	up, reach := make([]complex128, n), make([]float64, n)
	for j, mu := range s.rows {
		s.G[mu], s.Inverse[mu] = g[j], 0.5*(s.inverse.At(j, j)+s.inverse.At(half+j, half+j))
		re, im, own, other := s.projected.Row(j), s.projected.Row(half+j), s.w.Row(j), s.w.Row(half+j)
		for i := range n {
			up[i] += complex(re[i], -im[i]) * r[j]
			reach[i] += own[i]*re[i] + other[i]*im[i]
		}
	}
	if f.Real {
		for i, v := range up {
			up[i] = complex(real(v), 0)
		}
	}
	mean, variance := make([]complex128, n), make([]float64, n)
	for i, gamma := range s.gamma {
		mean[i] = s.location[i] + complex(gamma, 0)*up[i]
		variance[i] = gamma * max(0, 1-gamma*reach[i])
	}
	s.mean, s.variance = mean, variance
}

// cavities sets λ and c of all entries, with gains integrated out. It returns the squared change of the signals, and their variance.
func (f *Complex) cavities() (moved, open float64) {
	squares := make([][]float64, len(f.Snapshots))
	parallel.Run(len(squares), runtime.GOMAXPROCS(0), func(k int) { squares[k] = f.followGains(f.Snapshots[k], f.y[k]) })
	f.spent = 0
	for k, of := range squares {
		f.Snapshots[k].spent = floats.Sum(of[f.n:])
		f.spent += f.Snapshots[k].spent
	}
	if f.IsTurned() { // snapshots have what they have of the gains on average, as each of the whole has nearly
		mean := make([]float64, len(squares[0]))
		for k, of := range squares {
			floats.AddScaled(mean, f.Snapshots[k].times/f.snapshots(), of)
		}
		for k := range squares {
			squares[k] = mean
		}
	}
	for k, s := range f.Snapshots {
		s.setCavities(squares[k])
	}
	moments := f.newSlabMoments()
	total := 0.0
	if f.Joint && f.Weight != nil {
		total = f.rowsEvidence()
	}
	for _, s := range f.Snapshots {
		moments.times = s.times
		for i := range f.n {
			if math.IsInf(s.Sigma[i], 1) {
				continue
			}
			x, c := s.Lambda[i], s.variance[i]
			if f.Weight != nil {
				if f.Joint {
					moments.r = f.rowWeights[i]
				} else {
					moments.weigh(s.Lambda[i], s.Sigma[i])
					total += s.times * moments.evidence
				}
				x, c = moments.take(s.Lambda[i], s.Sigma[i])
				v := s.Sigma[i] + s.gamma[i]
				total += s.times * f.halves() * (math.Log(math.Pi*v) + f.size(s.Lambda[i]-s.location[i])/v)
			}
			moved, open = moved+s.times*f.size(x-s.X[i]), open+s.times*c
			s.X[i], s.C[i] = x, c
		}
	}
	f.logZ = f.fixed + f.evidence + total + f.gainVolume() + f.places.logVolume()
	return moved, open
}

// followGains are the variances that entries of a snapshot have of those of the gains, in units of γ², and after them those of A⁻¹(s∘y - W m), of both parts: signals move with the gains by
// dx = Γ Wᴴ A⁻¹ (y∘s∘(d log r + i dφ)).
func (f *Complex) followGains(s *Snapshot, y []complex128) []float64 {
	n, half, count := f.n, len(s.rows), len(f.gains)
	columns := n + half
	both, done := dense.Scratch(2*count, 2*columns) // real parts of dx/Γ, and of A⁻¹(…), beside imaginary ones
	defer done()
	clear(both.Data)
	for j, mu := range s.rows {
		by := f.S[mu] * y[mu]
		re, im := s.projected.Row(j), s.projected.Row(half+j)
		own, other := s.inverse.Row(j), s.inverse.Row(half+j)
		for a, sensor := range f.sensorsOf(mu) {
			sign := signs[1][a]
			r, phi := both.Row(sensor), both.Row(count+sensor)
			add := func(i int, amplitude, phase complex128) {
				r[i] += real(amplitude)
				r[columns+i] += imag(amplitude)
				phi[i] += sign * real(phase)
				phi[columns+i] += sign * imag(phase)
			}
			if f.Real {
				for i := range n { // twice its variance, as that of X
					v := complex(math.Sqrt2*re[i], -math.Sqrt2*im[i]) * by
					add(i, complex(real(v), 0), complex(-imag(v), 0))
				}
				for i := range half {
					with, against := turning(own[i], other[i], own[half+i], other[half+i])
					with, against = with*by, against*cmplx.Conj(by)
					add(n+i, with+against, 1i*(with-against))
				}
				continue
			}
			for i := range n {
				v := complex(re[i], -im[i]) * by
				add(i, v, 1i*v)
			}
			for i := range half {
				v := complex(own[i], -other[i]) * by
				add(n+i, v, 1i*v)
			}
		}
	}
	var along [2][]float64
	for a := range along {
		along[a] = make([]float64, 2*columns)
		for mu, u := range f.along[a] {
			floats.AddScaled(along[a], u, both.Row(mu))
		}
	}
	dense.SolveLower(f.curved, both, 1)
	squares := columnSquares(both)
	for i := range squares {
		squares[i] = max(0, squares[i]-f.ofGauge(along[0][i], along[1][i]))
	}
	floats.Add(squares[:columns], squares[columns:])
	return squares[:columns]
}

// setCavities sets λ and c, with gains integrated out that move entries as [Complex.followGains] has it.
func (s *Snapshot) setCavities(gains []float64) {
	for i, gamma := range s.gamma {
		variance := s.variance[i] + gamma*gamma*gains[i]
		precision := 1/variance - 1/gamma
		s.variance[i], s.Sigma[i] = variance, math.Inf(1)
		if variance > 0 && precision*variance > leastCavity {
			s.Sigma[i] = 1 / precision
			s.Lambda[i] = (s.mean[i]/complex(variance, 0) - s.location[i]/complex(gamma, 0)) / complex(precision, 0)
		} else {
			s.X[i], s.C[i] = s.mean[i], variance
		}
	}
}

// learnNoise takes a step of Δ as noiseOfSites does.
func (f *Complex) learnNoise() {
	if f.GivenNoise > 0 {
		f.Noise = max(f.GivenNoise, leastNoise*f.power())
		return
	}
	total, trace := 0.0, 0.0
	for _, s := range f.Snapshots {
		for mu, g := range s.G {
			total, trace = total+s.times*square(g), trace+s.times*s.Inverse[mu]
		}
	}
	f.Noise = max(f.Noise*noiseFactor(total, trace-f.spent, trace), f.floor*f.power())
}

// meanSquare is that of the entries.
func (f *Complex) meanSquare() float64 {
	total := 0.0
	for _, s := range f.Snapshots {
		for _, x := range s.mean {
			total += s.times * f.size(x)
		}
	}
	return total / (float64(f.n) * f.snapshots())
}

func (f *Complex) beginSlabs() {
	f.Weight, f.Variance = []float64{1 - slabs*firstSlab}, []float64{0}
	for v := largestSlab * f.meanSquare(); len(f.Weight) <= slabs; v /= fallBy {
		f.Weight, f.Variance = append(f.Weight, firstSlab), append(f.Variance, v)
	}
}

// moveSites moves the sites of all entries towards those with which their posteriors have the prior's means and variances, and takes a step of the prior.
func (f *Complex) moveSites() {
	moments, part := f.newSlabMoments(), siteStep*damps/max(damps, float64(f.steps))
	for _, s := range f.Snapshots {
		for i, c := range s.Sigma {
			if math.IsInf(c, 1) {
				continue
			}
			moments.weigh(s.Lambda[i], c)
			mean, variance := moments.take(s.Lambda[i], c)
			variance = max(variance, narrowSlab*c)
			tau := max(1/variance-1/c, 1/(looseSite*c))
			nu := mean*complex(tau+1/c, 0) - s.Lambda[i]/complex(c, 0)
			was := 1 / s.gamma[i]
			nu = complex(part, 0)*nu + complex((1-part)*was, 0)*s.location[i]
			tau = part*tau + (1-part)*was
			s.gamma[i], s.location[i] = 1/tau, nu/complex(tau, 0)
		}
	}
	if f.steps > slabsStayFor {
		moments.adopt(f)
	}
}

// slabMoments are sums over entries of what their posteriors say of the prior.
type slabMoments struct {
	f                   *Complex
	r, weights, squares []float64
	evidence            float64
	times               float64 // of the present snapshot
}

func (f *Complex) newSlabMoments() *slabMoments {
	n := len(f.Weight)
	return &slabMoments{f: f, r: make([]float64, n), weights: make([]float64, n), squares: make([]float64, n), times: 1}
}

// weigh sets how likely each component is of an entry with the field CN(λ, c).
func (m *slabMoments) weigh(lambda complex128, c float64) {
	size, halves := m.f.size(lambda), m.f.halves()
	for j, v := range m.f.Variance {
		m.r[j] = math.Log(m.f.Weight[j]) - halves*(math.Log(math.Pi*(v+c))+size/(v+c))
	}
	m.evidence = normalise(m.r)
}

// take is the posterior of such an entry; its variance is that of both parts.
func (m *slabMoments) take(lambda complex128, c float64) (mean complex128, variance float64) {
	size := m.f.size(lambda)
	shrunk, second := 0.0, 0.0
	for j, v := range m.f.Variance {
		r, kept := m.r[j], v/(v+c)
		own := kept*c + kept*kept*size
		shrunk, second = shrunk+r*kept, second+r*own
		m.weights[j] += m.times * r
		m.squares[j] += m.times * r * own
	}
	return complex(shrunk, 0) * lambda, max(0, second-shrunk*shrunk*size)
}

// adopt makes the prior that of the sums.
func (m *slabMoments) adopt(f *Complex) {
	count, least := floats.Sum(m.weights), narrowSlab*f.meanSquare()
	if count == 0 {
		return
	}
	for j, w := range m.weights {
		f.Weight[j] = max(w/count, leastWeight)
		if j > 0 && w > 0 {
			f.Variance[j] = max(m.squares[j]/w, least)
		}
	}
	floats.Scale(1/floats.Sum(f.Weight), f.Weight)
}
