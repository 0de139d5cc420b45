package online_test

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/calamp/calamp"
	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/online"
	"github.com/calamp/calamp/operator"
	"github.com/calamp/calamp/prior"
	"github.com/calamp/calamp/solver"
)

// measured is signals seen by calibrated sensors, as plain matrices.
type measured struct{ w, x, y *mat.Dense }

var sparse = prior.GaussBernoulli{Density: 0.2, SignalVar: 1}

func measure(m, n, p int, noise float64, seed uint64) measured {
	rng := rand.New(rand.NewPCG(seed, 7))
	w, x := mat.NewDense(m, n, nil), mat.NewDense(n, p, nil)
	w.Apply(func(_, _ int, _ float64) float64 { return rng.NormFloat64() / math.Sqrt(float64(n)) }, w)
	x.Apply(func(_, _ int, _ float64) float64 {
		v := rng.NormFloat64()
		if rng.Float64() > sparse.Density {
			return 0
		}
		return v
	}, x)
	var y mat.Dense
	y.Mul(w, x)
	y.Apply(func(_, _ int, z float64) float64 { return z + math.Sqrt(noise)*rng.NormFloat64() }, &y)
	return measured{w, x, &y}
}

// rows is the batch of rows [from, to).
func (d measured) rows(t testing.TB, from, to int) (operator.Operator, *mat.Dense) {
	t.Helper()
	_, n := d.w.Dims()
	_, p := d.y.Dims()
	w := mat.DenseCopyOf(d.w.Slice(from, to, 0, n))
	op, err := operator.NewDense(to-from, n, w.RawMatrix().Data)
	if err != nil {
		t.Fatal(err)
	}
	return op, mat.DenseCopyOf(d.y.Slice(from, to, 0, p))
}

func (d measured) mse(x *mat.Dense) float64 {
	var diff mat.Dense
	diff.Sub(x, d.x)
	n, p := d.x.Dims()
	f := mat.Norm(&diff, 2)
	return f * f / float64(n*p)
}

