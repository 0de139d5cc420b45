package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
)

// tileVectors is how many registers a row of a tile has. All sums stay in registers: three of them a row, twelve of
// sixteen with AVX2, and twice as many rows, 24 of 32, with AVX-512.
const tileVectors = 3

// tile adds the product of a strip of one matrix with a strip of another.
func tile(v isa) {
	rows := 4
	if v.lanes == 8 {
		rows = 8
	}
	name := "tile" + v.name
	TEXT(name, NOSPLIT, "func(depth int, times float64, a, b, c []float64, down int)")
	Doc(name + " is Tile.")
	depth, a, b, c, down := number("depth"), base("a"), base("b"), base("c"), number("down")
	k := kernels{isa: v}
	sums := k.zeroed(rows * tileVectors)
	right, one := k.regs(tileVectors), k.reg()
	bytes := 8 * v.lanes
	loop("depth", depth, func() {
		for j, r := range right {
			VMOVUPD(Mem{Base: b, Disp: bytes * j}, r)
		}
		for i := range rows {
			VBROADCASTSD(Mem{Base: a, Disp: 8 * i}, one)
			for j, r := range right {
				VFMADD231PD(one, r, sums[i*tileVectors+j])
			}
		}
		add(a, 8*rows)
		add(b, bytes*tileVectors)
	})
	VBROADCASTSD(NewParamAddr("times", 8), one)
	SHLQ(U8(3), down)
	for i := range rows {
		for j, s := range sums[i*tileVectors:][:tileVectors] {
			VFMADD213PD(Mem{Base: c, Disp: bytes * j}, one, s)
			VMOVUPD(s, Mem{Base: c, Disp: bytes * j})
		}
		ADDQ(down, c)
	}
	VZEROUPPER()
	RET()
}
