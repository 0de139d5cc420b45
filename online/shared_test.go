package online

import (
	"context"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/calamp/calamp"
	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/internal/tests"
	"github.com/calamp/calamp/operator"
	"github.com/calamp/calamp/prior"
)

// sharedStream is a stream whose sensors have several rows of W, here and there among them. It is real, or complex.
type sharedStream struct {
	n, sensors, rows int
	complex, uneven  bool
	noise            float64
	offset           float64 // their standard deviation
	matrices         int     // of which samples name one; 0 where all have the same, -1 where they bring theirs
}

// made is one: W, the sensors of its rows, their true s, and what draws samples.
type made struct {
	w      operator.Operator
	ids    []int
	s      []complex128
	o      []float64 // offsets
	sample func() []float64
	matrix *[]float64 // that of the last sample; nil where all have the same
	signal prior.Prior
	gain   channel.Calibrating
}

func (c sharedStream) make(t testing.TB, seed uint64) (m made) {
	t.Helper()
	rng := rand.New(rand.NewPCG(seed, 38))
	parts := 1
	if c.complex {
		parts = 2
	}
	normal := func() complex128 {
		if !c.complex {
			return complex(rng.NormFloat64(), 0)
		}
		return complex(rng.NormFloat64(), rng.NormFloat64()) / complex(math.Sqrt2, 0)
	}
	for g := range c.sensors {
		rows := c.rows
		if c.uneven && g%3 == 0 {
			rows--
		}
		m.ids = append(m.ids, slices.Repeat([]int{g}, rows)...)
		phase := 0.0
		if c.complex {
			phase = 0.3 * rng.NormFloat64()
		}
		m.s = append(m.s, complex(0.8+0.4*rng.Float64(), 0)*complex(math.Cos(phase), math.Sin(phase)))
	}
	rng.Shuffle(len(m.ids), func(i, j int) { m.ids[i], m.ids[j] = m.ids[j], m.ids[i] })
	var err error
	drawn := func() (table []complex128, numbers []float64, w operator.Operator) {
		for range len(m.ids) * c.n {
			v := normal() / complex(math.Sqrt(float64(c.n)), 0)
			if table, numbers = append(table, v), append(numbers, real(v)); c.complex {
				numbers = append(numbers, imag(v))
			}
		}
		if c.complex {
			w, err = operator.NewComplex(len(m.ids), c.n, table)
		} else {
			w, err = operator.NewDense(len(m.ids), c.n, numbers)
		}
		if err != nil {
			t.Fatal(err)
		}
		return table, numbers, w
	}
	var tables [][]complex128
	var all []operator.Operator
	for range max(1, c.matrices) {
		table, _, w := drawn()
		tables, all = append(tables, table), append(all, w)
	}
	m.w = all[0]
	if c.matrices > 0 {
		m.w, err = operator.NewChoice(all)
	} else if c.matrices < 0 {
		m.w = operator.NewBrought(all[0])
	}
	if err != nil {
		t.Fatal(err)
	}
	for range c.sensors {
		m.o = append(m.o, c.offset*rng.NormFloat64())
	}
	if c.complex {
		m.signal, m.gain = prior.ComplexGaussBernoulli{Density: 0.2, SignalVar: 1}, channel.ComplexGain{Prior: channel.ComplexPrior{Lo: 0.8, Hi: 1.2, Concentration: 11}, NoiseVar: c.noise}
	} else {
		m.signal, m.gain = prior.GaussBernoulli{Density: 0.2, SignalVar: 1}, channel.Gain{Prior: channel.Uniform(0.8, 1.2), NoiseVar: c.noise}
	}
	if c.offset > 0 {
		m.gain = channel.Offset{Prior: channel.OffsetPrior{Gain: channel.Uniform(0.8, 1.2), SD: c.offset}, NoiseVar: c.noise}
	}
	if c.matrices != 0 {
		m.matrix = new([]float64)
	}
	m.sample = func() []float64 {
		table := tables[0]
		if c.matrices > 0 {
			which := rng.IntN(c.matrices)
			table, *m.matrix = tables[which], []float64{float64(which)}
		} else if c.matrices < 0 {
			table, *m.matrix, _ = drawn()
		}
		x, y := make([]complex128, c.n), make([]float64, 0, len(m.ids)*parts)
		for i := range x {
			if rng.Float64() < 0.2 {
				x[i] = normal()
			}
		}
		for row, g := range m.ids {
			z := complex(math.Sqrt(c.noise), 0) * normal()
			for i, v := range x {
				z += table[row*c.n+i] * v
			}
			z = z/m.s[g] + complex(m.o[g], 0)
			if y = append(y, real(z)); c.complex {
				y = append(y, imag(z))
			}
		}
		return y
	}
	return m
}

