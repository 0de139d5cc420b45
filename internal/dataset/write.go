package dataset

import (
	"archive/zip"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"time"

	"gonum.org/v1/gonum/mat"

	"github.com/calamp/calamp/operator"
)

// output is an array to be written. npyio is not used for that: it cannot write f4
// matrices, writes value by value, and a header takes only a few lines.
type output struct {
	name  string
	dtype string
	shape []int
	rows  int
	// appendRow appends the bytes of one of the rows, little-endian.
	appendRow func(dst []byte, row int) ([]byte, error)
}

func matrixOutput(name string, m *mat.Dense) output {
	rows, columns := m.Dims()
	return output{name, "<f8", []int{rows, columns}, rows, func(dst []byte, row int) ([]byte, error) {
		return appendFloats(dst, m.RawRowView(row)), nil
	}}
}

func vectorOutput(name string, v []float64) output {
	return output{name, "<f8", []int{len(v)}, 1, func(dst []byte, _ int) ([]byte, error) {
		return appendFloats(dst, v), nil
	}}
}

func scalarOutput(name string, x float64) output {
	return output{name, "<f8", nil, 1, func(dst []byte, _ int) ([]byte, error) {
		return appendFloats(dst, []float64{x}), nil
	}}
}

func boolOutput(name string, v []bool) output {
	return output{name, "|b1", []int{len(v)}, 1, func(dst []byte, _ int) ([]byte, error) {
		for _, b := range v {
			if b {
				dst = append(dst, 1)
			} else {
				dst = append(dst, 0)
			}
		}
		return dst, nil
	}}
}

// denseOutput keeps the precision that d is stored in.
func denseOutput(name string, d operator.Matrix) output {
	m, n := d.Dims()
	row64 := make([]float64, n)
	if d.Storage() != "f32" {
		return output{name, "<f8", []int{m, n}, m, func(dst []byte, row int) ([]byte, error) {
			err := d.RowInto(row64, row)
			return appendFloats(dst, row64), err
		}}
	}
	return output{name, "<f4", []int{m, n}, m, func(dst []byte, row int) ([]byte, error) {
		err := d.RowInto(row64, row)
		for _, x := range row64 {
			dst = binary.LittleEndian.AppendUint32(dst, math.Float32bits(float32(x)))
		}
		return dst, err
	}}
}

// matrixOutputs is what [OpenMatrix] reads w from, without the name of its kind: nothing
// of a matrix that is made of others.
func matrixOutputs(w operator.Operator) []output {
	if matrices, of := operator.Separate(w); matrices != nil {
		return eachOutputs(matrices, of)
	}
	switch w := w.(type) {
	case operator.Matrix:
		return []output{denseOutput("W", w)}
	case *operator.Complex:
		if r, transform := w.Rows(); transform {
			return rowsOutputs(r)
		}
		return []output{complexOutput("W", w)}
	case interface{ Rows() operator.Rows }:
		return rowsOutputs(w.Rows())
	case *operator.Sparse:
		return sparseOutputs(w.CSR())
	}
	return nil
}

// rowsOutputs is a choice of rows of a transform.
func rowsOutputs(r operator.Rows) []output {
	outputs := []output{integersOutput("n", nil, []int{r.N}), integersOutput("rows", []int{len(r.Rows)}, r.Rows)}
	if r.Signs != nil {
		outputs = append(outputs, vectorOutput("signs", r.Signs))
	}
	if r.Permutation != nil {
		outputs = append(outputs, integersOutput("permutation", []int{r.N}, r.Permutation))
	}
	return outputs
}

