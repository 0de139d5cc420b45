package calamp_test

import (
	"context"
	"math"
	"math/cmplx"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/calamp/calamp"
	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/internal/tests"
	"github.com/calamp/calamp/operator"
	"github.com/calamp/calamp/prior"
	"github.com/calamp/calamp/solver"
	"github.com/calamp/calamp/teacher"
)

func complexTeacher(g channel.ComplexPrior) teacher.Complex {
	return teacher.Complex{N: 150, M: 110, P: 4, Signal: prior.ComplexGaussBernoulli{Density: 0.2, SignalVar: 1}, Gain: g, NoiseVar: 1e-6}
}

func drawComplex(t *testing.T, te teacher.Complex, seed uint64) *teacher.ComplexInstance {
	t.Helper()
	in, err := te.Draw(seed)
	if err != nil {
		t.Fatal(err)
	}
	return in
}

// meanTotal is the mean posterior variance of an entry, of both parts.
func meanTotal(res *calamp.Result) float64 {
	return 2 * mat.Sum(res.XVar) / float64(len(flatten(res.XVar)))
}

func flatten(m *mat.Dense) []float64 { return m.RawMatrix().Data }

// TestComplexGains: whatever is known of amplitudes and phases, and with a real W, errors are those
// that the posterior states, and intervals hold.
func TestComplexGains(t *testing.T) {
	tests.Long(t)
	known := math.Inf(1)
	for name, c := range map[string]struct {
		gain channel.ComplexPrior
		real bool
	}{
		"phases known":       {channel.ComplexPrior{Lo: 0.5, Hi: 1.5, Concentration: known}, false},
		"phase only":         {channel.ComplexPrior{Lo: 1, Hi: 1}, false},
		"phase about zero":   {channel.ComplexPrior{Lo: 1, Hi: 1, Concentration: 5}, false},
		"amplitude, phase":   {channel.ComplexPrior{Lo: 0.5, Hi: 1.5}, false},
		"von Mises":          {channel.ComplexPrior{Lo: 0.5, Hi: 1.5, Concentration: 20}, false},
		"normal amplitude":   {channel.ComplexPrior{Lo: 0.5, Hi: 1.5, Center: 1, Precision: 25, Concentration: 20}, false},
		"log-normal":         {channel.ComplexPrior{Lo: 0.1, Hi: 10, Center: 1, Precision: 6, Log: true}, false},
		"real W, von Mises":  {channel.ComplexPrior{Lo: 0.5, Hi: 1.5, Concentration: 20}, true},
		"real W, phase only": {channel.ComplexPrior{Lo: 1, Hi: 1}, true},
	} {
		t.Run(name, func(t *testing.T) {
			te := complexTeacher(c.gain)
			te.RealMatrix = c.real
			in := drawComplex(t, te, 2)
			res := solve(t, te.Problem(in), nil)
			if res.Status != calamp.Converged || len(res.Warnings) > 0 {
				t.Errorf("%v: %s, warnings %v", res.Status, res.Reason, res.Warnings)
			}
			m := calamp.ScoreComplex(res.X, res.ComplexS(), in.Truth)
			stated := meanTotal(res)
			if ratio := m.XMSEScaled / stated; !(ratio > 0.5 && ratio < 2) {
				t.Errorf("mean square error %.3g, stated %.3g", m.XMSEScaled, stated)
			}
			inside := intervalsHold(res, in.Truth, m)
			if inside[0] < 0.88 || inside[1] < 0.88 {
				t.Errorf("intervals of 95 %% hold %.3g of the amplitudes and %.3g of the phases", inside[0], inside[1])
			}
			if res.PhaseFree != c.gain.Free() {
				t.Errorf("the common phase is a convention: %v", res.PhaseFree)
			}
			if sum := sumOf(res.ComplexS()); res.PhaseFree && math.Abs(cmplx.Phase(sum)) > 1e-12 {
				t.Errorf("the sum of all s has the phase %g", cmplx.Phase(sum))
			}
			if !res.PhaseFree && math.Abs(m.PhaseShift) > 5*res.PhaseSD+1e-3 {
				t.Errorf("the common phase is off by %.3g, stated ±%.3g", m.PhaseShift, res.PhaseSD)
			}
		})
	}
}

