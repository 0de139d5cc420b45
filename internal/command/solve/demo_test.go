package solve

import (
	"context"
	"slices"
	"testing"

	"github.com/calamp/calamp"
	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/internal/command/option"
	"github.com/calamp/calamp/internal/sandals"
	"github.com/calamp/calamp/teacher"
)

// TestLearnsSandals recovers real images about which nothing is said.
func TestLearnsSandals(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	images, err := sandals.Load(10)
	if err != nil {
		t.Fatal(err)
	}
	te := teacher.Teacher{
		N: sandals.Size, M: sandals.Size * 8 / 10, P: 10, X: images,
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
