package operator

import (
	"bytes"
	"encoding/binary"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/calamp/calamp/internal/cholesky"
)

// masks is a matrix of zeros and ones, with a zero row and a zero column.
func masks(m, n int, rng *rand.Rand) []float64 {
	w := make([]float64, m*n)
	for mu := range m {
		for i := range n {
			if mu != 3 && i != 5 {
				w[mu*n+i] = float64(rng.IntN(2)) + 0.2*float64(i%3)
			}
		}
	}
	return w
}

// The bordered matrix, applied to a signal with its further entries, gives W applied to
// the signal, and zero in the further rows.
func TestBorderRestoresTheMeans(t *testing.T) {
	const m, n = 60, 80
	rng := rand.New(rand.NewPCG(1, 1))
	values := masks(m, n, rng)
	w, err := NewDense(m, n, values)
	if err != nil {
		t.Fatal(err)
	}
	var file bytes.Buffer
	binary.Write(&file, binary.LittleEndian, values)
	disk, err := OpenDisk(bytes.NewReader(file.Bytes()), m, n, false, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	x := make([]float64, n)
	for i := range x {
		x[i] = rng.NormFloat64()
	}
	for name, op := range map[string]Matrix{"dense": w, "disk": disk} {
		c, err := RemoveMeans(op, 0)
		if err != nil {
			t.Fatal(err)
		}
		if c == nil || c.Extra != 2 {
			t.Fatalf("%s: row and column means were not removed: %+v", name, c)
		}
		rows, columns := c.Dims()
		if rows != m+2 || columns != n+2 {
			t.Fatalf("%s: bordered to %d×%d", name, rows, columns)
		}
		all := append([]float64(nil), x...)
		for _, q := range c.Combinations(0) {
			all = append(all, cholesky.Dot(q, x))
		}
		z, row := forward(t, c, all), make([]float64, n)
		for mu, got := range z {
			want := 0.0
			if mu < m {
				w.RowInto(row, mu)
				want = cholesky.Dot(row, x)
			}
			if math.Abs(got-want) > 1e-12*math.Sqrt(n) {
				t.Errorf("%s, row %d: %g, want %g", name, mu, got, want)
			}
		}
		b, err := newBorder(op, means{})
		if err != nil {
			t.Fatal(err)
		}
		streamed, err := b.streamed(1<<20, 0, b.m+b.extra())
		if err != nil {
			t.Fatal(err)
		}
		for mu, got := range forward(t, streamed, all) {
			if got != z[mu] {
				t.Errorf("%s, streamed, row %d: %g, want %g", name, mu, got, z[mu])
			}
		}
		if b := c.Operator.(Matrix); math.Abs(meanOf(b.Means().Rows[:m])) > 0.05 {
			t.Errorf("%s: mean of the rows' means is %g", name, meanOf(b.Means().Rows[:m]))
		}
	}
}

func forward(t *testing.T, op Operator, x []float64) []float64 {
	t.Helper()
	m, _ := op.Dims()
	z := make([]float64, m)
	if err := Mul(z, op, x); err != nil {
		t.Fatal(err)
	}
	return z
}

func meanOf(v []float64) float64 {
	total := 0.0
	for _, x := range v {
		total += x
	}
	return total / float64(len(v))
}

func TestIndependentEntriesStayAsTheyAre(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 1))
	for _, shape := range [][2]int{{1, 1}, {1, 50}, {50, 1}, {40, 60}, {300, 200}} {
		values := make([]float64, shape[0]*shape[1])
		for i := range values {
			values[i] = rng.NormFloat64()
		}
		w, err := NewDense(shape[0], shape[1], values)
		if err != nil {
			t.Fatal(err)
		}
		if c, err := RemoveMeans(w, 0); c != nil || err != nil {
			t.Errorf("%v: %+v, %v", shape, c, err)
		}
	}
}

// For small and degenerate matrices, too, the further rows and columns are finite, or
// there are none.
func TestBorderOfDegenerateMatrices(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 1))
	for _, m := range []int{1, 2, 30, 90} {
		for _, n := range []int{1, 2, 40} {
			for _, kind := range []func(mu, i int) float64{
				func(_, _ int) float64 { return 1 },
				func(mu, _ int) float64 { return float64(mu + 1) },
				func(_, i int) float64 { return float64(i) },
				func(mu, i int) float64 { return float64((mu + 1) * (i + 1)) },
				func(_, _ int) float64 { return 5 + 1e-12*rng.NormFloat64() },
				func(_, _ int) float64 { return 5 + 1e-3*rng.NormFloat64() },
				func(mu, _ int) float64 { return float64(1 - min(mu, 1)) },
			} {
				values := make([]float64, 0, m*n)
				for mu := range m {
					for i := range n {
						values = append(values, kind(mu, i))
					}
				}
				w, err := NewDense(m, n, values)
				if err != nil {
					continue // no entry is left
				}
				if _, err := RemoveMeans(w, 0); err != nil {
					t.Errorf("%d×%d: %v", m, n, err)
				}
			}
		}
	}
}

