package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// Layout of the parameters of phasorNodes, as in package vector.
const (
	phasorMiddle = iota
	phasorHalf
	phasorTilt
	phasorSlope
	phasorPower
	phasorTau
	phasorMode
	phasorInverse
	phasorBetaRe
	phasorBetaIm
	phasorAtRe
	phasorAtIm
	phasorBig
	phasorRise
	phasorAcross
	phasorComplement
	phasorToRe
	phasorToIm
	phasorHalfLogPrecision
)

// phasorNodes is what the posterior of a complex gain has at four nodes at a time; see vector.PhasorNodes.
func phasorNodes() {
	TEXT("phasorNodesAVX2", NOSPLIT, "func(x, w, p, zero, difference, weight, re, im, scatter, along []float64)")
	Pragma("noescape")
	Doc("phasorNodesAVX2 is PhasorNodes with AVX2, for a multiple of four nodes.")
	x, w, p := base("x"), base("w"), base("p")
	weight, re, im, scatter, along := base("weight"), base("re"), base("im"), base("scatter"), base("along")
	count, i := Load(Param("zero").Len(), GP64()), Load(Param("x").Len(), GP64())
	zeros, differences := base("zero"), base("difference")
	parameter := func(f int) Register {
		v := YMM()
		VBROADCASTSD(Mem{Base: p, Disp: 8 * f}, v)
		return v
	}
	SHRQ(U8(2), i)
	JZ(LabelRef("end"))
	loop("four", i, func() {
		u, at := YMM(), YMM()
		VMOVUPD(Mem{Base: x}, at)
		VMOVAPD(parameter(phasorMiddle), u)
		VFMADD231PD(parameter(phasorHalf), at, u)

		zRe, zIm, big, inverse := parameter(phasorAtRe), parameter(phasorAtIm), YMM(), YMM()
		VFMADD231PD(parameter(phasorBetaRe), u, zRe)
		VFMADD231PD(parameter(phasorBetaIm), u, zIm)
		VMULPD(zRe, zRe, big)
		VFMADD231PD(zIm, zIm, big)
		VSQRTPD(big, big) // R
		VMOVUPD(value(1), inverse)
		VDIVPD(big, inverse, inverse)

		// I₀ and I₀-I₁ in units of e^R/√(2πR).
		zero, difference, k := YMM(), YMM(), GP64()
		VXORPD(zero, zero, zero)
		VXORPD(difference, difference, difference)
		MOVQ(count, k)
		loop("term", k, func() {
			a, b := YMM(), YMM()
			VBROADCASTSD(Mem{Base: zeros, Index: k, Scale: 8, Disp: -8}, a)
			VBROADCASTSD(Mem{Base: differences, Index: k, Scale: 8, Disp: -8}, b)
			VFMADD213PD(a, inverse, zero)
			VFMADD213PD(b, inverse, difference)
		})
		VFMADD213PD(value(1), inverse, zero)
		VMULPD(inverse, difference, difference)
		complement, ratio, factor := YMM(), YMM(), YMM()
		VDIVPD(zero, difference, complement)
		VMOVUPD(value(1), ratio)
		VSUBPD(complement, ratio, ratio)
		VSQRTPD(inverse, factor)
		VMULPD(zero, factor, factor)
		VMULPD(Mem{Base: w}, factor, factor)

		// The exponent.
		across, bend := YMM(), YMM()
		VMULPD(parameter(phasorAcross), u, across)
		sum := parameter(phasorBig)
		VADDPD(big, sum, sum)
		VFMADD231PD(parameter(phasorRise), u, sum)
		VMULPD(across, across, bend)
		VDIVPD(sum, bend, bend)
		v, h := YMM(), parameter(phasorSlope)
		VFNMADD231PD(parameter(phasorTau), u, h)
		VMULPD(u, h, h)
		VADDPD(bend, h, h)
		VMULPD(at, at, at)
		VFMADD231PD(parameter(phasorTilt), at, h)
		VMULPD(parameter(phasorInverse), u, v)
		log := log1p(v, true)
		VFMADD231PD(parameter(phasorPower), log, h)
		VADDPD(v, log, log)
		VMULPD(log, log, log)
		VFNMADD231PD(parameter(phasorHalfLogPrecision), log, h)
		exp(h)
		VMULPD(factor, h, h)
		VMOVUPD(h, Mem{Base: weight})

		// The mean of s at the node, seen from that at the mode.
		r, size, away, turned := parameter(phasorMode), YMM(), parameter(phasorComplement), YMM()
		VSUBPD(complement, away, away)
		VMULPD(r, away, away)
		VFMADD231PD(u, ratio, away)
		VADDPD(u, r, r)
		VMULPD(r, ratio, size)
		VMULPD(inverse, bend, bend)
		VMULPD(inverse, across, turned)
		VFNMADD231PD(size, bend, away)
		VMOVUPD(away, Mem{Base: re})
		VMULPD(turned, size, size)
		VXORPD(bits(1<<63), size, size)
		VMOVUPD(size, Mem{Base: im})

		// Its variance there, of both parts and along B.
		spread, square := YMM(), YMM()
		VMOVUPD(value(2), spread)
		VSUBPD(complement, spread, spread)
		VMULPD(complement, spread, spread)
		VMULPD(r, r, square)
		VMULPD(inverse, ratio, ratio) // A/R
		slope := YMM()
		VSUBPD(ratio, spread, slope)
		VXORPD(zero, zero, zero)
		VMAXPD(zero, slope, slope) // A'
		VMULPD(square, spread, spread)
		VMOVUPD(spread, Mem{Base: scatter})
		toRe, toIm := parameter(phasorToRe), parameter(phasorToIm)
		cosine, sine := YMM(), YMM()
		VMOVAPD(toRe, cosine)
		VFNMADD231PD(bend, toRe, cosine)
		VFNMADD231PD(turned, toIm, cosine)
		VMOVAPD(toIm, sine)
		VFNMADD231PD(bend, toIm, sine)
		VFMADD231PD(turned, toRe, sine)
		VMULPD(cosine, cosine, cosine)
		VMULPD(sine, sine, sine)
		VMULPD(slope, cosine, cosine)
		VFMADD231PD(ratio, sine, cosine)
		VMULPD(square, cosine, cosine)
		VMOVUPD(cosine, Mem{Base: along})
		for _, p := range []Register{x, w, weight, re, im, scatter, along} {
			add(p, 32)
		}
	})
	Label("end")
	VZEROUPPER()
	RET()
}
