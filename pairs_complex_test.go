package calamp_test

import (
	"math"
	"math/cmplx"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"gonum.org/v1/gonum/mat"

	"github.com/calamp/calamp"
	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/internal/tables"
	"github.com/calamp/calamp/internal/tests"
	"github.com/calamp/calamp/operator"
	"github.com/calamp/calamp/prior"
	"github.com/calamp/calamp/solver"
)

// baselines are snapshots of all pairs of antennas, whose gains are 20 % and phases one radian apart, with what they are of. Entries are the same in all snapshots where they are shared.
type baselines struct {
	problem *calamp.Problem
	pairs   [][2]int
	s       []complex128
	x       [][]complex128 // of snapshots
}

func newBaselines(t testing.TB, seed uint64, antennas, n, active, p int, shared bool) *baselines {
	rng := rand.New(rand.NewPCG(seed, 38))
	normal := func() complex128 { return complex(rng.NormFloat64(), rng.NormFloat64()) / math.Sqrt2 }
	b := &baselines{}
	for i := range antennas {
		b.s = append(b.s, cmplx.Rect(math.Exp(0.2*rng.NormFloat64()), rng.NormFloat64()))
		for j := range i {
			b.pairs = append(b.pairs, [2]int{j, i})
		}
	}
	m := len(b.pairs)
	table := make([]complex128, m*n)
	for i := range table {
		table[i] = normal() / complex(math.Sqrt(float64(n)), 0)
	}
	there := rng.Perm(n)[:active]
	for range p {
		if !shared {
			there = rng.Perm(n)[:active]
		}
		x := make([]complex128, n)
		for _, i := range there {
			x[i] = normal()
		}
		b.x = append(b.x, x)
	}
	y := mat.NewDense(m, 2*p, nil)
	for mu, pair := range b.pairs {
		for k, x := range b.x {
			z := 1e-3 * normal()
			for i, v := range x {
				z += table[mu*n+i] * v
			}
			z /= b.s[pair[0]] * cmplx.Conj(b.s[pair[1]])
			y.Set(mu, 2*k, real(z))
			y.Set(mu, 2*k+1, imag(z))
		}
	}
	w, err := operator.NewComplex(m, n, table)
	if err != nil {
		t.Fatal(err)
	}
	places, err := channel.ComplexPairsOf(b.pairs, antennas)
	if err != nil {
		t.Fatal(err)
	}
	gain := channel.ComplexPrior{Pairs: places, Concentration: 1}.WithAmplitude(channel.Uniform(0.02, 5))
	b.problem = &calamp.Problem{
		W: w, Y: y, Prior: prior.ComplexGaussBernoulli{Density: 0.1, SignalVar: 1, Learn: prior.Density | prior.SignalVar},
		Channel: channel.ComplexGain{Prior: gain, NoiseVar: 1e-4},
	}
	return b
}

// inside is which part of the antennas' amplitudes and phases are within their intervals of 95 %, at the common scale and beside the first antenna, and the error of the signals of their size.
func (b *baselines) inside(res *calamp.Result) (amplitudes, phases, x float64) {
	found := res.Calibration.Prior.(channel.ComplexPrior).Pairs
	count, scale := float64(len(b.s)), 0.0
	for i, s := range found.S {
		scale += math.Log(cmplx.Abs(s)/cmplx.Abs(b.s[i])) / count
	}
	for i, s := range found.S {
		amplitudes += bit(math.Abs(math.Log(cmplx.Abs(s)/cmplx.Abs(b.s[i]))-scale) < 1.96*found.LogSD[i]) / count
		if i > 0 {
			phases += bit(math.Abs(cmplx.Phase(s/b.s[i]*b.s[0])) < 1.96*found.PhaseSD[i]) / (count - 1)
		}
	}
	off, size := 0.0, 0.0
	for k, x := range b.x {
		for i, v := range x {
			d := complex(res.X.At(i, 2*k), res.X.At(i, 2*k+1))*complex(math.Exp(-2*scale), 0) - v
			off += real(d)*real(d) + imag(d)*imag(d)
			size += real(v)*real(v) + imag(v)*imag(v)
		}
	}
	return amplitudes, phases, math.Sqrt(off / size)
}

