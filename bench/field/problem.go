package main

import (
	"fmt"
	"hash/fnv"
	"math"
	"math/rand/v2"

	"github.com/calamp/calamp/internal/baseline"
)

// A setup is an instrument and what it looks at: all of a problem but the sensors' gains, noise and flaws.
type setup struct {
	w baseline.Parts // M×N; complex where the readings are
	x baseline.Parts // N×P

	// mean (N), of length one, is the direction of x that says nothing of a scene, as the mean of all pixels; nil where
	// there is none. Errors are of what is left without it.
	mean []float64

	positive bool // no entry of x is negative

	// Where phases of gains are free, moves of a scene may be no more than other phases, as another pointing of an array is.
	// There are so many, and moved says where entry i goes in move j; nil where there are none.
	moves int
	moved func(i, j int) int
}

// A kind is an instrument. make draws one with about p snapshots.
type kind struct {
	name, what string
	complex    bool
	make       func(r *rand.Rand, p int) setup
}

// A problem is what a user has, and the truth.
type problem struct {
	setup
	kind  *kind
	index int

	y     baseline.Parts // M×P readings, NaN where one is missing: y = (Wx+ε)/s, and the flaw
	s     []complex128   // M
	noise float64        // Δ, the variance of ε; of both parts where they are complex

	decibel            float64 // of the power that the scene, without its mean, has in readings, over the noise's
	gains, phases      string  // their distributions
	flaw               string  // "" for none
	dead               []bool  // sensors that read something else, whose s means nothing
	offset             []complex128
	wrong              [][]bool // M×P readings that are outliers; nil for none
	lowGain, highGain  float64  // between which |s| lies
	phaseConcentration float64  // κ of the phases about zero; +Inf where they are zero
}

const instances = 16 // of a kind: even ones to work with, odd ones for the final figure

var (
	snapshots = []int{10, 5, 20, 3, 12, 8, 30, 2, 15, 6, 50, 1} // P, in turn
	decibels  = []float64{30, 50, 40, 20, 60, 35}
)

// leastNoise is the noise of the best instruments, relative to the readings' power: 70 dB, or 12 bits.
const leastNoise = 1e-7

// name distinguishes a problem from all others.
func (p *problem) name() string { return fmt.Sprintf("%s-%02d", p.kind.name, p.index) }

// set is which half of the instances one belongs to.
func set(index int) string {
	if index%2 == 0 {
		return "work"
	}
	return "final"
}

// draw makes an instance of a kind, the same one every time. The levels of noise, gains, snapshots and flaws go through their lists
// in turn, from another place for each kind, so that both halves have all of them.
func draw(k *kind, index int) *problem {
	hash := fnv.New64a()
	hash.Write([]byte(k.name))
	key := hash.Sum64()
	r := rand.New(rand.NewPCG(key, uint64(index)))
	turn, first := index/2, int(key%1009)
	count := snapshots[(5*turn+first+7*(index%2))%len(snapshots)]
	p := &problem{kind: k, index: index, setup: k.make(r, count)}
	p.decibel = decibels[(turn+first/3+3*(index%2))%len(decibels)]
	m, _ := p.w.Dims()
	g := &gainKinds[(turn+first)%len(gainKinds)]
	p.gains = g.name
	size := g.draw(r, m)
	p.s = make([]complex128, m)
	p.lowGain, p.highGain = math.Inf(1), 0
	for mu, v := range size {
		p.s[mu] = complex(1/v, 0)
		p.lowGain, p.highGain = min(p.lowGain, 1/v), max(p.highGain, 1/v)
	}
	if k.complex {
		p.turn(r, &phaseKinds[(turn+first/5)%len(phaseKinds)])
	}
	z := p.w.Mul(p.x)
	shown := p.w.Mul(without(p.x, p.mean))
	p.noise = max(meanPower(shown)*math.Pow(10, -p.decibel/10), meanPower(z)*leastNoise)
	var f *flaw
	if (turn+first+index%2)%3 == 2 {
		f = p.flawFor(3*(turn/3)+5*(index%2)+first, z)
		p.flaw = f.name
	}
	p.read(r, z, f)
	return p
}

// turn gives the gains phases.
func (p *problem) turn(r *rand.Rand, k *phaseKind) {
	p.phases, p.phaseConcentration = k.name, math.Inf(1)
	if k.spread > 0 {
		p.phaseConcentration = 1 / (k.spread * k.spread)
	}
	if math.IsInf(k.spread, 1) {
		p.phaseConcentration = 0
	}
	for mu := range p.s {
		phase := k.spread * r.NormFloat64()
		if math.IsInf(k.spread, 1) {
			phase = 2 * math.Pi * r.Float64()
		}
		p.s[mu] *= complex(math.Cos(phase), math.Sin(phase))
	}
}

// read makes the readings of z = Wx.
func (p *problem) read(r *rand.Rand, z baseline.Parts, f *flaw) {
	m, _ := z.Dims()
	p.dead, p.offset = make([]bool, m), make([]complex128, m)
	if f != nil && f.matrix != nil {
		f.matrix(r, p)
	}
	sd := func(int, int) float64 { return 1 }
	if f != nil && f.noise != nil {
		sd = f.noise(r, p, z)
	}
	p.y = z.Clone().Apply(func(mu, k int, v complex128) complex128 {
		return (v + normal(r, p.kind.complex)*complex(math.Sqrt(p.noise)*sd(mu, k), 0)) / p.s[mu]
	})
	if f != nil && f.readings != nil {
		f.readings(r, p)
	}
}

// normal is a number of the standard normal distribution; of the complex one, of variance one for both parts.
func normal(r *rand.Rand, complexOne bool) complex128 {
	if complexOne {
		return complex(r.NormFloat64(), r.NormFloat64()) / math.Sqrt2
	}
	return complex(r.NormFloat64(), 0)
}

// meanPower is the mean square of the entries.
func meanPower(a baseline.Parts) float64 {
	rows, columns := a.Dims()
	total := 0.0
	a.Apply(func(_, _ int, v complex128) complex128 { total += power(v); return v })
	return total / float64(rows*columns)
}

func power(v complex128) float64 { return real(v)*real(v) + imag(v)*imag(v) }
