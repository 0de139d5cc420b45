package calamp

import (
	"math"

	"gonum.org/v1/gonum/floats"

	"github.com/calamp/calamp/internal/diagnosis"
	"github.com/calamp/calamp/solver"
)

// widenParts places parts of W that share no entry with the rest, and adds to variances what is not known of the common scale of each: errors of log s and log |x| that all of a part have
// in common. Complex numbers, of which a part has a phase of its own as well, are left as they are. Where signals were integrated out the joint density of gains has a part of it already, and variances become no smaller than it.
func (r *Result) widenParts(parts []diagnosis.Part) {
	if parts == nil || r.Phase != nil {
		return
	}
	with := func(variance, scale float64) float64 { return variance + scale }
	if r.Plan.Algorithm == solver.Evidence {
		with = math.Max
	}
	r.placeParts(parts)
	for _, p := range parts {
		for _, mu := range p.Sensors {
			r.widenGain(mu, with(r.SVar[mu], p.ScaleVar*r.S[mu]*r.S[mu]))
		}
		for _, i := range p.Entries {
			for k, c := range r.XVar.RawRowView(i) {
				x := r.X.At(i, k)
				r.XVar.Set(i, k, with(c, p.ScaleVar*x*x))
			}
		}
	}
}

// placeParts gives all parts the same mean of log s, that of all sensors, as far as the range of s allows. Iterations leave parts elsewhere: by AMP five blocks of 60 sensors were 5 times as far off as
// means of log s are, and a normal prior of gains puts Σ s² at Σ s in each part, twice as far where these are spread by 30 %.
func (r *Result) placeParts(parts []diagnosis.Part) {
	means, mean, count := make([]float64, len(parts)), 0.0, 0.0
	for i, p := range parts {
		for _, mu := range p.Sensors {
			means[i] += math.Log(r.S[mu]) / float64(len(p.Sensors))
		}
		mean += means[i] * float64(len(p.Sensors))
		count += float64(len(p.Sensors))
	}
	least, most := r.Calibration.Prior.Range()
	for i, p := range parts {
		if p.ScaleVar == 0 {
			continue
		}
		c := math.Exp(mean/count - means[i])
		for _, mu := range p.Sensors {
			c = min(max(c, min(1, least/r.S[mu])), max(1, most/r.S[mu]))
		}
		r.rescalePart(p, c)
	}
}

// rescalePart multiplies signals and s of a part by c.
func (r *Result) rescalePart(p diagnosis.Part, c float64) {
	for _, mu := range p.Sensors {
		r.S[mu], r.SVar[mu], r.Gain[mu] = c*r.S[mu], c*c*r.SVar[mu], r.Gain[mu]/c
		r.Calibration.Prior.ScaleStats(r.Calibration.Of(mu), c)
		r.Calibration.Prior.SetNormal(r.Calibration.Of(mu), r.S[mu], r.SVar[mu])
	}
	_, signals := r.X.Dims()
	for _, i := range p.Entries {
		floats.Scale(c, r.X.RawRowView(i))
		floats.Scale(c*c, r.XVar.RawRowView(i))
		for k := range signals {
			if j := k*r.X.RawMatrix().Rows + i; j < len(r.field.lambda) {
				r.field.lambda[j] *= c
				r.field.sigma[j] *= c * c
			}
		}
	}
}

// widenGain gives s of a sensor another variance.
func (r *Result) widenGain(mu int, variance float64) {
	if variance > r.SVar[mu] {
		r.Calibration.Prior.SetNormal(r.Calibration.Of(mu), r.S[mu], variance)
		r.SVar[mu] = variance
	}
}
