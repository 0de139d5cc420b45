package simulate

import (
	"strconv"
	"strings"

	"gonum.org/v1/gonum/mat"

	"github.com/calamp/calamp/internal/command/console"
	"github.com/calamp/calamp/teacher"
)

// jointWord is how --signals asks for signals that belong together: joint:ρ,c.
const jointWord = "joint:"

// readOrDraw are the signals that --signals names.
func (s *simulate) readOrDraw() (*mat.Dense, error) {
	text, joint := strings.CutPrefix(s.signals, jointWord)
	if !joint {
		return loadSignals(s.signals, s.n, s.p)
	}
	first, second, ok := strings.Cut(text, ",")
	density, failed := strconv.ParseFloat(first, 64)
	correlation, also := strconv.ParseFloat(second, 64)
	switch {
	case !ok || failed != nil || also != nil || !(density > 0 && density <= 1) || !(correlation >= 0 && correlation <= 1):
		return nil, console.Usage("--signals %s: expected joint:ρ,c with a density in (0, 1] and a correlation in [0, 1], such as joint:0.2,0.9", s.signals)
	case s.n == 0:
		return nil, console.Usage("--n is needed: the number of entries of a signal")
	case s.p == 0:
		return nil, console.Usage("--p is needed: the number of signals")
	}
	if s.complex {
		return teacher.ComplexJointSignals(s.n, s.p, density, s.model.SignalVar, correlation, s.seed), nil
	}
	return teacher.JointSignals(s.n, s.p, density, s.model.SignalVar, correlation, s.seed), nil
}
