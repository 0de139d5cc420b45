package dataset

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/zeebo/xxh3"

	"github.com/calamp/calamp/internal/memory"
	"github.com/calamp/calamp/operator"
)

// matrixKind is a kind of matrix that is no table, and how it is read from what stands
// behind its name and a colon.
type matrixKind struct {
	name  string
	usage string
	open  func(rest string, allowed *memory.Allowance) (operator.Operator, error)
}

var matrixKinds []matrixKind

func init() { // kron reads other kinds
	matrixKinds = []matrixKind{
		{"sparse", "sparse:W.npz", openSparse},
		{"hadamard", "hadamard:R.npz", rowsOf(func(r operator.Rows) (operator.Operator, error) { return operator.NewHadamard(r) })},
		{"dct", "dct:R.npz", rowsOf(func(r operator.Rows) (operator.Operator, error) { return operator.NewDCT(r) })},
		{"kron", "kron:A.npy,B.npy", openKronecker},
		{"each", "each:DIR|FILE,FILE…", openEach},
		{"fft", "fft:R.npz", rowsOf(func(r operator.Rows) (operator.Operator, error) { return operator.NewFourier(r) })},
	}
}

// MatrixSpecs are the ways to name a matrix, for help.
func MatrixSpecs() string {
	list := []string{"W.npy"}
	for _, k := range matrixKinds {
		list = append(list, k.usage)
	}
	return strings.Join(list, ", ")
}

// kindName is how the name of a kind looks, whether there is one or not.
var kindName = regexp.MustCompile(`^[a-z][a-z0-9_-]+$`)

// kindOf divides a spec into the kind and the rest; the kind is nil for a file with a
// table.
func kindOf(spec string) (kind *matrixKind, rest string, err error) {
	name, rest, ok := strings.Cut(spec, ":")
	if !ok {
		return nil, spec, nil
	}
	if i := slices.IndexFunc(matrixKinds, func(k matrixKind) bool { return k.name == name }); i >= 0 {
		return &matrixKinds[i], rest, nil
	}
	if _, err := os.Stat(spec); err != nil && kindName.MatchString(name) {
		return nil, "", fault(spec, "", "there is no kind of matrix %q, expected %s", name, MatrixSpecs())
	}
	return nil, spec, nil
}

// IsSpec says whether a name is that of a kind of matrix with what stands behind it, or
// looks like one, and not the name of a file.
func IsSpec(spec string) bool {
	kind, _, err := kindOf(spec)
	return kind != nil || err != nil
}

// SpecFiles are the files that a spec names.
func SpecFiles(spec string) []string {
	kind, rest, err := kindOf(spec)
	switch {
	case err != nil || spec == "":
		return nil
	case kind != nil && kind.name == "each":
		list, err := eachOf(rest)
		if err != nil {
			return nil // which opening it reports
		}
		var files []string
		for _, spec := range list {
			files = append(files, SpecFiles(spec)...)
		}
		return files
	case kind != nil && kind.name == "kron":
		a, b, _ := strings.Cut(rest, ",")
		return append(SpecFiles(a), SpecFiles(b)...)
	}
	return []string{rest}
}

// OpenMatrix reads the matrix that spec names:
//
//	W.npy              a table, or the array W of a .npz
//	sparse:W.npz       what scipy.sparse.save_npz writes, of format csr or csc
//	hadamard:R.npz     rows of the Walsh–Hadamard transform (see operator.Rows): n, rows (M),
//	                   and optionally signs (n) and permutation (n)
//	dct:R.npz          the same of the cosine transform of type II
//	fft:R.npz          the same of the Fourier transform: a complex matrix
//	each:A.npy,B.npy   a matrix for every signal: a list of specs, or a folder with files
//	kron:A.npy,B.npy   the Kronecker product; A and B can be other specs
//
// A table of more than budget bytes stays in its file, as [OpenParts] says; file is then
// to be closed when done, and nil otherwise.
//
// What is no table may take budget bytes, too, with the vectors that a product with it takes.
func OpenMatrix(spec string, budget int64) (w operator.Operator, file io.Closer, err error) {
	return openMatrix(spec, budget, allowance(budget))
}

