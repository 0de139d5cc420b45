package amp

import (
	"fmt"

	"github.com/calamp/calamp/operator"
	"github.com/calamp/calamp/solver"
)

// Shared says that a sensor is read with several rows of W. Rows lie together, sensor by sensor, and all sensors have as
// many: a sensor of L rows and P signals is to its channel a sensor of LP readings. So the arrays of readings, row by row,
// are those of sensors as they are, and all that sensors have is asked of [State.SensorOf].
type Shared struct {
	Rows   int               // L; 0 is 1
	Absent int               // rows of these that no sensor has: zero in W, NaN in Y
	Given  operator.Operator // W as it was, without them
}

func (s Shared) rows() int { return max(1, s.Rows) }

// Rows is how many rows W has, further ones left out.
func (s *sensorState) Rows() int { return len(s.Y) / s.P }

// SensorOf is the sensor that reading j is of. Its row is j/P, and its signal j%P.
func (s *extent) SensorOf(j int) int { return j / s.Each }

// reading is the first reading of a sensor, or of a further row behind all of them.
func (s *extent) reading(mu int) int {
	if mu <= s.M {
		return mu * s.Each
	}
	return s.M*s.Each + (mu-s.M)*s.P
}

// readings is how many there are of a sensor, or of a further row behind all of them.
func (s *extent) readings(mu int) int {
	if mu < s.M {
		return s.Each
	}
	return s.P
}

// each is how many readings a sensor has.
func (b *planner) each() int { return b.Shared.rows() * b.P }

// SharedPossible says what does not go along with sensors of several rows: all of it is here.
func SharedPossible(p *Problem, settings *solver.Settings) error {
	with := against([]reason{
		{settings.Covariance != solver.Diagonal, "covariances between signals"},
		{p.Joint == solver.JointOn, "signals that belong together (joint)"},
		{p.follows(), "errors of W (matrix error)"},
	})
	if with == "" {
		return nil
	}
	return NotShared(with)
}

// NotShared says that something does not go along with sensors of several rows.
func NotShared(with string) error {
	return fmt.Errorf("sensors with several rows of W do not go along with %s yet: leave one of the two out", with)
}

// mostCorrelated is the number of a sensor's readings above which what all of them have in common is not looked for: eigenvalues of their
// correlation would take as long as the run.
const mostCorrelated = 400

// sharedLeaves is why a part is left out that knows rows for sensors; "" where it is not.
func (b *planner) sharedLeaves(part string) string {
	if b.Shared.Rows <= 1 {
		return ""
	}
	switch part {
	case "joint rows", "joint test", "joint moves", "row shifts":
		return "not possible with sensors of several rows"
	case "single precision":
		return "not possible: blocks of rows have whole sensors, which may have several rows"
	case "widening":
		if b.each() > mostCorrelated {
			return "not needed: a sensor has so many readings that they differ"
		}
	}
	return ""
}

// lookedAt is the W whose structure tells which algorithm is for it: rows that no sensor has are no part of it.
func (b *planner) lookedAt() (operator.Operator, error) {
	if b.Shared.Absent == 0 || b.Shared.Given == nil {
		return b.withMeansRemoved(), nil
	}
	if b.centred == nil {
		return b.Shared.Given, nil
	}
	centred, err := operator.RemoveMeans(b.Shared.Given, b.RAM)
	if err != nil || centred == nil {
		return b.Shared.Given, err
	}
	return centred.Operator, nil
}
