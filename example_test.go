package calamp_test

import (
	"context"
	"fmt"
	"math"

	"gonum.org/v1/gonum/mat"

	"github.com/calamp/calamp"
	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/operator"
	"github.com/calamp/calamp/prior"
	"github.com/calamp/calamp/teacher"
)

// Readings of 480 uncalibrated sensors on six sparse signals.
func ExampleSolve() {
	ensemble := teacher.Teacher{
		N: 600, M: 480, P: 6,
		Signal:   prior.GaussBernoulli{Density: 0.2, SignalVar: 1},
		Gain:     channel.Uniform(0.8, 1.2),
		NoiseVar: 1e-6,
	}
	in, err := ensemble.Draw(1)
	if err != nil {
		fmt.Println(err)
		return
	}
	problem := &calamp.Problem{
		W: in.W, // 480×600, known
		Y: in.Y, // 480×6 readings
		// What is known of the signals and of the sensors.
		Prior:   prior.GaussBernoulli{Density: 0.2, SignalVar: 1},
		Channel: channel.Gain{Prior: channel.Uniform(0.8, 1.2), NoiseVar: 1e-6},
	}
	result, err := calamp.Solve(context.Background(), problem, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	score := calamp.Score(result.X, result.S, in.Truth)
	fmt.Println(result.Status)
	fmt.Println("signals' relative error below 1e-4:", score.XMSEScaled/0.2 < 1e-4)
	fmt.Println("sensors' error below 0.2 %:", math.Sqrt(score.SMSEScaled) < 2e-3)
	// Output:
	// converged
	// signals' relative error below 1e-4: true
	// sensors' error below 0.2 %: true
}

// twoLevel is a prior that the library does not have: an entry is +a or -a.
type twoLevel struct{ a float64 }

func (p twoLevel) Mean() float64     { return 0 }
func (p twoLevel) Variance() float64 { return p.a * p.a }

func (p twoLevel) Posterior(mean, variance, lambda, sigma []float64) {
	for i, l := range lambda {
		t := math.Tanh(p.a * l / sigma[i])
		mean[i] = p.a * t
		variance[i] = p.a * p.a * (1 - t) * (1 + t)
	}
}

func (p twoLevel) Validate() error {
	if !(p.a > 0) {
		return fmt.Errorf("the levels must differ, found ±%g", p.a)
	}
	return nil
}

func (p twoLevel) LogNorm(lambda, sigma float64) float64 {
	field := math.Abs(p.a * lambda / sigma)
	logCosh := field + math.Log1p(math.Exp(-2*field)) - math.Ln2
	return logCosh - 0.5*(lambda*lambda+p.a*p.a)/sigma
}

// oneBit is a channel that the library does not have: a reading is +1 or -1,
// the sign of z plus noise.
type oneBit struct{ noise float64 }

func (c oneBit) Validate() error {
	if !(c.noise > 0) {
		return fmt.Errorf("the noise variance must be positive, found %g", c.noise)
	}
	return nil
}

func (c oneBit) Output(b *channel.Block) {
	for row := range b.Rows() {
		b.S[row], b.SVar[row], b.LogZ[row] = 1, 0, 0
		for k := row * b.P; k < (row+1)*b.P; k++ {
			if math.IsNaN(b.Y[k]) { // missing
				b.G[k], b.DG[k] = 0, 0
				continue
			}
			d := b.V[k] + c.noise
			u := b.Y[k] * b.Omega[k] / math.Sqrt(d)
			z := 0.5 * math.Erfc(-u/math.Sqrt2)
			ratio := math.Exp(-0.5*u*u) / (math.Sqrt(2*math.Pi) * z)
			b.G[k] = b.Y[k] * ratio / math.Sqrt(d)
			b.DG[k] = -ratio * (ratio + u) / d
			b.LogZ[row] += math.Log(z)
		}
	}
}

// A prior and a channel of one's own are two small types.
func Example_ownPriorAndChannel() {
	in, err := teacher.Teacher{
		N: 200, M: 800, P: 1,
		Signal: prior.Gaussian(0, 1), Gain: channel.Uniform(0.999, 1.001),
	}.Draw(1)
	if err != nil {
		fmt.Println(err)
		return
	}
	x := mat.NewDense(200, 1, nil)
	x.Apply(func(i, k int, _ float64) float64 { return math.Copysign(1, in.Truth.X.At(i, k)) }, x)
	y := signs(in.W, x)

	result, err := calamp.Solve(context.Background(), &calamp.Problem{
		W: in.W, Y: y, Prior: twoLevel{a: 1}, Channel: oneBit{noise: 1e-3},
	}, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	right := 0
	for i := range 200 {
		if result.X.At(i, 0)*x.At(i, 0) > 0 {
			right++
		}
	}
	fmt.Printf("%v, %d of 200 entries right\n", result.Status, right)
	// Output:
	// converged, 200 of 200 entries right
}

func signs(w *operator.Dense, x *mat.Dense) *mat.Dense {
	m, n := w.Dims()
	_, p := x.Dims()
	y := mat.NewDense(m, p, nil)
	row := make([]float64, n)
	for mu := range m {
		w.RowInto(row, mu)
		for k := range p {
			y.Set(mu, k, math.Copysign(1, mat.Dot(mat.NewVecDense(n, row), x.ColView(k))))
		}
	}
	return y
}
