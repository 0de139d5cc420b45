package calamp_test

import (
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/calamp/calamp"
	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/internal/tables"
	"github.com/calamp/calamp/operator"
	"github.com/calamp/calamp/prior"
	"github.com/calamp/calamp/solver"
)

// jointCase is a problem whose signals have the part shared of their rows in common, the other rows are there in each signal by chance; the part
// common of the variance of a row is an amplitude that all signals have.
type jointCase struct {
	n, p                           int
	alpha, density, common, shared float64
	noise                          float64
	change                         float64 // of an entry from signal to signal, as a part of it
	condition                      float64 // of W; 0 where its entries are independent
	given                          bool    // noise, density, range
	joint                          solver.Joint
	flat                           bool // no fault finder
	maxIter                        int  // 0: as ever
}

func (c jointCase) draw(t testing.TB, seed uint64) (*operator.Dense, *mat.Dense, calamp.Truth) {
	t.Helper()
	rng := rand.New(rand.NewPCG(seed, 11))
	m := int(math.Round(c.alpha * float64(c.n)))
	w, x, y := mat.NewDense(m, c.n, nil), mat.NewDense(c.n, c.p, nil), mat.NewDense(m, c.p, nil)
	raw := w.RawMatrix().Data
	for i := range raw {
		raw[i] = rng.NormFloat64() / math.Sqrt(float64(c.n))
	}
	if c.condition > 0 {
		raw = conditioned(t, w, c.condition)
	}
	for i := range c.n {
		all, together, amplitude := rng.Float64() < c.density, rng.Float64() < c.shared, rng.NormFloat64()
		for k := range c.p {
			on := all
			if !together {
				on = rng.Float64() < c.density
			}
			v := math.Sqrt(c.common)*amplitude + math.Sqrt(1-c.common)*rng.NormFloat64()
			if c.change > 0 {
				v *= 1 + c.change*rng.NormFloat64()
			}
			if on {
				x.Set(i, k, v)
			}
		}
	}
	y.Mul(w, x)
	s := make([]float64, m)
	for mu := range s {
		s[mu] = 0.7 + 0.6*rng.Float64()
		for k := range c.p {
			y.Set(mu, k, (y.At(mu, k)+math.Sqrt(c.noise)*rng.NormFloat64())/s[mu])
		}
	}
	op, err := operator.NewDense(m, c.n, raw)
	if err != nil {
		t.Fatal(err)
	}
	return op, y, calamp.Truth{X: x, S: s}
}

// conditioned gives W singular values that fall geometrically.
func conditioned(t testing.TB, w *mat.Dense, condition float64) []float64 {
	t.Helper()
	var f mat.SVD
	if !f.Factorize(w, mat.SVDThin) {
		t.Fatal("no decomposition")
	}
	var u, v, left mat.Dense
	f.UTo(&u)
	f.VTo(&v)
	m, _ := w.Dims()
	values, square := make([]float64, m), 0.0
	for i := range values {
		values[i] = math.Pow(condition, -float64(i)/float64(m-1))
		square += values[i] * values[i] / float64(m)
	}
	left.Mul(&u, mat.NewDiagDense(m, values))
	w.Mul(&left, v.T())
	w.Scale(1/math.Sqrt(square), w) // entries of variance 1/N
	return w.RawMatrix().Data
}

func (c jointCase) solve(t testing.TB, seed uint64) (*calamp.Result, calamp.Truth) {
	t.Helper()
	problem, opt, truth := c.problem(t, seed)
	res, err := calamp.Solve(t.Context(), problem, opt)
	if err != nil {
		t.Fatal(err)
	}
	return res, truth
}

