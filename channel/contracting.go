package channel

import "math"

// contracting is a channel that can say to full relative precision how much a reading
// narrows z: its posterior variance over V, which is 1 + V∂g and next to nothing where there is
// next to no noise.
type contracting interface {
	Channel

	// Contraction writes that ratio for every reading of a block whose outputs are
	// filled, of sensors in order: 1 where nothing was read.
	Contraction(dst []float64, b *Block)
}

// ContractionOf is that of c, from ∂g where c does not know better, within [0, 1].
func ContractionOf(c Channel, dst []float64, b *Block) {
	if known, ok := c.(contracting); ok {
		known.Contraction(dst, b)
	} else {
		for j, v := range b.V {
			dst[j] = 1 + v*b.DG[j]
		}
	}
	for j, ratio := range dst {
		if math.IsNaN(b.Y[j]) || b.V[j] == 0 {
			ratio = 1
		}
		dst[j] = min(max(ratio, 0), 1)
	}
}

// Contraction implements [contracting]: Δ/(V+Δ).
func (c AWGN) Contraction(dst []float64, b *Block) {
	for j, v := range b.V {
		dst[j] = c.NoiseVar / (v + c.NoiseVar)
	}
}

// Contraction implements [contracting]: [Δ + V Cˢ y²/(V+Δ)] / (V+Δ).
func (c Gain) Contraction(dst []float64, b *Block) {
	for j, v := range b.V {
		d, y := v+c.NoiseVar, b.Y[j]
		dst[j] = (c.NoiseVar + v*(b.SVar[j/b.P]*y*(y/d))) / d
		if Clipped(y, c.Saturation) {
			dst[j] = 1 + v*b.DG[j]
		}
	}
}

// Contraction implements [contracting]: [Δ + V Cˢ|y|²/(V+Δ)] / (V+Δ), with the V of both parts, for each of them.
func (c ComplexGain) Contraction(dst []float64, b *Block) {
	for j := 0; j < len(dst); j += complexColumns {
		v, y := b.V[j]+b.V[j+1], pair(b.Y, j)
		d := v + c.NoiseVar
		ratio := (c.NoiseVar + v*(b.SVar[j/b.P]*(square(y)/d))) / d
		dst[j], dst[j+1] = ratio, ratio
	}
}

// Contraction implements [contracting].
func (f Faulty) Contraction(dst []float64, b *Block) { ContractionOf(f.Working, dst, b) }
