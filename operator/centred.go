package operator

import (
	"encoding/binary"
	"errors"
	"math"

	"github.com/calamp/calamp/internal/kernel"
)

// Centred is a matrix W without its row means γ and column means c, with which AMP
// would diverge, and with further rows and columns that restore them exactly (Vila,
// Schniter, Rangan, Krzakala, Zdeborová, "Adaptive damping and mean removal for the
// generalized approximate message passing algorithm", 2015):
//
//	W x = (W - γ1ᵀ - 1cᵀ) x + γ t + 1 u,   t = 1ᵀx,   u = cᵀx.
//
// t and u are further entries of the signals, with a flat prior. Their definitions
// are further rows, with readings that are exactly zero. Both are scaled so that the
// further columns and rows are as large as the others. Columns and rows of W that are
// zero stay zero.
//
// The signals' side of its sweeps is not that of other matrices: x and r hold the
// N entries of W of all p signals, p×N, followed by the further entries of all
// signals, p×Extra, and so do c and h with q. So an iteration can keep its arrays of N
// entries a signal, and have the further entries in one piece behind them. For one
// signal both layouts are the same. The sensors' side is the usual one: M rows of W,
// then Extra further rows.
//
// Where every signal has a matrix of its own ([Each]) each is bordered by itself, all in the same way.
type Centred struct {
	Operator // (M+Extra)×(N+Extra): a [Matrix], or an [Each]

	Extra   int // further rows, and entries: 1 or 2
	borders []furtherRows
	of      []int // which of them each signal has; nil where there is one
}

// furtherRows are what of a bordered matrix is not W.
type furtherRows struct {
	combinations [][]float64 // Extra×N
	pivots       []float64   // Extra
}

// Combinations (Extra×N) say what the further entries of a signal are: further entry j is Combinations(signal)[j]ᵀx.
func (c *Centred) Combinations(signal int) [][]float64 { return c.border(signal).combinations }

// Pivots are the entries of further row j and column j, for each j, in the matrix of a signal.
func (c *Centred) Pivots(signal int) []float64 { return c.border(signal).pivots }

func (c *Centred) border(signal int) furtherRows {
	switch {
	case c.of != nil:
		return c.borders[c.of[signal]]
	case c.borders == nil: // nothing is taken out
		return furtherRows{}
	}
	return c.borders[0]
}

// NewSweep prepares sweeps whose signals' side is laid out as [Centred] says.
func (c *Centred) NewSweep(p, q, threads int) (Sweep, error) {
	whole, err := c.Operator.NewSweep(p, q, threads)
	if err != nil {
		return nil, err
	}
	return c.around(whole, p, q), nil
}

// NewSweeps implements [Sharer].
func (c *Centred) NewSweeps(p, threads int) (Sweeps, error) {
	whole, err := NewSweeps(c.Operator, p, threads)
	if err != nil {
		return whole, err
	}
	s := Sweeps{Exact: c.around(whole.Exact, p, p), Linear: c.around(whole.Linear, p, 0)}
	if whole.Single.Exact != nil {
		s.Single.Exact, s.Single.Linear = c.around(whole.Single.Exact, p, p), c.around(whole.Single.Linear, p, 0)
	}
	return s, nil
}

// around is a sweep that lays out the signals' side for one over the whole matrix.
func (c *Centred) around(whole Sweep, p, q int) *centredSweep {
	_, n := c.Dims()
	s := &centredSweep{whole: whole, n: n - c.Extra, extra: c.Extra}
	s.x, s.r = make([]float64, p*n), make([]float64, p*n)
	s.c, s.h = make([]float64, q*n), make([]float64, q*n)
	return s
}

// Rounded implements [Rounder], where there can be such a matrix.
func (c *Centred) Rounded(threads int) (single Stored, lost float64) {
	r, ok := c.Operator.(Rounder)
	if !ok {
		return nil, 0
	}
	if single, lost = r.Rounded(threads); single != nil {
		single = &Centred{Operator: single, Extra: c.Extra, borders: c.borders, of: c.of}
	}
	return single, lost
}

// Storage implements [Stored].
func (c *Centred) Storage() string {
	if table, ok := c.Operator.(Stored); ok {
		return table.Storage()
	}
	return ""
}

// HasSingle implements [Single].
func (c *Centred) HasSingle() bool { return HasSingle(c.Operator) }

// HasSquares implements [Squares].
func (c *Centred) HasSquares() bool { return HasSquares(c.Operator) }

// centredSweep moves the further entries of each signal behind its others for the
// sweep, and back afterwards.
type centredSweep struct {
	whole      Sweep
	n, extra   int
	x, c, r, h []float64 // signal by signal, N+Extra entries each
}

