package amp

import (
	"context"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/operator"
	"github.com/calamp/calamp/prior"
)

// onMasks is an engine without readings on masks of 0 and size, without their
// means, and the masks.
func onMasks(t *testing.T, rng *rand.Rand, m, n, p int, size float64, prior prior.Prior, gain channel.Gain) (*Engine, []float64) {
	t.Helper()
	w := make([]float64, m*n)
	for i := range w {
		w[i] = float64(rng.IntN(2)) * size
	}
	op, err := operator.NewDense(m, n, w)
	if err != nil {
		t.Fatal(err)
	}
	centred, err := operator.RemoveMeans(op, 0)
	if err != nil || centred == nil {
		t.Fatal(centred, err)
	}
	e, err := New(Config{W: op, Centred: centred, Prior: prior, Channel: gain, P: p, Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	return e, w
}

// maskEngine is an engine on masks and signals that differ.
func maskEngine(t *testing.T, m, n, p int) (*Engine, channel.Gain) {
	t.Helper()
	rng := rand.New(rand.NewPCG(3, 4))
	gain := channel.Gain{Prior: channel.Uniform(0.9, 1.1), NoiseVar: 1e-4}
	e, w := onMasks(t, rng, m, n, p, 1/math.Sqrt(float64(n)), prior.GaussBernoulli{Density: 0.2, SignalMean: 0.3, SignalVar: 1}, gain)
	for k := range p {
		x := make([]float64, n)
		for i := range x {
			if rng.Float64() < 0.2 {
				x[i] = 0.3 + rng.NormFloat64()
			}
		}
		for mu := range m {
			z := 1e-2 * rng.NormFloat64()
			for i, v := range x {
				z += w[mu*n+i] * v
			}
			e.Y[mu*p+k] = z / (0.9 + 0.2*float64(mu)/float64(m))
		}
	}
	return e, gain
}

// At a fixed point the evidence is stationary along the scale, with what the
// border adds to its sums; the further entries are what they stand for.
func TestBorderAtAFixedPoint(t *testing.T) {
	e, gain := maskEngine(t, 90, 120, 3)
	s := NewSolver(e, e)
	s.Tol, s.Damping = 1e-13, NewDamper(0.3, true)
	if outcome, err := s.Run(context.Background(), 20000); outcome != Converged || err != nil {
		t.Fatal(outcome, err, s.Change)
	}
	evidence := e.scaleEvidence(gain)
	slope, curvature := evidence.slope(1)
	if math.Abs(slope) > 1e-6*math.Abs(curvature) {
		t.Errorf("the evidence has slope %g along the scale, curvature %g", slope, curvature)
	}
	quadratic, volume := e.ScaleSums(make([]float64, e.M))
	if math.Abs(quadratic/evidence.quadratic-1) > 1e-9 || math.Abs(volume/evidence.volume-1) > 1e-12 {
		t.Errorf("sums %g and %g, of the evidence %g and %g", quadratic, volume, evidence.quadratic, evidence.volume)
	}
	for j, q := range e.Centred.Combinations {
		for k := range e.P {
			want := 0.0
			for i, c := range q {
				want += c * e.X[k*e.N+i]
			}
			got := e.border.x[k*e.Centred.Extra+j]
			if sd := math.Sqrt(e.border.c[k*e.Centred.Extra+j]); math.Abs(got-want) > 3*sd {
				t.Errorf("further entry %d of signal %d is %g, the signal says %g", j, k, got, want)
			}
		}
	}
}

// Refused steps leave no trace.
func TestBorderIsRestored(t *testing.T) {
	e, gain := maskEngine(t, 50, 60, 2)
	for range 5 {
		e.Step(0.2)
	}
	e.Save()
	before := e.LogEvidence()
	e.Step(0)
	e.ScaleStep(gain)
	e.Restore()
	if after := e.LogEvidence(); after != before {
		t.Errorf("evidence %v, before %v", after, before)
	}
	e.Step(0.2)
	first := append([]float64(nil), e.X...)
	e.Restore()
	e.Step(0.2)
	for i, x := range e.X {
		if x != first[i] {
			t.Fatalf("entry %d: %v, %v", i, x, first[i])
		}
	}
}
