package dataset

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/sbinet/npyio/npy"

	"github.com/calamp/calamp/internal/memory"
)

// maxHeader bounds a .npy header. Those of arrays of numbers have a hundred
// bytes, those of tables with many columns some thousands.
const maxHeader = 1 << 20

// npyEntry is an array in .npy format, of size bytes with its header, which open opens.
func npyEntry(name string, size int64, open func() (io.ReadCloser, error)) entry {
	e := entry{name: name, open: func() (Info, io.ReadCloser, error) {
		r, err := open()
		if err != nil {
			return Info{}, nil, fmt.Errorf("damaged: %w", err)
		}
		info, err := readHeader(r, name, size)
		if err != nil {
			r.Close()
			return Info{}, nil, err
		}
		return info, r, nil
	}}
	e.info = func() (Info, error) {
		info, r, err := e.open()
		if err == nil {
			r.Close()
		}
		return info, err
	}
	return e
}

// readHeader reads the header of an array, and compares the shape with the size.
func readHeader(r io.Reader, name string, size int64) (Info, error) {
	raw, err := rawHeader(r, size)
	if err != nil {
		return Info{}, err
	}
	h, err := parseHeader(raw)
	if err != nil {
		return Info{}, fmt.Errorf("unreadable .npy header: %w", err)
	}
	info := Info{Name: name, Dtype: h.Descr.Type, Order: "C", Shape: slices.Clone(h.Descr.Shape), Bytes: size - int64(len(raw))}
	if info.Shape == nil {
		info.Shape = []int{} // [] in JSON
	}
	if h.Descr.Fortran {
		info.Order = "F"
	}
	return info, info.checkSize()
}

// rawHeader reads the header's bytes, from the magic to the newline. It turns version 3
// into version 2, which has the same layout, since npyio does not know version 3.
func rawHeader(r io.Reader, size int64) ([]byte, error) {
	raw := make([]byte, 10)
	if _, err := io.ReadFull(r, raw); err != nil {
		return nil, fmt.Errorf("cut short within the .npy header: %w", err)
	}
	if string(raw[:6]) != "\x93NUMPY" {
		return nil, errors.New("not an array in .npy format")
	}
	length := int64(binary.LittleEndian.Uint16(raw[8:]))
	switch version := raw[6]; version {
	case 1:
	case 2, 3:
		raw = append(raw, 0, 0)
		if _, err := io.ReadFull(r, raw[10:]); err != nil {
			return nil, fmt.Errorf("cut short within the .npy header: %w", err)
		}
		length = int64(binary.LittleEndian.Uint32(raw[8:]))
		raw[6] = 2
	default:
		return nil, fmt.Errorf(".npy format version %d, expected 1 to 3", version)
	}
	if length > maxHeader || length > size-int64(len(raw)) {
		return nil, fmt.Errorf("cut short or damaged: .npy header of %d bytes in %d", length, size)
	}
	start := len(raw)
	raw = append(raw, make([]byte, length)...)
	if _, err := io.ReadFull(r, raw[start:]); err != nil {
		return nil, fmt.Errorf("cut short within the .npy header: %w", err)
	}
	return raw, nil
}

// parseHeader parses the header with npyio, which panics on some malformed ones.
func parseHeader(raw []byte) (h npy.Header, err error) {
	defer func() {
		if recover() != nil {
			err = errors.New("malformed")
		}
	}()
	r, err := npy.NewReader(strings.NewReader(string(raw)))
	if err != nil {
		return h, err
	}
	return r.Header, nil
}

// checkSize compares shape and type with the number of bytes in the file, before any
// memory is allocated for them.
func (i Info) checkSize() error {
	count := int64(1)
	for _, d := range i.Shape {
		if d < 0 {
			return fmt.Errorf("negative dimension in shape %v", i.Shape)
		}
		if d > 0 && count > math.MaxInt64/16/int64(d) {
			return fmt.Errorf("shape %v has more entries than fit into memory", i.Shape)
		}
		count *= int64(d)
	}
	t, err := parseDtype(i.Dtype)
	if err != nil {
		return nil // the sizes of other types are not known here
	}
	switch want := count * int64(t.size); {
	case i.Bytes < want:
		return fmt.Errorf("cut short: %s of dtype %s is %d bytes, found %d", i.dims(), i.Dtype, want, i.Bytes)
	case i.Bytes > want:
		return fmt.Errorf("%s of dtype %s is %d bytes, found %d", i.dims(), i.Dtype, want, i.Bytes)
	}
	return nil
}

