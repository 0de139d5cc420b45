package matfile

import (
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"strings"
	"unicode/utf16"
)

// Array is an array to be written.
type Array struct {
	Name  string
	Dtype string // "<f8", "<f4", "<i8", "|b1", "<c16", "<c8"
	Shape []int
	Data  []byte // in Dtype, the first index fastest; a complex number is its real and its imaginary part
	Text  string // in place of all but the name, where Dtype is empty
}

// text is what a file begins with. There is no date in it: the same arrays make the same bytes.
const text = "MATLAB 5.0 MAT-file, written by calamp"

// written are what Write knows: a class, and the type that its numbers are stored in.
var written = map[string]struct{ class, element uint32 }{
	"<f8": {6, 9}, "<f4": {7, 7}, "<i8": {14, 12}, "|b1": {uint8Class, 2}, "<c16": {6, 9}, "<c8": {7, 7},
}

// complexParts are the bytes of a part of a complex number, by dtype.
var complexParts = map[string]int{"<c16": 8, "<c8": 4}

// Write writes a file of version 5, without compression, which every version of MATLAB
// and Octave reads.
func Write(w io.Writer, arrays []Array) error {
	header := []byte(text + strings.Repeat(" ", headerSize-12-len(text)) + "\x00\x00\x00\x00\x00\x00\x00\x00\x00\x01IM")
	if _, err := w.Write(header); err != nil {
		return err
	}
	for _, a := range arrays {
		if err := a.write(w); err != nil {
			return fmt.Errorf("write %s: %w", a.Name, err)
		}
	}
	return nil
}

func (a *Array) write(w io.Writer) error {
	flags, element, shape, data := uint32(charClass), uint32(4), a.Shape, [][]byte{a.Data}
	if a.Dtype == "" {
		units := utf16.Encode([]rune(a.Text))
		for _, u := range units {
			data[0] = binary.LittleEndian.AppendUint16(data[0], u)
		}
		shape = []int{1, len(units)}
	} else {
		kind, ok := written[a.Dtype]
		if !ok {
			return fmt.Errorf("dtype %s cannot be written", a.Dtype)
		}
		flags, element = kind.class, kind.element
		if a.Dtype == "|b1" {
			flags |= 0x200
		}
		if part := complexParts[a.Dtype]; part > 0 {
			flags |= 0x800
			data = apart(a.Data, part)
		}
	}
	for len(shape) < 2 { // a vector is a column, a number a matrix with one entry
		shape = append(shape[:len(shape):len(shape)], 1)
	}
	var dims []byte
	for _, d := range shape {
		dims = binary.LittleEndian.AppendUint32(dims, uint32(d))
	}
	inside := appendElement(nil, 6, binary.LittleEndian.AppendUint64(nil, uint64(flags)))
	inside = appendElement(inside, 5, dims)
	inside = appendElement(inside, 1, []byte(a.Name))
	size := int64(len(inside))
	for _, part := range data {
		size += 8 + int64(len(part)) + int64(-len(part)&7)
	}
	if size > math.MaxInt32 {
		return fmt.Errorf("%d bytes are more than a variable of a .mat can have (2 GiB); write a .npz", len(a.Data))
	}
	head := append(appendTag(nil, matrixType, int(size)), inside...)
	for _, part := range data {
		head = appendTag(head, element, len(part))
		for _, bytes := range [][]byte{head, part, make([]byte, -len(part)&7)} {
			if _, err := w.Write(bytes); err != nil {
				return err
			}
		}
		head = head[:0]
	}
	return nil
}

// apart are the real parts of complex numbers, of so many bytes each, and the imaginary ones.
func apart(data []byte, size int) [][]byte {
	parts := [][]byte{make([]byte, 0, len(data)/2), make([]byte, 0, len(data)/2)}
	for i := 0; i < len(data); i += 2 * size {
		parts[0] = append(parts[0], data[i:i+size]...)
		parts[1] = append(parts[1], data[i+size:i+2*size]...)
	}
	return parts
}

func appendElement(dst []byte, kind uint32, data []byte) []byte {
	dst = append(appendTag(dst, kind, len(data)), data...)
	return append(dst, make([]byte, -len(data)&7)...)
}

func appendTag(dst []byte, kind uint32, size int) []byte {
	return binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint32(dst, kind), uint32(size))
}
