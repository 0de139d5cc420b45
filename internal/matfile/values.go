package matfile

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"unicode/utf16"
)

// ErrNoNumbers is what Open says of cells, structs, and whatever else has no Bytes.
var ErrNoNumbers = errors.New("neither numbers nor a line of text")

// Open returns the values in Dtype, little-endian, the first index fastest: of a complex
// array real and imaginary parts in turn, of a sparse one also the zeros, of text UTF-32. They
// end with io.EOF only where the variable was whole.
func (v *Variable) Open() (io.Reader, error) {
	kind, numeric := v.head.kind()
	if v.Dtype == "complex integer" || !numeric && !strings.HasPrefix(v.Dtype, "<U") {
		return nil, ErrNoNumbers
	}
	s, _, err := v.file.open(v.at)
	if err != nil {
		return nil, err
	}
	if _, err := s.header(); err != nil {
		return nil, err
	}
	switch {
	case !numeric:
		return s.text(v.head)
	case v.head.class == sparseClass:
		return s.sparse(v.head, kind)
	}
	return s.dense(v.head, kind)
}

// parts gives bytes piece by piece. It ends when next does, and done agrees.
type parts struct {
	next func() ([]byte, error)
	done func() error
	rest []byte
	err  error
}

// Read implements [io.Reader].
func (p *parts) Read(dst []byte) (int, error) {
	for len(p.rest) == 0 {
		if p.err != nil {
			return 0, p.err
		}
		if p.rest, p.err = p.next(); p.err == io.EOF {
			if err := p.done(); err != nil {
				p.err = err
			}
		}
	}
	n := copy(dst, p.rest)
	p.rest = p.rest[n:]
	return n, nil
}

// end reads a compressed variable to its end, where its checksum is compared.
func (s *stream) end() error {
	if s.all == nil {
		return nil
	}
	// More than a word after the values is not a variable that MATLAB writes.
	if n, err := io.Copy(io.Discard, io.LimitReader(s.all, s.left+16)); err != nil {
		return fmt.Errorf("damaged: %w", err)
	} else if n > s.left+8 {
		return errors.New("damaged: compressed data goes on after the variable")
	}
	return nil
}

// dense gives the values of a full array.
func (s *stream) dense(h header, kind string) (io.Reader, error) {
	n := count(h.dims)
	if !h.complex {
		next, err := s.numbers(n, kind)
		if err != nil && kind == "b1" {
			err = fmt.Errorf("%w (Octave 7 writes sparse logical arrays wrongly: save double(…) of them)", err)
		}
		return &parts{next: next, done: s.end}, err
	}
	// Real parts stand before imaginary ones: keep them.
	from, real, err := s.wholePart(n)
	if err != nil {
		return nil, err
	}
	next, err := s.numbers(n, kind)
	if err != nil {
		return nil, err
	}
	w, have := width(kind), width(from)
	var pairs []byte
	return &parts{done: s.end, next: func() ([]byte, error) {
		imaginary, err := next()
		if err != nil {
			return nil, err
		}
		k := len(imaginary) / w
		converted := convert(real[:k*have], from, kind, s.order)
		real = real[k*have:]
		pairs = pairs[:0]
		for i := 0; i < len(imaginary); i += w {
			pairs = append(append(pairs, converted[i:i+w]...), imaginary[i:i+w]...)
		}
		return pairs, nil
	}}, nil
}

// wholePart reads an element of n numbers as it is stored.
func (s *stream) wholePart(n int) (kind string, raw []byte, err error) {
	t, raw, err := s.element()
	if err != nil {
		return "", nil, err
	}
	kind, err = storedAs(t, int64(len(raw)), n)
	return kind, raw, err
}

// storedAs is the type of n numbers in an element of a type and size.
func storedAs(t uint32, size int64, n int) (string, error) {
	kind, ok := stored[t]
	if !ok {
		return "", fmt.Errorf("damaged: values in an element of type %d", t)
	}
	if want := int64(n) * int64(width(kind)); size != want {
		return "", fmt.Errorf("damaged: %d bytes for values that take %d", size, want)
	}
	return kind, nil
}

// chunk is how many values are converted at a time.
const chunk = 1 << 13

// numbers gives the n values of an element piece by piece in a type.
func (s *stream) numbers(n int, kind string) (next func() ([]byte, error), err error) {
	t, size, _, err := s.tag()
	if err != nil {
		return nil, err
	}
	from, err := storedAs(t, size, n)
	if err != nil {
		return nil, err
	}
	raw := make([]byte, min(n, chunk)*width(from))
	return func() ([]byte, error) {
		if n == 0 {
			return nil, io.EOF
		}
		k := min(n, chunk)
		if err := s.full(raw[:k*width(from)]); err != nil {
			return nil, err
		}
		n -= k
		return convert(raw[:k*width(from)], from, kind, s.order), nil
	}, nil
}

