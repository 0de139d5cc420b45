package evolution

import (
	"context"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/prior"
)

// Spectrum is the limit of the singular values of W, with its rows scaled to norm 1 and
// singular vectors that are as good as random. The zero value is independent entries.
type Spectrum struct {
	kind   string
	kappa  float64
	values []float64 // singular values, as given
}

// Names of the spectra.
const (
	independent = "iid"
	orthogonal  = "orthogonal"
	condition   = "condition"
)

// UnmarshalText reads "iid", "orthogonal" (rows, or with more rows than columns these) or
// "condition:κ", singular values that are evenly spread in their logarithm over a factor κ.
func (s *Spectrum) UnmarshalText(text []byte) error {
	name, value, given := strings.Cut(string(text), ":")
	switch {
	case !given && (name == independent || name == orthogonal):
		*s = Spectrum{kind: name}
		return nil
	case given && name == condition:
		kappa, err := strconv.ParseFloat(value, 64)
		if err != nil || !(kappa >= 1) || math.IsInf(kappa, 1) {
			return fmt.Errorf("the condition number is a number of at least 1, found %q", value)
		}
		*s = Spectrum{kind: name, kappa: kappa}
		return nil
	}
	return fmt.Errorf("a spectrum is iid, orthogonal or condition:κ, found %q", text)
}

// String is what UnmarshalText reads.
func (s Spectrum) String() string {
	switch {
	case s.kind == "":
		return independent
	case s.kind == condition:
		return fmt.Sprintf("%s:%g", condition, s.kappa)
	}
	return s.kind
}

// Independent reports whether it is that of independent entries.
func (s Spectrum) Independent() bool { return s.kind == "" || s.kind == independent }

// SpectrumOf is that of given singular values, all min(M, N) of them, in any order and units.
func SpectrumOf(singular []float64) (Spectrum, error) {
	largest := 0.0
	for i, v := range singular {
		if !(v >= 0) || math.IsInf(v, 1) {
			return Spectrum{}, fmt.Errorf("singular value %d must be finite and not negative, found %g", i, v)
		}
		largest = max(largest, v)
	}
	if largest == 0 {
		return Spectrum{}, fmt.Errorf("all %d singular values are zero", len(singular))
	}
	scaled := make([]float64, len(singular))
	for i, v := range singular {
		scaled[i] = v / largest
	}
	return Spectrum{kind: "values", values: scaled}, nil
}

// nodesOf a continuous spectrum: the sums converge exponentially, or as the inverse square for
// a spectrum with ends.
const nodesOf = 2000

// eigenvalues are those of W̃W̃ᵀ that belong to both rows and columns, with weights that add up
// to min(1, 1/α); their mean over all rows is 1, the norm of a row.
func (s Spectrum) eigenvalues(alpha float64) (lambda, weight []float64) {
	share := min(1, 1/alpha)
	add := func(l, w float64) { lambda, weight = append(lambda, l), append(weight, w) }
	switch {
	case s.Independent():
		// Marchenko and Pastur: with λ = 1 + α + 2√α cos φ the density is (2/π) sin²φ/λ.
		for i := range nodesOf {
			sin, cos := math.Sincos((float64(i) + 0.5) * math.Pi / nodesOf)
			l := 1 + alpha + 2*math.Sqrt(alpha)*cos
			add(l, 2/(nodesOf*l)*sin*sin)
		}
	case s.kind == orthogonal:
		add(1, share)
	case s.kind == condition:
		for i := range nodesOf {
			add(math.Pow(s.kappa, -2*(float64(i)+0.5)/nodesOf), share/nodesOf)
		}
	default:
		for _, v := range s.values {
			add(v*v, share/float64(len(s.values)))
		}
	}
	mean := 0.0
	for i, l := range lambda {
		mean += weight[i] * l
	}
	for i := range lambda {
		lambda[i] /= mean
	}
	return lambda, weight
}

