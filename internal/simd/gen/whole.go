package main

import (
	"sync"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// Kernels over bytes, in whole numbers: products of eight and sixteen bits, two of which add up to thirty-two. In single precision every
// entry would have to be converted twice, and half as many multiplied at a time.

// wholes writes them for one instruction set, with as many signals at a time as its registers are for.
func wholes(v isa) {
	group := 5
	if v.lanes == 4 {
		group = 2
	}
	for signals := 1; signals <= group; signals++ {
		wholeForward(v, signals)
		wholeBackward(v, signals)
	}
	wholeDrain(v)
}

// addProducts adds to sum what two neighbouring words give with those of by, in every lane: with AVX-512 in one instruction, which not all
// processors have that have the others (simd.Words).
func addProducts(v isa, words Register, by Op, sum Register) {
	if v.lanes == 8 {
		VPDPWSSD(by, words, sum)
		return
	}
	product := kernels{isa: v}.reg()
	VPMADDWD(by, words, product)
	VPADDD(product, sum, sum)
}

// asDoubles returns the sums of pairs of a register's eight whole numbers, as float64.
func asDoubles(v Register) Register {
	low, high, half := YMM(), YMM(), XMM()
	VEXTRACTI128(U8(1), v, half)
	VCVTDQ2PD(half, high)
	VCVTDQ2PD(lowHalf(v), low)
	VADDPD(high, low, low)
	return low
}

func wholeForward(v isa, signals int) {
	name := blockedName("wholeForward", signals, false) + v.name
	TEXT(name, NOSPLIT, "func(w []int8, blocks int, x []int16, xStep int, z []float64)")
	Doc(name + " is Forward for a fixed number of signals.")
	w, blocks, x, xStep, z := base("w"), number("blocks"), base("x"), stride("xStep", 2), base("z")
	k := kernels{isa: v}
	pairs := panelRows * blockCols / (4 * v.lanes) // registers for a block's words: two rows in each, or one
	sums := make([][]Register, signals)
	for s := range sums {
		sums[s] = k.zeroed(pairs)
	}
	loop("block", blocks, func() {
		fetch(Mem{Base: w, Disp: ahead}, 1)
		words := k.regs(pairs)
		for i, e := range words {
			VPMOVSXBW(Mem{Base: w, Disp: panelRows * blockCols / pairs * i}, e)
		}
		for s := range sums {
			at := Mem{Base: x, Disp: 2 * blockCols * s}
			xs := k.reg()
			if v.lanes == 8 {
				VBROADCASTI64X4(at, xs)
			} else {
				VMOVDQU(at, xs)
			}
			for i, e := range words {
				addProducts(v, e, xs, sums[s][i])
			}
		}
		add(w, panelRows*blockCols)
		ADDQ(xStep, x)
	})
	for s := range sums {
		rows := make([]Register, 0, panelRows)
		for _, sum := range sums[s] {
			if v.lanes == 8 {
				high := YMM()
				VEXTRACTI64X4(U8(1), sum, high)
				rows = append(rows, asDoubles(sum.(VecVirtual).AsY()), asDoubles(high))
			} else {
				rows = append(rows, asDoubles(sum))
			}
		}
		total, at := kernels{isa: isa{lanes: 4}}.rowSums(rows), Mem{Base: z, Disp: 8 * panelRows * s}
		VADDPD(at, total, total)
		VMOVUPD(total, at)
	}
	VZEROUPPER()
	RET()
}

func wholeBackward(v isa, signals int) {
	name := blockedName("wholeBackward", signals, false) + v.name
	TEXT(name, NOSPLIT, "func(w []int8, ahead, blocks int, r []int32, rStep int, g []int16, gStep int)")
	Doc(name + " is Backward for a fixed number of signals.")
	w, blocks, r, rStep := base("w"), number("blocks"), base("r"), stride("rStep", 4)
	g, gStep := base("g"), stride("gStep", 2)
	k := kernels{isa: v}
	var factors [panelRows / 2][]Register
	for i := range factors {
		factors[i] = k.regs(signals)
		for s, f := range factors[i] {
			VPBROADCASTD(Mem{Base: g, Disp: 4 * s}, f)
		}
		ADDQ(gStep, g)
	}
	next := number("ahead")
	ADDQ(w, next)
	var order Register
	if v.lanes == 8 {
		order = ZMM()
		VMOVDQU64(interleaved(), order)
	}
	halves := 8 / v.lanes // registers for a block's sums
	loop("block", blocks, func() {
		fetch(Mem{Base: next}, 1)
		add(next, panelRows*blockCols/2)
		for half := range halves {
			var words [panelRows / 2]Register
			for i := range words {
				words[i] = k.reg()
				at := Mem{Base: w, Disp: 2 * blockCols * i}
				if v.lanes == 8 {
					VPMOVSXBW(at, words[i])
					VPERMW(words[i], order, words[i])
					continue
				}
				row, both := XMM(), XMM()
				VMOVDQU(at, row)
				if half == 0 {
					VPUNPCKLBW(at.Offset(blockCols), row, both)
				} else {
					VPUNPCKHBW(at.Offset(blockCols), row, both)
				}
				VPMOVSXBW(both, words[i])
			}
			for s := range signals {
				at, sum := Mem{Base: r, Disp: 4*blockCols*s + 32*half}, k.reg()
				k.load(at, sum)
				for i, e := range words {
					addProducts(v, e, factors[i][s], sum)
				}
				k.store(sum, at)
			}
		}
		add(w, panelRows*blockCols)
		ADDQ(rStep, r)
	})
	VZEROUPPER()
	RET()
}

// interleaved is the order of words in which those of two rows alternate.
var interleaved = sync.OnceValue(func() Mem {
	m := GLOBL("interleaved", RODATA|NOPTR)
	for i := range blockCols {
		DATA(4*i, U16(i))
		DATA(4*i+2, U16(blockCols+i))
	}
	return m
})

func wholeDrain(v isa) {
	TEXT("wholeDrain"+v.name, NOSPLIT, "func(total []float64, sums []int32, units []float64)")
	Doc("wholeDrain" + v.name + " adds sums times the units of their signals to total, and clears them.")
	total, sums, left := base("total"), base("sums"), Load(Param("sums").Len(), GP64())
	k := kernels{isa: v}
	zero := k.zeroed(1)[0]
	SHRQ(U8(4), left)
	Label("blocks")
	units, signals := base("units"), Load(Param("units").Len(), GP64())
	SUBQ(signals, left)
	loop("signal", signals, func() {
		unit := k.reg()
		VBROADCASTSD(Mem{Base: units}, unit)
		for j := range blockCols / k.lanes {
			v, at := k.reg(), Mem{Base: total, Disp: 8 * j * k.lanes}
			VCVTDQ2PD(Mem{Base: sums, Disp: 4 * j * k.lanes}, v)
			VMULPD(unit, v, v)
			VADDPD(at, v, v)
			VMOVUPD(v, at)
		}
		for j := range blockCols / (2 * k.lanes) {
			VMOVUPS(zero, Mem{Base: sums, Disp: 8 * j * k.lanes})
		}
		add(units, 8)
		add(total, 8*blockCols)
		add(sums, 4*blockCols)
	})
	TESTQ(left, left)
	JNZ(LabelRef("blocks"))
	VZEROUPPER()
	RET()
}
