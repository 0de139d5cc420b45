package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// Shape of the packed matrix, as in package kernel.
const (
	panelRows = 4
	blockCols = 16
)

// ahead is how many bytes before their use the forward kernel asks for entries of W. The
// hardware's own prefetcher stops at the end of a page; without this a core reads memory
// at half the speed.
const ahead = 8 << 10

// isa is an instruction set: its float64 lanes, and how many signals the
// blocked kernels hold in registers at once.
type isa struct {
	name         string
	lanes, group int
}

// entry is how the matrix is stored.
type entry struct {
	name, goType string
	size         int
}

type kernels struct {
	isa
	entry
}

func (k kernels) reg() Register {
	if k.lanes == 4 {
		return YMM()
	}
	return ZMM()
}

func (k kernels) regs(n int) []Register {
	v := make([]Register, n)
	for i := range v {
		v[i] = k.reg()
	}
	return v
}

func (k kernels) zeroed(n int) []Register {
	v := k.regs(n)
	for _, r := range v {
		if k.lanes == 4 {
			VXORPD(r, r, r)
		} else {
			VPXORQ(r, r, r)
		}
	}
	return v
}

// vectors is how many registers hold one row of a block.
func (k kernels) vectors() int { return blockCols / k.lanes }

// blockBytes is the size of a block: panelRows rows of blockCols entries.
func (k kernels) blockBytes() int { return panelRows * blockCols * k.size }

// entries loads lanes entries of row and column group j of the block at w.
func (k kernels) entries(w Register, row, j int) Register {
	v := k.reg()
	at := Mem{Base: w, Disp: (row*blockCols + j*k.lanes) * k.size}
	if k.size == 4 {
		VCVTPS2PD(at, v)
	} else {
		VMOVUPD(at, v)
	}
	return v
}

// column loads lanes values of column group j of signal s of the block at x.
func (k kernels) column(x Register, s, j int) Mem {
	return Mem{Base: x, Disp: 8 * (s*blockCols + j*k.lanes)}
}

// function begins a kernel; its name is made from name, entry type and instruction set.
func (k kernels) function(name, signature, doc string) {
	full := name + k.entry.name + k.isa.name
	TEXT(full, NOSPLIT, "func("+fmt.Sprintf(signature, k.goType)+")")
	Doc(full + " " + doc)
}

func base(name string) Register { return Load(Param(name).Base(), GP64()) }

func number(name string) Register { return Load(Param(name), GP64()) }

// stride loads a parameter that counts values, and turns it into a number of bytes.
func stride(name string, size int) Register {
	r := number(name)
	IMUL3Q(U32(uint32(size)), r, r)
	return r
}

// loop runs body until the counter, which it counts down, is zero.
func loop(name string, counter Register, body func()) {
	Label(name)
	body()
	DECQ(counter)
	JNZ(LabelRef(name))
}

func add(r Register, bytes int) { ADDQ(U32(uint32(bytes)), r) }

// fetch asks memory for count cache lines at p+disp.
func fetch(p Register, disp, count int) {
	for i := range count {
		PREFETCHT0(Mem{Base: p, Disp: disp + 64*i})
	}
}

// rowSums returns one register with the sums of four others' lanes.
func (k kernels) rowSums(a []Register) VecVirtual {
	rows := make([]Register, panelRows)
	for i, v := range a {
		rows[i] = v
		if k.lanes == 8 {
			high := YMM()
			VEXTRACTF64X4(U8(1), v, high)
			low := v.(VecVirtual).AsY()
			VADDPD(high, low, low)
			rows[i] = low
		}
	}
	pairs := func(a, b Register) Register {
		even, odd := YMM(), YMM()
		VUNPCKLPD(b, a, even)
		VUNPCKHPD(b, a, odd)
		VADDPD(odd, even, even)
		return even
	}
	first, second := pairs(rows[0], rows[1]), pairs(rows[2], rows[3])
	low, high := YMM(), YMM()
	if k.lanes == 4 {
		VPERM2F128(U8(0x20), second, first, low)
		VPERM2F128(U8(0x31), second, first, high)
	} else {
		VSHUFF64X2(U8(0), second, first, low)
		VSHUFF64X2(U8(3), second, first, high)
	}
	VADDPD(high, low, low)
	return low
}

