package operator

import (
	"encoding"
	"errors"
	"io"
	"math"

	"github.com/calamp/calamp/internal/parallel"
)

// Distributed is a matrix whose rows are divided over processes. Each multiplies with its own,
// and all then have what a [Sweep] gives: z and v of all rows are gathered, and r and h are
// sums over ranks. So every rank does the same iterations on the same numbers, and whoever
// asks a matrix for something need not know that it is divided.
//
// Its methods are called by all ranks, in the same order. Ranks that no longer agree, or of
// which one is no longer there, are an error of the next sweep, on all of them.
type Distributed struct {
	group Group
	share Share
	n     int
	own   []Chunk // the chunks of this rank
	got   []float64
	summary
	memory
}

// Chunk are some of the rows of a matrix, as a matrix of their own.
type Chunk interface {
	Matrix
	Sharer
	HasSingle() bool
}

// NewDistributed is the matrix of which this rank has the given chunks: in memory
// ([NewDenseRows]) or all in files ([OpenDiskRows]). The error is one of the group, or that of a
// matrix without entries.
func NewDistributed(group Group, share Share, own []Chunk) (Matrix, error) {
	_, n := own[0].Dims()
	d := &Distributed{group: group, share: share, n: n, own: own}
	if err := d.summarise(); err != nil {
		return nil, err
	}
	return d.asStored(), nil
}

// asStored has the abilities that depend on where the rows are.
func (d *Distributed) asStored() Matrix {
	if s, ok := d.own[0].(Streamed); ok {
		return distributedDisk{d, s.Budget()}
	}
	return distributedDense{d}
}

// distributed is a matrix over ranks, whatever it is stored in and whatever the order of its rows; nil for others.
func distributed(w Operator) *Distributed {
	if a, ordered := w.(*inOrder); ordered {
		w = a.Operator
	}
	d, ok := w.(interface{ overRanks() *Distributed })
	if !ok {
		return nil
	}
	return d.overRanks()
}

// FarRows reports whether rows of w can be seen only one at a time, by asking for each of them
// over a network: what can be had from a sweep should be.
func FarRows(w Operator) bool { return distributed(w) != nil }

func (d *Distributed) overRanks() *Distributed { return d }

// distributedDisk stays in files.
type distributedDisk struct {
	*Distributed
	budget int64
}

// Budget implements [Streamed]: of one rank.
func (d distributedDisk) Budget() int64 { return d.budget }

// distributedDense is in memory.
type distributedDense struct{ *Distributed }

// Rounded implements [Rounder].
func (d distributedDense) Rounded(threads int) (single Stored, lost float64) {
	if d.HasSingle() {
		return d, 0
	}
	m, n := d.Dims()
	rounded := &Distributed{group: d.group, share: d.share, n: n, summary: d.summary}
	losses := make([][]float64, len(d.own))
	for i, c := range d.own {
		single, off := c.(*Dense).rounded(threads)
		rounded.own, losses[i] = append(rounded.own, single), []float64{off}
	}
	total := make([]float64, 1)
	if err := d.add(total, losses, "the rounding of W"); err != nil {
		return nil, 0 // the next sweep says so
	}
	if lost = total[0] / (float64(m) * float64(n)); !(lost < d.meanSquare) {
		return nil, lost
	}
	return distributedDense{rounded}, lost
}

// Dims implements [Operator].
func (d *Distributed) Dims() (m, n int) { return d.share.Chunks[len(d.share.Chunks)-1], d.n }

// Storage is "f64" or "f32".
func (d *Distributed) Storage() string { return d.own[0].Storage() }

// HasSquares implements [Squares].
func (d *Distributed) HasSquares() bool { return true }

// HasSingle implements [Single].
func (d *Distributed) HasSingle() bool { return d.own[0].HasSingle() }

// first is the number of the first row of a chunk of this rank.
func (d *Distributed) first(i int) int {
	rank, _ := d.group.Rank()
	return d.share.Chunks[d.share.Ranks[rank]+i]
}

