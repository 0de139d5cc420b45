package calamp_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/calamp/calamp"
	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/internal/tables"
	"github.com/calamp/calamp/operator"
	"github.com/calamp/calamp/prior"
	"github.com/calamp/calamp/solver"
)

// bands are three groups of entries as an image has in a basis of wavelets: a few that are there and large, and many that are seldom there and small.
var bands = []struct {
	part          float64
	density, size float64
}{{0.1, 0.9, 4}, {0.3, 0.25, 1}, {0.6, 0.05, 0.25}}

// bandCase is a problem whose entries are of these groups: there in all signals or, where they share nothing, in each by itself. The part common of their variance is an amplitude that all signals have.
type bandCase struct {
	n, p                 int
	alpha, common, noise float64
	shared               bool
}

func (c bandCase) draw(t testing.TB, seed uint64) (*calamp.Problem, calamp.Truth) {
	t.Helper()
	n, p, m := c.n, c.p, int(math.Round(c.alpha*float64(c.n)))
	rng := rand.New(rand.NewPCG(seed, 21))
	w, x, y, s := mat.NewDense(m, n, nil), mat.NewDense(n, p, nil), mat.NewDense(m, p, nil), make([]float64, m)
	w.Apply(func(int, int, float64) float64 { return rng.NormFloat64() / math.Sqrt(float64(n)) }, w)
	of := make([]int, n)
	for i := range n {
		switch u := float64((i*37)%n) / float64(n); {
		case u < bands[0].part:
		case u < bands[0].part+bands[1].part:
			of[i] = 1
		default:
			of[i] = 2
		}
		b := bands[of[i]]
		there, amplitude := rng.Float64() < b.density, rng.NormFloat64()
		for k := range p {
			if !c.shared {
				there = rng.Float64() < b.density
			}
			if v := math.Sqrt(c.common)*amplitude + math.Sqrt(1-c.common)*rng.NormFloat64(); there {
				x.Set(i, k, math.Sqrt(b.size)*v)
			}
		}
	}
	y.Mul(w, x)
	for mu := range s {
		s[mu] = 0.7 + 0.6*rng.Float64()
		for k := range p {
			y.Set(mu, k, (y.At(mu, k)+math.Sqrt(c.noise)*rng.NormFloat64())/s[mu])
		}
	}
	op, err := operator.NewDense(m, n, w.RawMatrix().Data)
	if err != nil {
		t.Fatal(err)
	}
	even := prior.GaussBernoulli{Density: 0.5, SignalVar: 0.5}
	groups, err := prior.ByGroup(of, []prior.GaussBernoulli{even, even, even})
	if err != nil {
		t.Fatal(err)
	}
	groups.Learn = prior.Density | prior.SignalVar
	return &calamp.Problem{W: op, Y: y, Prior: groups, Channel: channel.Gain{Prior: channel.Uniform(0.7, 1.3), NoiseVar: c.noise}}, calamp.Truth{X: x, S: s}
}

// Entries have the density and the size of their group, and their support in common: all of it is learned, and neither independent signals with these groups nor one density for all are as good.
func TestJointRowsOfGroups(t *testing.T) {
	c := bandCase{n: 200, p: 8, alpha: 0.4, common: 0.5, noise: 1e-5, shared: true}
	p, truth := c.draw(t, 1)
	res, err := calamp.Solve(t.Context(), p, &calamp.Options{Joint: solver.JointOn, Learn: calamp.Learn{Noise: true}})
	if err != nil {
		t.Fatal(err)
	}
	nmse := res.Score(truth).XMSEScaled / meanSquareOf(truth.X)
	t.Logf("%v after %d, NMSE %.3g, %v", res.Status, res.Iterations, nmse, res.Warnings)
	if res.Status != calamp.Converged || res.Support == nil || nmse > 1e-4 {
		t.Fatalf("%v, joint %v, NMSE %g", res.Status, res.Support != nil, nmse)
	}
	groups := res.Prior.(prior.Groups)
	if groups.Learn != prior.Density|prior.SignalVar {
		t.Errorf("what is learned of the prior was lost: %v", groups.Learn)
	}
	for j, kind := range groups.Kinds() {
		there, square, n := 0.0, 0.0, 0.0
		for i, of := range groups.Of() {
			if of != j {
				continue
			}
			n++
			if truth.X.At(i, 0) != 0 {
				there++
				for k := range c.p {
					square += truth.X.At(i, k) * truth.X.At(i, k) / float64(c.p)
				}
			}
		}
		scale := res.Score(truth).Scale
		if square /= scale * scale * there; math.Abs(kind.Density-there/n) > 0.02 || math.Abs(kind.SignalVar/square-1) > 0.25 {
			t.Errorf("group %d: %+v, expected a density of %.3f and a variance of %.3g", j, kind, there/n, square)
		}
	}
}

// TestLongJointGroups measures signals with groups: those that share their support and those that do not, with joint rows by group, without, and with one density and size for all.
func TestLongJointGroups(t *testing.T) {
	longOnly(t)
	count := seedCount(5)
	table := tables.New(t, "", "shared", "α", "prior", "--joint", "chosen", "converged", "NMSE", "s covered", "x covered", "iterations")
	for _, shared := range []bool{true, false} {
		for _, alpha := range []float64{0.3, 0.4, 0.6} {
			for _, way := range []struct {
				groups bool
				joint  solver.Joint
			}{{true, solver.AutoJoint}, {true, solver.JointOff}, {false, solver.AutoJoint}} {
				chosen, converged, errs, s, x, iterations := 0, 0, 0.0, 0.0, 0.0, []int{}
				for seed := range count {
					c := bandCase{n: 300, p: 10, alpha: alpha, common: 0.5, noise: 1e-5, shared: shared}
					p, truth := c.draw(t, uint64(seed+1))
					if !way.groups {
						p.Prior = prior.GaussBernoulli{Density: 0.2, SignalVar: 1, Learn: prior.Density | prior.SignalVar}
					}
					r, err := calamp.Solve(t.Context(), p, &calamp.Options{Joint: way.joint, Learn: calamp.Learn{Noise: true}})
					if err != nil {
						t.Fatal(err)
					}
					if r.Support != nil {
						chosen++
					}
					if r.Status == calamp.Converged {
						converged++
					}
					score := r.Score(truth)
					errs += math.Log(score.XMSEScaled/meanSquareOf(truth.X)) / float64(count)
					cs, cx := covered(r, truth, score.Scale)
					s, x = s+cs/float64(count), x+cx/float64(count)
					iterations = append(iterations, r.Iterations)
				}
				slices.Sort(iterations)
				table.Row("| %v | %g | %s | %v | %d | %d of %d | %.2g | %.3f | %.3f | %d |", shared, alpha, map[bool]string{true: "by group", false: "one"}[way.groups], way.joint, chosen, converged, count, math.Exp(errs), s, x, iterations[count/2])
			}
		}
	}
}
