package amp

import (
	"context"
	"math"
	"slices"

	"github.com/calamp/calamp/internal/cholesky"
	"github.com/calamp/calamp/internal/parallel"
	"github.com/calamp/calamp/operator"
)

// gradients is the linear half by conjugate gradients (M. R. Hestenes, E. Stiefel, 1952), for a W that
// cannot be decomposed: on
//
//	(γ + τ W̃ᵀDW̃) x = γr + τ W̃ᵀDq,
//
// D having ones where a reading counts, one linear sweep a step for all signals, from the solution
// of the iteration before. A mean is good enough when what it lacks is little beside what signals
// still move. Traces are sums over the density of the eigenvalues ([operator.DensityOf]), which is made
// once for each set of readings that count.
//
// Readings count or do not: a weight between is that of [decomposed] alone.
type gradients struct {
	*lmmse
	sweep   operator.Sweep
	inverse []float64       // M, one over the norms of the rows
	ctx     context.Context // of the run: a solution is many products

	x, residual, direction []float64           // P×N
	image                  []float64           // P×N, W̃ᵀDW̃ times the direction
	along                  []float64           // M×P, W̃ times the direction
	active                 []bool              // P
	gains                  [][lookBack]float64 // P, by how much the latest steps made the squared error in standard deviations less
	steps                  int                 // of the latest solution
	densities              []densityOf
	squares                []float64 // M, of the norms of rows of W; nil where they are estimates
	probes                 []operator.Probes
	known                  bool // x is a solution
}

// densityOf is that of the rows that a signal's readings have.
type densityOf struct {
	rows    []bool
	density *operator.Density
}

const (
	// A mean's error, in standard deviations of what it is the mean of, is below
	// stepsWithin of what signals moved in the latest iteration in theirs, and never need be
	// below stepsLeast.
	stepsWithin = 1e-2
	stepsLeast  = 1e-9

	// lookBack is over how many steps that error is seen to have shrunk.
	lookBack = 4

	// mostSteps bounds those of one solution. They grow with the root of the condition of the equations, τσ²/γ.
	mostSteps = 1000

	// Of a density: probesTimesRows entries in all make traces right to a part in 1000 or so where the noise hides little
	// of the signals. mostProbeSpace bounds the memory, in numbers. Of no more than fewRows traces are exact, and lanczosSteps
	// tell an eigenvalue 1e-4 of the largest from zero.
	fewRows         = 512
	probesTimesRows = 1600000
	fewTraces       = 8
	mostTraces      = 256
	lanczosSteps    = 500
	mostProbeSpace  = 1 << 25
)

// traceLevels are the steps of the levels of probes, and what part of the probes they have: with θ a tenth of the mean
// eigenvalue ten steps leave 0.03 of a trace's variation to those that go on (independent entries) to 0.4 (condition 10⁴), thirty at most a tenth.
var traceLevels = []struct{ steps, every int }{{10, 1}, {30, 4}, {lanczosSteps, 16}}

func newGradients(l *lmmse) *gradients {
	g := &gradients{lmmse: l, active: make([]bool, l.p), along: l.work}
	for _, v := range []*[]float64{&g.change, &g.x, &g.residual, &g.direction, &g.image} {
		*v = make([]float64, l.p*l.n)
	}
	g.gains = make([][lookBack]float64, l.p)
	many := min(probesTimesRows/l.m, mostTraces, mostProbeSpace/l.n)
	for _, level := range traceLevels {
		g.probes = append(g.probes, operator.Probes{Count: max(fewTraces, many/level.every), Steps: level.steps})
	}
	if l.m <= fewRows {
		g.probes = []operator.Probes{{Count: l.m, Steps: lanczosSteps}}
	}
	return g
}