// summarise puts the averages of the chunks together.
func (d *Distributed) summarise() error {
	m, _ := d.Dims()
	d.means = Means{Rows: make([]float64, m), Columns: make([]float64, d.n)}
	parts := make([][]float64, len(d.own)) // sums over columns, and of squares
	for i, c := range d.own {
		rows, _ := c.Dims()
		means := c.Means()
		copy(d.means.Rows[d.first(i):], means.Rows)
		parts[i] = make([]float64, d.n+1)
		for k, v := range means.Columns {
			parts[i][k] = v * float64(rows)
		}
		parts[i][d.n] = c.MeanSquare() * (float64(rows) * float64(d.n))
	}
	total := make([]float64, d.n+1)
	if err := d.add(total, parts, "the averages of W"); err != nil {
		return err
	}
	for k := range d.means.Columns {
		d.means.Columns[k] = total[k] / float64(m)
	}
	d.meanSquare = total[d.n] / (float64(m) * float64(d.n))
	if err := d.summary.check(); err != nil {
		return err
	}
	return d.gatherRows(d.means.Rows, 1)
}

// gatherRows fills an array with so many values a row from all ranks.
func (d *Distributed) gatherRows(values []float64, perRow int) error {
	if len(values) == 0 {
		return nil
	}
	return d.group.Gather(bytesOf(values), d.share.bounds(8*perRow))
}

// add sets total to the sum of the parts that the chunks of all ranks have, added in the order of
// the chunks: the same bits on all ranks. Each adds what is its own stretch of the sum.
func (d *Distributed) add(total []float64, parts [][]float64, place string) error {
	if err := d.group.Meet(place, 0); err != nil {
		return err
	}
	return d.addUp(total, parts)
}

// begin is where the part of a rank begins, of so many numbers that ranks divide evenly.
func begin(rank, size, count int) int { return rank * count / size }

// mostTogether is how many values of a sum are traded at a time.
const mostTogether = 1 << 24

func (d *Distributed) addUp(total []float64, parts [][]float64) error {
	stretch := make([][]float64, len(parts))
	for from := 0; from < len(total); from += mostTogether {
		end := min(from+mostTogether, len(total))
		for i, part := range parts {
			stretch[i] = part[from:end]
		}
		if err := d.addStretch(total[from:end], stretch); err != nil {
			return err
		}
	}
	return nil
}

func (d *Distributed) addStretch(total []float64, parts [][]float64) error {
	rank, size := d.group.Rank()
	at := func(r int) int { return begin(r, size, len(total)) }
	mine := total[at(rank):at(rank+1)]
	chunks := len(d.share.Chunks) - 1
	if len(d.got) < len(mine)*chunks {
		d.got = make([]float64, len(mine)*chunks)
	}
	got, send := d.got[:len(mine)*chunks], parts[0]
	if len(parts) > 1 {
		send = make([]float64, 0, len(parts)*len(total))
		for r := range size {
			for _, part := range parts {
				send = append(send, part[at(r):at(r+1)]...)
			}
		}
	}
	sent, taken, whole := make([]int, size+1), make([]int, size+1), make([]int, size+1)
	for r := range size + 1 {
		sent[r], taken[r], whole[r] = 8*len(parts)*at(r), 8*d.share.Ranks[r]*len(mine), 8*at(r)
	}
	if err := d.group.Trade(bytesOf(got), bytesOf(send), taken, sent); err != nil {
		return err
	}
	copy(mine, got)
	for c := 1; c < chunks; c++ {
		for i, v := range got[c*len(mine) : (c+1)*len(mine)] {
			mine[i] += v
		}
	}
	return d.group.Gather(bytesOf(total), whole)
}

// broadcast sends what the rank has to all.
func (d *Distributed) broadcast(raw []byte, from int) error {
	_, size := d.group.Rank()
	bounds := make([]int, size+1)
	for r := from + 1; r <= size; r++ {
		bounds[r] = len(raw)
	}
	return d.group.Gather(raw, bounds)
}

// Together sets values[i] to what each makes of i, for all i, by so many threads. Where W is divided over ranks
// they divide this, too: then all must call it at the same place, where each gives the same on all of them.
func Together(w Operator, values []float64, threads int, each func(i int) float64) {
	set := func(i int) { values[i] = each(i) }
	d := distributed(w)
	if d == nil {
		parallel.Run(len(values), threads, set)
		return
	}
	rank, size := d.group.Rank()
	from, to := begin(rank, size, len(values)), begin(rank+1, size, len(values))
	parallel.Run(to-from, threads, func(i int) { set(from + i) })
	bounds := make([]int, size+1)
	for r := range bounds {
		bounds[r] = 8 * begin(r, size, len(values))
	}
	err := d.group.Meet("numbers divided over ranks", uint64(len(values)))
	if err == nil {
		err = d.group.Gather(bytesOf(values), bounds)
	}
	if err != nil { // a rank that ended says so at the next meeting
		parallel.Run(len(values), threads, set)
	}
}

