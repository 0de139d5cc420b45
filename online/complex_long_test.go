package online

import (
	"context"
	"math"
	"math/cmplx"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/calamp/calamp"
	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/evolution"
	"github.com/calamp/calamp/internal/tables"
	"github.com/calamp/calamp/internal/tests"
	"github.com/calamp/calamp/prior"
	"github.com/calamp/calamp/teacher"
)

// complexTally is what streams of complex readings came to.
type complexTally struct {
	x, stated, samples     float64 // errors of the samples from five on, after the best factor, and as stated
	s, sStated             float64
	amplitude, phase, each float64 // sensors whose 95 % intervals hold, of how many
	scaleZ, turnZ, runs    float64 // squares of the common scale's and phase's errors, in their standard deviations
	rejected, flagged      int
	leftOut                int
}

// stream is one as the default command has it: signals and noise are learned where so said.
func (r *complexTally) stream(t *testing.T, te teacher.Complex, seed uint64, opt Options) {
	in := drawComplex(t, te, seed)
	opt.Outliers.Look = true
	c := complexCalibrator(t, te, in, opt)
	for k := range te.P {
		e, err := c.Absorb(context.Background(), complexSample(in, k))
		if err != nil {
			t.Fatal(err)
		}
		if !e.Committed && e.Reject != WarmingUp {
			r.rejected++
		}
		r.leftOut += len(e.Masked)
		if k >= 4 {
			r.x += calamp.ScoreComplex(complexSignal(e.X), nil, calamp.Truth{X: complexTruth(in, k)}).XMSEScaled
			r.stated += 2 * sumOf(e.XVar) / float64(len(e.XVar))
			r.samples++
		}
	}
	r.posterior(c.Posterior(), in)
}

func (r *complexTally) posterior(p *Posterior, in *teacher.ComplexInstance) {
	s := make([]complex128, len(p.S))
	for mu, size := range p.S {
		s[mu] = cmplx.Rect(size, p.Phase[mu])
	}
	m := calamp.ScoreComplex(nil, s, calamp.Truth{S: in.Truth.S, Phase: in.Truth.Phase})
	lo, hi := p.Calibration.Interval(0.95)
	known := p.Calibration.Prior.(channel.ComplexPrior)
	for mu, size := range in.Truth.S {
		if size /= m.Scale; lo[mu] <= size+1e-12 && size-1e-12 <= hi[mu] || known.Lo == known.Hi {
			r.amplitude++
		}
		_, half := known.PhaseInterval(p.Calibration.Of(mu), 0.95)
		if off := math.Remainder(in.Truth.Phase[mu]-m.PhaseShift-p.Phase[mu], 2*math.Pi); known.Known() || math.Abs(off) <= half {
			r.phase++
		}
		r.each++
	}
	r.s += m.SMSEScaled
	r.sStated += sumOf(p.SVar) / float64(len(p.SVar))
	r.scaleZ += square(complex(math.Log(m.Scale)/p.ScaleSD, 0))
	if p.PhaseSD > 0 {
		r.turnZ += square(complex(m.PhaseShift/p.PhaseSD, 0))
	}
	r.runs++
	r.flagged += len(p.Flagged)
}

// complexStreams are what is known of complex gains, in the tables; free phases begin with a batch of 4.
var complexStreams = []struct {
	name   string
	gain   channel.ComplexPrior
	warmUp int
}{
	{"phase known", channel.ComplexPrior{Lo: 0.5, Hi: 1.5, Concentration: math.Inf(1)}, 0},
	{"κ = 20", channel.ComplexPrior{Lo: 0.5, Hi: 1.5, Concentration: 20}, 0},
	{"phase only, free", channel.ComplexPrior{Lo: 1, Hi: 1}, 4},
	{"free", channel.ComplexPrior{Lo: 0.5, Hi: 1.5}, 4},
}

// What streams of complex readings reach, and whether their error bars hold.
func TestLongComplexStreams(t *testing.T) {
	if !*tables.Long {
		t.Skip("long: -long runs it")
	}
	table := tables.New(t, "", "gains", "model", "x: SE", "x", "stated", "s: SE", "s", "stated", "coverage of amplitudes", "of phases", "rms z scale", "rms z phase", "not learned from", "flagged", "left out")
	const seeds, samples = 10, 40
	for _, c := range complexStreams {
		te := teacher.Complex{N: 200, M: 140, P: samples, Signal: prior.ComplexGaussBernoulli{Density: 0.2, SignalVar: 1}, Gain: c.gain, NoiseVar: 1e-6}
		x, s := predictedStream(t, te, c.warmUp)
		for _, learn := range []bool{false, true} {
			var r complexTally
			for seed := range seeds {
				r.stream(t, te, uint64(seed+1), Options{WarmUp: c.warmUp, LearnNoise: learn})
			}
			table.Row("| %s | %s | %.3g | %.3g | %.3g | %.3g | %.3g | %.3g | %.3f | %.3f | %.2f | %.2f | %d of %d | %d | %d |", c.name, map[bool]string{false: "given", true: "learned"}[learn],
				x, r.x/r.samples, r.stated/r.samples, s, r.s/r.runs, r.sStated/r.runs, r.amplitude/r.each, r.phase/r.each,
				math.Sqrt(r.scaleZ/r.runs), math.Sqrt(r.turnZ/r.runs), r.rejected, seeds*samples, r.flagged, r.leftOut)
			if r.amplitude < 0.9*r.each || r.phase < 0.9*r.each || r.x > 1.5*r.stated || r.rejected > seeds*samples/20 || r.flagged > 0 {
				t.Errorf("%s, learned %v: %+v", c.name, learn, r)
			}
		}
	}
}