// convert turns stored numbers into little-endian ones of another type: MATLAB stores
// numbers in the smallest type that holds them. It may change raw.
func convert(raw []byte, from, to string, order binary.ByteOrder) []byte {
	w := width(from)
	if order == binary.BigEndian {
		for i := 0; i < len(raw); i += w {
			slices.Reverse(raw[i : i+w])
		}
	}
	if from == to {
		return raw
	}
	converted := make([]byte, 0, len(raw)/w*width(to))
	for i := 0; i < len(raw); i += w {
		converted = put(converted, to, get(raw[i:], from))
	}
	return converted
}

// get reads a little-endian number.
func get(raw []byte, kind string) float64 {
	switch kind {
	case "i1":
		return float64(int8(raw[0]))
	case "u1", "b1":
		return float64(raw[0])
	case "i2":
		return float64(int16(binary.LittleEndian.Uint16(raw)))
	case "u2":
		return float64(binary.LittleEndian.Uint16(raw))
	case "i4":
		return float64(int32(binary.LittleEndian.Uint32(raw)))
	case "u4":
		return float64(binary.LittleEndian.Uint32(raw))
	case "f4":
		return float64(math.Float32frombits(binary.LittleEndian.Uint32(raw)))
	case "i8":
		return float64(int64(binary.LittleEndian.Uint64(raw)))
	case "u8":
		return float64(binary.LittleEndian.Uint64(raw))
	}
	return math.Float64frombits(binary.LittleEndian.Uint64(raw))
}

// put appends a number.
func put(dst []byte, kind string, v float64) []byte {
	switch kind {
	case "b1":
		if v != 0 {
			return append(dst, 1)
		}
		return append(dst, 0)
	case "i1", "u1":
		return append(dst, byte(int64(v)))
	case "i2", "u2":
		return binary.LittleEndian.AppendUint16(dst, uint16(int64(v)))
	case "i4", "u4":
		return binary.LittleEndian.AppendUint32(dst, uint32(int64(v)))
	case "f4":
		return binary.LittleEndian.AppendUint32(dst, math.Float32bits(float32(v)))
	case "i8", "u8":
		return binary.LittleEndian.AppendUint64(dst, uint64(int64(v)))
	}
	return binary.LittleEndian.AppendUint64(dst, math.Float64bits(v))
}

// maxDense bounds a sparse array that is written out, unless the file is so large that
// what a compressed full array of its size could take is more. It is a matrix of some 5800×5800, whose
// solution is a matter of minutes.
const maxDense = 1 << 28

// sparse gives the values of a sparse array with its zeros, column by column.
func (s *stream) sparse(h header, kind string) (io.Reader, error) {
	if len(h.dims) != 2 {
		return nil, fmt.Errorf("damaged: a sparse array with %d dimensions", len(h.dims))
	}
	rows, columns := h.dims[0], h.dims[1]
	w := width(kind)
	if h.complex {
		w *= 2
	}
	// A column is held at a time, and where each begins, also where there are no rows or no columns.
	if dense := float64(max(rows, 1)) * float64(max(columns, 1)) * float64(w); dense > float64(max(maxDense, MaxDeflate*s.size)) {
		return nil, fmt.Errorf("a sparse array of %d×%d, which takes %.0f bytes with its zeros, more than the %d allowed; "+
			"save it as full(single(…))", rows, columns, dense, max(maxDense, MaxDeflate*s.size))
	}
	if err := s.allowed.TakeTimes(rows, 3, 8); err != nil { // a column, and its real and imaginary parts
		return nil, err
	}
	c, err := s.compressedColumns(rows, columns, h.complex, h.logical)
	if err != nil {
		return nil, err
	}
	k := 0
	column := make([]byte, 0, rows*w)
	real, imaginary := make([]float64, rows), make([]float64, rows)
	return &parts{done: s.end, next: func() ([]byte, error) {
		if k == columns {
			return nil, io.EOF
		}
		column = c.column(column[:0], k, real, imaginary, kind)
		k++
		return column, nil
	}}, nil
}

// compressedColumns is a sparse array: the entries of column k are those from start[k] on,
// up to start[k+1].
type compressedColumns struct {
	start, row      []int
	real, imaginary []float64
}

