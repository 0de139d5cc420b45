package dataset

import (
	"archive/zip"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/calamp/calamp/internal/matfile"
	"github.com/calamp/calamp/internal/memory"
)

// container is a file with arrays: numpy's archive of several or single one, or MATLAB's.
type container struct {
	path    string
	file    io.ReaderAt
	size    int64
	format  format
	head    []byte // the first bytes, which tell the format
	entries []entry
	places  map[string]int // of entries, by name
	closer  io.Closer
	allowed *memory.Allowance // for what is made of the arrays
	names   Names
}

type format uint8

const (
	foreignFormat format = iota
	npyFormat
	npzFormat
	matFormat
)

// entry is one array of a container, not yet read.
type entry struct {
	name string
	// info reads the header.
	info func() (Info, error)
	// open reads the header, too. The values can then be read from r, which the caller closes:
	// in the header's type and order.
	open func() (info Info, r io.ReadCloser, err error)
}

const headSize = 1024

// open opens the file at path and lists its arrays, which may take half of the machine's memory.
func open(path string) (*container, error) { return openWithin(path, memory.Half()) }

// openWithin is open with the memory that arrays may take.
func openWithin(path string, allowed *memory.Allowance) (*container, error) {
	c, err := openAny(path, allowed)
	if err != nil {
		return nil, err
	}
	if c.format == foreignFormat {
		c.close()
		return nil, c.fault("", "%s", foreign(c.head))
	}
	return c, nil
}

// openAny is open without the demand that the file holds arrays.
func openAny(path string, allowed *memory.Allowance) (*container, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fault(path, "", "%w", withoutPath(err))
	}
	stat, err := f.Stat()
	if err == nil && stat.IsDir() {
		err = errors.New("this is a folder, expected a file")
	}
	if err != nil {
		f.Close()
		return nil, fault(path, "", "%w", withoutPath(err))
	}
	if !stat.Mode().IsRegular() { // a pipe, which can only be read forward
		defer f.Close()
		return bufferAny(f, path, allowed)
	}
	c := &container{path: path, file: f, size: stat.Size(), closer: f, allowed: allowed}
	if err := c.list(); err != nil {
		f.Close()
		return nil, err
	}
	return c, nil
}

// buffer is open for a stream.
func buffer(r io.Reader, name string, allowed *memory.Allowance) (*container, error) {
	c, err := bufferAny(r, name, allowed)
	if err == nil && c.format == foreignFormat {
		err = c.fault("", "%s", foreign(c.head))
	}
	return c, err
}

// bufferAny is openAny for a stream. It reads no more of one than the first bytes where they are of no kind that is
// known, and no more than half of what is allowed: a buffer that grows is there twice.
func bufferAny(r io.Reader, name string, allowed *memory.Allowance) (*container, error) {
	data := make([]byte, headSize)
	n, err := io.ReadFull(r, data)
	data = data[:n]
	if err == nil && (formatOf(data) != foreignFormat || isText(data)) {
		var rest []byte
		most := int64(allowed.Most() / 2)
		rest, err = io.ReadAll(io.LimitReader(r, most))
		if data = append(data, rest...); int64(len(rest)) == most {
			return nil, fault(name, "", "this stream is longer than %v, half of the memory allowed: expected a file", memory.Size(most))
		}
	}
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return nil, fault(name, "", "%w", withoutPath(err))
	}
	c := &container{path: name, file: bytes.NewReader(data), size: int64(len(data)), allowed: allowed}
	return c, c.list()
}

func (c *container) close() {
	if c.closer != nil {
		c.closer.Close() // the file was only read: an error here loses nothing
	}
}

func (c *container) fault(array, format string, args ...any) error {
	return fault(c.path, array, format, args...)
}

