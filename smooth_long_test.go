package calamp_test

import (
	"math"
	"testing"

	"github.com/calamp/calamp"
	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/internal/smooth"
	"github.com/calamp/calamp/internal/tables"
)

// kernelOf is the kernel of largest evidence given the true gains, over places from -1 to 1.
func kernelOf(t *testing.T, s []float64) channel.Smooth {
	t.Helper()
	m := len(s)
	positions, logs, exact := make([]float64, m), make([]float64, m), make([]float64, m)
	for mu, v := range s {
		positions[mu], logs[mu], exact[mu] = 2*float64(mu)/float64(m-1)-1, math.Log(v), 1e-12
	}
	places, err := smooth.At(positions, 1)
	if err != nil {
		t.Fatal(err)
	}
	field := smooth.New(places, 0.2)
	for range 100 {
		next, _, change := field.Fit(logs, exact)
		if field = next; change < 1e-3 {
			break
		}
	}
	return channel.Smooth{Amplitude: field.Amplitude, Length: field.Length(), Scatter: field.Scatter}
}

// The error of smooth gains whose kernel is learned, beside that with the kernel that fits the true gains best: one signal of 500 entries, 300
// sensors. Bar: at most 1.3 times.
func TestLongKernel(t *testing.T) {
	longOnly(t)
	table := tables.New(t, "", "log s", "runs", "error of s: kernel learned", "known", "ratio", "error of x: learned", "known", "ratio")
	for _, c := range []struct {
		name    string
		shape   func(u float64) float64
		scatter float64
	}{
		{"0.3 u², scatter 1 %", vignetting, 0.01},
		{"0.3 u², none", vignetting, 0},
		{"0.1 sin 8u, scatter 1 %", func(u float64) float64 { return 0.1 * math.Sin(8*u) }, 0.01},
	} {
		var s, x, knownS, knownX, runs float64
		for seed := range uint64(seedCount(5)) {
			p, truth := smoothly(t, seed, c.shape, c.scatter)
			res, errS, _, _ := togetherSolved(t, p, truth, seed)
			places, err := channel.At(places1(len(truth.S)), 1)
			if err != nil {
				t.Fatal(err)
			}
			known := *p
			known.Channel = channel.Gain{Prior: places.TogetherAs(channel.Uniform(0.6, 1.4), kernelOf(t, truth.S)), NoiseVar: 1e-6}
			given, givenS, _, _ := togetherSolved(t, &known, truth, seed)
			if res.Status != calamp.Converged || given.Status != calamp.Converged {
				t.Errorf("%s, seed %d: %v, with a known kernel %v", c.name, seed, res.Status, given.Status)
				continue
			}
			s, knownS, runs = s+errS*errS, knownS+givenS*givenS, runs+1
			x, knownX = x+res.Score(truth).XMSEScaled, knownX+given.Score(truth).XMSEScaled
		}
		root := func(v float64) float64 { return math.Sqrt(v / runs) }
		table.Row("| %s | %.0f | %.4f | %.4f | %.2f | %.4f | %.4f | %.2f |", c.name, runs, root(s), root(knownS), root(s)/root(knownS), root(x), root(knownX), root(x)/root(knownX))
		if root(s) > 1.3*root(knownS) {
			t.Errorf("%s: s is wrong by %.4f, with a known kernel by %.4f", c.name, root(s), root(knownS))
		}
	}
}

// places1 are m places from -1 to 1.
func places1(m int) []float64 {
	positions := make([]float64, m)
	for mu := range positions {
		positions[mu] = 2*float64(mu)/float64(m-1) - 1
	}
	return positions
}
