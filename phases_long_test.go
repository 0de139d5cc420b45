package calamp_test

import (
	"context"
	"fmt"
	"math"
	"testing"

	"github.com/calamp/calamp"
	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/internal/tables"
	"github.com/calamp/calamp/prior"
	"github.com/calamp/calamp/teacher"
)

// Phases that are spread by κ = 20 about nominal ones, and given with other concentrations.
func TestLongComplexConcentration(t *testing.T) {
	longOnly(t)
	count := seedCount(10)
	const learned = -1
	words := func(given float64) string {
		if given == learned {
			return "learned"
		}
		return phasesOf(channel.ComplexPrior{Concentration: given})
	}
	table := tables.New(t, "", "given κ", "P, Δ", "error of x", "error²/variance", "coverage of amplitudes", "of phases", "rms z phase", "rms z scale", "not converged", "warned of")
	for _, c := range []struct {
		p     int
		noise float64
	}{{4, 1e-4}, {2, 1e-2}} {
		for _, given := range []float64{20, learned, 10, 40, 5, 80, 0, math.Inf(1)} {
			te := teacher.Complex{N: 250, M: 200, P: c.p, Signal: prior.ComplexGaussBernoulli{Density: 0.15, SignalVar: 1}, Gain: channel.ComplexPrior{Lo: 0.8, Hi: 1.2, Concentration: 20}, NoiseVar: c.noise}
			runs, warnedOf := make(complexRuns, count), make([]bool, count)
			inParallel(count, func(i int) {
				in, err := te.Draw(uint64(i))
				if err != nil {
					t.Error(err)
					return
				}
				p := te.Problem(in)
				g := channel.ComplexGain{Prior: te.Gain, NoiseVar: te.NoiseVar}
				opt := &calamp.Options{Learn: calamp.Learn{Noise: true, Phases: given == learned}}
				if g.Prior.Concentration = given; given == learned {
					g.Prior.Concentration = 1
				}
				p.Channel = channel.Faulty{Working: g}
				opt.Threads = 1
				res, err := calamp.Solve(context.Background(), p, opt)
				if err != nil {
					t.Error(err)
					return
				}
				m := res.Score(in.Truth)
				runs[i] = complexRun{
					converged: res.Status == calamp.Converged, x: m.XMSEScaled, stated: meanTotal(res), inside: intervalsHold(res, in.Truth, m),
					scaleZ: math.Log(m.Scale) / res.ScaleSD,
				}
				if res.PhaseSD > 0 {
					runs[i].turnZ = m.PhaseShift / res.PhaseSD
				}
				warnedOf[i] = warned(res, calamp.PhaseSpread)
			})
			mean := func(of func(r complexRun) float64) float64 {
				v, _ := runs.mean(of)
				return v
			}
			x, stated := mean(func(r complexRun) float64 { return r.x }), mean(func(r complexRun) float64 { return r.stated })
			lost, named := 0, 0
			for i, r := range runs {
				if !r.converged {
					lost++
				}
				if warnedOf[i] {
					named++
				}
			}
			scale, turn := mean(func(r complexRun) float64 { return r.scaleZ * r.scaleZ }), mean(func(r complexRun) float64 { return r.turnZ * r.turnZ })
			amplitude, phase := mean(func(r complexRun) float64 { return r.inside[0] }), mean(func(r complexRun) float64 { return r.inside[1] })
			table.Row("| %s | %d, %g | %.3g | %.2f | %.3f | %.3f | %.2f | %.2f | %d of %d | %d |", words(given), c.p, c.noise,
				x, x/stated, amplitude, phase, math.Sqrt(turn), math.Sqrt(scale), lost, count, named)
			// With much noise and two signals a sensor's phase is hardly better known than beforehand, and says little of the spread.
			contradicted := c.noise < 1e-3 && given != 20 && given != learned || given == 5 || math.IsInf(given, 1)
			if given == learned && (math.Abs(math.Sqrt(turn)-1) > 0.6 || phase < 0.9) {
				t.Errorf("learned: phases covered %.3f, z of the common one %.2f", phase, math.Sqrt(turn))
			}
			if (given == 20 || given == learned) && named > 0 || given > 0 && contradicted && named+lost < count {
				t.Errorf("given %g: %s", given, fmt.Sprintf("%d warned of, %d not converged, of %d", named, lost, count))
			}
		}
	}
}
