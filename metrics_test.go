package calamp_test

import (
	"math"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/calamp/calamp"
)

func TestScore(t *testing.T) {
	truth := calamp.Truth{X: mat.NewDense(2, 2, []float64{1, 0, 0, 2}), S: []float64{0.9, 1, 1.1}}
	x := mat.NewDense(2, 2, []float64{2, 0, 0, 4})
	m := calamp.Score(x, []float64{1.8, 2, 2.2}, truth)
	if m.Scale != 0.5 || m.XMSEScaled != 0 || m.XMSE != 1.25 || m.XOneMinusNCC > 1e-16 || m.SMSEScaled > 1e-30 || m.SOneMinusCNCC > 1e-15 {
		t.Errorf("twice the truth: %+v", m)
	}

	// One minus a correlation keeps its digits: an error of 1e-12 at one entry
	// orthogonal to the truth has 1-ncc = ½ (1e-12)²/‖x‖².
	x = mat.NewDense(2, 2, []float64{1, 1e-12, 0, 2})
	m = calamp.Score(x, truth.S, truth)
	if want := 1e-25; math.Abs(m.XOneMinusNCC/want-1) > 1e-6 {
		t.Errorf("1-ncc = %g, want %g", m.XOneMinusNCC, want)
	}

	m = calamp.Score(x, []float64{1, 1, 1}, calamp.Truth{S: truth.S})
	if !math.IsNaN(m.XMSE) || m.SOneMinusCNCC != 1 {
		t.Errorf("without X, constant s: %+v", m)
	}
	m = calamp.Score(mat.NewDense(2, 2, nil), truth.S, truth)
	if m.XOneMinusNCC != 1 || m.Scale != 0 {
		t.Errorf("zero estimate: %+v", m)
	}
}
