package channel

import (
	"math"
	"math/rand/v2"
	"testing"
)

// offsetBlock has random readings of a few sensors, one of them missing.
func offsetBlock(c Channel, rows, p int, sd, noise float64) *Block {
	rng := rand.New(rand.NewPCG(1, 2))
	b := NewBlock(c, rows, p)
	for row := range rows {
		s, o := 0.8+0.4*rng.Float64(), sd*rng.NormFloat64()
		for k := range p {
			j := row*p + k
			z := rng.NormFloat64()
			b.V[j] = noise * (0.5 + rng.Float64())
			b.Omega[j] = z + math.Sqrt(b.V[j])*rng.NormFloat64()
			b.Y[j] = (z+math.Sqrt(noise)*rng.NormFloat64())/s + o
		}
	}
	b.Y[1] = math.NaN()
	return b
}

// TestOffsetDerivatives: g is the derivative of log Z, ∂g that of g, and those along the scale likewise.
func TestOffsetDerivatives(t *testing.T) {
	for _, sd := range []float64{0.1, 1, math.Inf(1)} {
		for _, past := range []bool{false, true} {
			c := Offset{Prior: OffsetPrior{Gain: TruncatedNormal(1, 0.2, 0.5, 1.5), SD: sd}, NoiseVar: 0.01}
			b := offsetBlock(c, 4, 5, 0.3, 0.01)
			if past {
				for row := range b.Rows() {
					OffsetStats{T0: 120, Y: 0.2, Omega: -0.1, Tau: 60, B: 55, N: 4}.put(b.Past, row)
				}
			}
			logZ := func() float64 {
				c.Output(b)
				total := 0.0
				for _, l := range b.LogZ {
					total += l
				}
				return total
			}
			const h = 1e-5
			for _, j := range []int{0, 7, 13} {
				at := b.Omega[j]
				b.Omega[j] = at + h
				up, gUp := logZ(), b.G[j]
				b.Omega[j] = at - h
				down, gDown := logZ(), b.G[j]
				b.Omega[j] = at
				logZ()
				if g, dg := (up-down)/(2*h), (gUp-gDown)/(2*h); math.Abs(b.G[j]-g) > 1e-6*(1+math.Abs(g)) || math.Abs(b.DG[j]-dg) > 1e-6*math.Abs(dg) {
					t.Errorf("sd %g, past %v, reading %d: g %g and ∂g %g, by differences %g and %g", sd, past, j, b.G[j], b.DG[j], g, dg)
				}
			}
			slope := func(scale float64) float64 { first, _ := c.ScaleDerivatives(scale, b); return first }
			_, second := c.ScaleDerivatives(1, b)
			if d := (slope(1+h) - slope(1-h)) / (2 * h); math.Abs(second-d) > 1e-6*math.Abs(d) {
				t.Errorf("sd %g, past %v: second derivative along the scale %g, by differences %g", sd, past, second, d)
			}
			if past {
				continue // scaling the block alone is not scaling the past
			}
			omega := append([]float64(nil), b.Omega...)
			scaled := func(f float64) float64 {
				for j := range b.Omega {
					b.Omega[j] = f * omega[j]
				}
				return logZ()
			}
			d := (scaled(1+h) - scaled(1-h)) / (2 * h)
			scaled(1)
			first, _ := c.ScaleDerivatives(1, b)
			if got := first - c.ScaleQuadratic(0, b); math.Abs(got-d) > 1e-5*(1+math.Abs(first)) {
				t.Errorf("sd %g: derivative along the scale %g, by differences %g", sd, got, d)
			}
		}
	}
}

// TestNoOffsetIsAGain: with offsets of no variance all is as without.
func TestNoOffsetIsAGain(t *testing.T) {
	gain := Gain{Prior: Uniform(0.5, 1.5), NoiseVar: 0.01}
	c := Offset{Prior: OffsetPrior{Gain: gain.Prior}, NoiseVar: 0.01}
	a, b := offsetBlock(gain, 5, 6, 0, 0.01), offsetBlock(c, 5, 6, 0, 0.01)
	gain.Output(a)
	c.Output(b)
	for row := range a.Rows() {
		if d := math.Abs(a.LogZ[row] - b.LogZ[row]); d > 1e-10 || math.Abs(a.S[row]-b.S[row]) > 1e-12 || math.Abs(a.SVar[row]/b.SVar[row]-1) > 1e-11 {
			t.Errorf("sensor %d: %v %v %v, without offsets %v %v %v", row, b.S[row], b.SVar[row], b.LogZ[row], a.S[row], a.SVar[row], a.LogZ[row])
		}
		for _, level := range []float64{0.025, 0.5, 0.975} {
			p, q := gain.Prior.Quantile(a.Stats[row*gainWidth:(row+1)*gainWidth], level), c.Prior.Quantile(b.Stats[row*offsetWidth:(row+1)*offsetWidth], level)
			if math.Abs(p-q) > 1e-8*math.Sqrt(a.SVar[row]) {
				t.Errorf("sensor %d: quantile %g is %g, without offsets %g", row, level, q, p)
			}
		}
	}
	for j := range a.G {
		if math.Abs(a.G[j]-b.G[j]) > 1e-9*(1+math.Abs(a.G[j])) || math.Abs(a.DG[j]-b.DG[j]) > 1e-10*math.Abs(a.DG[j]) {
			t.Errorf("reading %d: %g %g, without offsets %g %g", j, b.G[j], b.DG[j], a.G[j], a.DG[j])
		}
	}
}

// TestOffsetStatsMerge: readings one by one, or in lots, give the same; and lots can be taken back out.
func TestOffsetStatsMerge(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	draw := func() OffsetStats {
		return OffsetStats{T0: 1 + rng.Float64(), Y: 1e4 + rng.NormFloat64(), Omega: rng.NormFloat64(), Tau: 2 * rng.Float64(), B: rng.NormFloat64(), N: 3}
	}
	near := func(a, b OffsetStats) bool {
		x, y := a.Slice(), b.Slice()
		for i, v := range x {
			if !(math.Abs(v-y[i]) <= 1e-9*(1+math.Abs(v))) {
				return false
			}
		}
		return true
	}
	a, b, c := draw(), draw(), draw()
	if x, y := a.Merged(b).Merged(c), a.Merged(b.Merged(c)); !near(x, y) {
		t.Errorf("%v and %v", x, y)
	}
	if x := a.Merged(b).Without(b); !near(x, a) {
		t.Errorf("%v, want %v", x, a)
	}
	if x := a.Merged(OffsetStats{}); x != a {
		t.Errorf("%v, want %v", x, a)
	}
}
