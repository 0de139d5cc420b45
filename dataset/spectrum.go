package dataset

import (
	"fmt"
	"math"

	"github.com/calamp/calamp/operator"
)

// SaveSpectrum writes the decomposition of w to the .npz at path: diagonal (M), off (M-1) and
// rotation (M×M) of W̃W̃ᵀ = QTQᵀ, its eigenvalues (M), the norms of the rows of w (M), and
// w_sha256, which tells w ([HashMatrix]).
func SaveSpectrum(path string, w operator.Operator, g *operator.Gram) error {
	hash, err := HashMatrix(w)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return writeArrays(path, []output{
		textOutput("w_sha256", hash), vectorOutput("norms", g.Norms), vectorOutput("diagonal", g.Diagonal),
		vectorOutput("off", g.Off), vectorOutput("eigenvalues", g.Eigenvalues), denseOutput("rotation", g.Rotation),
	})
}

// LoadSpectrum reads what SaveSpectrum wrote, and refuses that of another matrix than w.
func LoadSpectrum(path string, w operator.Operator) (*operator.Gram, error) {
	c, err := open(path)
	if err != nil {
		return nil, err
	}
	defer c.close()
	if c.find("w_sha256") == nil || c.find("rotation") == nil {
		return nil, c.fault("", "this is no decomposition of a matrix, as --spectrum-cache writes one")
	}
	kept, err := c.readText("w_sha256")
	if err != nil {
		return nil, err
	}
	hash, err := HashMatrix(w)
	if err != nil {
		return nil, err
	}
	if hash != kept {
		return nil, c.fault("", "this is the decomposition of another matrix than W (w_sha256 %.12s…, expected %.12s…)", kept, hash)
	}
	l := resultLoader{c: c}
	g := &operator.Gram{Norms: l.vector("norms"), Diagonal: l.vector("diagonal"), Off: l.vector("off"), Eigenvalues: l.vector("eigenvalues")}
	rotation := l.read("rotation")
	if l.err != nil {
		return nil, l.err
	}
	m, _ := w.Dims()
	for _, v := range []struct {
		name  string
		value []float64
		want  int
	}{{"norms", g.Norms, m}, {"diagonal", g.Diagonal, m}, {"off", g.Off, m - 1}, {"eigenvalues", g.Eigenvalues, m}, {"rotation", rotation.Data, m * m}} {
		if len(v.value) != v.want {
			return nil, c.fault(v.name, "%d values, expected %d", len(v.value), v.want)
		}
		for i, x := range v.value {
			if math.IsNaN(x - x) {
				return nil, c.fault(v.name, "value %d is %g, expected a finite number", i, x)
			}
		}
	}
	g.Rotation, err = operator.NewDense(m, m, rotation.Data)
	return g, err
}
