package dataset

import (
	"context"
	"errors"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/calamp/calamp"
	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/operator"
	"github.com/calamp/calamp/prior"
)

// A W.npy that is written to while a run reads it ends the run with an error that
// says so, even when its size and time stay the same.
func TestMatrixFileThatChanges(t *testing.T) {
	const m, n = 60, 80
	folder := t.TempDir()
	matrix, readings := filepath.Join(folder, "W.npy"), filepath.Join(folder, "Y.npy")
	values, y := make([]float64, m*n), make([]float64, m)
	for i := range values {
		values[i] = math.Sin(float64(i*i)) / math.Sqrt(n)
	}
	for mu := range y {
		y[mu] = values[mu*n] + 2*values[mu*n+7]
	}
	w, err := operator.NewDense(m, n, values)
	if err != nil {
		t.Fatal(err)
	}
	for path, array := range map[string]output{matrix: denseOutput("W", w), readings: vectorOutput("Y", y)} {
		if err := WriteFile(path, array.write); err != nil {
			t.Fatal(err)
		}
	}
	p, err := OpenParts(matrix, readings, 8*m*n-1)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	if _, onDisk := p.W.(operator.Streamed); !onDisk {
		t.Fatalf("W is a %T", p.W)
	}
	problem := &calamp.Problem{W: p.W, Y: p.Y, Prior: prior.GaussBernoulli{Density: 0.1, SignalVar: 1}, Channel: channel.AWGN{NoiseVar: 1e-4}}
	if _, err := calamp.Solve(context.Background(), problem, &calamp.Options{}); err != nil {
		t.Fatalf("before the change: %v", err)
	}
	_, err = calamp.Solve(context.Background(), problem, &calamp.Options{Progress: func(it calamp.Iteration) {
		if it.Index == 1 {
			alter(t, matrix)
		}
	}})
	if _, read := errors.AsType[*operator.ReadError](err); !read || !errors.Is(err, operator.ErrChanged) {
		t.Errorf("after the change: %v", err)
	}
}

// alter changes the last number of a file, and leaves its size and time.
func alter(t *testing.T, path string) {
	t.Helper()
	stat, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteAt([]byte{0}, stat.Size()-2); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(f.Close(), os.Chtimes(path, stat.ModTime(), stat.ModTime())); err != nil {
		t.Fatal(err)
	}
}
