package operator

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/calamp/calamp/internal/crash"
)

// fileOf is the matrix w as a file holds it.
func fileOf(w []float64, single bool) []byte {
	var b []byte
	for _, v := range w {
		if single {
			b, _ = binary.Append(b, binary.LittleEndian, float32(v))
		} else {
			b, _ = binary.Append(b, binary.LittleEndian, v)
		}
	}
	return b
}

func TestDiskHasTheBitsOfDense(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 1))
	for _, shape := range [][2]int{{1, 1}, {5, 17}, {203, 64}, {333, 130}} {
		for _, columns := range [][2]int{{1, 1}, {1, 0}, {3, 3}, {3, 6}} {
			for _, single := range []bool{false, true} {
				t.Run(fmt.Sprint(shape, columns, single), func(t *testing.T) {
					m, n, p, q := shape[0], shape[1], columns[0], columns[1]
					w, w32 := make([]float64, m*n), make([]float32, m*n)
					for i := range w {
						w32[i] = float32(rng.NormFloat64())
						w[i] = float64(w32[i])
					}
					dense, err := NewDense(m, n, w)
					if single {
						dense, err = NewDense32(m, n, w32)
					}
					if err != nil {
						t.Fatal(err)
					}
					// The smallest budget that is enough, and larger ones.
					least := int64(2 * 4 * 8 * n)
					for _, budget := range []int64{least, 20 * least, 1 << 30} {
						disk, err := OpenDisk(bytes.NewReader(fileOf(w, single)), m, n, single, budget)
						if err != nil {
							t.Fatal(err)
						}
						if disk.MeanSquare() != dense.MeanSquare() || !slices.Equal(disk.Means().Columns, dense.Means().Columns) || disk.Storage() != dense.Storage() {
							t.Fatal("the two matrices measure differently")
						}
						sameSweeps(t, disk, dense, p, q)
					}
				})
			}
		}
	}
}

func sameSweeps(t *testing.T, a, b Operator, p, q int) {
	t.Helper()
	_, n := a.Dims()
	rng := rand.New(rand.NewPCG(1, 2))
	x, c := make([]float64, p*n), make([]float64, q*n)
	for i := range x {
		x[i] = rng.NormFloat64()
	}
	for i := range c {
		c[i] = rng.Float64()
	}
	rows := func(_ int, z, v, g, d []float64) {
		copy(g, z)
		copy(d, v)
	}
	run := func(op Operator, threads int) (r, h []float64) {
		r, h = make([]float64, p*n), make([]float64, q*n)
		s, err := op.NewSweep(p, q, threads)
		if err != nil {
			t.Fatal(err)
		}
		if both := sweepsOver(t, op, p, threads); q == p {
			s = both.Exact
		} else if q == 0 {
			s = both.Linear
			if err := both.Exact.Run(make([]float64, p*n), make([]float64, p*n), x, x, rows); err != nil { // which they share buffers with
				t.Fatal(err)
			}
		}
		for range 2 { // the second run uses the same buffers
			if err := s.Run(r, h, x, c, rows); err != nil {
				t.Fatal(err)
			}
		}
		return r, h
	}
	wantR, wantH := run(b, 1)
	for _, threads := range []int{1, 2, 5} {
		r, h := run(a, threads)
		if !slices.Equal(r, wantR) || !slices.Equal(h, wantH) {
			t.Errorf("%d threads: other bits", threads)
		}
	}
}

