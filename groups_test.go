package calamp_test

import (
	"context"
	"math"
	"testing"

	"github.com/calamp/calamp"
	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/internal/tests"
	"github.com/calamp/calamp/prior"
	"github.com/calamp/calamp/solver"
	"github.com/calamp/calamp/teacher"
)

// unlikeGroups are a large entry, some of middle size, and many small and sparse ones.
func unlikeGroups(t testing.TB, n int) prior.Groups {
	t.Helper()
	of := make([]int, n)
	for i := range of {
		switch {
		case i%100 == 7:
			of[i] = 0
		case i%6 == 1:
			of[i] = 1
		default:
			of[i] = 2
		}
	}
	g, err := prior.ByGroup(of, []prior.GaussBernoulli{{Density: 1, SignalMean: 5, SignalVar: 9}, {Density: 0.5, SignalVar: 4}, {Density: 0.1, SignalVar: 0.3}})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// Nothing is given of the groups but which entry belongs to which: they are learned, signals and gains come
// out as if they were known, and signals that have one distribution are found to have it.
func TestGroupsAreLearned(t *testing.T) {
	tests.Long(t)
	truth := unlikeGroups(t, 300)
	te := teacher.Teacher{N: 300, M: 220, P: 8, Entries: truth, Gain: channel.Uniform(0.8, 1.2), NoiseVar: 1e-4}
	in, err := te.Draw(3)
	if err != nil {
		t.Fatal(err)
	}
	known, err := calamp.Solve(context.Background(), te.Problem(in), nil)
	if err != nil {
		t.Fatal(err)
	}
	start, err := truth.WithValues([]float64{0.5, 0, 1, 0.5, 0, 1, 0.5, 0, 1})
	if err != nil {
		t.Fatal(err)
	}
	p := te.Problem(in)
	p.Prior = start.(prior.Groups).Learning(prior.Density | prior.SignalMean | prior.SignalVar)
	for _, algorithm := range []solver.Algorithm{solver.AMP, solver.VAMP} {
		res, err := calamp.Solve(context.Background(), p, &calamp.Options{Settings: solver.Settings{Algorithm: algorithm}})
		if err != nil {
			t.Fatal(err)
		}
		if res.Status != calamp.Converged {
			t.Errorf("%v: %v: %s", algorithm, res.Status, res.Reason)
		}
		want, got := calamp.Score(known.X, known.S, in.Truth), calamp.Score(res.X, res.S, in.Truth)
		if got.XMSEScaled > 1.2*want.XMSEScaled {
			t.Errorf("%v: mean square error %g, with the groups known %g", algorithm, got.XMSEScaled, want.XMSEScaled)
		}
		learned := res.Prior.(prior.Groups).Kinds()
		for j, kind := range truth.Kinds() {
			if off := math.Abs(learned[j].Density*learned[j].SignalVar/(kind.Density*kind.SignalVar) - 1); j > 0 && off > 0.3 {
				t.Errorf("%v: group %d: %+v, drawn from %+v", algorithm, j, learned[j], kind)
			}
		}
		for k, c := range res.Amplitude {
			if math.Abs(c-1) > 0.1 {
				t.Errorf("%v: signal %d is %g times as large", algorithm, k, c)
			}
		}
	}
}

// Signals of very unequal size: their amplitudes are found, and the small ones are not lost.
func TestAmplitudes(t *testing.T) {
	truth := unlikeGroups(t, 300)
	te := teacher.Teacher{N: 300, M: 220, P: 12, Entries: truth, Gain: channel.Uniform(0.8, 1.2), NoiseVar: 1e-5}
	in, err := te.Draw(4)
	if err != nil {
		t.Fatal(err)
	}
	size := func(k int) float64 { return math.Pow(10, 1-float64(k%4)/2) }
	power := 0.0
	for k := range te.P {
		power += size(k) * size(k) / float64(te.P)
	}
	te.X = in.Truth.X
	for i := range te.N {
		for k := range te.P {
			te.X.Set(i, k, te.X.At(i, k)*size(k)/math.Sqrt(power))
		}
	}
	if in, err = te.Draw(4); err != nil {
		t.Fatal(err)
	}
	start, err := truth.WithValues([]float64{1, 0, 1, 0.5, 0, 1, 0.5, 0, 1})
	if err != nil {
		t.Fatal(err)
	}
	p := te.Problem(in)
	p.Prior = start.(prior.Groups).Learning(prior.Density | prior.SignalMean | prior.SignalVar)
	res, err := calamp.Solve(context.Background(), p, nil)
	if err != nil {
		t.Fatal(err)
	}
	if res.Status != calamp.Converged {
		t.Errorf("%v: %s", res.Status, res.Reason)
	}
	for k, c := range res.Amplitude {
		if want := size(k) / math.Sqrt(power); math.Abs(math.Log(c/want)) > 0.5 {
			t.Errorf("signal %d is %g times as large as the others, found %g", k, want, c)
		}
	}
	if m := calamp.Score(res.X, res.S, in.Truth); m.XMSEScaled > 1e-3 || m.SOneMinusCNCC > 0.01 {
		t.Errorf("mean square error %g, 1-correlation of s %g", m.XMSEScaled, m.SOneMinusCNCC)
	}
}

func TestGroupsOfAnotherSize(t *testing.T) {
	te := teacher.Teacher{N: 100, M: 60, P: 2, Signal: prior.Gaussian(0, 1), Gain: channel.Uniform(0.9, 1.1), NoiseVar: 1e-4}
	in, err := te.Draw(1)
	if err != nil {
		t.Fatal(err)
	}
	p := te.Problem(in)
	p.Prior = unlikeGroups(t, 300)
	if _, err := calamp.Solve(context.Background(), p, nil); err == nil || err.Error() != "the signal prior: it is for 300 entries, and signals have 100" {
		t.Error(err)
	}
}
