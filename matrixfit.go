package calamp

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"time"

	"gonum.org/v1/gonum/mat"

	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/operator"
	"github.com/calamp/calamp/prior"
	"github.com/calamp/calamp/solver"
)

// A matrix that is known but for a few numbers θ is fitted by the maximum of the evidence, over θ, of runs that learn the rest of the model.
// At its fixed point a run has the slope of its evidence (see [MatrixScore]) and an information that is nearly its curvature: steps of Gauss and Newton,
// mended by what earlier ones did to the slope (BFGS). Where they end, the evidence itself at points around it gives the maximum and error bars.

// MatrixFamily is W as a function of θ.
type MatrixFamily func(theta []float64) (operator.Operator, error)

// FitOptions are those of [FitMatrix].
type FitOptions struct {
	Options // of every run

	// Start (J) is where θ begins. It is to be so near that W(θ) resembles the true one: a shift by less than what patterns are wide.
	Start []float64

	// Names (J) of the parameters, for messages; nil for theta 0, 1, …
	Names []string

	// MostRuns is how many runs there may be, 0 for 40 and 20 for each parameter.
	MostRuns int

	// Tell, when set, is called after every run.
	Tell func(MatrixRun)
}

// MatrixRun is one of the runs of a fit.
type MatrixRun struct {
	Number      int       `json:"run"` // from 1
	Theta       []float64 `json:"theta"`
	LogEvidence float64   `json:"log_evidence"`
	Status      Status    `json:"status"`
	Iterations  int       `json:"iterations"`
	Around      bool      `json:"around"` // the maximum, for the curvature
	From        float64   `json:"-"`      // how many standard deviations the last step was, as far as is known
}

// MatrixFit is what a fit ended with: the result of [Solve] with W(θ), and θ.
type MatrixFit struct {
	*Result
	Theta, ThetaSD []float64     // J
	ThetaCov       *mat.SymDense // J×J, of a normal distribution about Theta
	W              operator.Operator
	Runs           []MatrixRun
}

const (
	differ     = 1e-4 // relative change of W over which it is differentiated
	bent       = 0.1  // part of a change of W which its derivatives may miss
	nearEnough = 0.3  // step, in standard deviations, after which the evidence is looked at around
	around     = 1.5  // how far from the centre, in standard deviations
	farFrom    = 2    // maximum, in standard deviations from the centre, beyond which it is looked at around there again
	rounds     = 4    // of looking around
	longer     = 2    // than the step before it a step may be
	retreats   = 5    // times that a step is shortened along which the evidence falls

	// Runs farther than roughly standard deviations from the maximum may end after mostRough iterations, the first one after firstRough: those with
	// the right W converge within 50, from the solution beside it within 25, and those with a wrong one in up to 600.
	roughly    = 3
	firstRough = 40
	mostRough  = 20
)

// LinearMatrix is W + Σ_j θ_j D_j, of tables or sparse matrices; the sum is a table. It is complex where one of them is.
func LinearMatrix(w operator.Operator, directions ...Direction) (MatrixFamily, error) {
	m, n := w.Dims()
	isComplex := operator.IsComplex(w)
	for _, d := range directions {
		if err := d.check(m, n); err != nil {
			return nil, err
		}
		if d.D == nil {
			return nil, fmt.Errorf("direction %q has no table", d.Name)
		}
		isComplex = isComplex || operator.IsComplex(d.D)
	}
	base, err := table("W", w, isComplex)
	if err != nil {
		return nil, err
	}
	along := make([][]float64, len(directions))
	for j, d := range directions {
		if along[j], err = table(d.Name, d.D, isComplex); err != nil {
			return nil, err
		}
	}
	return func(theta []float64) (operator.Operator, error) {
		if len(theta) != len(along) {
			return nil, fmt.Errorf("%d parameters for %d directions", len(theta), len(along))
		}
		values := slices.Clone(base)
		for j, d := range along {
			for i, v := range d {
				values[i] += theta[j] * v
			}
		}
		if !isComplex {
			return operator.NewDense(m, n, values)
		}
		numbers := make([]complex128, m*n)
		for i := range numbers {
			numbers[i] = complex(values[2*i], values[2*i+1])
		}
		return operator.NewComplex(m, n, numbers)
	}, nil
}