func openMatrix(spec string, budget int64, allowed *memory.Allowance) (w operator.Operator, file io.Closer, err error) {
	kind, rest, err := kindOf(spec)
	if err != nil {
		return nil, nil, err
	}
	if kind == nil {
		return openTable(spec, budget, allowed)
	}
	if rest == "" {
		return nil, nil, fault(spec, "", "expected a file behind the colon, as in %s", kind.usage)
	}
	w, err = kind.open(rest, allowed)
	if err != nil {
		if _, ok := err.(*InputError); !ok {
			err = fault(strings.TrimPrefix(rest, kind.name+":"), "", "%w", err)
		}
		return nil, nil, err
	}
	return w, nil, nil
}

// OpenBasis reads the basis that spec names, for signals of n entries: dct:N, the cosine
// basis of N entries, dct2:HxW, that of images of H×W pixels, row by row, or as
// [OpenMatrix]. Signals are the basis times their coefficients.
func OpenBasis(spec string, n int) (operator.Operator, error) {
	b, err := openBasis(spec, n, memory.Half())
	if err != nil {
		return nil, err
	}
	if rows, columns := b.Dims(); rows != n {
		return nil, otherBasis(spec, float64(rows), float64(columns), n)
	}
	return b, nil
}

// otherBasis is the error of a basis, which may be too large to be made, for other signals.
func otherBasis(spec string, rows, columns float64, n int) error {
	return fault(spec, "", "the basis is %.0f×%.0f, expected %d rows, one for each column of W", rows, columns, n)
}

func openBasis(spec string, n int, allowed *memory.Allowance) (operator.Operator, error) {
	name, size, _ := strings.Cut(spec, ":")
	if entries, err := strconv.Atoi(size); name == "dct" && err == nil {
		if entries != n && entries > 0 { // before it is made
			return nil, otherBasis(spec, float64(entries), float64(entries), n)
		}
		return cosineBasis(spec, entries, allowed)
	}
	if name != "dct2" {
		w, _, err := openMatrix(spec, math.MaxInt64, allowed)
		return w, err
	}
	height, width, ok := ImageSize(size)
	if !ok {
		return nil, fault(spec, "", "expected a height and a width, as in dct2:28x28")
	}
	if pixels := float64(height) * float64(width); height > 0 && width > 0 && pixels != float64(n) {
		return nil, otherBasis(spec, pixels, pixels, n)
	}
	down, err := cosineBasis(spec, height, allowed)
	if err != nil {
		return nil, err
	}
	across, err := cosineBasis(spec, width, allowed)
	if err != nil {
		return nil, err
	}
	return operator.NewKronecker(down, across), nil
}

// ImageSize reads the height and the width of HxW.
func ImageSize(text string) (height, width int, ok bool) {
	h, w, ok := strings.Cut(text, "x")
	height, errH := strconv.Atoi(h)
	width, errW := strconv.Atoi(w)
	return height, width, ok && errH == nil && errW == nil
}

// cosineBasis is the inverse of the whole cosine transform, which is its transpose.
func cosineBasis(spec string, n int, allowed *memory.Allowance) (operator.Operator, error) {
	if n < 1 {
		return nil, fault(spec, "", "a cosine basis of %d entries, expected 1 or more", n)
	}
	if err := takeVectors(allowed, n, operator.TransformTakes(n)); err != nil {
		return nil, fault(spec, "", "%w", err)
	}
	basis, err := operator.Cosines(n)
	if err != nil {
		return nil, fault(spec, "", "%w", err)
	}
	return basis, nil
}

// openTable reads a table, or leaves it in its file.
func openTable(path string, budget int64, allowed *memory.Allowance) (operator.Operator, io.Closer, error) {
	c, err := openAny(path, allowed)
	if err != nil {
		return nil, nil, err
	}
	if c.format == foreignFormat {
		defer c.close()
		if len(c.head) == 0 || !isText(c.head) {
			return nil, nil, c.fault("", "%s", foreign(c.head))
		}
		w, err := c.textTable("W")
		if err != nil {
			return nil, nil, err
		}
		d, err := w.table()
		return d, nil, err
	}
	if hint := c.otherKind(); hint != "" {
		c.close()
		return nil, nil, c.fault("W", "W is missing; %s", hint)
	}
	array, err := c.leave(budget)
	if err == nil && array != nil {
		values := io.NewSectionReader(c.file, c.size-array.Bytes, array.Bytes)
		d, err := operator.OpenDisk(values, array.Shape[0], array.Shape[1], array.Dtype == "<f4", budget)
		if err == nil {
			return d, c.closer, nil
		}
		c.close()
		return nil, nil, array.fault("%w", err)
	}
	defer c.close()
	if err != nil {
		return nil, nil, err
	}
	d, err := c.matrix()
	return d, nil, err
}

