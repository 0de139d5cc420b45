package dataset

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/calamp/calamp/internal/ranks"
	"github.com/calamp/calamp/operator"
)

// npyOf is an m×n array of f4 or f8, in C or Fortran order, as numpy writes it.
func npyOf(w []float64, m, n int, dtype string, fortran bool) []byte {
	header := fmt.Sprintf("{'descr': '%s', 'fortran_order': %s, 'shape': (%d, %d), }", dtype, map[bool]string{true: "True", false: "False"}[fortran], m, n)
	for (10+len(header)+1)%64 != 0 {
		header += " "
	}
	b := append([]byte("\x93NUMPY\x01\x00"), 0, 0)
	binary.LittleEndian.PutUint16(b[8:], uint16(len(header)+1))
	b = append(b, header+"\n"...)
	var order binary.AppendByteOrder = binary.LittleEndian
	if dtype[0] == '>' {
		order = binary.BigEndian
	}
	put := func(v float64) {
		if strings.HasSuffix(dtype, "f4") {
			b = order.AppendUint32(b, math.Float32bits(float32(v)))
		} else {
			b = order.AppendUint64(b, math.Float64bits(v))
		}
	}
	if !fortran {
		for _, v := range w {
			put(v)
		}
		return b
	}
	for i := range n {
		for mu := range m {
			put(w[mu*n+i])
		}
	}
	return b
}

// TestSharesAreTheMatrix: however W is stored, the ranks have its rows, all of them.
func TestSharesAreTheMatrix(t *testing.T) {
	const m, n = 37, 11
	w := make([]float64, m*n)
	for i := range w {
		w[i] = float64(i%23) - 7.25
	}
	folder := t.TempDir()
	path := func(name string) string { return filepath.Join(folder, name) }
	y := npyOf(make([]float64, m*2), m, 2, "<f8", false)
	y[len(y)-1] = 0x40
	if err := os.WriteFile(path("Y.npy"), y, 0o666); err != nil {
		t.Fatal(err)
	}
	whole, err := operator.NewDense(m, n, w)
	if err != nil {
		t.Fatal(err)
	}
	want, err := HashMatrix(whole)
	if err != nil {
		t.Fatal(err)
	}
	for _, dtype := range []string{"<f8", "<f4", ">f8", ">f4"} {
		for _, fortran := range []bool{false, true} {
			if err := os.WriteFile(path("W.npy"), npyOf(w, m, n, dtype, fortran), 0o666); err != nil {
				t.Fatal(err)
			}
			little := int64(12.5 * 4 * n) // more than buffers take, less than a share
			if dtype[2] == '8' {
				little *= 2
			}
			for _, budget := range []int64{1 << 30, little} {
				if budget < 1<<30 && (fortran || dtype[0] == '>') {
					continue // such files cannot be left where they are
				}
				share(t, 3, func(g *ranks.Group) {
					p, err := OpenPartsShared(path("W.npy"), path("Y.npy"), budget, g, false)
					if err != nil {
						t.Error(err)
						return
					}
					defer p.Close()
					if _, onDisk := p.W.(operator.Streamed); onDisk != (budget < 1<<30) {
						t.Errorf("%s, Fortran %v: on disk %v", dtype, fortran, onDisk)
					}
					if hash, err := HashMatrix(p.W); err != nil || hash != want {
						t.Errorf("%s, Fortran %v: another matrix, %v", dtype, fortran, err)
					}
					if s := p.W.(operator.Matrix).Storage(); s != map[byte]string{'4': "f32", '8': "f64"}[dtype[2]] {
						t.Errorf("%s is stored as %s", dtype, s)
					}
				})
			}
		}
	}
	// As a problem file, too.
	p := &Problem{W: whole, Y: mat.NewDense(m, 2, make([]float64, 2*m))}
	if err := Save(path("P.npz"), p); err != nil {
		t.Fatal(err)
	}
	share(t, 2, func(g *ranks.Group) {
		p, err := LoadShared(path("P.npz"), g, true)
		if err != nil {
			t.Error(err)
			return
		}
		if hash, err := HashMatrix(p.W); err != nil || hash != want {
			t.Errorf("P.npz: another matrix, %v", err)
		}
	})
}

