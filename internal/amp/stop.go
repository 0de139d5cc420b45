package amp

import "math"

// approach knows how the latest iterations moved the signals, and how far from the
// end of their way they are: moves that shrink by q each leave m/(1-q) to go.
type approach struct {
	moves [paceOver][]float64 // of the latest iterations, in a ring
	count int
}

// paceOver is the number of iterations over which q is measured: moves differ
// from one iteration to the next.
const paceOver = 4

func newApproach(signals int) approach {
	var a approach
	for i := range a.moves {
		a.moves[i] = make([]float64, signals)
	}
	return a
}

// forget is for when the problem has changed.
func (a *approach) forget() { a.count = 0 }

// left estimates how far signal k still is from its fixed point, when this
// iteration moves it by moved: +Inf where it does not come nearer.
func (a *approach) left(k int, moved float64) float64 {
	if a.count < paceOver {
		return math.Inf(1)
	}
	q := math.Sqrt(math.Sqrt(moved / a.moves[a.count%paceOver][k]))
	if !(q < 1) {
		return math.Inf(1)
	}
	return moved / (1 - q)
}

// add keeps the moves of an iteration.
func (a *approach) add(moved []float64) {
	copy(a.moves[a.count%paceOver], moved)
	a.count++
}
