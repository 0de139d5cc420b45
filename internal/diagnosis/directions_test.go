package diagnosis

import (
	"math/cmplx"
	"testing"
)

// Steering vectors of a line of directions: sources move together by steps of the grid, unless one of them would leave it.
func TestMoves(t *testing.T) {
	const m, n = 12, 9
	columns := make([][]complex128, n)
	for i := range columns {
		columns[i] = make([]complex128, m)
		for mu := range columns[i] {
			columns[i][mu] = cmplx.Rect(1/3.4641016151377544, 0.5*float64(mu*mu%7+mu)*float64(i))
		}
	}
	near := func() float64 { return nearest(columns) }
	list := []source{{at: 2, energy: 100}, {at: 5, energy: 50}, {at: 6, energy: 1e-3}}
	for j, want := range []bool{true, true, true, true, true, true, false, false, false} {
		if got := moves(columns, list, between(columns[2], columns[j], 1), j-2, 0.1, near); got != want {
			t.Errorf("from direction 2 to %d: %v, want %v", j, got, want)
		}
	}
	if moves(columns, []source{{at: 2, energy: 100}, {at: 8, energy: 0.2}}, between(columns[2], columns[3], 1), 1, 1, near) != true {
		t.Error("an entry that noise hides holds directions")
	}
}