// list finds out the format and the entries.
func (c *container) list() error {
	c.head = make([]byte, min(c.size, headSize))
	if _, err := c.file.ReadAt(c.head, 0); err != nil && !errors.Is(err, io.EOF) {
		return c.fault("", "%w", withoutPath(err))
	}
	c.allowed.File(c.size)
	switch c.format = formatOf(c.head); c.format {
	case npyFormat:
		name := strings.TrimSuffix(filepath.Base(c.path), ".npy")
		return c.add(npyEntry(name, c.size, func() (io.ReadCloser, error) {
			return io.NopCloser(io.NewSectionReader(c.file, 0, c.size)), nil
		}))
	case npzFormat:
		return c.listArchive()
	case matFormat:
		return c.listVariables()
	}
	return nil
}

// formatOf tells the format of a file by its first bytes.
func formatOf(head []byte) format {
	switch {
	case bytes.HasPrefix(head, []byte("\x93NUMPY")):
		return npyFormat
	case bytes.HasPrefix(head, []byte("PK\x03\x04")), bytes.HasPrefix(head, []byte("PK\x05\x06")):
		return npzFormat
	case matfile.Version(head) == 5:
		return matFormat
	}
	return foreignFormat
}

// add refuses a second array of a name.
func (c *container) add(e entry) error {
	if c.find(e.name) != nil {
		return c.fault(e.name, "there are two arrays of this name")
	}
	if c.places == nil {
		c.places = make(map[string]int)
	}
	c.places[e.name] = len(c.entries)
	c.entries = append(c.entries, e)
	return nil
}

// ErrClaims is what is wrong with an archive that says of its arrays what cannot be.
var ErrClaims = errors.New("unpacked they are more than anything that size can hold")

func (c *container) listArchive() error {
	archive, err := zip.NewReader(c.file, c.size)
	if err != nil {
		return c.fault("", "damaged or cut short, expected a .npz archive: %w", err)
	}
	var others []string
	for _, f := range archive.File {
		name, isArray := strings.CutSuffix(f.Name, ".npy")
		if !isArray {
			others = append(others, f.Name)
			continue
		}
		// Memory is allocated by the sizes in the archive's directory, which anyone can
		// write there: refuse sizes that the file cannot contain.
		packed, unpacked := f.CompressedSize64, f.UncompressedSize64
		if packed > uint64(c.size) || unpacked > matfile.MaxDeflate*packed+matfile.MaxDeflate {
			return c.fault(name, "damaged archive: %d bytes said to be packed into %d, in a file of %d: %w", unpacked, packed, c.size, ErrClaims)
		}
		if err := c.add(npyEntry(name, int64(unpacked), f.Open)); err != nil {
			return err
		}
	}
	if len(c.entries) == 0 && len(others) > 0 {
		return c.fault("", "this zip archive holds no numpy arrays, only %s, expected a .npz as numpy.savez writes", shorten(others))
	}
	return nil
}

// find returns the entry of the given name, or nil.
func (c *container) find(name string) *entry {
	if own, ok := c.names[name]; ok {
		name = own
	}
	i, ok := c.places[name]
	if !ok {
		return nil
	}
	return &c.entries[i]
}

// missing is the error for an array that the file does not have.
func (c *container) missing(name string) error {
	if len(c.entries) == 0 {
		return c.fault(name, "%s is missing: the archive is empty", name)
	}
	var names []string
	hint := ""
	for _, e := range c.entries {
		names = append(names, e.name)
		if strings.EqualFold(e.name, name) {
			hint = fmt.Sprintf("; upper and lower case differ: --name %s=%s reads it from there", name, e.name)
		}
	}
	if candidates := c.tables(); hint == "" && (name == "W" || name == "Y") && len(candidates) > 0 {
		hint = fmt.Sprintf("; --name %s=%s reads it from there", name, candidates[0])
		if name == "W" && len(candidates) > 1 {
			hint = fmt.Sprintf("; --name W=%s,Y=%s reads them from there", candidates[0], candidates[1])
		}
	}
	as := ""
	if own, ok := c.names[name]; ok {
		as = " as " + own
	}
	return c.fault(name, "%s is missing%s, found only %s%s", name, as, shorten(names), hint)
}

// Names are the names that arrays have in a file, by those that they are read as: {"W": "A"}.
type Names map[string]string

