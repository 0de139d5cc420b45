package online

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/calamp/calamp/internal/command/console"
	"github.com/calamp/calamp/operator"
)

// broughtPrefix is --matrix sample:MxN: every sample brings its own.
const broughtPrefix = "sample:"

// brought is the W of --matrix sample:MxN; nil where that is not it.
func (c *calibration) brought(spec string) (operator.Operator, error) {
	size, is := strings.CutPrefix(spec, broughtPrefix)
	if !is {
		return nil, nil
	}
	var m, n int
	if count, err := fmt.Sscanf(size, "%dx%d", &m, &n); count != 2 || err != nil || m < 1 || n < 1 || fmt.Sprintf("%dx%d", m, n) != size {
		return nil, console.Usage("--matrix %s: expected the size of the matrix that every sample brings, as in sample:160x200", spec)
	}
	switch {
	case c.ranks.On():
		return nil, console.Usage("--matrix %s is for one process: leave out --mpi", spec)
	case c.parts.Basis.Spec != "":
		return nil, console.Usage("--matrix %s does not go along with --basis: samples bring the matrix of coefficients", spec)
	}
	// A typical one stands for them until the first comes.
	rng := rand.New(rand.NewPCG(38, 0))
	entries := make([]complex128, m*n)
	for i := range entries {
		entries[i] = complex(float64(1-2*rng.IntN(2))/math.Sqrt(float64(n)), 0)
	}
	if c.phases.Given() || strings.HasPrefix(c.input, "c") {
		w, err := operator.NewComplex(m, n, entries)
		return operator.NewBrought(w), err
	}
	table := make([]float64, len(entries))
	for i, v := range entries {
		table[i] = real(v)
	}
	w, err := operator.NewDense(m, n, table)
	return operator.NewBrought(w), err
}

// choice is a W of which samples name one of so many matrices; w itself where it is one for all.
func choice(w operator.Operator, count int) (operator.Operator, error) {
	matrices, of := operator.Separate(w)
	list := slices.Repeat([]operator.Operator{w}, count) // which may all be the same
	if of != nil {
		list = list[:0]
		for _, j := range of {
			list = append(list, matrices[j])
		}
	}
	if len(list) == 0 {
		return w, nil
	}
	return operator.NewChoice(list)
}