// Streams of complex readings of an ill-conditioned W, by vector AMP, against its state evolution.
func TestLongComplexVectorStreams(t *testing.T) {
	if !*tables.Long {
		t.Skip("long: -long runs it")
	}
	table := tables.New(t, "", "gains", "condition of W", "x: SE", "x", "stated", "s: SE", "s", "stated", "coverage of amplitudes", "of phases", "rms z scale", "rms z phase", "not learned from", "flagged")
	const seeds, samples = 10, 40
	for _, c := range complexStreams {
		for _, condition := range []float64{10, 100} {
			te := teacher.Complex{
				N: 200, M: 160, P: samples, Signal: prior.ComplexGaussBernoulli{Density: 0.2, SignalVar: 1}, Gain: c.gain, NoiseVar: 1e-4,
				Matrix: teacher.Ensemble{Kind: "condition", Value: condition},
			}
			x, s := predictedStream(t, te, c.warmUp)
			var r complexTally
			for seed := range seeds {
				r.stream(t, te, uint64(seed+1), Options{WarmUp: c.warmUp})
			}
			table.Row("| %s | %g | %.3g | %.3g | %.3g | %.3g | %.3g | %.3g | %.3f | %.3f | %.2f | %.2f | %d of %d | %d |", c.name, condition,
				x, r.x/r.samples, r.stated/r.samples, s, r.s/r.runs, r.sStated/r.runs, r.amplitude/r.each, r.phase/r.each,
				math.Sqrt(r.scaleZ/r.runs), math.Sqrt(r.turnZ/r.runs), r.rejected, seeds*samples, r.flagged)
			if r.amplitude < 0.9*r.each || r.phase < 0.9*r.each || r.x > 1.5*r.stated || r.rejected > seeds*samples/20 || r.flagged > 0 {
				t.Errorf("%s, condition %g: %+v", c.name, condition, r)
			}
		}
	}
}

// predictedStream is what state evolution says of the samples from five on, on average, and of s after the last.
func predictedStream(t *testing.T, te teacher.Complex, warmUp int) (x, s float64) {
	m := evolution.ComplexModel{Signal: te.Signal, Gain: te.Gain, NoiseVar: te.NoiseVar, Alpha: float64(te.M) / float64(te.N), P: te.P}
	opt := evolution.ComplexOnlineOptions{WarmUp: warmUp, Points: 1024}
	if err := opt.Spectrum.UnmarshalText([]byte(te.Matrix.String())); err != nil {
		t.Fatal(err)
	}
	all, err := evolution.ComplexOnline(context.Background(), m, &opt)
	if err != nil {
		t.Fatal(err)
	}
	late := all[len(all)-(te.P-4):]
	for _, sample := range late {
		x += sample.Last().MSEX.Value / float64(len(late))
	}
	return x, late[len(late)-1].Last().MSES.Value
}

// TestComplexBlocks: blocks of complex samples of a scene that moves slowly tell more of the gains than one by one, and intervals hold.
func TestComplexBlocks(t *testing.T) {
	tests.Long(t)
	const seeds, correlation = 2, 0.98
	te := complexStream(channel.ComplexPrior{Lo: 0.5, Hi: 1.5, Concentration: math.Inf(1)})
	te.N, te.M, te.P = 120, 100, 48
	var errs [2]float64
	for seed := range uint64(seeds) {
		rng := rand.New(rand.NewPCG(seed, 3))
		te.X = mat.NewDense(te.N, 2*te.P, nil)
		for i := range te.N {
			if rng.Float64() > te.Signal.Density {
				continue
			}
			for k := range 2 * te.P {
				v := math.Sqrt(0.5) * rng.NormFloat64()
				if k > 1 {
					v = correlation*te.X.At(i, k-2) + math.Sqrt(1-correlation*correlation)*v
				}
				te.X.Set(i, k, v)
			}
		}
		in := drawComplex(t, te, seed)
		for j, block := range []int{1, AutoBlock} {
			c, blocks := complexCalibrator(t, te, in, Options{Block: block}), 0
			for k := range te.P {
				e, err := c.Absorb(t.Context(), complexSample(in, k))
				if err != nil {
					t.Fatal(err)
				}
				if e.Together != nil {
					blocks++
				}
			}
			var r complexTally
			r.posterior(c.Posterior(), in)
			errs[j] += r.s / seeds
			if block == AutoBlock && (blocks == 0 || r.amplitude < 0.9*r.each) {
				t.Errorf("seed %d: %d blocks, %.0f %% of s within intervals", seed, blocks, 100*r.amplitude/r.each)
			}
		}
	}
	t.Logf("squared errors of s one by one %.3g, in blocks %.3g", errs[0], errs[1])
	if !(errs[1] < 0.75*errs[0]) {
		t.Errorf("squared errors of s one by one %.3g, in blocks %.3g", errs[0], errs[1])
	}
}
