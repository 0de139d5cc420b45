package gainkind

import "math/rand/v2"

// WrongReading is a way in which single readings are wrong: what becomes of a reading y, where noise and reading are the
// standard deviations of the noise and of readings.
type WrongReading struct {
	Name  string
	Spoil func(y, noise, reading float64, rng *rand.Rand) float64
}

// WrongReadings are the ways that tests try.
var WrongReadings = []WrongReading{
	{"± 30 sd of the noise", func(y, noise, _ float64, rng *rand.Rand) float64 { return y + 30*noise*float64(1-2*rng.IntN(2)) }},
	{"± 30 sd of the readings", func(y, _, reading float64, rng *rand.Rand) float64 { return y + 30*reading*float64(1-2*rng.IntN(2)) }},
	{"another reading", func(_, _, reading float64, rng *rand.Rand) float64 { return reading * rng.NormFloat64() }},
}
