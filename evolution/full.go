package evolution

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"

	"gonum.org/v1/gonum/mat"

	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/prior"
)

// Full is a problem whose overlaps are P×P matrices (paper, "State Evolution
// derivation for mismatched prior and channel", without the diagonal ansatz).
type Full struct {
	Truth   Truth
	Prior   prior.Vector
	Channel channel.Correlated
	Alpha   float64
	P       int
}

// Matrices are the P×P overlaps after an iteration, and the output side that led to
// them, with the standard errors of their entries. The errors are those of the last
// averages; what the errors of earlier iterations add is not in them.
type Matrices struct {
	Q, M, V            Matrix // E x̂x̂ᵀ, E x₀x̂ᵀ, E C
	QHat, MHat, ChiHat Matrix // E ggᵀ, E ∂g/∂z, -E ∂g/∂ω
	MSEX, MSES         Number // per entry of X, and on s
}

// Matrix is a matrix with the standard errors of its entries.
type Matrix struct{ Value, Err *mat.Dense }

// MonteCarloFull runs offline state evolution for matrices, by sampling.
func MonteCarloFull(ctx context.Context, m Full, opt *MonteCarloOptions) (out []Matrices, err error) {
	defer ending(&err)
	if m.Truth == nil || m.Prior == nil || m.Channel == nil || m.P < 1 || !(m.Alpha > 0) {
		return nil, fmt.Errorf("sampling needs a truth, a prior, a channel, P ≥ 1 and α > 0")
	}
	f := &fullSampling{Full: m, work: newWork(ctx, 0), o: opt.withDefaults()}
	f.rng = rand.New(rand.NewPCG(f.o.Seed, 1))
	f.q0 = mat.NewDense(m.P, m.P, nil)
	for k := range m.P {
		f.q0.Set(k, k, m.Truth.SecondMoment())
	}
	state := f.ignorant()
	for range f.o.Iterations {
		if err := ctx.Err(); err != nil {
			return out, err
		}
		next, err := f.step(state)
		if err != nil {
			return out, err
		}
		out = append(out, next)
		state = next
	}
	return out, nil
}

type fullSampling struct {
	Full
	work *work
	o    MonteCarloOptions
	rng  *rand.Rand
	q0   *mat.Dense
}

// ignorant is the state before the first iteration: x̂ is the student's prior mean.
func (f *fullSampling) ignorant() Matrices {
	p := f.P
	s := Matrices{Q: newMatrix(p), M: newMatrix(p), V: newMatrix(p)}
	mean := f.Prior.Mean()
	for i := range p {
		s.V.Value.Set(i, i, f.Prior.Variance())
		for j := range p {
			s.Q.Value.Set(i, j, mean*mean)
		}
	}
	return s
}

func newMatrix(p int) Matrix { return Matrix{mat.NewDense(p, p, nil), mat.NewDense(p, p, nil)} }

// step is one iteration by sampling: it draws ω ~ N(0, Q), z given ω and the
// readings for the output side, and then entries and their fields for the input side.
func (f *fullSampling) step(s Matrices) (Matrices, error) {
	p := f.P
	rootQ, pseudo := squareRoot(s.Q.Value)
	// E[z|ω] = M Q⁻¹ ω, and what is left has covariance Q₀ - M Q⁻¹ Mᵀ.
	var slope, back, rest mat.Dense
	slope.Mul(s.M.Value, pseudo)
	back.Mul(&slope, s.M.Value.T())
	rest.Sub(f.q0, &back)
	rootRest, restInverse := squareRoot(&rest)

	var gg, gz, dg matrixMoments
	var mseS moments
	sensor := channel.NewSensor(f.Channel, p)
	omega, innov, z := mat.NewVecDense(p, sensor.Omega), mat.NewVecDense(p, nil), mat.NewVecDense(p, nil)
	for i := range p {
		copy(sensor.V[i*p:(i+1)*p], s.V.Value.RawRowView(i))
	}
	for range f.o.Samples {
		f.work.spend(p * p)
		s0 := f.Truth.Gain(f.rng)
		omega.MulVec(rootQ, f.normals())
		innov.MulVec(rootRest, f.normals())
		z.MulVec(&slope, omega)
		z.AddVec(z, innov)
		for k := range p {
			sensor.Y[k] = f.Truth.Reading(z.AtVec(k), s0, f.rng)
		}
		f.Channel.OutputCorrelated(sensor)
		gg.outer(sensor.G, sensor.G)
		gz.outer(sensor.G, innov.RawVector().Data)
		dg.add(sensor.DG)
		mseS.add((sensor.S - s0) * (sensor.S - s0))
	}
	out := Matrices{QHat: gg.matrix(p, 1), ChiHat: dg.matrix(p, -1), MSES: mseS.number()}
	// Integration by parts over the Gaussian z gives the mean derivative without
	// differentiating: E g (z-E[z|ω])ᵀ = E[∂g/∂z] Cov(z|ω).
	product := gz.matrix(p, 1)
	out.MHat = Matrix{mat.NewDense(p, p, nil), mat.NewDense(p, p, nil)}
	out.MHat.Value.Mul(product.Value, restInverse)
	var abs mat.Dense
	abs.Apply(func(_, _ int, v float64) float64 { return math.Abs(v) }, restInverse)
	out.MHat.Err.Mul(product.Err, &abs)
	return out, f.entries(&out)
}