// Vector follows Bayes-optimal cal-VAMP iteration by iteration, for W with a given
// spectrum. Its fixed points with independent entries are those of cal-AMP. A cancelled run
// returns the steps made and ctx.Err().
func Vector(ctx context.Context, m Model, s Spectrum, opt *Options) (out *Trajectory, err error) {
	defer ending(&err)
	e, err := newVectorEvolution(m, s, opt, opt.heeding(ctx))
	if err != nil {
		return nil, err
	}
	out = &Trajectory{}
	for range opt.iterations(defaultSteps) {
		if err := ctx.Err(); err != nil {
			return out, err
		}
		out.Steps = append(out.Steps, e.next())
		opt.progress(len(out.Steps))
	}
	return out, nil
}

// VectorFixedPoint is where [Vector] ends.
func VectorFixedPoint(ctx context.Context, m Model, s Spectrum, opt *Options) (p *Point, err error) {
	defer ending(&err)
	e, err := newVectorEvolution(m, s, opt, opt.heeding(ctx))
	if err != nil {
		return nil, err
	}
	p = &Point{}
	slow := math.Inf(1)
	for p.Evaluations < opt.iterations(defaultLimit) {
		if err := ctx.Err(); err != nil {
			return p, err
		}
		p.Step = e.next()
		p.Evaluations++
		if math.IsNaN(e.move) { // beyond double precision: no further one is a number
			break
		}
		// Moves that shrink by q each leave m q/(1-q) to go.
		if q := e.move / slow; e.move <= 0.1*opt.tol()*(1-min(q, 0.999)) {
			p.Converged = true
			break
		}
		slow = e.move
	}
	return p, nil
}

// vectorEvolution is the state of the recursion: the variance V of z̃ = W̃x that the channel
// is given, and what the linear part is given of x.
type vectorEvolution struct {
	ends
	lambda, weight []float64
	v, gamma2      float64
	last           Number // the latest error on x

	// move is by how much the latest iteration changed the logarithm of the error on x, or of
	// V: with square orthogonal W they take turns.
	move float64
}

// ends are the channel and the prior, which the linear part is between.
type ends struct {
	start, noise, alpha float64

	// readings is what a channel that is given V makes of it: m̂, and the error on s.
	readings func(v float64) (mHat, mseS Number)

	// entry is the error on an entry seen through a field of precision γ, and |∂log of it/∂log γ|.
	entry func(gamma float64) (mse Number, slope float64)
}

func (e *evolution) ends() ends {
	return ends{
		start: e.Variance(), noise: max(e.NoiseVar, e.truth()), // without any, τ2 would be infinite
		alpha: e.Alpha,
		readings: func(v float64) (mHat, mseS Number) {
			out := e.output(v)
			return out.chiHat, out.mseS
		},
		entry: func(gamma float64) (mse Number, slope float64) {
			in := e.average(1/gamma, e.tol)
			return Number(in.Variance), gamma * in.Square.Value / in.Variance.Value
		},
	}
}

func newVectorEvolution(m Model, s Spectrum, opt *Options, w *work) (*vectorEvolution, error) {
	e, err := newEvolution(m, opt)
	if err != nil {
		return nil, err
	}
	e.work = w
	return s.between(e.ends()), nil
}

// between is the recursion with these two ends, from where nothing is known of x.
func (s Spectrum) between(e ends) *vectorEvolution {
	v := &vectorEvolution{ends: e}
	v.lambda, v.weight = s.eigenvalues(e.alpha)
	v.restart()
	return v
}

// next does one iteration: channel, linear part, prior.
func (e *vectorEvolution) next() Step { return e.follow(e.readings(e.v)) }

// restart forgets all that is known of x.
func (e *vectorEvolution) restart() {
	e.v, e.gamma2, e.last = e.start, 1/e.start, Number{Value: e.start}
}

