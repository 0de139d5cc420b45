package operator

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"unsafe"

	"github.com/zeebo/xxh3"

	"github.com/calamp/calamp/internal/kernel"
	"github.com/calamp/calamp/internal/simd"
)

// Disk is a matrix that stays in its file, for a W larger than memory. Every sweep
// reads it once, and each thread its rows in order, so that the system reads ahead. The results have the same bits as
// those of a [Dense] with the same entries.
//
// The file is read and not mapped into memory. So the memory in use is bounded by the
// budget, whatever the operating system decides to keep, and a disk that fails causes
// an error and not a crash.
type Disk struct {
	kernel.Shape
	from   io.ReaderAt
	single bool
	budget int64
	above  int      // the number of its first row in messages
	sums   []uint64 // of each row, when it was first read; nil where rows cannot change
	summary
}

// ErrChanged is the cause of the [ReadError] of a row that is no longer what it was
// when the matrix was opened: an iteration over two matrices has no meaning.
var ErrChanged = errors.New("the file has changed since it was opened")

// ReadError is the error of a sweep, or of opening, when W cannot be read.
type ReadError struct{ Err error }

func (e *ReadError) Error() string { return "reading W: " + e.Err.Error() }

// Unwrap returns the cause.
func (e *ReadError) Unwrap() error { return e.Err }

// OpenDisk reads the M×N row-major matrix of little-endian float32 (single) or
// float64 values in from once, to check its entries and average over them, and keeps
// from for the sweeps. The budget, in bytes, bounds the memory of a sweep's buffers.
//
// Every row is checked whenever it is read again, by its checksum, since a file's size
// and time stay the same in some changes and change where its contents do not. From a
// changed file rows and sweeps return [ErrChanged].
func OpenDisk(from io.ReaderAt, m, n int, single bool, budget int64) (*Disk, error) {
	d, err := OpenDiskRows(from, 0, m, n, single, budget)
	if err != nil {
		return nil, err
	}
	return d, d.check()
}

// OpenDiskRows is the same for m rows of a larger matrix, from row first on: all of them may be
// zero.
func OpenDiskRows(from io.ReaderAt, first, m, n int, single bool, budget int64) (*Disk, error) {
	d, err := openDisk(from, m, n, single, budget)
	if err != nil {
		return nil, err
	}
	d.above = first
	sums := make([]uint64, m)
	if err := d.measure(sums); err != nil {
		return nil, err
	}
	d.sums = sums
	return d, nil
}

// openUnchanging is OpenDisk for rows of float64 that cannot change, or that are
// checked where they come from.
func openUnchanging(from io.ReaderAt, m, n int, budget int64) (*Disk, error) {
	d, err := openDisk(from, m, n, false, budget)
	if err != nil {
		return nil, err
	}
	return d, d.measure(nil)
}

func openDisk(from io.ReaderAt, m, n int, single bool, budget int64) (*Disk, error) {
	if m <= 0 || n <= 0 {
		return nil, fmt.Errorf("there is no %d×%d matrix", m, n)
	}
	if _, err := simd.Active(); err != nil {
		return nil, err
	}
	d := &Disk{Shape: kernel.ShapeOf(m, n), from: from, single: single, budget: budget}
	d.Layout = kernel.InRows
	if least := int64(kernel.Rows) * d.rowBytes(); budget < least {
		return nil, fmt.Errorf("%d bytes do not hold the buffer for a matrix with %d columns: at least %d", budget, n, least)
	}
	return d, nil
}

// Dims implements [Operator].
func (d *Disk) Dims() (m, n int) { return d.M, d.N }

// Storage is "f64" or "f32".
func (d *Disk) Storage() string {
	if d.single {
		return "f32"
	}
	return "f64"
}

// NewSweep implements [Operator].
func (d *Disk) NewSweep(p, q, threads int) (Sweep, error) {
	if d.single {
		return newDiskSweep[float32, float64](d, p, q, threads), nil
	}
	return newDiskSweep[float64, float64](d, p, q, threads), nil
}

