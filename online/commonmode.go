package online

import (
	"fmt"
	"math"

	"github.com/calamp/calamp/internal/amp"
	"github.com/calamp/calamp/internal/diagnosis"
)

// Disturbance is the common mode of all sensors in one sample, beyond its signal. It is reported where outliers are looked for.
type Disturbance struct {
	// Constant is what all of them read too much, in the units of the readings; 0 for none. Where the sample was learned from,
	// it was hardly more than noise.
	Constant float64

	// Factor is how many times as large the signal is as those before, where that is more than chance and they differ by: it is
	// in the signal, and not in the gains. 0 where it is not.
	Factor float64
}

// brightness is how large signals were: the mean of the logarithms of their powers and the mean square of their deviations,
// over Samples, at most brightMemory.
type brightness struct{ Samples, Mean, Square float64 }

const (
	// A signal is far larger or smaller than those before by [diagnosis.BrightChance] standard deviations, of chance or of what they
	// differed by, and leastBright in the logarithm of the power; from the brightFrom-th sample on.
	leastBright  = 0.4
	brightFrom   = 10
	brightMemory = 50
	mostBright   = 2
)

func (b *brightness) validate() error {
	if !(b.Samples >= 0 && b.Square >= 0) || !amp.AllFinite([]float64{b.Samples, b.Mean, b.Square}) {
		return fmt.Errorf("state: signals of the brightness %g ± √%g over %g samples", b.Mean, b.Square, b.Samples)
	}
	return nil
}

// sd is the standard deviation that the next signal may have, of which chance makes so much.
func (b *brightness) sd(chance float64) float64 { return max(chance, math.Sqrt(b.Square)) }

// absorb adds a signal. One that is far off counts as if it were by mostBright.
func (b *brightness) absorb(logarithm, chance float64) {
	if math.IsInf(logarithm, 0) {
		return
	}
	d, most := logarithm-b.Mean, math.Inf(1)
	if b.Samples >= brightFrom {
		most = mostBright * b.sd(chance)
	}
	d = min(max(d, -most), most)
	b.Samples = min(b.Samples+1, brightMemory)
	b.Mean += d / b.Samples
	b.Square += (d*d*(1-1/b.Samples) - b.Square) / b.Samples
}

// disturbance names what is common to all sensors in the sample as solved; nil where there is nothing.
func (c *Calibrator) disturbance(reject Reject) *Disturbance {
	if c.outliers == nil || c.columns > 1 || c.used() < amp.LeastForCommon || c.solver.Iterations == 0 {
		return nil
	}
	var d Disturbance
	y := c.means
	for mu, v := range c.y {
		y[mu] = v
		if !c.candidate(mu) {
			y[mu] = math.NaN()
		}
	}
	d.Constant, _ = c.sample.Disturbance(y, 0, reject.contradicts())
	now, chance := c.sample.Brightness(0)
	was := c.lately
	off := math.Abs(now - was.Mean)
	if was.Samples >= brightFrom && d.Constant == 0 && off > leastBright && off > diagnosis.BrightChance*was.sd(chance) &&
		c.sample.SumC[0] < emerged*math.Exp(now) {
		d.Factor = math.Exp(0.5 * (now - was.Mean))
	}
	if d == (Disturbance{}) {
		return nil
	}
	return &d
}