func (s *stream) compressedColumns(rows, columns int, isComplex, logical bool) (c compressedColumns, err error) {
	if c.row, err = s.indices("row indices"); err != nil {
		return c, err
	}
	if c.start, err = s.indices("column starts"); err != nil {
		return c, err
	}
	if len(c.start) != columns+1 || c.start[0] != 0 || !slices.IsSorted(c.start) || c.start[columns] > len(c.row) {
		return c, errors.New("damaged: the columns of a sparse array do not fit together")
	}
	entries := c.start[columns] // there may be room for more
	for _, r := range c.row[:entries] {
		if r < 0 || r >= rows {
			return c, fmt.Errorf("damaged: row %d of a sparse array with %d rows", r, rows)
		}
	}
	if c.real, err = s.entries(entries, logical); err == nil && isComplex {
		c.imaginary, err = s.entries(entries, false)
	}
	return c, err
}

// column appends the values of a column, which it adds up in real and imaginary, one value a row each. Entries at the same
// place are added.
func (c *compressedColumns) column(dst []byte, k int, real, imaginary []float64, kind string) []byte {
	clear(real)
	clear(imaginary)
	for i := c.start[k]; i < c.start[k+1]; i++ {
		real[c.row[i]] += c.real[i]
		if c.imaginary != nil {
			imaginary[c.row[i]] += c.imaginary[i]
		}
	}
	for r, v := range real {
		dst = put(dst, kind, v)
		if c.imaginary != nil {
			dst = put(dst, kind, imaginary[r])
		}
	}
	return dst
}

// indices reads an element of whole numbers.
func (s *stream) indices(what string) ([]int, error) {
	t, raw, err := s.element()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	if stored[t] != "i4" && stored[t] != "u4" || len(raw)%4 != 0 {
		return nil, fmt.Errorf("damaged: %s in an element of type %d", what, t)
	}
	if err := s.allowed.Take(2 * int64(len(raw))); err != nil {
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	list := make([]int, len(raw)/4)
	for i := range list {
		list[i] = int(int32(s.order.Uint32(raw[4*i:])))
	}
	return list, nil
}

// entries reads the values of a sparse array; the element may have room for more.
// MATLAB gives those of logical arrays the type of doubles, and writes bytes.
func (s *stream) entries(n int, logical bool) ([]float64, error) {
	t, raw, err := s.element()
	if err != nil {
		return nil, err
	}
	kind, ok := stored[t]
	if !ok {
		return nil, fmt.Errorf("damaged: values in an element of type %d", t)
	}
	if logical && len(raw) < n*width(kind) {
		kind = "u1"
	}
	if n*width(kind) > len(raw) {
		return nil, fmt.Errorf("damaged: %d bytes for values that take %d", len(raw), n*width(kind))
	}
	if err := s.allowed.TakeTimes(n, 2, 8); err != nil { // as bytes, and as numbers
		return nil, err
	}
	raw = convert(raw[:n*width(kind)], kind, "f8", s.order)
	list := make([]float64, n)
	for i := range list {
		list[i] = get(raw[8*i:], "f8")
	}
	return list, nil
}

// text gives a line of text, as many characters as the dimensions say: what UTF-8 or
// pairs in UTF-16 leave empty is zero.
func (s *stream) text(h header) (io.Reader, error) {
	t, raw, err := s.element()
	if err != nil {
		return nil, err
	}
	if err := s.allowed.TakeTimes(len(raw), 2, 4); err != nil { // as characters, and as UTF-32
		return nil, err
	}
	var characters []rune
	switch t {
	case 16: // UTF-8
		characters = []rune(string(raw))
	case 17, 4: // UTF-16
		units := make([]uint16, len(raw)/2)
		for i := range units {
			units[i] = s.order.Uint16(raw[2*i:])
		}
		characters = utf16.Decode(units)
	case 1, 2:
		for _, c := range raw {
			characters = append(characters, rune(c))
		}
	default:
		return nil, fmt.Errorf("damaged: text in an element of type %d", t)
	}
	n := count(h.dims)
	if len(characters) > n || len(raw) < n {
		return nil, fmt.Errorf("damaged: %d characters of text, expected %d", len(characters), n)
	}
	line := make([]byte, 0, 4*n)
	for _, c := range characters {
		line = binary.LittleEndian.AppendUint32(line, uint32(c))
	}
	line = append(line, make([]byte, 4*n-len(line))...)
	return &parts{done: s.end, next: func() ([]byte, error) {
		if len(line) == 0 {
			return nil, io.EOF
		}
		all := line
		line = nil
		return all, nil
	}}, nil
}
