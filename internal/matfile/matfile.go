// Package matfile reads and writes arrays in MATLAB's files of version 5 to 7, after The
// MathWorks, "MAT-File Format" (R2021b). Version 7 is version 5 with compressed variables.
// It knows numbers and text; of cells, structs and the like it gives only the names.
//
// Nothing in a file is used before it has been compared with the bytes that are
// there: memory grows with what was read, not with what a file says of itself.
package matfile

import (
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/calamp/calamp/internal/memory"
)

// Variable is one variable of a file, not yet read.
type Variable struct {
	Name  string
	Dtype string // as numpy writes it: "<f8", "|b1", "<c16", "<U5"; or what else it is: "cell", "struct", …
	Shape []int  // at least two dimensions, but none for a line of text
	Bytes int64  // of the values as Open gives them; 0 where it gives none

	file *file
	at   int64 // of the variable's tag
	head header
}

// verify reads a variable without a name, which belongs to a function handle, or else is damaged.
func (v *Variable) verify() error {
	s, _, err := v.file.open(v.at)
	if err != nil || s.all == nil {
		return err
	}
	if _, err := io.Copy(io.Discard, io.LimitReader(s.all, s.left)); err != nil {
		return err
	}
	s.left = 0
	return s.end()
}

// header is what stands before the values of a matrix element.
type header struct {
	class   uint32
	complex bool
	logical bool
	dims    []int
	name    string
}

type file struct {
	r       io.ReaderAt
	size    int64
	order   binary.ByteOrder
	allowed *memory.Allowance

	listing  bool          // variables are opened one after the other, and
	unpacker io.ReadCloser // share this
}

// headerSize is the size of the file's header: 116 bytes of text, 8 of an offset, a
// version, and the mark of the byte order.
const headerSize = 128

// Version is the format of a file by its first bytes: 5 for version 5 to 7, 4, 7.3, or 0
// where it is none of MATLAB's.
func Version(head []byte) float64 {
	if len(head) >= headerSize && !bytes.Contains(head[:4], []byte{0}) {
		version := head[124:128]
		switch {
		case bytes.Equal(version, []byte("\x00\x01IM")), bytes.Equal(version, []byte("\x01\x00MI")):
			return 5
		case bytes.Equal(version, []byte("\x00\x02IM")), bytes.Equal(version, []byte("\x02\x00MI")):
			return 7.3
		}
	}
	if isVersion4(head) {
		return 4
	}
	return 0
}

// isVersion4 recognises the header of version 4: five numbers, the first of which has the
// decimal digits MOPT, with M the kind of machine, O zero, P the precision and T the type;
// then rows, columns, whether it is complex, and the length of the name, which ends in a zero.
func isVersion4(head []byte) bool {
	if len(head) < 20 {
		return false
	}
	order := binary.ByteOrder(binary.LittleEndian)
	if head[0] == 0 && head[1] == 0 && (head[2] != 0 || head[3] != 0) {
		order = binary.BigEndian
	}
	mopt, imaginary, length := order.Uint32(head), order.Uint32(head[12:]), int64(order.Uint32(head[16:]))
	return mopt < 5000 && mopt/100%10 == 0 && mopt/10%10 <= 5 && mopt%10 <= 2 && imaginary <= 1 &&
		length > 1 && length <= 64 && 20+length <= int64(len(head)) && bytes.IndexByte(head[20:20+length], 0) == int(length)-1
}

// MaxDeflate bounds the ratio of unpacked to packed bytes. Deflate stores at best 258
// bytes in two bits, which is 1032.
const MaxDeflate = 1032

// List returns the variables of a file of version 5 to 7 with size bytes. What is read of them at once, before
// any value is given, is counted against what is allowed.
func List(r io.ReaderAt, size int64, allowed *memory.Allowance) ([]*Variable, error) {
	head := make([]byte, headerSize)
	if _, err := r.ReadAt(head, 0); err != nil {
		return nil, fmt.Errorf("cut short within the header: %w", err)
	}
	f := &file{r: r, size: size, order: binary.LittleEndian, allowed: allowed}
	if head[126] == 'M' {
		f.order = binary.BigEndian
	}
	f.listing = true
	defer func() { f.listing, f.unpacker = false, nil }()
	var list []*Variable
	for at := int64(headerSize); at < size; {
		v, next, err := f.variable(at)
		if err != nil {
			return nil, err
		}
		if v.Name != "" {
			list = append(list, v)
		} else if err := v.verify(); err != nil {
			return nil, fmt.Errorf("damaged at byte %d: %w", at, err)
		}
		at = next
	}
	return list, nil
}

