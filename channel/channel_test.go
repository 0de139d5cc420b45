package channel

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"
	"pgregory.net/rapid"
)

func block(y, omega, v []float64) *Block {
	b := NewBlock(Gain{}, 1, len(y))
	b.Y, b.Omega, b.V = y, omega, v
	return b
}

// drawSensor makes the readings of one sensor that a model of gains in
// [0.5, 1.5] could have given.
func drawSensor(t *rapid.T) (y, omega, v []float64) {
	p := rapid.IntRange(1, 5).Draw(t, "P")
	for range p {
		z := rapid.Float64Range(-3, 3).Draw(t, "z")
		y = append(y, z/rapid.Float64Range(0.6, 1.4).Draw(t, "s"))
		v = append(v, rapid.Float64Range(0.01, 2).Draw(t, "V"))
		omega = append(omega, z+rapid.Float64Range(-1, 1).Draw(t, "error"))
	}
	return y, omega, v
}

// g and ∂g are the first and second derivatives of log Z_out, which is
// computed from other numbers: the definition, by central differences.
func TestOutputFunctionsAreDerivativesOfTheEvidence(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		y, omega, v := drawSensor(t)
		channels := []Channel{
			Gain{Prior: Uniform(0.5, 1.5), NoiseVar: 1e-3},
			Gain{Prior: TruncatedNormal(1, 0.1, 0.5, 1.5), NoiseVar: 1e-3},
			AWGN{NoiseVar: 1e-3},
			AWGN{NoiseVar: 1e-3, S: []float64{0.8}},
			Gain{Prior: Uniform(0.5, 1.5), NoiseVar: 1e-3, Saturation: 1},
			Gain{Prior: TruncatedNormal(1, 0.1, 0.5, 1.5), NoiseVar: 1e-3, Saturation: 0.2},
			Faulty{Working: Gain{Prior: Uniform(0.5, 1.5), NoiseVar: 1e-3}, Rate: 0.2, Var: 0.7},
			Faulty{Working: Gain{Prior: Uniform(0.5, 1.5), NoiseVar: 1e-3, Saturation: 1}, Rate: 0.2, Var: 0.7},
			Faulty{Working: AWGN{NoiseVar: 1e-3}, Rate: 0.5, Var: 2},
		}
		c := rapid.SampledFrom(channels).Draw(t, "channel")
		b := block(y, omega, v)
		c.Output(b)
		for k := range y {
			const h = 1e-4
			at := func(shift float64) float64 {
				moved := append([]float64(nil), omega...)
				moved[k] += shift
				m := block(y, moved, v)
				c.Output(m)
				return m.LogZ[0]
			}
			first := (at(h) - at(-h)) / (2 * h)
			second := (at(h) - 2*at(0) + at(-h)) / (h * h)
			if math.Abs(first-b.G[k]) > 1e-4*(1+math.Abs(first)) {
				t.Fatalf("%T: g[%d] = %g, difference quotient %g", c, k, b.G[k], first)
			}
			if math.Abs(second-b.DG[k]) > 1e-3*(1+math.Abs(second)) {
				t.Fatalf("%T: ∂g[%d] = %g, difference quotient %g", c, k, b.DG[k], second)
			}
			if _, mixture := c.(Faulty); b.DG[k] > 0 && !mixture {
				t.Fatalf("∂g = %g > 0", b.DG[k])
			}
		}
	})
}

func TestMissingReadingIsAsIfItWereNotThere(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		y, omega, v := drawSensor(t)
		gain := Gain{Prior: Uniform(0.5, 1.5), NoiseVar: 1e-3}
		for _, c := range []Channel{gain, AWGN{NoiseVar: 1e-3}, Faulty{Working: gain, Rate: 0.1, Var: 1}} {
			without := block(y, omega, v)
			c.Output(without)
			with := block(append([]float64{math.NaN()}, y...), append([]float64{3}, omega...), append([]float64{1}, v...))
			c.Output(with)
			if with.G[0] != 0 || with.DG[0] != 0 {
				t.Fatalf("%T: missing reading has g = %g, ∂g = %g", c, with.G[0], with.DG[0])
			}
			if with.S[0] != without.S[0] || with.SVar[0] != without.SVar[0] || with.Stats[readings] != without.Stats[readings] || with.LogZ[0] != without.LogZ[0] || with.Broken[0] != without.Broken[0] {
				t.Fatalf("%T: a missing reading changed the posterior of s", c)
			}
		}
	})
}