func sumOf(v []complex128) (sum complex128) {
	for _, z := range v {
		sum += z
	}
	return sum
}

// intervalsHold is the part of the sensors whose amplitudes and phases lie in their relative intervals of 95 %.
func intervalsHold(res *calamp.Result, truth calamp.Truth, m calamp.Metrics) (parts [2]float64) {
	lo, hi := res.SInterval(0.95)
	_, _, from, to := res.PhaseIntervals(0.95)
	for mu, s := range truth.S {
		each := 1 / float64(len(truth.S))
		if r := s / m.Scale; res.Calibration.Prior.(channel.ComplexPrior).Lo == hi[mu] || r >= lo[mu]-1e-12 && r <= hi[mu]+1e-12 {
			parts[0] += each
		}
		middle := 0.5 * (from[mu] + to[mu])
		away := math.Remainder(truth.Phase[mu]-m.PhaseShift-middle, 2*math.Pi)
		if to[mu] == from[mu] || math.Abs(away) <= 0.5*(to[mu]-from[mu])+1e-4 { // and what the best factor is off by
			parts[1] += each
		}
	}
	return parts
}

// TestComplexMissingAndBroken: readings that are missing, and a sensor that is broken.
func TestComplexMissingAndBroken(t *testing.T) {
	te := complexTeacher(channel.ComplexPrior{Lo: 0.5, Hi: 1.5, Concentration: 20})
	te.M = 120
	in := drawComplex(t, te, 4)
	for j := 0; j < te.M*te.P; j += 11 {
		in.Y.Set(j/te.P, 2*(j%te.P), math.NaN()) // one part is enough
	}
	const broken = 7
	for k := range 2 * te.P {
		in.Y.Set(broken, k, math.Sin(float64(3*k)))
	}
	p := te.Problem(in)
	p.Channel = channel.Faulty{Working: p.Channel}
	res := solve(t, p, nil)
	m := calamp.ScoreComplex(res.X, nil, calamp.Truth{X: in.Truth.X})
	if res.Status != calamp.Converged || !(m.XMSEScaled < 2*meanTotal(res)) || !(m.XMSEScaled < 5e-6) {
		t.Errorf("%v: mean square error %.3g, stated %.3g", res.Status, m.XMSEScaled, meanTotal(res))
	}
	if len(res.BrokenSensors) != 1 || res.BrokenSensors[0].Sensor != broken {
		t.Errorf("broken: %v", res.BrokenSensors)
	}
}

// TestComplexOffsetsAreNamed, which nothing models where readings are complex.
func TestComplexOffsetsAreNamed(t *testing.T) {
	te := complexTeacher(channel.ComplexPrior{Lo: 0.8, Hi: 1.2, Concentration: math.Inf(1)})
	for _, size := range []float64{0, 0.02} {
		in := drawComplex(t, te, 1)
		rng := rand.New(rand.NewPCG(1, 0))
		for mu := range te.M {
			row := in.Y.RawRowView(mu)
			o := [2]float64{size * rng.NormFloat64(), size * rng.NormFloat64()}
			for k := range row {
				row[k] += o[k%2]
			}
		}
		p := te.Problem(in)
		if got := warned(solve(t, p, &calamp.Options{Learn: calamp.Learn{Noise: true}}), calamp.Offsets); got != (size > 0) {
			t.Errorf("offsets of %g: named %v", size, got)
		}
	}
}