// prepare implements [linearHalf].
func (g *gradients) prepare(ctx context.Context) (err error) {
	if g.ctx = ctx; g.inverse != nil {
		return nil
	}
	if g.norms, err = operator.RowSquares(g.w, g.threads); err != nil {
		return err
	}
	inverse := make([]float64, g.m)
	if operator.HasSquares(g.w) {
		g.squares = slices.Clone(g.norms)
	}
	for mu, square := range g.norms {
		g.norms[mu] = math.Sqrt(square)
		if square > 0 {
			inverse[mu] = 1 / g.norms[mu]
		}
	}
	if g.products, err = operator.NewLinear(g.w, g.p, g.threads); err != nil {
		return err
	}
	if g.sweep, err = g.w.NewSweep(g.p, 0, g.threads); err == nil {
		g.inverse = inverse
	}
	return err
}

// begin implements [linearHalf].
func (g *gradients) begin() { g.known = false }

// solve implements [linearHalf].
func (g *gradients) solve() error {
	if !g.known {
		copy(g.x, g.r)
		g.known = true
	}
	if err := g.start(); err != nil {
		return err
	}
	for g.steps = 0; g.steps < mostSteps && slices.Contains(g.active, true); g.steps++ {
		if err := g.ctx.Err(); err != nil {
			return err
		}
		if err := g.multiply(); err != nil {
			return err
		}
		parallel.Run(g.p, g.threads, g.step)
	}
	return g.finish()
}

// start finds what the equations lack at x, the first direction.
func (g *gradients) start() error {
	err := g.sweep.Run(g.residual, nil, g.x, nil, func(first int, z, _, back, _ []float64) {
		for i, v := range z {
			j := first*g.p + i
			scale := g.inverse[j/g.p]
			g.z[j] = scale * v
			back[i] = 0
			if g.counts(j) {
				back[i] = scale * g.tau[j%g.p] * (g.q[j] - g.z[j])
			}
		}
	})
	if err != nil {
		return err
	}
	for k := range g.p {
		for i := k * g.n; i < (k+1)*g.n; i++ {
			g.residual[i] += g.gamma[k] * (g.r[i] - g.x[i])
		}
		for i := range g.gains[k] {
			g.gains[k][i] = math.Inf(1)
		}
		g.active[k] = !g.enough(k)
	}
	copy(g.direction, g.residual)
	return nil
}

func (g *gradients) counts(j int) bool { return g.weight[j] >= whole }

// enough reports whether x is good enough for signal k. With A the matrix and ρ the residual, the mean squared
// error in standard deviations is ρᵀA⁻¹ρ/N, at most ρ²/(γN), and a step of the length α makes ρᵀA⁻¹ρ less by αρ²: what
// the latest ones did is what was lacking before them, to within what is lacking still (Z. Strakoš, P. Tichý, "On error estimation in the
// conjugate gradient method and why it works in finite precision computations", 2002).
func (g *gradients) enough(k int) bool {
	rho := g.residual[k*g.n : (k+1)*g.n]
	square := cholesky.Dot(rho, rho)
	g.missed[k] = math.Sqrt(square) / g.gamma[k]
	within := min(max(stepsWithin*g.moved[k], stepsLeast), stepsWithin)
	enough := within * within * float64(g.n)
	return !(square > enough*g.gamma[k]) || sum(g.gains[k][:]) <= enough
}

// multiply sets the image of the direction.
func (g *gradients) multiply() error {
	return g.sweep.Run(g.image, nil, g.direction, nil, func(first int, z, _, back, _ []float64) {
		for i, v := range z {
			j := first*g.p + i
			scale := g.inverse[j/g.p]
			g.along[j] = scale * v
			back[i] = 0
			if g.counts(j) {
				back[i] = scale * g.along[j]
			}
		}
	})
}