// Run implements [Sweep].
func (s *centredSweep) Run(r, h, x, c []float64, rows RowFunc) error {
	s.gather(s.x, x)
	s.gather(s.c, c)
	if err := s.whole.Run(s.r, s.h, s.x, s.c, rows); err != nil {
		return err
	}
	s.spread(r, s.r)
	s.spread(h, s.h)
	return nil
}

// gather copies from all signals' entries followed by all further entries to
// signal by signal.
func (s *centredSweep) gather(dst, src []float64) {
	count, each := len(dst)/(s.n+s.extra), s.n+s.extra
	further := src[count*s.n:]
	for k := range count {
		copy(dst[k*each:], src[k*s.n:(k+1)*s.n])
		copy(dst[k*each+s.n:], further[k*s.extra:(k+1)*s.extra])
	}
}

// spread is the reverse of gather.
func (s *centredSweep) spread(dst, src []float64) {
	count, each := len(src)/(s.n+s.extra), s.n+s.extra
	further := dst[count*s.n:]
	for k := range count {
		copy(dst[k*s.n:(k+1)*s.n], src[k*each:])
		copy(further[k*s.extra:(k+1)*s.extra], src[k*each+s.n:])
	}
}

// MeanExcess is the mean square of the row means of w, relative to what it would be
// for independent entries of mean zero, and the same for the column means; and for
// each whether that is larger than chance explains.
func MeanExcess(w Operator, means Means) (rows, columns float64, rowsExceed, columnsExceed bool) {
	m, n := w.Dims()
	rows = meanSquare(means.Rows) * float64(n) / w.MeanSquare()
	columns = meanSquare(means.Columns) * float64(m) / w.MeanSquare()
	return rows, columns, exceeds(rows, m), exceeds(columns, n)
}

// exceeds reports whether an excess of count means is larger than chance explains.
// With independent entries it has mean 1 and standard deviation √(2/count): the limit
// is six of these above 1, and at least 2.
func exceeds(excess float64, count int) bool {
	return excess > max(2, 1+6*math.Sqrt(2/float64(count)))
}

// RemoveMeans returns an operator's matrix without its means. It returns nil when the
// means are no larger than those of independent entries of mean zero, or when the
// entries cannot be seen. memory, in bytes, is what the machine has; 0 is no limit. A
// matrix in memory is copied, in double precision, if the copy takes at most half of
// that; otherwise every sweep computes its rows again. The bits of sweeps are the same
// either way. A [Streamed] matrix stays where it is.
func RemoveMeans(op Operator, memory int64) (*Centred, error) {
	if matrices, of := Separate(op); matrices != nil {
		return removeEach(matrices, of, memory)
	}
	w, ok := op.(Matrix)
	if !ok {
		return nil, nil
	}
	if _, _, rows, columns := MeanExcess(w, w.Means()); !rows && !columns {
		return nil, nil
	}
	b, err := newBorder(w, means{})
	if err != nil || b.extra() == 0 {
		return nil, err
	}
	c := &Centred{Extra: b.extra(), borders: []furtherRows{b.further()}}
	c.Operator, err = b.bordered(memory)
	if err != nil {
		return nil, err
	}
	return c, nil
}

// removeEach is [RemoveMeans] where signals have matrices of their own: of all of them those means that are too large in any.
func removeEach(matrices []Operator, of []int, memory int64) (*Centred, error) {
	var taken means
	borders := make([]*border, len(matrices))
	for j, w := range matrices {
		table, ok := w.(Matrix)
		if !ok {
			return nil, nil
		}
		var err error
		if borders[j], err = newBorder(table, means{}); err != nil {
			return nil, err
		}
		own := borders[j].taken()
		taken.rows, taken.columns = taken.rows || own.rows, taken.columns || own.columns
	}
	if taken == (means{}) {
		return nil, nil
	}
	c := &Centred{of: of}
	changed := make([]Operator, len(matrices))
	for j, b := range borders {
		var err error
		if b.taken() != taken {
			if b, err = newBorder(b.w, taken); err != nil {
				return nil, err
			}
		}
		if b.taken() != taken { // nothing is left of it without its means
			return nil, nil
		}
		if changed[j], err = b.bordered(memory / int64(len(matrices))); err != nil {
			return nil, err
		}
		c.Extra, c.borders = b.extra(), append(c.borders, b.further())
	}
	var err error
	c.Operator, err = NewEach(changed, of)
	return c, err
}

// means are which are taken out.
type means struct{ rows, columns bool }

// taken are the means that b takes out.
func (b *border) taken() means { return means{b.rows != nil, b.columns != nil} }

