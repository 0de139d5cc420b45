package calamp_test

import (
	"context"
	"math"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/calamp/calamp"
	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/operator"
	"github.com/calamp/calamp/prior"
	"github.com/calamp/calamp/teacher"
)

// eachProblem is a problem of 200 sensors and 8 signals of 300 entries, with a matrix for every signal, or with one for all.
func eachProblem(t *testing.T, seed uint64, own bool) (*calamp.Problem, calamp.Truth) {
	t.Helper()
	te := teacher.Teacher{
		M: 200, N: 300, P: 8, NoiseVar: 1e-6,
		Signal: prior.GaussBernoulli{Density: 0.2, SignalVar: 1}, Gain: channel.Uniform(0.7, 1.4),
	}
	return ofEach(t, te, seed, own)
}

// ofEach is a problem of a teacher, with a matrix for every signal, or with one for all.
func ofEach(t *testing.T, te teacher.Teacher, seed uint64, own bool) (*calamp.Problem, calamp.Truth) {
	t.Helper()
	matrices := make([]operator.Operator, te.P)
	for k := range matrices {
		from := seed
		if own {
			from = 1000*seed + uint64(k)
		}
		w, err := te.DrawMatrix(from)
		if err != nil {
			t.Fatal(err)
		}
		matrices[k] = w
	}
	w, err := operator.NewEach(matrices, nil)
	if err != nil {
		t.Fatal(err)
	}
	y, truth, err := te.Readings(w, seed)
	if err != nil {
		t.Fatal(err)
	}
	return &calamp.Problem{W: w, Y: y, Prior: te.Signal, Channel: channel.Gain{Prior: te.Gain, NoiseVar: te.NoiseVar}}, truth
}

// runEach is what came out of a run, compared with the truth.
func runEach(t *testing.T, seed uint64, own bool) sharedRun {
	t.Helper()
	p, truth := eachProblem(t, seed, own)
	res, err := calamp.Solve(context.Background(), p, nil)
	if err != nil {
		t.Fatal(err)
	}
	if res.Status != calamp.Converged {
		t.Fatalf("%v: %s", res.Status, res.Reason)
	}
	return scoreShared(res, truth, nil, seed)
}

// TestEachAsOne: a matrix for every signal gives errors like those of one for all.
func TestEachAsOne(t *testing.T) {
	own, one := runEach(t, 1, true), runEach(t, 1, false)
	if own.x > 1.5*one.x || own.s > 1.5*one.s {
		t.Errorf("errors of x and s are %.3g and %.3g, and %.3g and %.3g with one matrix", own.x, own.s, one.x, one.s)
	}
}

// TestLongEachAsOne: over 20 problems errors are those of one matrix to 10 %, and 92 to 98 % of the truth lie in 95 % intervals.
func TestLongEachAsOne(t *testing.T) {
	longOnly(t)
	of := 20
	if *seeds > 0 {
		of = *seeds
	}
	var own, one sharedRun
	for seed := 1; seed <= of; seed++ {
		for _, r := range []struct {
			to  *sharedRun
			run sharedRun
		}{{&own, runEach(t, uint64(seed), true)}, {&one, runEach(t, uint64(seed), false)}} {
			part := 1 / float64(of)
			r.to.x, r.to.s = r.to.x+part*r.run.x, r.to.s+part*r.run.s
			r.to.inX, r.to.inS = r.to.inX+part*r.run.inX, r.to.inS+part*r.run.inS
		}
	}
	t.Logf("a matrix each: x %.4g, s %.4g, inside %.4f and %.4f; one for all: x %.4g, s %.4g, inside %.4f and %.4f", own.x, own.s, own.inX, own.inS, one.x, one.s, one.inX, one.inS)
	if math.Abs(own.x/one.x-1) > 0.1 || math.Abs(own.s/one.s-1) > 0.1 {
		t.Error("errors differ by more than 10 %")
	}
	for _, inside := range []float64{own.inX, own.inS} {
		if inside < 0.92 || inside > 0.98 {
			t.Errorf("%.4f within 95 %% intervals", inside)
		}
	}
}

// TestMasksOfEach: masks of zeros and ones, others for each signal, lose their means as one for all does.
func TestMasksOfEach(t *testing.T) {
	te := teacher.Teacher{
		M: 100, N: 150, P: 4, NoiseVar: 1e-4, Matrix: teacher.Ensemble{Kind: "binary"},
		Signal: prior.GaussBernoulli{Density: 0.15, SignalMean: 1, SignalVar: 0.3}, Gain: channel.Uniform(0.7, 1.3),
	}
	p, truth := ofEach(t, te, 1, true)
	res, err := calamp.Solve(context.Background(), p, nil)
	if err != nil {
		t.Fatal(err)
	}
	if score := scoreShared(res, truth, nil, 1); res.Status != calamp.Converged || !(score.x < 1e-3) || !(score.inX > 0.9) {
		t.Errorf("%v: %+v", res.Status, score)
	}
}

// TestEachNearlyEqual: matrices that are equal but for rounding give the answer of one, to 1e-9.
func TestEachNearlyEqual(t *testing.T) {
	p, _ := eachProblem(t, 3, false)
	table := p.W.(operator.Matrix)
	m, n := table.Dims()
	matrices := []operator.Operator{table}
	for k := 1; k < 8; k++ {
		values := make([]float64, m*n)
		for mu := range m {
			if err := table.RowInto(values[mu*n:(mu+1)*n], mu); err != nil {
				t.Fatal(err)
			}
		}
		values[k] *= 1 + 1e-15
		w, err := operator.NewDense(m, n, values)
		if err != nil {
			t.Fatal(err)
		}
		matrices = append(matrices, w)
	}
	w, err := operator.NewEach(matrices, nil)
	if err != nil {
		t.Fatal(err)
	}
	if w == p.W {
		t.Fatal("the matrices were taken for one")
	}
	each := *p
	each.W = w
	opt := &calamp.Options{}
	opt.MaxIter, opt.Tol = 60, -1
	a, err := calamp.Solve(context.Background(), p, opt)
	if err != nil {
		t.Fatal(err)
	}
	b, err := calamp.Solve(context.Background(), &each, opt)
	if err != nil {
		t.Fatal(err)
	}
	if !mat.EqualApprox(a.X, b.X, 1e-9) {
		t.Error("the signals differ")
	}
	for mu, s := range a.S {
		if math.Abs(s-b.S[mu]) > 1e-9 {
			t.Fatalf("s of sensor %d is %v, expected %v", mu, b.S[mu], s)
		}
	}
}

// TestEachRefused: what does not go along says so.
func TestEachRefused(t *testing.T) {
	p, _ := eachProblem(t, 1, true)
	fewer := *p
	fewer.Y = mat.DenseCopyOf(p.Y.Slice(0, 200, 0, 7))
	_, err := calamp.Solve(context.Background(), &fewer, nil)
	if want := "W has matrices for 8 signals, and there are 7"; err == nil || err.Error() != want {
		t.Errorf("got %v, expected %s", err, want)
	}
	for _, name := range []string{"vamp", "evidence"} {
		opt := &calamp.Options{}
		if err := opt.Algorithm.UnmarshalText([]byte(name)); err != nil {
			t.Fatal(err)
		}
		if _, err := calamp.Solve(context.Background(), p, opt); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
