package online_test

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/calamp/calamp"
	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/internal/tests"
	"github.com/calamp/calamp/online"
	"github.com/calamp/calamp/prior"
	"github.com/calamp/calamp/solver"
	"github.com/calamp/calamp/teacher"
)

// deepStream are signals out of a ReLU layer of independent weights, with their readings.
func deepStream(t *testing.T, p int) (teacher.Teacher, *teacher.Instance, prior.Network) {
	t.Helper()
	const n, width = 200, 40
	rng := rand.New(rand.NewPCG(39, 2))
	l := prior.Layer{Rows: n, Cols: width, Activation: prior.ReLU}
	for range n * width {
		l.Weights = append(l.Weights, rng.NormFloat64()/math.Sqrt(width))
	}
	network, err := prior.NewNetwork([]prior.Layer{l}, prior.GaussBernoulli{Density: 0.3, SignalVar: 1}, 0)
	if err != nil {
		t.Fatal(err)
	}
	te := teacher.Teacher{N: n, M: 100, P: p, Entries: network, Gain: channel.Uniform(0.7, 1.3), NoiseVar: 1e-4}
	in, err := te.Draw(1)
	if err != nil {
		t.Fatal(err)
	}
	return te, in, network
}

func absorbAll(t *testing.T, c *online.Calibrator, in *teacher.Instance) (errs []float64) {
	t.Helper()
	_, p := in.Y.Dims()
	for k := range p {
		e, err := c.Absorb(context.Background(), mat.Col(nil, k, in.Y))
		if err != nil {
			t.Fatal(err)
		}
		if e.Status != calamp.Converged || !e.Committed {
			t.Errorf("sample %d: %v, %v", k, e.Status, e.Reject)
		}
		off, size := 0.0, 0.0
		for i, x := range mat.Col(nil, k, in.Truth.X) {
			off, size = off+(x-e.X[i])*(x-e.X[i]), size+x*x
		}
		errs = append(errs, off/size)
	}
	return errs
}

// The first sample of a stream is the problem of one signal, and the answer is the same.
func TestNetworkFirstSampleIsOffline(t *testing.T) {
	te, in, network := deepStream(t, 1)
	known := channel.Gain{Prior: channel.Uniform(0.7, 1.3), NoiseVar: 1e-4}
	settings := solver.Settings{Tol: 1e-11, Precision: solver.DoublePrecision, MaxIter: 2000, ScaleAtPeak: true, SPrior: solver.UniformS}
	c, err := online.NewCalibrator(in.W, network, known, &online.Options{Settings: settings})
	if err != nil {
		t.Fatal(err)
	}
	e, err := c.Absorb(context.Background(), mat.Col(nil, 0, in.Y))
	if err != nil {
		t.Fatal(err)
	}
	r, err := calamp.Solve(context.Background(), te.Problem(in), &calamp.Options{Settings: settings})
	if err != nil {
		t.Fatal(err)
	}
	for i, x := range e.X {
		if d := math.Abs(x - r.X.At(i, 0)); d > 1e-7 {
			t.Fatalf("%v, %v: x[%d] is %g, offline %g", e.Status, r.Status, i, x, r.X.At(i, 0))
		}
	}
}

// Along a stream gains are learned, and with them signals get better, with the latents' parameters given or learned.
func TestNetworkStream(t *testing.T) {
	_, in, network := deepStream(t, 25)
	known := channel.Gain{Prior: channel.Uniform(0.7, 1.3), NoiseVar: 1e-4}
	learned := known
	learned.NoiseVar = math.NaN()
	nan := math.NaN()
	latents := prior.GaussBernoulli{Density: nan, SignalMean: nan, SignalVar: nan, Learn: prior.Density | prior.SignalMean | prior.SignalVar}
	for _, c := range []struct {
		prior   prior.Prior
		channel channel.Gain
		opt     online.Options
	}{{network, known, online.Options{}}, {network.WithLatents(latents), learned, online.Options{LearnNoise: true}}} {
		calibrator, err := online.NewCalibrator(in.W, c.prior, c.channel, &c.opt)
		if err != nil {
			t.Fatal(err)
		}
		errs := absorbAll(t, calibrator, in)
		if last := errs[len(errs)-1]; !(last < 2e-4) || !(last < 0.6*errs[0]) {
			t.Errorf("error of the signal %.2g in the beginning, %.2g in the end", errs[0], last)
		}
		p := calibrator.Posterior()
		if !c.opt.LearnNoise {
			continue
		}
		if g, ok := p.Model.GaussBernoulli(); !ok || math.Abs(g.Density-0.3) > 0.08 || math.Abs(p.Model.NoiseVar/1e-4-1) > 0.3 {
			t.Errorf("learned %v, noise variance %.3g", g, p.Model.NoiseVar)
		}
	}
	a, errA := online.Identify(in.W, network, known, nil)
	other := network.Layers()[0]
	other.Weights = append([]float64{other.Weights[1], other.Weights[0]}, other.Weights[2:]...)
	swapped, err := prior.NewNetwork([]prior.Layer{other}, network.Latents(), 0)
	if err != nil {
		t.Fatal(err)
	}
	b, errB := online.Identify(in.W, swapped, known, nil)
	if errA != nil || errB != nil || a.Fingerprint == b.Fingerprint {
		t.Errorf("networks with other weights have the same fingerprint (%v, %v)", errA, errB)
	}
}

// Of a network with its weights permuted a few samples are learned from, and then none, with a word; of the right one with much noise all are. Latents are those
// of the signal.
func TestNetworkOfOthers(t *testing.T) {
	tests.Long(t)
	te, in, network := deepStream(t, 12)
	noisy := te
	noisy.NoiseVar = 0.02
	other, err := noisy.Draw(2)
	if err != nil {
		t.Fatal(err)
	}
	l := network.Layers()[0]
	l.Weights = slices.Clone(l.Weights)
	rand.New(rand.NewPCG(39, 3)).Shuffle(len(l.Weights), func(i, j int) { l.Weights[i], l.Weights[j] = l.Weights[j], l.Weights[i] })
	permuted, err := prior.NewNetwork([]prior.Layer{l}, network.Latents(), 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name    string
		in      *teacher.Instance
		network prior.Network
		noise   float64
		learned bool
	}{{"permuted", in, permuted, 1e-4, false}, {"permuted, noise learned", in, permuted, math.NaN(), false}, {"noisy", other, network, 0.02, true}} {
		calibrator, err := online.NewCalibrator(c.in.W, c.network, channel.Gain{Prior: channel.Uniform(0.7, 1.3), NoiseVar: c.noise}, &online.Options{Settings: solver.Settings{MaxIter: 100}, LearnNoise: math.IsNaN(c.noise)})
		if err != nil {
			t.Fatal(err)
		}
		committed, p := 0, 8
		for k := range p {
			e, err := calibrator.Absorb(t.Context(), mat.Col(nil, k, c.in.Y))
			if err != nil {
				t.Fatal(err)
			}
			if e.Committed {
				committed++
			}
			if len(e.Latent) != network.LatentEntries() || len(e.LatentVar) != len(e.Latent) {
				t.Fatalf("%s: %d latents, expected %d", c.name, len(e.Latent), network.LatentEntries())
			}
		}
		warned := slices.ContainsFunc(calibrator.Posterior().Warnings, func(w calamp.Warning) bool { return w.Code == calamp.UnrecoveredOrNoise })
		if c.learned != (committed == p) || c.learned == warned || !c.learned && committed > 5 {
			t.Errorf("%s: %d of %d samples were learned from, warned %v", c.name, committed, p, warned)
		}
	}
}