func sweepsOver(t *testing.T, op Operator, p, threads int) Sweeps {
	t.Helper()
	s, err := NewSweeps(op, p, threads)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// Sweeps in single precision are those in double precision, up to short sums, and have the
// same bits for any number of threads, in memory and on the disk, in blocks of any size.
func TestSingleSweeps(t *testing.T) {
	rng := rand.New(rand.NewPCG(4, 1))
	for _, c := range []struct{ m, n, p int }{{5, 17, 1}, {333, 130, 1}, {1203, 64, 3}, {700, 300, 10}} {
		w := make([]float32, c.m*c.n)
		for i := range w {
			w[i] = float32(rng.NormFloat64())
		}
		x, squares := make([]float64, c.p*c.n), make([]float64, c.p*c.n)
		for i := range x {
			x[i] = rng.NormFloat64()
			squares[i] = rng.Float64()
		}
		dense, err := NewDense32(c.m, c.n, w)
		if err != nil {
			t.Fatal(err)
		}
		double := make([]float64, len(w))
		for i, v := range w {
			double[i] = float64(v)
		}
		least := int64(3 * 4 * 4 * c.n)
		sweep := func(s Sweep) (r, h []float64) {
			r, h = make([]float64, c.p*c.n), make([]float64, c.p*c.n)
			if err := s.Run(r, h, x, squares, func(_ int, z, v, g, d []float64) {
				copy(g, z)
				copy(d, v)
			}); err != nil {
				t.Fatal(err)
			}
			return r, h
		}
		want := sweepsOver(t, dense, c.p, 1)
		r, h := sweep(want.Exact)
		r1, h1 := sweep(want.Single.Exact)
		r2 := make([]float64, c.p*c.n)
		linear := func(s Sweep) []float64 {
			if err := s.Run(r2, nil, x, nil, func(_ int, z, _, g, _ []float64) { copy(g, z) }); err != nil {
				t.Fatal(err)
			}
			return slices.Clone(r2)
		}
		line := linear(want.Single.Linear)
		for what, off := range map[string]float64{"r": distance(r1, r), "h": distance(h1, h), "r alone": distance(line, r)} {
			if t.Logf("%v: %s off by %.2g", c, what, off); !(off > 0 && off < 2e-6) {
				t.Errorf("%v: %s off by %.2g", c, what, off)
			}
		}
		for _, threads := range []int{1, 2, 5} {
			for _, budget := range []int64{0, int64(threads) * least, int64(threads) * 7 * least, 1 << 30} {
				var op Operator = dense
				if budget > 0 {
					if op, err = OpenDisk(bytes.NewReader(fileOf(double, true)), c.m, c.n, true, budget); err != nil {
						t.Fatal(err)
					}
				}
				s := sweepsOver(t, op, c.p, threads)
				gotR, gotH := sweep(s.Single.Exact)
				if !slices.Equal(gotR, r1) || !slices.Equal(gotH, h1) || !slices.Equal(linear(s.Single.Linear), line) {
					t.Errorf("%v: other bits with %d threads, budget %d", c, threads, budget)
				}
			}
		}
	}
}

func distance(got, want []float64) float64 {
	off, size := 0.0, 0.0
	for i, v := range want {
		off += (got[i] - v) * (got[i] - v)
		size += v * v
	}
	return math.Sqrt(off / size)
}

// failing is a disk that breaks after a number of bytes have been read.
type failing struct {
	io.ReaderAt
	left *int
}

var errBroken = errors.New("input/output error")

func (f failing) ReadAt(p []byte, at int64) (int, error) {
	if *f.left -= len(p); *f.left < 0 {
		return 0, errBroken
	}
	return f.ReaderAt.ReadAt(p, at)
}

func TestDiskThatFails(t *testing.T) {
	const m, n = 400, 90
	w := make([]float64, m*n)
	for i := range w {
		w[i] = float64(i%7) - 3
	}
	file := fileOf(w, false)
	left := len(file) * 3 / 2
	d, err := OpenDisk(failing{bytes.NewReader(file), &left}, m, n, false, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	s, err := d.NewSweep(1, 1, 1)
	if err != nil {
		t.Fatal(err)
	}
	run := func() error {
		return s.Run(make([]float64, n), make([]float64, n), make([]float64, n), make([]float64, n), func(_ int, z, v, g, d []float64) {
			copy(g, z)
			copy(d, v)
		})
	}
	if err := run(); !errors.Is(err, errBroken) {
		t.Errorf("found %v", err)
	}
	left = 1 << 40
	if err := run(); err != nil {
		t.Errorf("the disk is back, but: %v", err)
	}
	if _, err := OpenDisk(bytes.NewReader(file[:len(file)-1]), m, n, false, 1<<20); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("a file cut short: %v", err)
	}
	if _, err := OpenDisk(bytes.NewReader(file), m, n, false, 1000); err == nil || !strings.Contains(err.Error(), "1000 bytes") {
		t.Errorf("a budget too small: %v", err)
	}
}

// panicking is a disk with a bug in it from some point on.
type panicking struct {
	io.ReaderAt
	from *bool
}

func (p panicking) ReadAt(b []byte, at int64) (int, error) {
	if *p.from {
		panic("a bug")
	}
	return p.ReaderAt.ReadAt(b, at)
}

// TestDiskThatPanics: a panic while rows are read ahead reaches who sweeps, and
// does not end the process.
func TestDiskThatPanics(t *testing.T) {
	const m, n = 400, 90
	from := false
	d, err := OpenDisk(panicking{bytes.NewReader(fileOf(slices.Repeat([]float64{1}, m*n), false)), &from}, m, n, false, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	for _, threads := range []int{1, 4} {
		from = false
		s, err := d.NewSweep(1, 1, threads)
		if err != nil {
			t.Fatal(err)
		}
		from = true
		sweep := func() (err error) {
			defer crash.Catch(&err)
			v := make([][]float64, 4)
			for k := range v {
				v[k] = make([]float64, n)
			}
			return s.Run(v[0], v[1], v[2], v[3], func(_ int, _, _, _, _ []float64) {})
		}
		if err := sweep(); err == nil || !strings.Contains(err.Error(), "internal error: a bug (") {
			t.Errorf("%d threads: %v", threads, err)
		}
	}
}

// A row that cannot be read is an error, not a panic.
func TestRowOfADiskThatFails(t *testing.T) {
	const m, n = 8, 5
	w := make([]float64, m*n)
	for i := range w {
		w[i] = float64(i)
	}
	left := 8 * m * n
	d, err := OpenDisk(failing{bytes.NewReader(fileOf(w, false)), &left}, m, n, false, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	row := make([]float64, n)
	if _, read := errors.AsType[*ReadError](d.RowInto(row, 3)); !read {
		t.Error("no ReadError")
	}
	left = 1 << 20
	if err := d.RowInto(row, 3); err != nil || !slices.Equal(row, w[3*n:4*n]) {
		t.Errorf("row 3 is %v: %v", row, err)
	}
}

// A file that changes while it is in use is noticed by whoever reads a changed row,
// also through the matrix without its means, whatever its size and time say.
func TestDiskThatChanges(t *testing.T) {
	const m, n = 60, 80
	values := masks(m, n, rand.New(rand.NewPCG(1, 1)))
	for _, single := range []bool{false, true} {
		file := fileOf(values, single)
		d, err := OpenDisk(bytes.NewReader(file), m, n, single, 1<<20)
		if err != nil {
			t.Fatal(err)
		}
		centred, err := RemoveMeans(d, 0)
		if err != nil {
			t.Fatal(err)
		}
		row := make([]float64, n)
		read := map[string]func() error{
			"a sweep":                   func() error { return Mul(make([]float64, m), d, make([]float64, n)) },
			"a sweep without the means": func() error { return Mul(make([]float64, m+2), centred, make([]float64, n+2)) },
			"a row":                     func() error { return d.RowInto(row, 17) },
		}
		changed := file[17*len(file)/m : 18*len(file)/m] // row 17
		for _, change := range []bool{false, true, false} {
			if change {
				changed[len(changed)-5] ^= 1
			}
			for what, f := range read {
				err := f()
				_, failed := errors.AsType[*ReadError](err)
				if errors.Is(err, ErrChanged) != change || failed != change {
					t.Errorf("single %t, changed %t: %s returns %v", single, change, what, err)
				}
				if change && !strings.Contains(err.Error(), "row 17: the file has changed") {
					t.Errorf("%s: %q does not say what changed", what, err)
				}
			}
			if change {
				changed[len(changed)-5] ^= 1
			}
		}
	}
}

// A file that is cut short after it was opened has changed, too.
func TestDiskThatIsCutShort(t *testing.T) {
	const m, n = 60, 80
	file := &cutShort{Reader: bytes.NewReader(fileOf(masks(m, n, rand.New(rand.NewPCG(1, 1))), false)), size: 8 * m * n}
	d, err := OpenDisk(file, m, n, false, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	file.size -= 8
	if err := Mul(make([]float64, m), d, make([]float64, n)); !errors.Is(err, ErrChanged) || !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("found %v", err)
	}
}

type cutShort struct {
	*bytes.Reader
	size int64
}

func (c *cutShort) ReadAt(p []byte, at int64) (int, error) {
	left := max(0, c.size-at)
	if int64(len(p)) <= left {
		return c.Reader.ReadAt(p, at)
	}
	n, _ := c.Reader.ReadAt(p[:left], at)
	return n, io.EOF
}