// follow does the linear part and the prior, after what a channel made of V. With m̂ = E g² = -E ∂g,
//
//	β = 1 - Vm̂ = [Δ + V(1 - (V+Δ)m̂)]/(V+Δ),   τ2 = (1-β)/(βV),
//
// and with f = θλ/(1+θλ), θ = τ2/γ2, and averages over the rows,
//
//	A = α E f,   b = E f,   γ1 = γ2 A/(1-A),   V = b/(τ2(1-b)).
func (e *vectorEvolution) follow(output, mseS Number) Step {
	mHat := output.Value
	d := e.v + e.noise
	beta := (e.noise + e.v*max(0, 1-d*mHat)) / d
	tau2 := mHat / beta // (1-β)/V = m̂
	theta := tau2 / e.gamma2
	determined, left := 0.0, 0.0
	for i, l := range e.lambda {
		determined += e.weight[i] * (theta * l / (1 + theta*l))
		left += e.weight[i] / (1 + theta*l)
	}
	share := min(1, 1/e.alpha) // of the rows that belong to columns, too
	a, aRest := e.alpha*determined, e.alpha*left+(1-e.alpha*share)
	b, bRest := determined, left+(1-share)
	gamma1 := e.gamma2 * a / aRest
	v := b / (tau2 * bRest)
	e.move = math.Abs(math.Log(v / e.v))
	e.v = v
	mse, slope := e.entry(gamma1)
	s := carry(e.last, Step{MSEX: mse, MHat: output, MSES: mseS}, slope, 1)
	e.move = max(e.move, math.Abs(math.Log(s.MSEX.Value/e.last.Value)))
	e.last = s.MSEX
	// (1-Eγ1)/E, the precision that is left for the linear part.
	e.gamma2 = max(1-s.MSEX.Value*gamma1, 1e-12) / s.MSEX.Value
	return s
}

// VectorAlphaCal is the algorithmic threshold of offline cal-VAMP: the smallest α at which its
// state evolution, for a W with this spectrum at every α, reaches the target; +Inf when no α
// up to 64 does. It bisects: the error stated is half of the last bracket.
func VectorAlphaCal(ctx context.Context, g prior.GaussBernoulli, gain channel.GainPrior, noiseVar float64, p int, s Spectrum, opt *ThresholdOptions) (found Number, err error) {
	defer ending(&err)
	o := opt.orDefault()
	w, target := newWork(ctx, o.Work), o.Target*g.SignalVar
	reached := func(alpha float64) (bool, error) {
		e, err := newVectorEvolution(Model{Signal: g, Gain: gain, NoiseVar: noiseVar, Alpha: alpha, P: p}, s, &Options{Tol: 1e-6}, w)
		if err != nil {
			return false, err
		}
		// The slowest that an α one tolerance above the threshold may be: it passes the narrowest
		// place in some 1/√tol iterations, with moves of about tol.
		slowest := 0.01 * o.Tol
		for range defaultLimit {
			if err := ctx.Err(); err != nil {
				return false, err
			}
			mse := e.next().MSEX.Value
			if mse <= target || e.move < slowest {
				return mse <= target, nil
			}
		}
		return false, nil
	}
	const most = 64
	lo, hi := 0.0, 1.0
	for ; ; lo, hi = hi, 2*hi {
		ok, err := reached(hi)
		switch {
		case err != nil:
			return Number{}, err
		case ok:
		case hi == most:
			return Number{Value: math.Inf(1)}, nil
		default:
			continue
		}
		break
	}
	for range halvings {
		if !(hi-lo > o.Tol) {
			break
		}
		middle := 0.5 * (lo + hi)
		ok, err := reached(middle)
		switch {
		case err != nil:
			return Number{}, err
		case ok:
			hi = middle
		default:
			lo = middle
		}
	}
	return Number{Value: 0.5 * (lo + hi), Err: 0.5 * (hi - lo)}, nil
}
