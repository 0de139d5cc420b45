package replica

import (
	"context"
	"math"
	"testing"
	"time"

	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/evolution"
	"github.com/calamp/calamp/internal/tables"
	"github.com/calamp/calamp/prior"
)

// Measurements too long for every run: go test -long -v ./replica
var long = tables.Long

func model(rho, alpha, delta, a, b float64, p int) evolution.Model {
	return evolution.Model{Signal: prior.GaussBernoulli{Density: rho, SignalVar: 1}, Gain: channel.Uniform(a, b), NoiseVar: delta, Alpha: alpha, P: p}
}

// dI_x/dÂ = m/2 and dI_z/dm = P m̂/2, by central differences of fourth order.
func TestGradientIdentities(t *testing.T) {
	var worstX, worstZ float64
	models := []evolution.Model{
		model(0.2, 0.6, 1e-8, 0.95, 1.05, 2), model(0.5, 1.2, 1e-3, 0.5, 1.5, 3),
		evolution.Calibrated(prior.GaussBernoulli{Density: 0.4, SignalVar: 1}, 1e-4, 0.7),
	}
	if *long {
		models = append(models, model(0.3, 0.8, 1e-5, 0.7, 1.3, 1), model(1, 1.5, 1e-2, 0.7, 1.3, 10), evolution.Model{
			Signal: prior.GaussBernoulli{Density: 0.4, SignalMean: 0.5, SignalVar: 2}, Gain: channel.TruncatedNormal(1, 0.2, 0.6, 1.4), NoiseVar: 1e-2, Alpha: 1, P: 2,
		})
	}
	for _, m := range models {
		p, err := New(m, 1e-12)
		if err != nil {
			t.Fatal(err)
		}
		four := func(f func(x float64) float64, h float64) float64 {
			return (8*(f(h)-f(-h)) - (f(2*h) - f(-2*h))) / (12 * h)
		}
		for _, a := range []float64{1e-2, 1, 30, 1e5, 1e9} {
			h := 2e-3
			// The derivative of the mutual information q₀Â/2 - I_x along log Â is VÂ/2.
			got := four(func(x float64) float64 {
				return evolution.Entry(m.Signal, 1/(a*math.Exp(x)), &evolution.Options{Tol: 1e-12}).Information.Value
			}, h)
			want := 0.5 * a * (p.q0 - p.Overlap(a))
			if a <= 1 { // where it does not cancel, the same for I_x itself
				got = four(func(x float64) float64 { return p.IX(a * math.Exp(x)).Value }, h)
				want = 0.5 * a * p.Overlap(a)
			}
			e := math.Abs(got/want - 1)
			worstX = max(worstX, e)
			if e > 1e-7 {
				t.Errorf("Â=%g: dI_x/dlog Â = %.12g, want %.12g", a, got, want)
			}
		}
		for _, v := range []float64{0.5 * p.q0, 1e-2, 1e-4, 1e-7} {
			h := 2e-3
			at := func(x float64) evolution.SensorAverages {
				s, err := m.Sensor(t.Context(), v*math.Exp(x), &evolution.Options{Tol: 1e-12})
				if err != nil {
					t.Fatal(err)
				}
				return s
			}
			got := -four(func(x float64) float64 { return at(x).Evidence.Value }, h)
			want := 0.5 * float64(m.P) * at(0).MHat.Value * v
			e := math.Abs(got/want - 1)
			worstZ = max(worstZ, e)
			if e > 1e-7 {
				t.Errorf("P=%d V=%g: dI_z/dm·V = %.12g, want %.12g", m.P, v, got, want)
			}
		}
	}
	t.Logf("worst relative: I_x %.1e, I_z %.1e", worstX, worstZ)
}

// In a first-order coexistence region the stationary points are the fixed points
// of state evolution from both ends, and the one between them.
func TestStationaryPointsAreFixedPoints(t *testing.T) {
	models := []evolution.Model{model(0.2, 0.33, 1e-6, 0.95, 1.05, 3), model(0.4, 0.6, 1e-6, 0.8, 1.2, 5)}
	if testing.Short() {
		models = models[:1]
	}
	for _, m := range models {
		start := time.Now()
		p, err := New(m, 1e-11)
		if err != nil {
			t.Fatal(err)
		}
		pts, err := p.StationaryPoints(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		if len(pts) != 3 || !pts[0].Stable || pts[1].Stable || !pts[2].Stable {
			t.Fatalf("not a coexistence of two: %+v", pts)
		}
		for i, informed := range map[int]bool{0: true, 2: false} {
			pt, err := evolution.FixedPoint(context.Background(), m, &evolution.Options{Informed: informed, Tol: 1e-11})
			if err != nil || !pt.Converged {
				t.Fatal(err, pt.Converged)
			}
			if e := math.Abs(pts[i].MSE/pt.MSEX.Value - 1); e > 1e-7 {
				t.Errorf("stationary point %.12g, fixed point %v", pts[i].MSE, pt.MSEX)
			} else {
				t.Logf("V = %.12g: relative difference %.1e", pts[i].MSE, e)
			}
		}
		// The differences of φ itself vanish at these points, and nowhere between them.
		for i, s := range pts {
			const h = 1e-3
			up, _ := p.At(t.Context(), s.MSE*math.Exp(h))
			down, _ := p.At(t.Context(), s.MSE*math.Exp(-h))
			slope := (up.Phi.Value - down.Phi.Value) / (2 * h)
			curve := (up.Phi.Value - 2*s.Phi.Value + down.Phi.Value) / (h * h)
			t.Logf("point %d: V %.6g φ %v; dφ/dlogV %.1e, curvature %.1e (%v)", i, s.MSE, s.Phi, slope, curve, time.Since(start))
			if math.Abs(slope) > 1e-2*math.Abs(curve)*h+1e-7 {
				t.Errorf("φ is not stationary at V = %g: slope %g, curvature %g", s.MSE, slope, curve)
			}
		}
		en, err := p.FreeEnergy(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("f %v, dominant V %.4g, algorithmic V %.4g, I(X;Y) %v, I(X,s;Y) %v", en.F, en.Dominant.MSE, en.Algorithmic.MSE, en.Signals, en.Both)
	}
}
