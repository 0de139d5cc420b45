package operator

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/calamp/calamp/internal/ranks"
)

// overRanks calls do with w (M×N) divided over so many ranks of this process, in files if on disk.
func overRanks(t *testing.T, size int, reproducible, onDisk bool, m, n int, w []float64, do func(rank int, d Matrix)) {
	t.Helper()
	share, err := ShareOf(m, size, reproducible)
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for r, transport := range ranks.Local(size) {
		all.Go(func() {
			var own []Chunk
			for c := share.Ranks[r]; c < share.Ranks[r+1]; c++ {
				first, end := share.Chunks[c], share.Chunks[c+1]
				var chunk Chunk
				var err error
				if onDisk {
					chunk, err = OpenDiskRows(bytes.NewReader(fileOf(w[first*n:end*n], false)), first, end-first, n, false, 1<<16)
				} else {
					chunk, err = NewDenseRows(first, end-first, n, w[first*n:end*n])
				}
				if err != nil {
					t.Error(err)
					return
				}
				own = append(own, chunk)
			}
			d, err := NewDistributed(ranks.Of(transport), share, own)
			if err != nil {
				t.Error(err)
				return
			}
			do(r, d)
		})
	}
	all.Wait()
}

// TestDistributedIsTheMatrix: what can be asked of a matrix over ranks has the answers of one in one
// place.
func TestDistributedIsTheMatrix(t *testing.T) {
	rng := rand.New(rand.NewPCG(20, 1))
	const m, n, p = 61, 23, 3
	w := make([]float64, m*n)
	for i := range w {
		w[i] = 0.4 + rng.NormFloat64()
	}
	clear(w[20*n : 32*n]) // the rows of a whole rank, of 5
	whole, err := NewDense(m, n, w)
	if err != nil {
		t.Fatal(err)
	}
	hash := sha256.New()
	if err := Identify(hash, whole); err != nil {
		t.Fatal(err)
	}
	centred, err := RemoveMeans(whole, 0)
	if err != nil || centred == nil {
		t.Fatal(centred, err)
	}
	close := func(name string, got, want []float64) {
		t.Helper()
		for i, v := range got {
			if !(math.Abs(v-want[i]) <= 1e-12*(1+math.Abs(want[i]))) {
				t.Errorf("%s: %d is %g, expected %g", name, i, v, want[i])
				return
			}
		}
	}
	x := make([]float64, p*(n+2))
	for i := range x {
		x[i] = rng.Float64()
	}
	for _, size := range []int{1, 2, 5} {
		for _, reproducible := range []bool{false, true} {
			for _, onDisk := range []bool{false, true} {
				overRanks(t, size, reproducible, onDisk, m, n, w, func(rank int, d Matrix) {
					name := fmt.Sprintf("rank %d of %d, reproducible %v, on disk %v", rank, size, reproducible, onDisk)
					if _, streamed := d.(Streamed); streamed != onDisk {
						t.Errorf("%s: streamed %v", name, streamed)
					}
					close(name+", columns", d.Means().Columns, whole.Means().Columns)
					close(name+", rows", d.Means().Rows, whole.Means().Rows)
					close(name+", mean square", []float64{d.MeanSquare()}, []float64{whole.MeanSquare()})
					few := make([]float64, 7)
					Together(d, few, 2, func(i int) float64 { return float64(i * i) })
					close(name+", together", few, []float64{0, 1, 4, 9, 16, 25, 36})
					row, want := make([]float64, n), make([]float64, n)
					for mu := range m {
						if err := d.RowInto(row, mu); err != nil {
							t.Errorf("%s: %v", name, err)
						}
						if whole.RowInto(want, mu); !slices.Equal(row, want) {
							t.Errorf("%s: row %d", name, mu)
						}
					}
					for kind, to := range map[string]io.Writer{"relayed": sha256.New()} {
						if err := Identify(to, d); err != nil || !bytes.Equal(to.(interface{ Sum([]byte) []byte }).Sum(nil), hash.Sum(nil)) {
							t.Errorf("%s, %s: another identity, %v", name, kind, err)
						}
					}
					r, h := sweepOf(t, d, n, p, x)
					wantR, wantH := sweepOf(t, whole, n, p, x)
					close(name+", r", r, wantR)
					close(name+", h", h, wantH)
					order := append([]int{-1, 60, -1, 59, -1}, slices.Collect(func(yield func(int) bool) {
						for i := 0; i < 58 && yield(57-i); i++ {
						}
					})...)
					order = append(order, 58)
					inPlace, err := Arrange(whole, order)
					if err != nil {
						t.Error(err)
						return
					}
					dealt, err := Arrange(d, order)
					if err != nil {
						t.Errorf("%s, arranged: %v", name, err)
						return
					}
					if !FarRows(dealt) || dealt.MeanSquare() != d.MeanSquare() {
						t.Errorf("%s, arranged: mean square %g, was %g", name, dealt.MeanSquare(), d.MeanSquare())
					}
					r, h = sweepOf(t, WholeBlocks(dealt, 8), n, p, x)
					wantR, wantH = sweepOf(t, WholeBlocks(inPlace, 8), n, p, x)
					close(name+", arranged, r", r, wantR)
					close(name+", arranged, h", h, wantH)
					c, err := RemoveMeans(d, 0)
					if err != nil || c == nil || c.Extra != centred.Extra {
						t.Errorf("%s, without means: %v, %v", name, c, err)
						return
					}
					r, h = sweepOf(t, c, n+c.Extra, p, x)
					wantR, wantH = sweepOf(t, centred, n+c.Extra, p, x)
					close(name+", without means, r", r, wantR)
					close(name+", without means, h", h, wantH)
				})
			}
		}
	}
}