// inside is the part of the amplitudes within 95 % intervals, at a common factor.
func (m made) inside(p *Posterior) (part, square float64) {
	scale := 0.0
	for g, s := range m.s {
		scale += real(s) * real(s) / p.S[g] / p.S[g]
		scale += imag(s) * imag(s) / p.S[g] / p.S[g]
	}
	scale = math.Sqrt(scale / float64(len(m.s)))
	for g, s := range m.s {
		off := p.S[g]*scale - math.Hypot(real(s), imag(s))
		lo, hi := p.Calibration.Prior.Quantile(p.Calibration.Of(g), 0.025), p.Calibration.Prior.Quantile(p.Calibration.Of(g), 0.975)
		if off >= p.S[g]-hi && off <= p.S[g]-lo {
			part += 1 / float64(len(m.s))
		}
		square += off * off / float64(len(m.s))
	}
	return part, square
}

// absorb takes in a sample.
func (m made) absorb(t testing.TB, stream *Calibrator, y []float64) *Estimate {
	t.Helper()
	if m.matrix != nil {
		if err := stream.Use(*m.matrix); err != nil {
			t.Fatal(err)
		}
	}
	e, err := stream.Absorb(context.Background(), y)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func TestStreamsOfSensorsOfSeveralRows(t *testing.T) {
	tests.Long(t)
	for _, c := range []sharedStream{
		{n: 100, sensors: 40, rows: 2, noise: 1e-4},
		{n: 100, sensors: 22, rows: 4, noise: 1e-4, uneven: true},
		{n: 80, sensors: 20, rows: 3, noise: 1e-4, complex: true},
		{n: 100, sensors: 22, rows: 4, noise: 1e-4, uneven: true, matrices: 3},
		{n: 80, sensors: 20, rows: 3, noise: 1e-4, complex: true, matrices: -1},
		{n: 100, sensors: 25, rows: 4, noise: 1e-4, uneven: true, offset: 0.3},
		{n: 100, sensors: 40, rows: 2, noise: 1e-4, offset: 0.3, matrices: 3},
	} {
		m := c.make(t, 1)
		opt := &Options{Sensors: m.ids}
		if c.offset > 0 {
			opt.WarmUp = LeastWarmUp
		}
		stream, err := NewCalibrator(m.w, m.signal, m.gain, opt)
		if err != nil {
			t.Fatal(err)
		}
		var again *Calibrator
		for k := range 40 {
			y := m.sample()
			if k == 20 {
				y[3] = math.NaN()
			}
			e := m.absorb(t, stream, y)
			if k > 15 && !e.Committed {
				t.Errorf("%+v: sample %d: %s", c, k, e.Reason())
			}
			if again != nil {
				m.absorb(t, again, y)
			}
			if k == 10 { // an interruption
				b, err := stream.Snapshot().MarshalBinary()
				if err != nil {
					t.Fatal(err)
				}
				var s State
				if err := s.UnmarshalBinary(b); err != nil {
					t.Fatal(err)
				}
				if again, err = NewCalibrator(m.w, m.signal, m.gain, opt); err != nil {
					t.Fatal(err)
				}
				if err := again.Restore(&s); err != nil {
					t.Fatal(err)
				}
				own, err := NewCalibrator(m.w, m.signal, m.gain, &Options{WarmUp: opt.WarmUp})
				if err != nil {
					t.Fatal(err)
				}
				if err := own.Restore(&s); err == nil {
					t.Error("a state of sensors with several rows goes on with one each")
				}
			}
		}
		p := stream.Posterior()
		if !reflect.DeepEqual(stream.Snapshot(), again.Snapshot()) {
			t.Errorf("%+v: after an interruption the state is another", c)
		}
		part, square := m.inside(p)
		offsets := 1.0
		for g, v := range p.Offset {
			if math.Abs(v-m.o[g]) > 2*math.Sqrt(p.OffsetVar[g]) {
				offsets -= 1 / float64(c.sensors)
			}
		}
		t.Logf("%+v: inside %.3g, mean square %.2g, stated %.2g, offsets inside %.3g", c, part, square, mean(p.SVar), offsets)
		if len(p.S) != c.sensors || part < 0.85 || offsets < 0.85 || (c.offset > 0) != (len(p.Offset) > 0) || len(p.Flagged) > 0 {
			t.Errorf("%+v: %d sensors, %.2g inside, mean square %.2g, flagged %v", c, len(p.S), part, square, p.Flagged)
		}
	}
}

func mean(v []float64) float64 { return sum(v) / float64(len(v)) }

// Noise of sensors with several rows is learned: every second one has some twenty times as much.
func TestNoiseOfSensorsOfSeveralRowsIsLearned(t *testing.T) {
	c := sharedStream{n: 100, sensors: 35, rows: 3, noise: 1e-4}
	m := c.make(t, 5)
	stream, err := NewCalibrator(m.w, m.signal, m.gain, &Options{Sensors: m.ids, LearnSensorNoise: true})
	if err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(5, 3))
	for range 40 {
		y := m.sample()
		for row, g := range m.ids {
			y[row] += float64(g%2) * math.Sqrt(20*c.noise) * rng.NormFloat64() / real(m.s[g])
		}
		if _, err := stream.Absorb(context.Background(), y); err != nil {
			t.Fatal(err)
		}
	}
	p := stream.Posterior()
	if len(p.NoiseVar) != c.sensors || len(p.Flagged) > 0 {
		t.Fatalf("noise of %d sensors, flagged %v", len(p.NoiseVar), p.Flagged)
	}
	for g, v := range p.NoiseVar {
		if off := math.Log(v / (c.noise * float64(1+20*(g%2)))); math.Abs(off) > 1 {
			t.Errorf("sensor %d has a noise of %.2g", g, v)
		}
	}
}