// OpenShared reads the rows of the table at path that this rank of the group has, and is the whole matrix,
// of which other ranks have the others. All have a file of the same name, with the same contents: each rank reads all of its own once,
// and hashes it. A share of more
// than budget bytes, on any rank, stays in its file, as [OpenParts] says. With reproducible
// the result has the same bits for any number of ranks.
func OpenShared(path string, budget int64, group operator.Group, reproducible bool) (operator.Operator, io.Closer, error) {
	if kind, _, err := kindOf(path); err != nil || kind != nil {
		return nil, nil, cmp.Or(err, fault(path, "", "only a table can be divided over ranks; this takes little memory: leave out --mpi"))
	}
	c, err := openWithin(path, allowance(budget))
	if err != nil {
		return nil, nil, err
	}
	w, onDisk, err := c.share(budget, group, reproducible)
	if err != nil || !onDisk {
		c.close()
		return w, nil, err
	}
	return w, c.closer, nil
}

// share is [OpenShared] for an open file.
func (c *container) share(budget int64, group operator.Group, reproducible bool) (w operator.Operator, onDisk bool, err error) {
	if hint := c.otherKind(); hint != "" {
		return nil, false, c.fault("W", "W is missing; %s", hint)
	}
	a, r, err := c.start("W")
	if err != nil {
		return nil, false, err
	}
	defer r.Close()
	if len(a.Shape) != 2 || a.count() == 0 {
		return nil, false, a.fault("W is %s, expected a matrix M×N", a.dims())
	}
	if t, err := parseDtype(a.Dtype); err == nil && decoders[t.kind] == nil {
		return nil, false, a.fault("dtype %s: a complex W cannot be divided over ranks yet: leave out --mpi", a.Dtype)
	}
	if err := group.Meet(c.path, a.kind()); err != nil {
		return nil, false, err
	}
	m := a.Shape[0]
	rank, size := group.Rank()
	s, err := operator.ShareOf(m, size, reproducible)
	if err != nil {
		return nil, false, a.fault("%w", err)
	}
	first, end := s.Rows(rank)
	largest := *a
	largest.Shape = []int{s.Largest(), a.Shape[1]}
	if onDisk, err = c.stays(&largest, budget); err != nil {
		return nil, false, err
	}
	var own []operator.Chunk
	chunks, all := s.Chunks[s.Ranks[rank]:s.Ranks[rank+1]+1], xxh3.New() // of all rows, as they are read for the first time
	if !onDisk {
		own, err = a.rows(io.TeeReader(r, all), first, end, chunks)
	} else {
		own, err = c.rowsOnDisk(a, chunks, budget, all)
	}
	if err != nil {
		return nil, false, a.fault("%w", err)
	}
	if err := group.Meet(c.path, all.Sum64()); err != nil {
		return nil, false, err
	}
	if w, err = operator.NewDistributed(group, s, own); err != nil {
		return nil, false, fmt.Errorf("%s: %w", c.path, err)
	}
	return w, onDisk, nil
}

// otherKind is what to say of a file with a matrix that is no table; empty for others.
func (c *container) otherKind() string {
	has := func(names ...string) bool {
		return !slices.ContainsFunc(names, func(name string) bool { return c.find(name) == nil })
	}
	switch {
	case c.format != npzFormat || has("W"):
	case has("indptr", "indices", "data"):
		return fmt.Sprintf("this is a sparse matrix: sparse:%s", c.path)
	case has("n", "rows"):
		return fmt.Sprintf("this looks like rows of a transform: hadamard:%s, dct:%[1]s or fft:%[1]s", c.path)
	}
	return ""
}

