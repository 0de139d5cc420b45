package solver

// Joint selects whether the signals of a problem belong together: whether they have their support in common, and a covariance across signals.
type Joint uint8

const (
	AutoJoint Joint = iota // by the evidence
	JointOn
	JointOff
)

var joints = []string{AutoJoint: "auto", JointOn: "on", JointOff: "off"}

// String is the name used by the command's --joint.
func (j Joint) String() string { return nameOf(joints, j) }

// MarshalText implements encoding.TextMarshaler.
func (j Joint) MarshalText() ([]byte, error) { return []byte(j.String()), nil }

// UnmarshalText reads what String writes.
func (j *Joint) UnmarshalText(text []byte) error { return named(j, joints, "joint", text) }

// Explain says why a part goes along, or not.
func (p *Plan) Explain(part, why string) {
	for i := range p.Parts {
		if p.Parts[i].Part == part {
			p.Parts[i].Why = why
		}
	}
}