// table is all entries of a matrix; of a complex one, or where wantComplex is set, pairs of both parts.
func table(name string, w operator.Operator, wantComplex bool) ([]float64, error) {
	m, n := w.Dims()
	parts := [2][]float64{make([]float64, m*n)}
	if wantComplex = wantComplex || operator.IsComplex(w); wantComplex {
		parts[1] = make([]float64, m*n)
	}
	rowOf := func(v []float64, mu int) []float64 { return v[min(mu*n, len(v)):min((mu+1)*n, len(v))] }
	if row := operator.RowReader(w, 0); row != nil {
		for mu := range m {
			if err := row(rowOf(parts[0], mu), rowOf(parts[1], mu), mu); err != nil {
				return nil, err
			}
		}
	} else if sparse, ok := w.(*operator.Sparse); ok {
		sparse.Each(func(mu, i int, v float64) bool {
			parts[0][mu*n+i] = v
			return true
		})
	} else {
		return nil, fmt.Errorf("%s is a %s: a sum takes tables, whose entries can be seen, and sparse matrices", name, operator.Describe(w))
	}
	if !wantComplex {
		return parts[0], nil
	}
	pairs := make([]float64, 0, 2*m*n)
	for i, v := range parts[0] {
		pairs = append(pairs, v, parts[1][i])
	}
	return pairs, nil
}

// fitted is a run at a θ.
type fitted struct {
	theta []float64
	w     operator.Operator
	res   *Result
}

// matrixFit is one call of FitMatrix.
type matrixFit struct {
	ctx     context.Context
	family  MatrixFamily
	p       *Problem
	opt     *FitOptions
	steps   []float64 // J, over which W is differentiated
	slopes  *slopes   // the latest
	probe   []float64 // N normal numbers, or pairs of them, which W is multiplied with to see how it changes
	columns int       // of these
	best    *fitted
	runs    []MatrixRun
	moves   [][2][]float64 // steps of θ, and what they took from the slope, times the noise
	around  bool
	size    float64 // of the latest step

	// integrated is set where messages did not converge though W was nearly right: signals are then integrated out. tried is set where that was asked.
	integrated, tried bool
	begun             time.Time
}

// FitMatrix finds the θ under which the readings are likeliest, and solves the problem with W(θ); W of the problem is not used. All runs
// but the last learn the noise, since a wrong W looks like noise, and start from the signals of the likeliest so far; each is one of the
// algorithm of the first. It returns the best so far with the error of a context that ends.
//
// The error names what is wrong with the parameters, or with what family returns.
func FitMatrix(ctx context.Context, family MatrixFamily, p *Problem, opt *FitOptions) (*MatrixFit, error) {
	f := &matrixFit{ctx: ctx, family: family, p: p, opt: opt, begun: time.Now()}
	if opt == nil || len(opt.Start) == 0 {
		return nil, errors.New("a fit of the matrix needs a start: one number for each parameter")
	}
	if len(opt.SensorDerivatives) > 0 {
		return nil, errors.New("parameters of every sensor are found by Solve, which is not part of a fit of the matrix")
	}
	for j, v := range opt.Start {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return nil, fmt.Errorf("%s starts at %g, expected a finite number", f.name(j), v)
		}
	}
	if opt.Tol < 0 || opt.Covariance == solver.Full || opt.Algorithm == solver.Evidence || opt.Joint == solver.JointOn {
		return nil, errors.New("a matrix is fitted by runs to a fixed point, of signals by themselves: leave out bare iterations, full covariances, the evidence of Gaussian signals, and signals that belong together")
	}
	if err := f.findSteps(); err != nil {
		return nil, err
	}
	cov, err := f.search()
	if err != nil {
		return f.interrupted(cov), err
	}
	return f.finish(cov)
}

