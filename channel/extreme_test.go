package channel

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/calamp/calamp/internal/tests"
)

// extremeNumber is of any size, ordinary ones among them.
func extremeNumber(rng *rand.Rand) float64 {
	switch rng.IntN(6) {
	case 0:
		return math.Copysign(math.Pow(10, 616*rng.Float64()-308), rng.Float64()-0.5)
	case 1:
		return 0
	case 2:
		return math.NaN()
	}
	return rng.NormFloat64() * math.Pow(10, 4*rng.Float64()-2)
}

// extremeChannels are all kinds, with ranges narrow and wide.
func extremeChannels() (list []Channel) {
	for _, g := range []GainPrior{
		Uniform(0.9, 1.1), Uniform(1, 1+1e-14), Uniform(1e-20, 1e20), NormalAbout(1, 0.1), LogNormalAbout(1, 0.5), LogNormal(1, 0.1, 1e-12, 1e12),
		{Lo: 0.1, Hi: 10, Precision: 100, Center: 1, Tail: 0.01},
	} {
		for _, noise := range []float64{1e-300, 1e-6, 1, 1e300} {
			list = append(list, Gain{Prior: g, NoiseVar: noise}, Faulty{Working: Gain{Prior: g, NoiseVar: noise}, Rate: 0.01, Var: 1})
			if !g.Log && g.Tail == 0 {
				list = append(list, Gain{Prior: g, NoiseVar: noise, Saturation: 1})
				for _, sd := range []float64{1e-200, 0.1, 1e200, math.Inf(1)} {
					list = append(list, Offset{Prior: OffsetPrior{Gain: g, SD: sd}, NoiseVar: noise})
				}
			}
			if g.Tail == 0 {
				for _, kappa := range []float64{0, 3, 1e6, math.Inf(1)} {
					list = append(list, ComplexGain{Prior: ComplexPrior{}.WithAmplitude(g).about(kappa), NoiseVar: noise})
				}
			}
		}
	}
	return list
}

func (p ComplexPrior) about(kappa float64) ComplexPrior {
	p.Concentration = kappa
	return p
}

// TestExtremeReadings: whatever is read, a channel ends, and so does everything that is asked of its statistics. An s is in its range, or no
// number, which solvers see.
func TestExtremeReadings(t *testing.T) {
	tests.Long(t)
	const rounds, rows, p, patience = 4, 3, 4, time.Minute
	rng := rand.New(rand.NewPCG(5, 6))
	at := ""
	done := make(chan struct{})
	go func() {
		defer close(done)
		for _, c := range extremeChannels() {
			if err := c.Validate(); err != nil {
				t.Errorf("%T %+v: %v", c, c, err)
				continue
			}
			for range rounds {
				b := NewBlock(c, rows, p)
				for j := range b.Y {
					b.Y[j], b.Omega[j], b.V[j] = extremeNumber(rng), extremeNumber(rng), math.Abs(extremeNumber(rng))
					if math.IsNaN(b.Omega[j]) {
						b.Omega[j] = 1
					}
					if math.IsNaN(b.V[j]) {
						b.V[j] = 0
					}
				}
				at = fmt.Sprintf("%T %+v: readings %g, expected %g, variances %g", c, c, b.Y, b.Omega, b.V)
				c.Output(b)
				known := CalibrationOf(c)
				lo, hi := known.Range()
				for row, s := range b.S {
					if _, turning := c.(ComplexGain); turning {
						lo = 0 // of the mean, whatever its phase
					}
					if s < lo*(1-1e-9) || s > hi*(1+1e-9) {
						t.Errorf("%s: sensor %d has s = %g", at, row, s)
					}
				}
				ask(c.(Calibrating), known, b)
			}
		}
	}()
	select {
	case <-done:
	case <-time.After(patience):
		t.Fatalf("this one does not end: %s", at)
	}
}

// ask asks what runs ask of a block and its statistics.
func ask(c Calibrating, known Calibration, b *Block) {
	width := known.Width()
	c.ScaleDerivatives(1.01, b)
	c.ScaleQuadratic(0, b)
	mean, variance := make([]float64, len(b.S)), make([]float64, len(b.S))
	known.Posteriors(mean, variance, b.Stats)
	own := b.Stats[:width]
	known.CDF(own, 1)
	known.Quantile(own, 0.025)
	known.Excess(own)
	known.Fit(own)
	known.Pull(own, 1)
	omit := make([]bool, len(b.S))
	if l, ok := known.(Learnable); ok && l.Learns() == nil {
		l.Refit(b.Stats, omit)
	}
	if l, ok := known.(Bounded); ok && l.Fills() == nil {
		l.Contradiction(b.Stats, omit)
		l.Within(b.Stats, omit)
	}
	if o, ok := known.(Offsetting); ok {
		o.Offsets(mean, variance, b.Stats)
		o.RefitOffsets(b.Stats, omit)
		o.Corrected(own)
	}
	if p, ok := known.(ComplexPrior); ok {
		p.PhaseSpread(b.Stats, omit)
		p.PhaseInterval(own, 0.95)
	}
}
