package calamp_test

import (
	"math"
	"math/cmplx"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/calamp/calamp"
	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/operator"
	"github.com/calamp/calamp/prior"
	"github.com/calamp/calamp/solver"
)

// snapshots is a problem of complex signals that share a support.
type snapshots struct {
	n, m, p  int
	sources  float64 // expected, or with exactly set their number
	noise    float64
	steering bool // half-wavelength uniform array on a grid of sines of angles; else independent entries
	exactly  bool
	gain     channel.ComplexPrior
	common   float64
}

func (c snapshots) draw(t testing.TB, seed uint64) (*calamp.Problem, calamp.Truth) {
	t.Helper()
	rng := rand.New(rand.NewPCG(seed, 21))
	normal := func(v float64) complex128 {
		return complex(math.Sqrt(v/2)*rng.NormFloat64(), math.Sqrt(v/2)*rng.NormFloat64())
	}
	w := make([]complex128, c.m*c.n)
	for mu := range c.m {
		for i := range c.n {
			w[mu*c.n+i] = normal(1 / float64(c.n))
			if c.steering {
				w[mu*c.n+i] = cmplx.Rect(1/math.Sqrt(float64(c.n)), math.Pi*float64(mu)*(2*(float64(i)+0.5)/float64(c.n)-1))
			}
		}
	}
	x := mat.NewDense(c.n, 2*c.p, nil)
	on := make([]bool, c.n)
	if c.exactly {
		for _, i := range rng.Perm(c.n)[:int(c.sources)] {
			on[i] = true
		}
	} else {
		for i := range on {
			on[i] = rng.Float64() < c.sources/float64(c.n)
		}
	}
	for i, there := range on {
		amplitude := normal(c.common)
		for k := range c.p {
			if v := normal(1-c.common) + amplitude; there {
				x.Set(i, 2*k, real(v))
				x.Set(i, 2*k+1, imag(v))
			}
		}
	}
	truth := calamp.Truth{X: x}
	y := mat.NewDense(c.m, 2*c.p, nil)
	for mu := range c.m {
		r := c.gain.Lo + (c.gain.Hi-c.gain.Lo)*rng.Float64()
		phase := 2 * math.Pi * rng.Float64()
		switch {
		case c.gain.Known():
			phase = 0
		case !c.gain.Free():
			phase = rng.NormFloat64() / math.Sqrt(c.gain.Concentration)
		}
		truth.S, truth.Phase = append(truth.S, r), append(truth.Phase, phase)
		for k := range c.p {
			z := normal(c.noise)
			for i := range c.n {
				if on[i] {
					z += w[mu*c.n+i] * complex(x.At(i, 2*k), x.At(i, 2*k+1))
				}
			}
			z /= cmplx.Rect(r, phase)
			y.Set(mu, 2*k, real(z))
			y.Set(mu, 2*k+1, imag(z))
		}
	}
	op, err := operator.NewComplex(c.m, c.n, w)
	if err != nil {
		t.Fatal(err)
	}
	return &calamp.Problem{
		W: op, Y: y, Prior: prior.ComplexGaussBernoulli{Density: c.sources / float64(c.n), SignalVar: 1},
		Channel: channel.ComplexGain{Prior: c.gain, NoiseVar: c.noise},
	}, truth
}

// wrongSupport is how many entries are wrongly there, or not.
func wrongSupport(r *calamp.Result, truth calamp.Truth) (wrong int) {
	for i, pi := range r.Support {
		if (pi > 0.5) != (truth.X.At(i, 0) != 0) {
			wrong++
		}
	}
	return wrong
}

func TestComplexJointRows(t *testing.T) {
	for name, c := range map[string]snapshots{
		"known phases": {gain: channel.ComplexPrior{Lo: 0.7, Hi: 1.3, Concentration: math.Inf(1)}},
		"von Mises":    {gain: channel.ComplexPrior{Lo: 0.7, Hi: 1.3, Concentration: 20}},
		"free phases":  {gain: channel.ComplexPrior{Lo: 0.7, Hi: 1.3}},
		"correlated":   {gain: channel.ComplexPrior{Lo: 0.7, Hi: 1.3, Concentration: 20}, common: 0.8},
	} {
		t.Run(name, func(t *testing.T) {
			c.n, c.m, c.p, c.sources, c.noise = 200, 80, 6, 40, 1e-5
			for _, which := range []solver.Joint{solver.JointOn, solver.AutoJoint, solver.JointOff} {
				problem, truth := c.draw(t, 1)
				res, err := calamp.Solve(t.Context(), problem, &calamp.Options{Joint: which})
				if err != nil {
					t.Fatal(err)
				}
				m := calamp.ScoreComplex(res.X, res.ComplexS(), truth)
				inside := intervalsHold(res, truth, m)
				t.Logf("%v: %v after %d: mean square error %.3g, stated %.3g, wrong %d, s %.3f, phases %.3f, %v", which, res.Status, res.Iterations, m.XMSEScaled, meanTotal(res), wrongSupport(res, truth), inside[0], inside[1], res.Warnings)
			}
		})
	}
}
