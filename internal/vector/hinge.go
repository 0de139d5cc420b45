package vector

import (
	"math"

	"github.com/calamp/calamp/internal/simd"
)

// Layout of a group of [Hinge]: for every field its Lanes values. The first four are given.
const (
	HingeLambda    = iota
	HingePrecision // a
	HingeOmega
	HingeV
	HingeX    // mean of x
	HingeXVar // and variance
	HingeOff  // mean of u - ω
	HingeUVar // variance of u
	HingeLog  // log ∫ N(u; ω, V) exp(-½ a (f(u)-λ)²) du
	HingeFields
)

// Hinge is the factor N(u; ω, V) exp(-½ a (x-λ)²) with x = u for u > 0 and slope·u elsewhere, for groups of Lanes entries. HingeLog is no number where it does not
// hold: where V or a V is out of range, or both pieces are further than hingeTail standard deviations from what they are given.
//
// A piece is a Gaussian of u that ends at 0, with the variance Vn, n = 1/(1 + slope² a V), and its middle t standard deviations inside. Its mass, of which that at u = 0 is the unit, is
// √(Vn) I(t) = √(Vn) J(t) exp(½ max(t,0)²), its mean t + h and variance 1 - h(t+h), h = 1/I; with Mills' ratio R, J(-x) = R(x) and J(x) = √2π - e^(-x²/2) R(x).
func Hinge(groups int, d []float64, slope float64) {
	if active == simd.Go {
		plainHinge(groups, d, slope)
		return
	}
	hinge(groups, d[:groups*HingeFields*Lanes], slope)
}

const (
	hingeTail   = 12    // where 1 - h(t+h) has lost five digits,
	hingeWeight = 1e-18 // unless a piece has no more of the mass
	hingeLeast  = 1e-200
	hingeMost   = 1e60
	hingeFar    = 1e8
	hingeTrace  = -600 // the least exponent: numbers of less than e^-708 take long

	millsNode  = 4.5
	millsShift = 0.5
)

// millsSeries is that of the generator.
var millsSeries = [...]float64{1.062852902210159, -0.04132223651027594, -0.09156670077164697, 0.1448555604318854, -0.1269061937408569, 0.0769183271107094, -0.03185290577660084, 0.007140717272818686, 0.0006702695454679202, -0.0010135355734085087, 0.00016313651566910142, 0.00010263334458802596, -3.7575540514736605e-05, -1.1415125061157793e-05, 6.540368511662864e-06, 1.6871147685735282e-06, -1.0898269944221254e-06, -3.322707811810021e-07, 1.7226104160035834e-07, 7.127892367605146e-08, -2.2693145239868316e-08, -1.2650841550104546e-08, 1.7777849285880909e-09, 1.247799524195987e-09}

// mills is Mills' ratio at x ≥ 0.
func mills(x float64) float64 {
	y, total := (x-millsNode)/(x+millsNode), 0.0
	for i := len(millsSeries) - 1; i >= 0; i-- {
		total = float64(total*y) + millsSeries[i]
	}
	return total / (x + millsShift)
}

// hingePiece is what a group keeps of a piece.
type hingePiece struct{ n, sd, middle, exponent, t, j, hazard, weight float64 }

func newHingePiece(lambda, a, omega, v, slope, side float64) (p hingePiece) {
	av := slope * a * v
	p.n = 1 / (1 + float64(av*slope))
	off := float64(slope*omega) - lambda
	p.middle = -av * p.n * off
	p.exponent = -0.5 * off * off * p.n * a
	p.sd = math.Sqrt(v * p.n)
	p.t = side * (omega + float64(av*lambda)) * p.n / p.sd
	ratio := mills(math.Abs(p.t))
	if p.t < 0 {
		p.j, p.hazard = ratio, 1/ratio
		return p
	}
	e := math.Exp(max(-0.5*p.t*p.t, hingeTrace))
	p.j = math.Sqrt(2*math.Pi) - float64(e*ratio)
	p.hazard = e / p.j
	return p
}

// plainHinge is the version in plain Go.
func plainHinge(groups int, d []float64, slope float64) {
	for at := range groups * Lanes {
		field := func(i int) *float64 { return &d[(at/Lanes*HingeFields+i)*Lanes+at%Lanes] }
		lambda, a, omega, v := *field(HingeLambda), *field(HingePrecision), *field(HingeOmega), *field(HingeV)
		pieces := [2]hingePiece{newHingePiece(lambda, a, omega, v, slope, -1), newHingePiece(lambda, a, omega, v, 1, 1)}
		less, more := &pieces[0], &pieces[1]
		t0, t1 := max(less.t, 0), max(more.t, 0)
		difference := (t1 - t0) * (0.5 * (t1 + t0))
		if difference < 0 {
			less, more = more, less
		}
		more.weight = more.j * math.Sqrt(more.n)
		less.weight = less.j * math.Sqrt(less.n) * math.Exp(max(-math.Abs(difference), hingeTrace))
		total := less.weight + more.weight
		exponent := more.exponent
		if more.t < 0 {
			exponent = -0.5 * (float64(omega*omega)/v + float64(lambda*lambda*a))
		}
		*field(HingeLog) = exponent + math.Log(total/math.Sqrt(2*math.Pi))
		if !(v > hingeLeast && a*v < hingeMost && math.Abs(less.t) < hingeFar && math.Abs(more.t) < hingeFar) {
			*field(HingeLog) = math.NaN()
		}
		var u, off, variance, weight [2]float64
		for i, p := range pieces {
			weight[i] = p.weight / total
			if p.t < -hingeTail && weight[i] > hingeWeight {
				*field(HingeLog) = math.NaN()
			}
			side := p.sd * float64(2*i-1)
			u[i] = side * (p.t + p.hazard)
			off[i], variance[i] = u[i]-omega, p.sd*p.sd*max(0, 1-float64(p.hazard*(p.t+p.hazard)))
			if p.t >= 0 {
				off[i] = p.middle + float64(side*p.hazard)
			}
		}
		apart, both := u[1]-u[0], weight[0]*weight[1]
		*field(HingeUVar) = float64(weight[0]*variance[0]) + float64(weight[1]*variance[1]) + float64(both*apart*apart)
		*field(HingeOff) = float64(weight[0]*off[0]) + float64(weight[1]*off[1])
		apart = u[1] - float64(slope*u[0])
		*field(HingeXVar) = float64(slope*slope*weight[0]*variance[0]) + float64(weight[1]*variance[1]) + float64(both*apart*apart)
		*field(HingeX) = float64(slope*weight[0]*u[0]) + float64(weight[1]*u[1])
	}
}