// RowInto implements [Matrix]. The row comes from the rank that has it.
func (d *Distributed) RowInto(dst []float64, mu int) error {
	owner := d.share.owner(mu)
	if rank, _ := d.group.Rank(); rank == owner {
		if err := d.ownRow(dst, mu); err != nil {
			return err
		}
	}
	if err := d.group.Meet("a row of W", uint64(mu)); err != nil {
		return err
	}
	return d.broadcast(bytesOf(dst), owner)
}

// ownRow is a row that this rank has.
func (d *Distributed) ownRow(dst []float64, mu int) error {
	i := len(d.own) - 1
	for d.first(i) > mu {
		i--
	}
	return d.own[i].RowInto(dst, mu-d.first(i))
}

// arrange deals the rows out anew, as [Arrange] has them: those that follow each other are in one place.
func (d *Distributed) arrange(order []int) (Matrix, error) {
	rank, size := d.group.Rank()
	share := shareIn(len(order), len(d.share.Chunks)-1, size)
	var own []Chunk
	for owner := range size {
		for c := share.Ranks[owner]; c < share.Ranks[owner+1]; c++ {
			of := order[share.Chunks[c]:share.Chunks[c+1]]
			var values []float64
			if rank == owner {
				values = make([]float64, len(of)*d.n)
			}
			once := max(1, mostTogether/d.n)
			for at := 0; at < len(of); at += once {
				if err := d.deal(values[min(at*d.n, len(values)):], of[at:min(at+once, len(of))], owner); err != nil {
					return nil, err
				}
			}
			if rank != owner {
				continue
			}
			chunk, err := denseAs(d.Storage(), len(of), d.n, values)
			if err != nil {
				return nil, err
			}
			own = append(own, chunk)
		}
	}
	w, err := NewDistributed(d.group, share, own)
	if err == nil {
		distributed(w).meanSquare = d.meanSquare
	}
	return w, err
}

// deal sends rows to one rank, which puts them into values.
func (d *Distributed) deal(values []float64, rows []int, to int) error {
	rank, size := d.group.Rank()
	of, sent, taken := make([][]int, size), make([]int, size+1), make([]int, size+1)
	for i, mu := range rows {
		if mu >= 0 {
			r := d.share.owner(mu)
			of[r] = append(of[r], i)
		}
	}
	send := make([]float64, len(of[rank])*d.n)
	for at, i := range of[rank] {
		if err := d.ownRow(send[at*d.n:(at+1)*d.n], rows[i]); err != nil {
			return err
		}
	}
	for r := range size {
		sent[r+1], taken[r+1] = sent[r], taken[r]
		if r == to {
			sent[r+1] += 8 * len(send)
		}
		if rank == to {
			taken[r+1] += 8 * len(of[r]) * d.n
		}
	}
	got := make([]float64, taken[size]/8)
	if err := d.group.Meet("rows of sensors", uint64(len(rows))); err != nil {
		return err
	}
	if err := d.group.Trade(bytesOf(got), bytesOf(send), taken, sent); err != nil {
		return err
	}
	if rank != to {
		return nil
	}
	for _, list := range of {
		for _, i := range list {
			copy(values[i*d.n:(i+1)*d.n], got)
			got = got[d.n:]
		}
	}
	return nil
}

