package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// fourier4 is a step of the Fourier transform of radix four, four lanes at a time, in
// AVX2; see plainFourier4 in package kernel.
func fourier4() {
	const name = "fourier4AVX2"
	TEXT(name, NOSPLIT, "func(re, im []float64, rest, run int, twiddles []float64)")
	Doc(name + " is Fourier4 for runs of a multiple of four values.")
	re, im, rest := base("re"), base("im"), number("rest")
	run, t := stride("run", 8), base("twiddles")
	part, three := GP64(), GP64() // bytes from a to b, and to d
	MOVQ(rest, part)
	IMULQ(run, part)
	LEAQ(Mem{Base: part, Index: part, Scale: 2}, three)
	count := GP64()
	loop("row", rest, func() {
		MOVQ(run, count)
		SHRQ(U8(5), count)
		loop("quad", count, func() {
			at := func(p Register, i int) Mem {
				switch i {
				case 0:
					return Mem{Base: p}
				case 3:
					return Mem{Base: p, Index: three, Scale: 1}
				}
				return Mem{Base: p, Index: part, Scale: uint8(i)}
			}
			// Sums and differences of a and c, b and d.
			pair := func(p Register, i, k int) (sum, difference Register) {
				x, y := YMM(), YMM()
				sum, difference = x, YMM()
				VMOVUPD(at(p, i), x)
				VMOVUPD(at(p, k), y)
				VSUBPD(y, x, difference)
				VADDPD(y, x, x)
				return sum, difference
			}
			s, u := pair(re, 0, 2)
			si, ui := pair(im, 0, 2)
			v, negated := pair(re, 1, 3) // b-d
			vi, w := pair(im, 1, 3)      // -i(b-d) is (bi-di) - i (b-d)
			first := YMM()
			VADDPD(v, s, first)
			VMOVUPD(first, at(re, 0))
			VADDPD(vi, si, first)
			VMOVUPD(first, at(im, 0))
			VSUBPD(v, s, s)
			VSUBPD(vi, si, si)
			// x + i y times cos - i sin
			turn := func(x, y Register, i int) {
				cos, sin, out := YMM(), YMM(), YMM()
				VBROADCASTSD(Mem{Base: t, Disp: 16 * (i - 1)}, cos)
				VBROADCASTSD(Mem{Base: t, Disp: 16*(i-1) + 8}, sin)
				VMULPD(y, sin, out)
				VFMADD231PD(x, cos, out)
				VMOVUPD(out, at(re, i))
				VMULPD(x, sin, sin)
				VFMSUB231PD(y, cos, sin)
				VMOVUPD(sin, at(im, i))
			}
			turn(s, si, 2)
			x, y := YMM(), YMM()
			VADDPD(w, u, x)
			VSUBPD(negated, ui, y)
			turn(x, y, 1)
			VSUBPD(w, u, u)
			VADDPD(negated, ui, ui)
			turn(u, ui, 3)
			add(re, 32)
			add(im, 32)
		})
		add(t, 48)
	})
	VZEROUPPER()
	RET()
}
