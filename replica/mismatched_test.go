package replica

import (
	"context"
	"math"
	"testing"

	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/evolution"
	"github.com/calamp/calamp/prior"
)

func mismatch() evolution.Mismatch {
	return evolution.Mismatch{
		Teacher: evolution.Belief{Signal: prior.GaussBernoulli{Density: 0.3, SignalVar: 1}, Gain: channel.Uniform(0.7, 1.3), NoiseVar: 1e-2},
		Student: evolution.Belief{Signal: prior.GaussBernoulli{Density: 0.5, SignalVar: 1.5}, Gain: channel.Uniform(0.6, 1.5), NoiseVar: 3e-2},
		Alpha:   0.9, P: 2,
	}
}

// The gradient that Phi reports, which it computes from state evolution's averages,
// agrees with differences of its value (central, fourth order), and vanishes at a
// fixed point of the mismatched state evolution.
func TestMismatchedGradient(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	p := Mismatched{Model: mismatch(), Tol: 1e-8}
	o, ok, err := evolution.FixedPointMismatched(context.Background(), p.Model, &evolution.Options{Tol: 2e-8})
	if err != nil || !ok {
		t.Fatal(err, ok)
	}
	fixed := p.At(o)
	_, gradient, err := p.Phi(t.Context(), fixed)
	if err != nil {
		t.Fatal(err)
	}
	for name, g := range map[string]float64{
		"q": gradient.Q / fixed.QHat, "m": gradient.M / fixed.MHat, "q12": gradient.Q12 / fixed.Q12Hat,
		"q̂": gradient.QHat / fixed.Q, "m̂": gradient.MHat / fixed.M, "q̂12": gradient.Q12Hat / fixed.Q12,
	} {
		if math.Abs(g) > 1e-7 {
			t.Errorf("∂φ/∂%s is %.1e of its terms at the fixed point", name, g)
		}
	}
	if !*long {
		return
	}
	// At a point that is not stationary, in each direction.
	at := Point{Q: 0.5, M: 0.2, Q12: 0.25, QHat: 0.3, MHat: 1.5, Q12Hat: 1.2}
	_, gradient, err = p.Phi(t.Context(), at)
	if err != nil {
		t.Fatal(err)
	}
	worst := 0.0
	for _, c := range []struct {
		name  string
		field func(p *Point) *float64
	}{
		{"q", func(p *Point) *float64 { return &p.Q }},
		{"m", func(p *Point) *float64 { return &p.M }},
		{"q12", func(p *Point) *float64 { return &p.Q12 }},
		{"q̂", func(p *Point) *float64 { return &p.QHat }},
		{"m̂", func(p *Point) *float64 { return &p.MHat }},
		{"q̂12", func(p *Point) *float64 { return &p.Q12Hat }},
	} {
		h := 2e-3 * *c.field(&at)
		phi := func(k float64) float64 {
			x := at
			*c.field(&x) += k * h
			v, _, err := p.Phi(t.Context(), x)
			if err != nil {
				t.Fatal(err)
			}
			return v.Value
		}
		got := (8*(phi(1)-phi(-1)) - (phi(2) - phi(-2))) / (12 * h)
		want := *c.field(&gradient)
		e := math.Abs(got-want) / (math.Abs(want) + 0.1)
		worst = max(worst, e)
		if e > 1e-7 {
			t.Errorf("∂φ/∂%s = %.12g by differences, %.12g reported", c.name, got, want)
		}
	}
	t.Logf("worst difference from the difference quotient: %.1e", worst)
}