// identify writes what [Identify] writes of a table. What is written to passes from rank to
// rank, if it can be: a hash does. Otherwise all rows do.
func (d *Distributed) identify(to io.Writer) error {
	m, n := d.Dims()
	state, ok := to.(interface {
		encoding.BinaryMarshaler
		encoding.BinaryUnmarshaler
	})
	if !ok {
		return identifyRows(to, d, m, n)
	}
	rank, size := d.group.Rank()
	for from := range size {
		if rank == from {
			for _, c := range d.own {
				rows, _ := c.Dims()
				if err := identifyRows(to, c, rows, n); err != nil {
					return err
				}
			}
		}
		raw, err := state.MarshalBinary()
		if err != nil {
			return err
		}
		if err := d.group.Meet("the hash of W", uint64(len(raw))); err != nil {
			return err
		}
		if err := errors.Join(d.broadcast(raw, from), state.UnmarshalBinary(raw)); err != nil {
			return err
		}
	}
	return nil
}

// NewSweep implements [Operator].
func (d *Distributed) NewSweep(p, q, threads int) (Sweep, error) {
	s := &distributedSweep{d: d, p: p, q: q, threads: threads, space: &distributedSpace{}}
	for _, c := range d.own {
		local, err := c.NewSweep(p, q, threads)
		if err != nil {
			return nil, err
		}
		s.local = append(s.local, local)
	}
	if q > 0 {
		return s, nil
	}
	return &distributedLinear{distributedSweep: s}, nil
}

// NewSweeps implements [Sharer].
func (d *Distributed) NewSweeps(p, threads int) (all Sweeps, err error) {
	space := &distributedSpace{}
	whole := func(q int) *distributedSweep {
		return &distributedSweep{d: d, p: p, q: q, threads: threads, space: space}
	}
	exact, linear, singleExact, singleLinear := whole(p), whole(0), whole(p), whole(0)
	for _, c := range d.own {
		local, err := c.NewSweeps(p, threads)
		if err != nil {
			return all, err
		}
		exact.local, linear.local = append(exact.local, local.Exact), append(linear.local, local.Linear)
		singleExact.local, singleLinear.local = append(singleExact.local, local.Single.Exact), append(singleLinear.local, local.Single.Linear)
	}
	all.Exact, all.Linear = exact, linear
	if d.HasSingle() {
		all.Single.Exact, all.Single.Linear = singleExact, singleLinear
	}
	return all, nil
}

// byteSweep is a sweep over the rows of all ranks in bytes; nil where they are not in memory, in single precision.
func (d *Distributed) byteSweep(p, threads int) Sweep {
	s := &distributedSweep{d: d, p: p, threads: threads, space: &distributedSpace{}}
	for _, c := range d.own {
		local, ok := c.(*Dense)
		if !ok || local.f32 == nil {
			return nil
		}
		s.local = append(s.local, local.asBytes(threads).sweep(p, threads))
	}
	return s
}

// byteUnits are those of all rows, once there is such a sweep.
func (d *Distributed) byteUnits() ([]float64, error) {
	m, _ := d.Dims()
	units := make([]float64, m)
	for i, c := range d.own {
		local := c.(*Dense)
		copy(units[d.first(i):], local.bytes.units[:local.m])
	}
	if err := d.group.Meet("the rounding of W to bytes", 0); err != nil {
		return nil, err
	}
	return units, d.gatherRows(units, 1)
}

// distributedSpace is the workspace of sweeps of which one runs at a time.
type distributedSpace struct {
	z, v    []float64   // of all rows
	parts   [][]float64 // of each chunk of this rank: r, and then h
	total   []float64
	factors parallel.Pool[[]float64] // the g and d of rows that are others'
}

func (s *distributedSpace) prepare(m, n, p, q, chunks int) {
	if len(s.z) < m*p || len(s.v) < m*q {
		s.z, s.v = make([]float64, m*p), make([]float64, m*q)
	}
	if len(s.total) < (p+q)*n {
		s.total, s.parts = make([]float64, (p+q)*n), make([][]float64, chunks)
		for i := range s.parts {
			s.parts[i] = make([]float64, (p+q)*n)
		}
	}
}

// distributedSweep is a sweep over the rows of all ranks.
type distributedSweep struct {
	d             *Distributed
	local         []Sweep // over the chunks of this rank
	p, q, threads int
	space         *distributedSpace
}

