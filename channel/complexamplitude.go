package channel

import (
	"errors"
	"math/cmplx"

	"github.com/calamp/calamp/internal/quadrature"
)

// What is learned of complex gains is how their amplitudes are distributed, and all of it is that of real
// gains (see [GainPrior]) with the statistics that [ComplexPrior.amplitudes] gives.

// amplitudes are statistics of real gains for the amplitudes of several sensors: with the angle integrated, the
// logarithm of the readings' part is 2n log r - τr² + log I₀(R(r)), whose last term is taken for its
// tangent at the maximum (see [quadrature.Phasor.Moments]).
func (p ComplexPrior) amplitudes(stats []float64) []float64 {
	out := make([]float64, 0, len(stats)/complexWidth*gainWidth)
	for from := 0; from < len(stats); from += complexWidth {
		s := stats[from : from+complexWidth]
		d := p.density(s, 1)
		tau, n := 2*s[complexPrecision], 2*s[complexReadings]
		pull := 2 * cmplx.Abs(fieldOf(s))
		const steps = 4 // the tangent changes little
		for range steps {
			if r := quadrature.GainMode(n, tau, pull); tau > 0 && r > 0 {
				pull = d.Pull(r)
			}
		}
		out = append(out, GainStats(tau, pull, n)...)
	}
	return out
}

// Gains implements [Gains]: of the amplitude.
func (p ComplexPrior) Gains() GainPrior { return p.Amplitude() }

// WithGains implements [Gains].
func (p ComplexPrior) WithGains(g GainPrior) Bounded { return p.WithAmplitude(g) }

// Learns implements [Learnable].
func (p ComplexPrior) Learns() error {
	if p.Lo == p.Hi {
		return errors.New("the amplitude of s is known, and nothing else of its distribution is learned")
	}
	return nil
}

// Refit implements [Learnable]: of the amplitude.
func (p ComplexPrior) Refit(stats []float64, omit []bool) (Calibration, float64) {
	next, change := p.Amplitude().Refit(p.amplitudes(stats), omit)
	return p.WithAmplitude(next.(GainPrior)), change
}

// Fills implements [Bounded].
func (p ComplexPrior) Fills() error {
	if p.Lo == p.Hi {
		return errors.New("the amplitude is known")
	}
	return p.Amplitude().Fills()
}

// Contradiction implements [Bounded].
func (p ComplexPrior) Contradiction(stats []float64, omit []bool) (most, mean float64) {
	return p.Amplitude().Contradiction(p.amplitudes(stats), omit)
}

// Within implements [Bounded].
func (p ComplexPrior) Within(stats []float64, omit []bool) Learnable {
	return p.WithAmplitude(p.Amplitude().Within(p.amplitudes(stats), omit).(GainPrior))
}

// Bounding implements [Bounded].
func (p ComplexPrior) Bounding(c Calibration) Calibration {
	if g, ok := c.(ComplexPrior); ok {
		g.Lo, g.Hi = p.Lo, p.Hi
		return g
	}
	return c
}

// LogInside implements [Bounded].
func (p ComplexPrior) LogInside(mean, sd float64) (log float64, outside bool) {
	return p.Amplitude().LogInside(mean, sd)
}

// Family implements [Families].
func (p ComplexPrior) Family() Family { return p.Amplitude().Family() }

// As implements [Families].
func (p ComplexPrior) As(kind Family, stats []float64, omit []bool) Families {
	return p.WithAmplitude(p.Amplitude().As(kind, p.amplitudes(stats), omit).(GainPrior))
}

// Likeliest implements [Families].
func (p ComplexPrior) Likeliest(stats []float64, omit []bool) Families {
	return p.WithAmplitude(p.Amplitude().Likeliest(p.amplitudes(stats), omit).(GainPrior))
}
