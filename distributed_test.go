package calamp_test

import (
	"context"
	"fmt"
	"math"
	"slices"
	"sync"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/calamp/calamp"
	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/internal/ranks"
	"github.com/calamp/calamp/operator"
	"github.com/calamp/calamp/prior"
	"github.com/calamp/calamp/solver"
	"github.com/calamp/calamp/teacher"
)

// overRanks solves a problem on so many ranks of this process, and returns what each found.
func overRanks(t *testing.T, size int, reproducible bool, in *teacher.Instance, p calamp.Problem, opt calamp.Options) []*calamp.Result {
	t.Helper()
	results, errs := make([]*calamp.Result, size), make([]error, size)
	m, n := in.W.Dims()
	var all sync.WaitGroup
	for r, transport := range ranks.Local(size) {
		all.Go(func() {
			group := ranks.Of(transport)
			errs[r] = func() error {
				share, err := operator.ShareOf(m, size, reproducible)
				if err != nil {
					return err
				}
				var own []operator.Chunk
				for c := share.Ranks[r]; c < share.Ranks[r+1]; c++ {
					first, end := share.Chunks[c], share.Chunks[c+1]
					values := make([]float64, (end-first)*n)
					for mu := first; mu < end; mu++ {
						in.W.RowInto(values[(mu-first)*n:(mu-first+1)*n], mu)
					}
					d, err := operator.NewDenseRows(first, end-first, n, values)
					if err != nil {
						return err
					}
					own = append(own, d)
				}
				q, o := p, opt
				if q.W, err = operator.NewDistributed(group, share, own); err != nil {
					return err
				}
				results[r], err = calamp.Solve(context.Background(), &q, &o)
				return err
			}()
		})
	}
	all.Wait()
	for r, err := range errs {
		if err != nil {
			t.Fatalf("rank %d of %d: %v", r, size, err)
		}
	}
	return results
}

// TestRanksAgree: whatever is asked, 2 and 4 ranks find what one process does, to rounding;
// all ranks have the same bits; with reproducible sums for any number of ranks.
func TestRanksAgree(t *testing.T) {
	gauss := prior.GaussBernoulli{Density: 0.15, SignalVar: 1}
	base := teacher.Teacher{N: 120, M: 106, P: 4, Signal: gauss, Gain: channel.Uniform(0.8, 1.2), NoiseVar: 1e-4}
	gain := channel.Gain{Prior: channel.Uniform(0.8, 1.2), NoiseVar: 1e-4}
	shared := make([]int, base.M) // rows of a sensor on different ranks
	for mu := range shared {
		shared[mu] = mu * 7 % 53
	}
	uneven := slices.Clone(shared)
	uneven[105] = 0
	for _, c := range []struct {
		name    string
		teacher func(*teacher.Teacher)
		change  func(*teacher.Instance)
		sensors []int
		channel channel.Channel
		prior   prior.Prior
		options calamp.Options
		part    string // of the plan, that is to go along
	}{
		{name: "plain"},
		{name: "one signal", teacher: func(t *teacher.Teacher) { t.P, t.Gain = 1, channel.Uniform(0.95, 1.05) }},
		{name: "learned", prior: gauss.Learning(prior.Density | prior.SignalVar), options: calamp.Options{Learn: calamp.Learn{Noise: true, Range: true}}},
		{name: "broken", channel: channel.Faulty{Working: gain}, change: func(in *teacher.Instance) {
			for _, mu := range []int{3, 50, 101} {
				for k := range 4 {
					in.Y.Set(mu, k, math.Cos(float64(7*mu+3*k)))
				}
			}
		}},
		{name: "means", teacher: func(t *teacher.Teacher) { t.Matrix = teacher.Ensemble{Kind: "binary"} }, part: "mean removal"},
		{name: "scalar", options: calamp.Options{Settings: solver.Settings{Variance: solver.Scalar}}},
		{name: "vector", options: calamp.Options{Settings: solver.Settings{Algorithm: solver.VAMP}}, part: "vector AMP"},
		{name: "conjugate gradients", teacher: func(t *teacher.Teacher) { t.N, t.M, t.P = 60, 50, 3 }, options: calamp.Options{Settings: solver.Settings{Algorithm: solver.VAMP, RAM: 1 << 15}}, part: "vector AMP"},
		{name: "single precision", teacher: func(t *teacher.Teacher) { t.N, t.M, t.P = 220, 180, 2 }, options: calamp.Options{Settings: solver.Settings{Precision: solver.SinglePrecision}}, part: "single precision"},
		{name: "sensors", sensors: shared},
		{name: "sensors, learned", sensors: shared, prior: gauss.Learning(prior.Density | prior.SignalVar), options: calamp.Options{Learn: calamp.Learn{Noise: true, Range: true}}},
		{name: "sensors, broken", sensors: shared, channel: channel.Faulty{Working: gain}, change: func(in *teacher.Instance) {
			for mu, g := range shared {
				for k := 0; (g == 3 || g == 20) && k < 4; k++ {
					in.Y.Set(mu, k, math.Cos(float64(7*mu+3*k)))
				}
			}
		}},
		{name: "sensors, means", teacher: func(t *teacher.Teacher) { t.Matrix = teacher.Ensemble{Kind: "binary"} }, sensors: shared, part: "mean removal"},
		{name: "sensors, uneven", sensors: uneven},
		{name: "sensors, vector", sensors: shared, options: calamp.Options{Settings: solver.Settings{Algorithm: solver.VAMP}}, part: "vector AMP"},
		{name: "missing", change: func(in *teacher.Instance) { in.Y.Set(5, 1, math.NaN()); in.Y.Set(99, 3, math.NaN()) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			te := base
			if c.teacher != nil {
				c.teacher(&te)
			}
			in, err := te.Draw(3)
			if err != nil {
				t.Fatal(err)
			}
			for mu, g := range c.sensors {
				for k := range te.P {
					in.Y.Set(mu, k, in.Y.At(mu, k)*in.Truth.S[mu]/in.Truth.S[g])
				}
			}
			if c.change != nil {
				c.change(in)
			}
			p := calamp.Problem{W: in.W, Y: in.Y, Prior: gauss, Channel: gain, Sensors: c.sensors}
			if c.channel != nil {
				p.Channel = c.channel
			}
			if c.prior != nil {
				p.Prior = c.prior
			}
			c.options.Threads = 1
			want, err := calamp.Solve(context.Background(), &p, &c.options)
			if err != nil {
				t.Fatal(err)
			}
			var same *calamp.Result
			for _, size := range []int{1, 2, 4} {
				if size != 2 && testing.Short() { // with the race detector
					continue
				}
				for _, reproducible := range []bool{false, true} {
					if size == 1 && !reproducible {
						continue
					}
					list := overRanks(t, size, reproducible, in, p, c.options)
					name := fmt.Sprintf("%d ranks, reproducible %v", size, reproducible)
					got := list[0]
					if got.Status != want.Status {
						t.Errorf("%s: %v, %s; one process: %v, %s", name, got.Status, got.Reason, want.Status, want.Reason)
					}
					if c.part != "" && !got.Plan.Has(c.part) {
						t.Errorf("%s: no %s", name, c.part)
					}
					within := 1e-12
					if c.name == "single precision" || c.name == "conjugate gradients" { // another rounding until the last sweeps: all end within the tolerance
						within = 1e-10
					}
					if furthest(got.X, want.X) > within || furthestOf(got.S, want.S) > within {
						t.Errorf("%s: x differs by %.2g, s by %.2g", name, furthest(got.X, want.X), furthestOf(got.S, want.S))
					}
					for r, other := range list {
						sameBits(t, fmt.Sprintf("%s, rank %d", name, r), other, got)
					}
					if reproducible && same == nil {
						same = got
					}
					if reproducible {
						sameBits(t, name, got, same)
					}
				}
			}
		})
	}
}

