package evolution

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sync"

	"github.com/calamp/calamp/internal/activation"
	"github.com/calamp/calamp/internal/field"
	"github.com/calamp/calamp/internal/quadrature"
	"github.com/calamp/calamp/prior"
)

// Layer is one of a network whose weights are independent, of mean zero: x = f(Fh + b).
type Layer struct {
	Inputs     float64 // N₂/N: how many inputs there are for each output
	WeightVar  float64 // N₂ times the variance of a weight: E (Fh)² is that of E h²
	BiasVar    float64 // mean square of a bias
	Activation prior.Activation
}

// LayersOf describes the layers of a network by what state evolution needs of them. That its weights are independent is assumed.
func LayersOf(n prior.Network) (list []Layer) {
	for _, l := range n.Layers() {
		layer := Layer{Inputs: float64(l.Cols) / float64(l.Rows), Activation: l.Activation}
		for _, w := range l.Weights {
			layer.WeightVar += w * w / float64(l.Rows)
		}
		for _, b := range l.Bias {
			layer.BiasVar += b * b / float64(l.Rows)
		}
		list = append(list, layer)
	}
	return list
}

var errNetworkOffline = errors.New("state evolution of a network is offline, all signals at once, for a student who knows the model")

func validNetwork(m Model) error {
	if m.Groups != nil || m.OffsetSD != 0 {
		return errors.New("state evolution of a network is for latents of one prior, and sensors without offsets")
	}
	for i, l := range m.Network {
		if !(l.Inputs > 0 && l.WeightVar > 0 && l.BiasVar >= 0) || math.IsInf(l.Inputs+l.WeightVar+l.BiasVar, 1) {
			return fmt.Errorf("layer %d: inputs per output and the weights' variance must be positive and finite, the biases' not negative, found %g, %g and %g", i+1, l.Inputs, l.WeightVar, l.BiasVar)
		}
	}
	return nil
}

// Averages over an entry of a layer are over the three normal numbers that it depends on: what is known of u, what is not, and the noise of the field. They are taken at
// points that fill space evenly, networkShifts times, shifted by chance, and the spread of these is the error.
const (
	networkPoints = 2048
	networkShifts = 4
)

var networkNormals = sync.OnceValue(func() *[networkShifts][networkPoints][3]float64 {
	var list [networkShifts][networkPoints][3]float64
	rng := rand.New(rand.NewPCG(39, 0))
	for s := range list {
		shift := randomShift(rng, 3)
		for i := range list[s] {
			for j, u := range evenly(i, shift) {
				list[s][i][j] = quadrature.NormalBound(2*u - 1)
			}
		}
	}
	return &list
})

// layerAverages are what a layer's factor says on average.
type layerAverages struct{ variance, square, slope, logMass Number } // E C, E C², E -∂g, E log ∫ N(u; ω', V') exp(-(f(u)-λ)²/2Σ) du

// averages are those of an entry whose inputs have the second moment rho and are known up to v, behind a field of variance sigma: with V' = w v,
//
//	ω' ~ N(0, w(ρ-v) + E b²),   u ~ N(ω', V'),   λ = f(u) + N(0, Σ).
func (l Layer) averages(rho, v, sigma float64) (a layerAverages) {
	known, open := math.Sqrt(max(0, l.WeightVar*(rho-v)+l.BiasVar)), l.WeightVar*v
	sd, wide := math.Sqrt(open), 0.0
	if !math.IsInf(sigma, 1) {
		wide = math.Sqrt(sigma)
	}
	var sums [networkShifts][4]float64
	var lambda, fields, omega, opens [activation.AtOnce]float64
	var found [activation.AtOnce]activation.Moments
	for i := range fields {
		fields[i], opens[i] = sigma, open
	}
	normals := networkNormals()
	for s := range normals {
		for points := range slices.Chunk(normals[s][:], activation.AtOnce) {
			for i, z := range points {
				omega[i] = known * z[0]
				lambda[i] = l.Activation.Of(omega[i]+sd*z[1]) + wide*z[2]
			}
			l.Activation.Entries(found[:len(points)], lambda[:], fields[:], omega[:], opens[:], 0)
			for i, m := range found[:len(points)] {
				sums[s][0] += m.XVar / networkPoints
				sums[s][1] += m.XVar * m.XVar / networkPoints
				sums[s][2] += (1 - m.UVar/open) / open / networkPoints
				if z := points[i][2]; wide > 0 { // with z (½z + (x-x̂)/√Σ), which varies as it does, and has the mean ½ - E C/Σ by parts
					sums[s][3] += (m.LogMass + z*(0.5*z+(lambda[i]-wide*z-m.X)/wide) - 0.5 + m.XVar/sigma) / networkPoints
				}
			}
		}
	}
	number := func(j int) (n Number) {
		for s := range sums {
			n.Value += sums[s][j] / networkShifts
		}
		for s := range sums {
			d := sums[s][j] - n.Value
			n.Err += d * d / (networkShifts * (networkShifts - 1))
		}
		n.Err = math.Sqrt(n.Err)
		return n
	}
	return layerAverages{number(0), number(1), number(2), number(3)}
}

