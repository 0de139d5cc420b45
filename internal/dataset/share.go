package dataset

import (
	"encoding/binary"
	"fmt"
	"io"
	"math"

	"github.com/zeebo/xxh3"

	"github.com/calamp/calamp/internal/memory"
	"github.com/calamp/calamp/operator"
)

// kind tells a matrix from one of another size or form.
func (a *Array) kind() uint64 {
	return xxh3.HashString(fmt.Sprintln(a.Shape, a.Dtype, a.Order))
}

// firstRead is a file that is hashed as it is read for the first time, in order.
type firstRead struct {
	io.ReaderAt
	all *xxh3.Hasher // nil from then on
}

// ReadAt implements [io.ReaderAt].
func (f *firstRead) ReadAt(p []byte, at int64) (int, error) {
	n, err := f.ReaderAt.ReadAt(p, at)
	if f.all != nil {
		f.all.Write(p[:n])
	}
	return n, err
}

// rows reads the rows first … end-1 of a matrix, of which r has all values, and makes chunks of
// them that begin at the given rows.
func (a *Array) rows(r io.Reader, first, end int, chunks []int) ([]operator.Chunk, error) {
	t, err := parseDtype(a.Dtype)
	if err != nil {
		return nil, err
	}
	if t.kind == "f4" {
		return rowsAs(r, a, t, decodeSingle, first, end, chunks)
	}
	return rowsAs(r, a, t, decoders[t.kind], first, end, chunks)
}

func rowsAs[T float32 | float64](r io.Reader, a *Array, t dtype, convert func([]T, []byte), first, end int, chunks []int) ([]operator.Chunk, error) {
	values, err := decodeRows(r, a, t, convert, first, end)
	if err != nil {
		return nil, err
	}
	n := a.Shape[1]
	var all []operator.Chunk
	for c, from := range chunks[:len(chunks)-1] {
		to := chunks[c+1]
		d, err := operator.NewDenseRows(from, to-from, n, values[(from-first)*n:(to-first)*n])
		if err != nil {
			return nil, err
		}
		all = append(all, d)
	}
	return all, nil
}

// decodeRows reads all of r, and keeps the rows first … end-1 of the matrix in it, in C order.
func decodeRows[T float32 | float64](r io.Reader, a *Array, t dtype, convert func([]T, []byte), first, end int) ([]T, error) {
	m, n := a.Shape[0], a.Shape[1]
	if a.Order == "F" {
		return decodeColumns(r, a.allowed, t, convert, m, n, first, end)
	}
	skip := func(rows int) error {
		_, err := io.CopyN(io.Discard, r, int64(rows)*int64(n)*int64(t.size))
		return err
	}
	if err := skip(first); err != nil {
		return nil, fmt.Errorf("cut short or damaged before row %d: %w", first, err)
	}
	own := *a
	own.Shape = []int{end - first, n}
	values, err := decode(r, &own, t, convert)
	if err != nil {
		return nil, fmt.Errorf("from row %d on: %w", first, err)
	}
	if err := skip(m - end); err != nil {
		return nil, fmt.Errorf("cut short or damaged after row %d: %w", end-1, err)
	}
	return values, atEnd(r)
}

func decodeColumns[T float32 | float64](r io.Reader, allowed *memory.Allowance, t dtype, convert func([]T, []byte), m, n, first, end int) ([]T, error) {
	if err := allowed.TakeTimes(end-first, n, int64(binary.Size(T(0)))); err != nil {
		return nil, err
	}
	values, raw, column := make([]T, (end-first)*n), make([]byte, m*t.size), make([]T, m)
	for i := range n {
		if _, err := io.ReadFull(r, raw); err != nil {
			return nil, fmt.Errorf("cut short or damaged in column %d of %d: %w", i, n, err)
		}
		if t.big {
			swap(raw, t.size)
		}
		convert(column, raw)
		for mu, v := range column[first:end] {
			values[mu*n+i] = v
		}
	}
	return values, atEnd(r)
}

// rowsOnDisk are chunks that stay in the file, of which all rows are hashed.
func (c *container) rowsOnDisk(a *Array, chunks []int, budget int64, hash *xxh3.Hasher) ([]operator.Chunk, error) {
	m, n := a.Shape[0], a.Shape[1]
	each := budget / int64(len(chunks)-1) // all have buffers
	row := a.Bytes / int64(m)
	file := &firstRead{c.file, hash}
	section := func(from, to int) *io.SectionReader {
		return io.NewSectionReader(file, c.size-a.Bytes+int64(from)*row, int64(to-from)*row)
	}
	pass := func(from, to int) error { // rows of other ranks
		_, err := io.CopyBuffer(struct{ io.Writer }{io.Discard}, section(from, to), make([]byte, operator.SlabBytes))
		return err
	}
	if err := pass(0, chunks[0]); err != nil {
		return nil, withoutPath(err)
	}
	var all []operator.Chunk
	for i, from := range chunks[:len(chunks)-1] {
		to := chunks[i+1]
		values := section(from, to)
		d, err := operator.OpenDiskRows(values, from, to-from, n, a.Dtype == "<f4", each)
		if err != nil {
			return nil, err
		}
		all = append(all, d)
	}
	if err := pass(chunks[len(chunks)-1], m); err != nil {
		return nil, withoutPath(err)
	}
	file.all = nil
	return all, nil
}

// LoadShared is [Load] with the rows of W divided over the ranks of a group ([OpenShared]).
func LoadShared(path string, group operator.Group, reproducible bool) (*Problem, error) {
	c, err := open(path)
	if err != nil {
		return nil, err
	}
	defer c.close()
	if err := c.needsSeveral(); err != nil {
		return nil, err
	}
	w, _, err := c.share(math.MaxInt64, group, reproducible)
	if err != nil {
		return nil, err
	}
	p := &Problem{W: w}
	return p, p.addReadings(path, path, c.allowed)
}
