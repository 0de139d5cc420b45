package dataset

import (
	"math"

	"github.com/calamp/calamp/channel"
)

// Of single sensors, what is known of their s beforehand: in a problem, or in a file of its own.
const knownMean, knownSD = "s_prior_mean", "s_prior_sd"

// LoadKnowledge reads what is known of the s of m sensors from the .npz or .mat at path: the arrays s_prior_mean and
// s_prior_sd (M each; NaN where nothing is known), or those of a result, with what its common scale is uncertain by. Of
// sensors that were broken, or silent, a result says nothing.
func LoadKnowledge(path string, m int) (*channel.Knowledge, error) {
	c, err := open(path)
	if err != nil {
		return nil, err
	}
	defer c.close()
	if c.format == npyFormat {
		return nil, c.fault("", "this is a single array (.npy), expected a result, or %s and %s", knownMean, knownSD)
	}
	k, err := c.knowledge(m)
	if k != nil || err != nil {
		return k, err
	}
	return c.knowledgeOfResult(m)
}

// knowledge is that of a problem; nil where there is none.
func (c *container) knowledge(m int) (*channel.Knowledge, error) {
	if c.format == npyFormat || c.format == foreignFormat {
		return nil, nil
	}
	mean, err := c.readOptional(knownMean)
	if err != nil {
		return nil, err
	}
	sd, err := c.readOptional(knownSD)
	if err != nil || mean == nil && sd == nil {
		return nil, err
	}
	switch {
	case mean == nil:
		return nil, c.fault(knownMean, "not there, beside %s: give both", knownSD)
	case sd == nil:
		return nil, c.fault(knownSD, "not there, beside %s: give both", knownMean)
	}
	for _, a := range []*Array{mean, sd} {
		if !a.isVector() || a.count() != m {
			return nil, a.fault("%s is %s, expected %d, one a sensor", a.Name, a.dims(), m)
		}
		for mu, v := range a.Data {
			if !(v > 0) && !math.IsNaN(v) || a == mean && math.IsInf(v, 1) {
				return nil, a.fault("%s of sensor %d is %g, expected a positive number, or NaN where nothing is known", a.Name, mu, v)
			}
		}
	}
	return &channel.Knowledge{Mean: mean.Data, SD: sd.Data}, nil
}

func (c *container) knowledgeOfResult(m int) (*channel.Knowledge, error) {
	l := resultLoader{c: c}
	s, variance := l.vector("s"), l.vector("s_var")
	k := &channel.Knowledge{Mean: s, SD: make([]float64, len(variance))}
	if c.find("scale_sd") != nil {
		k.ScaleSD = l.number("scale_sd")
	}
	var broken []float64
	if c.find("broken") != nil {
		broken = l.vector("broken")
	}
	if l.err != nil {
		return nil, l.err
	}
	if len(s) != m || len(variance) != m {
		return nil, c.fault("s", "these are %d sensors, and %d variances, expected %d", len(s), len(variance), m)
	}
	for mu, v := range variance {
		if !(s[mu] > 0) || !(v >= 0) {
			return nil, c.fault("s", "sensor %d is %g with the variance %g, expected positive numbers", mu, s[mu], v)
		}
		k.SD[mu] = math.Sqrt(v)
		if v == 0 || mu < len(broken) && broken[mu] > 0.5 {
			k.SD[mu] = math.NaN()
		}
	}
	return k, nil
}
