package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// complexLanes are the real and the imaginary parts of four complex values.
type complexLanes struct{ re, im Register }

// fourier writes the steps of the Fourier transform, four lanes at a time, in AVX2, and what is done between two of its
// lines. They wait for the second-level cache, so wider registers would gain little.
func fourier() {
	fourierStep(2, func(v []complexLanes, _ Register, done func(i int, v complexLanes)) {
		sum, difference := sumAndDifference(v[0], v[1])
		done(0, sum)
		done(1, difference)
	})
	fourierStep(4, func(v []complexLanes, _ Register, done func(i int, v complexLanes)) {
		s, u := sumAndDifference(v[0], v[2])
		v1, w := sumAndDifference(v[1], v[3])
		first, third := sumAndDifference(s, v1)
		done(0, first)
		done(2, third)
		second, fourth := withI(u, w)
		done(1, second)
		done(3, fourth)
	})
	fourierStep(3, oddButterfly)
	fourierStep(5, oddButterfly)
	turn()
}

// sumAndDifference takes the registers of a for the sum.
func sumAndDifference(a, b complexLanes) (sum, difference complexLanes) {
	difference = complexLanes{YMM(), YMM()}
	VSUBPD(b.re, a.re, difference.re)
	VSUBPD(b.im, a.im, difference.im)
	VADDPD(b.re, a.re, a.re)
	VADDPD(b.im, a.im, a.im)
	return a, difference
}

// withI is a - ib and a + ib, the second in the registers of a.
func withI(a, b complexLanes) (minus, plus complexLanes) {
	minus = complexLanes{YMM(), YMM()}
	VADDPD(b.im, a.re, minus.re)
	VSUBPD(b.re, a.im, minus.im)
	VSUBPD(b.im, a.re, a.re)
	VADDPD(b.re, a.im, a.im)
	return minus, a
}

// oddButterfly takes sums t and differences d of the parts q and r-q, for an odd radix r: parts p and r-p are
// v₀ + Σ t_q cos(2πpq/r) ∓ i Σ d_q sin(2πpq/r).
func oddButterfly(v []complexLanes, roots Register, done func(i int, v complexLanes)) {
	r := len(v)
	t, d := make([]complexLanes, r), make([]complexLanes, r)
	for q := 1; q <= r/2; q++ {
		t[q], d[q] = sumAndDifference(v[q], v[r-q])
	}
	even, odd := make([]complexLanes, r), make([]complexLanes, r)
	for p := 1; p <= r/2; p++ {
		even[p] = complexLanes{YMM(), YMM()}
		for q := 1; q <= r/2; q++ {
			cos := YMM()
			VBROADCASTSD(Mem{Base: roots, Disp: 16 * (p * q % r)}, cos)
			if q == 1 {
				VMOVAPD(v[0].re, even[p].re)
				VMOVAPD(v[0].im, even[p].im)
			}
			VFMADD231PD(cos, t[q].re, even[p].re)
			VFMADD231PD(cos, t[q].im, even[p].im)
		}
	}
	for q := 1; q <= r/2; q++ {
		VADDPD(t[q].re, v[0].re, v[0].re)
		VADDPD(t[q].im, v[0].im, v[0].im)
	}
	done(0, v[0])
	for p := 1; p <= r/2; p++ {
		odd[p] = complexLanes{YMM(), YMM()}
		for q := 1; q <= r/2; q++ {
			sin := YMM()
			VBROADCASTSD(Mem{Base: roots, Disp: 16*(p*q%r) + 8}, sin)
			if q == 1 {
				VMULPD(sin, d[q].re, odd[p].re)
				VMULPD(sin, d[q].im, odd[p].im)
				continue
			}
			VFMADD231PD(sin, d[q].re, odd[p].re)
			VFMADD231PD(sin, d[q].im, odd[p].im)
		}
	}
	for p := 1; p <= r/2; p++ {
		minus, plus := withI(even[p], odd[p])
		done(p, minus)
		done(r-p, plus)
	}
}

