package teacher

import (
	"math"
	"testing"

	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat"

	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/prior"
)

func ensemble() Teacher {
	return Teacher{
		N: 400, M: 300, P: 20,
		Signal:   prior.GaussBernoulli{Density: 0.3, SignalMean: 1, SignalVar: 2},
		Gain:     channel.Uniform(0.5, 1.5),
		NoiseVar: 1e-2,
	}
}

func mustDraw(t *testing.T, te Teacher, seed uint64) *Instance {
	t.Helper()
	in, err := te.Draw(seed)
	if err != nil {
		t.Fatal(err)
	}
	return in
}

func TestInstanceHasTheModelsMoments(t *testing.T) {
	te := ensemble()
	in := mustDraw(t, te, 1)
	x := in.Truth.X.RawMatrix().Data
	mean, variance := stat.MeanVariance(x, nil)
	if math.Abs(mean-te.Signal.Mean()) > 5*math.Sqrt(te.Signal.Variance()/float64(len(x))) || math.Abs(variance/te.Signal.Variance()-1) > 0.1 {
		t.Errorf("signals have mean %g and variance %g, prior %g and %g", mean, variance, te.Signal.Mean(), te.Signal.Variance())
	}
	if got := in.W.MeanSquare() * float64(te.N); math.Abs(got-1) > 0.02 {
		t.Errorf("N times the mean square of W is %g, want 1", got)
	}
	// The corrected readings without the signals are the noise.
	w := mat.NewDense(te.M, te.N, nil)
	for mu := range te.M {
		in.W.RowInto(w.RawRowView(mu), mu)
	}
	var z mat.Dense
	z.Mul(w, in.Truth.X)
	total := 0.0
	for mu := range te.M {
		for k := range te.P {
			e := in.Truth.S[mu]*in.Y.At(mu, k) - z.At(mu, k)
			total += e * e
		}
	}
	if got := total / float64(te.M*te.P); math.Abs(got/te.NoiseVar-1) > 0.1 {
		t.Errorf("noise variance %g, want %g", got, te.NoiseVar)
	}
}

func TestStreamsAreIndependent(t *testing.T) {
	te := ensemble()
	a := mustDraw(t, te, 1)
	if b := mustDraw(t, te, 1); !mat.Equal(a.Y, b.Y) {
		t.Error("the same seed gave other readings")
	}
	if b := mustDraw(t, te, 2); a.Truth.S[0] == b.Truth.S[0] || mat.Equal(a.Y, b.Y) {
		t.Error("another seed gave the same instance")
	}
	te.NoiseVar, te.P = 1, 3
	b := mustDraw(t, te, 1)
	if a.W.At(3, 5) != b.W.At(3, 5) || a.Truth.S[7] != b.Truth.S[7] {
		t.Error("W or s changed with P and the noise")
	}
}

func TestTruncatedNormalGains(t *testing.T) {
	te := ensemble()
	te.M = 5000
	te.N, te.P = 2, 1
	te.Gain = channel.TruncatedNormal(1, 0.1, 0.9, 1.3)
	s := mustDraw(t, te, 1).Truth.S
	wantMean, wantVar := te.Gain.Moments()
	mean, variance := stat.MeanVariance(s, nil)
	if math.Abs(mean-wantMean) > 5*math.Sqrt(wantVar/5000) || math.Abs(variance/wantVar-1) > 0.15 {
		t.Errorf("mean %g, variance %g; want %g, %g", mean, variance, wantMean, wantVar)
	}
}

func TestValidateNamesWhatIsWrong(t *testing.T) {
	for _, change := range []func(*Teacher){
		func(te *Teacher) { te.N = 0 },
		func(te *Teacher) { te.Signal.Density = 0 },
		func(te *Teacher) { te.Signal.SignalVar = -1 },
		func(te *Teacher) { te.Gain.Lo = 2 },
		func(te *Teacher) { te.NoiseVar = math.NaN() },
		func(te *Teacher) { te.X = mat.NewDense(3, 3, nil) },
	} {
		te := ensemble()
		change(&te)
		if _, err := te.Draw(0); err == nil {
			t.Errorf("%+v was accepted", te)
		}
	}
}
