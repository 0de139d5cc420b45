package calamp_test

import (
	"math"
	"testing"

	"gonum.org/v1/gonum/mat"
	"pgregory.net/rapid"

	"github.com/calamp/calamp"
	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/internal/tests"
	"github.com/calamp/calamp/operator"
	"github.com/calamp/calamp/prior"
	"github.com/calamp/calamp/solver"
	"github.com/calamp/calamp/teacher"
)

// arrays is a problem in plain matrices, to be rearranged.
type arrays struct{ w, y *mat.Dense }

func symmetryTeacher(t *rapid.T) (teacher.Teacher, *teacher.Instance) {
	te := teacher.Teacher{
		N: 60, M: 50, P: 3,
		Signal:   prior.GaussBernoulli{Density: 0.25, SignalVar: 1},
		Gain:     channel.Uniform(0.9, 1.1),
		NoiseVar: 1e-4,
	}
	in, err := te.Draw(rapid.Uint64Range(0, 1000).Draw(t, "seed"))
	if err != nil {
		t.Fatal(err)
	}
	return te, in
}

func toArrays(te teacher.Teacher, in *teacher.Instance) arrays {
	w := mat.NewDense(te.M, te.N, nil)
	for mu := range te.M {
		in.W.RowInto(w.RawRowView(mu), mu)
	}
	return arrays{w, mat.DenseCopyOf(in.Y)}
}

// run does 12 damped iterations with scale steps.
func (a arrays) run(t *rapid.T, p prior.Prior, c channel.Channel) *calamp.Result {
	m, n := a.w.Dims()
	w, err := operator.NewDense(m, n, mat.DenseCopyOf(a.w).RawMatrix().Data)
	if err != nil {
		t.Fatal(err)
	}
	res, err := calamp.Solve(t.Context(), &calamp.Problem{W: w, Y: a.y, Prior: p, Channel: c}, &calamp.Options{Settings: solver.Settings{MaxIter: 12, Tol: -1, Damping: solver.FixedDamping(0.2)}})
	if err != nil {
		t.Fatal(err)
	}
	return res
}

func permuted(m *mat.Dense, rows, cols []int) *mat.Dense {
	r, c := m.Dims()
	out := mat.NewDense(r, c, nil)
	out.Apply(func(i, j int, _ float64) float64 {
		if rows != nil {
			i = rows[i]
		}
		if cols != nil {
			j = cols[j]
		}
		return m.At(i, j)
	}, out)
	return out
}

func sequence(n int) []int {
	s := make([]int, n)
	for i := range s {
		s[i] = i
	}
	return s
}

// near compares to rounding, relative to the largest entry: sums are taken in
// another order, and twelve iterations amplify that.
func near(t *rapid.T, what string, got, want *mat.Dense) {
	t.Helper()
	limit := 1e-9 * mat.Norm(want, math.Inf(1))
	var d mat.Dense
	d.Sub(got, want)
	if e := mat.Max(mapAbs(&d)); !(e <= limit) {
		t.Fatalf("%s: differs by %g", what, e)
	}
}

func mapAbs(m *mat.Dense) *mat.Dense {
	m.Apply(func(_, _ int, v float64) float64 { return math.Abs(v) }, m)
	return m
}

func column(v []float64) *mat.Dense { return mat.NewDense(len(v), 1, v) }

