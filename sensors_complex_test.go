package calamp_test

import (
	"context"
	"math"
	"math/cmplx"
	"math/rand/v2"
	"slices"
	"strings"
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

// drawComplexSharing is a complex problem of which so many rows, here and there, share a gain, and some sensors are broken.
func drawComplexSharing(t testing.TB, te teacher.Complex, rows int, broken float64, seed uint64) (*calamp.Problem, calamp.Truth) {
	t.Helper()
	sensors := te.M / rows
	te.M = sensors * rows
	in, err := te.Draw(seed)
	if err != nil {
		t.Fatal(err)
	}
	ids := make([]int, te.M)
	for row := range ids {
		ids[row] = row % sensors
	}
	rng := rand.New(rand.NewPCG(seed, 38))
	rng.Shuffle(te.M, func(i, j int) { ids[i], ids[j] = ids[j], ids[i] })
	truth := calamp.Truth{X: in.Truth.X, S: slices.Clone(in.Truth.S[:sensors]), Phase: slices.Clone(in.Truth.Phase[:sensors])}
	own, s, size := in.Truth.ComplexS(), truth.ComplexS(), mat.Norm(in.Y, 2)/math.Sqrt(float64(te.M*te.P*2))
	for g := range s {
		if rng.Float64() < broken {
			s[g], truth.S[g] = 0, math.NaN()
		}
	}
	for row, g := range ids {
		for k := range te.P {
			y := complex(size*rng.NormFloat64(), size*rng.NormFloat64())
			if s[g] != 0 {
				y = complex(in.Y.At(row, 2*k), in.Y.At(row, 2*k+1)) * own[row] / s[g]
			}
			in.Y.Set(row, 2*k, real(y))
			in.Y.Set(row, 2*k+1, imag(y))
		}
	}
	return &calamp.Problem{W: in.W, Y: in.Y, Sensors: ids, Prior: te.Signal, Channel: channel.ComplexGain{Prior: te.Gain, NoiseVar: te.NoiseVar}}, truth
}

// Complex gains of several rows are known as those of as many signals, by whatever algorithm, with phases about nominal ones and free.
func TestSharedSensorsComplex(t *testing.T) {
	tests.Long(t)
	for _, c := range []struct {
		p, rows   int
		kappa     float64
		algorithm solver.Algorithm
		real      bool
	}{
		{4, 2, 10, solver.AMP, false},
		{2, 4, 0, solver.AMP, false},
		{2, 4, 10, solver.AMP, true},
		{4, 2, 10, solver.VAMP, false},
		{4, 2, 10, solver.Evidence, false},
	} {
		te := teacher.Complex{
			N: 120, M: 96, P: c.p, Signal: prior.ComplexGaussBernoulli{Density: 0.15, SignalVar: 1}, NoiseVar: 1e-4,
			Gain: channel.ComplexPrior{Lo: 0.8, Hi: 1.2, Concentration: c.kappa}, RealMatrix: c.real,
		}
		p, truth := drawComplexSharing(t, te, c.rows, 0, 1)
		res, err := calamp.Solve(context.Background(), p, &calamp.Options{Settings: solver.Settings{Algorithm: c.algorithm}})
		if err != nil {
			t.Fatal(err)
		}
		m := calamp.ScoreComplex(res.X, res.ComplexS(), truth)
		inside := intervalsHold(res, truth, m)
		if len(res.S) != 96/c.rows || res.Status != calamp.Converged || m.XMSEScaled > 1e-4 || m.SMSEScaled > 2e-4 || min(inside[0], inside[1]) < 0.88 {
			t.Errorf("%+v: %d sensors, %v, x %.2g, s %.2g, inside %.2g", c, len(res.S), res.Status, m.XMSEScaled, m.SMSEScaled, inside)
		}
		size, s := 0.0, res.ComplexS()
		for row, g := range p.Sensors { // the residual of a row is that of its own readings
			y := complex(p.Y.At(row, 0), p.Y.At(row, 1)) * s[g]
			size += cmplx.Abs(y)
			if off := math.Hypot(res.Residual.At(row, 0), res.Residual.At(row, 1)); off > 6 {
				t.Errorf("%+v: row %d is off by %.2g", c, row, off)
			}
		}
		if size == 0 {
			t.Error("no readings")
		}
	}
}

// What is broken is a sensor with all its rows; nominal phases are those of sensors.
func TestSharedSensorsComplexBroken(t *testing.T) {
	te := teacher.Complex{N: 150, M: 135, P: 3, Signal: prior.ComplexGaussBernoulli{Density: 0.15, SignalVar: 1}, NoiseVar: 1e-5, Gain: channel.ComplexPrior{Lo: 0.8, Hi: 1.2, Concentration: 20}}
	p, truth := drawComplexSharing(t, te, 3, 0.07, 5)
	p.Channel = channel.Faulty{Working: p.Channel}
	p.Phases = make([]float64, len(truth.S))
	for g := range p.Phases {
		p.Phases[g] = 0.7 * float64(g)
	}
	for row, g := range p.Sensors {
		for k := range te.P {
			y := complex(p.Y.At(row, 2*k), p.Y.At(row, 2*k+1)) * cmplx.Rect(1, -p.Phases[g])
			p.Y.Set(row, 2*k, real(y))
			p.Y.Set(row, 2*k+1, imag(y))
		}
	}
	res, err := calamp.Solve(context.Background(), p, nil)
	if err != nil {
		t.Fatal(err)
	}
	broken := 0
	for g, s := range truth.S {
		found := slices.ContainsFunc(res.BrokenSensors, func(b channel.BrokenSensor) bool { return b.Sensor == g })
		if math.IsNaN(s) != found {
			t.Errorf("sensor %d is broken: %v", g, found)
		}
		if math.IsNaN(s) {
			broken++
		} else if off := math.Remainder(res.Phase[g]-truth.Phase[g]-p.Phases[g], 2*math.Pi); math.Abs(off) > 0.1 {
			t.Errorf("the phase of sensor %d is off by %.2g", g, off)
		}
	}
	if broken == 0 {
		t.Error("no sensor is broken")
	}
	p.Phases = append(p.Phases, 0)
	if _, err := calamp.Solve(context.Background(), p, nil); err == nil || !strings.Contains(err.Error(), "46 nominal phases for 45 sensors") {
		t.Error(err)
	}
}

// Signals that are shifted have nearly the same readings where a sensor has neighbouring rows of the Fourier transform: of answers in which rows of a sensor ask for different gains, others are looked for.
func TestSharedSensorsOfNeighbouringRows(t *testing.T) {
	tests.Long(t)
	const n, rows, sensors, p, active = 96, 72, 18, 6, 5
	rng := rand.New(rand.NewPCG(2, 38))
	chosen := rng.Perm(n)[:rows]
	slices.Sort(chosen)
	table, ids := make([]complex128, rows*n), make([]int, rows)
	truth := calamp.Truth{X: mat.NewDense(n, 2*p, nil), S: make([]float64, sensors), Phase: make([]float64, sensors)}
	for g := range truth.S {
		truth.S[g], truth.Phase[g] = 0.8+0.4*rng.Float64(), 2*math.Pi*rng.Float64()
	}
	for k := range p {
		for _, i := range rng.Perm(n)[:active] {
			truth.X.Set(i, 2*k, rng.NormFloat64())
			truth.X.Set(i, 2*k+1, rng.NormFloat64())
		}
	}
	y := mat.NewDense(rows, 2*p, nil)
	for row, frequency := range chosen {
		ids[row] = row * sensors / rows
		for i := range n {
			table[row*n+i] = cmplx.Rect(1/math.Sqrt(n), -2*math.Pi*float64(frequency*i)/n)
		}
		for k := range p {
			z := complex(1e-3*rng.NormFloat64(), 1e-3*rng.NormFloat64())
			for i := range n {
				z += table[row*n+i] * complex(truth.X.At(i, 2*k), truth.X.At(i, 2*k+1))
			}
			z /= truth.ComplexS()[ids[row]]
			y.Set(row, 2*k, real(z))
			y.Set(row, 2*k+1, imag(z))
		}
	}
	w, err := operator.NewComplex(rows, n, table)
	if err != nil {
		t.Fatal(err)
	}
	nan := math.NaN()
	start, guess, err := calamp.GuessComplex(w, y, prior.ComplexGaussBernoulli{Density: nan, SignalVar: nan}, channel.ComplexGain{Prior: channel.ComplexPrior{Lo: nan, Concentration: 1}, NoiseVar: nan})
	if err != nil {
		t.Fatal(err)
	}
	res := solve(t, &calamp.Problem{
		W: w, Y: y, Sensors: ids, Prior: start.Learning(prior.Density | prior.SignalVar), Channel: channel.Faulty{Working: guess},
	}, &calamp.Options{Retry: true, Learn: calamp.Learn{Noise: true, Range: true, Phases: true, PhasesOrFree: true}})
	m := calamp.ScoreComplex(res.X, res.ComplexS(), truth)
	if res.Status != calamp.Converged || m.XMSEScaled > 1e-6 || m.SMSEScaled > 1e-5 {
		t.Errorf("%v: x %.2g, s %.2g, %v", res.Status, m.XMSEScaled, m.SMSEScaled, res.Warnings)
	}
}
