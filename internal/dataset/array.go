package dataset

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/calamp/calamp/internal/memory"
	"github.com/calamp/calamp/operator"
)

// Info describes an array of a file.
type Info struct {
	Name  string `json:"name"`
	Dtype string `json:"dtype"` // as numpy writes it: "<f8", "|b1", …
	Order string `json:"order"` // "C" or "F"
	Shape []int  `json:"shape"` // of length 0 for a single number
	Bytes int64  `json:"bytes"` // of the values, uncompressed
}

// Array is an array of numbers with any number of dimensions.
type Array struct {
	Info             // as in the file
	Data   []float64 // in C order (the last index runs fastest), whatever the file's
	path   string
	data32 []float32 // in place of Data, for an f4 array that stays in single precision

	// In place of Data, for a complex array, where those are allowed.
	complex128 []complex128
	complex64  []complex64
	parts      int // in Data, of every entry: 2 for real and imaginary parts beside each other, 0 for 1

	allowed *memory.Allowance // of the file; nil for what is in memory
}

// LoadArray reads one array of the .npz or .mat at path, or the array of a .npy, as
// float64; integers beyond 2⁵³ are rounded. For a file with only one array the name may
// be empty; for a .npy it is only used in messages.
func LoadArray(path, name string) (*Array, error) {
	c, err := open(path)
	if err != nil {
		return nil, err
	}
	defer c.close()
	return c.read(name, false)
}

// Inspect lists the arrays of the .npz, .npy or .mat at path, of whatever type, or the table of a text (CSV),
// without keeping their values.
func Inspect(path string) ([]Info, error) {
	c, err := openAny(path, memory.Half())
	if err != nil {
		return nil, err
	}
	defer c.close()
	if c.format == foreignFormat {
		return c.inspectText()
	}
	infos := make([]Info, 0, len(c.entries))
	for _, e := range c.entries {
		info, err := e.info()
		if err != nil {
			return nil, c.fault(e.name, "%w", err)
		}
		infos = append(infos, info)
	}
	return infos, nil
}

// inspectText is Inspect of a table as text, which has the name of its file.
func (c *container) inspectText() ([]Info, error) {
	if len(c.head) == 0 || !isText(c.head) {
		return nil, c.fault("", "%s", foreign(c.head))
	}
	a, err := c.textTable(strings.TrimSuffix(filepath.Base(c.path), filepath.Ext(c.path)))
	if err != nil {
		return nil, err
	}
	a.Bytes = int64(8 * len(a.Data)) // once it is read
	return []Info{a.Info}, nil
}

// Takes is the memory that the arrays of the problem at path take once they are read, in bytes, by what their headers say:
// nothing else is read.
func Takes(path string) (bytes int64, err error) {
	arrays, err := Inspect(path)
	for _, a := range arrays {
		takes := a.converted()
		if a.Name == "W" && len(a.Shape) == 2 && a.count() > 0 { // as the kernels have it
			takes = int64(min(float64(operator.Packed(a.Shape[0], a.Shape[1]))*float64(takes/int64(a.count())), float64(memory.Unlimited)))
		}
		bytes += min(takes, int64(memory.Unlimited)-bytes)
	}
	return bytes, err
}

// read reads the array of the given name. With keepSingle, an f4 array is left
// in data32.
func (c *container) read(name string, keepSingle bool) (*Array, error) {
	return c.readNumbers(name, keepSingle, false)
}

// readNumbers is read for an array that may be complex, where that is allowed.
func (c *container) readNumbers(name string, keepSingle, mayBeComplex bool) (*Array, error) {
	a, r, err := c.start(name)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	if err := a.readValues(r, keepSingle, mayBeComplex); err != nil {
		return nil, c.fault(a.Name, "%w", err)
	}
	return a, nil
}

// start reads the header of the array of the given name. Its values can then be read
// from r, which the caller closes.
func (c *container) start(name string) (a *Array, r io.ReadCloser, err error) {
	e, err := c.choose(name)
	if err != nil {
		return nil, nil, err
	}
	a = &Array{path: c.path, allowed: c.allowed}
	if a.Info, r, err = e.open(); err != nil {
		return nil, nil, c.fault(e.name, "%w", err)
	}
	a.Name = e.name // a .npy has none of its own
	return a, r, nil
}