// variable reads the header of the variable at a place; next is the place of the one after it.
func (f *file) variable(at int64) (v *Variable, next int64, err error) {
	s, next, err := f.open(at)
	if err != nil {
		return nil, 0, fmt.Errorf("damaged at byte %d: %w", at, err)
	}
	v = &Variable{file: f, at: at}
	if v.head, err = s.header(); err != nil {
		return nil, 0, fmt.Errorf("damaged at byte %d: %w", at, err)
	}
	v.Name, v.Shape = v.head.name, v.head.dims
	v.describe()
	return v, next, nil
}

// numbers are the classes of arrays of numbers; others are the remaining ones.
var (
	numbers = map[uint32]string{
		6: "f8", 7: "f4", 8: "i1", 9: "u1", 10: "i2", 11: "u2", 12: "i4", 13: "u4", 14: "i8", 15: "u8",
		sparseClass: "f8",
	}
	others = map[uint32]string{1: "cell", 2: "struct", 3: "object", 16: "function", opaqueClass: "object"}
)

const (
	charClass   = 4
	sparseClass = 5
	uint8Class  = 9
	opaqueClass = 17
)

// describe says what Open will give.
func (v *Variable) describe() {
	kind, ok := v.head.kind()
	switch {
	case ok:
		v.Dtype = "<" + kind
		if width(kind) == 1 {
			v.Dtype = "|" + kind
		}
		if v.head.complex {
			v.Dtype = "<c" + map[int]string{4: "8", 8: "16"}[width(kind)]
			if v.Dtype == "<c" { // whole complex numbers: numpy has no such type
				v.Dtype = "complex integer"
				return
			}
			v.Bytes = int64(width(kind)) // twice
		}
		v.Bytes += int64(width(kind))
		for _, d := range v.Shape {
			v.Bytes *= int64(d)
		}
	case v.head.class == charClass && v.isLine():
		length := count(v.Shape)
		v.Dtype, v.Bytes, v.Shape = fmt.Sprintf("<U%d", length), 4*int64(length), nil
	case v.head.class == charClass:
		v.Dtype = "char"
	case others[v.head.class] != "":
		v.Dtype = others[v.head.class]
	default:
		v.Dtype = fmt.Sprintf("class %d", v.head.class)
	}
}

// isLine says whether text is a single line.
func (v *Variable) isLine() bool {
	return len(v.head.dims) == 2 && (v.head.dims[0] == 1 || count(v.head.dims) == 0)
}

// kind is the type of the numbers, without the byte order; ok says whether it is numbers.
func (h header) kind() (kind string, ok bool) {
	if h.logical && (h.class == uint8Class || h.class == sparseClass) {
		return "b1", true
	}
	kind, ok = numbers[h.class]
	return kind, ok
}

// width is the bytes of a number.
func width(kind string) int { return int(kind[1] - '0') }

// count is the number of entries; header has checked that it does not overflow.
func count(dims []int) int {
	n := 1
	for _, d := range dims {
		n *= d
	}
	return n
}

// stream is the inside of a variable's element.
type stream struct {
	r     io.Reader
	order binary.ByteOrder
	left  int64     // bytes up to the end of the element
	all   io.Reader // a compressed variable to its end, where the checksum is; nil for others
	size  int64     // bytes of the file, which bound what can be in it

	allowed *memory.Allowance
}

// The types of elements, beside those of numbers.
const (
	matrixType     = 14
	compressedType = 15
)

// stored are the types that numbers can be stored in, whatever their class.
var stored = map[uint32]string{
	1: "i1", 2: "u1", 3: "i2", 4: "u2", 5: "i4", 6: "u4", 7: "f4", 9: "f8", 12: "i8", 13: "u8",
}

// open opens the variable whose tag is at a place, up to its inside.
func (f *file) open(at int64) (s *stream, next int64, err error) {
	outer := &stream{r: io.NewSectionReader(f.r, at, f.size-at), order: f.order, left: f.size - at, size: f.size, allowed: f.allowed}
	kind, size, _, err := outer.tag()
	if err != nil {
		return nil, 0, err
	}
	next = at + 8 + size
	switch kind {
	case matrixType:
		outer.left = size
		return outer, next, nil
	case compressedType:
		unpacked, err := f.unpack(io.LimitReader(outer.r, size))
		if err != nil {
			return nil, 0, fmt.Errorf("compressed data: %w", err)
		}
		most := MaxDeflate*size + MaxDeflate
		s = &stream{r: unpacked, all: unpacked, order: f.order, left: most, size: f.size, allowed: f.allowed}
		kind, size, _, err := s.tag()
		if err != nil {
			return nil, 0, err
		}
		if kind != matrixType {
			return nil, 0, fmt.Errorf("an element of type %d in place of a variable", kind)
		}
		s.left = size
		return s, next, nil
	}
	return nil, 0, fmt.Errorf("an element of type %d in place of a variable", kind)
}