func reconstructor(t testing.TB, n int, opt *online.Options) *online.Reconstructor {
	t.Helper()
	r, err := online.NewReconstructor(n, sparse, opt)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// batches absorbs the rows in count equal batches and returns the error after each.
func (d measured) batches(t testing.TB, r *online.Reconstructor, ch channel.Channel, count int) (errs []float64, last *online.Reconstruction) {
	t.Helper()
	m, _ := d.w.Dims()
	for b := range count {
		w, y := d.rows(t, b*m/count, (b+1)*m/count)
		res, err := r.Absorb(context.Background(), w, ch, y)
		if err != nil {
			t.Fatal(err)
		}
		if !res.Committed {
			t.Errorf("batch %d of %d: %v after %d iterations, %v", b, count, res.Status, res.Iterations, res.Reject)
		}
		errs, last = append(errs, d.mse(res.X)), res
	}
	return errs, last
}

func TestOneBatchIsTheOrdinarySolution(t *testing.T) {
	d := measure(120, 200, 3, 1e-4, 1)
	for name, ch := range map[string]channel.Channel{
		"awgn": channel.AWGN{NoiseVar: 1e-4},
		"gain": channel.Gain{Prior: channel.Uniform(0.95, 1.05), NoiseVar: 1e-4},
	} {
		w, y := d.rows(t, 0, 120)
		y.Set(3, 1, math.NaN())
		got, err := reconstructor(t, 200, nil).Absorb(t.Context(), w, ch, y)
		if err != nil {
			t.Fatal(err)
		}
		want, err := calamp.Solve(t.Context(), &calamp.Problem{W: w, Y: y, Prior: sparse, Channel: ch}, &calamp.Options{Settings: solver.Settings{ScaleAtPeak: true, SPrior: solver.UniformS}})
		if err != nil {
			t.Fatal(err)
		}
		for k := range 3 {
			if e := relative(mat.Col(nil, k, got.X), mat.Col(nil, k, want.X)); e > 1e-12 {
				t.Errorf("%s, signal %d: relative difference %g", name, k, e)
			}
		}
		if got.Iterations != want.Iterations {
			t.Errorf("%s: %d iterations, Solve %d", name, got.Iterations, want.Iterations)
		}
	}
}

// With enough rows, batches lose little (Manoel et al. 2018), and every batch
// helps.
func TestBatchesApproachAllRowsAtOnce(t *testing.T) {
	const noise = 1e-2
	d := measure(900, 300, 4, noise, 2)
	ch := channel.AWGN{NoiseVar: noise}
	whole, _ := d.batches(t, reconstructor(t, 300, nil), ch, 1)
	for count, loss := range map[int]float64{2: 1.3, 5: 1.7, 15: 2.5} {
		errs, _ := d.batches(t, reconstructor(t, 300, nil), ch, count)
		t.Logf("%d batches: errors %.3g; at once %.3g", count, errs, whole)
		for b := 1; b < count; b++ {
			if errs[b] > 1.02*errs[b-1] {
				t.Errorf("%d batches: the error rises from %g to %g at batch %d", count, errs[b-1], errs[b], b)
			}
		}
		if last := errs[count-1]; last > loss*whole[0] {
			t.Errorf("%d batches: error %g, all rows at once %g", count, last, whole[0])
		}
	}
}

func TestReconstructorStateContinuesWithTheSameBits(t *testing.T) {
	d := measure(120, 100, 2, 1e-1, 3)
	ch := channel.AWGN{NoiseVar: 1e-1}
	r := reconstructor(t, 100, nil)
	_, want := d.batches(t, r, ch, 3)

	var state online.FieldState
	r = reconstructor(t, 100, nil)
	for b := range 3 {
		w, y := d.rows(t, 40*b, 40*b+40)
		raw, err := r.Snapshot().MarshalBinary()
		if err != nil {
			t.Fatal(err)
		}
		if b > 0 { // before the first batch there is nothing to carry over
			if err := state.UnmarshalBinary(raw); err != nil {
				t.Fatal(err)
			}
			r = reconstructor(t, 100, nil)
			if err := r.Restore(&state); err != nil {
				t.Fatal(err)
			}
		}
		got, err := r.Absorb(t.Context(), w, ch, y)
		if err != nil {
			t.Fatal(err)
		}
		if b == 2 && !mat.Equal(got.X, want.X) {
			t.Error("x after an interruption differs")
		}
		for _, cut := range []int{0, 10, len(raw) - 1} {
			if new(online.FieldState).UnmarshalBinary(raw[:cut]) == nil {
				t.Errorf("%d of %d bytes were accepted", cut, len(raw))
			}
		}
		raw[len(raw)/2] ^= 4
		if new(online.FieldState).UnmarshalBinary(raw) == nil {
			t.Error("a flipped bit was accepted")
		}
	}
}

func TestReconstructorLeavesItsStateAlone(t *testing.T) {
	d := measure(60, 100, 1, 1e-3, 4)
	ch := channel.AWGN{NoiseVar: 1e-3}
	w, y := d.rows(t, 0, 60)
	frozen := reconstructor(t, 100, &online.Options{Freeze: true})
	res, err := frozen.Absorb(t.Context(), w, ch, y)
	if err != nil || res.Reject != online.Frozen || frozen.Snapshot().Batches != 0 {
		t.Errorf("frozen: %v, %+v", err, res)
	}
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	r := reconstructor(t, 100, nil)
	res, err = r.Absorb(cancelled, w, ch, y)
	if !errors.Is(err, context.Canceled) || res.Reject != online.Interrupted || r.Snapshot().Batches != 0 {
		t.Errorf("cancelled: %v, %+v", err, res)
	}
	for _, bad := range []*mat.Dense{mat.NewDense(59, 1, nil), mat.NewDense(60, 1, append(make([]float64, 59), math.Inf(1)))} {
		if _, err := r.Absorb(t.Context(), w, ch, bad); err == nil {
			t.Error("readings that do not fit were accepted")
		}
	}
}
