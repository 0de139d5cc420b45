package evolution

import (
	"context"
	"math"
	"testing"

	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/internal/tests"
	"github.com/calamp/calamp/prior"
)

// Gains of each distribution against sampling, which takes the channel's moments: matched, and with another one assumed.
func TestGainDistributionsAgainstSampling(t *testing.T) {
	tests.Long(t)
	normal, wide := channel.NormalAbout(1, 0.05), channel.TruncatedNormal(1, 0.3, 0.5, 1.8)
	narrowLog, wideLog := channel.LogNormalAbout(1, 0.1), channel.LogNormalAbout(1, 0.5)
	for i, c := range []struct{ teacher, student channel.GainPrior }{
		{normal, normal}, {narrowLog, narrowLog}, {wideLog, wideLog}, {wideLog, wide}, {wide, wideLog}, {channel.Uniform(0.9, 1.1), normal},
	} {
		if !*long && i != 1 {
			continue
		}
		signal := prior.GaussBernoulli{Density: 0.3, SignalVar: 1}
		m := Mismatch{
			Teacher: Belief{Signal: signal, Gain: c.teacher, NoiseVar: 1e-3}, Student: Belief{Signal: signal, Gain: c.student, NoiseVar: 1e-3},
			Alpha: 0.7, P: 2 + i,
		}
		compareWithSampling(t, m, 4000, uint64(i))
	}
}

// A log-normal so narrow that it is a normal has the same limits, and a normal in a range that cuts nothing has those
// of any wider range.
func TestGainDistributionsAgree(t *testing.T) {
	tests.Long(t)
	at := func(g channel.GainPrior) SensorAverages {
		m := Model{Signal: prior.GaussBernoulli{Density: 0.2, SignalVar: 1}, Gain: g, NoiseVar: 1e-4, Alpha: 0.6, P: 3}
		a, err := m.Sensor(t.Context(), 0.05, nil)
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	near := func(name string, a, b SensorAverages, tol float64) {
		t.Helper()
		for _, d := range []float64{a.MHat.Value/b.MHat.Value - 1, a.MSES.Value/b.MSES.Value - 1, a.Evidence.Value - b.Evidence.Value} {
			if math.Abs(d) > tol {
				t.Errorf("%s: %+v and %+v", name, a, b)
			}
		}
	}
	near("narrow", at(channel.LogNormalAbout(1, 1e-4)), at(channel.NormalAbout(1, 1e-4)), 1e-5)
	near("cut", at(channel.NormalAbout(1, 0.05)), at(channel.TruncatedNormal(1, 0.05, 0.4, 1.7)), 1e-9)
	// Nearly flat where it is cut: the uniform one.
	near("flat", at(channel.TruncatedNormal(1, 100, 0.5, 1.5)), at(channel.Uniform(0.5, 1.5)), 1e-4)
}

// The evidence's derivative is m̂ (the free energy's identity), by central differences.
func TestEvidenceOfGainDistributions(t *testing.T) {
	tests.Long(t)
	for _, g := range []channel.GainPrior{channel.NormalAbout(1, 0.05), channel.LogNormalAbout(1, 0.1)} {
		m := Model{Signal: prior.GaussBernoulli{Density: 0.2, SignalVar: 1}, Gain: g, NoiseVar: 1e-3, Alpha: 0.6, P: 3}
		const v, h = 0.05, 1e-4
		at := func(v float64) SensorAverages {
			a, err := m.Sensor(t.Context(), v, &Options{Tol: 1e-9})
			if err != nil {
				t.Fatal(err)
			}
			return a
		}
		slope := -(at(v+h).Evidence.Value - at(v-h).Evidence.Value) / (2 * h)
		if want := 0.5 * float64(m.P) * at(v).MHat.Value; math.Abs(slope/want-1) > 1e-5 {
			t.Errorf("%s: slope of the evidence %g, m̂ says %g", g.Name(), slope, want)
		}
	}
}

// A stream, by the table of its averages and by direct integration.
func TestLongOnlineLogNormal(t *testing.T) {
	longOnly(t)
	m := Model{Signal: prior.GaussBernoulli{Density: 0.2, SignalVar: 1}, Gain: channel.LogNormalAbout(1, 0.2), NoiseVar: 1e-3, Alpha: 0.7, P: 2}
	samples, err := Online(context.Background(), m, &OnlineOptions{Iterations: 3, Tol: 1e-6})
	if err != nil {
		t.Fatal(err)
	}
	if first, second := samples[0].Last().MSES, samples[1].Last().MSES; !(second.Value < first.Value) || second.Err > 0.01*second.Value {
		t.Errorf("errors of s %v and %v", first, second)
	}
}
