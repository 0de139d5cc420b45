package main

import (
	"math"
	"math/rand/v2"

	"gonum.org/v1/gonum/mat"

	"github.com/calamp/calamp/internal/baseline"
)

// A gainKind is a distribution of the sizes of multiplicative gains, 1/|s|.
type gainKind struct {
	name string
	draw func(r *rand.Rand, m int) []float64
}

var gainKinds = []gainKind{
	{"uniform 5 %", each(func(r *rand.Rand) float64 { return 0.95 + 0.1*r.Float64() })},
	{"log-normal 0.3", each(func(r *rand.Rand) float64 { return math.Exp(0.3 * r.NormFloat64()) })},
	{"uniform 20 %", each(func(r *rand.Rand) float64 { return 0.8 + 0.4*r.Float64() })},
	{"normal 10 %", each(func(r *rand.Rand) float64 { return max(0.5, 1+0.1*r.NormFloat64()) })},
	{"0.67 to 1.5", each(func(r *rand.Rand) float64 { return 1 / (1/1.5 + (1.5-1/1.5)*r.Float64()) })},
	{"two kinds", each(func(r *rand.Rand) float64 { return 0.85 + 0.35*float64(r.IntN(2)) + 0.02*r.NormFloat64() })},
	{"vignetting", vignetting},
	{"log-normal 0.1", each(func(r *rand.Rand) float64 { return math.Exp(0.1 * r.NormFloat64()) })},
}

func each(one func(r *rand.Rand) float64) func(r *rand.Rand, m int) []float64 {
	return func(r *rand.Rand, m int) []float64 {
		g := make([]float64, m)
		for i := range g {
			g[i] = one(r)
		}
		return g
	}
}

// vignetting falls by a third from the middle to the ends, and scatters by 2 %.
func vignetting(r *rand.Rand, m int) []float64 {
	g := make([]float64, m)
	for i := range g {
		t := 2*float64(i)/float64(m-1) - 1
		g[i] = (1 - t*t/3) * (1 + 0.02*r.NormFloat64())
	}
	return g
}

// A phaseKind is a spread of phases about zero, in radians; +Inf where they are anywhere.
type phaseKind struct {
	name   string
	spread float64
}

var phaseKinds = []phaseKind{{"free", math.Inf(1)}, {"0.3 rad", 0.3}, {"zero", 0}, {"free", math.Inf(1)}, {"0.1 rad", 0.1}}

// A flaw is what a model of readings leaves out. Any of its parts may be nil.
type flaw struct {
	name     string
	positive bool                                                                             // it takes readings that count something
	matrix   func(r *rand.Rand, p *problem)                                                   // changes the W that users have
	noise    func(r *rand.Rand, p *problem, z baseline.Parts) func(mu, k int) (times float64) // standard deviations of the noise
	readings func(r *rand.Rand, p *problem)                                                   // changes y
}

