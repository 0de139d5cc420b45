package experiments

import (
	"cmp"
	"maps"
	"math"
	"slices"

	"github.com/calamp/calamp/internal/search"
	"github.com/calamp/calamp/internal/sweep"
)

// entry is one measure of one point.
type entry struct {
	sweep.Point
	sweep.Measure
}

func (e entry) get(name string) float64 { return e.Values.Get(name) }

// table is all that was measured, in the order of the grid.
type table struct {
	entries []entry
	failed  int
}

func newTable(points []sweep.Point, rows sweep.Rows) *table {
	t := &table{}
	for _, p := range points {
		row, there := rows[p.Key()]
		if !there {
			continue
		}
		if row.Failed() {
			t.failed++
		}
		for _, m := range row.MeasuresAt() {
			t.entries = append(t.entries, entry{p, m})
		}
	}
	return t
}

// where keeps the entries that satisfy all conditions.
func (t *table) where(conditions ...func(entry) bool) *table {
	out := &table{}
	for _, e := range t.entries {
		if !slices.ContainsFunc(conditions, func(c func(entry) bool) bool { return !c(e) }) {
			out.entries = append(out.entries, e)
		}
	}
	return out
}

func algorithm(a sweep.Algorithm) func(entry) bool {
	return func(e entry) bool { return e.Algorithm == a }
}

func signals(p int) func(entry) bool       { return func(e entry) bool { return e.P == p } }
func sample(k int) func(entry) bool        { return func(e entry) bool { return e.Sample == k } }
func covariance(c string) func(entry) bool { return func(e entry) bool { return e.Covariance == c } }
func size(n int) func(entry) bool          { return func(e entry) bool { return e.N == n } }

// distinct are the values of something, in order.
func distinct[T cmp.Ordered](t *table, of func(entry) T) []T {
	seen := make(map[T]bool)
	for _, e := range t.entries {
		seen[of(e)] = true
	}
	return slices.Sorted(maps.Keys(seen))
}

func byP(e entry) int             { return e.P }
func bySample(e entry) int        { return e.Sample }
func bySize(e entry) int          { return e.N }
func byDensity(e entry) float64   { return e.Density }
func byAlpha(e entry) float64     { return e.Alpha }
func byIteration(e entry) float64 { return float64(e.Iteration) }

// curve is what was measured against something, over the seeds.
type curve struct {
	x, mean, sd, err []float64 // err is the standard error of the mean; of one seed, NaN
	median           []float64
}

func (t *table) curve(x func(entry) float64, y func(entry) float64) curve {
	values := make(map[float64][]float64)
	for _, e := range t.entries {
		if v := y(e); !math.IsNaN(v) {
			values[x(e)] = append(values[x(e)], v)
		}
	}
	var c curve
	for _, at := range slices.Sorted(maps.Keys(values)) {
		mean, sd := moments(values[at])
		c.x = append(c.x, at)
		c.mean = append(c.mean, mean)
		c.sd = append(c.sd, sd)
		c.err = append(c.err, sd/math.Sqrt(float64(len(values[at]))))
		c.median = append(c.median, search.Median(values[at]))
	}
	return c
}

func value(name string) func(entry) float64 { return func(e entry) float64 { return e.get(name) } }

func (t *table) values(name string) []float64 {
	var out []float64
	for _, e := range t.entries {
		if v := e.get(name); !math.IsNaN(v) {
			out = append(out, v)
		}
	}
	return out
}

func moments(v []float64) (mean, sd float64) {
	for _, x := range v {
		mean += x / float64(len(v))
	}
	for _, x := range v {
		sd += (x - mean) * (x - mean)
	}
	return mean, math.Sqrt(sd / float64(len(v)-1)) // NaN for one value
}

// band is the mean with its standard errors; a lower end that is not positive,
// which no log axis has, stays just above nothing.
func (c curve) band(width float64) (lo, hi []float64) {
	for i, m := range c.mean {
		lo = append(lo, max(m-width*c.err[i], m/10))
		hi = append(hi, m+width*c.err[i])
	}
	return lo, hi
}

// plane is the median over the seeds in the ρ–α plane, by row of α.
func (t *table) plane(y func(entry) float64) (density, alpha []float64, z [][]float64) {
	return t.planeOver(byDensity, y)
}

// planeOver is the same with something else in the density's place.
func (t *table) planeOver(x, y func(entry) float64) (across, alpha []float64, z [][]float64) {
	across, alpha = distinct(t, x), distinct(t, byAlpha)
	values := make(map[[2]float64][]float64)
	for _, e := range t.entries {
		if v := y(e); !math.IsNaN(v) {
			at := [2]float64{e.Alpha, x(e)}
			values[at] = append(values[at], v)
		}
	}
	for _, a := range alpha {
		row := make([]float64, len(across))
		for i, d := range across {
			row[i] = search.Median(values[[2]float64{a, d}])
		}
		z = append(z, row)
	}
	return across, alpha, z
}
