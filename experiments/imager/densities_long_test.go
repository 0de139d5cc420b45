package imager

import (
	"context"
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/stat"

	"github.com/calamp/calamp"
	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/internal/tables"
	"github.com/calamp/calamp/prior"
)

// TestLongLearnsDensities: with the densities and means of the bands learned, too, runs converge, where those with Gaussian bands do. As the
// command does, they start from even odds: from a density that all bands together may have they take a thousand iterations.
func TestLongLearnsDensities(t *testing.T) {
	if !*tables.Long {
		t.Skip("without -long")
	}
	d, err := load()
	if err != nil {
		t.Fatal(err)
	}
	for size, least := range map[int]float64{60: 0.82, 404: 0.92} {
		columns := scenes(1, size/blocks)
		if size < blocks {
			columns = some(scenes(1, 4), size)
		}
		m, _ := d.y.Dims()
		truth := make([]float64, m)
		rng := rand.New(rand.NewPCG(uint64(size), 1))
		for mu := range truth {
			truth[mu] = 0.8 + 0.4*rng.Float64()
		}
		y := d.readings(columns, truth)
		nan := math.NaN()
		guess, gain, err := calamp.Guess(d.w, y, prior.GaussBernoulli{Density: nan, SignalVar: nan, SignalMean: nan}, channel.Gain{Prior: channel.GainPrior{Lo: nan}, NoiseVar: nan})
		if err != nil {
			t.Fatal(err)
		}
		guess.SignalVar *= guess.Density / 0.5
		guess.Density = 0.5
		kinds := make([]prior.GaussBernoulli, bands)
		for j := range kinds {
			kinds[j] = guess
		}
		groups, err := prior.ByGroup(d.groups, kinds)
		if err != nil {
			t.Fatal(err)
		}
		p := &calamp.Problem{W: d.w, Y: y, Prior: groups.Learning(prior.SignalVar | prior.Density | prior.SignalMean), Channel: channel.Faulty{Working: gain}}
		opt := &calamp.Options{Outliers: calamp.Outliers{Look: true}, Learn: calamp.Learn{Noise: true, Range: true}}
		r, err := calamp.Solve(context.Background(), p, opt)
		if err != nil {
			t.Fatal(err)
		}
		correlation := stat.Correlation(r.Gain, truth, nil)
		t.Logf("%d blocks: %v, %d iterations, correlation %.3f", size, r.Status, r.Iterations, correlation)
		if r.Status != calamp.Converged || correlation < least {
			t.Errorf("%d blocks: %v: %s; correlation %.3f", size, r.Status, r.Reason, correlation)
		}
	}
}
