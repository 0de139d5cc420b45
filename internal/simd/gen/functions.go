package main

import (
	"fmt"
	"math"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// Functions of four float64 lanes in AVX2. Machines with AVX-512 use them as well:
// there the time goes into the loops over W, and these functions take little of it.

// expSeries is a polynomial for (e^r-1)/r on |r| ≤ ½ log 2, by interpolation at
// Chebyshev's points. Its relative error is 1e-17.
var expSeries = []float64{1.0, 0.5000000000000006, 0.1666666666666667, 0.04166666666657239, 0.008333333333326084, 0.0013888888932751, 0.0001984126987500228, 2.4801504014426906e-05, 2.755725517000089e-06, 2.7626495546432196e-07, 2.5105312729622103e-08}

// atanhSeries is a polynomial in s² for (atanh(s)/s - 1)/s² on √½ ≤ (1+s)/(1-s) ≤ √2.
// Its relative error is 5e-16; it is multiplied by s², which is at most 0.03.
var atanhSeries = []float64{0.3333333333333335, 0.19999999999949444, 0.14285714313126918, 0.11111105544689748, 0.09091446216268435, 0.07665805861027504, 0.07308903576708663}

// magic, when added to a number of moderate size, leaves the nearest integer in the low
// bits of the sum. logMagic and exponentOffset turn a binary exponent into a float64.
const (
	magic          = 1.5 * (1 << 52)
	exponentOffset = 1024
)

var constants = map[uint64]Mem{}

// bits is a constant of four equal lanes.
func bits(b uint64) Mem {
	if m, ok := constants[b]; ok {
		return m
	}
	m := GLOBL(fmt.Sprintf("constant%016x", b), RODATA|NOPTR)
	for lane := range 4 {
		DATA(8*lane, U64(b))
	}
	constants[b] = m
	return m
}

func value(v float64) Mem { return bits(math.Float64bits(v)) }

// polynomial returns the polynomial with these coefficients, lowest first, in x. It uses
// Estrin's scheme, whose operations depend less on each other than Horner's: the time of
// these functions is that of waiting for earlier results.
func polynomial(c []float64, x Register) Register {
	terms := make([]Register, 0, len(c))
	for i := 0; i < len(c); i += 2 {
		t := YMM()
		if i+1 < len(c) {
			VMOVUPD(value(c[i+1]), t)
			VFMADD213PD(value(c[i]), x, t)
		} else {
			VMOVUPD(value(c[i]), t)
		}
		terms = append(terms, t)
	}
	for power := x; len(terms) > 1; {
		square := YMM()
		VMULPD(power, power, square)
		power = square
		half := terms[:0]
		for i := 0; i < len(terms); i += 2 {
			if i+1 < len(terms) {
				VFMADD231PD(terms[i+1], power, terms[i])
			}
			half = append(half, terms[i])
		}
		terms = half
	}
	return terms[0]
}

// exp replaces every x by e^x, with a relative error below 3e-16; below -708 it is
// e^-708. For a single x the polynomial is evaluated by Estrin's scheme, see polynomial.
// Several x are treated in turn, one operation at a time, so that none has to wait, by
// Horner's scheme, which has fewer operations.
func exp(x ...Register) {
	k, r := make([]Register, len(x)), make([]Register, len(x))
	for i, x := range x {
		k[i], r[i] = YMM(), YMM()
		VMAXPD(value(-708), x, x)
		VMOVUPD(value(magic), k[i])
		VFMADD231PD(value(math.Log2E), x, k[i])
	}
	for i := range x {
		VSUBPD(value(magic), k[i], r[i])
		VPSLLQ(U8(52), k[i], k[i])
	}
	const high = 0x3fe62e42fee00000    // the leading 32 bits of log 2
	const low = 1.9082149292705877e-10 // and the rest
	for i, x := range x {
		VFNMADD231PD(bits(high), r[i], x)
		VFNMADD231PD(value(low), r[i], x)
	}
	if len(x) == 1 {
		r[0] = polynomial(expSeries, x[0])
	} else {
		horner(expSeries, x, r)
	}
	for i, x := range x {
		VFMADD213PD(value(1), r[i], x) // 1 + r q(r)
		VPADDQ(k[i], x, x)
	}
}

// horner sets p to the polynomial with these coefficients in each x.
func horner(c []float64, x, p []Register) {
	for i := range p {
		VMOVUPD(value(c[len(c)-1]), p[i])
	}
	for j := len(c) - 2; j >= 0; j-- {
		for i, x := range x {
			VFMADD213PD(value(c[j]), x, p[i])
		}
	}
}

// split is y = 2^k f with √½ ≤ f < √2.
type split struct {
	biased  Register // k + exponentOffset, shifted to the place of an exponent
	integer Register // k + exponentOffset
	f       Register
}

func exponent(y Register) split {
	s := split{biased: YMM(), integer: YMM(), f: YMM()}
	offset := math.Float64bits(math.Sqrt2/2) - exponentOffset<<52
	VPSUBQ(bits(offset), y, s.integer)
	VPSRLQ(U8(52), s.integer, s.integer)
	VPSLLQ(U8(52), s.integer, s.biased)
	VPSUBQ(s.biased, y, s.f)
	VPADDQ(bits(exponentOffset<<52), s.f, s.f)
	return s
}

// number returns k as a float64.
func (s split) number() Register {
	const base = 1 << 52
	VPOR(value(base), s.integer, s.integer)
	VSUBPD(value(base+exponentOffset), s.integer, s.integer)
	return s.integer
}

// log1pTail returns log(1+v) - v for |v| at most √2-1, without cancellation:
// with s = v/(2+v) it is 2 atanh(s) - v = s (2 s² P(s²) - v).
func log1pTail(v Register) Register {
	s, z := YMM(), YMM()
	VADDPD(value(2), v, s)
	VDIVPD(s, v, s)
	VMULPD(s, s, z)
	p := polynomial(atanhSeries, z)
	VADDPD(z, z, z)
	VFMSUB213PD(v, z, p)
	VMULPD(s, p, p)
	return p
}

// log1p returns log(1+v), and that minus v, to full relative precision for v > -1. The
// rounding error of 1+v is corrected for.
func log1p(v Register, minusV bool) Register {
	one, a, lost, scale := YMM(), YMM(), YMM(), YMM()
	VMOVUPD(value(1), one)
	VADDPD(one, v, a)
	VSUBPD(one, a, lost)
	VSUBPD(lost, v, lost)
	e := exponent(a)
	VMOVUPD(bits(2047<<52), scale)
	VPSUBQ(e.biased, scale, scale) // 2^-k
	f := e.f
	VSUBPD(one, f, f)
	VFMADD231PD(lost, scale, f) // f-1, and for k = 0 exactly v
	tail := log1pTail(f)
	if minusV {
		VSUBPD(v, f, f)
	}
	k := e.number()
	VFMADD231PD(value(math.Ln2), k, f)
	VADDPD(f, tail, tail)
	return tail
}

// logarithm returns that of y, normal and positive.
func logarithm(y Register) Register {
	e := exponent(y)
	VSUBPD(value(1), e.f, e.f)
	tail := log1pTail(e.f)
	k := e.number()
	VFMADD231PD(value(math.Ln2), k, e.f)
	VADDPD(e.f, tail, tail)
	return tail
}

// inPlace replaces every value, four at a time.
func inPlace(name, doc string, of func(x VecVirtual) Register) {
	TEXT(name, NOSPLIT, "func(v []float64)")
	Pragma("noescape")
	Doc(name + " " + doc)
	p, n := base("v"), Load(Param("v").Len(), GP64())
	SHRQ(U8(2), n)
	JZ(LabelRef("end"))
	loop("four", n, func() {
		x := YMM()
		VMOVUPD(Mem{Base: p}, x)
		VMOVUPD(of(x), Mem{Base: p})
		add(p, 32)
	})
	Label("end")
	VZEROUPPER()
	RET()
}

// logarithms replaces every value, normal and positive, by its logarithm.
func logarithms() {
	inPlace("logAVX2", "replaces positive normal values, a multiple of four, by their logarithms.", func(x VecVirtual) Register { return logarithm(x) })
}

// exponentials replaces every value by its exponential.
func exponentials() {
	inPlace("expAVX2", "replaces values up to 709, a multiple of four, by their exponentials.", func(x VecVirtual) Register {
		exp(x)
		return x
	})
}

// Layout of the parameters and results of gainIntegrals, in groups of four.
const (
	gainFields  = 6 // slope, τ/2, n, 1/mode, middle, half-width
	gainResults = 3
)

// gainIntegrals integrates four gain posteriors at a time; see the Go version.
func gainIntegrals() {
	TEXT("gainIntegralsAVX2", NOSPLIT, "func(x, w []float64, groups int, d, scratch, out []float64)")
	Pragma("noescape")
	Doc("gainIntegralsAVX2 is gainIntegrals with AVX2.")
	gainGroups(func(g gainGroup) {
		x, w, exponent, i := base("x"), base("w"), GP64(), GP64()
		MOVQ(g.scratch, exponent)
		MOVQ(g.nodes, i)
		loop("node", i, func() {
			at, u, v, q := YMM(), YMM(), YMM(), YMM()
			VBROADCASTSD(Mem{Base: x}, at)
			VMOVUPD(g.field(5), u)
			VFMADD213PD(g.field(4), at, u)
			VMULPD(g.field(3), u, v)
			VMOVUPD(g.field(0), q)
			VFNMADD231PD(g.field(1), u, q)
			VMULPD(u, q, q) // u (slope - τu/2)
			l := log1p(v, true)
			VFMADD231PD(g.field(2), l, q)
			VMOVUPD(q, Mem{Base: exponent})
			VBROADCASTSD(Mem{Base: w}, at)
			VMOVUPD(at, Mem{Base: exponent, Disp: 32})
			add(x, 8)
			add(w, 8)
			add(exponent, 64)
		})
	})
}

// gainPowers is gainIntegrals for sensors that all have the same small whole number n: a
// power takes a tenth of the operations of a logarithm. It treats four nodes at a time,
// so that it goes less often through the loop over the bits of n.
func gainPowers() {
	TEXT("gainPowersAVX2", NOSPLIT, "func(x, w []float64, n, groups int, d, scratch, out []float64)")
	Pragma("noescape")
	Doc("gainPowersAVX2 is gainPowers with AVX2.")
	n := number("n")
	gainGroups(func(g gainGroup) {
		x, w, exponent, i := base("x"), base("w"), GP64(), GP64()
		MOVQ(g.scratch, exponent)
		MOVQ(g.nodes, i)
		SHRQ(U8(2), i)
		loop("nodes", i, func() {
			var powers, ratio [4]Register
			for j := range ratio {
				u, q, v := YMM(), YMM(), YMM()
				VBROADCASTSD(Mem{Base: x, Disp: 8 * j}, v)
				VMOVUPD(g.field(5), u)
				VFMADD213PD(g.field(4), v, u)
				VMOVUPD(g.field(0), q)
				VFNMADD231PD(g.field(1), u, q)
				VMULPD(u, q, q)
				VMOVUPD(q, Mem{Base: exponent, Disp: 64 * j})
				VMOVUPD(g.field(3), v)
				VFMADD213PD(value(1), u, v) // s/mode
				powers[j], ratio[j] = YMM(), v
				VBROADCASTSD(Mem{Base: w, Disp: 8 * j}, powers[j])
			}
			bit := GP64()
			MOVQ(n, bit)
			Label("bit")
			TESTQ(U32(1), bit)
			JZ(LabelRef("even"))
			for j, p := range powers {
				VMULPD(ratio[j], p, p)
			}
			Label("even")
			SHRQ(U8(1), bit)
			JZ(LabelRef("done"))
			for _, v := range ratio {
				VMULPD(v, v, v)
			}
			JMP(LabelRef("bit"))
			Label("done")
			for j, p := range powers {
				VMOVUPD(p, Mem{Base: exponent, Disp: 64*j + 32})
			}
			add(x, 32)
			add(w, 32)
			add(exponent, 256)
		})
	})
}

// gainGroup is where the values of a group of sensors are. For every node there
// are an exponent and a factor in scratch.
type gainGroup struct{ nodes, d, scratch, out Register }

func (g gainGroup) field(i int) Mem { return Mem{Base: g.d, Disp: 32 * i} }

// gainGroups writes the body of a function that integrates groups. exponents writes the
// part that computes the exponents and factors of one group.
func gainGroups(exponents func(gainGroup)) {
	groups := number("groups")
	g := gainGroup{nodes: Load(Param("x").Len(), GP64()), d: base("d"), scratch: base("scratch"), out: base("out")}
	loop("group", groups, func() {
		exponents(g)
		sum, first := g.weights()
		g.spread(sum, first)
		add(g.d, 32*gainFields)
		add(g.out, 32*gainResults)
	})
	VZEROUPPER()
	RET()
}

// weights replaces the exponents by the nodes' weights, and returns the sum of
// these, and times the nodes.
func (g gainGroup) weights() (sum, first Register) {
	x, p, i := base("x"), GP64(), GP64()
	MOVQ(g.scratch, p)
	MOVQ(g.nodes, i)
	SHRQ(U8(2), i)
	sums := kernels{isa: isa{lanes: 4}}.zeroed(2)
	sum, first = sums[0], sums[1]
	loop("exponential", i, func() {
		var q [4]Register
		for j := range q {
			q[j] = YMM()
			VMOVUPD(Mem{Base: p, Disp: 64 * j}, q[j])
		}
		exp(q[:]...)
		for j, q := range q {
			VMULPD(Mem{Base: p, Disp: 64*j + 32}, q, q)
			VMOVUPD(q, Mem{Base: p, Disp: 64 * j})
		}
		var moments [4]Register
		for j, q := range q {
			moments[j] = YMM()
			VBROADCASTSD(Mem{Base: x, Disp: 8 * j}, moments[j])
			VMULPD(q, moments[j], moments[j])
		}
		for _, four := range []struct {
			of    [4]Register
			total Register
		}{{q, sum}, {moments, first}} {
			VADDPD(four.of[1], four.of[0], four.of[0])
			VADDPD(four.of[3], four.of[2], four.of[2])
			VADDPD(four.of[2], four.of[0], four.of[0])
			VADDPD(four.of[0], four.total, four.total)
		}
		add(x, 32)
		add(p, 256)
	})
	return sum, first
}

// spread writes the results, from the sums of the weights and of these times the
// nodes.
func (g gainGroup) spread(sum, first Register) {
	VDIVPD(sum, first, first)
	second := kernels{isa: isa{lanes: 4}}.zeroed(4)
	x, p, i := base("x"), GP64(), GP64()
	MOVQ(g.scratch, p)
	MOVQ(g.nodes, i)
	SHRQ(U8(2), i)
	loop("spread", i, func() {
		for j, s := range second {
			at := YMM()
			VBROADCASTSD(Mem{Base: x, Disp: 8 * j}, at)
			VSUBPD(first, at, at)
			VMULPD(at, at, at)
			VFMADD231PD(Mem{Base: p, Disp: 64 * j}, at, s)
		}
		add(x, 32)
		add(p, 256)
	})
	VADDPD(second[1], second[0], second[0])
	VADDPD(second[3], second[2], second[2])
	VADDPD(second[2], second[0], second[0])
	VDIVPD(sum, second[0], second[0])
	VMOVUPD(sum, Mem{Base: g.out})
	VMOVUPD(first, Mem{Base: g.out, Disp: 32})
	VMOVUPD(second[0], Mem{Base: g.out, Disp: 64})
}

// gaussBernoulli is the denoiser; see the Go version for the formulas. It treats four
// groups of four entries at a time, in two steps: first everything before the last
// exponential, for one group after the other, and then the rest for all four together.
// In one long chain of operations for each group, every operation would have to wait for
// the one before.
func gaussBernoulli() {
	TEXT("gaussBernoulliAVX2", NOSPLIT, "func(mean, variance, lambda, sigma []float64, logOdds, signalMean, signalVar float64)")
	Pragma("noescape")
	Doc("gaussBernoulliAVX2 is the posterior of a sparse prior for a multiple of sixteen entries.")
	mean, variance, lambda, sigma := base("mean"), base("variance"), base("lambda"), base("sigma")
	n := Load(Param("lambda").Len(), GP64())
	center, power := broadcast("signalMean"), broadcast("signalVar")
	inversePower := YMM()
	VMOVUPD(value(1), inversePower)
	VDIVPD(power, inversePower, inversePower)
	slab := AllocLocal(4 * 32)
	SHRQ(U8(4), n)
	JZ(LabelRef("end"))
	loop("sixteen", n, func() {
		for i := range 4 {
			at := 32 * i
			l, s := YMM(), YMM()
			VMOVUPD(Mem{Base: lambda, Disp: at}, l)
			VMOVUPD(Mem{Base: sigma, Disp: at}, s)
			ratio := YMM() // v/Σ
			VDIVPD(s, power, ratio)
			VMINPD(value(1e300), ratio, ratio)
			// t is the smaller of v and Σ divided by the larger, and scale is 1/(1+t). The
			// inverse of the larger one follows without a further division.
			big, low, t, larger := YMM(), YMM(), YMM(), YMM()
			VCMPPD(U8(0x1e), s, power, big) // v > Σ
			VMINPD(s, power, low)
			VMULPD(inversePower, s, t)
			VBLENDVPD(big, t, ratio, t)
			VMULPD(inversePower, ratio, larger)
			VBLENDVPD(big, inversePower, larger, larger)
			scale, onePlus := YMM(), YMM()
			VMOVUPD(value(1), scale)
			VADDPD(scale, t, onePlus)
			VDIVPD(onePlus, scale, scale)
			VMULPD(scale, low, low) // variance on the slab
			VMOVUPD(low, Mem{Base: variance, Disp: at})
			// The log of the slab's evidence over the spike's.
			quadratic := YMM()
			VMULPD(l, ratio, quadratic)
			VADDPD(center, quadratic, quadratic)
			VADDPD(center, quadratic, quadratic)
			VMULPD(l, quadratic, quadratic)
			VFNMADD231PD(center, center, quadratic)
			VMULPD(larger, quadratic, quadratic)
			VMULPD(scale, quadratic, quadratic)
			// Mean on the slab.
			a, b := YMM(), YMM()
			VBLENDVPD(big, l, center, a)
			VBLENDVPD(big, center, l, b)
			VFMADD231PD(b, t, a)
			VMULPD(scale, a, a)
			VMOVUPD(a, slab.Offset(at))
			VSUBPD(log1p(ratio, false), quadratic, quadratic)
			odds := broadcast("logOdds")
			VFMADD231PD(value(0.5), quadratic, odds)
			VMOVUPD(odds, Mem{Base: mean, Disp: at})
		}
		// Probability of the slab, and of the spike.
		var e [4]Register
		for i := range e {
			e[i] = YMM()
			VMOVUPD(bits(1<<63), e[i])
			VORPD(Mem{Base: mean, Disp: 32 * i}, e[i], e[i])
		}
		exp(e[:]...)
		for i, e := range e {
			at := 32 * i
			high, less, odds := YMM(), YMM(), YMM()
			VADDPD(value(1), e, less)
			VMOVUPD(value(1), high)
			VDIVPD(less, high, high)
			VMULPD(high, e, less)
			VMOVUPD(Mem{Base: mean, Disp: at}, odds)
			on, off, a := YMM(), YMM(), YMM()
			VBLENDVPD(odds, less, high, on)
			VBLENDVPD(odds, high, less, off)
			VMOVUPD(slab.Offset(at), a)
			VMULPD(on, a, less)
			VMOVUPD(less, Mem{Base: mean, Disp: at})
			VMULPD(a, a, a)
			VMULPD(off, a, a)
			VADDPD(Mem{Base: variance, Disp: at}, a, a)
			VMULPD(on, a, a)
			VMOVUPD(a, Mem{Base: variance, Disp: at})
		}
		for _, p := range []Register{mean, variance, lambda, sigma} {
			add(p, 128)
		}
	})
	Label("end")
	VZEROUPPER()
	RET()
}

// Layout of the results of gainShapes, in groups of four, as in package vector.
const (
	shapeMode = iota
	shapeSlope
	shapeInverse
	shapeCurvature
	shapeWidth
	shapeSkew
	shapeRoom
	shapeNarrow
	shapeSeriesMass
	shapeSeriesMean
	shapeSeriesVariance
	shapeLeft
	shapeRight
	shapeRule
	shapeFields
)

// As in package vector.
const (
	narrowReach = 9
	narrowSkew  = 5e-8
	narrowWidth = 0.01
	tail        = 37
)

// gainShapes finds place and width of four gain posteriors; see the Go version.
func gainShapes() {
	TEXT("gainShapesAVX2", NOSPLIT, "func(n, tau, b []float64, lo, hi float64, out []float64)")
	Pragma("noescape")
	Doc("gainShapesAVX2 is gainShapes with AVX2, for a multiple of four sensors.")
	ns, taus, bs, out := base("n"), base("tau"), base("b"), base("out")
	i := Load(Param("tau").Len(), GP64())
	lo, hi := broadcast("lo"), broadcast("hi")
	field := func(f int) Mem { return Mem{Base: out, Disp: 32 * f} }
	n, tau, b := Mem{Base: ns}, Mem{Base: taus}, Mem{Base: bs}
	SHRQ(U8(2), i)
	JZ(LabelRef("end"))
	loop("four", i, func() {
		mode := gainMode(n, tau, b)
		VMINPD(hi, mode, mode) // hi for the NaN of a density that only rises
		VMAXPD(lo, mode, mode)
		VMOVUPD(mode, field(shapeMode))
		inverse, curvature := YMM(), YMM()
		VMOVUPD(value(1), inverse)
		VDIVPD(mode, inverse, inverse)
		VMOVUPD(inverse, field(shapeInverse))
		VMOVUPD(gainSlope(n, tau, b, mode, inverse), field(shapeSlope))
		VMULPD(n, inverse, curvature)
		VMULPD(inverse, curvature, curvature)
		VMOVUPD(curvature, field(shapeCurvature))

		total, width := YMM(), YMM()
		VADDPD(tau, curvature, total)
		VMOVUPD(value(1), width)
		VSQRTPD(total, total)
		VDIVPD(total, width, width)
		VMOVUPD(width, field(shapeWidth))
		t, skew := YMM(), YMM()
		VMULPD(inverse, width, t)
		VMULPD(t, t, skew)
		VMULPD(t, skew, skew)
		VMULPD(n, skew, skew)
		VMOVUPD(skew, field(shapeSkew))
		gainSeries(width, t, skew, field)

		left, right := YMM(), YMM()
		VSUBPD(lo, mode, left)
		VSUBPD(mode, hi, right)
		VMINPD(left, right, right)
		VMOVUPD(right, field(shapeRoom))
		const greater, less, lessEqual = 0x1e, 0x11, 0x12 // no number is none of them
		narrow, and := YMM(), YMM()
		VMULPD(value(narrowReach), width, narrow)
		VCMPPD(U8(greater), narrow, right, narrow)
		VCMPPD(U8(less), value(narrowSkew), skew, and)
		VANDPD(and, narrow, narrow)
		VCMPPD(U8(less), value(narrowWidth), t, and)
		VANDPD(and, narrow, narrow)
		VMOVUPD(bits(1<<63-1), and)
		VANDPD(field(shapeSlope), and, and)
		VCMPPD(U8(lessEqual), value(math.MaxFloat64/4), and, and)
		VANDPD(and, narrow, narrow)
		VANDPD(value(1), narrow, narrow)
		VMOVUPD(narrow, field(shapeNarrow))
		for _, p := range []Register{ns, taus, bs} {
			add(p, 32)
		}
		add(out, 32*shapeFields)
	})
	Label("end")
	VZEROUPPER()
	RET()
}

// gainSeries writes the moments of a narrow posterior; see the Go version.
func gainSeries(width, t, skew Register, field func(int) Mem) {
	e, st, t2, a := YMM(), YMM(), YMM(), YMM()
	VMULPD(field(shapeSlope), width, e)
	VMULPD(skew, t, st)
	VMULPD(t, t, t2)
	VMOVUPD(value(3), a)
	VFMADD213PD(value(1), t2, a)
	VFMADD213PD(e, skew, a) // e + s (1 + 3t²)
	VMULPD(width, a, a)
	VMOVUPD(a, field(shapeSeriesMean))

	b := YMM()
	VMOVUPD(value(-15), b)
	VFMADD213PD(value(-3), t2, b)
	VMULPD(st, b, b) // -3st - 15st³
	c := YMM()
	VADDPD(e, e, c)
	VFMADD231PD(value(4), skew, c)
	VFMADD231PD(skew, c, b)
	VADDPD(value(1), b, b)
	VMULPD(width, b, b)
	VMULPD(width, b, b)
	VMOVUPD(b, field(shapeSeriesVariance))

	d := YMM()
	VMOVUPD(value(-2.5), d)
	VFMADD213PD(value(-0.75), t2, d)
	VMULPD(st, d, d)
	VMULPD(value(5.0/6), skew, c)
	VADDPD(e, c, c)
	VFMADD231PD(skew, c, d)
	VMULPD(value(0.5), e, c)
	VFMADD231PD(e, c, d)
	VADDPD(value(1), d, d)
	VMULPD(value(math.Sqrt(2*math.Pi)), width, c)
	VMULPD(c, d, d)
	VMOVUPD(d, field(shapeSeriesMass))
}

// gainEnds finds what must be integrated of four gain posteriors; see the Go
// version.
func gainEnds() {
	TEXT("gainEndsAVX2", NOSPLIT, "func(n, tau []float64, lo, hi float64, steep, far, out []float64)")
	Pragma("noescape")
	Doc("gainEndsAVX2 is gainEnds with AVX2, for four sensors.")
	n, tau, out := Mem{Base: base("n")}, Mem{Base: base("tau")}, base("out")
	field := func(f int) Mem { return Mem{Base: out, Disp: 32 * f} }
	lo, hi := broadcast("lo"), broadcast("hi")
	mode, inverse, curvature := field(shapeMode), YMM(), YMM()
	VMOVUPD(field(shapeInverse), inverse)
	VMOVUPD(field(shapeCurvature), curvature)
	left, right := YMM(), YMM()
	VMOVUPD(mode, left)
	VSUBPD(left, hi, right)
	VSUBPD(lo, left, left)
	slope := YMM()
	VMOVUPD(bits(1<<63), slope)
	VXORPD(field(shapeSlope), slope, slope)
	reach := YMM()
	VADDPD(tau, curvature, reach)
	parabolaReach(slope, reach)
	VMINPD(left, reach, left)
	VXORPD(bits(1<<63), left, left)
	VMOVUPD(left, field(shapeLeft))
	VMOVUPD(field(shapeSlope), slope)
	for range 2 {
		closer := YMM()
		VMULPD(inverse, right, closer)
		VMULPD(value(2.0/3), closer, closer)
		VADDPD(value(1), closer, closer)
		VDIVPD(closer, curvature, closer)
		VADDPD(tau, closer, closer)
		parabolaReach(slope, closer)
		VMINPD(right, closer, right)
	}
	VMOVUPD(right, field(shapeRight))

	steep := func(u Register) Register {
		s, d := YMM(), YMM()
		VMOVUPD(value(1), d)
		VFMADD231PD(inverse, u, d)
		VDIVPD(d, curvature, d)
		VADDPD(tau, d, d)
		VMOVUPD(slope, s)
		VFNMADD231PD(d, u, s)
		VANDPD(bits(1<<63-1), s, s)
		return s
	}
	steepness := steep(left)
	VMAXPD(steep(right), steepness, steepness)
	middle, half := YMM(), YMM()
	VADDPD(left, right, middle)
	VMULPD(value(0.5), middle, middle)
	VADDPD(mode, middle, middle)
	VSUBPD(left, right, half)
	VMULPD(value(0.5), half, half)
	VMULPD(half, steepness, steepness)

	const greaterEqual, notGreater, notEqual = 0x1d, 0x1a, 0x04
	is, limit := YMM(), YMM()
	tooSteep := count("steep", func(of Mem) {
		VBROADCASTSD(of, limit)
		VCMPPD(U8(greaterEqual), limit, steepness, is)
	}, is)
	tooNear := count("far", func(of Mem) {
		VBROADCASTSD(of, limit)
		VMULPD(half, limit, limit)
		VCMPPD(U8(notGreater), limit, middle, is)
	}, is)
	zero := YMM()
	VXORPD(zero, zero, zero)
	VCMPPD(U8(notEqual), n, zero, is)
	VPAND(is, tooNear, tooNear)
	VPMAXSD(tooSteep, tooNear, tooNear)
	VPOR(value(1<<52), tooNear, tooNear) // as a number: the last digits of one that has no digits behind the point
	VSUBPD(value(1<<52), tooNear, tooNear)
	VMOVUPD(tooNear, field(shapeRule))
	VZEROUPPER()
	RET()
}

// count is how many of the numbers of a parameter, of which there is at least one, are such that compare sets is, as whole numbers.
func count(name string, compare func(of Mem), is Register) Register {
	at, left, sum := base(name), Load(Param(name).Len(), GP64()), YMM()
	VPXOR(sum, sum, sum)
	loop(name, left, func() {
		compare(Mem{Base: at})
		VPSUBQ(is, sum, sum) // all bits are set, which is -1
		add(at, 8)
	})
	return sum
}

// broadcast loads a parameter into all lanes.
func broadcast(name string) Register {
	m, err := Param(name).Resolve()
	if err != nil {
		panic(err)
	}
	v := YMM()
	VBROADCASTSD(m.Addr, v)
	return v
}

// gainMode returns the positive root of τs² - Bs - n without cancellation.
func gainMode(n, tau, b Mem) Register {
	root, top, bottom := YMM(), YMM(), YMM()
	VMOVUPD(n, root)
	VMULPD(value(4), root, root)
	VMULPD(tau, root, root)
	shift := YMM()
	VMOVUPD(b, shift)
	VFMADD231PD(shift, shift, root)
	VSQRTPD(root, root)
	negativeTop, negativeBottom := YMM(), YMM()
	VADDPD(root, shift, top)
	VMOVUPD(tau, bottom)
	VADDPD(bottom, bottom, bottom)
	VMOVUPD(n, negativeTop)
	VADDPD(negativeTop, negativeTop, negativeTop)
	VSUBPD(shift, root, negativeBottom)
	VBLENDVPD(shift, negativeTop, top, top)
	VBLENDVPD(shift, negativeBottom, bottom, bottom)
	VDIVPD(bottom, top, top)
	return top
}

// gainSlope returns n/s - τs + B, with the terms summed without rounding errors.
func gainSlope(n, tau, b Mem, s, inverse Register) Register {
	product, lost, ratio, rest := YMM(), YMM(), YMM(), YMM()
	VMULPD(tau, s, product)
	VMOVUPD(product, lost)
	VFMSUB231PD(tau, s, lost) // τs - product, the rounding error
	VMULPD(n, inverse, ratio)
	VMOVUPD(n, rest)
	VFNMADD231PD(ratio, s, rest)
	VMULPD(inverse, rest, rest)
	VSUBPD(lost, rest, rest)
	minus, shift := YMM(), YMM()
	VXORPD(bits(1<<63), product, minus)
	VMOVUPD(b, shift)
	sum := twoSum(twoSum(shift, minus, rest), ratio, rest)
	VADDPD(rest, sum, sum)
	return sum
}

// twoSum returns a+b, and adds its rounding error to rest.
func twoSum(a, b, rest Register) Register {
	sum, bb, t := YMM(), YMM(), YMM()
	VADDPD(b, a, sum)
	VSUBPD(a, sum, bb)
	VSUBPD(bb, sum, t)
	VSUBPD(t, a, t)
	VADDPD(t, rest, rest)
	VSUBPD(bb, b, bb)
	VADDPD(bb, rest, rest)
	return sum
}

// parabolaReach replaces curvature by the u at which slope·u - curvature·u²/2 has fallen
// to -tail.
func parabolaReach(slope, curvature Register) {
	root, top, bottom := YMM(), YMM(), YMM()
	VMULPD(value(2*tail), curvature, root)
	VFMADD231PD(slope, slope, root)
	VSQRTPD(root, root)
	VADDPD(root, slope, top)
	VSUBPD(slope, root, bottom)
	VBLENDVPD(slope, value(2*tail), top, top)
	VBLENDVPD(slope, bottom, curvature, bottom)
	VDIVPD(bottom, top, curvature)
}