func (f *matrixFit) name(j int) string {
	if j < len(f.opt.Names) {
		return f.opt.Names[j]
	}
	return fmt.Sprintf("theta %d", j)
}

// matrix is W(θ), checked.
func (f *matrixFit) matrix(theta []float64) (operator.Operator, error) {
	w, err := f.family(slices.Clone(theta))
	if err != nil {
		return nil, fmt.Errorf("W at theta = %.6g: %w", theta, err)
	}
	if w == nil {
		return nil, fmt.Errorf("W at theta = %.6g: there is none", theta)
	}
	return w, nil
}

// beside is θ with parameter j moved.
func beside(theta []float64, j int, by float64) []float64 {
	moved := slices.Clone(theta)
	moved[j] += by
	return moved
}

// findSteps finds over which differences of θ the products of W with normal random numbers change by the part differ.
func (f *matrixFit) findSteps() error {
	w, err := f.matrix(f.opt.Start)
	if err != nil {
		return err
	}
	m, n := w.Dims()
	f.columns = 1
	if operator.IsComplex(w) {
		f.columns = 2
	}
	rng := rand.New(rand.NewPCG(40, 0))
	f.probe = make([]float64, f.columns*n)
	for i := range f.probe {
		f.probe[i] = rng.NormFloat64()
	}
	from, err := f.probed(w)
	if err != nil {
		return err
	}
	f.steps = make([]float64, len(f.opt.Start))
	f.slopes = &slopes{theta: f.opt.Start, steps: f.steps, w: w, at: from}
	for j, start := range f.opt.Start {
		step := 1e-6 * max(1, math.Abs(start))
		for tries := 0; ; tries++ {
			moved, err := f.matrix(beside(f.opt.Start, j, step))
			if err != nil {
				return err
			}
			if rows, cols := moved.Dims(); rows != m || cols != n {
				return fmt.Errorf("W is %d×%d at the start and %d×%d beside it: its size depends on %s", m, n, rows, cols, f.name(j))
			}
			to, err := f.probed(moved)
			if err != nil {
				return err
			}
			change := math.Sqrt(squareDistance(from, to) / squareDistance(from, make([]float64, len(from))))
			if change > 0.01*differ && change < 10*differ {
				f.steps[j] = step
				difference(to, from, step)
				f.slopes.beside, f.slopes.along = append(f.slopes.beside, moved), append(f.slopes.along, to)
				break
			}
			if tries == 30 || math.IsNaN(change) {
				return fmt.Errorf("%s: W does not change with it, or jumps: it moves by %.3g of its size where the parameter moves by %.3g", f.name(j), change, step)
			}
			step *= min(max(differ/max(change, 1e-300), 1e-3), 1e3)
		}
	}
	return nil
}

func squareDistance(a, b []float64) (total float64) {
	for i, v := range a {
		total += (v - b[i]) * (v - b[i])
	}
	return total
}

// slopes are the derivatives of W by its parameters, as differences from W to matrices beside it.
type slopes struct {
	theta  []float64           // J
	steps  []float64           // J, from there to matrices beside it
	beside []operator.Operator // J, W with one parameter moved by its step
	w      operator.Operator   // at theta
	at     []float64           // W(θ) times the probe
	along  [][]float64         // J, what each parameter does to that, per unit
}

