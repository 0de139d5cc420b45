package dataset

import (
	"math"
	"path/filepath"
	"testing"

	"gonum.org/v1/gonum/mat"
)

// TestNames: a problem whose arrays have names of their own is read by them, and where W is missing the message says how.
func TestNames(t *testing.T) {
	path := filepath.Join(t.TempDir(), "P.npz")
	a, b := mat.NewDense(3, 2, []float64{1, 2, 3, 4, 5, 6}), mat.NewDense(3, 1, []float64{7, 8, 9})
	if err := writeArrays(path, []output{matrixOutput("b", b), matrixOutput("A", a)}); err != nil {
		t.Fatal(err)
	}
	_, err := Load(path)
	expectFault(t, err, path+": W is missing, found only b, A; --name W=A,Y=b reads them from there")
	p, err := LoadNamed(path, math.MaxInt64, Names{"W": "A", "Y": "b"})
	if err != nil {
		t.Fatal(err)
	}
	if m, n := p.W.Dims(); m != 3 || n != 2 || p.Y.At(2, 0) != 9 {
		t.Errorf("W is %d×%d, Y %v", m, n, p.Y)
	}
	_, err = LoadNamed(path, math.MaxInt64, Names{"W": "A", "Y": "c"})
	expectFault(t, err, path+": Y is missing as c, found only b, A; --name Y=b reads it from there")
}
