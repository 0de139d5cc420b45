package calamp_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/calamp/calamp"
	"github.com/calamp/calamp/internal/tables"
	"github.com/calamp/calamp/internal/tests"
	"github.com/calamp/calamp/prior"
)

// newSlackProblem is a problem of signals that are off a ReLU network by noise of this part of their variance: N = 300 out of 60 latents.
func newSlackProblem(t testing.TB, seed uint64, alpha, part float64) (d *deepProblem, slack float64) {
	t.Helper()
	rng := rand.New(rand.NewPCG(seed, 41))
	const n, n2 = 300, 60
	l := prior.Layer{Rows: n, Cols: n2, Activation: prior.ReLU}
	for range n * n2 {
		l.Weights = append(l.Weights, rng.NormFloat64()/math.Sqrt(n2))
	}
	network, err := prior.NewNetwork([]prior.Layer{l}, prior.GaussBernoulli{Density: 0.3, SignalVar: 1}, 0)
	if err != nil {
		t.Fatal(err)
	}
	slack = part * network.Variance()
	return deepProblemOfNetwork(t, rng, network.WithSlack(slack, false), alpha, 6, 0.7, 1.3, 1e-6), slack
}

// Slack is learned, from above where there is none, beside latents and noise that are learned, too. At α = 0.4 steps that leave out how fields follow it overshoot.
func TestNetworkSlackLearned(t *testing.T) {
	tests.Long(t)
	for _, c := range []struct {
		part, alpha float64
		all         bool
	}{{0, 0.4, false}, {1e-4, 0.4, true}, {1e-2, 0.25, false}} {
		d, slack := newSlackProblem(t, 1, c.alpha, c.part)
		opt, network := &calamp.Options{}, d.network
		if c.all {
			opt = d.learned()
			network, _ = prior.NetworkOf(d.Prior)
		}
		d.Prior = network.WithSlack(0, true)
		r := solve(t, &d.Problem, opt)
		found, _ := prior.NetworkOf(r.Prior)
		if r.Status != calamp.Converged {
			t.Errorf("%+v: %v", c, r.Reason)
		}
		if off := math.Abs(found.Slack() - slack); off > 3*math.Hypot(r.SlackSD, 2*r.ScaleSD*slack) || !(r.SlackSD > 0) || c.part > 0 && r.SlackSD > 0.3*slack {
			t.Errorf("%+v: slack %.3g ± %.2g, expected %.3g", c, found.Slack(), r.SlackSD, slack)
		}
		if s, _, x := d.coveredScaled(r); s < 0.85 || x < 0.88 {
			t.Errorf("%+v: coverage of s %.2f, of x %.2f", c, s, x)
		}
	}
}

// What scales with the signals does, and other latents leave the slack as it is.
func TestNetworkSlackScales(t *testing.T) {
	d, _ := newSlackProblem(t, 1, 0.4, 1e-2)
	if fixed := d.network.Scaled(2).(prior.Network); d.network.Scales() || fixed.Slack() != d.network.Slack() {
		t.Errorf("slack that is fixed became %g", fixed.Slack())
	}
	p := d.network.WithSlack(1, true)
	larger := p.Scaled(2).(prior.Network)
	if ratio := larger.Square() / p.Square(); !p.Scales() || larger.Slack() != 4 || math.Abs(ratio-4) > 1e-12 {
		t.Errorf("slack %g, mean square %g times as large", larger.Slack(), ratio)
	}
	v := p.Values()
	again, err := p.WithValues(v)
	if err != nil || len(v) != 1 || again.(prior.Network).Slack() != 1 {
		t.Errorf("values %v, %v", v, err)
	}
	if _, err := p.WithValues([]float64{-1}); err == nil {
		t.Error("a negative slack is taken")
	}
}

// TestLongNetworkSlack measures how well slack is found, alone and with latents and noise.
func TestLongNetworkSlack(t *testing.T) {
	longOnly(t)
	count := seedCount(10)
	table := tables.New(t, "", "α", "slack / variance", "learned", "converged", "found / variance", "within 2 of its errors", "NMSE", "s covered", "x covered")
	for _, alpha := range []float64{0.25, 0.4, 0.8} {
		for _, part := range []float64{0, 1e-4, 1e-2} {
			for _, what := range []string{"slack", "all"} {
				converged, within, mean, errs, s, x := 0, 0, 0.0, 0.0, 0.0, 0.0
				for seed := range count {
					d, slack := newSlackProblem(t, uint64(seed+1), alpha, part)
					opt, network := &calamp.Options{}, d.network
					if what == "all" {
						opt = d.learned()
						network, _ = prior.NetworkOf(d.Prior)
					}
					d.Prior = network.WithSlack(0, true)
					r := solve(t, &d.Problem, opt)
					found, _ := prior.NetworkOf(r.Prior)
					if r.Status == calamp.Converged {
						converged++
					}
					if math.Abs(found.Slack()-slack) < 2*r.SlackSD {
						within++
					}
					cs, _, cx := d.coveredScaled(r)
					s, x = s+cs/float64(count), x+cx/float64(count)
					mean += found.Slack() / d.network.Variance() / float64(count)
					errs += math.Log(r.Score(*d.truth).XMSEScaled/meanSquareOf(d.truth.X)) / float64(count)
				}
				table.Row("| %g | %g | %s | %d of %d | %.2g | %d of %d | %.2g | %.3f | %.3f |", alpha, part, what, converged, count, mean, within, count, math.Exp(errs), s, x)
			}
		}
	}
}