// slopesAt differentiates W at θ, whose product with the probe is at: along one parameter to where it was differentiated before, which costs no matrix.
func (f *matrixFit) slopesAt(theta []float64, w operator.Operator, at []float64) (*slopes, error) {
	d := &slopes{theta: slices.Clone(theta), steps: f.steps, w: w, at: at}
	if last := f.slopes; len(theta) == 1 {
		h := last.theta[0] - theta[0]
		along := slices.Clone(last.at)
		difference(along, at, h)
		d.steps, d.beside, d.along = []float64{h}, []operator.Operator{last.w}, [][]float64{along}
		return d, nil
	}
	for j, h := range f.steps {
		moved, err := f.matrix(beside(theta, j, h))
		if err != nil {
			return nil, err
		}
		along, err := f.probed(moved)
		if err != nil {
			return nil, err
		}
		difference(along, d.at, h)
		d.beside, d.along = append(d.beside, moved), append(d.along, along)
	}
	return d, nil
}

// probed is w times normal random numbers.
func (f *matrixFit) probed(w operator.Operator) ([]float64, error) {
	m, _ := w.Dims()
	u := make([]float64, m*f.columns)
	return u, operator.Mul(u, w, f.probe)
}

// predicts reports whether derivatives give what W became at θ, up to the part bent of its change.
func (d *slopes) predicts(theta, probed []float64) bool {
	predicted := slices.Clone(d.at)
	for j, along := range d.along {
		for i, v := range along {
			predicted[i] += (theta[j] - d.theta[j]) * v
		}
	}
	return squareDistance(probed, predicted) <= bent*bent*squareDistance(probed, d.at)
}

// directions are the derivatives of W, whose value at θ is w. Those of another place serve as long as they predict what W became: they lead
// to the maximum, and the evidence itself says where that is.
func (f *matrixFit) directions(theta []float64, w operator.Operator) ([]Direction, error) {
	probed, err := f.probed(w)
	if err != nil {
		return nil, err
	}
	if !f.slopes.predicts(theta, probed) {
		if f.slopes, err = f.slopesAt(theta, w, probed); err != nil {
			return nil, err
		}
	}
	list := make([]Direction, len(theta))
	low := f.slopes.w
	for j, h := range f.slopes.steps {
		high := f.slopes.beside[j]
		list[j] = Direction{Name: f.name(j), times: func(u, x []float64) error {
			return between(u, h, x, low, high, operator.Mul)
		}, squares: func(dv, c []float64) error {
			if !operator.HasSquares(high) {
				return nil
			}
			return between(dv, h, c, low, high, mulSquares)
		}}
	}
	return list, nil
}

// between sets u to what a product of high has beyond that of low, per unit of h.
func between(u []float64, h float64, x []float64, low, high operator.Operator, product func(u []float64, w operator.Operator, x []float64) error) error {
	other := make([]float64, len(u))
	if err := errors.Join(product(u, high, x), product(other, low, x)); err != nil {
		return err
	}
	difference(u, other, h)
	return nil
}

func difference(high, low []float64, h float64) {
	for i, v := range low {
		high[i] = (high[i] - v) / h
	}
}

// mulSquares sets dst (M×P) to W² c, with c P×N.
func mulSquares(dst []float64, w operator.Operator, c []float64) error {
	_, n := w.Dims()
	p := len(c) / n
	sweep, err := w.NewSweep(p, p, 1)
	if err != nil {
		return err
	}
	return sweep.Run(make([]float64, len(c)), make([]float64, len(c)), make([]float64, len(c)), c, func(first int, _, v, g, d []float64) {
		copy(dst[first*p:], v)
		clear(g)
		clear(d)
	})
}

