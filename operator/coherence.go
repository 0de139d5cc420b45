package operator

import (
	"math"
	"slices"
)

// Coherence says how nearly collinear columns of a W are: of a sample of them, how large the cosine of the angle to the nearest other column
// is, in the median.
type Coherence struct {
	Nearest float64

	// Chance is what that is about where columns point in random directions, with the sample's mean square cosine: √(2 log N) times
	// its root.
	Chance float64
}

// comparedColumns are enough for a median: a smooth or finely sampled W has a near neighbour for each column.
const comparedColumns = 8

// CoherenceOf measures w in one sweep, once; zero where its entries are not in memory, or w does not know their squares.
func CoherenceOf(w Operator, threads int) (c Coherence, err error) {
	if matrices, _ := Separate(w); matrices != nil {
		return worst(matrices, func(w Operator) (Coherence, error) { return CoherenceOf(w, threads) }, func(a, b Coherence) bool { return a.Nearest > b.Nearest })
	}
	r, ok := w.(remembering)
	if !ok {
		return c, nil
	}
	m := r.remembered()
	m.comparing.Do(func() { m.coherence, m.uncompared = coherenceOf(w, threads) })
	return m.coherence, m.uncompared
}

func coherenceOf(w Operator, threads int) (c Coherence, err error) {
	if !HasSquares(w) {
		return c, nil
	}
	_, n := w.Dims()
	count := min(n, comparedColumns)
	sweep, err := w.NewSweep(count, 1, threads)
	if err != nil {
		return c, err
	}
	columns, products, squares := make([]float64, count*n), make([]float64, count*n), make([]float64, n)
	for j := range count {
		columns[j*n+j*n/count] = 1
	}
	err = sweep.Run(products, squares, columns, ones(n), func(_ int, z, _, g, d []float64) { // WᵀW of these columns, and the squared norms of all
		copy(g, z)
		for i := range d {
			d[i] = 1
		}
	})
	if err != nil {
		return c, err
	}
	nearest, total := make([]float64, count), 0.0
	for j := range nearest {
		own := j * n / count
		for i, product := range products[j*n : (j+1)*n] {
			if i == own || squares[i] == 0 || squares[own] == 0 {
				continue
			}
			cosine := product / math.Sqrt(squares[i]) / math.Sqrt(squares[own])
			nearest[j] = max(nearest[j], math.Abs(cosine))
			total += cosine * cosine
		}
	}
	slices.Sort(nearest)
	c.Nearest = nearest[count/2]
	c.Chance = math.Sqrt(2 * math.Log(float64(n)) * total / float64(count*max(1, n-1)))
	return c, nil
}