// sparseOutputs is what scipy.sparse.save_npz writes of a csr_matrix.
func sparseOutputs(c operator.CSR) []output {
	outputs := []output{
		{"format", "|S3", nil, 1, func(dst []byte, _ int) ([]byte, error) { return append(dst, "csr"...), nil }},
		integersOutput("shape", []int{2}, []int{c.M, c.N}),
		integersOutput("indptr", []int{len(c.Start)}, c.Start),
		{"indices", "<i4", []int{len(c.Columns)}, pieces(len(c.Columns)), func(dst []byte, row int) ([]byte, error) {
			for _, v := range piece(c.Columns, row) {
				dst = binary.LittleEndian.AppendUint32(dst, uint32(v))
			}
			return dst, nil
		}},
	}
	if c.Values32 != nil {
		return append(outputs, output{"data", "<f4", []int{len(c.Values32)}, pieces(len(c.Values32)), func(dst []byte, row int) ([]byte, error) {
			for _, v := range piece(c.Values32, row) {
				dst = binary.LittleEndian.AppendUint32(dst, math.Float32bits(v))
			}
			return dst, nil
		}})
	}
	return append(outputs, output{"data", "<f8", []int{len(c.Values)}, pieces(len(c.Values)), func(dst []byte, row int) ([]byte, error) {
		return appendFloats(dst, piece(c.Values, row)), nil
	}})
}

func integersOutput[T int | int64](name string, shape []int, v []T) output {
	return output{name, "<i8", shape, pieces(len(v)), func(dst []byte, row int) ([]byte, error) {
		for _, x := range piece(v, row) {
			dst = binary.LittleEndian.AppendUint64(dst, uint64(x))
		}
		return dst, nil
	}}
}

// pieces is in how many pieces a long vector is written, and piece one of them.
func pieces(n int) int { return (n + chunk - 1) / chunk }

func piece[T any](v []T, i int) []T { return v[i*chunk : min((i+1)*chunk, len(v))] }

func appendFloats(dst []byte, values []float64) []byte {
	for _, x := range values {
		dst = binary.LittleEndian.AppendUint64(dst, math.Float64bits(x))
	}
	return dst
}

// entryTime is the time stamp of all entries, the earliest that the zip format has, so
// that the same arrays always make the same bytes.
var entryTime = time.Date(1980, 1, 1, 0, 0, 0, 0, time.UTC)

// writeArchive writes a .npz as numpy.savez does: stored, not deflated.
func writeArchive(w io.Writer, arrays []output) error {
	archive := zip.NewWriter(w)
	for _, a := range arrays {
		entry, err := archive.CreateHeader(&zip.FileHeader{Name: a.name + ".npy", Method: zip.Store, Modified: entryTime})
		if err != nil {
			return fmt.Errorf("write %s: %w", a.name, err)
		}
		if err := a.write(entry); err != nil {
			return fmt.Errorf("write %s: %w", a.name, err)
		}
	}
	return archive.Close()
}

// write writes the array in .npy format, version 1.
func (o output) write(w io.Writer) error {
	buf := o.header()
	for row := range o.rows {
		var err error
		if buf, err = o.appendRow(buf, row); err != nil {
			return err
		}
		if _, err := w.Write(buf); err != nil {
			return err
		}
		buf = buf[:0]
	}
	return nil
}

// header is padded to a multiple of 64 bytes, so that the values can be mapped into
// memory.
func (o output) header() []byte {
	dict := fmt.Sprintf("{'descr': '%s', 'fortran_order': False, 'shape': %s, }", o.dtype, tuple(o.shape))
	const before = 10 // magic, version, length
	padding := 63 - (before+len(dict))%64
	dict += strings.Repeat(" ", padding) + "\n"
	header := append([]byte("\x93NUMPY\x01\x00"), 0, 0)
	binary.LittleEndian.PutUint16(header[8:], uint16(len(dict)))
	return append(header, dict...)
}

// tuple is a shape in Python.
func tuple(shape []int) string {
	text := make([]string, len(shape))
	for k, d := range shape {
		text[k] = strconv.Itoa(d)
	}
	if len(text) == 1 {
		return "(" + text[0] + ",)"
	}
	return "(" + strings.Join(text, ", ") + ")"
}