// TestComplexNominalPhases: phases about nominal ones are those about zero, turned.
func TestComplexNominalPhases(t *testing.T) {
	te := complexTeacher(channel.ComplexPrior{Lo: 0.5, Hi: 1.5, Concentration: 20})
	in := drawComplex(t, te, 5)
	p := te.Problem(in)
	plain := solve(t, p, nil)
	p.Phases = make([]float64, te.M)
	y := mat.DenseCopyOf(in.Y)
	for mu := range p.Phases {
		p.Phases[mu] = 2.5 * math.Sin(float64(mu))
		turn := cmplx.Rect(1, -p.Phases[mu])
		for k := 0; k < 2*te.P; k += 2 {
			v := turn * complex(y.At(mu, k), y.At(mu, k+1))
			y.Set(mu, k, real(v))
			y.Set(mu, k+1, imag(v))
		}
	}
	p.Y = y
	turned := solve(t, p, nil)
	if !mat.EqualApprox(plain.X, turned.X, 1e-6) {
		t.Error("signals are others")
	}
	for mu, s := range turned.ComplexS() {
		if want := plain.ComplexS()[mu] * cmplx.Rect(1, p.Phases[mu]); cmplx.Abs(s-want) > 1e-6 {
			t.Fatalf("s of sensor %d is %v, want %v", mu, s, want)
		}
	}
}

// TestComplexWithKnownGains is ordinary compressed sensing.
func TestComplexWithKnownGains(t *testing.T) {
	te := complexTeacher(channel.ComplexPrior{Lo: 1, Hi: 1.0000001, Concentration: math.Inf(1)})
	in := drawComplex(t, te, 6)
	p := te.Problem(in)
	p.Channel = channel.AWGN{NoiseVar: te.NoiseVar / 2}
	res := solve(t, p, nil)
	if m := calamp.Score(res.X, res.S, calamp.Truth{X: in.Truth.X}); res.Status != calamp.Converged || !(m.XMSE < 2e-6) {
		t.Errorf("%v: mean square error of a part %.3g", res.Status, m.XMSE)
	}
}

