package operator_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/calamp/calamp/internal/dataset"
	"github.com/calamp/calamp/internal/tables"
	"github.com/calamp/calamp/operator"
	"gonum.org/v1/gonum/mat"
)

// longOnly skips a measurement unless -long asks for it.
func longOnly(t *testing.T) {
	if !*tables.Long {
		t.Skip("a long measurement, see -long")
	}
}

// processorTime is that of this process: other processes slow a run down, but do not add to it.
func processorTime() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// shortest is the least processor time of some calls.
func shortest(calls int, do func()) time.Duration {
	least := time.Duration(1 << 62)
	for range calls {
		start := processorTime()
		do()
		least = min(least, processorTime()-start)
	}
	return least
}

// sweepOf is one sweep on one thread, with a row function that does nothing.
func sweepOf(t *testing.T, w operator.Operator, p, q int) func() {
	t.Helper()
	_, n := w.Dims()
	sweep := must[operator.Sweep](t)(w.NewSweep(p, q, 1))
	x, c, r, h := normals(p*n), normals(q*n), make([]float64, p*n), make([]float64, q*n)
	return func() {
		if err := sweep.Run(r, h, x, c, func(_ int, z, v, g, d []float64) { copy(g, z); copy(d, v) }); err != nil {
			t.Fatal(err)
		}
	}
}

// scipyTimes runs a program in Python that prints processor times in seconds as a table.
func scipyTimes(t *testing.T, program string, args ...string) map[string]float64 {
	t.Helper()
	cmd := exec.Command("/usr/bin/python3", append([]string{"-c", program}, args...)...)
	cmd.Env = append(os.Environ(), "OMP_NUM_THREADS=1", "OPENBLAS_NUM_THREADS=1")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Skipf("no scipy to compare with: %v\n%s", err, stderr.Bytes())
	}
	times := map[string]float64{}
	if err := json.Unmarshal(out, &times); err != nil {
		t.Fatal(err)
	}
	return times
}

const transformProgram = `
import json, time, numpy, scipy.fft
def least(f):
    f(); best = 1e9
    for _ in range(5):
        t = time.process_time(); f(); best = min(best, time.process_time() - t)
    return best
x = numpy.random.default_rng(1).normal(size=(4, 1 << 20))
y = scipy.fft.rfft(x, axis=1)
print(json.dumps({
  "fft": least(lambda: scipy.fft.irfft(scipy.fft.rfft(x, axis=1), axis=1)),
  **{"dct%d" % p: least(lambda: scipy.fft.idct(scipy.fft.dct(x, norm="ortho", axis=1), norm="ortho", axis=1))
     for p, x in ((4, x), (1, x[:1]), (10, numpy.resize(x, (10, 1 << 20))))},
}))`

// Both products of rows of transforms with four signals, against scipy's transforms and
// against plain Go, one signal after the other. Processor time on one thread.
func TestLongTransforms(t *testing.T) {
	longOnly(t)
	const n, p = 1 << 20, 4
	scipy := scipyTimes(t, transformProgram)
	rng := rand.New(rand.NewPCG(1, 1))
	table := tables.New(t, "", "N = 2²⁰, M = 2¹⁹, P = 4", "ms a sweep", "against")
	ms := func(d time.Duration) float64 { return d.Seconds() * 1e3 }
	table.Row("| scipy, real FFT and its inverse | %.0f | |", 1e3*scipy["fft"])
	for _, p := range []string{"4", "1", "10"} {
		table.Row("| scipy, DCT and its inverse, P = %s | %.0f | |", p, 1e3*scipy["dct"+p])
	}
	var all hadamard
	all.size = n
	all.rows = rng.Perm(n)[:n/2]
	plain := shortest(3, sweepOf(t, all, p, 0))
	table.Row("| Walsh–Hadamard in plain Go, signal by signal | %.0f | |", ms(plain))
	for _, mixed := range []bool{false, true} {
		name := ""
		if mixed {
			name = ", signs and permutation"
		}
		w := must[*operator.Hadamard](t)(operator.NewHadamard(randomRows(rng, n/2, n, mixed)))
		d := shortest(5, sweepOf(t, w, p, 0))
		table.Row("| Walsh–Hadamard%s | %.0f | %.1f × plain Go, %.1f × scipy's FFT |", name, ms(d), plain.Seconds()/d.Seconds(), scipy["fft"]/d.Seconds())
		c := must[*operator.DCT](t)(operator.NewDCT(randomRows(rng, n/2, n, mixed)))
		d = shortest(3, sweepOf(t, c, p, 0))
		table.Row("| DCT%s | %.0f | %.1f × scipy's DCT |", name, ms(d), scipy["dct4"]/d.Seconds())
		for _, p := range []int{1, 10} {
			d = shortest(3, sweepOf(t, c, p, 0))
			table.Row("| DCT%s, P = %d | %.0f | %.1f × scipy's DCT |", name, p, ms(d), scipy[fmt.Sprintf("dct%d", p)]/d.Seconds())
		}
		d = shortest(3, sweepOf(t, c, p, p))
		table.Row("| DCT%s, with exact variances | %.0f | |", name, ms(d))
	}
}

const sparseProgram = `
import json, sys, time, resource, numpy, scipy.sparse
w = scipy.sparse.load_npz(sys.argv[1])
def least(f):
    f(); best = 1e9
    for _ in range(3):
        t = time.process_time(); f(); best = min(best, time.process_time() - t)
    return best
rng = numpy.random.default_rng(1)
x, g = rng.normal(size=(w.shape[1], 4)), rng.normal(size=(w.shape[0], 4))
print(json.dumps({"both": least(lambda: (w @ x, w.T @ g)), "forward": least(lambda: w @ x)}))`

// A sparse matrix of 60 million entries: memory, and both products with four signals
// against scipy.sparse.
func TestLongSparse(t *testing.T) {
	longOnly(t)
	const m, n = 60_000, 100_000
	rng := rand.New(rand.NewPCG(1, 1))
	c := operator.CSR{M: m, N: n, Start: []int64{0}}
	c.Columns, c.Values = make([]int32, 0, m*n/100), make([]float64, 0, m*n/100)
	taken := make([]int, n) // the number, from 1, of the last row that has an entry there
	for mu := range m {
		first := len(c.Columns)
		for len(c.Columns) < first+n/100 {
			if i := rng.IntN(n); taken[i] <= mu {
				taken[i] = mu + 1
				c.Columns, c.Values = append(c.Columns, int32(i)), append(c.Values, rng.NormFloat64())
			}
		}
		slices.Sort(c.Columns[first:])
		c.Start = append(c.Start, int64(len(c.Columns)))
	}
	path := filepath.Join(t.TempDir(), "W.npz")
	w := must[*operator.Sparse](t)(operator.NewSparse(c))
	if err := dataset.Save(path, &dataset.Problem{W: w, Y: mat.NewDense(m, 1, nil)}); err != nil {
		t.Fatal(err)
	}
	scipy := scipyTimes(t, sparseProgram, path)
	table := tables.New(t, "", "60 M entries, P = 4", "s a sweep", "against")
	table.Row("| scipy.sparse, both products | %.2f | |", scipy["both"])
	for _, q := range []int{0, 4} {
		d := shortest(3, sweepOf(t, w, 4, q))
		what := "linear"
		if q > 0 {
			what = "with exact variances (twice the products)"
		}
		table.Row("| calamp, %s | %.2f | %.1f × |", what, d.Seconds(), scipy["both"]/d.Seconds())
	}
}