func TestSymmetries(t *testing.T) {
	tests.Long(t)
	rapid.Check(t, func(t *rapid.T) {
		te, in := symmetryTeacher(t)
		a := toArrays(te, in)
		ch := channel.Gain{Prior: te.Gain, NoiseVar: te.NoiseVar}
		base := a.run(t, te.Signal, ch)

		sensors := rapid.Permutation(sequence(te.M)).Draw(t, "sensors")
		got := arrays{permuted(a.w, sensors, nil), permuted(a.y, sensors, nil)}.run(t, te.Signal, ch)
		near(t, "permuted sensors, x", got.X, base.X)
		near(t, "permuted sensors, s", column(got.S), permuted(column(base.S), sensors, nil))

		signals := rapid.Permutation(sequence(te.P)).Draw(t, "signals")
		got = arrays{a.w, permuted(a.y, nil, signals)}.run(t, te.Signal, ch)
		near(t, "permuted signals, x", got.X, permuted(base.X, nil, signals))
		near(t, "permuted signals, s", column(got.S), column(base.S))

		entries := rapid.Permutation(sequence(te.N)).Draw(t, "entries")
		got = arrays{permuted(a.w, nil, entries), a.y}.run(t, te.Signal, ch)
		near(t, "permuted entries, x", got.X, permuted(base.X, entries, nil))

		k := rapid.IntRange(0, te.P-1).Draw(t, "flipped")
		flip := func(m *mat.Dense) *mat.Dense {
			out := mat.DenseCopyOf(m)
			out.Apply(func(_, j int, v float64) float64 {
				if j == k {
					return -v
				}
				return v
			}, out)
			return out
		}
		got = arrays{a.w, flip(a.y)}.run(t, te.Signal, ch)
		near(t, "flipped signal, x", got.X, flip(base.X))
		near(t, "flipped signal, s", column(got.S), column(base.S))

		// Readings in another unit: the range of s takes it up, x does not move.
		c := math.Exp(rapid.Float64Range(-3, 3).Draw(t, "log unit"))
		var y mat.Dense
		y.Scale(1/c, a.y)
		wide := channel.Gain{Prior: channel.Uniform(c*te.Gain.Lo, c*te.Gain.Hi), NoiseVar: te.NoiseVar}
		got = arrays{a.w, &y}.run(t, te.Signal, wide)
		near(t, "other unit, x", got.X, base.X)
		var s mat.Dense
		s.Scale(c, column(base.S))
		near(t, "other unit, s", column(got.S), &s)
	})
}

// Signals couple only through the unknown gains: with known ones, P together
// are P alone.
func TestKnownGainsDecoupleSignals(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		te, in := symmetryTeacher(t)
		a := toArrays(te, in)
		ch := channel.AWGN{NoiseVar: te.NoiseVar, S: in.Truth.S}
		together := a.run(t, te.Signal, ch)
		for k := range te.P {
			alone := arrays{a.w, column(mat.Col(nil, k, a.y))}.run(t, te.Signal, ch)
			near(t, "x of one signal", alone.X, column(mat.Col(nil, k, together.X)))
		}
	})
}

// A missing reading carries no information: it is as if W had no such row for
// that signal.
func TestMissingReadings(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		te, in := symmetryTeacher(t)
		a := toArrays(te, in)
		ch := channel.AWGN{NoiseVar: te.NoiseVar, S: in.Truth.S}
		gone := rapid.IntRange(0, te.M-1).Draw(t, "sensor")
		holed := arrays{a.w, mat.DenseCopyOf(a.y)}
		for k := range te.P {
			holed.y.Set(gone, k, math.NaN())
		}
		w := mat.DenseCopyOf(a.w)
		for i := range te.N {
			w.Set(gone, i, 0)
		}
		// A row of zeros with a reading of zero says nothing either.
		y := mat.DenseCopyOf(a.y)
		for k := range te.P {
			y.Set(gone, k, 0)
		}
		near(t, "missing sensor, x", holed.run(t, te.Signal, ch).X, arrays{w, y}.run(t, te.Signal, ch).X)
	})
}

// The result's bits depend on neither the number of threads nor timing.
func TestThreadsDoNotChangeBits(t *testing.T) {
	p, _ := draw(t, small(), 7)
	one := solve(t, p, &calamp.Options{Settings: solver.Settings{Threads: 1, MaxIter: 30}})
	for _, threads := range []int{2, 3, 8} {
		many := solve(t, p, &calamp.Options{Settings: solver.Settings{Threads: threads, MaxIter: 30}})
		if !mat.Equal(one.X, many.X) || !mat.Equal(column(one.S), column(many.S)) || one.LogEvidence != many.LogEvidence {
			t.Errorf("%d threads: different bits", threads)
		}
	}
}