// TestComplexOnly: models of which a part is real, and options for real numbers.
func TestComplexOnly(t *testing.T) {
	te := complexTeacher(channel.ComplexPrior{Lo: 0.5, Hi: 1.5})
	in := drawComplex(t, te, 7)
	realPrior := prior.GaussBernoulli{Density: 0.2, SignalVar: 1}
	realGain := channel.Gain{Prior: channel.Uniform(0.5, 1.5), NoiseVar: 1e-6}
	dense, err := operator.NewDense(2, 2, []float64{1, 2, 3, 4})
	if err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(p *calamp.Problem, o *calamp.Options){
		"real prior": func(p *calamp.Problem, _ *calamp.Options) { p.Prior = realPrior },
		"real gains": func(p *calamp.Problem, _ *calamp.Options) { p.Channel = realGain },
		"real model": func(p *calamp.Problem, _ *calamp.Options) { p.Prior, p.Channel = realPrior, realGain },
		"complex gains": func(p *calamp.Problem, _ *calamp.Options) {
			p.W, p.Y, p.Prior = dense, mat.NewDense(2, 2, []float64{1, 2, 3, 4}), realPrior
		},
		"odd columns":    func(p *calamp.Problem, _ *calamp.Options) { p.Y = mat.DenseCopyOf(p.Y.Slice(0, te.M, 0, 3)) },
		"full":           func(_ *calamp.Problem, o *calamp.Options) { o.Covariance = solver.Full },
		"phases of free": func(p *calamp.Problem, _ *calamp.Options) { p.Phases = make([]float64, te.M) },
		"known amplitudes to be learned": func(p *calamp.Problem, o *calamp.Options) {
			p.Channel = channel.ComplexGain{Prior: channel.ComplexPrior{Lo: 1, Hi: 1}, NoiseVar: 1e-6}
			o.Learn.Range = true
		},
	} {
		p, o := te.Problem(in), &calamp.Options{}
		change(p, o)
		if _, err := calamp.Solve(context.Background(), p, o); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// TestComplexCorrelated: signals that share most of what they are make errors that do not average over them. Taken together they are
// known as well as is said, without an alarm; one by one intervals are widened, and the warning says so.
func TestComplexCorrelated(t *testing.T) {
	tests.Long(t)
	te := complexTeacher(channel.ComplexPrior{Lo: 0.8, Hi: 1.2, Concentration: 20})
	te.N, te.M, te.NoiseVar = 250, 200, 1e-5
	te.Signal.Density = 0.15
	in := drawComplex(t, te, 3)
	complexFrames(te, in, 0.4, rand.New(rand.NewPCG(3, 7)))
	for _, joint := range []solver.Joint{solver.AutoJoint, solver.JointOff} {
		res := solve(t, te.Problem(in), &calamp.Options{Joint: joint})
		if res.Status != calamp.Converged {
			t.Fatalf("joint %v: %v: %s", joint, res.Status, res.Reason)
		}
		if apart := joint == solver.JointOff; warned(res, calamp.SignalsAlike) != apart {
			t.Errorf("joint %v, %s: whether correlated signals are named: %v, %v", joint, res.Reason, !apart, res.Warnings)
		}
		inside := intervalsHold(res, in.Truth, calamp.ScoreComplex(res.X, res.ComplexS(), in.Truth))
		if inside[0] < 0.88 || inside[1] < 0.88 {
			t.Errorf("joint %v: intervals of 95 %% hold %.3g of the amplitudes and %.3g of the phases", joint, inside[0], inside[1])
		}
	}
}

// TestComplexLearns: density, variance, noise and the range of the amplitudes from readings alone, whatever is known
// of phases; estimates are as good as with the model given.
func TestComplexLearns(t *testing.T) {
	tests.Long(t)
	for name, gain := range map[string]channel.ComplexPrior{
		"phases free": {Lo: 0.5, Hi: 1.5},
		"log-normal":  {Lo: 0.2, Hi: 5, Center: 1, Precision: 9, Log: true, Concentration: 5},
		"phase only":  {Lo: 1, Hi: 1, Concentration: 20},
	} {
		t.Run(name, func(t *testing.T) {
			te := complexTeacher(gain)
			te.P, te.NoiseVar = 6, 1e-4
			in := drawComplex(t, te, 3)
			given := solve(t, te.Problem(in), nil)
			unknown := channel.ComplexGain{Prior: channel.ComplexPrior{Lo: math.NaN(), Concentration: gain.Concentration}, NoiseVar: math.NaN()}
			start, guess, err := calamp.GuessComplex(in.W, in.Y, prior.ComplexGaussBernoulli{Density: math.NaN(), SignalVar: math.NaN()}, unknown)
			if err != nil {
				t.Fatal(err)
			}
			p := te.Problem(in)
			p.Prior, p.Channel = start.Learning(prior.Density|prior.SignalVar), guess
			found := solve(t, p, &calamp.Options{Learn: calamp.Learn{Noise: true, Range: true}})
			if found.Status != calamp.Converged {
				t.Fatalf("%v: %s", found.Status, found.Reason)
			}
			a, b := calamp.ScoreComplex(given.X, given.ComplexS(), in.Truth), calamp.ScoreComplex(found.X, found.ComplexS(), in.Truth)
			if b.XMSEScaled > 1.15*a.XMSEScaled {
				t.Errorf("mean square error %.3g, with the model given %.3g", b.XMSEScaled, a.XMSEScaled)
			}
			inside := intervalsHold(found, in.Truth, b)
			if inside[0] < 0.88 || inside[1] < 0.88 {
				t.Errorf("intervals of 95 %% hold %.3g of the amplitudes and %.3g of the phases", inside[0], inside[1])
			}
			learned := found.Prior.(prior.ComplexGaussBernoulli)
			within(t, "density", learned.Density, 0.2, 0.1)
			within(t, "noise", found.Channel.(channel.ComplexGain).NoiseVar, te.NoiseVar, 0.15)
			lo, hi := found.Calibration.Prior.Range()
			if gain.Precision == 0 && gain.Lo < gain.Hi && found.Calibration.Prior.(channel.ComplexPrior).Precision == 0 {
				within(t, "width of the range relative to its middle", (hi-lo)/(hi+lo), 0.5, 0.05)
			}
		})
	}
}

// TestComplexSinglePrecision: most sweeps of a solve are in single precision, which does not show in its answer.
func TestComplexSinglePrecision(t *testing.T) {
	te := complexTeacher(channel.ComplexPrior{Lo: 0.5, Hi: 1.5, Concentration: 20})
	te.N, te.M = 260, 180
	in := drawComplex(t, te, 3)
	opt := &calamp.Options{}
	got := solve(t, te.Problem(in), opt)
	opt.Precision = solver.DoublePrecision
	want := solve(t, te.Problem(in), opt)
	if got.Arithmetic != "f32+f64" || got.Storage == "" || want.Arithmetic != "f64" || got.Status != want.Status {
		t.Fatalf("%v with %s over %s, and %v with %s", got.Status, got.Arithmetic, got.Storage, want.Status, want.Arithmetic)
	}
	sd, worst := math.Sqrt(mat.Sum(want.XVar)/float64(len(flatten(want.XVar)))), 0.0
	for i, x := range flatten(want.X) {
		worst = max(worst, math.Abs(flatten(got.X)[i]-x))
	}
	if worst > 1e-3*sd {
		t.Errorf("signals differ by up to %.2g standard deviations", worst/sd)
	}
}

// TestComplexLearnsConcentration: how phases are spread about the nominal ones is learned, with the noise, and error bars hold.
func TestComplexLearnsConcentration(t *testing.T) {
	tests.Long(t)
	var inside, z2 float64
	kappas := []float64{3, 30, 1000}
	for i, kappa := range kappas {
		te := complexTeacher(channel.ComplexPrior{Lo: 0.8, Hi: 1.2, Concentration: kappa})
		te.NoiseVar = 1e-4
		in := drawComplex(t, te, uint64(5+i))
		p := te.Problem(in)
		g := p.Channel.(channel.ComplexGain)
		g.Prior.Concentration = 1
		p.Channel = g
		res := solve(t, p, &calamp.Options{Learn: calamp.Learn{Noise: true, Phases: true}})
		found := res.Channel.(channel.ComplexGain).Prior.Concentration
		if off := math.Log(found / kappa); res.Status != calamp.Converged || math.Abs(off) > 4*math.Sqrt(2/float64(te.M)) {
			t.Errorf("%v: κ = %g was learned as %g", res.Status, kappa, found)
		}
		if warned(res, calamp.PhaseSpread) {
			t.Errorf("κ = %g: %v", kappa, res.Warnings)
		}
		m := res.Score(in.Truth)
		inside += intervalsHold(res, in.Truth, m)[1] / float64(len(kappas))
		z := m.PhaseShift / res.PhaseSD
		z2 += z * z / float64(len(kappas))
	}
	if inside < 0.9 || inside > 0.99 || z2 > 4 {
		t.Errorf("intervals of 95 %% hold %.3g of the phases, the common one is off by %.2g of its standard deviations", inside, math.Sqrt(z2))
	}
}

// TestComplexLearnsOfFreePhases: learned of phases that are anywhere, their spread says so.
func TestComplexLearnsOfFreePhases(t *testing.T) {
	te := complexTeacher(channel.ComplexPrior{Lo: 0.8, Hi: 1.2})
	in := drawComplex(t, te, 3)
	p := te.Problem(in)
	g := p.Channel.(channel.ComplexGain)
	g.Prior.Concentration = 1
	p.Channel = g
	if res := solve(t, p, &calamp.Options{Learn: calamp.Learn{Phases: true}}); !warned(res, calamp.PhaseSpread) {
		t.Errorf("%v, κ = %g, warnings %v", res.Status, res.Channel.(channel.ComplexGain).Prior.Concentration, res.Warnings)
	}
}