// problem is what is solved, and how.
func (c jointCase) problem(t testing.TB, seed uint64) (problem *calamp.Problem, opt *calamp.Options, truth calamp.Truth) {
	t.Helper()
	w, y, truth := c.draw(t, seed)
	signal := prior.GaussBernoulli{Density: c.density, SignalVar: 1}
	gain := channel.Gain{Prior: channel.Uniform(0.7, 1.3), NoiseVar: c.noise}
	problem = &calamp.Problem{W: w, Y: y, Prior: signal, Channel: gain}
	opt = &calamp.Options{Joint: c.joint}
	opt.MaxIter = c.maxIter
	if !c.given {
		signal = prior.GaussBernoulli{Density: math.NaN(), SignalMean: math.NaN(), SignalVar: math.NaN()}
		gain = channel.Gain{Prior: channel.GainPrior{Lo: math.NaN(), Hi: math.NaN()}, NoiseVar: math.NaN()}
		signal, gain, err := calamp.Guess(w, y, signal, gain)
		if err != nil {
			t.Fatal(err)
		}
		problem.Prior = signal.Learning(prior.Density | prior.SignalMean | prior.SignalVar)
		problem.Channel = channel.Faulty{Working: gain}
		if c.flat {
			problem.Channel = gain
		}
		opt.Learn, opt.Outliers, opt.Retry = calamp.Learn{Noise: true, Range: true}, calamp.Outliers{Look: true}, c.maxIter == 0
	}
	return problem, opt, truth
}

// covered are the parts of the s, and of the entries that are not zero, within their 95 % intervals, at the best common scale.
func covered(r *calamp.Result, truth calamp.Truth, scale float64) (s, x float64) {
	lo, hi := r.SInterval(0.95)
	for mu, v := range truth.S {
		if v /= scale; lo[mu] <= v && v <= hi[mu] {
			s++
		}
	}
	count := 0.0
	n, p := truth.X.Dims()
	for i := range n {
		for k := range p {
			if v := truth.X.At(i, k); v != 0 {
				count++
				if math.Abs(v/scale-r.X.At(i, k)) <= 1.96*math.Sqrt(r.XVar.At(i, k)) {
					x++
				}
			}
		}
	}
	return s / float64(len(truth.S)), x / count
}

var jointFilter = flag.String("joint", "", "comma-separated: P, common, alpha, noise, given of the cases of TestLongJointRows")

// atBest is the expected NMSE of an estimator that knows which rows are there and how signals correlate, at the best common scale: Laplace's method at the true x and s. With R = U diag(r) Uᵀ and what is turned by U,
//
//	ss: (P/s² + Σ y²/Δ)   sx: -yᵀW/Δ   xx: WᵀW/Δ + 1/r.
//
// No estimator that has the readings alone does better, so an error near it is recovery, however far it is from the noise.
func (c jointCase) atBest(t testing.TB, w *operator.Dense, y *mat.Dense, truth calamp.Truth) float64 {
	t.Helper()
	m := len(truth.S)
	var on []int
	for i := range c.n {
		if truth.X.At(i, 0) != 0 {
			on = append(on, i)
		}
	}
	columns, row := mat.NewDense(m, len(on), nil), make([]float64, c.n)
	for mu := range m {
		if err := w.RowInto(row, mu); err != nil {
			t.Fatal(err)
		}
		for at, i := range on {
			columns.Set(mu, at, row[i])
		}
	}
	gains := mat.NewSymDense(m, nil)
	for mu, s := range truth.S {
		square := 0.0
		for k := range c.p {
			square += y.At(mu, k) * y.At(mu, k)
		}
		gains.SetSym(mu, mu, float64(c.p)/(s*s)+square/c.noise)
	}
	turned, x := c.turned(y), c.turned(truth.X)
	error, along, power := 0.0, mat.NewVecDense(m, nil), 0.0
	own := 0.0 // xᵀ Σ x with gains known
	moves := make([]*mat.Dense, c.p)
	for k := range c.p {
		precision := mat.NewSymDense(len(on), nil)
		precision.SymOuterK(1/c.noise, columns.T())
		for at := range on {
			precision.SetSym(at, at, precision.At(at, at)+1/c.variance(k))
		}
		var cross, covariance mat.Dense // x follows gains by Σ Wᵀ y/Δ
		cross.Apply(func(_, mu int, v float64) float64 { return v * turned.At(mu, k) / c.noise }, columns.T())
		var factor mat.Cholesky
		if !factor.Factorize(precision) {
			t.Fatal("no precision")
		}
		var inverse mat.SymDense
		if err := factor.InverseTo(&inverse); err != nil {
			t.Fatal(err)
		}
		moves[k] = new(mat.Dense)
		moves[k].Mul(&inverse, &cross)
		covariance.Mul(cross.T(), moves[k])
		for mu := range m {
			for nu := mu; nu < m; nu++ {
				gains.SetSym(mu, nu, gains.At(mu, nu)-covariance.At(mu, nu))
			}
		}
		error += mat.Trace(&inverse)
		values := mat.NewVecDense(len(on), nil)
		for at, i := range on {
			values.SetVec(at, x.At(i, k))
		}
		power += mat.Dot(values, values)
		own += mat.Inner(values, &inverse, values)
		var v mat.VecDense
		v.MulVec(moves[k].T(), values)
		along.AddVec(along, &v)
	}
	var factor mat.Cholesky
	var left mat.SymDense
	if !factor.Factorize(gains) {
		t.Fatal("no precision of gains")
	}
	if err := factor.InverseTo(&left); err != nil {
		t.Fatal(err)
	}
	for _, follows := range moves {
		var errors mat.Dense
		errors.Mul(follows, &left)
		errors.MulElem(&errors, follows)
		error += mat.Sum(&errors)
	}
	return (error - (own+mat.Inner(along, &left, along))/power) / power
}