// describe is start without the values.
func (c *container) describe(name string) (*Array, error) {
	e, err := c.choose(name)
	if err != nil {
		return nil, err
	}
	a := &Array{path: c.path, allowed: c.allowed}
	if a.Info, err = e.info(); err != nil {
		return nil, c.fault(e.name, "%w", err)
	}
	a.Name = e.name
	return a, nil
}

// choose returns the entry to read, with the name that messages use for it.
func (c *container) choose(name string) (entry, error) {
	if c.format == npyFormat || name == "" && len(c.entries) == 1 {
		e := c.entries[0]
		if name != "" {
			e.name = name
		}
		return e, nil
	}
	if name == "" {
		var names []string
		for _, e := range c.entries {
			names = append(names, e.name)
		}
		if c.find("indptr") != nil && c.find("indices") != nil {
			return entry{}, c.fault("", "a matrix of scipy.sparse, expected a single array; where a matrix may stand it is sparse:%s", c.path)
		}
		return entry{}, c.fault("", "%d arrays (%s), expected a single one", len(names), shorten(names))
	}
	e := c.find(name)
	if e == nil {
		return entry{}, c.missing(name)
	}
	return *e, nil
}

// readOptional is read for an array that may be missing; it returns nil if it is.
func (c *container) readOptional(name string) (*Array, error) {
	if c.find(name) == nil {
		return nil, nil
	}
	return c.read(name, false)
}

// readTruth is readOptional for an array that is complex where the problem is.
func (c *container) readTruth(name string) (*Array, error) {
	if c.find(name) == nil {
		return nil, nil
	}
	return c.readNumbers(name, false, true)
}

func (a *Array) fault(format string, args ...any) error {
	return fault(a.path, a.Name, format, args...)
}

// readValues reads all that follows the header. It reads to the very end, since only
// there the archive's checksum is compared.
func (a *Array) readValues(r io.Reader, keepSingle, mayBeComplex bool) error {
	t, err := parseDtype(a.Dtype)
	if err != nil {
		return err
	}
	switch {
	case t.complex() && !mayBeComplex:
		return noNumbers(a.Dtype)
	case t.kind == "c8" && keepSingle:
		a.complex64, err = decode(r, a, t, decodeComplexSingle[complex64])
	case t.kind == "c8":
		a.complex128, err = decode(r, a, t, decodeComplexSingle[complex128])
	case t.complex():
		a.complex128, err = decode(r, a, t, decodeComplex)
	case t.kind == "f4" && keepSingle:
		a.data32, err = decode(r, a, t, decodeSingle)
	default:
		a.Data, err = decode(r, a, t, decoders[t.kind])
	}
	if err != nil {
		return err
	}
	return atEnd(r)
}

// atEnd reports what follows the last value.
func atEnd(r io.Reader) error {
	var extra [1]byte
	switch n, err := io.ReadFull(r, extra[:]); {
	case n > 0:
		return errors.New("damaged: more values than the archive's directory says")
	case err != io.EOF:
		return fmt.Errorf("damaged: %w", err)
	}
	return nil
}

// count is the number of entries. It does not overflow, since checkSize has compared
// the shape with the size of the file.
func (i Info) count() int {
	n := 1
	for _, d := range i.Shape {
		n *= d
	}
	return n
}

// converted is the bytes that the values take once they are read: all types become double precision, but for those of W
// that are single and stay so. It is 0 for types that are no numbers.
func (i Info) converted() int64 {
	t, err := parseDtype(i.Dtype)
	if err != nil {
		return 0
	}
	each := int64(8)
	switch {
	case t.complex() && i.Name != "W":
		each = 16
	case t.complex():
		each = int64(t.size)
	case t.kind == "f4" && i.Name == "W":
		each = 4
	}
	return int64(i.count()) * each
}

// dims is the shape in a message: 627×784, a vector of 627, a single number.
func (i Info) dims() string {
	switch len(i.Shape) {
	case 0:
		return "a single number"
	case 1:
		return fmt.Sprintf("a vector of %d", i.Shape[0])
	}
	text := make([]string, len(i.Shape))
	for k, d := range i.Shape {
		text[k] = strconv.Itoa(d)
	}
	return strings.Join(text, "×")
}
