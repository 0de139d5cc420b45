package diagnosis

import (
	"math"
	"math/rand/v2"

	"github.com/calamp/calamp/operator"
	"github.com/calamp/calamp/prior"
)

const (
	// nonZero is the part of a signal's own variance below which the posterior variance of an
	// entry leaves no doubt that it is not zero, where it is more than so many standard deviations
	// from it.
	nonZero    = 0.1
	fromZero   = 6
	flatSteps  = 60   // of conjugate gradients
	flatProbes = 3    // random signs
	flatEnough = 1e-2 // relative change at which they end

	// falselySure is how many times the variances stated those of the entries that are not zero must
	// be at least, by linear algebra, for the result to be rejected. Where vector AMP
	// was right they were less than 1.7 times.
	falselySure = 4
)

// flatness compares the posterior variances of vector AMP, which are one number a signal for
// all entries that are not zero, with what linear algebra says of those entries when their
// places and the gains are known, which no method can know better:
//
//	tr (W_Aᵀ W_A/Δ + 1/v)⁻¹ ≤ Σ C.
//
// Where a few columns of W are nearly dependent, as those of a transform can be, a combination of
// entries reaches no reading, and vector AMP, which takes errors for spread evenly, is falsely
// sure of it. It returns the largest ratio of the two over all signals, from below: the
// trace is estimated with random signs z as zᵀ(…)⁻¹z, by conjugate gradients, which come from
// below, too.
func (r *Run) flatness() float64 {
	sparse, ok := r.model().Prior.(prior.Sparse)
	noise := r.noise()
	if !r.vector() || !ok || !(noise > 0) || r.Solver.Iterations == 0 {
		return 0
	}
	own := sparse.Variance() / max(sparse.NonZero(), math.SmallestNonzeroFloat64)
	products, err := operator.NewLinear(r.state.W, r.state.P, r.state.Threads)
	if err != nil {
		return 0
	}
	f := &flat{Run: r, products: products, noise: noise, own: own}
	f.choose()
	if slab, ok := r.model().Prior.(prior.Slabbed); ok { // which is about its mean, where that is known not to be zero
		_, v := slab.Slab()
		f.own = min(own, v)
	}
	rng := rand.New(rand.NewPCG(3, 0))
	total := make([]float64, r.state.P)
	for range flatProbes {
		traces, err := f.traces(rng)
		if err != nil {
			return 0
		}
		for k, t := range traces {
			total[k] += t / flatProbes
		}
	}
	r.oracle = total
	worst := 0.0
	for k, t := range total {
		worst = max(worst, t/max(r.state.SumC[k], math.SmallestNonzeroFloat64))
	}
	return worst
}

// flat is the linear algebra of the entries that are not zero.
type flat struct {
	*Run
	products   operator.Linear
	noise, own float64
	active     []bool    // P×N
	z          []float64 // M×P, workspace
}

func (f *flat) choose() {
	s := f.state
	f.active, f.z = make([]bool, len(s.X)), make([]float64, len(s.Y))
	known := func(square, variance, own float64) bool {
		return variance < nonZero*own && square > fromZero*fromZero*variance
	}
	if s.Columns() == 1 {
		for i, x := range s.X {
			f.active[i] = known(x*x, s.C[i], f.own)
		}
		return
	}
	for k := 0; k < s.P; k += 2 { // both parts, or none
		for i := range s.N {
			re, im := k*s.N+i, (k+1)*s.N+i
			f.active[re] = known(s.X[re]*s.X[re]+s.X[im]*s.X[im], s.C[re]+s.C[im], 2*f.own)
			f.active[im] = f.active[re]
		}
	}
}

// multiply sets out to (W_AᵀW_A/Δ + 1/v) u, of readings that count.
func (f *flat) multiply(out, u []float64) error {
	s := f.state
	if err := f.products.Forward(f.z, u); err != nil {
		return err
	}
	for j := range f.z {
		if mu := s.SensorOf(j); math.IsNaN(s.Y[j]) || f.isBroken(mu) {
			f.z[j] = 0
		}
		f.z[j] /= f.noise
	}
	if err := f.products.Backward(out, f.z); err != nil {
		return err
	}
	for i, active := range f.active {
		out[i] += u[i] / f.own
		if !active {
			out[i] = 0
		}
	}
	return nil
}

// traces estimates those of the inverse, one a column, with one probe.
func (f *flat) traces(rng *rand.Rand) ([]float64, error) {
	s := f.state
	residual := make([]float64, len(s.X)) // at first the probe
	for i, active := range f.active {
		if active {
			residual[i] = float64(1 - 2*rng.IntN(2))
		}
	}
	direction := append([]float64(nil), residual...)
	image, traces := make([]float64, len(s.X)), make([]float64, s.P)
	left := make([]float64, s.P) // ‖residual‖²
	columns := s.Columns()
	for k := 0; k < s.P; k += columns {
		left[k] = f.dot(residual, residual, k)
	}
	for range flatSteps {
		if err := f.multiply(image, direction); err != nil {
			return nil, err
		}
		done := true
		for k := 0; k < s.P; k += columns {
			from, to := k*s.N, (k+columns)*s.N
			curvature := f.dot(direction, image, k)
			if !(curvature > 0) || !(left[k] > 0) {
				continue
			}
			step := left[k] / curvature
			// zᵀu grows by step times ‖residual‖² in every step (Hestenes and Stiefel).
			gain := step * left[k]
			traces[k] += gain
			done = done && gain <= flatEnough*traces[k]
			before := left[k]
			for i := from; i < to; i++ {
				residual[i] -= step * image[i]
			}
			left[k] = f.dot(residual, residual, k)
			for i := from; i < to; i++ {
				direction[i] = residual[i] + left[k]/before*direction[i]
			}
		}
		if done {
			break
		}
	}
	for k := range traces { // each column has its part
		traces[k] = traces[k-k%columns]
	}
	for k := range traces {
		traces[k] /= float64(columns)
	}
	return traces, nil
}

// dot is over all columns of the signal that begins with column k: W mixes both parts of complex ones.
func (f *flat) dot(a, b []float64, k int) float64 {
	total := 0.0
	for i := k * f.state.N; i < (k+f.state.Columns())*f.state.N; i++ {
		total += a[i] * b[i]
	}
	return total
}