// variance is eigenvalue k of R, and turned are values of signals along its eigenvectors: their mean, and Helmert's contrasts.
func (c jointCase) variance(k int) float64 {
	if k == 0 {
		return 1 - c.common + float64(c.p)*c.common
	}
	return 1 - c.common
}

func (c jointCase) turned(v *mat.Dense) *mat.Dense {
	u := mat.NewDense(c.p, c.p, nil)
	for l := range c.p {
		u.Set(l, 0, 1/math.Sqrt(float64(c.p)))
		for k := 1; k < c.p; k++ {
			switch norm := math.Sqrt(float64(k * (k + 1))); {
			case l < k:
				u.Set(l, k, 1/norm)
			case l == k:
				u.Set(l, k, -float64(k)/norm)
			}
		}
	}
	var turned mat.Dense
	turned.Mul(v, u)
	return &turned
}

// nearBest is how far an error may be from the expected one to count as recovered: close to the fewest sensors a few directions have most of it.
const nearBest = 2

// ownScale is the common scale that is best for the s, by their precisions: where signals are known to a few per cent that of the signals is another one.
func ownScale(r *calamp.Result, truth calamp.Truth) float64 {
	var square, product float64
	for mu, s := range r.S {
		square += s * s / r.SVar[mu]
		product += s * truth.S[mu] / r.SVar[mu]
	}
	return product / square
}

// TestLongJointRows measures recovery, coverage and iterations of signals that belong together.
func TestLongJointRows(t *testing.T) {
	longOnly(t)
	count := seedCount(5)
	table := tables.New(t, "", "given", "P", "common", "noise", "α", "recovered", "at the noise", "NMSE", "at best", "s covered", "at its own scale", "x covered", "iterations", "at most", "warnings")
	for _, given := range []bool{true, false} {
		for _, p := range []int{10, 30} {
			for _, common := range []float64{0, 0.9} {
				for _, noise := range []float64{1e-6, 1e-3} {
					for _, alpha := range []float64{0.28, 0.32, 0.4, 0.6} {
						if key := fmt.Sprintf("%v/%d/%g/%g/%g", given, p, common, noise, alpha); !strings.Contains(key, *jointFilter) {
							continue
						}
						c := jointCase{n: 500, p: p, alpha: alpha, density: 0.2, common: common, shared: 1, noise: noise, given: given, joint: solver.JointOn}
						recovered, atNoise, errs, best, s, own, x, iterations, warned := 0, 0, 0.0, 0.0, 0.0, 0.0, 0.0, []int{}, map[string]int{}
						for seed := range count {
							w, y, _ := c.draw(t, uint64(seed+1))
							r, truth := c.solve(t, uint64(seed+1))
							atBest := c.atBest(t, w, y, truth)
							best += math.Log(atBest) / float64(count)
							score := r.Score(truth)
							nmse := score.XMSEScaled / meanSquareOf(truth.X)
							if nmse < 30*noise {
								atNoise++
							}
							if nmse < max(30*noise, nearBest*atBest) {
								recovered++
							}
							errs += math.Log(nmse) / float64(count)
							cs, cx := covered(r, truth, score.Scale)
							s, x = s+cs/float64(count), x+cx/float64(count)
							cs, _ = covered(r, truth, ownScale(r, truth))
							own += cs / float64(count)
							iterations = append(iterations, r.Iterations)
							if r.Status != calamp.Converged {
								warned[r.Status.String()]++
							}
							for _, w := range r.Warnings {
								warned[string(w.Code)]++
							}
						}
						slices.Sort(iterations)
						table.Row("| %v | %d | %g | %g | %g | %d of %d | %d | %.2g | %.2g | %.3f | %.3f | %.3f | %d | %d | %v |", given, p, common, noise, alpha, recovered, count, atNoise, math.Exp(errs), math.Exp(best), s, own, x, iterations[count/2], iterations[count-1], warned)
					}
				}
			}
		}
	}
}