// forward1 is the forward half of the one-pass sweep over a panel, for one
// signal.
func (k kernels) forward1(quadratic bool) {
	if quadratic {
		k.function("forwardOne", "w []%s, blocks int, x, c, z, v []float64", "sets z and v to the products of a panel with x, and of its squares with c.")
	} else {
		k.function("forwardOneLinear", "w []%s, blocks int, x, z []float64", "sets z to the product of a panel with x.")
	}
	w, blocks, x := base("w"), number("blocks"), base("x")
	var c Register
	sets := 2 // independent sums, enough to hide the latency of additions
	if quadratic {
		c, sets = base("c"), 1
	}
	z := make([][]Register, sets)
	for i := range z {
		z[i] = k.zeroed(panelRows)
	}
	var v []Register
	if quadratic {
		v = k.zeroed(panelRows)
	}
	loop("block", blocks, func() {
		fetch(w, ahead, k.blockBytes()/64)
		for j := range k.vectors() {
			xs := k.reg()
			VMOVUPD(k.column(x, 0, j), xs)
			var cs Register
			if quadratic {
				cs = k.reg()
				VMOVUPD(k.column(c, 0, j), cs)
			}
			for row := range panelRows {
				e := k.entries(w, row, j)
				VFMADD231PD(e, xs, z[j%sets][row])
				if quadratic {
					VMULPD(e, e, e)
					VFMADD231PD(e, cs, v[row])
				}
			}
		}
		add(w, k.blockBytes())
		add(x, 8*blockCols)
		if quadratic {
			add(c, 8*blockCols)
		}
	})
	for _, more := range z[1:] {
		for row := range panelRows {
			VADDPD(more[row], z[0][row], z[0][row])
		}
	}
	VMOVUPD(k.rowSums(z[0]), Mem{Base: base("z")})
	if quadratic {
		VMOVUPD(k.rowSums(v), Mem{Base: base("v")})
	}
	VZEROUPPER()
	RET()
}

// backward1 is the backward half. This panel is in cache, so meanwhile it asks memory for
// half of the next one.
func (k kernels) backward1(quadratic bool) {
	if quadratic {
		k.function("backwardOne", "w []%s, blocks int, r, h, g, d []float64", "adds the products of a panel's transpose with g to r, and of its squares with d to h.")
	} else {
		k.function("backwardOneLinear", "w []%s, blocks int, r, g []float64", "adds the products of a panel's transpose with g to r.")
	}
	w, blocks, r := base("w"), number("blocks"), base("r")
	var h Register
	if quadratic {
		h = base("h")
	}
	broadcast := func(name string) []Register {
		from, v := base(name), k.regs(panelRows)
		for row := range v {
			VBROADCASTSD(Mem{Base: from, Disp: 8 * row}, v[row])
		}
		return v
	}
	gs := broadcast("g")
	var ds []Register
	if quadratic {
		ds = broadcast("d")
	}
	next := GP64()
	MOVQ(blocks, next)
	IMUL3Q(U32(uint32(k.blockBytes())), next, next)
	ADDQ(w, next)
	loop("block", blocks, func() {
		fetch(next, 0, k.blockBytes()/128)
		add(next, k.blockBytes()/2)
		for j := range k.vectors() {
			rs := k.reg()
			VMOVUPD(k.column(r, 0, j), rs)
			var hs Register
			if quadratic {
				hs = k.reg()
				VMOVUPD(k.column(h, 0, j), hs)
			}
			for row := range panelRows {
				e := k.entries(w, row, j)
				VFMADD231PD(e, gs[row], rs)
				if quadratic {
					VMULPD(e, e, e)
					VFMADD231PD(e, ds[row], hs)
				}
			}
			VMOVUPD(rs, k.column(r, 0, j))
			if quadratic {
				VMOVUPD(hs, k.column(h, 0, j))
			}
		}
		add(w, k.blockBytes())
		add(r, 8*blockCols)
		if quadratic {
			add(h, 8*blockCols)
		}
	})
	VZEROUPPER()
	RET()
}