// unpack is a decompressor, which takes 40 KB: a list needs no more than one, however many variables there are.
func (f *file) unpack(r io.Reader) (io.ReadCloser, error) {
	if f.unpacker != nil {
		return f.unpacker, f.unpacker.(zlib.Resetter).Reset(r, nil)
	}
	unpacked, err := zlib.NewReader(r)
	if err == nil && f.listing {
		f.unpacker = unpacked
	}
	return unpacked, err
}

// tag reads the tag of an element: its type, its bytes, and how many follow that fill
// the last word. Elements of at most four bytes can have a short tag and then fill one word with it.
func (s *stream) tag() (kind uint32, size, padding int64, err error) {
	word, err := s.word()
	if err != nil {
		return 0, 0, 0, err
	}
	if small := word >> 16; small != 0 {
		if small > 4 {
			return 0, 0, 0, fmt.Errorf("a short element of %d bytes", small)
		}
		kind, size, padding = word&0xffff, int64(small), 4-int64(small)
	} else {
		bytes, err := s.word()
		if err != nil {
			return 0, 0, 0, err
		}
		kind, size = word, int64(bytes)
		padding = -size & 7
		if kind == compressedType {
			padding = 0
		}
	}
	if size > s.left {
		return 0, 0, 0, fmt.Errorf("cut short: an element of %d bytes in %d", size, s.left)
	}
	return kind, size, min(padding, s.left-size), nil
}

func (s *stream) word() (uint32, error) {
	var raw [4]byte
	if err := s.full(raw[:]); err != nil {
		return 0, err
	}
	return s.order.Uint32(raw[:]), nil
}

// full fills dst.
func (s *stream) full(dst []byte) error {
	if int64(len(dst)) > s.left {
		return errors.New("cut short")
	}
	n, err := io.ReadFull(s.r, dst)
	s.left -= int64(n)
	if err != nil {
		return fmt.Errorf("cut short or damaged: %w", err)
	}
	return nil
}

// element reads a whole element. It is counted before it is read, and memory grows with what is there.
func (s *stream) element() (kind uint32, data []byte, err error) {
	kind, size, padding, err := s.tag()
	if err != nil {
		return 0, nil, err
	}
	if err := s.allowed.Take(size); err != nil {
		return 0, nil, err
	}
	var b bytes.Buffer
	n, err := io.CopyN(&b, s.r, size+padding)
	s.left -= n
	if err != nil {
		return 0, nil, fmt.Errorf("cut short or damaged: %w", err)
	}
	return kind, b.Bytes()[:size], nil
}

// maxHeader bounds the elements before the values.
const maxHeader = 1 << 16

// short is element for the header.
func (s *stream) short(what string, kinds ...uint32) ([]byte, error) {
	limited := *s
	limited.left, limited.allowed = min(s.left, maxHeader), nil
	kind, data, err := limited.element()
	s.left -= min(s.left, maxHeader) - limited.left
	if err != nil {
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	for _, k := range kinds {
		if k == kind {
			return data, nil
		}
	}
	return nil, fmt.Errorf("%s: an element of type %d", what, kind)
}

// header reads what stands before the values.
func (s *stream) header() (h header, err error) {
	if s.left == 0 { // an empty matrix, as in cells
		return h, nil
	}
	flags, err := s.short("flags", 6)
	if err != nil {
		return h, err
	}
	if len(flags) != 8 {
		return h, fmt.Errorf("flags of %d bytes", len(flags))
	}
	word := s.order.Uint32(flags)
	h.class, h.complex, h.logical = word&0xff, word&0x800 != 0, word&0x200 != 0
	if h.class != opaqueClass { // which has no dimensions
		dims, err := s.short("dimensions", 5, 6)
		if err != nil {
			return h, err
		}
		if h.dims, err = s.dimensions(dims); err != nil {
			return h, err
		}
	}
	name, err := s.short("name", 1, 16)
	h.name = string(name)
	return h, err
}

func (s *stream) dimensions(raw []byte) (dims []int, err error) {
	if len(raw)%4 != 0 || len(raw) < 8 {
		return nil, fmt.Errorf("dimensions of %d bytes", len(raw))
	}
	count := int64(1)
	for ; len(raw) > 0; raw = raw[4:] {
		d := int64(int32(s.order.Uint32(raw)))
		if d < 0 {
			return nil, fmt.Errorf("a dimension of %d", d)
		}
		if d > 0 && count > math.MaxInt64/16/d {
			return nil, errors.New("more entries than fit into memory")
		}
		count *= d
		dims = append(dims, int(d))
	}
	return dims, nil
}
