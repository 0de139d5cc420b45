package amp

import (
	"math"

	"github.com/calamp/calamp/internal/quadrature"
)

// Placement is what is known of the logarithm t of the factor by which signals and s are
// to be multiplied: its mean, its standard deviation, and its distribution, which may be
// far from normal, a ramp with a cliff or one of two answers. The zero value is a scale
// that is known.
type Placement struct {
	Mean, SD float64
	parts    []placed // none: normal
}

// placed is one part of a mixture of densities.
type placed struct {
	weight float64
	grid   *scaleGrid
}

// or is the mixture in which other has the probability doubt.
func (p Placement) or(other Placement, doubt float64) Placement {
	apart := other.Mean - p.Mean
	m := Placement{
		Mean: p.Mean + doubt*apart,
		SD:   math.Sqrt((1-doubt)*p.SD*p.SD + doubt*other.SD*other.SD + doubt*(1-doubt)*apart*apart),
	}
	for _, part := range p.densities() {
		m.parts = append(m.parts, placed{(1 - doubt) * part.weight, part.grid})
	}
	for _, part := range other.densities() {
		m.parts = append(m.parts, placed{doubt * part.weight, part.grid})
	}
	return m
}

// widened is with an independent normal error of t besides.
func (p Placement) widened(sd float64) Placement {
	if sd == 0 {
		return p
	}
	return Placement{Mean: p.Mean, SD: math.Hypot(p.SD, sd)}
}

// densities are the parts, of a normal distribution its density on a grid.
func (p Placement) densities() []placed {
	if p.parts != nil || p.SD == 0 {
		return p.parts
	}
	const reach = 5 // standard deviations
	g := &scaleGrid{lo: p.Mean - reach*p.SD, step: 2 * reach * p.SD / placedCells, weight: make([]float64, placedCells+1)}
	for i := range g.weight {
		z := reach * (2*float64(i)/placedCells - 1)
		g.weight[i] = math.Exp(-0.5 * z * z)
	}
	return []placed{{1, g}}
}

// CDF is the probability that t - Mean is below at.
func (p Placement) CDF(at float64) (below float64) {
	if p.parts == nil {
		return 0.5 * math.Erfc(-at/(p.SD*math.Sqrt2))
	}
	for _, part := range p.parts {
		below += part.weight * part.grid.below(p.Mean+at)
	}
	return below
}

// Quantile is where CDF is level, in (0, 1).
func (p Placement) Quantile(level float64) float64 {
	if p.parts == nil {
		return p.SD * quadrature.NormalBound(2*level-1)
	}
	lo, hi := math.Inf(1), math.Inf(-1)
	for _, part := range p.parts {
		lo, hi = min(lo, part.grid.lo-p.Mean), max(hi, part.grid.end()-p.Mean)
	}
	for range 60 { // to the last bit
		if middle := 0.5 * (lo + hi); p.CDF(middle) < level {
			lo = middle
		} else {
			hi = middle
		}
	}
	return 0.5 * (lo + hi)
}

func (g *scaleGrid) end() float64 { return g.lo + float64(len(g.weight)-1)*g.step }

// below is the probability of values below t, of a density that is straight between the
// points of the grid.
func (g *scaleGrid) below(t float64) float64 {
	var mass, below float64
	at := (t - g.lo) / g.step
	for i := range len(g.weight) - 1 {
		left, right := g.weight[i], g.weight[i+1]
		mass += 0.5 * (left + right)
		if u := min(max(at-float64(i), 0), 1); u > 0 {
			below += u * (left + 0.5*u*(right-left))
		}
	}
	return below / mass
}
