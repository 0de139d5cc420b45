package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// Kernels for one signal over bytes, in whole numbers: products of eight and sixteen bits, two of which add up to thirty-two. In
// single precision every entry would have to be converted twice.

// wholeRun is how many blocks of columns may add up in thirty-two bits: each adds two products of at most 127·32767.
const wholeRun = 256

// wholes writes them for one instruction set.
func wholes(v isa) {
	wholeForward(v)
	wholeBackward(v)
	wholeDrain(v)
}

// pair loads rows 2i and 2i+1 of the block at w as words, one row behind the other.
func pair(w Register, i int) Register {
	e := ZMM()
	VPMOVSXBW(Mem{Base: w, Disp: 2 * blockCols * i}, e)
	return e
}

// addProducts adds to sum what two neighbouring words give with those of by, in every lane.
func addProducts(words, by, sum Register) {
	VPMADDWD(by, words, words)
	VPADDD(words, sum, sum)
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

func wholeForward(v isa) {
	TEXT("wholeForward"+v.name, NOSPLIT, "func(w []int8, blocks int, x []int16, z []float64)")
	Doc("wholeForward" + v.name + " sets z to the product of a panel with x.")
	w, blocks, x := base("w"), number("blocks"), base("x")
	k := kernels{isa: isa{lanes: 4}}
	total := k.zeroed(1)[0]
	Label("run")
	count := GP64()
	MOVQ(U64(wholeRun), count)
	CMPQ(blocks, count)
	CMOVQLT(blocks, count)
	SUBQ(count, blocks)
	sums := kernels{isa: v}.zeroed(panelRows * blockCols / (4 * v.lanes)) // of as many words as a register holds
	loop("block", count, func() {
		fetch(Mem{Base: w, Disp: ahead}, 1)
		if v.lanes == 8 {
			xs := ZMM()
			VBROADCASTI64X4(Mem{Base: x}, xs)
			for i, sum := range sums {
				addProducts(pair(w, i), xs, sum)
			}
		} else {
			xs := YMM()
			VMOVDQU(Mem{Base: x}, xs)
			for row, sum := range sums {
				e := YMM()
				VPMOVSXBW(Mem{Base: w, Disp: blockCols * row}, e)
				addProducts(e, xs, sum)
			}
		}
		add(w, panelRows*blockCols)
		add(x, 2*blockCols)
	})
	rows := make([]Register, 0, panelRows)
	for _, sum := range sums {
		if v.lanes == 8 {
			high := YMM()
			VEXTRACTI64X4(U8(1), sum, high)
			rows = append(rows, asDoubles(sum.(VecVirtual).AsY()), asDoubles(high))
		} else {
			rows = append(rows, asDoubles(sum))
		}
	}
	VADDPD(k.rowSums(rows), total, total)
	TESTQ(blocks, blocks)
	JNZ(LabelRef("run"))
	VMOVUPD(total, Mem{Base: base("z")})
	VZEROUPPER()
	RET()
}

func wholeBackward(v isa) {
	TEXT("wholeBackward"+v.name, NOSPLIT, "func(w []int8, ahead, blocks int, r []int32, g []int16)")
	Doc("wholeBackward" + v.name + " adds the product of a panel's transpose with g to r.")
	w, blocks, r, g := base("w"), number("blocks"), base("r"), base("g")
	k := kernels{isa: v}
	factors := k.regs(panelRows / 2)
	for i, f := range factors {
		VPBROADCASTD(Mem{Base: g, Disp: 4 * i}, f)
	}
	next := number("ahead")
	ADDQ(w, next)
	var order Register
	if v.lanes == 8 {
		order = ZMM()
		VMOVDQU64(interleaved(), order)
	}
	loop("block", blocks, func() {
		fetch(Mem{Base: next}, 1)
		add(next, panelRows*blockCols/2)
		if v.lanes == 8 {
			sum := ZMM()
			VMOVDQU32(Mem{Base: r}, sum)
			for i, f := range factors {
				e := pair(w, i)
				VPERMW(e, order, e)
				addProducts(e, f, sum)
			}
			VMOVDQU32(sum, Mem{Base: r})
		} else {
			sums := k.regs(2)
			for half, sum := range sums {
				VMOVDQU(Mem{Base: r, Disp: 32 * half}, sum)
			}
			for i, f := range factors {
				at := Mem{Base: w, Disp: 2 * blockCols * i}
				row := XMM()
				VMOVDQU(at, row)
				for half, sum := range sums {
					both, e := XMM(), YMM()
					if half == 0 {
						VPUNPCKLBW(at.Offset(blockCols), row, both)
					} else {
						VPUNPCKHBW(at.Offset(blockCols), row, both)
					}
					VPMOVSXBW(both, e)
					addProducts(e, f, sum)
				}
			}
			for half, sum := range sums {
				VMOVDQU(sum, Mem{Base: r, Disp: 32 * half})
			}
		}
		add(w, panelRows*blockCols)
		add(r, 4*blockCols)
	})
	VZEROUPPER()
	RET()
}

// interleaved is the order of words in which those of two rows alternate.
func interleaved() Mem {
	m := GLOBL("interleaved", RODATA|NOPTR)
	for i := range blockCols {
		DATA(4*i, U16(i))
		DATA(4*i+2, U16(blockCols+i))
	}
	return m
}

func wholeDrain(v isa) {
	TEXT("wholeDrain"+v.name, NOSPLIT, "func(total []float64, sums []int32, unit float64)")
	Doc("wholeDrain" + v.name + " adds sums times unit to total, and clears them; their length is a multiple of 16, and not 0.")
	total, sums, left := base("total"), base("sums"), Load(Param("sums").Len(), GP64())
	k := kernels{isa: v}
	zero, unit := k.zeroed(1)[0], k.reg()
	at, err := Param("unit").Resolve()
	if err != nil {
		panic(err)
	}
	VBROADCASTSD(at.Addr, unit)
	SHRQ(U8(4), left)
	loop("block", left, func() {
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
		add(total, 8*blockCols)
		add(sums, 4*blockCols)
	})
	VZEROUPPER()
	RET()
}
