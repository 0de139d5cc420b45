package online_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/calamp/calamp"
	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/internal/tests"
	"github.com/calamp/calamp/online"
	"github.com/calamp/calamp/prior"
)

// A noise variance that was given, and is not what it was, or never was: the stream finds out, says so,
// and goes on, and an interruption changes nothing. Where it holds, it is kept.
func TestGivenNoiseThatDoesNotHold(t *testing.T) {
	tests.Long(t)
	for _, c := range []struct {
		name    string
		from    int // sample from which noise is 26 times larger
		learned bool
		signals prior.Prior
	}{
		{"grows", 20, true, prior.GaussBernoulli{Density: 0.15, SignalVar: 1}},
		{"was wrong", 0, true, prior.GaussBernoulli{Density: 0.15, SignalVar: 1}},
		{"holds", 99, false, prior.GaussBernoulli{Density: 0.15, SignalVar: 1}},
		{"grows, signals learned", 20, true, prior.GaussBernoulli{Density: 0.1, SignalVar: 2, Learn: prior.Density | prior.SignalVar}},
	} {
		w := newWorld(t, 160, 200, 3)
		calibrator := func() *online.Calibrator {
			given, err := online.NewCalibrator(w.w, c.signals, channel.Gain{Prior: channel.Uniform(0.85, 1.15), NoiseVar: 1e-4}, nil)
			if err != nil {
				t.Fatal(err)
			}
			return given
		}
		all, part := calibrator(), calibrator()
		var given []string
		rejected := 0
		for k := range 35 {
			if k == c.from {
				w.noise *= 26
			}
			y := w.draw()
			e := absorb(t, all, y)
			part = again(t, part, calibrator())
			absorb(t, part, y)
			if !e.Committed {
				rejected++
			}
			if e.Change != nil {
				given = append(given, e.Change.What()...)
				if r := e.Change.After.NoiseVar / e.Change.Before.NoiseVar; r < 10 || r > 60 {
					t.Errorf("%s: noise from %g to %g", c.name, e.Change.Before.NoiseVar, e.Change.After.NoiseVar)
				}
			}
		}
		p := all.Posterior()
		warned := slices.ContainsFunc(p.Warnings, func(w calamp.Warning) bool { return w.Code == calamp.NoiseContradicted })
		if rejected > 6 || warned != c.learned || c.learned != strings.Contains(strings.Join(given, " "), "noise") {
			t.Errorf("%s: %d samples rejected, named %v, warnings %v", c.name, rejected, given, p.Warnings)
		}
		if c.learned && (p.Model.NoiseVar < 1.5e-3 || p.Model.NoiseVar > 4e-3) {
			t.Errorf("%s: noise %g learned, is %g", c.name, p.Model.NoiseVar, w.noise)
		}
		if bits(t, all) != bits(t, part) {
			t.Errorf("%s: other bits after interruptions", c.name)
		}
	}
}