// rowsOf opens a file with rows of a transform.
func rowsOf(make func(operator.Rows) (operator.Operator, error)) func(path string, allowed *memory.Allowance) (operator.Operator, error) {
	return func(path string, allowed *memory.Allowance) (operator.Operator, error) {
		c, err := openWithin(path, allowed)
		if err != nil {
			return nil, err
		}
		defer c.close()
		if c.format == npyFormat {
			return nil, c.fault("", "this is a single array (.npy), expected a .npz with n, rows, and optionally signs and permutation")
		}
		if c.find("rows") == nil {
			return nil, c.fault("rows", "%w; expected n, rows, and optionally signs and permutation", c.missing("rows").(*InputError).Err)
		}
		var r operator.Rows
		n, err := c.integers("n")
		if err != nil {
			return nil, err
		}
		if len(n) != 1 {
			return nil, c.fault("n", "n has %d values, expected a single number, the size of the transform", len(n))
		}
		r.N = n[0]
		if err := takeVectors(allowed, 0, operator.TransformTakes(r.N)); err != nil {
			return nil, c.fault("n", "a transform of %d entries: %w", r.N, err)
		}
		if r.Rows, err = c.integers("rows"); err != nil {
			return nil, err
		}
		if c.find("permutation") != nil {
			if r.Permutation, err = c.integers("permutation"); err != nil {
				return nil, err
			}
		}
		if c.find("signs") != nil {
			signs, err := c.read("signs", false)
			if err != nil {
				return nil, err
			}
			if !signs.isVector() {
				return nil, signs.fault("signs is %s, expected a vector of n values", signs.dims())
			}
			r.Signs = signs.Data
		}
		w, err := make(r)
		if err != nil {
			return nil, c.fault("", "%w", err)
		}
		return w, nil
	}
}

// integers reads an array of whole numbers with at most one dimension.
func (c *container) integers(name string) ([]int, error) {
	a, err := c.read(name, false)
	if err != nil {
		return nil, err
	}
	if len(a.Shape) > 0 && !a.isVector() {
		return nil, a.fault("%s is %s, expected a vector", name, a.dims())
	}
	if err := c.allowed.TakeTimes(len(a.Data), 1, 8); err != nil {
		return nil, a.fault("%w", err)
	}
	values := make([]int, len(a.Data))
	for i, v := range a.Data {
		if v != math.Trunc(v) || math.Abs(v) > 1<<53 {
			return nil, a.fault("%s %d (counting from 0) is %g, expected a whole number", name, i, v)
		}
		values[i] = int(v)
	}
	return values, nil
}

// vectors is how many numbers a product with a matrix takes for each row and column beside what the matrix is made of:
// x, c, r and h of a column, or z, v, g and d of a row, and what transforms and sparse matrices keep for as many again.
const vectors = 8

// takeVectors counts what an M×N matrix takes that is no table, before it is made: a file of a kilobyte can ask for any
// number of rows and columns.
func takeVectors(allowed *memory.Allowance, m, n int) error {
	return allowed.Take(int64(min((float64(max(m, 0))+float64(max(n, 0)))*vectors*8, float64(memory.Unlimited))))
}

func openKronecker(spec string, allowed *memory.Allowance) (operator.Operator, error) {
	first, second, ok := strings.Cut(spec, ",")
	if !ok || first == "" || second == "" {
		return nil, fmt.Errorf("expected two files with a comma between them, kron:A.npy,B.npy")
	}
	a, _, err := openMatrix(first, math.MaxInt64, allowed)
	if err != nil {
		return nil, err
	}
	b, _, err := openMatrix(second, math.MaxInt64, allowed)
	if err != nil {
		return nil, err
	}
	ma, na := a.Dims()
	mb, nb := b.Dims()
	if float64(ma)*float64(mb) > math.MaxInt32 || float64(na)*float64(nb) > math.MaxInt32 {
		return nil, fmt.Errorf("the product of %d×%d and %d×%d has too many rows or columns", ma, na, mb, nb)
	}
	// Between both products there are M_b×N_a numbers.
	err = takeVectors(allowed, ma*mb, na*nb)
	if err == nil {
		err = allowed.TakeTimes(mb, na, vectors*8)
	}
	if err != nil {
		return nil, fmt.Errorf("the product of %d×%d and %d×%d: %w", ma, na, mb, nb, err)
	}
	return operator.NewKronecker(a, b), nil
}