// further are its rows and columns that are not W.
func (b *border) further() furtherRows { return furtherRows{b.combinations(), b.pivots()} }

// bordered is the matrix without its means, and with the further rows and columns.
func (b *border) bordered(memory int64) (Operator, error) {
	if far := distributed(b.w); far != nil {
		return b.distributed(far, memory)
	}
	whole, err := b.chunk(b.w, memory, 0, b.m+b.extra())
	if err != nil {
		return nil, err
	}
	return whole, whole.(interface{ check() error }).check()
}

// chunk are the rows from … end-1 of the bordered matrix: a copy, where there is memory for it, or as every
// sweep computes them again. A w that stays in its file stays there.
func (b *border) chunk(w Matrix, memory int64, from, end int) (Chunk, error) {
	if s, ok := w.(Streamed); ok {
		return b.streamed(s.Budget(), from, end)
	}
	if memory > 0 && int64(min(end, b.m)-from)*int64(b.n)*8 > memory/2 {
		return b.streamed(streamBudget, from, end)
	}
	return b.dense(from, end)
}

// streamBudget is the memory, in bytes, for the buffers of sweeps when there is no room
// for a copy of W.
const streamBudget = 256 << 20

// streamed is the bordered matrix whose rows every sweep computes again.
func (b *border) streamed(budget int64, from, end int) (*Disk, error) {
	return openUnchanging(borderRows{b, from}, end-from, b.n+b.extra(), budget)
}

func (b *border) dense(from, end int) (*Dense, error) {
	m, n := end-from, b.n+b.extra()
	d := &Dense{m: m, n: n, f64: &kernel.Matrix[float64]{Shape: kernel.ShapeOf(m, n)}}
	d.f64.Data = make([]float64, d.f64.Panels()*d.f64.PanelSize())
	measured, row := newMeasurement(m, n), make([]float64, n)
	for mu := range m {
		if err := b.rowInto(row, from+mu); err != nil {
			return nil, err
		}
		if err := addRow(measured, mu, row); err != nil {
			return nil, err
		}
		kernel.PackRow(d.f64.Shape, d.f64.Data, mu, row)
	}
	d.summary = measured.summary()
	return d, nil
}

// border computes the rows of a [Centred] matrix.
type border struct {
	w       Matrix // the rows from first on, or all
	first   int
	m, n    int
	rows    []float64 // γ, or nil when row means stay
	columns []float64 // c, or nil
	ones    []float64 // N: 0 where a column of W is zero
	live    []bool    // M: false where a row is zero

	size       float64 // root mean square of W - γ1ᵀ - 1cᵀ
	rowsUnit   float64 // t/rowsUnit is the further entry
	columnUnit float64 // u/columnUnit
	columnRow  float64 // the further row that defines u is c times this
}

// newBorder takes out the means of rows and columns that are larger than chance explains, and those of taken in any case.
func newBorder(w Matrix, taken means) (*border, error) {
	m, n := w.Dims()
	b := &border{
		w: w, m: m, n: n, rows: make([]float64, m), columns: make([]float64, n),
		ones: make([]float64, n), live: make([]bool, m),
	}
	if d := distributed(w); d != nil {
		return b, b.measureDistributed(d, taken)
	}
	if err := b.add(b.columns); err != nil {
		return nil, err
	}
	b.divide(taken)
	total, err := b.squares()
	b.scale(total)
	return b, err
}

// add adds the rows of b.w to the sums over columns, and has their own.
func (b *border) add(columns []float64) error {
	row := make([]float64, b.n)
	count, _ := b.w.Dims()
	for mu := b.first; mu < b.first+count; mu++ {
		if err := b.w.RowInto(row, mu-b.first); err != nil {
			return err
		}
		for i, v := range row {
			if v != 0 {
				b.ones[i], b.live[mu] = 1, true
				b.rows[mu] += v
				columns[i] += v
			}
		}
	}
	return nil
}

// divide turns the sums over rows and columns into γ and c. It drops γ or c where
// chance explains them and they are not to be taken out in any case.
func (b *border) divide(taken means) {
	width, height := 0.0, 0.0
	for _, one := range b.ones {
		width += one
	}
	for _, live := range b.live {
		if live {
			height++
		}
	}
	left, total := b.w.MeanSquare()*float64(b.m)*float64(b.n)/(width*height), 0.0
	for mu := range b.rows {
		b.rows[mu] /= width
		total += b.rows[mu] / height
	}
	if size := sumSquares(b.rows) / height; taken.rows || exceeds(size*width/left, b.m) {
		left -= size
		for i, one := range b.ones {
			b.columns[i] -= one * height * total
		}
	} else {
		b.rows = nil
	}
	for i := range b.columns {
		b.columns[i] /= height
	}
	if !taken.columns && !exceeds(sumSquares(b.columns)/width*height/left, b.n) {
		b.columns = nil
	}
}

