package coverage

import (
	"context"
	"math"
	"reflect"
	"testing"

	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/prior"
	"github.com/calamp/calamp/teacher"
)

func TestMatchedModelIsCalibrated(t *testing.T) {
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
		for name, s := range map[string]Share{"x": l.X, "s": l.S} {
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
