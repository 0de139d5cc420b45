package sandals

import (
	"crypto/sha256"
	"encoding/hex"
	"math"
	"testing"

	"github.com/calamp/calamp/internal/dataset"
)

// TestImages checks that the embedded images are those of README.md.
func TestImages(t *testing.T) {
	sum := sha256.Sum256(archive)
	if got := hex.EncodeToString(sum[:]); got != "6b3036d23afe0c426dad03319dcd1be32f9db364b336718c8e21eda793e7025d" {
		t.Errorf("the embedded file has SHA-256 %s", got)
	}
	x, err := Load(Count)
	if err != nil {
		t.Fatal(err)
	}
	// The library's own reader agrees.
	array, err := dataset.LoadArray("fashion_sandals_256x28x28.npz", "images")
	if err != nil {
		t.Fatal(err)
	}
	on := 0.0
	for i, v := range array.Data {
		if got := x.At(i%Size, i/Size); got != v/scale {
			t.Fatalf("pixel %d is %g, expected %g", i, got, v/scale)
		}
		if v != 0 {
			on++
		}
	}
	if density := on / float64(len(array.Data)); math.Abs(density-0.197) > 0.001 {
		t.Errorf("density %.4f", density)
	}
}
