package teacher

import (
	"fmt"
	"math"
	"math/cmplx"
	"math/rand/v2"

	"gonum.org/v1/gonum/mat"

	"github.com/calamp/calamp"
	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/operator"
	"github.com/calamp/calamp/prior"
)

// Complex describes an ensemble of complex problems: W with independent CN(0, 1/N) entries, or another Matrix or real
// ones of N(0, 1/N), complex signals and gains from their priors, noise CN(0, Δ).
type Complex struct {
	N, M, P    int
	Signal     prior.ComplexGaussBernoulli
	Gain       channel.ComplexPrior
	NoiseVar   float64
	X          *mat.Dense // N×2P, signals as they are; nil for those of Signal
	Matrix     Ensemble   // of a complex W: independent entries (the zero value), or of a condition number
	RealMatrix bool
}

// ComplexInstance is one problem of the ensemble with its truth. Y and X have two columns a signal.
type ComplexInstance struct {
	W     operator.Operator // M×N
	Y     *mat.Dense        // M×2P
	Truth calamp.Truth      // X is N×2P
}

// Problem is the instance as a problem with the true model.
func (t Complex) Problem(in *ComplexInstance) *calamp.Problem {
	return &calamp.Problem{W: in.W, Y: in.Y, Prior: t.Signal, Channel: channel.ComplexGain{Prior: t.Gain, NoiseVar: t.NoiseVar}}
}

// Pose draws the problem of a seed, with its truth.
func (t Complex) Pose(seed uint64) (*calamp.Problem, calamp.Truth, error) {
	in, err := t.Draw(seed)
	if err != nil {
		return nil, calamp.Truth{}, err
	}
	return t.Problem(in), in.Truth, nil
}

// Validate reports what describes no ensemble.
func (t Complex) Validate() error {
	if t.N <= 0 || t.M <= 0 || t.P <= 0 {
		return fmt.Errorf("N, M and P must be positive, found N = %d, M = %d, P = %d", t.N, t.M, t.P)
	}
	if err := t.Signal.Validate(); err != nil {
		return err
	}
	if err := t.Matrix.Validate(); err != nil {
		return err
	}
	if kind := t.Matrix.String(); kind != "iid" && (t.RealMatrix || t.Matrix.Kind != "condition") {
		return fmt.Errorf("a complex W has independent entries (iid) or is of condition:v, found %s", kind)
	}
	return channel.ComplexGain{Prior: t.Gain, NoiseVar: t.NoiseVar}.Validate()
}

// Draw makes the instance of a seed, with the random streams that [Teacher.Draw] has.
func (t Complex) Draw(seed uint64) (*ComplexInstance, error) {
	if err := t.Validate(); err != nil {
		return nil, err
	}
	in := &ComplexInstance{}
	w, err := t.matrix(in, seed)
	if err != nil {
		return nil, err
	}
	err = t.read(in, seed, func(z, x *mat.Dense) error {
		for mu := range t.M {
			for k := range t.P {
				total := complex(z.At(mu, 2*k), z.At(mu, 2*k+1))
				for i, v := range w[mu*t.N : (mu+1)*t.N] {
					total += v * complex(x.At(i, 2*k), x.At(i, 2*k+1))
				}
				z.Set(mu, 2*k, real(total))
				z.Set(mu, 2*k+1, imag(total))
			}
		}
		return nil
	})
	return in, err
}

// Readings draws readings of a given matrix, and their truth: N and M are its size.
func (t Complex) Readings(w operator.Operator, seed uint64) (*ComplexInstance, error) {
	t.M, t.N = w.Dims()
	if err := t.Validate(); err != nil {
		return nil, err
	}
	in := &ComplexInstance{W: w}
	err := t.read(in, seed, func(z, x *mat.Dense) error {
		product := mat.NewDense(t.M, 2*t.P, nil)
		products, err := operator.NewLinear(w, 2*t.P, 0)
		if err == nil {
			err = products.Forward(product.RawMatrix().Data, mat.DenseCopyOf(x.T()).RawMatrix().Data)
		}
		z.Add(z, product)
		return err
	})
	return in, err
}

// read draws signals and gains, and makes readings of them: add adds Wx to the noise.
func (t Complex) read(in *ComplexInstance, seed uint64, add func(z, x *mat.Dense) error) error {
	signals, gains, noise := stream(seed, "X"), stream(seed, "s"), stream(seed, "noise")
	x := t.X
	if x == nil {
		x = mat.NewDense(t.N, 2*t.P, nil)
		for k := range t.P {
			for i := range t.N {
				v := t.Signal.Sample(signals)
				x.Set(i, 2*k, real(v))
				x.Set(i, 2*k+1, imag(v))
			}
		}
	}
	amplitudes := t.Gain.Amplitude()
	in.Truth = calamp.Truth{X: x}
	for range t.M {
		r := t.Gain.Lo
		if t.Gain.Hi > r {
			r = amplitudes.Sample(gains)
		}
		in.Truth.S = append(in.Truth.S, r)
		in.Truth.Phase = append(in.Truth.Phase, vonMises(gains, t.Gain.Concentration))
	}
	size := math.Sqrt(0.5 * t.NoiseVar)
	in.Y = mat.NewDense(t.M, 2*t.P, nil)
	for mu := range t.M {
		for k := range 2 * t.P {
			in.Y.Set(mu, k, size*noise.NormFloat64())
		}
	}
	if err := add(in.Y, x); err != nil {
		return err
	}
	for mu, s := range in.Truth.ComplexS() {
		for k := range t.P {
			y := complex(in.Y.At(mu, 2*k), in.Y.At(mu, 2*k+1)) / s
			in.Y.Set(mu, 2*k, real(y))
			in.Y.Set(mu, 2*k+1, imag(y))
		}
	}
	return nil
}

