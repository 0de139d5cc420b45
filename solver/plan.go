package solver

import "fmt"

// Plan is what a run does: its iteration, and the parts that go along with it. Of
// each part that is left out it says why.
type Plan struct {
	Algorithm Algorithm  `json:"algorithm"`
	Iteration Covariance `json:"iteration"` // with variances, or with covariances
	Variance  Variance   `json:"variance"`
	Parts     []Choice   `json:"parts"`
}

// Choice is whether a part goes along, and why not, or with what.
type Choice struct {
	Part string `json:"part"`
	On   bool   `json:"on"`
	Why  string `json:"why,omitempty"`
}

// Has reports whether a part of this name goes along. A nil plan has none.
func (p *Plan) Has(part string) bool {
	if p == nil {
		return false
	}
	for _, c := range p.Parts {
		if c.Part == part {
			return c.On
		}
	}
	return false
}

// State is such as "on" or "off: asked".
func (c Choice) State() string {
	state := "off"
	if c.On {
		state = "on"
	}
	if c.Why == "" {
		return state
	}
	return fmt.Sprintf("%s: %s", state, c.Why)
}

// String is such as "scale step on".
func (c Choice) String() string { return c.Part + " " + c.State() }
