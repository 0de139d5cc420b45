package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
)

// read touches every cache line of w, as fast as a core can. Benchmarks compare the time
// of a sweep with it.
func read() {
	TEXT("readAVX2", NOSPLIT, "func(w []float32) uint64")
	Doc("readAVX2 combines the bits of w, whose length is cut to a multiple of 64.")
	w, n := base("w"), Load(Param("w").Len(), GP64())
	acc := kernels{isa: isa{lanes: 4}}.zeroed(8)
	SHRQ(U8(6), n)
	JZ(LabelRef("end"))
	loop("line", n, func() {
		for i, v := range acc {
			VPXOR(Mem{Base: w, Disp: 32 * i}, v, v)
		}
		add(w, 256)
	})
	Label("end")
	for _, v := range acc[1:] {
		VPXOR(v, acc[0], acc[0])
	}
	sum := GP64()
	VMOVQ(lowHalf(acc[0]), sum)
	Store(sum, ReturnIndex(0))
	VZEROUPPER()
	RET()
}