// Eight antennas, of which each pair reads a row: signals, amplitudes and phases are found where 20 of 200 entries are shared by 30 snapshots, and where each snapshot has 4 of 60 of its own.
// Closure phases of s are zero, since those of readings do not depend on gains.
func TestBaselines(t *testing.T) {
	tests.Long(t)
	for name, b := range map[string]*baselines{"shared": newBaselines(t, 0, 8, 200, 20, 30, true), "apart": newBaselines(t, 1, 8, 60, 4, 30, false)} {
		res := solve(t, b.problem, &calamp.Options{Learn: calamp.Learn{Range: true, Noise: true, Phases: true}})
		amplitudes, phases, x := b.inside(res)
		if res.Status != calamp.Converged || res.Plan.Algorithm != solver.Evidence || res.PhaseFree || !(x < 0.01) || amplitudes < 0.7 || phases < 0.7 {
			t.Errorf("%s: %v, signals off by %.3g, %.0f %% of the amplitudes and %.0f %% of the phases in their intervals", name, res.Status, x, 100*amplitudes, 100*phases)
		}
		row := func(j, i int) float64 { return res.Phase[slices.Index(b.pairs, [2]int{j, i})] }
		for i := 2; i < len(b.s); i++ {
			if closure := math.Remainder(row(0, 1)+row(1, i)-row(0, i), 2*math.Pi); math.Abs(closure) > 1e-9 {
				t.Errorf("%s: closure phase of 0, 1 and %d is %g", name, i, closure)
			}
		}
	}
}

// Phases of antennas that no pairs connect are open, and so is what message passing would do.
func TestBaselinesRefuse(t *testing.T) {
	if _, err := channel.ComplexPairsOf([][2]int{{0, 1}, {1, 2}, {0, 2}, {3, 4}, {4, 5}, {3, 5}}, 6); err == nil || !strings.Contains(err.Error(), "sensor 3: no pairs lead from sensor 0 to it") {
		t.Errorf("found %v", err)
	}
	if _, err := channel.ComplexPairsOf([][2]int{{0, 1}, {1, 2}, {2, 3}, {3, 0}}, 4); err == nil {
		t.Error("a ring of four is taken, whose amplitudes are open")
	}
	b := newBaselines(t, 1, 4, 20, 2, 4, true)
	for want, change := range map[string]func(*calamp.Problem, *calamp.Options){
		"message passing": func(_ *calamp.Problem, o *calamp.Options) { o.Algorithm = solver.AMP },
		"nominal phases":  func(p *calamp.Problem, _ *calamp.Options) { p.Phases = make([]float64, 6) },
	} {
		p, opt := *b.problem, calamp.Options{}
		change(&p, &opt)
		if _, err := calamp.Solve(t.Context(), &p, &opt); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("expected an error about %s, found %v", want, err)
		}
	}
}

// TestLongBaselines measures baselines of antennas: what is found, and the part of the antennas in their intervals.
func TestLongBaselines(t *testing.T) {
	longOnly(t)
	count := seedCount(20)
	table := tables.New(t, "", "antennas", "entries", "shared", "trusted", "error of x", "amplitudes inside 95 %", "phases inside 95 %", "seconds")
	for _, c := range []struct {
		antennas, n, active int
		shared              bool
	}{{8, 200, 20, true}, {7, 200, 14, true}, {8, 60, 4, false}, {20, 400, 40, true}} {
		converged, amplitudes, phases, x := 0.0, 0.0, 0.0, 0.0
		begun := time.Now()
		for seed := range uint64(count) {
			b := newBaselines(t, seed, c.antennas, c.n, c.active, 30, c.shared)
			res := solve(t, b.problem, &calamp.Options{Learn: calamp.Learn{Range: true, Noise: true, Phases: true}})
			if res.Status != calamp.Converged || res.Untrusted() != nil {
				continue
			}
			a, p, off := b.inside(res)
			converged, amplitudes, phases, x = converged+1, amplitudes+a, phases+p, x+off
		}
		table.Row("| %d | %d of %d | %v | %.0f of %d | %.2g | %.1f | %.1f | %.1f |", c.antennas, c.active, c.n, c.shared, converged, count, x/converged, 100*amplitudes/converged, 100*phases/converged,
			time.Since(begun).Seconds()/float64(count))
	}
}
