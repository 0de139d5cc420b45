package main

import (
	"math"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// millsRatios replaces every value by Mills' ratio; see the Go version.
func millsRatios() {
	inPlace("millsAVX2", "replaces values of zero or more, a multiple of four, by Mills' ratios.", func(x VecVirtual) Register {
		down, up := YMM(), YMM()
		VSUBPD(value(millsNode), x, down)
		VADDPD(value(millsNode), x, up)
		VADDPD(value(millsShift), x, x)
		VDIVPD(up, down, up)
		r := polynomial(millsSeries, up)
		VDIVPD(x, r, r)
		return r
	})
}

// Layout of the parameters and results of logisticNodes, of four entries; see the Go version.
const (
	logisticWidth = iota
	logisticF
	logisticRest
	logisticC1
	logisticH1
	logisticC2
	logisticH2
	logisticMass
	logisticFirst
	logisticSecond
	logisticFirstX
	logisticSecondX
)

// logisticNodes sums over nodes, two at a time; see the Go version.
func logisticNodes() {
	TEXT("logisticNodesAVX2", NOSPLIT, "func(x, logs []float64, d []float64)")
	Pragma("noescape")
	Doc("logisticNodesAVX2 is LogisticNodes with AVX2, for four entries and an even number of nodes.")
	nodes, logs, d := base("x"), base("logs"), base("d")
	n := Load(Param("x").Len(), GP64())
	SHRQ(U8(1), n)
	field := func(f int) Mem { return Mem{Base: d, Disp: 32 * f} }
	local := AllocLocal(32 * 2)
	sums := make([]Register, 5)
	for i := range sums {
		sums[i] = constantZero()
	}
	loop("two", n, func() {
		var change, scale, r [2]Register
		for i := range 2 {
			change[i], scale[i], r[i] = YMM(), YMM(), YMM()
			VBROADCASTSD(Mem{Base: nodes, Disp: 8 * i}, change[i])
			VMULPD(field(logisticWidth), change[i], change[i])
			VMOVUPD(change[i], local.Offset(32*i)) // d
			VMOVUPD(value(magic), scale[i])
			VFMADD231PD(value(math.Log2E), change[i], scale[i])
		}
		for i := range 2 {
			VSUBPD(value(magic), scale[i], r[i])
			VPSLLQ(U8(52), scale[i], scale[i])
			VPADDQ(value(1), scale[i], scale[i]) // 2^k
			VFNMADD231PD(bits(0x3fe62e42fee00000), r[i], change[i])
			VFNMADD231PD(value(1.9082149292705877e-10), r[i], change[i])
		}
		horner(expSeries, change[:], r[:])
		for i := range 2 {
			VMULPD(r[i], change[i], change[i]) // e^r - 1
			rest := r[i]
			VMOVUPD(scale[i], rest)
			VFMADD231PD(change[i], scale[i], rest) // e^d
			less := YMM()
			VMOVUPD(field(logisticF), less)
			VFMADD213PD(field(logisticRest), less, rest)
			VSUBPD(value(1), scale[i], less)
			VFMADD213PD(less, scale[i], change[i]) // e^d - 1
			VMULPD(field(logisticF), change[i], change[i])
			VMULPD(field(logisticRest), change[i], change[i])
			VDIVPD(rest, change[i], change[i])
		}
		var e [2]Register
		for i := range 2 {
			// -d (c1 + d h1) - Δ (c2 + Δ h2) + log w
			e[i] = YMM()
			VBROADCASTSD(Mem{Base: logs, Disp: 8 * i}, e[i])
			at, t := YMM(), YMM()
			VMOVUPD(local.Offset(32*i), at)
			VMOVUPD(field(logisticC1), t)
			VFMADD231PD(field(logisticH1), at, t)
			VFNMADD231PD(t, at, e[i])
			VMOVUPD(field(logisticC2), t)
			VFMADD231PD(field(logisticH2), change[i], t)
			VFNMADD231PD(t, change[i], e[i])
		}
		exp(e[:]...)
		for i := range 2 {
			x, t := YMM(), YMM()
			VBROADCASTSD(Mem{Base: nodes, Disp: 8 * i}, x)
			VADDPD(e[i], sums[0], sums[0])
			VMULPD(x, e[i], t)
			VADDPD(t, sums[1], sums[1])
			VFMADD231PD(t, x, sums[2])
			VMULPD(change[i], e[i], t)
			VADDPD(t, sums[3], sums[3])
			VFMADD231PD(t, change[i], sums[4])
		}
		add(nodes, 16)
		add(logs, 16)
	})
	for i, s := range sums {
		VMOVUPD(s, field(logisticMass+i))
	}
	VZEROUPPER()
	RET()
}