// at is a run at θ, from the signals and with the model of another one, or nil.
func (f *matrixFit) at(theta []float64, from *fitted) (*fitted, error) {
	most := f.opt.MostRuns
	if most == 0 {
		most = 40 + 20*len(theta)
	}
	if len(f.runs) >= most {
		return nil, fmt.Errorf("no maximum of the evidence in %d runs; the latest is at theta = %.6g", most, theta)
	}
	w := f.slopes.w
	if from != nil {
		var err error
		if w, err = f.matrix(theta); err != nil {
			return nil, err
		}
	}
	p, opt := f.from(from)
	p.W = w
	switch { // where W is still wrong a run takes long to converge, and where is not needed
	case f.integrated:
	case from == nil:
		opt.MaxIter = firstRough
	case f.size > roughly:
		opt.MaxIter = mostRough
	}
	opt.Directions = nil
	if !f.around { // where the evidence alone is looked at
		var err error
		if opt.Directions, err = f.directions(theta, w); err != nil {
			return nil, err
		}
	}
	res, err := Solve(f.ctx, p, opt)
	if err != nil && res != nil && f.best == nil {
		f.best = &fitted{theta: slices.Clone(theta), w: w, res: res} // which was cut short
	}
	if err != nil {
		return nil, err
	}
	run := MatrixRun{Number: len(f.runs) + 1, Theta: slices.Clone(theta), LogEvidence: (&try{problem: p, res: res}).score(), Status: res.Status, Iterations: res.Iterations, Around: f.around, From: f.size}
	f.runs = append(f.runs, run)
	if f.opt.Tell != nil {
		f.opt.Tell(run)
	}
	found := &fitted{theta: slices.Clone(theta), w: w, res: res}
	if res.scores == nil && !f.around || res.Status == Diverged || math.IsInf(run.LogEvidence, 0) {
		return nil, &noFit{theta, res}
	}
	if f.best == nil || f.evidence(found) > f.evidence(f.best) {
		f.best = found
	}
	return found, nil
}

// noFit is the error of a run from which nothing is to be had.
type noFit struct {
	theta []float64
	res   *Result
}

func (e *noFit) Error() string {
	return fmt.Sprintf("the run at theta = %.6g ended without an answer (%v: %s): start nearer", e.theta, e.res.Status, e.res.Reason)
}

// from is a run of the search.
func (f *matrixFit) from(start *fitted) (*Problem, *Options) {
	p, opt := *f.p, f.opt.Options
	opt.Retry, opt.Joint, opt.Observe = false, solver.JointOff, nil
	opt.Learn.PhasesOrFree = false
	if _, is := channel.InOrder(p.Channel).(channel.Noisy); is && p.NoiseVar == nil {
		opt.Learn.Noise = true
	}
	if start == nil {
		return &p, &opt
	}
	if opt.Algorithm = start.res.Plan.Algorithm; f.integrated {
		opt.Algorithm = solver.Evidence
	}
	f.continued(&p, &opt, start)
	return &p, &opt
}

// continued has a run begin where another one ended, with the model that it learned.
func (f *matrixFit) continued(p *Problem, opt *Options, start *fitted) {
	opt.from = start.res
	if learns := prior.LearnerOf(p.Prior) != nil; reflect.TypeOf(start.res.Prior) == reflect.TypeOf(p.Prior) && learns == (prior.LearnerOf(start.res.Prior) != nil) {
		p.Prior = start.res.Prior
	}
	noisy, is := channel.InOrder(p.Channel).(channel.Noisy)
	if !is || p.NoiseVar != nil || !opt.Learn.Noise {
		return
	}
	learned := channel.InOrder(start.res.Channel)
	working := noisy.WithNoise(channel.NoiseOf(learned))
	if known, ok := working.(channel.Calibrating); ok && opt.Learn.Range {
		working = known.WithCalibration(channel.CalibrationOf(learned)).(channel.Noisy)
	}
	p.Channel = working
	if c, ok := f.p.Channel.(channel.Contaminated); ok {
		p.Channel = c.WithInOrder(working)
	}
}

func (f *matrixFit) evidence(a *fitted) float64 { return (&try{problem: f.p, res: a.res}).score() }

// noise is that of a run, in whose units slopes of several runs compare: residuals of a wrong W are learned as noise.
func (a *fitted) noise() float64 {
	if noise := channel.NoiseOf(channel.InOrder(a.res.Channel)); noise > 0 {
		return noise
	}
	return 1
}