// nothingLeft is a size of W without its means, relative to W: what is no larger
// consists of rounding errors, and the means are then left where they are.
const nothingLeft = 1e-9

// squares adds up those of the entries without the means, of the rows of b.w.
func (b *border) squares() (total float64, err error) {
	row := make([]float64, b.n)
	count, _ := b.w.Dims()
	for mu := b.first; mu < b.first+count; mu++ {
		if err := b.centred(row, mu); err != nil {
			return total, err
		}
		total += sumSquares(row)
	}
	return total, nil
}

// scale computes the scales of the further rows and columns, from the sum of squares of W
// without its means.
func (b *border) scale(total float64) {
	b.size = math.Sqrt(total / (float64(b.m) * float64(b.n)))
	if !(b.size > nothingLeft*math.Sqrt(b.w.MeanSquare())) || b.rows != nil && sumSquares(b.rows) == 0 || b.columns != nil && sumSquares(b.columns) == 0 {
		b.rows, b.columns = nil, nil
	}
	if b.rows != nil {
		b.rowsUnit = b.size * math.Sqrt(float64(b.m)/sumSquares(b.rows))
	}
	if b.columns != nil {
		b.columnUnit = b.size
		b.columnRow = b.size * math.Sqrt(float64(b.n)/sumSquares(b.columns))
	}
}

func (b *border) extra() int {
	count := 0
	if b.rows != nil {
		count++
	}
	if b.columns != nil {
		count++
	}
	return count
}

func (b *border) combinations() (all [][]float64) {
	scaled := func(v []float64, unit float64) []float64 {
		out := make([]float64, b.n)
		for i := range out {
			out[i] = v[i] / unit
		}
		return out
	}
	if b.rows != nil {
		all = append(all, scaled(b.ones, b.rowsUnit))
	}
	if b.columns != nil {
		all = append(all, scaled(b.columns, b.columnUnit))
	}
	return all
}

func (b *border) pivots() (all []float64) {
	if b.rows != nil {
		all = append(all, -b.size*b.rowsUnit)
	}
	if b.columns != nil {
		all = append(all, -b.columnRow*b.columnUnit)
	}
	return all
}

// centred is row µ < M of W - γ1ᵀ - 1cᵀ.
func (b *border) centred(row []float64, mu int) error {
	if err := b.w.RowInto(row, mu-b.first); err != nil || !b.live[mu] {
		return err
	}
	for i, one := range b.ones {
		if b.rows != nil {
			row[i] -= one * b.rows[mu]
		}
		if b.columns != nil {
			row[i] -= b.columns[i]
		}
	}
	return nil
}

// rowInto is a row of the bordered matrix, of length N+extra.
func (b *border) rowInto(row []float64, mu int) error {
	clear(row[b.n:])
	if mu < b.m {
		if err := b.centred(row[:b.n], mu); err != nil {
			return err
		}
		at := b.n
		if b.rows != nil {
			row[at] = b.rowsUnit * b.rows[mu]
			at++
		}
		if b.columns != nil && b.live[mu] {
			row[at] = b.columnUnit
		}
		return nil
	}
	j := mu - b.m
	from, size := b.columns, b.columnRow
	if b.rows != nil && j == 0 {
		from, size = b.ones, b.size
	}
	for i, v := range from {
		row[i] = size * v
	}
	row[b.n+j] = b.pivots()[j]
	return nil
}

// borderRows lets [openUnchanging] read the bordered matrix, from a row on, as if it were a
// file. It reads whole rows.
type borderRows struct {
	*border
	from int
}

// ReadAt implements [io.ReaderAt].
func (b borderRows) ReadAt(raw []byte, offset int64) (int, error) {
	row := make([]float64, b.n+b.extra())
	size := 8 * int64(len(row))
	for at := int64(0); at < int64(len(raw)); at += size {
		if err := b.rowInto(row, b.from+int((offset+at)/size)); err != nil {
			if failed, ok := errors.AsType[*ReadError](err); ok {
				err = failed.Err // the reader of this wraps it in a ReadError again
			}
			return int(at), err
		}
		for i, v := range row {
			binary.LittleEndian.PutUint64(raw[at+8*int64(i):], math.Float64bits(v))
		}
	}
	return len(raw), nil
}

func sumSquares(v []float64) float64 {
	total := 0.0
	for _, x := range v {
		total += x * x
	}
	return total
}

func meanSquare(v []float64) float64 { return sumSquares(v) / float64(len(v)) }