// With a diagonal V the correlated output functions are the plain ones.
func TestCorrelatedOutputReducesToDiagonal(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		y, omega, v := drawSensor(t)
		p := len(y)
		if p > 1 && rapid.Bool().Draw(t, "missing") {
			y[0] = math.NaN()
		}
		for _, c := range []Correlated{
			Gain{Prior: Uniform(0.5, 1.5), NoiseVar: 1e-3},
			AWGN{NoiseVar: 1e-3, S: []float64{0.8}},
			Faulty{Working: Gain{Prior: Uniform(0.5, 1.5), NoiseVar: 1e-3}, Rate: 0.3, Var: 1},
		} {
			b := block(y, omega, v)
			c.Output(b)
			s := &Sensor{Y: y, Omega: omega, V: make([]float64, p*p), Stats: make([]float64, gainWidth), G: make([]float64, p), DG: make([]float64, p*p)}
			for k := range p {
				s.V[k*p+k] = v[k]
			}
			c.OutputCorrelated(s)
			close := func(what string, got, want float64) {
				t.Helper()
				if math.Abs(got-want) > 1e-9*(1+math.Abs(want)) {
					t.Fatalf("%T: %s = %g, diagonal %g", c, what, got, want)
				}
			}
			close("s", s.S, b.S[0])
			close("var s", s.SVar, b.SVar[0])
			close("log Z", s.LogZ, b.LogZ[0])
			close("π", s.Broken, b.Broken[0])
			for k := range p {
				close("g", s.G[k], b.G[k])
				close("∂g", s.DG[k*p+k], b.DG[k])
			}
		}
	})
}

func TestScaleDerivatives(t *testing.T) {
	c := Gain{Prior: Uniform(0.5, 1.5), NoiseVar: 1e-3}
	stats := append(GainStats(40, 45, 3), GainStats(2000, 1900, 5)...)
	evidence := func(scale float64) float64 {
		total := 0.0
		for mu := range 2 {
			s := c.Prior.of(stats, mu)
			l, _, _ := c.Prior.posterior(s[readings], s[precision], scale*s[field])
			total += l
		}
		return total
	}
	const h = 1e-4
	first, second := c.ScaleDerivatives(1, &Block{Stats: stats, Broken: make([]float64, 2)})
	if want := (evidence(1+h) - evidence(1-h)) / (2 * h); math.Abs(first-want) > 1e-5*math.Abs(want) {
		t.Errorf("first derivative %g, difference quotient %g", first, want)
	}
	if want := (evidence(1+h) - 2*evidence(1) + evidence(1-h)) / (h * h); math.Abs(second-want) > 1e-4*math.Abs(want) {
		t.Errorf("second derivative %g, difference quotient %g", second, want)
	}
}

func TestExcess(t *testing.T) {
	p := Uniform(0.9, 1.1)
	for _, c := range []struct{ s, want float64 }{{1, 0}, {1.1 + 5e-3, 5}, {0.9 - 3e-3, -3}} {
		const tau = 1e6
		if got := p.Excess(GainStats(tau, tau*c.s, 1e-6)); math.Abs(got-c.want) > 1e-6 {
			t.Errorf("posterior around %g: %g standard deviations outside, want %g", c.s, got, c.want)
		}
	}
}