// curvature is minus the second derivative of the evidence, as far as the information and earlier steps determine it (BFGS).
func (f *matrixFit) curvature(a *fitted) *mat.SymDense {
	n := len(a.theta)
	b := mat.NewSymDense(n, nil)
	b.ScaleSym(a.noise(), a.res.scores.information)
	for _, m := range f.moves[max(0, len(f.moves)-n-1):] {
		step, fall := mat.NewVecDense(n, m[0]), mat.NewVecDense(n, m[1])
		var bs mat.VecDense
		bs.MulVec(b, step)
		along, expected := mat.Dot(step, fall), mat.Dot(step, &bs)
		if !(along > leastCurved*expected) {
			continue
		}
		b.SymRankOne(b, -1/expected, &bs)
		b.SymRankOne(b, 1/along, fall)
	}
	b.ScaleSym(1/a.noise(), b)
	return b
}

// leastCurved is the part of the expected curvature below which a step says nothing of it.
const leastCurved = 0.02

// search is the maximum, with the covariance of θ.
func (f *matrixFit) search() (*mat.SymDense, error) {
	a, err := f.at(f.opt.Start, nil)
	if err != nil {
		return nil, err
	}
	n := len(a.theta)
	for {
		if a, err = f.integrate(a); err != nil {
			return nil, err
		}
		var chol mat.Cholesky
		curvature := f.curvature(a)
		if !chol.Factorize(curvature) {
			return nil, fmt.Errorf("the readings do not determine all of %d parameters: two of them do the same to W, or nothing", n)
		}
		var step mat.VecDense
		if err := chol.SolveVecTo(&step, mat.NewVecDense(n, slices.Clone(a.res.scores.slope))); err != nil && !isCondition(err) {
			return nil, err
		}
		f.size = math.Sqrt(max(0, mat.Inner(&step, curvature, &step)))
		if f.size < nearEnough {
			return f.lookAround(a, curvature)
		}
		if len(f.moves) > 0 { // far from the maximum slopes hardly change, so that steps would be too long
			last := mat.NewVecDense(n, f.moves[len(f.moves)-1][0])
			length := func(v mat.Vector) float64 { return math.Sqrt(mat.Inner(v, a.res.scores.information, v)) }
			if shrink := longer * length(last) / length(&step); shrink < 1 {
				step.ScaleVec(shrink, &step)
			}
		}
		next, err := f.advance(a, step.RawVector().Data)
		if err != nil {
			return nil, err // far from the maximum curvature says nothing of how far that is
		}
		if next == nil { // uphill is nowhere
			return f.lookAround(a, curvature)
		}
		a = next
	}
}

// integrate is a run with signals integrated out in place of a, where that did not converge near the maximum: of runs that wander the evidence does not
// say where that is. Such runs take longer, and their first one costs no more than a few of those.
func (f *matrixFit) integrate(a *fitted) (*fitted, error) {
	if f.tried || f.opt.Algorithm != solver.AutoAlgorithm || len(f.runs) < 2 || f.size > roughly || a.res.Status != NotConverged {
		return a, nil
	}
	f.tried, f.integrated = true, true
	before, moves := f.best, f.moves
	f.best, f.moves = nil, nil
	b, err := f.at(a.theta, a)
	if f.ctx.Err() != nil {
		return a, err
	}
	if err != nil || b.res.Status != Converged { // or they cannot be, of this W
		f.integrated, f.best, f.moves = false, before, moves
		return a, nil
	}
	return b, nil
}

func isCondition(err error) bool {
	_, is := errors.AsType[mat.Condition](err)
	return is
}