// TestSharesThatCannotBe: what is wrong with a share is said with its place in the whole matrix.
func TestSharesThatCannotBe(t *testing.T) {
	const m, n = 16, 3
	w := make([]float64, m*n)
	for i := range w {
		w[i] = 1
	}
	folder := t.TempDir()
	path := filepath.Join(folder, "W.npy")
	bad := slices.Clone(w)
	bad[13*n+1] = math.Inf(1)
	good := npyOf(w, m, n, "<f8", false)
	for _, c := range []struct {
		name    string
		content []byte
		ranks   int
		budget  int64
		want    string // of the last rank
	}{
		{"not finite", npyOf(bad, m, n, "<f8", false), 2, 1 << 30, "row 13, column 1 is +Inf"},
		{"not finite, on disk", npyOf(bad, m, n, "<f8", false), 2, 200, "row 13, column 1 is +Inf"},
		{"zero", npyOf(make([]float64, m*n), m, n, "<f8", false), 2, 1 << 30, "mean square of the entries is 0"},
		{"too many ranks", good, 5, 1 << 30, "5 ranks for a W of 16 rows, expected at most 4"},
		{"cut short", good[:len(good)-9], 1, 1 << 30, "cut short"},
		{"in columns, too large", npyOf(w, m, n, "<f8", true), 1, 100, "read piece by piece"},
	} {
		if err := os.WriteFile(path, c.content, 0o666); err != nil {
			t.Fatal(err)
		}
		share(t, c.ranks, func(g *ranks.Group) {
			_, file, err := OpenShared(path, c.budget, g, false)
			if file != nil {
				file.Close()
			}
			rank, size := g.Rank()
			var gone *ranks.Gone
			if !errors.As(err, &gone) {
				g.Meet(map[bool]string{true: "the end", false: "a sweep"}[err != nil], 0) // lets the others go
			}
			if rank == size-1 && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("%s: %v, expected %q", c.name, err, c.want)
			}
		})
	}
	share(t, 2, func(g *ranks.Group) {
		if _, _, err := OpenShared("hadamard:"+path, 1<<30, g, false); err == nil || !strings.Contains(err.Error(), "leave out --mpi") {
			t.Error(err)
		}
	})
}

// share calls do on so many ranks of this process.
func share(t *testing.T, size int, do func(g *ranks.Group)) {
	t.Helper()
	var all sync.WaitGroup
	for _, transport := range ranks.Local(size) {
		all.Go(func() { do(ranks.Of(transport)) })
	}
	all.Wait()
}

// TestOneEntryThatDiffers: ranks whose files differ in a single entry, whosever row it is in, do not agree.
func TestOneEntryThatDiffers(t *testing.T) {
	const m, n, size = 300, 700, 3
	w := make([]float64, m*n)
	for i := range w {
		w[i] = float64(i%23) - 7.25
	}
	folder := t.TempDir()
	for _, form := range []struct {
		dtype   string
		fortran bool
		budget  int64
	}{{"<f8", false, 1 << 30}, {"<f8", true, 1 << 30}, {">f4", false, 1 << 30}, {"<f8", false, 40 * 8 * n}, {"<f4", false, 40 * 4 * n}} {
		good := npyOf(w, m, n, form.dtype, form.fortran)
		for _, at := range []int{-1, 3*n + 100, 150*n + 350, m*n - 100} {
			other := slices.Clone(w)
			if at >= 0 {
				other[at]++
			}
			bad := npyOf(other, m, n, form.dtype, form.fortran)
			for different := range size {
				share(t, size, func(g *ranks.Group) {
					rank, _ := g.Rank()
					path := filepath.Join(folder, fmt.Sprint(rank, ".npy"))
					content := good
					if rank == different {
						content = bad
					}
					if err := os.WriteFile(path, content, 0o666); err != nil {
						t.Error(err)
					}
					c, err := open(path)
					if err != nil {
						t.Error(err)
						return
					}
					defer c.close()
					c.path = "W.npy"
					_, onDisk, err := c.share(form.budget, g, false)
					agree := err == nil
					if _, differ := errors.AsType[*ranks.Differs](err); agree != (at < 0) || !agree && !differ {
						t.Errorf("%+v, entry %d of rank %d: %v", form, at, different, err)
					}
					if agree && onDisk != (form.budget < 1<<30) {
						t.Errorf("%+v: on disk %v", form, onDisk)
					}
				})
			}
		}
	}
}
