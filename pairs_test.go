package calamp_test

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/calamp/calamp"
	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/operator"
	"github.com/calamp/calamp/prior"
)

// Eight sensors of which each pair reads a row, with s_i s_j: gains of pairs and of sensors lie in their intervals.
func TestPairsOfSensors(t *testing.T) {
	const sensors, n, active, p, noise = 8, 60, 4, 30, 1e-6
	var pairs [][2]int
	for i := range sensors {
		for j := range i {
			pairs = append(pairs, [2]int{i, j})
		}
	}
	places, err := channel.PairsOf(pairs, sensors)
	if err != nil {
		t.Fatal(err)
	}
	m, inside, insideSensor, runs := len(pairs), 0.0, 0.0, 4.0
	for seed := range uint64(runs) {
		rng := rand.New(rand.NewPCG(seed, 38))
		table, x, y, s := make([]float64, m*n), make([]float64, n*p), mat.NewDense(m, p, nil), make([]float64, sensors)
		for i := range table {
			table[i] = rng.NormFloat64() / math.Sqrt(n)
		}
		for k := range p {
			for _, i := range rng.Perm(n)[:active] {
				x[i*p+k] = rng.NormFloat64()
			}
		}
		for i := range s {
			s[i] = math.Exp(0.2 * rng.NormFloat64())
		}
		for mu, pair := range pairs {
			for k := range p {
				z := math.Sqrt(noise) * rng.NormFloat64()
				for i := range n {
					z += table[mu*n+i] * x[i*p+k]
				}
				y.Set(mu, k, z/(s[pair[0]]*s[pair[1]]))
			}
		}
		w, err := operator.NewDense(m, n, slices.Clone(table))
		if err != nil {
			t.Fatal(err)
		}
		res, err := calamp.Solve(context.Background(), &calamp.Problem{
			W: w, Y: y, Prior: prior.GaussBernoulli{Density: active / float64(n), SignalVar: 1},
			Channel: channel.Gain{Prior: places.Together(channel.Uniform(0.5, 2)), NoiseVar: noise},
		}, &calamp.Options{Learn: calamp.Learn{Range: true}})
		if err != nil {
			t.Fatal(err)
		}
		if res.Status != calamp.Converged {
			t.Fatalf("seed %d: %v", seed, res.Status)
		}
		found, sd := res.Calibration.Prior.(channel.GainPrior).OfPairs(res.Calibration.Stats, sensors)
		scale := 0.0 // of products, which the signals share
		for mu, pair := range pairs {
			scale += math.Log(res.S[mu]/(s[pair[0]]*s[pair[1]])) / float64(m)
		}
		for mu, pair := range pairs {
			off := res.S[mu]/(s[pair[0]]*s[pair[1]]*math.Exp(scale)) - 1
			inside += bit(math.Abs(off) < 1.96*math.Sqrt(res.SVar[mu])/res.S[mu]) / (runs * float64(m))
		}
		for i, v := range found {
			off := math.Log(v/s[i]) - 0.5*scale
			if math.Abs(off) > 0.01 {
				t.Errorf("seed %d: sensor %d is %g, found %g", seed, i, s[i], v)
			}
			insideSensor += bit(math.Abs(off) < 1.96*sd[i]/v) / (runs * sensors)
		}
	}
	if inside < 0.88 || insideSensor < 0.8 {
		t.Errorf("%.0f %% of the products and %.0f %% of the sensors are inside their intervals of 95 %%", 100*inside, 100*insideSensor)
	}
}

// Pairs that leave gains open are refused: without a ring of an odd number some gains may grow as others shrink.
func TestPairsThatLeaveGainsOpen(t *testing.T) {
	for _, c := range []struct {
		pairs [][2]int
		count int
		good  bool
	}{
		{[][2]int{{0, 1}, {1, 2}, {0, 2}}, 3, true},
		{[][2]int{{3, 2}, {0, 1}, {2, 1}, {0, 2}}, 4, true},
		{[][2]int{{0, 1}, {1, 2}, {2, 3}, {3, 0}}, 4, false},                // a ring of four
		{[][2]int{{0, 1}, {1, 2}, {0, 2}, {3, 4}}, 5, false},                // a pair apart
		{[][2]int{{0, 1}, {1, 2}, {0, 2}, {3, 4}, {4, 5}, {3, 5}}, 6, true}, // two rings
		{[][2]int{{0, 1}, {1, 2}, {0, 2}}, 4, false},                        // a sensor without a row
		{[][2]int{{0, 1}, {1, 2}, {2, 3}, {3, 4}, {4, 0}}, 5, true},         // a ring of five
		{[][2]int{{4, 5}, {0, 1}, {1, 2}, {0, 2}, {4, 3}, {5, 3}, {6, 0}}, 7, true},
		{[][2]int{{3, 4}, {4, 5}, {3, 5}, {0, 1}, {1, 2}}, 6, false},
	} {
		_, err := channel.PairsOf(c.pairs, c.count)
		if (err == nil) != c.good || err != nil && !strings.Contains(err.Error(), "ring of an odd number") {
			t.Errorf("%v of %d: %v", c.pairs, c.count, err)
		}
	}
}
