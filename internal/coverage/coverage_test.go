package coverage

import (
	"context"
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/internal/tests"
	"github.com/calamp/calamp/prior"
	"github.com/calamp/calamp/teacher"
)

func TestMatchedModelIsCalibrated(t *testing.T) {
	tests.Long(t)
	c := &Check{
		Teacher: teacher.Teacher{
			N: 200, M: 180, P: 4,
			Signal: prior.GaussBernoulli{Density: 0.2, SignalVar: 1}, Gain: channel.Uniform(0.5, 1.5), NoiseVar: 1e-3,
		},
		Seeds: 12, Workers: 1,
	}
	r, err := Run(context.Background(), c)
	if err != nil {
		t.Fatal(err)
	}
	if r.Converged < 11 {
		t.Errorf("%d of %d converged", r.Converged, r.Instances)
	}
	for _, l := range r.Levels {
		for name, s := range map[string]*Share{"x": l.X, "s": l.S} {
			if math.Abs(s.Value-l.Level) > 0.01+4*s.Error {
				t.Errorf("%s: intervals of %g hold %.3f ± %.3f", name, l.Level, s.Value, s.Error)
			}
		}
	}
	c.Workers = 2
	again, err := Run(context.Background(), c)
	if err != nil || !reflect.DeepEqual(r, again) {
		t.Error("the report depends on the number of workers")
	}
}

// TestMatchedComplexModelIsCalibrated: both parts of x, amplitudes and phases; what is known beforehand is not counted, and the raw phase not
// where it is a convention.
func TestMatchedComplexModelIsCalibrated(t *testing.T) {
	tests.Long(t)
	for name, c := range map[string]struct {
		gain    channel.ComplexPrior
		counted string
	}{
		"von Mises":   {channel.ComplexPrior{Lo: 0.5, Hi: 1.5, Concentration: 20}, "x s s_raw scale phase phase_raw "},
		"phase known": {channel.ComplexPrior{Lo: 0.5, Hi: 1.5, Concentration: math.Inf(1)}, "x s s_raw scale "},
		"phase only":  {channel.ComplexPrior{Lo: 1, Hi: 1}, "x phase "},
	} {
		r, err := Run(context.Background(), &Check{
			Teacher: teacher.Complex{N: 80, M: 70, P: 4, Signal: prior.ComplexGaussBernoulli{Density: 0.2, SignalVar: 1}, Gain: c.gain, NoiseVar: 1e-3},
			Seeds:   4,
		})
		if err != nil {
			t.Fatal(err)
		}
		if r.Converged < 4 {
			t.Errorf("%s: %d of %d converged", name, r.Converged, r.Instances)
		}
		for _, l := range r.Levels {
			counted := ""
			for i, s := range l.shares() {
				what := strings.Fields("x s s_raw scale phase phase_raw")[i]
				if *s == nil {
					continue
				}
				counted += what + " "
				if what != "scale" && math.Abs((*s).Value-l.Level) > 0.02+4*(*s).Error {
					t.Errorf("%s, %s: intervals of %g hold %.3f ± %.3f", name, what, l.Level, (*s).Value, (*s).Error)
				}
			}
			if counted != c.counted {
				t.Errorf("%s: counted %q, expected %q", name, counted, c.counted)
			}
		}
	}
}
