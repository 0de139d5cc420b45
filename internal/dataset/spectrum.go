package dataset

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math"

	"github.com/calamp/calamp/operator"
)

// SaveSpectrum writes the decomposition of w to the .npz at path: diagonal (M), off (M-1) and
// rotation (M×M) of W̃W̃ᵀ = QTQᵀ, its eigenvalues (M), the norms of the rows of w (M), and
// w_sha256, which tells w ([HashMatrix]), and sha256, that of all these: a .mat has no checksums of its own.
func SaveSpectrum(path string, w operator.Operator, g *operator.Gram) error {
	hash, err := HashMatrix(w)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	whole, err := hashSpectrum(hash, g)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return writeArrays(path, []output{
		textOutput("w_sha256", hash), textOutput(spectrumHash, whole), vectorOutput("norms", g.Norms), vectorOutput("diagonal", g.Diagonal),
		vectorOutput("off", g.Off), vectorOutput("eigenvalues", g.Eigenvalues), denseOutput("rotation", g.Rotation),
	})
}

const spectrumHash = "sha256"

// hashSpectrum is the SHA-256 of the text that tells w, of the four vectors of g, and of the rows of the rotation, each with
// its length before it: 64-bit whole numbers and float64, little-endian.
func hashSpectrum(w string, g *operator.Gram) (string, error) {
	h := sha256.New()
	h.Write([]byte(w))
	var raw []byte
	add := func(values []float64) {
		raw = appendFloats(binary.LittleEndian.AppendUint64(raw[:0], uint64(len(values))), values)
		h.Write(raw)
	}
	for _, values := range [][]float64{g.Norms, g.Diagonal, g.Off, g.Eigenvalues} {
		add(values)
	}
	m, n := g.Rotation.Dims()
	row := make([]float64, n)
	for mu := range m {
		if err := g.Rotation.RowInto(row, mu); err != nil {
			return "", err
		}
		add(row)
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// LoadSpectrum reads what SaveSpectrum wrote, and refuses that of another matrix than w, one that was changed since, and
// one without a hash of its own, as versions before wrote it.
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
	if c.find(spectrumHash) == nil {
		return nil, c.fault(spectrumHash, "sha256 is missing: this decomposition is of an older version, which could not recognise a damaged one; "+
			"remove the file, and it is made anew")
	}
	whole, err := c.readText(spectrumHash)
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
	if g.Rotation, err = operator.NewDense(m, m, rotation.Data); err != nil {
		return nil, rotation.fault("%w", err)
	}
	found, err := hashSpectrum(kept, g)
	if err != nil {
		return nil, err
	}
	if found != whole {
		return nil, c.fault("", "damaged: this decomposition is not what was written (sha256 %.12s…, expected %.12s…); remove the file, and it is made anew", found, whole)
	}
	return g, nil
}
