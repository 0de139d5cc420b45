package calamp_test

import (
	"context"
	"fmt"
	"math"
	"testing"

	"github.com/calamp/calamp"
	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/prior"
	"github.com/calamp/calamp/teacher"
)

func TestLongFaults(t *testing.T) {
	longOnly(t)
	te := teacher.Teacher{N: 784, M: 470, P: 10, Signal: prior.GaussBernoulli{Density: 0.2, SignalVar: 1}, Gain: channel.Uniform(0.95, 1.05), NoiseVar: 1e-8}
	for _, f := range faults {
		for _, count := range []int{1, 5, 50} {
			for seed := range uint64(seedCount(5)) {
				in, err := te.Draw(seed)
				if err != nil {
					t.Fatal(err)
				}
				p := te.Problem(in)
				opt := &calamp.Options{Threads: 1}
				clean, err := calamp.Solve(context.Background(), p, opt)
				if err != nil {
					t.Fatal(err)
				}
				broken := breakSensors(in.Y, in.Truth.S, count, seed, f)
				p.Channel = channel.Faulty{Working: p.Channel}
				res, err := calamp.Solve(context.Background(), p, opt)
				if err != nil {
					t.Fatal(err)
				}
				right, wrong := found(res, broken)
				a, b := calamp.Score(clean.X, clean.S, in.Truth), calamp.Score(res.X, res.S, in.Truth)
				fmt.Printf("| %s | %d | %d | %d/%d | %d | %v %d | %.2g | %.2g | %.2f | %.2g\n", f.name, count, seed, right, count, wrong, res.Status, res.Iterations, a.XMSEScaled, b.XMSEScaled, b.XMSEScaled/a.XMSEScaled, math.Sqrt(b.XMSE))
			}
		}
	}
}