func TestValidate(t *testing.T) {
	bad := []interface{ Validate() error }{
		Gain{Prior: Uniform(0, 1)},
		Gain{Prior: Uniform(1, 1)},
		Gain{Prior: Uniform(2, 1)},
		Gain{Prior: Uniform(math.NaN(), 1)},
		Gain{Prior: Uniform(1, math.Inf(1))},
		Gain{Prior: Uniform(1, 2), NoiseVar: -1},
		Gain{Prior: Uniform(1, 2), NoiseVar: math.NaN()},
		Gain{Prior: TruncatedNormal(1, 0, 0.5, 1.5)},
		Gain{Prior: Uniform(1, 2), Saturation: -1},
		AWGN{NoiseVar: -1},
		AWGN{S: []float64{1, 0}},
		Faulty{},
		Faulty{Working: AWGN{NoiseVar: -1}},
		Faulty{Working: AWGN{}, Rate: 1},
		Faulty{Working: AWGN{}, Var: -1},
		Faulty{Working: Faulty{Working: AWGN{}}},
	}
	for _, c := range bad {
		if c.Validate() == nil {
			t.Errorf("%+v was accepted", c)
		}
	}
}

// Sensors that are surely broken, and surely not, give ε and v_f as fractions
// and mean squares; half a sensor is added to both, and what is wild is cut.
func TestFaultyLearnsFromWhatIsBroken(t *testing.T) {
	y := []float64{1, -1, 3, 5, 1, 1, math.NaN(), math.NaN()}
	f := Faulty{Working: AWGN{}}.Learned([]float64{0, 1, 0, 0}, y, 2).(Faulty)
	if want := 1.5 / 4; math.Abs(f.Rate-want) > 1e-15 {
		t.Errorf("ε = %g, want %g", f.Rate, want)
	}
	if want := (2*10.0 + 1) / 3; math.Abs(f.Var-want) > 1e-12 { // 17 is wild beside 1
		t.Errorf("v_f = %g, want %g", f.Var, want)
	}
	given := Faulty{Working: AWGN{}, Rate: 0.1, Var: 2}
	if got := given.Learned([]float64{0, 1, 0, 0}, y, 2).(Faulty); got.Rate != given.Rate || got.Var != given.Var {
		t.Errorf("what was given was learned: %+v", got)
	}
}

// Without is what the others of a sensor say if one reading is not there.
func TestCorrelatedOutputWithoutEachReading(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		y, omega, v := drawSensor(t)
		p := len(y)
		if p < 2 {
			t.Skip()
		}
		s := &Sensor{Y: y, Omega: omega, V: make([]float64, p*p), Stats: make([]float64, gainWidth), G: make([]float64, p)}
		common := rapid.Float64Range(-0.9, 0.9).Draw(t, "correlation")
		for k := range p {
			for l := range p {
				s.V[k*p+l] = common * common * math.Sqrt(v[k]*v[l])
			}
			s.V[k*p+k] = v[k]
		}
		for _, c := range []Correlated{
			Gain{Prior: Uniform(0.5, 1.5), NoiseVar: 1e-3},
			Gain{Prior: LogNormal(1, 0.2, 0.5, 1.5), NoiseVar: 1e-3},
			AWGN{NoiseVar: 1e-3, S: []float64{0.8}},
		} {
			s.Without = make([]float64, p)
			c.OutputCorrelated(s)
			without := s.Without
			s.Without = nil
			for k, read := range y {
				y[k] = math.NaN()
				c.OutputCorrelated(s)
				y[k] = read
				if math.Abs(without[k]-s.LogZ) > 1e-9*(1+math.Abs(s.LogZ)) {
					t.Fatalf("%T: log Z without reading %d is %g, computed anew %g", c, k, without[k], s.LogZ)
				}
			}
		}
	})
}

