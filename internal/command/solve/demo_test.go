package solve

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"math"
	"slices"
	"testing"

	"github.com/calamp/calamp"
	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/dataset"
	"github.com/calamp/calamp/internal/command/option"
	"github.com/calamp/calamp/teacher"
)

// TestLearnsSandals recovers real images about which nothing is said.
func TestLearnsSandals(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	images, err := loadSandals(10)
	if err != nil {
		t.Fatal(err)
	}
	te := teacher.Teacher{
		N: sandalSize, M: sandalSize * 8 / 10, P: 10, X: images,
		Signal: demoModel.Prior(), Gain: channel.Uniform(0.5, 1.5), NoiseVar: 1e-4,
	}
	in, err := te.Draw(1)
	if err != nil {
		t.Fatal(err)
	}
	m := option.DefaultModel
	m.Learned = slices.Clone(option.ModelFlags)
	if err := m.Guess(in.W, in.Y); err != nil {
		t.Fatal(err)
	}
	res, err := calamp.Solve(context.Background(), &calamp.Problem{W: in.W, Y: in.Y, Prior: m.Signal(m.Prior()), Channel: m.Channel()}, &calamp.Options{Learn: m.Learning()})
	if err != nil {
		t.Fatal(err)
	}
	m.TakeResult(res)
	a := newAnswer("learned", res, in.Truth)
	t.Logf("relative MSE %.3g; %v", a.nmse, &m)
	if res.Status != calamp.Converged || a.nmse > 3e-4 {
		t.Errorf("%s, relative MSE %.3g", res.Reason, a.nmse)
	}
}

// TestSandals checks that the embedded images are those of demo/README.md.
func TestSandals(t *testing.T) {
	sum := sha256.Sum256(sandals)
	if got := hex.EncodeToString(sum[:]); got != "6b3036d23afe0c426dad03319dcd1be32f9db364b336718c8e21eda793e7025d" {
		t.Errorf("the embedded file has SHA-256 %s", got)
	}
	x, err := loadSandals(sandalCount)
	if err != nil {
		t.Fatal(err)
	}
	// The library's own reader agrees.
	array, err := dataset.LoadArray("demo/fashion_sandals_256x28x28.npz", "images")
	if err != nil {
		t.Fatal(err)
	}
	on := 0.0
	for i, v := range array.Data {
		if got := x.At(i%sandalSize, i/sandalSize); got != v/sandalScale {
			t.Fatalf("pixel %d is %g, expected %g", i, got, v/sandalScale)
		}
		if v != 0 {
			on++
		}
	}
	if density := on / float64(len(array.Data)); math.Abs(density-0.197) > 0.001 {
		t.Errorf("density %.4f", density)
	}
}
