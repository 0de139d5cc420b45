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

// kernels are those of an instruction set for one way to store the matrix. Signals, and
// the products with them, are float64; where single is set, float32, with sums over a short
// run of columns, or of panels, that others add up in float64.
type kernels struct {
	isa
	entry
	single bool

	// rows is for a W whose rows lie one after the other, as in a file, in place of panels.
	// step and step3 are then the bytes of one row and of three.
	rows        bool
	step, step3 Register
}

// strides is the same with the bytes from one row to the next, taken from those of a panel.
func (k kernels) strides(panelStep Register) kernels {
	if !k.rows {
		return k
	}
	k.step, k.step3 = GP64(), GP64()
	MOVQ(panelStep, k.step)
	SHRQ(U8(2), k.step)
	LEAQ(Mem{Base: k.step, Index: k.step, Scale: 2}, k.step3)
	return k
}

// axpyGroup is how many signals axpy holds: with fewer registers a row, it can take more.
func (k kernels) axpyGroup() int {
	if k.single {
		return 5
	}
	return k.group
}

// width is how many values a register holds, and valueSize the size of one.
func (k kernels) width() int { return k.lanes * 8 / k.valueSize() }

func (k kernels) valueSize() int {
	if k.single {
		return 4
	}
	return 8
}

// load copies values from memory to a register, and store back.
func (k kernels) load(from Mem, to Register) {
	if k.single {
		VMOVUPS(from, to)
	} else {
		VMOVUPD(from, to)
	}
}

func (k kernels) store(from Register, to Mem) {
	if k.single {
		VMOVUPS(from, to)
	} else {
		VMOVUPD(from, to)
	}
}

// fma adds a·b to sum.
func (k kernels) fma(a Op, b, sum Register) {
	if k.single {
		VFMADD231PS(a, b, sum)
	} else {
		VFMADD231PD(a, b, sum)
	}
}

func (k kernels) square(v Register) {
	if k.single {
		VMULPS(v, v, v)
	} else {
		VMULPD(v, v, v)
	}
}

// sum adds more to total.
func (k kernels) sum(more, total Register) {
	if k.single {
		VADDPS(more, total, total)
	} else {
		VADDPD(more, total, total)
	}
}