// entries averages over x₀ and its field αχ̂λ = αm̂x₀ + N(0, αq̂).
func (f *fullSampling) entries(out *Matrices) error {
	p := f.P
	var noise, precision mat.Dense
	noise.Scale(f.Alpha, out.QHat.Value)
	root, _ := squareRoot(&noise)
	precision.Scale(0.5*f.Alpha, out.ChiHat.Value)
	precision.Add(&precision, mat.DenseCopyOf(precision.T()))
	field, shift := mat.NewVecDense(p, nil), mat.NewVecDense(p, nil)
	x0 := mat.NewVecDense(p, nil)
	mean, covariance := make([]float64, p), make([]float64, p*p)
	var q, m, v matrixMoments
	var mse moments
	for range f.o.Samples {
		f.work.spend(p * p)
		for k := range p {
			x0.SetVec(k, f.Truth.Entry(f.rng))
		}
		field.MulVec(out.MHat.Value, x0)
		field.ScaleVec(f.Alpha, field)
		shift.MulVec(root, f.normals())
		field.AddVec(field, shift)
		if _, err := f.Prior.PosteriorVector(mean, covariance, field.RawVector().Data, precision.RawMatrix().Data); err != nil {
			return err
		}
		q.outer(mean, mean)
		m.outer(x0.RawVector().Data, mean)
		v.add(covariance)
		e := 0.0
		for k, x := range mean {
			e += (x - x0.AtVec(k)) * (x - x0.AtVec(k))
		}
		mse.add(e / float64(p))
	}
	out.Q, out.M, out.V, out.MSEX = q.matrix(p, 1), m.matrix(p, 1), v.matrix(p, 1), mse.number()
	return nil
}

func (f *fullSampling) normals() *mat.VecDense {
	v := mat.NewVecDense(f.P, nil)
	for k := range f.P {
		v.SetVec(k, f.rng.NormFloat64())
	}
	return v
}

// matrixMoments accumulates means and standard errors entry by entry.
type matrixMoments []moments

func (m *matrixMoments) add(v []float64) {
	if *m == nil {
		*m = make(matrixMoments, len(v))
	}
	for i, x := range v {
		(*m)[i].add(x)
	}
}

func (m *matrixMoments) outer(a, b []float64) {
	if *m == nil {
		*m = make(matrixMoments, len(a)*len(b))
	}
	for i, x := range a {
		for j, y := range b {
			(*m)[i*len(b)+j].add(x * y)
		}
	}
}

func (m matrixMoments) matrix(p int, sign float64) Matrix {
	out := newMatrix(p)
	for i := range m {
		n := m[i].number()
		out.Value.Set(i/p, i%p, sign*n.Value)
		out.Err.Set(i/p, i%p, n.Err)
	}
	return out
}

// squareRoot returns the symmetric square root and the pseudo-inverse of a positive
// semidefinite matrix. It takes the symmetric part of a, and zero for eigenvalues
// that sampling errors made negative.
func squareRoot(a *mat.Dense) (root, inverse *mat.Dense) {
	p, _ := a.Dims()
	sym := mat.NewSymDense(p, nil)
	for i := range p {
		for j := i; j < p; j++ {
			sym.SetSym(i, j, 0.5*(a.At(i, j)+a.At(j, i)))
		}
	}
	var eigen mat.EigenSym
	if !eigen.Factorize(sym, true) {
		panic("calamp: eigendecomposition of an overlap matrix failed")
	}
	values := eigen.Values(nil)
	roots, inverses := make([]float64, p), make([]float64, p)
	top := values[p-1]
	for i, v := range values {
		if v > 1e-13*top {
			roots[i], inverses[i] = math.Sqrt(v), 1/v
		}
	}
	var basis mat.Dense
	eigen.VectorsTo(&basis)
	with := func(d []float64) *mat.Dense {
		var scaled, out mat.Dense
		scaled.Mul(&basis, mat.NewDiagDense(p, d))
		out.Mul(&scaled, basis.T())
		return &out
	}
	return with(roots), with(inverses)
}
