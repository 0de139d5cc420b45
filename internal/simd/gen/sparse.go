package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// sparse writes the loops over a row of a sparse matrix in AVX2: one entry for four
// signals at a time. They wait for the lines that the columns name.
func sparse() {
	for _, e := range []entry{{"F32", "float32", 4}, {"F64", "float64", 8}} {
		k := kernels{isa: isa{name: "AVX2", lanes: 4}, entry: e}
		for _, both := range []bool{false, true} {
			k.sparseDot(both)
			k.sparseAxpy(both)
		}
	}
}

// everywhere loads an entry into all lanes.
func (k kernels) everywhere(at Mem) Register {
	v := YMM()
	if k.size == 4 {
		single := XMM()
		VBROADCASTSS(at, single)
		VCVTPS2PD(single, v)
	} else {
		VBROADCASTSD(at, v)
	}
	return v
}

// line loads the offset of the line of a column: 32 bytes, or 64 with squares.
func line(columns Register, disp int, both bool) Register {
	at := GP64()
	MOVLQSX(Mem{Base: columns, Disp: disp}, at)
	if both {
		SHLQ(U8(6), at)
	} else {
		SHLQ(U8(5), at)
	}
	return at
}

// sparseRow runs the body for the entries of a row: four at a time, then those that are
// left one by one. Sums are of entry j modulo four.
func (k kernels) sparseRow(w, n, columns Register, body func(j int)) {
	fours := GP64()
	MOVQ(n, fours)
	SHRQ(U8(2), fours)
	JZ(LabelRef("single"))
	loop("four", fours, func() {
		for j := range 4 {
			body(j)
		}
		add(w, 4*k.size)
		add(columns, 16)
	})
	Label("single")
	ANDQ(U8(3), n)
	JZ(LabelRef("end"))
	loop("one", n, func() {
		body(0)
		add(w, k.size)
		add(columns, 4)
	})
	Label("end")
}

func (k kernels) sparseDot(both bool) {
	name, size := "sparseDot", "4"
	if both {
		name, size = "sparseDotBoth", "8"
	}
	k.function(name, "w []%s, columns []int32, x []%s, z *["+size+"]float64", "sets z to the product of a sparse row with the lines of x.")
	w, n := base("w"), Load(Param("w").Len(), GP64())
	columns, x := base("columns"), base("x")
	sums, squares := k.zeroed(4), []Register(nil)
	if both {
		squares = k.zeroed(4)
	}
	k.sparseRow(w, n, columns, func(j int) {
		at := line(columns, 4*j, both)
		e := k.everywhere(Mem{Base: w, Disp: k.size * j})
		VFMADD231PD(Mem{Base: x, Index: at, Scale: 1}, e, sums[j])
		if both {
			VMULPD(e, e, e)
			VFMADD231PD(Mem{Base: x, Index: at, Scale: 1, Disp: 32}, e, squares[j])
		}
	})
	z := Load(Param("z"), GP64())
	total := func(v []Register, disp int) {
		VADDPD(v[1], v[0], v[0])
		VADDPD(v[3], v[2], v[2])
		VADDPD(v[2], v[0], v[0])
		VMOVUPD(v[0], Mem{Base: z, Disp: disp})
	}
	total(sums, 0)
	if both {
		total(squares, 32)
	}
	VZEROUPPER()
	RET()
}

func (k kernels) sparseAxpy(both bool) {
	name, size := "sparseAxpy", "4"
	if both {
		name, size = "sparseAxpyBoth", "8"
	}
	k.function(name, "w []%s, columns []int32, r []%s, by *["+size+"]float64", "adds a sparse row times by to the lines of r.")
	w, n := base("w"), Load(Param("w").Len(), GP64())
	columns, r := base("columns"), base("r")
	from := Load(Param("by"), GP64())
	g, d := YMM(), YMM()
	VMOVUPD(Mem{Base: from}, g)
	if both {
		VMOVUPD(Mem{Base: from, Disp: 32}, d)
	}
	k.sparseRow(w, n, columns, func(j int) {
		at := line(columns, 4*j, both)
		e, v := k.everywhere(Mem{Base: w, Disp: k.size * j}), YMM()
		VMOVUPD(Mem{Base: r, Index: at, Scale: 1}, v)
		VFMADD231PD(e, g, v)
		VMOVUPD(v, Mem{Base: r, Index: at, Scale: 1})
		if both {
			VMULPD(e, e, e)
			u := YMM()
			VMOVUPD(Mem{Base: r, Index: at, Scale: 1, Disp: 32}, u)
			VFMADD231PD(e, d, u)
			VMOVUPD(u, Mem{Base: r, Index: at, Scale: 1, Disp: 32})
		}
	})
	VZEROUPPER()
	RET()
}