// fourierStep is a step of the Fourier transform; see Fourier in package kernel.
func fourierStep(radix int, butterfly func(v []complexLanes, roots Register, done func(i int, v complexLanes))) {
	name := fmt.Sprintf("fourier%dAVX2", radix)
	TEXT(name, NOSPLIT, "func(re, im []float64, rest, run int, twiddles, roots []float64)")
	Doc(fmt.Sprintf("%s is Fourier of radix %d for runs of a multiple of four values.", name, radix))
	re, im, rest := base("re"), base("im"), number("rest")
	run, t, roots := stride("run", 8), base("twiddles"), base("roots")
	part, three := GP64(), GP64() // bytes from a part to the next one, and three times that
	MOVQ(rest, part)
	IMULQ(run, part)
	LEAQ(Mem{Base: part, Index: part, Scale: 2}, three)
	at := func(p Register, i int) Mem {
		switch i {
		case 0:
			return Mem{Base: p}
		case 3:
			return Mem{Base: p, Index: three, Scale: 1}
		}
		return Mem{Base: p, Index: part, Scale: uint8(i)}
	}
	count := GP64()
	loop("row", rest, func() {
		MOVQ(run, count)
		SHRQ(U8(5), count)
		loop("quad", count, func() {
			v := make([]complexLanes, radix)
			for i := range v {
				v[i] = complexLanes{YMM(), YMM()}
				VMOVUPD(at(re, i), v[i].re)
				VMOVUPD(at(im, i), v[i].im)
			}
			butterfly(v, roots, func(i int, v complexLanes) {
				if i > 0 {
					cos, sin, x := YMM(), YMM(), YMM()
					VBROADCASTSD(Mem{Base: t, Disp: 16 * (i - 1)}, cos)
					VBROADCASTSD(Mem{Base: t, Disp: 16*(i-1) + 8}, sin)
					v.turned(cos, sin, x)
				}
				VMOVUPD(v.re, at(re, i))
				VMOVUPD(v.im, at(im, i))
			})
			add(re, 32)
			add(im, 32)
		})
		add(t, 16*(radix-1))
	})
	VZEROUPPER()
	RET()
}

// turned multiplies by cos - i sin, with a register to spare.
func (v complexLanes) turned(cos, sin, spare Register) {
	VMULPD(v.re, sin, spare)
	VMULPD(v.re, cos, v.re)
	VFMADD231PD(v.im, sin, v.re)
	VFMSUB132PD(cos, spare, v.im)
}

// turn is the product with the factors between two lines; see Turn in package kernel.
func turn() {
	const name = "turnAVX2"
	TEXT(name, NOSPLIT, "func(re, im, factors []float64, cos, sin float64)")
	Doc(name + " is Turn for a multiple of four values.")
	re, im, factors := base("re"), base("im"), base("factors")
	count := Load(Param("re").Len(), GP64())
	cos, sin := broadcast("cos"), broadcast("sin")
	span := GP64()
	MOVQ(count, span)
	SHLQ(U8(3), span) // bytes from cosines to sines
	SHRQ(U8(2), count)
	loop("quad", count, func() {
		low := complexLanes{YMM(), YMM()}
		VMOVUPD(Mem{Base: factors}, low.re)
		VMOVUPD(Mem{Base: factors, Index: span, Scale: 1}, low.im)
		c, s := YMM(), YMM()
		VMULPD(low.im, sin, c)
		VFMSUB231PD(low.re, cos, c)
		VMULPD(low.im, cos, s)
		VFMADD231PD(low.re, sin, s)
		v, spare := complexLanes{YMM(), YMM()}, YMM()
		VMOVUPD(Mem{Base: re}, v.re)
		VMOVUPD(Mem{Base: im}, v.im)
		v.turned(c, s, spare)
		VMOVUPD(v.re, Mem{Base: re})
		VMOVUPD(v.im, Mem{Base: im})
		add(re, 32)
		add(im, 32)
		add(factors, 32)
	})
	VZEROUPPER()
	RET()
}
