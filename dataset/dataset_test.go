package dataset

import (
	"context"
	"errors"
	"path/filepath"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/calamp/calamp"
	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/operator"
	"github.com/calamp/calamp/prior"
)

// A problem and its result come back from their files as they were written.
func TestFilesOfAProgram(t *testing.T) {
	w, err := operator.NewDense(2, 2, []float64{1, 0.5, -0.5, 1})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "problem.npz")
	y := mat.NewDense(2, 1, []float64{1, 2})
	if err := Save(path, &Problem{W: w, Y: y}); err != nil {
		t.Fatal(err)
	}
	p, err := Load(path)
	if err != nil || !mat.Equal(p.Y, y) {
		t.Fatalf("the readings came back as %v, %v", p, err)
	}
	defer p.Close()
	result, err := calamp.Solve(context.Background(), &calamp.Problem{
		W: p.W, Y: p.Y, Prior: prior.GaussBernoulli{Density: 1, SignalVar: 1},
		Channel: channel.Gain{Prior: channel.Uniform(0.9, 1.1), NoiseVar: 1e-2},
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := SaveResult(path, result); err != nil {
		t.Fatal(err)
	}
	if again, err := LoadResult(path); err != nil || !mat.Equal(again.X, result.X) {
		t.Errorf("the result came back as %v, %v", again, err)
	}
	var wrong *InputError
	if _, err := Load(filepath.Join(t.TempDir(), "none.npz")); !errors.As(err, &wrong) {
		t.Errorf("a missing file gave %v", err)
	}
}