// step goes along the direction of signal k, and turns it.
func (g *gradients) step(k int) {
	if !g.active[k] {
		return
	}
	from, to := k*g.n, (k+1)*g.n
	x, rho, d, image := g.x[from:to], g.residual[from:to], g.direction[from:to], g.image[from:to]
	gamma, tau := g.gamma[k], g.tau[k]
	curvature := 0.0
	for i, v := range d {
		image[i] = gamma*v + tau*image[i]
		curvature += v * image[i]
	}
	square := cholesky.Dot(rho, rho)
	length := square / curvature
	if !(length > 0) { // beyond double precision
		g.active[k] = false
		return
	}
	for i, v := range d {
		x[i] += length * v
		rho[i] -= length * image[i]
	}
	for j := k; j < len(g.z); j += g.p {
		g.z[j] += length * g.along[j]
	}
	g.gains[k][g.steps%lookBack] = length * square
	g.active[k] = !g.enough(k)
	turn := cholesky.Dot(rho, rho) / square
	for i, r := range rho {
		d[i] = r + turn*d[i]
	}
}

// finish makes what is reported of the solution. At it τW̃ᵀh = γ(x - r), so that eᵀBe = eᵀh = h² + γ/τ (x - r)².
func (g *gradients) finish() error {
	clear(g.quadratics)
	for j, z := range g.z {
		g.h[j] = 0
		if g.counts(j) {
			g.h[j] = g.q[j] - z
		}
		g.quadratics[j%g.p] += g.h[j] * g.h[j]
	}
	for i, x := range g.x {
		k := i / g.n
		g.change[i] = x - g.r[i]
		g.quadratics[k] += g.gamma[k] / g.tau[k] * g.change[i] * g.change[i]
	}
	for k := range g.p {
		d, err := g.densityFor(k)
		if err != nil {
			return err
		}
		g.traces(k, d)
	}
	return nil
}

func (g *gradients) traces(k int, d *operator.Density) {
	gamma, tau := g.gamma[k], g.tau[k]
	trace := 0.0
	g.logDet[k], g.counted[k] = 0, 0
	for i, v := range d.Eigenvalues {
		trace += d.Weights[i] * (gamma / (gamma + tau*v))
		g.logDet[k] -= d.Weights[i] * math.Log1p(tau*v/gamma)
	}
	for j := k; j < len(g.weight); j += g.p {
		if g.counts(j) {
			g.counted[k]++
		}
	}
	rows, columns := g.counted[k]-float64(d.Dim), float64(g.n-d.Dim)
	g.left[k], g.free[k] = trace+rows, trace+columns
}

// densityFor is that of the readings of signal k that count. The latest of each signal are kept.
func (g *gradients) densityFor(k int) (*operator.Density, error) {
	rows := make([]bool, g.m)
	scale := make([]float64, g.m)
	for mu := range rows {
		if rows[mu] = g.counts(mu*g.p + k); rows[mu] {
			scale[mu] = g.inverse[mu]
		}
	}
	for _, d := range g.densities {
		if slices.Equal(d.rows, rows) {
			return d.density, nil
		}
	}
	density, err := operator.DensityOf(g.ctx, g.w, g.squares, scale, g.probes, g.threads)
	if err != nil {
		return nil, err
	}
	if len(g.densities) > g.p {
		g.densities = g.densities[1:]
	}
	g.densities = append(g.densities, densityOf{rows, density})
	return density, nil
}

// singular implements [linearHalf]: values whose squares are distributed as the eigenvalues.
func (g *gradients) singular() []float64 {
	if len(g.densities) == 0 {
		return nil
	}
	return g.densities[0].density.Singular()
}

// uncertainty implements [linearHalf]: the standard error of the trace F, relative to it and to what it leaves, is that of precisions.
func (g *gradients) uncertainty() float64 {
	most := 0.0
	for k := range g.p {
		d, err := g.densityFor(k)
		if err != nil || d.Dim == 0 {
			continue
		}
		theta := g.gamma[k] / g.tau[k]
		e := d.Error(func(v float64) float64 { return theta / (theta + v) })
		most = max(most, e/(float64(g.n)-g.free[k]), e/min(g.left[k], g.free[k]))
	}
	return most
}