// A sensor that fails is flagged with all its rows; what a stream cannot have is an error.
func TestStreamsOfSensorsOfSeveralRowsFlagThem(t *testing.T) {
	c := sharedStream{n: 100, sensors: 35, rows: 3, noise: 1e-4}
	m := c.make(t, 2)
	stream, err := NewCalibrator(m.w, m.signal, m.gain, &Options{Sensors: m.ids})
	if err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(3, 3))
	for k := range 40 {
		y := m.sample()
		for row, g := range m.ids {
			if g == 7 && k >= 20 {
				y[row] = rng.NormFloat64()
			}
		}
		if _, err := stream.Absorb(context.Background(), y); err != nil {
			t.Fatal(err)
		}
	}
	p := stream.Posterior()
	if len(p.Flagged) != 1 || p.Flagged[0].Sensor != 7 {
		t.Errorf("flagged are %v", p.Flagged)
	}
	if _, err := NewCalibrator(m.w, m.signal, m.gain, &Options{Sensors: m.ids[1:]}); err == nil || !strings.Contains(err.Error(), "104 values, expected 105") {
		t.Error(err)
	}
	if _, err := stream.Absorb(context.Background(), make([]float64, 35)); err == nil || !strings.Contains(err.Error(), "one reading a row, 105") {
		t.Error(err)
	}
}

// Rows with the wrong sensors are warned of, and error bars of gains are wider.
func TestStreamsOfWrongSensors(t *testing.T) {
	m := sharedStream{n: 100, sensors: 35, rows: 3, noise: 1e-4}.make(t, 4)
	ids, rng := slices.Clone(m.ids), rand.New(rand.NewPCG(4, 4))
	for row := range ids {
		if other := rng.IntN(len(ids)); rng.Float64() < 0.2 {
			ids[row], ids[other] = ids[other], ids[row]
		}
	}
	stream, err := NewCalibrator(m.w, m.signal, m.gain, &Options{Sensors: ids, LearnNoise: true})
	if err != nil {
		t.Fatal(err)
	}
	for range 30 {
		if _, err := stream.Absorb(context.Background(), m.sample()); err != nil {
			t.Fatal(err)
		}
	}
	p := stream.Posterior()
	part, _ := m.inside(p)
	if !slices.ContainsFunc(p.Warnings, func(w calamp.Warning) bool { return w.Code == calamp.RowsDisagree }) || part < 0.6 {
		t.Errorf("%.2g inside, warnings %v", part, p.Warnings)
	}
}

// Residuals of a sensor with an offset are those of the covariance of all its readings.
func TestResidualsOfALine(t *testing.T) {
	m := sharedStream{n: 60, sensors: 12, rows: 5, noise: 1e-4, offset: 0.3}.make(t, 3)
	stream, err := NewCalibrator(m.w, m.signal, m.gain, &Options{Sensors: m.ids, WarmUp: LeastWarmUp})
	if err != nil {
		t.Fatal(err)
	}
	for range LeastWarmUp + 1 {
		m.absorb(t, stream, m.sample())
	}
	line := channel.Line{Place: 0.2, Value: 0.5, Slope: 1.1, ValueVar: 3e-4, SlopeVar: 2e-3, Covariance: -4e-4}
	for mu := range 12 {
		k, r, logD := mat.NewSymDense(5, nil), mat.NewVecDense(5, nil), 0.0
		for i := range 5 {
			y := stream.row(stream.y, mu)[i]
			z, variance := line.At(y)
			d := stream.sample.U[mu*5+i] + stream.noise
			r.SetVec(i, z-stream.sample.Omega[mu*5+i])
			logD += math.Log(d)
			for j := range i {
				other := stream.row(stream.y, mu)[j]
				k.SetSym(i, j, line.ValueVar+line.SlopeVar*(y-line.Place)*(other-line.Place)+line.Covariance*(y+other-2*line.Place))
			}
			k.SetSym(i, i, variance+d)
		}
		var l mat.Cholesky
		var solved mat.VecDense
		if !l.Factorize(k) || l.SolveVecTo(&solved, r) != nil {
			t.Fatal("no covariance")
		}
		wantChi, wantWider := math.Sqrt(mat.Dot(r, &solved)/5), math.Exp((l.LogDet()-logD)/5)
		chi, wider := stream.residualOfLine(mu, line)
		if math.Abs(chi/wantChi-1) > 1e-8 || math.Abs(wider/wantWider-1) > 1e-8 {
			t.Errorf("sensor %d: χ %g and %g, expected %g and %g", mu, chi, wider, wantChi, wantWider)
		}
	}
}