func furthest(a, b *mat.Dense) float64 {
	return furthestOf(a.RawMatrix().Data, b.RawMatrix().Data)
}

func furthestOf(a, b []float64) float64 {
	most := 0.0
	for i, v := range a {
		most = max(most, math.Abs(v-b[i]))
	}
	return most
}

func sameBits(t *testing.T, name string, a, b *calamp.Result) {
	t.Helper()
	if !slices.Equal(a.X.RawMatrix().Data, b.X.RawMatrix().Data) || !slices.Equal(a.S, b.S) || !slices.Equal(a.SVar, b.SVar) || a.Iterations != b.Iterations {
		t.Errorf("%s: other bits", name)
	}
}

// TestRanksStopTogether: what interrupts one rank ends all, in the same iteration.
func TestRanksStopTogether(t *testing.T) {
	in, err := teacher.Teacher{
		N: 60, M: 50, P: 2, Signal: prior.GaussBernoulli{Density: 0.15, SignalVar: 1}, Gain: channel.Uniform(0.9, 1.1), NoiseVar: 1e-4,
	}.Draw(1)
	if err != nil {
		t.Fatal(err)
	}
	values := make([]float64, 50*60)
	for mu := range 50 {
		in.W.RowInto(values[mu*60:(mu+1)*60], mu)
	}
	share, err := operator.ShareOf(50, 2, false)
	if err != nil {
		t.Fatal(err)
	}
	iterations := make([]int, 2)
	var all sync.WaitGroup
	for r, transport := range ranks.Local(2) {
		all.Go(func() {
			first, end := share.Rows(r)
			own, err := operator.NewDenseRows(first, end-first, 60, values[first*60:end*60])
			if err != nil {
				t.Error(err)
				return
			}
			ctx, cancel := context.WithCancel(context.Background())
			group := ranks.Of(transport)
			group.Stop = cancel
			w, err := operator.NewDistributed(group, share, []operator.Chunk{own})
			if err != nil {
				t.Error(err)
				return
			}
			opt := &calamp.Options{Settings: solver.Settings{Threads: 1, Tol: -1, MaxIter: 1000}, Progress: func(it calamp.Iteration) {
				if it.Index == 7 && r == 1 {
					group.Interrupt()
				}
			}}
			p := &calamp.Problem{W: w, Y: in.Y, Prior: prior.GaussBernoulli{Density: 0.15, SignalVar: 1}, Channel: channel.Gain{Prior: channel.Uniform(0.9, 1.1), NoiseVar: 1e-4}}
			res, err := calamp.Solve(ctx, p, opt)
			if err != context.Canceled || res == nil || res.Status != calamp.Cancelled {
				t.Errorf("rank %d: %v, %v", r, res, err)
				return
			}
			iterations[r] = res.Iterations
		})
	}
	all.Wait()
	if iterations[0] != iterations[1] || iterations[0] < 7 || iterations[0] > 9 {
		t.Errorf("the ranks stopped after %v iterations", iterations)
	}
}