// A failing disk is an error, not a panic.
func TestMeansOfAFileThatFails(t *testing.T) {
	const m, n = 60, 80
	values := masks(m, n, rand.New(rand.NewPCG(1, 1)))
	var file bytes.Buffer
	binary.Write(&file, binary.LittleEndian, values)
	failing := &failAfter{bytes.NewReader(file.Bytes()), 1}
	disk, err := OpenDisk(failing, m, n, false, 1<<20)
	if err != nil {
		t.Skip("it failed earlier")
	}
	failing.reads = 0
	if _, err := RemoveMeans(disk, 0); err == nil {
		t.Error("no error")
	}
}

type failAfter struct {
	*bytes.Reader
	reads int
}

func (f *failAfter) ReadAt(p []byte, off int64) (int, error) {
	if f.reads == 0 {
		return 0, bytes.ErrTooLarge
	}
	return f.Reader.ReadAt(p, off)
}

// Singular values are known for orthogonal rows of any scale, of which the first is
// repeated.
func TestSpectrum(t *testing.T) {
	const n = 70
	for _, c := range []struct{ count, copies int }{{40, 1}, {3, 1}, {1, 1}, {30, 4}} {
		var w []float64
		for j := range c.count {
			times := 1
			if j == 0 {
				times = c.copies
			}
			for copied := range times {
				for i := range n {
					w = append(w, float64(1+copied+j)*math.Cos(math.Pi*float64(j)*(float64(i)+0.5)/n))
				}
			}
		}
		op, err := NewDense(len(w)/n, n, w)
		if err != nil {
			t.Fatal(err)
		}
		largest, smallest, err := Spectrum(op, 1)
		if err != nil {
			t.Fatal(err)
		}
		if want := math.Sqrt(float64(c.copies)); math.Abs(largest-want) > 1e-9 || math.Abs(smallest-1) > 1e-6 {
			t.Errorf("%+v: %g and %g, want %g and 1", c, largest, smallest, want)
		}
	}
}

// A sweep over a centred matrix keeps the further entries of all signals behind all
// others, and gives the same bits as a sweep over the whole matrix.
func TestSweepOfACentredMatrix(t *testing.T) {
	const m, n, p, q = 60, 80, 3, 6
	rng := rand.New(rand.NewPCG(4, 1))
	w, err := NewDense(m, n, masks(m, n, rng))
	if err != nil {
		t.Fatal(err)
	}
	c, err := RemoveMeans(w, 0)
	if err != nil {
		t.Fatal(err)
	}
	rows := func(_ int, z, v, g, d []float64) {
		copy(g, z)
		copy(d, v)
	}
	run := func(op Operator, x, c []float64) (r, h []float64) {
		r, h = make([]float64, len(x)), make([]float64, len(c))
		s, err := op.NewSweep(p, q, 1)
		if err == nil {
			err = s.Run(r, h, x, c, rows)
		}
		if err != nil {
			t.Fatal(err)
		}
		return r, h
	}
	random := func(count int) []float64 {
		v := make([]float64, count*(n+c.Extra))
		for i := range v {
			v[i] = rng.Float64()
		}
		return v
	}
	// behind moves the further entries of every signal behind the others of all signals.
	behind := func(v []float64) []float64 {
		var entries, further []float64
		for len(v) > 0 {
			entries, further = append(entries, v[:n]...), append(further, v[n:n+c.Extra]...)
			v = v[n+c.Extra:]
		}
		return append(entries, further...)
	}
	x, squares := random(p), random(q)
	wantR, wantH := run(c.Operator, x, squares)
	r, h := run(c, behind(x), behind(squares))
	if !slices.Equal(r, behind(wantR)) || !slices.Equal(h, behind(wantH)) {
		t.Error("the sweep differs from that of the whole matrix")
	}
}

// Where there is no room for a copy, every sweep computes the rows again.
func TestRemoveMeansInLittleMemory(t *testing.T) {
	const m, n = 60, 80
	w, err := NewDense(m, n, masks(m, n, rand.New(rand.NewPCG(1, 1))))
	if err != nil {
		t.Fatal(err)
	}
	for memory, streams := range map[int64]bool{0: false, 16 * m * n: false, 16*m*n - 1: true} {
		c, err := RemoveMeans(w, memory)
		if err != nil {
			t.Fatal(err)
		}
		if _, streamed := c.Operator.(Streamed); streamed != streams {
			t.Errorf("with %d bytes it is a %T", memory, c.Operator)
		}
	}
}

// Rows of sizes beyond double precision are an error, not a panic.
func TestSpectrumOfImpossibleRows(t *testing.T) {
	const m, n = 4, 6
	w := make([]float64, m*n)
	for i := range w {
		w[i] = math.Cos(float64(i))
		if i < n {
			w[i] *= 1e-160 // its square is not zero, and one over that is infinite
		}
	}
	op, err := NewDense(m, n, w)
	if err != nil {
		t.Fatal(err)
	}
	if largest, smallest, err := Spectrum(op, 1); err == nil {
		t.Errorf("singular values %g to %g, want an error", smallest, largest)
	}
}