// NewSweeps implements [Sharer]. All have one source, and so its slabs.
func (d *Disk) NewSweeps(p, threads int) (s Sweeps, err error) {
	if !d.single {
		exact := newDiskSweep[float64, float64](d, p, p, threads)
		s.Exact, s.Linear = exact, exact.linear()
		return s, nil
	}
	exact := newDiskSweep[float32, float64](d, p, p, threads)
	single := &diskSweep[float32, float32]{newDenseSweep[float32, float32](d.Shape, exact.source, p, p, threads), exact.source}
	s.Exact, s.Linear, s.Single.Exact, s.Single.Linear = exact, exact.linear(), single, single.linear()
	return s, nil
}

// HasSquares implements [Squares].
func (d *Disk) HasSquares() bool { return true }

// HasSingle implements [Single].
func (d *Disk) HasSingle() bool { return d.single }

// Budget implements [Streamed].
func (d *Disk) Budget() int64 { return d.budget }

// RowInto implements [Matrix]. The error is a [ReadError].
func (d *Disk) RowInto(dst []float64, mu int) error {
	if d.single {
		return rowInto[float32](d, dst, mu)
	}
	return rowInto[float64](d, dst, mu)
}

func rowInto[T kernel.Entry](d *Disk, dst []float64, mu int) error {
	row := make([]T, d.N)
	err := readRows(d, row, mu)
	for i, v := range row {
		dst[i] = float64(v)
	}
	return err
}

func (d *Disk) rowBytes() int64 {
	if d.single {
		return 4 * int64(d.N)
	}
	return 8 * int64(d.N)
}

// readRows fills rows with whole rows, from row first on, and checks them.
func readRows[T kernel.Entry](d *Disk, rows []T, first int) error {
	raw := bytesOf(rows)
	if n, err := d.from.ReadAt(raw, int64(first)*d.rowBytes()); n < len(raw) {
		if err == nil || err == io.EOF {
			err = fmt.Errorf("row %d: %w", d.above+first, io.ErrUnexpectedEOF)
			if d.sums != nil { // it has been read before
				err = fmt.Errorf("%w: %w", ErrChanged, err)
			}
		}
		return &ReadError{err}
	}
	if !littleEndian {
		swap(raw, len(raw)/len(rows))
	}
	if d.sums == nil {
		return nil
	}
	for i := 0; i < len(rows); i += d.N {
		if mu := first + i/d.N; checksum(rows[i:i+d.N]) != d.sums[mu] {
			return &ReadError{fmt.Errorf("row %d: %w", d.above+mu, ErrChanged)}
		}
	}
	return nil
}

// checksum takes a third of the time of CRC-32, which was a quarter of that of a sweep.
func checksum[T kernel.Entry](row []T) uint64 { return xxh3.Hash(bytesOf(row)) }

// littleEndian is whether this machine has the byte order of the file.
var littleEndian = binary.NativeEndian.Uint16([]byte{1, 0}) == 1

// bytesOf is the memory of v as bytes. A file is read straight into it: decoding the
// numbers one by one would take longer than the sweep.
func bytesOf[T kernel.Entry](v []T) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(v))), len(v)*int(unsafe.Sizeof(v[0])))
}

// swap reverses the bytes of every number of the given size.
func swap(raw []byte, size int) {
	for ; len(raw) > 0; raw = raw[size:] {
		slices.Reverse(raw[:size])
	}
}

// measure checks the entries, sets the averages over them, and fills sums, unless it
// is nil, with the checksums of the rows.
func (d *Disk) measure(sums []uint64) error {
	if d.single {
		return measureRows[float32](d, sums)
	}
	return measureRows[float64](d, sums)
}