// has says whether an array is read under another name.
func (c *container) has(own string) bool {
	for _, name := range c.names {
		if name == own {
			return true
		}
	}
	return false
}

// tables are the arrays of two dimensions that have no name of ours, the largest first.
func (c *container) tables() (names []string) {
	sizes := map[string]int64{}
	for _, e := range c.entries {
		info, err := e.info()
		if err != nil || len(info.Shape) != 2 || slices.Contains([]string{"W", "Y", "X0"}, e.name) || c.has(e.name) {
			continue
		}
		names = append(names, e.name)
		sizes[e.name] = int64(info.Shape[0]) * int64(info.Shape[1])
	}
	slices.SortStableFunc(names, func(a, b string) int { return cmp.Compare(sizes[b], sizes[a]) })
	return names
}

// shorten lists names, at most a few.
func shorten(names []string) string {
	const most = 12
	if len(names) > most {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
	}
	return strings.Join(names, ", ")
}

// signatures are the first bytes of files that people may give in place of numpy's.
var signatures = []struct {
	offset      int
	magic, text string
}{
	{0, "\x89HDF\r\n\x1a\n", "this is an HDF5 file" + convertHDF5},
	{512, "\x89HDF\r\n\x1a\n", "this is an HDF5 file" + convertHDF5},
	{0, "MATLAB 5.0 MAT-file", "this is a MATLAB file, cut short"},
	{0, "\x89PNG", "this is a PNG image"},
	{0, "\xff\xd8\xff", "this is a JPEG image"},
	{0, "%PDF", "this is a PDF document"},
	{0, "\x1f\x8b", "this is a gzip file; gunzip it first"},
	{0, "\xfd7zXZ", "this is an xz file; unpack it first"},
	{0, "\x28\xb5\x2f\xfd", "this is a zstd file; unpack it first"},
	{0, "\x80\x02", "this is a Python pickle" + convertPickle},
	{0, "\x80\x03", "this is a Python pickle" + convertPickle},
	{0, "\x80\x04", "this is a Python pickle" + convertPickle},
	{0, "\x80\x05", "this is a Python pickle" + convertPickle},
}

const (
	convertHDF5 = "; convert it in Python: f = h5py.File(file); numpy.savez('problem.npz', W=f['W'][()], Y=f['Y'][()]), " +
		"both transposed (.T) if MATLAB wrote them"
	convertPickle = "; convert it in Python: numpy.savez('problem.npz', W=W, Y=Y)"
)

// foreign says, by its first bytes, what kind of file one without arrays is.
func foreign(head []byte) string {
	const expected = ", expected numpy's .npz or .npy, or MATLAB's .mat"
	switch matfile.Version(head) {
	case 4:
		return "this is a MATLAB file of version 4; write it anew in MATLAB or Octave, load('old.mat'), save('-v7', 'new.mat')" + expected
	case 7.3:
		return "this is a MATLAB file of version 7.3, which is HDF5; write it anew in MATLAB, load('old.mat'), save('new.mat', '-v7')" +
			", or in Python: f = h5py.File(file); numpy.savez('problem.npz', W=f['W'][()].T, Y=f['Y'][()].T)" + expected
	}
	for _, s := range signatures {
		if len(head) > s.offset && bytes.HasPrefix(head[s.offset:], []byte(s.magic)) {
			return s.text + expected
		}
	}
	switch {
	case len(head) == 0:
		return "this file is empty" + expected
	case isText(head):
		return "this is text, which --matrix and --readings take" + expected
	}
	return fmt.Sprintf("unknown kind of file, beginning with % x%s", head[:min(len(head), 8)], expected)
}

// isText tells text from binary data, as far as the head of a file can.
func isText(head []byte) bool {
	if len(head) == headSize { // the last character may be cut in two
		for i := 0; i < utf8.UTFMax && len(head) > 0 && !utf8.Valid(head); i++ {
			head = head[:len(head)-1]
		}
	}
	return utf8.Valid(head) && !bytes.ContainsAny(head, "\x00\x01\x02\x03\x04\x05\x06\x07\x08\x0e\x0f\x7f")
}