// advance goes a step, or a part of it, along which the evidence rises; nil where there is none.
func (f *matrixFit) advance(a *fitted, step []float64) (*fitted, error) {
	part := 1.0
	for range retreats {
		theta := slices.Clone(a.theta)
		for j, v := range step {
			theta[j] += part * v
		}
		next, err := f.at(theta, a)
		if _, none := errors.AsType[*noFit](err); none {
			part *= 0.4
			continue
		}
		if err != nil {
			return nil, err
		}
		move, fall := make([]float64, len(step)), make([]float64, len(step))
		for j := range step {
			move[j] = theta[j] - a.theta[j]
			fall[j] = a.res.scores.slope[j]*a.noise() - next.res.scores.slope[j]*next.noise()
		}
		if f.evidence(next) > f.evidence(a) {
			f.moves = append(f.moves, [2][]float64{move, fall})
			return next, nil
		}
		if part*f.size < nearEnough {
			break
		}
		part *= 0.4
	}
	return nil, nil
}

// lookAround fits a paraboloid to the evidence at points around the centre a, in coordinates in which its curvature is thought to be one, and
// goes on from where that has its maximum until it is near the centre. It leaves the centre as the best.
func (f *matrixFit) lookAround(a *fitted, curvature *mat.SymDense) (*mat.SymDense, error) {
	f.around = true
	n := len(a.theta)
	for round := 1; ; round++ {
		axes, err := whitening(curvature)
		if err != nil {
			return nil, err
		}
		top, inner, err := f.paraboloid(a, axes)
		if err != nil {
			return f.inverse(curvature), err
		}
		var chol mat.Cholesky
		good := chol.Factorize(inner)
		for j := range n {
			good = good && inner.At(j, j) > 1./9 && inner.At(j, j) < 9
		}
		curvature = outward(axes, inner, good)
		if !good {
			if round == rounds {
				if a.res.Status != Converged {
					return nil, fmt.Errorf("the evidence around theta = %.6g has no maximum that could be found, since runs there do not converge: %s", a.theta, a.res.Reason)
				}
				return nil, fmt.Errorf("the evidence around theta = %.6g has no maximum that could be found: the readings do not identify these parameters", a.theta)
			}
			if f.best != a {
				a = f.best
			}
			continue
		}
		var at, step mat.VecDense
		if err := chol.SolveVecTo(&at, top); err != nil && !isCondition(err) {
			return nil, err
		}
		f.size = mat.Norm(&at, 2)
		if shrink := 2 * around / f.size; shrink < 1 {
			at.ScaleVec(shrink, &at)
		}
		step.MulVec(axes, &at)
		theta := slices.Clone(a.theta)
		for j := range theta {
			theta[j] += step.AtVec(j)
		}
		if f.size <= farFrom || round == rounds {
			w, err := f.matrix(theta)
			if err != nil {
				return nil, err
			}
			f.best = &fitted{theta: theta, w: w, res: a.res}
			return f.inverse(curvature), nil
		}
		if a, err = f.at(theta, a); err != nil {
			return f.inverse(curvature), err
		}
	}
}

// whitening are the axes (columns) along which a step of one lowers the evidence by one half.
func whitening(curvature *mat.SymDense) (*mat.Dense, error) {
	var chol mat.Cholesky
	if !chol.Factorize(curvature) {
		return nil, errors.New("the readings do not determine all of the parameters: two of them do the same to W, or nothing")
	}
	n := curvature.SymmetricDim()
	var upper mat.TriDense
	chol.UTo(&upper)
	axes, identity := mat.NewDense(n, n, nil), mat.NewDense(n, n, nil)
	for j := range n {
		identity.Set(j, j, 1)
	}
	if err := axes.Solve(&upper, identity); err != nil && !isCondition(err) {
		return nil, err
	}
	return axes, nil
}

// outward is a curvature in θ, of one along axes. Where that is no maximum, axes are taken for too short, or for too long where it is strongly curved.
func outward(axes *mat.Dense, inner *mat.SymDense, good bool) *mat.SymDense {
	n := inner.SymmetricDim()
	use := mat.NewSymDense(n, nil)
	use.CopySym(inner)
	if !good {
		use = mat.NewSymDense(n, nil)
		for j := range n {
			use.SetSym(j, j, min(max(inner.At(j, j), 1./16), 100))
		}
	}
	var back, product, result mat.Dense
	if err := back.Inverse(axes); err != nil && !isCondition(err) {
		return use
	}
	product.Mul(use, &back)
	result.Mul(back.T(), &product)
	sym := mat.NewSymDense(n, nil)
	for i := range n {
		for j := range i + 1 {
			sym.SetSym(i, j, 0.5*(result.At(i, j)+result.At(j, i)))
		}
	}
	return sym
}