var flaws = []flaw{
	{name: "W wrong", matrix: func(r *rand.Rand, p *problem) {
		by := 0.001 * math.Pow(30, r.Float64()) // 0.1 to 3 % of the entries' root mean square
		size := complex(by*math.Sqrt(meanPower(p.w)), 0)
		p.w.Apply(func(_, _ int, v complex128) complex128 { return v + size*normal(r, p.w.Im != nil) })
	}},
	{name: "outliers", readings: func(r *rand.Rand, p *problem) {
		size := complex(3*math.Sqrt(meanPower(p.y)), 0)
		p.spoil(r, 0.01, func(complex128) complex128 { return size * normal(r, p.kind.complex) })
	}},
	{name: "dead sensors", readings: func(r *rand.Rand, p *problem) {
		stuck := complex(math.Sqrt(meanPower(p.y)), 0)
		for mu := range p.dead {
			p.dead[mu] = r.Float64() < 0.03
		}
		p.dead[r.IntN(len(p.dead))] = true
		level := make([]complex128, len(p.dead))
		for mu := range level {
			level[mu] = stuck * normal(r, p.kind.complex)
		}
		p.y.Apply(func(mu, _ int, v complex128) complex128 {
			if p.dead[mu] {
				return level[mu] + 0.01*stuck*normal(r, p.kind.complex)
			}
			return v
		})
	}},
	{name: "offsets", readings: func(r *rand.Rand, p *problem) {
		size := complex(0.1*math.Sqrt(meanPower(p.y)), 0)
		for mu := range p.offset {
			p.offset[mu] = size * normal(r, p.kind.complex)
		}
		p.y.Apply(func(mu, _ int, v complex128) complex128 { return v + p.offset[mu] })
	}},
	{name: "unequal noise", noise: func(r *rand.Rand, p *problem, _ baseline.Parts) func(int, int) float64 {
		sd := make([]float64, len(p.s))
		for mu := range sd {
			sd[mu] = math.Exp(0.7*r.NormFloat64() - 0.49)
		}
		return func(mu, _ int) float64 { return sd[mu] }
	}},
	{name: "photon noise", positive: true, noise: func(_ *rand.Rand, _ *problem, z baseline.Parts) func(int, int) float64 {
		m, p := z.Dims()
		mean := 0.0
		z.Apply(func(_, _ int, v complex128) complex128 { mean += math.Abs(real(v)) / float64(m*p); return v })
		return func(mu, k int) float64 { return math.Sqrt(math.Abs(z.Re.At(mu, k)) / mean) }
	}},
	{name: "converter of 10 bits", readings: func(_ *rand.Rand, p *problem) {
		step := largest(p.y) / 512
		p.y.Apply(func(_, _ int, v complex128) complex128 {
			return complex(step*math.Round(real(v)/step), step*math.Round(imag(v)/step))
		})
	}},
	{name: "compression", readings: func(_ *rand.Rand, p *problem) {
		full := largest(p.y)
		p.y.Apply(func(_, _ int, v complex128) complex128 {
			return v * complex(1-0.02*math.Sqrt(power(v))/full, 0) // 2 % less at full scale
		})
	}},
	{name: "drift", readings: func(r *rand.Rand, p *problem) {
		_, count := p.y.Dims()
		slope := make([]float64, len(p.s))
		for mu := range slope {
			slope[mu] = 0.01 * r.NormFloat64() // relative, from the first snapshot to the last
		}
		p.y.Apply(func(mu, k int, v complex128) complex128 {
			return v * complex(1+slope[mu]*(float64(k)/max(1, float64(count-1))-0.5), 0)
		})
	}},
	{name: "missing readings", readings: func(r *rand.Rand, p *problem) {
		p.spoil(r, 0.05, func(complex128) complex128 { return complex(math.NaN(), 0) })
	}},
}

// spoil changes a part of the readings.
func (p *problem) spoil(r *rand.Rand, part float64, to func(complex128) complex128) {
	m, count := p.y.Dims()
	p.wrong = make([][]bool, m)
	for mu := range p.wrong {
		p.wrong[mu] = make([]bool, count)
	}
	p.y.Apply(func(mu, k int, v complex128) complex128 {
		if p.wrong[mu][k] = r.Float64() < part; p.wrong[mu][k] {
			return to(v)
		}
		return v
	})
}

// flawFor is the flaw whose turn it is, of those that this instrument can have.
func (p *problem) flawFor(turn int, z baseline.Parts) *flaw {
	for {
		if f := &flaws[turn%len(flaws)]; !f.positive || z.Im == nil && mat.Min(z.Re) >= 0 {
			return f
		}
		turn++
	}
}

// largest is the largest size of a part of an entry.
func largest(a baseline.Parts) float64 {
	most := 0.0
	a.Apply(func(_, _ int, v complex128) complex128 {
		most = max(most, math.Abs(real(v)), math.Abs(imag(v)))
		return v
	})
	return most
}