// TestInverseOfAllReadings compares a sensor some of whose readings are missing by the inverse of all of them, and by a factorisation of what is there.
func TestInverseOfAllReadings(t *testing.T) {
	const p = 7
	rng := rand.New(rand.NewPCG(1, 36))
	c := Gain{Prior: Uniform(0.7, 1.3), NoiseVar: 0.1}
	for _, missing := range [][]int{nil, {2}, {0, 3, 6}} {
		var found [2]*Sensor
		root := mat.NewDense(p, p, nil)
		root.Apply(func(int, int, float64) float64 { return rng.NormFloat64() }, root)
		var v mat.SymDense
		v.SymOuterK(1, root)
		y, omega := make([]float64, p), make([]float64, p)
		for k := range p {
			y[k], omega[k] = rng.NormFloat64(), rng.NormFloat64()
		}
		for _, k := range missing {
			y[k] = math.NaN()
		}
		for i := range found {
			s := NewSensor(c, p)
			found[i] = s
			s.Without = make([]float64, p)
			copy(s.Y, y)
			copy(s.Omega, omega)
			for k := range p {
				for l := range p {
					s.V[k*p+l] = v.At(k, l)
				}
			}
			if i > 0 {
				s.Inverse = func(dst []float64, noise float64) float64 {
					d := mat.NewSymDense(p, slices.Clone(s.V))
					for k := range p {
						d.SetSym(k, k, d.At(k, k)+noise)
					}
					var factor mat.Cholesky
					var inverse mat.SymDense
					factor.Factorize(d)
					if err := factor.InverseTo(&inverse); err != nil {
						t.Fatal(err)
					}
					for k := range p {
						for l := range p {
							dst[k*p+l] = inverse.At(k, l)
						}
					}
					return factor.LogDet()
				}
			}
			c.OutputCorrelated(s)
		}
		a, b := found[0], found[1]
		for _, v := range [][2][]float64{{{a.LogZ}, {b.LogZ}}, {a.G, b.G}, {a.DG, b.DG}, {a.Without, b.Without}, {a.Stats, b.Stats}} {
			if !floats.EqualApprox(v[0], v[1], 1e-11) {
				t.Errorf("without %v: %v by all readings, %v by a factorisation", missing, v[1], v[0])
			}
		}
	}
}

// TestWithoutEach compares log Z_out without each reading with that of readings of which it is missing, with the past of earlier samples, and with one that is off by twenty standard deviations.
func TestWithoutEach(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 35))
	for _, p := range []GainPrior{Uniform(0.5, 1.5), TruncatedNormal(1, 0.1, 0.5, 1.5), LogNormal(1, 0.2, 0.4, 2.5)} {
		for _, noise := range []float64{1e-6, 1e-2} {
			c := Gain{Prior: p, NoiseVar: noise}
			const count = 40
			b := NewBlock(c, 1, count)
			for k := range count {
				z, v := random.NormFloat64(), noise*random.Float64()
				b.V[k], b.Omega[k] = v, z+math.Sqrt(v+noise)*random.NormFloat64()
				b.Y[k] = z / 0.9
			}
			b.Y[3], b.Y[7] = math.NaN(), b.Y[7]+20*math.Sqrt(noise)
			b.Past[readings], b.Past[precision], b.Past[field] = 5, 5/noise, 5*0.9/noise
			c.Output(b)
			without, one := make([]float64, count), *b
			one.Stats, one.LogZ = slices.Clone(b.Stats), slices.Clone(b.LogZ)
			c.WithoutEach(b, without)
			worst := 0.0
			for k, got := range without {
				if math.IsNaN(b.Y[k]) != math.IsNaN(got) {
					t.Fatalf("reading %d: %g", k, got)
				} else if math.IsNaN(got) {
					continue
				}
				one.Y = slices.Clone(b.Y)
				one.Y[k] = math.NaN()
				c.Output(&one)
				worst = max(worst, math.Abs(got-one.LogZ[0])/max(1, math.Abs(one.LogZ[0])))
			}
			t.Logf("%v, Δ = %g: %.2g", p.Name(), noise, worst)
			if !(worst < 1e-11) {
				t.Errorf("%v, Δ = %g: off by %.2g", p, noise, worst)
			}
		}
	}
}