// openSparse reads what scipy.sparse.save_npz writes.
func openSparse(path string, allowed *memory.Allowance) (operator.Operator, error) {
	c, err := openWithin(path, allowed)
	if err != nil {
		return nil, err
	}
	defer c.close()
	if c.format == npyFormat {
		return nil, c.fault("", "this is a single array (.npy), expected what scipy.sparse.save_npz writes")
	}
	for _, name := range []string{"format", "shape", "data"} {
		if c.find(name) == nil {
			return nil, c.fault(name, "%w; expected what scipy.sparse.save_npz writes", c.missing(name).(*InputError).Err)
		}
	}
	format, err := c.text("format")
	if err != nil {
		return nil, err
	}
	if format != "csr" && format != "csc" {
		return nil, c.fault("format", "format is %q, expected csr or csc: scipy.sparse.save_npz(file, W.tocsr())", format)
	}
	shape, err := c.integers("shape")
	if err != nil {
		return nil, err
	}
	if len(shape) != 2 || shape[0] < 1 || shape[1] < 1 || shape[0] > math.MaxInt32 || shape[1] > math.MaxInt32 {
		return nil, c.fault("shape", "shape is %v, expected M×N", shape)
	}
	if err := takeVectors(allowed, shape[0], shape[1]); err != nil {
		return nil, c.fault("shape", "%d×%d: %w", shape[0], shape[1], err)
	}
	m := operator.CSR{M: shape[0], N: shape[1]}
	if format == "csc" {
		m.M, m.N = m.N, m.M
	}
	if m.Start, err = readIndices[int64](c, "indptr"); err != nil {
		return nil, err
	}
	if m.Columns, err = readIndices[int32](c, "indices"); err != nil {
		return nil, err
	}
	data, err := c.read("data", true)
	if err != nil {
		return nil, err
	}
	m.Values, m.Values32 = data.Data, data.data32
	if format == "csc" { // which is there twice while it is turned
		if err := allowed.TakeTimes(len(m.Columns), 1, 4+8); err != nil {
			return nil, c.fault("data", "%w", err)
		}
		if m, err = operator.TransposeCSR(m); err != nil {
			return nil, c.fault("", "%w", err)
		}
	}
	w, err := operator.NewSparse(m)
	if err != nil {
		return nil, c.fault("", "%w", err)
	}
	return w, nil
}

// text reads a single string of ASCII, as bytes (S) or Unicode (U).
func (c *container) text(name string) (string, error) {
	a, r, err := c.start(name)
	if err != nil {
		return "", err
	}
	defer r.Close()
	const longest = 64
	raw, err := io.ReadAll(io.LimitReader(r, longest))
	if err != nil {
		return "", c.fault(name, "damaged: %w", err)
	}
	if kind := strings.TrimLeft(a.Dtype, "<>|="); len(kind) == 0 || kind[0] != 'S' && kind[0] != 'U' && kind[0] != 'a' {
		return "", c.fault(name, "dtype %s, expected text", a.Dtype)
	}
	return strings.ReplaceAll(string(raw), "\x00", ""), nil
}

// readIndices reads a vector of whole numbers without passing through float64. What does
// not fit becomes -1, which is no index of anything.
func readIndices[T int32 | int64](c *container, name string) ([]T, error) {
	a, r, err := c.start(name)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	t, err := parseDtype(a.Dtype)
	if err != nil {
		return nil, c.fault(name, "%w", err)
	}
	if len(a.Shape) != 1 {
		return nil, c.fault(name, "%s is %s, expected a vector", name, a.dims())
	}
	convert := map[string]func(dst []T, src []byte){
		"i4": func(dst []T, src []byte) {
			for i := range dst {
				dst[i] = T(int32(binary.LittleEndian.Uint32(src[4*i:])))
			}
		},
		"i8": func(dst []T, src []byte) {
			for i := range dst {
				v := int64(binary.LittleEndian.Uint64(src[8*i:]))
				if dst[i] = T(v); int64(dst[i]) != v {
					dst[i] = -1
				}
			}
		},
	}[t.kind]
	if convert == nil {
		return nil, c.fault(name, "dtype %s, expected i4 or i8", a.Dtype)
	}
	values, err := decode(r, a, t, convert)
	if err == nil {
		err = atEnd(r)
	}
	if err != nil {
		return nil, c.fault(name, "%w", err)
	}
	return values, nil
}