// paraboloid is the slope and minus the curvature of the evidence at a in coordinates along axes: from pairs of points on each, and one
// between each two.
func (f *matrixFit) paraboloid(a *fitted, axes *mat.Dense) (slope *mat.VecDense, curvature *mat.SymDense, err error) {
	n := len(a.theta)
	value := func(coordinates map[int]float64) (float64, error) {
		theta := slices.Clone(a.theta)
		for axis, at := range coordinates {
			for j := range theta {
				theta[j] += at * axes.At(j, axis)
			}
		}
		b, err := f.at(theta, a)
		if err != nil {
			return 0, err
		}
		return f.evidence(b), nil
	}
	centre := f.evidence(a)
	slope, curvature = mat.NewVecDense(n, nil), mat.NewSymDense(n, nil)
	for j := range n {
		high, err := value(map[int]float64{j: around})
		if err != nil {
			return nil, nil, err
		}
		low, err := value(map[int]float64{j: -around})
		if err != nil {
			return nil, nil, err
		}
		slope.SetVec(j, (high-low)/(2*around))
		curvature.SetSym(j, j, (2*centre-high-low)/(around*around))
	}
	for i := range n {
		for j := range i {
			both, err := value(map[int]float64{i: around, j: around})
			if err != nil {
				return nil, nil, err
			}
			plain := centre + around*(slope.AtVec(i)+slope.AtVec(j)) - 0.5*around*around*(curvature.At(i, i)+curvature.At(j, j))
			curvature.SetSym(i, j, (plain-both)/(around*around))
		}
	}
	return slope, curvature, nil
}

// inverse is the covariance of θ; nil where the curvature is none of a maximum.
func (f *matrixFit) inverse(curvature *mat.SymDense) *mat.SymDense {
	var chol mat.Cholesky
	if curvature == nil || !chol.Factorize(curvature) {
		return nil
	}
	cov := mat.NewSymDense(curvature.SymmetricDim(), nil)
	if err := chol.InverseTo(cov); err != nil && !isCondition(err) {
		return nil
	}
	return cov
}

// finish solves the problem as it was asked, with W at the maximum.
func (f *matrixFit) finish(cov *mat.SymDense) (*MatrixFit, error) {
	p, opt := *f.p, f.opt.Options
	p.W = f.best.w
	f.continued(&p, &opt, f.best)
	res, err := Solve(f.ctx, &p, &opt)
	if res == nil {
		return f.interrupted(cov), err
	}
	fit := f.fit(cov)
	fit.Result, res.Wall = res, time.Since(f.begun)
	return fit, err
}

func (f *matrixFit) fit(cov *mat.SymDense) *MatrixFit {
	fit := &MatrixFit{Result: f.best.res, Theta: f.best.theta, W: f.best.w, Runs: f.runs, ThetaCov: cov}
	for j := range fit.Theta {
		if cov == nil {
			break
		}
		fit.ThetaSD = append(fit.ThetaSD, math.Sqrt(cov.At(j, j)))
	}
	return fit
}

// interrupted is what there is of a fit that was ended; nil where no run was.
func (f *matrixFit) interrupted(cov *mat.SymDense) *MatrixFit {
	if f.best == nil {
		return nil
	}
	fit := f.fit(cov)
	res := *fit.Result
	res.Status, res.Reason = Cancelled, fmt.Sprintf("the fit of the matrix was ended in run %d; theta is the likeliest so far", len(f.runs)+1)
	fit.Result, res.Wall = &res, time.Since(f.begun)
	return fit
}