func measureRows[T kernel.Entry](d *Disk, sums []uint64) error {
	count := int(max(1, min(SlabBytes, d.budget)/d.rowBytes()))
	rows, m := make([]T, count*d.N), newMeasurement(d.M, d.N)
	m.above = d.above
	for first := 0; first < d.M; first += count {
		rows = rows[:min(count, d.M-first)*d.N]
		if err := readRows(d, rows, first); err != nil {
			return err
		}
		for i := 0; i < len(rows); i += d.N {
			mu, row := first+i/d.N, rows[i:i+d.N]
			if err := addRow(m, mu, row); err != nil {
				return err
			}
			if sums != nil {
				sums[mu] = checksum(row)
			}
		}
	}
	d.summary = m.summary()
	return nil
}

// SlabBytes is how much of the file is read at a time, if the budget allows: what the cache of a core holds until it has been checked
// and used. It was chosen by measurement: see "A W larger than memory" in docs/log/performance.md.
const SlabBytes = 512 << 10

// diskSource reads panels as they are used.
type diskSource[T kernel.Entry] struct {
	*Disk
	slab int        // panels in a slab, a multiple of a block
	free chan []T   // slabs that are not in use; there is one a thread
	fail sync.Mutex // guards err
	err  error      // the first error of a run
}

type diskSweep[T kernel.Entry, V kernel.Value] struct {
	*denseSweep[T, V]
	source *diskSource[T]
}

func newDiskSweep[T kernel.Entry, V kernel.Value](d *Disk, p, q, threads int) *diskSweep[T, V] {
	source := &diskSource[T]{Disk: d}
	s := &diskSweep[T, V]{newDenseSweep[T, V](d.Shape, source, p, q, threads), source}
	slab := min(SlabBytes, d.budget/int64(s.threads)) / (int64(kernel.Rows) * d.rowBytes())
	source.slab = min(max(1, int(slab)/s.block)*s.block, s.panelsPerChunk())
	source.free = make(chan []T, s.threads)
	for range cap(source.free) {
		source.free <- make([]T, source.slab*d.PanelSize()+kernel.Columns)
	}
	return s
}

// linear is the sweep over the linear columns of s alone, with its workspace and source.
func (s *diskSweep[T, V]) linear() *diskSweep[T, V] {
	return &diskSweep[T, V]{s.denseSweep.linear(), s.source}
}

// Run implements [Sweep].
func (s *diskSweep[T, V]) Run(r, h, x, c []float64, rows RowFunc) error {
	s.source.err = nil
	if err := s.denseSweep.Run(r, h, x, c, rows); err != nil {
		return err
	}
	return s.source.err
}

// Forward implements [Linear].
func (s *diskSweep[T, V]) Forward(z, x []float64) error {
	s.source.err = nil
	return cmp.Or(s.denseSweep.Forward(z, x), s.source.err)
}

// Backward implements [Linear].
func (s *diskSweep[T, V]) Backward(r, g []float64) error {
	s.source.err = nil
	return cmp.Or(s.denseSweep.Backward(r, g), s.source.err)
}

// chunk ends at the first slab that cannot be read.
func (d *diskSource[T]) chunk(first, end, size int, visit func(first, panels int, w []T)) {
	w := <-d.free
	defer func() { d.free <- w }()
	for ; first < end; first += d.slab {
		stop := min(first+d.slab, end)
		if err := d.read(w, first, stop); err != nil {
			d.fail.Lock()
			defer d.fail.Unlock()
			d.err = err
			return
		}
		for at := first; at < stop; at += size {
			visit(at, min(size, stop-at), w[(at-first)*d.PanelSize():])
		}
	}
}

// read fills w with the panels from first to end as they are in the file. What kernels may read besides, rows
// that W does not have and the entries behind the last row, is zero.
func (d *diskSource[T]) read(w []T, first, end int) error {
	rows := w[:(min(end*kernel.Rows, d.M)-first*kernel.Rows)*d.N]
	clear(w[len(rows) : (end-first)*d.PanelSize()+kernel.Columns])
	return readRows(d.Disk, rows, first*kernel.Rows)
}