func meanSquareOf(x *mat.Dense) float64 {
	total := mat.Norm(x, 2)
	n, p := x.Dims()
	return total * total / float64(n*p)
}

// TestLongJointChoice measures what is chosen for signals of which a part of the rows is shared, and at which cost: with --joint auto, off and on.
func TestLongJointChoice(t *testing.T) {
	longOnly(t)
	count := seedCount(5)
	table := tables.New(t, "", "given", "P", "common", "shared", "noise", "α", "joint chosen", "NMSE auto", "off", "on", "s covered auto", "off", "on", "status auto", "off", "on")
	for _, given := range []bool{true, false} {
		for _, p := range []int{4, 10} {
			for _, common := range []float64{0, 0.9} {
				for _, noise := range []float64{1e-6, 1e-3} {
					for _, alpha := range []float64{0.4, 0.6, 0.8} {
						for _, shared := range []float64{0, 0.1, 0.3, 0.5, 0.7, 0.9, 1} {
							if key := fmt.Sprintf("%v/%d/%g/%g/%g/%g", given, p, common, noise, alpha, shared); !strings.Contains(key, *jointFilter) {
								continue
							}
							var nmse, inside [3]float64
							var status [3]map[string]int
							chosen := 0
							for j, which := range []solver.Joint{solver.AutoJoint, solver.JointOff, solver.JointOn} {
								status[j] = map[string]int{}
								for seed := range count {
									c := jointCase{n: 500, p: p, alpha: alpha, density: 0.2, common: common, shared: shared, noise: noise, given: given, joint: which}
									r, truth := c.solve(t, uint64(seed+1))
									score := r.Score(truth)
									cs, _ := covered(r, truth, score.Scale)
									nmse[j] += math.Log(score.XMSEScaled/meanSquareOf(truth.X)) / float64(count)
									inside[j] += cs / float64(count)
									status[j][r.Status.String()]++
									for _, w := range r.Warnings {
										status[j][string(w.Code)]++
									}
									if which == solver.AutoJoint && r.Support != nil {
										chosen++
									}
								}
							}
							table.Row("| %v | %d | %g | %g | %g | %g | %d of %d | %.2g | %.2g | %.2g | %.3f | %.3f | %.3f | %v | %v | %v |", given, p, common, shared, noise, alpha, chosen, count,
								math.Exp(nmse[0]), math.Exp(nmse[1]), math.Exp(nmse[2]), inside[0], inside[1], inside[2], status[0], status[1], status[2])
						}
					}
				}
			}
		}
	}
}

// TestLongIndependentStay counts the problems with independent signals that were solved together, or tried to be.
func TestLongIndependentStay(t *testing.T) {
	longOnly(t)
	rng := rand.New(rand.NewPCG(5, 6))
	pick := func(v ...float64) float64 { return v[rng.IntN(len(v))] }
	count := seedCount(200)
	wrong, tried := 0, 0
	for seed := range count {
		c := jointCase{
			n: int(pick(100, 200, 400)), p: int(pick(2, 3, 5, 10, 20)), alpha: pick(0.25, 0.4, 0.6, 0.9), density: pick(0.05, 0.1, 0.2, 0.4),
			noise: pick(1e-8, 1e-5, 1e-3, 1e-2), given: seed%2 == 0, maxIter: 100,
		}
		r, _ := c.solve(t, uint64(seed+1))
		switch {
		case r.Support != nil:
			wrong++
			t.Errorf("seed %d: %+v: %s", seed+1, c, r.Plan.Parts)
		case slices.ContainsFunc(r.Plan.Parts, func(p solver.Choice) bool {
			return p.Part == "joint rows" && strings.HasPrefix(p.Why, "tried")
		}):
			tried++
			t.Logf("tried: seed %d: %+v", seed+1, c)
		}
	}
	table := tables.New(t, "", "problems", "solved together", "tried")
	table.Row("| %d | %d | %d |", count, wrong, tried)
}
