package calamp_test

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/calamp/calamp"
	"github.com/calamp/calamp/internal/tests"
	"github.com/calamp/calamp/prior"
	"github.com/calamp/calamp/solver"
)

// halves are groups of the first and the second 30 of 60 latents.
func halves(t testing.TB, density ...float64) prior.Groups {
	t.Helper()
	of := make([]int, 60)
	var kinds []prior.GaussBernoulli
	for j := range of {
		of[j] = j / 30
	}
	for _, d := range density {
		kinds = append(kinds, prior.GaussBernoulli{Density: d, SignalVar: 1})
	}
	g, err := prior.ByGroup(of, kinds)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// latentsProblem is a ReLU network, N = 300 out of 60 latents, and a problem with latents drawn from another prior than the network has afterwards.
func latentsProblem(t testing.TB, seed uint64, alpha float64, drawn prior.Prior) *deepProblem {
	t.Helper()
	d := newDeepProblem(t, 1, 0.3, 0.3, 1, prior.ReLU, 0.7, 1.3, 1e-6, 60, 300)
	one := d.network
	d = deepProblemOfNetwork(t, rand.New(rand.NewPCG(seed, 5)), one.WithLatents(drawn), alpha, 5, 0.7, 1.3, 1e-6)
	d.network = one
	return d
}

func relativeError(d *deepProblem, r *calamp.Result) float64 {
	return r.Score(*d.truth).XMSEScaled / meanSquareOf(d.truth.X)
}

// Latents of two groups, given and learned; one prior of all does not find them from so few sensors.
func TestNetworkOfGroups(t *testing.T) {
	tests.Long(t)
	g := halves(t, 0.58, 0.02)
	d := latentsProblem(t, 0, 0.13, g)
	for _, c := range []struct {
		prior prior.Prior
		found bool
	}{
		{d.network.WithLatents(g), true},
		{d.network.WithLatents(halves(t, 0.4, 0.2).Learning(prior.Density | prior.SignalVar)), true},
		{d.network, false},
	} {
		d.Prior = c.prior
		r := solve(t, &d.Problem, &calamp.Options{})
		if nmse := relativeError(d, r); (nmse < 1e-4) != c.found {
			t.Errorf("%T: NMSE %.2g, %v", c.prior, nmse, r.Reason)
		}
		if n, _ := prior.NetworkOf(r.Prior); c.found {
			if v := n.Latents().(interface{ Values() []float64 }).Values(); !(v[0] > 0.4 && v[0] < 0.75 && v[3] < 0.1) {
				t.Errorf("densities and so on %.3g", v)
			}
		}
	}
}

// Latents that are there in all signals or in none are found from fewer sensors than one by one, and their evidence is higher.
func TestNetworkOfRows(t *testing.T) {
	tests.Long(t)
	some := rand.New(rand.NewPCG(2, 3)).Perm(60)[:18]
	of := make([]int, 60)
	for _, j := range some {
		of[j] = 1
	}
	g, err := prior.ByGroup(of, []prior.GaussBernoulli{{Density: 1e-9, SignalVar: 1}, {Density: 1, SignalVar: 1}})
	if err != nil {
		t.Fatal(err)
	}
	d := latentsProblem(t, 1, 0.1, g)
	d.Prior = d.network
	one := solve(t, &d.Problem, &calamp.Options{})
	joint := solve(t, &d.Problem, &calamp.Options{Joint: solver.JointOn})
	if alone, nmse := relativeError(d, one), relativeError(d, joint); joint.Status != calamp.Converged || !(nmse < 1e-4) || !(alone > 1e-2) || !(joint.LogEvidence > one.LogEvidence) {
		t.Errorf("%v, NMSE %.2g, one by one %.2g; evidences %.6g and %.6g", joint.Reason, nmse, alone, joint.LogEvidence, one.LogEvidence)
	}
	for _, c := range joint.Plan.Parts {
		if c.Part == "network" && !strings.Contains(c.Why, "in all signals or in none") {
			t.Errorf("the plan says %q", c.Why)
		}
	}
	s, _, x := d.coveredScaled(joint)
	if !(s > 0.85) || !(x > 0.88) {
		t.Errorf("coverage of s %.2f, of x %.2f", s, x)
	}
	d.Prior = d.network.WithLatents(g)
	if _, err := calamp.Solve(t.Context(), &d.Problem, &calamp.Options{Joint: solver.JointOn}); err == nil || !strings.Contains(err.Error(), "one Gauss–Bernoulli prior") {
		t.Errorf("joint groups: %v", err)
	}
}