// Run implements [Sweep]. A rank goes through its own rows once. Then it calls rows for those
// of the others, too, from which nothing is needed but what rows keeps: M×P numbers are little
// beside M×N, and so all ranks know of all sensors.
func (s *distributedSweep) Run(r, h, x, c []float64, rows RowFunc) error {
	m, n := s.d.Dims()
	b := s.space
	b.prepare(m, n, s.p, s.q, len(s.local))
	width := (s.p + s.q) * n
	parts := make([][]float64, len(s.local))
	for i, local := range s.local {
		first := s.d.first(i)
		parts[i] = b.parts[i][:width]
		err := local.Run(parts[i][:s.p*n], parts[i][s.p*n:], x, c, func(at int, z, v, g, d []float64) {
			copy(b.z[(first+at)*s.p:], z)
			copy(b.v[(first+at)*s.q:], v)
			rows(first+at, z, v, g, d)
		})
		if err != nil {
			return err
		}
	}
	if err := s.d.group.Meet("a sweep over W", sumOfBits(x, c)); err != nil {
		return err
	}
	if err := s.d.gatherRows(b.z[:m*s.p], s.p); err != nil {
		return err
	}
	if err := s.d.gatherRows(b.v[:m*s.q], s.q); err != nil {
		return err
	}
	s.others(rows)
	if err := s.d.addUp(b.total[:width], parts); err != nil {
		return err
	}
	copy(r, b.total[:s.p*n])
	copy(h, b.total[s.p*n:width])
	return nil
}

// distributedHalves are those of a sweep over the rows of all ranks.
type distributedHalves struct {
	*distributedSweep
	local []products
}

func newDistributedHalves(s *distributedSweep) distributedHalves {
	all := distributedHalves{distributedSweep: s}
	for _, local := range s.local {
		all.local = append(all.local, bothHalvesOf(local, s.d.n, s.p, s.q))
	}
	return all
}

func (s distributedHalves) forward(z, v, x, c []float64) error {
	for i, local := range s.local {
		rows, _ := s.d.own[i].Dims()
		from := s.d.first(i)
		if err := local.forward(z[from*s.p:(from+rows)*s.p], v[from*s.q:(from+rows)*s.q], x, c); err != nil {
			return err
		}
	}
	if err := s.d.group.Meet("products with W", sumOfBits(x, c)); err != nil {
		return err
	}
	if err := s.d.gatherRows(z, s.p); err != nil {
		return err
	}
	return s.d.gatherRows(v, s.q)
}

func (s distributedHalves) backward(r, h, g, dg []float64) error {
	parts, total := make([][]float64, len(s.local)), make([]float64, len(r)+len(h))
	for i, local := range s.local {
		rows, _ := s.d.own[i].Dims()
		from := s.d.first(i)
		parts[i] = make([]float64, len(total))
		err := local.backward(parts[i][:len(r)], parts[i][len(r):], g[from*s.p:(from+rows)*s.p], dg[from*s.q:(from+rows)*s.q])
		if err != nil {
			return err
		}
	}
	if err := s.d.group.Meet("products with Wᵀ", sumOfBits(g, dg)); err != nil {
		return err
	}
	err := s.d.addUp(total, parts)
	copy(r, total)
	copy(h, total[len(r):])
	return err
}

// others calls rows for what other ranks have.
func (s *distributedSweep) others(rows RowFunc) {
	rank, _ := s.d.group.Rank()
	m, _ := s.d.Dims()
	from, to := s.d.share.Rows(rank)
	b := s.space
	blocks := func(count int) int { return (count + rowsAtOnce - 1) / rowsAtOnce }
	before := blocks(from)
	parallel.Run(before+blocks(m-to), s.threads, func(i int) {
		first, end := i*rowsAtOnce, min((i+1)*rowsAtOnce, from)
		if i >= before {
			first = to + (i-before)*rowsAtOnce
			end = min(first+rowsAtOnce, m)
		}
		factors := b.factors.Get()
		if len(*factors) < rowsAtOnce*(s.p+s.q) {
			made := make([]float64, rowsAtOnce*(s.p+s.q))
			factors = &made
		}
		g := (*factors)[:(end-first)*s.p]
		d := (*factors)[rowsAtOnce*s.p:][:(end-first)*s.q]
		rows(first, b.z[first*s.p:end*s.p], b.v[first*s.q:end*s.q], g, d)
		b.factors.Put(factors)
	})
}

// distributedLinear is a sweep without quadratic columns, which can do half of its work.
type distributedLinear struct {
	*distributedSweep
	halves []Linear
}

