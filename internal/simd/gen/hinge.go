package main

import (
	"math"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// millsSeries is a polynomial in (x-millsNode)/(x+millsNode) for (x+millsShift) R(x), R Mills' ratio of a normal number and x ≥ 0, by interpolation at Chebyshev's
// points. Its relative error is 1e-17.
var millsSeries = []float64{1.062852902210159, -0.04132223651027594, -0.09156670077164697, 0.1448555604318854, -0.1269061937408569, 0.0769183271107094, -0.03185290577660084, 0.007140717272818686, 0.0006702695454679202, -0.0010135355734085087, 0.00016313651566910142, 0.00010263334458802596, -3.7575540514736605e-05, -1.1415125061157793e-05, 6.540368511662864e-06, 1.6871147685735282e-06, -1.0898269944221254e-06, -3.322707811810021e-07, 1.7226104160035834e-07, 7.127892367605146e-08, -2.2693145239868316e-08, -1.2650841550104546e-08, 1.7777849285880909e-09, 1.247799524195987e-09}

// As in package vector.
const (
	millsNode  = 4.5
	millsShift = 0.5

	hingeTail   = 12
	hingeWeight = 1e-18
	hingeLeast  = 1e-200
	hingeMost   = 1e60
	hingeFar    = 1e8
	hingeTrace  = -600
)

// Layout of the parameters and results of hinge, in groups of four.
const (
	hingeLambda = iota
	hingePrecision
	hingeOmega
	hingeV
	hingeX
	hingeXVar
	hingeOff
	hingeUVar
	hingeLog
	hingeFields
)

// What hinge keeps of each of the two pieces.
const (
	pieceInside  = iota // t
	pieceN              // 1/(1 + slope² a V), and then its root times J
	pieceSD             // of u
	pieceMiddle         // of u - ω
	pieceQuarrel        // slope ω - λ, and then the exponent -a n/2 times its square
	pieceMills          // R(|t|), and then J
	pieceValue          // e^(-t²/2), and then the hazard
	pieceFields
)

const (
	greater     = 0x1e // no number is neither
	lessOrEqual = 0x12
	less        = 0x11
)

// hinge is the factor of two straight pieces that meet at zero; see the Go version.
func hinge() {
	TEXT("hingeAVX2", NOSPLIT, "func(groups int, d []float64, slope float64)")
	Pragma("noescape")
	Doc("hingeAVX2 is hinge with AVX2.")
	groups, d := number("groups"), base("d")
	local := AllocLocal(32 * 2 * pieceFields)
	field := func(f int) Mem { return Mem{Base: d, Disp: 32 * f} }
	kept := func(piece, f int) Mem { return local.Offset(32 * (pieceFields*piece + f)) }
	load := func(m Mem) Register {
		r := YMM()
		VMOVUPD(m, r)
		return r
	}
	constant := func(v float64) Register { return load(value(v)) }
	loop("group", groups, func() {
		for piece := range 2 {
			hingePiece(piece, field, kept)
		}
		var x, p [2]Register
		for i := range x { // Mills' ratios of |t|
			x[i], p[i] = load(bits(1<<63-1)), YMM()
			VANDPD(kept(i, pieceInside), x[i], x[i])
			down, up := YMM(), constant(millsNode)
			VSUBPD(up, x[i], down)
			VADDPD(up, x[i], up)
			VADDPD(value(millsShift), x[i], x[i])
			VMOVUPD(x[i], kept(i, pieceMills))
			VDIVPD(up, down, x[i])
		}
		horner(millsSeries, x[:], p[:])
		for i, p := range p {
			VDIVPD(kept(i, pieceMills), p, p)
			VMOVUPD(p, kept(i, pieceMills))
		}

		// e^(-t²/2), and e^-|D| with D = (T1² - T0²)/2, T = max(t, 0), which is by how much the second piece has more.
		var e [3]Register
		var t [2]Register
		for i := range t {
			e[i], t[i] = constant(-0.5), load(kept(i, pieceInside))
			VMULPD(t[i], e[i], e[i])
			VMULPD(t[i], e[i], e[i])
			VMAXPD(value(0), t[i], t[i])
		}
		e[2] = YMM()
		VSUBPD(t[0], t[1], e[2])
		VADDPD(t[0], t[1], t[1])
		VMULPD(value(0.5), t[1], t[1])
		VMULPD(t[1], e[2], e[2])
		VMOVUPD(e[2], field(hingeLog)) // D
		VORPD(bits(1<<63), e[2], e[2])
		for _, e := range e {
			VMAXPD(value(hingeTrace), e, e)
		}
		exp(e[:]...)
		weight := [2]Register{YMM(), YMM()}
		second := YMM()
		VCMPPD(U8(lessOrEqual), field(hingeLog), constantZero(), second)
		VBLENDVPD(second, e[2], constant(1), weight[0])
		VBLENDVPD(second, constant(1), e[2], weight[1])
		for i := range weight {
			inside := load(kept(i, pieceInside))
			mills, hazard := load(kept(i, pieceMills)), constant(1)
			j := constant(math.Sqrt(2 * math.Pi))
			VFNMADD231PD(mills, e[i], j)
			VBLENDVPD(inside, mills, j, j)
			VBLENDVPD(inside, hazard, e[i], hazard)
			VDIVPD(j, hazard, hazard)
			VMOVUPD(hazard, kept(i, pieceValue))
			root := YMM()
			VSQRTPD(kept(i, pieceN), root)
			VMULPD(j, root, root)
			VMULPD(root, weight[i], weight[i])
		}
		hingeMass(weight, second, field, kept)

		// Moments of both.
		one := constant(1)
		total := YMM()
		VADDPD(weight[0], weight[1], total)
		VDIVPD(total, one, total)
		for _, w := range weight {
			VMULPD(total, w, w)
		}
		var u, off, variance [2]Register
		for i := range u {
			inside, hazard, sd := load(kept(i, pieceInside)), load(kept(i, pieceValue)), load(kept(i, pieceSD))
			beyond, is := YMM(), YMM()
			VCMPPD(U8(less), value(-hingeTail), inside, beyond)
			VCMPPD(U8(greater), value(hingeWeight), weight[i], is)
			VANDPD(beyond, is, is)
			VORPD(field(hingeLog), is, is) // no number
			VMOVUPD(is, field(hingeLog))
			mean := beyond
			VADDPD(hazard, inside, mean)
			variance[i] = constant(1)
			VFNMADD231PD(hazard, mean, variance[i])
			VMAXPD(value(0), variance[i], variance[i])
			VMULPD(sd, variance[i], variance[i])
			VMULPD(sd, variance[i], variance[i])
			if i == 0 {
				VXORPD(bits(1<<63), sd, sd)
			}
			u[i], off[i] = mean, load(kept(i, pieceMiddle))
			VFMADD231PD(sd, hazard, off[i])
			VMULPD(sd, mean, u[i])
			VSUBPD(field(hingeOmega), u[i], is)
			VBLENDVPD(inside, is, off[i], off[i])
		}
		both, apart := YMM(), YMM()
		VMULPD(weight[0], weight[1], both)
		VSUBPD(u[0], u[1], apart)
		VMULPD(apart, apart, apart)
		VMULPD(both, apart, apart)
		VFMADD231PD(variance[0], weight[0], apart)
		VMULPD(weight[1], variance[1], variance[1])
		VADDPD(variance[1], apart, apart)
		VMOVUPD(apart, field(hingeUVar))
		VMULPD(weight[0], off[0], off[0])
		VFMADD231PD(weight[1], off[1], off[0])
		VMOVUPD(off[0], field(hingeOff))
		slope := off[1]
		VBROADCASTSD(slopeOf(), slope)
		VMULPD(slope, u[0], u[0])
		VSUBPD(u[0], u[1], apart)
		VMULPD(apart, apart, apart)
		VFMADD231PD(apart, both, variance[1])
		VMULPD(slope, slope, slope)
		VMULPD(weight[0], slope, slope)
		VFMADD231PD(slope, variance[0], variance[1])
		VMOVUPD(variance[1], field(hingeXVar))
		VMULPD(weight[0], u[0], u[0])
		VFMADD231PD(weight[1], u[1], u[0])
		VMOVUPD(u[0], field(hingeX))
		add(d, 32*hingeFields)
	})
	VZEROUPPER()
	RET()
}

func constantZero() Register {
	z := YMM()
	VXORPD(z, z, z)
	return z
}

func slopeOf() Mem {
	m, err := Param("slope").Resolve()
	if err != nil {
		panic(err)
	}
	return m.Addr
}

// hingePiece writes what is kept of a piece.
func hingePiece(piece int, field func(int) Mem, kept func(piece, f int) Mem) {
	slope, av, n, quarrel := YMM(), YMM(), YMM(), YMM()
	if piece == 0 {
		VBROADCASTSD(slopeOf(), slope)
	} else {
		VMOVUPD(value(1), slope)
	}
	VMULPD(field(hingePrecision), slope, av)
	VMULPD(field(hingeV), av, av) // slope a V
	VMOVUPD(value(1), n)
	VMOVUPD(n, quarrel)
	VFMADD231PD(av, slope, quarrel)
	VDIVPD(quarrel, n, n)
	VMOVUPD(n, kept(piece, pieceN))
	VMULPD(field(hingeOmega), slope, quarrel)
	VSUBPD(field(hingeLambda), quarrel, quarrel)
	middle := YMM()
	VMULPD(n, av, middle)
	VMULPD(quarrel, middle, middle)
	VXORPD(bits(1<<63), middle, middle)
	VMOVUPD(middle, kept(piece, pieceMiddle))
	VMULPD(quarrel, quarrel, quarrel)
	VMULPD(n, quarrel, quarrel)
	VMULPD(field(hingePrecision), quarrel, quarrel)
	VMULPD(value(-0.5), quarrel, quarrel)
	VMOVUPD(quarrel, kept(piece, pieceQuarrel))
	sd := YMM()
	VMULPD(field(hingeV), n, sd)
	VSQRTPD(sd, sd)
	VMOVUPD(sd, kept(piece, pieceSD))
	VMULPD(field(hingeLambda), av, av)
	VADDPD(field(hingeOmega), av, av)
	VMULPD(n, av, av)
	VDIVPD(sd, av, av)
	if piece == 0 {
		VXORPD(bits(1<<63), av, av)
	}
	VMOVUPD(av, kept(piece, pieceInside))
}

// hingeMass writes the logarithm of the mass, and no number where the formulas are not good. The logarithm is in field(hingeLog) before: D.
func hingeMass(weight [2]Register, second Register, field func(int) Mem, kept func(piece, f int) Mem) {
	// The exponent of the piece that has more: where its middle is inside, -a n (slope ω - λ)²/2, and -(ω²/V + aλ²)/2 elsewhere.
	outside, top, exponent, t := YMM(), YMM(), YMM(), YMM()
	VMOVUPD(field(hingeOmega), outside)
	VMULPD(outside, outside, outside)
	VDIVPD(field(hingeV), outside, outside)
	VMOVUPD(field(hingeLambda), top)
	VMULPD(top, top, top)
	VFMADD231PD(field(hingePrecision), top, outside)
	VMULPD(value(-0.5), outside, outside)
	VMOVUPD(kept(0, pieceQuarrel), exponent)
	VBLENDVPD(second, kept(1, pieceQuarrel), exponent, exponent)
	VMOVUPD(kept(0, pieceInside), t)
	VBLENDVPD(second, kept(1, pieceInside), t, t)
	VBLENDVPD(t, outside, exponent, exponent)
	mass := YMM()
	VADDPD(weight[0], weight[1], mass)
	VMULPD(value(1/math.Sqrt(2*math.Pi)), mass, mass)
	VADDPD(logarithm(mass), exponent, exponent)

	good, is := YMM(), YMM()
	VMOVUPD(field(hingeV), t)
	VCMPPD(U8(greater), value(hingeLeast), t, good)
	VMULPD(field(hingePrecision), t, t)
	VCMPPD(U8(less), value(hingeMost), t, is)
	VANDPD(is, good, good)
	for i := range 2 {
		VMOVUPD(bits(1<<63-1), t)
		VANDPD(kept(i, pieceInside), t, t)
		VCMPPD(U8(less), value(hingeFar), t, is)
		VANDPD(is, good, good)
	}
	VPCMPEQQ(is, is, is)
	VXORPD(is, good, good)
	VORPD(good, exponent, exponent)
	VMOVUPD(exponent, field(hingeLog))
}