// DrawMatrix draws W alone, as [Complex.Draw] does: with [Complex.Readings] the W of an instance serves others, too.
func (t Complex) DrawMatrix(seed uint64) (operator.Operator, error) {
	in := &ComplexInstance{}
	_, err := t.matrix(in, seed)
	return in.W, err
}

// matrix draws W, and returns its entries.
func (t Complex) matrix(in *ComplexInstance, seed uint64) (w []complex128, err error) {
	rng := stream(seed, "W")
	w = make([]complex128, t.M*t.N)
	if t.RealMatrix {
		values := gaussian(rng, t.M, t.N)
		for i, v := range values {
			w[i] = complex(v, 0)
		}
		in.W, err = operator.NewDense(t.M, t.N, values)
		return w, err
	}
	if t.Matrix.Kind == "condition" {
		complexConditioned(rng, w, t.M, t.N, t.Matrix.Value)
	} else {
		complexNormal(rng, w, 1/float64(t.N))
	}
	in.W, err = operator.NewComplex(t.M, t.N, w)
	return w, err
}

// complexNormal draws independent entries of CN(0, variance).
func complexNormal(rng *rand.Rand, v []complex128, variance float64) {
	size := math.Sqrt(0.5 * variance)
	for i := range v {
		v[i] = complex(size*rng.NormFloat64(), size*rng.NormFloat64())
	}
}

// complexConditioned is what conditioned is of real numbers: random singular vectors, and singular values that fall geometrically from the
// condition number to 1.
func complexConditioned(rng *rand.Rand, w []complex128, m, n int, value float64) {
	rank := min(m, n)
	left, right := complexOrthonormal(rng, rank, m), complexOrthonormal(rng, rank, n)
	sigma, square := make([]float64, rank), 0.0
	for a := range sigma {
		sigma[a] = math.Pow(value, -float64(a)/float64(max(1, rank-1)))
		square += sigma[a] * sigma[a]
	}
	size := math.Sqrt(float64(m) / square)
	clear(w)
	for mu := range m {
		row := w[mu*n : (mu+1)*n]
		for a, s := range sigma {
			factor := left[a][mu] * complex(size*s, 0)
			for i, v := range right[a] {
				row[i] += factor * v
			}
		}
	}
}

// complexOrthonormal returns random orthonormal vectors of length n, by Gram and Schmidt.
func complexOrthonormal(rng *rand.Rand, count, n int) [][]complex128 {
	all := make([][]complex128, count)
	for a := range all {
		v := make([]complex128, n)
		complexNormal(rng, v, 1)
		for range 2 { // twice is enough
			for _, other := range all[:a] {
				along := complex128(0)
				for i, u := range other {
					along += cmplx.Conj(u) * v[i]
				}
				for i, u := range other {
					v[i] -= along * u
				}
			}
		}
		square := 0.0
		for _, u := range v {
			square += real(u)*real(u) + imag(u)*imag(u)
		}
		for i := range v {
			v[i] /= complex(math.Sqrt(square), 0)
		}
		all[a] = v
	}
	return all
}

// vonMises draws an angle about 0 (D. J. Best and N. I. Fisher, "Efficient simulation of the von Mises
// distribution", 1979): uniform for κ = 0, and 0 for κ = +Inf.
func vonMises(rng *rand.Rand, kappa float64) float64 {
	switch {
	case math.IsInf(kappa, 1):
		return 0
	case kappa < 1e-8:
		return math.Pi * (2*rng.Float64() - 1)
	case kappa > 1e6: // normal, to 1e-6
		return rng.NormFloat64() / math.Sqrt(kappa)
	}
	tau := 1 + math.Sqrt(1+4*kappa*kappa)
	rho := (tau - math.Sqrt(2*tau)) / (2 * kappa)
	r := (1 + rho*rho) / (2 * rho)
	for range mostTries {
		z := math.Cos(math.Pi * rng.Float64())
		f := (1 + r*z) / (r + z)
		c := kappa * (r - f)
		u, sign := rng.Float64(), rng.Float64()
		if c*(2-c) > u || math.Log(c/u)+1-c >= 0 {
			return math.Copysign(math.Acos(min(1, max(-1, f))), sign-0.5)
		}
	}
	return 0
}

// mostTries bounds a rejection of which two in three tries succeed.
const mostTries = 1000
