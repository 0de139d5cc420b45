package dataset

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/calamp/calamp/operator"
)

// TestSpectrumIsWhole changes single bits of a decomposition that was kept, all over the file: it is refused, or what was
// written. Only archives have checksums of their own.
func TestSpectrumIsWhole(t *testing.T) {
	w := tableOf(smallProblem(t))
	g, err := operator.GramOf(t.Context(), w, 1)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"S.npz", "S.mat"} {
		path := filepath.Join(t.TempDir(), name)
		if err := SaveSpectrum(path, w, g); err != nil {
			t.Fatal(err)
		}
		if _, err := LoadSpectrum(path, w); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		refused := 0
		for at := 0; at < len(data); at += 7 { // every bit of a byte in turn
			changed := slices.Clone(data)
			changed[at] ^= 1 << (at % 8)
			writeTest(t, path, changed)
			found, err := LoadSpectrum(path, w)
			if err != nil {
				expectInputError(t, err)
				refused++
				continue
			}
			if !sameGram(t, found, g) {
				t.Fatalf("%s: bit %d of byte %d is another, and the decomposition, too", name, at%8, at)
			}
		}
		t.Logf("%s: %d of %d changed bits refused", name, refused, len(data))
	}
}

func sameGram(t *testing.T, a, b *operator.Gram) bool {
	t.Helper()
	one, err := hashSpectrum("", a)
	other, failed := hashSpectrum("", b)
	if err != nil || failed != nil {
		t.Fatal(err, failed)
	}
	return one == other
}

// TestOlderSpectrum refuses a decomposition without a hash of its own, and says what to do.
func TestOlderSpectrum(t *testing.T) {
	w := tableOf(smallProblem(t))
	g, err := operator.GramOf(t.Context(), w, 1)
	if err != nil {
		t.Fatal(err)
	}
	hash, err := HashMatrix(w)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"S.npz", "S.mat"} {
		path := filepath.Join(t.TempDir(), name)
		if err := writeArrays(path, []output{
			textOutput("w_sha256", hash), vectorOutput("norms", g.Norms), vectorOutput("diagonal", g.Diagonal),
			vectorOutput("off", g.Off), vectorOutput("eigenvalues", g.Eigenvalues), denseOutput("rotation", g.Rotation),
		}); err != nil {
			t.Fatal(err)
		}
		_, err := LoadSpectrum(path, w)
		expectInputError(t, err)
		expectWords(t, err, "of an older version")
		expectWords(t, err, "remove the file, and it is made anew")
	}
}
