package calamp_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/calamp/calamp"
	"github.com/calamp/calamp/internal/tables"
	"github.com/calamp/calamp/internal/tests"
	"github.com/calamp/calamp/prior"
	"github.com/calamp/calamp/solver"
)

// correlatedLatents is a problem of a ReLU network, N = 300 out of 60 latents of which 18 are there in all p signals, with this correlation of any two.
func correlatedLatents(t testing.TB, seed uint64, alpha, correlation float64, p int, noise float64) *deepProblem {
	t.Helper()
	rng := rand.New(rand.NewPCG(seed, 43))
	const n, n2, there = 300, 60, 18
	l := prior.Layer{Rows: n, Cols: n2, Activation: prior.ReLU}
	for range n * n2 {
		l.Weights = append(l.Weights, rng.NormFloat64()/math.Sqrt(n2))
	}
	network, err := prior.NewNetwork([]prior.Layer{l}, prior.GaussBernoulli{Density: 0.3, SignalVar: 1}, 0)
	if err != nil {
		t.Fatal(err)
	}
	common := make([]float64, n2)
	for _, j := range rng.Perm(n2)[:there] {
		common[j] = rng.NormFloat64()
	}
	return deepProblemDrawn(t, rng, network, func(int) (latent, signal []float64, err error) {
		latent, signal = make([]float64, n2), make([]float64, n)
		for j, c := range common {
			if c != 0 {
				latent[j] = math.Sqrt(correlation)*c + math.Sqrt(1-correlation)*rng.NormFloat64()
			}
		}
		for i := range signal {
			for j, h := range latent {
				signal[i] += l.Weights[i*n2+j] * h
			}
			signal[i] = max(0, signal[i])
		}
		return latent, signal, nil
	}, alpha, p, 0.7, 1.3, noise)
}

// Latents that are correlated across signals are known better with their covariance, which is learned; everything else is learned, too.
func TestNetworkOfCorrelatedRows(t *testing.T) {
	tests.Long(t)
	d := correlatedLatents(t, 1, 0.2, 0.9, 5, 1e-3)
	opt := d.learned()
	one := solve(t, &d.Problem, opt)
	opt.Joint = solver.JointOn
	joint := solve(t, &d.Problem, opt)
	if alone, together := relativeError(d, one), relativeError(d, joint); joint.Status != calamp.Converged || !(together < 0.7*alone) {
		t.Errorf("%v, NMSE %.2g, one by one %.2g", joint.Reason, together, alone)
	}
	s, _, x := d.coveredScaled(joint)
	if !(s > 0.85) || !(x > 0.88) {
		t.Errorf("coverage of s %.2f, of x %.2f", s, x)
	}
	if largest, there := joint.LargestCorrelation(), len(joint.Support); !(largest > 0.8 && largest < 0.99) || there != 60 {
		t.Errorf("a correlation of %.2f, of %d latents", largest, there)
	}
	n, _ := prior.NetworkOf(joint.Prior)
	if g := n.Latents().(prior.GaussBernoulli); !(g.Density > 0.2 && g.Density < 0.4) {
		t.Errorf("latents %+v", g)
	}
}

// TestLongNetworkRows measures latents with a covariance across signals, everything learned.
func TestLongNetworkRows(t *testing.T) {
	longOnly(t)
	count := seedCount(10)
	table := tables.New(t, "", "noise", "P", "correlation", "α", "joint", "converged", "NMSE", "s covered", "x covered", "iterations", "largest correlation found")
	for _, noise := range []float64{1e-6, 1e-3} {
		for _, p := range []int{5, 20} {
			for _, correlation := range []float64{0, 0.5, 0.9} {
				for _, alpha := range []float64{0.12, 0.2, 0.4} {
					for _, on := range []solver.Joint{solver.JointOff, solver.JointOn} {
						errs, found, iterations, s, x, converged := 0.0, 0.0, 0, 0.0, 0.0, 0
						for seed := range count {
							d := correlatedLatents(t, uint64(seed+1), alpha, correlation, p, noise)
							opt := d.learned()
							opt.Joint = on
							r := solve(t, &d.Problem, opt)
							if r.Status == calamp.Converged {
								converged++
							}
							cs, _, cx := d.coveredScaled(r)
							s, x = s+cs/float64(count), x+cx/float64(count)
							errs += math.Log(relativeError(d, r)) / float64(count)
							found += r.LargestCorrelation() / float64(count)
							iterations += r.Iterations
						}
						table.Row("| %g | %d | %g | %g | %v | %d of %d | %.2g | %.3f | %.3f | %d | %.2f |", noise, p, correlation, alpha, on, converged, count, math.Exp(errs), s, x, iterations/count, found)
					}
				}
			}
		}
	}
}