// sweepOf is one sweep with some function of z and v.
func sweepOf(t *testing.T, w Operator, n, p int, x []float64) (r, h []float64) {
	sweep, err := w.NewSweep(p, p, 2)
	if err != nil {
		t.Error(err)
		return nil, nil
	}
	r, h = make([]float64, p*n), make([]float64, p*n)
	err = sweep.Run(r, h, x[:p*n], x[:p*n], func(first int, z, v, g, d []float64) {
		for i := range z {
			g[i], d[i] = math.Tanh(z[i])+float64(first+i/p), 1/(1+v[i])
			z[i] = 0 // as solvers may
		}
	})
	if err != nil {
		t.Error(err)
	}
	return r, h
}

func TestTooManyRanks(t *testing.T) {
	for _, c := range []struct {
		m, ranks     int
		reproducible bool
		want         string
	}{
		{16, 4, false, ""},
		{16, 5, false, "at most 4"},
		{1000, 8, true, ""},
		{1000, 9, true, "at most 8"},
		{9, 4, true, "at most 3"},
	} {
		s, err := ShareOf(c.m, c.ranks, c.reproducible)
		if c.want == "" {
			if _, end := s.Rows(c.ranks - 1); err != nil || end != c.m {
				t.Errorf("%+v: %+v, %v", c, s, err)
			}
		} else if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

// A rank that works on other numbers is found out in the first sweep.
func TestRanksThatWorkOnOtherNumbers(t *testing.T) {
	w := make([]float64, 12*5)
	for i := range w {
		w[i] = float64(i%7) - 3
	}
	overRanks(t, 3, false, false, 12, 5, w, func(rank int, d Matrix) {
		sweep, err := d.NewSweep(1, 0, 1)
		if err != nil {
			t.Error(err)
			return
		}
		x := []float64{1, 2, 3, 4, 5}
		if rank == 1 {
			x[3] = math.Nextafter(4, 5)
		}
		err = sweep.Run(make([]float64, 5), nil, x, nil, func(_ int, z, _, g, _ []float64) { copy(g, z) })
		if err == nil || !strings.Contains(err.Error(), "a sweep over W: rank 1 has another") {
			t.Errorf("rank %d: %v", rank, err)
		}
	})
}