// secondMoment is E f(u)² of a layer whose inputs have the second moment rho: by quadrature.
func (l Layer) secondMoment(rho float64) float64 {
	sd := math.Sqrt(l.WeightVar*rho + l.BiasVar)
	q := quadrature.NewIntegrator(1e-10)
	const reach = 10
	r := q.Integrate(func(z float64) (value, err quadrature.Vec) {
		x := l.Activation.Of(sd * z)
		value[0] = x * x * math.Exp(-0.5*z*z) / math.Sqrt(2*math.Pi)
		return value, err
	}, cutsOf(reach, sd))
	return r.Value[0]
}

// cutsOf are panels over ±reach, with cuts where the activations' pieces meet.
func cutsOf(reach, sd float64) []float64 {
	cuts := []float64{-reach}
	for _, edge := range []float64{-1, 0, 1} {
		if e := edge / sd; e > -reach && e < reach {
			cuts = append(cuts, e)
		}
	}
	return append(cuts, reach)
}

// networkState is how well the inputs of each layer are known, along a trajectory.
type networkState struct {
	Model
	rho   []float64 // their second moments, and last that of the signals
	v     []float64 // their mean square errors
	first Number    // of the signals, before any reading
}

func newNetworkState(m Model) *networkState {
	s := &networkState{Model: m, rho: []float64{secondMoment(m.Signal)}, v: []float64{m.Signal.Variance()}}
	for i, l := range m.Network {
		s.first = l.averages(s.rho[i], s.v[i], math.Inf(1)).variance
		s.rho, s.v = append(s.rho, l.secondMoment(s.rho[i])), append(s.v, s.first.Value)
	}
	return s
}

// step is one iteration of all layers, from the field on the signals to the latents, and the averages over an entry of the signals. The log-normaliser is that of the layers
// together for each entry: with r inputs of a layer for each output, known up to v behind the field Σ_h that its factor makes,
//
//	E log-mass + r (½ + v/2Σ_h + that of an input),
//
// which is stationary in v and Σ_h at the layers' fixed point, so that its derivative by 1/Σ is that of an entry alone.
func (s *networkState) step(sigma, tol float64) (out field.Averages) {
	each, logs := 1.0, Number{} // inputs of the present layer for each entry of a signal
	for i := len(s.Network) - 1; i >= 0; i-- {
		l := s.Network[i]
		a := l.averages(s.rho[i], s.v[i], sigma)
		if i == len(s.Network)-1 {
			out.Variance, out.Square = field.Number(a.variance), field.Number(a.square)
		} else {
			s.v[i+1] = a.variance.Value
		}
		sigma = l.Inputs / (l.WeightVar * max(a.slope.Value, 1e-300))
		logs.Value, logs.Err = logs.Value+each*a.logMass.Value, logs.Err+each*a.logMass.Err
		each *= l.Inputs
		logs.Value += 0.5 * each * (1 + s.v[i]/sigma)
	}
	f := field.Matched(s.Signal, sigma)
	r := f.Integrate(tol)
	s.v[0] = r.Variance.Value
	out.MSE, out.LogNorm = out.Variance, field.Number{Value: logs.Value + each*r.LogNorm.Value, Err: logs.Err + each*r.LogNorm.Err}
	return out
}

// entry averages over an entry, with the layers' messages as far as they are.
func (e *evolution) entry(sigma float64) field.Averages {
	if e.layers != nil {
		return e.layers.step(sigma, networkLeastIn)
	}
	if e.Network != nil && e.fromTruth {
		s := newNetworkState(e.Model)
		s.know(sigma)
		return s.rest(sigma)
	}
	return e.average(sigma, e.tol)
}

// know begins at the truth: inputs of layers known far better than a field of variance sigma on the signals lets them be.
func (s *networkState) know(sigma float64) {
	const part = 1e-4 // less, and 1-UVar/V of an entry would be rounding
	for i, rho := range s.rho[:len(s.v)-1] {
		s.v[i] = part * min(rho, sigma)
	}
}

const (
	networkSteps     = 300
	networkConverged = 1e-5 // relative change of the error on the signals
	networkLeastIn   = 1e-6 // to which averages over the latents are taken
	networkFixed     = 1e-4 // to which fixed points of the whole are, where 1 % is asked for
)

// averageNetwork is [Model.average] of a network: messages between its layers are at their fixed point, from no information.
func (m Model) averageNetwork(sigma float64) field.Averages {
	return newNetworkState(m).rest(sigma)
}

// rest iterates all layers at one field until they are at a fixed point.
func (s *networkState) rest(sigma float64) (out field.Averages) {
	last := 0.0
	for range networkSteps {
		out = s.step(sigma, networkLeastIn)
		if math.Abs(out.Variance.Value-last) <= networkConverged*out.Variance.Value {
			break
		}
		last = out.Variance.Value
	}
	return out
}

// Dimension is how many numbers a signal of a network has for each of its entries, where all are known: the latents that are not zero, or the outputs of the
// narrowest layer that vary with its inputs. It stands for the density in counting bounds. A layer whose outputs do not vary (sign) leaves none: NaN.
func Dimension(latents prior.GaussBernoulli, layers []Layer) float64 {
	width := 1.0 // of a layer's outputs, for each entry of a signal
	for _, l := range layers {
		width *= l.Inputs
	}
	dimension, rho := latents.NonZero()*width, secondMoment(latents)
	for _, l := range layers {
		width /= l.Inputs
		moving := l.Activation.Varying(math.Sqrt(l.WeightVar*rho + l.BiasVar))
		if moving == 0 {
			return math.NaN()
		}
		dimension, rho = min(dimension, moving*width), l.secondMoment(rho)
	}
	return dimension
}
