package calamp_test

import (
	"context"
	"testing"

	"github.com/calamp/calamp"
	"github.com/calamp/calamp/channel"
	"github.com/calamp/calamp/internal/diagnosis"
	"github.com/calamp/calamp/internal/tests"
	"github.com/calamp/calamp/prior"
	"github.com/calamp/calamp/teacher"
)

// Behind masks of zeros and ones positive signals have most of the readings' power in common. Theory is asked about W without its means, whose mean square is half of the other: it promised too much. And residuals
// across the readings, in place of across what these are to be, were along what signals have in common.
func TestMasksOfZerosAndOnesAreTrusted(t *testing.T) {
	for name, te := range map[string]teacher.Teacher{
		"photons": {Own: channel.Detector{Photon: 0.0126, Read: 0.004}},
		"noise":   {NoiseVar: 0.2},
	} {
		te.N, te.M, te.P, te.Gain, te.Matrix = 200, 200, 8, channel.Uniform(0.8, 1.2), teacher.Ensemble{Kind: "binary"}
		te.Signal, te.Entries = prior.GaussBernoulli{Density: 0.15, SignalVar: 1}, prior.NonNegative{Density: 0.15, SignalVar: 1}
		in, err := te.Draw(1)
		if err != nil {
			t.Fatal(err)
		}
		p := &calamp.Problem{W: in.W, Y: in.Y, Prior: te.Entries.(prior.NonNegative).Learning(prior.Density | prior.SignalVar), Channel: channel.Gain{Prior: te.Gain, NoiseVar: te.NoiseVar, Own: te.Own}}
		res, err := calamp.Solve(context.Background(), p, nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, w := range res.Warnings {
			if w.Code == diagnosis.MatrixDoubtful || w.Code == diagnosis.UnrecoveredOrNoise {
				t.Errorf("%s: %s: %s", name, w.Code, w.Message)
			}
		}
		if res.Status != calamp.Converged {
			t.Errorf("%s: %v", name, res.Status)
		}
	}
}

// Three photons a reading leave most of the signals' variance open for good, while hyperparameters creep that they hardly determine: the run ends where signals stand still.
func TestFewPhotonsEnd(t *testing.T) {
	tests.Long(t)
	te := teacher.Teacher{N: 200, M: 200, P: 8, Gain: channel.Uniform(0.8, 1.2), Matrix: teacher.Ensemble{Kind: "binary"}, Own: channel.Detector{Photon: 0.42}}
	te.Signal, te.Entries = prior.GaussBernoulli{Density: 0.15, SignalVar: 1}, prior.NonNegative{Density: 0.15, SignalVar: 1}
	for _, seed := range []uint64{2, 4} {
		in, err := te.Draw(seed)
		if err != nil {
			t.Fatal(err)
		}
		learned := te.Entries.(prior.NonNegative).Learning(prior.Density | prior.SignalMean | prior.SignalVar)
		res, err := calamp.Solve(context.Background(), &calamp.Problem{W: in.W, Y: in.Y, Prior: learned, Channel: channel.Gain{Prior: te.Gain, Own: te.Own}}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if x, s := inside(res, in.Truth); res.Status != calamp.Converged || s < 0.9 {
			t.Errorf("seed %d: %v, %.3f of the signals and %.3f of the gains inside", seed, res.Status, x, s)
		}
	}
}
