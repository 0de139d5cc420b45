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