func blockedName(name string, signals int, squares bool) string {
	if squares {
		name += "Squares"
	}
	return fmt.Sprintf("%s%d", name, signals)
}

// dot is the forward half for several signals, over a tile, some blocks of several
// panels. The sums are added to z.
func (k kernels) dot(signals int, squares bool) {
	k.function(blockedName("dot", signals, squares), "w []%s, panels, panelStep, blocks int, x []float64, xStep int, z []float64, zStep int", "is dot for a fixed number of signals.")
	w, panels, panelStep := base("w"), number("panels"), stride("panelStep", k.size)
	x, xStep := base("x"), stride("xStep", 8)
	z, zStep := base("z"), stride("zStep", 8)
	sets := 1
	if signals == 1 {
		sets = 2 // independent sums, enough to hide the latency of additions
	}
	loop("panel", panels, func() {
		acc := make([][]Register, sets*signals)
		for s := range acc {
			acc[s] = k.zeroed(panelRows)
		}
		wp, xp, blocks := GP64(), GP64(), number("blocks")
		MOVQ(w, wp)
		MOVQ(x, xp)
		ADDQ(panelStep, w)
		loop("block", blocks, func() {
			fetchAt := Mem{Base: wp, Index: panelStep, Scale: 1}
			for i := range k.blockBytes() / 64 {
				PREFETCHT0(fetchAt.Offset(64 * i))
			}
			for j := range k.vectors() {
				xs := k.regs(signals)
				for s := range xs {
					VMOVUPD(k.column(xp, s, j), xs[s])
				}
				for row := range panelRows {
					e := k.entries(wp, row, j)
					if squares {
						VMULPD(e, e, e)
					}
					for s := range xs {
						VFMADD231PD(e, xs[s], acc[j%sets*signals+s][row])
					}
				}
			}
			add(wp, k.blockBytes())
			ADDQ(xStep, xp)
		})
		for _, row := range []int{0, 1, 2, 3} {
			if sets == 2 {
				VADDPD(acc[1][row], acc[0][row], acc[0][row])
			}
		}
		for s := range signals {
			sums := k.rowSums(acc[s])
			at := Mem{Base: z, Disp: 8 * panelRows * s}
			VADDPD(at, sums, sums)
			VMOVUPD(sums, at)
		}
		ADDQ(zStep, z)
	})
	VZEROUPPER()
	RET()
}

// axpy is the backward half for several signals.
func (k kernels) axpy(signals int, squares bool) {
	k.function(blockedName("axpy", signals, squares), "w []%s, panels, panelStep, blocks int, g []float64, gStep int, r []float64, rStep int", "is axpy for a fixed number of signals.")
	w, panelStep, blocks := base("w"), stride("panelStep", k.size), number("blocks")
	g, gStep := base("g"), stride("gStep", 8)
	r, rStep := base("r"), stride("rStep", 8)
	loop("block", blocks, func() {
		acc := make([][]Register, signals)
		for s := range acc {
			acc[s] = k.regs(k.vectors())
			for j, v := range acc[s] {
				VMOVUPD(k.column(r, s, j), v)
			}
		}
		wp, gp, panels := GP64(), GP64(), number("panels")
		MOVQ(w, wp)
		MOVQ(g, gp)
		loop("panel", panels, func() {
			for row := range panelRows {
				gs := k.regs(signals)
				for s := range gs {
					VBROADCASTSD(Mem{Base: gp, Disp: 8 * s}, gs[s])
				}
				ADDQ(gStep, gp)
				for j := range k.vectors() {
					e := k.entries(wp, row, j)
					if squares {
						VMULPD(e, e, e)
					}
					for s := range gs {
						VFMADD231PD(e, gs[s], acc[s][j])
					}
				}
			}
			ADDQ(panelStep, wp)
		})
		for s := range acc {
			for j, v := range acc[s] {
				VMOVUPD(v, k.column(r, s, j))
			}
		}
		add(w, k.blockBytes())
		ADDQ(rStep, r)
	})
	VZEROUPPER()
	RET()
}

func lowHalf(v Register) Register { return v.(VecVirtual).AsX() }