// dtype is a type of numbers that can be read.
type dtype struct {
	kind string // without the byte order: "f8"
	size int
	big  bool
}

// parseDtype reads a type as headers write it.
func parseDtype(text string) (dtype, error) {
	kind := strings.TrimLeft(text, "<>|=")
	if size := complexSizes[kind]; size > 0 && len(text)-len(kind) <= 1 {
		return dtype{kind: kind, size: size, big: text[0] == '>'}, nil
	}
	if _, known := decoders[kind]; known && len(text)-len(kind) <= 1 {
		return dtype{kind: kind, size: int(kind[1] - '0'), big: text[0] == '>'}, nil
	}
	return dtype{}, noNumbers(text)
}

// complexSizes are the bytes of complex types, of which both parts are floats.
var complexSizes = map[string]int{"c8": 8, "c16": 16}

func (t dtype) complex() bool { return complexSizes[t.kind] > 0 }

// part is the size of what bytes are swapped in.
func (t dtype) part() int {
	if t.complex() {
		return t.size / 2
	}
	return t.size
}

// noNumbers is the error of a type that cannot be read where it stands.
func noNumbers(text string) error {
	return fmt.Errorf("dtype %s, expected floats, integers or bools", describeDtype(text, strings.TrimLeft(text, "<>|=")))
}

// describeDtype adds numpy's name to the short form of a type.
func describeDtype(text, kind string) string {
	if strings.HasPrefix(text, "(") { // npyio strips the list's brackets
		return "of a table with named columns"
	}
	names := map[string]string{
		"c8": "complex64", "c16": "complex128", "O": "object", "f16": "longdouble", "f12": "longdouble",
	}
	if slices.Contains(matlabKinds, text) {
		return text + " of MATLAB"
	}
	name, known := names[kind]
	if !known && kind != "" {
		name, known = map[byte]string{
			'U': "text", 'S': "bytes", 'a': "bytes", 'M': "datetime64", 'm': "timedelta64", 'V': "void",
		}[kind[0]]
	}
	if !known {
		return fmt.Sprintf("%q", text)
	}
	return fmt.Sprintf("%s (%s)", text, name)
}

// decoders turn little-endian bytes into numbers.
var decoders = map[string]func(dst []float64, src []byte){
	"b1": func(dst []float64, src []byte) {
		for i := range dst {
			dst[i] = float64(min(src[i], 1))
		}
	},
	"u1": func(dst []float64, src []byte) {
		for i := range dst {
			dst[i] = float64(src[i])
		}
	},
	"i1": func(dst []float64, src []byte) {
		for i := range dst {
			dst[i] = float64(int8(src[i]))
		}
	},
	"u2": func(dst []float64, src []byte) {
		for i := range dst {
			dst[i] = float64(binary.LittleEndian.Uint16(src[2*i:]))
		}
	},
	"i2": func(dst []float64, src []byte) {
		for i := range dst {
			dst[i] = float64(int16(binary.LittleEndian.Uint16(src[2*i:])))
		}
	},
	"f2": func(dst []float64, src []byte) {
		for i := range dst {
			dst[i] = fromHalf(binary.LittleEndian.Uint16(src[2*i:]))
		}
	},
	"u4": func(dst []float64, src []byte) {
		for i := range dst {
			dst[i] = float64(binary.LittleEndian.Uint32(src[4*i:]))
		}
	},
	"i4": func(dst []float64, src []byte) {
		for i := range dst {
			dst[i] = float64(int32(binary.LittleEndian.Uint32(src[4*i:])))
		}
	},
	"f4": func(dst []float64, src []byte) {
		for i := range dst {
			dst[i] = float64(math.Float32frombits(binary.LittleEndian.Uint32(src[4*i:])))
		}
	},
	"u8": func(dst []float64, src []byte) {
		for i := range dst {
			dst[i] = float64(binary.LittleEndian.Uint64(src[8*i:]))
		}
	},
	"i8": func(dst []float64, src []byte) {
		for i := range dst {
			dst[i] = float64(int64(binary.LittleEndian.Uint64(src[8*i:])))
		}
	},
	"f8": func(dst []float64, src []byte) {
		for i := range dst {
			dst[i] = math.Float64frombits(binary.LittleEndian.Uint64(src[8*i:]))
		}
	},
}