// broadcast fills a register with value i of an array at from.
func (k kernels) broadcast(from Register, i int, to Register) {
	at := Mem{Base: from, Disp: k.valueSize() * i}
	if k.single {
		VBROADCASTSS(at, to)
	} else {
		VBROADCASTSD(at, to)
	}
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
func (k kernels) vectors() int { return blockCols / k.width() }

// blockBytes is the size of a block: panelRows rows of blockCols entries.
func (k kernels) blockBytes() int { return panelRows * blockCols * k.size }

// nextBlock is how many bytes behind a block the next one begins.
func (k kernels) nextBlock() int {
	if k.rows {
		return blockCols * k.size
	}
	return k.blockBytes()
}

// entries loads the entries of row and column group j of the block at w.
func (k kernels) entries(w Register, row, j int) Register {
	v := k.reg()
	switch at := k.at(w, row, j); {
	case k.single:
		VMOVUPS(at, v)
	case k.size == 4:
		VCVTPS2PD(at, v)
	default:
		VMOVUPD(at, v)
	}
	return v
}

// at is where they are; j goes on into the blocks behind.
func (k kernels) at(w Register, row, j int) Mem {
	at := Mem{Base: w, Disp: j/k.vectors()*k.nextBlock() + j%k.vectors()*k.width()*k.size}
	if !k.rows {
		return at.Offset(row * blockCols * k.size)
	}
	switch row {
	case 1, 2:
		at.Index, at.Scale = k.step, uint8(row)
	case 3:
		at.Index, at.Scale = k.step3, 1
	}
	return at
}

// entriesOnce is entries that are used once: they stay in memory where they need no
// conversion.
func (k kernels) entriesOnce(w Register, row, j int) Op {
	if k.single && k.size == k.valueSize() {
		return k.at(w, row, j)
	}
	return k.entries(w, row, j)
}

// column loads values of column group j of signal s of the block at x.
func (k kernels) column(x Register, s, j int) Mem {
	return Mem{Base: x, Disp: k.valueSize() * (s*blockCols + j*k.width())}
}

// function begins a kernel; its name is made from name, entry type and instruction set.
func (k kernels) function(name, signature, doc string) {
	value, suffix := "float64", k.entry.name
	if k.single {
		value = "float32"
		if k.size == k.valueSize() {
			suffix = "Single"
		}
	}
	if k.rows {
		suffix = "Rows" + suffix
	}
	full := name + suffix + k.isa.name
	TEXT(full, NOSPLIT, "func("+fmt.Sprintf(signature, k.goType, value)+")")
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

// fetch asks memory for count cache lines from p on, for the second-level cache: the first one has few places for what is
// on its way, and loads would wait for them (a quarter of the time, out of main memory).
func fetch(p Mem, count int) {
	for i := range count {
		PREFETCHT1(p.Offset(64 * i))
	}
}

// rowSums returns one register with the sums of four others' lanes, as float64.
func (k kernels) rowSums(a []Register) VecVirtual {
	rows := make([]Register, panelRows)
	for i, v := range a {
		if k.single {
			v = k.widened(v)
		}
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

// widened is a register of half as many float64, each the sum of two float32 of v.
func (k kernels) widened(v Register) Register {
	low, high := k.reg(), k.reg()
	if k.lanes == 4 {
		half := XMM()
		VEXTRACTF128(U8(1), v, half)
		VCVTPS2PD(half, high)
		VCVTPS2PD(lowHalf(v), low)
	} else {
		half := YMM()
		VEXTRACTF32X8(U8(1), v, half)
		VCVTPS2PD(half, high)
		VCVTPS2PD(v.(VecVirtual).AsY(), low)
	}
	VADDPD(high, low, low)
	return low
}

// run is how many blocks of columns are summed in single precision at a time.
const run = 32

// forward1 is the forward half of the one-pass sweep over a panel, for one
// signal.
func (k kernels) forward1(quadratic bool) {
	if quadratic {
		k.function("forwardOne", "w []%[1]s, panelStep, blocks int, x, c []%[2]s, z, v []float64", "sets z and v to the products of a panel with x, and of its squares with c.")
	} else {
		k.function("forwardOneLinear", "w []%[1]s, panelStep, blocks int, x []%[2]s, z []float64", "sets z to the product of a panel with x.")
	}
	w, blocks, x := base("w"), number("blocks"), base("x")
	if k.rows {
		k = k.strides(stride("panelStep", k.size))
	}
	var c Register
	if quadratic {
		c = base("c")
	}
	if !k.single {
		z, v := k.forwardRun(quadratic, w, blocks, x, c)
		VMOVUPD(k.rowSums(z), Mem{Base: base("z")})
		if quadratic {
			VMOVUPD(k.rowSums(v), Mem{Base: base("v")})
		}
		VZEROUPPER()
		RET()
		return
	}
	totals := kernels{isa: isa{lanes: 4}}.zeroed(2)
	Label("run")
	count := GP64()
	MOVQ(U64(run), count)
	CMPQ(blocks, count)
	CMOVQLT(blocks, count)
	SUBQ(count, blocks)
	z, v := k.forwardRun(quadratic, w, count, x, c)
	VADDPD(k.rowSums(z), totals[0], totals[0])
	if quadratic {
		VADDPD(k.rowSums(v), totals[1], totals[1])
	}
	TESTQ(blocks, blocks)
	JNZ(LabelRef("run"))
	VMOVUPD(totals[0], Mem{Base: base("z")})
	if quadratic {
		VMOVUPD(totals[1], Mem{Base: base("v")})
	}
	VZEROUPPER()
	RET()
}

// forwardRun sums over blocks of columns, at least one, and moves w, x and c behind them.
func (k kernels) forwardRun(quadratic bool, w, blocks, x, c Register) (zSum, vSum []Register) {
	sets := 2 // independent sums, enough to hide the latency of additions
	if quadratic {
		sets = 1
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
		if !k.rows { // which were just read
			lines := k.blockBytes() / 64
			if !quadratic {
				lines /= 2 // the hardware asks for the others, unless it is kept from it by arithmetic
			}
			fetch(Mem{Base: w, Disp: ahead}, max(1, lines))
		}
		for j := range k.vectors() {
			xs := k.reg()
			k.load(k.column(x, 0, j), xs)
			var cs Register
			if quadratic {
				cs = k.reg()
				k.load(k.column(c, 0, j), cs)
			}
			for row := range panelRows {
				if !quadratic {
					k.fma(k.entriesOnce(w, row, j), xs, z[j%sets][row])
					continue
				}
				e := k.entries(w, row, j)
				k.fma(e, xs, z[j%sets][row])
				k.square(e)
				k.fma(e, cs, v[row])
			}
		}
		add(w, k.nextBlock())
		add(x, k.valueSize()*blockCols)
		if quadratic {
			add(c, k.valueSize()*blockCols)
		}
	})
	for _, more := range z[1:] {
		for row := range panelRows {
			k.sum(more[row], z[0][row])
		}
	}
	return z[0], v
}

// backward1 is the backward half. This panel is in cache, so meanwhile it asks memory for
// half of one that is to come.
func (k kernels) backward1(quadratic bool) {
	if quadratic {
		k.function("backwardOne", "w []%[1]s, panelStep, ahead, blocks int, r, h, g, d []%[2]s", "adds the products of a panel's transpose with g to r, and of its squares with d to h.")
	} else {
		k.function("backwardOneLinear", "w []%[1]s, panelStep, ahead, blocks int, r, g []%[2]s", "adds the products of a panel's transpose with g to r.")
	}
	w, blocks, r := base("w"), number("blocks"), base("r")
	if k.rows {
		k = k.strides(stride("panelStep", k.size))
	}
	var h Register
	if quadratic {
		h = base("h")
	}
	broadcast := func(name string) []Register {
		from, v := base(name), k.regs(panelRows)
		for row := range v {
			k.broadcast(from, row, v[row])
		}
		return v
	}
	gs := broadcast("g")
	var ds []Register
	if quadratic {
		ds = broadcast("d")
	}
	var next Register
	if !k.rows {
		next = stride("ahead", k.size)
		ADDQ(w, next)
	}
	loop("block", blocks, func() {
		if !k.rows {
			fetch(Mem{Base: next}, max(1, k.blockBytes()/128))
			add(next, k.blockBytes()/2)
		}
		for j := range k.vectors() {
			rs := k.reg()
			k.load(k.column(r, 0, j), rs)
			var hs Register
			if quadratic {
				hs = k.reg()
				k.load(k.column(h, 0, j), hs)
			}
			for row := range panelRows {
				if !quadratic {
					k.fma(k.entriesOnce(w, row, j), gs[row], rs)
					continue
				}
				e := k.entries(w, row, j)
				k.fma(e, gs[row], rs)
				k.square(e)
				k.fma(e, ds[row], hs)
			}
			k.store(rs, k.column(r, 0, j))
			if quadratic {
				k.store(hs, k.column(h, 0, j))
			}
		}
		add(w, k.nextBlock())
		add(r, k.valueSize()*blockCols)
		if quadratic {
			add(h, k.valueSize()*blockCols)
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
	k.function(blockedName("dot", signals, squares), "w []%[1]s, panels, panelStep, blocks int, x []%[2]s, xStep int, z []float64, zStep int", "is dot for a fixed number of signals.")
	w, panels, panelStep := base("w"), number("panels"), stride("panelStep", k.size)
	k = k.strides(panelStep)
	x, xStep := base("x"), stride("xStep", k.valueSize())
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
			if !k.rows {
				fetch(Mem{Base: wp, Index: panelStep, Scale: 1}, k.blockBytes()/64)
			}
			for j := range k.vectors() {
				xs := k.regs(signals)
				for s := range xs {
					k.load(k.column(xp, s, j), xs[s])
				}
				for row := range panelRows {
					e := k.entries(wp, row, j)
					if squares {
						k.square(e)
					}
					for s := range xs {
						k.fma(e, xs[s], acc[j%sets*signals+s][row])
					}
				}
			}
			add(wp, k.nextBlock())
			ADDQ(xStep, xp)
		})
		for _, row := range []int{0, 1, 2, 3} {
			if sets == 2 {
				k.sum(acc[1][row], acc[0][row])
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
	k.function(blockedName("axpy", signals, squares), "w []%[1]s, panels, panelStep, blocks int, g []%[2]s, gStep int, r []%[2]s, rStep int", "is axpy for a fixed number of signals.")
	w, panelStep, blocks := base("w"), stride("panelStep", k.size), number("blocks")
	k = k.strides(panelStep)
	g, gStep := base("g"), stride("gStep", k.valueSize())
	r, rStep := base("r"), stride("rStep", k.valueSize())
	one := func() { k.axpyBlocks(signals, squares, 1, w, panelStep, g, gStep, r, rStep) }
	if k.vectors() > 1 {
		loop("block", blocks, one)
	} else {
		pairs := GP64()
		MOVQ(blocks, pairs)
		SHRQ(U8(1), pairs)
		JZ(LabelRef("last"))
		loop("pair", pairs, func() { k.axpyBlocks(signals, squares, 2, w, panelStep, g, gStep, r, rStep) })
		Label("last")
		ANDQ(U8(1), blocks)
		JZ(LabelRef("end"))
		one()
		Label("end")
	}
	VZEROUPPER()
	RET()
}

// axpyBlocks is axpy for some blocks, and moves w and r behind them. Where one fits a register it is two: what is broadcast then serves twice.
func (k kernels) axpyBlocks(signals int, squares bool, count int, w, panelStep, g, gStep, r, rStep Register) {
	sums := func(s, j int) Mem {
		at := k.column(r, s, j%k.vectors())
		if j >= k.vectors() {
			at.Index, at.Scale = rStep, 1
		}
		return at
	}
	acc := make([][]Register, signals)
	for s := range acc {
		acc[s] = k.regs(count * k.vectors())
		for j, v := range acc[s] {
			k.load(sums(s, j), v)
		}
	}
	wp, gp, panels := GP64(), GP64(), number("panels")
	MOVQ(w, wp)
	MOVQ(g, gp)
	loop(fmt.Sprintf("panel%d", count), panels, func() {
		for row := range panelRows {
			gs := k.regs(signals)
			for s := range gs {
				k.broadcast(gp, s, gs[s])
			}
			ADDQ(gStep, gp)
			for j := range acc[0] {
				e := k.entries(wp, row, j)
				if squares {
					k.square(e)
				}
				for s := range gs {
					k.fma(e, gs[s], acc[s][j])
				}
			}
		}
		ADDQ(panelStep, wp)
	})
	for s := range acc {
		for j, v := range acc[s] {
			k.store(v, sums(s, j))
		}
	}
	for range count {
		add(w, k.nextBlock())
		ADDQ(rStep, r)
	}
}

// largest finds the largest absolute values of the rows of a panel.
func largest() {
	TEXT("largestAVX2", NOSPLIT, "func(w []float32, blocks int, top *[4]float32)")
	Doc("largestAVX2 sets top to the largest absolute values of the rows of a panel of so many blocks, at least one.")
	w, blocks, top := base("w"), number("blocks"), Load(Param("top"), GP64())
	k := kernels{isa: isa{lanes: 4}, entry: entry{"", "float32", 4}, single: true}
	tops, positive := k.zeroed(panelRows), YMM()
	VPCMPEQD(positive, positive, positive)
	VPSRLD(U8(1), positive, positive)
	loop("block", blocks, func() {
		for row, t := range tops {
			for j := range k.vectors() {
				v := YMM()
				VANDPS(k.at(w, row, j), positive, v)
				VMAXPS(v, t, t)
			}
		}
		add(w, k.blockBytes())
	})
	for row, t := range tops {
		half, other := XMM(), XMM()
		VEXTRACTF128(U8(1), t, half)
		VMAXPS(lowHalf(t), half, half)
		VMOVHLPS(half, half, other)
		VMAXPS(other, half, half)
		VMOVSHDUP(half, other)
		VMAXSS(other, half, half)
		VMOVSS(half, Mem{Base: top, Disp: 4 * row})
	}
	VZEROUPPER()
	RET()
}

// toBytes rounds the entries of a panel to bytes, in units of its rows.
func toBytes() {
	TEXT("toBytesAVX2", NOSPLIT, "func(w []float32, blocks int, inverse *[4]float32, to []int8)")
	Doc("toBytesAVX2 sets to to the entries of a panel of so many blocks, at least one, times the inverse of the row's unit.")
	w, blocks, inverse, to := base("w"), number("blocks"), Load(Param("inverse"), GP64()), base("to")
	k := kernels{isa: isa{lanes: 4}, entry: entry{"", "float32", 4}, single: true}
	units := k.regs(panelRows)
	for row, u := range units {
		k.broadcast(inverse, row, u)
	}
	loop("block", blocks, func() {
		for row, u := range units {
			var v [2]Register
			for j := range v {
				v[j] = YMM()
				VMULPS(k.at(w, row, j), u, v[j])
				VCVTPS2DQ(v[j], v[j])
			}
			VPACKSSDW(v[1], v[0], v[0])
			VPERMQ(U8(0xd8), v[0], v[0]) // 0 to 7 and 8 to 15 were mixed
			high := XMM()
			VEXTRACTI128(U8(1), v[0], high)
			VPACKSSWB(high, lowHalf(v[0]), high)
			VMOVDQU(high, Mem{Base: to, Disp: blockCols * row})
		}
		add(w, k.blockBytes())
		add(to, panelRows*blockCols)
	})
	VZEROUPPER()
	RET()
}

// drain adds sums in single precision to their totals, and clears them.
func (k kernels) drain() {
	TEXT("drain"+k.isa.name, NOSPLIT, "func(total []float64, sums []float32)")
	Doc("drain" + k.isa.name + " adds sums to total, and clears them; their length is a multiple of 16, and not 0.")
	total, sums, left := base("total"), base("sums"), Load(Param("sums").Len(), GP64())
	zero := k.zeroed(1)[0]
	SHRQ(U8(4), left)
	loop("block", left, func() {
		for j := range blockCols / k.lanes {
			v, at := k.reg(), Mem{Base: total, Disp: 8 * j * k.lanes}
			VCVTPS2PD(Mem{Base: sums, Disp: 4 * j * k.lanes}, v)
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

func lowHalf(v Register) Register { return v.(VecVirtual).AsX() }
