package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// butterflies writes the steps of the Walsh–Hadamard transform, four values at a time,
// in AVX2. They wait for memory, so wider registers would gain little.
func butterflies() {
	hadamardStep("butterflies2AVX2", "replaces neighbouring runs a, b of x by a+b, a-b.", 2)
	hadamardStep("butterflies4AVX2", "replaces neighbouring runs a, b, c, d of x by a+b+c+d, a-b+c-d, a+b-c-d, a-b-c+d.", 4)
}

// hadamardStep combines radix runs, each a multiple of four values.
func hadamardStep(name, doc string, radix int) {
	TEXT(name, NOSPLIT, "func(x []float64, run int)")
	Doc(name + " " + doc)
	x, left := base("x"), Load(Param("x").Len(), GP64())
	run := stride("run", 8)
	p := make([]Register, radix) // of each run
	for i := range p {
		p[i] = GP64()
	}
	MOVQ(x, p[0])
	SHLQ(U8(3), left) // bytes
	Label("group")
	for i := 1; i < radix; i++ {
		MOVQ(p[i-1], p[i])
		ADDQ(run, p[i])
	}
	count := GP64()
	MOVQ(run, count)
	SHRQ(U8(5), count)
	loop("quad", count, func() {
		v := make([]Register, radix)
		for i := range v {
			v[i] = YMM()
			VMOVUPD(Mem{Base: p[i]}, v[i])
		}
		for step := 1; step < radix; step *= 2 {
			for i := range v {
				if i&step == 0 {
					difference := YMM()
					VSUBPD(v[i|step], v[i], difference)
					VADDPD(v[i|step], v[i], v[i])
					v[i|step] = difference
				}
			}
		}
		for i := range v {
			VMOVUPD(v[i], Mem{Base: p[i]})
			add(p[i], 32)
		}
	})
	MOVQ(p[radix-1], p[0]) // where the next group begins
	for range radix {
		SUBQ(run, left)
	}
	JA(LabelRef("group"))
	VZEROUPPER()
	RET()
}