func (s *distributedLinear) prepare() error {
	for _, c := range s.d.own[len(s.halves):] {
		half, err := NewLinear(c, s.p, s.threads)
		if err != nil {
			return err
		}
		s.halves = append(s.halves, half)
	}
	return nil
}

// Forward implements [Linear].
func (s *distributedLinear) Forward(z, x []float64) error {
	if err := s.prepare(); err != nil {
		return err
	}
	for i, half := range s.halves {
		rows, _ := s.d.own[i].Dims()
		first := s.d.first(i)
		if err := half.Forward(z[first*s.p:(first+rows)*s.p], x); err != nil {
			return err
		}
	}
	if err := s.d.group.Meet("a product with W", sumOfBits(x)); err != nil {
		return err
	}
	return s.d.gatherRows(z, s.p)
}

// Backward implements [Linear].
func (s *distributedLinear) Backward(r, g []float64) error {
	if err := s.prepare(); err != nil {
		return err
	}
	parts := make([][]float64, len(s.halves))
	for i, half := range s.halves {
		rows, _ := s.d.own[i].Dims()
		first := s.d.first(i)
		parts[i] = make([]float64, s.p*s.d.n)
		if err := half.Backward(parts[i], g[first*s.p:(first+rows)*s.p]); err != nil {
			return err
		}
	}
	if err := s.d.group.Meet("a product with Wᵀ", sumOfBits(g)); err != nil {
		return err
	}
	return s.d.addUp(r, parts)
}

// sumOfBits shows whether ranks work on the same numbers. Where processors or settings differ
// they would soon differ, without any other sign.
func sumOfBits(of ...[]float64) uint64 {
	sum := uint64(len(of))
	for _, v := range of {
		if len(v) > 0 {
			sum = sum*math.MaxUint32 + checksum(v)
		}
	}
	return sum
}

// measureDistributed is what [newBorder] does, with each rank looking at its own rows.
func (b *border) measureDistributed(d *Distributed, taken means) error {
	sums, live := make([][]float64, len(d.own)), make([]float64, b.m) // over columns, and where they are not zero
	for i, c := range d.own {
		part := b.of(d, i)
		part.ones, sums[i] = make([]float64, b.n), make([]float64, 2*b.n)
		if err := part.add(sums[i][:b.n]); err != nil {
			return err
		}
		copy(sums[i][b.n:], part.ones)
		rows, _ := c.Dims()
		for mu := part.first; mu < part.first+rows; mu++ {
			if b.live[mu] {
				live[mu] = 1
			}
		}
	}
	total := make([]float64, 2*b.n)
	if err := d.add(total, sums, "the means of W"); err != nil {
		return err
	}
	for i, count := range total[b.n:] {
		b.columns[i], b.ones[i] = total[i], min(count, 1)
	}
	if err := errors.Join(d.gatherRows(b.rows, 1), d.gatherRows(live, 1)); err != nil {
		return err
	}
	for mu, v := range live {
		b.live[mu] = v > 0
	}
	b.divide(taken)
	squares, size := make([][]float64, len(d.own)), make([]float64, 1)
	for i := range d.own {
		part, err := b.of(d, i).squares()
		if err != nil {
			return err
		}
		squares[i] = []float64{part}
	}
	err := d.add(size, squares, "the size of W")
	b.scale(size[0])
	return err
}

// of is the border for the rows of a chunk of this rank.
func (b *border) of(d *Distributed, i int) *border {
	part := *b
	part.w, part.first = d.own[i], d.first(i)
	return &part
}

// distributed is the bordered matrix, of which each rank has the same rows as of W, and the
// last the further ones.
func (b *border) distributed(d *Distributed, memory int64) (Matrix, error) {
	share := d.share.extended(b.extra())
	rank, _ := d.group.Rank()
	if memory > 0 && int64(d.share.Largest())*int64(b.n)*8 > memory/2 { // on one rank, so on all
		memory = 1
	}
	var own []Chunk
	for i := range d.own {
		c := share.Ranks[rank] + i
		chunk, err := b.of(d, i).chunk(d.own[i], memory, share.Chunks[c], share.Chunks[c+1])
		if err != nil {
			return nil, err
		}
		own = append(own, chunk)
	}
	return NewDistributed(d.group, share, own)
}