func decodeSingle(dst []float32, src []byte) {
	for i := range dst {
		dst[i] = math.Float32frombits(binary.LittleEndian.Uint32(src[4*i:]))
	}
}

func decodeComplex(dst []complex128, src []byte) {
	for i := range dst {
		dst[i] = complex(math.Float64frombits(binary.LittleEndian.Uint64(src[16*i:])), math.Float64frombits(binary.LittleEndian.Uint64(src[16*i+8:])))
	}
}

func decodeComplexSingle[T complex64 | complex128](dst []T, src []byte) {
	for i := range dst {
		dst[i] = T(complex(math.Float32frombits(binary.LittleEndian.Uint32(src[8*i:])), math.Float32frombits(binary.LittleEndian.Uint32(src[8*i+4:]))))
	}
}

// fromHalf converts IEEE 754 half precision. npyio's conversion is wrong for
// subnormal numbers.
func fromHalf(bits uint16) float64 {
	exponent, fraction := int(bits>>10)&31, float64(bits&1023)
	var x float64
	switch {
	case exponent == 0:
		x = math.Ldexp(fraction, -24)
	case exponent < 31:
		x = math.Ldexp(1024+fraction, exponent-25)
	case fraction == 0:
		x = math.Inf(1)
	default:
		return math.NaN()
	}
	if bits>>15 == 1 {
		x = -x
	}
	return x
}

// chunk is how many values are decoded at a time.
const chunk = 1 << 14

// decode reads the values of a, and brings them from the file's order to C order.
// npyio is not used for that: it returns Fortran arrays in the order of the file, does
// not know half precision, and stops before an archive's checksum.
func decode[T float32 | float64 | int32 | int64 | complex64 | complex128](r io.Reader, a *Array, t dtype, convert func([]T, []byte)) ([]T, error) {
	count := a.count()
	if err := a.allowed.TakeTimes(count, 1, int64(binary.Size(T(0)))); err != nil {
		return nil, fmt.Errorf("%s of dtype %s: %w", a.dims(), a.Dtype, err)
	}
	values := memory.Large[T](count)
	raw := make([]byte, min(len(values), chunk)*t.size)
	var part []T
	if a.Order == "F" {
		part = make([]T, min(len(values), chunk))
	}
	place := newPlaces(a.Shape)
	for done := 0; done < len(values); {
		n := min(chunk, len(values)-done)
		bytes := raw[:n*t.size]
		if _, err := io.ReadFull(r, bytes); err != nil {
			return nil, fmt.Errorf("cut short or damaged at value %d of %d: %w", done, len(values), err)
		}
		if t.big {
			swap(bytes, t.part())
		}
		if part == nil {
			convert(values[done:done+n], bytes)
		} else {
			convert(part[:n], bytes)
			for _, v := range part[:n] {
				values[place.next()] = v
			}
		}
		done += n
	}
	return values, nil
}

// swap reverses the bytes of every value.
func swap(values []byte, size int) {
	for ; len(values) > 0; values = values[size:] {
		slices.Reverse(values[:size])
	}
}

// places walks through an array in Fortran order, the first index fastest.
type places struct {
	shape, stride, index []int
	at                   int // in C order
}

func newPlaces(shape []int) *places {
	p := &places{shape: shape, stride: make([]int, len(shape)), index: make([]int, len(shape))}
	step := 1
	for k := len(shape) - 1; k >= 0; k-- {
		p.stride[k] = step
		step *= shape[k]
	}
	return p
}

// next returns the place, in C order, of the next value.
func (p *places) next() int {
	at := p.at
	for k := range p.shape {
		p.index[k]++
		p.at += p.stride[k]
		if p.index[k] < p.shape[k] {
			break
		}
		p.at -= p.index[k] * p.stride[k]
		p.index[k] = 0
	}
	return at
}
