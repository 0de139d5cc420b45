// Package gainkind has the ways in which the gains of real instruments are spread, for
// measurements of what becomes of a range that was given for them, and those in which single
// readings are wrong.
package gainkind

import (
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/teacher"
)

// Kind is how the calibration s of sensors is spread, and between which bounds.
type Kind struct {
	Name   string
	Lo, Hi float64
	Draw   func(*rand.Rand) float64
}

// All are the kinds.
var All = []Kind{
	{"uniform", 0.95, 1.05, func(rng *rand.Rand) float64 { return 0.95 + 0.1*rng.Float64() }},
	normal("CCD-like, sd 0.01", 0.01),
	normal("normal, sd 0.05", 0.05),
	logNormal(0.05),
	logNormal(0.2),
	{"bimodal", 0.95, 1.05, func(rng *rand.Rand) float64 {
		return 1 + 0.04*math.Copysign(1, rng.Float64()-0.5) + 0.01*(2*rng.Float64()-1)
	}},
	{"skewed", 0.95, 1.05, func(rng *rand.Rand) float64 { return 0.95 + 0.1*(1-math.Pow(rng.Float64(), 0.25)) }},
}

// Instruments are kinds of which nothing is given: what the gains of detectors are spread like.
// Of the last, one sensor in a thousand has a gain that has nothing to do with the others'.
var Instruments = []Kind{
	{Name: "uniform ±0.5", Draw: func(rng *rand.Rand) float64 { return 0.5 + rng.Float64() }},
	{Name: "normal 0.05", Draw: func(rng *rand.Rand) float64 { return 1 + 0.05*rng.NormFloat64() }},
	{Name: "log-normal 0.1", Draw: func(rng *rand.Rand) float64 { return math.Exp(0.1 * rng.NormFloat64()) }},
	{Name: "log-normal 0.5", Draw: func(rng *rand.Rand) float64 { return math.Exp(0.5 * rng.NormFloat64()) }},
	{Name: "bimodal", Draw: func(rng *rand.Rand) float64 {
		return 1 + 0.1*math.Copysign(1, rng.Float64()-0.5) + 0.01*rng.NormFloat64()
	}},
	{Name: "CCD-like, 0.1 % far out", Draw: func(rng *rand.Rand) float64 {
		near, far := 1+0.01*rng.NormFloat64(), math.Exp(1.5*(2*rng.Float64()-1))
		if rng.Float64() < 1e-3 {
			return far
		}
		return near
	}},
}

// within3 draws N(0, 1) cut at ±3.
func within3(rng *rand.Rand) float64 {
	for {
		if z := rng.NormFloat64(); math.Abs(z) < 3 {
			return z
		}
	}
}

func normal(name string, sd float64) Kind {
	return Kind{name, 1 - 3*sd, 1 + 3*sd, func(rng *rand.Rand) float64 { return 1 + sd*within3(rng) }}
}

func logNormal(sd float64) Kind {
	return Kind{
		fmt.Sprintf("log-normal, sd %g", sd), math.Exp(-3 * sd), math.Exp(3 * sd),
		func(rng *rand.Rand) float64 { return math.Exp(sd * within3(rng)) },
	}
}

// Stated is a range k times as wide as the kind's. It contains that, or for k < 1 lies in the
// middle; where it is, between touching one end and the other, is a matter of the seed, or
// a scale that is known only from the bounds would always be right in the middle.
func (g Kind) Stated(k float64, seed uint64) channel.GainPrior {
	middle, half := 0.5*(g.Lo+g.Hi), 0.5*k*(g.Hi-g.Lo)
	if k > 1 {
		middle += (2*rand.New(rand.NewPCG(seed, 98)).Float64() - 1) * (half - half/k)
	}
	return channel.Uniform(max(0.02, middle-half), middle+half)
}

// Spread gives the sensors of an instance gains of this kind in place of their own.
func (g Kind) Spread(in *teacher.Instance, seed uint64) {
	rng := rand.New(rand.NewPCG(seed, 99))
	for mu, old := range in.Truth.S {
		s := g.Draw(rng)
		row := in.Y.RawRowView(mu)
		for k := range row {
			row[k] *= old / s
		}
		in.Truth.S[mu] = s
	}
}
