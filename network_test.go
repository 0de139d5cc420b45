package calamp

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"testing"
	"time"

	"gonum.org/v1/gonum/mat"

	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/operator"
	"github.com/calamp/calamp/prior"
)

// deepProblem is a problem whose signals come out of a network with independent weights of variance 1/N₂.
type deepProblem struct {
	Problem
	truth   *Truth
	latent  *mat.Dense // N₂×P
	network prior.Network
}

func newDeepProblem(t testing.TB, seed uint64, alpha, density float64, p int, activation prior.Activation, lo, hi, noise float64, widths ...int) *deepProblem {
	t.Helper()
	rng := rand.New(rand.NewPCG(seed, 39))
	var list []prior.Layer
	for i := 1; i < len(widths); i++ { // from the latents to the signals
		l := prior.Layer{Rows: widths[i], Cols: widths[i-1], Activation: activation}
		for range l.Rows * l.Cols {
			l.Weights = append(l.Weights, rng.NormFloat64()/math.Sqrt(float64(l.Cols)))
		}
		list = append(list, l)
	}
	network, err := prior.NewNetwork(list, prior.GaussBernoulli{Density: density, SignalVar: 1}, 0)
	if err != nil {
		t.Fatal(err)
	}
	n, n2 := widths[len(widths)-1], widths[0]
	m := int(math.Round(alpha * float64(n)))
	d := &deepProblem{network: network, latent: mat.NewDense(n2, p, nil), truth: &Truth{X: mat.NewDense(n, p, nil), S: make([]float64, m)}}
	w := make([]float64, m*n)
	for j := range w {
		w[j] = rng.NormFloat64() / math.Sqrt(float64(n))
	}
	for mu := range d.truth.S {
		d.truth.S[mu] = lo + (hi-lo)*rng.Float64()
	}
	d.Y = mat.NewDense(m, p, nil)
	for k := range p {
		h, x, err := network.Draw(rng)
		if err != nil {
			t.Fatal(err)
		}
		d.latent.SetCol(k, h)
		d.truth.X.SetCol(k, x)
		for mu, s := range d.truth.S {
			z := math.Sqrt(noise) * rng.NormFloat64()
			for i, v := range x {
				z += w[mu*n+i] * v
			}
			d.Y.Set(mu, k, z/s)
		}
	}
	if d.W, err = operator.NewDense(m, n, w); err != nil {
		t.Fatal(err)
	}
	d.Prior = network
	d.Channel = channel.Gain{Prior: channel.Uniform(lo, hi), NoiseVar: noise}
	return d
}

func nmse(x, truth mat.Matrix) float64 {
	var d mat.Dense
	d.Sub(x, truth)
	a, b := mat.Norm(&d, 2), mat.Norm(truth, 2)
	return a * a / (b * b)
}

// covered is the part of the truth within 95 % intervals: of s with the common scale's uncertainty, and of x (whose entries that are zero for certain are left out) at the best scale.
func (d *deepProblem) covered(res *Result) (s, rel, x float64) {
	lo, hi, relLo, relHi := res.SIntervals(0.95)
	c0 := res.Score(*d.truth).Scale
	for mu, v := range d.truth.S {
		if v >= lo[mu] && v <= hi[mu] {
			s += 1 / float64(len(lo))
		}
		if v/c0 >= relLo[mu] && v/c0 <= relHi[mu] {
			rel += 1 / float64(len(lo))
		}
	}
	c, count := res.Score(*d.truth).Scale, 0.0
	n, p := res.X.Dims()
	for i := range n {
		for k := range p {
			sd := math.Sqrt(res.XVar.At(i, k))
			if sd < 1e-6 {
				continue
			}
			count++
			if math.Abs(c*res.X.At(i, k)-d.truth.X.At(i, k)) < 1.96*sd {
				x++
			}
		}
	}
	return s, rel, x / count
}

func TestExperiment(t *testing.T) {
	learned := os.Getenv("LEARN") != ""
	for _, alpha := range []float64{0.15, 0.2, 0.3, 0.5} {
		for seed := uint64(1); seed <= 4; seed++ {
			d := newDeepProblem(t, seed, alpha, 0.3, 5, prior.ReLU, 0.7, 1.3, 1e-6, 160, 800)
			opt := &Options{}
			if learned {
				latents := prior.LearnedGaussBernoulli{GaussBernoulli: prior.GaussBernoulli{Density: 0.2, SignalVar: 2}, Learn: prior.Density | prior.SignalMean | prior.SignalVar}
				d.Prior = prior.LearnedNetwork{Network: d.network.WithLatents(latents)}
				opt.Learn = Learn{Noise: true}
			}
			res, err := Solve(context.Background(), &d.Problem, opt)
			if err != nil {
				t.Fatal(err)
			}
			s, rel, x := d.covered(res)
			n, p := res.X.Dims()
			power := mat.Norm(d.truth.X, 2)
			fmt.Printf("%g %d %v %d scaled %.3g, s %.3f rel %.3f x %.3f scale %.2g±%.2g noise %.3g iteration %v\n", alpha, seed, res.Status, res.Iterations, res.Score(*d.truth).XMSEScaled*float64(n*p)/(power*power), s, rel, x, math.Log(res.Score(*d.truth).Scale), res.ScaleSD, channel.NoiseOf(res.Channel), res.Wall/time.Duration(res.Iterations))
			if learned {
				fmt.Println(res.Prior.(prior.LearnedNetwork).Latents())
			}
			for _, w := range res.Warnings {
				fmt.Println("   ", w.Code, w.Message)
			}
		}
	}
}
